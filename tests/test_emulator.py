"""The emulator runs CUDA as it is meant, and finds planted mistakes."""

import dataclasses
import platform
import re
from pathlib import Path

import numpy as np
import pytest

import accelviz
from accelviz.devices import emulate, find_device
from accelviz.devices.emulator import EmulatorDevice, on_host
from accelviz.emulator import build, compiler
from accelviz.errors import ArgumentError, DeviceUnavailable, KernelError
from accelviz.measure import features
from tests.compilers import needs_compiler
from tests.graphs import MADE

pytestmark = needs_compiler


def run(code, n=64, grid=1, warps=2, dynamic=0, seed=0, cleared=False):
    """Run a kernel `k(const float *X, float *Y, int n)` on X = 0, 1, 2, ...; Y is NaN, or 0."""
    X = np.arange(n, dtype=np.float32)
    Y = np.zeros(n, np.float32) if cleared else np.full(n, np.nan, np.float32)
    options = {"shared_bytes": dynamic, "unwritten": () if cleared else ("Y",), "seed": seed}
    emulate('#include "common.cuh"\n' + code, grid, 32 * warps, X, Y, n, **options)
    return Y


HEAD = 'extern "C" __global__ void k(const float *X, float *Y, int n) {\n'
INDEX = "    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"


def test_scratch_is_zero_before_each_launch_and_has_to_be_left_so():
    plan = accelviz.plan(MADE["hub"](), "lane_groups", 3, group_nzs=2, block_threads=32)
    assert plan.parameters["block_threads"] == 32
    X = features(plan.pattern.shape[1], 3)
    ready = find_device("emulator").prepare(plan)
    np.testing.assert_array_equal(*(ready.run({"X": X})["Y"] for _ in range(2)))
    source = plan.kernel.source()
    reset = "if (!is_last_block(is_last, arrived, block.parts)) return;"
    assert reset in source
    code = source.replace(reset, f"{reset} if (threadIdx.x == 0) *arrived = 1u;")
    call = dataclasses.replace(plan.calls[0], kernel=dataclasses.replace(plan.kernel, code=code))
    dirty = dataclasses.replace(plan, calls=(call,))
    with pytest.raises(
        KernelError, match="leaves 'arrivals' of the zeroed workspace other than zero"
    ):
        find_device("emulator").prepare(dirty).run({"X": X})


def test_indices_and_guards():
    code = HEAD + INDEX + "    if (i < n) Y[i] = X[i] + 1.0f;\n}"
    Y = run(code, n=100, grid=2)
    np.testing.assert_array_equal(Y, np.arange(100) + 1)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_barriers_and_shared_memory(seed):
    code = (
        HEAD
        + """
    __shared__ float tile[64];
    tile[threadIdx.x] = X[threadIdx.x];
    __syncthreads();
    Y[threadIdx.x] = tile[63 - threadIdx.x];
}"""
    )
    np.testing.assert_array_equal(run(code, seed=seed), np.arange(64)[::-1])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_shared_vectors_need_no_initialisation(seed):
    # g++ once put a guard before such an array, where one thread waited for another for ever.
    code = (
        HEAD
        + """
    __shared__ int4 tile[37];
    __shared__ float2 pairs[64];
    int2 *memory = reinterpret_cast<int2 *>(tile);
    memory[threadIdx.x] = make_int2(threadIdx.x, 1);
    pairs[threadIdx.x] = make_float2(X[threadIdx.x], 2.0f);
    __syncthreads();
    const int2 other = memory[63 - threadIdx.x];
    Y[threadIdx.x] = pairs[other.x].x + other.y * pairs[other.x].y;
}"""
    )
    np.testing.assert_array_equal(run(code, seed=seed), np.arange(64)[::-1] + 2)


@pytest.mark.parametrize("seed", [0, 5])
def test_dynamic_shared_memory_and_loops_around_barriers(seed):
    code = (
        HEAD
        + """
    DYNAMIC_SHARED(float, sums);
    sums[threadIdx.x] = X[threadIdx.x];
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) Y[0] = sums[0];
}"""
    )
    assert run(code, dynamic=64 * 4, seed=seed)[0] == 63 * 64 / 2


