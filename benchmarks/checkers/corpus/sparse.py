"""Launches of sparse products in several formats, and of locks, queues, flags and a hash table."""

from dataclasses import replace

import numpy as np

from .case import F32, I32, Launch, arguments, whole


def matrix(random, rows, columns, most):
    """Return a CSR matrix of small integers, 0 to `most` nonzeros per row, and its dense form."""
    degrees = random.integers(0, most + 1, rows)
    degrees[[0, -1]] = most, 1
    pointers = np.append(0, degrees.cumsum()).astype(I32)
    indices = np.concatenate([np.sort(random.permutation(columns)[:d]) for d in degrees])
    values = whole(random, indices.size)
    dense = np.zeros((rows, columns), F32)
    dense[np.repeat(np.arange(rows), degrees), indices] = values
    return {"pointers": pointers, "columns": indices.astype(I32), "values": values}, dense


def csr(warps, random, rows, grid=2, most=12):
    A, dense = matrix(random, rows, 40, most)
    x = whole(random, 40)
    values = arguments(**A, x=x, y=np.zeros(rows, F32), rows=rows)
    return Launch(grid, 32 * warps, values, {"y": dense @ x}, unwritten=("y",))


def csr_scalar(warps, random):
    return csr(warps, random, 64 * warps - 3)


def csr_vector(warps, random):
    return csr(warps, random, 4 * warps - 1, 4, most=39)


def csr_stream(warps, random):
    launch = csr(warps, random, 40 * warps)
    return replace(launch, grid=-(-launch.arguments["columns"].size // 64), unwritten=())


def coo_atomic(warps, random):
    rows = 20 * warps
    A, dense = matrix(random, rows, 40, 12)
    x, n = whole(random, 40), A["values"].size
    A["rows"] = np.repeat(np.arange(rows, dtype=I32), np.diff(A.pop("pointers")))
    ordered = {name: A[name] for name in ("rows", "columns", "values")}
    values = arguments(**ordered, x=x, y=np.zeros(rows, F32), nonzeros=n)
    return Launch(n // (32 * warps) + 1, 32 * warps, values, {"y": dense @ x})


def ell(warps, random):
    rows = 64 * warps - 3
    A, dense = matrix(random, rows, 40, 12)
    degrees = np.diff(A["pointers"])
    filled = np.arange(degrees.max()) < degrees[:, None]  # (rows, width), in the order of CSR
    columns, padded = np.full(filled.shape, -1, I32), np.zeros(filled.shape, F32)
    columns[filled], padded[filled] = A["columns"], A["values"]
    x = whole(random, 40)
    sizes = {"y": np.zeros(rows, F32), "rows": rows, "width": filled.shape[1]}
    values = arguments(columns=columns.T, values=padded.T, x=x, **sizes)
    return Launch(2, 32 * warps, values, {"y": dense @ x}, unwritten=("y",))


def spmm_rows(warps, random):
    rows, width = 3 * warps - 1, 20
    A, dense = matrix(random, rows, 50, 45)
    X = whole(random, 50, width)
    values = arguments(**A, X=X, Y=np.zeros(rows * width, F32), rows=rows, width=width)
    return Launch(3, 32 * warps, values, {"Y": dense @ X}, unwritten=("Y",))


def dot_double(warps, random):
    X, Y = random.integers(-8, 9, (2, 150 * warps)).astype(np.float64)
    return Launch(2, 32 * warps, arguments(X=X, Y=Y, sum=np.zeros(1), n=X.size), {"sum": [X @ Y]})


def max_of_groups(warps, random):
    n = 64 * warps - 5
    X, groups = whole(random, n), random.integers(0, 6, n).astype(I32)
    groups[:6] = np.arange(6)
    values = arguments(X=X, groups=groups, largest=np.full(6, -100, F32), n=n)
    expected = {"largest": [X[groups == group].max() for group in range(6)]}
    return Launch(2, 32 * warps, values, expected)


def sums_under_lock(warps, random):
    X = random.integers(-100, 100, 64 * warps - 9).astype(I32)
    values = arguments(X=X, lock=np.zeros(1, I32), sums=np.zeros(2, I32), n=X.size)
    return Launch(2, 32 * warps, values, {"sums": [X.sum(), (X * X).sum()]})


def gather_odd(warps, random):
    X = random.integers(0, 100, 64 * warps - 3).astype(I32)
    X[-1] = 1
    count = int((X % 2).sum())
    values = arguments(X=X, odd=np.zeros(count, I32), counter=np.zeros(1, I32), n=X.size)
    expected = {"odd": np.ones(count), "counter": [count]}
    return Launch(2, 32 * warps, values, expected, unwritten=("odd",))


def work_queue(warps, random):
    counts = random.integers(0, 50 * warps, 9)
    starts = np.append(0, counts.cumsum()).astype(I32)
    numbers = random.integers(-100, 100, starts[-1]).astype(I32)
    sums = np.add.reduceat(np.append(numbers, 0), starts[:-1]) * (counts > 0)
    values = arguments(starts=starts, values=numbers, sums=np.zeros(9, I32), rows=9)
    return Launch(3, 32 * warps, values, {"sums": sums}, unwritten=("sums",))


def broadcast_by_flag(warps, random):
    X = random.integers(-100, 100, 32 * warps).astype(I32)
    message, Y = np.zeros(X.size, I32), np.zeros(2 * X.size, I32)
    values = arguments(X=X, message=message, flag=np.zeros(1, I32), Y=Y)
    return Launch(3, 32 * warps, values, {"Y": np.tile(X * X, 2)}, unwritten=("message", "Y"))


def hash_insert(warps, random):
    n, size = 64 * warps - 3, 80 * warps
    keys = (1 + random.permutation(10 * size)[:n]).astype(np.uint32)
    every = np.arange(1, 100 * size, dtype=np.uint32)
    keys[:3] = every[every * np.uint32(2654435761) % np.uint32(size) == size - 1][:3]  # last slot
    taken, probes = set(), 0
    for slot in keys * np.uint32(2654435761) % np.uint32(size):
        while slot in taken:  # the total number of probes does not depend on the order
            slot, probes = (slot + 1) % size, probes + 1
        taken.add(slot)
    blank = {"slots": np.zeros(size, np.uint32), "probes": np.zeros(1, I32)}
    values = arguments(keys=keys, **blank, n=n, size=size)
    return Launch(2, 32 * warps, values, {"probes": [probes]})
