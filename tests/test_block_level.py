"""Accel-GCN's Algorithms 1 and 2, the int4 metadata and its file."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accelviz
from accelviz.errors import PartitionError
from accelviz.files import written_whole
from accelviz.ordering import DegreeHistogram
from accelviz.partition.block_level import (
    BlockSetting,
    block_partition,
    block_workload,
    unpack,
)
from accelviz.partition.hardware_warps import HardwareWarps
from accelviz.partition.summary import statistics
from accelviz.partition.warp_level import storage_ratio, warp_partition, warp_workload
from accelviz.workload import Workload, check_cover
from tests.graphs import graph_of_degrees

FIGURE_3 = BlockSetting(max_block_warps=2, max_warp_nzs=2)
FIGURE_3_ROWS = np.array([0, 2, 6, 8])  # degrees 2, 4, 2


def test_figure_3_block_level_metadata():
    graph = graph_of_degrees([2, 4, 2])
    plan = accelviz.plan(graph, "accel_gcn", max_block_warps=2, max_warp_nzs=2)
    assert plan.permutation.order.tolist() == [0, 2, 1]
    # BP-1: deg = 2, row = 0, loc = 0, info = 2|2.  BP-2: deg = 4, row = 2, loc = 4, info = 2|1.
    assert plan.metadata.tolist() == [[2, 0, 0, 2 << 16 | 2], [4, 2, 4, 2 << 16 | 1]]
    assert plan.metadata.dtype == np.int32
    work = plan.workload().to_frame()
    assert work.to_numpy().tolist() == [
        [0, 0, 0, 0, 2],  # Warp-1: row_0, columns from position 0
        [0, 1, 1, 2, 2],  # Warp-2: the next row, from position 2
        [1, 0, 2, 4, 2],  # Warp-3 and Warp-4 share row_1
        [1, 1, 2, 6, 2],
    ]


def test_figure_3_warp_level_metadata():
    metadata = warp_partition(FIGURE_3_ROWS, max_warp_nzs=2)
    assert metadata.tolist() == [[0, 0, 2, 0], [1, 2, 2, 0], [1, 4, 2, 0], [2, 6, 2, 0]]
    blocks = block_partition(DegreeHistogram.of(FIGURE_3_ROWS), FIGURE_3)
    assert storage_ratio(blocks, metadata) == 0.5  # two warps a block


def test_equation_1_gives_a_twelfth_where_every_block_is_full():
    row_pointers = np.arange(0, 12 * 1000 * 5 + 1, 5)
    blocks = block_partition(DegreeHistogram.of(row_pointers))
    assert storage_ratio(blocks, warp_partition(row_pointers, 32)) == pytest.approx(1 / 12)


def patterns_of_the_paper(max_block_warps, max_warp_nzs):
    """Return the patterns of Algorithm 1 as printed, but including deg_bound."""
    factors = [f for f in range(1, max_block_warps + 1) if max_block_warps % f == 0]
    table, i, deg = {}, 0, 1
    while deg <= max_block_warps * max_warp_nzs:
        if factors[i] * max_warp_nzs >= deg:
            table[deg] = (factors[i], max_block_warps // factors[i], -(-deg // factors[i]))
            deg += 1
        else:
            i += 1
    return table


@pytest.mark.parametrize(("warps", "nzs"), [(12, 32), (2, 2), (1, 5), (32, 3), (7, 4), (30, 1)])
def test_algorithm_1(warps, nzs):
    expected = patterns_of_the_paper(warps, nzs)
    setting = BlockSetting(warps, nzs)
    pattern = setting.pattern(list(expected))
    assert list(zip(*(column.tolist() for column in pattern), strict=True)) == list(
        expected.values()
    )
    for wrong in (0, setting.deg_bound + 1):
        with pytest.raises(PartitionError, match="1 to deg_bound"):
            setting.pattern([wrong])


def metadata_of_the_paper(degrees, setting):
    """Return the metadata of Algorithm 2 row by row, without its empty blocks."""
    patterns = patterns_of_the_paper(setting.max_block_warps, setting.max_warp_nzs)
    degrees, row, loc, blocks = sorted(degrees), 0, 0, []
    while row < len(degrees):
        deg = degrees[row]
        if deg == 0:
            row += 1
        elif deg <= setting.deg_bound:
            _, block_rows, warp_nzs = patterns[deg]
            rows = min(block_rows, degrees[row:].count(deg))
            blocks.append([deg, row, loc, warp_nzs << 16 | rows])
            row, loc = row + rows, loc + rows * deg
        else:
            bound = setting.deg_bound
            starts = range(0, deg, bound)
            blocks += [[deg, row, loc + start, min(bound, deg - start)] for start in starts]
            row, loc = row + 1, loc + deg
    return blocks


SETTINGS = st.builds(BlockSetting, st.integers(1, 32), st.integers(1, 40))


@settings(max_examples=300)
@given(st.lists(st.integers(0, 200), max_size=60), SETTINGS)
def test_algorithm_2_on_any_degrees(degrees, setting):
    row_pointers = np.cumsum([0, *sorted(degrees)])
    metadata = block_partition(DegreeHistogram.of(row_pointers), setting)
    assert metadata.tolist() == metadata_of_the_paper(degrees, setting)
    fields = unpack(metadata, setting)
    work = block_workload(metadata, setting)
    check_cover([work], row_pointers, len(metadata), setting.max_block_warps)
    assert len(work) == (fields.rows * fields.warps_per_row).sum()
    assert set(work.block) == set(range(len(metadata)))  # no block is empty
    assert work.nz_count.max(initial=0) <= setting.max_warp_nzs
    # Rows of a block have equal degrees, so only the last warp of a row may have less work.
    warps = setting.max_block_warps
    counted = statistics([work], len(metadata), HardwareWarps(warps, warps))
    assert counted.slots >= counted.nonzeros == sum(degrees)


@pytest.mark.parametrize("degree", [384, 768, 1152])
def test_a_multiple_of_deg_bound_leaves_no_empty_block(degree):
    metadata = block_partition(DegreeHistogram.of(np.array([0, degree])))
    assert len(metadata) == degree // 384


def test_the_16_bit_fields_hold_65535_and_no_more():
    setting = BlockSetting(max_block_warps=1, max_warp_nzs=65535)
    metadata = block_partition(DegreeHistogram.of(np.array([0, 65535, 131071])), setting)
    fields = unpack(metadata, setting)
    assert fields.warp_nzs.tolist()[:1] == [65535]
    assert metadata[0, 3] == np.int32(np.uint32(65535 << 16 | 1).astype(np.int32))
    assert fields.row_nzs.tolist() == [65535, 65535, 1]
    check_cover([block_workload(metadata, setting)], np.array([0, 65535, 131071]), 3, 1)


def test_more_nonzeros_than_the_int4_can_address_are_refused():
    histogram = DegreeHistogram(np.array([1 << 20]), np.array([1 << 11]))
    with pytest.raises(PartitionError, match="2,147,483,648 nonzeros.*at most 2,147,483,647"):
        block_partition(histogram)


def test_metadata_read_with_another_setting_is_refused():
    metadata = block_partition(DegreeHistogram.of(FIGURE_3_ROWS), FIGURE_3)
    with pytest.raises(PartitionError, match="block 0 reads .*max_block_warps=1"):
        unpack(metadata, BlockSetting(1, 4))
    for wrong in (metadata.astype(np.int64), metadata[:, :3], metadata.ravel()):
        with pytest.raises(PartitionError, match="metadata: shape"):
            unpack(wrong, FIGURE_3)


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "x.bin"
    path.write_text("before")

    def interrupted():
        with written_whole(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        interrupted()
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["x.bin"]


@given(st.lists(st.integers(0, 100), max_size=40), st.integers(1, 40), st.integers(1, 32))
def test_warp_level_partition_covers_any_rows(degrees, max_warp_nzs, warps):
    row_pointers = np.cumsum([0, *degrees])
    metadata = warp_partition(row_pointers, max_warp_nzs)
    n_blocks = -(-len(metadata) // warps)
    check_cover([warp_workload(metadata, warps)], row_pointers, n_blocks, warps)
    assert metadata[:, 2].max(initial=0) <= max_warp_nzs


def test_warp_level_partition_refuses_what_it_cannot_do():
    with pytest.raises(PartitionError, match="max_warp_nzs: got 0"):
        warp_partition(FIGURE_3_ROWS, 0)
    with pytest.raises(PartitionError, match="at most 2,147,483,647"):
        warp_partition(np.array([0, 2**31]), 32)


def test_a_record_whose_end_wraps_around_is_refused():
    columns = [np.array([number], dtype=np.int64) for number in (0, 0, 0, 2**63 - 1, 2)]
    with pytest.raises(PartitionError, match="are not all in row 0"):
        check_cover([Workload(*columns)], np.array([0, 2]), 1, 4)