@pytest.mark.parametrize("seed", [0, 3])
def test_shuffles_and_votes(seed):
    code = (
        HEAD
        + """
    const unsigned all = 0xffffffffu;
    const int lane = threadIdx.x % 32;
    float sum = X[threadIdx.x];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(all, sum, step);
    const float first = __shfl_sync(all, X[threadIdx.x], 3);
    const float up = __shfl_up_sync(all, X[threadIdx.x], 1);
    const float down = __shfl_down_sync(all, X[threadIdx.x], 2, 8);
    const unsigned odd = __ballot_sync(all, lane % 2);
    const int any = __any_sync(all, lane == 7), every = __all_sync(all, lane < 31);
    Y[threadIdx.x] = sum + 1000.0f * first + 100000.0f * (up - down) + any - every + __popc(odd);
}"""
    )
    x = np.arange(64, dtype=np.float64).reshape(2, 32)
    lane = np.arange(32)
    up = x[:, np.maximum(lane - 1, 0)]
    down = x[:, np.where(lane % 8 < 6, np.minimum(lane + 2, 31), lane)]
    expected = x.sum(1, keepdims=True) + 1000 * x[:, 3:4] + 1e5 * (up - down) + 1 - 0 + 16
    np.testing.assert_allclose(run(code, seed=seed), expected.ravel())


def test_part_of_a_warp_exchanges_among_itself():
    code = (
        HEAD
        + """
    if (threadIdx.x < 8) Y[threadIdx.x] = __shfl_sync(0xff, X[threadIdx.x], 7 - threadIdx.x);
    else Y[threadIdx.x] = 0.0f;
}"""
    )
    np.testing.assert_array_equal(run(code, warps=1, n=32)[:8], np.arange(8)[::-1])


def test_atomics_and_vectors():
    code = (
        HEAD
        + """
    const float4 v = reinterpret_cast<const float4 *>(X)[threadIdx.x % 16];
    atomicAdd(&Y[0], v.x);
    atomicMax(reinterpret_cast<int *>(&Y[1]), int(threadIdx.x));
    float4 *out = reinterpret_cast<float4 *>(Y) + 1;
    if (threadIdx.x < 15) out[threadIdx.x] = make_float4(v.w, v.z, v.y, v.x);
}"""
    )
    with pytest.raises(KernelError, match=r"kernel.cu:5: .*nothing has written"):
        run(code)
    Y = run(code, cleared=True)
    assert Y[0] == 4 * np.arange(0, 64, 4).sum()
    assert Y[1].view(np.int32) == 63
    np.testing.assert_array_equal(Y[4:], np.arange(60).reshape(15, 4)[:, ::-1].ravel())


