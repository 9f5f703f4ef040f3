"""One process per GPU, with access to the memory of other processes by NVSHMEM.

Symmetric memory is memory that all processes allocate at once, each a block of the same size.
Processes of one host read each other's blocks by pointers, with the kernels of `Peers`. A buffer of
another host is copied by NVSHMEM before a kernel reads it, as a whole, because the latency of the
network is too high for single rows. `halo` packs the rows that other hosts need.
"""

from __future__ import annotations

import functools
import os
import sys
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.devices import find_device
from accelviz.devices.cuda.state import one_line
from accelviz.errors import ArgumentError, DeviceUnavailable, checked_integer, pip_install
from accelviz.many_gpus.peers import MORE_MEMORY, Peers, PeersProgram, usable_gpus
from accelviz.many_gpus.process import Process, this_process
from accelviz.many_gpus.program import SplitProgram
from accelviz.plans.program import Buffer, Step, buffer_family, buffer_name


@functools.cache
def _library(process: Process) -> Any:
    """Initialize NVSHMEM with all processes, once per process; return its bindings."""
    # NVSHMEM's multicast (NVLS) can put a host's GPUs out of service.
    os.environ.setdefault("NVSHMEM_DISABLE_NVLS", "1")
    try:
        from cuda.core import Device
        from nvshmem import bindings, core
    except ImportError as error:
        fix = pip_install("accelviz[cuda13,nvshmem]")
        raise DeviceUnavailable("NVSHMEM", one_line(error), fix) from error
    Device(process.gpu).set_current()
    uid = core.get_unique_id(empty=process.rank != 0)
    raw = uid._data.view(np.uint8)
    raw[...] = process.all_gather(raw.copy())[0]
    ranks = {"rank": process.rank, "nranks": process.size}
    core.init(device=Device(process.gpu), uid=uid, **ranks, initializer_method="uid")
    report = sys.excepthook

    def exit_at_once(*error: Any) -> None:
        """End the process without cleanup, which would wait for the other processes forever."""
        report(*error)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)

    sys.excepthook = exit_at_once
    return bindings


class Symmetric(Peers):
    """The GPU of this process, connected to the GPUs of other processes.

    Parameters
    ----------
    devices_a_host : int, optional
        Number of devices that read each other's memory by pointers, by default those of a host.
        With 1, NVSHMEM copies all remote buffers, as between hosts.

    Attributes
    ----------
    process : Process

    Raises
    ------
    DeviceUnavailable
        If this is the only process, its GPU does not exist, or NVSHMEM is not installed.

    Notes
    -----
    All processes have to create this object, and call `ready`, `run` and `close` of programs, in
    the same order.
    """

    def __init__(self, devices_a_host: int | None = None) -> None:
        process = this_process()
        if process is None:
            fix = "torchrun --nproc-per-node 2 program.py"
            raise DeviceUnavailable("NVSHMEM", "there is one process alone", fix)
        if process.gpu not in usable_gpus():
            problem = f"process {process.rank} is to have GPU {process.gpu}, of "
            fix = "fewer devices; ACCELVIZ_GPUS=0,0 lets a GPU play two"
            raise DeviceUnavailable("devices", f"{problem}{len(usable_gpus())}", fix)
        a_host = process.devices_a_host if devices_a_host is None else devices_a_host
        self.process, self.devices_a_host = process, checked_integer("devices_a_host", a_host)
        find_device("cuda").xp.cuda.Device(process.gpu).use()
        self._use({process.rank: process.gpu})
        self.library = _library(process)

    def ready(self, program: SplitProgram) -> SymmetricProgram:
        """Compile a program's kernels, and copy its arrays to the GPU, in all processes."""
        size = self.process.size
        if program.n_devices != size:
            problem = f"is for {program.n_devices} devices, and there are {size} processes"
            raise ArgumentError("program", problem, f"split(..., devices={size})")
        return SymmetricProgram(self, program)

    def barrier(self) -> None:
        """Launch a barrier: later launches of any process wait for all earlier ones."""
        compute, link = (self.streams[self.process.rank, queue] for queue in ("compute", "link"))
        for earlier, later in ((compute, link), (link, compute)):
            if earlier is link:
                self.library.barrier_all_on_stream(link.ptr)
            event = self._cupy.cuda.Event(disable_timing=True)
            event.record(earlier)
            later.wait_event(event)

    def view(self, address: int, size: int, dtype: Any) -> Any:
        """Return the memory at an address as a CuPy array of `size` elements."""
        cuda, n_bytes = self._cupy.cuda, max(size * np.dtype(dtype).itemsize, 16)
        memory = cuda.UnownedMemory(address, n_bytes, self)
        return self._cupy.ndarray((size,), dtype, cuda.MemoryPointer(memory, 0))


