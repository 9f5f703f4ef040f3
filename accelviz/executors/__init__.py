"""Executors: the devices that plans run on, and `spmm`, the one call that hides them."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelviz.datasets import load_graph
from accelviz.errors import ArgumentError
from accelviz.executors.base import Executor, ReadyPlan, is_device_array
from accelviz.executors.cpu import CpuExecutor
from accelviz.executors.cuda import (
    CudaExecutor,
    DeviceGraph,
    GpuState,
    device_plan,
    gpu_state,
    trace_gpu,
)
from accelviz.executors.emulator import EmulatorExecutor, emulate, trace
from accelviz.graph import Graph
from accelviz.strategies import Plan, Strategy, find_strategy, plan

__all__ = [
    "EXECUTORS",
    "Executor",
    "GpuState",
    "ReadyPlan",
    "emulate",
    "find_executor",
    "gpu_state",
    "spmm",
    "trace",
    "trace_gpu",
]

#: The devices, the one to prefer first.
EXECUTORS: tuple[Executor, ...] = (CudaExecutor(), CpuExecutor(), EmulatorExecutor())

#: What `spmm` takes where no strategy is given: on a GPU, and elsewhere.
FASTEST, DEFAULT = "lane_groups", "accel_gcn"

#: Ready plans kept with each graph, so that the next `spmm` of the same kind starts at once.
_KEPT_PLANS = 4


def find_executor(device: str) -> Executor:
    """Look a device up by name.

    Raises
    ------
    ArgumentError
        If there is none of that name.
    """
    for executor in EXECUTORS:
        if executor.name == device:
            return executor
    names = ", ".join(executor.name for executor in EXECUTORS)
    raise ArgumentError("device", f"there is no {device!r}", f"auto, {names}")


def spmm(
    graph: Any,
    X: Any,
    strategy: str | Strategy | None = None,
    device: str = "auto",
    *,
    out: Any = None,
    **parameters: Any,
) -> Any:
    """Multiply a graph with a dense matrix: `A @ X`, the way a strategy does it.

    Parameters
    ----------
    graph : Graph, Plan, or anything `load_graph` takes
        The sparse matrix, n_rows x n_senders. With a Plan, `strategy` and `parameters` are the
        plan's own and cannot be given. A matrix of `cupyx.scipy.sparse`, or a DeviceGraph, is
        planned on the GPU, by `lane_groups` alone, and again by each call; see `Notes`.
    X : array, shape (n_senders, n_cols)
        The features; rounded to float32. A CuPy array (or another CUDA array) stays on the GPU.
    strategy : str or Strategy, optional
        See `plan`. If not given, the fastest that there is: `lane_groups` on a GPU; elsewhere, and
        with parameters, `accel_gcn`, as `plan` does.
    device : {"auto", "cuda", "cpu", "emulator"}
        "auto" takes the GPU where there is one and the strategy has a kernel, else the CPU.
        "emulator" runs the CUDA kernel itself on the host, thread by thread, and finds races and
        wrong addresses; it needs a C++ compiler, and is for small graphs.
    out : array, optional
        C-contiguous float32 array of shape (n_rows, n_cols) to write to.
    **parameters
        The strategy's own; see `plan`.

    Returns
    -------
    array of float32, shape (n_rows, n_cols)
        In the caller's row order; rows without a nonzero are exactly zero. On the GPU if `X` is.

    Raises
    ------
    GraphError, PartitionError
        As `plan` does.
    ArgumentError
        If `X`, `out`, the device or the strategy does not fit.
    DeviceUnavailable
        If `device="cuda"` and there is no usable GPU, or `device="emulator"` and no compiler; the
        message says how to get there.
    KernelError
        If the kernel does not compile or run, or the emulator finds a mistake in it.

    Notes
    -----
    The plan is made once for each graph, strategy, parameters and column count, and the last few
    are kept with the Graph. Load a graph once and reuse it to profit from that. A matrix on the
    GPU may change between calls, so nothing is kept of it; that costs about as much as the
    multiplication. `accelviz.executors.cuda.device_plan` makes a plan that can be reused.

    Examples
    --------
    >>> import accelviz, numpy
    >>> graph = accelviz.load_graph("cora")
    >>> X = numpy.ones((2708, 16), dtype=numpy.float32)
    >>> accelviz.spmm(graph, X, device="cpu").shape
    (2708, 16)
    """
    if isinstance(graph, Plan):
        if parameters or strategy not in (None, graph.strategy):
            raise ArgumentError(
                "strategy", "given beside a Plan, which has its own", "one or the other"
            )
        return _ready(graph, _choose(device, X, graph)).multiply(X, out)
    loaded = _on_device(graph) or load_graph(graph)
    X = X if hasattr(X, "shape") else np.asarray(X)
    if len(X.shape) != 2 or X.shape[1] < 1:
        raise ArgumentError(
            "X",
            f"shape {tuple(X.shape)}",
            f"a 2-D array with {loaded.shape[1]} rows and at least one column",
        )
    if isinstance(loaded, DeviceGraph):
        planned = _planned_there(loaded, strategy, X.shape[1], device, parameters)
        return _ready(planned, find_executor("cuda")).multiply(X, out)
    if strategy is None:
        strategy = FASTEST if not parameters and _on_gpu(device, X) else DEFAULT
    planned = _planned(loaded, find_strategy(strategy), X.shape[1], parameters)
    return _ready(planned, _choose(device, X, planned)).multiply(X, out)


def _planned(graph: Graph, strategy: Strategy, n_cols: int, parameters: dict[str, Any]) -> Plan:
    """Plan, or take the plan from the graph's own store if it has made this one lately."""
    key = (strategy, n_cols, tuple(sorted(parameters.items())))
    try:
        known = graph.plans.pop(key, None)
    except TypeError:  # a parameter that cannot be a key; the strategy says what is wrong with it
        return plan(graph, strategy, n_cols, **parameters)
    made = known or plan(graph, strategy, n_cols, **parameters)
    graph.plans[key] = made  # the latest last
    while len(graph.plans) > _KEPT_PLANS:
        graph.plans.pop(next(iter(graph.plans)))
    return made


