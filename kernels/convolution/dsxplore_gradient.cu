// The gradients of DSXplore's convolution (section 6.4.2 of the thesis). By the input: pulled by a
// thread per pixel of an input channel, or pushed by a thread per pixel of an output channel. By
// the weights: the chapter has no algorithm; here a warp adds up the products of its pixels of one
// plane by shuffles and adds the sum with one atomic.
//
// grid  = (filters, or input channels to pull; pixels of all images over block_threads)
// block = block_threads threads

#include "convolution/pixels.cuh"

// The input-centric pass: each element of dX is written by one thread.
extern "C" __global__ void __launch_bounds__(Config::block_threads)
    input_centric(const long long *__restrict__ filter_pointers, const int *__restrict__ filters,
                  const int *__restrict__ order, const float *__restrict__ values,
                  const float *__restrict__ dY, float *__restrict__ dX, int n_rows, int n_channels,
                  int images, int n_cols) {
    RECORD_WARP;
    const Pixel pixel(images, n_cols);
    if (!pixel.inside) return;
    const int channel = blockIdx.x;
    const float *g = dY + pixel.in_map(n_rows, n_cols);
    float sum = 0.0f;
    for (long long k = filter_pointers[channel]; k < filter_pointers[channel + 1]; ++k) {
        sum += values[order[k]] * g[(long long)filters[k] * n_cols];
    }
    dX[pixel.in_map(n_channels, n_cols) + (long long)channel * n_cols] = sum;
}

// With PUSH, the output-centric pass: filters with overlapping windows add to dX with atomics.
// Without PUSH, only the gradient by the weights.
template <bool PUSH>
DEVICE_INLINE void backward(const long long *__restrict__ row_pointers,
                            const int *__restrict__ channels, const float *__restrict__ values,
                            const float *__restrict__ X, const float *__restrict__ dY,
                            float *__restrict__ d_values, float *__restrict__ dX, int n_rows,
                            int n_channels, int images, int n_cols) {
    const Pixel pixel(images, n_cols);
    if (!pixel.warp_has_pixels) return;
    const int filter = blockIdx.x;
    const long long at = pixel.in_map(n_channels, n_cols);
    const float g =
        pixel.inside ? dY[pixel.in_map(n_rows, n_cols) + (long long)filter * n_cols] : 0.0f;
    for (long long k = row_pointers[filter]; k < row_pointers[filter + 1]; ++k) {
        const long long element_of_x = at + (long long)channels[k] * n_cols;
        const float sum = warp_sum(pixel.inside ? g * X[element_of_x] : 0.0f);
        if (threadIdx.x % WARP_SIZE == 0) atomicAdd(&d_values[k], sum);
        if (PUSH && pixel.inside) atomicAdd(&dX[element_of_x], values[k] * g);
    }
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    output_centric(const long long *__restrict__ row_pointers, const int *__restrict__ channels,
                   const float *__restrict__ values, const float *__restrict__ X,
                   const float *__restrict__ dY, float *__restrict__ d_values,
                   float *__restrict__ dX, int n_rows, int n_channels, int images, int n_cols) {
    RECORD_WARP;
    backward<true>(row_pointers, channels, values, X, dY, d_values, dX, n_rows, n_channels, images,
                   n_cols);
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    weight_gradient(const long long *__restrict__ row_pointers, const int *__restrict__ channels,
                    const float *__restrict__ X, const float *__restrict__ dY,
                    float *__restrict__ d_values, int n_rows, int n_channels, int images,
                    int n_cols) {
    RECORD_WARP;
    backward<false>(row_pointers, channels, nullptr, X, dY, d_values, nullptr, n_rows, n_channels,
                    images, n_cols);
}
