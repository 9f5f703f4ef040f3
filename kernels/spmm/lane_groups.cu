// Our own SpMM, from Accel-GCN's block-level partition (kernels/spmm/accel_gcn.cu): Y = A X, fp32,
// rows in ascending order of degree.
//
// As there, one int4 describes a block: rows of one degree, or a part of one row that is longer
// than DEG_BOUND. What is done otherwise, each by a constant or a function of its own:
//   - LANES lanes, not a whole number of warps, are the group that handles a row: they cover its
//     columns with vectors of VECTOR columns each, so that narrow features leave no lane idle;
//   - the nonzeros of a block lie side by side, so the block loads them all at once, coalesced,
//     into shared memory. Then nothing is left to wait for but X itself;
//   - each lane has the loads of AT_ONCE nonzeros on their way: of one long row (`run`), or of
//     several short ones (`whole_rows`);
//   - a block writes all its rows, those without a nonzero too, and each part of a cut row leaves
//     its sums in memory, where the last of them to arrive adds all up, part by part: so Y need not
//     be cleared, and is the same to the last bit each time;
//   - blocks come in the order in which their rows stand in the graph, not of their degree (the
//     plan sees to it), and wide features in tiles, one after the other: so X stays in the caches.
//
// grid  = (blocks in the metadata, tiles of TILE_VECTORS vectors of columns)
// block = GROUPS groups of LANES threads, rounded up to whole warps

// The plan supplies, at compile time:
//   VECTOR          neighboring columns that a lane reads as one: 1, 2, 4 or 8, a divisor of n_cols
//   FEATURES        what an element of X is stored in: 0 float32, 1 float16, 2 bfloat16
//   LANES           lanes of a group, 1 to 32
//   LANE_VECTORS    vectors of a lane, LANES apart
//   WHOLE_TILES     1 if the columns fill every lane of every tile, else 0
//   GROUPS          groups of a block
//   BLOCK_THREADS   threads of a block: GROUPS * LANES rounded up to whole warps
//   DEG_BOUND       most nonzeros of a row that one block handles alone
//   STAGE           1 if a block loads its nonzeros into shared memory first, else 0
//   STAGED          most nonzeros of a block
//   AT_ONCE         nonzeros whose vectors of X a lane has on their way at once
//   BLOCKS_PER_SM   blocks that an SM should have room for, which bounds the registers
//   INFO_FIELD_BITS width of the low field of the metadata's info word
// and, if the product is to be added to what Y holds, which is written before:
//   ACCUMULATE      1
#if !defined(VECTOR) || !defined(FEATURES) || !defined(LANES) || !defined(LANE_VECTORS) ||         \
    !defined(WHOLE_TILES) || !defined(GROUPS) || !defined(BLOCK_THREADS) || !defined(DEG_BOUND) || \
    !defined(STAGE) || !defined(STAGED) || !defined(AT_ONCE) || !defined(BLOCKS_PER_SM) ||         \
    !defined(INFO_FIELD_BITS)
#error "lane_groups.cu is compiled by accelviz, which supplies the constants listed above"
#endif

#include "common.cuh"
#include "lane_blocks.cuh"
#include "vectors.cuh"

#ifndef ACCUMULATE
#define ACCUMULATE 0
#endif

#define TILE_VECTORS (LANES * LANE_VECTORS)  // that a group covers
#define STAGE_BYTES int(STAGED * sizeof(int2))
#define PARTIAL_BYTES int(GROUPS * TILE_VECTORS * sizeof(Vector))
#define SHARED_VECTORS ((STAGE_BYTES > PARTIAL_BYTES ? STAGE_BYTES : PARTIAL_BYTES) / 16 + 1)

// Where a thread is: its group, and the columns that it covers.
struct Place {
    int group, lane;
    bool busy;    // threads beyond the last group only help to load and to add up
    int vectors;  // of this tile
    int stride;   // vectors of a row of X

    __device__ __forceinline__ bool has(int i) const {
        return WHOLE_TILES || lane + i * LANES < vectors;
    }
    __device__ __forceinline__ long long vector(int row, int i) const {
        return (long long)row * stride + lane + i * LANES;
    }
};

// The nonzeros of the block, each its column and the bits of its value: in shared memory, or where
// the plan has them.
struct Nonzeros {
#if STAGE
    const int2 *staged;

