"""One process a GPU: who starts, who ends, and what is said of one that dies. No GPU is needed."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from importlib.util import find_spec

import pytest

from accelviz.cli import main
from accelviz.devices.cuda.state import import_nccl
from accelviz.errors import ArgumentError, DeviceUnavailable
from accelviz.many_gpus import Symmetric, this_process
from accelviz.many_gpus.launch import VARIABLE, launch
from accelviz.many_gpus.peers import usable_gpus

#: Says which process it is and where, then does what is asked of that process, or waits.
PROGRAM = """
import json, os, sys, time
here = json.loads(os.environ["ACCELVIZ_PLACE"])
folder, asked = sys.argv[1], sys.argv[2:]
name = f"{folder}/{here['rank']}"
open(name + ".new", "w").write(json.dumps({**here, "pid": os.getpid()}))
os.rename(name + ".new", name)
while len([each for each in os.listdir(folder) if each.isdigit()]) < here["size"]:
    time.sleep(0.01)
if asked and here["rank"] == int(asked[0]):
    exec(asked[1])
if asked:
    time.sleep(60)
"""
#: How long all others may take to end; much less is needed on a machine that is not busy.
SECONDS = 10


@pytest.fixture
def program(tmp_path):
    folder = tmp_path / "told"
    folder.mkdir()
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)

    class Program:
        command = [str(file), str(folder)]  # noqa: RUF012

        def told(self):
            return [json.loads((folder / name).read_text()) for name in sorted(os.listdir(folder))]

        def over(self, within=SECONDS):
            """Whether all processes that began have ended."""
            until = time.monotonic() + within
            while any(alive(each["pid"]) for each in self.told()):
                if time.monotonic() > until:
                    return False
                time.sleep(0.05)
            return True

        def began(self, n):
            until = time.monotonic() + 60
            while len([each for each in os.listdir(folder) if each.isdigit()]) < n:
                assert time.monotonic() < until
                time.sleep(0.02)

    return Program()


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_each_process_knows_its_place(program, capsys):
    assert main(["launch", "-n", "5,7", *program.command]) == 0
    assert "2 processes have ended well" in capsys.readouterr().out
    told = program.told()
    assert [(each["rank"], each["size"], each["gpu"]) for each in told] == [(0, 2, 5), (1, 2, 7)]
    assert {each["devices_a_host"] for each in told} == {2}
    assert this_process() is None


@pytest.mark.parametrize(
    ("act", "says"),
    [
        ("os.kill(os.getpid(), 9)", r"process 1 \(GPU 1\) was ended by signal 9 \(SIGKILL\)"),
        ("sys.exit(3)", r"process 1 \(GPU 1\) ended with status 3"),
        ("1 / 0", r"process 1 \(GPU 1\) ended with status 1"),
    ],
)
def test_if_one_process_dies_the_others_end_and_it_is_named(program, act, says, capfd):
    begin = time.monotonic()
    with pytest.raises(DeviceUnavailable, match=says):
        launch([*program.command, "1", act], range(3))
    assert time.monotonic() - begin < SECONDS
    assert len(program.told()) == 3
    assert program.over(0)
    assert ("ZeroDivisionError" in capfd.readouterr().err) == (act == "1 / 0")


def test_a_process_that_does_not_end_by_itself_is_killed(program):
    deaf = "import signal; signal.signal(15, signal.SIG_IGN); os.kill(os.getppid(), 0); {}"
    act = f"{deaf.format('time.sleep(0)')}\ntime.sleep(60)"
    caller = threading.Timer(0, lambda: (program.began(2), os.kill(program.told()[1]["pid"], 9)))
    caller.start()
    with pytest.raises(DeviceUnavailable, match="process 1 .* signal 9"):
        launch([*program.command, "0", act], range(2))
    assert program.over(0)


def start(program, host, port, *asked, hosts=2):
    """Run `accelviz launch` of one host in a process of its own."""
    given = ["-n", "2", "--hosts", hosts, "--host", host, "--meet", f"127.0.0.1:{port}"]
    command = [sys.executable, "-m", "accelviz", "launch", *map(str, given), *program.command]
    pipe = subprocess.PIPE
    return subprocess.Popen([*command, *asked], stdout=pipe, stderr=pipe, text=True)


def test_several_hosts_run_one_program(program):
    port = free_port()
    hosts = [start(program, host, port) for host in (1, 0)]
    for each in hosts:
        out, err = each.communicate(timeout=60)
        assert (each.returncode, err) == (0, "")
        assert "4 processes have ended well" in out
    told = program.told()
    assert [(each["rank"], each["gpu"]) for each in told] == [(0, 0), (1, 1), (2, 0), (3, 1)]


@pytest.mark.sample(3)
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends processes of a dead launch")
@pytest.mark.parametrize(
    ("dies", "says"),
    [
        ("process 3", "process 3 (GPU 1 of host 1) was ended by signal 9 (SIGKILL)"),
        ("host 1", "host 1 is lost"),
        ("host 0", "host 0 is lost"),
    ],
)
def test_what_dies_on_one_host_is_known_on_the_other(program, dies, says):
    port = free_port()
    hosts = [start(program, host, port, "0", "time.sleep(60)") for host in (0, 1)]
    program.began(4)
    kind, number = dies.split()
    pid = hosts[int(number)].pid if kind == "host" else program.told()[int(number)]["pid"]
    os.kill(pid, signal.SIGKILL)
    assert program.over()
    for host, each in enumerate(hosts):
        _, err = each.communicate(timeout=SECONDS)
        if dies != f"host {host}":
            assert each.returncode == 2
            assert says in err


def test_a_host_that_does_not_come_is_named(program):
    port = free_port()
    with pytest.raises(DeviceUnavailable, match="host 1 and host 2 did not come within 0.3 s"):
        launch(program.command, [0], hosts=3, meet=f"127.0.0.1:{port}", patience=0.3)
    with pytest.raises(DeviceUnavailable, match=rf"meet: 127.0.0.1:{port}: .*refused.*host 0"):
        launch(program.command, [0], hosts=2, host=1, meet=f"127.0.0.1:{port}", patience=0.3)
    assert not program.told()


@pytest.mark.parametrize(
    "problem",
    [
        OSError(errno.ENETUNREACH, "Network is unreachable"),
        socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
        None,  # what no name can be
    ],
)
def test_a_host_that_cannot_be_reached_is_not_waited_for(program, monkeypatch, problem):
    def fails(*_):
        raise problem

    if problem:
        monkeypatch.setattr(socket, "create_connection", fails)
    begin = time.monotonic()
    with pytest.raises(DeviceUnavailable, match="meet: no..host:29500: .*name and port"):
        launch(program.command, [0], hosts=2, host=1, meet="no..host:29500")
    assert time.monotonic() - begin < SECONDS


def test_what_is_waited_for_is_told(program, monkeypatch, capfd):
    monkeypatch.setattr("accelviz.many_gpus.launch.QUIET", 0.1)
    meet = f"127.0.0.1:{free_port()}"
    for host, says in ((0, "host 1"), (1, f"host 0 at {meet} (Connection refused)")):
        with pytest.raises(DeviceUnavailable):
            launch(program.command, [0], hosts=2, host=host, meet=meet, patience=1)
        lines = capfd.readouterr().err.splitlines()
        assert lines == [f"accelviz: launch: waiting for {says}, 1 s at most"]


def test_hosts_that_disagree_are_told_so(program):
    def other(about):
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            try:
                with socket.create_connection(("127.0.0.1", port)) as line:
                    line.sendall(b"nonsense\n" if about is None else json.dumps(about).encode())
                    line.sendall(b"\n")
                    line.settimeout(SECONDS)
                    assert line.recv(1) == b""  # host 0 ends it
                return
            except OSError:
                time.sleep(0.05)

    for about, says in (
        ({"host": 1, "hosts": 2, "gpus": 3}, "different numbers of hosts or GPUs"),
        ({"host": 0, "hosts": 2, "gpus": 1}, "two hosts say that they are host 0"),
        (None, "host 1 did not come within 1 s"),
    ):
        port = free_port()
        caller = threading.Thread(target=other, args=(about,))
        caller.start()
        with pytest.raises(DeviceUnavailable, match=says):
            launch(program.command, [0], hosts=2, meet=f"127.0.0.1:{port}", patience=1)
        caller.join()
    assert not program.told()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["-n", "two", "a.py"], "devices: got 'two'"),
        (["-n", "0", "a.py"], "no program or no GPU"),
        (["-n", "2"], "no program or no GPU"),
        (["-n", "2", "--hosts", "0", "a.py"], "hosts: got 0"),
        (["-n", "2", "--hosts", "2", "a.py"], "meet: not given"),
        (["-n", "2", "--hosts", "2", "--host", "2", "--meet", "a:1", "a.py"], "host: got 2"),
        (["-n", "2", "--hosts", "2", "--meet", "here", "a.py"], "meet: got 'here'"),
    ],
)
def test_bad_input_is_refused(given, says, capsys):
    assert main(["launch", *given]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"command": "a.py"}, "command: got a str.*list of words"),
        ({"gpus": None}, "gpus: got a NoneType"),
        ({"gpus": [-1]}, "gpus: got -1"),
        ({"patience": float("nan")}, "patience: got nan"),
        ({"meet": 29500, "hosts": 2}, "meet: got 29500.*name:port"),
        ({"meet": "", "hosts": 2}, "meet: got ''.*name:port"),
    ],
)
def test_wrong_types_are_refused(given, says):
    with pytest.raises(ArgumentError, match=says):
        launch(**{"command": ["a.py"], "gpus": [0], **given})


def test_a_port_that_is_taken_is_refused():
    with socket.create_server(("", 0)) as server:
        meet = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ArgumentError, match="meet: port .* in use"):
            launch(["a.py"], [0], hosts=2, meet=meet)


def test_without_launch_or_a_gpu_there_is_no_symmetric_memory(monkeypatch):
    with pytest.raises(DeviceUnavailable, match="one process alone.*accelviz launch"):
        Symmetric()
    about = {"rank": 0, "size": 2, "gpu": 99, "devices_a_host": 2, "meet": "127.0.0.1:1"}
    monkeypatch.setenv(VARIABLE, json.dumps(about))
    with pytest.raises(DeviceUnavailable, match="process 0 is to have GPU 99"):
        Symmetric()


@pytest.mark.sample(5)
@pytest.mark.parametrize(("size", "a_host"), [(2, 2), (3, 3), (3, 1), (3, 2), (2, 1)])
def test_processes_multiply_in_memory_that_they_share(size, a_host, tmp_path, capfd):
    """With pretended GPUs and a pretended NVSHMEM; see tests/symmetric_on_host.py."""
    gpus = ",".join(map(str, range(size)))
    command = ["-m", "tests.symmetric_on_host", "products", str(tmp_path), str(a_host)]
    assert main(["launch", "-n", gpus, *command]) == 0
    said = capfd.readouterr().out
    assert all(f"process {rank} is right" in said for rank in range(size))


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("gpus", "missing", "how"),
    [
        ("0,1,2", "", "by NCCL 2.28.9"),
        ("0,1,0", "", "on the host, as a GPU plays several devices, which NCCL refuses"),
        ("0,1", "1", "on the host, as NCCL is not installed"),
    ],
)
def test_processes_add_up_by_nccl_or_on_the_host(gpus, missing, how, tmp_path, capfd):
    """All of them in one way; with a pretended NCCL, see tests/symmetric_on_host.py."""
    command = ["-m", "tests.symmetric_on_host", "summed", str(tmp_path), missing]
    assert main(["launch", "-n", gpus, *command]) == 0
    said = capfd.readouterr().out
    assert all(f"process {rank}: {how}" in said for rank in range(len(gpus.split(","))))


@pytest.mark.gpu
@pytest.mark.skipif(find_spec("nvshmem") is None, reason="accelviz[nvshmem] is not installed")
@pytest.mark.parametrize("shared", [True, False])
def test_processes_train_on_gpus(shared, capfd):
    """On two, which add up by NCCL; and on one that plays two, which cannot."""
    there = usable_gpus()
    if not shared and (len(there) < 2 or not import_nccl().available):
        pytest.skip("fewer than two GPUs, or no NCCL")
    gpus = f"{there[0]},{there[0 if shared else 1]}"
    assert main(["launch", "-n", gpus, "-m", "tests.symmetric_on_host", "trained"]) == 0
    how = "on the host" if shared else "by NCCL"
    said = capfd.readouterr().out
    assert all(f"process {rank}: {how}" in said for rank in (0, 1))


@pytest.mark.gpu
@pytest.mark.skipif(find_spec("nvshmem") is None, reason="accelviz[nvshmem] is not installed")
@pytest.mark.parametrize("a_host", [2, 1])
def test_processes_multiply_on_gpus(a_host, capfd):
    """On two; a single one plays both."""
    there = usable_gpus()
    gpus = f"{there[0]},{there[1 % len(there)]}"
    command = ["-m", "tests.symmetric_on_host", "products", "", str(a_host)]
    assert main(["launch", "-n", gpus, *command]) == 0
    said = capfd.readouterr().out
    assert "process 0 is right" in said
    assert "process 1 is right" in said


def test_a_process_killed_in_the_middle_of_a_run_ends_all(tmp_path, capfd):
    command = ["-m", "tests.symmetric_on_host", "killed", str(tmp_path)]
    assert main(["launch", "-n", "2", *command]) == 2
    assert "process 1 (GPU 1) was ended by signal 9 (SIGKILL)" in capfd.readouterr().err
