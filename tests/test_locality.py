"""Locality statistics, compared with plain Python."""

import itertools
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelviz import load_graph, plan
from accelviz.analysis.locality import (
    distinct_share,
    in_block_order,
    locality,
    neighbor_overlap,
    reuse_distances,
)
from accelviz.errors import ArgumentError
from tests.graphs import GRAPHS, graph_of_degrees


def rows_of(graph):
    return [set(part.tolist()) for part in np.split(graph.column_indices, graph.row_pointers[1:-1])]


def check(graph):
    rows = rows_of(graph) if graph.n_rows else []
    pairs = [(a, b) for a, b in itertools.pairwise(rows) if a and b]
    jaccard = [len(a & b) / len(a | b) for a, b in pairs]
    assert neighbor_overlap(graph) == pytest.approx(np.mean(jaccard) if jaccard else 0)
    for window in (1, 3, 64):
        distinct = sum(len(set().union(*rows[i : i + window])) for i in range(0, len(rows), window))
        expected = distinct / graph.nnz if graph.nnz else 0
        assert distinct_share(graph, window=window) == pytest.approx(expected)
    stack, expected = OrderedDict(), []
    for column in graph.column_indices.tolist():
        keys = list(stack)
        expected.append(len(keys) - 1 - keys.index(column) if column in stack else -1)
        stack.pop(column, None)
        stack[column] = None
    assert reuse_distances(graph).tolist() == expected


@given(st.lists(st.integers(0, 6), max_size=9))
def test_small_random_graphs(degrees):
    check(graph_of_degrees(degrees, 7))


@pytest.mark.parametrize("name", [name for name in GRAPHS if GRAPHS[name]().nnz < 12_000])
def test_the_tested_graphs(name):
    graph = GRAPHS[name]()
    check(graph)
    assert locality(graph).distinct_share == distinct_share(graph)


def test_a_cache_of_c_rows_serves_what_the_distances_say():
    """Stack property: an LRU cache of any size hits exactly the smaller reuse distances."""
    graph = load_graph("cora")
    distances = reuse_distances(graph)
    for capacity in (1, 10, 200):
        held, hits = OrderedDict(), 0
        for column in graph.column_indices.tolist():
            hits += column in held
            held.pop(column, None)
            held[column] = None
            if len(held) > capacity:
                held.popitem(last=False)
        assert hits == np.count_nonzero((distances >= 0) & (distances < capacity))


def test_a_window_must_have_a_row():
    with pytest.raises(ArgumentError, match="window: got 0"):
        distinct_share(load_graph("cora"), window=0)


def test_rows_come_in_the_order_of_the_blocks():
    graph = load_graph("cora")
    by_degree = in_block_order(plan(graph, "lane_groups", 16, block_order="degree"))
    in_place = in_block_order(plan(graph, "lane_groups", 16, block_order="place"))
    assert (np.diff(by_degree.degrees) >= 0).all()
    assert (np.diff(in_place.degrees) < 0).any()
    for walked in (by_degree, in_place):
        assert sorted(walked.degrees) == sorted(graph.degrees)
        assert walked.nnz == graph.nnz
    natural = in_block_order(plan(graph, "graphblast", 16))
    np.testing.assert_array_equal(natural.column_indices, graph.column_indices)
