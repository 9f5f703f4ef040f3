"""Twins: generated graphs with exactly the degrees of a published graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from accelviz.card import is_symmetric
from accelviz.datasets.convert import from_csr_arrays
from accelviz.datasets.synthetic.columns import directed_columns, undirected_columns
from accelviz.datasets.synthetic.communities import ORDERS, default_sizes, lay_out
from accelviz.datasets.synthetic.table_one import TABLE_ONE, Histogram, TableEntry
from accelviz.errors import ArgumentError, GraphError, checked_choice
from accelviz.graph import MAX_SIDE, Graph

#: Default share of a row's neighbors in its own community.
LOCALITY = 0.8
#: Optional endings of the names.
_ENDINGS = ("-approximate-twin", "-twin")


def find_table_entry(name: str) -> TableEntry | None:
    """Return the graph of Table I with this name, in any case, with or without "-twin"."""
    lowered = name.lower()
    for ending in _ENDINGS:
        lowered = lowered.removesuffix(ending)
    return TABLE_ONE.get(lowered)


def twin(
    of: str | Graph | Mapping[int, int],
    *,
    locality: float | None = None,
    order: str = "natural",
    seed: int = 0,
    symmetric: bool | None = None,
) -> Graph:
    """Generate a graph that has communities and exactly the degrees of a published graph.

    Parameters
    ----------
    of : str, Graph or mapping of int to int
        The name of a graph of Accel-GCN's Table I, in any case; a square graph; or a degree
        histogram `{degree: rows}`.
    locality : float, optional
        Share of a row's neighbors that are drawn from its own community, 0 to 1. It is smaller for
        hubs with more neighbors than their community has rows. 0.8 by default, and 1 for the
        collections of small graphs (OVCAR-8H, SW-620H, Yeast, TWITTER-Partial), whose communities
        are the small graphs. Community sizes s follow a power law s^-2, from the average degree
        (at least 8 rows) to a hundred times as much.
    order : {"natural", "shuffled"}
        `natural`: the rows of a community have contiguous ids. `shuffled`: ids are random. Only the
        order differs. Published graphs are between the two.
    seed : int
        Equal arguments give equal graphs on every machine.
    symmetric : bool, optional
        Whether A equals its transpose. By default as in the published graph; for a histogram, True
        if there is such a matrix. If the sum of the degrees is odd, a symmetric twin has one
        nonzero on the diagonal.

    Returns
    -------
    Graph
        Row i has exactly its degree, no duplicate columns, all weights 1. In a symmetric twin, the
        columns have the same degrees as the rows. In a directed one (Arxiv, Citation, wikikg2,
        amazon0601), the probability of a column is in proportion to the vertex' degree plus one.
        `kind` is "twin", or "approximate twin" for Reddit and PRODUCTS, whose degrees are fitted.

    Raises
    ------
    ArgumentError
        If `order`, `locality` or the name is unknown.
    GraphError
        If `of` is rectangular or not a histogram, or if no graph with these degrees was found.
    """
    checked_choice("order", order, ORDERS)
    if locality is not None and not 0 <= locality <= 1:
        raise ArgumentError("locality", f"got {locality!r}", "a share, 0 to 1")
    pieces, kind, must_fit = None, "twin", True
    if isinstance(of, str):
        entry = find_table_entry(of)
        if entry is None:
            names = ", ".join(entry.name for entry in TABLE_ONE.values())
            raise ArgumentError("of", f"{of!r} is not in Table I", names)
        name, histogram, pieces = entry.name, entry.histogram(), entry.pieces
        source = f"made up with the degrees of {name} (Accel-GCN, Table I)"
        if not entry.exact:
            fitted = "degrees fitted to the nodes, edges and maximum degree"
            source = "APPROXIMATE: " + source.replace("the degrees", fitted)
            kind, name = "approximate twin", f"{name}-approximate"
        symmetric = not entry.directed if symmetric is None else symmetric
    elif isinstance(of, Graph):
        if of.shape[0] != of.shape[1]:
            raise GraphError("of", f"{of.shape[0]} x {of.shape[1]}", "a square graph")
        name, histogram = of.name, np.unique(of.degrees, return_counts=True)
        source = f"made up with the degrees of {of.name}"
        symmetric = is_symmetric(of) if symmetric is None else symmetric
    else:
        name, histogram = "histogram", _checked_histogram(of)
        source = "made up with the degrees of a histogram"
        must_fit = symmetric is not None
        symmetric = symmetric is None or symmetric
    degrees, rows = (np.asarray(part, dtype=np.int64) for part in histogram)
    n, nnz = int(rows.sum()), int(degrees @ rows)
    if degrees.max(initial=0) > n:
        raise GraphError("of", f"a degree of {degrees.max()} in {n} rows", f"at most {n}")
    local_share = locality
    if local_share is None:
        local_share = LOCALITY if pieces is None else 1.0
    sizes = pieces or default_sizes(n, nnz)
    layout = lay_out(degrees, rows, locality=local_share, sizes=sizes, order=order, seed=seed)
    drawn = undirected_columns(layout, seed) if symmetric else None
    if symmetric and drawn is None and must_fit:
        raise GraphError("of", "no symmetric graph with these degrees was found", "symmetric=False")
    if drawn is None:
        drawn = directed_columns(layout, seed)
    name += "-twin" if order == "natural" else f"-twin-{order}"
    name += "" if locality is None else f"-locality-{locality:g}"
    name += "" if seed == 0 else f"-seed-{seed}"
    source += f"; locality {local_share:g}, {order} order, seed {seed}"
    pointers, columns = drawn
    return replace(from_csr_arrays(pointers, columns, None, (n, n), name, source), kind=kind)


def _checked_histogram(of: Any) -> Histogram:
    try:
        pairs = sorted((int(degree), int(rows)) for degree, rows in dict(of).items())
    except (TypeError, ValueError):
        expected = "a name, a graph or a mapping {degree: rows}"
        raise GraphError("of", f"got a {type(of).__name__}", expected) from None
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    degrees, rows = table.T
    if table.min(initial=0) < 0 or rows.sum() > MAX_SIDE:
        expected = f"counts from 0, at most {MAX_SIDE} rows"
        raise GraphError("of", "a negative entry, or too many rows", expected)
    return degrees[rows > 0], rows[rows > 0]
