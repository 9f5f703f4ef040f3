// cuda::memcpy_async with cuda::barrier and cuda::pipeline. Cases from 10 on are mistakes.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>

using Barrier = cuda::barrier<cuda::thread_scope_block>;

__global__ void k(float *X, float *Y, int which) {
    __shared__ float tile[2][256];
    __shared__ Barrier barrier;
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    const auto block = cooperative_groups::this_thread_block();
    const int t = threadIdx.x, n = blockDim.x, other = n - 1 - t;
    if (t == 0) init(&barrier, n);
    if (which != 18) block.sync();
    switch (which) {
        case 0:
            for (int i = 0; i < 2; ++i) {
                cuda::memcpy_async(block, tile[0], X + i * n, sizeof(float) * n, barrier);
                barrier.arrive_and_wait();
                Y[t] += tile[0][other];
                block.sync();
            }
            break;
        case 1: {  // work between the arrival and the wait
            cuda::memcpy_async(&tile[0][t], &X[t], cuda::aligned_size_t<4>(4), barrier);
            Barrier::arrival_token token = barrier.arrive();
            Y[t] = X[n + other];
            barrier.wait(std::move(token));
            Y[t] += tile[0][other];
            break;
        }
        case 2: {  // two stages of a pipeline of the block
            auto pipeline = cuda::make_pipeline(block, &state);
            for (int i = 0, next = 0; i < 4; ++i) {
                for (; next < 4 && next < i + 2; ++next) {
                    pipeline.producer_acquire();
                    cuda::memcpy_async(block, tile[next % 2], X + next % 2 * n, 4 * n, pipeline);
                    pipeline.producer_commit();
                }
                pipeline.consumer_wait();
                Y[t] += 0.5f * tile[i % 2][other];
                pipeline.consumer_release();
            }
            break;
        }
        case 3: {  // a pipeline of each thread
            auto pipeline = cuda::make_pipeline();
            for (int i = 0; i < 2; ++i) {
                pipeline.producer_acquire();
                cuda::memcpy_async(&tile[i][t], &X[i * n + t], sizeof(float), pipeline);
                pipeline.producer_commit();
            }
            cuda::pipeline_consumer_wait_prior<1>(pipeline);
            Y[t] = tile[0][t];
            pipeline.consumer_wait();
            block.sync();
            Y[t] += tile[0][other] + tile[1][other] - tile[0][t];
            break;
        }
        case 5: {  // odd threads copy, even ones add
            using cuda::pipeline_role;
            const auto role = t % 2 ? pipeline_role::producer : pipeline_role::consumer;
            auto pipeline = cuda::make_pipeline(block, &state, role);
            for (int i = 0; i < 4; ++i) {
                if (role == pipeline_role::producer) {
                    pipeline.producer_acquire();
                    for (int k = t - 1; k <= t; ++k)
                        cuda::memcpy_async(&tile[i % 2][k], &X[i % 2 * n + k], 4, pipeline);
                    pipeline.producer_commit();
                } else {
                    pipeline.consumer_wait();
                    Y[t] += 0.5f * tile[i % 2][other];
                    pipeline.consumer_release();
                }
            }
            break;
        }
        case 4: {  // bytes without a type, and a first half that leaves early
            const void *from = X + n;
            cuda::memcpy_async(block, static_cast<void *>(tile[0]), from, 4 * n, barrier);
            if (t < n / 2) return barrier.arrive_and_drop();
            barrier.arrive_and_wait();
            barrier.arrive_and_wait();
            Y[t] = tile[0][other];
            break;
        }
        case 6:  // one thread waits, and the barrier of the block tells the others
            cuda::memcpy_async(block, tile[0], X + n, sizeof(float) * n, barrier);
            if (t) barrier.arrive();
            else barrier.arrive_and_wait();
            block.sync();
            Y[t] = tile[0][other];
            break;
        case 7: {  // what has been copied is changed, and the others read it behind a barrier
            auto pipeline = cuda::make_pipeline(block, &state);
            pipeline.producer_acquire();
            cuda::memcpy_async(block, tile[0], X + n, sizeof(float) * n, pipeline);
            pipeline.producer_commit();
            pipeline.consumer_wait();
            tile[0][t] += 1.0f;
            block.sync();
            Y[t] = tile[0][other] - 1.0f;
            pipeline.consumer_release();
            break;
        }
        case 8: {  // each of two barriers has a copy in flight, and the first is waited for
            __shared__ Barrier second;
            if (t == 0) init(&second, n);
            block.sync();
            cuda::memcpy_async(block, tile[0], X, sizeof(float) * n, barrier);
            cuda::memcpy_async(block, tile[1], X + n, sizeof(float) * n, second);
            Barrier::arrival_token token = second.arrive();
            barrier.arrive_and_wait();
            Y[t] = tile[0][other];
            second.wait(std::move(token));
            block.sync();
            Y[t] += tile[1][other];
            break;
        }
        case 10:
            cuda::memcpy_async(block, tile[0], X, sizeof(float) * n, barrier);
            block.sync();
            Y[t] = tile[0][other];
            barrier.arrive_and_wait();
            break;
        case 11:
            cuda::memcpy_async(block, tile[0], X, sizeof(float) * n, barrier);
            barrier.arrive();
            Y[t] = tile[0][other];
            break;
        case 12:
            cuda::memcpy_async(&tile[0][t], &X[t], 4, barrier);
            X[t] = 0.0f;
            barrier.arrive_and_wait();
            break;
        case 13:
            cuda::memcpy_async(&tile[0][t], &X[t], 4, barrier);
            break;
        case 14: {  // nothing is waited for
            auto pipeline = cuda::make_pipeline(block, &state);
            pipeline.producer_acquire();
            cuda::memcpy_async(block, tile[0], X, 4 * n, pipeline);
            pipeline.producer_commit();
            Y[t] = tile[0][other];
            break;
        }
        case 15: {  // the third copy does not wait for the readers of the first
            auto pipeline = cuda::make_pipeline(block, &state);
            for (int i = 0, next = 0; i < 4; ++i) {
                for (; next < 4 && next < i + 2; ++next) {
                    cuda::memcpy_async(block, tile[next % 2], X + next % 2 * n, 4 * n, pipeline);
                    pipeline.producer_commit();
                }
                pipeline.consumer_wait();
                Y[t] += tile[i % 2][other];
                pipeline.consumer_release();
            }
            break;
        }
        case 16: {  // the other stage
            auto pipeline = cuda::make_pipeline();
            for (int i = 0; i < 2; ++i) {
                cuda::memcpy_async(&tile[i][t], &X[i * n + t], sizeof(float), pipeline);
                pipeline.producer_commit();
            }
            pipeline.consumer_wait();
            Y[t] = tile[1][t];
            break;
        }
        case 17:  // the next copy does not wait for the readers
            for (int i = 0; i < 2; ++i) {
                cuda::memcpy_async(block, tile[0], X + i * n, sizeof(float) * n, barrier);
                barrier.arrive_and_wait();
                Y[t] += tile[0][other];
            }
            break;
        case 18:  // no barrier of the block behind init
            barrier.arrive_and_wait();
            break;
        case 19: {  // a pipeline commits, and the copy is of the barrier
            cuda::memcpy_async(&tile[0][t], &X[t], 4, barrier);
            auto pipeline = cuda::make_pipeline();
            pipeline.producer_commit();
            pipeline.consumer_wait();
            Y[t] = tile[0][t];
            break;
        }
        case 20: {  // a barrier of the block is no wait
            auto pipeline = cuda::make_pipeline(block, &state);
            pipeline.producer_acquire();
            cuda::memcpy_async(block, tile[0], X, 4 * n, pipeline);
            pipeline.producer_commit();
            block.sync();
            Y[t] = tile[0][other];
            pipeline.consumer_wait();
            break;
        }
        case 21: {
            cuda::memcpy_async(block, tile[0], X, 4 * n, barrier);
            Barrier::arrival_token token = barrier.arrive();
            __syncthreads();
            Y[t] = tile[0][other];
            barrier.wait(std::move(token));
            break;
        }
        case 22: {  // the source may still be read
            cuda::memcpy_async(block, tile[0], X, 4 * n, barrier);
            Barrier::arrival_token token = barrier.arrive();
            block.sync();
            X[other] = 0.0f;
            barrier.wait(std::move(token));
            break;
        }
        case 23: {  // half of the threads wait
            cuda::memcpy_async(block, tile[0], X, 4 * n, barrier);
            Barrier::arrival_token token = barrier.arrive();
            block.sync();
            if (t < n / 2) barrier.wait(std::move(token));
            Y[t] = tile[0][other];
            break;
        }
        case 24:  // nobody waits
            cuda::memcpy_async(&tile[0][t], &X[t], 4, barrier);
            barrier.arrive();
            break;
        case 25: {  // the second stage is not waited for
            auto pipeline = cuda::make_pipeline(block, &state);
            for (int i = 0; i < 2; ++i) {
                pipeline.producer_acquire();
                cuda::memcpy_async(block, tile[i], X + i * n, 4 * n, pipeline);
                pipeline.producer_commit();
            }
            pipeline.consumer_wait();
            block.sync();
            Y[t] = tile[0][other] + tile[1][other];
            pipeline.consumer_wait();
            break;
        }
        case 26: {  // a copy into what another copy has not reached for sure
            cuda::memcpy_async(&tile[0][t], &X[t], 4, barrier);
            Barrier::arrival_token token = barrier.arrive();
            __syncthreads();
            cuda::memcpy_async(&tile[0][t], &X[n + t], 4, barrier);
            barrier.wait(std::move(token));
            break;
        }
        case 27: {  // a barrier of warps
            cuda::memcpy_async(&tile[0][t], &X[t], 4, barrier);
            Barrier::arrival_token token = barrier.arrive();
            __syncthreads();
            __syncwarp();
            Y[t] = tile[0][t];
            barrier.wait(std::move(token));
            break;
        }
    }
}
