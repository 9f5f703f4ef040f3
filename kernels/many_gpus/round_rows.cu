// Rounds features to the nearest 16-bit number, for other GPUs to fetch.
//
// grid  = (blocks)
// block = block_threads threads

// The plan supplies, at compile time:
//   features       1 float16, 2 bfloat16
//   block_threads  threads of a block

#include "common.cuh"
#include "conversions.cuh"

DEVICE_INLINE unsigned short narrowed(float x) {
    if (Config::features == 1) return to_f16(x);
    const unsigned bits = __float_as_uint(x);
    if (x != x) return (unsigned short)(bits >> 16 | 0x40u);  // rounding could make a NaN infinite
    return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    round_rows(const float *__restrict__ X, unsigned short *__restrict__ rounded, long long size) {
    RECORD_WARP;
    const long long stride = (long long)gridDim.x * Config::block_threads;
    for (long long i = (long long)blockIdx.x * Config::block_threads + threadIdx.x; i < size;
         i += stride) {
        rounded[i] = narrowed(X[i]);
    }
}
