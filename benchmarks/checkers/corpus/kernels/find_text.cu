// First occurrence of a pattern: threads compare at their positions, the smallest wins atomically.
__global__ void find_text(const char *text, int length, const char *pattern, int size, int *first) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i + size <= length; i += gridDim.x * blockDim.x) {
        int k = 0;
        while (k < size && __ldg(text + i + k) == __ldg(pattern + k)) ++k;
        if (k == size) atomicMin(first, i);
    }
}
