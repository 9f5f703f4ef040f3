// C entries of Voltrix's SpMM of a matrix of ones: its preprocessing on the GPU, and its kernels.

#include <cstring>
#include <string>

#include "voltrix/bmat_kernels.cuh"
#include "voltrix/spmm_kernels.cuh"

extern "C" {

// Fill `packed` and `block_columns`; `tiles` is workspace, 16 x 8 floats for each block.
int voltrix_pack(int n_windows, int n_rows, int nonzeros, const int *row_pointers,
                 const int *columns, const int *window_blocks, const int *edge_to_column,
                 const int *edge_to_row, const int *block_pointers, float *tiles,
                 int *block_columns, unsigned *packed) {
    try {
        voltrix::hmat_cuda(row_pointers, columns, window_blocks, edge_to_column, edge_to_row,
                           block_pointers, n_windows, n_rows, nonzeros, tiles, block_columns);
        voltrix::hmat_packed_swizzle_cuda(n_windows, block_pointers, tiles, packed);
    } catch (const std::exception &) {
        return -1;
    }
    return 0;
}

// `n_rows` is a multiple of 16; `model` 0 to 2 are its three kernels.
int voltrix_spmm(int model, int n_rows, int nonzeros, int n_cols, const int *block_pointers,
                 const unsigned *packed, const int *block_columns, const float *X, float *Y,
                 cudaStream_t stream) {
    try {
        voltrix::voltrix_spmm_forward_cuda(block_pointers, packed, block_columns, n_rows, nonzeros,
                                           n_cols, X, Y, model, stream);
    } catch (const std::exception &) {
        return -1;
    }
    return 0;
}

}  // extern "C"
