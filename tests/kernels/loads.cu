// Loads out of bounds by the last four threads, one per value of `which`, in the line of its case.
// No result depends on them: a compiler may move them behind the test of i or drop them. In
// `right_loads`, every load is in bounds. X and Z have n elements, a multiple of 4.
#include <cuda_fp16.h>

struct Two { float a, b; };
struct Three { float a, b, c; };
struct Four { float d[4]; };
struct Bits { int low : 5, high : 27; };
struct View {
    const float *data;
    __device__ float at(int i) const { return data[i]; }
};

__device__ float inlined(const float *X, int i) { return X[i]; }
__device__ float silent(const float *X, int i) noexcept { return X[i]; }
__device__ Two pair_of(const float *X, int i) { return reinterpret_cast<const Two *>(X)[i / 2]; }
__device__ float first_of(float x, float) { return x; }
__device__ __noinline__ float called(const float *X, int i) { return X[i]; }
__device__ __noinline__ float called_silently(const float *X, int i) noexcept { return X[i]; }
template <typename T> __device__ T element_of(const T *X, int i) { return X[i]; }

__global__ void k(const float *X, const int *Z, float *Y, int n, int which) {
    DYNAMIC_SHARED(float, s);  // a float less than threads
    __shared__ float unwritten[257];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, last = blockDim.x - 1;
    const bool ok = i < n;
    switch (which) {
    case 0: { const float x = X[i]; if (ok) Y[i] = x; break; }
    case 1: { const float x = X[i]; if (ok) Y[i] = 1; break; }
    case 2: { const float x = 2 * X[i] + 1; if (ok) Y[i] = x; break; }
    case 3: { const int x = Z[i]; if (!ok) return; Y[i] = x; break; }
    case 4: { const float x = X[i]; if (ok) { if (i % 2) Y[i] = x; else Y[i] = 2 * x; } break; }
    case 5: { const unsigned char x = ((unsigned char *)X)[4 * i]; if (ok) Y[i] = x; break; }
    case 6: { const short x = ((short *)X)[2 * i]; if (ok) Y[i] = 1; break; }
    case 7: { const double x = ((double *)X)[i / 2]; if (ok) Y[i] = x; break; }
    case 8: { const long long x = ((long long *)X)[i / 2]; if (ok) Y[i] = 1; break; }
    case 9: { const bool x = ((bool *)X)[4 * i]; if (ok) Y[i] = x; break; }
    case 10: { const float *x = X + i; const float y = *x; if (ok) Y[i] = y; break; }
    case 11: { const float &x = X[i]; const float y = x; if (ok) Y[i] = y; break; }
    case 12: { const float2 v = ((float2 *)X)[i / 2]; if (ok) Y[i] = v.x; break; }
    case 13: { const float x = ((float2 *)X)[i / 2].x; if (ok) Y[i] = x; break; }
    case 14: { const float4 &v = ((float4 *)X)[i / 4]; float x = v.y; if (ok) Y[i] = x; break; }
    case 15: { const int4 v = ((int4 *)Z)[i / 4]; if (ok) Y[i] = 1; break; }
    case 16: { const unsigned char x = ((uchar4 *)X)[i].y; if (ok) Y[i] = x; break; }
    case 17: { const half x = ((half *)X)[2 * i]; if (ok) Y[i] = x; break; }
    case 18: { const half2 x = ((half2 *)X)[i]; if (ok) Y[i] = 1; break; }
    case 19: { const float x = __low2float(((half2 *)X)[i]); if (ok) Y[i] = x; break; }
    case 20: { const Two x = ((Two *)X)[i / 2]; if (ok) Y[i] = x.a; break; }
    case 21: { const float x = ((Two *)X)[i / 2].b; if (ok) Y[i] = 1; break; }
    case 22: { const Three x = ((Three *)X)[i]; if (3 * i + 2 < n) Y[i] = x.c; break; }
    case 23: { const Four x = ((Four *)X)[i / 4]; if (ok) Y[i] = 1; break; }
    case 24: { const int x = ((Bits *)Z)[i].low; if (ok) Y[i] = x; break; }
    case 25: { const View v{X}; const float x = v.at(i); if (ok) Y[i] = x; break; }
    case 26: { const float x = element_of(X, i); if (ok) Y[i] = x; break; }
    case 27: { auto at = [&](int j) { return X[j]; }; float x = at(i); if (ok) Y[i] = x; break; }
    case 28: { const float x = first_of(1, X[i]); if (ok) Y[i] = x; break; }
    case 29: { const float x = __ldg(X + i); if (ok) Y[i] = x; break; }
    case 30: { const float x = X[i]; __syncthreads(); if (ok) Y[i] = x; break; }
    case 31: { const float x = X[i], y = ok ? x : 0; if (ok) Y[i] = y; break; }
    case 32: { const bool x = X[i] > 0; if (ok && x) Y[i] = 1; break; }
    case 33: if (X[i] > 0 && ok) Y[i] = 1; break;
    case 34: if ((X[i] > 0) & ok) Y[i] = 1; break;
    case 35: { float x; if (ok) x = X[i]; else x = X[i]; if (ok) Y[i] = x; break; }
    case 36: { float x = X[i]; x = 3; if (ok) Y[i] = x; break; }
    case 37: { const int x = Z[i]; if (ok) Y[i] = x - x; break; }
    case 38: { const float x = X[i]; if (ok) Y[i] = X[i]; break; }
    case 39: { const float x = X[Z[i % n] + i - i % n]; if (ok) Y[i] = x; break; }
    case 40: { const float x = Y[i]; if (ok) Y[i] = x; break; }
    case 41: for (int j = i; j < n + 4; j += n) { float x = X[j]; if (j < n) Y[j] = x; } break;
    case 42: { int j = i; do { const float x = X[j]; j += n; } while (j < n); break; }
    case 43: { float x = 0; for (int j = 0; j < 9; ++j) x += X[i + j]; if (n < 0) Y[i] = x; break; }
    case 44: { float x[4]; for (int j = 0; j < 4; ++j) x[j] = X[i + j]; Y[i % n] = x[0]; break; }
    case 45: { const float x[] = {X[i], X[i / 2]}; if (ok) Y[i] = x[1]; break; }
    case 46: if (t < last) s[t] = 1; __syncthreads(); { float x = s[t + 1]; } break;
    case 47: { if (t < last) s[t] = 1; const float x = s[t]; if (ok) Y[i] = 1; break; }
    case 48: { const float *x = unwritten + 1; const float y = x[t]; if (t < 0) Y[i] = y; break; }
    case 49: { const float x = unwritten[t]; if (ok) Y[i] = 1; break; }
    case 50: { s[t % last] = 1; const float x = s[(t + 1) % last]; if (ok) Y[i] = 1; break; }
    case 51: { float x = X[i % n]; for (int j = i; j < n; j += n) x = X[j + n]; break; }
    // The lines of these are those of the functions.
    case 52: { const float x = inlined(X, i); if (ok) Y[i] = x; break; }
    case 53: { const float x = silent(X, i); if (ok) Y[i] = 1; break; }
    case 54: { const Two x = pair_of(X, i); if (ok) Y[i] = x.b; break; }
    case 55: { const float x = called(X, i); if (ok) Y[i] = x; break; }
    case 56: { const float x = called_silently(X, i); if (ok) Y[i] = 1; break; }
    }
}

// The guard comes before each load. Y becomes 2 X + 3, and 0 beyond n.
__global__ void right_loads(const float *X, const int *Z, float *Y, int n, int which) {
    __shared__ float s[256];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    float x = 0;
    switch (which) {
    case 0: if (i < n) x = X[i]; break;
    case 1: x = i < n ? X[i] : 0; break;
    case 2: x = i < n && X[i] != 0 ? X[i] : 0; break;
    case 3: x = X[min(i, n - 1)]; break;
    case 4: for (int j = i; j < n; j += n) x += X[j]; break;
    case 5: if (i < n) { const float2 v = ((float2 *)X)[i / 2]; x = i % 2 ? v.y : v.x; } break;
    case 6: { const Two v = ((Two *)X)[min(i, n - 1) / 2]; x = i % 2 ? v.b : v.a; break; }
    case 7: { const float *p = i < n ? X + i : nullptr; x = p ? *p : 0; break; }
    case 8: s[t] = i < n ? X[i] : 0; __syncthreads(); x = s[t]; break;
    case 9: if (i >= n) return; x = called(X, i); break;
    }
    if (i < n) Y[i] = 2 * x + 3;
}
