"""`spmm`, `sddmm`: one call for each operation, which hides plans and devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from accelviz.datasets import load_graph
from accelviz.devices.base import Device, is_device_array, ready, where_it_lies
from accelviz.devices.cpu import CpuDevice
from accelviz.devices.cuda import CudaDevice, device_pattern, device_plan
from accelviz.devices.emulator import EmulatorDevice
from accelviz.errors import ArgumentError
from accelviz.graph import Pattern
from accelviz.plans import Operation, Plan, Strategy
from accelviz.strategies import EDGE_SOFTMAX, SDDMM, SPMM, find_operation, find_strategy

#: What callers call weights; the argument is `values`.
_LIKE_VALUES = ("value", "weight", "weights")
#: The devices, the one to prefer first.
DEVICES: tuple[Device, ...] = (CudaDevice(), CpuDevice(), EmulatorDevice())


def find_device(device: str) -> Device:
    """Look a device up by name.

    Raises
    ------
    ArgumentError
        If there is none of that name.
    """
    for executor in DEVICES:
        if executor.name == device:
            return executor
    names = ", ".join(executor.name for executor in DEVICES)
    raise ArgumentError("device", f"there is no {device!r}", f"auto, {names}")


def spmm(
    graph: Any,
    X: Any,
    values: Any = None,
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
        plan's own and cannot be given. A matrix of `cupyx.scipy.sparse` is planned on the GPU, by
        `lane_groups` alone, and again by each call; see `Notes`.
    X : array, shape (n_senders, n_cols)
        The features; rounded to float32. A CuPy array (or another CUDA array) stays on the GPU.
    values : array, shape (nnz,), optional
        Weights in place of the graph's own, one for each nonzero, in the graph's order. They need
        no new plan. They must be finite, which is checked on the host and not on the GPU.
    strategy : str or Strategy, optional
        See `plan`. If not given, `lane_groups`, the fastest.
    device : {"auto", "cuda", "cpu", "emulator"}
        "auto" takes the GPU where there is one and the strategy has a kernel, else the CPU.
        "emulator" runs the CUDA kernel itself on the host, thread by thread, and finds races and
        wrong addresses; it needs a C++ compiler, and is for small graphs.
    out : array, optional
        C-contiguous float32 array of shape (n_rows, n_cols) to write to. It may not overlap an
        input.
    **parameters
        Those of the strategy, which must then be named; see `plan`.

    Returns
    -------
    array of float32, shape (n_rows, n_cols)
        In the caller's row order; rows without a nonzero are exactly zero. On the GPU if `X` is.

    Raises
    ------
    GraphError, PartitionError
        As `plan` does.
    ArgumentError
        If `X`, `values`, `out`, the device or the strategy does not fit.
    DeviceUnavailable
        If `device="cuda"` and there is no usable GPU, or `device="emulator"` and no compiler; the
        message says how to get there.
    KernelError
        If the kernel does not compile or run, or the emulator finds a mistake in it.

    Notes
    -----
    The plan is made once for each graph, strategy, parameters and column count, and the graph keeps
    the last few. Load a graph once and reuse it to profit from that. A matrix on the GPU may change
    between calls, so nothing is kept of it; that costs about as much as the multiplication.
    `accelviz.devices.cuda.device_plan` makes a plan that can be reused.

    Examples
    --------
    >>> import accelviz, numpy
    >>> graph = accelviz.load_graph("cora")
    >>> X = numpy.ones((2708, 16), dtype=numpy.float32)
    >>> accelviz.spmm(graph, X, device="cpu").shape
    (2708, 16)
    """
    if isinstance(values, str | Strategy):
        raise ArgumentError("values", f"got {values!r}", "weights; write strategy=... by name")
    operands = {"values": values, "X": X}
    return run_operation(SPMM, graph, operands, strategy, device, {"Y": out}, parameters)["Y"]


