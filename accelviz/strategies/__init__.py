"""The strategies: how each system maps an operation onto a GPU, behind one contract.

`REGISTRY` is the one place that lists them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from accelviz.datasets import load_graph
from accelviz.errors import ArgumentError
from accelviz.plans import Operation, Plan, Strategy
from accelviz.strategies import fusegnn, tc_gnn, windows
from accelviz.strategies.attention import edge_softmax, walks
from accelviz.strategies.attention import fusegnn as attention_fusegnn
from accelviz.strategies.attention import lane_groups as attention_groups
from accelviz.strategies.attention.edge_softmax import EDGE_SOFTMAX, EDGE_SOFTMAX_GRADIENT
from accelviz.strategies.attention.forward import COSINE, GAT, GATV2
from accelviz.strategies.attention.gradient import COSINE_GRADIENT, GAT_GRADIENT, GATV2_GRADIENT
from accelviz.strategies.bits import lane_groups as bit_groups
from accelviz.strategies.bits.operation import BIT_SPMM
from accelviz.strategies.bits.products import ALGORITHMS
from accelviz.strategies.convolution import dsxplore, strided, strided_weights
from accelviz.strategies.cusparse import CuSPARSE, CuSparseSddmm
from accelviz.strategies.dense.operation import END, ONE, gradient, product
from accelviz.strategies.dense.strategies import Cublas
from accelviz.strategies.sddmm import lane_groups, row_warp
from accelviz.strategies.sddmm.operation import SDDMM
from accelviz.strategies.spmm.accel_gcn import AccelGCN
from accelviz.strategies.spmm.extrema import SPMM_EXTREMUM_GRADIENT, SPMM_MAX, SPMM_MIN
from accelviz.strategies.spmm.extrema import RowWarp as ExtremaRowWarp
from accelviz.strategies.spmm.gnnadvisor import GNNAdvisor
from accelviz.strategies.spmm.gradient import SPMM_GRADIENT
from accelviz.strategies.spmm.lane_groups import LaneGroups
from accelviz.strategies.spmm.merge_path import MergePath
from accelviz.strategies.spmm.operation import SPMM
from accelviz.strategies.spmm.rows import GeSpMM, GraphBLAST, RowThread

__all__ = [
    "EDGE_SOFTMAX",
    "EDGE_SOFTMAX_GRADIENT",
    "OPERATIONS",
    "SDDMM",
    "SPMM",
    "find_operation",
    "find_strategy",
    "plan",
    "strategies",
]

REGISTRY: tuple[Strategy, ...] = (
    AccelGCN(),
    GNNAdvisor(),
    GraphBLAST(),
    GeSpMM(),
    RowThread(),
    MergePath(),
    fusegnn.FuseGnnGas(),
    fusegnn.FuseGnnGar(),
    fusegnn.NeuGraph(),
    fusegnn.UnfusedGas(),
    tc_gnn.TcGnnSpmm(),
    windows.Windows(),
    windows.WindowTiles(),
    LaneGroups(),
    CuSPARSE(),
    row_warp.RowWarp(),
    tc_gnn.TcGnnSddmm(),
    windows.ScoreTiles(),
    lane_groups.LaneGroups(),
    CuSparseSddmm(),
    fusegnn.FuseGnnGasGradient(),
    fusegnn.FuseGnnGarGradient(),
    *map(ExtremaRowWarp, (SPMM_MAX, SPMM_MIN, SPMM_EXTREMUM_GRADIENT)),
    *(
        walk(operation)
        for operation in (EDGE_SOFTMAX, EDGE_SOFTMAX_GRADIENT)
        for walk in (edge_softmax.RowWarp, edge_softmax.LaneGroups)
    ),
    *(
        walk(operation)
        for operation in (
            *(SPMM_GRADIENT, GAT, GAT_GRADIENT),
            *(COSINE, COSINE_GRADIENT, GATV2, GATV2_GRADIENT),
        )
        for walk in (walks.RowWarp, attention_groups.LaneGroups)
    ),
    attention_fusegnn.FuseGnn(GAT, fusegnn.FuseGnnGas()),
    attention_fusegnn.FuseGnn(GAT, fusegnn.FuseGnnGar()),
    attention_fusegnn.FuseGnn(GAT_GRADIENT, fusegnn.FuseGnnGasGradient()),
    attention_fusegnn.FuseGnn(GAT_GRADIENT, fusegnn.FuseGnnGarGradient()),
    *(algorithm() for algorithm in ALGORITHMS.values()),
    *(bit_groups.LaneGroups(bits) for bits in BIT_SPMM),
    dsxplore.Dsxplore(),
    dsxplore.ChannelStack(),
    dsxplore.ConvolutionStack(),
    dsxplore.DsxploreGradient(),
    dsxplore.DsxploreVariant(),
    strided.StridedWindows(),
    strided_weights.StridedWeights(),
    Cublas(END, product(END)),
    Cublas(ONE, gradient(ONE)),
)

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
