"""Softmax over the nonzeros of each row, and its gradient, for extreme scores and rows."""

import numpy as np
import pytest

import accelviz
from accelviz import measure
from accelviz.devices import run_operation
from accelviz.errors import ArgumentError
from accelviz.measure.accuracy import Oracle
from accelviz.strategies import EDGE_SOFTMAX, EDGE_SOFTMAX_GRADIENT
from tests.compilers import HOST
from tests.graphs import graph_of_degrees
from tests.inherited import central_differences

BOTH = pytest.mark.parametrize("strategy", accelviz.strategies("edge_softmax"))
#: Degrees: no nonzero, one, several, and more than a subwarp keeps in registers.
DEGREES = [0, 1, 2, 7, 0, 40, 300, 1]


def softmax(graph, scores):
    """Return the softmax in float64, row by row, independent of the reference."""
    alpha = np.empty(scores.shape)
    for first, last in zip(graph.row_pointers[:-1], graph.row_pointers[1:], strict=True):
        powers = np.exp(scores[first:last].astype(np.longdouble))
        alpha[first:last] = powers / powers.sum(axis=0)
    return alpha


def test_the_reference_is_the_definition():
    graph = graph_of_degrees(DEGREES)
    scores = 20 * measure.features(graph.nnz, 3)
    expected, _ = EDGE_SOFTMAX.reference(graph.pattern, {"scores": scores})["alpha"]
    np.testing.assert_allclose(expected, softmax(graph, scores), rtol=1e-12)


def test_the_gradient_is_that_of_float64_differences():
    graph = graph_of_degrees([0, 1, 2, 7, 0, 5])
    scores, weights = (measure.features(graph.nnz, 2, seed).astype(float) for seed in (0, 1))
    alpha = softmax(graph, scores)
    inputs = {"alpha": alpha, "d_alpha": weights}
    gradient, _ = EDGE_SOFTMAX_GRADIENT.reference(graph.pattern, inputs)["d_scores"]
    expected = central_differences(
        lambda changed: (softmax(graph, changed) * weights).sum(), scores
    )
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-9)


@HOST
@BOTH
@pytest.mark.parametrize("size", [0.0, 1.0, 80.0, 1e4, 1e30, 3e38])
def test_scores_of_any_size(size, strategy, device):
    graph = graph_of_degrees(DEGREES)
    scores = np.clip(size * measure.features(graph.nnz, 2).astype(float), -3e38, 3e38)
    scores[:, 1] = size  # all equal
    with np.errstate(over="ignore"):
        alpha = accelviz.edge_softmax(graph, scores, strategy, device)
    assert Oracle(graph, scores, operation=EDGE_SOFTMAX).error(alpha) <= 1
    rows = np.flatnonzero(graph.degrees)
    np.testing.assert_allclose(np.add.reduceat(alpha, graph.row_pointers[rows]), 1, rtol=1e-5)


def test_one_head_is_flat_and_an_output_is_written():
    graph = graph_of_degrees(DEGREES)
    scores = measure.features(graph.nnz, 1)
    heads = accelviz.edge_softmax(graph, scores, device="cpu")
    flat = accelviz.edge_softmax(graph, scores[:, 0].tolist(), device="cpu")
    assert flat.shape == (graph.nnz,)
    np.testing.assert_array_equal(heads[:, 0], flat)
    out = np.full(graph.nnz, np.nan, np.float32)
    assert accelviz.edge_softmax(graph, scores[:, 0], device="cpu", out=out) is out
    np.testing.assert_array_equal(out, flat)
    plan = accelviz.plan(graph, n_cols=1, operation="edge_softmax")
    np.testing.assert_array_equal(accelviz.edge_softmax(plan, scores, device="cpu"), heads)


@HOST
@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.ones(350), r"scores: shape \(350,\).*shape \(351,\): nonzeros = 351"),
        (np.ones((351, 0)), "scores: shape .*at least one n_cols"),
        (np.ones((351, 2, 2)), r"scores: shape \(351, 2, 2\).*2-D"),
        (np.where(np.arange(351) == 9, np.nan, 1), "scores: some are NaN or infinite"),
        (np.where(np.arange(351) == 9, -np.inf, 1), "scores: some are NaN or infinite"),
        (np.ones(351, complex), "scores: dtype complex128"),
        (np.array([None] * 351), "scores: .*dtype object"),
    ],
)
def test_wrong_scores_are_named(scores, message, device):
    graph = graph_of_degrees(DEGREES)
    assert graph.nnz == 351
    with pytest.raises(ArgumentError, match=message):
        accelviz.edge_softmax(graph, scores, device=device)


@pytest.mark.parametrize(
    ("operands", "message"),
    [
        ({"alpha": np.ones((351, 1))}, "d_alpha: edge_softmax_gradient needs it.*alpha, d_alpha"),
        ({"alpha": 1, "d_alpha": 1, "beta": 1}, "beta: .* has no such operand.*alpha, d_alpha"),
        (
            {"alpha": np.ones((351, 2)), "d_alpha": np.ones((351, 1))},
            r"d_alpha: shape \(351, 1\).*\(351, 2\)",
        ),
    ],
)
def test_operands_that_do_not_fit_are_named(operands, message):
    graph = graph_of_degrees(DEGREES)
    with pytest.raises(ArgumentError, match=message):
        run_operation("edge_softmax_gradient", graph, operands, device="cpu")


def test_an_output_that_overlaps_is_refused():
    graph = graph_of_degrees(DEGREES)
    room = np.zeros(2 * graph.nnz, np.float32)
    with pytest.raises(ArgumentError, match="out: it overlaps scores"):
        accelviz.edge_softmax(graph, room[: graph.nnz], device="cpu", out=room[5 : graph.nnz + 5])
