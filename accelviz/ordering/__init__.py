"""Vertex orders: permutations of a graph's rows that improve locality or load balance.

Every order is a function that returns a `Permutation`; `vertex_order` calls one by its name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accelviz.datasets.options import checked_options
from accelviz.errors import ArgumentError
from accelviz.ordering.advice import RenumberingAdvice, renumbering_pays
from accelviz.ordering.community import community_order
from accelviz.ordering.degree import (
    DegreeHistogram,
    RowDegrees,
    degree_sort,
    sort_by_degree,
    windowed_degree_sort,
)
from accelviz.ordering.permutation import Permutation
from accelviz.ordering.plain import original_order, random_order, reverse_cuthill_mckee
from accelviz.ordering.rabbit import Dendrogram, rabbit_dendrogram, rabbit_order

__all__ = [
    "ORDERS",
    "DegreeHistogram",
    "Dendrogram",
    "Permutation",
    "RenumberingAdvice",
    "RowDegrees",
    "community_order",
    "degree_sort",
    "original_order",
    "rabbit_dendrogram",
    "rabbit_order",
    "random_order",
    "renumbering_pays",
    "reverse_cuthill_mckee",
    "sort_by_degree",
    "vertex_order",
    "windowed_degree_sort",
]

#: Functions that take a graph and keyword-only parameters and return a Permutation.
ORDERS: dict[str, Callable[..., Permutation]] = {
    "original": original_order,
    "random": random_order,
    "degree": degree_sort,
    "windowed_degree": windowed_degree_sort,
    "rcm": reverse_cuthill_mckee,
    "community": community_order,
    "rabbit": rabbit_order,
}


def vertex_order(graph: Any, name: str, **parameters: Any) -> Permutation:
    """Order the rows of a graph by one of `ORDERS`.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
    name : str
        `"original"`, `"random"` (`seed`), `"degree"`, `"windowed_degree"` (`window`), `"rcm"`,
        `"community"` (`method`, `seed`, `parts`) or `"rabbit"`.
    **parameters
        Keyword arguments of the order, as listed above.

    Returns
    -------
    Permutation
        Deterministic: equal arguments give equal orders.

    Raises
    ------
    GraphError
        If `graph` is not a valid sparse matrix, or is not square, which the last three orders need.
    ArgumentError
        If the order or a parameter is unknown, or a parameter is out of range.

    Examples
    --------
    >>> from accelviz.ordering import vertex_order
    >>> vertex_order("cora", "windowed_degree", window=3).order[:6].tolist()
    [0, 1, 2, 3, 5, 4]
    """
    if not isinstance(name, str) or name not in ORDERS:
        raise ArgumentError("name", f"there is no order {name!r}", "one of " + ", ".join(ORDERS))
    order = ORDERS[name]
    checked_options(order, parameters, f"the order {name!r}")
    return order(graph, **parameters)
