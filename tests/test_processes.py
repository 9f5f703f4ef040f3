"""One process per GPU: ranks, shared memory, and failures. No GPU is needed."""

import os
import socket
import subprocess
import sys
from importlib.util import find_spec

import pytest

from accelviz.errors import ArgumentError, DeviceUnavailable
from accelviz.many_gpus import Process, Symmetric, this_process
from accelviz.many_gpus.peers import usable_gpus
from accelviz.many_gpus.process import GPUS_VARIABLE, LAUNCHERS

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
#: Time limit in seconds of processes without GPU work, for a busy machine.
SECONDS = 240


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def started(names, size, *command, gpus=""):
    """Start processes on this host like a launcher; return the output of each."""
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), GPUS_VARIABLE: gpus}
    processes = []
    for rank in range(size):
        numbers = map(str, (rank, size, rank, size))
        environment = {**os.environ, **where, **dict(zip(names, numbers, strict=True))}
        full = [sys.executable, "-m", "tests.symmetric_on_host", *command]
        processes.append(subprocess.Popen(full, env=environment, stdout=subprocess.PIPE, text=True))
    outputs = [process.communicate(timeout=SECONDS)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * size
    return outputs


@pytest.fixture
def alone(monkeypatch):
    """Remove the variables of launchers from the environment."""
    for name in {*sum(LAUNCHERS.values(), ()), GPUS_VARIABLE}:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_process_knows_its_rank(alone, launcher):
    assert this_process() is None
    for name, value in zip(LAUNCHERS[launcher], ("5", "8", "1", "4"), strict=True):
        alone.setenv(name, value)
    assert this_process() == Process(rank=5, size=8, gpu=1, devices_a_host=4)
    alone.setenv(GPUS_VARIABLE, "3,2,1,0")
    assert this_process().gpu == 2
    alone.delenv(LAUNCHERS[launcher][3])
    assert this_process().devices_a_host == 8
    alone.setenv(LAUNCHERS[launcher][1], "1")
    assert this_process() is None


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("RANK", "first", "RANK: got 'first'.*integer"),
        ("LOCAL_RANK", "", "LOCAL_RANK: got ''"),
        (GPUS_VARIABLE, "0", "ACCELVIZ_GPUS: got '0'.*each of 2 processes"),
        (GPUS_VARIABLE, "0,x", "ACCELVIZ_GPUS: got '0,x'"),
    ],
)
def test_numbers_that_are_none_are_refused(alone, name, value, message):
    for known, number in zip(LAUNCHERS["torchrun"], "1212", strict=True):
        alone.setenv(known, number)
    alone.setenv(name, value)
    with pytest.raises(ArgumentError, match=message):
        this_process()


def test_one_process_has_no_symmetric_memory(alone):
    with pytest.raises(DeviceUnavailable, match="one process alone.*torchrun"):
        Symmetric()
    for name, value in zip(LAUNCHERS["torchrun"], "0202", strict=True):
        alone.setenv(name, value)
    alone.setenv(GPUS_VARIABLE, "99,0")
    with pytest.raises(DeviceUnavailable, match="process 0 is to have GPU 99"):
        Symmetric()


@needs_torch
def test_processes_that_cannot_join_are_named(alone):
    alone.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(DeviceUnavailable, match="MASTER_ADDR expected.*first host"):
        Process(0, 2, 0, 2).all_gather("a")
    alone.setitem(sys.modules, "torch", None)
    with pytest.raises(DeviceUnavailable, match=r"PyTorch is not installed.*accelviz\[nvshmem\]"):
        Process(1, 2, 0, 2).all_gather("a")


@pytest.mark.long
@needs_torch
@pytest.mark.parametrize(
    ("launcher", "size"), [("torchrun", 2), ("mpirun (Open MPI)", 3)], ids=["two", "three"]
)
def test_processes_multiply_in_memory_that_they_share(launcher, size, tmp_path):
    """On one host and on several, simulated by tests/symmetric_on_host.py."""
    hosts = map(str, range(size, 0, -1))
    outputs = started(LAUNCHERS[launcher], size, "products", str(tmp_path), *hosts)
    assert all(f"process {rank} is right" in text for rank, text in enumerate(outputs))


@pytest.mark.long
@needs_torch
def test_torchrun_ends_all_processes_if_one_is_killed(tmp_path):
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    command = [sys.executable, *torchrun, "tests.symmetric_on_host", "killed", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert ended.returncode != 0
    assert "Signal 9 (SIGKILL)" in ended.stderr
    numbers = [int(file.read_text()) for file in tmp_path.glob("*.pid")]
    assert len(numbers) == 2
    for number in numbers:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)


@pytest.mark.gpu
@pytest.mark.skipif(find_spec("nvshmem") is None, reason="accelviz[nvshmem] is not installed")
def test_processes_multiply_on_gpus():
    """On two GPUs, or on one that plays two."""
    usable = usable_gpus()
    gpus = f"{usable[0]},{usable[1 % len(usable)]}"
    outputs = started(LAUNCHERS["torchrun"], 2, "products", "", "2", "1", gpus=gpus)
    assert all(f"process {rank} is right" in text for rank, text in enumerate(outputs))
