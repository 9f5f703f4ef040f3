"""Compare-and-swap loops, locks, queues and flags."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .case import Launch, Mistake, kernel, whole


@kernel(
    """
// The programming guide's atomicAdd of doubles for old GPUs.
__device__ double add_by_cas(double *address, double value) {
    unsigned long long int *as_integer = (unsigned long long int *)address;
    unsigned long long int old = *as_integer, assumed;
    do {
        assumed = old;
        old = atomicCAS(as_integer, assumed,
                        __double_as_longlong(value + __longlong_as_double(assumed)));
    } while (assumed != old);
    return __longlong_as_double(old);
}

__global__ void dot_double(const double *X, const double *Y, double *sum, int n) {
    double mine = 0.0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        mine += X[i] * Y[i];
    }
    for (int d = 16; d > 0; d /= 2) mine += __shfl_down_sync(0xffffffff, mine, d);
    if (threadIdx.x % 32 == 0) add_by_cas(sum, mine);
}
""",
    Mistake("no atomic", "add_by_cas(sum, mine)", "*sum += mine"),
    Mistake("output not cleared", launch=lambda launch: replace(launch, unwritten=("sum",))),
    Mistake(
        "endless loop",
        "} while (assumed != old);",
        "} while (assumed != old || value != 0.0);",
        hangs=True,
    ),
    Mistake("wrong mask", "0xffffffff, mine", "(1u << d) - 1, mine"),
)
def dot_double(warps, random):
    X, Y = random.integers(-8, 9, (2, 150 * warps)).astype(np.float64)
    arguments = {"X": X, "Y": Y, "sum": np.zeros(1), "n": np.int32(X.size)}
    return Launch(2, 32 * warps, arguments, {"sum": [X @ Y]})


@kernel(
    """
// The largest float by compare and swap of its bits.
__device__ void max_by_cas(float *address, float value) {
    int *const bits = reinterpret_cast<int *>(address);
    int old = *bits;
    while (__int_as_float(old) < value) {
        const int found = atomicCAS(bits, old, __float_as_int(value));
        if (found == old) break;
        old = found;
    }
}

__global__ void max_of_groups(const float *X, const int *groups, float *largest, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) max_by_cas(&largest[groups[i]], X[i]);
}
""",
    Mistake(
        "no atomic",
        "const int found = atomicCAS(bits, old, __float_as_int(value));",
        "const int found = old;\n        *bits = __float_as_int(value);",
    ),
    Mistake("missing guard", "if (i < n) ", ""),
    Mistake("index below zero", "&largest[groups[i]]", "&largest[groups[i] - 1]"),
)
def max_of_groups(warps, random):
    n = 64 * warps - 5
    X, groups = whole(random, n), random.integers(0, 6, n).astype(np.int32)
    groups[:6] = np.arange(6)
    expected = [X[groups == group].max() for group in range(6)]
    arguments = {
        "X": X,
        "groups": groups,
        "largest": np.full(6, -100, np.float32),
        "n": np.int32(n),
    }
    return Launch(2, 32 * warps, arguments, {"largest": expected})


@kernel(
    """
// A lock around a sum and its square: a lane at a time, with fences on both sides.
__global__ void sums_under_lock(const int *X, int *lock, int *sums, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool waiting = i < n;
    while (waiting) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            sums[0] += X[i];
            sums[1] += X[i] * X[i];
            __threadfence();  // before the lock opens
            atomicExch(lock, 0);
            waiting = false;
        }
    }
}
""",
    Mistake("missing fence", "__threadfence();  // before the lock opens"),
    Mistake(
        "wait for ever", "atomicExch(lock, 0);", "if (i != 3) atomicExch(lock, 0);", hangs=True
    ),
    Mistake("scope too small", "atomicCAS(lock", "atomicCAS_block(lock"),
    Mistake("race between blocks", "atomicCAS(lock, 0, 1) == 0", "*lock == 0"),
)
def sums_under_lock(warps, random):
    X = random.integers(-100, 100, 64 * warps - 9).astype(np.int32)
    arguments = {
        "X": X,
        "lock": np.zeros(1, np.int32),
        "sums": np.zeros(2, np.int32),
        "n": np.int32(X.size),
    }
    return Launch(2, 32 * warps, arguments, {"sums": [X.sum(), (X * X).sum()]})


@kernel(
    """
// One atomic for all lanes that want a place.
__device__ int place_of_lane(int *counter) {
    const unsigned int active = __activemask();
    const int lane = threadIdx.x % 32, leader = __ffs(active) - 1;
    int first = 0;
    if (lane == leader) first = atomicAdd(counter, __popc(active));
    first = __shfl_sync(active, first, leader);
    return first + __popc(active & ((1u << lane) - 1));
}

__global__ void gather_odd(const int *X, int *odd, int *counter, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && X[i] % 2 == 1) odd[place_of_lane(counter)] = 1;
}
""",
    Mistake(
        "race in global memory",
        "return first + __popc(active & ((1u << lane) - 1));",
        "return first;",
    ),
    Mistake("write past the end", "__popc(active & ((1u << lane) - 1))", "__popc(active)"),
)
def gather_odd(warps, random):
    X = random.integers(0, 100, 64 * warps - 3).astype(np.int32)
    X[-1] = 1
    count = int((X % 2).sum())
    arguments = {
        "X": X,
        "odd": np.zeros(count, np.int32),
        "counter": np.zeros(1, np.int32),
        "n": np.int32(X.size),
    }
    expected = {"odd": np.ones(count), "counter": [count]}
    return Launch(2, 32 * warps, arguments, expected, unwritten=("odd",))


@kernel(
    """
