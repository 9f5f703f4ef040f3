"""Blocks of a launch on several processor cores: results and findings are those of one core."""

import io
import os
import re
import sys

import numpy as np
import pytest

from accelviz.emulator import emulate, process
from accelviz.errors import KernelError
from tests.compilers import needs_compiler

pytestmark = [
    needs_compiler,
    pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes on Linux only"),
    pytest.mark.filterwarnings("ignore:.*several threads store the same value"),
]

#: A block takes milliseconds: after a few of them the others run on all cores.
BUSY = """
__device__ int count;
__global__ void busy(const float *X, float *Y, int *shared, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = X[i];
    float sum = 0;
    int x;
    for (int k = 0; k < 400; ++k) {
        __syncthreads();
        sum += s[(t + k) % 64];
    }
    Y[i] = sum;
    AT_THE_END;
}
"""
N = 60


def run(end, cores):
    """Run with AT_THE_END on a number of cores; return (outputs, message, lines of the notes)."""
    allowed = os.sched_getaffinity(0)
    X = np.random.default_rng(0).integers(-9, 10, 64 * N).astype(np.float32)
    arrays = {"X": X, "Y": np.zeros(64 * N, np.float32), "shared": np.zeros(64 * N, np.int32)}
    message, notes = "", []
    try:
        os.sched_setaffinity(0, sorted(allowed)[:cores])
        outputs = emulate(BUSY, N, 64, *arrays.values(), N * 64, defines={"AT_THE_END": end})
        notes = [note.argument for note in outputs.notes]
    except KernelError as error:
        message = str(error)
    finally:
        os.sched_setaffinity(0, allowed)
    return arrays, message, notes


RIGHT = {
    "nothing": "",
    "own elements": "shared[i] = blockIdx.x",
    "bytes of one word": "if (t < 2) ((char *)shared)[2 * blockIdx.x + t] = t + 1",
    "atomics": "atomicAdd(shared, int(sum))",
    "order of atomics": "if (t == 0) shared[1 + atomicAdd(shared, 1)] = blockIdx.x",
    "same value": "shared[7] = 1",
    "device variable": "if (t == 0 && atomicAdd(&count, 1) == 50) shared[1] = blockIdx.x",
    "clock": "if (t == 0) shared[blockIdx.x] = int(clock64())",
}
WRONG = {
    "past the end": (r"thread 3 of block 41 writes Y\[3840\]", "if (i == 41 * 64 + 3) Y[n] = 1"),
    "race": ("a race: thread 5 of block 33 writes", "if (t == 5) shared[blockIdx.x % 33] = i"),
    "read": (
        "a race: thread 9 of block 40 reads",
        "if (t == 9) shared[i] = blockIdx.x == 40 ? shared[9 + 64 * 30] : 1",
    ),
    "written variable": ("a race: thread 0 of block 1 ", "if (t == 0) count = blockIdx.x"),
    "exit": ("exit", "if (i == 3000) exit(0)"),
    "undefined": ("local variable that nothing", "if (i < 0) x = 1; shared[i] = x"),
}


@pytest.mark.long
@pytest.mark.parametrize("end", RIGHT.values(), ids=RIGHT)
def test_results_are_those_of_one_core(end):
    several, one = run(end, 4), run(end, 1)
    assert (several[1], several[2]) == (one[1], one[2]) == ("", one[2])
    assert bool(one[2]) == (end == RIGHT["same value"])
    for name, array in one[0].items():
        np.testing.assert_array_equal(several[0][name], array)


@pytest.mark.sample(3)
@pytest.mark.parametrize(("message", "end"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_that_of_one_core(message, end):
    several, one = run(end, 4), run(end, 1)
    assert several[1] == one[1]
    assert re.search(message, one[1]), one[1]


def test_what_a_kernel_prints_is_in_order(capfd):
    printed = []
    for cores in (4, 1):
        run('if (t == 0) printf("%d\\n", blockIdx.x)', cores)
        printed.append(capfd.readouterr().out)
    assert printed[0] == printed[1] == "".join(f"{block}\n" for block in range(N))


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self):
        return True


@pytest.mark.parametrize("cores", [1, 4])
def test_a_terminal_shows_how_many_blocks_have_run(monkeypatch, cores):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(process, "_PATIENCE", 0)
    run("", cores)
    assert f"/{N} [" in terminal.getvalue()
    monkeypatch.setattr("sys.stderr", io.StringIO())
    run("", cores)
    assert not sys.stderr.getvalue()