class SymmetricProgram(PeersProgram):
    """The steps of a program that this process launches, and their memory.

    Attributes
    ----------
    buffers : dict of str to CuPy array
        Buffers of this device, and buffers of other devices that it reads.
    """

    gpus: Symmetric

    def __init__(self, gpus: Symmetric, program: SplitProgram) -> None:
        self._allocations: list[int] = []  # addresses of all symmetric memory
        #: Address of each family of buffers ("X" of "X of device 1").
        self._addresses: dict[str, int] = {}
        #: Address of the local copy of each buffer of another host, and the event after the copy.
        self._mirrors: dict[str, int] = {}
        self._copied: dict[str, Any] = {}
        super().__init__(gpus, program)
        gpus.barrier()
        gpus.wait()

    def _make_buffers(self) -> None:
        program, gpus, rank = self.program, self.gpus, self.gpus.process.rank
        buffers = program.buffers
        shared = {name for step in program.steps for name in program.remote(step)}
        for family in sorted({buffer_family(name) for name in shared}):
            sizes = (b.nbytes for name, b in buffers.items() if buffer_family(name) == family)
            self._addresses[family] = self._allocated(family, max(sizes))
        # All processes have to allocate as many copies as the process that needs most.
        far_buffers = (self._far_buffers(device) for device in range(gpus.process.size))
        for names in zip_longest(*far_buffers):
            size = max(buffers[name].nbytes for name in names if name)
            mirror = self._allocated("rows of other hosts", size)
            if names[rank]:
                self._mirrors[names[rank]] = mirror
        super()._make_buffers()
        for name in self._read_by(rank):
            buffer = buffers[name]
            self.buffers[name] = gpus.view(self._remote_address(name), buffer.size, buffer.dtype)

    def _read_by(self, device: int) -> list[str]:
        """Return the buffers of other devices that a device reads."""
        steps = [step for step in self.program.steps if step.device == device]
        return sorted({name for step in steps for name in self.program.remote(step)})

    def _far_buffers(self, device: int) -> list[str]:
        """Return the buffers of other hosts that a device reads."""
        a_host, buffers = self.gpus.devices_a_host, self.program.buffers
        names = self._read_by(device)
        return [n for n in names if buffers[n].device // a_host != device // a_host]

    def _remote_address(self, name: str) -> int:
        """Return the address of another device's buffer, or of its local copy."""
        if name in self._mirrors:
            return self._mirrors[name]
        device = self.program.buffers[name].device
        address = int(self.gpus.library.ptr(self._addresses[buffer_family(name)], device))
        if not address:
            rank = self.gpus.process.rank
            problem = f"process {rank} cannot read the memory of process {device}"
            fix = "GPUs joined by NVLink or on one PCIe switch, or one device a host"
            raise DeviceUnavailable("devices", problem, fix)
        return address

    def _allocated(self, name: str, size: int) -> int:
        """Allocate `size` bytes of symmetric memory, in all processes at once."""
        address = int(self.gpus.library.malloc(max(size, 16)))
        if not address:
            problem = f"there are no {size:,} bytes of symmetric memory for {name!r} of "
            gpu = f"GPU {self.gpus.process.gpu}"
            raise DeviceUnavailable(gpu, f"{problem}{self.program}", MORE_MEMORY)
        self._allocations.append(address)
        return address

    def _memory(self, name: str, buffer: Buffer) -> Any:
        if buffer_family(name) not in self._addresses:
            return super()._memory(name, buffer)
        address = self._addresses[buffer_family(name)]
        array = self.gpus.view(address, buffer.size, buffer.dtype)
        array.fill(0)
        return array

    def _begin(self, start: Any) -> None:
        self.gpus.barrier()
        self._copied.clear()
        if start is not None:
            start.record(self.gpus.streams[self._first, "compute"])

    def _end(self, stop: Any) -> None:
        self.gpus.barrier()
        if stop is not None:
            stop.record(self.gpus.streams[self._first, "compute"])

    def _before(self, number: int) -> None:
        if number in self.program.barriers:
            self.gpus.barrier()
            self._copied.clear()  # the steps before the barrier may have changed the buffers

    def _copy_remote(self, step: Step, stream: Any) -> None:
        for name in self.program.remote(step):
            if name not in self._mirrors:
                continue
            if name not in self._copied:
                buffer = self.program.buffers[name]
                source = self._addresses[buffer_family(name)]
                get = self.gpus.library.getmem_on_stream
                get(self._mirrors[name], source, buffer.nbytes, buffer.device, stream.ptr)
                self._copied[name] = self._cupy.cuda.Event(disable_timing=True)
                self._copied[name].record(stream)
            stream.wait_event(self._copied[name])

    def outputs(self) -> dict[str, npt.NDArray[Any]]:
        """Copy the results of all devices to the host; all processes have to call it."""
        process = self.gpus.process
        arrays = process.all_gather(self.get(buffer_name("Y", process.rank)))
        return {buffer_name("Y", device): array for device, array in enumerate(arrays)}

    def close(self) -> None:
        """Free symmetric memory, in all processes at once."""
        self.gpus.barrier()
        self.gpus.wait()
        self.buffers.clear()
        while self._allocations:
            self.gpus.library.free(self._allocations.pop())

    def __enter__(self) -> SymmetricProgram:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is None:  # after an error the other processes do not close
            self.close()
