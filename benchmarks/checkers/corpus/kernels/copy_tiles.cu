// Each block copies its tile asynchronously, reverses it, and keeps a smoothed copy of it.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>

namespace cg = cooperative_groups;

__global__ void copy_tiles(float *X, float *Y, float *sums, int n) {
    __shared__ float tile[256];
    const auto block = cg::this_thread_block();
    const int first = blockIdx.x * blockDim.x, t = threadIdx.x;
    const int count = min(int(blockDim.x), n - first);
    cg::memcpy_async(block, tile, X + first, sizeof(float) * count);
    cg::wait(block);
    if (t < count) Y[first + t] = tile[count - 1 - t];
    if (t < count) X[first + t] = 0.0f;
    const float left = t > 0 && t < count ? tile[t - 1] : 0.0f;
    if (t < count) sums[first + t] = left + tile[t];
}
