// Our SpMM, derived from Accel-GCN's block-level partition scheme (kernels/spmm/accel_gcn.cu):
// Y = A X, fp32, rows in ascending order of degree.
//
// As there, one int4 describes a block: rows of one degree, or a part of one row that is longer
// than deg_bound. The differences, each controlled by a constant or contained in a function:
//   - A row is handled by a subwarp of `lanes` lanes, not by whole warps. The lanes cover its
//     columns with vectors of `vector` columns, so that narrow features leave no lane idle.
//   - The nonzeros of a block are contiguous, so the block loads them into shared memory together,
//     coalesced. Afterwards only loads of X have a long latency.
//   - Each lane starts the loads of at_once nonzeros together: of one long row (`run`), or of
//     several short rows (`whole_rows`).
//   - A block writes all its rows, also empty ones. Each part of a split row stores its sums in
//     global memory, and the last part to finish adds all of them in order: Y need not be zeroed,
//     and is identical in every run.
//   - Blocks are in the order of their rows in the graph, not of their degree (the plan arranges
//     this), and wide features are processed tile by tile: X stays in the caches.
//
// grid  = (blocks in the metadata, tiles of TILE_VECTORS vectors of columns)
// block = `groups` subwarps of `lanes` threads, rounded up to whole warps

// The plan supplies, at compile time:
//   vector          neighboring columns per load of a lane: 1, 2, 4 or 8, a divisor of n_cols
//   features        storage type of X: 0 float32, 1 float16, 2 bfloat16
//   lanes           lanes of a subwarp, 1 to 32
//   lane_vectors    vectors of a lane, lanes apart
//   whole_tiles     1 if the columns fill every lane of every tile, else 0
//   groups          subwarps of a block
//   block_threads   threads of a block: groups * lanes rounded up to whole warps
//   deg_bound       most nonzeros of a row that one block handles alone
//   stage           1 if a block loads its nonzeros into shared memory first, else 0
//   staged          most nonzeros of a block
//   at_once         nonzeros whose vectors of X a lane loads together
//   blocks_per_sm   blocks that must fit on an SM; bounds the registers
//   info_field_bits width of the low field of the metadata's info word
//   accumulate      1 if the product is added to Y, which must be initialized, else 0

#include "common.cuh"
#include "features.cuh"
#include "lane_blocks.cuh"

constexpr int TILE_VECTORS = Config::lanes * Config::lane_vectors;  // vectors of a subwarp
constexpr int STAGE_BYTES = int(Config::staged * sizeof(int2));
constexpr int PARTIAL_BYTES = int(Config::groups * TILE_VECTORS * sizeof(Vector));
constexpr int SHARED_VECTORS = (STAGE_BYTES > PARTIAL_BYTES ? STAGE_BYTES : PARTIAL_BYTES) / 16 + 1;

// A thread's subwarp, its lane in it, and the columns that it handles.
struct Place {
    int group, lane;
    bool busy;    // false beyond the last subwarp: such threads only help to load and to add up
    int vectors;  // vectors of this tile
    int stride;   // vectors of a row of X

    DEVICE_INLINE bool has(int i) const {
        return Config::whole_tiles || lane + i * Config::lanes < vectors;
    }
    DEVICE_INLINE long long vector(int row, int i) const {
        return (long long)row * stride + lane + i * Config::lanes;
    }
};

// The value of each nonzero, an array; or with ITEMS, as of accelviz.torch, the weight of its item
// (1 without weights) times the scale of its column. Null pointers are omitted factors.
struct Values {
#ifdef ITEMS
    const unsigned *__restrict__ items;
    const float *__restrict__ weights, *__restrict__ column_scale;

    DEVICE_INLINE float load(long long k, int column) const {
        const float weight = weights ? __ldg(&weights[__ldcs(&items[k])]) : 1.0f;
        return column_scale ? weight * __ldg(&column_scale[column]) : weight;
    }
#else
    const float *__restrict__ values;

    DEVICE_INLINE float load(long long k, int) const {
        return __ldcs(&values[k]);
    }
#endif
};

// The block's nonzeros as (column, bits of the value): in shared memory or in the plan's arrays.
template <bool in_shared_memory>
struct NonzerosOf {
    const int2 *staged;

