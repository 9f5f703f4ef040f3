// C entries of dgNN's attention of GAT, with the launches of its host functions.
//
// Its forward pass draws a dropout mask in every call. The entry takes the mask, all ones, so that
// no random numbers are in the time of the kernel.

#include "fused_gatconv/fused_gatconv_kernel.cu"

extern "C" {

void dgnn_gat_inference(int n_rows, int nonzeros, int heads, int n_cols, const float *receiver,
                        const float *sender, const int *row_pointers, const int *columns,
                        const float *V, float slope, float *Y) {
    const dim3 grid(n_rows, heads), block(32, (n_cols + 31) / 32);
    fused_inference_kernel<<<grid, block, 32 * (sizeof(float) + sizeof(int))>>>(
        n_rows, nonzeros, heads, n_cols, receiver, sender, row_pointers, columns, V, slope, Y);
}

void dgnn_gat(int n_rows, int nonzeros, int heads, int n_cols, const float *receiver,
              const float *sender, const int *row_pointers, const int *columns, const float *V,
              float slope, const float *mask, float *row_max, float *row_sum, float *Y) {
    const dim3 grid(n_rows, heads), block(32, (n_cols + 31) / 32);
    fused_forward_kernel<<<grid, block, 32 * (sizeof(float) + sizeof(int))>>>(
        n_rows, nonzeros, heads, n_cols, 0.0f, receiver, sender, row_pointers, columns, V, slope,
        row_max, row_sum, const_cast<float *>(mask), Y, 0);
}

// `d_sender` has to be zero before. `d_edge` is workspace, nonzeros x heads.
void dgnn_gat_gradient(int n_rows, int nonzeros, int heads, int n_cols, float slope,
                       int *row_pointers, int *columns, int *column_pointers, int *rows,
                       int *permutation, float *row_max, float *row_sum, float *mask, float *V,
                       float *receiver, float *sender, float *dY, float *d_edge, float *dV,
                       float *d_receiver, float *d_sender) {
    gat_backward(n_rows, nonzeros, heads, n_cols, slope, 0.0f, row_pointers, columns,
                 column_pointers, rows, permutation, row_max, row_sum, mask, V, receiver, sender,
                 dY, d_edge, dV, d_receiver, d_sender);
}

}  // extern "C"
