"""Prefix sums, segmented ones, and what is built on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .case import Launch, Mistake, kernel


def scan_a_block(warps, random, *, exclusive=False, **options):
    threads = 32 * warps
    X = random.integers(-100, 100, (3, threads)).astype(np.int32)
    expected = X.cumsum(axis=1) - (X if exclusive else 0)
    arguments = {"X": X.ravel(), "Y": np.zeros(X.size, np.int32)}
    return Launch(3, threads, arguments, {"Y": expected.ravel()}, unwritten=("Y",), **options)


@kernel(
    """
// Hillis and Steele: two rows of shared memory take turns.
__global__ void scan_hillis_steele(const int *X, int *Y) {
    __shared__ int s[2][256];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    int now = 0;
    s[now][t] = X[i];
    __syncthreads();  // loaded
    for (int distance = 1; distance < blockDim.x; distance *= 2) {
        const int next = 1 - now;
        s[next][t] = s[now][t] + (t >= distance ? s[now][t - distance] : 0);
        now = next;
        __syncthreads();  // added
    }
    Y[i] = s[now][t];
}
""",
    Mistake("missing barrier", "__syncthreads();  // added"),
    Mistake("stale buffer", "const int next = 1 - now;", "const int next = now;"),
    Mistake(
        "before the beginning", "t >= distance ? s[now][t - distance] : 0", "s[now][t - distance]"
    ),
)
def scan_hillis_steele(warps, random):
    return scan_a_block(warps, random)


@kernel(
    """
// Blelloch: up the tree and down again, two elements a thread.
__global__ void scan_blelloch(const int *X, int *Y) {
    extern __shared__ int tree[];
    const int t = threadIdx.x, n = 2 * blockDim.x, first = blockIdx.x * n;
    tree[2 * t] = X[first + 2 * t];
    tree[2 * t + 1] = X[first + 2 * t + 1];
    int offset = 1;
    for (int d = n / 2; d > 0; d /= 2) {
        __syncthreads();  // up
        if (t < d) tree[offset * (2 * t + 2) - 1] += tree[offset * (2 * t + 1) - 1];
        offset *= 2;
    }
    if (t == 0) tree[n - 1] = 0;
    for (int d = 1; d < n; d *= 2) {
        offset /= 2;
        __syncthreads();  // down
        if (t < d) {
            const int left = offset * (2 * t + 1) - 1, right = offset * (2 * t + 2) - 1;
            const int kept = tree[left];
            tree[left] = tree[right];
            tree[right] += kept;
        }
    }
    __syncthreads();
    Y[first + 2 * t] = tree[2 * t];
    Y[first + 2 * t + 1] = tree[2 * t + 1];
}
""",
    Mistake("missing barrier", "__syncthreads();  // down"),
    Mistake("write past shared memory", "if (t < d) tree[offset", "if (t <= d) tree[offset"),
    Mistake(
        "too little dynamic shared memory",
        launch=lambda launch: replace(launch, shared_bytes=launch.shared_bytes - 4),
    ),
)
def scan_blelloch(warps, random):
    threads = 32 * warps
    X = random.integers(-100, 100, (2, 2 * threads)).astype(np.int32)
    arguments = {"X": X.ravel(), "Y": np.zeros(X.size, np.int32)}
    expected = {"Y": (X.cumsum(axis=1) - X).ravel()}
    return Launch(2, threads, arguments, expected, unwritten=("Y",), shared_bytes=8 * threads)


@kernel(
    """
