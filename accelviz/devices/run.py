"""`spmm`, `sddmm`, `edge_softmax`: plan an operation, choose a device and run, in one call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from accelviz.datasets import load_graph
from accelviz.devices.choice import as_operand, owner
from accelviz.devices.cuda import device_pattern
from accelviz.devices.planning import leave_short_run, prepared, short_run
from accelviz.errors import ArgumentError
from accelviz.graph import Pattern
from accelviz.plans import Operation, Plan, Strategy
from accelviz.strategies import EDGE_SOFTMAX, SDDMM, SPMM, find_operation


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
    """Multiply a graph's sparse matrix A by a dense matrix: return `A @ X`.

    Parameters
    ----------
    graph : Graph, Plan, or anything `load_graph` takes
        The sparse matrix, n_rows x n_columns. A Plan has its own strategy and parameters, so
        neither may be passed. A matrix of `cupyx.scipy.sparse` is planned on the GPU, only by
        `lane_groups`, and again in each call; see `Notes`.
    X : array, shape (n_columns, n_cols)
        The features, converted to float32. A CuPy array (or another CUDA array) stays on the GPU.
    values : array, shape (nnz,), optional
        Weights in the graph's order of nonzeros, by default the graph's. Other weights need no new
        plan. They must be finite, which is checked only on the host.
    strategy : str or Strategy, optional
        See `plan`. By default `lane_groups`, the fastest, and on the CPU `graphblast`, which keeps
        the order of the rows.
    device : {"auto", "cuda", "cpu", "emulator"}
        "auto" chooses the GPU if there is one and the strategy has a kernel, else the CPU.
        "emulator" runs the CUDA kernel itself on the host, thread by thread, and finds races and
        wrong addresses; it needs a C++ compiler, and is for small graphs.
    out : array, optional
        C-contiguous float32 array of shape (n_rows, n_cols) for the result. It may not overlap an
        input.
    **parameters
        Parameters of the strategy, which must then be named; see `plan`.

    Returns
    -------
    array of float32, shape (n_rows, n_cols)
        In the caller's row order; rows without nonzeros are exactly zero. On the GPU if `X` is.

    Raises
    ------
    GraphError, PartitionError
        As `plan` does.
    ArgumentError
        If `X`, `values`, `out`, the device or the strategy is invalid.
    DeviceUnavailable
        If `device="cuda"` and there is no usable GPU, or `device="emulator"` and no compiler; the
        message has the command that installs what is missing.
    KernelError
        If the kernel does not compile or run, or the emulator finds a mistake in it.

    Notes
    -----
    The plan is built once per graph, strategy, parameters and number of columns; the graph stores
    the most recent plans, so load a graph once and reuse it. A matrix on the GPU may change between
    calls, so its plan is not stored; planning costs about as much as the multiplication.
    `accelviz.devices.device_plan` returns a plan to reuse.

    Examples
    --------
    >>> import accelviz, numpy
    >>> graph = accelviz.load_graph("cora")
    >>> X = numpy.ones((2708, 16), dtype=numpy.float32)
    >>> accelviz.spmm(graph, X, device="cpu").shape
    (2708, 16)
    """
    is_default = values is None and strategy is None and type(device) is str and not parameters
    if is_default and (run := short_run(graph, X, device)) is not None:
        Y = run(X, out)
        if Y is not None:
            return Y
    if isinstance(values, str | Strategy):
        raise ArgumentError("values", f"got {values!r}", "weights; write strategy=... by name")
    operands = {"values": values, "X": X}
    plan, operands = prepared(SPMM, graph, operands, strategy, device, parameters)
    Y = plan.run(operands, {"Y": out})["Y"]
    if is_default:
        leave_short_run(graph, X, device, plan)
    return Y


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
    """Multiply two dense matrices at the nonzeros of a graph (SDDMM).

    Parameters
    ----------
    graph : Graph, Plan, or anything `load_graph` takes
        The sparse matrix, n_rows x n_columns; its weights are not used. A Plan has its own strategy
        and parameters, so neither may be passed.
    U : array, shape (n_rows, n_cols) or (n_rows, heads, n_cols)
        Features of the rows, converted to float32.
    V : array, shape (n_columns, n_cols) or (n_columns, heads, n_cols)
        Features of the columns.
    strategy, device, **parameters
        As in `spmm`; `accelviz.strategies("sddmm")` lists the strategies.
    out : array, optional
        C-contiguous float32 array of the result's shape for it. It may not overlap an input.

    Returns
    -------
    array of float32, shape (nnz,) or (nnz, heads)
        Dot product of row i of U and row j of V for each nonzero (i, j), in the graph's order, per
        head. On the GPU if `U` is.

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
    U, V = as_operand("U", U), as_operand("V", V)
    is_single_head = len(U.shape) == 2
    if device_pattern(graph) is None:
        graph = graph if isinstance(graph, Plan) else load_graph(graph)
        _check_shapes(graph.pattern, U, V, out)
    if is_single_head:  # add the axis of heads, which the operation requires
        U, V = (array.reshape(array.shape[0], 1, array.shape[1]) for array in (U, V))
    outputs = {"scores": _with_head(out) if is_single_head else out}
    operands = {"U": U, "V": V}
    scores = run_operation(SDDMM, graph, operands, strategy, device, outputs, parameters)["scores"]
    if out is not None:
        return out
    return scores.reshape(scores.shape[0]) if is_single_head else scores


