"""One process a GPU, which reads the others' memory through NVSHMEM (`accelviz launch`).

Processes of one host read each other's memory by pointers, with the same kernels as the GPUs of one
process. What lies on another host NVSHMEM copies here before a kernel reads it, all that the buffer
holds at once: single rows would each wait for the network. So `halo` packs what other hosts need.
"""

from __future__ import annotations

import functools
import os
import sys
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.devices.cuda.state import import_cupy, one_line
from accelviz.errors import ArgumentError, DeviceUnavailable, checked_integer
from accelviz.many_gpus.launch import Place, place
from accelviz.many_gpus.peers import MORE_MEMORY, Peers, PeersProgram, usable_gpus
from accelviz.many_gpus.steps import Buffer, Program, Step, family, of

#: Bytes in which what others have is copied to the host.
CHUNK = 1 << 24


@functools.cache
def _library(here: Place) -> Any:
    """Return NVSHMEM's bindings, with all processes joined; once a process."""
    # Its multicast can put a host's GPUs out of service.
    os.environ.setdefault("NVSHMEM_DISABLE_NVLS", "1")
    try:
        from cuda.core import Device
        from nvshmem import bindings, core
    except ImportError as error:
        fix = "pip install 'accelviz[cuda13,nvshmem]'"
        raise DeviceUnavailable("NVSHMEM", one_line(error), fix) from error
    Device(here.gpu).set_current()
    uid = core.get_unique_id(empty=here.rank != 0)
    raw = uid._data.view(np.uint8)
    own = raw.tobytes().hex() if here.rank == 0 else None
    raw[...] = np.frombuffer(bytes.fromhex(here.told("uid", own)), np.uint8).reshape(raw.shape)
    names = {"rank": here.rank, "nranks": here.size, "initializer_method": "uid"}
    core.init(device=Device(here.gpu), uid=uid, **names)
    before = sys.excepthook

    def leave(*what: Any) -> None:
        """End at once: an orderly end would wait for processes that wait for this one."""
        before(*what)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)

    sys.excepthook = leave
    return bindings


@functools.cache
def _scratch(here: Place) -> tuple[int, int]:
    """Return `CHUNK` bytes of symmetric memory for others to read, and as many to copy to."""
    return tuple(int(_library(here).malloc(CHUNK)) for _ in range(2))  # type: ignore[return-value]


