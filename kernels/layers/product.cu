// Y = A W with an epilogue. A warp loads 16 or 32 rows of A directly into fragments. Blocks are
// persistent: each reads W once, into shared memory, and handles several tiles of A.
#include "layers/products.cuh"
#include "vectors.cuh"

constexpr int THREADS = 256, QUAD = 4;
// Rows of A that a warp handles at a time, in tiles of 16, limited by registers for their sums.
constexpr int HEIGHT = RIGHT <= 64 ? 2 : 1, ROWS = 16 * HEIGHT;
// Columns of A that are in registers at a time; tiles of Y that are summed in tensor cores.
constexpr int CHUNK = Config::inner % 32 == 0 ? 32 : 16;
constexpr int PAIRS = RIGHT / 16;
constexpr int TILES = PAIRS % 2 == 0 ? 4 : 2;

// Returns element (k, n) of W, composed of W0 and W1.
DEVICE_INLINE float weight(const float *W0, const float *W1, int k, int n) {
    // W0 and W1 are below each other if A has two parts, side by side if Y has two.
    const float *W = W0;
    if (k >= Config::inner) W = W1, k -= Config::inner;
    if (n >= Config::columns) W = W1, n -= Config::columns;
    return Config::transposed ? W[n * Config::inner + k] : W[k * Config::columns + n];
}

