// Merges two sorted arrays: each element's rank is its index and a binary search in the other one.
__device__ int rank_in(const int *sorted, int n, int key, bool after_equal) {
    int low = 0, high = n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (sorted[middle] < key || (after_equal && sorted[middle] == key)) low = middle + 1;
        else high = middle;
    }
    return low;
}

__global__ void merge_sorted(const int *A, int n_a, const int *B, int n_b, int *out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n_a) out[i + rank_in(B, n_b, A[i], false)] = A[i];
    if (i < n_b) out[i + rank_in(A, n_a, B[i], true)] = B[i];
}