// Lanes hand sums up, then warps' totals are scanned by the first warp.
__global__ void scan_warps(const int *X, int *Y) {
    __shared__ int totals[32];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    int sum = X[i];
    for (int d = 1; d < 32; d <<= 1) {
        const int below = __shfl_up_sync(0xffffffff, sum, d);
        if (lane >= d) sum += below;
    }
    if (lane == 31) totals[warp] = sum;
    __syncthreads();  // totals
    if (warp == 0) {
        int total = lane < warps ? totals[lane] : 0;
        for (int d = 1; d < 32; d <<= 1) {
            const int below = __shfl_up_sync(0xffffffff, total, d);
            if (lane >= d) total += below;
        }
        if (lane < warps) totals[lane] = total;
    }
    __syncthreads();  // scanned
    Y[i] = sum + (warp > 0 ? totals[warp - 1] : 0);
}
""",
    Mistake("missing barrier", "__syncthreads();  // scanned", wrong_from=2),
    Mistake(
        "exchange in a branch",
        """const int below = __shfl_up_sync(0xffffffff, sum, d);
        if (lane >= d) sum += below;""",
        "if (lane >= d) sum += __shfl_up_sync(0xffffffff, sum, d);",
        hangs=True,
    ),
    Mistake("unwritten shared memory", "lane < warps ? totals[lane] : 0", "totals[lane]"),
    Mistake(
        "different exchanges",
        "below = __shfl_up_sync(0xffffffff, sum, d);",
        "below = lane < d ? __any_sync(0xffffffff, sum) : __shfl_up_sync(0xffffffff, sum, d);",
        hangs=True,
    ),
)
def scan_warps(warps, random):
    return scan_a_block(warps, random)


@kernel(
    """
// One launch over all blocks: each waits for the sum of those before it.
__device__ unsigned int next_tile = 0;

__global__ void scan_single_pass(const int *X, int *Y, volatile int *sums, volatile int *flags) {
    __shared__ int s[256];
    __shared__ int before;
    __shared__ unsigned int tile;
    const int t = threadIdx.x;
    if (t == 0) tile = atomicAdd(&next_tile, 1);  // tiles start in order, blocks need not
    __syncthreads();
    const int i = tile * blockDim.x + t;
    s[t] = X[i];
    __syncthreads();
    for (int d = 1; d < blockDim.x; d *= 2) {
        const int other = t >= d ? s[t - d] : 0;
        __syncthreads();  // read
        s[t] += other;
        __syncthreads();  // written
    }
    if (t == 0) {
        int sum = 0;
        if (tile > 0) {
            while (flags[tile - 1] == 0) {}
            __threadfence();  // behind the flag
            sum = sums[tile - 1];
        }
        sums[tile] = sum + s[blockDim.x - 1];
        __threadfence();  // before the flag
        flags[tile] = 1;
        before = sum;
    }
    __syncthreads();  // before
    Y[i] = s[t] + before;
}
""",
    Mistake("missing fence", "__threadfence();  // before the flag"),
    Mistake("late write", "__syncthreads();  // read"),
    Mistake(
        "wait for a later block",
        "tile = atomicAdd(&next_tile, 1);",
        "tile = gridDim.x - 1 - blockIdx.x;",
    ),
    Mistake("wait for ever", "flags[tile] = 1;", "if (tile > 0) flags[tile] = 1;", hangs=True),
    Mistake("missing barrier", "__syncthreads();  // before"),
)
def scan_single_pass(warps, random):
    X = random.integers(-100, 100, 4 * 32 * warps).astype(np.int32)
    arguments = {
        "X": X,
        "Y": np.zeros(X.size, np.int32),
        "sums": np.zeros(4, np.int32),
        "flags": np.zeros(4, np.int32),
    }
    return Launch(4, 32 * warps, arguments, {"Y": X.cumsum()}, unwritten=("Y", "sums"))


@kernel(
    """
// The elements above a limit, close together, in any order: a ballot and an atomic a warp.
__global__ void compact(const float *X, float *kept, int *count, float limit, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    const bool keep = i < n && X[i] > limit;
    const unsigned int votes = __ballot_sync(0xffffffff, keep);
    int first = 0;
    if (lane == 0) first = atomicAdd(count, __popc(votes));
    first = __shfl_sync(0xffffffff, first, 0);
    if (keep) kept[first + __popc(votes & ((1u << lane) - 1))] = X[i];
}
""",
    Mistake("missing guard", "i < n && X[i]", "X[i]"),
    Mistake(
        "race in global memory", "kept[first + __popc(votes & ((1u << lane) - 1))]", "kept[first]"
    ),
    Mistake(
        "different exchanges",
        "first = __shfl_sync(0xffffffff, first, 0);",
        """if (keep) {
        first = __shfl_sync(0xffffffff, first, 0);
    } else {
        first = __shfl_down_sync(0xffffffff, first, lane);
    }""",
        hangs=True,
    ),
    Mistake(
        "return before an exchange",
        "    first = __shfl_sync(0xffffffff, first, 0);\n    if (keep) ",
        "    if (!keep) return;\n    first = __shfl_sync(0xffffffff, first, 0);\n    ",
    ),
)
def compact(warps, random):
    # Equal values, as their order is left to chance.
    X = np.where(random.random(96 * warps - 9) < 0.5, 1.0, -1.0).astype(np.float32)
    count = int((X > 0).sum())
    arguments = {
        "X": X,
        "kept": np.zeros(count, np.float32),
        "count": np.zeros(1, np.int32),
        "limit": np.float32(0),
        "n": np.int32(X.size),
    }
    expected = {"count": [count], "kept": np.ones(count)}
    return Launch(3, 32 * warps, arguments, expected, unwritten=("kept",))


@kernel(
    """
