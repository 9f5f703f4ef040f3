// Product of bit matrices on tensor cores, for wide results: a block's warps share tiles of A and B
// in shared memory. Y = sum over planes of (A_i B_j) << (i + j), whole numbers.
//
// Planes stand beside each other as further rows and columns of one large product: a warp has the
// A_PLANES planes of its rows and the B_PLANES planes of its columns at a time, and adds them up,
// shifted, at the end, in registers. So each word in shared memory meets all planes.
//
// The order of the words along K does not matter as long as A and B have the same: so a lane takes
// four neighboring words, 16 bytes, and no two lanes ask one bank.
//
// grid  = (tiles of rows, tiles of columns)
// block = WARPS_M x WARPS_N warps

// The plan supplies, at compile time:
//   WARPS_M, WARPS_N     warps of a block
//   M_TILES, N_TILES     tiles of 16 x 8 of a warp, multiples of A_PLANES and B_PLANES
//   A_PLANES, B_PLANES, A_PASSES, B_PASSES   planes at a time, and how often
//   STAGES               chunks of K that are on their way or in use
//   JUMP                 1 to jump over tiles of A that are zero
//   BLOCKS_PER_SM        blocks that an SM should have room for, which bounds the registers
#if !defined(WARPS_M) || !defined(WARPS_N) || !defined(M_TILES) || !defined(N_TILES) ||     \
    !defined(A_PLANES) || !defined(B_PLANES) || !defined(A_PASSES) || !defined(B_PASSES) || \
    !defined(STAGES) || !defined(JUMP) || !defined(BLOCKS_PER_SM)
#error "tiled.cu is compiled by accelviz, which supplies the constants listed above"
#endif

#include "async_copy.cuh"
#include "bits/planes.cuh"
#include "fragments.cuh"

#define THREADS (WARPS_M * WARPS_N * WARP_SIZE)
#define A_LINES (WARPS_M * M_TILES * 16)  // of a stage, all planes of a pass
#define B_LINES (WARPS_N * N_TILES * 8)
#define QUADS 4                               // of 4 words, a line's part of a chunk: 512 bits
#define ROWS_OF_WARP (M_TILES / A_PLANES)     // in tiles of 16
#define COLUMNS_OF_WARP (N_TILES / B_PLANES)  // in tiles of 8