    // Called by all threads of the block together.
    static DEVICE_INLINE NonzerosOf load(int2 *stage, const int *__restrict__ columns,
                                         const Values &values, unsigned first, int count) {
#pragma unroll 2  // further unrolling would need too many registers
        for (int i = threadIdx.x; i < count; i += Config::block_threads) {
            const long long k = (long long)first + i;
            const int column = __ldcs(&columns[k]);
            stage[i] = make_int2(column, __float_as_int(values.load(k, column)));
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
    Values values;
    long long first;

    static DEVICE_INLINE NonzerosOf load(int2 *, const int *__restrict__ columns,
                                         const Values &values, unsigned first, int) {
        return {columns, values, first};
    }
    DEVICE_INLINE int2 operator[](int k) const {
        const int column = columns[first + k];
        return make_int2(column, __float_as_int(values.load(first + k, column)));
    }
};
using Nonzeros = NonzerosOf<Config::stage>;

// Returns nonzero `position`, or column -1 if it does not exist.
DEVICE_INLINE int2 load_nonzero(const Nonzeros &nonzeros, int position, bool exists) {
    return exists ? nonzeros[position] : make_int2(-1, 0);
}

DEVICE_INLINE Stored load_features(const Stored *__restrict__ X, const Place &place, int2 nonzero,
                                   int i) {
    return nonzero.x >= 0 && place.has(i) ? __ldg(&X[place.vector(nonzero.x, i)]) : Stored{};
}

// The tile's columns of Y, and with ITEMS a scale for each row.
struct Result {
    Vector *__restrict__ Y;
#ifdef ITEMS
    const float *__restrict__ row_scale;

    DEVICE_INLINE float scale(int row) const {
        return row_scale ? __ldg(&row_scale[row]) : 1.0f;
    }
#endif

    // Writes the sums of some columns of a row. Y is streamed, so that it does not evict X from the
    // caches.
    DEVICE_INLINE void emit(int row, long long vector, Vector sum) const {
#ifdef ITEMS
        sum = scaled(sum, scale(row));
#endif
        if (Config::accumulate) add(sum, Y[vector]);
        stream(&Y[vector], sum);
    }
};

// Sums rows that have a subwarp each. A subwarp handles ROWS rows and NZS nonzeros of each at a
// time: all loads of X start before the first product.
template <int ROWS, int NZS>
DEVICE_INLINE void whole_rows(const Nonzeros &nonzeros, const Stored *__restrict__ X,
                              const Result &result, const int *__restrict__ output_rows,
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
                    slot[r][j] = load_nonzero(nonzeros, row * degree + k + j, exists);
                }
            }
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
#pragma unroll
                for (int j = 0; j < NZS; ++j) {
#pragma unroll
                    for (int i = 0; i < Config::lane_vectors; ++i) {
                        x[r][j][i] = load_features(X, place, slot[r][j], i);
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
                if (place.has(i)) result.emit(output_row, place.vector(output_row, i), sums[r][i]);
            }
        }
    }
}

