"""cuSPARSE's SpMM and SDDMM: every algorithm for CSR and COO, preprocessed, and the fastest."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from accelviz.devices.cuda.arrays import on_device
from accelviz.devices.cuda.state import import_cupy
from accelviz.devices.cuda.timing import event_seconds
from accelviz.devices.operands import Arrays
from accelviz.errors import KernelError
from accelviz.plans import LibraryCall, Plan

FASTEST = "fastest"
#: Runs that decide which algorithm is the fastest: some to warm up, then some to time.
_TRIAL_WARMUP, _TRIAL_RUNS = 2, 7
_NNZ_OF_32_BITS = (1 << 31) - 1
_ONE, _ZERO = np.array(1, np.float32), np.array(0, np.float32)
#: cudaDataType of float32; orders of dense matrices; operations; the index base.
_R_32F, _ROW, _COLUMN, _PLAIN, _TRANSPOSED, _BASE = 0, 2, 1, 0, 1, 0


def unavailable_reason() -> str | None:
    """Say why cuSPARSE cannot be called, or None."""
    if importlib.util.find_spec("nvmath") is None:
        return "cuSPARSE is called through nvmath-python: pip install nvmath-python"
    return None


class _Algorithm(NamedTuple):
    """An algorithm ready for one matrix; `launch` holds its workspace."""

    name: str
    launch: Callable[[], None]
    preprocess_seconds: float | None


class CusparseCall:
    """A function of cuSPARSE on one matrix, described and allocated beforehand.

    `inputs` and `outputs`, on the GPU, are for the trials; each call brings its own.
    `setup_seconds` has the times of preprocessing and of the search for the fastest algorithm.
    `variant` is the algorithm in use, and whether it was preprocessed.
    """

    def __init__(self, plan: Plan, inputs: Arrays, outputs: Arrays) -> None:
        from nvmath.bindings import cusparse

        (library,) = plan.calls
        assert isinstance(library, LibraryCall)
        self._lib: Any = cusparse
        self._cupy = import_cupy()
        self._lock = threading.Lock()
        self._n_cols = plan.n_cols
        self._shape, self._nnz = plan.pattern.shape, plan.pattern.nnz
        self._destroy: list[Callable[[], None]] = []
        self.setup_seconds: dict[str, float] = {}
        self.variant = ""
        if self._nnz == 0:
            return
        self._handle = cusparse.create()
        self._destroy.append(functools.partial(cusparse.destroy, self._handle))
        narrow = self._nnz <= _NNZ_OF_32_BITS
        index = np.int32 if narrow else np.int64
        self._index = cusparse.IndexType.INDEX_32I if narrow else cusparse.IndexType.INDEX_64I
        self._columns = on_device(plan.pattern.column_indices).astype(index, copy=False)
        self._pointers = on_device(plan.pattern.row_pointers).astype(index)
        self._rows: Any = None
        self._trial = {**inputs, **outputs}
        self._places: list[tuple[Callable[[int, int], None], int, str]] = []
        self._describe()
        chosen, preprocess = library.algorithm, library.preprocess
        if chosen == FASTEST:
            self._algorithm = self._fastest(preprocess)
        else:
            self._algorithm = self._prepared(chosen, preprocess)
        del self._trial
        self.variant = self._algorithm.name
        if self._algorithm.preprocess_seconds is not None:
            self.variant += ", preprocessed"
            self.setup_seconds["preprocess"] = self._algorithm.preprocess_seconds
        if self._rows is not None and self.variant.startswith("coo"):
            self.setup_seconds["CSR to COO"] = self._rows[1]

    def __call__(self, operands: Arrays, stream: int) -> None:
        """Launch the work on a stream, which is current."""
        if self._nnz == 0:
            for name in self.outputs:
                if operands[name].nbytes:
                    operands[name].data.memset_async(0, operands[name].nbytes)
            return
        with self._lock:
            for point, matrix, name in self._places:
                point(matrix, operands[name].data.ptr)
            self._lib.set_stream(self._handle, stream)
            self._algorithm.launch()

    # A derived class has the results, the algorithms, the dense matrices, the descriptors of an
    # algorithm in the library's order, and what sizes the workspace, preprocesses and computes.
    outputs: tuple[str, ...]
    algorithms: dict[str, int]

    def _describe(self) -> None:
        raise NotImplementedError

    def _arguments(self, name: str) -> tuple[Any, ...]:
        raise NotImplementedError

    def _functions(self) -> tuple[Any, Any, Any]:
        raise NotImplementedError

    def _dense(self, name: str, rows: int, columns: int, order: int = _ROW) -> int:
        """Describe an operand as a matrix; each call says where it lies then."""
        leading = columns if order == _ROW else rows
        address = self._trial[name].data.ptr
        matrix: int = self._lib.create_dn_mat(rows, columns, leading, address, _R_32F, order)
        self._destroy.append(functools.partial(self._lib.destroy_dn_mat, matrix))
        self._places.append((self._lib.dn_mat_set_values, matrix, name))
        return matrix

    def _sparse(self, name: str, layout: str = "csr") -> int:
        """Describe the pattern with an operand as its values."""
        kinds: tuple[Any, ...] = (self._index, _BASE, _R_32F)
        create, rows = self._lib.create_coo, self._pointers
        if layout == "csr":
            create, kinds = self._lib.create_csr, (self._index, *kinds)
        else:
            rows = self._coo_rows()
        addresses = rows.data.ptr, self._columns.data.ptr, self._trial[name].data.ptr
        matrix: int = create(*self._shape, self._nnz, *addresses, *kinds)
        self._destroy.append(functools.partial(self._lib.destroy_sp_mat, matrix))
        self._places.append((self._lib.sp_mat_set_values, matrix, name))
        return matrix

    def _coo_rows(self) -> Any:
        start = time.perf_counter()
        cupy = self._cupy
        places = cupy.arange(self._nnz, dtype=self._columns.dtype)
        rows = cupy.searchsorted(self._pointers, places, side="right") - 1
        cupy.cuda.Device().synchronize()
        self._rows = rows.astype(self._columns.dtype), time.perf_counter() - start
        return self._rows[0]

    def _prepared(self, name: str, preprocess: bool) -> _Algorithm:
        """Size the workspace of an algorithm and let it preprocess."""
        size_of, prepare, compute = self._functions()
        call = (self._handle, *self._arguments(name), _R_32F, self.algorithms[name])
        try:
            size = size_of(*call)
        except self._lib.cuSPARSEError as error:
            raise KernelError("cusparse", f"{name} does not take this matrix: {error}") from error
        workspace, seconds = self._cupy.empty(max(size, 1), np.uint8), None
        if preprocess:
            device = self._cupy.cuda.Device()
            self._lib.set_stream(self._handle, self._cupy.cuda.get_current_stream().ptr)
            device.synchronize()
            start = time.perf_counter()
            with contextlib.suppress(self._lib.cuSPARSEError):  # not every algorithm has it
                prepare(*call, workspace.data.ptr)
                device.synchronize()
                seconds = time.perf_counter() - start

        def launch() -> None:
            compute(*call, workspace.data.ptr)

        return _Algorithm(name, launch, seconds)

    def _fastest(self, preprocess: bool) -> _Algorithm:
        """Time every algorithm on this matrix and keep the one with the smallest median."""
        start = time.perf_counter()
        self._lib.set_stream(self._handle, self._cupy.cuda.get_current_stream().ptr)
        medians: list[tuple[float, _Algorithm]] = []
        for name in self.algorithms:
            with contextlib.suppress(Exception):  # not for this matrix, or no memory for it
                algorithm = self._prepared(name, preprocess)
                times = event_seconds(algorithm.launch, _TRIAL_RUNS, _TRIAL_WARMUP)
                medians.append((float(np.median(times)), algorithm))
        if not medians:
            names = ", ".join(self.algorithms)
            raise KernelError("cusparse", f"none of {names} takes this matrix")
        self.setup_seconds["choice of algorithm"] = time.perf_counter() - start
        return min(medians, key=lambda pair: pair[0])[1]

    def __del__(self) -> None:
        # At interpreter exit the library may be gone already.
        with contextlib.suppress(Exception):
            for destroy in reversed(self._destroy):
                destroy()


class SpmmCall(CusparseCall):
    """`Y = A X`."""

    outputs = ("Y",)

    @property
    def algorithms(self) -> dict[str, int]:  # type: ignore[override]
        """All that take a general matrix, so none of the blocked formats."""
        blocked = ("BLOCKED_ELL_ALG1", "BSR_ALG1")
        return {a.name.lower(): int(a) for a in self._lib.SpMMAlg if a.name not in blocked}

    def _describe(self) -> None:
        self._x = self._dense("X", self._shape[1], self._n_cols)
        self._y = self._dense("Y", self._shape[0], self._n_cols)
        self._matrices: dict[str, int] = {}

    def _arguments(self, name: str) -> tuple[Any, ...]:
        layout = "coo" if name.startswith("coo") else "csr"
        if layout not in self._matrices:
            self._matrices[layout] = self._sparse("values", layout)
        matrix, one, zero = self._matrices[layout], _ONE.ctypes.data, _ZERO.ctypes.data
        return _PLAIN, _PLAIN, one, matrix, self._x, zero, self._y

    def _functions(self) -> tuple[Any, Any, Any]:
        return self._lib.sp_mm_buffer_size, self._lib.sp_mm_preprocess, self._lib.sp_mm


class SddmmCall(CusparseCall):
    """`scores[k] = U[i] . V[j]`, V being told as a transposed or as a column-major matrix."""

    outputs = ("scores",)
    algorithms = {"transposed": 0, "column_major": 0}  # noqa: RUF012

    def _describe(self) -> None:
        rows, senders = self._shape
        self._u = self._dense("U", rows, self._n_cols)
        self._v = {
            "transposed": self._dense("V", senders, self._n_cols),
            "column_major": self._dense("V", self._n_cols, senders, _COLUMN),
        }
        self._scores = self._sparse("scores")

    def _arguments(self, name: str) -> tuple[Any, ...]:
        transposed = _TRANSPOSED if name == "transposed" else _PLAIN
        one, zero = _ONE.ctypes.data, _ZERO.ctypes.data
        return _PLAIN, transposed, one, self._u, self._v[name], zero, self._scores

    def _functions(self) -> tuple[Any, Any, Any]:
        def size_of(*call: Any) -> int:
            size = np.zeros(1, np.uint64)
            self._lib.sddmm_buffer_size(*call, size.ctypes.data)
            return int(size[0])

        return size_of, self._lib.sddmm_preprocess, self._lib.sddmm


#: What to call, by operation.
CALLS: dict[str, type[CusparseCall]] = {"spmm": SpmmCall, "sddmm": SddmmCall}
