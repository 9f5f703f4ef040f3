// Our own SpMM, from Accel-GCN's block-level partition (kernels/spmm/accel_gcn.cu): Y = A X, fp32,
// rows in ascending order of degree.
//
// As there, one int4 describes a block: rows of one degree, or a part of one row that is longer
// than deg_bound. What is done otherwise, each by a constant or a function of its own:
//   - `lanes` lanes, not a whole number of warps, are the subwarp that handles a row: they cover
//     its columns with vectors of `vector` columns each, so that narrow features leave no lane
//     idle;
//   - the nonzeros of a block lie side by side, so the block loads them all at once, coalesced,
//     into shared memory. Then nothing is left to wait for but X itself;
//   - each lane has the loads of at_once nonzeros on their way: of one long row (`run`), or of
//     several short ones (`whole_rows`);
//   - a block writes all its rows, those without a nonzero too, and each part of a cut row leaves
//     its sums in memory, where the last of them to arrive adds all up, part by part: so Y need not
//     be cleared, and is the same to the last bit each time;
//   - blocks come in the order in which their rows stand in the graph, not of their degree (the
//     plan sees to it), and wide features in tiles, one after the other: so X stays in the caches.
//
// grid  = (blocks in the metadata, tiles of TILE_VECTORS vectors of columns)
// block = `groups` subwarps of `lanes` threads, rounded up to whole warps

// The plan supplies, at compile time:
//   vector          neighboring columns that a lane reads as one: 1, 2, 4 or 8, a divisor of n_cols
//   features        what an element of X is stored in: 0 float32, 1 float16, 2 bfloat16
//   lanes           lanes of a group, 1 to 32
//   lane_vectors    vectors of a lane, lanes apart
//   whole_tiles     1 if the columns fill every lane of every tile, else 0
//   groups          groups of a block
//   block_threads   threads of a block: groups * lanes rounded up to whole warps
//   deg_bound       most nonzeros of a row that one block handles alone
//   stage           1 if a block loads its nonzeros into shared memory first, else 0
//   staged          most nonzeros of a block
//   at_once         nonzeros whose vectors of X a lane has on their way at once
//   blocks_per_sm   blocks that an SM should have room for, which bounds the registers
//   info_field_bits width of the low field of the metadata's info word
//   accumulate      1 if the product is added to what Y holds, which is written before, else 0

#include "common.cuh"
#include "features.cuh"
#include "lane_blocks.cuh"

constexpr int TILE_VECTORS = Config::lanes * Config::lane_vectors;  // that a group covers
constexpr int STAGE_BYTES = int(Config::staged * sizeof(int2));
constexpr int PARTIAL_BYTES = int(Config::groups * TILE_VECTORS * sizeof(Vector));
constexpr int SHARED_VECTORS = (STAGE_BYTES > PARTIAL_BYTES ? STAGE_BYTES : PARTIAL_BYTES) / 16 + 1;

// Where a thread is: its group, and the columns that it covers.
struct Place {
    int group, lane;
    bool busy;    // threads beyond the last group only help to load and to add up
    int vectors;  // of this tile
    int stride;   // vectors of a row of X

    DEVICE_INLINE bool has(int i) const {
        return Config::whole_tiles || lane + i * Config::lanes < vectors;
    }
    DEVICE_INLINE long long vector(int row, int i) const {
        return (long long)row * stride + lane + i * Config::lanes;
    }
};

// The nonzeros of the block, each its column and the bits of its value: in shared memory, or where
// the plan has them.
template <bool in_shared_memory>
struct NonzerosOf {
    const int2 *staged;

    // All threads of the block load them together.
    static DEVICE_INLINE NonzerosOf load(int2 *stage, const int *__restrict__ columns,
                                         const float *__restrict__ values, int count) {
#pragma unroll 2  // more would cost registers, of which there are few
        for (int i = threadIdx.x; i < count; i += Config::block_threads) {
            stage[i] = make_int2(__ldcs(&columns[i]), __float_as_int(__ldcs(&values[i])));
        }
        __syncthreads();
        return {stage};
    }
    DEVICE_INLINE int2 operator[](int k) const {
        return staged[k];
    }
};
template <>
struct NonzerosOf<false> {
    const int *__restrict__ columns;
    const float *__restrict__ values;

    static DEVICE_INLINE NonzerosOf load(int2 *, const int *__restrict__ columns,
                                         const float *__restrict__ values, int) {
        return {columns, values};
    }
    DEVICE_INLINE int2 operator[](int k) const {
        return make_int2(columns[k], __float_as_int(values[k]));
    }
};
using Nonzeros = NonzerosOf<Config::stage>;

