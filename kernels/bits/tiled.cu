// Product of bit matrices on tensor cores, for wide results: a block's warps share tiles of A and B
// in shared memory. Y = sum over planes of (A_i B_j) << (i + j), in integers.
//
// Planes are treated as further rows and columns of one large product. A warp handles a_planes
// planes of its rows and b_planes planes of its columns in a pass, so that each word in shared
// memory is multiplied with all planes. Products are shifted by their planes and added in
// registers.
//
// A stage holds 512 bits of each line, in four quads of 16 bytes. Quad q of line l is stored at
// quad q ^ (l / 2 % 4) of its line, so that the eight rows loaded by one instruction use all banks.
//
// grid  = (tiles of rows, tiles of columns)
// block = warps_m x warps_n warps

// The plan supplies, at compile time:
//   warps_m, warps_n     warps of a block along rows and columns
//   m_tiles, n_tiles     tiles of 16 x 8 per warp, multiples of a_planes and b_planes
//   a_planes, b_planes, a_passes, b_passes   planes per pass, and number of passes
//   stages               chunks of K in shared memory, being copied or multiplied
//   jump                 1 to skip tiles of A that are zero, else 0
//   blocks_per_sm        blocks that must fit on an SM; bounds the registers

#include "async_copy.cuh"
#include "bits/planes.cuh"
#include "fragments.cuh"

constexpr int THREADS = Config::warps_m * Config::warps_n * WARP_SIZE;
constexpr int A_LINES = Config::warps_m * Config::m_tiles * 16;  // lines of a stage, all planes
constexpr int B_LINES = Config::warps_n * Config::n_tiles * 8;
constexpr int QUADS = 4;  // quads of a line in a stage: 512 bits
constexpr int ROWS_OF_WARP = Config::m_tiles / Config::a_planes;     // in tiles of 16
constexpr int COLUMNS_OF_WARP = Config::n_tiles / Config::b_planes;  // in tiles of 8

#define COPIES(LINES) (((LINES) * QUADS + THREADS - 1) / THREADS)  // copies per thread

// Returns the index of a line's quad in a stage.
DEVICE_INLINE int slot_of(int line, int quad) {
    return line * QUADS + (quad ^ line / 2 % QUADS);
}

// The copies of one operand that a thread starts for each stage.
template <int LINES, int SIZE, int PLANES>
struct Copies {
    int from[COPIES(LINES)];  // index of the line's first quad, or -1 outside the matrix
    int words;

    // Each tile of a stage holds PLANES planes of SIZE lines, one plane after another.
    DEVICE_INLINE Copies(const Planes &layout, int first_line, int first_plane)
        : words(layout.words) {
#pragma unroll
        for (int i = 0; i < COPIES(LINES); ++i) {
            const int slot = (int(threadIdx.x) + i * THREADS) / QUADS, tile = slot / SIZE;
            const int plane = first_plane + tile % PLANES;
            const int line = first_line + tile / PLANES * SIZE + slot % SIZE;
            const bool inside = plane < layout.bits && line < layout.lines;
            from[i] = inside ? int(layout.at(plane, line, 0) / 4) : -1;
        }
    }

    DEVICE_INLINE void begin(uint4 *stage, const uint4 *__restrict__ planes, int chunk) const {
        const int quad = int(threadIdx.x) % QUADS, next = chunk * QUADS + quad;
#pragma unroll
        for (int i = 0; i < COPIES(LINES); ++i) {
            const int slot = (int(threadIdx.x) + i * THREADS) / QUADS;
            if (LINES * QUADS % THREADS && slot >= LINES) break;
            if (from[i] >= 0 && next < words / 4) {
                copy_async(&stage[slot_of(slot, quad)], &planes[from[i] + next]);
            } else {
                stage[slot_of(slot, quad)] = make_uint4(0, 0, 0, 0);
            }
        }
    }
};

using Counts = int[Config::m_tiles][Config::n_tiles][4];
using Sums = unsigned[ROWS_OF_WARP][COLUMNS_OF_WARP][4];

// Multiplies a warp's lines of a chunk, all planes of a pass.
DEVICE_INLINE void multiply_chunk(Counts &c, const uint4 *stage, int warp_m, int warp_n) {
    const int lane = int(threadIdx.x) % WARP_SIZE;
    const uint4 *right = stage + A_LINES * QUADS;
    unsigned b[Config::n_tiles][4];
#pragma unroll
    for (int n = 0; n < Config::n_tiles; ++n) {
        const int line = (warp_n * Config::n_tiles + n) * 8 + lane % 8;
        load_matrices(b[n], &right[slot_of(line, lane / 8)]);
    }
#pragma unroll
    for (int step = 0; step < 2; ++step) {
        unsigned a[Config::m_tiles][4], any = 0;
#pragma unroll
        for (int m = 0; m < Config::m_tiles; ++m) {
            const int line = (warp_m * Config::m_tiles + m) * 16 + lane % 16;
            load_matrices(a[m], &stage[slot_of(line, 2 * step + lane / 16)]);
            any |= a[m][0] | a[m][1] | a[m][2] | a[m][3];
        }
        if (Config::jump && !__any_sync(ALL_LANES, any != 0)) continue;
#pragma unroll
        for (int n = 0; n < Config::n_tiles; ++n) {
#pragma unroll
            for (int m = 0; m < Config::m_tiles; ++m) {
                mma_b1_k256(c[m][n], a[m], {b[n][2 * step], b[n][2 * step + 1]});
            }
        }
    }
}

