// TC-GNN's edge features (Wang et al., USENIX ATC 2023; Algorithm 6 of chapter 5 of the thesis):
// SDDMM on tensor cores. The score of a nonzero (i, j) is the dot product of row i of U and row j
// of V, with TF32 products and float32 sums.
//
// A block handles a window of 16 rows of A. Sparse graph translation has numbered the window's
// distinct columns consecutively, and the warps take its tiles of 16 x 16 in turn. For a tile a
// warp loads `step` columns of the 16 rows of U and of the tile's 16 rows of V, multiplies them,
// and continues with the next columns. Of the 256 sums it writes those at nonzeros of A.
//
// Unlike the published code, and not slower: the columns of several instructions, 8 each, are
// loaded together.
//
// grid  = (windows of 16 rows, heads)
// block = `warps` warps

// The plan supplies, at compile time:
//   warps    warps of a block
//   step     columns of U and V that are loaded together, a multiple of 8
//   tile_rows, tile_columns    of a tile of scores: 16 and 16

#include "common.cuh"
#include "fragments.cuh"

constexpr int BLOCK_THREADS = Config::warps * WARP_SIZE;
constexpr int INSTRUCTION_COLUMNS = 8;
// Row length in shared memory, chosen so that the lanes of a fragment use different banks.
constexpr int PITCH = Config::step + 4;

static_assert(Config::tile_rows == 16 && Config::tile_columns == 16,
              "the tile of scores is WMMA's of TF32");

// Multiplies the columns of U and V in shared memory, for the two halves of 8 columns of a tile.
DEVICE_INLINE void multiply_step(float (&sums)[2][4], const unsigned *u_tile,
                                 const unsigned *v_tile) {
    const int lane = threadIdx.x % WARP_SIZE;
#pragma unroll
    for (int k = 0; k < Config::step; k += INSTRUCTION_COLUMNS) {
        unsigned a[4];
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            const Element at = element_of_a(lane, r, 0, 1);
            a[r] = u_tile[at.row * PITCH + k + at.column];
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            unsigned b[2];
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const Element at = element_of_b(lane, r, 0, 1);
                b[r] = v_tile[(half * 8 + at.column) * PITCH + k + at.row];
            }
            mma_tf32_k8(sums[half], a, b);
        }
    }
}

// tile_pointers: index of each tile's first nonzero in `offsets` and `places`. offsets: index of a
// nonzero relative to the window's first. places: row * tile_columns + column in the tile.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    tc_gnn_sddmm(const long long *__restrict__ row_pointers,
                 const long long *__restrict__ window_tiles,
                 const long long *__restrict__ tile_pointers,
                 const int *__restrict__ column_indices, const int *__restrict__ offsets,
                 const unsigned char *__restrict__ places, const float *__restrict__ U,
                 const float *__restrict__ V, float *__restrict__ scores, int n_rows, int heads,
                 int n_cols) {
    RECORD_WARP;
    __shared__ unsigned operands[Config::warps]
                                [(Config::tile_rows + Config::tile_columns) * PITCH];  // TF32
    __shared__ float tile_scores[Config::warps][Config::tile_rows * Config::tile_columns];

    const int lane = threadIdx.x % WARP_SIZE, warp = threadIdx.x / WARP_SIZE;
    const int first_row = blockIdx.x * Config::tile_rows, head = blockIdx.y;
    const long long first_nonzero = row_pointers[first_row];
    unsigned *u_tile = operands[warp], *v_tile = u_tile + Config::tile_rows * PITCH;

    const long long last = window_tiles[blockIdx.x + 1];
    for (long long tile = window_tiles[blockIdx.x] + warp; tile < last; tile += Config::warps) {
        float sums[2][4] = {};  // two halves of 8 columns of the tile
        for (int step = 0; step < n_cols; step += Config::step) {
            for (int i = lane; i < (Config::tile_rows + Config::tile_columns) * Config::step;
                 i += WARP_SIZE) {
                const int row = i / Config::step, column = step + i % Config::step;
                const bool of_u = row < Config::tile_rows;
                const int operand_row =
                    of_u ? first_row + row
                         : column_indices[tile * Config::tile_columns + row - Config::tile_rows];
                const bool inside =
                    column < n_cols && (of_u ? operand_row < n_rows : operand_row >= 0);
                const float *from = of_u ? U : V;
                const long long at = ((long long)operand_row * heads + head) * n_cols + column;
                operands[warp][row * PITCH + i % Config::step] = to_tf32(inside ? from[at] : 0.0f);
            }
            __syncwarp();
            multiply_step(sums, u_tile, v_tile);
            __syncwarp();  // all lanes have read these columns before the next ones replace them
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                const Element at = element_of_c(lane, r);
                tile_scores[warp][at.row * Config::tile_columns + half * 8 + at.column] =
                    sums[half][r];
            }
        }
        __syncwarp();
        for (long long i = tile_pointers[tile] + lane; i < tile_pointers[tile + 1];
             i += WARP_SIZE) {
            scores[(first_nonzero + offsets[i]) * heads + head] = tile_scores[warp][places[i]];
        }
        __syncwarp();
    }
}
