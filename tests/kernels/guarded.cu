// Code that depends on the target's macros. Line numbers are in test_emulator_target.py.
#ifdef __CUDACC__
#define SHARED_FUNCTION __host__ __device__
#else
#define SHARED_FUNCTION
#endif
SHARED_FUNCTION int one() { return 1; }

__global__ void k(int *Y) {
#if __CUDA_ARCH__ >= 700
    Y[0] = one();
#else
    Y[0] = 2;
#endif
    Y[1] = __CUDA_ARCH__;
    Y[2] = __CUDACC_VER_MAJOR__;
#if !defined(__NVCC__) || \
    CUDART_VERSION < 12000
    Y[7] = 1;
#endif
    Y[3] = CUDART_VERSION;
#ifdef __CUDA_ARCH_FEAT_SM90_ALL  // sm_90a
    Y[4] = 1;
#endif
#if 0  // not the target's
    Y[5] = 1;
#endif
    const int line =
        __LINE__;
    Y[7] = line;
}
