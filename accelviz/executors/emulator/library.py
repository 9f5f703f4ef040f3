"""A compiled kernel in this process, and the C structures it is called with."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.executors.emulator.symbols import shared_arrays
from accelviz.plans import LaunchConfig

#: Where arrays begin, as on a GPU.
ALIGNMENT = 256
#: Bytes around each array that belong to none, so that an index past its end meets no other.
GUARD = 16 * 1024

#: One lane's part in one step of a warp; `EmulatorRecord` in runtime.h.
RECORD = np.dtype(
    [
        ("block", "<u4"),
        ("warp", "<u2"),
        ("lane", "u1"),
        ("kind", "u1"),
        ("step", "<u4"),
        ("array", "<i2"),
        ("bytes", "<u2"),
        ("code", "<u8"),
        ("offset", "<u8"),
    ]
)


class _Array(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
        ("shared", ctypes.c_int32),
        ("writable", ctypes.c_int32),
        ("initialised", ctypes.c_int32),
    )


class _Launch(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("dynamic_shared_bytes", ctypes.c_uint32),
        ("n_arrays", ctypes.c_int32),
        ("arrays", ctypes.POINTER(_Array)),
        ("arguments", ctypes.POINTER(ctypes.c_void_p)),
        ("dynamic_shared", ctypes.c_void_p),
        ("seed", ctypes.c_uint64),
        ("first_block", ctypes.c_uint32),
        ("n_blocks", ctypes.c_uint32),
        ("traced", ctypes.c_int32),
        ("checked", ctypes.c_int32),
    )


class Error(ctypes.Structure):
    """What went wrong; `EmulatorError` in runtime.h."""

    _fields_ = (
        ("problem", ctypes.c_int32),
        ("kind", ctypes.c_int32),
        ("code", ctypes.c_uint64),
        ("other_code", ctypes.c_uint64),
        ("block", ctypes.c_uint32 * 3),
        ("thread", ctypes.c_uint32 * 3),
        ("other_block", ctypes.c_uint32 * 3),
        ("other_thread", ctypes.c_uint32 * 3),
        ("array", ctypes.c_int32),
        ("bytes", ctypes.c_int32),
        ("offset", ctypes.c_int64),
        ("waiting", ctypes.c_uint32),
        ("left", ctypes.c_uint32),
    )


@dataclass(frozen=True, eq=False)
class Known:
    """An array that a kernel may touch.

    Attributes
    ----------
    name : str
        As the plan or the kernel calls it.
    data : array
        Its memory, `guarded`; of static shared memory, nothing.
    address, size : int
        Where it lies and its bytes.
    itemsize : int
        Bytes of an element; 0 if not known.
    shared, writable, initialised : bool
        See `EmulatorArray` in runtime.h.
    """

    name: str
    data: npt.NDArray[Any]
    address: int
    size: int
    itemsize: int
    shared: bool = False
    writable: bool = False
    initialised: bool = True


def guarded(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a copy that begins at a multiple of `ALIGNMENT`, with `GUARD` bytes on either side."""
    room = np.empty(array.nbytes + 2 * GUARD + ALIGNMENT, dtype=np.uint8)
    start = GUARD + -(room.ctypes.data + GUARD) % ALIGNMENT
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


_NOTHING = np.empty(0, dtype=np.uint8)


@functools.lru_cache(maxsize=128)
def load(path: Path) -> Library:
    """Load a library once."""
    return Library(path)


class Library:
    """A kernel compiled for the host.

    Attributes
    ----------
    path : Path
        Where it lies, for its debugging information.
    static_shared : list of Known
        Its `__shared__` arrays.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._library = ctypes.CDLL(str(path))
        self._library.emulator_trace.restype = ctypes.c_uint64
        begin, end = ctypes.c_void_p(), ctypes.c_void_p()
        self._library.emulator_static_shared(ctypes.byref(begin), ctypes.byref(end))
        self.static_shared = self._static_shared(begin.value or 0, end.value or 0)

    def _static_shared(self, begin: int, end: int) -> list[Known]:
        found = shared_arrays(self.path)
        if not found:  # one array of all, where the format does not tell them apart
            whole = Known("shared memory", _NOTHING, begin, end - begin, 0, True, True, False)
            return [whole] if end > begin else []
        # The first of them begins where the section does.
        base = begin - min(array.offset for array in found)
        return [
            Known(array.name, _NOTHING, base + array.offset, array.size, 0, True, True, False)
            for array in found
        ]

    def run(
        self,
        launch: LaunchConfig,
        arguments: Sequence[Known | np.generic],
        *,
        seed: int = 0,
        first_block: int = 0,
        n_blocks: int | None = None,
        traced: bool = False,
        checked: bool = True,
    ) -> tuple[Error, list[Known]]:
        """Run blocks of a launch.

        Parameters
        ----------
        launch : LaunchConfig
        arguments : sequence of Known or NumPy scalar
            The kernel's parameters in order.
        seed : int
            0 runs threads, warps and blocks in order; another number in a random order.
        first_block, n_blocks : int
            Blocks to run, counted with x fastest; all if not given.
        traced : bool
            Record every access; see `trace`.
        checked : bool
            Look at what the compiled code reports of its accesses.

        Returns
        -------
        Error
            Its `problem` is 0 if none was found.
        list of Known
            The arrays that `Error.array` and the trace count, dynamic shared memory last.
        """
        known = [argument for argument in arguments if isinstance(argument, Known)]
        known += self.static_shared
        dynamic = np.empty(launch.dynamic_shared_bytes, dtype=np.uint8)
        if dynamic.size:
            dynamic = guarded(dynamic)
            address, size = dynamic.ctypes.data, dynamic.nbytes
            known.append(
                Known("dynamic shared memory", dynamic, address, size, 0, True, True, False)
            )
        arrays = (_Array * max(1, len(known)))(
            *(
                _Array(each.address, each.size, each.shared, each.writable, each.initialised)
                for each in known
            )
        )
        cells: list[object] = []
        pointers = (ctypes.c_void_p * max(1, len(arguments)))()
        for i, argument in enumerate(arguments):
            if isinstance(argument, Known):
                cell: object = ctypes.c_void_p(argument.address)
                pointers[i] = ctypes.addressof(cell)  # type: ignore[arg-type]
            else:
                cell = np.array([argument])
                pointers[i] = cell.ctypes.data
            cells.append(cell)  # alive until the kernel has run
        total = launch.grid[0] * launch.grid[1] * launch.grid[2]
        request = _Launch(
            launch.grid,
            launch.block,
            launch.dynamic_shared_bytes,
            len(known),
            arrays,
            pointers,
            dynamic.ctypes.data,
            seed,
            first_block,
            total - first_block if n_blocks is None else n_blocks,
            traced,
            checked,
        )
        error = Error()
        with self._lock:  # the runtime inside a library serves one launch at a time
            self._library.emulator_run(ctypes.byref(request), ctypes.byref(error))
        return error, known

    def trace(self) -> npt.NDArray[np.void]:
        """Return the records of the last traced run, dtype `RECORD`, in the order of the steps."""
        records = ctypes.c_void_p()
        count = self._library.emulator_trace(ctypes.byref(records))
        if not count:
            return np.empty(0, dtype=RECORD)
        memory = (ctypes.c_char * (count * RECORD.itemsize)).from_address(records.value or 0)
        return np.frombuffer(memory, dtype=RECORD).copy()
