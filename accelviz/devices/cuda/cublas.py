"""Products of float32 matrices by cuBLAS, called so that a CUDA graph can capture them."""

from __future__ import annotations

import functools
import importlib.util
from typing import Any

import numpy as np

from accelviz.devices.cuda.state import import_cupy
from accelviz.devices.operands import Arrays
from accelviz.plans import LibraryCall

#: Workspace recommended for Hopper. Without one, cuBLAS allocates memory, which captures forbid.
_WORKSPACE_BYTES = 32 << 20
_ONE, _ZERO = np.array(1, np.float32), np.array(0, np.float32)
_PLAIN, _TRANSPOSED = 0, 1


def can_be_captured() -> bool:
    """Return whether nvmath-python is installed; CuPy's own cuBLAS calls cannot be captured."""
    return importlib.util.find_spec("nvmath") is not None


@functools.cache
def _blas(device: int, stream: int) -> Any:
    """Return (module, handle, workspace) of cuBLAS for a stream of a device."""
    from nvmath.bindings import cublas

    handle = cublas.create()
    workspace = import_cupy().empty(_WORKSPACE_BYTES, np.uint8)
    cublas.set_stream(handle, stream)
    cublas.set_workspace(handle, workspace.data.ptr, workspace.nbytes)
    return cublas, handle, workspace


def matmul(A: Any, B: Any, transposed: str, onto: Any = None, out: Any = None) -> Any:
    """Multiply as `Device.matmul` does, but write the sum to `onto`, or the product to `out`."""
    cupy, target = import_cupy(), out if onto is None else onto
    if not can_be_captured():
        product = (A.T if transposed == "A" else A) @ (B.T if transposed == "B" else B)
        if target is None:
            return product
        target[...] = product if onto is None else onto + product
        return target
    A, B = cupy.ascontiguousarray(A), cupy.ascontiguousarray(B)
    inner, rows = A.shape if transposed == "A" else A.shape[::-1]
    columns = B.shape[0] if transposed == "B" else B.shape[1]
    product = cupy.empty((rows, columns), np.float32) if target is None else target
    if product.size == 0:
        return product
    blas, handle, _ = _blas(cupy.cuda.Device().id, cupy.cuda.get_current_stream().ptr)
    # cuBLAS is column-major: it reads row-major A as A^T, and computes (A B)^T = B^T A^T.
    first = _TRANSPOSED if transposed == "B" else _PLAIN
    second = _TRANSPOSED if transposed == "A" else _PLAIN
    blas.sgemm(
        *(handle, first, second, columns, rows, inner, _ONE.ctypes.data),
        *(B.data.ptr, B.shape[1], A.data.ptr, A.shape[1]),
        *((_ZERO if onto is None else _ONE).ctypes.data, product.data.ptr, columns),
    )
    return product


def call(library: LibraryCall, operands: Arrays, stream: int) -> None:
    """Run a plan's call of cuBLAS on the current stream, which is `stream`."""
    A, B, result = (operands[name] for name in library.arguments)
    onto, out = (result, None) if library.adds else (None, result)
    matmul(A, B, library.transposed, onto, out)
