// C entry of DF-GNN's attention of GAT without a gradient, with the launches of its host functions.

#include "fused_gatconv/fused_gatconv_hyper.cu"
#include "fused_gatconv/fused_gatconv_softmax_gm.cu"
#include "fused_gatconv/fused_gatconv_tiling.cu"

// `kernel` 0 is "tiling", 1 "hyper" (`shared_floats` are 8 times the largest degree, rounded up to
// 32), 2 "softmax_gm" with `scores` as workspace, nonzeros x heads.
extern "C" void dfgnn_gat(int kernel, int n_rows, int nonzeros, int heads, int n_cols,
                          int shared_floats, const float *receiver, const float *sender,
                          const int *row_pointers, const int *columns, const int *rows,
                          const float *V, float slope, float *scores, float *Y) {
    if (kernel == 0) {
        const dim3 grid(n_rows, heads), block(32, (n_cols + 31) / 32);
        fused_gat_tiling<float, 128>
            <<<grid, block>>>(heads, n_cols, receiver, sender, row_pointers, columns, V, slope, Y);
    } else if (kernel == 1) {
        gat_hyper_inference_launch(n_rows, nonzeros, heads, n_cols, shared_floats, receiver, sender,
                                   row_pointers, columns, rows, slope, V, Y);
    } else {
        gat_softmax_gm_inference_launch(n_rows, nonzeros, heads, n_cols, receiver, sender,
                                        row_pointers, columns, rows, slope, scores, V, Y);
    }
}
