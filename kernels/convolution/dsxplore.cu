// DSXplore's output-centric forward pass (chapter 6 of the thesis, section 6.4.2): a thread
// computes one pixel of an output channel, the sum over the channels of its filter's window.
//
// Windows repeat. Algorithm 8 looks a filter's window up by its number modulo the cyclic distance,
// in a table of first and last channels. Here the table has runs of channels and so represents any
// pattern: a window of sliding channels is one run, or two if it wraps around the last channel.
//
// grid  = (filters, pixels of all images over block_threads)
// block = block_threads threads

#include "convolution/pixels.cuh"

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    dsxplore(const int *__restrict__ window_of, const int *__restrict__ window_runs,
             const int2 *__restrict__ runs, const long long *__restrict__ row_pointers,
             const float *__restrict__ values, const float *__restrict__ X, float *__restrict__ Y,
             int n_rows, int n_channels, int images, int n_cols) {
    RECORD_WARP;
    const Pixel pixel(images, n_cols);
    if (!pixel.inside) return;
    const int filter = blockIdx.x, window = window_of[filter];
    const float *weights = values + row_pointers[filter];
    const float *x = X + pixel.in_map(n_channels, n_cols);
    float sum = 0.0f;
    for (int r = window_runs[window]; r < window_runs[window + 1]; ++r) {
        const int2 run = runs[r];  // the first channel, and the number of channels
        for (int i = 0; i < run.y; ++i) {
            sum += *weights++ * x[(long long)(run.x + i) * n_cols];
        }
    }
    Y[pixel.in_map(n_rows, n_cols) + (long long)filter * n_cols] = sum;
}
