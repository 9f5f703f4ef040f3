// Our convolution with windows of channels, channels last, on tensor cores: filters that read the
// same channels are one dense product of pixels x channels by channels x filters, whose columns lie
// a stride apart in the output. All these products of a tile of pixels are one block's, so that its
// channels come from memory once.
//
// A warp has FRAGMENTS times 16 pixels by GROUPS times 8 filters, in the order in which equal
// windows follow each other. Eight of the filters' distinct channels are a step. The weights were
// packed as the fragments that the steps take.
//
// grid  = (filters over those of a block, tiles of pixels, which go on in z)
// block = FILTER_WARPS x PIXEL_WARPS warps; dynamic shared memory holds the tile's channels, and
//         then its results

// The plan supplies, at compile time:
//   GROUPS        groups of 8 filters of a warp
//   FRAGMENTS     groups of 16 pixels of a warp
//   FILTER_WARPS, PIXEL_WARPS
//   STAGED        1 if the channels of a tile fit in shared memory, 0 to read them from global
//   VECTOR        channels that one copy moves: 4 or 1, a divisor of the input channels
//   TERMS         3 exact, 1 TF32
#if !defined(GROUPS) || !defined(FRAGMENTS) || !defined(FILTER_WARPS) || !defined(PIXEL_WARPS) || \
    !defined(STAGED) || !defined(VECTOR) || !defined(TERMS)
#error "strided_windows.cu is compiled by accelviz, which supplies the constants listed above"
#endif

#include "async_copy.cuh"
#include "common.cuh"
#include "fragments.cuh"

#define BLOCK_THREADS (FILTER_WARPS * PIXEL_WARPS * WARP_SIZE)
#define WARP_FILTERS (8 * GROUPS)
#define BLOCK_FILTERS (WARP_FILTERS * FILTER_WARPS)
#define WARP_PIXELS (16 * FRAGMENTS)
#define PIXELS (WARP_PIXELS * PIXEL_WARPS)

#if VECTOR == 4
using Copied = float4;
#else
using Copied = float;
#endif

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    strided_windows(const int *__restrict__ first_steps, const int *__restrict__ senders,
                    const int *__restrict__ ranks, const int *__restrict__ outputs,
                    const float2 *packed, const float *__restrict__ X, float *__restrict__ Y,
                    int n_windows, int n_rows, int n_senders, int n_cols) {
    RECORD_WARP;
    const long long tile = (long long)blockIdx.z * gridDim.y + blockIdx.y;
    const long long first_pixel = tile * PIXELS;
    if (first_pixel >= n_cols) return;
    const int pixels = int(min((long long)PIXELS, n_cols - first_pixel));
    const int warp = int(threadIdx.x) / WARP_SIZE, lane = int(threadIdx.x) % WARP_SIZE;
    const int g = lane / 4, t = lane % 4;
    DYNAMIC_SHARED(float4, memory);
    float *shared = reinterpret_cast<float *>(memory);

    // The channels of a tile follow each other in memory. Eight pixels of four channels lie in
    // different banks. Pixels beyond the last are any others: their sums are not written.
    const float *own = X + first_pixel * n_senders;
#if STAGED
    const int stride = ceil_div(n_senders, WARP_SIZE) * WARP_SIZE + 4, copies = n_senders / VECTOR;
    for (int i = int(threadIdx.x); i < PIXELS * copies; i += BLOCK_THREADS) {
        const int pixel = i / copies, channel = i % copies * VECTOR;
        const long long from = (long long)min(pixel, pixels - 1) * n_senders + channel;
        copy_async(reinterpret_cast<Copied *>(&shared[pixel * stride + channel]),
                   reinterpret_cast<const Copied *>(&own[from]));
    }
    close_copies();
    await_copies<0>();
    __syncthreads();
    const float *x = shared + warp / FILTER_WARPS * WARP_PIXELS * stride;
#else
    const float *x = own;
#endif

    const int window = int(blockIdx.x) * FILTER_WARPS + warp % FILTER_WARPS;
    const bool works = window < n_windows;
    const int first = works ? first_steps[window] : 0, last = works ? first_steps[window + 1] : 0;
    float sums[FRAGMENTS][GROUPS][4] = {};
    for (int step = first; step < last; ++step) {
        unsigned high[GROUPS][2], low[GROUPS][2];
#pragma unroll
        for (int i = 0; i < GROUPS; ++i) {
            const float2 weights = packed[((long long)step * GROUPS + i) * WARP_SIZE + lane];
            split(weights.x, high[i][0], low[i][0]);
            split(weights.y, high[i][1], low[i][1]);
        }
        const int near = senders[8 * step + t], far = senders[8 * step + t + 4];
#pragma unroll
        for (int m = 0; m < FRAGMENTS; ++m) {
            unsigned a[4], b[4];
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                const int pixel = 16 * m + g + 8 * (r % 2), channel = r / 2 ? far : near;
#if STAGED
                const float value = x[pixel * stride + channel];
#else
                const int there = min(warp / FILTER_WARPS * WARP_PIXELS + pixel, pixels - 1);
                const float value = x[(long long)there * n_senders + channel];
#endif
                split(value, a[r], b[r]);
            }
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) {
#if TERMS == 3
                // Collected by additions that round, because tensor cores truncate.
                float part[4] = {};
                mma_tf32_k8(part, b, high[i]);
                mma_tf32_k8(part, a, low[i]);
                mma_tf32_k8(part, a, high[i]);
#pragma unroll
                for (int r = 0; r < 4; ++r) sums[m][i][r] += part[r];
#else
                mma_tf32_k8(sums[m][i], a, high[i]);
#endif
            }
        }
    }

    // Through shared memory, so that the outputs of a pixel leave side by side.
    const int wide = BLOCK_FILTERS + 1;
    __syncthreads();
    if (works) {
#pragma unroll
        for (int i = 0; i < GROUPS; ++i) {
#pragma unroll
            for (int odd = 0; odd < 2; ++odd) {
                const int row = window * WARP_FILTERS + 8 * i + 2 * t + odd;
                if (row >= n_rows) continue;
                float *to = &shared[warp / FILTER_WARPS * WARP_PIXELS * wide + ranks[row]];
#pragma unroll
                for (int m = 0; m < FRAGMENTS; ++m) {
                    to[(16 * m + g) * wide] = sums[m][i][odd];
                    to[(16 * m + g + 8) * wide] = sums[m][i][2 + odd];
                }
            }
        }
    }
    __syncthreads();
    const int before = int(blockIdx.x) * BLOCK_FILTERS;
    const int filters = min(BLOCK_FILTERS, n_rows - before);
    for (int i = int(threadIdx.x); i < pixels * filters; i += BLOCK_THREADS) {
        const int pixel = i / filters, rank = i % filters;
        Y[(first_pixel + pixel) * n_rows + outputs[before + rank]] = shared[pixel * wide + rank];
    }
}