// A line of a stage: PLANES planes of SIZE lines follow each other in each tile.
template <int SIZE, int PLANES>
__device__ __forceinline__ void copy_line(uint4 *stage, const uint4 *__restrict__ planes,
                                          const Planes &of, int i, int first_line, int first_plane,
                                          int first_quad) {
    const int slot = i / QUADS, quad = first_quad + i % QUADS;
    const int tile = slot / SIZE, plane = first_plane + tile % PLANES;
    const int line = first_line + tile / PLANES * SIZE + slot % SIZE;
    if (plane < of.bits && line < of.lines && quad < of.words / 4) {
        copy_async(&stage[i], &planes[of.at(plane, line, 0) / 4 + quad]);
    } else {
        stage[i] = make_uint4(0, 0, 0, 0);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    tiled(const uint4 *__restrict__ A, const uint4 *__restrict__ B, int *__restrict__ out, int rows,
          int columns, int words, int a_bits, int a_lines, int b_bits, int b_lines) {
    RECORD_WARP;
    DYNAMIC_SHARED(uint4, stages);
    const int warp = int(threadIdx.x) / WARP_SIZE, lane = int(threadIdx.x) % WARP_SIZE;
    const int warp_m = warp / WARPS_N, warp_n = warp % WARPS_N;
    const Planes of_a{a_bits, a_lines, words}, of_b{b_bits, b_lines, words};
    const int first_row = int(blockIdx.x) * (A_LINES / A_PLANES);
    const int first_column = int(blockIdx.y) * (B_LINES / B_PLANES);
    const int chunks = ceil_div(words, 4 * QUADS);

    unsigned sums[ROWS_OF_WARP][COLUMNS_OF_WARP][4] = {};
#pragma unroll
    for (int a_pass = 0; a_pass < A_PASSES; ++a_pass) {
#pragma unroll
        for (int b_pass = 0; b_pass < B_PASSES; ++b_pass) {
            auto fetch = [&](int chunk) {
                if (chunk < chunks) {
                    uint4 *stage = stages + chunk % STAGES * (A_LINES + B_LINES) * QUADS;
#pragma unroll
                    for (int i = int(threadIdx.x); i < A_LINES * QUADS; i += THREADS) {
                        copy_line<16, A_PLANES>(stage, A, of_a, i, first_row, a_pass * A_PLANES,
                                                chunk * QUADS);
                    }
#pragma unroll
                    for (int i = int(threadIdx.x); i < B_LINES * QUADS; i += THREADS) {
                        copy_line<8, B_PLANES>(stage + A_LINES * QUADS, B, of_b, i, first_column,
                                               b_pass * B_PLANES, chunk * QUADS);
                    }
                }
                close_copies();
            };
            int c[M_TILES][N_TILES][4] = {};
#pragma unroll
            for (int chunk = 0; chunk < STAGES - 1; ++chunk) fetch(chunk);
#pragma unroll 1
            for (int chunk = 0; chunk < chunks; ++chunk) {
                await_copies<STAGES - 2>();
                __syncthreads();  // this chunk is there, and the one before is done with
                fetch(chunk + STAGES - 1);
                const uint4 *stage = stages + chunk % STAGES * (A_LINES + B_LINES) * QUADS;
                const uint4 *own_a = stage + (warp_m * M_TILES * 16 + lane / 4) * QUADS + lane % 4;
                const uint4 *own_b =
                    stage + (A_LINES + warp_n * N_TILES * 8 + lane / 4) * QUADS + lane % 4;
                uint4 a[M_TILES][2];
                unsigned any = 0;
#pragma unroll
                for (int m = 0; m < M_TILES; ++m) {
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        a[m][half] = own_a[(m * 16 + half * 8) * QUADS];
                        any |= a[m][half].x | a[m][half].y | a[m][half].z | a[m][half].w;
                    }
                }
                if (JUMP && !__any_sync(EVERY_LANE, any != 0)) continue;
#pragma unroll
                for (int n = 0; n < N_TILES; ++n) {
                    const uint4 b = own_b[n * 8 * QUADS];
#pragma unroll
                    for (int m = 0; m < M_TILES; ++m) {
                        mma_b1_k256(c[m][n], {a[m][0].x, a[m][1].x, a[m][0].y, a[m][1].y},
                                    {b.x, b.y});
                    }
#pragma unroll
                    for (int m = 0; m < M_TILES; ++m) {
                        mma_b1_k256(c[m][n], {a[m][0].z, a[m][1].z, a[m][0].w, a[m][1].w},
                                    {b.z, b.w});
                    }
                }
            }
            await_copies<0>();
            __syncthreads();  // the next pass begins with the stages
#pragma unroll
            for (int m = 0; m < M_TILES; ++m) {
#pragma unroll
                for (int n = 0; n < N_TILES; ++n) {
                    const int shift =
                        a_pass * A_PLANES + m % A_PLANES + b_pass * B_PLANES + n % B_PLANES;
                    if (shift > 30) continue;  // planes that there are not: only zeros
#pragma unroll
                    for (int r = 0; r < 4; ++r) {
                        sums[m / A_PLANES][n / B_PLANES][r] += unsigned(c[m][n][r]) << shift;
                    }
                }
            }
        }
    }

#pragma unroll
    for (int m = 0; m < ROWS_OF_WARP; ++m) {
#pragma unroll
        for (int n = 0; n < COLUMNS_OF_WARP; ++n) {
#pragma unroll
            for (int r = 0; r < 4; r += 2) {
                const Element at = element_of_c(lane, r);
                const int row = first_row + (warp_m * ROWS_OF_WARP + m) * 16 + at.row;
                const int column = first_column + (warp_n * COLUMNS_OF_WARP + n) * 8 + at.column;
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
