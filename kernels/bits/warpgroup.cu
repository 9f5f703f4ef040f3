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

// Sums of the lane's rows of A: products with eight lines of ones.
using RowSums = int[4];

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
    uint4 *ones;  // eight lines
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
        if (Config::output && threadIdx.x < 8 * LINE_QUADS) {
            ones[threadIdx.x] = make_uint4(~0u, ~0u, ~0u, ~0u);
        }
        show_to_products();
        if (asks_engine()) prepare(arrivals, Config::stages);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < Config::stages - 1; ++i) fetch();
    }

    // Waits for the next stage. Returns true if its tile of A is zero and may be skipped.
    DEVICE_INLINE bool wait_for_empty() const {
        await_arrival(&arrivals[used], round);
        if constexpr (!Config::jump) return false;
        const uint4 *own = stages + used * STAGE_QUADS + int(threadIdx.x);
        unsigned any = 0;
#pragma unroll
        for (int i = 0; i < THREAD_QUADS; ++i) {
            const uint4 quad = own[i * THREADS];
            any |= quad.x | quad.y | quad.z | quad.w;
        }
        return !__syncthreads_or(any != 0);
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

// Adds the products of all chunks of a plane of A; for an epilogue also the sums of its rows.
DEVICE_INLINE void multiply_plane(Sums &c, RowSums &row_sums, Ring &ring) {
    const int group = int(threadIdx.x) / WARP_SIZE / GROUP_WARPS;
    int chunk = 0;
#pragma unroll 1
    for (;;) {
        // A branch around products would serialize them. Therefore this loop first finds the next
        // chunk that is not skipped.
#pragma unroll 1
        for (; chunk < ring.chunks && ring.wait_for_empty(); ++chunk) {
            await_products<0>();
            ring.advance();
        }
        if (chunk == ring.chunks) break;
        const uint4 *a = ring.stages + ring.used * STAGE_QUADS + group * GROUP_ROWS * LINE_QUADS;
        const uint4 *b = ring.stages + ring.used * STAGE_QUADS + ROWS * LINE_QUADS;
        begin_products();
#pragma unroll
        for (int step = 0; step < LINE_QUADS / STEP_QUADS; ++step) {
            multiply_b1(c, a, b, step);
            if (Config::output) multiply_b1(row_sums, a, ring.ones, step);
        }
        close_products();
        await_products<1>();
        ring.advance();
        ++chunk;
    }
    await_products<0>();
    settle(c);
    settle(row_sums);
}

// Doubles sums, of planes of A so far.
template <int COUNT>
DEVICE_INLINE void double_sums(int (&sums)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) sums[i] = int(unsigned(sums[i]) << 1);
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

// Returns the OR of a value of every lane with an equal rest.
template <int RANGE>
DEVICE_INLINE unsigned or_of(unsigned value, int apart) {
#pragma unroll
    for (int i = 1; i < RANGE; i *= 2) value |= __shfl_xor_sync(ALL_LANES, value, i * apart);
    return value;
}

// Returns a word whose first `count` bits are ones.
DEVICE_INLINE unsigned first_ones(int count) {
    return count >= 32 ? ~0u : (1u << max(count, 0)) - 1u;
}

// The result of an epilogue: float32 of rows x columns, or bits. A lane has the sums of two rows,
// eight apart, and of two neighboring columns of each tile of eight.
struct Finished {
    Epilogue epilogue;
    void *__restrict__ out;
    Planes planes;
    Quantizer quantizer;

    using Levels = unsigned[4][4];  // of four tiles: of the columns of a row, and of the other row

    // Writes 16 rows of a warp. The lane's rows begin at `row`, and a tile's columns at `column`;
    // `coefficients` are those of the tile's pairs of columns.
    DEVICE_INLINE void write(const Sums &c, const float2 (*coefficients)[COLUMNS / 2],
                             const int (&row_sums)[2], const float (&scales)[2], int row,
                             int column) const {
#pragma unroll
        for (int first = 0; first < COLUMN_TILES; first += 4) {
            Levels levels = {};
#pragma unroll
            for (int n = 0; n < 4 && first + n < COLUMN_TILES; ++n) {
                const int at = column + (first + n) * 8;
                const int pair = (first + n) * 4 + int(threadIdx.x) % 4;
                const float2 alpha = coefficients[0][pair], beta = coefficients[1][pair],
                             gamma = coefficients[2][pair];
                const Epilogue::Column columns[2] = {{alpha.x, beta.x, gamma.x},
                                                     {alpha.y, beta.y, gamma.y}};
#pragma unroll
                for (int r = 0; r < 4; r += 2) {
                    const int2 sums = pair_of(c, first + n, r);
                    const int row_sum = row_sums[r / 2];
                    const float scale = scales[r / 2];
                    const float2 values = {Epilogue::value(sums.x, row_sum, scale, columns[0]),
                                           Epilogue::value(sums.y, row_sum, scale, columns[1])};
                    if (Config::output == 2) {
                        levels[n][r] = quantizer.level(values.x);
                        levels[n][r + 1] = quantizer.level(values.y);
                    } else if (row + 4 * r < epilogue.rows && at < epilogue.columns) {
                        write_pair(values, row + 4 * r, at);
                    }
                }
            }
            if (Config::output == 1) continue;
            const int word_column = (column / 8 + first) * 8;
            if (word_column >= epilogue.columns) continue;
            for (int plane = 0; plane < planes.bits; ++plane) {
                if (Config::along_columns) {
                    write_words(levels, plane, row, word_column);
                } else {
                    write_halves(levels, plane, row, word_column);
                }
            }
        }
    }

    // Writes two columns of a row at once if all rows begin at a multiple of 8 bytes: four lanes
    // write a whole sector.
    DEVICE_INLINE void write_pair(float2 values, int row, int column) const {
        float *const to = &static_cast<float *>(out)[element(row, column, epilogue.columns)];
        if (epilogue.columns % 2 == 0) {
            *reinterpret_cast<float2 *>(to) = values;
            return;
        }
        to[0] = values.x;
        if (column + 1 < epilogue.columns) to[1] = values.y;
    }

    // Writes the words of 32 columns of the lane's rows; zeros follow the last word of a line.
    DEVICE_INLINE void write_words(const Levels &levels, int plane, int row, int column) const {
        const int lane = int(threadIdx.x) % WARP_SIZE, word = column / 32;
#pragma unroll
        for (int r = 0; r < 4; r += 2) {
            unsigned bits = 0;
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                bits |= (levels[n][r] >> plane & 1u) << n * 8;
                bits |= (levels[n][r + 1] >> plane & 1u) << (n * 8 + 1);
            }
            bits = or_of<4>(bits << lane % 4 * 2, 1);
            const int line = row + 4 * r;
            if (lane % 4 != r || line >= planes.lines) continue;
            unsigned *const to = &static_cast<unsigned *>(out)[planes.at(plane, line, word)];
            *to = line < epilogue.rows ? bits & first_ones(epilogue.columns - column) : 0u;
#pragma unroll 1
            for (int i = word + 1; column + 32 >= epilogue.columns && i < planes.words; ++i) {
                to[i - word] = 0;
            }
        }
    }

    // Writes 16 bits, of the warp's rows, of each of 32 columns.
    DEVICE_INLINE void write_halves(const Levels &levels, int plane, int row, int column) const {
        const int lane = int(threadIdx.x) % WARP_SIZE, first_row = row - lane / 4;
        const unsigned inside = first_ones(epilogue.rows - first_row);
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            unsigned bits = 0;  // of two columns
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                bits |= (levels[n][r] >> plane & 1u) << (r / 2 * 8 + r % 2 * 16);
            }
            bits = or_of<8>(bits << lane / 4, 4);
            const int line = column + n * 8 + lane % 4 * 2 + lane / 4 % 2;
            if (lane / 8 != n || line >= planes.lines) continue;
            const unsigned half = lane / 4 % 2 ? bits >> 16 : bits & 0xffffu;
            const long long word = planes.at(plane, line, first_row / 32);
            static_cast<unsigned short *>(out)[2 * word + first_row / 16 % 2] =
                (unsigned short)(line < epilogue.columns ? half & inside : 0u);
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
    __shared__ float2 tile_coefficients[3][COLUMNS / 2];
    const auto unaligned = reinterpret_cast<unsigned long long>(memory);
    uint4 *const stages =
        memory + (LINES_ALIGNMENT - unaligned % LINES_ALIGNMENT) % LINES_ALIGNMENT / sizeof(uint4);
    const int warp = int(threadIdx.x) / WARP_SIZE;
    const int across = ceil_div(columns, COLUMNS);
    uint4 *const after_stages = stages + Config::stages * STAGE_QUADS;
    Ring ring = {stages,
                 after_stages,
                 arrivals,
                 A,
                 B,
                 {a_bits, a_lines, words},
                 {b_bits, b_lines, words},
                 map_of_a,
                 map_of_b,
                 ceil_div(words / 4, LINE_QUADS),
                 across,
                 ceil_div(rows, ROWS) * across,
                 {int(blockIdx.x), Config::a_planes - 1, 0},
                 0,
                 0,
                 0};
    const Finished finished = {{alpha, beta, gamma, row_scale, rows, columns},
                               out,
                               {out_bits, out_lines, out_words},
                               Quantizer(low, step, out_bits)};
    int *const stage = reinterpret_cast<int *>(after_stages);
    ring.begin();
#pragma unroll 1
    for (int tile = int(blockIdx.x); tile < ring.tiles; tile += int(gridDim.x)) {
        Sums c = {};
        RowSums row_sums = {};
        const int first_row = tile / across * ROWS + warp * 16;
        const int first_column = tile % across * COLUMNS;
        const Element lane_c = element_of_c(int(threadIdx.x) % WARP_SIZE, 0);
        // Loaded in advance: a column's coefficients, and those of the lane's rows.
        static_assert(COLUMNS <= THREADS, "a thread has a column");
        const auto coefficients = Config::output && int(threadIdx.x) < COLUMNS
                                      ? finished.epilogue.column(first_column + int(threadIdx.x))
                                      : Epilogue::Column{};
        float scales[2] = {};
#pragma unroll
        for (int i = 0; i < 2 && Config::output; ++i) {
            scales[i] = finished.epilogue.scale(first_row + lane_c.row + 8 * i);
        }
#pragma unroll 1
        for (int plane = Config::a_planes - 1; plane >= 0; --plane) {
            if (plane < Config::a_planes - 1) {
                double_sums(c);
                double_sums(row_sums);
            }
            multiply_plane(c, row_sums, ring);
        }
        int *const warp_stage = stage + warp * OUT_INTS;
        if constexpr (Config::output != 0) {
            __syncthreads();  // all threads have read those of the tile before
            if (int(threadIdx.x) < COLUMNS) {
                const float numbers[3] = {coefficients.alpha, coefficients.beta,
                                          coefficients.gamma};
#pragma unroll
                for (int i = 0; i < 3; ++i) {
                    reinterpret_cast<float *>(tile_coefficients[i])[threadIdx.x] = numbers[i];
                }
            }
            __syncthreads();
            finished.write(c, tile_coefficients, {row_sums[0], row_sums[2]}, scales,
                           first_row + lane_c.row, first_column + lane_c.column);
        } else if (columns % 4) {
            write_unaligned(c, static_cast<int *>(out), first_row, first_column, rows, columns);
        } else {
            write(c, static_cast<int *>(out), warp_stage, first_row, first_column, rows, columns);
        }
    }
}
