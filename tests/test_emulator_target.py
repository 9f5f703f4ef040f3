"""The macros of the target that a kernel is compiled for, and code that is not compiled."""

import re
import warnings

import numpy as np
import pytest

from accelviz import emulate
from accelviz.emulator import trace_kernel
from accelviz.emulator.compiler import Compiler
from accelviz.emulator.compiler import run as run_compiler
from accelviz.emulator.target import Conditionals, target_macros
from accelviz.errors import ArgumentError, KernelError
from tests.compilers import needs_compiler
from tests.kernels import source

GUARDED = source("guarded")
NAMES = ("__CUDA_ARCH__", "__CUDACC_VER_MAJOR__", "CUDART_VERSION", "__NVCC__", "__CUDACC__")


def guarded(arch, **options):
    """Return (outputs of the kernel, the warning)."""
    with pytest.warns(UserWarning, match="not compiled for") as caught:
        outputs = emulate(GUARDED, 1, 1, np.zeros(8, np.int32), arch=arch, **options)
    assert len(caught) == 1
    assert "\n" not in str(caught[0].message)
    assert caught[0].filename == __file__
    return outputs["Y"].tolist(), str(caught[0].message)


@needs_compiler
@pytest.mark.parametrize(
    ("arch", "expected", "excluded"),
    [
        ("sm_90", [1, 900, 13, 13000, 0, 0], ("line 13", "line 19", "line 23")),
        ("sm_90a", [1, 900, 13, 13000, 1, 0], ("line 13", "line 19")),
        ("sm_75", [1, 750, 13, 13000, 0, 0], ("line 13", "line 19", "line 23")),
        ("sm_61", [2, 610, 12, 12090, 0, 0], ("line 11", "line 19", "line 23")),
    ],
)
def test_code_is_chosen_by_the_target_s_macros(arch, expected, excluded):
    for _ in range(2):  # compiled, and from the cache
        Y, message = guarded(arch)
        assert Y[:6] == expected
        assert message.startswith(f"kernel.cu: not compiled for {arch}: ")
        assert tuple(re.findall(r"lines? \d+(?: to \d+)?", message)) == excluded


@needs_compiler
def test_the_default_target_is_hopper_and_a_define_has_precedence():
    with pytest.warns(UserWarning, match=r"for sm_90: .*; arch= sets the target"):
        assert emulate(GUARDED, 1, 1, np.zeros(8, np.int32))["Y"][1] == 900
    assert guarded("sm_90", defines={"__CUDA_ARCH__": 700})[0][1] == 700
    with pytest.warns(UserWarning, match="for sm_80"):
        assert len(trace_kernel(GUARDED, 1, 1, np.zeros(8, np.int32), arch="sm_80"))


@needs_compiler
def test_lines_stay_those_of_the_source_and_what_is_not_the_target_s_is_not_mentioned():
    with pytest.warns(match="sm_90"), pytest.raises(KernelError, match=r":30: out of"):
        emulate(GUARDED, 1, 1, np.zeros(7, np.int32))
    with pytest.raises(KernelError, match=r"kernel\.cu:29: .*'missing' was not declared"):
        emulate(GUARDED.replace("__LINE__", "missing"), 1, 1, np.zeros(8, np.int32))
    code = (
        "#ifdef __CUDACC__\n#define HD __host__ __device__\n#else\n#define HD\n#endif\n"
        "#if 0\nnothing\n#if __CUDA_ARCH__ < 300\nnothing\n#endif\n#endif\n"
        "HD int one() { return 1; }\n__global__ void k(int *Y) { Y[0] = one(); }"
    )
    with warnings.catch_warnings(action="error"):
        assert emulate(code, 1, 1, np.zeros(1, np.int32))["Y"].tolist() == [1]


@needs_compiler
@pytest.mark.parametrize("header", ["vector", "algorithm", "cstdint", "stdio.h", "math.h", "mutex"])
def test_headers_of_the_host_do_not_see_the_target(header):
    code = f"#include <{header}>\n__global__ void k(int *Y) {{ Y[0] = __CUDA_ARCH__; }}"
    assert emulate(code, 1, 1, np.zeros(1, np.int32))["Y"].tolist() == [900]