// Sums nonzeros begin to end - 1 of the block.
DEVICE_INLINE void run(const Nonzeros &nonzeros, const Stored *__restrict__ X, const Place &place,
                       int begin, int end, Vector (&sums)[Config::lane_vectors]) {
    for (int k = begin; k < end; k += Config::at_once) {
        int2 slot[Config::at_once];
        Stored x[Config::at_once][Config::lane_vectors];
#pragma unroll
        for (int j = 0; j < Config::at_once; ++j)
            slot[j] = load_nonzero(nonzeros, k + j, k + j < end);
#pragma unroll
        for (int j = 0; j < Config::at_once; ++j) {
#pragma unroll
            for (int i = 0; i < Config::lane_vectors; ++i)
                x[j][i] = load_features(X, place, slot[j], i);
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

// Handles rows that one subwarp each has to itself.
DEVICE_INLINE void process_unshared_rows(const Nonzeros &nonzeros, const Stored *__restrict__ X,
                                         const Result &result, const int *__restrict__ output_rows,
                                         const Block &block, const Place &place) {
    if (block.row_nzs <= 1) {
        whole_rows<Config::at_once, 1>(nonzeros, X, result, output_rows, block, place);
    } else if (block.row_nzs == 2) {
        whole_rows<(Config::at_once + 1) / 2, 2>(nonzeros, X, result, output_rows, block, place);
    } else {
        whole_rows<1, Config::at_once>(nonzeros, X, result, output_rows, block, place);
    }
}

// Stores the sums of subwarps that share a row in shared memory, in place of the nonzeros.
DEVICE_INLINE void store_group_sums(const Nonzeros &nonzeros, const Stored *__restrict__ X,
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

// Adds up the subwarps of each row, to Y, or to the part's row of `part_sums` if the row is split.
DEVICE_INLINE void add_groups(const Vector *partial, const Result &result,
                              const int *__restrict__ output_rows, float *part_sums,
                              const Block &block, const Place &place, int groups_per_row,
                              int n_cols) {
    for (int i = threadIdx.x; i < block.rows * place.vectors; i += Config::block_threads) {
        const int row = i / place.vectors, vector = i % place.vectors;
        Vector sum = {};
        for (int g = 0; g < groups_per_row; ++g) {
            add(sum, partial[(row * groups_per_row + g) * TILE_VECTORS + vector]);
        }
        if (!block.split) {
            const int output_row = output_rows[row];
            result.emit(output_row, (long long)output_row * place.stride + vector, sum);
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
#ifdef ITEMS  // `values` has the weights
                const unsigned *__restrict__ items, const float *__restrict__ column_scale,
                const float *__restrict__ row_scale,
#endif
                const Feature *__restrict__ X, float *__restrict__ Y, float *part_sums,
                unsigned *arrivals, int n_cols) {
    RECORD_WARP;
    // Holds the nonzeros, and after all are read, the sums of the subwarps that share a row.
    __shared__ int4 memory[SHARED_VECTORS];
    __shared__ bool is_last;

    const Block block = decode(metadata[blockIdx.x]);
    const int tile = blockIdx.y * TILE_VECTORS;
    const int group = int(threadIdx.x) / Config::lanes;
    const Place place = {group, int(threadIdx.x) % Config::lanes, group < Config::groups,
                         min(TILE_VECTORS, n_cols / Config::vector - tile),
                         n_cols / Config::vector};
    const Stored *__restrict__ features = reinterpret_cast<const Stored *>(X) + tile;
#ifdef ITEMS
    const Values weights = {items, values, column_scale};
    const Result result = {reinterpret_cast<Vector *>(Y) + tile, row_scale};
#else
    const Values weights = {values};
    const Result result = {reinterpret_cast<Vector *>(Y) + tile};
#endif
    output_rows += block.first_row;
    const Nonzeros nonzeros = Nonzeros::load(reinterpret_cast<int2 *>(memory), columns, weights,
                                             block.first_nz, block.rows * block.row_nzs);

    if (!block.split && block.row_nzs <= block.group_nzs) {
        if (place.busy)
            process_unshared_rows(nonzeros, features, result, output_rows, block, place);
        return;
    }
    const int groups_per_row = ceil_div(block.row_nzs, block.group_nzs);
    Vector *partial = reinterpret_cast<Vector *>(memory);
    store_group_sums(nonzeros, features, block, place, groups_per_row, partial);
    const int first_part = int(blockIdx.x) - block.part;  // `part_sums` has one row per part
    part_sums += element(first_part, tile * Config::vector, n_cols);
    add_groups(partial, result, output_rows, part_sums, block, place, groups_per_row, n_cols);
    if (!block.split) return;

    // The last part to arrive adds the sums of all parts in order: results are reproducible.
    unsigned *arrived = &arrivals[first_part * gridDim.y + blockIdx.y];
    if (!is_last_block(is_last, arrived, block.parts)) return;
    const int output_row = output_rows[0];
    float *out = reinterpret_cast<float *>(&result.Y[(long long)output_row * place.stride]);
    for (int column = threadIdx.x; column < place.vectors * Config::vector;
         column += Config::block_threads) {
        float sum = 0.0f;
#pragma unroll 4
        for (int p = 0; p < block.parts; ++p) {
            sum += __ldcg(&part_sums[element(p, column, n_cols)]);
        }
#ifdef ITEMS
        sum *= result.scale(output_row);
#endif
        out[column] = Config::accumulate ? out[column] + sum : sum;
    }
}
