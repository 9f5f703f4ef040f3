"""The emulator runs CUDA correctly and reports planted mistakes."""

import contextlib
import dataclasses
import os
import platform
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import accelviz
from accelviz.devices import emulate, find_device
from accelviz.devices.emulator import EmulatorDevice, as_kernel
from accelviz.emulator import build
from accelviz.errors import ArgumentError, DeviceUnavailable, KernelError
from accelviz.measure import features
from tests.compilers import needs_compiler
from tests.graphs import MADE
from tests.kernels import source

pytestmark = needs_compiler


def launch(code, n=64, grid=1, warps=2, dynamic=0, seed=0, cleared=False, kernel="k"):
    """Run a kernel `(const float *X, float *Y, int n)` on X = 0, 1, 2, ...; Y is NaN or 0."""
    X = np.arange(n, dtype=np.float32)
    Y = np.zeros(n, np.float32) if cleared else np.full(n, np.nan, np.float32)
    options = {"shared_bytes": dynamic, "unwritten": () if cleared else ("Y",), "seed": seed}
    emulate(code, grid, 32 * warps, X, Y, n, kernel=kernel, **options)
    return Y


def run(body, **options):
    """Run statements of a thread i in a kernel; they begin in line 4."""
    code = f"""#include "common.cuh"
extern "C" __global__ void k(const float *X, float *Y, int n) {{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
{body.strip()}
}}"""
    return launch(code, **options)


def test_scratch_is_zero_before_each_launch_and_has_to_be_left_so():
    plan = accelviz.plan(MADE["hub"](), "lane_groups", 3, group_nzs=2, block_threads=32)
    assert plan.parameters["block_threads"] == 32
    X = features(plan.pattern.shape[1], 3)
    ready = find_device("emulator").prepare(plan)
    np.testing.assert_array_equal(*(ready.run({"X": X})["Y"] for _ in range(2)))
    text = plan.kernel.source()
    reset = "if (!is_last_block(is_last, arrived, block.parts)) return;"
    assert reset in text
    code = text.replace(reset, f"{reset} if (threadIdx.x == 0) *arrived = 1u;")
    call = dataclasses.replace(plan.calls[0], kernel=dataclasses.replace(plan.kernel, code=code))
    dirty = dataclasses.replace(plan, calls=(call,))
    with pytest.raises(KernelError, match="leaves 'arrivals' of the zeroed workspace other than"):
        find_device("emulator").prepare(dirty).run({"X": X})


def shuffled():
    """Return Y of the kernel `shuffles`."""
    x, lane = np.arange(64.0).reshape(2, 32), np.arange(32)
    up = x[:, np.maximum(lane - 1, 0)]
    down = x[:, np.where(lane % 8 < 6, np.minimum(lane + 2, 31), lane)]
    return (x.sum(1, keepdims=True) + 1000 * x[:, 3:4] + 1e5 * (up - down) + 1 - 0 + 16).ravel()


#: Kernels of right.cu: the first elements of Y, and the arguments of `launch`.
RIGHT = {
    "guards": (np.arange(100) + 1, {"n": 100, "grid": 2}),
    "barriers": (np.arange(64)[::-1], {}),
    "shared_vectors": (np.arange(64)[::-1] + 2, {}),
    "dynamic_shared": ([63 * 64 / 2], {"dynamic": 64 * 4}),
    "shuffles": (shuffled(), {}),
    "part_of_a_warp": (np.arange(8)[::-1], {"warps": 1, "n": 32}),
}


@pytest.mark.filterwarnings("ignore:.*never written")
@pytest.mark.parametrize("seed", [0, 1, 3])
@pytest.mark.parametrize("name", RIGHT)
def test_runs_in_every_order(name, seed):
    expected, options = RIGHT[name]
    Y = launch(source("right"), kernel=name, seed=seed, **options)
    np.testing.assert_allclose(Y[: len(expected)], expected)


