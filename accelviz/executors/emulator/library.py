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


def _structure(members: str) -> np.dtype[np.void]:
    """Return a structure of runtime.h: its members, each with NumPy's name of its type."""
    pairs = [member.split(":") for member in members.split()]
    return np.dtype([(name, kind) for name, kind in pairs], align=True)


_ARRAY = _structure("data:u8 bytes:u8 shared:i4 writable:i4 initialised:i4")
_LAUNCH = _structure(
    "grid:3u4 block:3u4 dynamic_shared_bytes:u4 n_arrays:i4 arrays:u8 arguments:u8 "
    "dynamic_shared:u8 seed:u8 first_block:u4 n_blocks:u4 traced:i4 checked:i4"
)
_ERROR = _structure(
    "problem:u8 code:u8 other_code:u8 block:3u4 thread:3u4 other_block:3u4 other_thread:3u4 "
    "array:i4 bytes:i4 kind:i4 offset:i8 waiting:u4 left:u4"
)
#: One lane's part in one step of a warp; `EmulatorRecord` in runtime.h.
RECORD = _structure("block:u4 warp:u2 lane:u1 kind:u1 step:u4 array:i2 bytes:u2 code:u8 offset:u8")


@dataclass(frozen=True, eq=False)
class Known:
    """An array that a kernel may touch: its memory, where that lies, and its bytes.

    `data` is empty for static shared memory, and `itemsize` 0 where it is not known. See
    `EmulatorArray` in runtime.h for the rest.
    """

    name: str
    data: npt.NDArray[Any]
    address: int
    size: int
    itemsize: int = 0
    shared: bool = True
    writable: bool = True
    initialised: bool = False

    @classmethod
    def copied(
        cls, name: str, array: npt.NDArray[Any], writable: bool = False, initialised: bool = True
    ) -> Known:
        """Copy an array to where a kernel finds it, `guarded`."""
        data = guarded(array)
        place = data.ctypes.data, data.nbytes, data.itemsize
        return cls(name, data, *place, False, writable, initialised)


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
    """A kernel compiled for the host; `path` is for its debugging information."""

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
            return [Known("shared memory", _NOTHING, begin, end - begin)] if end > begin else []
        # The first of them begins where the section does.
        base = begin - min(array.offset for array in found)
        return [Known(each.name, _NOTHING, base + each.offset, each.size) for each in found]

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
    ) -> tuple[str, Any, list[Known]]:
        """Run blocks of a launch, counted with x fastest; all of them if `n_blocks` is not given.

        `EmulatorExecutor` says what `seed` and `checked` are. With `traced`, every access is
        recorded for `trace`.

        Returns
        -------
        str
            What went wrong; empty if nothing did.
        structured scalar
            More of it: `EmulatorError` in runtime.h.
        list of Known
            The arrays that its `array` and the trace count, dynamic shared memory last.
        """
        known = [argument for argument in arguments if isinstance(argument, Known)]
        known += self.static_shared
        dynamic = np.empty(launch.dynamic_shared_bytes, dtype=np.uint8)
        if dynamic.size:
            dynamic = guarded(dynamic)
            place = dynamic.ctypes.data, dynamic.nbytes
            known.append(Known("dynamic shared memory", dynamic, *place))
        about = [(k.address, k.size, k.shared, k.writable, k.initialised) for k in known]
        arrays = np.array(about, dtype=_ARRAY)
        # The kernel finds each argument in a cell of its own.
        cells = [np.array([a.address if isinstance(a, Known) else a]) for a in arguments]
        pointers = np.array([cell.ctypes.data for cell in cells], dtype=np.uint64)
        total = launch.grid[0] * launch.grid[1] * launch.grid[2]
        n_blocks = total - first_block if n_blocks is None else n_blocks
        places = arrays.ctypes.data, pointers.ctypes.data, dynamic.ctypes.data
        size = launch.dynamic_shared_bytes, len(known)
        which = seed, first_block, n_blocks, traced, checked
        request = np.array((launch.grid, launch.block, *size, *places, *which), dtype=_LAUNCH)
        error = np.zeros((), dtype=_ERROR)
        with self._lock:  # the runtime inside a library serves one launch at a time
            self._library.emulator_run(request.ctypes, error.ctypes)
        problem = ctypes.string_at(int(error["problem"])).decode() if error["problem"] else ""
        return problem, error[()], known

    def trace(self) -> npt.NDArray[np.void]:
        """Return the records of the last traced run, dtype `RECORD`, in the order of the steps."""
        records = ctypes.c_void_p()
        count = self._library.emulator_trace(ctypes.byref(records))
        if not count:
            return np.empty(0, dtype=RECORD)
        memory = (ctypes.c_char * (count * RECORD.itemsize)).from_address(records.value or 0)
        return np.frombuffer(memory, dtype=RECORD).copy()