// A lane loads rows lane / 4 and lane / 4 + 8 of each 16, and of each 16 columns the four from
// 4 * (lane % 4) on. The MMA orders columns differently; rows of W are permuted in the same way.
DEVICE_INLINE void load_chunk(const float *A0, const float *A1, int n_rows, int tile, int chunk,
                              float4 (&loaded)[CHUNK / 16][2 * HEIGHT]) {
    const int lane = threadIdx.x % WARP_SIZE;
    const float *A = chunk * CHUNK < Config::inner ? A0 : A1;
    const int column = chunk * CHUNK % Config::inner + QUAD * (lane % 4);
#pragma unroll
    for (int half = 0; half < 2 * HEIGHT; ++half) {
        const int row = ROWS * tile + lane / 4 + 8 * half;
        const float4 *from =
            reinterpret_cast<const float4 *>(A + element(row, column, Config::inner));
#pragma unroll
        for (int i = 0; i < CHUNK / 16; ++i) {
            loaded[i][half] =
                row < n_rows ? __ldg(&from[i * 16 / QUAD]) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
    }
}

using Total = float[HEIGHT][2 * PAIRS][4];

// Multiplies a chunk of A's columns, in registers, by the corresponding rows of W at `weights`.
DEVICE_INLINE void multiply_chunk(Total &total, const float4 (&current)[CHUNK / 16][2 * HEIGHT],
                                  const float4 *weights) {
    const int lane = threadIdx.x % WARP_SIZE;
#pragma unroll
    for (int first = 0; first < 2 * PAIRS; first += TILES) {
        float sums[HEIGHT][TILES][4] = {};
#pragma unroll
        for (int i = 0; i < CHUNK / 16; ++i) {
            float4 four[TILES];
#pragma unroll
            for (int j = 0; j < TILES; ++j) {
                four[j] = weights[(i * 2 * PAIRS + first + j) * WARP_SIZE + lane];
            }
#pragma unroll
            for (int step = 0; step < 2; ++step) {
                unsigned b_high[TILES][2], b_low[TILES][2];
#pragma unroll
                for (int j = 0; j < TILES; ++j) {
                    const float b[2] = {part(four[j], 2 * step), part(four[j], 2 * step + 1)};
                    split(b, b_high[j], b_low[j]);
                }
#pragma unroll
                for (int high = 0; high < HEIGHT; ++high) {
                    const float4 upper = current[i][2 * high], lower = current[i][2 * high + 1];
                    const float a[4] = {part(upper, 2 * step), part(lower, 2 * step),
                                        part(upper, 2 * step + 1), part(lower, 2 * step + 1)};
                    unsigned a_high[4], a_low[4];
                    split(a, a_high, a_low);
                    mma_float(sums[high], a_high, a_low, b_high, b_low);
                }
            }
        }
#pragma unroll
        for (int i = 0; i < HEIGHT * TILES * 4; ++i) {
            const int high = i / (TILES * 4), j = i / 4 % TILES;
            total[high][first + j][i % 4] += sums[high][j][i % 4];
        }
    }
}

// Writes a warp's tile after applying the epilogue.
DEVICE_INLINE void write(const Total &total, int tile, int n_rows, const float *bias,
                         const float *positive, float *Y0, float *Y1, float scale, float rate,
                         const unsigned *random) {
    const int lane = threadIdx.x % WARP_SIZE;
#pragma unroll
    for (int half = 0; half < 2 * HEIGHT; ++half) {
        const int row = ROWS * tile + lane / 4 + 8 * half;
        if (row >= n_rows) continue;
#pragma unroll
        for (int pair = 0; pair < PAIRS; ++pair) {
            const int column = 16 * pair % Config::columns + 4 * (lane % 4);
            const float (&tile_sums)[2 * PAIRS][4] = total[half / 2];
            const int i = half % 2 * 2;
            float z[AT_ONCE] = {tile_sums[2 * pair][i], tile_sums[2 * pair][i + 1],
                                tile_sums[2 * pair + 1][i], tile_sums[2 * pair + 1][i + 1]};
            const long long four = element(row, column, Config::columns) / AT_ONCE;
            if (positive != nullptr) {
                const float4 x = reinterpret_cast<const float4 *>(positive)[four];
#pragma unroll
                for (int c = 0; c < AT_ONCE; ++c) z[c] = part(x, c) > 0.0f ? z[c] * scale : 0.0f;
            } else {
                const DropoutMask mask = dropout_mask(four, rate, random);
#pragma unroll
                for (int c = 0; c < AT_ONCE; ++c) {
                    const float added = bias == nullptr ? 0.0f : __ldg(&bias[column + c]);
                    z[c] = activated(z[c] + added) * mask.factor[c];
                }
            }
            float *Y = 16 * pair < Config::columns ? Y0 : Y1;
            reinterpret_cast<float4 *>(Y)[four] = make_float4(z[0], z[1], z[2], z[3]);
        }
    }
}

// Y = dropout(activation(A W + bias)), or (A W) * scale where `positive` > 0 and 0 elsewhere.
// Either A and W consist of two parts, Y = A0 W0 + A1 W1, or W and Y do, Y0 = A W0 and Y1 = A W1.
// `bias` and `positive` may be null.
extern "C" __global__ void __launch_bounds__(THREADS)
    product(const float *A0, const float *A1, const float *W0, const float *W1, const float *bias,
            const float *positive, float *Y0, float *Y1, int n_rows, float scale, float rate,
            const unsigned *random) {
    DYNAMIC_SHARED(float4, weights);
    // A float4 of `weights` is four rows of W in one column. Columns 2 t and 2 t + 1 of two MMA
    // tiles are columns 4 t to 4 t + 3 of W, so that a lane stores four neighboring results.
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
    const int n_tiles = ceil_div(n_rows, ROWS), stride = gridDim.x * (THREADS / WARP_SIZE);
    int tile = blockIdx.x * (THREADS / WARP_SIZE) + threadIdx.x / WARP_SIZE;
    float4 next[CHUNK / 16][2 * HEIGHT];
    load_chunk(A0, A1, n_rows, tile, 0, next);
    for (; tile < n_tiles; tile += stride) {
        float total[HEIGHT][2 * PAIRS][4] = {};
#pragma unroll
        for (int chunk = 0; chunk < LEFT / CHUNK; ++chunk) {
            float4 current[CHUNK / 16][2 * HEIGHT];
#pragma unroll
            for (int i = 0; i < CHUNK / 16 * 2 * HEIGHT; ++i) {
                current[i / (2 * HEIGHT)][i % (2 * HEIGHT)] =
                    next[i / (2 * HEIGHT)][i % (2 * HEIGHT)];
            }
            const bool last = chunk + 1 == LEFT / CHUNK;
            load_chunk(A0, A1, n_rows, last ? tile + stride : tile, last ? 0 : chunk + 1, next);
            multiply_chunk(total, current, &weights[chunk * (CHUNK / 16) * 2 * PAIRS * WARP_SIZE]);
        }
        write(total, tile, n_rows, bias, positive, Y0, Y1, scale, rate, random);
    }
}
