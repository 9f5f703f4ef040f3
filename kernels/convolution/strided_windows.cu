// Our convolution with windows of channels, channels last, on tensor cores: filters that read the
// same channels are one dense product of pixels x channels by channels x filters, whose columns lie
// a stride apart in the output. All these products of a tile of pixels are one block's, so that its
// channels come from memory once.
//
// A warp has FRAGMENTS times 16 pixels by GROUPS times 8 filters, in the order in which equal
// windows follow each other. Eight of the filters' distinct channels are a step. The weights were
// packed as the fragments that the steps take, and where they fit a block keeps its own. While it
// multiplies a tile, the channels of its next one are on their way.
//
// grid  = (filters over those of a block, blocks that share the tiles of pixels)
// block = FILTER_WARPS x PIXEL_WARPS warps; dynamic shared memory holds weights if RESIDENT, the
//         channels of two tiles if STAGED, and the results of one

// The plan supplies, at compile time:
//   GROUPS        groups of 8 filters of a warp
//   FRAGMENTS     groups of 16 pixels of a warp
//   FILTER_WARPS, PIXEL_WARPS
//   RESIDENT      1 if a block's weights stay in shared memory
//   STAGED        1 if the channels of tiles do, 0 to read them from global memory
//   VECTOR        channels that one copy moves: 4 or 1, a divisor of the input channels
//   TERMS         3 exact, 1 TF32
#if !defined(GROUPS) || !defined(FRAGMENTS) || !defined(FILTER_WARPS) || !defined(PIXEL_WARPS) || \
    !defined(RESIDENT) || !defined(STAGED) || !defined(VECTOR) || !defined(TERMS)
#error "strided_windows.cu is compiled by accelviz, which supplies the constants listed above"
#endif

#include "async_copy.cuh"
#include "common.cuh"
#include "convolution/walk.cuh"
#include "fragments.cuh"

#define BLOCK_THREADS (FILTER_WARPS * PIXEL_WARPS * WARP_SIZE)
#define WARP_FILTERS (8 * GROUPS)
#define BLOCK_FILTERS (WARP_FILTERS * FILTER_WARPS)
#define WARP_PIXELS (16 * FRAGMENTS)
#define PIXELS (WARP_PIXELS * PIXEL_WARPS)
#define STEP_WEIGHTS (64 * GROUPS)

#if VECTOR == 4
using Copied = float4;
#else
using Copied = float;
#endif

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    strided_windows(const int *__restrict__ first_steps, const int *__restrict__ columns,
                    const int *__restrict__ copy_pointers, const int *__restrict__ copies,
                    const int *__restrict__ ranks, const int *__restrict__ outputs, float *packed,
                    const float *__restrict__ X, float *__restrict__ Y, int n_windows, int n_rows,
                    int n_senders, int n_cols, int stride) {
    RECORD_WARP;
    const int warp = int(threadIdx.x) / WARP_SIZE, lane = int(threadIdx.x) % WARP_SIZE;
    const int g = lane / 4, t = lane % 4;
    const int first_window = int(blockIdx.x) * FILTER_WARPS;
    const int window = first_window + warp % FILTER_WARPS;
    const bool works = window < n_windows;
    const int first = works ? first_steps[window] : 0, last = works ? first_steps[window + 1] : 0;
    DYNAMIC_SHARED(float4, memory);
    float *shared = reinterpret_cast<float *>(memory);

#if RESIDENT
    const int own_first = first_steps[first_window];
    const int own_last = first_steps[min(first_window + FILTER_WARPS, n_windows)];
    const float *from = packed + (long long)own_first * STEP_WEIGHTS;
    for (int i = 4 * int(threadIdx.x); i < (own_last - own_first) * STEP_WEIGHTS;
         i += 4 * BLOCK_THREADS) {
        copy_async(reinterpret_cast<float4 *>(&shared[i]),
                   reinterpret_cast<const float4 *>(&from[i]));
    }
    const float *weights = shared + (first - own_first) * STEP_WEIGHTS;
    shared += (own_last - own_first) * STEP_WEIGHTS;
#else
    const float *weights = packed + (long long)first * STEP_WEIGHTS;
#endif

    // The channels that a block's filters read, of each pixel behind each other. Eight pixels of
    // four channels lie in different banks. Pixels beyond the last are any others: their sums are
    // not written.
    float *results = shared + (STAGED ? 2 * PIXELS * stride : 0);
    const int first_copy = copy_pointers[blockIdx.x];
    const int n_copies = copy_pointers[blockIdx.x + 1] - first_copy;
    const int tiles = ceil_div(n_cols, PIXELS);
    auto load = [&](int tile, float *to) {
        const int pixels = min(PIXELS, n_cols - tile * PIXELS);
        const float *rows = X + (long long)tile * PIXELS * n_senders;
        for (Walk<BLOCK_THREADS> at(n_copies); at.row < PIXELS; at.go_on()) {
            const int channel = copies[first_copy + at.column] * VECTOR;
            const long long row = min(at.row, pixels - 1);
            copy_async(reinterpret_cast<Copied *>(&to[at.row * stride + at.column * VECTOR]),
                       reinterpret_cast<const Copied *>(&rows[row * n_senders + channel]));
        }
    };
    if (STAGED && n_copies > 0 && int(blockIdx.y) < tiles) load(int(blockIdx.y), shared);
    close_copies();

    int turn = 0;
    for (int tile = int(blockIdx.y); tile < tiles; tile += int(gridDim.y), turn ^= 1) {
        const int pixels = min(PIXELS, n_cols - tile * PIXELS);
        const int next = tile + int(gridDim.y);
        if (STAGED && n_copies > 0 && next < tiles)
            load(next, shared + (turn ^ 1) * PIXELS * stride);
        close_copies();
        await_copies<1>();
        __syncthreads();  // the tile is there, and the results of the one before have left
        const float *x =
            shared + turn * PIXELS * stride + warp / FILTER_WARPS * WARP_PIXELS * stride;

        float sums[FRAGMENTS][GROUPS][4] = {};
        for (int step = first; step < last; ++step) {
            unsigned high[GROUPS][2], low[GROUPS][2];
            const float *own = weights + (step - first) * STEP_WEIGHTS;
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) {
                const float2 two = reinterpret_cast<const float2 *>(own)[i * WARP_SIZE + lane];
                split(two.x, high[i][0], low[i][0]);
                split(two.y, high[i][1], low[i][1]);
            }
            const int near = columns[8 * step + t], far = columns[8 * step + t + 4];
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
                    const float value = X[((long long)tile * PIXELS + there) * n_senders + channel];
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
        if (works) {
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) {
#pragma unroll
                for (int odd = 0; odd < 2; ++odd) {
                    const int row = window * WARP_FILTERS + 8 * i + 2 * t + odd;
                    if (row >= n_rows) continue;
                    float *to = &results[warp / FILTER_WARPS * WARP_PIXELS * wide + ranks[row]];
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
        float *rows = Y + (long long)tile * PIXELS * n_rows;
        for (Walk<BLOCK_THREADS> at(min(BLOCK_FILTERS, n_rows - before)); at.row < pixels;
             at.go_on()) {
            rows[(long long)at.row * n_rows + outputs[before + at.column]] =
                results[at.row * wide + at.column];
        }
    }
}