@pytest.mark.parametrize("arch", ["sm_91", "sm_89a", "sm_90f", "compute_90", "sm_9", 90, None, ""])
def test_other_targets_are_refused(arch):
    with pytest.raises(ArgumentError, match=r"arch: got .*one of sm_50, .*sm_121; from sm_90"):
        emulate("__global__ void k() {}", 1, 1, arch=arch)


def test_a_target_has_the_macros_of_nvcc():
    macros = target_macros("sm_100f")
    assert [macros[name] for name in NAMES] == ["1000", "13", "13000", "1", "1"]
    assert macros["__CUDA_ARCH_FAMILY_SPECIFIC__"] == "1000"
    assert "__CUDA_ARCH_FEAT_SM100_ALL" in target_macros("sm_100a")


@pytest.mark.parametrize(
    "text", ["#if __CUDA_ARCH__\nx", "#endif\n#if __CUDA_ARCH__\n#endif", "#else\n", "// #if A\n"]
)
def test_unbalanced_directives_are_left_to_the_compiler(text):
    assert Conditionals.of(text).mark(text, "kernel.cu") == text


def test_a_compiler_that_dies_is_named(tmp_path):
    script = tmp_path / "dying"
    script.write_text("#!/bin/sh\nkill -SEGV $$\n")
    script.chmod(0o755)
    with pytest.raises(KernelError, match=r"k.cu: the compiler .*dying died \(-11\)"):
        run_compiler(Compiler((str(script),), "c++"), [], "k.cu")


HELPER = "__device__ int one() { return 1; }\n"
FINE = "__global__ void fine(int* Y) { Y[threadIdx.x] = one(); }\n"
BROKEN = [
    ("__global__ void broken(int* Y) { __shared__ int a = 2; Y[0] = a; }", "a"),
    ("__global__ void broken(int* Y) { Y[0] = absent; }", "'absent'"),
    ("__device__ int absent();\n__global__ void broken(int* Y) { Y[0] = absent() }", "';'"),
    ('__global__ void broken(int* Y) { asm volatile("wgmma.fence.sync.aligned;"); }', "wgmma"),
    (
        "__device__ int bad() { return absent; }\n__global__ void broken(int* Y) { bad(); }",
        "'absent'",
    ),
]


@needs_compiler
@pytest.mark.parametrize(("text", "reason"), BROKEN)
def test_a_kernel_runs_beside_one_that_does_not_compile(text, reason):
    source = f"{HELPER}{FINE}{text}\n"
    for _ in range(2):  # compiled, and from the cache
        with pytest.warns(
            UserWarning, match=r"kernel.cu: not compiled: broken \(kernel.cu:\d: "
        ) as caught:
            outputs = emulate(source, 1, 4, np.zeros(4, np.int32), kernel="fine")
        assert outputs["Y"].tolist() == [1] * 4
        assert reason in str(caught[0].message)
        assert "\n" not in str(caught[0].message)
    with pytest.raises(KernelError, match=reason):
        emulate(source, 1, 4, np.zeros(4, np.int32), kernel="broken")


@needs_compiler
def test_what_two_kernels_use_is_broken_for_both(tmp_path):
    (tmp_path / "one.cuh").write_text("__device__ int one() { return absent; }\n")
    path = tmp_path / "two.cu"
    path.write_text(
        f'#include "one.cuh"\n{FINE}__global__ void other(int* Y) {{ Y[threadIdx.x] = 2; }}\n'
    )
    with pytest.raises(KernelError, match=r"^one.cuh:1: .*'absent'"):
        emulate(path, 1, 4, np.zeros(4, np.int32), kernel="fine")
    with pytest.warns(UserWarning, match=r"two.cu: not compiled: fine \(one.cuh:1: .*'absent'"):
        assert emulate(path, 1, 4, np.zeros(4, np.int32), kernel="other")["Y"][0] == 2
