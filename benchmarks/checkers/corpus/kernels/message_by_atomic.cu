// One block publishes a number by an atomic with release order, and the others acquire it.
#include <cuda/atomic>

__global__ void message_by_atomic(const int *X, int *message, int *flag, int *Y) {
    cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
    const int t = threadIdx.x;
    if (blockIdx.x == 0) {
        message[t] = X[t] * X[t];
        __syncthreads();
        if (t == 0) ready.store(1, cuda::memory_order_release);
        return;
    }
    if (t == 0) {
        while (ready.load(cuda::memory_order_acquire) == 0) {}
    }
    __syncthreads();
    Y[(blockIdx.x - 1) * blockDim.x + t] = message[t];
}
