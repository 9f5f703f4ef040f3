"""Functions that run a CUDA source in the emulator or on a GPU, for tests of its vocabulary."""

import glob
import importlib.util
import os
from fractions import Fraction
from math import ceil, floor, trunc
from pathlib import Path

import numpy as np
import pytest

import accelviz
from accelviz.devices.cuda import compile_cubin
from accelviz.errors import DeviceUnavailable, KernelError
from accelviz.plans import KernelSpec


def run(code, *, warps=1, grid=1, seed=0, **arrays):
    """Emulate a kernel `k` whose parameters are these arrays, in order; return their new values."""
    copies = [array.copy() for array in arrays.values()]
    accelviz.emulate(code, grid, 32 * warps, *copies, kernel="k", seed=seed)
    return dict(zip(arrays, copies, strict=True))


def check_planted(code, mistake, launch, seeds=1):
    """Check that `launch(code, seed)` finds a mistake: (text, replacement, part of the message)."""
    before, after, expected = mistake
    assert before in code
    for seed in range(seeds):
        with pytest.raises(KernelError) as caught:
            launch(code.replace(before, after), seed)
        assert expected in str(caught.value)
        assert len(str(caught.value)) < 1920


def run_on_gpu(code, *, warps=1, grid=1, **arrays):
    """Run the kernel on a GPU; return the arrays' new values."""
    cupy = pytest.importorskip("cupy")
    options = ("--std=c++17", *toolkit_options())
    kernel = cupy.RawModule(code=code, options=options).get_function("k")
    moved = {name: cupy.asarray(array) for name, array in arrays.items()}
    kernel((grid,), (32 * warps,), tuple(moved.values()))
    return {name: array.get() for name, array in moved.items()}


def toolkit_options():
    """Return NVRTC's options to find CUDA's headers; empty if they are not installed."""
    folders = [os.environ.get("CUDA_PATH", ""), *sorted(glob.glob("/usr/local/cuda*"))]
    package = importlib.util.find_spec("nvidia")
    for location in (package.submodule_search_locations or []) if package else []:
        folders += glob.glob(f"{location}/cu*")
    for folder in filter(None, folders):
        include = Path(folder) / "include"
        if (include / "cooperative_groups.h").exists():
            return f"-I{include}", f"-I{include / 'cccl'}"
    return ()


def compiles_for_a_gpu(code, monkeypatch):
    """Return whether NVRTC compiles a source; skip the test without NVRTC."""
    if "#include <c" in code and not toolkit_options():
        pytest.skip("CUDA's own headers are not installed")
    options = "accelviz.devices.cuda.nvrtc.compile_options"
    monkeypatch.setattr(options, lambda spec: ("--std=c++17", *toolkit_options()))
    try:
        compile_cubin(KernelSpec("kernel.cu", "k", {}, (), code=code), "sm_90")
    except DeviceUnavailable as error:
        pytest.skip(str(error))
    except KernelError as error:
        if "kernel.cu(" not in str(error):  # an error in CUDA's own headers
            raise
        return False
    return True


def kernel(body, parameters="int *out", head=""):
    """Return the source of a kernel `k` with one body."""
    return f'{head}extern "C" __global__ void k({parameters}) {{\n{body}\n}}\n'


def table(expressions, inputs, kind, head=""):
    """Return the source of a kernel that evaluates each expression for each thread's inputs.

    `inputs` maps names to C types. The results are the table `out`, of C type `kind`, with one row
    per thread `i`.
    """
    parameters = ", ".join(f"const {type_} *{name}s" for name, type_ in inputs.items())
    loads = "".join(f"    {type_} {name} = {name}s[i];\n" for name, type_ in inputs.items())
    lines = "".join(
        f"    out[i * {len(expressions)} + {j}] = ({kind})({expression});\n"
        for j, expression in enumerate(expressions)
    )
    return (
        f'{head}extern "C" __global__ void k({parameters}, {kind} *out) {{\n'
        f"    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n{loads}{lines}}}\n"
    )


ROUND = {"rn": round, "rz": trunc, "ru": ceil, "rd": floor}


def rounded(x, mode="rn", bits=24, lowest=-126):
    """Return a Fraction rounded to `bits` significant bits; fewer below 2 ** `lowest`."""
    if x == 0:
        return Fraction(0)
    size = abs(x)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** exponent:
        exponent -= 1
    spacing = Fraction(2) ** (max(exponent, lowest) - bits + 1)
    return ROUND[mode](x / spacing) * spacing


def signed(x, bits=32):
    """Return the signed integer with these bits."""
    return (x & (1 << bits) - 1) - (x >> bits - 1 & 1) * (1 << bits)


def words(n, seed):
    """Return random 32-bit words that include corner cases."""
    special = [0, 1, 2, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0x00FFFFFF, 0x00800000, 31]
    random = np.random.default_rng(seed)
    words = random.integers(0, 1 << 32, n, dtype=np.uint32) >> random.integers(0, 32, n, np.uint32)
    words[: len(special)] = random.permutation(np.array(special, np.uint32))
    return words
