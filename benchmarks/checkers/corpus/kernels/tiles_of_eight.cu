// Sums and prefix sums of tiles of eight threads by cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

__global__ void tiles_of_eight(const int *X, int *sums, int *prefixes, int n) {
    const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    const int i = blockIdx.x * blockDim.x + threadIdx.x, x = i < n ? X[i] : 0;
    const int sum = cg::reduce(tile, x, cg::plus<int>());
    const int prefix = cg::exclusive_scan(tile, x);
    if (i < n) prefixes[i] = prefix;
    if (tile.thread_rank() == 0) sums[i / 8] = sum;
}
