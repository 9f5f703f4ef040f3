"""The emulator judges races by what CUDA orders, byte by byte, whatever the order of threads."""

import re

import numpy as np
import pytest

from accelviz import emulate
from accelviz.errors import KernelError
from tests.compilers import needs_compiler

pytestmark = needs_compiler

#: Races, each a case of one kernel.
RACES = """
__global__ void k(const float *X, float *Y, int which) {
    __shared__ float s[1025];
    __shared__ unsigned char b[1024];
    const int t = threadIdx.x, n = blockDim.x, first = t / 32 * 32;
    s[t] = X[t];
    if (t == 0) s[n] = 0;
    __syncthreads();
    switch (which) {
    case 0:  // no __syncwarp
        for (int d = 16; d; d /= 2) if (t % 32 < d) s[t] += s[t + d];
        break;
    case 1: {  // nor does volatile order anything
        volatile float *v = s;
        for (int d = 16; d; d /= 2) if (t % 32 < d) v[t] += v[t + d];
        break;
    }
    case 2:  // a neighbor's element, read and then written
        s[t] += s[t + 1];
        break;
    case 3: {  // written after all lanes have read it
        const float first_of_all = s[first];
        Y[t] = first_of_all;
        if (t % 32 == 7) s[first] = 1;
        break;
    }
    case 4: {  // two read it, and the later one does not replace the earlier
        const float seen = t % 32 == 3 || t % 32 == 9 ? s[first + 1] : 0;
        if (t % 32 == 9) s[first + 1] = seen + 1;
        Y[t] = seen;
        break;
    }
    case 5:  // a __syncwarp orders the lanes of its mask alone
        if (t % 32 < 16) {
            s[t] = 1;
            __syncwarp(0xffff);
        } else {
            Y[t] = s[t - 16];
        }
        break;
    case 6:  // a shuffle orders no memory
        s[t] = 2;
        Y[t] = __shfl_sync(0xffffffff, 1.0f, 0) + s[first + (t + 1) % 32];
        break;
    case 7:  // half of a word
        if (t % 32 == 0) reinterpret_cast<short *>(s)[first * 2 + 1] = 1;
        if (t % 32 == 1) b[0] = reinterpret_cast<unsigned char *>(s)[first * 4 + 3];
        break;
    case 8:  // an atomic and a plain load
        atomicAdd(&s[first], 1.0f);
        Y[t] = s[first];
        break;
    case 9:  // a plain store, an atomic of the same thread after it, and another thread's atomic
        if (t % 32 == 3) s[first] = 1;
        atomicAdd(&s[first], 1.0f);
        break;
    case 10:  // who has not counted to the last one may not begin anew
        atomicAdd(&s[first], 1.0f);
        if (t % 32 == 5) s[first] = 0;
        break;
    }
}
"""


@pytest.mark.parametrize("threads", [32, 64, 256])
@pytest.mark.parametrize("which", range(11))
def test_a_race_is_found_whatever_the_order(which, threads):
    X, Y = np.ones(threads, np.float32), np.zeros(threads, np.float32)
    for seed in range(4):
        with pytest.raises(KernelError) as caught:
            emulate(RACES, 1, threads, X, Y, which, seed=seed)
        start = RACES[: RACES.index(f"case {which}:")].count("\n") + 1
        lines = [int(line) for line in re.findall(r"kernel\.cu:(\d+)", str(caught.value))]
        assert "a race: thread" in str(caught.value)
        assert len(lines) == 2
        assert all(start <= line <= start + 6 for line in lines), (start, str(caught.value))
        assert re.search(r"(s|Y)\[\d+\]", str(caught.value))


