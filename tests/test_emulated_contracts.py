"""Mistakes against what a kernel promises to CUDA, and correct kernels of the same kind.

A kernel's cases from 10 on are mistakes. Each runs with 1, 2 and 8 warps.
"""

import re

import numpy as np
import pytest

from accelviz import emulate
from accelviz.errors import ArgumentError, KernelError
from tests.compilers import needs_compiler
from tests.kernels import source

pytestmark = needs_compiler

F = np.float32
WARPS = pytest.mark.parametrize("threads", [32, 64, 256])


def lines_of(code, which):
    """Return (first, last) line of a case."""
    body = re.search(rf"case {which}:.*?break;", code, re.S)
    first = code.count("\n", 0, body.start()) + 1
    return first, first + body[0].count("\n")


def refused(code, which, message, run):
    """Run a case that must fail with `message` at a line of its own; return the message's lines."""
    with pytest.raises(KernelError, match=message) as caught:
        run()
    lines = [int(line) for line in re.findall(r"kernel\.cu:(\d+)", str(caught.value))]
    first, last = lines_of(code, which)
    assert lines, caught.value
    assert all(first <= line <= last for line in lines), (first, last, str(caught.value))
    return lines


READ_ONLY = source("read_only")


def read_only(which, threads, seed=0):
    X, Y, Z = np.arange(threads, dtype=F), np.zeros(threads, F), np.ones(threads, F)
    return emulate(READ_ONLY, 1, threads, X, Y, Z, which, seed=seed)


@WARPS
@pytest.mark.parametrize("which", range(5))
def test_loads_by_ldg_of_what_the_launch_leaves_alone_are_right(which, threads):
    Y = read_only(which, threads)["Y"]
    if which < 2:
        i = np.arange(threads)
        np.testing.assert_array_equal(Y, threads - 1 + (i if which else 0))


@WARPS
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("which", range(10, 18))
def test_a_load_by_ldg_of_what_the_launch_writes_is_named(which, seed, threads):
    message = r"by __ldg, which is for memory that no thread writes during the launch"
    lines = refused(READ_ONLY, which, message, lambda: read_only(which, threads, seed))
    assert len(lines) == 2


CONSTANTS = source("constants")


def constants(which, threads):
    symbols = {"weights": np.ones(5, F), "vectors": np.ones(4, F), "inner::steps": np.ones(4, "i2")}
    symbols["defaults"] = np.ones(2, F)
    return emulate(CONSTANTS, 1, threads, np.zeros(threads, F), which, 0, symbols=symbols)["Y"]


@WARPS
@pytest.mark.parametrize(("which", "expected"), [(0, 5), (1, 2), (2, 0), (3, 1)])
def test_the_elements_of_a_constant_that_have_values_are_read(which, expected, threads):
    assert constants(which, threads).tolist() == [expected] * threads


@WARPS
@pytest.mark.parametrize(
    ("which", "element", "filled", "size"),
    [
        *((10, r"weights\[5\]", 20, 32), (11, r"weights\[5\]", 20, 32)),
        *((12, r"vectors\[\d+\]", 16, 32), (13, r"steps\[4\]", 8, 12)),
    ],
)
def test_an_element_of_a_constant_without_a_value_is_named(which, element, filled, size, threads):
    message = rf"reads {element} .* symbols= fills {filled} of the {size} bytes"
    refused(CONSTANTS, which, message, lambda: constants(which, threads))


COPIES = source("copies")


def copies(which, threads, seed=0):
    X, Y = np.arange(2 * threads, dtype=F), np.zeros(threads, F)
    return emulate(COPIES, 1, threads, X, Y, which, seed=seed)["Y"]


