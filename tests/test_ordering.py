"""Orders by degree and at random; permutations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from accelviz import degree_sort, load_graph
from accelviz.errors import ArgumentError, GraphError
from accelviz.ordering import (
    Permutation,
    original_order,
    random_order,
    sort_by_degree,
    windowed_degree_sort,
)
from tests.graphs import graph_of_degrees


@given(st.lists(st.one_of(st.integers(0, 9), st.integers(0, 10**6)), max_size=50))
def test_degree_sort_is_the_stable_sort(degrees):
    row_pointers = np.cumsum([0, *degrees])
    permutation, histogram = sort_by_degree(row_pointers)
    assert permutation.order.tolist() == np.argsort(degrees, kind="stable").tolist()
    assert permutation.order.dtype == np.int32
    distinct, counts = np.unique(np.array(degrees, dtype=np.int64), return_counts=True)
    assert histogram.degrees.tolist() == distinct.tolist()
    assert histogram.rows.tolist() == counts.tolist()
    assert (histogram.n_rows, histogram.nnz) == (len(degrees), sum(degrees))
    assert histogram.largest == max(degrees, default=0)


def test_a_very_long_row_needs_little_memory():
    # One of three rows has 2^40 nonzeros, for which numpy.bincount would allocate 8 TB.
    row_pointers = np.array([0, 5, 5 + 2**40, 5 + 2**40 + 3])
    permutation, histogram = sort_by_degree(row_pointers)
    assert permutation.order.tolist() == [2, 0, 1]
    assert histogram.degrees.tolist() == [3, 5, 2**40]


def test_degree_sort_of_a_real_graph():
    graph = load_graph("email-enron")
    permutation = degree_sort(graph)
    assert (np.diff(permutation.apply(graph.degrees)) >= 0).all()
    assert len(permutation) == graph.n_rows
    assert degree_sort(graph.adjacency).order.tolist() == permutation.order.tolist()
    with pytest.raises(GraphError, match="got a int"):
        degree_sort(7)


@given(st.lists(st.integers(0, 6), max_size=60), st.integers(1, 70))
def test_windowed_degree_sort_sorts_each_window(degrees, window):
    graph = graph_of_degrees(degrees)
    rows = np.arange(len(degrees))
    expected = np.lexsort((rows, degrees, rows // window)) if degrees else rows
    assert windowed_degree_sort(graph, window=window).order.tolist() == expected.tolist()


def test_extreme_windows_of_windowed_degree_sort():
    graph = load_graph("cora")
    for window in (graph.n_rows, 2**70, np.int32(8192)):
        permutation = windowed_degree_sort(graph, window=window)
        assert permutation.order.tolist() == degree_sort(graph).order.tolist()
    for window in (0, -1, 2.0, None, True):
        with pytest.raises(ArgumentError, match="window: got .* an integer of at least 1"):
            windowed_degree_sort(graph, window=window)


def test_original_and_random():
    graph = graph_of_degrees([3, 1, 2, 0] * 50, 7)
    assert original_order(graph).order.tolist() == list(range(200))
    orders = [random_order(graph, seed=seed).order.tolist() for seed in range(3)]
    assert len({tuple(order) for order in orders}) == 3
    np.random.default_rng(0).random(9)  # random_order does not share a generator
    assert random_order(graph).order.tolist() == orders[0]
    for seed in (-1, 0.5, True, "1"):
        with pytest.raises(ArgumentError, match="an integer of at least 0"):
            random_order(graph, seed=seed)


@given(st.permutations(range(9)))
def test_apply_and_invert_undo_each_other(order):
    permutation = Permutation(np.array(order))
    array = np.random.default_rng(0).random((9, 2))
    moved = permutation.apply(array)
    np.testing.assert_array_equal(moved, array[order])
    np.testing.assert_array_equal(permutation.invert(moved), array)
    np.testing.assert_array_equal(permutation.apply(array.T, axis=1), moved.T)
    np.testing.assert_array_equal(permutation.invert(moved.T, axis=-1), array.T)


def test_permutations_of_rows_and_of_columns():
    graph = load_graph("cora")
    weights = np.random.default_rng(0).random(graph.nnz).astype(np.float32)
    matrix = sparse.csr_array((weights, graph.column_indices, graph.row_pointers))
    graph = load_graph(matrix)
    permutation = degree_sort(graph)
    order = permutation.order
    dense = matrix.toarray()
    rows = permutation.apply_to_graph(graph)
    np.testing.assert_array_equal(rows.adjacency.toarray(), dense[order])
    symmetric = permutation.apply_to_graph(graph, columns=True)
    np.testing.assert_array_equal(symmetric.adjacency.toarray(), dense[order][:, order])
    # Two layers in the new order, inverted at the end.
    X = np.random.default_rng(1).random((graph.n_rows, 3))
    stacked = symmetric.adjacency @ (symmetric.adjacency @ permutation.apply(X))
    np.testing.assert_allclose(permutation.invert(stacked), matrix @ (matrix @ X), rtol=1e-4)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([0, 0], "missing, repeated or out of range"),
        ([0, 2], "each of 0 to 1"),
        ([-1, 0], "out of range"),
        ([[0, 1]], "1-D"),
        ([0.0, 1.0], "float64"),
    ],
)
def test_invalid_permutations(order, message):
    with pytest.raises(GraphError, match=message):
        Permutation(np.array(order))


def test_sizes_must_match():
    permutation = Permutation(np.array([1, 0]))
    with pytest.raises(GraphError, match="length 2"):
        permutation.apply(np.zeros(3))
    with pytest.raises(GraphError, match="along axis 4"):
        permutation.apply(np.zeros(2), axis=4)
    with pytest.raises(GraphError, match="3 rows for a permutation of 2"):
        permutation.apply_to_graph(graph_of_degrees([1, 1, 1]))
    with pytest.raises(GraphError, match="not square"):
        permutation.apply_to_graph(graph_of_degrees([1, 1], 5), columns=True)
