"""Right functions of the lessons' exercises, and the cases that `compare` holds an answer to.

Each exercise has its text's example, cases of other sizes with random values, and the inputs that a
plausible wrong answer gets right in the example: empty rows, one row, remainders, negative numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from accelviz.analysis.balance import group_idle_share
from accelviz.convolution import ChannelMap
from accelviz.datasets import graph_of_degrees, load_graph
from accelviz.errors import ArgumentError
from accelviz.graph import Graph
from accelviz.many_gpus import split
from accelviz.measure import records
from accelviz.measure.comparison import geometric_mean
from accelviz.measure.ladder import climbed
from accelviz.ordering import vertex_order
from accelviz.partition.block_level import BlockSetting
from accelviz.partition.windows import row_windows
from accelviz.strategies import find_strategy
from accelviz.strategies.spmm.gnnadvisor import decide

Case = tuple[Any, ...]
Rng = np.random.Generator


def known(name: str) -> tuple[Any, ...]:
    """Return the right function of an exercise, and its cases, as arguments of `compare`.

    Parameters
    ----------
    name : str
        Name of the learner's function.

    Raises
    ------
    ArgumentError
        If there is no such exercise.

    Examples
    --------
    >>> from accelviz.course import compare, known
    >>> def sectors(addresses):
    ...     return len(set(addresses // 32))
    >>> compare(sectors, *known("sectors"))
    Right, in all 9 cases.
    """
    if name not in EXERCISES:
        raise ArgumentError("name", f"there is no exercise {name!r}", ", ".join(EXERCISES))
    function, cases = EXERCISES[name]
    return function, *cases(np.random.default_rng(0))


def _csr(rng: Rng, degrees: list[int], width: int) -> sparse.csr_array:
    """Draw a matrix with the given row degrees and signed values."""
    columns = [np.sort(rng.choice(width, degree, replace=False)) for degree in degrees]
    pointers = np.cumsum([0, *degrees])
    indices = np.concatenate([np.empty(0, int), *columns]).astype(np.int32)
    values = rng.standard_normal(len(indices))
    return sparse.csr_array((values, indices, pointers), shape=(len(degrees), width))


def _graph(rng: Rng, nodes: int, edges: int) -> sparse.csr_array:
    """Draw a directed graph without weights and without loops."""
    dense = np.zeros((nodes, nodes))
    sources, targets = rng.integers(0, nodes, (2, edges))
    dense[sources, targets] = sources != targets
    return sparse.csr_array(dense)


# --- from a graph to partitions -----------------------------------------------------------------


def _multiply_cases(rng: Rng) -> list[Case]:
    matrices = [
        *(_csr(rng, [2, 4, 2], 5), _csr(rng, [0, 3, 0, 0, 1, 0], 4), _csr(rng, [5], 9)),
        *(_csr(rng, [0, 0], 3), _csr(rng, [1, 7, 2, 2], 8)),
    ]
    return [
        (A.indptr, A.indices, A.data, rng.standard_normal((A.shape[1], n_cols)))
        for A, n_cols in zip(matrices, (2, 3, 1, 4, 8), strict=True)
    ]


def _idle_share(loads: Any) -> float:
    return float(1 - loads.sum() / (loads.max(axis=1).sum() * loads.shape[1]))


def _idle_cases(rng: Rng) -> list[Case]:
    by_hand = ([[2, 4], [2, 0]], [[1, 5, 5, 4]], [[3, 3], [1, 1]])
    shapes = ((7, 3), (3, 7), (5, 1), (40, 12))
    drawn = [rng.integers(0, 30, shape) * rng.integers(0, 2, shape) + 1 for shape in shapes]
    drawn[0][2] = 0  # a block without work
    return [(np.array(loads),) for loads in (*by_hand, *drawn)]


def _at_least(degrees: Any, most: int) -> list[int]:
    return [int((degrees >= 1 << k).sum()) for k in range(most.bit_length())]


def _degree_cases(rng: Rng) -> list[Case]:
    drawn = [rng.integers(0, high, n) for n, high in ((50, 9), (7, 300), (1, 5))]
    hand = (np.array([1, 1, 1, 1, 2, 2, 4, 5, 15]), 8), (np.full(4, 100), 8)
    return [*hand, (drawn[0], 16), (drawn[1], 256), (drawn[2], 1), (np.zeros(3, int), 4)]


def _group_cases(rng: Rng) -> list[Case]:
    eight = np.array([1, 5, 2, 1, 8, 1, 3, 3])
    drawn = rng.integers(0, 40, 101)
    groups = (1, 4, 32, 101, 128)
    return [(eight, 4), (eight, 3), *((drawn, group) for group in groups), (drawn[:1] + 1, 8)]


def _back(moved: Any, order: Any) -> Any:
    return moved[np.argsort(order)]


def _back_cases(rng: Rng) -> list[Case]:
    sizes = ((8, 2), (3, 3), (1, 4), (30, 1))
    orders = [np.roll(np.arange(8), 3), *(rng.permutation(rows) for rows, _ in sizes[1:])]
    orders[1] = np.array([1, 2, 0])
    return [(rng.standard_normal(size), order) for size, order in zip(sizes, orders, strict=True)]


def _distances(columns: list[int]) -> list[int]:
    last: dict[int, int] = {}
    distances = []
    for i, column in enumerate(columns):
        first = last.get(column)
        distances.append(-1 if first is None else len({*columns[first + 1 : i]}))
        last[column] = i
    return distances


def _distance_cases(rng: Rng) -> list[Case]:
    hand = [0, 1, 2, 0, 1, 5, 6, 7, 5, 6]
    drawn = [rng.integers(0, width, n) for width, n in ((5, 30), (50, 40), (1, 4))]
    return [(hand,), ([3],), ([4, 4, 4],), *((columns.tolist(),) for columns in drawn)]


def _warp_cases(rng: Rng) -> list[Case]:
    eleven = np.array([1, 1, 1, 2, 3, 3, 4, 5, 8, 11, 16])
    drawn = rng.integers(0, 200, 40)
    return [(eleven, 2), (eleven, 5), (np.array([64, 65]), 32), (drawn, 32), (drawn, 1), (
        np.array([0, 0, 7]), 8)]  # fmt: skip


def _empty_blocks(counts: dict[int, int], setting: BlockSetting) -> int:
    return sum(
        degree <= setting.deg_bound and rows % int(setting.pattern(degree)[1]) == 0
        for degree, rows in counts.items()
    )


def _count_cases(rng: Rng) -> list[Case]:
    def drawn(most: int, rows: int) -> dict[int, int]:
        degrees = sorted(rng.choice(np.arange(1, most + 1), 20, replace=False).tolist())
        return {degree: int(rng.integers(1, rows)) for degree in degrees}

    published, small = BlockSetting(12, 32), BlockSetting(4, 2)
    return [
        *(({1: 24, 2: 7, 384: 3, 385: 1}, published), (drawn(500, 40), published)),
        *((drawn(30, 9), small), ({1: 4, 2: 5, 8: 1, 9: 2}, small)),
    ]


# --- kernels ------------------------------------------------------------------------------------


def _sectors(addresses: Any) -> int:
    return len({int(address) // 32 for address in addresses})


def _address_cases(rng: Rng) -> list[Case]:
    lane = np.arange(32)
    hand = (4 * lane, 240 + 4 * lane, 8 * lane, 32 * lane, 384 * lane, 4 * (lane % 16))
    drawn = 4 * rng.integers(0, 200, 32), 4 * rng.permutation(64)[:20], 4 * rng.integers(9, 99, 1)
    return [(addresses,) for addresses in (*hand, *drawn)]


def _combined_turns(runs: Any, pieces: int) -> Any:
    return np.repeat(runs, pieces).reshape(pieces, len(runs)).sum(axis=0)


def _decode(x: int, y: int, z: int, w: int) -> Case:
    rows, row_nzs = (1, w) if x > 20 else (w & 0xFFFF, x)
    return rows, row_nzs, -(-w // 4) if x > 20 else w >> 16, x > 20


def _work(thread: int, nth_pass: int) -> Case:
    warp, lane = divmod(thread + 128 * nth_pass, 64)
    return warp // 2, 5 * (warp % 2), min(5 * (warp % 2) + 5, 9), lane


def _block_cases(rng: Rng) -> list[Case]:
    hand = [(9, 6, 11, 5 << 16 | 2), (48, 9, 44, 20), (50, 9, 84, 10), (20, 6, 24, 5 << 16 | 1)]
    hand += [(1, 1, 0, 1 << 16 | 4), (21, 3, 5, 1), (7, 0, 0, 21_000 << 16 | 40_000)]
    return hand + [(int(x), 1, 2, int(w)) for x, w in rng.integers((22, 1), (90, 21), (4, 2))]


# --- measuring, counting ------------------------------------------------------------------------


def _pays_after(setup: float, step: float, other_setup: float, other_step: float) -> float:
    if step >= other_step:
        return np.inf if setup >= other_setup else 0.0
    return max(0.0, (setup - other_setup) / (other_step - step))


def _payment_cases(rng: Rng) -> list[Case]:
    hand = [(100, 2, 0, 4), (100, 4, 0, 2), (10, 2, 30, 4), (10, 4, 30, 4), (900, 1, 100, 2)]
    hand += [(5, 3, 5, 3), (7, 3, 7, 4), (30, 5, 40, 4)]
    return hand + [tuple(map(int, numbers)) for numbers in rng.integers(0, 90, (6, 4))]


def _ratios(a: Any, b: Any) -> list[float]:
    return [a["instructions"] / b["instructions"], b["issue"] / a["issue"], b["busy"] / a["busy"]]


def _counter_cases(rng: Rng) -> list[Case]:
    def drawn() -> dict[str, float]:
        names = ("instructions", "issue", "busy", "cycles_each", "warps", "for_memory")
        return dict(zip(names, rng.uniform(0.2, 20, 6).tolist(), strict=True))

    return [(drawn(), drawn()) for _ in range(4)]


def _sharers(degree: int, block_warps: int, most: int) -> int:
    divisors = [f for f in range(1, block_warps + 1) if block_warps % f == 0]
    return next((f for f in divisors if f * most >= degree), block_warps)


def _sharer_cases(rng: Rng) -> list[Case]:
    hand = [(33, 12, 32), (33, 11, 32), (5, 31, 4), (9, 12, 4), (30, 12, 4), (32, 12, 32)]
    hand += [(999, 12, 32), (1, 1, 1), (7, 15, 2), (3, 2, 4)]
    return hand + [tuple(map(int, drawn)) for drawn in rng.integers(1, (99, 33, 33), (8, 3))]


# --- networks -----------------------------------------------------------------------------------


def _normalised(A: Any) -> Any:
    dense = A.toarray() + np.eye(A.shape[0])
    degrees = dense.sum(axis=1)
    return dense / np.sqrt(np.outer(degrees, degrees))


def _normalised_cases(rng: Rng) -> list[Case]:
    path = sparse.csr_array(np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    sizes = ((1, 0), (4, 3), (9, 30))
    return [(path,), *((_graph(rng, nodes, edges),) for nodes, edges in sizes)]


def _flops(nodes: int, nonzeros: int, wide: int, narrow: int) -> Case:
    dense = 2 * nodes * wide * narrow
    return dense + 2 * nonzeros * narrow, dense + 2 * nonzeros * wide


def _forward(A: Graph, X: Any, W1: Any, W2: Any) -> Case:
    """Return the result, and the columns of each sparse product in the cheaper order."""
    hidden = np.maximum(A.adjacency @ (X @ W1), 0)
    return A.adjacency @ (hidden @ W2), np.array([W1.shape[1], W2.shape[1]])


def _forward_cases(rng: Rng) -> list[Case]:
    return [
        (
            load_graph(_csr(rng, degrees, len(degrees))),
            *(rng.standard_normal(shape).astype(np.float32) for shape in pairwise((n, *widths))),
        )
        for degrees, n, widths in (
            ([2, 3, 1], 3, (4, 2, 1)),
            ([0, 4, 2, 2, 7, 0, 1, 1], 8, (9, 5, 3)),
            ([1], 1, (3, 2, 1)),
        )
    ]


def _loss_gradient(Z: Any, labels: Any, train: Any) -> Any:
    powers = np.exp(Z - Z.max(axis=1, keepdims=True))
    truth = np.eye(Z.shape[1])[labels]
    gradient = powers / powers.sum(axis=1, keepdims=True) - truth
    chosen = np.isin(np.arange(len(Z)), train)[:, None]
    return np.where(chosen, gradient / len(train), 0)


def _loss_cases(rng: Rng) -> list[Case]:
    by_hand = (np.log(np.array([[1.0, 3], [1, 1], [4, 1]])), np.array([0, 0, 1]), np.array([0, 2]))
    drawn = [
        (rng.normal(0, 3, (n, classes)), rng.integers(0, classes, n), rng.permutation(n)[:train])
        for n, classes, train in ((9, 4, 5), (4, 7, 1), (6, 3, 6))
    ]
    return [by_hand, *drawn]


def _backward(A: Any, X: Any, W2: Any, H: Any, dZ: Any) -> Case:
    dHW = A.T @ dZ
    return X.T @ (A.T @ ((dHW @ W2.T) * (H > 0))), H.T @ dHW


def _backward_cases(rng: Rng) -> list[Case]:
    small = np.array([[0.5, 0.5, 0], [0, 0, 1], [0, 0.5, 0.5]])
    ends = np.array([[1.0, 2], [-1, 1]]), np.array([[1.0, 0], [2, 0], [0, 3]])
    by_hand = (small, np.eye(3)[:, 1:], *ends, np.array([[1.0, 0], [0, 1], [-1, 1]]))
    drawn = []
    for n, words, hidden, classes in ((5, 6, 3, 2), (4, 2, 5, 3)):
        shapes = ((n, n), (n, words), (hidden, classes), (n, hidden), (n, classes))
        A, X, W2, H, dZ = (rng.standard_normal(shape) for shape in shapes)
        drawn.append((A, X, W2, np.maximum(H, 0), dZ))
    return [by_hand, *drawn]


def _difference(f: Callable[[Any], float], W: Any, index: Case, h: float) -> float:
    step = np.zeros(W.shape)
    step[index] = h
    return (f(W + step) - f(W - step)) / (2 * h)


def cubes(W: Any) -> float:
    """Return the sum of the cubes of all elements."""
    return float((W**3).sum())


def products(W: Any) -> float:
    """Return the sum of products of neighboring columns, and of exponentials of the first."""
    return float((W[:, 1:] * W[:, :-1] ** 2).sum() + np.exp(W[:, 0]).sum())


def _difference_cases(rng: Rng) -> list[Case]:
    return [
        (cubes, np.array([[1.0, 2], [3, 4]]), (0, 1), 0.1),
        (products, rng.standard_normal((3, 4)), (2, 0), 0.5),
        (products, rng.standard_normal((1, 2)), (0, 0), 1.0),
        (cubes, rng.standard_normal((4, 3)), (3, 2), 1e-3),
    ]


# --- tiles, bits, channels, caches, several GPUs ------------------------------------------------


def _tiles(columns: Any, width: int) -> Case:
    return len({column // width for column in columns}), -(-len({*columns}) // width)


def _tile_cases(rng: Rng) -> list[Case]:
    hand = [[3, *[9] * 8, 40], [*range(0, 65, 8)], [*range(8)], [5]]
    drawn = [(rng.integers(0, 300, n).tolist(), width) for n, width in ((40, 8), (90, 16), (17, 4))]
    return [*((columns, 8) for columns in hand), *drawn]


def _missed(distance: Any, d: int, mebibytes: float) -> float:
    rows = mebibytes * 2**20 // (4 * d)
    return float(np.mean((distance < 0) | (distance >= rows)))


def _miss_cases(rng: Rng) -> list[Case]:
    few = np.array([-1, -1, 0, 3, 260_000, -1])
    hand = [(few, 2, 32 / 2**20), (few, 2, 24 / 2**20), (few, 1, 1.0)]
    drawn = rng.integers(-1, 40, 200)
    # the second one has room for 13 rows and a half
    sizes = ((4, 20 * 16), (3, 13.5 * 12))
    return [*hand, *((drawn, d, size / 2**20) for d, size in sizes), (drawn[:7], 64, 50)]


def _ours(one: float, cut: float, fetch: float) -> float:
    half = one / 2
    return max(half * (1 - cut), fetch) + half * cut


def _window(o: int, n_channels: int, groups: int, overlap: float) -> list[int]:
    windows: list[int] = ChannelMap(n_channels, o + 1, groups, overlap).windows[o].tolist()
    return windows


def _window_cases(rng: Rng) -> list[Case]:
    settings = ((16, 2, 0.5), (24, 4, 0.25), (10, 2, 0.5), (12, 4, 0.5), (9, 3, 0.0), (8, 1, 0.25))
    return [(o, *setting) for o in (0, 3, 9) for setting in settings]


def _levels_cases(rng: Rng) -> list[Case]:
    shapes = ((50, 9), (3, 4), (40, 1))
    drawn = [rng.normal(shift, 2, shape) for shift, shape in zip((0, 5, -9), shapes, strict=True)]
    return [(X.astype(np.float32), q) for X, q in zip(drawn, (2, 5, 1), strict=True)]


def _levels(X: Any, q: int) -> Any:
    step = (X.max() - X.min()) / np.float32(2**q)
    return np.minimum(np.floor((X - X.min()) / step), 2**q - 1)


def _value_cases(rng: Rng) -> list[Case]:
    return [
        (rng.integers(0, 90, (nodes, n_cols)), rng.integers(0, 9, nodes), step, offset)
        for nodes, n_cols, step, offset in ((6, 4, 0.25, 0.1), (3, 3, 2.0, -1.5), (5, 1, 0.5, 0.0))
    ]


def _dot_cases(rng: Rng) -> list[Case]:
    hand = [(np.array([5]), np.array([3]), 3, 2), (np.array([1, 1]), np.array([9, 6]), 1, 4)]
    sizes = ((40, 3, 2), (7, 1, 5), (33, 8, 8))
    drawn = [(rng.integers(0, 1 << s, n), rng.integers(0, 1 << t, n), s, t) for n, s, t in sizes]
    # Squares of these overflow int64, or lose the product in a double.
    most = np.array([(1 << 31) - 1, (1 << 31) - 2])
    large = [(most, most, 31, 31), (np.array([(1 << 55) + 12345]), np.array([1]), 56, 1)]
    return [drawn[0], *hand, *drawn[1:], *large]


def _rounded(x: Any) -> Any:
    bits = (x.view(np.uint32) + np.uint32(1 << 12)) & np.uint32(0xFFFFE000)
    return bits.view(np.float32)


def _rounded_cases(rng: Rng) -> list[Case]:
    hand = np.array(
        [1, np.pi, -1e-3, 1 + 2**-11, 3e38, 0, -1 - 3 * 2**-11, -1 - 2**-11], np.float32
    )
    return [(hand,), (rng.standard_normal(100).astype(np.float32),), (hand[3:4],)]


def _seconds(pointers: Any) -> int:
    return int(np.argmin(abs(pointers - pointers[-1] / 2)))


def _pointer_cases(rng: Rng) -> list[Case]:
    drawn = [rng.integers(0, high, n) for n, high in ((30, 9), (500, 40), (5, 100))]
    drawn[2][:] = [1, 90, 3, 2, 1]
    drawn.append(np.array([3, 2, 4]))  # half of all is 4.5, nearest to 5
    return [(np.concatenate([[0], np.cumsum(degrees)]),) for degrees in drawn]


# --- tables, settings, orders -------------------------------------------------------------------


def _least_waiting(tried: pd.DataFrame) -> Case:
    is_published = (tried["max_block_warps"] == 12) & (tried["max_warp_nzs"] == 32)
    most = tried.loc[is_published, "metadata_bytes"].iloc[0]
    best = tried[tried["metadata_bytes"] <= most].sort_values("idle_share").iloc[0]
    return int(best["max_block_warps"]), int(best["max_warp_nzs"])


def _sweep_cases(rng: Rng) -> list[Case]:
    cases = []
    for warps, nonzeros in ((range(1, 33), range(8, 129, 8)), ((8, 12), (16, 32)), ((12,), (32,))):
        settings = [(w, n) for w in warps for n in nonzeros]
        rng.shuffle(settings)
        tried = pd.DataFrame(settings, columns=["max_block_warps", "max_warp_nzs"])
        shares = rng.permutation(np.linspace(0.01, 0.5, len(tried)))
        cases.append((tried.assign(idle_share=shares, metadata_bytes=_bytes(rng, tried)),))
    # Each number of the published setting stands in another setting before it. The best setting
    # is the published one, or has none of its numbers.
    hand = [(8, 32, 0.3, 48), (12, 64, 0.4, 16), (12, 32, 0.2, 32)]
    names = ["max_block_warps", "max_warp_nzs", "idle_share", "metadata_bytes"]
    last = [(4, 8, 0.1, size) for size in (48, 32)]
    return [*cases, *((pd.DataFrame([*hand, row], columns=names),) for row in last)]


def _bytes(rng: Rng, tried: pd.DataFrame) -> Any:
    """Draw sizes of metadata, of which several equal that of the published setting."""
    drawn = rng.integers(1, 5, len(tried)) * 16
    return np.where((tried["max_block_warps"] == 12) & (tried["max_warp_nzs"] == 32), 32, drawn)


def _noise(gains: pd.DataFrame) -> float:
    columns = gains.columns.get_level_values("columns")
    return float(np.max(np.abs(gains.loc["tiles of columns", columns == 32].to_numpy() - 1)))


def _gain_cases(rng: Rng) -> list[Case]:
    cases = [(climbed(records.recorded("ladder-h200"))[1],)]
    for graphs, spread in ((3, 0.1), (1, 2.0)):
        labels = [(f"graph {i}", d) for i in range(graphs) for d in (128, 32)]
        columns = pd.MultiIndex.from_tuples(labels, names=["graph", "columns"])
        drawn = 1 + spread * rng.uniform(-0.5, 0.4, (4, len(labels)))
        index = ["a warp a row", "tiles of columns", "blocks in order", "equal rows"]
        cases.append((pd.DataFrame(drawn, index, columns),))
    return cases


def _wins(times: pd.DataFrame, names: list[str]) -> list[int]:
    table = times.pivot_table(index="graph", columns="strategy", values="median_us")
    return [int((table.idxmin(axis=1) == name).sum()) for name in names]


def _win_cases(rng: Rng) -> list[Case]:
    cases = []
    for graphs, names in ((18, "ABCDE"), (3, "AB"), (7, "ABCD")):
        labels = [(f"graph {i}", name) for i in range(graphs) for name in names]
        times = pd.DataFrame(labels, columns=["graph", "strategy"])
        times["median_us"] = rng.uniform(5, 900, len(times))
        cases.append((times.iloc[rng.permutation(len(times))], [*names[::-1], "another"]))
    return cases


def _density_cases(rng: Rng) -> list[tuple[pd.Series, pd.Series]]:
    pairs = []
    for count in (9, 4, 6):
        density = np.sort(rng.uniform(0.001, 0.3, count))
        ours = pd.Series(np.sort(rng.uniform(5, 900, count)), density)
        pairs.append((ours, pd.Series(np.full(count, ours.iloc[count // 2] - 1), density)))
    rising, equal = pd.Series([1.0, 2, 4], [0.1, 0.2, 0.4]), pd.Series([2.0, 2, 3], [0.1, 0.2, 0.4])
    return [*pairs, (rising, equal), (rising, rising - 0.5)]


def _first_density(sparse_us: pd.Series, dense_us: Any) -> float:
    slower = np.flatnonzero(sparse_us.to_numpy() > np.asarray(dense_us))
    return float(sparse_us.index[slower[0]])


def _smallest_window(graph: Graph) -> int:
    for power in range(4, 40):
        order = vertex_order(graph, "windowed_degree", window=2**power)
        plan = find_strategy("graphblast").plan(order.apply_to_graph(graph), 64)
        if plan.statistics.idle_share < 0.1:
            return 2**power
    raise AssertionError("no window is large enough")


def _window_graphs(rng: Rng) -> list[Case]:
    names = ("facebook", "cora", "luxembourg-osm")
    degrees = (np.tile([9, 1], 500), rng.integers(1, 9, 700), np.full(40, 3))
    return [(load_graph(name),) for name in names] + [
        (graph_of_degrees(d.tolist()),) for d in degrees
    ]


def _worst_degree(setting: BlockSetting) -> int:
    def used(degree: int) -> float:
        _, rows, nonzeros = (int(number) for number in setting.pattern(degree))
        return degree * rows / (setting.max_block_warps * nonzeros)

    return min(range(1, setting.deg_bound + 1), key=used)


def _window_matrices(rng: Rng) -> list[Case]:
    degrees = rng.integers(0, 9, 37)
    drawn = load_graph(_csr(rng, degrees.tolist(), 50)), load_graph(_csr(rng, [3], 5))
    names = [(load_graph(name), rows) for name in ("cora", "facebook") for rows in (8, 16)]
    return [*names, (drawn[0], 8), (drawn[0], 5), (drawn[0], 1), (drawn[1], 16)]


def _part_cases(rng: Rng) -> list[Case]:
    drawn = load_graph(_graph(rng, 60, 400))
    splits = (split(load_graph("pubmed"), 2), split(load_graph("cora"), 3), split(drawn, 4))
    return [(part, n_cols) for cut in splits for part in cut.parts for n_cols in (16, 5)]


def _drawn(rng: Rng, n: int, *highs: int) -> list[Case]:
    """Draw `n` cases of whole numbers from 1 up to each of `highs`."""
    return [tuple(map(int, numbers)) for numbers in rng.integers(1, highs, (n, len(highs)))]


#: Right function and cases of each exercise, by the name of the learner's function.
EXERCISES: dict[str, tuple[Callable[..., Any], Callable[[Rng], list[Case]]]] = {
    "multiply": (
        lambda p, c, v, X: sparse.csr_array((v, c, p), shape=(len(p) - 1, len(X))) @ X,
        _multiply_cases,
    ),
    "idle_share": (_idle_share, _idle_cases),
    "waiting": (_idle_share, _idle_cases),
    "at_least": (_at_least, _degree_cases),
    "my_idle_share": (group_idle_share, _group_cases),
    "back": (_back, _back_cases),
    "my_distances": (_distances, _distance_cases),
    "warps_needed": (
        lambda degrees, most: int((-(-np.asarray(degrees) // most)).sum()),
        _warp_cases,
    ),
    "empty_blocks": (_empty_blocks, _count_cases),
    "sectors": (_sectors, _address_cases),
    "combined_turns": (
        _combined_turns,
        lambda rng: [
            *((np.array([1, 1, 1, 1, 1, 7]), 3), (np.array([4, 1, 2, 7]), 2)),
            *((rng.integers(0, 33, pieces * n), pieces) for pieces, n in ((4, 3), (3, 4), (1, 5))),
        ],
    ),
    "decode": (_decode, _block_cases),
    "work": (
        _work,
        lambda rng: [(6, 0), (70, 0), (6, 1), (127, 1), (0, 0), (63, 1), (64, 1), (100, 0)],
    ),
    "mean_ratio": (
        geometric_mean,
        lambda rng: [
            *(([2.0, 0.5],), (rng.uniform(0.2, 5, 40),), (np.full(2000, 1e3),), ([3.0],)),
            *((np.full(900, 1e-3),), (np.array([1.0, 10, 100]),)),
        ],
    ),
    "pays_after": (_pays_after, _payment_cases),
    "ratios": (_ratios, _counter_cases),
    "compulsory": (
        lambda rows, nonzeros, used, d: 8 * nonzeros + 8 * (rows + 1) + 4 * d * (used + rows),
        lambda rng: [
            *((2708, 10_556, 2708, 64), (3, 5, 4, 2), (7, 0, 0, 5)),
            *_drawn(rng, 3, 99, 999, 99, 65),
        ],
    ),
    "requests": (
        lambda d, vector, lanes: d / (32 * vector) + 2 * lanes / 32,
        lambda rng: [(32, 1, 8), (128, 1, 32), (32, 4, 8), (128, 4, 8), (64, 2, 16), (96, 1, 4)],
    ),
    "sharers": (_sharers, _sharer_cases),
    "normalised": (_normalised, _normalised_cases),
    "flops": (
        _flops,
        lambda rng: [(10, 20, 6, 3), (100, 100, 16, 4), *_drawn(rng, 4, 90, 900, 99, 50)],
    ),
    "forward": (_forward, _forward_cases),
    "loss_gradient": (_loss_gradient, _loss_cases),
    "backward": (_backward, _backward_cases),
    "difference": (_difference, _difference_cases),
    "tiles": (_tiles, _tile_cases),
    "missed": (_missed, _miss_cases),
    "dot": (lambda a, b, s, t: int(a @ b), _dot_cases),
    "levels": (_levels, _levels_cases),
    "values": (
        lambda sums, degrees, step, offset: step * sums + offset * degrees[:, None],
        _value_cases,
    ),
    "rounded": (_rounded, _rounded_cases),
    "window": (_window, _window_cases),
    "distance": (
        lambda n_channels, step: n_channels // math.gcd(n_channels, step),
        lambda rng: [(512, 32), (24, 18), (6, 2), (64, 48), (5, 3), (7, 7), (90, 84), (12, 8)],
    ),
    "flops_per_byte": (
        lambda n_in, n_out, groups: n_out * n_in / groups / (2 * (n_in + n_out)),
        lambda rng: [
            *((256, 256, 1), (256, 256, 8), (64, 64, 2), (128, 384, 1), (96, 32, 4), (32, 96, 2)),
            (64, 48, 4),
        ],
    ),
    "gain": (
        lambda before, after, volume: (after - before) / before * math.exp(-3 * before / volume),
        lambda rng: [
            *((1152, 3200, 8192), (27, 75, 3072), (8192, 8192, 8192), (64, 192, 192), (9, 25, 1e5)),
        ],
    ),
    "second_range": (_seconds, _pointer_cases),
    "ours": (
        _ours,
        lambda rng: [
            *((6400, 0.5, 200), (12800, 0.5, 2100), (28, 0.5, 35), (80, 0.25, 20), (100, 0.9, 1)),
            *((100, 0.1, 1), (100, 0.75, 60), (50, 0.0, 10), (50, 1.0, 10), (45, 0.2, 20)),
        ],
    ),
    "least_waiting": (_least_waiting, _sweep_cases),
    "noise": (_noise, _gain_cases),
    "wins": (_wins, _win_cases),
    "faster_from": (_first_density, _density_cases),
    "crossover": (
        _first_density,
        lambda rng: [(ours, float(other.iloc[0])) for ours, other in _density_cases(rng)],
    ),
    "groups": (
        lambda degrees, ngs: int((-(-degrees // ngs)).sum()),
        lambda rng: [
            *((np.array([0, 5, 8, 1, 0, 7, 33]), ngs) for ngs in (1, 3, 8)),
            *((rng.integers(0, 90, rows), ngs) for rows, ngs in ((50, 5), (3, 32), (200, 2))),
        ],
    ),
    "decider": (
        lambda n_cols: (decide(n_cols).dw, decide(n_cols).ngs),
        lambda rng: [
            *((n_cols,) for n_cols in (7, 16, 31, 32, 33, 100, 1433)),
            *_drawn(rng, 5, 4000),
        ],
    ),
    "travels": (
        lambda part, n_cols: (4 * n_cols * part.remote.nnz, 4 * n_cols * part.n_halo),
        _part_cases,
    ),
    "reuse": (lambda graph, rows: row_windows(graph, rows).reuse, _window_matrices),
    "both_levels": (
        lambda degrees, warps: group_idle_share(degrees, 32 * warps),
        lambda rng: [
            (load_graph("cora").degrees, 8),
            *((rng.integers(0, 40, rows), warps) for rows, warps in ((900, 4), (64, 1), (77, 16))),
        ],
    ),
    "smallest_window": (_smallest_window, _window_graphs),
    "worst_degree": (
        _worst_degree,
        lambda rng: [(BlockSetting(w, n),) for w, n in ((12, 32), (4, 8), (12, 3), (7, 5))],
    ),
}
