// A level of breadth-first search: vertices join the next queue once, by compare-and-swap.
__global__ void next_frontier(const int *pointers, const int *columns, int *levels, const int *queue,
                              int count, int *next, int *next_count, int level) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    for (int k = pointers[queue[i]]; k < pointers[queue[i] + 1]; ++k) {
        if (atomicCAS(&levels[columns[k]], -1, level) == -1) next[atomicAdd(next_count, 1)] = columns[k];
    }
}
