// C entries of Turbo-GNN's maximum and of its GATv2, with the launches of its host functions.
//
// `Nodes` are its two buckets by degree; indices have 32 bits. `build.py` cuts
// reduction_aggr.cu before its host functions, which instantiate every dtype.

#include "gatv2/gatv2_backward.cu"
#include "gatv2/gatv2_forward.cu"
#include "reduction_aggr_kernels.cu"

struct Nodes {
    int n_light, n_heavy;
    const int *light, *heavy;
};

namespace {

__global__ void fill(unsigned long long *packed, unsigned long long value, size_t count) {
    const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < count) packed[i] = value;
}

template <int WARPS, int EDGES>
void heavy_rows(Nodes nodes, int max_degree, const int *row_pointers, const int *columns,
                const float *X, unsigned long long *packed, float *Y, int *arg, int n_cols) {
    const size_t count = size_t(nodes.n_heavy) * n_cols;
    fill<<<(count + 255) / 256, 256>>>(packed, ReductionOps<ReductionOp::MAX>::PACKED_IDENTITY,
                                       count);
    auto *keys = reinterpret_cast<uint64_t *>(packed);
    const dim3 grid(nodes.n_heavy, (max_degree + EDGES - 1) / EDGES);
    reduction_aggr_forward_heavy_kernel<EDGES, WARPS, float, ReductionOp::MAX, int>
        <<<grid, WARPS * 32>>>(nodes.heavy, row_pointers, columns, X, keys, n_cols);
    const int threads = WARPS * 32;
    unpack_results_kernel<WARPS, float, int><<<(count + threads - 1) / threads, threads>>>(
        keys, nodes.heavy, Y, arg, nodes.n_heavy, n_cols);
}

template <int WARPS>
void maximum(int edges, Nodes nodes, int max_degree, const int *row_pointers, const int *columns,
             const float *X, unsigned long long *packed, float *Y, int *arg, int n_cols) {
    if (nodes.n_light) {
        reduction_aggr_forward_light_kernel_1d<WARPS, float, ReductionOp::MAX, int>
            <<<nodes.n_light, WARPS * 32>>>(nodes.light, row_pointers, columns, X, Y, arg, n_cols);
    }
    if (!nodes.n_heavy) return;
    if (edges == 0) {  // its kernel of two dimensions, with its default block of 32 x 8
        const size_t shared = 32 * 8 * 4 * (sizeof(float) + sizeof(int));
        reduction_aggr_forward_heavy_kernel_2d<float, ReductionOp::MAX, int>
            <<<nodes.n_heavy, dim3(32, 8), shared>>>(nodes.heavy, row_pointers, columns, X, Y, arg,
                                                     n_cols);
        return;
    }
    auto run = edges == 128 ? heavy_rows<WARPS, 128> : heavy_rows<WARPS, 512>;
    run(nodes, max_degree, row_pointers, columns, X, packed, Y, arg, n_cols);
}

template <int D>
void gatv2(int n_rows, int heads, Nodes nodes, const float *R, const float *V,
           const int *row_pointers, const int *columns, const float *a, float *Y, float *logsumexp,
           float slope) {
    const int64_t row = int64_t(heads) * D;
    auto launch = [&](auto warps, int count, const int *rows) {
        constexpr int W = decltype(warps)::value;
        const size_t shared = D * sizeof(float) + W * D * sizeof(float) + 2 * W * sizeof(float);
        if (count) {
            GATv2Forward_Kernel<W, D, float, int><<<dim3(count, heads), W * 32, shared>>>(
                n_rows, heads, D, R, V, row, D, row, D, row_pointers, columns, rows, a, Y,
                logsumexp, slope);
        }
    };
    launch(std::integral_constant<int, 1>(), nodes.n_light, nodes.light);
    launch(std::integral_constant<int, 8>(), nodes.n_heavy, nodes.heavy);
}