// Blocks take pieces of work from a counter until there is none.
__device__ int next_row = 0;

__global__ void work_queue(const int *starts, const int *values, int *sums, int rows) {
    __shared__ int row, sum;
    for (;;) {
        if (threadIdx.x == 0) {
            row = atomicAdd(&next_row, 1);
            sum = 0;
        }
        __syncthreads();  // taken
        if (row >= rows) return;
        int mine = 0;
        for (int k = starts[row] + threadIdx.x; k < starts[row + 1]; k += blockDim.x) {
            mine += values[k];
        }
        atomicAdd(&sum, mine);
        __syncthreads();  // summed
        if (threadIdx.x == 0) sums[row] = sum;
        __syncthreads();  // stored
    }
}
""",
    Mistake("missing barrier", "__syncthreads();  // taken"),
    Mistake("late write", "__syncthreads();  // summed"),
    Mistake("no atomic", "atomicAdd(&next_row, 1)", "next_row++"),
    Mistake("read past the end", "if (row >= rows) return;", "if (row > rows) return;"),
)
def work_queue(warps, random):
    counts = random.integers(0, 50 * warps, 9)
    starts = np.append(0, counts.cumsum()).astype(np.int32)
    values = random.integers(-100, 100, starts[-1]).astype(np.int32)
    sums = np.add.reduceat(np.append(values, 0), starts[:-1]) * (counts > 0)
    arguments = {
        "starts": starts,
        "values": values,
        "sums": np.zeros(9, np.int32),
        "rows": np.int32(9),
    }
    return Launch(3, 32 * warps, arguments, {"sums": sums}, unwritten=("sums",))


@kernel(
    """
// Block 0 makes a value and raises a flag; the others wait for it.
__global__ void broadcast_by_flag(const int *X, int *message, volatile int *flag, int *Y) {
    const int t = threadIdx.x;
    if (blockIdx.x == 0) {
        message[t] = X[t] * X[t];
        __syncthreads();  // written by all
        if (t == 0) {
            __threadfence();  // before the flag
            *flag = 1;
        }
    } else {
        if (t == 0) {
            while (*flag == 0) {}
            __threadfence();
        }
        __syncthreads();
        Y[(blockIdx.x - 1) * blockDim.x + t] = message[t];
    }
}
""",
    Mistake("missing barrier", "__syncthreads();  // written by all", wrong_from=2),
    Mistake("missing fence", "__threadfence();  // before the flag"),
    Mistake("wait for a later block", "blockIdx.x == 0", "blockIdx.x == gridDim.x - 1"),
    Mistake("wait for ever", "*flag = 1", "*flag = 0", hangs=True),
)
def broadcast_by_flag(warps, random):
    X = random.integers(-100, 100, 32 * warps).astype(np.int32)
    arguments = {
        "X": X,
        "message": np.zeros(X.size, np.int32),
        "flag": np.zeros(1, np.int32),
        "Y": np.zeros(2 * X.size, np.int32),
    }
    return Launch(3, 32 * warps, arguments, {"Y": np.tile(X * X, 2)}, unwritten=("message", "Y"))


@kernel(
    """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

// A hash table: a slot is taken by compare and swap, the next is tried if it has an owner.
__global__ void hash_insert(const unsigned int *keys, unsigned int *slots, int *probes, int n,
                            int size) {
    const int i = cg::this_grid().thread_rank();
    if (i >= n) return;
    int at = keys[i] * 2654435761u % size;
    for (int probe = 0; probe < size; ++probe) {
        const unsigned int found = atomicCAS(&slots[at], 0u, keys[i]);
        if (found == 0u || found == keys[i]) return;
        atomicAdd(probes, 1);
        at = (at + 1) % size;
    }
}
""",
    Mistake(
        "int overflow of an index",
        "keys[i] * 2654435761u % size",
        "(int)(keys[i] * 2654435761u) % size",
    ),
    Mistake("write past the end", "at = (at + 1) % size;", "at = at + 1;"),
    Mistake("no atomic", "atomicAdd(probes, 1)", "*probes += 1"),
)
def hash_insert(warps, random):
    n, size = 64 * warps - 3, 80 * warps
    keys = (1 + random.permutation(10 * size)[:n]).astype(np.uint32)
    keys[:3] = last_slot(size)
    arguments = {
        "keys": keys,
        "slots": np.zeros(size, np.uint32),
        "probes": np.zeros(1, np.int32),
        "n": np.int32(n),
        "size": np.int32(size),
    }
    taken, probes = set(), 0
    for at in keys * np.uint32(2654435761) % np.uint32(size):
        while at in taken:  # the sum of steps is the same in any order
            at, probes = (at + 1) % size, probes + 1
        taken.add(at)
    return Launch(2, 32 * warps, arguments, {"probes": [probes]})


def last_slot(size):
    """Return three keys whose place is the last of a hash table."""
    keys = np.arange(1, 100 * size, dtype=np.uint32)
    return keys[keys * np.uint32(2654435761) % np.uint32(size) == size - 1][:3]
