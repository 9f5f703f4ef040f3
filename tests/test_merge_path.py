"""The merge-path partition scheme, and its kernel at the borders of shares."""

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accelviz
from accelviz.partition.merge_path import (
    cuts_rows,
    first_nonzeros,
    merge_path_partition,
    merge_path_workload,
)
from accelviz.workload import Workload, check_cover
from tests.compilers import EMULATOR
from tests.graphs import MADE, graph_of_degrees
from tests.inherited import check_results


def path_of(degrees):
    """Return the path: (row, nonzero) for each nonzero, then (row, None) for the row's end."""
    nonzero = 0
    for row, degree in enumerate(degrees):
        for _ in range(degree):
            yield row, nonzero
            nonzero += 1
        yield row, None


def records_of(degrees, warp_items, warps_per_block):
    """Return the workload, item by item."""
    path, records = list(path_of(degrees)), []
    for warp, first in enumerate(range(0, len(path), warp_items)):
        for row, items in groupby(path[first : first + warp_items], key=lambda item: item[0]):
            nonzeros = [nonzero for _, nonzero in items if nonzero is not None]
            if nonzeros or not degrees[row]:
                start = nonzeros[0] if nonzeros else sum(degrees[:row])
                records.append([*divmod(warp, warps_per_block), row, start, len(nonzeros)])
    return records


def rows_of(records):
    return np.array(records or np.empty((0, 5)), dtype=np.int64)


DEGREES = st.lists(st.one_of(st.just(0), st.integers(0, 5), st.integers(0, 150)), max_size=60)


@settings(max_examples=300)
@given(DEGREES, st.integers(1, 70), st.integers(1, 32), st.integers(1, 4))
def test_shares_are_equal_and_the_workload_is_the_path(degrees, warp_items, block_warps, step):
    row_pointers = np.cumsum([0, *degrees], dtype=np.int64)
    rows = merge_path_partition(row_pointers, warp_items)
    warps = rows.size - 1
    nonzeros = first_nonzeros(row_pointers, rows, warp_items, 0, warps + 1)
    shares = np.diff(rows) + np.diff(nonzeros)
    assert shares.sum() == len(degrees) + sum(degrees)
    assert (shares[:-1] == warp_items).all()
    assert all(0 < share <= warp_items for share in shares[-1:])
    assert rows[0] == nonzeros[0] == 0

    blocks = -(-warps // block_warps)
    slices = [
        merge_path_workload(
            row_pointers, rows, warp_items, block_warps, start, min(start + step, blocks)
        )
        for start in range(0, blocks, step)
    ]
    check_cover(slices, row_pointers, blocks, block_warps)
    expected = rows_of(records_of(degrees, warp_items, block_warps))
    records = Workload.concatenate(slices).to_frame().to_numpy()
    np.testing.assert_array_equal(records, expected)
    # Each row is written, and only split rows by several warps.
    writers = np.bincount(expected[:, 2], minlength=len(degrees))
    assert (writers >= 1).all()
    assert cuts_rows(row_pointers, rows, warp_items) == bool((writers > 1).any())


@settings(max_examples=20)
@given(DEGREES, st.integers(1, 3), st.integers(1, 5))
def test_the_output_is_cleared_only_where_a_row_is_cut(degrees, items_per_thread, block_warps):
    graph = graph_of_degrees(degrees)
    setting = {"items_per_thread": items_per_thread, "block_warps": block_warps}
    plan = accelviz.plan(graph, "merge_path", 3, **setting)
    plan.check()
    assert plan.parameters == setting
    pieces = plan.workload().to_frame().groupby("row").size()
    assert plan.zero_outputs == (("Y",) if (pieces > 1).any() else ())
    check_results(graph, "merge_path", "cpu", columns=(3,), **setting)


@pytest.mark.sample(2)
@pytest.mark.parametrize("device", ["cpu", EMULATOR])
@pytest.mark.parametrize(
    ("degrees", "busy", "cut"),
    [
        ([31], 1, False),  # the nonzeros and the end
        ([32], 1, False),  # the end is the next warp's, which has nothing to do
        ([33], 2, True),
        ([32, 0, 5], 2, False),  # the end, an empty row and another row
        ([32, *[0] * 40, 1], 2, False),
        ([5, 25, 31], 2, False),  # a row begins on the boundary
        ([5, 26, 30], 2, False),  # a row ends on it, its end beyond
        ([5, 28, 29], 2, True),
        ([*[0] * 32, 32, *[0] * 33], 1, False),
        ([0, 96, 0, 200, 0], 10, True),
        ([3] * 100, 13, False),  # eight rows and their ends to a share
        ([4] * 100, 16, True),
    ],
)
def test_rows_at_the_boundary_of_shares(degrees, busy, cut, device):
    graph = graph_of_degrees(degrees)
    plan = accelviz.plan(graph, "merge_path", items_per_thread=1)
    plan.check()
    assert plan.statistics.busy_warps == busy
    assert plan.zero_outputs == (("Y",) if cut else ())
    for block_warps in (1, 3):
        setting = {"items_per_thread": 1, "block_warps": block_warps}
        check_results(graph, "merge_path", device, columns=(5, 33), **setting)


@pytest.mark.parametrize("device", ["cpu", EMULATOR])
def test_many_columns(device):
    graph = MADE["isolated_ends"]()
    check_results(graph, "merge_path", device, columns=(257, 10_000))
    assert accelviz.plan(graph, "merge_path", 10_000).launch.grid[1] == 79  # tiles of 128


def test_positions_past_2_to_the_31_need_no_more_metadata():
    row_pointers = np.arange(0, 5, dtype=np.int64) << 30
    rows = merge_path_partition(row_pointers, 2048)
    assert rows.dtype == np.int32
    blocks = -(-(rows.size - 1) // 8)
    work = merge_path_workload(row_pointers, rows, 2048, 8, blocks - 1, blocks)
    assert set(work.row) == {3}
    assert work.nz_start[-1] + work.nz_count[-1] == 1 << 32
    assert (work.nz_start[1:] == work.nz_start[:-1] + 2048).all()
    assert cuts_rows(row_pointers, rows, 2048)


def test_plans_for_other_column_counts_share_the_search():
    graph = MADE["all_degrees"]()
    one, other = (accelviz.plan(graph, "merge_path", n_cols) for n_cols in (16, 200))
    assert one.metadata is other.metadata
    assert one.metadata_bytes == 4 * (-(-(graph.n_rows + graph.nnz) // 64) + 1)
    assert list(one.setup_seconds) == ["merge-path search"]
    wider = accelviz.plan(graph, "merge_path", 16, items_per_thread=4)
    assert wider.metadata.size < one.metadata.size
