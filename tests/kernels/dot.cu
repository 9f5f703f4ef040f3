// A dot product with cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
using namespace cooperative_groups;
__global__ void dot(const float *a, const float *b, float *result, int n) {
    thread_block block = this_thread_block();
    auto tile = tiled_partition<32>(block);
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += a[i] * b[i];
    sum = reduce(tile, sum, plus<float>());
    if (tile.thread_rank() == 0) atomicAdd(result, sum);
}
