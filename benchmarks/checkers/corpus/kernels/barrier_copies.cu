// A block-wide barrier object: it waits for asynchronous copies, then orders phases of a stencil.
#include <cuda/barrier>

#include <utility>

#pragma nv_diag_suppress static_var_with_dynamic_init

__global__ void barrier_copies(const int *X, int *Y, int rounds) {
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    __shared__ int now[256], next[256];
    const int t = threadIdx.x, n = blockDim.x;
    if (t == 0) init(&barrier, n);
    __syncthreads();
    cuda::memcpy_async(&now[t], &X[blockIdx.x * n + t], sizeof(int), barrier);
    barrier.arrive_and_wait();
    for (int round = 0; round < rounds; ++round) {
        next[t] = now[(t + 1) % n] - now[(t + n - 1) % n];
        auto token = barrier.arrive();
        barrier.wait(std::move(token));
        now[t] = next[t];
        barrier.arrive_and_wait();
    }
    Y[blockIdx.x * n + t] = now[t];
}
