// Asynchronous copies by single threads and by groups. Cases from 10 on are mistakes.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_pipeline.h>

namespace cg = cooperative_groups;

__global__ void k(float *X, float *Y, int which) {
    __align__(16) __shared__ float tile[2][256];
    const int t = threadIdx.x, n = blockDim.x, other = n - 1 - t;
    const cg::thread_block block = cg::this_thread_block();
    const auto warp = cg::tiled_partition<32>(block);
    const int first = t / 32 * 32;
    switch (which) {
        case 0:
            __pipeline_memcpy_async(&tile[0][t], &X[t], sizeof(float));
            __pipeline_commit();
            __pipeline_wait_prior(0);
            __syncthreads();
            Y[t] = tile[0][other];
            break;
        case 1:
            cg::memcpy_async(block, tile[0], X, n * sizeof(float));
            cg::wait(block);
            Y[t] = tile[0][other];
            break;
        case 2:  // two stages: the first is read while the second is copied
            cg::memcpy_async(block, tile[0], X, n * sizeof(float));
            cg::memcpy_async(block, tile[1], X + n, n * sizeof(float));
            cg::wait_prior<1>(block);
            Y[t] = tile[0][other];
            cg::wait(block);
            Y[t] += tile[1][other];
            break;
        case 3:  // each warp by itself
            cg::memcpy_async(warp, &tile[0][first], &X[first], 32 * sizeof(float));
            cg::wait(warp);
            Y[first + 31 - t % 32] = tile[0][t];
            break;
        case 4:  // a ring of two stages with four tiles, of which the last two wrap around
            for (int i = 0; i < 5; ++i) {
                if (i < 4) __pipeline_memcpy_async(&tile[i % 2][t], &X[i % 2 * n + t], 4);
                __pipeline_commit();
                if (!i) continue;
                __pipeline_wait_prior(1);
                __syncthreads();
                Y[t] += tile[(i - 1) % 2][other];
                __syncthreads();
            }
            break;
        case 5:  // four elements a thread, of which the last two become zeros
            if (t < n / 4) {
                __pipeline_memcpy_async(&tile[0][4 * t], &X[4 * t], 16, 8);
                __pipeline_commit();
                __pipeline_wait_prior(0);
            }
            __syncthreads();
            Y[t] = tile[0][other];
            break;
        case 6:  // the source is overwritten after the wait, and another element before
            __pipeline_memcpy_async(&tile[0][t], &X[t], 4);
            X[n + t] = 1.0f;
            __pipeline_commit();
            __pipeline_wait_prior(0);
            X[t] = 2.0f;
            Y[t] = tile[0][t] + X[t];
            break;
        case 7:  // elements and their numbers in place of bytes; the rest is there already
            tile[0][t] = 1.0f;
            block.sync();
            cg::memcpy_async(block, tile[0], 256, X, n / 2);
            cg::wait(block);
            Y[t] = tile[0][other];
            break;
        case 10:
            __pipeline_memcpy_async(&tile[0][t], &X[t], 4);
            __pipeline_commit();
            Y[t] = tile[0][t];
            break;
        case 11:
            __pipeline_memcpy_async(&tile[0][t], &X[t], 4);
            __pipeline_commit();
            __syncthreads();
            Y[t] = tile[0][other];
            break;
        case 12:  // nothing is committed
            __pipeline_memcpy_async(&tile[0][t], &X[t], 4);
            __pipeline_wait_prior(0);
            Y[t] = tile[0][t];
            break;
        case 13:  // one group too many may be unfinished
            __pipeline_memcpy_async(&tile[0][t], &X[t], 4);
            __pipeline_commit();
            __pipeline_memcpy_async(&tile[1][t], &X[n + t], 4);
            __pipeline_commit();
            __pipeline_wait_prior(1);
            Y[t] = tile[0][t] + tile[1][t];
            break;
        case 14:
            __pipeline_memcpy_async(&tile[0][t], &X[t], 4);
            __pipeline_commit();
            X[t] = 0.0f;
            __pipeline_wait_prior(0);
            Y[t] = tile[0][t];
            break;
        case 15:
            cg::memcpy_async(block, tile[0], X, n * sizeof(float));
            block.sync();
            Y[t] = tile[0][other];
            break;
        case 16:
            cg::memcpy_async(block, tile[0], X, n * sizeof(float));
            X[other] = 0.0f;
            cg::wait(block);
            Y[t] = tile[0][other];
            break;
        case 17:  // never waited for
            cg::memcpy_async(warp, &tile[0][first], &X[first], 32 * sizeof(float));
            Y[t] = 0.0f;
            break;
        case 18:  // overwritten before the wait
            __pipeline_memcpy_async(&tile[0][t], &X[t], 4);
            __pipeline_commit();
            tile[0][t] = 0.0f;
            __pipeline_wait_prior(0);
            break;
        case 19:  // two copies to one place
            __pipeline_memcpy_async(&tile[0][t], &X[t], 4);
            __pipeline_memcpy_async(&tile[0][t], &X[n + t], 4);
            __pipeline_commit();
            __pipeline_wait_prior(0);
            break;
        case 20:  // the second stage is read too early
            cg::memcpy_async(block, tile[0], X, n * sizeof(float));
            cg::memcpy_async(block, tile[1], X + n, n * sizeof(float));
            cg::wait_prior<1>(block);
            Y[t] = tile[1][other];
            break;
        case 21:  // no barrier behind the wait
            __pipeline_memcpy_async(&tile[0][t], &X[t], 4);
            __pipeline_commit();
            __pipeline_wait_prior(0);
            Y[t] = tile[0][other];
            break;
        case 22:  // the next copy does not wait for the readers
            for (int i = 0; i < 2; ++i) {
                __pipeline_memcpy_async(&tile[0][t], &X[i * n + t], 4);
                __pipeline_commit();
                __pipeline_wait_prior(0);
                __syncthreads();
                Y[t] += tile[0][other];
            }
            break;
        case 23:
            __pipeline_memcpy_async(&Y[t], &X[t], 4);
            break;
        case 24:
            __pipeline_memcpy_async(&tile[0][t], &X[t], 2);
            break;
        case 25:
            if (t < 32) __pipeline_memcpy_async(&tile[0][t + 1], &X[t], 16);
            break;
        case 26:
            atomicAdd(&X[t], 1.0f);
            __pipeline_memcpy_async(&tile[0][t], &X[t], 4);
            atomicAdd(&X[t], 1.0f);
            __pipeline_commit();
            __pipeline_wait_prior(0);
            break;
        case 27:  // neither a wait nor a barrier
            __pipeline_memcpy_async(&tile[0][t], &X[t], 4);
            __pipeline_commit();
            Y[t] = tile[0][other];
            break;
    }
}