// Adds the products of a pass, shifted by their planes. `a_plane`, `b_plane`: the pass's first.
DEVICE_INLINE void add_shifted(Sums &sums, const Counts &c, int a_plane, int b_plane) {
#pragma unroll
    for (int m = 0; m < Config::m_tiles; ++m) {
#pragma unroll
        for (int n = 0; n < Config::n_tiles; ++n) {
            const int shift = a_plane + m % Config::a_planes + b_plane + n % Config::b_planes;
            if (shift > 30) continue;  // planes beyond the last one contain only zeros
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                sums[m / Config::a_planes][n / Config::b_planes][r] += unsigned(c[m][n][r])
                                                                       << shift;
            }
        }
    }
}

// Writes a warp's sums. `first_row` and `first_column` are its first element.
DEVICE_INLINE void write(const Sums &sums, int *__restrict__ out, int first_row, int first_column,
                         int rows, int columns) {
    const int lane = int(threadIdx.x) % WARP_SIZE;
#pragma unroll
    for (int m = 0; m < ROWS_OF_WARP; ++m) {
#pragma unroll
        for (int n = 0; n < COLUMNS_OF_WARP; ++n) {
#pragma unroll
            for (int r = 0; r < 4; r += 2) {
                const Element at = element_of_c(lane, r);
                const int row = first_row + m * 16 + at.row;
                const int column = first_column + n * 8 + at.column;
                if (row >= rows || column >= columns) continue;
                int *to = &out[element(row, column, columns)];
                const int first = int(sums[m][n][r]), second = int(sums[m][n][r + 1]);
                if (columns % 2 == 0) {
                    *reinterpret_cast<int2 *>(to) = make_int2(first, second);
                } else {
                    to[0] = first;
                    if (column + 1 < columns) to[1] = second;
                }
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, Config::blocks_per_sm)
    tiled(const uint4 *__restrict__ A, const uint4 *__restrict__ B, int *__restrict__ out, int rows,
          int columns, int words, int a_bits, int a_lines, int b_bits, int b_lines) {
    RECORD_WARP;
    DYNAMIC_SHARED(uint4, stages);
    const int warp = int(threadIdx.x) / WARP_SIZE;
    const int warp_m = warp / Config::warps_n, warp_n = warp % Config::warps_n;
    const Planes a_layout{a_bits, a_lines, words}, b_layout{b_bits, b_lines, words};
    const int first_row = int(blockIdx.x) * (A_LINES / Config::a_planes);
    const int first_column = int(blockIdx.y) * (B_LINES / Config::b_planes);
    const int chunks = ceil_div(words, 4 * QUADS);

    Sums sums = {};
#pragma unroll
    for (int a_pass = 0; a_pass < Config::a_passes; ++a_pass) {
#pragma unroll
        for (int b_pass = 0; b_pass < Config::b_passes; ++b_pass) {
            const Copies<A_LINES, 16, Config::a_planes> a_copies(a_layout, first_row,
                                                                 a_pass * Config::a_planes);
            const Copies<B_LINES, 8, Config::b_planes> b_copies(b_layout, first_column,
                                                                b_pass * Config::b_planes);
            auto fetch = [&](int chunk) {
                if (chunk < chunks) {
                    uint4 *stage = stages + chunk % Config::stages * (A_LINES + B_LINES) * QUADS;
                    a_copies.begin(stage, A, chunk);
                    b_copies.begin(stage + A_LINES * QUADS, B, chunk);
                }
                close_copies();
            };
            Counts c = {};
#pragma unroll
            for (int chunk = 0; chunk < Config::stages - 1; ++chunk) fetch(chunk);
#pragma unroll 1
            for (int chunk = 0; chunk < chunks; ++chunk) {
                await_copies<Config::stages - 2>();
                __syncthreads();  // this chunk has arrived, and the previous one has been read
                fetch(chunk + Config::stages - 1);
                const uint4 *stage = stages + chunk % Config::stages * (A_LINES + B_LINES) * QUADS;
                multiply_chunk(c, stage, warp_m, warp_n);
            }
            await_copies<0>();
            __syncthreads();  // all warps are done with the stages, which the next pass reuses
            add_shifted(sums, c, a_pass * Config::a_planes, b_pass * Config::b_planes);
        }
    }

    write(sums, out, first_row + warp_m * ROWS_OF_WARP * 16,
          first_column + warp_n * COLUMNS_OF_WARP * 8, rows, columns);
}
