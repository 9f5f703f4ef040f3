"""Launches of kernels with warp primitives, cooperative groups, `cuda::` objects, small types."""

import numpy as np

from .arrays import small
from .case import F32, I32, Launch, arguments, whole


def sort_in_warps(warps, random):
    keys = small(random, 2 * warps, 32)
    return Launch(2, 32 * warps, arguments(keys=keys), {"keys": np.sort(keys, axis=1)})


def tiles_of_eight(warps, random):
    n = 64 * warps - 5
    X = np.append(small(random, n), np.zeros(5, I32)).reshape(-1, 8)
    prefixes = (X.cumsum(axis=1) - X).ravel()[:n]
    blank = {"sums": np.zeros(len(X), I32), "prefixes": np.zeros(n, I32)}
    values = arguments(X=X.ravel()[:n], **blank, n=n)
    expected = {"sums": X.sum(axis=1), "prefixes": prefixes}
    return Launch(2, 32 * warps, values, expected, unwritten=(*blank,))


def sums_by_label(warps, random):
    n = 64 * warps - 5
    keys, numbers = random.integers(0, 4, n).astype(I32), small(random, n)
    values = arguments(keys=keys, values=numbers, sums=np.zeros(4, I32), n=n)
    expected = {"sums": np.bincount(keys, numbers, 4)}
    return Launch(2, 32 * warps, values, expected)


def count_matches(warps, random):
    keys = random.integers(2**40, 2**40 + 16, 64 * warps - 5).astype(np.uint64)
    values = arguments(keys=keys, counts=np.zeros(16, I32), n=keys.size)
    expected = {"counts": np.bincount((keys % 16).astype(int), minlength=16)}
    return Launch(2, 32 * warps, values, expected)


def append_coalesced(warps, random):
    X = random.integers(0, 100, 64 * warps - 3).astype(I32)
    count = int((X % 2).sum())
    blank = {"count": np.zeros(1, I32), "list": np.zeros(count, I32)}
    values = arguments(X=X, **blank, n=X.size)
    expected = {"list": np.ones(count), "count": [count]}
    return Launch(2, 32 * warps, values, expected, unwritten=("list",))


def pipeline_stages(warps, random):
    X = whole(random, 2, 5, 32 * warps)
    Y = X[:, :, ::-1].sum(axis=1)
    values = arguments(X=X, Y=np.zeros(Y.size, F32), tiles=5)
    return Launch(2, 32 * warps, values, {"Y": Y}, unwritten=("Y",))


def barrier_copies(warps, random):
    X = small(random, 2, 32 * warps)
    Y = X
    for _ in range(3):
        Y = np.roll(Y, -1, axis=1) - np.roll(Y, 1, axis=1)
    values = arguments(X=X, Y=np.zeros(X.size, I32), rounds=3)
    return Launch(2, 32 * warps, values, {"Y": Y}, unwritten=("Y",))


def message_by_atomic(warps, random):
    X = small(random, 32 * warps)
    blank = {"message": np.zeros(X.size, I32), "flag": np.zeros(1, I32)}
    values = arguments(X=X, **blank, Y=np.zeros(2 * X.size, I32))
    expected = {"Y": np.tile(X * X, 2)}
    return Launch(3, 32 * warps, values, expected, unwritten=("message", "Y"))


def product_fragments(warps, random):
    A, B = random.integers(-3, 4, (16 * warps, 48)), random.integers(-3, 4, (48, 32))
    operands = {"A": A.astype(np.float16), "B": B.astype(np.float16)}
    blank = {"C": np.zeros(512 * warps, F32), "tiles": 2, "depth": 48}
    values = arguments(**operands, **blank)
    return Launch(2, 32 * warps, values, {"C": A @ B}, unwritten=("C",))


