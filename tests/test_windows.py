"""Sparse graph translation against its definition."""

import numpy as np
import pytest

from accelviz.devices import emulate
from accelviz.devices.cuda import translation
from accelviz.errors import PartitionError
from accelviz.partition.windows import row_windows, untranslated_blocks
from tests.compilers import needs_compiler
from tests.graphs import GRAPHS, graph_of_degrees


@pytest.mark.parametrize("rows", [8, 16])
@pytest.mark.parametrize("name", ["empty", "no_columns", "isolated_ends", "every_kind", "cora"])
def test_windows_have_their_distinct_columns_in_order(name, rows):
    graph = GRAPHS[name]()
    windows = row_windows(graph, rows)
    assert len(windows) == -(-graph.n_rows // rows)
    own = np.repeat(np.arange(graph.n_rows), graph.degrees) // rows
    for window in range(len(windows)):
        senders = windows.senders[windows.pointers[window] : windows.pointers[window + 1]]
        assert np.array_equal(senders, np.unique(graph.column_indices[own == window]))
    found = windows.senders[windows.pointers[own] + windows.edge_to_column]
    assert np.array_equal(found, graph.column_indices)
    tiles = {*zip(own.tolist(), (windows.edge_to_column // 4).tolist(), strict=True)}
    assert windows.blocks(4).sum() == len(tiles)
    before = {*zip(own.tolist(), (graph.column_indices // 4).tolist(), strict=True)}
    assert untranslated_blocks(graph, rows, 4).sum() == len(before)


def test_reuse_and_fill_are_those_counted_by_hand():
    """Two rows with the columns 0 1 2 and 0 1 2, one with 0 1, one with none."""
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
    assert np.array_equal(row_windows("cora", 16).senders, row_windows(graph, 16).senders)
    assert row_windows(graph.pattern, 16).reuse == row_windows("cora", 16).reuse
    before = untranslated_blocks(graph, 16, 8)
    assert np.array_equal(untranslated_blocks(graph.adjacency, 16, 8), before)
    with pytest.raises(PartitionError, match="width: got 0"):
        row_windows(graph, 16).blocks(0)
    with pytest.raises(PartitionError, match="width: got 0"):
        untranslated_blocks(graph, 16, 0)
    with pytest.raises(PartitionError, match="rows: got 0"):
        untranslated_blocks(graph, 0, 8)


@needs_compiler
@pytest.mark.parametrize(("name", "rows"), [("isolated_ends", 8), ("every_kind", 16), ("cora", 16)])
def test_the_kernels_that_translate_do_so_in_the_emulator(name, rows):
    graph = GRAPHS[name]()
    counts = {"rows": rows, "n_rows": graph.n_rows, "nnz": graph.nnz}

    def emulated(entry, unwritten, **arrays):
        made = translation.spec(entry)
        given = {"row_pointers": graph.row_pointers, "columns": graph.column_indices, **arrays}
        return emulate(
            made.configured_source(),
            *(-(-graph.nnz // translation.CHUNK), translation.BLOCK_THREADS),
            **{**given, **counts},
            kernel=entry,
            unwritten=unwritten,
        )

    places, marks = np.zeros(graph.nnz, np.uint32), np.zeros(graph.nnz, np.uint8)
    emulated("place_columns", ["places"], places=places, marks=marks)
    before = np.append(0, np.cumsum(marks, dtype=np.int64))
    senders = np.zeros(before[-1], np.int32)
    changed = {"edge_to_column": places, "senders": senders}
    emulated("condense_columns", ["senders"], distinct_before=before, **changed)
    expected = row_windows(graph, rows)
    assert np.array_equal(senders, expected.senders)
    assert np.array_equal(places.view(np.int32), expected.edge_to_column)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["empty", "no_columns", "every_kind", "cora"])
def test_the_gpu_translates_likewise(name):
    import cupy

    from accelviz.graph import Pattern

    graph = GRAPHS[name]()
    on_device = Pattern(
        cupy.asarray(graph.row_pointers), cupy.asarray(graph.column_indices), graph.shape, name
    )
    for rows in (8, 16):
        found, expected = translation.translate_windows(on_device, rows), row_windows(graph, rows)
        for each in ("pointers", "senders", "edge_to_column"):
            assert np.array_equal(getattr(found, each).get(), getattr(expected, each))
