// Feature maps with channels first, and which pixel of which image a thread has.
#pragma once

#include "common.cuh"

// A pixel of an image. The pixels of all images are counted through: blockIdx.y has block_threads.
struct Pixel {
    int image, pixel;
    bool inside, with_others;  // whether there is such a pixel, and one for any lane of the warp

    DEVICE_INLINE Pixel(int images, int n_cols) {
        const long long index = (long long)blockIdx.y * Config::block_threads + threadIdx.x;
        image = int(index / n_cols);
        pixel = int(index % n_cols);
        inside = image < images;
        with_others = index - threadIdx.x % WARP_SIZE < (long long)images * n_cols;
    }

    // Position of this pixel in the plane of channel 0; planes have n_cols floats.
    DEVICE_INLINE long long in_map(int channels, int n_cols) const {
        return (long long)image * channels * n_cols + pixel;
    }
};

// The sum over the lanes of a warp, in lane 0.
DEVICE_INLINE float warp_sum(float x) {
    for (int half = WARP_SIZE / 2; half > 0; half /= 2) x += __shfl_down_sync(ALL_LANES, x, half);
    return x;
}

// The product of a filter with its channels, copied behind each other into a stack of n_planes.
DEVICE_INLINE float stacked_sum(const Pixel &position, const float *__restrict__ stack,
                                const float *__restrict__ values,
                                const long long *__restrict__ row_pointers, int filter,
                                const int *__restrict__ first_plane, int n_planes, int n_cols) {
    const long long begin = row_pointers[filter];
    const int width = int(row_pointers[filter + 1] - begin);
    const float *x =
        stack + position.in_map(n_planes, n_cols) + (long long)first_plane[filter] * n_cols;
    float sum = 0.0f;
    for (int i = 0; i < width; ++i) sum += values[begin + i] * x[(long long)i * n_cols];
    return sum;
}
