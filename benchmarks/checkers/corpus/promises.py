"""Launches of kernels for what newer CUDA promises: asynchronous copies, bounds, lanes, types."""

import numpy as np

from .case import F32, I32, Launch, arguments, whole


def copy_tiles(warps, random):
    threads = 32 * warps
    X = whole(random, 3 * threads - 5)
    tiles = [X[i : i + threads] for i in range(0, X.size, threads)]
    values = arguments(X=X, Y=np.zeros(X.size, F32), sums=np.zeros(X.size, F32), n=X.size)
    expected = {
        "X": np.zeros(X.size),
        "Y": np.concatenate([tile[::-1] for tile in tiles]),
        "sums": np.concatenate([tile + np.append(F32(0), tile[:-1]) for tile in tiles]),
    }
    return Launch(3, threads, values, expected, unwritten=("Y", "sums"))


def copy_stages(warps, random):
    threads, tiles = 32 * warps, 5
    X = whole(random, 2, tiles, threads)
    sums = (X[:, :, ::-1] * np.arange(1, tiles + 1, dtype=F32)[:, None]).sum(axis=1)
    values = arguments(X=X, Y=np.zeros(sums.size, F32), tiles=tiles)
    return Launch(2, threads, values, {"Y": sums}, unwritten=("Y",))


def cas_max(warps, random):
    X = np.arange(1, 64 * warps - 2, dtype=F32)
    largest = [X[group::3].max() for group in range(3)]
    values = arguments(X=X, largest=np.zeros(3, F32), n=X.size, groups=3)
    return Launch(2, 32 * warps, values, {"largest": largest})


def cas_product(warps, random):
    X = random.integers(2, 65521, 64 * warps - 3).astype(np.uint32)
    product = 1
    for factor in X:
        product = product * int(factor) % 65521
    values = arguments(X=X, product=np.ones(1, np.uint32), n=X.size)
    return Launch(2, 32 * warps, values, {"product": [product]})


def bounded(warps, random):
    X = random.integers(-4, 5, 130 * warps + 1).astype(F32)
    values = arguments(X=X, Y=np.zeros(X.size, F32), n=X.size)
    expected = {"Y": 1 + 2 * X + 3 * X**2 + 4 * X**3}
    return Launch(2, 32 * warps, values, expected, unwritten=("Y",))


def taps(warps, random):
    X = whole(random, 96 * warps - 17)
    values = arguments(X=X, Y=np.zeros(X.size, F32), n=X.size)
    expected = {"Y": np.convolve(X, [1, 2, 4, 2, 1], "same")}
    return Launch(3, 32 * warps, values, expected, unwritten=("Y",))


def read_only(warps, random):
    X = random.integers(1, 100, 64 * warps - 3).astype(I32)
    values = arguments(X=X, Y=np.zeros(X.size, I32), n=X.size)
    expected = {"Y": np.diff(np.append(X, 0))}
    return Launch(2, 32 * warps, values, expected, unwritten=("Y",))


def half_warp(warps, random):
    X = random.integers(1, 100, (2 * warps, 32)).astype(I32)
    outputs = {
        "sums": X[:, :16].sum(axis=1),
        "quarters": X[:, :16].reshape(-1, 4).sum(axis=1),
        "others": -X[:, 16:],
    }
    blank = {name: np.zeros(array.size, I32) for name, array in outputs.items()}
    return Launch(2, 32 * warps, arguments(X=X, **blank), outputs, unwritten=(*outputs,))


def quads(warps, random):
    threads = 64 * warps
    X = whole(random, 3 * threads - 7, 4)
    sums = np.zeros(threads, F32)
    np.add.at(sums, np.arange(len(X)) % threads, X.sum(axis=1))
    values = arguments(X=X, Y=np.zeros(X.size, F32), sums=np.zeros(threads, F32), n_quads=len(X))
    return Launch(2, 32 * warps, values, {"Y": 2 * X, "sums": sums}, unwritten=("Y", "sums"))


def half_rows(warps, random):
    rows, threads = 64 * warps - 3, 32 * warps
    A, B = random.integers(-3, 4, (2, rows, 8)).astype(np.float16)
    products = (A * B).astype(F32)
    low = np.append(products[:, ::2].sum(axis=1), [0] * 3).reshape(-1, threads)
    low = low[:, np.arange(threads) ^ 1].ravel()[:rows]
    blank = {"dots": np.zeros(rows, F32), "low": np.zeros(rows, np.float16)}
    values = arguments(A=A, B=B, **blank, rows=rows, pairs=4)
    expected = {"dots": products.sum(axis=1), "low": low}
    return Launch(2, threads, values, expected, unwritten=("dots", "low"))


def first_true(warps, random):
    X = random.random((64 * warps - 3, 9)).astype(F32)
    X[::5] = 0
    above = F32(0.7) < X
    where = np.where(above.any(axis=1), above.argmax(axis=1), -1)
    blank = np.zeros(len(X), I32)
    values = arguments(X=X, where=blank, bound=F32(0.7), rows=len(X), columns=9)
    return Launch(2, 32 * warps, values, {"where": where}, unwritten=("where",))


def bit_rows(warps, random):
    n = 64 * warps - 5
    flags = random.integers(0, 2, n).astype(I32)
    flags[31] = 1
    padded = np.append(flags, np.zeros(5, I32)).reshape(-1, 32).astype(np.uint64)
    words = (padded << np.arange(32, dtype=np.uint64)).sum(axis=1)
    below = np.where(flags, (padded.cumsum(axis=1) - padded).ravel()[:n].astype(I32), -1)
    blank = {"words": np.zeros(len(words), np.uint32), "below": np.zeros(n, I32)}
    values = arguments(flags=flags, **blank, n=n)
    return Launch(2, 32 * warps, values, {"words": words, "below": below}, unwritten=(*blank,))


def quantize(warps, random):
    words = 64 * warps - 3
    X = random.uniform(-500, 500, (words, 4)).astype(F32)
    scales = np.array([0.5, 1, 2], F32)
    length = -(-words // 3)
    scaled = X * scales[np.arange(words) // length][:, None]
    levels = np.clip(scaled, 0, 255).astype(np.uint32)
    packed = (levels << np.array([0, 8, 16, 24], np.uint32)).sum(axis=1, dtype=np.uint32)
    blank = np.zeros(words, np.uint32)
    values = arguments(X=X, scales=scales, packed=blank, words=words, length=length)
    return Launch(2, 32 * warps, values, {"packed": packed}, unwritten=("packed",))


def digits(warps, random):
    X = random.integers(1, 10**9, 64 * warps - 3).astype(np.uint32)
    most = [np.bincount([int(digit) for digit in str(x)]).argmax() for x in X]
    values = arguments(X=X, most=np.zeros(X.size, I32), n=X.size)
    return Launch(2, 32 * warps, values, {"most": most}, unwritten=("most",))


def warp_flags(warps, random):
    X = random.integers(1, 100, 3).astype(I32)
    values = arguments(X=X, Y=np.zeros(3, I32))
    return Launch(3, 32 * warps, values, {"Y": 2 * X}, unwritten=("Y",))
