"""`spmm`, `sddmm`: one call for each operation, which hides plans and devices."""

from __future__ import annotations

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
    `accelviz.devices.device_plan` makes a plan that can be reused.

    Examples
    --------
    >>> import accelviz, numpy
    >>> graph = accelviz.load_graph("cora")
    >>> X = numpy.ones((2708, 16), dtype=numpy.float32)
    >>> accelviz.spmm(graph, X, device="cpu").shape
    (2708, 16)
    """
    usual = values is None and strategy is None and device == "auto" and not parameters
    if usual and (run := short_run(graph, X)) is not None:
        Y = run(X, out)
        if Y is not None:
            return Y
    if isinstance(values, str | Strategy):
        raise ArgumentError("values", f"got {values!r}", "weights; write strategy=... by name")
    operands = {"values": values, "X": X}
    plan, operands = prepared(SPMM, graph, operands, strategy, device, parameters)
    Y = plan.run(operands, {"Y": out})["Y"]
    if usual:
        leave_short_run(graph, X, plan)
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
    U, V = as_operand("U", U), as_operand("V", V)
    flat = len(U.shape) == 2
    if device_pattern(graph) is None:
        graph = graph if isinstance(graph, Plan) else load_graph(graph)
        _check_shapes(graph.pattern, U, V, out)
    if flat:  # kernels have heads: here one
        U, V = (array.reshape(array.shape[0], 1, array.shape[1]) for array in (U, V))
    outputs = {"scores": _with_head(out) if flat else out}
    operands = {"U": U, "V": V}
    scores = run_operation(SDDMM, graph, operands, strategy, device, outputs, parameters)["scores"]
    if out is not None:
        return out
    return scores.reshape(scores.shape[0]) if flat else scores


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
    scores = as_operand("scores", scores)
    flat = len(scores.shape) == 1
    operands = {"scores": scores.reshape(scores.shape[0], 1) if flat else scores}
    outputs = {"alpha": _with_head(out) if flat else out}
    alpha = run_operation(EDGE_SOFTMAX, graph, operands, strategy, device, outputs, parameters)
    if out is not None:
        return out
    return alpha["alpha"].reshape(-1) if flat else alpha["alpha"]


def _with_head(out: Any) -> Any:
    """Return a 1-D output as a column, in the same memory."""
    contiguous = getattr(getattr(out, "flags", None), "c_contiguous", True)
    if out is None or len(getattr(out, "shape", ())) != 1 or not contiguous:
        return out
    return out.reshape(out.shape[0], 1)


def _check_shapes(pattern: Pattern, U: Any, V: Any, out: Any) -> None:
    """Refuse what does not fit, in the shapes that the caller of `sddmm` knows."""
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
    of_heads = "; with heads, (.., heads, n_cols) of both"
    for name, array, shape, more in (
        ("U", U, (pattern.shape[0], *axes), of_heads),
        ("V", V, (pattern.shape[1], *axes), of_heads),
        ("out", out, (pattern.nnz, *axes[:-1]), ""),
    ):
        if array is not None and tuple(array.shape) != shape:
            problem = f"shape {tuple(array.shape)} for a matrix of {pattern.shape[0]} x "
            problem += f"{pattern.shape[1]} with {pattern.nnz} nonzeros"
            expected = f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"
            raise ArgumentError(name, problem, f"shape {expected}{more}")


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
    plan, operands = prepared(
        find_operation(operation), graph, operands, strategy, device, dict(parameters or {})
    )
    return plan.run(operands, out)