def test_atomics_and_vectors():
    body = """
    const float4 v = reinterpret_cast<const float4 *>(X)[threadIdx.x % 16];
    atomicAdd(&Y[0], v.x);
    atomicMax(reinterpret_cast<int *>(&Y[1]), int(threadIdx.x));
    float4 *out = reinterpret_cast<float4 *>(Y) + 1;
    if (threadIdx.x < 15) out[threadIdx.x] = make_float4(v.w, v.z, v.y, v.x);"""
    with pytest.raises(KernelError, match=r"kernel.cu:5: .*nothing has written"):
        run(body)
    Y = run(body, cleared=True)
    assert Y[0] == 4 * np.arange(0, 64, 4).sum()
    assert Y[1].view(np.int32) == 63
    np.testing.assert_array_equal(Y[4:], np.arange(60).reshape(15, 4)[:, ::-1].ravel())


#: Mistakes: statements of a kernel, words of the report, and the arguments of `run`.
PLANTED = {
    "load past the end": (
        "Y[i] = X[i + 1];",
        r"kernel.cu:4: out of bounds: thread 63 of block 0 reads X\[64\], 4 bytes past its end",
    ),
    "load far past the end": (
        "Y[i] = X[i + 4000];",
        r":4: out of bounds: thread 0 of block 0 reads X\[4000\], 15748 bytes past its end",
    ),
    "store before the beginning": (
        "Y[i - 1] = X[i];",
        r":4: out of bounds: thread 0 of block 0 writes Y\[-1\], 4 bytes before its beginning",
    ),
    "shared out of bounds": (
        "__shared__ float tile[60];\ntile[i] = X[i];\n__syncthreads();\nY[i] = tile[i];",
        r":5: out of bounds: thread 60 of block 0 uses index 60 of float\[60\]",
    ),
    "dynamic shared out of bounds": (
        "DYNAMIC_SHARED(float, tile);\ntile[i] = X[i];\nY[i] = tile[i];",
        r":5: out of bounds: thread 60 of block 0 writes dynamic shared memory\[60\]",
        {"dynamic": 240},
    ),
    "write to an input": (
        "const_cast<float *>(X)[i] = 1.0f;\nY[i] = 0.0f;",
        r":4: thread 0 of block 0 writes X\[0\] .*which is an input",
    ),
    "misaligned vector": (
        "const float4 v = *reinterpret_cast<const float4 *>(X + 1);\nY[i] = v.x;",
        r":4: misaligned: thread 0 of block 0 reads X\[1\].*multiple of the access's 16 bytes",
    ),
    "unwritten shared memory": (
        "__shared__ float tile[64];\nY[i] = tile[i];",
        r":5: thread 0 of block 0 reads tile\[0\] .*nothing has written before",
    ),
    "shared memory of the last block": (
        "__shared__ float tile[64];\n"
        "if (blockIdx.x == 0) tile[threadIdx.x] = 1.0f;\n"
        "Y[i] = tile[threadIdx.x];",
        r":6: thread 0 of block 1 reads tile\[0\] .*nothing has written",
        {"grid": 2, "n": 128},
    ),
    "output that was not cleared": (
        "Y[i] += X[i];",
        r":4: thread 0 of block 0 reads Y\[0\] .*nothing has written before.*or clear it",
    ),
    "missing barrier": (
        "__shared__ float tile[64];\ntile[i] = X[i];\nY[i] = tile[63 - i];",
        r":6: (a race: thread \d+ of block 0 reads tile.*at kernel.cu:5|thread 0 .* "
        r"nothing has)",
    ),
    "missing second barrier": (
        "__shared__ float tile[64];\n"
        "tile[i] = X[i];\n"
        "__syncthreads();\n"
        "Y[i] = tile[63 - i];\n"
        "tile[i] = 0.0f;",
        r":[78]: a race: thread \d+ of block 0 (reads|writes) tile.*at kernel.cu:[78]",
    ),
    "two threads write one element": (
        "Y[i / 2] = X[i];",
        r":4: a race: thread 1 of block 0 writes Y\[0\].*thread 0 of block 0 writes it at "
        r"kernel.cu:4; nothing says which comes first",
    ),
    "two blocks write one element": (
        "Y[threadIdx.x] = X[threadIdx.x] + blockIdx.x;",
        r"a race: thread 0 of block 1 writes Y\[0\].*thread 0 of block 0 writes it",
        {"grid": 2},
    ),
    "one block stores where another adds": (
        "if (blockIdx.x == 0) Y[threadIdx.x] = 0.0f;\n"
        "else atomicAdd(&Y[threadIdx.x], X[threadIdx.x]);",
        r":5: a race: thread 0 of block 1 updates atomically Y\[0\].*at kernel.cu:4",
        {"grid": 2},
    ),
    "atomics of a block's scope from two blocks": (
        "atomicAdd_block(&Y[0], X[i]);",
        r":4: a race: thread 0 of block 1 updates atomically Y\[0\].*0 updates it atomically",
        {"grid": 2, "warps": 1, "cleared": True},
    ),
    "barrier in a branch": (
        "if (threadIdx.x < 40) __syncthreads();\nY[i] = X[i];",
        r":4: a barrier that not all threads reach: thread 0 of block 0 waits for ever, "
        r"thread 40 of block 0 went past it .40 threads wait there, 24 have left",
    ),
    "different barriers": (
        "if (threadIdx.x < 32) __syncthreads();\nelse __syncthreads();\nY[i] = 1.0f;",
        r":4: threads of a block wait at different barriers: thread 0 of block 0 here, "
        r"thread 32 of block 0 at kernel.cu:5",
    ),
    "shuffle in a branch": (
        "float x = X[i];\n"
        "if (threadIdx.x % 32 < 20) x = __shfl_sync(0xffffffffu, x, 0);\n"
        "Y[i] = x;",
        r":5: a warp-wide exchange or __syncwarp that not all lanes of its mask reach: "
        r"thread 0 of block 0 waits for ever, and thread \d+ of block 0 does not come",
    ),
    "shuffle from outside the mask": (
        "if (threadIdx.x < 8) Y[i] = __shfl_sync(0xff, X[i], 9);",
        r":4: thread \d of block 0 .*outside the mask",
    ),
    "division by zero": (
        "Y[i] = 7 / (int(threadIdx.x) - 5);",
        r":4: thread 5 of block 0 divides an integer by zero",
    ),
    "trap": ("if (i == 7) __trap();\nY[i] = 0.0f;", r":4: thread 7 .*__trap"),
}
if platform.machine().lower() not in ("x86_64", "amd64"):  # others do not trap
    del PLANTED["division by zero"]


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize("name", PLANTED)
def test_finds(name, seed):
    body, pattern, *options = PLANTED[name]
    with pytest.raises(KernelError) as caught:
        run(body, seed=seed, **(options[0] if options else {}))
    message = str(caught.value)
    assert message.startswith("k, kernel.cu:")
    if seed == 0:
        assert re.search(pattern, message), message


