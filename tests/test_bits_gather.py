"""Sums of neighbors' features of 8 and 4 bits: exact, whatever the rows."""

import numpy as np
import pytest

from accelviz import bits
from accelviz.errors import ArgumentError
from tests.graphs import graph_of_degrees
from tests.test_bits import each_device, host


@pytest.mark.sample(4, always=lambda case: case["columns"] == 3)
@each_device
@pytest.mark.parametrize(("width", "columns"), [(8, 64), (4, 70), (8, 3), (4, 600)])
def test_sums_equal_those_of_numpy(width, columns, device):
    """Rows that are empty, short, shared by groups of a block, and by blocks."""
    rng = np.random.default_rng(columns)
    few = columns > 64
    graph = graph_of_degrees([0, 1, 2, 17, *(3,) * 20, 90, 0, *((130, 400) if few else (2100,))])
    X = rng.integers(0, 1 << width, (graph.shape[1], columns))
    plan = bits.Gather(graph, columns, width)
    rows = bits.pack_rows(X, width)
    assert np.array_equal(rows.levels(), X)
    pattern = graph.adjacency.toarray() != 0
    assert np.array_equal(host(plan.run(rows, device)), pattern.astype(int) @ X)


def test_rows_of_other_widths_are_refused():
    graph = graph_of_degrees([1, 2])
    with pytest.raises(ArgumentError, match="bits: got 3"):
        bits.pack_rows([[1]], 3)
    with pytest.raises(ArgumentError, match="numbers: 0 to 16.*0 to 15"):
        bits.pack_rows([[0, 16]], 4)
    with pytest.raises(ArgumentError, match=r"numbers: .*numbers\.toarray\(\)"):
        bits.pack_rows(graph.adjacency, 8)
    with pytest.raises(ArgumentError, match="bits: got 2"):
        bits.Gather(graph, 4, 2)
    with pytest.raises(ArgumentError, match="X: 1 x 1 of 8 bits"):
        bits.Gather(graph, 1, 8).run(bits.pack_rows([[1]], 8), "cpu")
