"""Launches of kernels on arrays: reductions, prefix sums, sorts and histograms."""

import numpy as np

from .case import F32, I32, Launch, arguments, whole


def small(random, *shape):
    """Return random integers from -100 to 99."""
    return random.integers(-100, 100, shape).astype(I32)


def reduce_tree(warps, random):
    threads = 32 * warps
    X = whole(random, 3 * threads - 5)
    sums = np.append(X, np.zeros(5, F32)).reshape(3, threads).sum(axis=1)
    values = arguments(X=X, sums=np.zeros(3, F32), n=X.size)
    return Launch(3, threads, values, {"sums": sums}, unwritten=("sums",))


reduce_interleaved = reduce_shuffle = reduce_last_warp = reduce_tree


def reduce_grid_stride(warps, random):
    X = small(random, 200 * warps + 3)
    values = arguments(X=X, sum=np.zeros(1, I32), n=X.size)
    shared = {"shared_bytes": 128 * warps, "too_few_bytes": 64 * warps}
    return Launch(3, 32 * warps, values, {"sum": [X.sum()]}, **shared)


def reduce_volatile(warps, random):
    X = small(random, 3, 32 * warps)
    return Launch(3, 32 * warps, arguments(X=X, sums=np.zeros(3, I32)), {"sums": X.sum(axis=1)})


def reduce_ticket(warps, random):
    X = whole(random, 128 * warps - 7)
    values = arguments(X=X, partial=np.zeros(8, F32), sum=np.zeros(1, F32), n=X.size)
    return Launch(4, 32 * warps, values, {"sum": [X.sum()]}, unwritten=("partial", "sum"))


def reduce_groups(warps, random):
    X = small(random, 96 * warps - 5)
    values = arguments(X=X, sum=np.zeros(1, I32), n=X.size)
    return Launch(3, 32 * warps, values, {"sum": [X.sum()]})


def arg_max(warps, random):
    threads = 32 * warps
    X = random.permutation(3 * threads - 5).astype(F32)
    padded = np.append(X, [-1e30] * 5).reshape(3, -1)
    where = padded.argmax(axis=1).astype(I32) + threads * np.arange(3)
    values = arguments(X=X, largest=np.zeros(3, F32), where=np.zeros(3, I32), n=X.size)
    expected = {"largest": padded.max(axis=1), "where": where}
    return Launch(3, threads, values, expected, unwritten=("largest", "where"))


def scan_hillis_steele(warps, random):
    X = small(random, 3, 32 * warps)
    values = arguments(X=X, Y=np.zeros(X.size, I32))
    return Launch(3, 32 * warps, values, {"Y": X.cumsum(axis=1)}, unwritten=("Y",))


scan_warps = scan_hillis_steele


def scan_blelloch(warps, random):
    threads = 32 * warps
    X = small(random, 2, 2 * threads)
    values, expected = arguments(X=X, Y=np.zeros(X.size, I32)), {"Y": X.cumsum(axis=1) - X}
    shared = {"shared_bytes": 8 * threads, "too_few_bytes": 8 * threads - 4}
    return Launch(2, threads, values, expected, unwritten=("Y",), **shared)


def scan_single_pass(warps, random):
    X = small(random, 4 * 32 * warps)
    values = arguments(X=X, Y=np.zeros(X.size, I32), sums=np.zeros(4, I32), flags=np.zeros(4, I32))
    return Launch(4, 32 * warps, values, {"Y": X.cumsum()}, unwritten=("Y", "sums"))


def compact(warps, random):
    # The values are equal, because their order in the output is not determined.
    X = np.where(random.random(96 * warps - 9) < 0.5, 1.0, -1.0).astype(F32)
    count = int((X > 0).sum())
    values = arguments(
        X=X, kept=np.zeros(count, F32), count=np.zeros(1, I32), limit=F32(0), n=X.size
    )
    expected = {"count": [count], "kept": np.ones(count)}
    return Launch(3, 32 * warps, values, expected, unwritten=("kept",))


def compact_in_order(warps, random):
    threads = 32 * warps
    X = random.integers(0, 1000, (2, threads)).astype(I32)
    front = np.full(X.shape, -1, I32)
    for row, line in zip(X, front, strict=True):
        chosen = row[row % 3 == 0]
        line[: chosen.size] = chosen
    values = arguments(X=X, kept=np.full(X.size, -1, I32), counts=np.zeros(2, I32))
    expected = {"kept": front, "counts": (X % 3 == 0).sum(axis=1)}
    return Launch(2, threads, values, expected, unwritten=("counts",))


def segmented_sum(warps, random):
    n = 96 * warps - 11
    keys, numbers = np.sort(random.integers(0, n // 8, n)).astype(I32), whole(random, n)
    values = arguments(keys=keys, values=numbers, sums=np.zeros(n // 8, F32), n=n)
    return Launch(3, 32 * warps, values, {"sums": np.bincount(keys, numbers, n // 8)})


def sort_bitonic(warps, random):
    keys = random.integers(0, 1000, (2, 32 * warps)).astype(I32)
    return Launch(2, 32 * warps, arguments(keys=keys), {"keys": np.sort(keys, axis=1)})


sort_odd_even = sort_bitonic


def radix_step(warps, random):
    keys = random.integers(0, 256, (2, 32 * warps)).astype(np.uint32)
    keys[:, 0] &= ~np.uint32(8)
    keys[:, -1] |= np.uint32(8)
    sorted_rows = [np.concatenate([row[row & 8 == 0], row[row & 8 != 0]]) for row in keys]
    values = arguments(**{"in": keys, "out": np.zeros(keys.size, np.uint32), "bit": 3})
    return Launch(2, 32 * warps, values, {"out": sorted_rows}, unwritten=("out",))


def sort_by_rank(warps, random):
    keys = random.integers(0, 20, 64 * warps - 5).astype(F32)
    values = arguments(keys=keys, sorted=np.zeros_like(keys), n=keys.size)
    return Launch(2, 32 * warps, values, {"sorted": np.sort(keys)}, unwritten=("sorted",))


def largest_of_each(warps, random):
    X = random.integers(0, 1000, (64 * warps, 9)).astype(I32)
    largest = -np.sort(-X, axis=1)[:, :4]
    values = arguments(X=X, largest=np.zeros(largest.size, I32), n=9)
    return Launch(2, 32 * warps, values, {"largest": largest}, unwritten=("largest",))


def histogram_global(warps, random):
    data = random.integers(0, 256, 130 * warps).astype(np.uint8)
    values = arguments(data=data, counts=np.zeros(256, np.uint32), n=data.size)
    return Launch(2, 32 * warps, values, {"counts": np.bincount(data, minlength=256)})


def histogram_shared(warps, random):
    data = random.integers(0, 256, 130 * warps).astype(np.uint8)
    data[5] = 255
    bins = 48 * warps
    expected = np.bincount(data.astype(int) * bins // 256, minlength=bins)
    values = arguments(data=data, counts=np.zeros(bins, I32), bins=bins, n=data.size)
    return Launch(2, 32 * warps, values, {"counts": expected}, shared_bytes=4 * bins)


def histogram_private(warps, random):
    data = random.integers(0, 256, 130 * warps).astype(np.uint8)
    values = arguments(data=data, counts=np.zeros(16, np.uint32), n=data.size)
    return Launch(2, 32 * warps, values, {"counts": np.bincount(data >> 4, minlength=16)})
