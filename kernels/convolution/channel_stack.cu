// The channel-stack composition of section 6.4.1 of the thesis, as two kernels: the first copies
// the channels of each filter's window into a stack of planes, the second is a grouped convolution
// with one filter per group. The channel-cyclic optimization copies equal windows once.
//
// channels[plane] is the channel of X to copy, first_plane[filter] the first plane of the filter's
// window. X, stack and Y are maps of n_channels, n_planes and n_rows (filters) planes of n_cols
// pixels per image; `pixel.in_map` (pixels.cuh) is the thread's pixel in plane 0 of such a map.
//
// grid.x = copied planes (stack_channels), filters (convolve_stack)
// grid.y = pixels of all images over block_threads
// block  = block_threads threads

#include "convolution/pixels.cuh"

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    stack_channels(const int *__restrict__ channels, const float *__restrict__ X,
                   float *__restrict__ stack, int n_planes, int n_channels, int images,
                   int n_cols) {
    RECORD_WARP;
    const Pixel pixel(images, n_cols);
    if (!pixel.inside) return;
    const int plane = blockIdx.x;
    stack[pixel.in_map(n_planes, n_cols) + (long long)plane * n_cols] =
        X[pixel.in_map(n_channels, n_cols) + (long long)channels[plane] * n_cols];
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    convolve_stack(const int *__restrict__ first_plane, const long long *__restrict__ row_pointers,
                   const float *__restrict__ values, const float *__restrict__ stack,
                   float *__restrict__ Y, int n_rows, int n_planes, int images, int n_cols) {
    RECORD_WARP;
    const Pixel pixel(images, n_cols);
    if (!pixel.inside) return;
    const int filter = blockIdx.x;
    Y[pixel.in_map(n_rows, n_cols) + (long long)filter * n_cols] =
        stacked_sum(pixel, stack, values, row_pointers, filter, first_plane, n_planes, n_cols);
}
