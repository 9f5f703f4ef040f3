"""Launches of kernels on dense data: products, stencils, convolutions, images, network layers."""

import numpy as np

from .case import F32, I32, Launch, arguments, whole

FILTER = [1, 2, 4, 2, 1]
#: Threads of a two-dimensional block in x and y, by its number of warps.
PLANES = {1: (8, 4), 2: (16, 4), 8: (16, 16)}


def blocks(size, block):
    """Return the number of blocks along each axis that cover a size."""
    return tuple(-(-length // threads) for length, threads in zip(size, block, strict=True))


def transposed(random, grid, block):
    A = whole(random, 45, 70)
    values = arguments(A=A, B=np.zeros(A.size, F32), rows=45, columns=70)
    return Launch(grid, block, values, {"B": A.T}, unwritten=("B",))


def transpose_naive(warps, random):
    return transposed(random, blocks((70, 45), PLANES[warps]), PLANES[warps])


def transpose_tiled(warps, random):
    return transposed(random, (3, 2), (32, warps))


def transpose_in_warps(warps, random):
    A = whole(random, 2 * warps, 8, 4)
    values = arguments(A=A, B=np.zeros(A.size, F32))
    return Launch(2, 32 * warps, values, {"B": A.transpose(0, 2, 1)}, unwritten=("B",))


def product(random, grid, block, M, N, K):
    A, B = whole(random, M, K), whole(random, K, N)
    values = arguments(A=A, B=B, C=np.zeros(M * N, F32), M=M, N=N, K=K)
    return Launch(grid, block, values, {"C": A @ B}, unwritten=("C",))


def product_naive(warps, random):
    return product(random, blocks((18, 13), PLANES[warps]), PLANES[warps], 13, 18, 7)


def product_tiled(warps, random):
    return product(random, (3, 2), (8, 8), 13, 18, 19)


def product_registers(warps, random):
    return product(random, (2, 1), (32, warps), 4 * warps, 64, 24)


def matrix_vector(warps, random):
    rows, columns = 3 * warps - (warps > 1), 256
    A, x = whole(random, rows, columns), whole(random, columns)
    values = arguments(A=A, x=x, y=np.zeros(rows, F32), rows=rows, columns=columns)
    return Launch(3 + (warps == 1), 32 * warps, values, {"y": A @ x}, unwritten=("y",))


def convolution(warps, random):
    X = whole(random, 96 * warps - 17)
    values = arguments(X=X, Y=np.zeros(X.size, F32), n=X.size)
    expected = {"Y": np.convolve(X, FILTER, "same")}
    return Launch(3, 32 * warps, values, expected, unwritten=("Y",))


def neighbors(A, around):
    """Return the sum of shifted copies of an array, zero outside, with weights by offset."""
    padded = np.pad(A, 1)
    sums = np.zeros_like(A)
    for offset, weight in around.items():
        window = tuple(slice(1 + o, 1 + o + size) for o, size in zip(offset, A.shape, strict=True))
        sums += F32(weight) * padded[window]
    return sums


def convolution_2d(warps, random):
    x, y = PLANES[warps]
    A = whole(random, 19, 21)
    weights = {(j, i): 3 + i + j for j in (-1, 0, 1) for i in (-1, 0, 1)}
    values = arguments(image=A, out=np.zeros(A.size, F32), height=19, width=21)
    shared = {"shared_bytes": 4 * (x + 2) * (y + 2), "too_few_bytes": 4 * x * y}
    expected = {"out": neighbors(A, weights)}
    return Launch(blocks((21, 19), (x, y)), (x, y), values, expected, unwritten=("out",), **shared)


def stencil_1d(warps, random):
    X = whole(random, 64 * warps - 3)
    Y = np.convolve(X, [0.25, 0.25, 0.25], "same")
    Y[[0, -1]] = X[[0, -1]]
    values = arguments(X=X, Y=np.zeros(X.size, F32), n=np.uint32(X.size))
    return Launch(2, 32 * warps, values, {"Y": Y}, unwritten=("Y",))


def stencil_2d(warps, random):
    now = whole(random, 11, 11) * 16
    grids = [now.copy(), now.copy()]
    for old, new in (grids, grids[::-1]):
        around = old[1:-1, :-2] + old[1:-1, 2:] + old[:-2, 1:-1] + old[2:, 1:-1]
        new[1:-1, 1:-1] = around * F32(0.25)
    values = arguments(now=now, next=now.copy(), n=11, steps=2)
    return Launch(1, 32 * warps, values, {"now": grids[0], "next": grids[1]})


def stencil_3d(warps, random):
    block = {1: (4, 4, 2), 2: (8, 4, 2), 8: (8, 8, 4)}[warps]
    X = whole(random, 5, 6, 7)
    unit = np.eye(3, dtype=int).tolist()
    around = {
        (0, 0, 0): -6,
        **{tuple(s * step for s in axis): 1 for axis in unit for step in (-1, 1)},
    }
    values = arguments(X=X, Y=np.zeros(X.size, F32), nx=7, ny=6, nz=5)
    expected = {"Y": neighbors(X, around)}
    return Launch(blocks((7, 6, 5), block), block, values, expected, unwritten=("Y",))


def bytes_by_table(warps, random):
    threads = 32 * warps
    image = random.integers(0, 256, 2 * threads - 3).astype(np.uint8)
    image[[3, -1]] = 255
    out = np.array([k * (k + 1) for k in range(16)], np.uint8)[image // 16]
    blank = np.zeros(image.size, np.uint8)
    values = arguments(image=image, out=blank, darkest=np.zeros(2, I32), n=image.size)
    expected = {"out": out, "darkest": [out[:threads].min(), out[threads:].min()]}
    return Launch(2, threads, values, expected, unwritten=("out", "darkest"))


def softmax(warps, random):
    X = random.standard_normal((2, 77)).astype(F32)
    shifted = np.exp(X.astype(float) - X.max(axis=1, keepdims=True))
    values = arguments(X=X, Y=np.zeros(X.size, F32), width=77)
    expected = {"Y": shifted / shifted.sum(axis=1, keepdims=True)}
    return Launch(2, 32 * warps, values, expected, unwritten=("Y",), tolerance=1e-5)


def layer_norm(warps, random):
    rows = 3 * warps - 1
    X = random.standard_normal((rows, 45)).astype(F32)
    gain, bias = random.standard_normal((2, 45)).astype(F32)
    centered = X.astype(float) - X.astype(float).mean(axis=1, keepdims=True)
    normal = centered / np.sqrt(X.astype(float).var(axis=1, keepdims=True) + 1e-5)
    values = arguments(X=X, gain=gain, bias=bias, Y=np.zeros(X.size, F32), rows=rows, width=45)
    expected = {"Y": normal * gain + bias}
    return Launch(3, (32, warps), values, expected, unwritten=("Y",), tolerance=1e-4)


def axpy_vectors(warps, random):
    X, Y = whole(random, 2, 4 * 70 * warps + 3)
    return Launch(2, 32 * warps, arguments(a=F32(3), X=X, Y=Y.copy(), n=X.size), {"Y": Y + 3 * X})


def axpy_half2(warps, random):
    X, Y = random.integers(-8, 9, (2, 2 * (64 * warps - 5))).astype(np.float16)
    values = arguments(a=F32(3), X=X, Y=Y.copy(), n=X.size // 2)
    return Launch(2, 32 * warps, values, {"Y": Y + 3 * X})


def bodies(warps, random):
    n = 64 * warps - 7
    positions = random.random((n, 4)).astype(F32)
    exact = positions.astype(float)
    away = exact[None, :, :3] - exact[:, None, :3]
    strength = exact[:, 3] * ((away**2).sum(axis=2) + 0.01) ** -1.5
    values = arguments(positions=positions, forces=np.zeros(3 * n, F32), n=n)
    expected = {"forces": (away * strength[:, :, None]).sum(axis=1)}
    shared = {"shared_bytes": 512 * warps, "too_few_bytes": 128 * warps}
    options = {"unwritten": ("forces",), "tolerance": 2e-3, **shared}
    return Launch(2, 32 * warps, values, expected, **options)


def mean_of_rows(warps, random):
    counts = np.array([3, 0, 5, 1])
    starts = np.append(0, counts.cumsum()).astype(I32)
    table = random.integers(0, 1000, (30, 50)).astype(I32)
    chosen = random.integers(5, 30, 9).astype(I32)
    lists = np.split(table[chosen], starts[1:-1])
    means = [rows.sum(axis=0) // max(len(rows), 1) for rows in lists]
    lengths = {"means": np.zeros(200, I32), "width": 50}
    values = arguments(starts=starts, chosen=chosen, table=table, **lengths)
    return Launch(4, 32 * warps, values, {"means": means}, unwritten=("means",))
