// In the style of research repositories: frontier expansion with warp-aggregated atomics, CUB scan, cuda::atomic_ref
#include <cub/cub.cuh>
#include <cuda/atomic>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__inline__ __device__ int atomicAggInc(int *ctr) {
  cg::coalesced_group g = cg::coalesced_threads();
  int warp_res;
  if (g.thread_rank() == 0) warp_res = atomicAdd(ctr, (int)g.size());
  return g.shfl(warp_res, 0) + g.thread_rank();
}
template <int BLOCK>
__global__ void __launch_bounds__(BLOCK) expand(const int *__restrict__ row_ptr, const int *__restrict__ col, const int *frontier, int n_frontier, int *dist, int *next, int *n_next, int level, int *total_edges) {
  typedef cub::BlockScan<int, BLOCK> BlockScan;
  __shared__ typename BlockScan::TempStorage temp_storage;
  __shared__ int begins[BLOCK], offsets[BLOCK + 1];
  int i = blockIdx.x * BLOCK + threadIdx.x;
  int begin = 0, degree = 0;
  if (i < n_frontier) { int v = frontier[i]; begin = row_ptr[v]; degree = row_ptr[v + 1] - begin; }
  int offset, aggregate;
  BlockScan(temp_storage).ExclusiveSum(degree, offset, aggregate);
  begins[threadIdx.x] = begin; offsets[threadIdx.x] = offset;
  if (threadIdx.x == 0) { offsets[BLOCK] = aggregate; cuda::atomic_ref<int, cuda::thread_scope_device>(*total_edges).fetch_add(aggregate, cuda::memory_order_relaxed); }
  __syncthreads();
  for (int e = threadIdx.x; e < aggregate; e += BLOCK) {
    int lo = 0, hi = BLOCK;
    while (hi - lo > 1) { int mid = (lo + hi) >> 1; if (offsets[mid] <= e) lo = mid; else hi = mid; }
    int u = __ldg(&col[begins[lo] + e - offsets[lo]]);
    if (atomicCAS(&dist[u], -1, level) == -1) next[atomicAggInc(n_next)] = u;
  }
}
