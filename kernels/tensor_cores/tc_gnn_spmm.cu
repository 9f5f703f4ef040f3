// TC-GNN's neighbor aggregation (Wang et al., USENIX ATC 2023; Algorithm 5 of chapter 5 of the
// thesis), as a weighted SpMM on tensor cores: Y = A X with TF32 products and float32 sums.
//
// A block handles a window of 16 rows of A. Sparse graph translation has numbered the window's
// distinct columns consecutively; the block handles its tiles of 16 x 8, tiles_at_once together.
// All threads write the tiles' nonzeros to shared memory as dense tiles and load the 8 rows of X of
// each tile. Then the warps multiply, each for its own columns of X.
//
// Unlike the published code, and not slower: edge weights are used, where it takes all weights as
// 1; a tile has a list of its nonzeros, where it scans all nonzeros of the window for each tile;
// several tiles are loaded together, where it waits for each; n_cols may be any number; and the
// product of 16 x 8 by 8 x 16 is two instructions of 16 x 8 by 8 x 8, to which WMMA compiles.
//
// grid  = (windows of 16 rows, tiles of columns)
// block = `warps` warps

// The plan supplies, at compile time:
//   warps         warps of a block
//   warp_tiles    tiles of 16 columns of X that a warp multiplies, warps apart
//   block_tiles   tiles of 16 columns of X that a block multiplies, at most warps * warp_tiles
//   tiles_at_once tiles of A that are loaded together
//   tile_rows, tile_columns    of a tile of A: 16 and 8

#include "common.cuh"
#include "fragments.cuh"

constexpr int BLOCK_THREADS = Config::warps * WARP_SIZE;
constexpr int X_COLUMNS = 16;  // of a tile of X
constexpr int BLOCK_COLUMNS = Config::block_tiles * X_COLUMNS;
// Row lengths in shared memory, chosen so that the lanes of a fragment use different banks.
constexpr int A_PITCH = 12;
constexpr int A_TILE = Config::tile_rows * A_PITCH;
constexpr int X_PITCH = BLOCK_COLUMNS + 8;

static_assert(Config::tile_rows == 16 && Config::tile_columns == 8,
              "the tile of A is TF32's of tensor cores");

using Sums = float[Config::warp_tiles][2][4];  // of Y: two halves of 8 columns a tile

// Multiplies a tile of A with a warp's tiles of X.
DEVICE_INLINE void multiply_tile(Sums &sums, const unsigned *a_tile, const unsigned *x_tile) {
    const int lane = threadIdx.x % WARP_SIZE, warp = threadIdx.x / WARP_SIZE;
    unsigned a[4];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        const Element at = element_of_a(lane, r, 0, 1);
        a[r] = a_tile[at.row * A_PITCH + at.column];
    }
#pragma unroll
    for (int i = 0; i < Config::warp_tiles; ++i) {
        const int x_column = (i * Config::warps + warp) * X_COLUMNS;
        if (x_column < BLOCK_COLUMNS) {  // the same for the whole warp
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                unsigned b[2];
#pragma unroll
                for (int r = 0; r < 2; ++r) {
                    const Element at = element_of_b(lane, r, 0, 1);
                    b[r] = x_tile[at.row * X_PITCH + x_column + half * 8 + at.column];
                }
                mma_tf32_k8(sums[i][half], a, b);
            }
        }
    }
}

DEVICE_INLINE void write(const Sums &sums, float *__restrict__ Y, int first_row, int first_column,
                         int n_rows, int n_cols) {
    const int lane = threadIdx.x % WARP_SIZE, warp = threadIdx.x / WARP_SIZE;
#pragma unroll
    for (int i = 0; i < Config::warp_tiles; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                const Element at = element_of_c(lane, r);
                const int tile_column =
                    (i * Config::warps + warp) * X_COLUMNS + half * 8 + at.column;
                const int row = first_row + at.row, column = first_column + tile_column;
                if (row < n_rows && tile_column < BLOCK_COLUMNS && column < n_cols) {
                    Y[element(row, column, n_cols)] = sums[i][half][r];
                }
            }
        }
    }
}

// tile_pointers: index of each tile's first nonzero in `offsets` and `places`. offsets: index of a
// nonzero relative to the window's first. places: row * tile_columns + column in the tile.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    tc_gnn_spmm(const long long *__restrict__ row_pointers,
                const long long *__restrict__ window_tiles,
                const long long *__restrict__ tile_pointers, const int *__restrict__ column_indices,
                const int *__restrict__ offsets, const unsigned char *__restrict__ places,
                const float *__restrict__ values, const float *__restrict__ X,
                float *__restrict__ Y, int n_rows, int n_cols) {
    RECORD_WARP;
    __shared__ unsigned a_tiles[Config::tiles_at_once * A_TILE];                         // TF32
    __shared__ unsigned x_rows[Config::tiles_at_once * Config::tile_columns * X_PITCH];  // TF32

    const int thread = threadIdx.x;
    const int first_row = blockIdx.x * Config::tile_rows;
    const int first_column = blockIdx.y * BLOCK_COLUMNS;
    const float *window_values = values + row_pointers[first_row];

    Sums sums = {};
    const long long last_tile = window_tiles[blockIdx.x + 1];
    for (long long tile = window_tiles[blockIdx.x]; tile < last_tile;
         tile += Config::tiles_at_once) {
        const int tiles = int(min(last_tile - tile, (long long)Config::tiles_at_once));
        for (int i = thread; i < tiles * A_TILE; i += BLOCK_THREADS) a_tiles[i] = 0;
        for (int i = thread; i < tiles * Config::tile_columns * BLOCK_COLUMNS; i += BLOCK_THREADS) {
            const int row = i / BLOCK_COLUMNS, column = i % BLOCK_COLUMNS;
            const int x_row = column_indices[tile * Config::tile_columns + row];
            const bool inside = x_row >= 0 && first_column + column < n_cols;
            const float x = inside ? X[element(x_row, first_column + column, n_cols)] : 0.0f;
            x_rows[row * X_PITCH + column] = to_tf32(x);
        }
        __syncthreads();
        const long long end = tile_pointers[tile + tiles];
        for (long long i = tile_pointers[tile] + thread; i < end; i += BLOCK_THREADS) {
            int number = 0;  // index of the nonzero's tile among the loaded ones
            for (int j = 1; j < tiles; ++j) number += i >= tile_pointers[tile + j];
            const int row = places[i] / Config::tile_columns,
                      column = places[i] % Config::tile_columns;
            a_tiles[number * A_TILE + row * A_PITCH + column] = to_tf32(window_values[offsets[i]]);
        }
        __syncthreads();

        for (int number = 0; number < tiles; ++number) {
            const unsigned *x_tile = &x_rows[number * Config::tile_columns * X_PITCH];
            multiply_tile(sums, &a_tiles[number * A_TILE], x_tile);
        }
        __syncthreads();  // all threads have read these tiles before the next ones replace them
    }

    write(sums, Y, first_row, first_column, n_rows, n_cols);
}
