"""Undefined values: unwritten local variables, and lanes outside the mask of a shuffle."""

import re

import numpy as np
import pytest

from accelviz import emulate
from accelviz.errors import KernelError
from tests.compilers import needs_compiler
from tests.kernels import source

pytestmark = needs_compiler

UNDEFINED, DEFINED = source("undefined"), source("defined")
PADDED = np.dtype([("kind", "i1"), ("value", "f8")], align=True)
#: The first mistakes are those of shuffles; the others read local variables.
MISTAKES, SHUFFLES, RIGHT = 38, 9, 25


def run(code, threads, last, which, seed=0):
    types = (np.float32, np.int32, np.float16, (np.float16, 2), np.uint16, (np.float32, 4), last)
    X, outputs = np.arange(64, dtype=np.float32), [np.zeros(threads, type_) for type_ in types]
    return emulate(code, 1, threads, X, *outputs, 8, which, seed=seed, timeout=2.0)


@pytest.mark.sample(6)
@pytest.mark.parametrize("threads", [32, 64, 256])
@pytest.mark.parametrize("which", range(MISTAKES))
def test_an_undefined_value_is_named_where_it_matters(which, threads):
    lines = UNDEFINED.splitlines()
    line = next(i for i, text in enumerate(lines, 1) if text.endswith(f"  // {which}"))
    with pytest.raises(KernelError, match="depends on") as caught:
        run(UNDEFINED, threads, np.float64, which)
    message = str(caught.value)
    assert message.startswith(f"k, kernel.cu:{line}: "), message
    begin = next(i for i, text in enumerate(lines) if text.startswith(f"    case {which}:"))
    if which < SHUFFLES:
        named = re.search(r"the shuffle at kernel\.cu:(\d+) read from a lane outside", message)
        assert "__shfl" in lines[int(named[1]) - 1]
    else:
        named = re.search(r"nothing has written before: (\w+) \(line (\d+)\)", message)
        assert re.search(rf"\b{named[1]}\b", lines[int(named[2]) - 1])
    assert begin < int(named[named.lastindex]) <= line or named[1] == "sum"


@pytest.mark.sample(3)
@pytest.mark.parametrize("threads", [32, 64, 256])
@pytest.mark.parametrize("which", range(RIGHT))
def test_an_undefined_value_that_does_not_matter_is_no_mistake(which, threads):
    run(DEFINED, threads, PADDED, which)


@pytest.mark.parametrize("which", [0, 9, 19, 22])
def test_undefined_values_are_named_in_any_order_of_threads(which):
    for seed in (1, 2):
        with pytest.raises(KernelError, match="depends on"):
            run(UNDEFINED, 64, np.float64, which, seed)


def test_results_are_those_of_the_kernel_as_it_is():
    Y = run(DEFINED, 64, PADDED, 0)["Y"]
    assert Y[0] == Y[32] == 15
    assert not Y[1:32].any()


def test_the_first_difference_of_a_long_run_is_found():
    """Beyond the first segment of events, and among several variables."""
    code = """__global__ void k(const float *X, float *Y, int n) {
        float first, second, third, fourth;
        for (int i = 0; i < n; ++i) {
            first = X[i];
            if (i % 2 == 0) second = first;
            if (i > 8000) third = fourth = second;
            Y[i] = first + second;
            if (i > 7776) Y[i] += third;
            if (i > 7778) Y[i] += fourth;
        }
    }"""
    X, Y = np.ones(10_000, np.float32), np.zeros(10_000, np.float32)
    message = r"kernel\.cu:8: .* Y\[7777\] .*nothing has written before: third \(line 2\)"
    with pytest.raises(KernelError, match=message):
        emulate(code, 1, 1, X, Y, X.size)
    emulate(code, 1, 1, X, Y, 7777)


@pytest.mark.parametrize("width", [0, 24, 64])
def test_the_width_of_a_shuffle_is_a_power_of_two(width):
    code = "__global__ void k(float *Y, int width) { Y[threadIdx.x] = %s; }"
    for call in ("__shfl_sync(~0u, 1.0f, 0, width)", "__shfl_down_sync(~0u, 1.0f, 1, width)"):
        with pytest.raises(KernelError, match=r"kernel\.cu:1: .*width that is no power of two"):
            emulate(code % call, 1, 32, np.zeros(32, np.float32), width)


@pytest.mark.long
def test_a_time_limit_at_any_moment_is_no_difference():
    """A limit used to end a run between a count of its events and their hash, once in 40 runs."""
    code = """
__global__ void k(unsigned *turn) {
    unsigned old = *turn, assumed;
    do {
        assumed = old;
        old = atomicCAS(turn, assumed, assumed + 1);
    } while (true);
}"""
    for seed in range(100):
        with pytest.raises(KernelError, match="did not end"):
            emulate(code, 1, 1, np.zeros(1, np.uint32), seed=seed, timeout=0.02)
