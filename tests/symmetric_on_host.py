"""Simulation of CuPy, NVSHMEM and NCCL with NumPy and memory shared by processes, without a GPU.

A process calls `pretend()` first. Launches run a step's replay at once. Allocations, barriers,
copies and reads of other processes' memory are those of the package.
"""

import contextlib
import ctypes
import importlib
import mmap
import os
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from accelviz.devices.cuda import CudaDevice
from accelviz.errors import ArgumentError
from accelviz.many_gpus import peers, process, symmetric

#: Bytes of each process's symmetric memory.
HEAP = 1 << 24


class Array(np.ndarray):
    """The part of a CuPy array's interface that the package uses."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data, memset_async=lambda *_: self.fill(0))

    def get(self):
        return np.array(self)

    def set(self, other):
        self[...] = other


class Stream:
    """A stream on which everything is done when it is launched."""

    ptr = 0

    def __init__(self, **_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def wait_event(self, event):
        assert event.recorded


class Event:
    recorded = False

    def __init__(self, **_):
        pass

    def record(self, _):
        self.recorded = True

    @property
    def done(self):
        assert self.recorded
        return True


class Device(contextlib.nullcontext):
    def __init__(self, number):
        assert number == process.this_process().gpu, "another process's GPU"
        super().__init__()

    def use(self):
        pass


def ndarray(shape, dtype, pointer):
    (size,) = shape
    raw = (ctypes.c_char * (size * np.dtype(dtype).itemsize)).from_address(pointer)
    return np.frombuffer(raw, dtype).view(Array)


class Library:
    """The functions of NVSHMEM that are used: memory in a file, and a barrier of counters in it."""

    def __init__(self, member, folder):
        self.member, self.used = member, 64
        with open(f"{folder}/heap", "a+b") as file:
            file.truncate(HEAP * member.size)
            self.memory = mmap.mmap(file.fileno(), HEAP * member.size)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.barriers = np.frombuffer(self.memory, np.int64)[:: HEAP // 8]  # one per process

    def malloc(self, size):
        self.barrier_all_on_stream(0)
        address = self.base + self.member.rank * HEAP + self.used
        self.used += -(-size // 64) * 64
        assert self.used <= HEAP
        ctypes.memset(address, 255, size)  # NaN
        return address

    def free(self, address):
        assert self.base < address - self.member.rank * HEAP < self.base + HEAP

    def ptr(self, address, device):
        return address + (device - self.member.rank) * HEAP

    def getmem_on_stream(self, target, source, size, device, _):
        ctypes.memmove(target, self.ptr(source, device), size)

    def of_all(self, array):
        address = self.malloc(array.nbytes)
        ndarray(array.shape, array.dtype, address)[...] = array
        self.barrier_all_on_stream(0)
        addresses = (self.ptr(address, device) for device in range(self.member.size))
        return [ndarray(array.shape, array.dtype, pointer) for pointer in addresses]

    def barrier_all_on_stream(self, _):
        self.barriers[self.member.rank] += 1
        while (self.barriers < self.barriers[self.member.rank]).any():
            time.sleep(0.0005)


def pretended_cupy(device, zeros, empty, **runtime):
    """Return the part of CuPy that is used, with a device context and CUDA runtime functions."""
    runtime = {"deviceSynchronize": lambda: None, "CUDARuntimeError": RuntimeError, **runtime}
    cuda = SimpleNamespace(
        Device=device,
        Stream=Stream,
        Event=Event,
        runtime=SimpleNamespace(**runtime),
        UnownedMemory=lambda address, size, owner: address,
        MemoryPointer=lambda address, offset: address + offset,
        memory=SimpleNamespace(OutOfMemoryError=MemoryError),
    )
    asarray = lambda array: np.copy(array).view(Array)  # noqa: E731
    return SimpleNamespace(cuda=cuda, ndarray=ndarray, asarray=asarray, zeros=zeros, empty=empty)


def pretend(folder):
    """Replace everything that needs a GPU in this process."""
    cupy = pretended_cupy(
        Device,
        zeros=lambda n, dtype: np.zeros(n, dtype).view(Array),
        empty=lambda n, dtype: np.full(n, 255, np.uint8).astype(dtype).view(Array),
        getDeviceProperties=lambda gpu: {"uuid": bytes([gpu] * 16)},
    )

    def launched(self, step):
        return lambda: step.replay(self.buffers)

    CudaDevice.xp = cupy
    CudaDevice.unavailable_reason = lambda self, plan=None: None
    for module in (symmetric, importlib.import_module("accelviz.many_gpus.run")):
        module.usable_gpus = lambda: [0, 1, 2]
    peers.PeersProgram._prepared = launched
    library = Library(process.this_process(), folder)
    symmetric._library = lambda member: library


def products(folder, *hosts):
    """Run each scheme with each number of devices per host; on GPUs if `folder` is ""."""
    if folder:
        pretend(folder)
    for a_host in hosts:
        products_of_hosts(int(a_host))
    print(f"process {process.this_process().rank} is right", flush=True)


def products_of_hosts(a_host):
    from accelviz import many_gpus
    from accelviz.measure.accuracy import Oracle
    from tests.graphs import graph_of_degrees

    member = many_gpus.this_process()
    graph = graph_of_degrees([0, 1, 2, 3, 40, 8, 0, 0, 33, *[3] * 50], name="mixed")
    divided = many_gpus.split(graph, member.size, order="random")
    rng = np.random.default_rng(0)
    gpus = many_gpus.Symmetric(devices_a_host=a_host)
    for scheme, settings in (
        ("halo", {}),
        ("halo", {"pieces": 3, "devices_a_host": a_host}),
        ("all_gather", {"devices_a_host": a_host, "pieces": 1}),
        ("mgg", {"ps": 4}),
    ):
        program = many_gpus.plan(divided, 6, scheme, **settings)
        with gpus.ready(program) as ready:
            for _ in range(2):
                X = rng.standard_normal((graph.n_rows, 6)).astype(np.float32)
                Y = ready.run(program.inputs(X))
                assert Oracle(graph, X).error(Y) <= 1, (scheme, settings, a_host)
    X = rng.standard_normal((graph.n_rows, 4)).astype(np.float32)
    assert Oracle(graph, X).error(many_gpus.spmm(graph, X, member.size)) <= 1  # "auto"
    assert gpus.process.all_gather(member.rank) == [*range(member.size)]
    with pytest.raises(ArgumentError, match=f"there are {member.size} processes"):
        many_gpus.spmm(graph, X, member.size + 1)


def killed(folder):
    """Run until one process is killed."""
    from accelviz import many_gpus

    pretend(folder)
    with open(f"{folder}/{process.this_process().rank}.pid", "w") as file:
        file.write(str(os.getpid()))
    gpus, runs = many_gpus.Symmetric(), 0
    while True:
        gpus.process.all_gather(runs)
        runs += 1
        if gpus.process.rank == 1 and runs == 3:
            os.kill(os.getpid(), 9)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
