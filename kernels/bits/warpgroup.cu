// Product of bit matrices on Hopper's tensor cores, for wide results: warpgroups multiply out of
// shared memory, at a rate that `mma` does not reach. Y = sum over planes of (A_i B_j) << (i + j),
// whole numbers.
//
// Planes of B stand beside each other as further columns, so that a tile of A that is loaded meets
// all of them; of A they follow each other from the highest on, and sums double in between. A block
// goes on to another tile of the result when it has one, whose words are on their way while the
// last one's sums are written.
//
// grid  = blocks, at most one a tile of ROWS x COLUMNS
// block = GROUPS warpgroups of 64 rows each

// The plan supplies, at compile time:
//   GROUPS               warpgroups of a block
//   HALVES               of 128 columns, each a plane's, that a warpgroup has
//   A_PLANES, B_PLANES   planes of the operands
//   STAGES               chunks of K that are on their way or in use
//   JUMP                 1 to jump over tiles of A that are zero
//   BLOCKS_PER_SM        blocks that an SM should have room for, which bounds the registers
#if !defined(GROUPS) || !defined(HALVES) || !defined(A_PLANES) || !defined(B_PLANES) || \
    !defined(STAGES) || !defined(JUMP) || !defined(BLOCKS_PER_SM)
#error "warpgroup.cu is compiled by accelviz, which supplies the constants listed above"
#endif

#include "async_copy.cuh"
#include "bits/planes.cuh"
#include "warpgroup.cuh"

#define THREADS (GROUPS * GROUP_WARPS * WARP_SIZE)
#define ROWS (GROUPS * GROUP_ROWS)
#define LINES (HALVES * GROUP_LINES)  // of B in a stage, all planes
#define COLUMN_TILES (HALVES * GROUP_TILES / B_PLANES)
#define COLUMNS (COLUMN_TILES * 8)
#define AT_ONCE (THREADS / LINE_QUADS)  // lines that all threads together copy
#define A_COPIES (ROWS / AT_ONCE)       // of a thread
#define B_COPIES (LINES / AT_ONCE)
#define STAGE_QUADS ((ROWS + LINES) * LINE_QUADS)
#define OUT_STRIDE 40               // of a row of 32 sums on their way out: in all banks
#define OUT_INTS (16 * OUT_STRIDE)  // of a warp

// Where copies have come to: tile, plane of A and chunk of K.
struct Cursor {
    int tile, plane, chunk;

