// Kernels that measure the machine instead of multiplying: what a launch costs, how fast random
// rows can be gathered, and a pause that lets the host queue work ahead of the GPU.
#include "common.cuh"

extern "C" __global__ void nothing() {
}

// Occupies one thread until `nanoseconds` have passed.
extern "C" __global__ void pause(unsigned long long nanoseconds) {
    const unsigned long long start = global_nanoseconds();
    while (global_nanoseconds() - start < nanoseconds) {
    }
}

// A well-mixed 32-bit number for each i.
DEVICE_INLINE unsigned mixed(unsigned i) {
    i = (i ^ (i >> 16)) * 0x21f0aaadu;
    i = (i ^ (i >> 15)) * 0x735a2d97u;
    return i ^ (i >> 15);
}

// Reads `gathers` whole rows of X, uniformly at random: `vectors` neighboring threads side by side
// read the 16-byte vectors of a row, and each has loads_in_flight rows on their way at once.
extern "C" __global__ void gather(const float4 *__restrict__ X, float *__restrict__ sink,
                                  unsigned rows, int vectors, unsigned gathers) {
    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned first = unsigned(thread / vectors) * Config::loads_in_flight;
    const int vector = int(thread % vectors);
    if (first >= gathers) return;
    float sum = 0.0f;
#pragma unroll
    for (unsigned i = 0; i < Config::loads_in_flight; ++i) {
        const unsigned row = __umulhi(mixed(first + i), rows);
        const float4 read = X[(long long)row * vectors + vector];
        sum += read.x + read.y + read.z + read.w;
    }
    if (sum == -1.0f) *sink = sum;  // never, as X is positive, but the compiler cannot know
}