def test_without_a_compiler_there_is_one_clear_sentence(no_compiler):
    reason = find_device("emulator").unavailable_reason()
    assert "install one (such as g++), name it in $CXX" in reason
    with pytest.raises(DeviceUnavailable, match="no C\\+\\+ compiler was found"):
        accelviz.spmm("cora", np.ones((2708, 1)), device="emulator")


def test_a_kernel_that_does_not_compile_shows_the_line_and_the_compiler_s_words():
    with pytest.raises(KernelError, match=r"kernel.cu:4: it does not compile for .*: .*nonsense"):
        run("nonsense;")


@pytest.mark.parametrize("n", [65, 5000])
def test_more_parameters_than_an_answer_describes_are_refused(n):
    source = f"__global__ void k({', '.join(f'int a{i}' for i in range(n))}) {{}}"
    with pytest.raises(KernelError, match=f"^k: it has {n:,} parameters, more than 64"):
        accelviz.emulate(source, 1, 1, *[0] * n)


def test_a_compilation_is_used_again(monkeypatch, tmp_path):
    monkeypatch.setenv("ACCELVIZ_CACHE", str(tmp_path))
    kernel = as_kernel(accelviz.plan("cora", "accel_gcn").kernel)
    path = build.build(kernel)
    inode = path.stat().st_ino
    assert build.build(kernel) == path
    assert path.stat().st_ino == inode
    assert build.build(dataclasses.replace(kernel, source=kernel.source + "// changed")) != path
    libraries = (tmp_path / "emulator").glob("*.so")
    assert len([library for library in libraries if ".twin" not in library.name]) == 2


