// Product of bit matrices on Hopper's tensor cores, for wide results: warpgroups multiply operands
// in shared memory, faster than `mma` can. Y = sum over planes of (A_i B_j) << (i + j), as
// integers, or finished: scaled to float32, or quantized and packed.
//
// Planes of B are further columns, so that a loaded tile of A is multiplied with all of them.
// Planes of A follow each other from the highest on; sums are doubled in between. TMA copies words
// to shared memory. A block computes several tiles of the result, one after another, and copies for
// the next tile are in flight while the sums of the last one are written.
//
// grid  = blocks, at most one a tile of ROWS x COLUMNS
// block = groups warpgroups of 64 rows each

// The plan supplies, at compile time:
//   groups               warpgroups of a block
//   halves               1 or 2: 128-column halves of a warpgroup's sums, all planes of B
//   a_planes, b_planes   planes of the operands
//   column_tiles         tiles of 8 columns of a block; a multiple of 4 for bits
//   stages               chunks of K in shared memory, being copied or multiplied
//   jump                 1 to skip tiles of A that are zero, else 0
//   output               0 integers, 1 float32, 2 bits
//   relu                 1 to replace negative results by zero (not for integers)
//   along_columns        for bits: 1 if the result is a left operand, 0 if it is a right operand

#include "bits/epilogue.cuh"
#include "tensor_copy.cuh"

constexpr int THREADS = Config::groups * GROUP_WARPS * WARP_SIZE;
constexpr int ROWS = Config::groups * GROUP_ROWS;
constexpr int LINES = Config::halves * GROUP_LINES;  // lines of B in a stage, all planes
constexpr int COLUMN_TILES = Config::column_tiles;
constexpr int COLUMNS = COLUMN_TILES * 8;
constexpr int STAGE_QUADS = (ROWS + LINES) * LINE_QUADS;
constexpr int BOX_QUADS = (ROWS + COLUMNS * Config::b_planes) * LINE_QUADS;  // copied per stage
constexpr int OUT_STRIDE = 40;  // ints between rows of 32 sums on their way out, without conflicts
constexpr int OUT_INTS = 16 * OUT_STRIDE;                  // of a warp
constexpr int THREAD_QUADS = ROWS * LINE_QUADS / THREADS;  // quads of A that a thread looks at

// Sums of numbers of A, one for each quad that the thread looks at.
using RowSums = unsigned[THREAD_QUADS];

// Position of the next copy: tile of the result, plane of A and chunk of K.
struct Cursor {
    int tile, plane, chunk;

    DEVICE_INLINE void advance(int chunks) {
        if (++chunk < chunks) return;
        chunk = 0;
        if (--plane >= 0) return;
        plane = Config::a_planes - 1;
        tile += int(gridDim.x);
    }
};

// A ring of stages: some chunks are being copied while another one is multiplied.
struct Ring {
    uint4 *stages;
    Arrival *arrivals;
    const uint4 *__restrict__ A;
    const uint4 *__restrict__ B;
    const Planes a_layout, b_layout;
    const TensorMap &map_of_a, &map_of_b;
    int chunks, across, tiles;  // chunks of K; tiles of the result per row of tiles, and in all
    Cursor next;
    int filled, used, round;  // next stage to fill and to use; rounds of the ring so far

    // Starts copying the next chunk.
    DEVICE_INLINE void fetch() {
        if (next.tile >= tiles || !chunks) return;
        if (asks_engine()) {
            uint4 *const to = stages + filled * STAGE_QUADS;
            Arrival *const arrival = &arrivals[filled];
            const int quad = next.chunk * LINE_QUADS;
            expect(arrival, BOX_QUADS * int(sizeof(uint4)));
            copy_box<1, ROWS / 8>(to, map_of_a, A, a_layout, quad, next.plane,
                                  next.tile / across * (ROWS / 8), arrival);
            copy_box<Config::b_planes, COLUMN_TILES>(to + ROWS * LINE_QUADS, map_of_b, B, b_layout,
                                                     quad, 0, next.tile % across * COLUMN_TILES,
                                                     arrival);
        }
        next.advance(chunks);
        filled = filled + 1 == Config::stages ? 0 : filled + 1;
    }

