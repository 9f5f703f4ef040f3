// In the style of CUDA samples: reductionMultiBlockCG
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__device__ void reduceBlock(double *sdata, const cg::thread_block &cta) {
  const unsigned int tid = cta.thread_rank();
  cg::thread_block_tile<32> tile32 = cg::tiled_partition<32>(cta);
  sdata[tid] = cg::reduce(tile32, sdata[tid], cg::plus<double>());
  cg::sync(cta);
  double beta = 0.0;
  if (cta.thread_rank() == 0) {
    for (int i = 0; i < blockDim.x; i += tile32.size()) beta += sdata[i];
    sdata[0] = beta;
  }
  cg::sync(cta);
}
extern "C" __global__ void reduceSinglePassMultiBlockCG(const float *g_idata, float *g_odata, unsigned int n) {
  cg::thread_block block = cg::this_thread_block();
  cg::grid_group grid = cg::this_grid();
  extern double __shared__ sdata[];
  sdata[block.thread_rank()] = 0;
  for (int i = grid.thread_rank(); i < n; i += grid.size()) sdata[block.thread_rank()] += g_idata[i];
  cg::sync(block);
  reduceBlock(sdata, block);
  if (block.thread_rank() == 0) g_odata[blockIdx.x] = sdata[0];
  cg::sync(grid);
  if (grid.thread_rank() == 0) {
    for (int b = 1; b < gridDim.x; b++) g_odata[0] += g_odata[b];
  }
}
