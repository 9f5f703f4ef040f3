// C entry of APNN-TC's products of bits, with the launches of its programs gemm-w1a2 and others.
//
// D (rows x columns) is the product of W (rows) and X (columns), whose planes follow each other.
// Each program is a file of the same names, which has a namespace here.

#include <assert.h>
#include <cuda.h>
#include <helper_cuda.h>
#include <helper_functions.h>
#include <mma.h>
#include <stdio.h>

#define main program

namespace w1a1 {
#include "84_bmmaTensorCoreGemm.cu"
}
namespace w1a2 {
#include "71_bmmaTensorCoreGemm.cu"
}
namespace w1a4 {
#include "78_bmmaTensorCoreGemm.cu"
}
namespace w3a1 {
#include "87_bmmaTensorCoreGemm.cu"
}

// Rows are whole tiles of 64, and of 21 with three bits of W; columns are whole tiles of 64 over
// the bits of X. (w_bits, x_bits) is (1, 1), (1, 2), (1, 4) or (3, 1).
extern "C" void apnn_tc(int rows, int columns, int inner, int w_bits, int x_bits, const int4 *W,
                        const int4 *X, int *D) {
    constexpr int SHARED_BYTES = 65536;
    auto *kernel = w_bits == 3   ? w3a1::apmm_w3a1
                   : x_bits == 4 ? w1a4::apmm_w1a4
                   : x_bits == 2 ? w1a2::apmm_w1a2
                                 : w1a1::apmm_w1a1;
    int sms;
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    kernel<<<sms, THREADS_PER_BLOCK, SHARED_BYTES>>>(W, X, D, rows, columns, inner, w_bits, x_bits);
}