    __device__ __forceinline__ void advance(int chunks) {
        if (++chunk < chunks) return;
        chunk = 0;
        if (--plane >= 0) return;
        plane = A_PLANES - 1;
        tile += int(gridDim.x);
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    warpgroup(const uint4 *__restrict__ A, const uint4 *__restrict__ B, int *__restrict__ out,
              int rows, int columns, int words, int a_bits, int a_lines, int b_bits, int b_lines) {
    RECORD_WARP;
    DYNAMIC_SHARED(uint4, memory);
    const auto unaligned = reinterpret_cast<unsigned long long>(memory);
    uint4 *const stages =
        memory + (LINES_ALIGNMENT - unaligned % LINES_ALIGNMENT) % LINES_ALIGNMENT / sizeof(uint4);
    const int warp = int(threadIdx.x) / WARP_SIZE, lane = int(threadIdx.x) % WARP_SIZE;
    const int group = warp / GROUP_WARPS;
    const int line_quads = words / 4, chunks = ceil_div(line_quads, LINE_QUADS);
    const int across = ceil_div(columns, COLUMNS), tiles = ceil_div(rows, ROWS) * across;

    const int own_line = int(threadIdx.x) / LINE_QUADS, own_quad = int(threadIdx.x) % LINE_QUADS;
    int offset[B_COPIES], column_of[B_COPIES];  // in quads, from the tile's first column; -1: none
#pragma unroll
    for (int i = 0; i < B_COPIES; ++i) {
        const int line = own_line + i * AT_ONCE, tile = line / 8;
        const bool there = tile < COLUMN_TILES * B_PLANES;
        column_of[i] = there ? tile / B_PLANES * 8 + line % 8 : -1;
        offset[i] = (tile % B_PLANES * b_lines + column_of[i]) * line_quads;
    }

    Cursor next{int(blockIdx.x), A_PLANES - 1, 0};
    int filled = 0, used = 0;  // stages, round and round
    auto fetch = [&]() {
        if (next.tile < tiles && chunks) {
            const int row = next.tile / across * ROWS + own_line;
            const int first_column = next.tile % across * COLUMNS;
            const int quad = next.chunk * LINE_QUADS + own_quad;
            uint4 *to = stages + filled * STAGE_QUADS + swizzled(own_line, own_quad);
            const uint4 *from = A + ((long long)next.plane * a_lines + row) * line_quads + quad;
#pragma unroll
            for (int i = 0; i < A_COPIES; ++i, to += AT_ONCE * LINE_QUADS) {
                if (row + i * AT_ONCE < a_lines && quad < line_quads) {
                    copy_async(to, from + i * AT_ONCE * line_quads);
                } else {
                    *to = make_uint4(0, 0, 0, 0);
                }
            }
            from = B + (long long)first_column * line_quads + quad;
#pragma unroll
            for (int i = 0; i < B_COPIES; ++i, to += AT_ONCE * LINE_QUADS) {
                const bool there = column_of[i] >= 0 && first_column + column_of[i] < b_lines;
                if (there && quad < line_quads) {
                    copy_async(to, from + offset[i]);
                } else {
                    *to = make_uint4(0, 0, 0, 0);
                }
            }
            next.advance(chunks);
            filled = filled + 1 == STAGES ? 0 : filled + 1;
        }
        close_copies();
    };
#pragma unroll
    for (int i = 0; i < STAGES - 2; ++i) fetch();

    // Waits for the stage that is used next, and says whether its tile of A is zero and jumped
    // over. Past its barrier, all threads are done with the stage before the last.
    auto arrived_empty = [&]() {
        await_copies<STAGES - 3>();
        show_to_products();
#if JUMP
        const uint4 *own = stages + used * STAGE_QUADS + swizzled(own_line, own_quad);
        unsigned any = 0;
#pragma unroll
        for (int i = 0; i < A_COPIES; ++i, own += AT_ONCE * LINE_QUADS) {
            any |= own->x | own->y | own->z | own->w;
        }
        return !__syncthreads_or(any != 0);
#else
        __syncthreads();
        return false;
#endif
    };

#pragma unroll 1
    for (int tile = int(blockIdx.x); tile < tiles; tile += int(gridDim.x)) {
        int c[HALVES][GROUP_SUMS] = {};
#pragma unroll 1
        for (int plane = 0; plane < A_PLANES; ++plane) {
            if (plane) {
#pragma unroll
                for (int h = 0; h < HALVES; ++h) {
#pragma unroll
                    for (int i = 0; i < GROUP_SUMS; ++i) c[h][i] = int(unsigned(c[h][i]) << 1);
                }
            }
            int chunk = 0;
#pragma unroll 1
            for (;;) {
                // A branch around products would make each wait for the one before: so the loop
                // looks for the next chunk that there is something to multiply in.
#pragma unroll 1
                for (; chunk < chunks && arrived_empty(); ++chunk) {
                    await_products<0>();
                    fetch();
                    used = used + 1 == STAGES ? 0 : used + 1;
                }
                if (chunk == chunks) break;
                const uint4 *a = stages + used * STAGE_QUADS + group * GROUP_ROWS * LINE_QUADS;
                const uint4 *b = stages + used * STAGE_QUADS + ROWS * LINE_QUADS;
                begin_products();
#pragma unroll
                for (int step = 0; step < LINE_QUADS / STEP_QUADS; ++step) {
#pragma unroll
                    for (int h = 0; h < HALVES; ++h) {
                        multiply_b1(c[h], a, b + h * GROUP_LINES * LINE_QUADS, step);
                    }
                }
                close_products();
                fetch();
                await_products<1>();
                used = used + 1 == STAGES ? 0 : used + 1;
                ++chunk;
            }
            await_products<0>();
#pragma unroll
            for (int h = 0; h < HALVES; ++h) settle(c[h]);
        }

        const int first_row = tile / across * ROWS + warp * 16;
        const int first_column = tile % across * COLUMNS;
        auto pair_of = [&](int n, int r) {  // sums of two columns of tile n, over all planes
            unsigned sums[2] = {};
#pragma unroll
            for (int j = 0; j < B_PLANES; ++j) {
                const int at = n * B_PLANES + j, first = at % GROUP_TILES * 4 + r;
                sums[0] += unsigned(c[at / GROUP_TILES][first]) << j;
                sums[1] += unsigned(c[at / GROUP_TILES][first + 1]) << j;
            }
            return make_int2(int(sums[0]), int(sums[1]));
        };
        if (columns % 4) {
#pragma unroll
            for (int n = 0; n < COLUMN_TILES; ++n) {
#pragma unroll
                for (int r = 0; r < 4; r += 2) {
                    const Element at = element_of_c(lane, r);
                    const int row = first_row + at.row, column = first_column + n * 8 + at.column;
                    const int2 sums = pair_of(n, r);
                    if (row >= rows || column >= columns) continue;
                    out[element(row, column, columns)] = sums.x;
                    if (column + 1 < columns) out[element(row, column + 1, columns)] = sums.y;
                }
            }
            continue;
        }
        // Four tiles at a time go through shared memory, so that rows are written in 128 bytes.
        int *const own = reinterpret_cast<int *>(stages + STAGES * STAGE_QUADS) + warp * OUT_INTS;
        const int quad = lane % 8 * 4, column = first_column + quad;
        int *const to = &out[element(first_row + lane / 8, column, columns)];
#pragma unroll
        for (int n = 0; n < COLUMN_TILES; n += 4) {
            __syncwarp();
#pragma unroll
            for (int i = 0; i < 4 && n + i < COLUMN_TILES; ++i) {
#pragma unroll
                for (int r = 0; r < 4; r += 2) {
                    const Element at = element_of_c(lane, r);
                    int *const place = &own[at.row * OUT_STRIDE + i * 8 + at.column];
                    *reinterpret_cast<int2 *>(place) = pair_of(n + i, r);
                }
            }
            __syncwarp();
            const bool there = column + n * 8 < columns && quad + n * 8 < COLUMNS;
#pragma unroll
            for (int i = 0; i < 16; i += 4) {
                if (!there || first_row + lane / 8 + i >= rows) continue;
                *reinterpret_cast<int4 *>(to + element(i, n * 8, columns)) =
                    *reinterpret_cast<const int4 *>(&own[(lane / 8 + i) * OUT_STRIDE + quad]);
            }
        }
    }
}
