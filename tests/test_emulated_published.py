"""Kernels in the style of CUDA samples, llm.c, puzzles and GNN research run without a change."""

from pathlib import Path

import numpy as np
import pytest

from accelviz import emulate
from tests.compilers import needs_compiler

pytestmark = needs_compiler

FOLDER = Path(__file__).parent / "kernels" / "published"
N, E, F = 48, 160, np.float32
rng = np.random.default_rng(0)
rows, columns = np.sort(rng.integers(0, 40, E)).astype("i4"), rng.integers(0, 40, E).astype("i4")
pointers = np.append(0, np.cumsum(np.bincount(rows, minlength=N))).astype("i4")
values = rng.random(E, F)


def launch(name, grid, block, *arguments, **options):
    return emulate(FOLDER / f"{name}.cu", grid, block, *arguments, **options)


def zeros(*shape, dtype=F):
    return np.zeros(shape, dtype)


def sparse(weights):
    A = np.zeros((N, N))
    np.add.at(A, (rows, columns), weights)
    return A


def bfloat16(*shape):
    return (rng.standard_normal(shape).astype(F).view("u4") >> 16).astype("u2")


def numbers(bits):
    return (bits.astype("u4") << 16).view(F).astype(float)


def test_reductions():
    X = rng.random(3000, F)
    entry = "reduceSum<float, 256, true>"
    Y = launch("reduction", 4, 256, X, zeros(4), 3000, kernel=entry, shared_bytes=1024)
    np.testing.assert_allclose(Y["g_odata"].sum(), X.sum(), rtol=1e-5)
    Y = launch("grid_reduction", 4, 64, X, zeros(4), 3000, shared_bytes=512)
    np.testing.assert_allclose(Y["g_odata"][0], X.sum(), rtol=1e-5)


def test_layer_norm_of_bfloat16():
    X, Y, weight, bias = bfloat16(6, 256), bfloat16(6, 256), bfloat16(256), bfloat16(256)
    outputs = zeros(6, 256, dtype="u2"), zeros(6, 256, dtype="u2"), zeros(6), zeros(6)
    arguments = *outputs, X, Y, weight, bias, 6, 256
    out = launch("layernorm", 2, (32, 4), *arguments, shared_bytes=6 * 512)
    total = numbers(out["residual"])
    np.testing.assert_allclose(total, numbers(X) + numbers(Y), rtol=1e-2, atol=1e-3)
    normal = (total - total.mean(1, keepdims=True)) / total.std(1, keepdims=True)
    expected = normal * numbers(weight) + numbers(bias)
    np.testing.assert_allclose(numbers(out["normed"]), expected, rtol=2e-2, atol=2e-2)


def test_classifier():
    logits, targets = rng.random((6, 128), F), rng.integers(0, 100, 6).astype("i4")
    powers = np.exp(logits[:, :100].astype(float))
    expected = powers / powers.sum(1, keepdims=True)
    arguments = logits.copy(), zeros(6), zeros(6, 128), 1.0, targets, 2, 3, 100, 128
    out = launch("classifier", 6, 128, *arguments, kernel="fused_classifier_kernel5<true, true>")
    np.testing.assert_allclose(out["probs"][:, :100], expected, rtol=1e-4)
    np.testing.assert_allclose(out["losses"], -np.log(expected[range(6), targets]), rtol=1e-4)


def test_sparse_products():
    windows = [slice(pointers[i], pointers[i + 16]) for i in range(0, N, 16)]
    condensed = [np.unique(columns[window], return_inverse=True) for window in windows]
    tiles = np.array([-(-len(unique) // 8) for unique, _ in condensed], "i4")
    positions = np.concatenate([position for _, position in condensed]).astype("i4")
    X = rng.integers(0, 9, (N, 32)).astype(F)
    arguments = pointers, columns, tiles, positions, rows, N, E, 32, X, zeros(N, 32)
    with pytest.warns(UserWarning, match="store the same value in sparse_AToX_index"):
        out = launch("wmma_spmm", 3, (32, 4), *arguments, shared_bytes=2048)
    np.testing.assert_array_equal(out["output"], np.minimum(sparse(1), 1) @ X)
    X = rng.random((N, 50), F)
    arguments = N, 50, pointers, columns, values, X, zeros(N, 50)
    entry = "csrspmm_parreduce_rowbalance<int, float, 2>"
    out = launch("cached_spmm", (12, 1), (32, 4), *arguments, kernel=entry, shared_bytes=1024)
    np.testing.assert_allclose(out["C"], sparse(values) @ X, rtol=1e-4, atol=1e-5)


def test_edge_scores():
    Q, K = rng.integers(0, 5, (2, N, 16)).astype(np.float16)
    arguments = columns, rows, Q, K, zeros(E), np.full(N, -1e30, F), E, 16
    out = launch("edge_scores", 2, 64, *arguments)
    expected = (Q[rows].astype(F) * K[columns]).sum(1)
    np.testing.assert_array_equal(out["score"], expected)
    top = np.full(N, -1e30, F)
    np.maximum.at(top, rows, expected)
    np.testing.assert_array_equal(out["top"], top)


def test_product_with_asynchronous_copies():
    A, B = rng.integers(0, 9, (2, 64, 64)).astype(F)
    arguments = A, B, zeros(64, 64), 64, 64, 64
    out = launch("async_matmul", (2, 2), (8, 8), *arguments, kernel="sgemm_async<>")
    np.testing.assert_array_equal(out["c"], A @ B)


@pytest.mark.parametrize("kernel", ["conv1d", "prefix", "axis_sum"])
def test_puzzles(kernel):
    a, b = rng.integers(0, 9, 15).astype(F), np.float32([1, 2, 3, 4])
    if kernel == "conv1d":
        out = launch("puzzles", 2, 8, zeros(15), a, b, 15, 4, kernel=kernel)["out"]
        expected = np.correlate(np.append(a, zeros(3)), b)
    elif kernel == "prefix":
        out = launch("puzzles", 2, 8, zeros(2), a, 15, kernel=kernel)["out"]
        expected = [a[:8].sum(), a[8:].sum()]
    else:
        A = a[:12].reshape(2, 6)
        out = launch("puzzles", (1, 2), 8, zeros(2, 1), A, 6, kernel=kernel)["out"].ravel()
        expected = A.sum(1)
    np.testing.assert_array_equal(out, expected)


def test_expansion_of_a_frontier():
    frontier, distance = np.arange(30, dtype="i4"), np.where(np.arange(N) < 30, 0, -1).astype("i4")
    counts = zeros(1, dtype="i4"), zeros(1, dtype="i4")
    arguments = pointers, columns, frontier, 30, distance, zeros(N, dtype="i4"), counts[0], 1
    out = launch("expand", 1, 64, *arguments, counts[1], kernel="expand<64>")
    reached = {*columns[: pointers[30]].tolist()} - {*range(30)}
    assert {*out["next"][: len(reached)].tolist()} == reached
    assert out["n_next"] == len(reached)
    assert out["total_edges"] == pointers[30]
