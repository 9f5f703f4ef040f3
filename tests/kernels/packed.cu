// Two threads write the two halves of a word: as elements, as members, of shared and global memory;
// and a flag in shared memory, which `fenced` releases and `unfenced` does not.
#include <cuda_fp16.h>
__global__ void packed(half *Y, int which) {
    __shared__ half2 pairs[128];
    half *const s = reinterpret_cast<half *>(pairs);
    const int t = threadIdx.x;
    const half x = __float2half(t);
    switch (which) {
    case 0: s[t] = x; break;
    case 1: if (t % 2) pairs[t / 2].y = x; else pairs[t / 2].x = x; break;
    case 2: Y[t] = x; return;
    case 3: if (t % 2) reinterpret_cast<half2 *>(Y)[t / 2].y = x; else Y[t] = x; return;
    case 4:  // one half is read while another thread writes the other
        if (t % 2 == 0) pairs[t / 2] = __halves2half2(__float2half(t / 2 * 2), __float2half(7));
        __syncthreads();
        if (t % 2) s[t] = x; else Y[t] = pairs[t / 2].x;
        break;
    }
    __syncthreads();
    Y[t] = s[t];
}

__global__ void torn(half *Y, int which) {
    __shared__ half2 pairs[128];
    half *const s = reinterpret_cast<half *>(pairs);
    const int t = threadIdx.x;
    const half x = __float2half(t);
    switch (which) {
    case 0: s[t / 2] = x; break;
    case 1: pairs[t / 2].x = x; break;
    case 2: pairs[t / 2] = __half2half2(x); break;
    case 3: Y[t / 2] = x; return;
    case 4: s[t] = x; __syncthreads(); if (t % 2) s[t - 1] = x; else Y[t] = s[t]; return;
    }
    __syncthreads();
    Y[t] = s[t];
}

__global__ void fenced(int *Y, int many) {
    __shared__ volatile int flag;
    __shared__ int data;
    const int t = threadIdx.x;
    if (t == 0) flag = 0;
    __syncthreads();
    if (t == 0) {
        data = 7;
        __threadfence_block();
        flag = 1;
    } else if (t == blockDim.x - 1 || many) {
        while (flag == 0) {}
        __threadfence_block();
        Y[t] = data;
    }
}

__global__ void unfenced(int *Y, int many) {
    __shared__ volatile int flag;
    __shared__ int data;
    const int t = threadIdx.x;
    if (t == 0) flag = 0;
    __syncthreads();
    if (t == 0) {
        data = 7;
        flag = 1;
        __threadfence_block();
    } else if (t == blockDim.x - 1 || many) {
        while (flag == 0) {}
        Y[t] = data;
    }
}

// The fence of an earlier block at its own flag orders nothing for a later one.
__global__ void other_block(int *Y, int *data) {
    __shared__ volatile int flag;
    const int t = threadIdx.x;
    if (t == 0) flag = 0;
    __syncthreads();
    if (t == 0) {
        if (blockIdx.x == 0) *data = 7;
        __threadfence();
        flag = 1;
    } else {
        while (flag == 0) {}
        if (blockIdx.x == 1) Y[t] = *data;
    }
}
