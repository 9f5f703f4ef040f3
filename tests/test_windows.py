"""Sparse graph translation, compared with its definition."""

import numpy as np
import pytest

from accelviz.devices import find_device
from accelviz.errors import PartitionError
from accelviz.graph import Pattern
from accelviz.partition.windows import row_windows
from benchmarks.measure.translation import translate_windows
from tests.compilers import EMULATOR
from tests.graphs import GRAPHS, graph_of_degrees


@pytest.mark.parametrize("rows", [8, 16])
@pytest.mark.parametrize("name", ["empty", "no_columns", "isolated_ends", "every_kind", "cora"])
def test_windows_have_their_distinct_columns_in_order(name, rows):
    graph = GRAPHS[name]()
    windows = row_windows(graph, rows)
    assert len(windows) == -(-graph.n_rows // rows)
    window_of = np.repeat(np.arange(graph.n_rows), graph.degrees) // rows
    for window in range(len(windows)):
        distinct = windows.columns[windows.pointers[window] : windows.pointers[window + 1]]
        assert np.array_equal(distinct, np.unique(graph.column_indices[window_of == window]))
    columns = windows.columns[windows.pointers[window_of] + windows.edge_to_column]
    assert np.array_equal(columns, graph.column_indices)
    tiles = {*zip(window_of.tolist(), (windows.edge_to_column // 4).tolist(), strict=True)}
    assert windows.blocks(4).sum() == len(tiles)


def test_reuse_and_fill_are_those_counted_by_hand():
    """Two rows have the columns 0, 1 and 2, one has 0 and 1, one has none."""
    graph = graph_of_degrees([3, 3, 2, 0], 3)
    windows = row_windows(graph, 2)
    assert windows.reuse == 8 / 5
    assert windows.fill(4) == 8 / 16
    assert row_windows(graph_of_degrees([0]), 8).reuse == 1.0


def test_a_window_has_rows():
    with pytest.raises(PartitionError, match="rows"):
        row_windows(graph_of_degrees([1]), 0)


def test_windows_take_what_can_be_loaded_and_tiles_have_columns():
    graph = GRAPHS["cora"]()
    assert np.array_equal(row_windows("cora", 16).columns, row_windows(graph, 16).columns)
    assert row_windows(graph.pattern, 16).reuse == row_windows("cora", 16).reuse
    with pytest.raises(PartitionError, match="width: got 0"):
        row_windows(graph, 16).blocks(0)


@pytest.mark.parametrize("device", [EMULATOR, pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("name", ["empty", "no_columns", "isolated_ends", "every_kind", "cora"])
def test_a_device_translates_likewise(name, device):
    graph, executor = GRAPHS[name](), find_device(device)
    pattern = Pattern(
        *map(executor.to_device, (graph.row_pointers, graph.column_indices)), graph.shape, name
    )
    for rows in (8, 16):
        windows, expected = translate_windows(executor, pattern, rows), row_windows(graph, rows)
        for field in ("pointers", "columns", "edge_to_column"):
            array = executor.to_host(getattr(windows, field))
            assert np.array_equal(array, getattr(expected, field))
