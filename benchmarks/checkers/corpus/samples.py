"""Launches of kernels as in CUDA's samples and in puzzles: images, text, graphs, solvers."""

from itertools import pairwise

import numpy as np

from .arrays import small
from .case import F32, I32, Launch, arguments, whole
from .dense import PLANES, blocks
from .networks import normal
from .sparse import matrix


def plane_launch(warps, name, result, inputs, scalars, **options):
    """Return a launch over a plane with a thread per element of the result."""
    block = PLANES[warps]
    values = arguments(**inputs, **{name: np.zeros(result.size, result.dtype)}, **scalars)
    grid = blocks(result.shape[::-1], block)
    return Launch(grid, block, values, {name: result}, unwritten=(name,), **options)


def fixed_julia(warps, random):
    width, height = 21, 19
    steps = np.zeros((height, width), np.uint8)
    for y, x in np.ndindex(height, width):
        re, im = 3 * x * 256 // width - 384, 3 * y * 256 // height - 384
        while steps[y, x] < 50 and re * re + im * im < 4 << 16:
            re, im = ((re * re - im * im) >> 8) - 200, ((2 * re * im) >> 8) + 40
            steps[y, x] += 1
    return plane_launch(warps, "steps", steps, {}, {"width": width, "height": height})


def game_of_life(warps, random):
    now = random.integers(0, 2, (19, 21)).astype(np.uint8)
    shifts = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0)]
    alive = sum(np.roll(now, shift, (0, 1)) for shift in shifts)
    after = ((alive == 3) | ((now == 1) & (alive == 2))).astype(np.uint8)
    x, y = PLANES[warps]
    scalars = {"width": 21, "height": 19}
    return plane_launch(warps, "next", after, {"now": now}, scalars, shared_bytes=(x + 2) * (y + 2))


def scale_pitched(warps, random):
    image = whole(random, 7, 48)
    scaled = image.copy()
    scaled[:, :37] *= 3
    scalars = {"pitch": 192, "width": 37, "height": 7, "factor": F32(3)}
    values = arguments(image=image.view(np.int8), **scalars)
    return Launch(3, 32 * warps, values, {"image": scaled.view(np.int8)})


def walsh_transform(warps, random):
    n = 64 * warps
    X = small(random, 2, n)
    index = np.arange(n)
    signs = 1 - 2 * (np.bitwise_count(index[:, None] & index) % 2).astype(I32)
    expected = {"X": X @ signs}
    return Launch(2, 32 * warps, arguments(X=X), expected, shared_bytes=4 * n)


def scalar_products(warps, random):
    A, B = whole(random, 2, 5, 300)
    values = arguments(A=A, B=B, C=np.zeros(5, F32), vectors=5, length=300)
    expected = {"C": (A * B).sum(axis=1)}
    return Launch(2, 32 * warps, values, expected, unwritten=("C",))


def option_prices(warps, random):
    n = 64 * warps - 5
    price, strike = random.uniform(5, 30, (2, n)).astype(F32)
    years = random.uniform(0.25, 10, n).astype(F32)
    root = np.sqrt(years.astype(float))
    d1 = (np.log(price.astype(float) / strike) + (0.02 + 0.3**2 / 2) * years) / (0.3 * root)

    def cumulative(x):
        """Return the normal distribution function by an integral over a fine grid."""
        grid = np.linspace(-12, 12, 48001)
        density = np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi)
        return np.interp(x, grid, (density.cumsum() - density / 2) * (grid[1] - grid[0]))

    later = strike * np.exp(-0.02 * years.astype(float))
    call = price * cumulative(d1) - later * cumulative(d1 - 0.3 * root)
    expected = {"call": call, "put": call - price + later}
    inputs = {"price": price, "strike": strike, "years": years}
    blank = {name: np.zeros(n, F32) for name in expected}
    values = arguments(**inputs, **blank, rate=F32(0.02), volatility=F32(0.3), n=n)
    return Launch(2, 32 * warps, values, expected, unwritten=(*blank,), tolerance=2e-4)


