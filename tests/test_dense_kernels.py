"""Dense kernels of layers in the emulator, compared with NumPy."""

import itertools

import numpy as np
import pytest

from accelviz.devices import find_device
from accelviz.devices.cuda import compile_cubin
from accelviz.errors import DeviceUnavailable
from accelviz.layers import Matrix, Noise, Products, cosines, dense, losses
from accelviz.layers.adjacency import gcn_matrix, with_diagonal
from accelviz.layers.affine import ActivationGradient
from accelviz.layers.cosines import cosine_gradient, cosine_operands
from accelviz.layers.dense import Adam
from accelviz.strategies.dense.operation import ACTIVATIONS
from accelviz.strategies.dense.steps import step_kernel
from benchmarks.measure import gcn_weights as weights
from tests.compilers import needs_compiler
from tests.graphs import graph_of_degrees

NOISE = Noise.of(seed=(7 << 32) + 11, n_sites=4, step=3).at(2)
rng = np.random.default_rng(0)

pytestmark = needs_compiler


@pytest.fixture
def emulated(monkeypatch):
    """Return a function that runs a layer's function in the emulator and on the host."""

    def both(function, *arguments):
        expected = function(*arguments)
        with monkeypatch.context() as patch:
            for module in (dense, cosines, weights, losses):
                patch.setattr(module, "owner", lambda _: find_device("emulator"))
            return function(*arguments), expected

    return both


def normal(*shape):
    return rng.standard_normal(shape, dtype=np.float32)


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("activation", "rate", "shape", "bias"),
    [
        (*end, shape, bias)
        for end, (shape, bias) in zip(
            itertools.product(ACTIVATIONS, (0.0, 0.6)),
            itertools.cycle([((37, 5), True), ((129, 16), False), ((300, 7), True)]),
            strict=False,
        )
    ],
)
def test_the_end_of_a_layer_and_its_gradient(emulated, activation, rate, shape, bias):
    Z, dY, b = normal(*shape), normal(*shape), normal(shape[1]) if bias else None
    added = None if bias else normal(*shape)
    epilogue = dense.Epilogue(b, activation, rate, NOISE)
    Y, expected = emulated(epilogue.apply, Z, added)
    np.testing.assert_allclose(Y, expected, rtol=1e-6, atol=1e-7)
    dZ, expected = emulated(epilogue.gradient, dY, Y)
    np.testing.assert_allclose(dZ, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n_classes", [1, 7, 40])
def test_cross_entropy(emulated, n_classes):
    logits, labels = 10 * normal(300, n_classes), rng.integers(0, n_classes, 300).astype(np.int32)
    weights = (rng.random(300) < 0.3).astype(np.float32) / 90
    labels[weights == 0] = -1
    results, expected = emulated(losses.cross_entropy, logits, labels, weights)
    np.testing.assert_allclose(results[0], expected[0], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(results[1], expected[1], rtol=1e-5, atol=1e-8)


def test_adam(emulated):
    n = 1000
    initial, decay, words = normal(n), abs(normal(n)) * 1e-3, Noise.of(1, 1).words.copy()
    gradients = [normal(n) for _ in range(4)]

    def steps():
        flat, states = initial.copy(), np.zeros((2, n), np.float32)
        for step, gradient in enumerate(gradients):
            words[3] = step
            Adam(0.01).update(flat, gradient, states, decay, words)
        return flat, states

    results, expected = emulated(steps)
    np.testing.assert_allclose(results[0], expected[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(results[1], expected[1], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("shape", "beta", "slope"),
    [((37, 5), 0.7, None), ((9, 64), normal(1), 1.25), ((3, 1), 2.0, 1.0)],
)
def test_what_agnn_does_to_rows_and_its_gradient(emulated, shape, beta, slope):
    X, dQ, dV, d_scale = normal(*shape), normal(*shape), normal(*shape), normal(shape[0], 1)
    X[-1] = 0 if slope else X[-1]  # a row of zeros, as a ReLU leaves them
    results, expected = emulated(cosine_operands, X, beta)
    for array, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(array, wanted, rtol=1e-6)
    gradients = {"dQ": dQ, "dV": dV, "d_scale": d_scale}
    activation = slope and ActivationGradient(X, slope)
    results, expected = emulated(cosine_gradient, X, expected[1], beta, gradients, activation)
    for array, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(array, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 1), (5, 16), (700, 64), (300, 7), (40, 300), (3, 1000)])
def test_column_sums(emulated, shape):
    np.testing.assert_allclose(*emulated(dense.column_sums, normal(*shape)), atol=1e-4)


def test_the_weights_of_gcn(emulated):
    degrees = [3, 0, 40, 1, 2, 7, 0] + [0] * 40
    graph = gcn_matrix(graph_of_degrees(degrees, len(degrees)))
    matrix, values = Matrix(graph, Products(device="cpu")), normal(graph.nnz)
    result, expected = emulated(weights.gcn_weights, matrix, values)
    assert 0 < (expected == 0).sum() < graph.nnz  # a sum below 0
    np.testing.assert_allclose(result, expected, rtol=1e-4)
    ones = with_diagonal(graph, np.ones(graph.nnz), np.ones(graph.n_rows))
    result = weights.gcn_weights(Matrix(ones, matrix.products))
    np.testing.assert_allclose(result, gcn_matrix(ones).values, rtol=1e-6)


@pytest.mark.sample(3)
@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_100"])
def test_kernels_compile_for_gpus(arch):
    """One file has all entries; each architecture compiles two of its six settings."""
    try:
        for activation in {"sm_75": (0, 1), "sm_90": (1, 2), "sm_100": (2, 0)}[arch]:
            dropout = activation == 1 or arch == "sm_100"
            assert (
                len(
                    compile_cubin(step_kernel("finish", (), ACTIVATIONS[activation], dropout), arch)
                )
                > 1000
            )
        for file, entry in (("gcn_weights",) * 2, ("cosines", "cosine_gradient")):
            spec = step_kernel(entry, file=file)
            assert len(compile_cubin(spec, arch)) > 1000
    except DeviceUnavailable as error:
        pytest.skip(f"kernels are not compile-checked here: {error}")
