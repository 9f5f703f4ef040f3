"""SpMM and SDDMM by cuSPARSE: any of its CSR and COO algorithms, or the fastest in a trial."""

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
from accelviz.errors import KernelError, pip_install
from accelviz.plans import LibraryCall, Plan

FASTEST = "fastest"
#: Number of untimed and of timed runs of each algorithm in the search for the fastest.
_TRIAL_WARMUP, _TRIAL_RUNS = 2, 7
_MAX_NNZ_OF_INT32 = (1 << 31) - 1
_ONE, _ZERO = np.array(1, np.float32), np.array(0, np.float32)
#: cuSPARSE's constants: data type float32; row-major and column-major order; operation of a matrix
#: (plain, transposed); index base.
_R_32F, _ROW, _COLUMN, _PLAIN, _TRANSPOSED, _BASE = 0, 2, 1, 0, 1, 0


def unavailable_reason() -> str | None:
    """Return why cuSPARSE cannot be called, or None if it can."""
    if importlib.util.find_spec("nvmath") is None:
        return f"cuSPARSE is called through nvmath-python: {pip_install('nvmath-python')}"
    return None


class _Algorithm(NamedTuple):
    """An algorithm prepared for one matrix; `launch` refers to its workspace."""

    name: str
    launch: Callable[[], None]
    preprocess_seconds: float | None


class CusparseCall:
    """A function of cuSPARSE on one matrix, with descriptors and workspace allocated once.

    The trial runs use `inputs` and `outputs`, on the GPU; later calls pass their own operands.
    `setup_seconds` has the seconds of preprocessing, of a conversion to COO and of the search.
    `variant` is the name of the algorithm in use, with ", preprocessed" if it was.
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
        is_long, types = self._nnz > _MAX_NNZ_OF_INT32, cusparse.IndexType
        dtype = np.int64 if is_long else np.int32
        self._index_type = types.INDEX_64I if is_long else types.INDEX_32I
        self._columns = on_device(plan.pattern.column_indices).astype(dtype, copy=False)
        self._pointers = on_device(plan.pattern.row_pointers).astype(dtype)
        self._coo: tuple[Any, float] | None = None  # row indices, seconds of their computation
        self._trial = {**inputs, **outputs}
        # (function, descriptor, operand): the functions set the address in a descriptor.
        self._address_setters: list[tuple[Callable[[int, int], None], int, str]] = []
        self._describe()
        name, preprocess = library.algorithm, library.preprocess
        search = name == FASTEST
        self._algorithm = self._fastest(preprocess) if search else self._prepared(name, preprocess)
        del self._trial
        self.variant = self._algorithm.name
        if self._algorithm.preprocess_seconds is not None:
            self.variant += ", preprocessed"
            self.setup_seconds["preprocess"] = self._algorithm.preprocess_seconds
        if self._coo is not None and self.variant.startswith("coo"):
            self.setup_seconds["CSR to COO"] = self._coo[1]

    def __call__(self, operands: Arrays, stream: int) -> None:
        """Launch the algorithm on `stream`, the current stream."""
        if self._nnz == 0:
            for name in self.outputs:
                if operands[name].nbytes:
                    operands[name].data.memset_async(0, operands[name].nbytes)
            return
        with self._lock:
            for set_address, matrix, name in self._address_setters:
                set_address(matrix, operands[name].data.ptr)
            self._lib.set_stream(self._handle, stream)
            self._algorithm.launch()

    # Defined by a derived class.
    outputs: tuple[str, ...]  # names of the outputs
    algorithms: dict[str, int]  # the library's numbers of the algorithms, by name

    def _describe(self) -> None:
        """Create the descriptors of the dense matrices."""
        raise NotImplementedError

    def _arguments(self, name: str) -> tuple[Any, ...]:
        """Return the arguments of algorithm `name` from the operations to the result."""
        raise NotImplementedError

    def _functions(self) -> tuple[Any, Any, Any]:
        """Return cuSPARSE's functions for (workspace size, preprocessing, computation)."""
        raise NotImplementedError

    def _dense(self, name: str, rows: int, columns: int, order: int = _ROW) -> int:
        leading = columns if order == _ROW else rows
        address = self._trial[name].data.ptr
        matrix: int = self._lib.create_dn_mat(rows, columns, leading, address, _R_32F, order)
        self._destroy.append(functools.partial(self._lib.destroy_dn_mat, matrix))
        self._address_setters.append((self._lib.dn_mat_set_values, matrix, name))
        return matrix

    def _sparse(self, name: str, layout: str = "csr") -> int:
        """Create a descriptor of the pattern, with an operand as the values."""
        types: tuple[Any, ...] = (self._index_type, _BASE, _R_32F)
        if layout == "csr":
            create, rows, types = self._lib.create_csr, self._pointers, (self._index_type, *types)
        else:
            create, rows = self._lib.create_coo, self._coo_rows()
        addresses = rows.data.ptr, self._columns.data.ptr, self._trial[name].data.ptr
        matrix: int = create(*self._shape, self._nnz, *addresses, *types)
        self._destroy.append(functools.partial(self._lib.destroy_sp_mat, matrix))
        self._address_setters.append((self._lib.sp_mat_set_values, matrix, name))
        return matrix

    def _coo_rows(self) -> Any:
        start = time.perf_counter()
        cupy, dtype = self._cupy, self._columns.dtype
        nonzeros = cupy.arange(self._nnz, dtype=dtype)
        rows = (cupy.searchsorted(self._pointers, nonzeros, side="right") - 1).astype(dtype)
        cupy.cuda.Device().synchronize()
        self._coo = rows, time.perf_counter() - start
        return rows

    def _prepared(self, name: str, preprocess: bool) -> _Algorithm:
        """Allocate the workspace of an algorithm and run its preprocessing."""
        workspace_size, run_preprocessing, compute = self._functions()
        call = (self._handle, *self._arguments(name), _R_32F, self.algorithms[name])
        try:
            size = workspace_size(*call)
        except self._lib.cuSPARSEError as error:
            raise KernelError("cusparse", f"{name} does not take this matrix: {error}") from error
        workspace, seconds = self._cupy.empty(max(size, 1), np.uint8), None
        if preprocess:
            device = self._cupy.cuda.Device()
            self._lib.set_stream(self._handle, self._cupy.cuda.get_current_stream().ptr)
            device.synchronize()
            start = time.perf_counter()
            with contextlib.suppress(self._lib.cuSPARSEError):  # some algorithms have none
                run_preprocessing(*call, workspace.data.ptr)
                device.synchronize()
                seconds = time.perf_counter() - start

        def launch() -> None:
            compute(*call, workspace.data.ptr)

        return _Algorithm(name, launch, seconds)

    def _fastest(self, preprocess: bool) -> _Algorithm:
        """Time all algorithms on this matrix and return the one with the smallest median."""
        start = time.perf_counter()
        self._lib.set_stream(self._handle, self._cupy.cuda.get_current_stream().ptr)
        medians: list[tuple[float, _Algorithm]] = []
        for name in self.algorithms:
            with contextlib.suppress(Exception):  # unsupported matrix, or too little memory
                algorithm = self._prepared(name, preprocess)
                times = event_seconds(algorithm.launch, _TRIAL_RUNS, _TRIAL_WARMUP)
                medians.append((float(np.median(times)), algorithm))
        if not medians:
            names = ", ".join(self.algorithms)
            raise KernelError("cusparse", f"none of {names} takes this matrix")
        self.setup_seconds["choice of algorithm"] = time.perf_counter() - start
        return min(medians, key=lambda pair: pair[0])[1]

    def __del__(self) -> None:
        # At interpreter exit the library may already be unloaded.
        with contextlib.suppress(Exception):
            for destroy in reversed(self._destroy):
                destroy()


