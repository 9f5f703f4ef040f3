"""The graphs on which every strategy is tested, by name."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from accelviz import load_graph
from accelviz.datasets import bundled_graphs
from accelviz.graph import Graph

COLUMNS = (1, 2, 3, 4, 7, 8, 16, 17, 31, 32, 33, 60, 64, 96, 100, 127, 128, 129, 150, 200, 257)

#: Degrees near 32 (nonzeros of a warp), 192 (half a block), 384 (deg_bound) and 768.
CRITICAL_DEGREES = (31, 32, 33, 191, 192, 193, 383, 384, 385, 768, 769)

#: Degrees of empty rows, of rows that share a warp or a block, and of rows that several warps or
#: blocks share: all cases in which the column count may matter, in 1,817 nonzeros.
EVERY_KIND = [0, 1, 2, 3, 5, 8, 9, 30, 33, 64, 0, 0, 385, 769, 1, 2, 300, 1, 192, 4, 4, 4, 0]


def graph_of_degrees(degrees: list[int], n_cols: int | None = None, *, name: str = "made") -> Graph:
    """Return a graph with these row degrees, random columns and random signed weights."""
    rng = np.random.default_rng(sum(degrees) + len(degrees))
    n_cols = max([len(degrees), *degrees]) if n_cols is None else n_cols
    columns = [np.sort(rng.choice(n_cols, degree, replace=False)) for degree in degrees]
    return Graph(
        np.cumsum([0, *degrees], dtype=np.int64),
        np.concatenate([*columns, np.empty(0)]).astype(np.int32),
        rng.standard_normal(sum(degrees)).astype(np.float32),
        (len(degrees), n_cols),
        name,
    )


def _shuffled(counts: dict[int, int]) -> list[int]:
    degrees = np.repeat(list(counts), list(counts.values()))
    return np.random.default_rng(1).permutation(degrees).tolist()


def of_degrees(*arguments: Any) -> Any:
    """Return a cached function that makes a graph; its tests share prepared data and oracles."""
    return functools.cache(functools.partial(graph_of_degrees, *arguments))


MADE: dict[str, Any] = {
    "empty": of_degrees([]),
    "no_columns": of_degrees([0, 0, 0], 0),
    "one_node": of_degrees([0]),
    "one_node_with_loop": of_degrees([1]),
    "no_edges": of_degrees([0] * 7),
    "isolated_ends": of_degrees([0, 2, 1, 3, 0, 1, 0]),
    "hub": of_degrees([1] * 50 + [3000] + [2] * 49, 3000),
    "hub_alone": of_degrees([1153]),
    "wide": of_degrees(_shuffled({0: 2, 3: 20, 40: 5, 500: 1}), 2000),
    "tall": of_degrees(_shuffled({0: 100, 1: 500, 2: 300, 9: 40}), 9),
    "every_kind": of_degrees(EVERY_KIND),
    "all_degrees": of_degrees(_shuffled(dict.fromkeys(range(0, 800, 7), 2))),
    "critical_degrees": of_degrees(
        [degree for n in CRITICAL_DEGREES for degree in [n] * 3 + [1] + [n] * 2]
    ),
    # Few rows per degree, so that blocks have nothing else: the longest unsplit rows and the
    # shortest split ones.
    **{f"degree_{n}": of_degrees([n] * 3 + [1] * 5 + [n] * 2) for n in (33, 384, 385)},
}

GRAPHS: dict[str, Any] = {
    **MADE,
    **{name: functools.cache(functools.partial(load_graph, name)) for name in bundled_graphs()},
}


def is_large(name: str) -> bool:
    """Return whether tests on a graph take so long that strategies take turns."""
    return GRAPHS[name]().nnz >= 50_000


def large_graphs_in_use() -> list[Graph]:
    """Return the large graphs that tests have loaded so far."""
    loaded = [name for name, graph in GRAPHS.items() if graph.cache_info().currsize]
    return [GRAPHS[name]() for name in loaded if is_large(name)]


def columns_of(name: str, count: int, most_of_large: int = 33) -> tuple[int, ...]:
    """Return `count` of COLUMNS, small and large, different ones for each graph.

    Large graphs have at most `most_of_large` columns, because more take time and gigabytes.
    """
    some = [d for d in COLUMNS if d <= most_of_large] if is_large(name) else COLUMNS
    first, step = list(GRAPHS).index(name), len(some) // count
    return tuple(some[(first + step * i) % len(some)] for i in range(count))


def edges_of(graph: Graph) -> list[tuple[int, int, float]]:
    """Return the edges (source, target, weight) of a graph, sorted by target."""
    coo = graph.adjacency.tocoo()
    return list(zip(coo.col.tolist(), coo.row.tolist(), coo.data.tolist(), strict=True))
