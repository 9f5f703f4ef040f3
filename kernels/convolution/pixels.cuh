// Feature maps in NCHW layout, (images, channels, pixels), and the pixel of a thread. An image has
// n_cols pixels; its channel is a plane of n_cols neighboring floats.
#pragma once

#include "common.cuh"

// The thread's image and pixel. blockIdx.y and threadIdx.x number the pixels of all images.
struct Pixel {
    int image, pixel;
    bool inside;           // the pixel exists
    bool warp_has_pixels;  // some pixel of the warp exists

    DEVICE_INLINE Pixel(int images, int n_cols) {
        const long long index = (long long)blockIdx.y * Config::block_threads + threadIdx.x;
        image = int(index / n_cols);
        pixel = int(index % n_cols);
        inside = image < images;
        warp_has_pixels = index - threadIdx.x % WARP_SIZE < (long long)images * n_cols;
    }

    // Index of this pixel in channel 0 of a map with `channels` channels. Add n_cols per channel.
    DEVICE_INLINE long long in_map(int channels, int n_cols) const {
        return (long long)image * channels * n_cols + pixel;
    }
};

// Returns the sum over the lanes of a warp, to lane 0.
DEVICE_INLINE float warp_sum(float x) {
    for (int half = WARP_SIZE / 2; half > 0; half /= 2) x += __shfl_down_sync(ALL_LANES, x, half);
    return x;
}

// Returns the sum of a filter's weights times its channels, at one pixel. The filter's channels are
// consecutive planes of a stack of n_planes planes, starting at first_plane[filter].
DEVICE_INLINE float stacked_sum(const Pixel &pixel, const float *__restrict__ stack,
                                const float *__restrict__ values,
                                const long long *__restrict__ row_pointers, int filter,
                                const int *__restrict__ first_plane, int n_planes, int n_cols) {
    const long long begin = row_pointers[filter];
    const int width = int(row_pointers[filter + 1] - begin);
    const float *x =
        stack + pixel.in_map(n_planes, n_cols) + (long long)first_plane[filter] * n_cols;
    float sum = 0.0f;
    for (int i = 0; i < width; ++i) sum += values[begin + i] * x[(long long)i * n_cols];
    return sum;
}
