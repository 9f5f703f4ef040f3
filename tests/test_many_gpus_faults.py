"""GPUs that are missing, cannot read each other, are full or fail; with a simulated CuPy."""

import contextlib
from types import SimpleNamespace

import numpy as np
import pytest

from accelviz import many_gpus
from accelviz.devices.cuda import CudaDevice
from accelviz.errors import DeviceUnavailable, KernelError
from accelviz.many_gpus import peers
from tests.graphs import graph_of_degrees
from tests.symmetric_on_host import pretended_cupy

PROGRAM = many_gpus.plan(many_gpus.split(graph_of_degrees([1] * 9), 3), 8)


class CudaError(RuntimeError):
    status = 0


@pytest.fixture
def gpus(monkeypatch):
    """Simulate three GPUs of two kinds; `reads`, `full` and `failed` define their faults."""
    state = SimpleNamespace(reads=lambda one, other: True, full=set(), failed=set(), now=[])

    @contextlib.contextmanager
    def device(number):
        state.now.append(number)
        yield
        state.now.pop()

    def synchronize():
        if state.now[-1] in state.failed:
            raise CudaError("an illegal memory access was encountered\nand more")

    def memory(size, dtype):
        if state.now[-1] in state.full:
            raise MemoryError("Out of memory allocating 4 bytes")
        return np.zeros(size, dtype)

    names = b"one", b"one", b"two"
    cupy = pretended_cupy(
        *(device, memory, memory),
        CUDARuntimeError=CudaError,
        deviceCanAccessPeer=lambda one, other: state.reads(one, other),
        deviceEnablePeerAccess=lambda other: None,
        deviceSynchronize=synchronize,
        getDeviceProperties=lambda n: {"name": names[n], "uuid": bytes([n] * 16)},
    )
    monkeypatch.setattr(CudaDevice, "xp", cupy)
    monkeypatch.setattr(peers, "usable_gpus", lambda: [0, 1, 2])
    monkeypatch.setattr(peers.PeersProgram, "_prepared", lambda self, step: None)
    return state


def test_missing_gpus_are_named(gpus):
    assert many_gpus.Peers([0, 2]).names == ["one", "two"]  # unequal ones are taken
    with pytest.raises(DeviceUnavailable, match="there are 3 GPUs, and 4 are wanted.*'emulator'"):
        many_gpus.Peers(4)
    with pytest.raises(DeviceUnavailable, match="there is no GPU 7"):
        many_gpus.Peers([0, 7])


def test_gpus_that_cannot_read_each_other_are_named(gpus):
    gpus.reads = lambda one, other: {one, other} != {0, 2}
    assert many_gpus.Peers([0, 1]).devices == [0, 1]
    with pytest.raises(DeviceUnavailable, match=r"GPU \d cannot read the memory of GPU \d.*NVLink"):
        many_gpus.Peers(3)


def test_a_gpu_without_room_is_named(gpus):
    gpus.full = {2}
    with pytest.raises(DeviceUnavailable, match="GPU 2: Out of memory.*fewer columns"):
        many_gpus.Peers(3).ready(PROGRAM)


def test_a_gpu_that_fails_in_the_middle_is_named(gpus):
    with many_gpus.Peers(3) as three:
        three.ready(PROGRAM)
        gpus.failed = {1}
        with pytest.raises(KernelError, match="GPU 1: it failed: .*illegal memory.*new process"):
            three.wait()
        gpus.failed = set()
