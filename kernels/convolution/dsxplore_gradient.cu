// The gradients of DSXplore's convolution (section 6.4.2 of the thesis): by the input, pulled by a
// thread for each pixel of an input channel, or pushed by one for each pixel of an output channel;
// and by the weights. The chapter says nothing of the latter: here the lanes of a warp, which have
// pixels of one plane, add up their products, and one of them adds the sum to the gradient.
//
// grid  = (filters, or input channels to pull; pixels of all images over block_threads)
// block = block_threads threads

#include "convolution/pixels.cuh"

// The input-centric pass: no two threads write the same element.
extern "C" __global__ void __launch_bounds__(Config::block_threads)
    input_centric(const long long *__restrict__ filter_pointers, const int *__restrict__ filters,
                  const int *__restrict__ order, const float *__restrict__ values,
                  const float *__restrict__ dY, float *__restrict__ dX, int n_rows, int n_senders,
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
    dX[pixel.in_map(n_senders, n_cols) + (long long)channel * n_cols] = sum;
}

// The output-centric pass with PUSH: filters whose windows overlap meet in dX, by atomics. Without,
// the gradient by the weights alone.
template <bool PUSH>
DEVICE_INLINE void take_back(const long long *__restrict__ row_pointers,
                             const int *__restrict__ channels, const float *__restrict__ values,
                             const float *__restrict__ X, const float *__restrict__ dY,
                             float *__restrict__ d_values, float *__restrict__ dX, int n_rows,
                             int n_senders, int images, int n_cols) {
    const Pixel pixel(images, n_cols);
    if (!pixel.with_others) return;
    const int filter = blockIdx.x;
    const long long at = pixel.in_map(n_senders, n_cols);
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
                   float *__restrict__ dX, int n_rows, int n_senders, int images, int n_cols) {
    RECORD_WARP;
    take_back<true>(row_pointers, channels, values, X, dY, d_values, dX, n_rows, n_senders, images,
                    n_cols);
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    weight_gradient(const long long *__restrict__ row_pointers, const int *__restrict__ channels,
                    const float *__restrict__ X, const float *__restrict__ dY,
                    float *__restrict__ d_values, int n_rows, int n_senders, int images,
                    int n_cols) {
    RECORD_WARP;
    take_back<false>(row_pointers, channels, nullptr, X, dY, d_values, nullptr, n_rows, n_senders,
                     images, n_cols);
}
