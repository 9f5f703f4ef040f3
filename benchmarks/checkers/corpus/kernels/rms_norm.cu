// RMS norm of rows with vectors of four, a tile of a warp a row, reduced by cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

__global__ void rms_norm(const float4 *X, const float4 *gain, float4 *Y, int rows, int quads) {
    const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    const int row = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
    if (row >= rows) return;
    float sum = 0;
    for (int q = warp.thread_rank(); q < quads; q += warp.size()) {
        const float4 x = X[row * quads + q];
        sum += x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
    }
    sum = cg::reduce(warp, sum, cg::plus<float>());
    const float scale = rsqrtf(sum / (4 * quads) + 1e-5f);
    for (int q = warp.thread_rank(); q < quads; q += warp.size()) {
        const float4 x = X[row * quads + q], g = gain[q];
        Y[row * quads + q] = make_float4(x.x * scale * g.x, x.y * scale * g.y, x.z * scale * g.z,
                                         x.w * scale * g.w);
    }
}