def binomial_tree(warps, random):
    depth = 32 * warps - 3
    leaves = whole(random, 2, depth + 1)
    level = leaves.astype(float)
    while level.shape[1] > 1:
        level = (level[:, 1:] + level[:, :-1]) / 2
    values = arguments(leaves=leaves, values=np.zeros(2, F32), depth=depth)
    expected = {"values": level[:, 0]}
    return Launch(2, 32 * warps, values, expected, unwritten=("values",), tolerance=1e-5)


def cosine_blocks(warps, random):
    image = random.integers(0, 256, (16, 24)).astype(np.uint8)
    k = np.arange(8)
    basis = np.cos(np.pi * (2 * k + 1) * k[:, None] / 16) * np.where(k, 0.5, 8**-0.5)[:, None]
    tiles = (image.astype(float) - 128).reshape(2, 8, 3, 8)
    out = np.einsum("uy,ayxb,vb->auxv", basis, tiles.transpose(0, 1, 2, 3), basis)
    values = arguments(image=image, out=np.zeros(image.size, F32), width=24)
    expected = {"out": out.reshape(16, 24)}
    return Launch((3, 2), (8, 8), values, expected, unwritten=("out",), tolerance=1e-3)


def sobel(warps, random):
    image = random.integers(0, 60, (19, 21)).astype(np.uint8)
    padded = np.pad(image.astype(I32), 1, mode="edge")
    rows = padded[:-2] + 2 * padded[1:-1] + padded[2:]
    columns = padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]
    across, down = rows[:, 2:] - rows[:, :-2], columns[2:] - columns[:-2]
    edges = np.minimum(np.abs(across) + np.abs(down), 255).astype(np.uint8)
    return plane_launch(warps, "edges", edges, {"image": image}, {"width": 21, "height": 19})


def box_filter(warps, random):
    rows, width, radius = 64 * warps - 3, 23, 4
    X = small(random, rows, width)
    sums = np.pad(X, ((0, 0), (radius + 1, radius))).cumsum(axis=1)
    Y = sums[:, 2 * radius + 1 :] - sums[:, : -2 * radius - 1]
    scalars = {"rows": rows, "width": width, "radius": radius}
    values = arguments(X=X, Y=np.zeros(X.size, I32), **scalars)
    return Launch(2, 32 * warps, values, {"Y": Y}, unwritten=("Y",))


def merge_sorted(warps, random):
    A, B = (np.sort(random.integers(0, 50, n)).astype(I32) for n in (64 * warps - 3, 40 * warps))
    merged = np.sort(np.append(A, B))
    operands = {"A": A, "n_a": A.size, "B": B, "n_b": B.size}
    values = arguments(**operands, out=np.zeros(merged.size, I32))
    return Launch(2, 32 * warps, values, {"out": merged}, unwritten=("out",))


def histogram_warps(warps, random):
    words = random.integers(0, 2**32, 130 * warps).astype(np.uint32)
    expected = {"counts": np.bincount(words.view(np.uint8) >> 2, minlength=64)}
    values = arguments(words=words, counts=np.zeros(64, np.uint32), n=words.size)
    return Launch(2, 32 * warps, values, expected, shared_bytes=256 * warps)


def quarter_circle(warps, random):
    state = 99 + np.arange(64 * warps, dtype=np.uint32)
    inside = 0
    for _ in range(20):
        state = state * np.uint32(1664525) + np.uint32(1013904223)
        x = state >> 17
        state = state * np.uint32(1664525) + np.uint32(1013904223)
        inside += int((x * x + (state >> 17) ** 2 < 1 << 30).sum())
    values = arguments(inside=np.zeros(1, np.uint64), seed=np.uint32(99), points=20)
    return Launch(2, 32 * warps, values, {"inside": [inside]})


def convolution_columns(warps, random):
    X = whole(random, 45, 40)
    Y = np.stack([np.convolve(column, [1, 2, 3, 4, 3, 2, 1], "same") for column in X.T], axis=1)
    values = arguments(X=X, Y=np.zeros(X.size, F32), width=40, height=45)
    return Launch((2, 2), (32, warps), values, {"Y": Y}, unwritten=("Y",))


