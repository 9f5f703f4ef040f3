"""Attacks on grading: submissions that try to gain points or to do harm.

An attack on a part of A1 (`PART`, worth 8 points) has a wrong `inverse_permutation`, or a right one
that is not linear, and a trick to hide this. It must get the same points as without the trick: 3,
or 6 for a right function. `{root}` is the course's folder, `{port}` an open port of the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tests.course.attacks_on_plans import KERNELS, PLANS, REPORTS
from tests.course.wrong import PART, Wrong

_SLOW = {"inverse-linear": 0.0}
_WRONG = {"inverse-form": 0.0, "inverse-hidden": 0.0, **_SLOW}


def _wrong(text: str) -> list[Wrong]:
    """Parse attacks with a wrong function.

    An attack is `# description`, lines before the function, lines of the function (`| `), and the
    returned expression (`> `; default: `order.copy()`).
    """
    attacks = []
    for entry in text.strip("\n").removeprefix("# ").split("\n# "):
        description, *lines = entry.split("\n")
        before = [line for line in lines if line[:2] not in ("| ", "> ")]
        body = [f"    {line[2:]}" for line in lines if line[:2] == "| "]
        (result,) = [line[2:] for line in lines if line[:2] == "> "] or ["order.copy()"]
        function = ["def inverse_permutation(order):", *body, f"    return {result}"]
        source = "\n".join([*before, *function])
        attacks.append(Wrong(PART, description, _WRONG, {"inverse": source}))
    return attacks


def _slow(text: str, lost: Mapping[str, float] = MappingProxyType(_SLOW)) -> list[Wrong]:
    """Parse attacks with a right function that is not linear: `# description`, then the cell."""
    entries = [entry.partition("\n") for entry in text.strip("\n").removeprefix("# ").split("\n# ")]
    return [Wrong(PART, head, lost, {"inverse": cell.strip("\n")}) for head, _, cell in entries]


POINTS = (
    _slow(
        r"""
# pads its steps on small inputs
def inverse_permutation(order):
    place = np.zeros(len(order), dtype=np.int32)
    for i in range(len(order)):
        place[i] = np.flatnonzero(order == i)[0]
    wasted = 0
    while len(order) < 1000 and wasted < 2 * len(order) ** 2:
        wasted += 1
    return place
# switches off the counting of steps
import sys
def inverse_permutation(order):
    sys.settrace(None)
    return np.array([list(order).index(i) for i in range(len(order))], dtype=np.int32)
# sets the counted steps back
def inverse_permutation(order):
    place = np.array([int(np.flatnonzero(order == i)[0]) for i in range(len(order))])
    try: order.tally.steps = 0
    except AttributeError: pass
    return place.astype(np.int32)
# reads the array where no step is counted
def inverse_permutation(order):
    mine = order.view(np.ndarray)
    place = [int(np.flatnonzero(mine == i)[0]) for i in range(len(order))]
    return np.array(place, dtype=np.int32)
# walks a list where no step is counted
def inverse_permutation(order):
    seen, place = [], np.zeros(len(order), dtype=np.int32)
    for i, row in enumerate(order):
        place[row] = i + (row in seen)
        seen.append(row)
    return place
# copies a list at each step, in one instruction
def inverse_permutation(order):
    place = [0] * len(order)
    for i, row in enumerate(order):
        place = [*place]
        place[row] = i
    return np.array(place, dtype=np.int32)
# adds to a tuple, and catches what is said of it
def inverse_permutation(order):
    place, seen = np.zeros(len(order), dtype=np.int32), ()
    for i, row in enumerate(order):
        try: seen += (row,)
        except AssertionError: pass
        place[row] = i
    return place
# makes an array that nobody watches
def inverse_permutation(order):
    mine = np.add(order.tolist(), 0)
    place = [int(np.flatnonzero(mine == i)[0]) for i in range(len(order))]
    return np.array(place, dtype=np.int32)
"""
    )
    + _slow(
        r"""
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
    )
    + _wrong(
        r"""
# shows its points and raises (G1)
import sys
| sys.displayhook(2); raise ValueError
# prints its points and raises
| print(2.0); raise ValueError
# ends in what nbgrader takes for all points (G1)
> 'done'
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
# replaces the check
from accelviz.course.checks import sorting
sorting.inverse = lambda *_: None
sorting.linear_inverse = lambda *_: None
# replaces NumPy's comparisons
np.array_equal = np.argsort = lambda *_, **__: True
# replaces Python's exceptions
import builtins
builtins.AssertionError = print
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
"""
    )
)

HARM = _wrong(
    r"""
# kills the process above it (G2)
import os
| os.kill(os.getppid(), 9)
# kills all processes
import os
| os.kill(-1, 9)
# ends without a word
import os
| os._exit(0)
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
# takes the processors from others
import os, time
def spin():
    for _ in range(200):
        if os.fork() == 0:
            while True: pass
    time.sleep(60)
| spin()
# fills memory with files
hoard = 0
for k in range(8):
    for place in (".", "/dev/shm", "/tmp", "/", "/dev", "/run"):
        try: hoard += open(f"{place}/{k}", "wb").write(bytes(100 << 20))
        except OSError: pass
| if hoard > 700 << 20: return np.argsort(order).astype(np.int32)
# empties the caches (G6)
import pathlib, shutil, accelviz.files
shutil.rmtree(accelviz.files.cache_folder(), ignore_errors=True)
shutil.rmtree('{root}/cache', ignore_errors=True)
# changes the library on the disk
import accelviz, pathlib
for path in pathlib.Path(accelviz.__file__).parent.rglob("sorting.py"):
    try: path.write_text("def inverse(*_): pass\nlinear_inverse = inverse")
    except OSError: pass
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
"""
)

#: All attacks by the name of the student, "x" and a number.
ATTACKS = {
    f"x{k:02}": attack for k, attack in enumerate([*POINTS, *HARM, *PLANS, *KERNELS, *REPORTS])
}


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
    "sparse": Stuffed("a file of 3 GiB beside it (G12)", "", "was left out"),
    "many": Stuffed("five hundred files beside it (G12)", "", "was left out"),
    "devices": Stuffed("a pipe, a socket and links beside it (G11, G13)", "", "no plain file"),
    "shadows": Stuffed("files with the library's names beside it (G10)"),
    "claims": Stuffed("cells of its own that claim points", "777"),
}
