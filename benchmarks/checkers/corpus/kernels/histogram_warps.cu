// A histogram a warp in shared memory, which are then added: atomics collide within a warp only.
#define BINS 64

__global__ void histogram_warps(const unsigned *words, unsigned *counts, int n) {
    extern __shared__ unsigned tables[];
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
    for (int k = threadIdx.x; k < warps * BINS; k += blockDim.x) tables[k] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        for (int byte = 0; byte < 4; ++byte) {
            atomicAdd(&tables[warp * BINS + (words[i] >> (8 * byte + 2) & 63)], 1U);
        }
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
        unsigned sum = 0;
        for (int w = 0; w < warps; ++w) sum += tables[w * BINS + bin];
        atomicAdd(&counts[bin], sum);
    }
}