// The same by a scan of the block, in order: each block has its own stretch.
__global__ void compact_in_order(const int *X, int *kept, int *counts) {
    __shared__ int place[257];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    const int keep = X[i] % 3 == 0;
    place[t + 1] = keep;
    if (t == 0) place[0] = 0;
    __syncthreads();
    for (int d = 1; d <= blockDim.x; d *= 2) {
        const int other = t + 1 >= d ? place[t + 1 - d] : 0;
        __syncthreads();
        place[t + 1] += other;
        __syncthreads();
    }
    if (keep) kept[blockIdx.x * blockDim.x + place[t]] = X[i];
    if (t == 0) counts[blockIdx.x] = place[blockDim.x];
}
""",
    Mistake("write past shared memory", "place[257]", "place[256]", wrong_from=8),
    Mistake("unwritten shared memory", "if (t == 0) place[0] = 0;"),
)
def compact_in_order(warps, random):
    threads = 32 * warps
    X = random.integers(0, 1000, (2, threads)).astype(np.int32)
    front = np.full(X.shape, -1, np.int32)
    for row, line in zip(X, front, strict=True):
        chosen = row[row % 3 == 0]
        line[: chosen.size] = chosen
    counts = (X % 3 == 0).sum(axis=1)
    arguments = {
        "X": X.ravel(),
        "kept": np.full(X.size, -1, np.int32),
        "counts": np.zeros(2, np.int32),
    }
    expected = {"kept": front.ravel(), "counts": counts}
    return Launch(2, threads, arguments, expected, unwritten=("counts",))


@kernel(
    """
// Sums of stretches with equal keys, which lie together: lanes hand sums down inside a warp.
__global__ void segmented_sum(const int *keys, const float *values, float *sums, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    const int key = i < n ? keys[i] : -1;
    float value = i < n ? values[i] : 0.0f;
    for (int d = 1; d < 32; d *= 2) {
        const int other_key = __shfl_down_sync(0xffffffff, key, d);
        const float other = __shfl_down_sync(0xffffffff, value, d);
        if (lane + d < 32 && other_key == key) value += other;
    }
    const int before = __shfl_up_sync(0xffffffff, key, 1);
    if (i < n && (lane == 0 || before != key)) atomicAdd(&sums[key], value);
}
""",
    Mistake("no atomic", "atomicAdd(&sums[key], value)", "sums[key] += value"),
    Mistake(
        "before the beginning",
        "i < n && (lane == 0 || before != key)",
        "lane == 0 || before != key",
    ),
    Mistake("wrong mask", "__shfl_up_sync(0xffffffff", "__shfl_up_sync(1u << lane"),
    Mistake(
        "return before an exchange",
        "float value = i < n ? values[i] : 0.0f;",
        "if (i >= n) return;\n    float value = values[i];",
    ),
)
def segmented_sum(warps, random):
    n = 96 * warps - 11
    keys = np.sort(random.integers(0, n // 8, n)).astype(np.int32)
    values = random.integers(-8, 9, n).astype(np.float32)
    sums = np.zeros(n // 8, np.float32)
    expected = np.bincount(keys, values, n // 8)
    arguments = {"keys": keys, "values": values, "sums": sums, "n": np.int32(n)}
    return Launch(3, 32 * warps, arguments, {"sums": expected})
