// Adds up what blocks have left in TOTAL_PARTS places, and leaves these as they were: zero.
//
// grid  = entries over BLOCK_THREADS, rounded up
// block = BLOCK_THREADS threads

// The plan supplies, at compile time:
//   TOTAL_PARTS    how many places
//   BLOCK_THREADS  threads of a block
#if !defined(TOTAL_PARTS) || !defined(BLOCK_THREADS)
#error "add_parts.cu is compiled by accelviz, which supplies the constants listed above"
#endif

#include "common.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    add_parts(float *__restrict__ total_parts, float *__restrict__ da, int heads, int n_cols) {
    RECORD_WARP;
    const int entry = int(blockIdx.x) * BLOCK_THREADS + int(threadIdx.x), entries = heads * n_cols;
    if (entry >= entries) return;
    float sum = 0.0f;
#pragma unroll 16
    for (int part = 0; part < TOTAL_PARTS; ++part) {
        float *own = &total_parts[(long long)part * entries + entry];
        sum += *own;
        *own = 0.0f;
    }
    da[entry] = sum;
}
