// A nonzero a thread, added by atomics.
__global__ void coo_atomic(const int *rows, const int *columns, const float *values,
                           const float *x, float *y, int nonzeros) {
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < nonzeros) atomicAdd(&y[rows[k]], values[k] * x[columns[k]]);
}
