"""The properties of a graph on its card."""

import math

import numpy as np
import pytest
from scipy import sparse

from accelviz import describe, load_graph
from accelviz.card import average_edge_span
from tests.graphs import GRAPHS


@pytest.mark.parametrize("name", GRAPHS)
def test_facts_are_what_scipy_and_numpy_say(name):
    graph = GRAPHS[name]()
    card, matrix = describe(graph), graph.adjacency
    degrees = np.sort(graph.degrees)[::-1]
    assert (card.rows, card.columns) == matrix.shape
    assert card.nonzeros == matrix.nnz
    assert card.max_degree == degrees.max(initial=0)
    assert card.zero_rows == (degrees == 0).sum()
    assert card.weighted == (graph.values != 1).any()
    square = matrix.shape[0] == matrix.shape[1]
    assert card.symmetric == (square and (matrix != matrix.T).nnz == 0)
    if matrix.nnz:
        assert card.density == pytest.approx(matrix.nnz / np.prod(matrix.shape, dtype=float))
        assert card.top_share == degrees[: math.ceil(len(degrees) / 100)].sum() / matrix.nnz
    coo = matrix.tocoo()
    if square and matrix.nnz:
        span = np.abs(coo.row.astype(np.int64) - coo.col).mean()
        assert card.average_edge_span == pytest.approx(span)
    else:
        assert math.isnan(card.average_edge_span)
    assert str(card)
    assert "<table" in card._repr_html_()


def test_weights_count_for_symmetry_and_for_the_card():
    graph = load_graph(sparse.csr_array([[0, 2.0], [2.0, 0]]))
    assert describe(graph).symmetric
    assert describe(graph).weighted
    assert not describe(load_graph(sparse.csr_array([[0, 2.0], [3.0, 0]]))).symmetric
    assert not describe(load_graph(sparse.csr_array([[0, 2.0], [0, 0]]))).symmetric


def test_average_edge_span_of_a_hand_made_graph():
    graph = load_graph(np.array([[0, 3, 1], [3, 0, 2]]))
    assert average_edge_span(graph) == pytest.approx((3 + 3 + 1) / 3)


def test_the_card_tells_real_from_made_up_and_escapes_names():
    assert "real: a published graph" in str(describe(load_graph("cora")))
    mine = describe(load_graph(np.array([[0], [1]]), name="<b>mine</b>"))
    assert "given: a file or object of yours" in str(mine)
    assert "<b>mine" not in mine._repr_html_()
    assert describe("cora") == describe(load_graph("cora"))
    assert "directed" in str(mine)
    assert "rectangular" in str(describe(load_graph(sparse.csr_array((2, 3)))))
