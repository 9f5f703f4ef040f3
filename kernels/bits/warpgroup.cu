// Product of bit matrices on Hopper's tensor cores, for wide results: warpgroups multiply operands
// in shared memory, faster than `mma` can. Integers: Y = sum over planes of (A_i B_j) << (i + j).
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
//   stages               chunks of K in shared memory, being copied or multiplied
//   jump                 1 to skip tiles of A that are zero, else 0

#include "tensor_copy.cuh"

constexpr int THREADS = Config::groups * GROUP_WARPS * WARP_SIZE;
constexpr int ROWS = Config::groups * GROUP_ROWS;
constexpr int LINES = Config::halves * GROUP_LINES;  // lines of B in a stage, all planes
constexpr int COLUMN_TILES = Config::halves * GROUP_TILES / Config::b_planes;
constexpr int COLUMNS = COLUMN_TILES * 8;
constexpr int STAGE_QUADS = (ROWS + LINES) * LINE_QUADS;
constexpr int BOX_QUADS = (ROWS + COLUMNS * Config::b_planes) * LINE_QUADS;  // copied per stage
constexpr int OUT_STRIDE = 40;  // ints between rows of 32 sums on their way out, without conflicts
constexpr int OUT_INTS = 16 * OUT_STRIDE;  // of a warp

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

    // Waits for the next stage. Returns true if its tile of A is zero and may be skipped.
    DEVICE_INLINE bool wait_for_empty() const {
        await_arrival(&arrivals[used], round);
        if constexpr (!Config::jump) return false;
        const uint4 *own = stages + used * STAGE_QUADS + int(threadIdx.x);
        unsigned any = 0;
#pragma unroll
        for (int i = 0; i < ROWS * LINE_QUADS; i += THREADS) {
            any |= own[i].x | own[i].y | own[i].z | own[i].w;
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

// Adds the products of all chunks of a plane of A.
DEVICE_INLINE void multiply_plane(Sums &c, Ring &ring) {
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

// Writes a warp's sums. Four tiles at a time go through the warp's `stage` in shared memory, so
// that rows are written in pieces of 128 bytes.
DEVICE_INLINE void write(const Sums &c, int *__restrict__ out, int *stage, int first_row,
                         int first_column, int rows, int columns) {
    const int lane = int(threadIdx.x) % WARP_SIZE;
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
                int *const pair = &stage[at.row * OUT_STRIDE + i * 8 + at.column];
                *reinterpret_cast<int2 *>(pair) = pair_of(c, n + i, r);
            }
        }
        __syncwarp();
        const bool inside = column + n * 8 < columns && quad + n * 8 < COLUMNS;
#pragma unroll
        for (int i = 0; i < 16; i += 4) {
            if (!inside || first_row + lane / 8 + i >= rows) continue;
            *reinterpret_cast<int4 *>(to + element(i, n * 8, columns)) =
                *reinterpret_cast<const int4 *>(&stage[(lane / 8 + i) * OUT_STRIDE + quad]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    warpgroup(const uint4 *__restrict__ A, const uint4 *__restrict__ B, int *__restrict__ out,
              int rows, int columns, int words, int a_bits, int a_lines, int b_bits, int b_lines,
              const __grid_constant__ TensorMap map_of_a,
              const __grid_constant__ TensorMap map_of_b) {
    RECORD_WARP;
    DYNAMIC_SHARED(uint4, memory);
    __shared__ Arrival arrivals[Config::stages];
    const auto unaligned = reinterpret_cast<unsigned long long>(memory);
    uint4 *const stages =
        memory + (LINES_ALIGNMENT - unaligned % LINES_ALIGNMENT) % LINES_ALIGNMENT / sizeof(uint4);
    const int warp = int(threadIdx.x) / WARP_SIZE, across = ceil_div(columns, COLUMNS);
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
                 ceil_div(rows, ROWS) * across,
                 {int(blockIdx.x), Config::a_planes - 1, 0},
                 0,
                 0,
                 0};
    ring.begin();
#pragma unroll 1
    for (int tile = int(blockIdx.x); tile < ring.tiles; tile += int(gridDim.x)) {
        Sums c = {};
#pragma unroll 1
        for (int plane = 0; plane < Config::a_planes; ++plane) {
            if (plane) {
#pragma unroll
                for (int i = 0; i < Config::halves * GROUP_SUMS; ++i) {
                    c[i] = int(unsigned(c[i]) << 1);
                }
            }
            multiply_plane(c, ring);
        }
        const int first_row = tile / across * ROWS + warp * 16;
        const int first_column = tile % across * COLUMNS;
        if (columns % 4) {
            write_unaligned(c, out, first_row, first_column, rows, columns);
        } else {
            int *const stage = reinterpret_cast<int *>(stages + Config::stages * STAGE_QUADS);
            write(c, out, stage + warp * OUT_INTS, first_row, first_column, rows, columns);
        }
    }
}