def _on_device(graph: Any) -> DeviceGraph | None:
    """Return a matrix that lies on the GPU as what `device_plan` takes, or None."""
    if isinstance(graph, DeviceGraph):
        return graph
    if hasattr(graph, "tocsr") and is_device_array(getattr(graph, "data", None)):
        return DeviceGraph.of(graph)
    return None


def _planned_there(
    graph: DeviceGraph,
    strategy: str | Strategy | None,
    n_cols: int,
    device: str,
    parameters: dict[str, Any],
) -> Plan:
    name = FASTEST if strategy is None else find_strategy(strategy).name
    for argument, given, wanted in (("strategy", name, FASTEST), ("device", device, "cuda")):
        if given not in (wanted, "auto"):
            raise ArgumentError(
                argument,
                f"{given!r} for a matrix that lies on the GPU",
                f"{wanted!r}, or the matrix on the host, as from A.get()",
            )
    return device_plan(graph, n_cols, **parameters)


def _on_gpu(device: str, X: Any) -> bool:
    if device != "auto":
        return device == "cuda"
    return is_device_array(X) or find_executor("cuda").why_not() is None


def _choose(device: str, X: Any, plan: Plan) -> Executor:
    if device != "auto":
        return find_executor(device)
    if is_device_array(X):
        return find_executor("cuda")
    for executor in EXECUTORS:
        if executor.why_not(plan) is None:
            return executor
    return EXECUTORS[0]  # which says what is missing when it prepares the plan


def _ready(plan: Plan, executor: Executor) -> ReadyPlan:
    if executor.name not in plan.ready:
        plan.ready[executor.name] = executor.prepare(plan)
    return plan.ready[executor.name]
