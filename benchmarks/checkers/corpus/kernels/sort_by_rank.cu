// The place of each key is how many are smaller; equal ones keep their order.
__global__ void sort_by_rank(const float *keys, float *sorted, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float key = keys[i];
    int rank = 0;
    for (int j = 0; j < n; ++j) rank += keys[j] < key || (keys[j] == key && j < i);
    sorted[rank] = key;
}
