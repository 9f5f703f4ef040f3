"""Random graphs of any size have the properties of their model."""

import numpy as np
import pytest

from accelviz.card import average_edge_span, is_symmetric
from accelviz.datasets import rmat, stochastic_block
from accelviz.errors import ArgumentError


@pytest.mark.parametrize("order", ["natural", "shuffled"])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("make", [rmat, stochastic_block])
def test_size_symmetry_and_seed(make, symmetric, order):
    graph = make(50_000, symmetric=symmetric, order=order)
    assert 0.8 * 50_000 < graph.nnz <= 50_000
    assert is_symmetric(graph) == symmetric
    assert graph.adjacency.diagonal().sum() == 0
    assert graph.kind == "random"
    assert (graph.values == 1).all()
    again = make(50_000, symmetric=symmetric, order=order)
    np.testing.assert_array_equal(again.column_indices, graph.column_indices)
    other = make(50_000, symmetric=symmetric, order=order, seed=1)
    assert other.nnz != graph.nnz or (other.column_indices != graph.column_indices).any()
    assert make(30, n_nodes=21, symmetric=symmetric, order=order).n_rows == 21


def test_rmat_puts_edges_into_the_quadrants_as_asked():
    a, b, c = 0.5, 0.25, 0.15
    graph = rmat(400_000, n_nodes=1 << 20, quadrants=(a, b, c), symmetric=False, order="natural")
    rows = np.repeat(np.arange(graph.n_rows), graph.degrees)
    for bit in (19, 12):  # the first level, and a later one
        lower_half, right_half = rows >> bit & 1, graph.column_indices >> bit & 1
        shares = np.bincount(2 * lower_half + right_half, minlength=4) / graph.nnz
        np.testing.assert_allclose(shares, [a, b, c, 1 - a - b - c], atol=0.01)


def test_stochastic_block_keeps_the_share_within():
    graph = stochastic_block(200_000, n_nodes=10_000, n_blocks=50, within=0.7)
    rows = np.repeat(np.arange(graph.n_rows), graph.degrees)
    same = rows // 200 == graph.column_indices // 200
    assert same.mean() == pytest.approx(0.7 + 0.3 / 50, abs=0.02)
    degrees = graph.degrees
    assert degrees.std() < 1.2 * np.sqrt(degrees.mean())  # no tail
    assert average_edge_span(graph) < 0.5 * average_edge_span(
        stochastic_block(200_000, n_nodes=10_000, n_blocks=50, within=0.7, order="shuffled")
    )
    uneven = stochastic_block(2_000, n_nodes=103, n_blocks=10, within=1.0)
    rows = np.repeat(np.arange(103), uneven.degrees)
    assert (rows * 10 // 103 == uneven.column_indices * 10 // 103).all()


def test_size_zero_is_an_empty_graph():
    assert rmat(0).nnz == 0
    assert stochastic_block(0).nnz == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rmat(-1), "n_edges: got -1"),
        (lambda: rmat(10, n_nodes=1), "n_nodes: got 1"),
        (lambda: rmat(10, n_nodes=2**31), "n_nodes"),
        (lambda: rmat(10, quadrants=(0.6, 0.3, 0.3)), "quadrants"),
        (lambda: rmat(10, quadrants=(1.0, 0.0, 0.0)), "b \\+ c above"),
        (lambda: rmat(10, order="sorted"), "one of natural, shuffled"),
        (lambda: stochastic_block(10, within=1.5), "within: got 1.5"),
        (lambda: stochastic_block(10, n_nodes=10, n_blocks=6), "blocks of 2"),
        (lambda: stochastic_block(10, n_blocks=0), "n_blocks"),
    ],
)
def test_arguments_that_are_wrong(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
