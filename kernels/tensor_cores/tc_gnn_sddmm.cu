// TC-GNN's edge features (Wang et al., USENIX ATC 2023; Algorithm 6 of chapter 5 of the thesis):
// SDDMM on tensor cores. The score of a nonzero (i, j) is the dot product of row i of U and row j
// of V, with TF32 products and float32 sums.
//
// A block has a window of 16 rows of A, whose columns are moved together (sparse graph
// translation), and its warps take turns with the tiles of 16 x 16. A warp fetches STEP columns of
// the 16 rows of U and of the 16 rows of V that the tile stands for, multiplies, and goes on along
// the columns. Of the 256 sums it keeps those where A has a nonzero.
//
// Otherwise than in the published code, and not slower: several instructions' columns, 8 each, are
// fetched at a time.
//
// grid  = (windows of 16 rows, heads)
// block = WARPS warps

// The plan supplies, at compile time:
//   WARPS    warps of a block
//   STEP     columns of U and V at a time, a multiple of 8
//   TILE_ROWS, TILE_COLUMNS    of a tile of scores: 16 and 16
#if !defined(WARPS) || !defined(STEP) || !defined(TILE_ROWS) || !defined(TILE_COLUMNS)
#error "tc_gnn_sddmm.cu is compiled by accelviz, which supplies the constants listed above"
#endif

#include "common.cuh"
#include "fragments.cuh"

#define BLOCK_THREADS (WARPS * WARP_SIZE)
#define INSTRUCTION_COLUMNS 8
// Length of a row in shared memory, such that the lanes of a fragment are in different banks.
#define PITCH (STEP + 4)

static_assert(TILE_ROWS == 16 && TILE_COLUMNS == 16, "the tile of scores is WMMA's of TF32");

// tile_pointers: where the nonzeros of each tile begin in `offsets`, their places in the matrix
// behind the window's first, and in `places`, row times TILE_COLUMNS plus column in the tile.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    tc_gnn_sddmm(const long long *__restrict__ row_pointers,
                 const long long *__restrict__ window_tiles,
                 const long long *__restrict__ tile_pointers, const int *__restrict__ senders,
                 const int *__restrict__ offsets, const unsigned char *__restrict__ places,
                 const float *__restrict__ U, const float *__restrict__ V,
                 float *__restrict__ scores, int n_rows, int heads, int n_cols) {
    RECORD_WARP;
    __shared__ unsigned operands[WARPS][(TILE_ROWS + TILE_COLUMNS) * PITCH];  // TF32
    __shared__ float found[WARPS][TILE_ROWS * TILE_COLUMNS];

    const int lane = threadIdx.x % WARP_SIZE, warp = threadIdx.x / WARP_SIZE;
    const int first_row = blockIdx.x * TILE_ROWS, head = blockIdx.y;
    const long long first_nonzero = row_pointers[first_row];
    unsigned *u_tile = operands[warp], *v_tile = u_tile + TILE_ROWS * PITCH;

    const long long last = window_tiles[blockIdx.x + 1];
    for (long long tile = window_tiles[blockIdx.x] + warp; tile < last; tile += WARPS) {
        float sums[2][4] = {};  // two halves of 8 columns of the tile
        for (int step = 0; step < n_cols; step += STEP) {
            for (int i = lane; i < (TILE_ROWS + TILE_COLUMNS) * STEP; i += WARP_SIZE) {
                const int row = i / STEP, column = step + i % STEP;
                const bool of_u = row < TILE_ROWS;
                const int own =
                    of_u ? first_row + row : senders[tile * TILE_COLUMNS + row - TILE_ROWS];
                const bool inside = column < n_cols && (of_u ? own < n_rows : own >= 0);
                const float *from = of_u ? U : V;
                const long long at = ((long long)own * heads + head) * n_cols + column;
                operands[warp][row * PITCH + i % STEP] = to_tf32(inside ? from[at] : 0.0f);
            }
            __syncwarp();
#pragma unroll
            for (int k = 0; k < STEP; k += INSTRUCTION_COLUMNS) {
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
            __syncwarp();  // the next columns take the place of these
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                const Element at = element_of_c(lane, r);
                found[warp][at.row * TILE_COLUMNS + half * 8 + at.column] = sums[half][r];
            }
        }
        __syncwarp();
        for (long long i = tile_pointers[tile] + lane; i < tile_pointers[tile + 1];
             i += WARP_SIZE) {
            scores[(first_nonzero + offsets[i]) * heads + head] = found[warp][places[i]];
        }
        __syncwarp();
    }
}
