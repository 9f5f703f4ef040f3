"""The strategies: how each system maps SpMM onto a GPU, behind one contract.

`REGISTRY` is the one place that lists them.
"""

from __future__ import annotations

from typing import Any

from accelviz.datasets import load_graph
from accelviz.errors import ArgumentError
from accelviz.strategies.accel_gcn import AccelGCN
from accelviz.strategies.base import Strategy
from accelviz.strategies.cusparse import CuSPARSE
from accelviz.strategies.fusegnn_gar import FuseGnnGar
from accelviz.strategies.fusegnn_gas import FuseGnnGas
from accelviz.strategies.ge_spmm import GeSpMM
from accelviz.strategies.gnnadvisor import GNNAdvisor
from accelviz.strategies.graphblast import GraphBLAST
from accelviz.strategies.lane_groups import LaneGroups
from accelviz.strategies.merge_path import MergePath
from accelviz.strategies.plans import KernelSpec, LaunchConfig, Plan
from accelviz.strategies.row_thread import RowThread

__all__ = ["KernelSpec", "LaunchConfig", "Plan", "Strategy", "find_strategy", "plan", "strategies"]

REGISTRY: tuple[Strategy, ...] = (
    AccelGCN(),
    GNNAdvisor(),
    GraphBLAST(),
    GeSpMM(),
    RowThread(),
    MergePath(),
    FuseGnnGas(),
    FuseGnnGar(),
    LaneGroups(),
    CuSPARSE(),
)


def strategies() -> dict[str, str]:
    """Return the strategies there are: name to one-line summary."""
    return {strategy.name: strategy.summary for strategy in REGISTRY}


def find_strategy(strategy: str | Strategy) -> Strategy:
    """Look a strategy up by name; a Strategy object is returned as it is.

    Raises
    ------
    ArgumentError
        If there is none of that name, listing those there are.
    """
    if isinstance(strategy, Strategy):
        return strategy
    for known in REGISTRY:
        if known.name == strategy:
            return known
    if isinstance(strategy, type) and issubclass(strategy, Strategy):
        raise ArgumentError("strategy", f"got the class {strategy.__name__}", "an object of it")
    raise ArgumentError(
        "strategy", f"there is no {strategy!r}", "one of " + ", ".join(strategies())
    )


def plan(
    graph: Any, strategy: str | Strategy = "accel_gcn", n_cols: int = 64, **parameters: Any
) -> Plan:
    """Plan how `graph` times a dense matrix of `n_cols` columns is mapped onto a GPU.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
        The sparse matrix.
    strategy : str or Strategy
        A name from `strategies()`, or an object of your own class derived from `Strategy`.
    n_cols : int
        Columns of the dense matrix, at least 1.
    **parameters
        The strategy's own. For `accel_gcn`: `max_block_warps` (1 to 32, default 12) and
        `max_warp_nzs` (1 to 65,535, default 32), and for its ablations `partition` ("block" or
        "warp") and `combined_warp` (True or False).

    Returns
    -------
    Plan
        With `.metadata`, `.workload()`, `.statistics`, `.launch` and `.setup_seconds`.

    Raises
    ------
    GraphError
        If `graph` is not a valid sparse matrix.
    ArgumentError
        If there is no such strategy or parameter, or `n_cols` is below 1.
    PartitionError
        If a parameter is out of range.

    Examples
    --------
    >>> import accelviz
    >>> plan = accelviz.plan("cora", n_cols=64)
    >>> plan.metadata.shape
    (252, 4)
    """
    found = find_strategy(strategy)
    return found.plan(load_graph(graph), n_cols, **parameters)
