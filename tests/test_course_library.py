"""Library functions for lessons, compared with values counted by hand."""

import numpy as np
import pandas as pd
import pytest

import accelviz
from accelviz.analysis.assignment import assignment
from accelviz.analysis.balance import group_idle_share
from accelviz.analysis.locality import reuse_distances, served_share
from accelviz.datasets import graph_of_degrees
from accelviz.measure import records
from accelviz.measure.prediction import waiting_beside_time
from accelviz.partition.block_level import BlockSetting
from accelviz.partition.block_records import block_table
from accelviz.plots import timeline

EIGHT = [1, 5, 2, 1, 8, 1, 3, 3]


def test_the_idle_share_of_groups_counts_missing_members():
    assert group_idle_share(EIGHT, 4) == pytest.approx(28 / 52)
    assert group_idle_share(EIGHT, 3) == pytest.approx(1 - 24 / (3 * (5 + 8 + 3)))
    assert group_idle_share([3, 3], 1) == 0


def test_the_idle_share_of_a_row_split_is_that_of_its_groups():
    graph = accelviz.load_graph("cora")
    for warps in (1, 4):
        plan = accelviz.plan(graph, "graphblast", 32, block_warps=warps)
        assert plan.statistics.idle_share == pytest.approx(group_idle_share(graph.degrees, warps))


@pytest.mark.parametrize("cache_rows", [1, 2, 7, 64, 10_000])
@pytest.mark.parametrize("name", ["cora", "luxembourg-osm"])
def test_served_share_agrees_with_reuse_distances(name, cache_rows):
    graph = accelviz.load_graph(name)
    distances = reuse_distances(graph)
    served = ((distances >= 0) & (distances < cache_rows)).mean()
    assert served_share(graph, cache_rows) == pytest.approx(served, rel=1e-12)


def test_served_share_counts_reads_within_a_distance():
    graph = graph_of_degrees([2, 1, 2])  # 0 1 | 0 | 0 1: distances 1, 0, 1
    assert [served_share(graph, rows) for rows in (0, 1, 2)] == [0, 1 / 5, 3 / 5]


def test_idle_shares_and_times_are_of_the_same_setting():
    graph = accelviz.load_graph("cora")
    rows = waiting_beside_time(graph, 64, "accel_gcn", "accel_gcn partition=warp", "cusparse")
    waiting, time = rows.columns
    plan = accelviz.plan(graph, "accel_gcn", n_cols=64)
    assert rows.loc["accel_gcn", waiting] == round(100 * plan.statistics.idle_share, 1)
    assert np.isnan(rows.loc["cusparse", waiting])
    recorded = records.recorded("bundled-h200").query(
        "graph == 'cora' and columns == 64 and state == 'warm' and strategy == 'accel_gcn'"
    )
    assert rows.loc["accel_gcn", time] == recorded["median_us"].round(1).item()
    assert rows.loc["accel_gcn partition=warp", time] != rows.loc["accel_gcn", time]
    assert "NVIDIA H200" in time
    nowhere = waiting_beside_time(graph_of_degrees(EIGHT), 64, "accel_gcn")
    assert nowhere.columns[1] == "us: none recorded"
    assert nowhere.iloc[:, 1].isna().all()


def test_a_table_of_blocks_decodes_info():
    plan = accelviz.plan(
        graph_of_degrees([1, 1, 3, 5]), "accel_gcn", max_block_warps=2, max_warp_nzs=2
    )
    rows = block_table(plan.metadata, BlockSetting(2, 2))
    assert rows["degree"].tolist() == [1, 3, 5, 5]
    assert rows["info"].tolist() == ["0x00010002", "0x00020001", "0x00000004", "0x00000001"]
    assert rows["decoded"].tolist() == [
        *("1 a warp | 2 rows", "2 a warp | 1 row"),
        *("4 of a long row", "1 of a long row"),
    ]


def test_two_partitions_of_one_graph_have_two_titles():
    graph = graph_of_degrees(sorted(EIGHT))
    titles = {
        kind: assignment(accelviz.plan(graph, "accel_gcn", n_cols=32, partition=kind)).strategy
        for kind in ("block", "warp")
    }
    assert titles == {"block": "accel_gcn", "warp": "accel_gcn partition=warp"}


def test_measured_and_predicted_timelines_share_a_color_scale(monkeypatch):
    monkeypatch.setattr(timeline, "MOST_BARS", 0)

    def blocks(held, unit):
        table = pd.DataFrame({"sm": 0, "slot": range(held), "start": 0, "stop": 5})
        table.attrs = {"sms": 1, "unit": unit, "blocks_per_sm": held}
        return table

    axes = timeline.sm_timelines({"28": blocks(28, "ns"), "16": blocks(16, "nonzeros")})
    tops = [image.norm.vmax for ax in axes for image in ax.images]
    assert tops == [28, 28]
