// A load under a condition: the body of kernels/tensor_cores/shared_columns.cuh.
#pragma once

__device__ __forceinline__ float load_if(bool present, const float *from) {
    return present ? __ldg(from) : 0.0f;
}