    __device__ __forceinline__ int2 operator[](int k) const {
        return staged[k];
    }
#else
    const int *__restrict__ columns;
    const float *__restrict__ values;

    __device__ __forceinline__ int2 operator[](int k) const {
        return make_int2(columns[k], __float_as_int(values[k]));
    }
#endif
};

// One of them; where a lane has none, the column is -1.
__device__ __forceinline__ int2 nonzero(const Nonzeros &nonzeros, int position, bool there) {
    return there ? nonzeros[position] : make_int2(-1, 0);
}

__device__ __forceinline__ Stored gathered(const Stored *__restrict__ X, const Place &place,
                                           int2 nonzero, int i) {
    return nonzero.x >= 0 && place.has(i) ? __ldg(&X[place.vector(nonzero.x, i)]) : Stored{};
}

// Writes the sums of some columns of a row. Y is not read again: it should not push X out of the
// caches.
__device__ __forceinline__ void emit(Vector *to, Vector sum) {
#if ACCUMULATE
    add(sum, *to);
#endif
    stream(to, sum);
}

// Sums rows that have a group each, ROWS rows of a group at a time and NZS nonzeros of each:
// all loads of X are on their way before the first product.
template <int ROWS, int NZS>
__device__ __forceinline__ void whole_rows(const Nonzeros &nonzeros, const Stored *__restrict__ X,
                                           Vector *__restrict__ Y,
                                           const int *__restrict__ output_rows, const Block &block,
                                           const Place &place) {
    const int degree = block.row_nzs;
    for (int first = place.group; first < block.rows; first += GROUPS * ROWS) {
        Vector sums[ROWS][LANE_VECTORS] = {};
        for (int k = 0; k < degree; k += NZS) {
            int2 own[ROWS][NZS];
            Stored x[ROWS][NZS][LANE_VECTORS];
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const int row = first + r * GROUPS;
#pragma unroll
                for (int j = 0; j < NZS; ++j) {
                    const bool there = row < block.rows && k + j < degree;
                    own[r][j] = nonzero(nonzeros, row * degree + k + j, there);
                }
            }
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
#pragma unroll
                for (int j = 0; j < NZS; ++j) {
#pragma unroll
                    for (int i = 0; i < LANE_VECTORS; ++i) {
                        x[r][j][i] = gathered(X, place, own[r][j], i);
                    }
                }
            }
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
#pragma unroll
                for (int j = 0; j < NZS; ++j) {
#pragma unroll
                    for (int i = 0; i < LANE_VECTORS; ++i) {
                        add_product(sums[r][i], __int_as_float(own[r][j].y), x[r][j][i]);
                    }
                }
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const int row = first + r * GROUPS;
            if (row >= block.rows) break;
            const int output_row = output_rows[row];
#pragma unroll
            for (int i = 0; i < LANE_VECTORS; ++i) {
                if (place.has(i)) emit(&Y[place.vector(output_row, i)], sums[r][i]);
            }
        }
    }
}