    // Fills all stages but one.
    DEVICE_INLINE void begin() {
        // Lines that belong to no plane are multiplied, too, but their sums are not read.
        for (int i = int(threadIdx.x); i < Config::stages * (STAGE_QUADS - BOX_QUADS);
             i += THREADS) {
            stages[i % Config::stages * STAGE_QUADS + BOX_QUADS + i / Config::stages] =
                make_uint4(0, 0, 0, 0);
        }
        show_to_products();
        if (asks_engine()) prepare(arrivals, Config::stages);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < Config::stages - 1; ++i) fetch();
    }

    // Waits for the next stage, of a plane of A. Returns true if its tile of A is zero and may be
    // skipped. For an epilogue adds the numbers of A to `row_sums`.
    DEVICE_INLINE bool wait_for_empty(int plane, RowSums &row_sums) const {
        await_arrival(&arrivals[used], round);
        if constexpr (!Config::jump && !Config::output) return false;
        const uint4 *own = stages + used * STAGE_QUADS + int(threadIdx.x);
        unsigned any = 0;
#pragma unroll
        for (int i = 0; i < THREAD_QUADS; ++i) {
            const uint4 quad = own[i * THREADS];
            any |= quad.x | quad.y | quad.z | quad.w;
            if (Config::output) row_sums[i] += unsigned(ones_of(quad)) << plane;
        }
        return Config::jump && !__syncthreads_or(any != 0);
    }

    // Advances to the next stage. After the barrier all threads are done with the previous one.
    DEVICE_INLINE void advance() {
        __syncthreads();
        fetch();
        if (++used < Config::stages) return;
        used = 0;
        ++round;
    }
};

using Sums = int[Config::halves * GROUP_SUMS];

// Adds the products of all chunks of a plane of A.
DEVICE_INLINE void multiply_plane(Sums &c, Ring &ring, int plane, RowSums &row_sums) {
    const int group = int(threadIdx.x) / WARP_SIZE / GROUP_WARPS;
    int chunk = 0;
#pragma unroll 1
    for (;;) {
        // A branch around products would serialize them. Therefore this loop first finds the next
        // chunk that is not skipped.
#pragma unroll 1
        for (; chunk < ring.chunks && ring.wait_for_empty(plane, row_sums); ++chunk) {
            await_products<0>();
            ring.advance();
        }
        if (chunk == ring.chunks) break;
        const uint4 *a = ring.stages + ring.used * STAGE_QUADS + group * GROUP_ROWS * LINE_QUADS;
        const uint4 *b = ring.stages + ring.used * STAGE_QUADS + ROWS * LINE_QUADS;
        begin_products();
#pragma unroll
        for (int step = 0; step < LINE_QUADS / STEP_QUADS; ++step) multiply_b1(c, a, b, step);
        close_products();
        await_products<1>();
        ring.advance();
        ++chunk;
    }
    await_products<0>();
    settle(c);
}

// Returns the sums of two columns of tile n, over all planes of B.
DEVICE_INLINE int2 pair_of(const Sums &c, int n, int r) {
    unsigned sums[2] = {};
#pragma unroll
    for (int j = 0; j < Config::b_planes; ++j) {
        const int at = (n * Config::b_planes + j) * 4 + r;
        sums[0] += unsigned(c[at]) << j;
        sums[1] += unsigned(c[at + 1]) << j;
    }
    return make_int2(int(sums[0]), int(sums[1]));
}

// Writes a warp's sums to rows whose length is no multiple of 16 bytes.
DEVICE_INLINE void write_unaligned(const Sums &c, int *__restrict__ out, int first_row,
                                   int first_column, int rows, int columns) {
    const int lane = int(threadIdx.x) % WARP_SIZE;
#pragma unroll
    for (int n = 0; n < COLUMN_TILES; ++n) {
#pragma unroll
        for (int r = 0; r < 4; r += 2) {
            const Element at = element_of_c(lane, r);
            const int row = first_row + at.row, column = first_column + n * 8 + at.column;
            const int2 sums = pair_of(c, n, r);
            if (row >= rows || column >= columns) continue;
            out[element(row, column, columns)] = sums.x;
            if (column + 1 < columns) out[element(row, column + 1, columns)] = sums.y;
        }
    }
}

