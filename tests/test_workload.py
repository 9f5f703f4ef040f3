"""The workload table, its validation and its statistics."""

import numpy as np
import pytest

from accelviz.errors import PartitionError
from accelviz.partition.hardware_warps import HardwareWarps
from accelviz.partition.summary import statistics
from accelviz.workload import Workload, check_cover, nonzeros_per_warp, spread

ROW_POINTERS = np.array([0, 3, 3, 8])


def table(*records):
    return Workload(*np.array(records or np.empty((0, 5)), dtype=np.int64).T)


GOOD = [(0, 0, 0, 0, 3), (0, 1, 2, 3, 2), (1, 1, 2, 5, 3)]


def test_counted_by_hand():
    summary = statistics([table(*GOOD[:2]), table(GOOD[2])], 3, HardwareWarps(2, 2))
    assert (summary.blocks, summary.warps, summary.busy_warps, summary.nonzeros) == (3, 6, 3, 8)
    loads = summary.loads
    assert (loads.nonzeros.tolist(), loads.warps.tolist(), loads.idle) == ([2, 3], [1, 2], 3)
    assert summary.idle_warps == 0.5
    assert summary.slots == 2 * 3 + 2 * 3  # both blocks take as long as a warp of three nonzeros
    assert summary.idle_share == 1 - 8 / 12
    assert summary.largest == 3
    assert summary.imbalance == 3 / (8 / 3)
    assert nonzeros_per_warp(table(*GOOD), 2).tolist() == [[3, 2], [0, 3]]


def test_spread_deals_out_records():
    owner, offset = spread(np.array([2, 0, 3]))
    assert (owner.tolist(), offset.tolist()) == ([0, 0, 2, 2, 2], [0, 1, 0, 1, 2])


def test_nothing_at_all():
    summary = statistics([], 0, HardwareWarps(12, 12))
    assert (summary.idle_warps, summary.idle_share, summary.largest, summary.imbalance) == (
        0,
        0,
        0,
        1,
    )
    check_cover([table()], np.array([0]), 0, 12)
    assert len(Workload.concatenate([])) == 0
    assert nonzeros_per_warp(table(), 3).shape == (0, 3)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (GOOD[:2], "3 of 8 nonzeros are never covered, the first at position 5"),
        ([*GOOD, (1, 1, 2, 7, 1)], "nonzero 7 is covered twice"),
        ([(0, 0, 1, 0, 3)], "nonzeros 0 to 2 of block 0 are not all in row 1"),
        ([(0, 0, 0, 2, 2)], "nonzeros 2 to 3 of block 0 are not all in row 0"),
        ([(0, 0, 0, 0, 0)], "nz_count: 0 in row 0, which has 3 nonzeros. Expected: at least 1"),
        ([(0, 0, 0, 0, -1)], "nz_count: -1 in row 0"),
        ([(2, 0, 0, 0, 3)], "block: 2 to 2 occur. Expected: 0 to 1"),
        ([(0, 2, 0, 0, 3)], "warp: 2 to 2 occur. Expected: 0 to 1"),
        ([(0, 0, 3, 0, 3)], "row: 3 to 3 occur. Expected: 0 to 2"),
        ([(0, 0, -1, 0, 3)], "row: -1 to -1 occur"),
        ([GOOD[2], GOOD[0]], "fall back to an earlier block"),
    ],
)
def test_a_workload_that_is_wrong_is_named(records, message):
    check_cover([table(*GOOD)], ROW_POINTERS, 2, 2)
    with pytest.raises(PartitionError, match=message):
        check_cover([table(*records)], ROW_POINTERS, 2, 2)


def test_columns_are_checked_and_narrowed():
    good = table(*GOOD)
    assert good["nz_start"] is good.nz_start
    assert repr(good) == "Workload of 3 records: block, warp, row, nz_start, nz_count"
    assert "<table" in good._repr_html_()
    with pytest.raises(KeyError, match="lane"):
        good["lane"]
    assert [getattr(good, name).dtype.name for name in ("block", "warp", "row")] == [
        "int64",
        "int32",
        "int32",
    ]
    with pytest.raises(PartitionError, match="different length"):
        Workload(*[np.zeros(n, int) for n in (1, 1, 1, 1, 2)])
    with pytest.raises(PartitionError, match="block: a 1-D column of float64"):
        Workload(*[np.zeros(1)] * 5)
