// Our convolution with windows of channels, channels last, on tensor cores: a dense product of
// pixels x channels by channels x filters that leaves out what no filter reads.
//
// Windows of sliding channels repeat after a few filters. A warp has WARP_FILTERS filters that
// follow each other, and deals them into GROUPS of 8 in turns, so that those of a group have the
// same window, or two or four. Its results then lie side by side in its registers. Channels come in
// chunks of 32, and a step is every fourth channel of a chunk, as backward the channels are the
// filters, in turns again. What a group reads of no step is left out: `masks` has a bit for each.
//
// A block goes through every so many-th tile of pixels, chunk after chunk. Pixels and weights of
// the next chunks are on their way while it multiplies.
//
// grid  = (filters over those of a block, blocks that share the tiles of pixels)
// block = FILTER_WARPS x PIXEL_WARPS warps; dynamic shared memory holds STAGES chunks

// The plan supplies, at compile time:
//   GROUPS        groups of 8 filters of a warp, at most 8
//   FRAGMENTS     groups of 16 pixels of a warp
//   FILTER_WARPS, PIXEL_WARPS
//   STAGES        chunks in shared memory, 2 or more
//   VECTOR        channels that one copy moves: 4 or 1, a divisor of the input channels
//   WRITTEN       outputs that one store writes: 4, 2 or 1, a divisor of the filters
//   AT_ONCE       blocks that an SM is to have room for
//   TERMS         3 exact, 1 TF32
#if !defined(GROUPS) || !defined(FRAGMENTS) || !defined(FILTER_WARPS) || !defined(PIXEL_WARPS) || \
    !defined(STAGES) || !defined(VECTOR) || !defined(WRITTEN) || !defined(AT_ONCE) ||             \
    !defined(TERMS)
#error "strided_windows.cu is compiled by accelviz, which supplies the constants listed above"
#endif

#include "async_copy.cuh"
#include "common.cuh"
#include "convolution/prepared.cuh"
#include "fragments.cuh"

#define BLOCK_THREADS (FILTER_WARPS * PIXEL_WARPS * WARP_SIZE)
#define WARP_FILTERS (8 * GROUPS)
#define WARP_PIXELS (16 * FRAGMENTS)
#define PIXELS (WARP_PIXELS * PIXEL_WARPS)
#define CHUNK 32
#define STEPS 4

#if VECTOR == 4
using Copied = float4;
#else
using Copied = float;
#endif
#if WRITTEN == 4
using Written = float4;
#elif WRITTEN == 2
using Written = float2;
#else
using Written = float;
#endif

