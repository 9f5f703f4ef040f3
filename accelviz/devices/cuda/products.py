"""Products of tall matrices with small ones on the GPU, by kernels/layers, and what follows them.

Where a kernel does not fit, cuBLAS multiplies and the steps that follow are kernels of their own:
`layers.affine` knows both ways.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from accelviz.devices.cuda.compiler import compiled
from accelviz.devices.cuda.dense import ACTIVATIONS, NULL, dropped
from accelviz.devices.cuda.state import import_cupy
from accelviz.plans import KernelSpec
from accelviz.plans.launch import WARP_SIZE

#: Columns that tiles of the tensor cores divide, and the largest small matrix: a warp keeps its
#: gradient in registers.
_TILE, _MOST_COLUMNS, _MOST_WEIGHTS = 16, 128, 1 << 14
_THREADS, _ROWS_OF_WARP, _MOST_THREADS = 256, 32, 512
#: Of `weight_gradient`: rows in shared memory at a time, with this padding of both sides.
_ROWS, _PADDING = 32, 16
_SHARED_BYTES_OF_BLOCK = 48 << 10


def fits(inner: int, columns: int, in_parts: int, out_parts: int) -> bool:
    """Say whether the kernels take matrices of so many columns, and so many of them at once."""
    left, right = in_parts * inner, out_parts * columns
    staged = 4 * _ROWS * (left + right + _PADDING)
    return (
        inner % _TILE == 0
        and columns % _TILE == 0
        and right <= _MOST_COLUMNS
        and left * right <= _MOST_WEIGHTS
        and threads_of_gradient(left, right) <= _MOST_THREADS
        and staged <= _SHARED_BYTES_OF_BLOCK
    )


def kernel_of(
    entry: str,
    shape: tuple[int, int, int, int],
    transposed: bool = False,
    activation: int = 0,
    dropout: bool = False,
) -> KernelSpec:
    """Return a kernel: `product`, `weight_gradient` or `add_parts`.

    Parameters
    ----------
    entry : str
    shape : tuple of int
        INNER, COLUMNS, IN_PARTS and OUT_PARTS of kernels/layers/products.cuh.
    transposed : bool
        Whether the small matrix is given transposed.
    activation : int
    dropout : bool
    """
    config = dict(zip(("inner", "columns", "in_parts", "out_parts"), shape, strict=True))
    config |= {"transposed": int(transposed), "activation": activation, "dropout": int(dropout)}
    file = "product" if entry == "product" else "weight_gradient"
    return KernelSpec(f"layers/{file}.cu", entry, config, ())


def _kernel(spec_of: tuple[Any, ...], shared_bytes: int = 0) -> Any:
    """Return a kernel for the current device."""
    return compiled(kernel_of(*spec_of), shared_bytes=shared_bytes)[1]


@functools.cache
def _resident(kernel: Any, threads: int, shared_bytes: int, device: int) -> int:
    """Return how many blocks of a kernel a whole card holds at a time: those stay to the end."""
    card = import_cupy().cuda.runtime.getDeviceProperties(device)
    of_sm = (
        card["regsPerMultiprocessor"] // (threads * (kernel.num_regs + 7) // 8 * 8),
        card["maxThreadsPerMultiProcessor"] // threads,
        card["sharedMemPerMultiprocessor"] // (shared_bytes + card["reservedSharedMemPerBlock"]),
    )
    return int(card["multiProcessorCount"]) * max(1, min(of_sm))


def _ready(arrays: Sequence[Any]) -> list[Any] | None:
    """Return contiguous arrays, or None if one does not begin at a multiple of 16 bytes."""
    cupy = import_cupy()
    found = [cupy.ascontiguousarray(each) for each in arrays]
    return None if any(each.data.ptr % 16 for each in found) else found


def product(
    inputs: Sequence[Any],
    weights: Sequence[Any],
    *,
    transposed: bool = False,
    bias: Any = None,
    activation: str = "none",
    rate: float = 0.0,
    noise: Any = None,
    positive: Any = None,
    scale: float = 1.0,
) -> list[Any] | None:
    """Multiply and finish; see `layers.affine`.

    Parameters
    ----------
    inputs : sequence of one or two arrays of float32, shape (n, inner)
    weights : sequence of one or two arrays of float32
        As many as inputs, whose products are added; or two, each multiplied with the only input.
        Of shape (inner, columns), or turned if `transposed`.
    bias, activation, rate, noise
        As of `layers.dense.finish`.
    positive : array of float32, shape (n, columns), optional
        Instead: the result is multiplied with `scale` where this is above 0, and 0 elsewhere.
    scale : float

    Returns
    -------
    list of arrays of float32, shape (n, columns), or None
        None if no kernel fits.
    """
    cupy = import_cupy()
    inner, columns = weights[0].shape[::-1] if transposed else weights[0].shape
    out_parts = len(weights) // len(inputs)
    shape = inner, columns, len(inputs), out_parts
    n_rows = inputs[0].shape[0]
    given = _ready([*inputs, *([] if positive is None else [positive])])
    if given is None or not fits(*shape) or not n_rows:
        return None
    weights = [cupy.ascontiguousarray(each) for each in weights]
    results = [cupy.empty((n_rows, columns), np.float32) for _ in range(out_parts)]
    shared = 4 * len(inputs) * inner * out_parts * columns
    spec = "product", shape, transposed, ACTIVATIONS[activation], bool(rate)
    device = cupy.cuda.Device().id
    kernel = _kernel(spec, shared)
    tiles = -(-n_rows // (_ROWS_OF_WARP * _THREADS // WARP_SIZE))
    blocks = min(tiles, _resident(kernel, _THREADS, shared, device))
    kernel(
        (blocks,),
        (_THREADS,),
        (
            *(given[0], given[len(inputs) - 1], weights[0], weights[-1]),
            *(NULL if bias is None else bias, NULL if positive is None else given[-1]),
            *(results[0], results[-1], np.int32(n_rows), np.float32(scale)),
            *dropped(rate, noise),
        ),
        shared_mem=shared,
    )
    return results


def weight_gradients(inputs: Sequence[Any], gradients: Sequence[Any]) -> Any:
    """Return the gradients of `product` by its weights and by the bias; see `layers.affine`.

    Parameters
    ----------
    inputs : sequence of arrays of float32, shape (n, inner)
    gradients : sequence of arrays of float32, shape (n, columns)
        By each result.

    Returns
    -------
    list of arrays of float32, shape (inner, columns), and array of float32, shape (columns,)
        The second is the sum of each column of the last gradient. None if no kernel fits.
    """
    cupy = import_cupy()
    (n_rows, inner), columns = inputs[0].shape, gradients[0].shape[1]
    shape = inner, columns, len(inputs), len(gradients)
    given = _ready([*inputs, *gradients])
    if given is None or not fits(*shape) or not n_rows:
        return None
    left, right = len(inputs) * inner, len(gradients) * columns
    device, threads = cupy.cuda.Device().id, threads_of_gradient(left, right)
    kernel = _kernel(("weight_gradient", shape))
    shared = 4 * _ROWS * (left + right + _PADDING)
    blocks = min(-(-n_rows // _ROWS), _resident(kernel, threads, shared, device))
    parts = cupy.empty((blocks, left + 1, right), np.float32)
    results = [cupy.empty((inner, columns), np.float32) for _ in (*inputs, *gradients)][1:]
    sums = cupy.empty(columns, np.float32)
    first, last = given[0], given[len(inputs) - 1]
    factors = first, last, given[len(inputs)], given[-1]
    kernel((blocks,), (threads,), (*factors, parts, np.int32(n_rows)))
    elements = -(-((left + 1) * right) // WARP_SIZE)
    arguments = parts, results[0], results[-1], sums, np.int32(blocks)
    _kernel(("add_parts", shape))((elements,), (8 * WARP_SIZE,), arguments)
    return results, sums


def threads_of_gradient(left: int, right: int) -> int:
    """Return the threads of a block of `weight_gradient`, as the kernel counts them."""
    high = 2 if left % 32 == 0 else 1
    warps = left // (16 * high) * (right // 16)
    warps //= 2 if right % 32 == 0 and warps > 16 else 1
    return warps * (1 if warps >= 8 else 2 if warps >= 4 else 4) * WARP_SIZE
