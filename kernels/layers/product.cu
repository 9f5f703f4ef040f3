// Y = A W, with what follows it. A warp has 16 rows of A, which go from memory straight into
// fragments, and blocks stay: each reads W once, into shared memory.
#include "layers/products.cuh"

constexpr int THREADS = 128;
constexpr int QUAD = 4;
// Of A, in registers at a time, and of Y, whose sums are in tensor cores at a time.
constexpr int CHUNK = INNER % 64 == 0 && RIGHT <= 64 ? 64 : INNER % 32 == 0 ? 32 : 16;
constexpr int PAIRS = RIGHT / 16;
constexpr int PAIRS_AT_ONCE = PAIRS % 4 == 0 ? 4 : PAIRS % 2 == 0 ? 2 : 1;

// W, of both factors' parts together.
__device__ __forceinline__ float weight(const float *W0, const float *W1, int k, int n) {
    // Parts lie below each other if A has parts, side by side if Y has.
    const float *W = W0;
    if (k >= INNER) W = W1, k -= INNER;
    if (n >= COLUMNS) W = W1, n -= COLUMNS;
    return TRANSPOSED ? W[n * INNER + k] : W[k * COLUMNS + n];
}

__device__ __forceinline__ float at(float4 four, int i) {
    return i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w;
}

// Rows of a tile that a lane has: `lane / 4` and 8 more; columns of each 16: four from
// `4 * (lane % 4)` on. The MMA's own order of the columns differs; W's rows are in the same order.
__device__ __forceinline__ void load_chunk(const float *A0, const float *A1, int n_rows, int tile,
                                           int chunk, float4 (&found)[CHUNK / 16][2]) {
    const int lane = threadIdx.x % WARP_SIZE;
    const float *A = chunk * CHUNK < INNER ? A0 : A1;
    const int column = chunk * CHUNK % INNER + QUAD * (lane % 4);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int row = 16 * tile + lane / 4 + 8 * half;
        const float4 *from = reinterpret_cast<const float4 *>(A + element(row, column, INNER));
#pragma unroll
        for (int i = 0; i < CHUNK / 16; ++i) {
            found[i][half] = row < n_rows ? __ldg(&from[i * 16 / QUAD])
                                          : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
    }
}

// Y = dropout(activation(A W + bias)), or (A W) * scale where `positive` > 0, 0 elsewhere.
// A and W may have two parts, A0 W0 + A1 W1, or W and Y, A W0 and A W1. bias and positive may be
// null.
extern "C" __global__ void __launch_bounds__(THREADS)
    product(const float *A0, const float *A1, const float *W0, const float *W1, const float *bias,
            const float *positive, float *Y0, float *Y1, int n_rows, float scale, float rate,
            const unsigned *random) {
    DYNAMIC_SHARED(float4, weights);
    // A float4 of W is four of its rows, in one column. In the MMA's columns 2 t and 2 t + 1 of two
    // tiles are W's columns 4 t to 4 t + 3, so that a lane stores four together.
    for (int i = threadIdx.x; i < LEFT / 16 * PAIRS * 2 * WARP_SIZE; i += THREADS) {
        const int lane = i % WARP_SIZE, second = i / WARP_SIZE % 2;
        const int pair = i / (2 * WARP_SIZE) % PAIRS, sixteen = i / (2 * WARP_SIZE) / PAIRS;
        const int k = 16 * sixteen + 4 * (lane % 4), g = lane / 4;
        const int n = 16 * pair + 4 * (g / 2) + g % 2 + 2 * second;
        weights[i] = make_float4(weight(W0, W1, k, n), weight(W0, W1, k + 1, n),
                                 weight(W0, W1, k + 2, n), weight(W0, W1, k + 3, n));
    }
    __syncthreads();

    const int lane = threadIdx.x % WARP_SIZE;
    const int n_tiles = ceil_div(n_rows, 16), stride = gridDim.x * (THREADS / WARP_SIZE);
    int tile = blockIdx.x * (THREADS / WARP_SIZE) + threadIdx.x / WARP_SIZE;
    float4 next[CHUNK / 16][2];
    load_chunk(A0, A1, n_rows, tile, 0, next);
    for (; tile < n_tiles; tile += stride) {
        float total[2 * PAIRS][4] = {};
#pragma unroll
        for (int chunk = 0; chunk < LEFT / CHUNK; ++chunk) {
            float4 here[CHUNK / 16][2];
#pragma unroll
            for (int i = 0; i < CHUNK / 16; ++i) here[i][0] = next[i][0], here[i][1] = next[i][1];
            const bool last = chunk + 1 == LEFT / CHUNK;
            load_chunk(A0, A1, n_rows, last ? tile + stride : tile, last ? 0 : chunk + 1, next);
#pragma unroll
            for (int first = 0; first < PAIRS; first += PAIRS_AT_ONCE) {
                float sums[2 * PAIRS_AT_ONCE][4] = {};
#pragma unroll
                for (int i = 0; i < CHUNK / 16; ++i) {
                    unsigned a_high[2][4], a_low[2][4];
#pragma unroll
                    for (int step = 0; step < 2; ++step) {
                        const float a[4] = {
                            at(here[i][0], 2 * step), at(here[i][1], 2 * step),
                            at(here[i][0], 2 * step + 1), at(here[i][1], 2 * step + 1)};
                        split(a, a_high[step], a_low[step]);
                    }
#pragma unroll
                    for (int j = 0; j < 2 * PAIRS_AT_ONCE; ++j) {
                        const int sixteen = chunk * (CHUNK / 16) + i;
                        const float4 four =
                            weights[(sixteen * 2 * PAIRS + 2 * first + j) * WARP_SIZE + lane];
#pragma unroll
                        for (int step = 0; step < 2; ++step) {
                            const float b[2] = {at(four, 2 * step), at(four, 2 * step + 1)};
                            unsigned b_high[2], b_low[2];
                            split(b, b_high, b_low);
                            mma_float(sums[j], a_high[step], a_low[step], b_high, b_low);
                        }
                    }
                }
#pragma unroll
                for (int j = 0; j < 2 * PAIRS_AT_ONCE; ++j) {
#pragma unroll
                    for (int i = 0; i < 4; ++i) total[2 * first + j][i] += sums[j][i];
                }
            }
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = 16 * tile + lane / 4 + 8 * half;
            if (row >= n_rows) continue;
#pragma unroll
            for (int pair = 0; pair < PAIRS; ++pair) {
                const int column = 16 * pair % COLUMNS + 4 * (lane % 4);
                float z[AT_ONCE] = {total[2 * pair][2 * half], total[2 * pair][2 * half + 1],
                                    total[2 * pair + 1][2 * half],
                                    total[2 * pair + 1][2 * half + 1]};
                const long long four = element(row, column, COLUMNS) / AT_ONCE;
                if (positive != nullptr) {
                    const float4 x = reinterpret_cast<const float4 *>(positive)[four];
#pragma unroll
                    for (int i = 0; i < AT_ONCE; ++i) z[i] = at(x, i) > 0.0f ? z[i] * scale : 0.0f;
                } else {
                    const Kept keep = kept(four, rate, random);
#pragma unroll
                    for (int i = 0; i < AT_ONCE; ++i) {
                        const float added = bias == nullptr ? 0.0f : __ldg(&bias[column + i]);
                        z[i] = activated(z[i] + added) * keep.factor[i];
                    }
                }
                float *Y = 16 * pair < COLUMNS ? Y0 : Y1;
                reinterpret_cast<float4 *>(Y)[four] = make_float4(z[0], z[1], z[2], z[3]);
            }
        }
    }
}
