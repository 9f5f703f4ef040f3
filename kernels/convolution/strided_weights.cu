// The gradient by the weights of our convolution, in NHWC layout (channels last), on tensor cores:
// a dense product of filters x pixels by pixels x channels that skips products no filter needs.
//
// A warp computes 64 filters by `channels` times 32 channels. Its filters are dealt in turn to four
// fragments of 16, so that the filters of a fragment have the same window, or few windows; the
// channels of each 32 are dealt to four groups of 8. A product is one fragment by 32 channels;
// `masks` has a bit for each product that some filter needs. A block handles every gridDim.y-th
// chunk of `pixels` pixels, with copies of the next chunks in flight, and stores its sums as one
// part of the gradient. `add_parts` then adds up the parts.
//
// grid  = (tiles of filters by channels, blocks that share the pixels)
// block = filter_warps x channel_warps x pixel_warps warps; dynamic shared memory holds `stages`
//         chunks of both maps

// The plan supplies, at compile time:
//   channels      groups of 32 channels of a warp
//   filter_warps, channel_warps  warps of a block along filters and channels
//   pixel_warps   1, 2 or 4 warps that take 8 pixels of a chunk each in turn
//   pixels        pixels of a chunk, a multiple of 8 pixel_warps
//   stages        chunks in shared memory, 2 or more
//   x_vector, y_vector  floats per copy: 4 or 1, a divisor of the channels, or of the filters
//   at_once       blocks that must fit on an SM
//   terms         3 exact, 1 TF32

#include "async_copy.cuh"
#include "common.cuh"
#include "fragments.cuh"
#include "vectors.cuh"

constexpr int PART_WARPS = 8;
constexpr int TILE_WARPS = Config::filter_warps * Config::channel_warps;
constexpr int BLOCK_THREADS = TILE_WARPS * Config::pixel_warps * WARP_SIZE;
constexpr int BLOCK_FILTERS = 64 * Config::filter_warps;
constexpr int BLOCK_CHANNELS = 32 * Config::channels * Config::channel_warps;
// Floats between pixels: with these strides, the four pixels of eight channels that eight lanes
// read together use different banks.
constexpr int X_STRIDE = BLOCK_CHANNELS + 8;
constexpr int Y_STRIDE = BLOCK_FILTERS + 8;
constexpr int STAGE_FLOATS = Config::pixels * (X_STRIDE + Y_STRIDE);
constexpr int SUMS = 4 * Config::channels * 4 * 4;

// Rounds to TF32; with 3 terms returns the float itself, which is split into two TF32 parts later.
DEVICE_INLINE unsigned prepared(float x) {
    return Config::terms == 3 ? __float_as_uint(x) : opaque(__float_as_uint(x) + 0x1000u);
}

// Copies channels first to first + WIDTH - 1 of a chunk of pixels, with zeros beyond `width`.
template <int VECTOR, int WIDTH, int STRIDE>
DEVICE_INLINE void fetch_map(float *to, const float *__restrict__ map, long long first_pixel,
                             int pixels, int first, int width) {
    using Copied = Floats<VECTOR>;
    constexpr int COLUMNS = WIDTH / VECTOR;
#pragma unroll 4
    for (int i = int(threadIdx.x); i < Config::pixels * COLUMNS; i += BLOCK_THREADS) {
        const int pixel = i / COLUMNS, channel = i % COLUMNS * VECTOR;
        Copied *place = reinterpret_cast<Copied *>(&to[pixel * STRIDE + channel]);
        if (pixel < pixels && first + channel < width) {
            const long long from = (first_pixel + pixel) * width + first + channel;
            copy_async(place, reinterpret_cast<const Copied *>(&map[from]));
        } else {
            *place = Copied{};
        }
    }
}

