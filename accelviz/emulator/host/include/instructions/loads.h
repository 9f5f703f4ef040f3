// A conditional load: the function of kernels/tensor_cores/shared_columns.cuh for the emulator.
#pragma once

__device__ __forceinline__ float load_if(bool present, const float *from) {
    return present ? __ldg(from) : 0.0f;
}