// Stores the sums of tiles first_tile to first_tile + 3 in a warp's `stage` in shared memory.
DEVICE_INLINE void stage_sums(const Sums &c, int *stage, int first_tile) {
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4 && first_tile + i < COLUMN_TILES; ++i) {
#pragma unroll
        for (int r = 0; r < 4; r += 2) {
            const Element at = element_of_c(int(threadIdx.x) % WARP_SIZE, r);
            int *const pair = &stage[at.row * OUT_STRIDE + i * 8 + at.column];
            *reinterpret_cast<int2 *>(pair) = pair_of(c, first_tile + i, r);
        }
    }
    __syncwarp();
}

// Writes a warp's sums through its `stage`, so that rows are written in pieces of 128 bytes.
DEVICE_INLINE void write(const Sums &c, int *__restrict__ out, int *stage, int first_row,
                         int first_column, int rows, int columns) {
    const int lane = int(threadIdx.x) % WARP_SIZE;
    const int quad = lane % 8 * 4, column = first_column + quad;
    int *const to = &out[element(first_row + lane / 8, column, columns)];
#pragma unroll
    for (int n = 0; n < COLUMN_TILES; n += 4) {
        stage_sums(c, stage, n);
        const bool inside = column + n * 8 < columns && quad + n * 8 < COLUMNS;
#pragma unroll
        for (int i = 0; i < 16; i += 4) {
            if (!inside || first_row + lane / 8 + i >= rows) continue;
            *reinterpret_cast<int4 *>(to + element(i, n * 8, columns)) =
                *reinterpret_cast<const int4 *>(&stage[(lane / 8 + i) * OUT_STRIDE + quad]);
        }
    }
}

// Writes the row sums of a tile to shared memory. Eight neighboring threads have the quads of a
// row.
DEVICE_INLINE void write_row_sums(const RowSums &row_sums, int (&rows)[ROWS]) {
#pragma unroll
    for (int i = 0; i < THREAD_QUADS; ++i) {
        unsigned sum = row_sums[i];
#pragma unroll
        for (int apart = 1; apart < LINE_QUADS; apart *= 2) {
            sum += __shfl_xor_sync(ALL_LANES, sum, apart);
        }
        const int quad = int(threadIdx.x) + i * THREADS;
        if (quad % LINE_QUADS == 0) rows[quad / LINE_QUADS] = int(sum);
    }
    __syncthreads();
}

// The result of an epilogue: float32 of rows x columns, or bits.
struct Finished {
    Epilogue epilogue;
    void *__restrict__ out;
    Planes planes;
    float low, step;
    int rows, columns;

