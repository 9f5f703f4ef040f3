// C entries of FlashSparse's SpMM with windows of 8 rows, with the launches of its host functions.
//
// `parts` are windows, or with `balanced` pieces of windows of bounded length; a piece whose
// `is_shared` is 1 adds atomically, so that Y has to be zero before.

#include "SpMM/src/spmmKernel.cu"

struct Parts {
    int count, balanced;
    const int *pointers, *windows, *is_shared;
};

namespace {

int slices(int n_cols) {
    return (n_cols + 63) / 64;
}

dim3 balanced_grid(int parts, int n_cols, int &split) {
    split = parts < 500000 ? 8 : (parts / 1250000 + 1) * 20;
    return dim3(slices(n_cols), split, parts / split + 1);
}

}  // namespace

extern "C" {

void flashsparse_tf32(Parts parts, int n_rows, int n_cols, const int *columns, const float *values,
                      const float *X, float *Y) {
    if (!parts.balanced) {
        const dim3 grid(slices(n_cols), 200, parts.count / 200 + 1);
        spmm_forward_cuda_kernel_tf32<64><<<grid, 128>>>(parts.pointers, columns, values, X, Y,
                                                         n_cols, parts.count, n_cols, n_rows);
        return;
    }
    int split;
    const dim3 grid = balanced_grid(parts.count, n_cols, split);
    spmm_forward_cuda_kernel_tf32_balance<64>
        <<<grid, 128>>>(parts.pointers, columns, values, parts.windows, parts.is_shared, X, Y,
                        n_cols, parts.count, n_cols, n_rows, split);
}

// Y is in half precision, and in float32 with `balanced`.
void flashsparse_fp16(Parts parts, int n_rows, int n_cols, const int *columns, const void *values,
                      const void *X, void *Y) {
    const auto *A = static_cast<const double *>(values), *B = static_cast<const double *>(X);
    if (!parts.balanced) {
        const dim3 grid(slices(n_cols), 200, parts.count / 200 + 1);
        spmm_forward_cuda_kernel_fp16<64><<<grid, 128>>>(parts.pointers, columns, A, B,
                                                         static_cast<half *>(Y), n_cols,
                                                         parts.count, n_cols, n_rows);
        return;
    }
    int split;
    const dim3 grid = balanced_grid(parts.count, n_cols, split);
    spmm_forward_cuda_kernel_fp16_balance<64>
        <<<grid, 128>>>(parts.pointers, columns, A, parts.windows, parts.is_shared, B,
                        static_cast<float *>(Y), n_cols, parts.count, n_cols, n_rows, split);
}

}  // extern "C"
