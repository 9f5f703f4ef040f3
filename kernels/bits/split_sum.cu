// Product of bit matrices on tensor cores, for results with few columns. Y = sum over planes of
// (A_i B_j) << (i + j). A block computes 32 x 32 elements, and its warps share the sum over K.
//
// A warp holds the tile's rows of a_planes planes of A in registers at a time, and its columns of
// b_planes planes of B, so that a loaded tile of A is multiplied with all of them (QGTC's
// cross-tile reduction). With b_planes = 1, A is loaded again for each plane of B (its cross-bit
// reduction). With a short K and many planes, warps also share the passes, so that none is idle.
//
// The order of words along K is arbitrary as long as A and B have the same. A lane therefore loads
// four neighboring words, which the instruction's table of fragments places apart.
//
// grid  = (tiles of 32 rows, tiles of 32 columns)
// block = `warps` warps

// The plan supplies, at compile time:
//   mma_k           256 (m16n8k256) or 128 (m8n8k128, the paper's)
//   a_planes, b_planes, a_passes, b_passes   planes per pass, and number of passes
//   warps, k_warps  warps of a block, and the number of them that share a pass
//   jump            1 to skip tiles of A that are zero, else 0
//   output          0 integers, 1 float32, 2 bits
//   relu            1 to replace negative results by zero (not for integers)
//   along_columns   for bits: 1 if the result is a left operand, 0 if it is a right operand

#include "bits/epilogue.cuh"
#include "fragments.cuh"

constexpr int M_TILE = Config::mma_k / 16;  // rows of the instruction: 16 or 8
constexpr int HALVES = M_TILE / 8;
constexpr int M_TILES = SIDE / M_TILE;
constexpr int N_TILES = SIDE / 8;
constexpr int K_REGISTERS = Config::mma_k / 128;  // registers of B; of A for 8 rows
constexpr int STEPS = 4 / K_REGISTERS;            // instructions per four words of a lane
constexpr int CHUNK_QUADS = 4;                    // quads of a row in a chunk, one per lane of four

using Counts = int[Config::a_planes][Config::b_planes][M_TILES][N_TILES][2 * HALVES];
using Sums = unsigned[M_TILES][N_TILES][2 * HALVES];
using Tile = int[SIDE][SIDE + 1];

// An operand of the product, from the block's first line on.
struct Operand {
    const uint4 *__restrict__ words;
    Planes planes;
    int first_line;

    // Loads the lane's quad of eight lines of a plane; the warp loads 16 words of each line.
    DEVICE_INLINE uint4 load(int plane, int eight, int quad) const {
        const int line = first_line + 8 * eight + int(threadIdx.x) % WARP_SIZE / 4;
        const bool inside = plane < planes.bits && line < planes.lines && quad < planes.words / 4;
        return inside ? __ldg(&words[planes.at(plane, line, 0) / 4 + quad])
                      : make_uint4(0, 0, 0, 0);
    }
};

// Loads a chunk of a pass's planes of A. Returns false if all bits of the warp are zero and may be
// skipped. With `counts`, adds the number of ones to `row_sums`.
DEVICE_INLINE bool load_left(uint4 (&a)[Config::a_planes][4], const Operand &A, int pass, int quad,
                             bool counts, unsigned (&row_sums)[4]) {
    unsigned any = 0;
#pragma unroll
    for (int i = 0; i < Config::a_planes; ++i) {
        const int plane = pass * Config::a_planes + i;
#pragma unroll
        for (int g = 0; g < 4; ++g) {
            a[i][g] = A.load(plane, g, quad);
            any |= a[i][g].x | a[i][g].y | a[i][g].z | a[i][g].w;
            if (counts) row_sums[g] += unsigned(ones_of(a[i][g])) << plane;
        }
    }
    return !Config::jump || __any_sync(ALL_LANES, any != 0);
}

