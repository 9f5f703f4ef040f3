"""The dense kernels of layers, in the emulator, against what NumPy computes for layers."""

import itertools

import numpy as np
import pytest

from accelviz.devices.cuda import compile_cubin
from accelviz.devices.cuda.dense import dense_kernel, log_lanes_of_row
from accelviz.emulator import emulate
from accelviz.errors import DeviceUnavailable
from accelviz.files import kernel_directory
from accelviz.layers import Matrix, Noise, Products, dense
from accelviz.layers.adjacency import gcn_matrix, with_diagonal
from accelviz.layers.affine import ActivationGradient
from accelviz.layers.cosines import NORM_EPS, cosine_gradient, cosine_operands
from accelviz.layers.dense import Adam
from accelviz.layers.graph_processing import gcn_weights
from tests.compilers import needs_compiler
from tests.graphs import graph_of_degrees

NOISE = Noise.of(seed=(7 << 32) + 11, n_sites=4, step=3).at(2)
ACTIVATIONS = ("none", "relu", "elu")
rng = np.random.default_rng(0)

pytestmark = needs_compiler


def run(entry, n, at_once, *arguments, activation="none", rate=0.0):
    spec = dense_kernel(entry, ACTIVATIONS.index(activation), rate > 0)
    blocks = -(-n // (256 * at_once))
    return emulate(spec.configured_source(), blocks, 256, *arguments, kernel=entry)


def normal(*shape):
    return rng.standard_normal(shape, dtype=np.float32)


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("activation", "rate", "shape", "bias"),
    [
        (*each, shape, bias)
        for each, (shape, bias) in zip(
            itertools.product(ACTIVATIONS, (0.0, 0.6)),
            itertools.cycle([((37, 5), True), ((129, 16), False), ((300, 7), True)]),
            strict=False,
        )
    ],
)
def test_the_end_of_a_layer_and_its_gradient(activation, rate, shape, bias):
    Z, dY, b = normal(*shape), normal(*shape), normal(shape[1]) if bias else None
    Y, dZ = np.full(shape, np.nan, np.float32), np.full(shape, np.nan, np.float32)
    words, options = NOISE.words.copy(), {"activation": activation, "rate": rate}
    added = None if bias else normal(*shape)
    run("finish", Z.size, 4, Z, added, b, Y, Z.size, shape[1], rate, words, **options)
    expected = dense.finish(Z, b, activation, rate, NOISE, added)
    np.testing.assert_allclose(Y, expected, rtol=1e-6, atol=1e-7)
    run("finish_gradient", Z.size, 4, dY, Y, dZ, Z.size, rate, words, **options)
    expected = dense.finish_gradient(dY, Y, activation, rate, NOISE)
    np.testing.assert_allclose(dZ, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n_classes", [1, 7, 40])
def test_cross_entropy(n_classes):
    logits, labels = 10 * normal(300, n_classes), rng.integers(0, n_classes, 300).astype(np.int32)
    weights = (rng.random(300) < 0.3).astype(np.float32) / 90
    labels[weights == 0] = -1
    losses, gradient = np.full(300, np.nan, np.float32), np.full_like(logits, np.nan)
    log_lanes = log_lanes_of_row(n_classes)
    sizes = (300, n_classes, log_lanes)
    run("cross_entropy", 300 << log_lanes, 1, logits, labels, weights, losses, gradient, *sizes)
    expected = dense.cross_entropy(logits, labels, weights)
    np.testing.assert_allclose(losses, expected[0], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-5, atol=1e-8)


def test_adam():
    n, rates = 1000, (0.01, 0.9, 0.999, 1e-8)
    flat, states, decay = normal(n), np.zeros((2, n), np.float32), abs(normal(n)) * 1e-3
    ours, own = flat.copy(), states.copy()
    words = Noise.of(1, 1).words.copy()
    for step in range(4):
        gradient = normal(n)
        words[3] = step
        Adam(rates[0]).update(flat, gradient, states, decay, words)
        logs = np.log(rates[1:3]).astype(np.float32)
        numbers = [np.float32(each) for each in (*rates, *logs)]
        run("adam", n, 1, ours, gradient, own[0], own[1], decay, words, n, *numbers)
    np.testing.assert_allclose(ours, flat, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(own, states, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("shape", "beta", "slope"),
    [((37, 5), 0.7, None), ((9, 64), normal(1), 1.25), ((3, 1), 2.0, 1.0)],
)
def test_what_agnn_does_to_rows_and_its_gradient(shape, beta, slope):
    X, dQ, dV, d_scale = normal(*shape), normal(*shape), normal(*shape), normal(shape[0], 1)
    X[-1] = 0 if slope else X[-1]  # a row of zeros, as a ReLU leaves them
    given = (beta, 0.0) if isinstance(beta, np.ndarray) else (None, beta)
    log_lanes = log_lanes_of_row(shape[1])
    sizes, blocks = (*shape, log_lanes), -(-(shape[0] << log_lanes) // 256)
    source, (Q, dX) = kernel_directory() / "layers/cosines.cu", np.full((2, *shape), np.nan, "f")
    scale, d_beta = np.full((2, shape[0]), np.nan, np.float32)
    arrays = X, *given, Q, scale
    emulate(source, blocks, 256, *arrays, *sizes, NORM_EPS, kernel="cosine_operands")
    expected = cosine_operands(X, beta)
    for found, wanted in zip((Q, scale[:, None]), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    arrays = X, scale, *given, dQ, dV, d_scale, dX, d_beta
    emulate(source, blocks, 256, *arrays, *sizes, slope or 0.0, kernel="cosine_gradient")
    back = {"dQ": dQ, "dV": dV, "d_scale": d_scale}
    expected = cosine_gradient(
        X, scale[:, None], beta, back, slope and ActivationGradient(X, slope)
    )
    for found, wanted in zip((dX, d_beta), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 1), (5, 16), (700, 64), (300, 7), (40, 300), (3, 1000)])
def test_column_sums(shape):
    A, width = normal(*shape), min(shape[1], 256)
    parts = np.full((3, shape[1]), np.nan, np.float32)
    total = np.full(shape[1], np.nan, np.float32)
    source, options = dense_kernel("column_sums").configured_source(), {"kernel": "column_sums"}
    emulate(source, 3, 256, A, parts, *shape, width, **options)
    emulate(source, 1, 256, parts, total, 3, shape[1], width, **options)
    np.testing.assert_allclose(total, A.sum(axis=0, dtype=float), atol=1e-4)


def test_the_weights_of_gcn():
    degrees = [3, 0, 40, 1, 2, 7, 0] + [0] * 40
    graph = gcn_matrix(graph_of_degrees(degrees, len(degrees)))
    matrix, values = Matrix(graph, Products(device="cpu")), normal(graph.nnz)
    source, ends = kernel_directory() / "layers/gcn_weights.cu", (matrix.rows, matrix.columns)
    sums, found = np.zeros(graph.n_rows, np.float32), np.full(graph.nnz, np.nan, np.float32)
    edges, blocks = np.int64(graph.nnz), -(-graph.nnz // 256)
    emulate(source, blocks, 256, ends[0], values, sums, edges, kernel="row_sums")
    emulate(source, blocks, 256, *ends, values, sums, found, edges, kernel="gcn_weights")
    expected = gcn_weights(matrix, values)
    assert 0 < (expected == 0).sum() < graph.nnz  # a sum below 0
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    ones = with_diagonal(graph, np.ones(graph.nnz), np.ones(graph.n_rows))
    weights = gcn_weights(Matrix(ones, matrix.products))
    np.testing.assert_allclose(weights, gcn_matrix(ones).values, rtol=1e-6)


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_100"])
def test_kernels_compile_for_gpus(arch):
    """One file has all entries; each architecture has two of its six settings."""
    try:
        for activation in {"sm_75": (0, 1), "sm_90": (1, 2), "sm_100": (2, 0)}[arch]:
            dropout = activation == 1 or arch == "sm_100"
            assert len(compile_cubin(dense_kernel("finish", activation, dropout), arch)) > 1000
        for file, entry in (("gcn_weights",) * 2, ("cosines", "cosine_gradient")):
            spec = dense_kernel(entry, file=f"layers/{file}.cu")
            assert len(compile_cubin(spec, arch)) > 1000
    except DeviceUnavailable as error:
        pytest.skip(f"kernels are not compile-checked here: {error}")