class Symmetric(Peers):
    """The GPU of this process, and those of the others, in symmetric memory.

    Parameters
    ----------
    devices_a_host : int, optional
        Devices of which each reads the memory of the others by pointers; by default those of a
        host. With 1 all goes through NVSHMEM's copies, as between hosts.

    Attributes
    ----------
    here : Place

    Raises
    ------
    DeviceUnavailable
        If `accelviz launch` has not started this process, its GPU is not there, or NVSHMEM is not
        installed.

    Notes
    -----
    All processes have to do the same in the same order: make this, make programs ready, run them,
    close them.
    """

    def __init__(self, devices_a_host: int | None = None) -> None:
        here = place()
        if here is None:
            fix = "accelviz launch -n 2 program.py"
            raise DeviceUnavailable("NVSHMEM", "there is one process alone", fix)
        if here.gpu not in usable_gpus():
            what = f"process {here.rank} is to have GPU {here.gpu}, of {len(usable_gpus())}"
            fix = "fewer devices; -n 0,0 lets a GPU play two"
            raise DeviceUnavailable("devices", what, fix)
        a_host = here.devices_a_host if devices_a_host is None else devices_a_host
        self.here, self.devices_a_host = here, checked_integer("devices_a_host", a_host)
        import_cupy().cuda.Device(here.gpu).use()
        self._use({here.rank: here.gpu})
        self.library, (self._shown, self._landing) = _library(here), _scratch(here)

    def ready(self, program: Program) -> SymmetricProgram:
        """Compile a program's kernels and put its arrays in place, in all processes."""
        if program.n_devices != self.here.size:
            what = f"is for {program.n_devices} devices, and there are {self.here.size} processes"
            raise ArgumentError("program", what, f"split(..., devices={self.here.size})")
        return SymmetricProgram(self, program)

    def meet(self) -> None:
        """Let all that is queued next, in any process, wait for all that was queued."""
        compute, link = (self.streams[self.here.rank, queue] for queue in ("compute", "link"))
        for first, second in ((compute, link), (link, compute)):
            if first is link:
                self.library.barrier_all_on_stream(link.ptr)
            event = self._cupy.cuda.Event(disable_timing=True)
            event.record(first)
            second.wait_event(event)

    def view(self, address: int, size: int, dtype: Any) -> Any:
        """Return memory as a CuPy array."""
        cuda, bytes_each = self._cupy.cuda, np.dtype(dtype).itemsize
        memory = cuda.UnownedMemory(address, max(size * bytes_each, 16), self)
        return self._cupy.ndarray((size,), dtype, cuda.MemoryPointer(memory, 0))

    def copied(self, address: int, size: int, device: int) -> npt.NDArray[np.uint8]:
        """Copy bytes of a device's symmetric memory, by their address here, to the host."""
        stream, found = self.streams[self.here.rank, "link"], np.empty(size, np.uint8)
        for begin in range(0, size, CHUNK):
            part = found[begin : begin + CHUNK]
            get = self.library.getmem_on_stream
            get(self._landing, address + begin, part.size, device, stream.ptr)
            stream.synchronize()
            part[...] = self.view(self._landing, part.size, np.uint8).get()
        return found

    def total(self, array: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the sum of all processes' arrays of a shape, the same in all to the last bit."""
        flat, step = array.ravel(), CHUNK // array.itemsize
        found = np.zeros_like(flat)
        for begin in range(0, flat.size, step):
            part = np.ascontiguousarray(flat[begin : begin + step])
            self.view(self._shown, part.size, part.dtype).set(part)
            self.wait()
            self.meet()
            for device in range(self.here.size):
                copy = self.copied(self._shown, part.nbytes, device).view(part.dtype)
                found[begin : begin + step] += copy
            self.meet()  # nobody changes what others have not read
            self.wait()
        return found.reshape(array.shape)


class SymmetricProgram(PeersProgram):
    """What this process does of a program, and its memory.

    Attributes
    ----------
    buffers : dict of str to CuPy array
        Of this device, and what it reads of others.
    """

    gpus: Symmetric

    def __init__(self, gpus: Symmetric, program: Program) -> None:
        #: Symmetric memory: all, that of a family of buffers, copies of buffers of other hosts.
        self._allocations: list[int] = []
        self._addresses: dict[str, int] = {}
        self._mirrors: dict[str, int] = {}
        self._brought: dict[str, Any] = {}
        super().__init__(gpus, program)
        gpus.meet()
        gpus.wait()

    def _make_buffers(self) -> None:
        buffers, gpus, here = self.program.buffers, self.gpus, self.gpus.here.rank
        read = {name for step in self.program.steps for name in self.program.remote(step)}
        read |= {name for name, each in buffers.items() if each.kind == "output"}
        sizes = {name: each.size * np.dtype(each.dtype).itemsize for name, each in buffers.items()}
        for shared in sorted({family(name) for name in read}):
            most = max(size for name, size in sizes.items() if family(name) == shared)
            self._addresses[shared] = self._allocated(shared, most)
        for slot in zip_longest(*(self._far(device) for device in range(gpus.here.size))):
            most = max(sizes[each] for each in slot if each)
            mirror = self._allocated("rows of other hosts", most)
            if slot[here]:
                self._mirrors[slot[here]] = mirror
        super()._make_buffers()
        for name in self._read_by(here):
            each = buffers[name]
            self.buffers[name] = gpus.view(self._remote(name), each.size, each.dtype)

    def _read_by(self, device: int) -> list[str]:
        """Return what a device reads of others."""
        steps = [step for step in self.program.steps if step.device == device]
        return sorted({name for step in steps for name in self.program.remote(step)})

    def _far(self, device: int) -> list[str]:
        """Return those to which it has no pointers."""
        a_host, buffers = self.gpus.devices_a_host, self.program.buffers
        names = self._read_by(device)
        return [n for n in names if buffers[n].device // a_host != device // a_host]

    def _remote(self, name: str) -> int:
        """Return where this device reads another's buffer."""
        if name in self._mirrors:
            return self._mirrors[name]
        device = self.program.buffers[name].device
        found = int(self.gpus.library.ptr(self._addresses[family(name)], device))
        if not found:
            what = f"process {self.gpus.here.rank} cannot read the memory of process {device}"
            fix = "GPUs joined by NVLink or on one PCIe switch, or as many hosts as there are"
            raise DeviceUnavailable("devices", what, fix)
        return found

    def _allocated(self, name: str, size: int) -> int:
        """Return symmetric memory of so many bytes, in all processes at once."""
        found = int(self.gpus.library.malloc(max(size, 16)))
        if not found:
            what = f"there are no {size:,} bytes of symmetric memory for {name!r} of {self.program}"
            raise DeviceUnavailable(f"GPU {self.gpus.here.gpu}", what, MORE_MEMORY)
        self._allocations.append(found)
        return found

    def _memory(self, name: str, each: Buffer) -> Any:
        if family(name) not in self._addresses:
            return super()._memory(name, each)
        found = self.gpus.view(self._addresses[family(name)], each.size, each.dtype)
        found.fill(0)
        return found

    def _begin(self, start: Any) -> None:
        self.gpus.meet()
        self._brought.clear()
        if start is not None:
            start.record(self.gpus.streams[self._home, "compute"])

    def _end(self, stop: Any) -> None:
        self.gpus.meet()
        if stop is not None:
            stop.record(self.gpus.streams[self._home, "compute"])

    def _before(self, number: int) -> None:
        if number in self.program.meetings:
            self.gpus.meet()
            self._brought.clear()  # what was copied may have changed

    def _bring(self, step: Step, stream: Any) -> None:
        for name in self.program.remote(step):
            if name not in self._mirrors:
                continue
            if name not in self._brought:
                each = self.program.buffers[name]
                size = each.size * np.dtype(each.dtype).itemsize
                source = self._addresses[family(name)]
                get = self.gpus.library.getmem_on_stream
                get(self._mirrors[name], source, size, each.device, stream.ptr)
                self._brought[name] = self._cupy.cuda.Event(disable_timing=True)
                self._brought[name].record(stream)
            stream.wait_event(self._brought[name])

    def collect(self, name: str) -> npt.NDArray[Any]:
        """Copy a buffer of any device, an output or what others read, to the host."""
        each = self.program.buffers[name]
        if each.device == self.gpus.here.rank:
            return self.get(name)
        size = each.size * np.dtype(each.dtype).itemsize
        found = self.gpus.copied(self._addresses[family(name)], size, each.device)
        return found.view(each.dtype)

    def outputs(self) -> dict[str, npt.NDArray[Any]]:
        """Copy the results of all devices to this process's host; all processes do so."""
        parts = range(self.program.n_devices)
        found = {of("Y", device): self.collect(of("Y", device)) for device in parts}
        self.gpus.meet()  # nobody leaves whom others still read
        self.gpus.wait()
        return found

    def close(self) -> None:
        """Give symmetric memory back, in all processes at once."""
        self.gpus.meet()
        self.gpus.wait()
        self.buffers.clear()
        while self._allocations:
            self.gpus.library.free(self._allocations.pop())

    def __enter__(self) -> SymmetricProgram:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is None:  # else the others do not come to this
            self.close()