def edge_softmax(
    graph: Any,
    scores: Any,
    strategy: str | Strategy | None = None,
    device: str = "auto",
    *,
    out: Any = None,
    **parameters: Any,
) -> Any:
    """Compute the softmax of edge scores over the nonzeros of each row.

    Parameters
    ----------
    graph : Graph, Plan, or anything `load_graph` takes
        The sparse matrix, n_rows x n_columns; its weights are not used.
    scores : array, shape (nnz,) or (nnz, heads)
        Scores in the graph's order of nonzeros, converted to float32. Large scores do not overflow,
        since the maximum of each row is subtracted. On the host they must be finite.
    strategy, device, **parameters
        As in `spmm`; `accelviz.strategies("edge_softmax")` lists the strategies.
    out : array, optional
        C-contiguous float32 array of the result's shape for it. It may not overlap `scores`.

    Returns
    -------
    array of float32, shape (nnz,) or (nnz, heads)
        `exp(score)` over the sum of `exp(score)` in its row, per head. On the GPU if `scores` are.

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
    scores = as_operand("scores", scores)
    is_single_head = len(scores.shape) == 1
    operands = {"scores": scores.reshape(scores.shape[0], 1) if is_single_head else scores}
    outputs = {"alpha": _with_head(out) if is_single_head else out}
    arguments = (operands, strategy, device, outputs, parameters)
    try:
        results = run_operation(EDGE_SOFTMAX, graph, *arguments)
    except ArgumentError as error:
        if not is_single_head:
            raise
        texts = error.problem, error.expected.removesuffix(", n_cols = 1")
        own_shapes = [re.sub(r"\((\d+), 1\)", r"(\1,)", text) for text in texts]
        raise ArgumentError(error.argument, *own_shapes) from error
    if out is not None:
        return out
    return results["alpha"].reshape(-1) if is_single_head else results["alpha"]


def _with_head(out: Any) -> Any:
    """Return a view of a contiguous 1-D output with an axis of one head; others unchanged."""
    contiguous = getattr(getattr(out, "flags", None), "c_contiguous", True)
    if out is None or len(getattr(out, "shape", ())) != 1 or not contiguous:
        return out
    return out.reshape(out.shape[0], 1)


def _check_shapes(pattern: Pattern, U: Any, V: Any, out: Any) -> None:
    """Check arguments of `sddmm` by the shapes in its docstring, before heads are added."""
    if out is not None and owner(out) is None:
        flags = out.flags if isinstance(out, np.ndarray) else None
        dtype = getattr(out, "dtype", None)
        if flags is None or dtype != np.float32 or not flags.carray:
            problem = "a read-only " if flags is not None and not flags.writeable else "a "
            problem += type(out).__name__ + (f" of {dtype}" if dtype else "")
            expected = (
                "a writable, C-contiguous float32 array of NumPy, or of the GPU if U is there"
            )
            raise ArgumentError("out", problem, expected)
    axes = tuple(U.shape[1:]) if len(U.shape) in (2, 3) else ("n_cols",)
    heads_hint = "; with heads, (.., heads, n_cols) of both"
    for name, array, shape, hint in (
        ("U", U, (pattern.shape[0], *axes), heads_hint),
        ("V", V, (pattern.shape[1], *axes), heads_hint),
        ("out", out, (pattern.nnz, *axes[:-1]), ""),
    ):
        if array is not None and tuple(array.shape) != shape:
            problem = f"shape {tuple(array.shape)} for a matrix of {pattern.shape[0]} x "
            problem += f"{pattern.shape[1]} with {pattern.nnz} nonzeros"
            expected = f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"
            raise ArgumentError(name, problem, f"shape {expected}{hint}")


def run_operation(
    operation: str | Operation,
    graph: Any,
    operands: Mapping[str, Any],
    strategy: str | Strategy | None = None,
    device: str = "auto",
    out: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Run any operation on a graph: plan it (or use the stored plan), choose a device, run.

    Parameters
    ----------
    operation : str or Operation
    graph : Graph, Plan, or anything `load_graph` takes
    operands : mapping of str to array or number
        Inputs by name. Dense inputs are required; weights, numbers and device scalars optional.
    strategy, device
        As in `spmm`.
    out : mapping of str to array, optional
        Arrays for some or all outputs, by name.
    parameters : mapping, optional
        Parameters of the strategy, which must then be named.

    Returns
    -------
    dict of str to array
        The outputs by name.

    Raises
    ------
    GraphError, PartitionError, ArgumentError, DeviceUnavailable, KernelError
        As `spmm` does.
    """
    plan, operands = prepared(
        find_operation(operation), graph, operands, strategy, device, dict(parameters or {})
    )
    return plan.run(operands, out)
