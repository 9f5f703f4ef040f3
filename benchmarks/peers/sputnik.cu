// C entry of sputnik's SpMM, which chooses its tiles by the number of columns.

#include "sputnik/spmm/cuda_spmm.cu.cc"

extern "C" int sputnik_spmm(int n_rows, int n_columns, int n_cols, int nonzeros,
                            const int *row_order, const float *values, const int *row_pointers,
                            const int *columns, const float *X, float *Y, cudaStream_t stream) {
    return sputnik::CudaSpmm(n_rows, n_columns, n_cols, nonzeros, row_order, values, row_pointers,
                             columns, X, Y, stream);
}