// One of them; where a lane has none, the column is -1.
DEVICE_INLINE int2 nonzero(const Nonzeros &nonzeros, int position, bool exists) {
    return exists ? nonzeros[position] : make_int2(-1, 0);
}

DEVICE_INLINE Stored gathered(const Stored *__restrict__ X, const Place &place, int2 nonzero,
                              int i) {
    return nonzero.x >= 0 && place.has(i) ? __ldg(&X[place.vector(nonzero.x, i)]) : Stored{};
}

// Writes the sums of some columns of a row. Y is not read again: it should not push X out of the
// caches.
DEVICE_INLINE void emit(Vector *to, Vector sum) {
    if (Config::accumulate) add(sum, *to);
    stream(to, sum);
}

// Sums rows that have a group each, ROWS rows of a group at a time and NZS nonzeros of each:
// all loads of X are on their way before the first product.
template <int ROWS, int NZS>
DEVICE_INLINE void whole_rows(const Nonzeros &nonzeros, const Stored *__restrict__ X,
                              Vector *__restrict__ Y, const int *__restrict__ output_rows,
                              const Block &block, const Place &place) {
    const int degree = block.row_nzs;
    for (int first = place.group; first < block.rows; first += Config::groups * ROWS) {
        Vector sums[ROWS][Config::lane_vectors] = {};
        for (int k = 0; k < degree; k += NZS) {
            int2 slot[ROWS][NZS];
            Stored x[ROWS][NZS][Config::lane_vectors];
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const int row = first + r * Config::groups;
#pragma unroll
                for (int j = 0; j < NZS; ++j) {
                    const bool exists = row < block.rows && k + j < degree;
                    slot[r][j] = nonzero(nonzeros, row * degree + k + j, exists);
                }
            }
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
#pragma unroll
                for (int j = 0; j < NZS; ++j) {
#pragma unroll
                    for (int i = 0; i < Config::lane_vectors; ++i) {
                        x[r][j][i] = gathered(X, place, slot[r][j], i);
                    }
                }
            }
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
#pragma unroll
                for (int j = 0; j < NZS; ++j) {
#pragma unroll
                    for (int i = 0; i < Config::lane_vectors; ++i) {
                        add_product(sums[r][i], __int_as_float(slot[r][j].y), x[r][j][i]);
                    }
                }
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const int row = first + r * Config::groups;
            if (row >= block.rows) break;
            const int output_row = output_rows[row];
#pragma unroll
            for (int i = 0; i < Config::lane_vectors; ++i) {
                if (place.has(i)) emit(&Y[place.vector(output_row, i)], sums[r][i]);
            }
        }
    }
}

// Sums staged nonzeros begin..end-1.
DEVICE_INLINE void run(const Nonzeros &nonzeros, const Stored *__restrict__ X, const Place &place,
                       int begin, int end, Vector (&sums)[Config::lane_vectors]) {
    for (int k = begin; k < end; k += Config::at_once) {
        int2 slot[Config::at_once];
        Stored x[Config::at_once][Config::lane_vectors];
#pragma unroll
        for (int j = 0; j < Config::at_once; ++j) slot[j] = nonzero(nonzeros, k + j, k + j < end);
#pragma unroll
        for (int j = 0; j < Config::at_once; ++j) {
#pragma unroll
            for (int i = 0; i < Config::lane_vectors; ++i) x[j][i] = gathered(X, place, slot[j], i);
        }
#pragma unroll
        for (int j = 0; j < Config::at_once; ++j) {
#pragma unroll
            for (int i = 0; i < Config::lane_vectors; ++i) {
                add_product(sums[i], __int_as_float(slot[j].y), x[j][i]);
            }
        }
    }
}

// Rows that have a group each.
DEVICE_INLINE void rows_alone(const Nonzeros &nonzeros, const Stored *__restrict__ X,
                              Vector *__restrict__ Y, const int *__restrict__ output_rows,
                              const Block &block, const Place &place) {
    if (block.row_nzs <= 1) {
        whole_rows<Config::at_once, 1>(nonzeros, X, Y, output_rows, block, place);
    } else if (block.row_nzs == 2) {
        whole_rows<(Config::at_once + 1) / 2, 2>(nonzeros, X, Y, output_rows, block, place);
    } else {
        whole_rows<1, Config::at_once>(nonzeros, X, Y, output_rows, block, place);
    }
}

