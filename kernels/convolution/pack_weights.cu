// Weights as the fragments that strided_windows.cu takes: a gather, with zeros where a filter does
// not read a channel.
//
// grid  = (elements over BLOCK_THREADS)
// block = BLOCK_THREADS threads
#if !defined(BLOCK_THREADS) || !defined(PRODUCT_FLOATS) || !defined(TERMS)
#error "pack_weights.cu is compiled by accelviz, which supplies its constants"
#endif

#include "common.cuh"
#include "fragments.cuh"

#define PARTS (TERMS == 3 ? 2 : 1)  // high and low

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    pack_weights(const int *__restrict__ origins, const float *__restrict__ values,
                 float *__restrict__ packed, int n_packed) {
    RECORD_WARP;
    const int i = int(blockIdx.x) * BLOCK_THREADS + int(threadIdx.x);
    if (i >= n_packed) return;
    const int origin = origins[i];
    unsigned high, low;
    split(origin < 0 ? 0.0f : values[origin], high, low);
    const int at = i / PRODUCT_FLOATS * PARTS * PRODUCT_FLOATS + i % PRODUCT_FLOATS;
    packed[at] = __uint_as_float(high);
    if (PARTS == 2) packed[at + PRODUCT_FLOATS] = __uint_as_float(low);
}