@pytest.mark.skipif(not shutil.which("setpriv"), reason="no setpriv, which Linux has")
def test_a_compiler_ends_with_a_python_that_is_killed(tmp_path):
    """The compiler waits for a header that is a pipe; its end closes the pipe."""
    header = tmp_path / "header.h"
    os.mkfifo(header)
    code = '#include "header.h"\n__global__ void k(int *X) { X[threadIdx.x] = 1; }'
    call = f"emulate({code!r}, 1, 1, np.zeros(1, np.int32), include={str(tmp_path)!r})"
    command = f"import numpy as np; from accelviz import emulate; {call}"
    python = subprocess.Popen([sys.executable, "-c", command])
    pipe = None
    while pipe is None:  # until the compiler opens it
        assert python.poll() is None, "there was no compilation"
        time.sleep(0.02)
        with contextlib.suppress(OSError):
            pipe = os.open(header, os.O_WRONLY | os.O_NONBLOCK)
    python.kill()
    python.wait()
    closed = select.poll()
    closed.register(pipe, select.POLLERR)
    is_closed = closed.poll(60_000)
    os.close(pipe)
    assert is_closed, "the compiler still runs"


def test_the_documentation_s_code_does_what_it_says():
    text = (Path(__file__).parents[1] / "docs" / "emulator.md").read_text("utf-8")
    example, traffic = re.findall(r"```python\n(.*?)```", text, re.S)
    names = {}
    exec(example, names)
    assert names["sums"].tolist() == [*range(1, 101)]
    assert example.rstrip().endswith(f"# {names['sums'][99]}")
    mistake = re.search(r"```cuda\n(.*?)```", text, re.S)[1]
    with pytest.raises(KernelError) as caught:
        accelviz.emulate(mistake, 1, 64, np.zeros(64, np.float32), np.zeros(64, np.float32))
    said, to_do = str(caught.value).split("kernel.cu:4: ")[1].split(" What to do: ")
    assert f"reversed.cu:4: error: reversed: {said} [unwritten]" in text
    assert f"What to do: {to_do}" in text
    names = {}
    exec(traffic, names)
    assert len(names["traced"])


def test_a_result_too_large_to_check_is_refused(monkeypatch):
    from accelviz.devices import emulator as executor

    monkeypatch.setattr(executor, "MAX_ELEMENTS", 2707)
    X = np.ones((2708, 1), np.float32)
    with pytest.raises(ArgumentError, match="a result of 2,708 elements.*device='cpu'"):
        accelviz.spmm("cora", X, device="emulator")
    plan = accelviz.plan("cora", "accel_gcn", n_cols=1)
    unchecked = EmulatorDevice(checked=False).prepare(plan)
    np.testing.assert_array_equal(unchecked.run({"X": X})["Y"][:, 0], plan.pattern.degrees)
    assert (unchecked.seconds({"X": X}, 2) > 0).all()


def test_many_arrays_lie_apart_from_the_process_without_a_limit_on_the_stack():
    """NVRTC removes the limit, and Linux then maps libraries at lower addresses."""
    resource = pytest.importorskip("resource", reason="no such limits on Windows")
    names = [f"a{number}" for number in range(64)]
    kernel = f"""extern "C" __global__ void sum({", ".join(f"float *{name}" for name in names)}) {{
        __shared__ float first;
        if (threadIdx.x == 0) first = a1[0];
        __syncthreads();
        a0[threadIdx.x] = first + {" + ".join(f"{name}[threadIdx.x]" for name in names[1:])};
    }}"""
    arrays = {name: np.full(4, number, np.float32) for number, name in enumerate(names)}
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (hard, hard))
    try:
        sums = emulate(kernel, 1, 4, *arrays.values())["a0"]
    finally:
        resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))
    assert np.array_equal(sums, np.full(4, 1 + sum(range(64))))