// Leaves the sums of groups that share a row in shared memory, where the nonzeros were.
DEVICE_INLINE void leave_sums(const Nonzeros &nonzeros, const Stored *__restrict__ X,
                              const Block &block, const Place &place, int groups_per_row,
                              Vector *partial) {
    const int row = place.group / groups_per_row;
    const bool working = place.busy && row < block.rows;
    Vector sums[Config::lane_vectors] = {};
    if (working) {
        const int begin = place.group % groups_per_row * block.group_nzs;
        const int end = min(begin + block.group_nzs, block.row_nzs);
        run(nonzeros, X, place, row * block.row_nzs + begin, row * block.row_nzs + end, sums);
    }
    __syncthreads();
    if (working) {
#pragma unroll
        for (int i = 0; i < Config::lane_vectors; ++i) {
            const int slot = place.group * TILE_VECTORS + place.lane + i * Config::lanes;
            if (place.has(i)) partial[slot] = sums[i];
        }
    }
    __syncthreads();
}

// Adds up the groups of each row, to Y or, of a cut row, to the part's row of `part_sums`.
DEVICE_INLINE void add_groups(const Vector *partial, Vector *__restrict__ Y,
                              const int *__restrict__ output_rows, float *part_sums,
                              const Block &block, const Place &place, int groups_per_row,
                              int n_cols) {
    for (int i = threadIdx.x; i < block.rows * place.vectors; i += Config::block_threads) {
        const int row = i / place.vectors, vector = i % place.vectors;
        Vector sum = {};
        for (int g = 0; g < groups_per_row; ++g) {
            add(sum, partial[(row * groups_per_row + g) * TILE_VECTORS + vector]);
        }
        if (!block.cut) {
            emit(&Y[(long long)output_rows[row] * place.stride + vector], sum);
        } else {
#pragma unroll
            for (int j = 0; j < Config::vector; ++j) {
                part_sums[element(block.part, vector * Config::vector + j, n_cols)] = part(sum, j);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(Config::block_threads, Config::blocks_per_sm)
    lane_groups(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
                const int *__restrict__ columns, const float *__restrict__ values,
                const Feature *__restrict__ X, float *__restrict__ Y, float *part_sums,
                unsigned *arrivals, int n_cols) {
    RECORD_WARP;
    // First the nonzeros, then, once all are read, the sums of the groups that share a row.
    __shared__ int4 memory[SHARED_VECTORS];
    __shared__ bool is_last;

    const Block block = decode(metadata[blockIdx.x]);
    const int tile = blockIdx.y * TILE_VECTORS;
    const int group = int(threadIdx.x) / Config::lanes;
    const Place place = {group, int(threadIdx.x) % Config::lanes, group < Config::groups,
                         min(TILE_VECTORS, n_cols / Config::vector - tile),
                         n_cols / Config::vector};
    const Stored *__restrict__ features = reinterpret_cast<const Stored *>(X) + tile;
    Vector *__restrict__ result = reinterpret_cast<Vector *>(Y) + tile;
    output_rows += block.first_row;
    const Nonzeros nonzeros =
        Nonzeros::load(reinterpret_cast<int2 *>(memory), columns + block.first_nz,
                       values + block.first_nz, block.rows * block.row_nzs);

    if (!block.cut && block.row_nzs <= block.group_nzs) {
        if (place.busy) rows_alone(nonzeros, features, result, output_rows, block, place);
        return;
    }
    const int groups_per_row = ceil_div(block.row_nzs, block.group_nzs);
    Vector *partial = reinterpret_cast<Vector *>(memory);
    leave_sums(nonzeros, features, block, place, groups_per_row, partial);
    const int first_part = int(blockIdx.x) - block.part;  // a row of `part_sums` for each part
    part_sums += element(first_part, tile * Config::vector, n_cols);
    add_groups(partial, result, output_rows, part_sums, block, place, groups_per_row, n_cols);
    if (!block.cut) return;

    // Each part comes here; the last one adds all up in their order, the same bits each time.
    unsigned *arrived = &arrivals[first_part * gridDim.y + blockIdx.y];
    if (!is_last_block(is_last, arrived, block.parts)) return;
    float *out = reinterpret_cast<float *>(&result[(long long)output_rows[0] * place.stride]);
    for (int column = threadIdx.x; column < place.vectors * Config::vector;
         column += Config::block_threads) {
        float sum = 0.0f;
#pragma unroll 4
        for (int p = 0; p < block.parts; ++p) {
            sum += __ldcg(&part_sums[element(p, column, n_cols)]);
        }
        out[column] = Config::accumulate ? out[column] + sum : sum;
    }
}
