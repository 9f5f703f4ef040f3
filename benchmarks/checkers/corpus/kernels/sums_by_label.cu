// Lanes with the same key form a group, whose sum its first lane adds with one atomic.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

__global__ void sums_by_label(const int *keys, const int *values, int *sums, int n) {
    const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    const int i = blockIdx.x * blockDim.x + threadIdx.x, key = i < n ? keys[i] : -1;
    const auto group = cg::labeled_partition(warp, key);
    const int sum = cg::reduce(group, i < n ? values[i] : 0, cg::plus<int>());
    if (key >= 0 && group.thread_rank() == 0) atomicAdd(&sums[key], sum);
}
