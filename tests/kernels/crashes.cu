// What a launch may do to the process that runs it, a case each.
#include <cstdlib>
#include <unistd.h>
__constant__ float table[8] = {0, 1, 2, 3, 4, 5, 6, 7};
__device__ int counts[8] = {1, 1, 1, 1, 1, 1, 1, 1};
__device__ int after[64];

__device__ __noinline__ int deep(int n, int *below) {
    int frame = n;
    return n == 0 ? *below : deep(n - 1, &frame) + frame;
}
__device__ __noinline__ float large(int i) {
    float array[300000];
    array[i] = i;
    array[2 * i] = i;
    return array[i / 2];
}
template <int N>
__device__ float turned(const float *X) {
    __shared__ float s[N];
    s[threadIdx.x] = X[threadIdx.x];
    __syncthreads();
    return s[N - 1 - threadIdx.x];
}
__device__ inline float halved(const float *X) {
    __shared__ float s[32];
    s[threadIdx.x] = X[threadIdx.x] / 2;
    return s[threadIdx.x];
}

__global__ void k(const float *X, float *Y, int which, long long i) {
    float four[4] = {};
    float *pointer = four;
    const int *counted = counts;
    const float *constants = table;
    switch (which) {
    case 0: for (int j = 0; j < i; ++j) four[j] = X[j]; Y[0] = four[3]; break;
    case 1: for (int j = 0; j < i; ++j) pointer[j] = X[j % 32]; Y[0] = four[3]; break;
    case 2: Y[0] = large(int(i)); break;
    case 3: { int zero = 0; Y[0] = deep(int(i), &zero); } break;
    case 4: exit(3);
    case 5: abort();
    case 6: _exit(0);
    case 7: Y[0] = *reinterpret_cast<const float *>(i); break;
    case 8: while (Y[0] == 0) {} break;
    case 9: while (*static_cast<volatile float *>(Y) == 0) {} break;
    case 10: Y[0] = table[i]; break;
    case 11: Y[0] = constants[i]; break;
    case 12: table[i] = 1; break;
    case 13: Y[0] = counts[i]; break;
    case 14: Y[0] = counted[i]; break;
    case 15: Y[threadIdx.x] = turned<32>(X) + halved(X); break;
    case 16: memcpy(Y, X, i); break;
    case 17: memset(Y, 0, i); break;
    case 18: Y[i] = X[0]; break;
    case 19: Y[0] = X[unsigned(i)]; break;
    case 21: after[threadIdx.x] = counts[0]++; break;
    case 22: reinterpret_cast<void (*)()>(i)(); break;
    }
}
