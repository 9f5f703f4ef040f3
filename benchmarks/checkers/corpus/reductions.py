"""Sums, and other reductions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .case import Launch, Mistake, kernel, whole


def sums_of_blocks(X, threads, blocks):
    """Return the sum of each block's elements, with as many a block as it has threads."""
    padded = np.zeros(threads * blocks, X.dtype)
    padded[: X.size] = X
    return padded.reshape(blocks, threads).sum(axis=1)


def one_sum_a_block(warps, random, **options):
    threads = 32 * warps
    X = whole(random, 3 * threads - 5)
    arguments = {"X": X, "sums": np.zeros(3, np.float32), "n": np.int32(X.size)}
    expected = {"sums": sums_of_blocks(X, threads, 3)}
    return Launch(3, threads, arguments, expected, unwritten=("sums",), **options)


@kernel(
    """
// The sum of each block's elements, as a tree in shared memory.
__global__ void reduce_tree(const float *X, float *sums, int n) {
    __shared__ float s[256];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? X[i] : 0.0f;
    __syncthreads();  // loaded
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();  // added
    }
    if (t == 0) sums[blockIdx.x] = s[0];
}
""",
    Mistake("missing barrier", "__syncthreads();  // added"),
    Mistake("missing guard", "i < n ? X[i] : 0.0f", "X[i]"),
    Mistake(
        "barrier in a branch",
        "if (t < half) s[t] += s[t + half];\n        __syncthreads();  // added",
        """if (t < half) {
            s[t] += s[t + half];
            __syncthreads();
        }""",
        hangs=True,
    ),
    Mistake("unwritten shared memory", "s[t + half];", "s[t + half + 1];"),
    Mistake("return before a barrier", "s[t] = i < n", "if (i >= n) return;\n    s[t] = i < n"),
)
def reduce_tree(warps, random):
    return one_sum_a_block(warps, random)


@kernel(
    """
// The same tree with growing strides and whole threads at the front.
__global__ void reduce_interleaved(const float *X, float *sums, int n) {
    __shared__ float s[256];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = 0.0f;
    if (i < n) s[t] = X[i];
    for (int stride = 1; stride < blockDim.x; stride *= 2) {
        __syncthreads();
        const int at = 2 * stride * t;
        if (at < blockDim.x) s[at] += s[at + stride];
    }
    if (t == 0) sums[blockIdx.x] = s[0];
}
""",
    Mistake("missing barrier", "__syncthreads();"),
    Mistake("read past shared memory", "at < blockDim.x", "at <= blockDim.x"),
)
def reduce_interleaved(warps, random):
    return one_sum_a_block(warps, random)


@kernel(
    """
// Warps sum in registers, the first of them sums the warps' sums.
__inline__ __device__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) {
        value += __shfl_down_sync(0xffffffff, value, offset);
    }
    return value;
}

__global__ void reduce_shuffle(const float *X, float *sums, int n) {
    __shared__ float of_warps[32];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum = i < n ? X[i] : 0.0f;
    sum = warp_sum(sum);
    if (lane == 0) of_warps[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = lane < blockDim.x / 32 ? of_warps[lane] : 0.0f;
        sum = warp_sum(sum);
        if (lane == 0) sums[blockIdx.x] = sum;
    }
}
""",
    Mistake("missing barrier", "__syncthreads();", wrong_from=2),
    Mistake(
        "unwritten shared memory",
        "lane < blockDim.x / 32 ? of_warps[lane] : 0.0f",
        "of_warps[lane]",
    ),
    Mistake(
        "exchange in a branch",
        "sum = warp_sum(sum);\n    if (lane == 0) of_warps",
        "if (i < n) sum = warp_sum(sum);\n    if (lane == 0) of_warps",
        hangs=True,
    ),
    Mistake("wrong mask", "__shfl_down_sync(0xffffffff", "__shfl_down_sync(0x0000ffff"),
    Mistake(
        "race in shared memory",
        "if (lane == 0) of_warps[warp] = sum;",
        "of_warps[warp] = sum + lane;",
    ),
)
def reduce_shuffle(warps, random):
    return one_sum_a_block(warps, random)


