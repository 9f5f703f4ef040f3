// C entries of RoDe's SpMM and SDDMM: its templates with the tiles of its own benchmarks.

#include "RoDe_SpMM/RoDeSpmm.cu"
// Both files define STAGE and stand-alone templates of other names.
#include "RoDe_SDDMM/RoDeSddmm.cu"

// Rows are split into segments ("blocks") and remainders by `peer_kernels.rode_segments`.
struct Segments {
    int blocks, residues;
    const int *block_rows, *residue_rows, *block_starts;
};

extern "C" {

// Y += A X with tiles of 32 or 64 columns. Y has to be zero before, since long rows add atomically.
void rode_spmm(int tile, Segments split, int n_columns, int n_cols, const float *values,
               const int *columns, const int *row_pointers, const float *X, float *Y,
               cudaStream_t first, cudaStream_t second) {
    void (*run)(int, int, int, int, const float *, const int *, const int *, const int *,
                const int *, const int *, const float *, float *, cudaStream_t, cudaStream_t);
    if (tile == 32) {
        run = RoDeSpmm_n32;
    } else {
        run = RoDeSpmm_n128;
    }
    run(split.blocks, split.residues, n_columns, n_cols, values, columns, row_pointers,
        split.block_rows, split.residue_rows, split.block_starts, X, Y, first, second);
}

// Z = values * (U V^T) at the nonzeros; -1 if there is no kernel for this number of columns.
//
// Its kernel for remainders reads all columns at once. For 64 it needs 16 threads a row; the
// authors have kernels for 32 and 128 columns.
int rode_sddmm(Segments split, int n_columns, int n_cols, const float *values, const int *columns,
               const int *row_pointers, const float *U, const float *V, float *Z,
               cudaStream_t first, cudaStream_t second) {
#define RUN(name, ...)                                                                             \
    name<__VA_ARGS__>(split.blocks, split.residues, n_columns, n_cols, split.block_rows,           \
                      split.residue_rows, split.block_starts, row_pointers, columns, values, U, V, \
                      Z, first, second)
    switch (n_cols) {  // segments of 512 nonzeros for 32 columns, else of 32
        case 32:
            RUN(RoDeSDDMMKernel_n32, float4, 4, 32, 32, 8, 32, 512);
            return 0;
        case 128:
            RUN(RoDeSDDMMKernel_n128, float4, 4, 32, 32, 8, 128, 32);
            return 0;
        case 256:
            RUN(RoDeSDDMMKernel_n128, float4, 4, 32, 32, 8, 256, 32);
            return 0;
        case 64:
            break;
        default:
            return -1;
    }
#undef RUN
    SDDMMKernel4Block<float4, 4, 32, 32, 8, 64><<<(split.blocks + 3) / 4, dim3(8, 4), 0, first>>>(
        split.blocks, n_columns, n_cols, split.block_rows, row_pointers, columns,
        split.block_starts, values, U, V, Z);
    SDDMMKernel4Residue<float4, 2, 64, 32, 16, 64>
        <<<(split.residues + 1) / 2, dim3(16, 2), 0, second>>>(split.residues, n_columns, n_cols,
                                                               split.residue_rows, row_pointers,
                                                               columns, values, U, V, Z);
    return 0;
}

}  // extern "C"