def dots_of_halves(warps, random):
    rows = 64 * warps - 5
    A, B = random.integers(-3, 4, (2, rows, 8)).astype(np.float16)
    dots = (A * B).sum(axis=1, dtype=F32)
    padded = np.append(dots, np.full(5, -np.inf)).reshape(-1, 32)
    blank = {"dots": np.zeros(rows, np.float16), "largest": np.zeros(2 * warps, F32)}
    values = arguments(A=A, B=B, **blank, rows=rows, pairs=4)
    expected = {"dots": dots, "largest": padded.max(axis=1)}
    return Launch(2, 32 * warps, values, expected, unwritten=(*blank,))


def bfloat16(X):
    """Round float32 to the nearest bfloat16, ties to even."""
    bits = X.astype(F32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)).view(F32)


def round_to_bfloat16(warps, random):
    n = 64 * warps - 5
    X = random.standard_normal(2 * n).astype(F32)
    rounded = bfloat16(X)
    sums = bfloat16(rounded[::2] + rounded[1::2])
    blank = {"rounded": np.zeros(2 * n, F32), "sums": np.zeros(n, F32)}
    values = arguments(X=X, **blank, n=n)
    expected = {"rounded": rounded, "sums": sums}
    return Launch(2, 32 * warps, values, expected, unwritten=(*blank,))


def bytes_in_words(warps, random):
    n = 64 * warps - 5
    A, B = random.integers(0, 2**32, (2, n)).astype(np.uint32)
    bytes_of_A, bytes_of_B = (X.view(np.uint8).reshape(n, 4).astype(I32) for X in (A, B))
    sums = np.minimum(bytes_of_A + bytes_of_B, 255).astype(np.uint8).view(np.uint32)
    shift = (B % 32).astype(np.uint64)
    double = A.astype(np.uint64) << np.uint64(32) | A
    outputs = {
        "sums": sums,
        "distances": np.abs(bytes_of_A - bytes_of_B).sum(axis=1),
        "rotated": (double << shift >> np.uint64(32)) % 2**32,
    }
    blank = {name: np.zeros(n, np.uint32) for name in outputs}
    values = arguments(A=A, B=B, **blank, n=n)
    return Launch(2, 32 * warps, values, outputs, unwritten=(*outputs,))


def every_atomic(warps, random):
    X = random.integers(0, 1000, 64 * warps - 5).astype(I32)
    ufuncs = (np.bitwise_and, np.bitwise_or, np.bitwise_xor)
    operands = (X | 16, X, X)
    bits = [ufunc.reduce(x) for ufunc, x in zip(ufuncs, operands, strict=True)]
    start = np.array([5, 5, 10**6, -1, 1023, 0, 0], I32)
    cells = [5 + X.sum(), 5 - X.sum(), X.min(), X.max(), bits[0] & 1023, *bits[1:]]
    wrapped = [X.size % 7, (-X.size) % 7]
    values = arguments(X=X, cells=start, wrapped=np.zeros(2, np.uint32), n=X.size)
    return Launch(2, 32 * warps, values, {"cells": cells, "wrapped": wrapped})


def affine(warps, random):
    X = whole(random, 130 * warps)
    kind = np.dtype([("slope", "f4"), ("offset", "f4"), ("n", "i4")])
    line = np.array((3, -2, X.size), kind)[()]
    values = arguments(X=X, Y=np.zeros(X.size, F32), line=line)
    return Launch((2, 3), 32 * warps, values, {"Y": 3 * X - 2}, unwritten=("Y",))


def block_sums_cub(warps, random):
    X = small(random, 3 * 64 - 5)
    rows = np.append(X, np.zeros(5, I32)).reshape(3, 64)
    blank = {"sums": np.zeros(3, I32), "prefixes": np.zeros(X.size, I32)}
    values = arguments(X=X, **blank, n=X.size)
    expected = {"sums": rows.sum(axis=1), "prefixes": rows.cumsum(axis=1).ravel()[: X.size]}
    return Launch(3, 64, values, expected, unwritten=(*blank,))
