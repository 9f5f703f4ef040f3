"""cuSPARSE's generic SpMM: every algorithm for CSR and COO that CuPy can reach, and the fastest.

CuPy wraps the calls but for `cusparseSpMM_preprocess`, which is called in the library that CuPy has
loaded.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from accelviz.errors import KernelError
from accelviz.executors.cuda.arrays import on_device
from accelviz.executors.cuda.state import import_cupy
from accelviz.executors.cuda.timing import event_seconds
from accelviz.strategies import Plan
from accelviz.strategies.cusparse import ALGORITHMS, FASTEST
from accelviz.strategies.rows import rows_of_nonzeros

#: Runs that decide which algorithm is the fastest: some to warm up, then some to time.
_TRIAL_WARMUP, _TRIAL_RUNS = 2, 7
_SONAME = "libcusparse.so.12"
_NNZ_OF_32_BITS = (1 << 31) - 1
_ONE, _ZERO = np.array(1, np.float32), np.array(0, np.float32)


@dataclass(eq=False)
class _Algorithm:
    """One algorithm on one matrix: its number, its matrix descriptor and its workspace."""

    name: str
    number: int
    matrix: int
    workspace: Any
    preprocess_seconds: float | None


class CusparseCall:
    """`Y = A X` by cuSPARSE, with everything described and allocated beforehand.

    Attributes
    ----------
    setup_seconds : dict of str to float
        Preprocessing, and the search for the fastest algorithm where that was asked for.
    variant : str
        The algorithm in use, and whether it was preprocessed.
    """

    def __init__(self, plan: Plan) -> None:
        assert plan.library is not None
        self._library = plan.library
        self._cupy = cupy = import_cupy()
        self._lib: Any = importlib.import_module("cupy_backends.cuda.libs.cusparse")
        self._handle = cupy.cuda.device.get_cusparse_handle()
        self._plan = plan
        self.setup_seconds: dict[str, float] = {}
        self.variant = ""
        graph = plan.matrix
        if graph.nnz == 0:
            return
        narrow = graph.nnz <= _NNZ_OF_32_BITS
        lib = self._lib
        index = np.int32 if narrow else np.int64
        self._index_type = lib.CUSPARSE_INDEX_32I if narrow else lib.CUSPARSE_INDEX_64I
        self._columns = on_device(graph.column_indices).astype(index, copy=False)
        self._values = on_device(graph.values)
        self._pointers = on_device(graph.row_pointers).astype(index)
        self._rows: Any = None
        self._coo_seconds: dict[str, float] = {}
        self._matrices: dict[str, int] = {}
        self._x, self._y = self._dense(graph.shape[1]), self._dense(graph.n_rows)
        # For the trials; zeros could take less time than data.
        X = cupy.arange(1, graph.shape[1] * plan.n_cols + 1, dtype=np.float32)
        Y = cupy.empty((graph.n_rows, plan.n_cols), np.float32)
        self._point_to(X, Y)
        wanted = self._library.algorithm
        self._algorithm = self._fastest() if wanted == FASTEST else self._make(wanted)
        self.variant = self._algorithm.name
        if self.variant.startswith("coo"):
            self.setup_seconds.update(self._coo_seconds)
        if self._algorithm.preprocess_seconds is not None:
            self.variant += ", preprocessed"
            self.setup_seconds["preprocess"] = self._algorithm.preprocess_seconds

    def __call__(self, X: Any, Y: Any) -> None:
        """Queue the product on the current stream."""
        if self._plan.matrix.nnz == 0:
            if Y.nbytes:
                Y.data.memset_async(0, Y.nbytes)
            return
        self._point_to(X, Y)
        self._multiply(self._algorithm)

    def _dense(self, rows: int) -> int:
        """Describe a dense matrix in rows, whose address is set before each call."""
        n_cols = self._plan.n_cols
        address = self._values.data.ptr  # any that is not null
        described: int = self._lib.createDnMat(
            rows, n_cols, n_cols, address, _CUDA_R_32F, self._lib.CUSPARSE_ORDER_ROW
        )
        return described

    def _point_to(self, X: Any, Y: Any) -> None:
        self._lib.dnMatSetValues(self._x, X.data.ptr)
        self._lib.dnMatSetValues(self._y, Y.data.ptr)

    def _matrix(self, layout: str) -> int:
        """Describe the matrix as CSR, or as COO, whose row indices are made first."""
        if layout in self._matrices:
            return self._matrices[layout]
        graph, lib = self._plan.matrix, self._lib
        shape = (*graph.shape, graph.nnz)
        columns, values = self._columns.data.ptr, self._values.data.ptr
        kind = (lib.CUSPARSE_INDEX_BASE_ZERO, _CUDA_R_32F)
        if layout == "csr":
            self._matrices[layout] = lib.createCsr(
                *shape,
                self._pointers.data.ptr,
                columns,
                values,
                self._index_type,
                self._index_type,
                *kind,
            )
        else:
            rows, self._coo_seconds = rows_of_nonzeros(graph)
            self._rows = on_device(rows).astype(self._columns.dtype, copy=False)
            self._matrices[layout] = lib.createCoo(
                *shape, self._rows.data.ptr, columns, values, self._index_type, *kind
            )
        return self._matrices[layout]

    def _make(self, name: str) -> _Algorithm:
        """Size the workspace of an algorithm and let it preprocess.

        Raises
        ------
        KernelError
            If cuSPARSE does not have it for this matrix.
        """
        number = ALGORITHMS[name]
        matrix = self._matrix("coo" if name.startswith("coo") else "csr")
        try:
            size = self._lib.spMM_bufferSize(
                self._handle, *self._operands(matrix), _CUDA_R_32F, number
            )
        except Exception as error:  # CuSparseError is not a public name
            raise KernelError("cusparse", f"{name} does not take this matrix: {error}") from error
        workspace = self._cupy.empty(max(size, 1), np.uint8)
        made = _Algorithm(name, number, matrix, workspace, None)
        if self._library.preprocess:
            made.preprocess_seconds = self._preprocess(made)
        return made

    def _operands(self, matrix: int) -> tuple[int, ...]:
        plain = self._lib.CUSPARSE_OPERATION_NON_TRANSPOSE
        one, zero = _ONE.ctypes.data, _ZERO.ctypes.data
        return plain, plain, one, matrix, self._x, zero, self._y

    def _multiply(self, algorithm: _Algorithm) -> None:
        lib = self._lib
        lib.setStream(self._handle, self._cupy.cuda.get_current_stream().ptr)
        lib.spMM(
            self._handle,
            *self._operands(algorithm.matrix),
            _CUDA_R_32F,
            algorithm.number,
            algorithm.workspace.data.ptr,
        )

    def _preprocess(self, algorithm: _Algorithm) -> float | None:
        """Call cusparseSpMM_preprocess and return its seconds, or None where it is not offered."""
        try:
            call = ctypes.CDLL(_SONAME).cusparseSpMM_preprocess
        except (OSError, AttributeError):
            return None
        pointer, number = ctypes.c_void_p, ctypes.c_int
        call.argtypes = [
            *(pointer, number, number, pointer, pointer, pointer, pointer, pointer),
            *(number, number, pointer),
        ]
        call.restype = number
        device = self._cupy.cuda.Device()
        self._lib.setStream(self._handle, self._cupy.cuda.get_current_stream().ptr)
        device.synchronize()
        start = time.perf_counter()
        status = call(
            self._handle,
            *self._operands(algorithm.matrix),
            _CUDA_R_32F,
            algorithm.number,
            algorithm.workspace.data.ptr,
        )
        device.synchronize()
        return time.perf_counter() - start if status == 0 else None

    def _fastest(self) -> _Algorithm:
        """Time every algorithm on this matrix and keep the one with the smallest median."""
        start = time.perf_counter()
        medians: list[tuple[float, int, _Algorithm]] = []
        for place, name in enumerate(ALGORITHMS):
            try:
                algorithm = self._make(name)
                times = event_seconds(
                    functools.partial(self._multiply, algorithm), _TRIAL_RUNS, _TRIAL_WARMUP
                )
            except Exception:  # not for this matrix, or no memory for its workspace
                continue
            medians.append((float(np.median(times)), place, algorithm))
        if not medians:
            raise KernelError("cusparse", f"none of {', '.join(ALGORITHMS)} takes this matrix")
        self.setup_seconds["choice of algorithm"] = time.perf_counter() - start
        return min(medians)[2]

    def __del__(self) -> None:
        # At interpreter exit the library may be gone already.
        with contextlib.suppress(Exception):
            for matrix in self._matrices.values():
                self._lib.destroySpMat(matrix)
            for dense in (self._x, self._y):
                self._lib.destroyDnMat(dense)


#: cudaDataType of float32.
_CUDA_R_32F = 0
