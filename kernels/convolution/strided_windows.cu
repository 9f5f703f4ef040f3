// Our convolution with windows of channels, in NHWC layout, on tensor cores by warpgroup: a dense
// product of pixels x channels by channels x filters that skips products that no filter needs.
//
// Windows of sliding channels repeat after a few filters. A block computes pieces * piece
// consecutive filters, dealt to the pieces in turn or one piece after another, whichever skips
// more: the filters of a piece have the same window, or few windows. Channels are read in chunks
// of 32. A step is every fourth channel of a chunk, because in the gradient channels take the place
// of filters. A step that no filter of a piece reads is skipped. The products of a chunk are one of
// few masks known at compile time, so that they run without branches in between, and overlap.
//
// A block handles every gridDim.y-th tile of pixels, chunk after chunk. Copies of pixels and
// weights of the next chunks are in flight while it multiplies.
//
// grid  = (filters over those of a block, blocks that share the tiles of pixels)
// block = `warpgroups` of 4 warps; dynamic shared memory holds `stages` chunks

// The plan supplies, at compile time:
//   pieces        pieces of a block: 1, 2 or 4
//   piece         filters of a piece: 16, 32, 64 or 128
//   turns         1 if filters are dealt to the pieces in turn, else 0
//   mask_0 to mask_3  products of a chunk: bit step * pieces + piece; 0 for none
//   warpgroups    warpgroups of a block, each for 64 pixels
//   stages        chunks in shared memory, 3 or more
//   vector        channels per copy: 4 or 1, a divisor of the input channels
//   written       outputs per store: 4, 2 or 1, a divisor of the filters
//   at_once       blocks that must fit on an SM
//   terms         3 exact, 1 TF32

#include "async_copy.cuh"
#include "common.cuh"
#include "vectors.cuh"
#include "warpgroup.cuh"

constexpr int BLOCK_THREADS = Config::warpgroups * GROUP_WARPS * WARP_SIZE;
constexpr int PIXELS = Config::warpgroups * GROUP_ROWS;
constexpr int FILTERS = Config::pieces * Config::piece;
constexpr int CHUNK = 32;
constexpr int STEPS = 4;
constexpr int PARTS = Config::terms == 3 ? 2 : 1;  // high and low part of a number
constexpr int PRODUCT_FLOATS = 8 * Config::piece;  // weights; low parts follow the high parts
constexpr int PRODUCT_QUADS = PARTS * PRODUCT_FLOATS / 4;

using Copied = Floats<Config::vector>;
using Written = Floats<Config::written>;

// Index of a pixel's channel in a chunk. The four times four channels of two pixels that eight
// lanes read together are in different banks.
DEVICE_INLINE int chunk_index(int pixel, int channel) {
    return pixel * CHUNK + (channel ^ (pixel % 2 * 16));
}

// Starts the products of a chunk. `weights` holds the weights of the products one after another.
template <unsigned MASK>
DEVICE_INLINE void multiply_chunk(float (&sums)[Config::pieces][Config::piece / 2],
                                  const unsigned (&a)[PARTS][STEPS][4], const float *weights) {
#pragma unroll
    for (int i = 0; i < STEPS * Config::pieces; ++i) {
        if (!(MASK >> i & 1u)) continue;
        float (&piece_sums)[Config::piece / 2] = sums[i % Config::pieces];
        const unsigned (&high)[4] = a[0][i / Config::pieces];
        if (PARTS == 2) {
            multiply_tf32(piece_sums, a[PARTS - 1][i / Config::pieces], weights);
            multiply_tf32(piece_sums, high, weights + PRODUCT_FLOATS);
        }
        multiply_tf32(piece_sums, high, weights);
        weights += PARTS * PRODUCT_FLOATS;
    }
}

using Sums = float[Config::pieces][Config::piece / 2];
using Fragments = unsigned[PARTS][STEPS][4];  // pixels, for each step

