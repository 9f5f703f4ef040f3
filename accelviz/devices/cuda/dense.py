"""Dense steps of layers on the GPU: cuBLAS, which a recorded step may hold, and kernels/layers."""

from __future__ import annotations

import functools
import importlib.util
import math
from typing import Any

import numpy as np

from accelviz.devices.base import is_device_array
from accelviz.devices.cuda.compiler import compiled
from accelviz.devices.cuda.state import import_cupy
from accelviz.plans import KernelSpec
from accelviz.plans.launch import WARP_SIZE

_FILE, _COSINES_FILE = "layers/dense.cu", "layers/cosines.cu"
_WEIGHTS_FILE = "layers/gcn_weights.cu"
_THREADS, _AT_ONCE = 256, 4
#: How kernels/layers count activations.
ACTIVATIONS = {"none": 0, "relu": 1, "elu": 2}
#: Blocks of the first pass of a column sum: four for each SM of a large GPU.
_SUM_BLOCKS = 528
_MOST_THREADS = 1024
#: What cuBLAS asks for on Hopper; it allocates for itself otherwise, which a recording forbids.
_WORKSPACE_BYTES = 32 << 20
_ONE, _ZERO = np.array(1, np.float32), np.array(0, np.float32)
_PLAIN, _TRANSPOSED = 0, 1
#: A pointer to nothing.
NULL = np.uint64(0)


@functools.cache
def _blas(device: int, stream: int) -> Any:
    """Return a handle of cuBLAS for a stream, with a workspace of its own."""
    from nvmath.bindings import cublas

    handle = cublas.create()
    workspace = import_cupy().empty(_WORKSPACE_BYTES, np.uint8)
    cublas.set_stream(handle, stream)
    cublas.set_workspace(handle, workspace.data.ptr, workspace.nbytes)
    return cublas, handle, workspace


def matmul(A: Any, B: Any, transposed: str, onto: Any) -> Any:
    """Multiply; see `layers.dense.matmul`. `onto` is overwritten with the sum."""
    cupy = import_cupy()
    if importlib.util.find_spec("nvmath") is None:
        product = (A.T if transposed == "A" else A) @ (B.T if transposed == "B" else B)
        return product if onto is None else onto + product
    A, B = cupy.ascontiguousarray(A), cupy.ascontiguousarray(B)
    inner, rows = A.shape if transposed == "A" else A.shape[::-1]
    columns = B.shape[0] if transposed == "B" else B.shape[1]
    product = cupy.empty((rows, columns), np.float32) if onto is None else onto
    if product.size == 0:
        return product
    blas, handle, _ = _blas(cupy.cuda.Device().id, cupy.cuda.get_current_stream().ptr)
    # In column order a row-major matrix is its transpose, and (A B)^T = B^T A^T.
    first = _TRANSPOSED if transposed == "B" else _PLAIN
    second = _TRANSPOSED if transposed == "A" else _PLAIN
    blas.sgemm(
        *(handle, first, second, columns, rows, inner, _ONE.ctypes.data),
        *(B.data.ptr, B.shape[1], A.data.ptr, A.shape[1]),
        *((_ZERO if onto is None else _ONE).ctypes.data, product.data.ptr, columns),
    )
    return product


