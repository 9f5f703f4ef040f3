"""The graphs that every strategy is tested on, by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from accelviz import load_graph
from accelviz.datasets import bundled_graphs
from accelviz.graph import Graph

COLUMNS = (1, 2, 3, 4, 7, 8, 16, 17, 31, 32, 33, 60, 64, 96, 100, 127, 128, 129, 150, 200, 257)

#: Around one warp's nonzeros (32), half a block's (192), deg_bound (384) and its double.
CRITICAL_DEGREES = (31, 32, 33, 191, 192, 193, 383, 384, 385, 768, 769)


def graph_of_degrees(degrees: list[int], n_cols: int | None = None, *, name: str = "made") -> Graph:
    """A graph whose rows have these degrees, with random columns and signed weights."""
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


MADE: dict[str, Callable[[], Graph]] = {
    "empty": partial(graph_of_degrees, []),
    "no_columns": partial(graph_of_degrees, [0, 0, 0], 0),
    "one_node": partial(graph_of_degrees, [0]),
    "one_node_with_loop": partial(graph_of_degrees, [1]),
    "no_edges": partial(graph_of_degrees, [0] * 7),
    "isolated_ends": partial(graph_of_degrees, [0, 2, 1, 3, 0, 1, 0]),
    "hub": partial(graph_of_degrees, [1] * 50 + [3000] + [2] * 49, 3000),
    "hub_alone": partial(graph_of_degrees, [1153]),
    "wide": partial(graph_of_degrees, _shuffled({0: 2, 3: 20, 40: 5, 500: 1}), 2000),
    "tall": partial(graph_of_degrees, _shuffled({0: 100, 1: 500, 2: 300, 9: 40}), 9),
    "all_degrees": partial(graph_of_degrees, _shuffled(dict.fromkeys(range(0, 800, 7), 2))),
    **{
        f"degree_{degree}": partial(graph_of_degrees, [degree] * 3 + [1] * 5 + [degree] * 2)
        for degree in CRITICAL_DEGREES
    },
}

GRAPHS: dict[str, Callable[[], Graph]] = {
    **MADE,
    **{name: partial(load_graph, name) for name in bundled_graphs()},
}
