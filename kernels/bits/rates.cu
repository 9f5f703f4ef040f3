// How many bit products a GPU does in a second: tensor cores with AND, with INT8 and INT4 beside
// them, and CUDA cores with popc. Nothing is read; each warp has eight sums of its own under way.
//
// grid = blocks, block = threads, both as many as one likes. The plan supplies REPEATS, at compile
// time: how often each of the eight is added to.
#ifndef REPEATS
#error "rates.cu is compiled by accelviz, which supplies the constant listed above"
#endif

#include "fragments.cuh"

#define SUMS 8

template <typename Multiply>
__device__ __forceinline__ void repeat(int *out, Multiply multiply) {
    int c[SUMS][4] = {};
    unsigned a[4], b[2];
    for (int r = 0; r < 4; ++r) a[r] = threadIdx.x * 0x9e3779b9u + r;
    for (int r = 0; r < 2; ++r) b[r] = threadIdx.x * 0x85ebca6bu + r;
#pragma unroll 4
    for (int i = 0; i < REPEATS; ++i) {
#pragma unroll
        for (int s = 0; s < SUMS; ++s) multiply(c[s], a, b);
    }
    int sum = 0;
    for (int s = 0; s < SUMS; ++s) sum ^= c[s][0] ^ c[s][1] ^ c[s][2] ^ c[s][3];
    if (sum == 0x12345678) out[0] = sum;  // which the compiler cannot exclude
}

extern "C" __global__ void bit_products(int *out) {
    RECORD_WARP;
    repeat(out, [](int (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        mma_b1_k256(c, a, b);
    });
}

extern "C" __global__ void byte_products(int *out) {
    RECORD_WARP;
    repeat(out, [](int (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        mma_s8_k32(c, a, b);
    });
}

extern "C" __global__ void nibble_products(int *out) {
    RECORD_WARP;
    repeat(out, [](int (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        mma_s4_k64(c, a, b);
    });
}

extern "C" __global__ void popc_products(int *out) {
    RECORD_WARP;
    repeat(out, [](int (&c)[4], unsigned (&a)[4], const unsigned (&b)[2]) {
        a[0] += b[0];  // so that no two are the same
#pragma unroll
        for (int r = 0; r < 4; ++r) c[r] += __popc(a[0] ^ unsigned(c[r]));
    });
}
