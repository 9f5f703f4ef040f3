// Quantizes a matrix and packs its bits (QGTC's `to_bit`), and unpacks bits (`to_val`).
//
// grid  = (tiles of 32 rows, tiles of 32 columns)
// block = 256 threads
//
// The plan supplies, at compile time:
//   along_columns   1 for a left operand, whose words run along columns; 0 for a right operand
//   per_column      1 if each column has its own `low` and `step`, else 0

#include "bits/planes.cuh"

extern "C" __global__ void __launch_bounds__(256)
    quantize(const float *__restrict__ X, const float *__restrict__ low,
             const float *__restrict__ step, unsigned *__restrict__ out, int *clipped, int rows,
             int columns, int bits, int lines, int words) {
    RECORD_WARP;
    __shared__ unsigned levels[SIDE][SIDE + 1];
    const int first_row = int(blockIdx.x) * SIDE, first_column = int(blockIdx.y) * SIDE;
    const int lane = int(threadIdx.x) % WARP_SIZE;
    int outside = 0;
    for (int i = int(threadIdx.x) / WARP_SIZE; i < SIDE; i += int(blockDim.x) / WARP_SIZE) {
        const int row = first_row + i, column = first_column + lane;
        const bool inside = row < rows && column < columns;
        const int scale = Config::per_column ? column : 0;
        levels[i][lane] = inside ? level_of(X[element(row, column, columns)], low[scale],
                                            step[scale], bits, outside)
                                 : 0u;
    }
    if (outside) atomicAdd(clipped, outside);
    __syncthreads();
    write_planes(levels, out, {bits, lines, words}, first_row, first_column, Config::along_columns);
}

extern "C" __global__ void __launch_bounds__(256)
    levels(const unsigned *__restrict__ in, int *__restrict__ out, int rows, int columns, int bits,
           int lines, int words) {
    RECORD_WARP;
    const Planes planes{bits, lines, words};
    const int lane = int(threadIdx.x) % WARP_SIZE;
    for (int i = int(threadIdx.x) / WARP_SIZE; i < SIDE; i += int(blockDim.x) / WARP_SIZE) {
        const int row = int(blockIdx.x) * SIDE + i, column = int(blockIdx.y) * SIDE + lane;
        if (row >= rows || column >= columns) continue;
        const int line = Config::along_columns ? row : column,
                  k = Config::along_columns ? column : row;
        unsigned level = 0;
        for (int plane = 0; plane < bits; ++plane) {
            level |= (in[planes.at(plane, line, k / 32)] >> (k % 32) & 1u) << plane;
        }
        out[element(row, column, columns)] = int(level);
    }
}
