// dW = A^T D and the column sums of D, over the nodes of a graph. A block handles some of the rows,
// 32 at a time in shared memory. `add_parts` adds up the blocks' sums in a fixed order, so that
// results are reproducible.
#include "layers/products.cuh"

constexpr int ROWS = 32, STEPS = ROWS / 8;
// Tiles of 16 x 8 of dW per warp: few, so that many warps hide each other's latency, and
// twice as many if a block would have more than 16 warps.
constexpr int TILES_K = LEFT % 32 == 0 ? 2 : 1;
constexpr int TILES_N = RIGHT % 32 == 0 && LEFT / (16 * TILES_K) * (RIGHT / 16) > 16 ? 4 : 2;
constexpr int WARPS_N = RIGHT / (8 * TILES_N), WARPS_PER_GROUP = LEFT / (16 * TILES_K) * WARPS_N;
// If a few warps cover dW, several groups of these warps take the rows in turn.
constexpr int GROUPS = WARPS_PER_GROUP >= 8 ? 1 : WARPS_PER_GROUP >= 4 ? 2 : 4;
constexpr int THREADS = WARPS_PER_GROUP * GROUPS * WARP_SIZE;
static_assert(THREADS <= 1024 && RIGHT <= THREADS, "dW is too large for a block");
// Rows in shared memory have 8 floats of padding: the lanes of a fragment use different banks.
constexpr int LEFT_STRIDE = LEFT + 8, RIGHT_STRIDE = RIGHT + 8;
constexpr int QUADS = ROWS * (LEFT + RIGHT) / 4, QUADS_OF_ROW = (LEFT + RIGHT) / 4;
constexpr int QUADS_OF_THREAD = (QUADS + THREADS - 1) / THREADS;
constexpr int STAGED = ROWS * (LEFT_STRIDE + RIGHT_STRIDE);
static_assert(GROUPS == 1 || LEFT * RIGHT <= STAGED, "groups add up in the same memory");

struct Factors {
    const float *A0, *A1, *D0, *D1;
    int n_rows;

    DEVICE_INLINE float4 quad(int tile, int i) const {
        const int row = tile * ROWS + i / QUADS_OF_ROW, column = 4 * (i % QUADS_OF_ROW);
        if (i >= QUADS || row >= n_rows) return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        const float *from =
            column < LEFT ? (column < Config::inner ? A0 : A1) +
                                element(row, column % Config::inner, Config::inner)
                          : (column - LEFT < Config::columns ? D0 : D1) +
                                element(row, (column - LEFT) % Config::columns, Config::columns);
        return __ldg(reinterpret_cast<const float4 *>(from));
    }
};

using Total = float[TILES_K][TILES_N][4];

// Adds the products of the rows in shared memory that belong to the warp's group.
DEVICE_INLINE void multiply(Total &total, const float *staged, const float *staged_right, int group,
                            int k0, int n0) {
    const int lane = threadIdx.x % WARP_SIZE;
    float sums[TILES_K][TILES_N][4] = {};
#pragma unroll
    for (int step = 0; step < STEPS; step += GROUPS) {
        const int row = 8 * (step + group) + lane % 4;
        const float *left_row = staged + row * LEFT_STRIDE + k0 + lane / 4;
        const float *right_row = staged_right + row * RIGHT_STRIDE + n0 + lane / 4;
        unsigned a_high[TILES_K][4], a_low[TILES_K][4];
#pragma unroll
        for (int i = 0; i < TILES_K; ++i) {
            const float a[4] = {left_row[16 * i], left_row[16 * i + 8],
                                left_row[4 * LEFT_STRIDE + 16 * i],
                                left_row[4 * LEFT_STRIDE + 16 * i + 8]};
            split(a, a_high[i], a_low[i]);
        }
        unsigned b_high[TILES_N][2], b_low[TILES_N][2];
#pragma unroll
        for (int j = 0; j < TILES_N; ++j) {
            const float b[2] = {right_row[8 * j], right_row[4 * RIGHT_STRIDE + 8 * j]};
            split(b, b_high[j], b_low[j]);
        }
#pragma unroll
        for (int i = 0; i < TILES_K; ++i) {
            mma_float(sums[i], a_high[i], a_low[i], b_high, b_low);
        }
    }
#pragma unroll
    for (int i = 0; i < TILES_K * TILES_N * 4; ++i) {
        total[i / (TILES_N * 4)][i / 4 % TILES_N][i % 4] +=
            sums[i / (TILES_N * 4)][i / 4 % TILES_N][i % 4];
    }
}

