"""`lane_map` draws the columns that lanes read in a trace."""

import io

import numpy as np
import pandas as pd
import pytest

from accelviz.analysis.lanes import (
    column_runs,
    column_visits,
    columns_at_once,
    first_warps,
    stack_runs,
    turns_per_row,
)
from accelviz.errors import ArgumentError
from accelviz.plots.lanes import MOST_TURNS, lane_map
from tests.compilers import needs_compiler
from tests.plots.pictures import read_texts
from tests.traces import made_request, traced_cora


def made_trace(requests, n_cols, *, size=4, block=0):
    """A trace of requests (warp, step, row, first column, lanes), each lane one vector further."""
    parts = []
    for warp, step, row, column, lanes in requests:
        offsets = 4 * (row * n_cols + column) + size * np.arange(lanes)
        part = made_request(offsets, step, size=size, warp=warp, block=block)
        parts.append(part.assign(index=offsets // 4))
    return pd.concat(parts, ignore_index=True)


@needs_compiler
@pytest.mark.parametrize(("strategy", "n_cols"), [("accel_gcn", 100), ("gnnadvisor", 96)])
def test_visits_are_the_loads_of_the_trace(strategy, n_cols):
    traced = traced_cora(strategy, n_cols)
    visits = column_visits(traced, n_cols)
    loads = traced[traced["array"] == "X"].reset_index(drop=True)
    assert len(visits) == len(loads)
    expected = loads.groupby("warp")["step"].rank("dense").to_numpy() - 1
    np.testing.assert_array_equal(visits["turn"], expected)
    np.testing.assert_array_equal(visits["row"] * n_cols + visits["column"], loads["index"])
    np.testing.assert_array_equal(visits["thread"], loads["warp"] * 32 + loads["lane"])
    np.testing.assert_array_equal(visits["columns"] * 4, loads["bytes"])
    assert set(visits["columns"]) == ({1} if strategy == "accel_gcn" else {2})


@needs_compiler
@pytest.mark.parametrize("n_cols", [60, 96, 100])
def test_the_combined_warp_reads_a_whole_row_at_once(n_cols):
    alone = traced_cora(n_cols=n_cols, combined_warp=False)
    combined = traced_cora(n_cols=n_cols)
    passes = -(-n_cols // 32)
    alone, combined = (column_visits(traced, n_cols) for traced in (alone, combined))
    assert (columns_at_once(alone), columns_at_once(combined)) == (32, n_cols)
    assert (turns_per_row(alone), turns_per_row(combined)) == (passes, 1)
    runs = column_runs(combined)
    for _, row in runs.groupby(["turn", "row"]):
        warps = row.sort_values("column")
        assert warps["column"].tolist() == list(range(0, n_cols, 32))  # side by side
        assert (np.diff(warps["warp"]) == 1).all()
    assert len(alone) == len(combined)  # the same work


@needs_compiler
def test_every_lane_is_in_one_bar_and_no_bar_hides_another():
    traced = traced_cora(n_cols=100)
    visits = column_visits(traced, 100)
    runs = column_runs(visits)
    assert runs["lanes"].sum() == len(visits)
    assert (runs["last_lane"] - runs["first_lane"] + 1 == runs["lanes"]).all()
    stacked = stack_runs(runs)
    cells = stacked.loc[stacked.index.repeat(stacked["columns"]), ["turn", "line", "column"]]
    cells["column"] += cells.groupby(level=0).cumcount()
    assert not cells.duplicated().any()
    for _, turn in stacked.groupby("turn"):
        assert sorted(turn["line"].unique()) == list(range(turn["line"].max() + 1))


def test_lanes_of_vectors_and_lanes_that_share_a_column():
    vectors = made_trace([(0, 0, 3, 0, 24)], 96, size=16)
    (run,) = column_runs(column_visits(vectors, 96)).to_dict("records")
    assert (run["row"], run["column"], run["columns"], run["lanes"]) == (3, 0, 96, 24)
    parted = pd.concat([made_trace([(0, 0, 3, 0, 4)], 96), made_trace([(0, 0, 3, 8, 2)], 96)])
    assert column_runs(column_visits(parted, 96))["columns"].tolist() == [4, 2]
    same = made_trace([(0, 0, 3, 5, 1)] * 4, 96)  # four lanes read one column
    (run,) = column_runs(column_visits(same, 96)).to_dict("records")
    assert (run["columns"], run["lanes"]) == (1, 4)


def test_columns_at_once_are_counted_once_where_warps_overlap():
    both = made_trace([(0, 0, 3, 0, 32), (1, 1, 3, 16, 32)], 64)
    visits = column_visits(both, 64)
    assert columns_at_once(visits) == 48
    assert stack_runs(column_runs(visits))["line"].tolist() == [0, 0]
    twice = made_trace([(0, 0, 3, 0, 32), (1, 1, 3, 0, 32)], 64)
    assert stack_runs(column_runs(column_visits(twice, 64)))["line"].tolist() == [0, 1]


def test_warps_of_different_blocks_are_different():
    tiles = pd.concat(
        [made_trace([(0, 0, 3, 32 * b, 32), (1, 1, 5, 32 * b, 32)], 64, block=b) for b in (0, 1)]
    )
    visits = column_visits(tiles, 64)
    assert set(visits["turn"]) == {0}
    chosen = first_warps(visits, 3)[["warp", "block"]].drop_duplicates()
    assert sorted(map(tuple, chosen.to_numpy().tolist())) == [(0, 0), (0, 1), (1, 0)]
    assert stack_runs(column_runs(visits))["worker"].nunique() == 4


@needs_compiler
def test_bars_are_the_runs_of_the_drawn_warps():
    alone = traced_cora(combined_warp=False)
    combined = traced_cora()
    axes = lane_map({"alone": alone, "combined": combined}, 96)
    assert len({ax.get_xlim() for ax in axes}) == len({ax.get_ylim() for ax in axes}) == 1
    for ax, traced in zip(axes, (alone, combined), strict=True):
        visits = column_visits(traced, 96)
        runs = column_runs(visits[visits["warp"] < 3])
        (drawn,) = ax.collections
        corners = np.array([path.vertices[:4] for path in drawn.get_paths()])
        turn, begin, end = corners[:, 0, 1] + 1e-9, corners[:, 0, 0], corners[:, 1, 0]
        bars = np.array([turn, begin, end]).astype(int).T.tolist()
        expected = runs.assign(end=runs["column"] + runs["columns"])[["turn", "column", "end"]]
        assert sorted(bars) == sorted(expected.to_numpy().tolist())
        texts = read_texts(ax)
        assert sum(text.startswith("w") and "row" in text for text in texts) == len(runs)
    first, second = axes
    assert first.get_title(loc="left") == "alone:\n32 of 96 columns of a row at once"
    assert second.get_title(loc="left") == "combined:\nall 96 columns of a row at once"
    costs = [" ".join(read_texts(ax)).replace("\n", " ") for ax in axes]
    assert "a warp comes to a row of X 3 times; 108 requests" in costs[0]
    assert "a warp comes to a row of X once; 108 requests" in costs[1]
    assert all("32 lanes and 4 sectors each; 3 of 12 warps" in cost for cost in costs)
    assert "alone: the lanes read 32 of 96 columns" in first.figure.alt


def test_omitted_turns_are_stated():
    long = made_trace([(0, step, step, 0, 8) for step in range(MOST_TURNS + 5)], 8)
    (ax,) = lane_map({"long": long}, 8)
    assert len(ax.collections[0].get_paths()) == MOST_TURNS
    assert f"the first {MOST_TURNS} of {MOST_TURNS + 5} turns are shown" in ax.get_xlabel()
    (legend,) = ax.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["warp 0"]


def test_the_caller_chooses_the_warps():
    traced = made_trace([(warp, warp, warp, 0, 32) for warp in range(5)], 32)
    (ax,) = lane_map({"chosen": traced}, 32, warps=[1, 4])
    texts = read_texts(ax)
    assert {"warp 1 reads row 1", "warp 4 reads row 4"} <= set(texts)
    assert any("2 of 5 warps that read are shown" in text.replace("\n", " ") for text in texts)


def test_empty_and_invalid_traces():
    nothing = made_trace([(0, 0, 0, 0, 1)], 8)[:0]
    (ax,) = lane_map({"nothing": nothing}, 8)
    assert read_texts(ax) == ["nothing is read"]
    ax.figure.savefig(io.BytesIO())
    assert columns_at_once(column_visits(nothing, 8)) == 0
    with pytest.raises(ArgumentError, match="traces: no trace"):
        lane_map({}, 8)
    with pytest.raises(ArgumentError, match="n_cols: got 0"):
        lane_map({"nothing": nothing}, 0)