template <int D>
void gatv2_gradient(int n_rows, int heads, Nodes nodes, Nodes transposed, const float *dY,
                    const float *R, const float *V, const int *row_pointers, const int *columns,
                    const int *column_pointers, const int *rows, const float *a,
                    const float *logsumexp, float slope, float *by_row, float *G, float *dR,
                    float *dV, float *da) {
    const int64_t row = int64_t(heads) * D;
    auto receivers = [&](auto warps, int count, const int *list) {
        constexpr int W = decltype(warps)::value;
        const size_t shared = sizeof(float) * (2 * D + W * 2 * D + W + 1);
        if (count) {
            GATv2Backward_AL<W, D, float, int><<<dim3(count, heads), W * 32, shared>>>(
                n_rows, heads, D, dY, row, D, R, row, D, V, row, D, row_pointers, columns, list, a,
                logsumexp, slope, by_row, dR, G);
        }
    };
    auto senders = [&](auto warps, int count, const int *list) {
        constexpr int W = decltype(warps)::value;
        const size_t shared = sizeof(float) * (D + W * D);
        if (count) {
            GATv2Backward_R<W, D, float, int><<<dim3(count, heads), W * 32, shared>>>(
                n_rows, heads, D, dY, row, D, R, row, D, V, row, D, column_pointers, rows, list, a,
                logsumexp, G, slope, dV);
        }
    };
    const std::integral_constant<int, 1> one;
    const std::integral_constant<int, 8> eight;
    cudaMemsetAsync(da, 0, sizeof(float) * row);
    receivers(one, nodes.n_light, nodes.light);
    receivers(eight, nodes.n_heavy, nodes.heavy);
    senders(one, transposed.n_light, transposed.light);
    senders(eight, transposed.n_heavy, transposed.heavy);
    constexpr int CHUNK = 1024;
    const dim3 grid((n_rows + CHUNK - 1) / CHUNK, (D + 31) / 32, heads);
    ReduceGradAKernel<CHUNK, float>
        <<<grid, dim3(32, 32), 32 * 34 * sizeof(float)>>>(n_rows, heads, D, by_row, da);
}

}  // namespace

extern "C" {

// `edges` of a block of its kernel for long rows, 128 or 512; 0 is its kernel of two dimensions.
void turbo_max(int warps, int edges, Nodes nodes, int max_degree, const int *row_pointers,
               const int *columns, const float *X, unsigned long long *packed, float *Y, int *arg,
               int n_cols) {
    auto run = warps == 1 ? maximum<1> : maximum<2>;
    run(edges, nodes, max_degree, row_pointers, columns, X, packed, Y, arg, n_cols);
}

void turbo_max_gradient(int n_rows, int n_columns, int n_cols, const float *dY, const int *arg,
                        float *dX) {
    cudaMemsetAsync(dX, 0, sizeof(float) * size_t(n_columns) * n_cols);
    reduction_aggr_backward_typed<1, float, int><<<n_rows, 32>>>(dY, arg, dX, n_rows, n_cols);
}

// -1 if there is no kernel for this number of columns of a head.
int turbo_gatv2(int n_rows, int heads, int n_cols, Nodes nodes, const float *R, const float *V,
                const int *row_pointers, const int *columns, const float *a, float *Y,
                float *logsumexp, float slope) {
    if (n_cols != 32 && n_cols != 64) return -1;
    auto run = n_cols == 32 ? gatv2<32> : gatv2<64>;
    run(n_rows, heads, nodes, R, V, row_pointers, columns, a, Y, logsumexp, slope);
    return 0;
}

// `by_row` (n_rows x heads x n_cols) and `G` (n_rows x heads) are workspace.
int turbo_gatv2_gradient(int n_rows, int heads, int n_cols, Nodes nodes, Nodes transposed,
                         const float *dY, const float *R, const float *V, const int *row_pointers,
                         const int *columns, const int *column_pointers, const int *rows,
                         const float *a, const float *logsumexp, float slope, float *by_row,
                         float *G, float *dR, float *dV, float *da) {
    if (n_cols != 32 && n_cols != 64) return -1;
    auto run = n_cols == 32 ? gatv2_gradient<32> : gatv2_gradient<64>;
    run(n_rows, heads, nodes, transposed, dY, R, V, row_pointers, columns, column_pointers, rows, a,
        logsumexp, slope, by_row, G, dR, dV, da);
    return 0;
}

}  // extern "C"