@kernel(
    """
// The last warp goes on alone, with barriers of its own.
__global__ void reduce_last_warp(const float *X, float *sums, int n) {
    __shared__ float s[256];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? X[i] : 0.0f;
    __syncthreads();
    for (int half = blockDim.x / 2; half >= 32; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();
    }
    if (t < 32) {
        for (int half = 16; half > 0; half /= 2) {
            const float other = t < half ? s[t + half] : 0.0f;
            __syncwarp();  // read
            s[t] += other;
            __syncwarp();  // written
        }
        if (t == 0) sums[blockIdx.x] = s[0];
    }
}
""",
    Mistake("missing warp barrier", "__syncwarp();  // written"),
    Mistake("late write", "__syncwarp();  // read"),
    Mistake(
        "different barriers",
        "if (t < half) s[t] += s[t + half];\n        __syncthreads();",
        """if (t < half) {
            s[t] += s[t + half];
            __syncthreads();
        } else {
            __syncthreads();
        }""",
        wrong_from=2,
    ),
)
def reduce_last_warp(warps, random):
    return one_sum_a_block(warps, random)


@kernel(
    """
// Any number of elements a thread; the last warp is unrolled and every step has its barrier.
__global__ void reduce_grid_stride(const int *X, int *sum, int n) {
    extern __shared__ int partial[];
    const int t = threadIdx.x;
    int mine = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += blockDim.x * gridDim.x) mine += X[i];
    partial[t] = mine;
    __syncthreads();
    for (int half = blockDim.x / 2; half >= 32; half /= 2) {
        if (t < half) partial[t] += partial[t + half];
        __syncthreads();
    }
    if (t < 32) {
        int value = partial[t];
        value += __shfl_xor_sync(0xffffffff, value, 16);
        value += __shfl_xor_sync(0xffffffff, value, 8);
        value += __shfl_xor_sync(0xffffffff, value, 4);
        value += __shfl_xor_sync(0xffffffff, value, 2);
        value += __shfl_xor_sync(0xffffffff, value, 1);
        if (t == 0) atomicAdd(sum, value);
    }
}
""",
    Mistake("no atomic", "atomicAdd(sum, value)", "*sum += value"),
    Mistake("scope too small", "atomicAdd(sum", "atomicAdd_block(sum"),
    Mistake("read past the end", "i < n", "i <= n"),
    Mistake("unwritten local variable", "int mine = 0;", "int mine;"),
    Mistake("endless loop", "i += blockDim.x * gridDim.x", "i += blockDim.x / 512", hangs=True),
    Mistake(
        "too little dynamic shared memory",
        launch=lambda launch: replace(launch, shared_bytes=launch.shared_bytes // 2),
    ),
    Mistake("output not cleared", launch=lambda launch: replace(launch, unwritten=("sum",))),
)
def reduce_grid_stride(warps, random):
    X = random.integers(-100, 100, 200 * warps + 3).astype(np.int32)
    arguments = {"X": X, "sum": np.zeros(1, np.int32), "n": np.int32(X.size)}
    return Launch(3, 32 * warps, arguments, {"sum": [X.sum()]}, shared_bytes=128 * warps)


@kernel(
    """
// As lanes of old warps did it, made right: volatile for the compiler, barriers for the lanes.
__device__ void last_warp(volatile int *s, int t) {
    int value = s[t];
    value += s[t + 16]; __syncwarp(); s[t] = value; __syncwarp();  // 16
    value += s[t + 8]; __syncwarp(); s[t] = value; __syncwarp();
    value += s[t + 4]; __syncwarp(); s[t] = value; __syncwarp();
    value += s[t + 2]; __syncwarp(); s[t] = value; __syncwarp();
    value += s[t + 1]; __syncwarp(); s[t] = value; __syncwarp();
}

__global__ void reduce_volatile(const int *X, int *sums) {
    __shared__ int s[8 * 48];
    const int t = threadIdx.x, lane = t % 32, warp = t / 32;
    int *mine = s + 48 * warp;
    mine[lane] = X[blockIdx.x * blockDim.x + t];
    if (lane < 16) mine[32 + lane] = 0;
    __syncwarp();
    last_warp(mine, lane);
    if (lane == 0) atomicAdd(&sums[blockIdx.x], mine[0]);
}
""",
    Mistake(
        "warp-synchronous code",
        "value += s[t + 16]; __syncwarp(); s[t] = value; __syncwarp();  // 16",
        "s[t] = value = value + s[t + 16];",
    ),
    Mistake("missing warp barrier", "    __syncwarp();\n    last_warp", "    last_warp"),
    Mistake("race in shared memory", "if (lane < 16) mine[32", "mine[32", wrong_from=2),
)
def reduce_volatile(warps, random):
    X = random.integers(-100, 100, 96 * warps).astype(np.int32)
    sums = np.zeros(3, np.int32)
    return Launch(3, 32 * warps, {"X": X, "sums": sums}, {"sums": X.reshape(3, -1).sum(axis=1)})


@kernel(
    """
// One launch: the block that comes last sums the others' sums.
__device__ unsigned int blocks_done = 0;

__global__ void reduce_ticket(const float *X, float *partial, float *sum, int n) {
    __shared__ float s[256];
    __shared__ bool is_last;
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? X[i] : 0.0f;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half) s[t] += s[t + half];
    }
    if (t == 0) {
        partial[blockIdx.x] = s[0];
        __threadfence();
        const unsigned int ticket = atomicInc(&blocks_done, gridDim.x);
        is_last = ticket == gridDim.x - 1;
    }
    __syncthreads();  // told
    if (is_last && t == 0) {
        float total = 0.0f;
        for (int b = 0; b < gridDim.x; ++b) total += partial[b];
        *sum = total;
        blocks_done = 0;
    }
}
""",
    Mistake("missing fence", "__threadfence();"),
    Mistake("missing barrier", "__syncthreads();  // told"),
    Mistake("race between blocks", "if (is_last && t == 0)", "if (t == 0)"),
    Mistake("unwritten global memory", "b < gridDim.x; ++b", "b <= gridDim.x; ++b"),
)
def reduce_ticket(warps, random):
    X = whole(random, 128 * warps - 7)
    blank = np.zeros(8, np.float32), np.zeros(1, np.float32)
    arguments = {"X": X, "partial": blank[0], "sum": blank[1], "n": np.int32(X.size)}
    return Launch(4, 32 * warps, arguments, {"sum": [X.sum()]}, unwritten=("partial", "sum"))


@kernel(
    """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

// Groups of 16 lanes sum, then one atomic a group.
__global__ void reduce_groups(const int *X, int *sum, int n) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<16> tile = cg::tiled_partition<16>(block);
    __shared__ int total;
    if (block.thread_rank() == 0) total = 0;
    block.sync();
    const int i = block.group_index().x * block.size() + block.thread_rank();
    const int mine = i < n ? X[i] : 0;
    const int of_tile = cg::reduce(tile, mine, cg::plus<int>());
    if (tile.thread_rank() == 0) atomicAdd(&total, of_tile);
    block.sync();  // added
    if (block.thread_rank() == 0) atomicAdd(sum, total);
}
""",
    Mistake("missing barrier", "block.sync();  // added"),
    Mistake(
        "exchange in a branch",
        "const int of_tile = cg::reduce(tile, mine, cg::plus<int>());",
        """int of_tile = mine;
    if (i < n) of_tile = cg::reduce(tile, mine, cg::plus<int>());""",
        hangs=True,
    ),
)
def reduce_groups(warps, random):
    X = random.integers(-100, 100, 96 * warps - 5).astype(np.int32)
    arguments = {"X": X, "sum": np.zeros(1, np.int32), "n": np.int32(X.size)}
    return Launch(3, 32 * warps, arguments, {"sum": [X.sum()]})


@kernel(
    """
// The largest element and where it stands, for each block.
__global__ void arg_max(const float *X, float *largest, int *where, int n) {
    __shared__ float value[256];
    __shared__ int place[256];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    value[t] = i < n ? X[i] : -1e30f;
    place[t] = i;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half >>= 1) {
        if (t < half && value[t + half] > value[t]) {
            value[t] = value[t + half];
            place[t] = place[t + half];
        }
        __syncthreads();
    }
    if (t == 0) {
        largest[blockIdx.x] = value[0];
        where[blockIdx.x] = place[0];
    }
}
""",
    Mistake("read past shared memory", "if (t < half && value", "if (value"),
    Mistake("write past the end", "largest[blockIdx.x]", "largest[blockIdx.x + 1]"),
)
def arg_max(warps, random):
    threads = 32 * warps
    X = random.permutation(3 * threads - 5).astype(np.float32)
    padded = np.append(X, [-1e30] * 5).reshape(3, -1)
    where = padded.argmax(axis=1).astype(np.int32) + threads * np.arange(3)
    arguments = {
        "X": X,
        "largest": np.zeros(3, np.float32),
        "where": np.zeros(3, np.int32),
        "n": np.int32(X.size),
    }
    expected = {"largest": padded.max(axis=1), "where": where}
    return Launch(3, threads, arguments, expected, unwritten=("largest", "where"))
