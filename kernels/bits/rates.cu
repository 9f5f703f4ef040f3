// Measures bit products per second: tensor cores with AND, and with INT8 and INT4 for comparison,
// and CUDA cores with popc. Operands stay in registers, and each warp has eight independent sums.
// On Hopper (compiled for sm_90a) also warpgroups, which read the same shared memory repeatedly.
//
// grid = blocks, block = threads, both of any size. The plan supplies `repeats` at compile time:
// the number of products added to each of the eight sums.

#include "fragments.cuh"

constexpr int SUMS = 8;

template <typename Multiply>
DEVICE_INLINE void repeat(int *out, Multiply multiply) {
    int c[SUMS][4] = {};
    unsigned a[4], b[2];
    for (int r = 0; r < 4; ++r) a[r] = threadIdx.x * 0x9e3779b9u + r;
    for (int r = 0; r < 2; ++r) b[r] = threadIdx.x * 0x85ebca6bu + r;
#pragma unroll 4
    for (int i = 0; i < Config::repeats; ++i) {
#pragma unroll
        for (int s = 0; s < SUMS; ++s) multiply(c[s], a, b);
    }
    int sum = 0;
    for (int s = 0; s < SUMS; ++s) sum ^= c[s][0] ^ c[s][1] ^ c[s][2] ^ c[s][3];
    if (sum == 0x12345678) out[0] = sum;  // keeps the compiler from removing the products
}

extern "C" __global__ void bit_products(int *out) {
    RECORD_WARP;
    repeat(out, [](int (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        mma_b1_k256(c, a, b);
    });
}

extern "C" __global__ void byte_products(int *out) {
    RECORD_WARP;
    repeat(out, [](int (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        mma_s8_k32(c, a, b);
    });
}

extern "C" __global__ void nibble_products(int *out) {
    RECORD_WARP;
    repeat(out, [](int (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        mma_s4_k64(c, a, b);
    });
}

extern "C" __global__ void popc_products(int *out) {
    RECORD_WARP;
    repeat(out, [](int (&c)[4], unsigned (&a)[4], const unsigned (&b)[2]) {
        a[0] += b[0];  // makes each product different
#pragma unroll
        for (int r = 0; r < 4; ++r) c[r] += __popc(a[0] ^ unsigned(c[r]));
    });
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#include "bits/lines.cuh"

extern "C" __global__ void group_products(int *out) {
    RECORD_WARP;
    __shared__ __align__(LINES_ALIGNMENT) uint4 lines[(GROUP_ROWS + GROUP_LINES) * LINE_QUADS];
    for (int i = int(threadIdx.x); i < int(sizeof(lines) / sizeof(uint4)); i += int(blockDim.x)) {
        const unsigned some = i * 0x9e3779b9u;
        lines[i] = make_uint4(some, some * some, ~some, some ^ some >> 9);
    }
    show_to_products();
    __syncthreads();
    int c[2][GROUP_SUMS] = {};
    begin_products();
    for (int i = 0; i < Config::repeats; ++i) {
        for (int step = 0; step < LINE_QUADS / STEP_QUADS; ++step) {
            multiply_b1(c[0], lines, lines + GROUP_ROWS * LINE_QUADS, step);
            multiply_b1(c[1], lines, lines + GROUP_ROWS * LINE_QUADS, step);
        }
        close_products();
        await_products<1>();
    }
    await_products<0>();
    settle(c[0]);
    settle(c[1]);
    int sum = 0;
    for (int i = 0; i < GROUP_SUMS; ++i) sum ^= c[0][i] ^ c[1][i];
    if (sum == 0x12345678) out[0] = sum;  // keeps the compiler from removing the products
}
#endif
