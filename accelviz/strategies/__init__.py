"""The strategies: how each system maps an operation onto a GPU, behind one contract.

`registry.REGISTRY` lists them; here they are looked up by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from accelviz.datasets import load_graph
from accelviz.errors import ArgumentError
from accelviz.plans import Operation, Plan, Strategy
from accelviz.strategies.attention.edge_softmax import EDGE_SOFTMAX, EDGE_SOFTMAX_GRADIENT
from accelviz.strategies.registry import REGISTRY
from accelviz.strategies.sddmm.operation import SDDMM
from accelviz.strategies.spmm.accel_gcn import AccelGCN
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
    """List the strategies that there are.

    Parameters
    ----------
    operation : str
        A name of `OPERATIONS`, such as "spmm", "sddmm" or "edge_softmax".

    Returns
    -------
    dict of str to str
        Name to one-line summary.

    Raises
    ------
    ArgumentError
        If there is no such operation.
    """
    wanted = find_operation(operation)
    return {
        strategy.name: strategy.summary for strategy in REGISTRY if strategy.operation == wanted
    }


def find_operation(operation: str | Operation) -> Operation:
    """Look an operation up by name; an Operation is returned as it is.

    Raises
    ------
    ArgumentError
        If there is none of that name, listing those there are.
    """
    if isinstance(operation, Operation):
        return operation
    if operation not in OPERATIONS:
        known = ", ".join(OPERATIONS)
        raise ArgumentError("operation", f"there is no {operation!r}", f"one of {known}")
    return OPERATIONS[operation]


def find_strategy(strategy: str | Strategy, operation: str | Operation = SPMM) -> Strategy:
    """Look a strategy up by name; a Strategy object is returned as it is.

    Raises
    ------
    ArgumentError
        If there is none of that name, listing those there are, or the object is of another
        operation.
    """
    wanted = find_operation(operation)
    for known in REGISTRY:
        if known.name == strategy and known.operation == wanted:
            return known
    if isinstance(strategy, Strategy):
        if (its_operation := getattr(strategy, "operation", None)) == wanted:
            return strategy
        problem = "it names no operation"
        if its_operation:
            problem = f"{strategy.name!r} is of {its_operation.name}"
        expected = f"one with operation = {wanted.name.upper()}"
    elif isinstance(strategy, type) and issubclass(strategy, Strategy):
        problem, expected = f"got the class {strategy.__name__}", "an object of it"
    elif isinstance(strategy, tuple):
        problem = f"got the tuple {strategy!r:.60}"
        expected = "a name or an object; its parameters go beside it, by name"
    else:
        problem = f"there is no {strategy!r}"
        expected = f"one of {', '.join(strategies(wanted.name))}{elsewhere(strategy)}"
    raise ArgumentError("strategy", problem, expected)


def elsewhere(name: object) -> str:
    """Say how to get what an operation, or a strategy of another operation, is the name of."""
    for operation in OPERATIONS:
        known = strategies(operation)
        if name == operation or name in [*known]:
            strategy = name if name != operation else OPERATIONS[operation].fastest
            return f"; of {operation}, find_strategy({strategy!r}, {operation!r})"
    return ""


def operation_of(strategies: Iterable[Any], operation: str | Operation | None) -> Operation:
    """Return the operation that is asked for, or else that of the first strategy object, or SpMM.

    Raises
    ------
    ArgumentError
        If there is none of that name.
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
        The sparse matrix. The plan is of its pattern: it serves any weights.
    strategy : str or Strategy, optional
        A name from `strategies()`, or an object of your own class derived from `Strategy`. If not
        given: `accel_gcn` for SpMM, the fastest for another operation.
    n_cols : int
        Columns of the dense matrices, at least 1.
    operation : str or Operation, optional
        "spmm", "sddmm", "edge_softmax" ...; if not given, the strategy object's own, or "spmm".
    **parameters
        The strategy's own, as its class documents them, and further widths of
        the operation (`heads` of "sddmm").

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
    >>> plan = accelviz.plan("cora", n_cols=64)
    >>> plan.metadata.shape
    (252, 4)
    """
    operation = operation_of([strategy], operation)
    if strategy is None:
        strategy = AccelGCN.name if operation == SPMM else operation.fastest
    return find_strategy(strategy, operation).plan(load_graph(graph), n_cols, **parameters)
