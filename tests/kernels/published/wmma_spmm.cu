// In the style of TC-GNN: SpMM by row windows on tensor cores in TF32
#include <mma.h>
#include <cuda.h>
#include <cuda_runtime.h>
#define WPB 4
#define BLK_H 16
#define BLK_W 8
#define WARP_SIZE 32
using namespace nvcuda;
__global__ void spmm_forward_cuda_kernel(const int *__restrict__ nodePointer, const int *__restrict__ edgeList, const int *__restrict__ blockPartition, const int *__restrict__ edgeToColumn, const int *__restrict__ edgeToRow, const int numNodes, const int numEdges, const int embedding_dim, const float *__restrict__ input, float *output) {
  const unsigned bid = blockIdx.x, wid = threadIdx.y, laneid = threadIdx.x;
  const unsigned tid = threadIdx.y * blockDim.x + laneid, threadPerBlock = blockDim.x * blockDim.y;
  const unsigned dimTileNum = (embedding_dim + BLK_H - 1) / BLK_H;
  const unsigned nIdx_start = bid * BLK_H, nIdx_end = min((bid + 1) * BLK_H, numNodes);
  const unsigned eIdx_start = nodePointer[nIdx_start], eIdx_end = nodePointer[nIdx_end];
  const unsigned num_TC_blocks = blockPartition[bid];
  const unsigned dense_bound = numNodes * embedding_dim;
  __shared__ float sparse_A[BLK_H * BLK_W];
  __shared__ int sparse_AToX_index[BLK_W];
  extern __shared__ float dense_X[];
  wmma::fragment<wmma::matrix_a, BLK_H, BLK_H, BLK_W, wmma::precision::tf32, wmma::row_major> a_frag;
  wmma::fragment<wmma::matrix_b, BLK_H, BLK_H, BLK_W, wmma::precision::tf32, wmma::col_major> b_frag;
  wmma::fragment<wmma::accumulator, BLK_H, BLK_H, BLK_W, float> acc_frag;
  wmma::fill_fragment(acc_frag, 0.0f);
  for (unsigned i = 0; i < num_TC_blocks; i++) {
    if (tid < BLK_W) sparse_AToX_index[tid] = numNodes + 1;
    __syncthreads();
#pragma unroll
    for (unsigned idx = tid; idx < BLK_W * BLK_H; idx += threadPerBlock) sparse_A[idx] = 0;
    __syncthreads();
#pragma unroll
    for (unsigned eIdx = eIdx_start + tid; eIdx < eIdx_end; eIdx += threadPerBlock) {
      unsigned col = edgeToColumn[eIdx];
      if (i * BLK_W <= col && col < (i + 1) * BLK_W) {
        unsigned row_local = edgeToRow[eIdx] % BLK_H, col_local = col % BLK_W;
        sparse_A[row_local * BLK_W + col_local] = 1;
        sparse_AToX_index[col_local] = edgeList[eIdx];
      }
    }
    __syncthreads();
#pragma unroll
    for (unsigned idx = laneid; idx < BLK_W * BLK_H; idx += WARP_SIZE) {
      unsigned dense_rowIdx = sparse_AToX_index[idx % BLK_W], dense_dimIdx = idx / BLK_W;
      unsigned source_idx = dense_rowIdx * embedding_dim + wid * BLK_H + dense_dimIdx;
      unsigned target_idx = wid * BLK_W * BLK_H + idx;
      if (source_idx >= dense_bound || wid >= dimTileNum) { if (wid < dimTileNum) dense_X[target_idx] = 0; }
      else dense_X[target_idx] = input[source_idx];
    }
    __syncthreads();
    if (wid < dimTileNum) {
      wmma::load_matrix_sync(a_frag, sparse_A, BLK_W);
      wmma::load_matrix_sync(b_frag, dense_X + wid * BLK_W * BLK_H, BLK_W);
#pragma unroll
      for (unsigned t = 0; t < a_frag.num_elements; t++) a_frag.x[t] = wmma::__float_to_tf32(a_frag.x[t]);
#pragma unroll
      for (unsigned t = 0; t < b_frag.num_elements; t++) b_frag.x[t] = wmma::__float_to_tf32(b_frag.x[t]);
      wmma::mma_sync(acc_frag, a_frag, b_frag, acc_frag);
    }
    __syncthreads();
  }
  if (wid < dimTileNum) wmma::store_matrix_sync(output + bid * BLK_H * embedding_dim + wid * BLK_H, acc_frag, embedding_dim, wmma::mem_row_major);
}
