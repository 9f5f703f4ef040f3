// Packs weights as fragments for strided_windows.cu, with zeros for channels a filter does not
// read.
//
// grid  = (elements over block_threads)
// block = block_threads threads

#include "common.cuh"
#include "fragments.cuh"

constexpr int PARTS = Config::terms == 3 ? 2 : 1;  // high and low part of a number

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    pack_weights(const int *__restrict__ origins, const float *__restrict__ values,
                 float *__restrict__ packed, int n_packed) {
    RECORD_WARP;
    const int i = int(blockIdx.x) * Config::block_threads + int(threadIdx.x);
    if (i >= n_packed) return;
    const int origin = origins[i];
    unsigned high, low;
    split(origin < 0 ? 0.0f : values[origin], high, low);
    const int at =
        i / Config::product_floats * PARTS * Config::product_floats + i % Config::product_floats;
    packed[at] = __uint_as_float(high);
    if (PARTS == 2) packed[at + Config::product_floats] = __uint_as_float(low);
}