def sddmm(
    graph: Any,
    U: Any,
    V: Any,
    strategy: str | Strategy | None = None,
    device: str = "auto",
    *,
    out: Any = None,
    **parameters: Any,
) -> Any:
    """Multiply two dense matrices at the nonzeros of a graph: the dot product of each edge.

    Parameters
    ----------
    graph : Graph, Plan, or anything `load_graph` takes
        The sparse matrix, n_rows x n_senders; its weights are not used. With a Plan, `strategy` and
        `parameters` are the plan's own and cannot be given.
    U : array, shape (n_rows, n_cols) or (n_rows, heads, n_cols)
        Features of the rows; rounded to float32.
    V : array, shape (n_senders, n_cols) or (n_senders, heads, n_cols)
        Features of the columns.
    strategy, device, **parameters
        As of `spmm`; `accelviz.strategies("sddmm")` lists the strategies.
    out : array, optional
        C-contiguous float32 array of the result's shape to write to. It may not overlap an input.

    Returns
    -------
    array of float32, shape (nnz,) or (nnz, heads)
        For each nonzero (i, j), in the graph's order, the dot product of row i of U and row j of V,
        by head. On the GPU if `U` is.

    Raises
    ------
    GraphError, PartitionError, ArgumentError, DeviceUnavailable, KernelError
        As `spmm` does.

    Examples
    --------
    >>> import accelviz, numpy
    >>> graph = accelviz.load_graph("cora")
    >>> U = numpy.ones((2708, 16), dtype=numpy.float32)
    >>> accelviz.sddmm(graph, U, U, device="cpu")[:3]
    array([16., 16., 16.], dtype=float32)
    """
    U, V = where_it_lies("U", U), where_it_lies("V", V)
    flat = len(U.shape) == 2
    if device_pattern(graph) is None:
        graph = graph if isinstance(graph, Plan) else load_graph(graph)
        _check_shapes(graph.pattern, U, V, out)
    if flat:  # kernels know heads: one
        U, V = U[:, None, :], V[:, None, :]
    given = out[:, None] if flat and out is not None else out
    found = run_operation(
        SDDMM, graph, {"U": U, "V": V}, strategy, device, {"scores": given}, parameters
    )
    if out is not None:
        return out
    return found["scores"][:, 0] if flat else found["scores"]


def edge_softmax(
    graph: Any,
    scores: Any,
    strategy: str | Strategy | None = None,
    device: str = "auto",
    *,
    out: Any = None,
    **parameters: Any,
) -> Any:
    """Turn scores of edges into weights that add up to 1 over the nonzeros of each row.

    Parameters
    ----------
    graph : Graph, Plan, or anything `load_graph` takes
        The sparse matrix, n_rows x n_senders; its weights are not used.
    scores : array, shape (nnz,) or (nnz, heads)
        In the graph's order of nonzeros; rounded to float32, of any size: the largest of a row is
        subtracted first. On the host they must be finite.
    strategy, device, **parameters
        As of `spmm`; `accelviz.strategies("edge_softmax")` lists the strategies.
    out : array, optional
        C-contiguous float32 array of the result's shape to write to. It may not overlap `scores`.

    Returns
    -------
    array of float32, shape (nnz,) or (nnz, heads)
        `exp(score)` over the sum of `exp(score)` of its row, by head. On the GPU if `scores` are.

    Raises
    ------
    GraphError, PartitionError, ArgumentError, DeviceUnavailable, KernelError
        As `spmm` does.

    Examples
    --------
    >>> import accelviz, numpy
    >>> graph = accelviz.load_graph("cora")
    >>> accelviz.edge_softmax(graph, numpy.zeros(graph.nnz), device="cpu")[:4].round(3)
    array([0.333, 0.333, 0.333, 0.333], dtype=float32)
    """
    scores = where_it_lies("scores", scores)
    flat = len(scores.shape) == 1
    given = out[:, None] if flat and getattr(out, "ndim", 0) == 1 else out
    operands = {"scores": scores[:, None] if flat else scores}
    found = run_operation(
        EDGE_SOFTMAX, graph, operands, strategy, device, {"alpha": given}, parameters
    )
    return out if out is not None else found["alpha"][:, 0] if flat else found["alpha"]


def _check_shapes(pattern: Pattern, U: Any, V: Any, out: Any) -> None:
    """Refuse what does not fit, in the shapes that the caller of `sddmm` knows."""
    axes = tuple(U.shape[1:]) if len(U.shape) in (2, 3) else ("n_cols",)
    wanted = {"U": (pattern.shape[0], *axes), "V": (pattern.shape[1], *axes)}
    given = {"U": U, "V": V}
    if out is not None:
        given["out"], wanted["out"] = out, (pattern.nnz, *axes[:-1])
        if not isinstance(out, np.ndarray) and not is_device_array(out):
            right = "a float32 array of NumPy, or of the GPU if U is there"
            raise ArgumentError("out", f"a {type(out).__name__}", right)
    for name, array in given.items():
        if tuple(array.shape) != wanted[name]:
            what = f"shape {tuple(array.shape)} for a matrix of {pattern.shape[0]} x "
            what += f"{pattern.shape[1]} with {pattern.nnz} nonzeros"
            right = f"({', '.join(map(str, wanted[name]))}{',' * (len(wanted[name]) == 1)})"
            more = "; with heads, (.., heads, n_cols) of both" * (name != "out")
            raise ArgumentError(name, what, f"shape {right}{more}")
    if isinstance(out, np.ndarray) and not (out.dtype == np.float32 and out.flags.carray):
        what = f"a {'read-only ' * (not out.flags.writeable)}{type(out).__name__} of {out.dtype}"
        raise ArgumentError("out", what, "a writable, C-contiguous float32 array")


