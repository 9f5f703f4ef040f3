// C entries of QGTC's products of bits, with the launches of its host functions.
//
// Planes of A have whole groups of 8 lines; those of B have groups of 8 for whole numbers, which
// are float32, and of 128 for packed results. QGTC's kernels take %warpid, a warp's number on its
// SM, for that in its block. Here a warp has its number in the block.

#include "utility.h"

#undef GET_WARPID
#define GET_WARPID const unsigned warpid = threadIdx.x / 32;

#include "kernel.h"

namespace {

constexpr int THREADS = 1024, SHARED_BYTES = 64000;

template <typename Kernel>
int blocks(Kernel *kernel) {
    int per_sm, sms;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, THREADS, SHARED_BYTES);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
    return per_sm * sms;
}

}  // namespace

extern "C" {

void qgtc_whole(int rows, int inner, int columns, int a_bits, int b_bits, int *A, int *B,
                float *out) {
    static const int grid = blocks(QGTC_layer_output_PAD8);
    QGTC_layer_output_PAD8<<<grid, THREADS, SHARED_BYTES>>>(out, A, B, rows, inner, columns, a_bits,
                                                            b_bits);
}

void qgtc_packed(int rows, int inner, int columns, int a_bits, int b_bits, int out_bits, int *A,
                 int *B, int *out) {
    static const int grid = blocks(QGTC_layer_hidden);
    QGTC_layer_hidden<<<grid, THREADS, SHARED_BYTES>>>(out, A, B, rows, inner, columns, a_bits,
                                                       b_bits, out_bits);
}

}  // extern "C"