PLANTED = {
    "load past the end": (
        "    Y[i] = X[i + 1];\n}",
        {},
        r"kernel.cu:4: out of bounds: thread 63 of block 0 reads X\[64\], 4 bytes past its end",
    ),
    "load far past the end": (
        "    Y[i] = X[i + 4000];\n}",
        {},
        r":4: out of bounds: thread 0 of block 0 reads X\[4000\], 15748 bytes past its end",
    ),
    "store before the beginning": (
        "    Y[i - 1] = X[i];\n}",
        {},
        r":4: out of bounds: thread 0 of block 0 writes Y\[-1\], 4 bytes before its beginning",
    ),
    "shared out of bounds": (
        "    __shared__ float tile[60];\n    tile[i] = X[i];\n    __syncthreads();\n"
        "    Y[i] = tile[i];\n}",
        {},
        r":5: out of bounds: thread 60 of block 0 uses index 60 of float\[60\]",
    ),
    "dynamic shared out of bounds": (
        "    DYNAMIC_SHARED(float, tile);\n    tile[i] = X[i];\n    Y[i] = tile[i];\n}",
        {"dynamic": 240},
        r":5: out of bounds: thread 60 of block 0 writes dynamic shared memory\[60\]",
    ),
    "write to an input": (
        "    const_cast<float *>(X)[i] = 1.0f;\n    Y[i] = 0.0f;\n}",
        {},
        r":4: thread 0 of block 0 writes X\[0\] .*which is an input",
    ),
    "misaligned vector": (
        "    const float4 v = *reinterpret_cast<const float4 *>(X + 1);\n    Y[i] = v.x;\n}",
        {},
        r":4: misaligned: thread 0 of block 0 reads X\[1\].*multiple of the access's 16 bytes",
    ),
    "unwritten shared memory": (
        "    __shared__ float tile[64];\n    Y[i] = tile[i];\n}",
        {},
        r":5: thread 0 of block 0 reads tile\[0\] .*nothing has written before",
    ),
    "shared memory of the last block": (
        "    __shared__ float tile[64];\n    if (blockIdx.x == 0) tile[threadIdx.x] = 1.0f;\n"
        "    Y[i] = tile[threadIdx.x];\n}",
        {"grid": 2, "n": 128},
        r":6: thread 0 of block 1 reads tile\[0\] .*nothing has written",
    ),
    "output that was not cleared": (
        "    Y[i] += X[i];\n}",
        {},
        r":4: thread 0 of block 0 reads Y\[0\] .*nothing has written before.*or clear it",
    ),
    "missing barrier": (
        "    __shared__ float tile[64];\n    tile[i] = X[i];\n    Y[i] = tile[63 - i];\n}",
        {},
        r":6: (a race: thread \d+ of block 0 reads tile.*at kernel.cu:5|thread 0 .* nothing has)",
    ),
    "missing second barrier": (
        "    __shared__ float tile[64];\n    tile[i] = X[i];\n    __syncthreads();\n"
        "    Y[i] = tile[63 - i];\n    tile[i] = 0.0f;\n}",
        {},
        r":[78]: a race: thread \d+ of block 0 (reads|writes) tile.*at kernel.cu:[78]",
    ),
    "two threads write one element": (
        "    Y[i / 2] = X[i];\n}",
        {},
        r":4: a race: thread 1 of block 0 writes Y\[0\].*thread 0 of block 0 writes it at "
        r"kernel.cu:4; nothing says which comes first",
    ),
    "two blocks write one element": (
        "    Y[threadIdx.x] = X[threadIdx.x];\n}",
        {"grid": 2},
        r"a race: thread 0 of block 1 writes Y\[0\].*thread 0 of block 0 writes it",
    ),
    "one block stores where another adds": (
        "    if (blockIdx.x == 0) Y[threadIdx.x] = 0.0f;\n"
        "    else atomicAdd(&Y[threadIdx.x], X[threadIdx.x]);\n}",
        {"grid": 2},
        r":5: a race: thread 0 of block 1 updates atomically Y\[0\].*at kernel.cu:4",
    ),
    "atomics of a block's scope from two blocks": (
        "    atomicAdd_block(&Y[0], X[i]);\n}",
        {"grid": 2, "warps": 1, "cleared": True},
        r":4: a race: thread 0 of block 1 updates atomically Y\[0\].*0 updates it atomically",
    ),
    "barrier in a branch": (
        "    if (threadIdx.x < 40) __syncthreads();\n    Y[i] = X[i];\n}",
        {},
        r":4: a barrier that not all threads reach: thread 0 of block 0 waits for ever, thread 63 "
        r"of block 0 went past it .40 threads wait there, 24 have left",
    ),
    "different barriers": (
        "    if (threadIdx.x < 32) __syncthreads();\n    else __syncthreads();\n"
        "    Y[i] = 1.0f;\n}",
        {},
        r":4: threads of a block wait at different barriers: thread 0 of block 0 here, thread 32 "
        r"of block 0 at kernel.cu:5",
    ),
    "shuffle in a branch": (
        "    float x = X[i];\n    if (threadIdx.x % 32 < 20) x = __shfl_sync(0xffffffffu, x, 0);\n"
        "    Y[i] = x;\n}",
        {},
        r":5: a warp-wide exchange or __syncwarp that not all lanes of its mask reach: thread 0 of "
        r"block 0 waits for ever, and thread \d+ of block 0 does not come",
    ),
    "shuffle from outside the mask": (
        "    if (threadIdx.x < 8) Y[i] = __shfl_sync(0xff, X[i], 9);\n}",
        {},
        r":4: thread \d of block 0 .*outside the mask",
    ),
    **(
        {
            "division by zero": (
                "    Y[i] = 7 / (int(threadIdx.x) - 5);\n}",
                {},
                r":4: thread 5 of block 0 divides an integer by zero",
            )
        }
        if platform.machine().lower() in ("x86_64", "amd64")  # others do not trap
        else {}
    ),
    "trap": ("    if (i == 7) __trap();\n    Y[i] = 0.0f;\n}", {}, r":4: thread 7 .*__trap"),
}


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize("name", PLANTED)
def test_finds(name, seed):
    body, options, says = PLANTED[name]
    with pytest.raises(KernelError) as caught:
        run(HEAD + INDEX + body, seed=seed, **options)
    message = str(caught.value)
    assert message.startswith("k, kernel.cu:")
    if seed == 0:
        assert re.search(says, message), message


