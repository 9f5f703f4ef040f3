// Plumbing that every kernel shares. No algorithm hides here.
#pragma once

#define WARP_SIZE 32

// Shared memory whose size the launch decides; the emulator has a definition of its own.
#ifndef DYNAMIC_SHARED
#define DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#endif

// Position in a dense matrix. 64-bit, because rows x columns passes 2^31 on real graphs.
__device__ __forceinline__ long long element(int row, int column, int n_cols) {
    return (long long)row * n_cols + column;
}

// ceil(a / b) of positive integers.
__device__ __forceinline__ int ceil_div(int a, int b) {
    return (a + b - 1) / b;
}
