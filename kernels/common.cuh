// Definitions that every kernel uses: constants, element addresses, atomics, time stamps of warps.
#pragma once

// An inlined device function.
#define DEVICE_INLINE __device__ __forceinline__

constexpr int WARP_SIZE = 32;
constexpr unsigned ALL_LANES = 0xffffffffu;

// Shared memory whose size the launch sets. The emulator defines its own macro.
#ifndef DYNAMIC_SHARED
#define DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#endif

// Index of an element of a dense matrix. 64-bit, as rows x columns exceeds 2^31 on real graphs.
DEVICE_INLINE long long element(int row, int column, int n_cols) {
    return (long long)row * n_cols + column;
}

// Stores a sum, or adds it atomically if other threads add to the same element.
template <class T>
DEVICE_INLINE void emit(T *to, T sum, bool shared) {
    if (shared) {
        atomicAdd(to, sum);
    } else {
        *to = sum;
    }
}

// Returns true, to all threads of a block, in the last of `blocks` blocks that call it.
// `arrived` counts the calls and is reset to zero by the last one. The last block can read the
// other blocks' writes with __ldcg: the fence put them into L2, so L1 needs no second fence.
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
// The GPU's global clock, which is the same on all SMs.
DEVICE_INLINE unsigned long long global_nanoseconds() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}
#endif

// `RECORD_WARP;` is the first line of a kernel. A build with RECORD_TIMELINE records the SM, start
// and end of each warp; in other builds the macro is empty.
#ifdef RECORD_TIMELINE
struct WarpTime {
    unsigned long long start, stop;  // nanoseconds: of its first lane's start, its last lane's end
    unsigned sm;
    unsigned unused;
};

__device__ WarpTime *warp_times;  // one per warp: blocks in order of x, then y, then z

class WarpClock {
   public:
    __device__ WarpClock() : start(global_nanoseconds()) {
    }

    // Lanes that leave the kernel together record one end; a diverged warp keeps the latest.
    __device__ ~WarpClock() {
        const unsigned active_lanes = __activemask();
        if (threadIdx.x % WARP_SIZE != __ffs(active_lanes) - 1) return;
        const long long block =
            blockIdx.x + (long long)gridDim.x * (blockIdx.y + (long long)gridDim.y * blockIdx.z);
        WarpTime *record = &warp_times[block * (blockDim.x / WARP_SIZE) + threadIdx.x / WARP_SIZE];
        atomicMin(&record->start, start);
        atomicMax(&record->stop, global_nanoseconds());
        asm volatile("mov.u32 %0, %%smid;" : "=r"(record->sm));
    }

   private:
    unsigned long long start;
};
#define RECORD_WARP const WarpClock record_of_this_warp
#else
#define RECORD_WARP
#endif