def test_without_a_compiler_there_is_one_clear_sentence(monkeypatch):
    graph = accelviz.load_graph("cora")
    monkeypatch.setattr(compiler, "_candidates", lambda: [["no-such-compiler"]])
    build.find_compiler.cache_clear()
    try:
        reason = find_device("emulator").unavailable_reason()
        assert "install one (such as g++), name it in $CXX" in reason
        with pytest.raises(DeviceUnavailable, match="no C\\+\\+ compiler was found"):
            accelviz.spmm(graph, np.ones((2708, 1)), device="emulator")
    finally:
        build.find_compiler.cache_clear()


def test_a_kernel_that_does_not_compile_shows_the_line_and_the_compiler_s_words():
    with pytest.raises(
        KernelError, match=r"kernel.cu:3: it does not compile for the emulator: .*nonsense"
    ):
        run(HEAD + "    nonsense;\n}")


def test_a_compilation_is_used_again(monkeypatch, tmp_path):
    monkeypatch.setenv("ACCELVIZ_CACHE", str(tmp_path))
    kernel = on_host(accelviz.plan("cora").kernel)
    path = build.build(kernel)
    inode = path.stat().st_ino
    assert build.build(kernel) == path
    assert path.stat().st_ino == inode
    assert build.build(dataclasses.replace(kernel, source=kernel.source + "// changed")) != path
    libraries = (tmp_path / "emulator").glob("*.so")
    assert len([library for library in libraries if ".twin" not in library.name]) == 2


def test_the_documentation_s_code_does_what_it_says():
    text = (Path(__file__).parents[1] / "docs" / "emulator.md").read_text("utf-8")
    own, mistake, traffic = re.findall(r"```python\n(.*?)```", text, re.S)
    names = {}
    exec(own, names)
    assert names["sums"].tolist() == [*range(1, 101)]
    assert own.rstrip().endswith(f"# {names['sums'][99]}")
    said = re.search(r"KernelError: (.*?)\n\n", text, re.S)[1]
    with pytest.raises(KernelError) as caught:
        exec(mistake, {})
    assert str(caught.value) == " ".join(said.split())
    names = {}
    exec(traffic, names)
    assert len(names["traced"])


def test_a_result_too_large_to_check_is_refused(monkeypatch):
    from accelviz.devices import emulator as executor

    monkeypatch.setattr(executor, "MAX_ELEMENTS", 2707)
    X = np.ones((2708, 1), np.float32)
    with pytest.raises(ArgumentError, match="a result of 2,708 elements.*device='cpu'"):
        accelviz.spmm("cora", X, device="emulator")
    plan = accelviz.plan("cora", n_cols=1)
    unchecked = EmulatorDevice(checked=False).prepare(plan)
    np.testing.assert_array_equal(unchecked.run({"X": X})["Y"][:, 0], plan.pattern.degrees)
