"""Kernels as beginners write them: each runs, or its error message explains why not."""

import numpy as np
import pytest

from accelviz.devices import emulate
from accelviz.errors import ArgumentError, KernelError
from tests.compilers import ON_KERNELS, needs_compiler
from tests.kernels import source

pytestmark = needs_compiler

TILED = source("tiled")
STENCIL = source("stencil")
DOT = source("dot")
SORT = source("sort")
SEARCH = source("search")
BODIES = source("bodies")
random = np.random.default_rng(0)


def floats(*shape):
    return random.standard_normal(shape).astype(np.float32)


def test_a_product_of_matrices_by_tiles():
    A, B, C = floats(32, 32), floats(32, 32), np.zeros((32, 32), np.float32)
    emulate(TILED, (2, 2), (16, 16), A, B, C, 32)
    np.testing.assert_allclose(C, A @ B, rtol=1e-4, atol=1e-4)


@ON_KERNELS
def test_a_dot_product_with_groups_and_a_sort(device):
    a, b, result = floats(300), floats(300), np.zeros(1, np.float32)
    emulate(DOT, 2, 64, a, b, result, 300, device=device)
    np.testing.assert_allclose(result, a @ b, rtol=1e-4, atol=1e-4)
    ascending = emulate(SORT, 1, 128, floats(128), shared_bytes=512, device=device)["values"]
    assert (np.diff(ascending) >= 0).all()


def test_bytes_are_an_array_of_characters():
    text, matches, count = (
        b"the quick fox and the dog",
        np.zeros(8, np.int32),
        np.zeros(1, np.int32),
    )
    emulate(SEARCH, 1, 64, text, len(text), b"the", 3, matches, count)
    assert count[0] == 2
    assert {*matches[:2]} == {0, 18}


@ON_KERNELS
def test_symbols_fill_constants_and_return_device_variables(device):
    values, out = floats(132), np.zeros(128, np.float32)
    weights, done = np.array([1, 2, 3, 2, 1], np.float32), np.array([5], np.int32)
    symbols = {"coefficients": weights, "done": done}
    options = emulate(STENCIL, 2, 64, values, out, symbols=symbols, device=device)
    np.testing.assert_allclose(out, np.correlate(values, weights), rtol=1e-4, atol=1e-4)
    assert done[0] == 5 + 128
    assert {*options} == {"out", "done"}


def test_symbols_that_nobody_has_given_or_that_do_not_fit():
    values, out = floats(132), np.zeros(128, np.float32)
    weights = np.ones(5, np.float32)
    with pytest.raises(KernelError, match=r"coefficients\[0\].*nobody has given.*symbols="):
        emulate(STENCIL, 2, 64, values, out)
    for wrong, message in (
        ({"coefficients": weights.astype(float)}, "array of float64.*float32"),
        ({"coefficients": np.ones(6, np.float32)}, "24 bytes.*at most 20"),
        ({"weights": weights}, "no 'weights'.*coefficients, done"),
        ({"coefficients": [1, 2]}, "NumPy array"),
    ):
        with pytest.raises(ArgumentError, match=message):
            emulate(STENCIL, 2, 64, values, out, symbols=wrong)


@ON_KERNELS
def test_vectors_and_structures_by_value_and_in_arrays_in_a_namespace(device):
    body = np.dtype([("place", "f4", 3), ("mass", "f4")])
    world = np.dtype([("s", "f4"), ("n", "i4")])
    bodies, energies = np.zeros(8, body), np.zeros(8, np.float32)
    bodies["place"], bodies["mass"] = floats(8, 3), 2
    options = {"bodies": bodies, "energies": energies, "center": (1, 2, 3)}
    options |= {"kernel": "gravity::energy", "device": device}
    emulate(BODIES, 1, 8, world=np.array((0.5, 8), world), **options)
    apart = np.linalg.norm(bodies["place"][:, None] - bodies["place"], axis=2)
    expected = (2 / (apart + 0.5)).sum(1) - 2 / 0.5
    expected += np.linalg.norm(bodies["place"] - np.array([1, 2, 3]), axis=1)
    np.testing.assert_allclose(energies, expected, rtol=1e-4)
    for members in ((0.5, 8), {"n": 8, "softening": 0.5}):  # in order, and by name
        again = np.zeros(8, np.float32)
        emulate(BODIES, 1, 8, world=members, **options | {"energies": again})
        np.testing.assert_array_equal(again, energies)
    with pytest.raises(ArgumentError, match=r"got 1 value for .* 2 members.*\{softening, n\}"):
        emulate(BODIES, 1, 8, world=(0.5,), **options)
    with pytest.raises(ArgumentError, match=r"world.n: got 8.5. Expected: int32"):
        emulate(BODIES, 1, 8, world=(0.5, 8.5), **options)
    with pytest.raises(ArgumentError, match=r"8 bytes as of np.array.*`World world`"):
        emulate(BODIES, 1, 8, world=0.5, **options)
    with pytest.raises(ArgumentError, match=r"3 numbers of float32"):
        emulate(BODIES, 1, 8, world=np.array((0.5, 8), world), **options | {"center": (1, 2)})
    with pytest.raises(ArgumentError, match=r"no kernel 'enrgy'.*'gravity::energy'"):
        emulate(BODIES, 1, 8, **options | {"kernel": "enrgy"})


#: Statements before a kernel and in it, and words of the error message.
REFUSED = (
    ("float square(float x) { return x * x; }", "*y = square(2);", "calls square.*__device__"),
    ("float table[2] = {1, 2};", "*y = table[threadIdx.x];", "table, a variable of the host"),
    ("#include <stdlib.h>", "*y = rand();", r"kernel.cu:3: .* rand is a function of the host"),
    ("", "float *p = (float *)malloc(*y); p[int(y[1])] = 1; *y = *p;", "no memory to be allocated"),
    ("", "__shared__ float s[4] = {0}; *y = s[0];", r"kernel.cu:3: __shared__ s is given a value"),
    ("", "*y += 1;", r"a race: .* writes it at .*atomicAdd\(&"),
    ("", "atomicAdd(y[0], 1.0f);", r"first argument is an address: atomicAdd\(&"),
    ("", "if (true) {", r"a } is missing: the { of line 2"),
)


@pytest.mark.parametrize(("before", "statement", "message"), REFUSED)
def test_what_cuda_refuses_is_refused_in_words(before, statement, message):
    code = f"{before}\n__global__ void k(float *y) {{\n{statement}\n}}"
    with pytest.raises(KernelError, match=message):
        emulate(code, 1, 2, np.zeros(2, np.float32))


@pytest.mark.parametrize(
    ("head", "message"),
    [("void k(float &x)", "no references"), ("int k(float x)", "returns nothing")],
)
def test_kernels_that_are_none(head, message):
    with pytest.raises(KernelError, match=message):
        emulate(f"__global__ {head} {{ }}", 1, 1, 1.0)