def edit_distance(warps, random):
    n = 40
    first, second = random.integers(97, 100, (2, 2, n)).astype(np.int8)
    distances = []
    for a, b in zip(first, second, strict=True):
        row = list(range(n + 1))
        for i in range(n):
            diagonal, row[0] = row[0], i + 1
            for j in range(n):
                best = min(row[j + 1] + 1, row[j] + 1, diagonal + int(a[i] != b[j]))
                diagonal, row[j + 1] = row[j + 1], best
        distances.append(row[n])
    values = arguments(first=first, second=second, distances=np.zeros(2, I32), n=n)
    return Launch(2, 32 * warps, values, {"distances": distances}, unwritten=("distances",))


def shortest_paths(warps, random):
    D = random.integers(1, 100, (19, 19)).astype(I32)
    np.fill_diagonal(D, 0)
    shorter = np.minimum(D, D[:, 7:8] + D[7])
    values = arguments(D=D, n=19, through=7)
    return Launch(blocks((19, 19), PLANES[warps]), PLANES[warps], values, {"D": shorter})


def next_frontier(warps, random):
    n = 50 * warps
    A, dense = matrix(random, n, n, 5)
    A.pop("values")
    levels = np.full(n, -1, I32)
    queue = random.permutation(n)[: 40 * warps].astype(I32)
    levels[queue] = 3
    edges = np.zeros(dense.shape, bool)
    edges[np.repeat(np.arange(n), np.diff(A["pointers"])), A["columns"]] = True
    after = np.where((levels == -1) & edges[queue].any(axis=0), 4, levels)
    lists = {"levels": levels.copy(), "queue": queue, "count": queue.size}
    blank = {"next": np.zeros(n, I32), "next_count": np.zeros(1, I32)}
    values = arguments(**A, **lists, **blank, level=4)
    expected = {"levels": after, "next_count": [(after == 4).sum()]}
    return Launch(2, 32 * warps, values, expected, unwritten=("next",))


def page_rank(warps, random):
    n = 64 * warps - 5
    A, dense = matrix(random, n, n, 7)
    A.pop("values")
    edges = np.zeros(dense.shape)
    edges[np.repeat(np.arange(n), np.diff(A["pointers"])), A["columns"]] = 1
    out_degrees = edges.sum(axis=0)
    rank = random.random(n)
    after = 0.15 / n + 0.85 * edges @ (rank / np.maximum(out_degrees, 1))
    lists = {"pointers": A["pointers"], "sources": A["columns"]}
    vectors = {"out_degrees": out_degrees.astype(I32), "rank": rank, "next": np.zeros(n)}
    values = arguments(**lists, **vectors, n=n)
    return Launch(2, 32 * warps, values, {"next": after}, unwritten=("next",), tolerance=1e-12)


def triangles(warps, random):
    edges = np.triu(random.random((24, 24)) < 0.4, 1).astype(I32)
    rows, columns = (index.astype(I32) for index in np.nonzero(edges))
    pointers = np.append(0, edges.sum(axis=1).cumsum()).astype(I32)
    count = int((edges @ edges.T * edges).sum())
    lists = {"pointers": pointers, "columns": columns, "rows": rows, "edges": rows.size}
    values = arguments(**lists, count=np.zeros(1, np.uint32))
    return Launch(2, 32 * warps, values, {"count": [count]})