// Adds the products of 16 filters by 32 channels at 8 pixels.
DEVICE_INLINE void multiply(float (&sums)[4][4], const unsigned (&left)[4],
                            const unsigned (&right)[4][2]) {
    unsigned a[4], a_low[4];
#pragma unroll
    for (int r = 0; r < 4 && Config::terms == 3; ++r) {
        split(__uint_as_float(left[r]), a[r], a_low[r]);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if constexpr (Config::terms != 3) {
            mma_tf32_k8(sums[i], left, right[i]);
            continue;
        }
        unsigned b[2], b_low[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) split(__uint_as_float(right[i][h]), b[h], b_low[h]);
        // Sums are collected by additions, which round, because tensor cores truncate.
        float part[4] = {};
        mma_tf32_k8(part, a_low, b);
        mma_tf32_k8(part, a, b_low);
        mma_tf32_k8(part, a, b);
#pragma unroll
        for (int r = 0; r < 4; ++r) sums[i][r] += part[r];
    }
}

// Load a lane's elements of a product at 8 pixels: filters from `y` on, channels from `x` on. Both
// point to the lane's first pixel.
DEVICE_INLINE void load_left(unsigned (&left)[4][4], const float *y) {
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        const float *from = &y[4 * (r / 2) * Y_STRIDE + 32 * (r % 2)];
        const float4 four = *reinterpret_cast<const float4 *>(from);
#pragma unroll
        for (int e = 0; e < 4; ++e) left[e][r] = prepared(part(four, e));
    }
}
DEVICE_INLINE void load_right(unsigned (&right)[Config::channels][4][2], const float *x) {
#pragma unroll
    for (int i = 0; i < 2 * Config::channels; ++i) {
        const float *from = &x[4 * (i % 2) * X_STRIDE + 32 * (i / 2)];
        const float4 four = *reinterpret_cast<const float4 *>(from);
#pragma unroll
        for (int k = 0; k < 4; ++k) right[i / 2][k][i % 2] = prepared(part(four, k));
    }
}

// Adds up the sums of the pixel warps, halving their number in each step. `shared` is the lane's
// place in the block's memory.
DEVICE_INLINE void add_pixel_warps(float (&sums)[4][Config::channels][4][4], float *shared,
                                   int pixel_warp) {
    float *flat = &sums[0][0][0][0];
#pragma unroll
    for (int half = Config::pixel_warps / 2; half > 0; half /= 2) {
        __syncthreads();
        float *exchanged = shared + (pixel_warp % half) * TILE_WARPS * SUMS * WARP_SIZE;
        if (pixel_warp >= half && pixel_warp < 2 * half) {
#pragma unroll
            for (int i = 0; i < SUMS; ++i) exchanged[i * WARP_SIZE] = flat[i];
        }
        __syncthreads();
        if (pixel_warp < half) {
#pragma unroll
            for (int i = 0; i < SUMS; ++i) flat[i] += exchanged[i * WARP_SIZE];
        }
    }
}

// Writes the sums of the products in `mask`. `place` holds the positions of the lane's sums.
DEVICE_INLINE void write(const float (&sums)[4][Config::channels][4][4], float *__restrict__ part,
                         const int4 *__restrict__ place, unsigned mask) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
