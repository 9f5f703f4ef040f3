// Sums of neighbors' features of 8 or 4 bits: Y = A X, where A has only ones as values, in
// integers. Thread blocks are those of kernels/spmm/lane_groups.cu; a row of X has a quarter or an
// eighth of float32's bytes.
//
// A lane loads 16 bytes of a row, 16 or 32 columns. Integer sums are exact in any order: subwarps
// that share a row add their sums in shared memory, and blocks that share a row in Y, which `clear`
// has zeroed in these rows.
//
// grid  = (blocks in the metadata, tiles of TILE_VECTORS vectors of columns)
// block = `groups` subwarps of `lanes` threads, rounded up to whole warps

// The plan supplies, at compile time:
//   bits            bits of a feature: 8 or 4
//   lanes           lanes of a subwarp, 1 to 32
//   lane_vectors    vectors of a lane, lanes apart
//   groups          subwarps of a block
//   block_threads   threads of a block: groups * lanes rounded up to whole warps
//   deg_bound       most nonzeros of a row that one block handles alone
//   staged          most nonzeros of a block
//   at_once         vectors of X that a lane loads together, at most 17
//   info_field_bits width of the low field of the metadata's info word

#include "bits/planes.cuh"
#include "common.cuh"
#include "lane_blocks.cuh"

constexpr int PER_VECTOR = 128 / Config::bits;  // columns per vector
constexpr int TILE_VECTORS = Config::lanes * Config::lane_vectors;
constexpr int SHARED_ROWS =
    Config::groups > 1 ? Config::groups / 2 : 1;  // most rows of a block with several subwarps

// Adds N vectors to the sums of their columns. One __dp4a adds one chosen byte of a word to a sum.
// Nibbles are first summed in bytes, which hold the sum of 17 nibbles.
template <int N>
DEVICE_INLINE void add(unsigned (&sums)[PER_VECTOR], const uint4 (&x)[N]) {
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        if constexpr (Config::bits == 8) {
#pragma unroll
            for (int j = 0; j < N; ++j) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    sums[4 * w + i] = __dp4a(word_of(x[j], w), 1u << 8 * i, sums[4 * w + i]);
                }
            }
        } else {
            static_assert(N <= 17, "bytes hold no more sums");
            unsigned even = 0, odd = 0;
#pragma unroll
            for (int j = 0; j < N; ++j) {
                even += word_of(x[j], w) & 0x0f0f0f0fu;
                odd += word_of(x[j], w) >> 4 & 0x0f0f0f0fu;
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                sums[8 * w + 2 * i] = __dp4a(even, 1u << 8 * i, sums[8 * w + 2 * i]);
                sums[8 * w + 2 * i + 1] = __dp4a(odd, 1u << 8 * i, sums[8 * w + 2 * i + 1]);
            }
        }
    }
}

// Adds the vectors of at_once nonzeros from `first` on; nonzeros at `end` and beyond are skipped.
DEVICE_INLINE void add_nonzeros(unsigned (&sums)[PER_VECTOR], const uint4 *__restrict__ X,
                                const int *stage, int first, int end, int row_vectors) {
    uint4 x[Config::at_once];
#pragma unroll
    for (int j = 0; j < Config::at_once; ++j) {
        x[j] = first + j < end ? __ldg(&X[(long long)stage[first + j] * row_vectors])
                               : make_uint4(0, 0, 0, 0);
    }
    add(sums, x);
}

// Writes the sums of one vector, columns first to first + PER_VECTOR - 1.
DEVICE_INLINE void write(int *__restrict__ Y, const unsigned (&sums)[PER_VECTOR], int row,
                         int first, int n_cols) {
    int *to = &Y[element(row, first, n_cols)];
#pragma unroll
    for (int i = 0; i < PER_VECTOR; i += 4) {
        if (n_cols % 4 == 0 && first + i < n_cols) {
            __stcs(reinterpret_cast<int4 *>(to + i),
                   make_int4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3]));
            continue;
        }
#pragma unroll
        for (int c = i; c < i + 4; ++c) {
            if (first + c < n_cols) to[c] = int(sums[c]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    gather(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
           const int *__restrict__ columns, const uint4 *__restrict__ X, int *__restrict__ Y,
           int row_vectors, int n_cols) {
    RECORD_WARP;
    __shared__ int stage[Config::staged > 0 ? Config::staged : 1];
    __shared__ unsigned shared_sums[SHARED_ROWS][PER_VECTOR][TILE_VECTORS];
    const Block block = decode(metadata[blockIdx.x]);
    const int first_vector = int(blockIdx.y) * TILE_VECTORS;
    const int group = int(threadIdx.x) / Config::lanes, lane = int(threadIdx.x) % Config::lanes;
    for (int i = threadIdx.x; i < block.rows * block.row_nzs; i += Config::block_threads) {
        stage[i] = __ldcs(&columns[block.first_nz + i]);
    }
    const bool alone = !block.split && block.row_nzs <= block.group_nzs;
    if (!alone) {
        for (int i = threadIdx.x; i < SHARED_ROWS * PER_VECTOR * TILE_VECTORS;
             i += Config::block_threads) {
            (&shared_sums[0][0][0])[i] = 0;
        }
    }
    __syncthreads();

    // A subwarp handles whole rows, every groups-th, or one part of a row.
    const int groups_per_row = alone ? 1 : ceil_div(block.row_nzs, block.group_nzs);
    const int part = group % groups_per_row, stride = alone ? Config::groups : block.rows;
    const bool active = group < Config::groups;
    for (int row = group / groups_per_row; active && row < block.rows; row += stride) {
        const int begin = row * block.row_nzs + part * block.group_nzs;
        const int end =
            alone ? begin + block.row_nzs : min(begin + block.group_nzs, (row + 1) * block.row_nzs);
#pragma unroll
        for (int v = 0; v < Config::lane_vectors; ++v) {
            const int slot = lane + v * Config::lanes, vector = first_vector + slot;
            if (vector >= row_vectors) continue;
            unsigned sums[PER_VECTOR] = {};
            for (int k = begin; k < end; k += Config::at_once) {
                add_nonzeros(sums, X + vector, stage, k, end, row_vectors);
            }
            if (alone) {
                write(Y, sums, output_rows[block.first_row + row], vector * PER_VECTOR, n_cols);
            } else {
#pragma unroll
                for (int i = 0; i < PER_VECTOR; ++i) {
                    if (sums[i]) atomicAdd(&shared_sums[row][i][slot], sums[i]);
                }
            }
        }
    }
    if (alone) return;
    __syncthreads();
    const int first = first_vector * PER_VECTOR;
    const int tile_columns = min(TILE_VECTORS * PER_VECTOR, n_cols - first);
    for (int i = threadIdx.x; i < block.rows * tile_columns; i += Config::block_threads) {
        const int row = i / tile_columns, column = i % tile_columns;
        const int sum = int(shared_sums[row][column % PER_VECTOR][column / PER_VECTOR]);
        emit(&Y[element(output_rows[block.first_row + row], first + column, n_cols)], sum,
             block.split);
    }
}

// Zeroes the rows that are split over several blocks. grid = (blocks of split rows)
extern "C" __global__ void __launch_bounds__(Config::block_threads)
    clear(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
          int *__restrict__ Y, int n_cols) {
    RECORD_WARP;
    const Block block = decode(metadata[blockIdx.x]);
    if (!block.split || block.part > 0) return;
    for (int column = threadIdx.x; column < n_cols; column += Config::block_threads) {
        Y[element(output_rows[block.first_row], column, n_cols)] = 0;
    }
}
