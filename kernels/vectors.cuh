// Vectors: 1, 2, 4 or 8 neighboring columns that a lane loads, sums and stores together.
#pragma once

#include "common.cuh"

struct Float8 {
    float4 low, high;
};

// The type of 1, 2, 4 or 8 neighboring columns.
template <int columns>
struct VectorOf;
template <>
struct VectorOf<1> {
    using type = float;
};
template <>
struct VectorOf<2> {
    using type = float2;
};
template <>
struct VectorOf<4> {
    using type = float4;
};
template <>
struct VectorOf<8> {
    using type = Float8;
};
template <int columns>
using Floats = typename VectorOf<columns>::type;

// Returns column i of a vector.
DEVICE_INLINE float part(float vector, int) {
    return vector;
}
DEVICE_INLINE float part(float2 vector, int i) {
    return i == 0 ? vector.x : vector.y;
}
DEVICE_INLINE float part(float4 vector, int i) {
    return i == 0 ? vector.x : i == 1 ? vector.y : i == 2 ? vector.z : vector.w;
}
DEVICE_INLINE float part(const Float8 &vector, int i) {
    return i < 4 ? part(vector.low, i) : part(vector.high, i - 4);
}

// Makes a vector of columns in registers.
DEVICE_INLINE void gather(float &vector, const float *columns) {
    vector = columns[0];
}
DEVICE_INLINE void gather(float2 &vector, const float *columns) {
    vector = make_float2(columns[0], columns[1]);
}
DEVICE_INLINE void gather(float4 &vector, const float *columns) {
    vector = make_float4(columns[0], columns[1], columns[2], columns[3]);
}

DEVICE_INLINE void add_product(float &sum, float weight, float x) {
    sum += weight * x;
}
DEVICE_INLINE void add_product(float2 &sum, float weight, float2 x) {
    sum.x += weight * x.x;
    sum.y += weight * x.y;
}
DEVICE_INLINE void add_product(float4 &sum, float weight, float4 x) {
    sum.x += weight * x.x;
    sum.y += weight * x.y;
    sum.z += weight * x.z;
    sum.w += weight * x.w;
}
DEVICE_INLINE void add_product(Float8 &sum, float weight, const Float8 &x) {
    add_product(sum.low, weight, x.low);
    add_product(sum.high, weight, x.high);
}

// Returns factor times a vector.
template <class T>
DEVICE_INLINE T scaled(const T &vector, float factor) {
    T product = {};
    add_product(product, factor, vector);
    return product;
}

DEVICE_INLINE void add(float &sum, float x) {
    sum += x;
}
DEVICE_INLINE void add(float2 &sum, float2 x) {
    sum.x += x.x;
    sum.y += x.y;
}
DEVICE_INLINE void add(float4 &sum, float4 x) {
    sum.x += x.x;
    sum.y += x.y;
    sum.z += x.z;
    sum.w += x.w;
}
DEVICE_INLINE void add(Float8 &sum, const Float8 &x) {
    add(sum.low, x.low);
    add(sum.high, x.high);
}

// Stores a value that is not read again, so that it does not evict X from the caches.
template <typename T>
DEVICE_INLINE void stream(T *to, T value) {
    __stcs(to, value);
}
DEVICE_INLINE void stream(Float8 *to, const Float8 &value) {
    __stcs(&to->low, value.low);
    __stcs(&to->high, value.high);
}
