// A bitonic sort.
__device__ void swap(float &a, float &b) { float t = a; a = b; b = t; }
__global__ void bitonic_sort(float *values) {
    extern __shared__ float s[];
    unsigned int i = threadIdx.x;
    s[i] = values[i];
    __syncthreads();
    for (int k = 2; k <= blockDim.x; k <<= 1)
        for (int j = k >> 1; j > 0; j = j >> 1) {
            unsigned int other = i ^ j;
            if (other > i) {
                if ((i & k) == 0) { if (s[i] > s[other]) swap(s[i], s[other]); }
                else { if (s[i] < s[other]) swap(s[i], s[other]); }
            }
            __syncthreads();
        }
    values[i] = s[i];
}