// Where a channel of a pixel lies in a chunk. Two pixels by four times four channels, which eight
// lanes read at once, lie in different banks.
__device__ __forceinline__ int place_of(int pixel, int channel) {
    return pixel * CHUNK + (channel ^ (pixel % 2 * 16));
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, AT_ONCE)
    strided_windows(const int *__restrict__ first_chunks, const int4 *__restrict__ chunks,
                    const uint2 *__restrict__ masks, const float *packed,
                    const float *__restrict__ X, float *__restrict__ Y, int n_rows, int n_senders,
                    int n_cols, int stage_floats) {
    RECORD_WARP;
    const int warp = int(threadIdx.x) / WARP_SIZE, lane = int(threadIdx.x) % WARP_SIZE;
    const int g = lane / 4, t = lane % 4;
    const int filter_warp = warp % FILTER_WARPS, first_pixel = warp / FILTER_WARPS * WARP_PIXELS;
    const int first_chunk = first_chunks[blockIdx.x];
    const int n_chunks = first_chunks[blockIdx.x + 1] - first_chunk;
    const int tiles = ceil_div(n_cols, PIXELS);
    DYNAMIC_SHARED(float4, memory);
    float *shared = reinterpret_cast<float *>(memory);

    // The chunk that is fetched next, of which tile, and where it goes.
    int next_tile = int(blockIdx.y), next_chunk = 0, next_stage = 0;
    auto fetch = [&] {
        if (next_tile < tiles && n_chunks > 0) {
            const int4 own = chunks[first_chunk + next_chunk];  // channel, weights, how many
            float *to = shared + next_stage * stage_floats;
            const int last = min(PIXELS, n_cols - next_tile * PIXELS) - 1;
            const int channel = int(threadIdx.x) % (CHUNK / VECTOR) * VECTOR;
            const bool there = own.x + channel < n_senders;
            const float *from =
                X + (long long)next_tile * PIXELS * n_senders + (there ? own.x + channel : 0);
            // Pixels beyond the last are any others: their sums are not written.
#pragma unroll
            for (int first = 0; first < PIXELS; first += BLOCK_THREADS * VECTOR / CHUNK) {
                const int pixel = first + int(threadIdx.x) / (CHUNK / VECTOR);
                if (PIXELS % (BLOCK_THREADS * VECTOR / CHUNK) && pixel >= PIXELS) break;
                Copied *place = reinterpret_cast<Copied *>(&to[place_of(pixel, channel)]);
                if (there) {
                    const unsigned row = unsigned(min(pixel, last)) * n_senders;
                    copy_async(place, reinterpret_cast<const Copied *>(&from[row]));
                } else {
                    *place = Copied{};
                }
            }
            float4 *weights = reinterpret_cast<float4 *>(to + PIXELS * CHUNK);
            const float4 *origin = reinterpret_cast<const float4 *>(packed) + (long long)own.y * 16;
            for (int i = int(threadIdx.x); i < own.z * 16; i += BLOCK_THREADS) {
                copy_async(&weights[i], &origin[i]);
            }
            next_stage = next_stage + 1 < STAGES ? next_stage + 1 : 0;
            if (++next_chunk == n_chunks) {
                next_chunk = 0;
                next_tile += int(gridDim.y);
            }
        }
        close_copies();
    };
#pragma unroll 1
    for (int i = 0; i < STAGES - 1; ++i) fetch();

    int stage = 0;
    for (int tile = int(blockIdx.y); tile < tiles; tile += int(gridDim.y)) {
        float sums[FRAGMENTS][GROUPS][4] = {};
        for (int chunk = 0; chunk < n_chunks; ++chunk) {
            const uint2 own = masks[(first_chunk + chunk) * FILTER_WARPS + filter_warp];
            await_copies<STAGES - 2>();
            __syncthreads();  // the chunk is there, and the one before has been multiplied
            fetch();
            const float *x = shared + stage * stage_floats;
            const float2 *weights =
                reinterpret_cast<const float2 *>(x + PIXELS * CHUNK) + own.y * WARP_SIZE + lane;
            stage = stage + 1 < STAGES ? stage + 1 : 0;
            // Pixels g and g + 8, channels 4 t and 4 (t + 4) and the three behind, one a step.
            unsigned values[STEPS][FRAGMENTS][4];
#pragma unroll
            for (int m = 0; m < FRAGMENTS; ++m) {
#pragma unroll
                for (int r = 0; r < 4; ++r) {
                    const int pixel = first_pixel + 16 * m + g + 8 * (r % 2);
                    const float4 four = *reinterpret_cast<const float4 *>(
                        &x[place_of(pixel, 4 * t + 16 * (r / 2))]);
                    values[0][m][r] = prepared(four.x);
                    values[1][m][r] = prepared(four.y);
                    values[2][m][r] = prepared(four.z);
                    values[3][m][r] = prepared(four.w);
                }
            }
            // The weights of the next product come while this one is worked out.
            const float2 *end = weights + __popc(own.x) * WARP_SIZE;
            float2 next = {};
            if (weights < end) next = *weights;
#pragma unroll
            for (int step = 0; step < STEPS; ++step) {
                const unsigned mask = own.x >> step * GROUPS;
#if TERMS == 3
                unsigned high[FRAGMENTS][4], low[FRAGMENTS][4];
#pragma unroll
                for (int m = 0; m < FRAGMENTS; ++m) {
#pragma unroll
                    for (int r = 0; r < 4; ++r) {
                        split(__uint_as_float(values[step][m][r]), high[m][r], low[m][r]);
                        high[m][r] = kept(high[m][r]), low[m][r] = kept(low[m][r]);
                    }
                }
#endif
#pragma unroll
                for (int i = 0; i < GROUPS; ++i) {
                    if (!(mask >> i & 1u)) continue;  // the same for all lanes
                    unsigned b[2], b_low[2];
                    split(next.x, b[0], b_low[0]);
                    split(next.y, b[1], b_low[1]);
                    weights += WARP_SIZE;
                    if (weights < end) next = *weights;
#pragma unroll
                    for (int m = 0; m < FRAGMENTS; ++m) {
#if TERMS == 3
                        // Collected by additions that round, because tensor cores truncate.
                        float part[4] = {};
                        mma_tf32_k8(part, low[m], b);
                        mma_tf32_k8(part, high[m], b_low);
                        mma_tf32_k8(part, high[m], b);
#pragma unroll
                        for (int r = 0; r < 4; ++r) sums[m][i][r] += part[r];
#else
                        mma_tf32_k8(sums[m][i], values[step][m], b);
#endif
                    }
                }
            }
        }

        // Filters 2 t GROUPS and those behind, twice as many as there are groups.
        const int filter =
            (int(blockIdx.x) * FILTER_WARPS + filter_warp) * WARP_FILTERS + 2 * t * GROUPS;
#pragma unroll
        for (int m = 0; m < FRAGMENTS; ++m) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int pixel = tile * PIXELS + first_pixel + 16 * m + g + 8 * half;
                float *to = Y + (long long)pixel * n_rows;
                auto result = [&](int i) { return sums[m][i % GROUPS][2 * half + i / GROUPS]; };
#if WRITTEN == 4 && GROUPS >= 4
                // Two lanes write 32 bytes side by side: one the first four of all eights of both,
                // the other the last four.
                const int odd = t % 2;
#pragma unroll
                for (int i = 0; i < 2 * GROUPS; i += 8) {
                    alignas(16) float own[4], given[4];
#pragma unroll
                    for (int w = 0; w < 4; ++w) {
                        const float one = result(i + w), two = result(i + 4 + w);
                        own[w] = odd ? two : one;
                        given[w] = __shfl_xor_sync(~0u, odd ? one : two, 1);
                    }
                    const int at = filter + i + 4 * odd;
                    const int across = at + (odd ? -2 : 2) * GROUPS;
                    if (pixel < n_cols && at < n_rows)
                        *reinterpret_cast<float4 *>(&to[at]) = *reinterpret_cast<float4 *>(own);
                    if (pixel < n_cols && across < n_rows)
                        *reinterpret_cast<float4 *>(&to[across]) =
                            *reinterpret_cast<float4 *>(given);
                }
#else
                if (pixel >= n_cols) continue;
#pragma unroll
                for (int i = 0; i < 2 * GROUPS; i += WRITTEN) {
                    if (filter + i >= n_rows) continue;
                    alignas(Written) float own[WRITTEN];
#pragma unroll
                    for (int w = 0; w < WRITTEN; ++w) own[w] = result(i + w);
                    *reinterpret_cast<Written *>(&to[filter + i]) =
                        *reinterpret_cast<Written *>(own);
                }
#endif
            }
        }
    }
}
