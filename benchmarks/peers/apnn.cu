// C entry of APNN-TC's product of a matrix of 1 bit and one of 2 bits, with results of 2 bits.

inline int int_pow(int base, int exponent) {  // of its reference on the host, which is not called
    return exponent ? base * int_pow(base, exponent - 1) : 1;
}

#include "66_bmmaTensorCoreGemm.cuh"

namespace {

__global__ void product(const int4 *W, const int4 *X, int *D, int m, int n, int k) {
    apmm_w1a2_decompose(W, X, D, m, n, k, 1, 2);
}

}  // namespace

// m is a multiple of 64, n of 32, k of 128. X is transposed: n x k.
extern "C" void apnn_packed_product(int m, int k, int n, const int4 *W, const int4 *X, int *D) {
    constexpr int SHARED = 65536;
    static int processors = 0;
    if (!processors) {
        int device;
        cudaGetDevice(&device);
        cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
        cudaFuncSetAttribute(product, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED);
    }
    product<<<processors, THREADS_PER_BLOCK, SHARED>>>(W, X, D, m, n, k);
}
