// In the style of GE-SpMM and dgSPARSE: rows cached in shared memory, two columns a thread
template <typename Index, typename DType, int CF>
__global__ void csrspmm_parreduce_rowbalance(const Index M, const Index N, const Index *__restrict__ csr_indptr, const Index *__restrict__ csr_indices, const DType *__restrict__ csr_data, const DType *__restrict__ B, DType *__restrict__ C) {
  constexpr int tile_k = 32;
  extern __shared__ int sh[];
  int *sh_col = sh + threadIdx.y * 32;
  DType *sh_val = (DType *)(sh + blockDim.y * 32) + threadIdx.y * 32;
  const Index rid = blockIdx.x * blockDim.y + threadIdx.y;
  const Index cid = blockIdx.y * tile_k * CF + threadIdx.x;
  if (rid >= M) return;
  const Index lb = __ldg(csr_indptr + rid), hb = __ldg(csr_indptr + rid + 1);
  DType acc[CF] = {};
  for (Index ptr = lb; ptr < hb; ptr += 32) {
    if (ptr + (int)threadIdx.x < hb) { sh_col[threadIdx.x] = csr_indices[ptr + threadIdx.x]; sh_val[threadIdx.x] = csr_data ? csr_data[ptr + threadIdx.x] : DType(1); }
    __syncwarp();
    for (int kk = 0; kk < 32 && ptr + kk < hb; ++kk) {
      const Index offset = sh_col[kk] * N + cid;
#pragma unroll
      for (int c = 0; c < CF; ++c) if (cid + c * tile_k < N) acc[c] += sh_val[kk] * B[offset + c * tile_k];
    }
    __syncwarp();
  }
#pragma unroll
  for (int c = 0; c < CF; ++c) if (cid + c * tile_k < N) C[rid * N + cid + c * tile_k] = acc[c];
}
