// Appends odd numbers to a list: threads that meet in the branch share one atomic.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void append_coalesced(const int *X, int *count, int *list, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || X[i] % 2 == 0) return;
    const auto group = cg::coalesced_threads();
    int first = 0;
    if (group.thread_rank() == 0) first = atomicAdd(count, group.size());
    list[group.shfl(first, 0) + group.thread_rank()] = X[i] % 2;
}