// Sums staged nonzeros begin..end-1.
__device__ __forceinline__ void run(const Nonzeros &nonzeros, const Stored *__restrict__ X,
                                    const Place &place, int begin, int end,
                                    Vector (&sums)[LANE_VECTORS]) {
    for (int k = begin; k < end; k += AT_ONCE) {
        int2 own[AT_ONCE];
        Stored x[AT_ONCE][LANE_VECTORS];
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) own[j] = nonzero(nonzeros, k + j, k + j < end);
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) {
#pragma unroll
            for (int i = 0; i < LANE_VECTORS; ++i) x[j][i] = gathered(X, place, own[j], i);
        }
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) {
#pragma unroll
            for (int i = 0; i < LANE_VECTORS; ++i) {
                add_product(sums[i], __int_as_float(own[j].y), x[j][i]);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_SM)
    lane_groups(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
                const int *__restrict__ columns, const float *__restrict__ values,
                const Feature *__restrict__ X, float *__restrict__ Y, float *part_sums,
                unsigned *arrivals, int n_cols) {
    RECORD_WARP;
    // First the nonzeros, then, once all are read, the sums of the groups that share a row.
    __shared__ int4 memory[SHARED_VECTORS];
    int2 *stage = reinterpret_cast<int2 *>(memory);
    Vector *partial = reinterpret_cast<Vector *>(memory);
    __shared__ bool is_last;

    const Block block = decode(metadata[blockIdx.x]);
    const int tile = blockIdx.y * TILE_VECTORS;
    const int group = int(threadIdx.x) / LANES;
    const Place place = {group, int(threadIdx.x) % LANES, group < GROUPS,
                         min(TILE_VECTORS, n_cols / VECTOR - tile), n_cols / VECTOR};
    const Stored *__restrict__ features = reinterpret_cast<const Stored *>(X) + tile;
    Vector *__restrict__ result = reinterpret_cast<Vector *>(Y) + tile;
    output_rows += block.first_row;

    columns += block.first_nz;
    values += block.first_nz;
#if STAGE
    const int staged = block.rows * block.row_nzs;
#pragma unroll 2  // more would cost registers, of which there are few
    for (int i = threadIdx.x; i < staged; i += BLOCK_THREADS) {
        stage[i] = make_int2(__ldcs(&columns[i]), __float_as_int(__ldcs(&values[i])));
    }
    __syncthreads();
    const Nonzeros nonzeros = {stage};
#else
    const Nonzeros nonzeros = {columns, values};
#endif

    if (!block.cut && block.row_nzs <= block.group_nzs) {
        if (!place.busy) return;
        if (block.row_nzs <= 1) {
            whole_rows<AT_ONCE, 1>(nonzeros, features, result, output_rows, block, place);
        } else if (block.row_nzs == 2) {
            whole_rows<(AT_ONCE + 1) / 2, 2>(nonzeros, features, result, output_rows, block, place);
        } else {
            whole_rows<1, AT_ONCE>(nonzeros, features, result, output_rows, block, place);
        }
        return;
    }

    // Several groups share each row. Their sums meet in shared memory.
    const int groups_per_row = ceil_div(block.row_nzs, block.group_nzs);
    const int row = place.group / groups_per_row;
    const bool working = place.busy && row < block.rows;
    Vector sums[LANE_VECTORS] = {};
    if (working) {
        const int begin = place.group % groups_per_row * block.group_nzs;
        const int end = min(begin + block.group_nzs, block.row_nzs);
        run(nonzeros, features, place, row * block.row_nzs + begin, row * block.row_nzs + end,
            sums);
    }
    __syncthreads();
    if (working) {
#pragma unroll
        for (int i = 0; i < LANE_VECTORS; ++i) {
            if (place.has(i))
                partial[place.group * TILE_VECTORS + place.lane + i * LANES] = sums[i];
        }
    }
    __syncthreads();

    // A row of `part_sums` for each part of a cut row.
    const int first_part = int(blockIdx.x) - block.part;
    float *sums_of_parts = &part_sums[element(first_part, tile * VECTOR, n_cols)];
    for (int i = threadIdx.x; i < block.rows * place.vectors; i += BLOCK_THREADS) {
        const int own = i / place.vectors, vector = i % place.vectors;
        Vector sum = {};
        for (int g = 0; g < groups_per_row; ++g) {
            add(sum, partial[(own * groups_per_row + g) * TILE_VECTORS + vector]);
        }
        if (!block.cut) {
            emit(&result[(long long)output_rows[own] * place.stride + vector], sum);
        } else {
#pragma unroll
            for (int j = 0; j < VECTOR; ++j) {
                sums_of_parts[element(block.part, vector * VECTOR + j, n_cols)] = part(sum, j);
            }
        }
    }
    if (!block.cut) return;

    // Each part comes here; the last one adds all up in their order, the same bits each time.
    __threadfence();
    __syncthreads();
    unsigned *arrived = &arrivals[first_part * gridDim.y + blockIdx.y];
    if (threadIdx.x == 0) is_last = atomicAdd(arrived, 1u) == unsigned(block.parts) - 1;
    __syncthreads();
    if (!is_last) return;
    if (threadIdx.x == 0) *arrived = 0u;  // as it was
    float *out = reinterpret_cast<float *>(&result[(long long)output_rows[0] * place.stride]);
    for (int column = threadIdx.x; column < place.vectors * VECTOR; column += BLOCK_THREADS) {
        float sum = 0.0f;
#pragma unroll 4
        for (int p = 0; p < block.parts; ++p) {
            sum += __ldcg(&sums_of_parts[element(p, column, n_cols)]);
        }
        out[column] = ACCUMULATE ? out[column] + sum : sum;
    }
}
