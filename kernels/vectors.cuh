// Neighboring columns that a lane reads, sums and writes as one. The including file has VECTOR.
#pragma once

#if VECTOR == 4
using Vector = float4;
#elif VECTOR == 2
using Vector = float2;
#elif VECTOR == 1
using Vector = float;
#else
#error "VECTOR is 1, 2 or 4"
#endif

// One of the columns of a vector.
__device__ __forceinline__ float part(float vector, int) {
    return vector;
}
__device__ __forceinline__ float part(float2 vector, int i) {
    return i == 0 ? vector.x : vector.y;
}
__device__ __forceinline__ float part(float4 vector, int i) {
    return i == 0 ? vector.x : i == 1 ? vector.y : i == 2 ? vector.z : vector.w;
}

__device__ __forceinline__ void add_product(float &sum, float weight, float x) {
    sum += weight * x;
}
__device__ __forceinline__ void add_product(float2 &sum, float weight, float2 x) {
    sum.x += weight * x.x;
    sum.y += weight * x.y;
}
__device__ __forceinline__ void add_product(float4 &sum, float weight, float4 x) {
    sum.x += weight * x.x;
    sum.y += weight * x.y;
    sum.z += weight * x.z;
    sum.w += weight * x.w;
}

__device__ __forceinline__ void add(float &sum, float x) {
    sum += x;
}
__device__ __forceinline__ void add(float2 &sum, float2 x) {
    sum.x += x.x;
    sum.y += x.y;
}
__device__ __forceinline__ void add(float4 &sum, float4 x) {
    sum.x += x.x;
    sum.y += x.y;
    sum.z += x.z;
    sum.w += x.w;
}
