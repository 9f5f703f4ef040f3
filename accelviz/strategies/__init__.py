"""Strategies: the ways in which published systems, and our own, map an operation onto a GPU.

A strategy turns a graph and settings into a `Plan`: kernel launches, their arguments, and which
warp handles which nonzeros. `registry.py` lists all strategies; this file looks them up by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from accelviz.datasets import load_graph
from accelviz.errors import ArgumentError
from accelviz.plans import Operation, Plan, Strategy
from accelviz.strategies.attention.edge_softmax import EDGE_SOFTMAX, EDGE_SOFTMAX_GRADIENT
from accelviz.strategies.registry import REGISTRY
from accelviz.strategies.sddmm.operation import SDDMM
from accelviz.strategies.spmm.operation import SPMM

__all__ = [
    "EDGE_SOFTMAX",
    "EDGE_SOFTMAX_GRADIENT",
    "OPERATIONS",
    "REGISTRY",
    "SDDMM",
    "SPMM",
    "find_operation",
    "find_strategy",
    "plan",
    "strategies",
]

#: Operations by name.
OPERATIONS: dict[str, Operation] = {
    strategy.operation.name: strategy.operation for strategy in REGISTRY
}


def strategies(operation: str = "spmm") -> dict[str, str]:
    """List the strategies of an operation.

    Parameters
    ----------
    operation : str
        A name of `OPERATIONS`, such as "spmm", "sddmm" or "edge_softmax".

    Returns
    -------
    dict of str to str
        One-line summaries of the strategies, by name.

    Raises
    ------
    ArgumentError
        If there is no such operation.
    """
    required = find_operation(operation)
    return {entry.name: entry.summary for entry in REGISTRY if entry.operation == required}


def find_operation(operation: str | Operation) -> Operation:
    """Look up an operation by name; an `Operation` is returned unchanged.

    Raises
    ------
    ArgumentError
        If no operation has this name. The message lists all names.
    """
    if isinstance(operation, Operation):
        return operation
    if operation not in OPERATIONS:
        known = ", ".join(OPERATIONS)
        raise ArgumentError("operation", f"there is no {operation!r}", f"one of {known}")
    return OPERATIONS[operation]


def find_strategy(strategy: str | Strategy, operation: str | Operation = SPMM) -> Strategy:
    """Look up a strategy by name; a `Strategy` object is returned unchanged.

    Raises
    ------
    ArgumentError
        If no strategy of the operation has this name (the message lists all names), or the object
        is a strategy of another operation.
    """
    required = find_operation(operation)
    for registered in REGISTRY:
        if registered.name == strategy and registered.operation == required:
            return registered
    if isinstance(strategy, Strategy):
        actual = getattr(strategy, "operation", None)
        if actual == required:
            return strategy
        problem = f"{strategy.name!r} is of {actual.name}" if actual else "it names no operation"
        expected = f"one with operation = {required.name.upper()}"
    elif isinstance(strategy, type) and issubclass(strategy, Strategy):
        problem, expected = f"got the class {strategy.__name__}", "an object of it"
    elif isinstance(strategy, int | np.integer):
        problem, expected = f"got {strategy!r}", f"a name; numbers go by name: n_cols={strategy}"
    elif isinstance(strategy, tuple):
        problem = f"got the tuple {strategy!r:.60}"
        expected = "a name or an object; its parameters go beside it, by name"
    else:
        others = [name for name in OPERATIONS if strategy in [*strategies(name)]]
        problem = f"there is no {strategy!r}"
        if others:
            more = " and others" if len(others) > 3 else ""
            problem = f"{strategy!r} is of {', '.join(others[:3])}{more}, not of {required.name}"
        known = ", ".join(strategies(required.name))
        expected = f"one of {known}{other_operation_hint(strategy)}"
    raise ArgumentError("strategy", problem, expected)


def other_operation_hint(name: object) -> str:
    """Return the end of a message: the call for an operation's, or its strategy's, name."""
    for operation in OPERATIONS:
        if name == operation or name in [*strategies(operation)]:
            strategy = name if name != operation else OPERATIONS[operation].fastest
            return f"; of {operation}, find_strategy({strategy!r}, {operation!r})"
    return ""


def operation_of(strategies: Iterable[Any], operation: str | Operation | None) -> Operation:
    """Return the given operation, else the operation of the first strategy object, else SpMM.

    Raises
    ------
    ArgumentError
        If no operation has the given name.
    """
    operations = (getattr(strategy, "operation", None) for strategy in strategies)
    return find_operation(operation or next(filter(None, operations), SPMM))


def plan(
    graph: Any,
    strategy: str | Strategy | None = None,
    n_cols: int = 64,
    *,
    operation: str | Operation | None = None,
    **parameters: Any,
) -> Plan:
    """Plan how an operation on `graph` is mapped onto a GPU.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
        The sparse matrix. The plan depends on its pattern only and runs with any weights.
    strategy : str or Strategy, optional
        A name from `strategies()`, or an object of your own subclass of `Strategy`. The default is
        the operation's fastest strategy, `lane_groups` for SpMM, as in `spmm`.
    n_cols : int
        Number of columns of the dense matrices, at least 1.
    operation : str or Operation, optional
        "spmm", "sddmm", "edge_softmax" ...; by default the strategy object's operation, or "spmm".
    **parameters
        Settings of the strategy, documented in its class, and further widths of the operation,
        such as `heads` of "sddmm".

    Returns
    -------
    Plan
        With `.metadata`, `.workload()`, `.statistics`, `.launch` and `.setup_seconds`.

    Raises
    ------
    GraphError
        If `graph` is not a valid sparse matrix.
    ArgumentError
        If there is no such operation, strategy or parameter, or `n_cols` is below 1.
    PartitionError
        If a parameter is out of range.

    Examples
    --------
    >>> import accelviz
    >>> plan = accelviz.plan("cora", "accel_gcn", n_cols=64)
    >>> plan.metadata.shape
    (252, 4)
    """
    operation = operation_of([strategy], operation)
    chosen = find_strategy(operation.fastest if strategy is None else strategy, operation)
    return chosen.plan(load_graph(graph), n_cols, **parameters)