    // Writes 16 rows and 32 columns of a warp, whose sums are in its `stage`. A lane has a column.
    DEVICE_INLINE void write(const int *stage, const int *row_sums, int first_row, int first_column,
                             int width) const {
        const int lane = int(threadIdx.x) % WARP_SIZE, column = first_column + lane;
        int clipped = 0;
        unsigned levels[16];
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            const int row = first_row + i;
            const bool inside = row < rows && column < columns && lane < width;
            const float value =
                inside ? epilogue.value(stage[i * OUT_STRIDE + lane], row_sums[i], row, column)
                       : 0.0f;
            if (Config::output == 1) {
                if (inside) static_cast<float *>(out)[element(row, column, columns)] = value;
            } else {
                levels[i] = inside ? level_of(value, low, step, planes.bits, clipped) : 0u;
            }
        }
        if (Config::output == 1) return;
        for (int plane = 0; plane < planes.bits; ++plane) {
            if (Config::along_columns) {
                write_words(levels, plane, first_row, first_column / 32);
            } else if (column < planes.lines && first_row / 32 < planes.words) {
                unsigned half = 0;
#pragma unroll
                for (int i = 0; i < 16; ++i) half |= (levels[i] >> plane & 1u) << i;
                const long long word = planes.at(plane, column, first_row / 32);
                static_cast<unsigned short *>(out)[2 * word + first_row / 16 % 2] =
                    (unsigned short)half;
            }
        }
    }

    // Writes a word of each of 16 rows.
    DEVICE_INLINE void write_words(const unsigned (&levels)[16], int plane, int first_row,
                                   int word) const {
        const int lane = int(threadIdx.x) % WARP_SIZE;
        unsigned lane_word = 0;  // of row first_row + lane
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            const unsigned votes = __ballot_sync(ALL_LANES, levels[i] >> plane & 1u);
            if (i == lane) lane_word = votes;
        }
        if (lane < 16 && first_row + lane < planes.lines && word < planes.words) {
            static_cast<unsigned *>(out)[planes.at(plane, first_row + lane, word)] = lane_word;
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    warpgroup(const uint4 *__restrict__ A, const uint4 *__restrict__ B, void *__restrict__ out,
              const float *__restrict__ alpha, const float *__restrict__ beta,
              const float *__restrict__ gamma, const float *__restrict__ row_scale, int rows,
              int columns, int words, int a_bits, int a_lines, int b_bits, int b_lines, float low,
              float step, int out_bits, int out_lines, int out_words,
              const __grid_constant__ TensorMap map_of_a,
              const __grid_constant__ TensorMap map_of_b) {
    RECORD_WARP;
    DYNAMIC_SHARED(uint4, memory);
    __shared__ Arrival arrivals[Config::stages];
    __shared__ int tile_row_sums[ROWS];
    const auto unaligned = reinterpret_cast<unsigned long long>(memory);
    uint4 *const stages =
        memory + (LINES_ALIGNMENT - unaligned % LINES_ALIGNMENT) % LINES_ALIGNMENT / sizeof(uint4);
    const int warp = int(threadIdx.x) / WARP_SIZE;
    // Bits have padding, which is zero: sums beyond the result are, too.
    const int packed = Config::output == 2 ? out_words * 32 : 0;
    const int across = ceil_div(max(columns, Config::along_columns ? packed : 0), COLUMNS);
    const int down = ceil_div(max(rows, Config::along_columns ? 0 : packed), ROWS);
    Ring ring = {stages,
                 arrivals,
                 A,
                 B,
                 {a_bits, a_lines, words},
                 {b_bits, b_lines, words},
                 map_of_a,
                 map_of_b,
                 ceil_div(words / 4, LINE_QUADS),
                 across,
                 down * across,
                 {int(blockIdx.x), Config::a_planes - 1, 0},
                 0,
                 0,
                 0};
    const Finished finished = {{alpha, beta, gamma, row_scale},
                               out,
                               {out_bits, out_lines, out_words},
                               low,
                               step,
                               rows,
                               columns};
    int *const stage = reinterpret_cast<int *>(stages + Config::stages * STAGE_QUADS);
    ring.begin();
#pragma unroll 1
    for (int tile = int(blockIdx.x); tile < ring.tiles; tile += int(gridDim.x)) {
        Sums c = {};
        RowSums row_sums = {};
#pragma unroll 1
        for (int plane = Config::a_planes - 1; plane >= 0; --plane) {
            if (plane < Config::a_planes - 1) {
#pragma unroll
                for (int i = 0; i < Config::halves * GROUP_SUMS; ++i) {
                    c[i] = int(unsigned(c[i]) << 1);
                }
            }
            multiply_plane(c, ring, plane, row_sums);
        }
        const int first_row = tile / across * ROWS + warp * 16;
        const int first_column = tile % across * COLUMNS;
        int *const warp_stage = stage + warp * OUT_INTS;
        if constexpr (Config::output != 0) {
            write_row_sums(row_sums, tile_row_sums);
#pragma unroll
            for (int n = 0; n < COLUMN_TILES; n += 4) {
                stage_sums(c, warp_stage, n);
                finished.write(warp_stage, &tile_row_sums[warp * 16], first_row,
                               first_column + n * 8, COLUMNS - n * 8);
            }
        } else if (columns % 4) {
            write_unaligned(c, static_cast<int *>(out), first_row, first_column, rows, columns);
        } else {
            write(c, static_cast<int *>(out), warp_stage, first_row, first_column, rows, columns);
        }
    }
}
