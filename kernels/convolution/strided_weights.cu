// The gradient by the weights of our convolution, channels last, on tensor cores: for filters that
// share channels a dense product, channels x pixels by pixels x filters. What a filter does not
// read is not written.
//
// A warp has a tile of GROUPS times 8 filters by FRAGMENTS times 16 of their channels. A block goes
// through every so many-th tile of pixels, which all of its warps read, and adds its sums to the
// gradient.
//
// grid  = (tiles over WARPS, blocks that share the pixels)
// block = WARPS warps; dynamic shared memory holds the maps of a tile of pixels

// The plan supplies, at compile time:
//   GROUPS, FRAGMENTS, WARPS
//   PIXELS        of a tile, a multiple of 8
//   STAGED        1 if both maps of a tile fit in shared memory, 0 to read them from global
//   TERMS         3 exact, 1 TF32
#if !defined(GROUPS) || !defined(FRAGMENTS) || !defined(WARPS) || !defined(PIXELS) || \
    !defined(STAGED) || !defined(TERMS)
#error "strided_weights.cu is compiled by accelviz, which supplies the constants listed above"
#endif

#include "async_copy.cuh"
#include "common.cuh"
#include "convolution/walk.cuh"
#include "fragments.cuh"

#define BLOCK_THREADS (WARPS * WARP_SIZE)
#define ROWS (8 * GROUPS)
#define COLUMNS (16 * FRAGMENTS)

// Floats between the pixels of a map in shared memory: four pixels of eight channels lie in
// different banks.
__device__ __forceinline__ int padded(int channels) {
    return ceil_div(channels, WARP_SIZE) * WARP_SIZE + 8;
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    strided_weights(const int *__restrict__ windows, const int *__restrict__ senders,
                    const int *__restrict__ positions, const int *__restrict__ order,
                    const float *__restrict__ X, const float *__restrict__ dY,
                    float *__restrict__ d_values, int n_tiles, int n_rows, int n_senders,
                    int n_cols) {
    RECORD_WARP;
    const int lane = int(threadIdx.x) % WARP_SIZE, g = lane / 4, t = lane % 4;
    const int tile = int(blockIdx.x) * WARPS + int(threadIdx.x) / WARP_SIZE;
    const bool works = tile < n_tiles;

    // `order` says of a filter its place in the order of windows if STAGED, and else the reverse.
    // This lane's filters, in the order of windows, and its channels; any others where there are
    // none.
    int filters[GROUPS], channels[FRAGMENTS][2];
#pragma unroll
    for (int i = 0; i < GROUPS; ++i) {
        filters[i] = works ? min(windows[tile] * ROWS + 8 * i + g, n_rows - 1) : 0;
    }
#pragma unroll
    for (int m = 0; m < FRAGMENTS; ++m) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            channels[m][h] = works ? senders[tile * COLUMNS + 16 * m + g + 8 * h] : 0;
        }
    }

    float sums[FRAGMENTS][GROUPS][4] = {};
#if STAGED
    DYNAMIC_SHARED(float4, memory);
    const int x_stride = padded(n_senders), y_stride = padded(n_rows);
    float *x = reinterpret_cast<float *>(memory), *y = x + PIXELS * x_stride;
#endif
    const int pixel_tiles = ceil_div(n_cols, PIXELS);
    for (int own = int(blockIdx.y); own < pixel_tiles; own += int(gridDim.y)) {
        const int first = own * PIXELS;
#if STAGED
        const int pixels = min(PIXELS, n_cols - first);
        __syncthreads();  // the tile before has been read
        const float *from_x = X + (long long)first * n_senders;
        const float *from_y = dY + (long long)first * n_rows;
        if (n_senders % 4 == 0) {
            for (Walk<BLOCK_THREADS> at(n_senders / 4); at.row < pixels; at.go_on()) {
                copy_async(reinterpret_cast<float4 *>(&x[at.row * x_stride + 4 * at.column]),
                           reinterpret_cast<const float4 *>(
                               &from_x[(long long)at.row * n_senders + 4 * at.column]));
            }
        } else {
            for (Walk<BLOCK_THREADS> at(n_senders); at.row < pixels; at.go_on()) {
                copy_async(&x[at.row * x_stride + at.column],
                           &from_x[(long long)at.row * n_senders + at.column]);
            }
        }
        for (Walk<BLOCK_THREADS> at(n_rows); at.row < pixels; at.go_on()) {
            copy_async(&y[at.row * y_stride + order[at.column]],
                       &from_y[(long long)at.row * n_rows + at.column]);
        }
        close_copies();
        await_copies<0>();
        __syncthreads();
#endif
        for (int step = 0; works && step < PIXELS / 8; ++step) {
            unsigned b[GROUPS][2], b_low[GROUPS][2];
            int pixel[2];
#pragma unroll
            for (int h = 0; h < 2; ++h) pixel[h] = 8 * step + t + 4 * h;
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) {
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const bool there = first + pixel[h] < n_cols;
#if STAGED
                    const float value = there ? y[pixel[h] * y_stride + filters[i]] : 0.0f;
#else
                    const long long from = (long long)(first + pixel[h]) * n_rows;
                    const float value = there ? dY[from + order[filters[i]]] : 0.0f;
#endif
                    split(value, b[i][h], b_low[i][h]);
                }
            }
#pragma unroll
            for (int m = 0; m < FRAGMENTS; ++m) {
                unsigned a[4], a_low[4];
#pragma unroll
                for (int r = 0; r < 4; ++r) {
                    const bool there = first + pixel[r / 2] < n_cols;
                    const int channel = channels[m][r % 2];
#if STAGED
                    const float value = there ? x[pixel[r / 2] * x_stride + channel] : 0.0f;
#else
                    const long long from = (long long)(first + pixel[r / 2]) * n_senders;
                    const float value = there ? X[from + channel] : 0.0f;
#endif
                    split(value, a[r], a_low[r]);
                }
#pragma unroll
                for (int i = 0; i < GROUPS; ++i) {
#if TERMS == 3
                    float part[4] = {};
                    mma_tf32_k8(part, a_low, b[i]);
                    mma_tf32_k8(part, a, b_low[i]);
                    mma_tf32_k8(part, a, b[i]);
#pragma unroll
                    for (int r = 0; r < 4; ++r) sums[m][i][r] += part[r];
#else
                    mma_tf32_k8(sums[m][i], a, b[i]);
#endif
                }
            }
        }
    }
    if (!works) return;
#pragma unroll
    for (int m = 0; m < FRAGMENTS; ++m) {
#pragma unroll
        for (int i = 0; i < GROUPS; ++i) {
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                const int channel = 16 * m + g + 8 * (r / 2), filter = 8 * i + 2 * t + r % 2;
                const int to = positions[((long long)tile * ROWS + filter) * COLUMNS + channel];
                if (to >= 0) atomicAdd(&d_values[to], sums[m][i][r]);
            }
        }
    }
}
