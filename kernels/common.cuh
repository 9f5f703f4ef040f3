// Plumbing that every kernel shares. No algorithm hides here.
#pragma once

// A function of the GPU's, inlined.
#define DEVICE_INLINE __device__ __forceinline__

constexpr int WARP_SIZE = 32;
constexpr unsigned ALL_LANES = 0xffffffffu;

// Shared memory whose size the launch decides; the emulator has a definition of its own.
#ifndef DYNAMIC_SHARED
#define DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#endif

// Position in a dense matrix. 64-bit, because rows x columns passes 2^31 on real graphs.
DEVICE_INLINE long long element(int row, int column, int n_cols) {
    return (long long)row * n_cols + column;
}

// Writes a sum, or adds it where others add theirs.
template <class T>
DEVICE_INLINE void emit(T *to, T sum, bool shared) {
    if (shared) {
        atomicAdd(to, sum);
    } else {
        *to = sum;
    }
}

// Returns to all threads of a block whether the others that count in `arrived`, `blocks` in all,
// have been here before. Then their writes can be read with __ldcg, from the L2, where the fence
// put them, so that no second fence has to empty the L1. `arrived` is zero again.
DEVICE_INLINE bool is_last_block(bool &shared_answer, unsigned *arrived, int blocks) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) shared_answer = atomicAdd(arrived, 1u) == unsigned(blocks) - 1;
    __syncthreads();
    if (shared_answer && threadIdx.x == 0) *arrived = 0u;
    return shared_answer;
}

// ceil(a / b) of positive integers.
DEVICE_INLINE int ceil_div(int a, int b) {
    return (a + b - 1) / b;
}

#ifndef EMULATOR
// The GPU's own clock, the same on all of its SMs.
DEVICE_INLINE unsigned long long global_nanoseconds() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}
#endif

// `RECORD_WARP;` is the first line of a kernel. In a build with RECORD_TIMELINE it notes, for each
// warp, where and when it ran; in any other it is nothing.
#ifdef RECORD_TIMELINE
struct WarpTime {
    unsigned long long start, stop;  // nanoseconds; the first lane's and the last one's
    unsigned sm;
    unsigned unused;
};

__device__ WarpTime *warp_times;  // one for each warp: those of block 0, 0 first, then block 1, 0

class WarpClock {
   public:
    __device__ WarpClock() : start(global_nanoseconds()) {
    }

    // Lanes that leave the kernel together report together, as often as they part.
    __device__ ~WarpClock() {
        const unsigned together = __activemask();
        if (threadIdx.x % WARP_SIZE != __ffs(together) - 1) return;
        const long long block =
            blockIdx.x + (long long)gridDim.x * (blockIdx.y + (long long)gridDim.y * blockIdx.z);
        WarpTime *mine = &warp_times[block * (blockDim.x / WARP_SIZE) + threadIdx.x / WARP_SIZE];
        atomicMin(&mine->start, start);
        atomicMax(&mine->stop, global_nanoseconds());
        asm volatile("mov.u32 %0, %%smid;" : "=r"(mine->sm));
    }

   private:
    unsigned long long start;
};
#define RECORD_WARP const WarpClock record_of_this_warp
#else
#define RECORD_WARP
#endif
