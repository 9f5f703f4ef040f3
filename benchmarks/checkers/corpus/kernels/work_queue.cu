// Blocks take pieces of work from a counter until there is none.
__device__ int next_row = 0;

__global__ void work_queue(const int *starts, const int *values, int *sums, int rows) {
    __shared__ int row, sum;
    for (;;) {
        if (threadIdx.x == 0) {
            row = atomicAdd(&next_row, 1);
            sum = 0;
        }
        __syncthreads();  // taken
        if (row >= rows) return;
        int mine = 0;
        for (int k = starts[row] + threadIdx.x; k < starts[row + 1]; k += blockDim.x) {
            mine += values[k];
        }
        atomicAdd(&sum, mine);
        __syncthreads();  // summed
        if (threadIdx.x == 0) sums[row] = sum;
        __syncthreads();  // stored
    }
}