def run_operation(
    operation: str | Operation,
    graph: Any,
    operands: Mapping[str, Any],
    strategy: str | Strategy | None = None,
    device: str = "auto",
    out: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Run any operation on a graph: plan unless it is done, choose a device, run.

    Parameters
    ----------
    operation : str or Operation
    graph : Graph, Plan, or anything `load_graph` takes
    operands : mapping of str to array or number
        All dense inputs by name; weights, numbers and words that are missing have defaults.
    strategy, device
        As of `spmm`.
    out : mapping of str to array, optional
        Outputs to write to; those that are missing are new.
    parameters : mapping, optional
        Those of the strategy, which must then be named.

    Returns
    -------
    dict of str to array
        The outputs by name.

    Raises
    ------
    GraphError, PartitionError, ArgumentError, DeviceUnavailable, KernelError
        As `spmm` does.
    """
    operation, parameters = find_operation(operation), dict(parameters or {})
    missing = [each.name for each in operation.dense if operands.get(each.name) is None]
    unknown = [each for each in operands if each not in operation.operands]
    if missing or unknown:
        what = f"{operation.name} " + ("needs it" if missing else "has no such operand")
        right = ", ".join(each.name for each in operation.inputs)
        raise ArgumentError((missing or unknown)[0], what, right)
    dense = {each.name: where_it_lies(each.name, operands[each.name]) for each in operation.dense}
    operands = {**operands, **dense}
    given = [*dense.values()]
    if isinstance(graph, Plan):
        if graph.operation != operation:
            raise ArgumentError("plan", f"a plan of {graph.operation.name}", operation.name)
        if parameters or strategy not in (None, graph.name, graph.strategy):
            what = "given beside a Plan, which has its own"
            raise ArgumentError("strategy", what, "one or the other")
        planned = graph
    else:
        if strategy is None and parameters:
            named = ", ".join(parameters)
            right = "values=... for weights" if named in _LIKE_VALUES else "strategy=... beside it"
            raise ArgumentError(named, "given without a strategy", right)
        found = find_strategy(strategy or operation.fastest, operation)
        on_gpu = device_pattern(graph)
        widths = operation.widths_of(operands)
        if on_gpu is not None:
            _only_there(found, device)
            pattern, values = on_gpu
            planned = device_plan(pattern, **widths, **parameters)
            given.append(pattern.column_indices)
        else:
            loaded = load_graph(graph)
            planned = plan_of(loaded, found, {**widths, **parameters})
            values = loaded.values
        if operands.get("values") is None:
            operands["values"] = values
    return ready(planned, _choose(device, given, planned)).run(operands, out)


def plan_of(graph: Any, strategy: Strategy, settings: dict[str, Any]) -> Plan:
    """Plan, or take the plan from the graph's store if it has made this one lately."""
    key = (strategy, tuple(sorted(settings.items())))
    try:
        hash(key)
    except TypeError:  # a parameter that cannot be a key; the strategy says what is wrong with it
        return strategy.plan(graph, **settings)
    return graph.store.get(key, lambda: strategy.plan(graph, **settings))


def _only_there(strategy: Strategy, device: str) -> None:
    given = {"strategy": strategy.name, "operation": strategy.operation.name, "device": device}
    right = {"strategy": SPMM.fastest, "operation": SPMM.name, "device": "cuda"}
    for argument, value in given.items():
        if value not in (right[argument], "auto"):
            what = f"{value!r} for a matrix that lies on the GPU"
            there = f"{right[argument]!r}, or the matrix on the host, as from A.get()"
            raise ArgumentError(argument, what, there)


def _choose(device: str, given: list[Any], plan: Plan) -> Device:
    if device != "auto":
        return find_device(device)
    if any(is_device_array(array) for array in given):
        return find_device("cuda")
    for executor in DEVICES:
        if executor.unavailable_reason(plan) is None:
            return executor
    return DEVICES[0]  # which says what is missing when it prepares the plan