@WARPS
@pytest.mark.parametrize("which", range(8))
def test_asynchronous_copies_with_their_waits_are_right(which, threads):
    i = np.arange(threads)
    reverse = threads - 1 - i
    expected = {
        2: 2 * reverse + threads,
        3: i // 32 * 32 + 31 - i % 32,
        4: 2 * (2 * reverse + threads),
        5: np.where(reverse % 4 < 2, reverse, 0),
        6: i + 2,
        7: np.where(reverse < threads // 2, reverse, 1),
    }
    np.testing.assert_array_equal(copies(which, threads), expected.get(which, reverse))


@pytest.mark.sample(3)
@WARPS
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("which", "message"),
    [
        *((10, r"reads tile\[\d+\].*, to which"), (11, r"reads tile\[\d+\].*, to which")),
        *((12, r"reads tile\[\d+\].*, to which"), (13, r"reads tile\[\d+\].*, to which")),
        *((14, r"writes X\[\d+\].*, from which"), (15, r"reads tile\[\d+\].*, to which")),
        *(
            (16, r"writes X\[\d+\].*, from which|a race"),
            (17, "leaves the kernel without a wait for"),
        ),
        *((18, r"writes tile\[\d+\].*, to which"), (19, r"writes tile\[\d+\].*, to which")),
        *((20, r"reads tile\[\d+\].*, to which"), (21, r"which nothing has written|a race")),
        *((22, "a race"), (23, "copies asynchronously to memory that is not shared")),
        *((24, "copies 2 bytes asynchronously"), (25, "misaligned")),
        (26, r"updates atomically X\[\d+\].*, from which"),
    ],
)
def test_a_copy_that_is_disturbed_or_not_waited_for_is_named(which, message, seed, threads):
    lines = refused(COPIES, which, message, lambda: copies(which, threads, seed))
    assert len(lines) == 2 or which in (17, 21, 23, 24, 25)


CUDA_COPIES = source("cuda_copies")


def cuda_copies(which, threads, seed=0):
    X, Y = np.arange(2 * threads, dtype=F), np.zeros(threads, F)
    return emulate(CUDA_COPIES, 1, threads, X, Y, which, seed=seed)["Y"]


@WARPS
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("which", range(9))
def test_copies_with_a_barrier_or_a_pipeline_are_right(which, seed, threads):
    reverse = np.arange(threads)[::-1]
    expected = 2 * reverse + threads
    if which == 4:
        expected = np.where(reverse < threads // 2, reverse + threads, 0)
    if which in (6, 7):
        expected = reverse + threads
    if which == 5:
        expected[1::2] = 0
    np.testing.assert_array_equal(cuda_copies(which, threads, seed), expected)


@pytest.mark.sample(3)
@WARPS
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("which", "message"),
    [
        *((10, r"reads tile\[\d+\].*, to which"), (11, r"to which|nothing has written|a race")),
        *((12, r"writes X\[\d+\].*, from which"), (13, "leaves the kernel without a wait for")),
        *((14, r"to which|nothing has written|a race"), (15, r"to which|a race")),
        *((16, r"reads tile\[\d+\].*, to which"), (17, r"to which|a race")),
        *((19, r"reads tile\[\d+\].*, to which"), (20, r"reads tile\[\d+\].*, to which")),
        *((21, r"reads tile\[\d+\].*, to which"), (22, r"writes X\[\d+\].*, from which")),
        *((23, r"reads tile\[\d+\].*, to which"), (24, "leaves the kernel without a wait for")),
        *((25, r"reads tile\[\d+\].*, to which"), (26, r"writes tile\[\d+\].*, to which")),
        *((27, r"reads tile\[\d+\].*, to which"),),
    ],
)
def test_a_copy_without_the_wait_of_its_barrier_is_named(which, message, seed, threads):
    refused(CUDA_COPIES, which, message, lambda: cuda_copies(which, threads, seed))


@WARPS
@pytest.mark.parametrize(("kernel", "which"), [(cuda_copies, 11), (cuda_copies, 14), (copies, 27)])
def test_who_reads_what_other_threads_will_copy_is_told_to_wait(kernel, which, threads):
    with pytest.raises(KernelError, match=r"nothing has written.*wait for the copy first") as error:
        kernel(which, threads)
    assert "and not __syncthreads" in str(error.value)


@WARPS
@pytest.mark.parametrize("seed", [0, 1])
def test_a_barrier_that_is_used_before_its_initialisation_is_named(seed, threads):
    with pytest.raises(KernelError, match=r"(a race|nothing has written).*"):
        cuda_copies(18, threads, seed)


SPIN = source("spin")


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize("threads", [2, 32, 64, 256])
def test_a_thread_that_waits_in_a_loop_of_atomics_sees_what_the_fence_releases(threads, seed):
    data, flag, Y = (np.zeros(1, np.int32) for _ in range(3))
    assert emulate(SPIN, 1, threads, data, flag, Y, True, seed=seed)["Y"] == [7]
    with pytest.raises(KernelError, match=r"a race: .* data\[0\]"):
        emulate(SPIN, 1, threads, data, np.zeros(1, np.int32), Y, False, seed=seed)