#pragma unroll
        for (int c = 0; c < Config::channels; ++c) {
            if (!(mask >> (e * Config::channels + c) & 1u)) continue;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int4 to = place[i * WARP_SIZE];
                if (to.x >= 0) part[to.x] = sums[e][c][i][0];
                if (to.y >= 0) part[to.y] = sums[e][c][i][1];
                if (to.z >= 0) part[to.z] = sums[e][c][i][2];
                if (to.w >= 0) part[to.w] = sums[e][c][i][3];
            }
            place += 4 * WARP_SIZE;
        }
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, Config::at_once)
    strided_weights(const int2 *__restrict__ corners, const uint2 *__restrict__ masks,
                    const int4 *__restrict__ places, const float *__restrict__ X,
                    const float *__restrict__ dY, float *__restrict__ parts, int n_values,
                    int n_rows, int n_channels, int n_cols) {
    RECORD_WARP;
    const int warp = int(threadIdx.x) / WARP_SIZE, lane = int(threadIdx.x) % WARP_SIZE;
    const int g = lane / 4, t = lane % 4;
    const int tile_warp = warp % TILE_WARPS, pixel_warp = warp / TILE_WARPS;
    const int2 corner = corners[blockIdx.x];  // the first filter, the first channel
    const uint2 mask_and_place = masks[int(blockIdx.x) * TILE_WARPS + tile_warp];
    const int warp_filter = tile_warp / Config::channel_warps * 64;
    const int warp_channel = tile_warp % Config::channel_warps * (32 * Config::channels);
    DYNAMIC_SHARED(float4, memory);
    float *shared = reinterpret_cast<float *>(memory);

    const int chunks = ceil_div(n_cols, Config::pixels);
    int next = int(blockIdx.y), next_stage = 0;
    auto fetch = [&] {
        if (next < chunks) {
            float *to = shared + next_stage * STAGE_FLOATS;
            const long long first = (long long)next * Config::pixels;
            const int pixels = min(Config::pixels, int(n_cols - first));
            fetch_map<Config::x_vector, BLOCK_CHANNELS, X_STRIDE>(to, X, first, pixels, corner.y,
                                                                  n_channels);
            fetch_map<Config::y_vector, BLOCK_FILTERS, Y_STRIDE>(to + Config::pixels * X_STRIDE, dY,
                                                                 first, pixels, corner.x, n_rows);
            next += int(gridDim.y);
            next_stage = next_stage + 1 < Config::stages ? next_stage + 1 : 0;
        }
        close_copies();
    };
    for (int i = 0; i < Config::stages - 1; ++i) fetch();

    float sums[4][Config::channels][4][4] = {};
    int stage = 0;
    for (int chunk = int(blockIdx.y); chunk < chunks; chunk += int(gridDim.y)) {
        await_copies<Config::stages - 2>();
        __syncthreads();  // this chunk has arrived, and the previous one has been multiplied
        fetch();
        const float *x = shared + stage * STAGE_FLOATS;
        const float *y = x + Config::pixels * X_STRIDE;
        stage = stage + 1 < Config::stages ? stage + 1 : 0;
        for (int step = 8 * pixel_warp; step < Config::pixels; step += 8 * Config::pixel_warps) {
            unsigned left[4][4], right[Config::channels][4][2];
            load_left(left, &y[(step + t) * Y_STRIDE + warp_filter + 4 * g]);
            load_right(right, &x[(step + t) * X_STRIDE + warp_channel + 4 * g]);
#pragma unroll
            for (int e = 0; e < 4; ++e) {
#pragma unroll
                for (int c = 0; c < Config::channels; ++c) {
                    // Uniform over the warp.
                    const bool needed = mask_and_place.x >> (e * Config::channels + c) & 1u;
                    if (needed) multiply(sums[e][c], left[e], right[c]);
                }
            }
        }
    }

    add_pixel_warps(sums, shared + tile_warp * SUMS * WARP_SIZE + lane, pixel_warp);
    if (pixel_warp > 0) return;
    float *block_part = parts + (long long)blockIdx.y * n_values;
    write(sums, block_part, places + (long long)mask_and_place.y * 4 * WARP_SIZE + lane,
          mask_and_place.x);
}

// grid = (weights over 32, 1), block = PART_WARPS warps, which take parts in turn
extern "C" __global__ void __launch_bounds__(PART_WARPS *WARP_SIZE)
    add_parts(const float *__restrict__ parts, float *__restrict__ d_values, int n_parts,
              int n_values) {
    RECORD_WARP;
    __shared__ float sums[PART_WARPS][WARP_SIZE];
    const int warp = int(threadIdx.x) / WARP_SIZE, lane = int(threadIdx.x) % WARP_SIZE;
    const int value = int(blockIdx.x) * WARP_SIZE + lane;
    float sum = 0.0f;
#pragma unroll 4
    for (int part = warp; part < n_parts; part += PART_WARPS) {
        if (value < n_values) sum += parts[(long long)part * n_values + value];
    }
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || value >= n_values) return;
    for (int other = 1; other < PART_WARPS; ++other) sum += sums[other][lane];
    d_values[value] = sum;
}
