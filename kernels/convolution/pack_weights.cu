// Weights as the fragments that strided_windows.cu takes: a gather, with zeros where a filter does
// not read a channel.
//
// grid  = (elements over BLOCK_THREADS)
// block = BLOCK_THREADS threads
#if !defined(BLOCK_THREADS)
#error "pack_weights.cu is compiled by accelviz, which supplies BLOCK_THREADS"
#endif

#include "common.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    pack_weights(const int *__restrict__ origins, const float *__restrict__ values,
                 float *__restrict__ packed, int n_packed) {
    RECORD_WARP;
    const int i = int(blockIdx.x) * BLOCK_THREADS + int(threadIdx.x);
    if (i >= n_packed) return;
    const int origin = origins[i];
    packed[i] = origin < 0 ? 0.0f : values[origin];
}