RESTRICT = source("restrict")


def restricted(which, threads, X, Y, Z=None, **options):
    Z = np.zeros(threads, F) if Z is None else Z
    return emulate(RESTRICT, 1, threads, X, Y, Z, which, kernel="both", **options)["Y"]


@WARPS
def test_arrays_of_restrict_parameters_that_are_read_or_apart_are_right(threads):
    X = np.arange(2 * threads, dtype=F)
    assert restricted(0, threads, X, np.zeros(threads, F), X)[1] == threads - 1  # X is Z
    assert restricted(1, threads, X, X)[1] == 1
    assert restricted(10, threads, X, np.zeros(threads, F))[1] == 2
    assert restricted(10, threads, X[threads:], X[:threads])[1] == 2 * threads + 2
    X = np.arange(2 * threads, dtype=F)
    outputs = emulate(RESTRICT, 1, threads, X, X, kernel="neither")
    np.testing.assert_array_equal(outputs["Y"][:threads], 2 * np.arange(threads))


@WARPS
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("which", range(10, 16))
def test_one_array_for_two_restrict_parameters_is_named_where_it_is_written(which, seed, threads):
    X = np.arange(2 * threads, dtype=F)
    message = r"(writes|updates atomically) X\[\d+\].*, an array that X and Y share: __restrict__"

    def run():
        restricted(which, threads, X, X, seed=seed)

    if which != 13:
        refused(RESTRICT, which, message, run)
    else:  # in a function
        with pytest.raises(KernelError, match=rf"kernel\.cu:4: .*{message}"):
            run()


@WARPS
def test_one_restrict_parameter_is_enough(threads):
    X = np.arange(threads, dtype=F)
    assert emulate(RESTRICT, 1, threads, X, X, 0, kernel="one")["Y"][1] == 1
    with pytest.raises(KernelError, match=r":35: .* X and Y share"):
        emulate(RESTRICT, 1, threads, X, X, 10, kernel="one")


#: Kernels with bounds of 64 threads: (declaration, instance).
BOUNDS = {
    "__global__ void __launch_bounds__(64) k": "k",
    "__launch_bounds__(N * (2), 4) __global__ void k": "k",
    'extern "C" __global__ void\n__launch_bounds__(64)  // threads\nk': "k",
    "template <int M> __global__ void __launch_bounds__(M * N) k": "k<2>",
    "template <int M, int L = 2> __global__ void __launch_bounds__(L * N, M) k": "k<1>",
    "template <class T, int... M> __global__ __launch_bounds__(sizeof(T)*N) void k": "k<short>",
}


@pytest.mark.parametrize("head", BOUNDS)
def test_a_block_beyond_the_launch_bounds_is_refused(head):
    body = "{ Y[threadIdx.x + blockDim.x * threadIdx.y] = 1.0f; }"
    code = f"#define N 32\n{head}(float *Y) {body}"
    spaced = code if "extern" in code else code.replace("\n", "\nnamespace a::b {\n", 1) + "}"
    for text, scope in ((code, ""), (spaced, "" if spaced is code else "a::b::")):
        kernel = scope + BOUNDS[head]
        for block in (32, 64, (8, 8)):
            assert emulate(text, 1, block, np.zeros(256, F), kernel=kernel)["Y"].sum() >= 8
        for block in (65, 256, (8, 8, 4)):
            with pytest.raises(ArgumentError, match=r"block: \d+ threads for .*at most 64"):
                emulate(text, 1, block, np.zeros(256, F), kernel=kernel)


def test_bounds_of_another_kernel_or_of_two_branches_are_no_bounds():
    code = """__global__ void __launch_bounds__(32) j(float *Y) {}
    __global__ void
    #ifndef SMALL
    __launch_bounds__(256)
    #else
    __launch_bounds__(32)
    #endif
    k(float *Y) { Y[threadIdx.x] = 1.0f; }
    template <int N = 1> __global__ void l(float *Y);
    template <int N> __global__ void __launch_bounds__(N) l(float *Y) { Y[threadIdx.x] = 1.0f; }"""
    for kernel in ("k", "l<>"):
        assert emulate(code, 1, 64, np.zeros(64, F), kernel=kernel)["Y"].sum() == 64