#: What is no race: ordered by barriers, by bytes, by atomics, or by fences.
ORDERED = """
__device__ unsigned finished = 0;
__device__ int lock = 0, guarded = 0;

__device__ double add(double *address, double value) {  // as in NVIDIA's programming guide
    unsigned long long *bits = (unsigned long long *)address;
    unsigned long long old = *bits, assumed;
    do {
        assumed = old;
        old = atomicCAS(bits, assumed,
                        __double_as_longlong(value + __longlong_as_double(assumed)));
    } while (assumed != old);
    return __longlong_as_double(old);
}

__device__ void largest(int *address, int value) {  // most threads find a larger one there
    int old = *address;
    while (old < value) {
        const int found = atomicCAS(address, old, value);
        if (found == old) break;
        old = found;
    }
}

__global__ void k(const float *X, float *Y, unsigned char *bytes, volatile float *parts,
                  double *total, volatile int *flag, int which) {
    __shared__ float s[1024];
    __shared__ bool last;
    const int t = threadIdx.x, n = blockDim.x, i = blockIdx.x * n + t;
    switch (which) {
    case 0:  // neighbors in a word
        bytes[i] = t;
        reinterpret_cast<short *>(Y)[2 * i + 1] = 2;
        reinterpret_cast<short *>(Y)[2 * i] = 1;
        break;
    case 1:  // a warp's reduction, with the barrier of a warp
        s[t] = X[i];
        __syncwarp();
        for (int d = 16; d; d /= 2) {
            const float more = t % 32 < d ? s[t + d] : 0;
            __syncwarp();
            s[t] += more;
            __syncwarp();
        }
        if (t % 32 == 0) atomicAdd(&Y[0], s[t]);
        break;
    case 2:  // the last block sums what all have left
        s[t] = X[i];
        __syncthreads();
        if (t == 0) {
            float sum = 0;
            for (int j = 0; j < n; ++j) sum += s[j];
            parts[blockIdx.x] = sum;
            __threadfence();
            last = atomicAdd(&finished, 1u) == gridDim.x - 1;
        }
        __syncthreads();
        if (last && t == 0) {
            for (int j = 0; j < gridDim.x; ++j) Y[0] += parts[j];
            finished = 0;  // for the next launch
        }
        break;
    case 3:  // each thread fences what it has left, one counts
        Y[i] = X[i];
        __threadfence();
        __syncthreads();
        if (t == 0) last = atomicAdd(&finished, 1u) == gridDim.x - 1;
        __syncthreads();
        if (last && t == 0) {
            for (int j = 1; j < gridDim.x * n; ++j) Y[0] += Y[j];
        }
        break;
    case 4:
        add(total, X[i]);
        largest(const_cast<int *>(flag), i * 37 % 64);
        break;
    case 5:  // a lock
        if (t % 32 == 0) {
            while (atomicCAS(&lock, 0, 1)) {}
            __threadfence();
            guarded += 1;
            __threadfence();
            atomicExch(&lock, 0);
            if (blockIdx.x == gridDim.x - 1 && t == 0) Y[0] = 1;
        }
        break;
    case 6:  // a flag that later blocks wait for
        if (blockIdx.x == 0 && t == 0) {
            Y[0] = 5;
            __threadfence();
            *flag = 1;
        } else if (blockIdx.x > 0 && t == 0) {
            while (*flag == 0) {}
            __threadfence();
            Y[blockIdx.x] = Y[0];
        }
        break;
    case 7:  // threads without work leave before the barrier, and lanes before the exchange
        if (t >= 20) return;
        s[t] = 1;
        __syncthreads();
        __syncwarp();
        Y[i] = s[19 - t] + __shfl_sync(0xffffffff, 1.0f, 0);
        break;
    case 8:  // a warp waits for a flag that a later one sets
        if (t == 0) while (atomicAdd(&lock, 0) == 0) {}
        if (t == n - 1) atomicExch(&lock, 1);
        break;
    case 9:  // without the fence, that of case 2 is a race
        if (t == 0) {
            parts[blockIdx.x] = 1;
            Y[blockIdx.x] = 1;
            last = atomicAdd(&finished, 1u) == gridDim.x - 1;
            if (last) for (int j = 0; j < gridDim.x; ++j) Y[0] += Y[j];
        }
        break;
    }
}
"""


def ordered(which, seed, blocks=3, threads=64):
    n = blocks * threads
    X, Y = np.ones(n, np.float32), np.zeros(n, np.float32)
    given = np.zeros(n, np.uint8), np.zeros(blocks, np.float32), np.zeros(1), np.zeros(1, np.int32)
    made = emulate(ORDERED, blocks, threads, X, Y, *given, which, seed=seed, timeout=10.0)
    return n, made


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("which", range(9))
def test_what_is_ordered_is_no_race(which, seed):
    if which == 6 and seed:
        pytest.skip("blocks in another order wait for a later one")
    n, made = ordered(which, seed)
    if which in (1, 2, 3):
        assert made["Y"][0] == n
    if which == 4:
        assert made["total"] == [n]
    if which == 6:
        assert made["Y"][:3].tolist() == [5, 5, 5]
    if which == 7:
        np.testing.assert_array_equal(made["Y"].reshape(3, 64)[:, :20], 2)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_without_a_fence_another_block_may_not_see_what_was_written(seed):
    with pytest.raises(KernelError, match=r"a race: .*of block \d.*after a fence and an atomic"):
        ordered(9, seed)


