// C entries of QGTC's packing and products of bit matrices, with the launches of its host
// functions.

#include <cuda_runtime.h>
#include <mma.h>

#include "kernel.h"
#include "utility.h"

namespace {

template <typename Kernel>
int whole_gpu(Kernel kernel, int threads, int shared) {
    int device, processors, blocks;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared);
    return blocks * processors;
}

constexpr int SHARED = 64000;

}  // namespace

extern "C" {

void qgtc_pack_left(int height, int width, int bits, int *whole, int *packed) {
    const int blocks = whole_gpu(QGTC_layer_input, numThreads, 0);
    QGTC_layer_input<<<blocks, numThreads>>>(packed, whole, height, width, bits);
}

void qgtc_pack_right(int height, int width, int bits, const int *whole, int *packed) {
    const int blocks = whole_gpu(PackFcWeight128, numThreads, 0);
    PackFcWeight128<<<blocks, numThreads>>>(packed, whole, height, width, bits);
}

void qgtc_product(int m, int k, int n, int left_bits, int right_bits, int *A, int *B,
                  float *result) {
    static const int blocks = whole_gpu(QGTC_layer_output_PAD128, numThreads_1, SHARED);
    QGTC_layer_output_PAD128<<<blocks, numThreads_1, SHARED>>>(result, A, B, m, k, n, left_bits,
                                                               right_bits);
}

void qgtc_packed_product(int m, int k, int n, int left_bits, int right_bits, int bits, int *A,
                         int *B, int *result) {
    static const int blocks = whole_gpu(QGTC_layer_hidden, numThreads_1, SHARED);
    QGTC_layer_hidden<<<blocks, numThreads_1, SHARED>>>(result, A, B, m, k, n, left_bits,
                                                        right_bits, bits);
}

}  // extern "C"