class SpmmCall(CusparseCall):
    """`Y = A X`."""

    outputs = ("Y",)

    @property
    def algorithms(self) -> dict[str, int]:  # type: ignore[override]
        """Numbers of the algorithms for CSR and COO matrices, by name."""
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
    """`scores[k] = U[i] . V[j]`, with V described as transposed or as column-major."""

    outputs = ("scores",)
    algorithms = {"transposed": 0, "column_major": 0}  # noqa: RUF012

    def _describe(self) -> None:
        n_rows, n_columns = self._shape
        self._u = self._dense("U", n_rows, self._n_cols)
        self._v = {
            "transposed": self._dense("V", n_columns, self._n_cols),
            "column_major": self._dense("V", self._n_cols, n_columns, _COLUMN),
        }
        self._scores = self._sparse("scores")

    def _arguments(self, name: str) -> tuple[Any, ...]:
        transposed = _TRANSPOSED if name == "transposed" else _PLAIN
        one, zero = _ONE.ctypes.data, _ZERO.ctypes.data
        return _PLAIN, transposed, one, self._u, self._v[name], zero, self._scores

    def _functions(self) -> tuple[Any, Any, Any]:
        def workspace_size(*call: Any) -> int:
            size = np.zeros(1, np.uint64)
            self._lib.sddmm_buffer_size(*call, size.ctypes.data)
            return int(size[0])

        return workspace_size, self._lib.sddmm_preprocess, self._lib.sddmm


#: Classes of calls by the name of the operation.
CALLS: dict[str, type[CusparseCall]] = {"spmm": SpmmCall, "sddmm": SddmmCall}
