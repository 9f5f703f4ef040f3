"""Sorts, and the steps that they are made of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .case import Launch, Mistake, kernel


def sorted_blocks(warps, random, blocks=2):
    threads = 32 * warps
    keys = random.integers(0, 1000, (blocks, threads)).astype(np.int32)
    expected = {"keys": np.sort(keys, axis=1).ravel()}
    return Launch(blocks, threads, {"keys": keys.ravel()}, expected)


@kernel(
    """
// A bitonic network for each block, in shared memory.
__global__ void sort_bitonic(int *keys) {
    __shared__ int s[256];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = keys[i];
    __syncthreads();
    for (int size = 2; size <= blockDim.x; size *= 2) {
        for (int stride = size / 2; stride > 0; stride /= 2) {
            const int other = t ^ stride;
            if (other > t) {
                const bool up = (t & size) == 0;
                if ((s[t] > s[other]) == up) {
                    const int kept = s[t];
                    s[t] = s[other];
                    s[other] = kept;
                }
            }
            __syncthreads();  // exchanged
        }
    }
    keys[i] = s[t];
}
""",
    Mistake("missing barrier", "__syncthreads();  // exchanged"),
    Mistake("race in shared memory", "if (other > t)", "if (other != t)"),
    Mistake("read past shared memory", "t ^ stride", "t + stride"),
    Mistake("endless loop", "stride /= 2", "stride = (stride + 1) / 2", hangs=True),
    Mistake(
        "barrier in a branch",
        "            }\n            __syncthreads();  // exchanged",
        "                __syncthreads();\n            }",
        hangs=True,
    ),
)
def sort_bitonic(warps, random):
    return sorted_blocks(warps, random)


@kernel(
    """
// Odd and even pairs in turn, in global memory.
__global__ void sort_odd_even(int *keys) {
    int *mine = keys + blockIdx.x * blockDim.x;
    for (int step = 0; step < blockDim.x; ++step) {
        const int left = 2 * threadIdx.x + step % 2;
        if (left + 1 < blockDim.x) {
            const int a = mine[left], b = mine[left + 1];
            mine[left] = min(a, b);
            mine[left + 1] = max(a, b);
        }
        __syncthreads();
    }
}
""",
    Mistake("missing barrier", "__syncthreads();"),
    Mistake("race in global memory", "2 * threadIdx.x + step % 2", "threadIdx.x + step % 2"),
    Mistake("race between blocks", "left + 1 < blockDim.x", "left + 1 <= blockDim.x"),
)
def sort_odd_even(warps, random):
    return sorted_blocks(warps, random)


@kernel(
    """
// One bit of a radix sort: zeros to the front, ones behind, in order.
__global__ void radix_step(const unsigned int *in, unsigned int *out, int bit) {
    __shared__ int ones[8], zeros;
    const int t = threadIdx.x, lane = t % 32, warp = t / 32, base = blockIdx.x * blockDim.x;
    const unsigned int key = in[base + t];
    const bool one = key >> bit & 1;
    const unsigned int votes = __ballot_sync(0xffffffff, one);
    if (lane == 0) ones[warp] = __popc(votes);
    __syncthreads();  // counted
    if (t == 0) {
        int sum = 0;
        for (int w = 0; w < blockDim.x / 32; ++w) {
            const int count = ones[w];
            ones[w] = sum;
            sum += count;
        }
        zeros = blockDim.x - sum;
    }
    __syncthreads();  // placed
    const int before = ones[warp] + __popc(votes & ((1u << lane) - 1));
    out[base + (one ? zeros + before : t - before)] = key;
}
""",
    Mistake("missing barrier", "__syncthreads();  // placed"),
    Mistake(
        "unwritten shared memory", "if (lane == 0) ones[warp]", "if (one && lane == 0) ones[warp]"
    ),
    Mistake("race in global memory", "zeros + before", "before"),
    Mistake("wrong mask", "__ballot_sync(0xffffffff", "__ballot_sync(0xffff"),
    Mistake("write past the end", "zeros = blockDim.x - sum", "zeros = blockDim.x"),
)
def radix_step(warps, random):
    keys = random.integers(0, 256, (2, 32 * warps)).astype(np.uint32)
    keys[:, 0] &= ~np.uint32(8)
    keys[:, -1] |= np.uint32(8)
    sorted_rows = np.array([np.concatenate([row[row & 8 == 0], row[row & 8 != 0]]) for row in keys])
    arguments = {"in": keys.ravel(), "out": np.zeros(keys.size, np.uint32), "bit": np.int32(3)}
    return Launch(2, 32 * warps, arguments, {"out": sorted_rows.ravel()}, unwritten=("out",))


@kernel(
    """
// The place of each key is how many are smaller; equal ones keep their order.
__global__ void sort_by_rank(const float *keys, float *sorted, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float key = keys[i];
    int rank = 0;
    for (int j = 0; j < n; ++j) rank += keys[j] < key || (keys[j] == key && j < i);
    sorted[rank] = key;
}
""",
    Mistake("race in global memory", " || (keys[j] == key && j < i)", ""),
    Mistake("write past the end", "int rank = 0;", "int rank = 1;"),
    Mistake("missing guard", "if (i >= n) return;"),
)
def sort_by_rank(warps, random):
    keys = random.integers(0, 20, 64 * warps - 5).astype(np.float32)
    arguments = {"keys": keys, "sorted": np.zeros_like(keys), "n": np.int32(keys.size)}
    return Launch(2, 32 * warps, arguments, {"sorted": np.sort(keys)}, unwritten=("sorted",))


@kernel(
    """