def nearest_centers(warps, random):
    n = 130 * warps
    points, centers = small(random, n, 2), small(random, 5, 2)
    nearest = ((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    sums = np.zeros((5, 2), I32)
    np.add.at(sums, nearest, points)
    counts = np.bincount(nearest, minlength=5)
    blank = {"nearest": np.zeros(n, I32), "counts": np.zeros(5, I32), "sums": np.zeros(10, I32)}
    values = arguments(points=points, centers=centers, **blank, n=n)
    expected = {"nearest": nearest, "counts": counts, "sums": sums}
    return Launch(2, 32 * warps, values, expected, unwritten=("nearest",))


def eliminate(warps, random):
    A, b = normal(random, 3, 9, 9) + 9 * np.eye(9, dtype=F32), normal(random, 3, 9)
    x = np.linalg.solve(A.astype(float), b[:, :, None].astype(float))
    values = arguments(A=A, b=b, x=np.zeros(27, F32))
    return Launch(3, 32 * warps, values, {"x": x}, unwritten=("x",), tolerance=1e-4)


def tridiagonal(warps, random):
    systems, n = 64 * warps - 5, 7
    lower, upper, known = normal(random, 3, n, systems)
    diagonal = 8 + normal(random, n, systems)
    dense = np.zeros((systems, n, n))
    for i in range(n):
        dense[:, i, i] = diagonal[i]
        if i:
            dense[:, i, i - 1], dense[:, i - 1, i] = lower[i], upper[i - 1]
    x = np.linalg.solve(dense, known.T[:, :, None].astype(float))[:, :, 0].T
    scratch = {"scratch": np.zeros(known.size, F32), "systems": systems, "n": n}
    bands = {"lower": lower, "diagonal": diagonal, "upper": upper, "x": known.copy()}
    values = arguments(**bands, **scratch)
    return Launch(2, 32 * warps, values, {"x": x}, unwritten=("scratch",), tolerance=1e-4)


def run_starts(warps, random):
    threads = 32 * warps
    X = np.sort(random.integers(0, 9, (2, threads)).astype(I32), axis=1)
    flags = np.pad(np.diff(X) != 0, ((0, 0), (1, 0)), constant_values=True)
    starts = np.full((2, threads), -1, I32)
    for block, row in enumerate(flags):
        starts[block, : row.sum()] = block * threads + np.flatnonzero(row)
    values = arguments(X=X, starts=np.full(X.size, -1, I32), counts=np.zeros(2, I32))
    expected = {"starts": starts, "counts": flags.sum(axis=1)}
    return Launch(2, threads, values, expected, unwritten=("counts",))


def fourier(warps, random):
    n = 64 * warps
    X = normal(random, 2, n, 2)
    Y = np.fft.fft(X[:, :, 0] + 1j * X[:, :, 1])
    values = arguments(X=X, Y=np.zeros(X.size, F32), bits=n.bit_length() - 1)
    expected = {"Y": np.stack([Y.real, Y.imag], axis=2)}
    return Launch(2, 32 * warps, values, expected, unwritten=("Y",), tolerance=1e-3)


def checksums(warps, random):
    lengths = random.integers(0, 12, 64 * warps - 3)
    starts = np.append(0, lengths.cumsum()).astype(I32)
    text = random.integers(0, 256, starts[-1]).astype(np.uint8)
    sums = []
    for begin, end in pairwise(starts):
        sums.append(2166136261)
        for byte in text[begin:end].tolist():
            sums[-1] = (sums[-1] ^ byte) * 16777619 % 2**32
    values = arguments(text=text, starts=starts, sums=np.zeros(len(sums), np.uint32), n=len(sums))
    return Launch(2, 32 * warps, values, {"sums": sums}, unwritten=("sums",))


def find_text(warps, random):
    text = random.integers(97, 99, 200 * warps).astype(np.int8)
    pattern = text[150:158].copy()
    first = bytes(text).index(bytes(pattern))
    operands = {"text": text, "length": text.size, "pattern": pattern, "size": 8}
    values = arguments(**operands, first=np.full(1, text.size, I32))
    return Launch(2, 32 * warps, values, {"first": [first]})


def lattice_step(warps, random):
    n = 64 * warps - 5
    old = random.integers(0, 9, (3, n)).astype(I32)
    from_left, from_right = np.roll(old[1], 1), np.roll(old[2], -1)
    pairs = np.minimum(from_left, from_right) // 2
    now = np.stack([old[0] + 2 * pairs, from_left - pairs, from_right - pairs])
    values = arguments(old=old, now=np.zeros(old.size, I32), n=n)
    return Launch(2, 32 * warps, values, {"now": now}, unwritten=("now",))