def column_sums(A: Any) -> Any:
    """Add up each column, in an order that is always the same."""
    cupy = import_cupy()
    A = cupy.ascontiguousarray(A)
    n_rows, n_cols = A.shape
    width = min(n_cols, _THREADS)
    blocks = max(1, min(_SUM_BLOCKS, n_rows * width // _THREADS))
    parts, total = cupy.empty((blocks, n_cols), np.float32), cupy.empty(n_cols, np.float32)
    add = _kernel("column_sums")
    sizes = np.int32(n_cols), np.int32(width)
    add((blocks,), (_THREADS,), (A, parts, np.int32(n_rows), *sizes))
    add((1,), (_MOST_THREADS,), (parts, total, np.int32(blocks), *sizes))
    return total


def finish(Z: Any, bias: Any, activation: str, rate: float, noise: Any, added: Any = None) -> Any:
    """Add the bias, activate, drop; see `layers.dense.finish`."""
    if bias is None and added is None and activation == "none" and not rate:
        return Z
    cupy = import_cupy()
    Z = cupy.ascontiguousarray(Z)
    Y = cupy.empty_like(Z)
    terms = NULL if added is None else added, NULL if bias is None else bias
    arguments = Z, *terms, Y, np.int64(Z.size), np.int32(Z.shape[-1]), *dropped(rate, noise)
    _run("finish", Z.size, _AT_ONCE, arguments, ACTIVATIONS[activation], bool(rate))
    return Y


def finish_gradient(dY: Any, Y: Any, activation: str, rate: float, noise: Any) -> Any:
    """Go back through `finish`; see `layers.dense.finish_gradient`."""
    if activation == "none" and not rate:
        return dY
    cupy = import_cupy()
    dY, Y = cupy.ascontiguousarray(dY), cupy.ascontiguousarray(Y)
    dZ = cupy.empty_like(dY)
    arguments = dY, Y, dZ, np.int64(dY.size), *dropped(rate, noise)
    _run("finish_gradient", dY.size, _AT_ONCE, arguments, ACTIVATIONS[activation], bool(rate))
    return dZ


def dropped(rate: float, noise: Any) -> tuple[Any, Any]:
    """Return what a kernel is given of a dropout: its rate, and the words it draws from."""
    return np.float32(rate), noise.words if rate else NULL


def cross_entropy(logits: Any, labels: Any, weights: Any) -> tuple[Any, Any]:
    """Return each row's part of the loss, and the gradient; see `layers.dense.cross_entropy`."""
    cupy = import_cupy()
    logits = cupy.ascontiguousarray(logits)
    losses, gradient = cupy.empty_like(weights), cupy.empty_like(logits)
    n_rows, n_classes = logits.shape
    log_lanes = log_lanes_of_row(n_classes)
    sizes = np.int32(n_rows), np.int32(n_classes), np.int32(log_lanes)
    arguments = logits, labels, weights, losses, gradient, *sizes
    _run("cross_entropy", n_rows << log_lanes, 1, arguments)
    return losses, gradient


def log_lanes_of_row(n_cols: int) -> int:
    """Return the binary logarithm of how many lanes have a row of a matrix, at most a warp."""
    return min(WARP_SIZE.bit_length() - 1, (n_cols - 1).bit_length())


def cosine_operands(X: Any, beta: Any, least: float) -> tuple[Any, Any]:
    """Return scaled rows and their scales; see `layers.cosines`."""
    cupy = import_cupy()
    X = cupy.ascontiguousarray(X)
    Q, scale = cupy.empty_like(X), cupy.empty((len(X), 1), np.float32)
    _run_lanes("cosine_operands", (X, *_factor(beta), Q, scale), X.shape, least)
    return Q, scale


def cosine_gradient(
    X: Any, scale: Any, beta: Any, dQ: Any, dV: Any, d_scale: Any, slope: float
) -> tuple[Any, Any]:
    """Go back through `cosine_operands`; see `layers.cosines`. No slope is 0."""
    cupy = import_cupy()
    X, *gradients = map(cupy.ascontiguousarray, (X, dQ, dV, d_scale))
    dX, d_beta = cupy.empty_like(X), cupy.empty(len(X), np.float32)
    arrays = X, scale, *_factor(beta), *gradients, dX, d_beta
    _run_lanes("cosine_gradient", arrays, X.shape, slope)
    return dX, d_beta


def _factor(beta: Any) -> tuple[Any, Any]:
    """Return a factor as kernels take it: where it lies, or nowhere and what it is."""
    return (beta, np.float32(0)) if is_device_array(beta) else (NULL, np.float32(beta))


def _run_lanes(entry: str, arrays: tuple[Any, ...], shape: tuple[int, int], number: float) -> None:
    """Run a kernel of kernels/layers/cosines.cu, some lanes for each row of a matrix."""
    log_lanes = log_lanes_of_row(shape[1])
    blocks = -(-(shape[0] << log_lanes) // _THREADS)
    if blocks:
        sizes = *map(np.int32, (*shape, log_lanes)), np.float32(number)
        _kernel(entry, file=_COSINES_FILE)((blocks,), (_THREADS,), (*arrays, *sizes))


def adam(
    flat: Any, gradient: Any, states: Any, decay: Any, words: Any, rates: tuple[float, ...]
) -> None:
    """Change all parameters in place; see `layers.dense.Adam`."""
    logarithms = math.log(rates[1]), math.log(rates[2])
    numbers = map(np.float32, (*rates, *logarithms))
    arguments = flat, gradient, states[0], states[1], decay, words, np.int64(flat.size), *numbers
    _run("adam", flat.size, 1, arguments)


def gcn_weights(rows: Any, columns: Any, values: Any, n_rows: int) -> Any:
    """Weigh edges by the sums of their ends' rows; see `layers.graph_processing`."""
    cupy = import_cupy()
    sums, weights = cupy.zeros(n_rows, np.float32), cupy.empty(rows.size, np.float32)
    blocks, edges = -(-rows.size // _THREADS), np.int64(rows.size)
    if blocks:
        summed, weighed = (
            _kernel(entry, file=_WEIGHTS_FILE) for entry in ("row_sums", "gcn_weights")
        )
        summed((blocks,), (_THREADS,), (rows, values, sums, edges))
        weighed((blocks,), (_THREADS,), (rows, columns, values, sums, weights, edges))
    return weights


def _run(
    entry: str,
    n: int,
    at_once: int,
    arguments: tuple[Any, ...],
    activation: int = 0,
    dropout: bool = False,
) -> None:
    blocks = -(-n // (_THREADS * at_once))
    if blocks:
        _kernel(entry, activation, dropout)((blocks,), (_THREADS,), arguments)


def dense_kernel(
    entry: str, activation: int = 0, dropout: bool = False, file: str = _FILE
) -> KernelSpec:
    """Return a kernel of kernels/layers."""
    return KernelSpec(file, entry, {"activation": activation, "dropout": int(dropout)}, ())


@functools.cache
def _kernel(entry: str, activation: int = 0, dropout: bool = False, file: str = _FILE) -> Any:
    return compiled(dense_kernel(entry, activation, dropout, file))[1]
