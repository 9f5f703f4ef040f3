// Kernels that measure the GPU: the cost of a launch, the rate of gathering random rows, and a
// pause during which the host can launch further work.
#include "common.cuh"

extern "C" __global__ void nothing() {
}

// Occupies one thread until `nanoseconds` have passed.
extern "C" __global__ void pause(unsigned long long nanoseconds) {
    const unsigned long long start = global_nanoseconds();
    while (global_nanoseconds() - start < nanoseconds) {
    }
}

// Returns a hash of i.
DEVICE_INLINE unsigned hash(unsigned i) {
    i = (i ^ (i >> 16)) * 0x21f0aaadu;
    i = (i ^ (i >> 15)) * 0x735a2d97u;
    return i ^ (i >> 15);
}

// Reads `gathers` whole rows of X, uniformly at random. A row is read by `vectors` neighboring
// threads, 16 bytes each, and a thread starts the loads of loads_in_flight rows together.
extern "C" __global__ void gather(const float4 *__restrict__ X, float *__restrict__ sink,
                                  unsigned rows, int vectors, unsigned gathers) {
    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned first = unsigned(thread / vectors) * Config::loads_in_flight;
    const int vector = int(thread % vectors);
    if (first >= gathers) return;
    float sum = 0.0f;
#pragma unroll
    for (unsigned i = 0; i < Config::loads_in_flight; ++i) {
        const unsigned row = __umulhi(hash(first + i), rows);
        const float4 read = X[(long long)row * vectors + vector];
        sum += read.x + read.y + read.z + read.w;
    }
    if (sum == -1.0f) *sink = sum;  // never true, as X is positive; keeps the loads
}