#: Lanes and threads that are together at two places.
APART = """
__global__ void k(int *Y, int which) {
    const int t = threadIdx.x, lane = t % 32;
    int x = t;
    switch (which) {
    case 0:
        if (lane < 16) x = __shfl_sync(0xffffffff, x, 0);
        else x = __shfl_sync(0xffffffff, x, 1);
        break;
    case 1:
        if (lane < 16) x = __shfl_xor_sync(0xffffffff, x, 1);
        else x = __ballot_sync(0xffffffff, x);
        break;
    case 2:  // a lane that has left
        if (lane == 31) return;
        x = __shfl_down_sync(0xffffffff, x, 1);
        break;
    case 3:
        if (lane == 0) __syncwarp(0xfffffffe);
        break;
    case 4:  // lanes outside the mask bring a number without meaning, which lane 0 does not use
        if (lane < 8) {
            for (int d = 4; d; d /= 2) x += __shfl_down_sync(0xff, x, d);
        }
        if (lane) x = 0;
        break;
    case 5:
        x = lane < 16 ? __any_sync(0xffffffff, x) : __shfl_up_sync(0xffffffff, x, 1);
        break;
    case 6:  // each by itself
        x += __shfl_up_sync(1u << lane, x, 1);
        break;
    case 7: {  // what is left over, of which the first lane has no neighbor
        const unsigned some = __ballot_sync(0xffffffff, lane < 3);
        if (lane < 3) {
            for (int d = 1; d < 4; d *= 2) {
                const int other = __shfl_down_sync(some, x, d);
                if (lane + d < 3) x += other;
            }
        }
        const unsigned one = __ballot_sync(0xffffffff, lane == 2);
        if (lane == 2) x += 0 * __shfl_down_sync(one, x, 1);
        if (lane) x = 0;
        break;
    }
    }
    Y[t] = x;
}
"""


@pytest.mark.parametrize(
    ("which", "says"),
    [
        (0, r":[78]: lanes of a warp exchange at different places: .* at kernel.cu:[78]"),
        (1, r":1[12]: lanes .* come to different warp-wide functions: .* at kernel.cu:1[12]"),
        (2, r":16: .*reads from a lane of its warp that has left the kernel"),
        (3, r":19: thread 0 .* whose mask is without it"),
        (5, r":28: lanes of a warp come to different warp-wide functions"),
        (6, r":31: thread \d+ .* reads from a lane outside the mask"),
    ],
)
def test_lanes_exchange_at_one_place(which, says):
    for threads in (32, 64):
        with pytest.raises(KernelError, match=says):
            emulate(APART, 1, threads, np.zeros(threads, np.int32), which)


def test_what_a_lane_outside_the_mask_brings_is_an_error_only_where_it_is_used():
    Y = np.zeros(32, np.int32)
    emulate(APART, 1, 32, Y, 4)
    assert Y[0] == sum(range(8))
    emulate(APART, 1, 32, Y, 7)
    assert Y[0] == sum(range(3))


VOLATILE = """
__global__ void k(volatile int *data, volatile int *flags, int *Y, int fence) {
    if (threadIdx.x) return;
    const int block = blockIdx.x;
    if (block == 0) {
        data[0] = 7;
        if (fence) __threadfence();
        flags[0] = 1;
        flags[1] = 1;
    } else {
        while (flags[0] == 0) {}
        while (flags[1] == 0) {}
        __threadfence();
        Y[0] = data[0];
    }
}
"""


def test_volatile_data_behind_a_volatile_flag_want_a_fence():
    def run(fence):
        data, flags, Y = (np.zeros(2, np.int32) for _ in range(3))
        emulate(VOLATILE, 2, 32, data, flags, Y, fence)
        return Y[0]

    assert run(1) == 7
    with pytest.raises(KernelError, match=r":14: a race: thread 0 of block 1 reads data\[0\]"):
        run(0)