// Starts copies of chunks of pixels and their weights, in the order of the products. A chunk's
// record (first channel, first product, number of products, mask) is loaded one chunk ahead.
struct Fetcher {
    float *shared;
    const float *__restrict__ X;
    const float4 *packed;
    const int4 *__restrict__ chunks;
    int n_chunks, tiles, n_channels, n_cols, stage_floats;
    int next_tile, next_chunk, next_stage;
    int4 next;

    DEVICE_INLINE void fetch() {
        if (next_tile < tiles && n_chunks > 0) {
            const int4 chunk = next;
            const int tile = next_tile;
            if (++next_chunk == n_chunks) {
                next_chunk = 0;
                next_tile += int(gridDim.y);
            }
            next = chunks[next_chunk];
            float *to = shared + next_stage * stage_floats;
            next_stage = next_stage + 1 < Config::stages ? next_stage + 1 : 0;
            copy_pixels(to, tile, chunk.x);
            float4 *weights = reinterpret_cast<float4 *>(to + PIXELS * CHUNK);
            const float4 *origin = packed + (long long)chunk.y * PRODUCT_QUADS;
#pragma unroll 4
            for (int i = int(threadIdx.x); i < chunk.z * PRODUCT_QUADS; i += BLOCK_THREADS) {
                copy_async(&weights[i], &origin[i]);
            }
        }
        close_copies();
    }

    // Copies the pixels of a tile, channels from `first_channel` on. Pixels beyond the last one are
    // replaced by the last one: their sums are not written.
    DEVICE_INLINE void copy_pixels(float *to, int tile, int first_channel) const {
        const int last = min(PIXELS, n_cols - tile * PIXELS) - 1;
        const int channel = int(threadIdx.x) % (CHUNK / Config::vector) * Config::vector;
        const bool inside = first_channel + channel < n_channels;
        const float *from =
            X + (long long)tile * PIXELS * n_channels + (inside ? first_channel + channel : 0);
#pragma unroll
        for (int first = 0; first < PIXELS; first += BLOCK_THREADS * Config::vector / CHUNK) {
            const int pixel = first + int(threadIdx.x) / (CHUNK / Config::vector);
            Copied *copied = reinterpret_cast<Copied *>(&to[chunk_index(pixel, channel)]);
            if (inside) {
                const unsigned row = unsigned(min(pixel, last)) * n_channels;
                copy_async(copied, reinterpret_cast<const Copied *>(&from[row]));
            } else {
                *copied = Copied{};
            }
        }
    }
};

// Splits the lane's part of a chunk: pixels g and g + 8, channels 4 t and 4 (t + 4) and the three
// after each, one channel per step.
DEVICE_INLINE void split_pixels(Fragments &a, const float4 (&fours)[4]) {
#pragma unroll
    for (int r = 0; r < 4; ++r) {
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            unsigned high, low;
            split(part(fours[r], step), high, low);
            a[0][step][r] = opaque(high);
            if (PARTS == 2) a[PARTS - 1][step][r] = opaque(low);
        }
    }
}

// Starts the products of a chunk whose mask is one of the four compile-time masks.
DEVICE_INLINE void multiply(Sums &sums, const Fragments &a, const float *weights, unsigned mask) {
    begin_products();
    if (!Config::mask_1 || mask == Config::mask_0) {  // uniform over the warp
        multiply_chunk<Config::mask_0>(sums, a, weights);
    } else if (!Config::mask_2 || mask == Config::mask_1) {
        multiply_chunk<Config::mask_1>(sums, a, weights);
    } else if (!Config::mask_3 || mask == Config::mask_2) {
        multiply_chunk<Config::mask_2>(sums, a, weights);
    } else {
        multiply_chunk<Config::mask_3>(sums, a, weights);
    }
    close_products();
}