DEVICE_INLINE void mma_b1(int (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    mma_b1_k256(c, a, b);
}
DEVICE_INLINE void mma_b1(int (&c)[2], const unsigned (&a)[1], const unsigned (&b)[1]) {
    mma_b1_k128(c, a, b);
}

DEVICE_INLINE void multiply(int (&c)[2 * HALVES], const uint4 *a, const uint4 &b, int step) {
    unsigned left[HALVES * K_REGISTERS], right[K_REGISTERS];
#pragma unroll
    for (int k = 0; k < K_REGISTERS; ++k) {
        right[k] = word_of(b, step * K_REGISTERS + k);
#pragma unroll
        for (int half = 0; half < HALVES; ++half) {
            left[HALVES * k + half] = word_of(a[half], step * K_REGISTERS + k);
        }
    }
    mma_b1(c, left, right);
}

// Multiplies a chunk of A's planes by all planes of B of a pass.
DEVICE_INLINE void multiply_chunk(Counts &c, const uint4 (&a)[Config::a_planes][4],
                                  const Operand &B, int pass, int quad) {
#pragma unroll
    for (int j = 0; j < Config::b_planes; ++j) {
        uint4 b[N_TILES];
#pragma unroll
        for (int n = 0; n < N_TILES; ++n) b[n] = B.load(pass * Config::b_planes + j, n, quad);
#pragma unroll
        for (int at = 0; at < STEPS * Config::a_planes * M_TILES * N_TILES; ++at) {
            const int n = at % N_TILES, m = at / N_TILES % M_TILES;
            const int i = at / (N_TILES * M_TILES) % Config::a_planes;
            multiply(c[i][j][m][n], &a[i][HALVES * m], b[n],
                     at / (N_TILES * M_TILES * Config::a_planes));
        }
    }
}

// Adds the products of a pass, shifted by their planes. `a_plane`, `b_plane`: the pass's first.
DEVICE_INLINE void add_shifted(Sums &sums, const Counts &c, int a_plane, int b_plane) {
#pragma unroll
    for (int i = 0; i < Config::a_planes; ++i) {
#pragma unroll
        for (int j = 0; j < Config::b_planes; ++j) {
            const int shift = a_plane + i + b_plane + j;
            if (shift > 30) continue;  // planes beyond the last one contain only zeros
#pragma unroll
            for (int at = 0; at < M_TILES * N_TILES * 2 * HALVES; ++at) {
                const int r = at % (2 * HALVES), n = at / (2 * HALVES) % N_TILES;
                const int m = at / (2 * HALVES * N_TILES);
                sums[m][n][r] += unsigned(c[i][j][m][n][r]) << shift;
            }
        }
    }
}

// Stores a warp's sums in shared memory.
DEVICE_INLINE void store_sums(const Sums &sums, const unsigned (&row_sums)[4], Tile &part,
                              int (&row_part)[SIDE]) {
    const int lane = int(threadIdx.x) % WARP_SIZE;
#pragma unroll
    for (int at = 0; at < M_TILES * N_TILES * 2 * HALVES; ++at) {
        const int r = at % (2 * HALVES), n = at / (2 * HALVES) % N_TILES;
        const int m = at / (2 * HALVES * N_TILES);
        const Element tile_position = element_of_c(lane, r);
        part[m * M_TILE + tile_position.row][n * 8 + tile_position.column] = int(sums[m][n][r]);
    }
    if (!Config::output) return;
#pragma unroll
    for (int g = 0; g < 4; ++g) {
        unsigned sum = row_sums[g];
        sum += __shfl_xor_sync(ALL_LANES, sum, 1);
        sum += __shfl_xor_sync(ALL_LANES, sum, 2);
        if (lane % 4 == 0) row_part[8 * g + lane / 4] = int(sum);
    }
}

extern "C" __global__ void __launch_bounds__(Config::warps *WARP_SIZE)
    split_sum(const uint4 *__restrict__ A, const uint4 *__restrict__ B, void *__restrict__ out,
              const float *__restrict__ alpha, const float *__restrict__ beta,
              const float *__restrict__ gamma, const float *__restrict__ row_scale, int rows,
              int columns, int words, int a_bits, int a_lines, int b_bits, int b_lines, float low,
              float step, int out_bits, int out_lines, int out_words) {
    RECORD_WARP;
    __shared__ Tile parts[Config::warps];
    __shared__ int row_parts[Config::warps][SIDE];
    const int warp = int(threadIdx.x) / WARP_SIZE, lane = int(threadIdx.x) % WARP_SIZE;
    const int first_row = int(blockIdx.x) * SIDE, first_column = int(blockIdx.y) * SIDE;
    const Operand left = {A, {a_bits, a_lines, words}, first_row};
    const Operand right = {B, {b_bits, b_lines, words}, first_column};
    const int chunks = ceil_div(words, 16);
    const int column = first_column + lane;
    const Planes planes = {out_bits, out_lines, out_words};
    // Loaded in advance: the lane's column, and a row of each lane.
    const Epilogue epilogue = {alpha, beta, gamma, row_scale, rows, columns};
    const auto coefficients = Config::output ? epilogue.column(column) : Epilogue::Column{};
    const float lane_scale = Config::output ? epilogue.scale(first_row + lane) : 0.0f;

    Sums sums = {};
    unsigned row_sums[4] = {};
    // If all warps share each pass, compile-time constants save registers.
    constexpr bool one_pass = Config::k_warps == Config::warps;
    const int first_chunk = one_pass ? warp : warp % Config::k_warps;
#pragma unroll 1
    for (int pass = one_pass ? 0 : warp / Config::k_warps;
         pass < Config::a_passes * Config::b_passes; pass += Config::warps / Config::k_warps) {
        const int a_pass = pass / Config::b_passes, b_pass = pass % Config::b_passes;
        Counts c = {};
        for (int chunk = first_chunk; chunk < chunks; chunk += Config::k_warps) {
            const int quad = chunk * CHUNK_QUADS + lane % 4;
            uint4 a[Config::a_planes][4];
            const bool counts = Config::output && b_pass == 0;
            if (!load_left(a, left, a_pass, quad, counts, row_sums)) continue;
            multiply_chunk(c, a, right, b_pass, quad);
        }
        add_shifted(sums, c, a_pass * Config::a_planes, b_pass * Config::b_planes);
    }
    store_sums(sums, row_sums, parts[warp], row_parts[warp]);
    __syncthreads();

    const Quantizer quantizer(low, step, out_bits);
    for (int i = warp; i < SIDE; i += Config::warps) {
        int sum = 0, row_sum = 0;
#pragma unroll
        for (int w = 0; w < Config::warps; ++w) {
            sum += parts[w][i][lane];
            if (Config::output) row_sum += row_parts[w][i];
        }
        const int row = first_row + i;
        const bool inside = row < rows && column < columns;
        const long long at = element(row, column, columns);
        if (Config::output == 0) {
            if (inside) static_cast<int *>(out)[at] = sum;
            continue;
        }
        const float scale = __shfl_sync(ALL_LANES, lane_scale, i);
        const float value = Epilogue::value(sum, row_sum, scale, coefficients);
        if (Config::output == 1) {
            if (inside) static_cast<float *>(out)[at] = value;
            continue;
        }
        const unsigned level = inside ? quantizer.level(value) : 0u;
        if (Config::along_columns) {
            write_line(level, static_cast<unsigned *>(out), planes, row, first_column / SIDE,
                       first_column + SIDE >= columns);
        } else {  // overwrites the first warp's sums of this row, which only this warp reads
            parts[0][i][lane] = int(level);
        }
    }
    if (Config::output != 2 || Config::along_columns) return;
    __syncthreads();
    write_planes(parts[0], static_cast<unsigned *>(out), planes, first_row, first_column, false,
                 first_row + SIDE >= rows);
}
