#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

__device__ int sum(cg::thread_group group, int *scratch, int value) {
    const int rank = group.thread_rank();
    for (int half = group.size() / 2; half > 0; half /= 2) {
        scratch[rank] = value;
        group.sync();
        if (rank < half) value += scratch[rank + half];
        group.sync();
    }
    return rank == 0 ? value : 0;
}
template <typename Group>
__device__ int down(Group group, int value) {
    for (int half = group.size() / 2; half > 0; half /= 2) value += group.shfl_down(value, half);
    return value;
}
extern "C" __global__ void k(const float *X, int *out) {

    __shared__ int scratch[64];
    __shared__ float tile[64];
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    auto quad = cg::tiled_partition<4>(warp);
    const int t = threadIdx.x, lane = t % 32;
    int *mine = out + 24 * t;
    mine[0] = sum(block, scratch, t);
    mine[1] = sum(cg::tiled_partition(block, 16), scratch + t / 16 * 16, 1);
    mine[2] = sum(quad, scratch + t / 4 * 4, lane);
    mine[3] = down(warp, 1) * (lane == 0) + down(quad, 1) * (lane % 4 == 0);
    mine[4] = cg::reduce(warp, lane, cg::plus<int>());
    mine[5] = cg::reduce(quad, lane, cg::greater<int>()) - cg::reduce(quad, lane, cg::less<int>());
    mine[6] = cg::reduce(quad, 1u << lane % 4, cg::bit_or<unsigned>());
    mine[7] = cg::inclusive_scan(warp, lane);
    mine[8] = cg::exclusive_scan(quad, lane, cg::plus<int>());
    if (lane % 2) {
        cg::coalesced_group odd = cg::coalesced_threads();
        mine[9] = odd.size() * 100 + odd.thread_rank();
        mine[10] = odd.shfl(lane, 2) + odd.shfl_down(lane, 1) * 100;
        mine[11] = odd.ballot(lane < 8) + cg::reduce(odd, 1, cg::plus<int>());
    } else {
        mine[9] = mine[10] = mine[11] = 0;
    }
    mine[12] = quad.ballot(lane % 4 > 1) + 100 * quad.any(lane == 5) + 1000 * quad.all(lane > 3);
    mine[13] = quad.match_any(lane % 2) + 100 * quad.shfl_xor(lane, 2);
    int same;
    mine[14] = quad.match_all(lane / 4, same) + 100 * same + 1000 * quad.shfl_up(lane, 1);
    mine[15] = quad.meta_group_rank() + 100 * quad.meta_group_size();
    mine[15] += 10000 * warp.meta_group_rank();
    mine[16] = cg::labeled_partition(warp, lane % 3).size();
    mine[17] = cg::binary_partition(warp, lane < 10).thread_rank();
    mine[18] = cg::this_thread().size() + block.thread_rank() * 10 + block.size() * 1000;
    mine[19] = cg::this_grid().thread_rank();
    cg::memcpy_async(block, tile, X, sizeof(float) * 64);
    cg::wait(block);
    mine[20] = tile[63 - t];
    const float4 wide = warp.shfl(make_float4(lane, 1, 2, lane), 7);
    mine[21] = wide.x + wide.w;
    static_assert(cg::thread_block_tile<8>::size() == 8, "known to the compiler");
    mine[22] = block.group_index().x * 100 + block.thread_index().x;
    cg::sync(block);
    mine[23] = down(cg::tiled_partition<1>(block), t);
}
