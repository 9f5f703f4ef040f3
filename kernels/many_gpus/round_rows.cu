// Writes features in 16 bits, rounded to the nearest, for other GPUs to fetch.
//
// grid  = (blocks)
// block = BLOCK_THREADS threads

// The plan supplies, at compile time:
//   FEATURES       1 float16, 2 bfloat16
//   BLOCK_THREADS  threads of a block
#if !defined(FEATURES) || !defined(BLOCK_THREADS)
#error "round_rows.cu is compiled by accelviz, which supplies the constants listed above"
#endif

#include "common.cuh"
#if FEATURES == 1 && !defined(__CUDA_ARCH__)
#include <cuda_fp16.h>
#endif

__device__ __forceinline__ unsigned short narrowed(float x) {
#if FEATURES == 2
    const unsigned bits = __float_as_uint(x);
    if (x != x) return (unsigned short)(bits >> 16 | 0x40u);  // a NaN, not rounded to infinity
    return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
#elif defined(__CUDA_ARCH__)
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
#else
    return __half_as_ushort(__float2half_rn(x));
#endif
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    round_rows(const float *__restrict__ X, unsigned short *__restrict__ rounded, long long size) {
    RECORD_WARP;
    const long long stride = (long long)gridDim.x * BLOCK_THREADS;
    for (long long i = (long long)blockIdx.x * BLOCK_THREADS + threadIdx.x; i < size; i += stride) {
        rounded[i] = narrowed(X[i]);
    }
}