// Adds up the groups' sums, one group after another in shared memory, and writes them to `part`.
DEVICE_INLINE void add_groups(const Total &total, float *staged, float *part, int group, int k0,
                              int n0) {
    const int lane = threadIdx.x % WARP_SIZE;
#pragma unroll
    for (int turn = GROUPS - 1; turn >= 0; --turn) {
        __syncthreads();
        if (group != turn) continue;
#pragma unroll
        for (int i = 0; i < TILES_K * TILES_N * 4; ++i) {
            const int k = k0 + 16 * (i / (TILES_N * 4)) + lane / 4 + 8 * (i / 2 % 2);
            const int at = k * RIGHT + n0 + 8 * (i / 4 % TILES_N) + 2 * (lane % 4) + i % 2;
            float sum = total[i / (TILES_N * 4)][i / 4 % TILES_N][i % 4];
            if (turn + 1 < GROUPS) sum += staged[at];
            (turn == 0 ? part : staged)[at] = sum;
        }
    }
}

// parts[block]: dW, LEFT x RIGHT, then the column sums of D.
extern "C" __global__ void __launch_bounds__(THREADS)
    weight_gradient(const float *A0, const float *A1, const float *D0, const float *D1,
                    float *parts, int n_rows) {
    __shared__ float4 memory[STAGED / 4];
    float *staged = reinterpret_cast<float *>(memory);
    float *staged_right = staged + ROWS * LEFT_STRIDE;
    const Factors factors = {A0, A1, D0, D1, n_rows};
    const int warp = threadIdx.x / WARP_SIZE;
    const int group = warp / WARPS_PER_GROUP, warp_tile = warp % WARPS_PER_GROUP;
    const int k0 = warp_tile / WARPS_N * 16 * TILES_K, n0 = warp_tile % WARPS_N * 8 * TILES_N;
    Total total = {};
    float column_sum = 0.0f;
    float4 next[QUADS_OF_THREAD];
    const int n_tiles = ceil_div(n_rows, ROWS);
#pragma unroll
    for (int i = 0; i < QUADS_OF_THREAD; ++i) {
        next[i] = factors.quad(blockIdx.x, i * THREADS + threadIdx.x);
    }
    for (int tile = blockIdx.x; tile < n_tiles; tile += gridDim.x) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < QUADS_OF_THREAD; ++i) {
            const int quad = i * THREADS + threadIdx.x;
            if (quad >= QUADS) break;
            const int row = quad / QUADS_OF_ROW, column = 4 * (quad % QUADS_OF_ROW);
            float *to = column < LEFT ? staged + row * LEFT_STRIDE + column
                                      : staged_right + row * RIGHT_STRIDE + column - LEFT;
            *reinterpret_cast<float4 *>(to) = next[i];
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < QUADS_OF_THREAD; ++i) {
            next[i] = factors.quad(tile + gridDim.x, i * THREADS + threadIdx.x);
        }
        if (threadIdx.x < RIGHT) {
#pragma unroll 8
            for (int row = 0; row < ROWS; ++row) {
                column_sum += staged_right[row * RIGHT_STRIDE + threadIdx.x];
            }
        }
        multiply(total, staged, staged_right, group, k0, n0);
    }
    float *part = parts + (long long)blockIdx.x * (LEFT + 1) * RIGHT;
    add_groups(total, staged, part, group, k0, n0);
    if (threadIdx.x < RIGHT) part[LEFT * RIGHT + threadIdx.x] = column_sum;
}

// Adds up the parts of all blocks: dW0 and dW1 (in_parts or out_parts matrices), and, unless `db`
// is null, the sums of the last Config::columns columns of D. A block computes 32 elements, with
// eight threads each.
extern "C" __global__ void add_parts(const float *parts, float *dW0, float *dW1, float *db,
                                     int n_parts) {
    constexpr int SIZE = (LEFT + 1) * RIGHT, SLICES = 8;
    __shared__ float sums[SLICES][WARP_SIZE];
    const int lane = threadIdx.x % WARP_SIZE, slice = threadIdx.x / WARP_SIZE;
    const int i = blockIdx.x * WARP_SIZE + lane;
    float sum = 0.0f;
#pragma unroll 8
    for (int part = slice; part < n_parts && i < SIZE; part += SLICES) {
        sum += parts[(long long)part * SIZE + i];
    }
    sums[slice][lane] = sum;
    __syncthreads();
    if (slice != 0 || i >= SIZE) return;
    for (int other = 1; other < SLICES; ++other) sum += sums[other][lane];
    const int k = i / RIGHT, n = i % RIGHT;
    if (k == LEFT) {
        if (db != nullptr && n >= RIGHT - Config::columns) db[n % Config::columns] = sum;
    } else {
        (k < Config::inner && n < Config::columns
             ? dW0
             : dW1)[k % Config::inner * Config::columns + n % Config::columns] = sum;
    }
}
