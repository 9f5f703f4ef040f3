// The convolution-stack composition of section 6.4.1 of the thesis with its channel-cyclic
// optimization (Figure 6.6b), after the copies of channel_stack.cu: each filter is convolved into a
// map of its own, and the maps are then concatenated. One launch replaces PyTorch's launches of one
// convolution after another.
//
// grid  = (filters, pixels of all images over block_threads)
// block = block_threads threads

#include "convolution/pixels.cuh"

// Index of a pixel in the maps (filters, images, pixels).
DEVICE_INLINE long long in_filter_map(const Pixel &pixel, int images, int n_cols) {
    return ((long long)blockIdx.x * images + pixel.image) * n_cols + pixel.pixel;
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    convolve_apart(const int *__restrict__ first_plane, const long long *__restrict__ row_pointers,
                   const float *__restrict__ values, const float *__restrict__ stack,
                   float *__restrict__ maps, int n_planes, int images, int n_cols) {
    RECORD_WARP;
    const Pixel pixel(images, n_cols);
    if (!pixel.inside) return;
    const int filter = blockIdx.x;
    maps[in_filter_map(pixel, images, n_cols)] =
        stacked_sum(pixel, stack, values, row_pointers, filter, first_plane, n_planes, n_cols);
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    concatenate(const float *__restrict__ maps, float *__restrict__ Y, int n_rows, int images,
                int n_cols) {
    RECORD_WARP;
    const Pixel pixel(images, n_cols);
    if (!pixel.inside) return;
    Y[pixel.in_map(n_rows, n_cols) + (long long)blockIdx.x * n_cols] =
        maps[in_filter_map(pixel, images, n_cols)];
}
