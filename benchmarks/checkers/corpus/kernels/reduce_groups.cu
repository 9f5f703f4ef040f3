#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

// Groups of 16 lanes sum, then one atomic a group.
__global__ void reduce_groups(const int *X, int *sum, int n) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<16> tile = cg::tiled_partition<16>(block);
    __shared__ int total;
    if (block.thread_rank() == 0) total = 0;
    block.sync();
    const int i = block.group_index().x * block.size() + block.thread_rank();
    const int mine = i < n ? X[i] : 0;
    const int of_tile = cg::reduce(tile, mine, cg::plus<int>());
    if (tile.thread_rank() == 0) atomicAdd(&total, of_tile);
    block.sync();  // added
    if (block.thread_rank() == 0) atomicAdd(sum, total);
}