// Writes two pixels. Four neighboring lanes write 64 bytes of a pixel; a lane writes filters 4 t to
// 4 t + 3 of each 16.
DEVICE_INLINE void write(const Sums &sums, float *__restrict__ Y, int first_pixel, int t,
                         int n_rows, int n_cols) {
    const int filter = int(blockIdx.x) * FILTERS + 4 * t;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int pixel = first_pixel + 8 * half;
        if (pixel >= n_cols) continue;
        float *to = Y + (long long)pixel * n_rows;
        auto result = [&](int i) {
            const int piece = Config::turns ? i % Config::pieces : i / (Config::piece / 4);
            const int piece_filter = Config::turns ? i / Config::pieces : i % (Config::piece / 4);
            return sums[piece][piece_filter / 2 * 4 + 2 * half + piece_filter % 2];
        };
#pragma unroll
        for (int i = 0; i < FILTERS / 4; i += Config::written) {
            const int at = filter + i / 4 * 16 + i % 4;
            if (at >= n_rows) continue;
            alignas(Written) float results[Config::written];
#pragma unroll
            for (int w = 0; w < Config::written; ++w) results[w] = result(i + w);
            *reinterpret_cast<Written *>(&to[at]) = *reinterpret_cast<Written *>(results);
        }
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, Config::at_once)
    strided_windows(const int *__restrict__ first_chunks, const int4 *__restrict__ chunks,
                    const float4 *packed, const float *__restrict__ X, float *__restrict__ Y,
                    int n_rows, int n_channels, int n_cols, int stage_floats) {
    RECORD_WARP;
    const int warp = int(threadIdx.x) / WARP_SIZE, lane = int(threadIdx.x) % WARP_SIZE;
    const int g = lane / 4, t = lane % 4;
    const int first_chunk = first_chunks[blockIdx.x];
    const int n_chunks = first_chunks[blockIdx.x + 1] - first_chunk;
    chunks += first_chunk;
    DYNAMIC_SHARED(float4, memory);
    float *shared = reinterpret_cast<float *>(memory);
    Fetcher fetcher = {shared,
                       X,
                       packed,
                       chunks,
                       n_chunks,
                       ceil_div(n_cols, PIXELS),
                       n_channels,
                       n_cols,
                       stage_floats,
                       int(blockIdx.y),
                       0,
                       0,
                       n_chunks > 0 ? chunks[0] : int4{}};
    // A stage whose weights are being multiplied is still occupied.
#pragma unroll 1
    for (int i = 0; i < Config::stages - 2; ++i) fetcher.fetch();

    const int lane_pixel = warp * 16 + g;
    int stage = 0;
    for (int tile = int(blockIdx.y); tile < fetcher.tiles; tile += int(gridDim.y)) {
        Sums sums = {};
        Fragments a = {};
        unsigned mask = n_chunks > 0 ? unsigned(chunks[0].w) : 0;
#pragma unroll 1
        for (int chunk = 0; chunk < n_chunks; ++chunk) {
            const unsigned chunk_mask = mask;
            if (Config::mask_1 && chunk + 1 < n_chunks) mask = unsigned(chunks[chunk + 1].w);
            await_copies<Config::stages - 3>();
            show_to_products();
            __syncthreads();  // this chunk has arrived, the one before the previous is multiplied
            const float *x = shared + stage * stage_floats;
            stage = stage + 1 < Config::stages ? stage + 1 : 0;
            float4 fours[4];
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                fours[r] = *reinterpret_cast<const float4 *>(
                    &x[chunk_index(lane_pixel + 8 * (r % 2), 4 * t + 16 * (r / 2))]);
            }
            await_products<0>();
#pragma unroll
            for (int i = 0; i < PARTS * STEPS; ++i) settle(a[i / STEPS][i % STEPS]);
            split_pixels(a, fours);
            multiply(sums, a, x + PIXELS * CHUNK, chunk_mask);
            fetcher.fetch();
        }
        await_products<0>();
#pragma unroll
        for (int p = 0; p < Config::pieces; ++p) settle(sums[p]);
        write(sums, Y, tile * PIXELS + lane_pixel, t, n_rows, n_cols);
    }
}
