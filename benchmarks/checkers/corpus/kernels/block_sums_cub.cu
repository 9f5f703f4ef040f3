// Sums and prefix sums of a block by CUB, whose storage is used twice with a barrier between.
#include <cub/cub.cuh>

__global__ void block_sums_cub(const int *X, int *sums, int *prefixes, int n) {
    using Reduce = cub::BlockReduce<int, 64>;
    using Scan = cub::BlockScan<int, 64>;
    __shared__ union {
        typename Reduce::TempStorage reduce;
        typename Scan::TempStorage scan;
    } storage;
    const int i = blockIdx.x * 64 + threadIdx.x;
    int x = i < n ? X[i] : 0;
    const int sum = Reduce(storage.reduce).Sum(x);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
    __syncthreads();
    Scan(storage.scan).InclusiveSum(x, x);
    if (i < n) prefixes[i] = x;
}