#define KEEP 4

// The largest four of each thread's elements, in a local array.
__global__ void largest_of_each(const int *X, int *largest, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int best[KEEP];
    for (int k = 0; k < KEEP; ++k) best[k] = -1;
    for (int j = 0; j < n; ++j) {
        const int value = X[i * n + j];
        int k = KEEP - 1;
        if (value <= best[k]) continue;
        while (k > 0 && best[k - 1] < value) {
            best[k] = best[k - 1];
            --k;
        }
        best[k] = value;
    }
    for (int k = 0; k < KEEP; ++k) largest[i * KEEP + k] = best[k];
}
""",
    Mistake(
        "write past a local array", "k < KEEP; ++k) best[k] = -1", "k <= KEEP; ++k) best[k] = -1"
    ),
    Mistake(
        "unwritten local variable", "for (int k = 0; k < KEEP; ++k) best[k] = -1;", "best[0] = -1;"
    ),
    Mistake("wrong stride", "largest[i * KEEP + k]", "largest[(i + k) * KEEP]"),
)
def largest_of_each(warps, random):
    X = random.integers(0, 1000, (64 * warps, 9)).astype(np.int32)
    largest = -np.sort(-X, axis=1)[:, :4]
    arguments = {"X": X.ravel(), "largest": np.zeros(largest.size, np.int32), "n": np.int32(9)}
    expected = {"largest": largest.ravel()}
    return Launch(2, 32 * warps, arguments, expected, unwritten=("largest",))


@kernel(
    """
// Counts in global memory.
__global__ void histogram_global(const unsigned char *data, unsigned int *counts, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&counts[data[i]], 1u);
    }
}
""",
    Mistake("no atomic", "atomicAdd(&counts[data[i]], 1u)", "counts[data[i]]++"),
    Mistake("index below zero", "counts[data[i]]", "counts[(signed char)data[i]]"),
    Mistake("output not cleared", launch=lambda launch: replace(launch, unwritten=("counts",))),
    Mistake("scope too small", "atomicAdd(", "atomicAdd_block("),
)
def histogram_global(warps, random):
    data = random.integers(0, 256, 130 * warps).astype(np.uint8)
    counts = np.zeros(256, np.uint32)
    arguments = {"data": data, "counts": counts, "n": np.int32(data.size)}
    return Launch(2, 32 * warps, arguments, {"counts": np.bincount(data, minlength=256)})


@kernel(
    """
// Counts of each block in shared memory, then one atomic a bin.
__global__ void histogram_shared(const unsigned char *data, int *counts, int bins, int n) {
    extern __shared__ int local[];
    for (int b = threadIdx.x; b < bins; b += blockDim.x) local[b] = 0;
    __syncthreads();  // cleared
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&local[data[i] * bins / 256], 1);
    }
    __syncthreads();  // counted
    for (int b = threadIdx.x; b < bins; b += blockDim.x) {
        if (local[b] > 0) atomicAdd(&counts[b], local[b]);
    }
}
""",
    Mistake("missing barrier", "__syncthreads();  // counted"),
    Mistake(
        "unwritten shared memory",
        "b += blockDim.x) local[b] = 0;",
        "b += 2 * blockDim.x) local[b] = 0;",
    ),
    Mistake(
        "no atomic", "atomicAdd(&local[data[i] * bins / 256], 1)", "++local[data[i] * bins / 256]"
    ),
    Mistake("read past shared memory", "data[i] * bins / 256", "data[i] * bins / 250"),
    Mistake("race in shared memory", "__syncthreads();  // cleared"),
)
def histogram_shared(warps, random):
    data = random.integers(0, 256, 130 * warps).astype(np.uint8)
    data[5] = 255
    bins = 48 * warps
    expected = np.bincount(data.astype(int) * bins // 256, minlength=bins)
    arguments = {
        "data": data,
        "counts": np.zeros(bins, np.int32),
        "bins": np.int32(bins),
        "n": np.int32(data.size),
    }
    return Launch(2, 32 * warps, arguments, {"counts": expected}, shared_bytes=4 * bins)


@kernel(
    """
#define BINS 16

// A thread counts for itself in bytes of shared memory, a column a thread.
__global__ void histogram_private(const unsigned char *data, unsigned int *counts, int n) {
    __shared__ unsigned char mine[BINS][256];
    const int t = threadIdx.x;
    for (int b = 0; b < BINS; ++b) mine[b][t] = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) {
        ++mine[data[i] >> 4][t];
    }
    __syncthreads();
    for (int b = t; b < BINS; b += blockDim.x) {
        unsigned int sum = 0;
        for (int j = 0; j < blockDim.x; ++j) sum += mine[b][j];
        atomicAdd(&counts[b], sum);
    }
}
""",
    Mistake("race of bytes", "++mine[data[i] >> 4][t];", "++mine[data[i] >> 4][t / 2];"),
    Mistake("read past shared memory", "data[i] >> 4", "data[i] >> 3"),
    Mistake("missing barrier", "__syncthreads();"),
)
def histogram_private(warps, random):
    data = random.integers(0, 256, 130 * warps).astype(np.uint8)
    counts = np.zeros(16, np.uint32)
    arguments = {"data": data, "counts": counts, "n": np.int32(data.size)}
    return Launch(2, 32 * warps, arguments, {"counts": np.bincount(data >> 4, minlength=16)})
