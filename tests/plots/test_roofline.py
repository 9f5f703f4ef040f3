"""Rooflines: flops, bytes and shares, computed by hand and from the graphs."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

import accelviz
from accelviz.errors import ArgumentError
from accelviz.measure import records
from accelviz.measure.roofline import LAUNCH_US, MODELS, roofline_table, shares
from accelviz.plots.rooflines import roofline
from accelviz.plots.style import VERMILLION, strategy_colours
from tests import results
from tests.plots.pictures import read_texts, read_title

#: 2 x 1,000,000 x 10 flops; 20 MB copied in 10 µs at 2,000 GB/s; gathering takes 40 µs.
LIMITS = {"rows": 100_000, "nonzeros": 1_000_000, "columns": 10}
LIMITS |= {"floor_us": 10.0, "gather_limit_us": 40.0}
LIMITS |= {"copy_gb_per_s": 2000.0, "gather_gb_per_s": 4000.0}
table = partial(results.table, **LIMITS)

TWO = (("fast", 50.0, {}), ("slow", 100.0, {}))


@pytest.fixture(scope="module")
def bundled():
    return records.recorded("bundled-h200")


def points(ax):
    """Every strategy's points by colour: of lines that have markers and no line."""
    lines = [line for line in ax.lines if line.get_ls() == "None" and line.get_marker() != "_"]
    return {to_hex(line.get_color()): line.get_xydata().tolist() for line in lines}


def test_flops_bytes_and_shares_by_hand():
    result = roofline_table(table(*TWO))
    assert result["strategy"].tolist() == ["fast", "slow"]
    assert result["flops"].tolist() == [20e6, 20e6]
    np.testing.assert_allclose(result["bytes"], 20e6)
    np.testing.assert_allclose(result["intensity"], 1.0)
    np.testing.assert_allclose(result["gflops"], [400, 200])
    np.testing.assert_allclose(result["copy_roof_gflops"], 2000)
    np.testing.assert_allclose(result["gather_roof_gflops"], 500)
    np.testing.assert_allclose(result["share"], [0.2, 0.1])
    gather = roofline_table(table(*TWO), model="gather")
    expected = 8 * 1_000_000 + 8 * 100_001 + 4 * 10 * (1_000_000 + 100_000)
    np.testing.assert_allclose(gather["bytes"], expected)
    np.testing.assert_allclose(gather["share"], [0.8, 0.4])
    np.testing.assert_allclose(gather["gflops"], [400, 200])


def test_bytes_are_those_of_the_real_graphs(bundled):
    result = roofline_table(bundled, "accel_gcn")
    assert len(result) > 20
    for name, rows in result.groupby("graph"):
        graph = accelviz.load_graph(name)
        d = rows["columns"]
        matrix = 8 * (graph.nnz + graph.n_rows + 1)
        exact = matrix + 4 * d * (graph.pattern.used_columns + graph.n_rows)
        np.testing.assert_allclose(rows["bytes"], exact, rtol=2e-4)
        np.testing.assert_allclose(rows["flops"], 2 * graph.nnz * d)
    gather = roofline_table(bundled, "accel_gcn", model="gather").query("graph == 'cit-hepph'")
    graph = accelviz.load_graph("cit-hepph")
    d = gather["columns"]
    exact = 8 * (graph.nnz + graph.n_rows + 1) + 4 * d * (graph.nnz + graph.n_rows)
    assert gather["bytes"].tolist() == exact.tolist()


@pytest.mark.parametrize(
    ("model", "limit"), [("compulsory", "floor_us"), ("gather", "gather_limit_us")]
)
def test_a_share_is_the_limit_over_the_time(bundled, model, limit):
    result = roofline_table(bundled, "merge_path", model=model)
    warm = bundled.query("state == 'warm' and strategy == 'merge_path'")
    both = result.merge(warm, on=["graph", "columns"])
    assert len(both) == len(result)
    np.testing.assert_allclose(both["share"], both[limit] / both["median_us_y"], rtol=1e-12)


def test_cases_shorter_than_a_launch_are_omitted(bundled):
    result = roofline_table(bundled, "accel_gcn")
    warm = bundled.query("state == 'warm' and strategy == 'accel_gcn'")
    short = (warm["floor_us"] <= LAUNCH_US).sum()
    assert 0 < short == result.attrs["left_out"] == len(warm) - len(result)


def test_the_latest_run_is_used():
    later = {"run": "2026-02-01T00:00:00+00:00"}
    result = roofline_table(table(*TWO, ("fast", 80.0, later)))
    assert result.set_index("strategy")["median_us"].to_dict() == {"fast": 80.0, "slow": 100.0}


def test_a_peak_lowers_the_roof_and_nothing_else():
    result = roofline_table(table(*TWO), peak_gflops=800)
    np.testing.assert_allclose(result["roof_gflops"], 800)
    np.testing.assert_allclose(result["share"], [0.5, 0.25])
    np.testing.assert_allclose(result["copy_roof_gflops"], 2000)


def test_shares_are_geometric_means():
    rows = table(("fast", 50.0, {}), ("fast", 12.5, {"graph": "b"}), ("slow", 100.0, {}))
    result = shares(roofline_table(rows))
    assert result.index.tolist() == ["fast", "slow"]
    assert result.loc["fast"].tolist() == pytest.approx([0.4, 0.2, 0.8, 2])
    assert result.loc["slow"].tolist() == pytest.approx([0.1, 0.1, 0.1, 1])


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (table(*TWO), {"model": "guess"}, "'compulsory' or 'gather'"),
        (table(*TWO), {"state": "cold"}, "no cold time"),
        (table(*TWO), {"peak_gflops": 0}, "a positive number"),
        (table(*TWO), {"strategies": "other"}, "no 'other'"),
        (table(*TWO).drop(columns="floor_us"), {}, "no floor_us"),
        (table(*TWO).assign(floor_us=np.nan), {}, "no limits"),
        (table(*TWO, ("fast", 1.0, {"hardware": "other"})), {}, "more than one machine"),
    ],
)
def test_invalid_tables_raise(rows, options, message):
    for call in (roofline_table, roofline)[: 1 if "model" in options else 2]:
        with pytest.raises(ArgumentError, match=message):
            call(rows, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"graphs": "b"}, r"no times of \['b'\]"),
        ({"graphs": []}, "no times of none"),
        ({"columns": [10, 11]}, r"no times of \[11\]"),
    ],
)
def test_missing_graphs_and_columns_raise(options, message):
    with pytest.raises(ArgumentError, match=message):
        roofline(table(*TWO), **options)
    with pytest.raises(ArgumentError, match="empty launch takes as long"):
        roofline(table(*TWO).assign(floor_us=2.0))


def test_one_case_is_named_with_every_strategy_s_share():
    ax = roofline(table(*TWO))
    fast, slow = (to_hex(colour) for colour in strategy_colours(["fast", "slow"]).values())
    assert {fast: [[1, 400]], slow: [[1, 200]]} == {
        colour: [pytest.approx(xy) for xy in rows] for colour, rows in points(ax).items()
    }
    assert {"fast: 20 %", "slow: 10 %", "random-gather limit", "a, 10 columns"} <= set(
        read_texts(ax)
    )
    assert "made-up GPU copy 2 TB/s" in read_texts(ax)
    title = "fast reaches 20 % of the roof that copy bandwidth sets (a, 10 columns)"
    assert read_title(ax) == title
    assert MODELS["compulsory"] in ax.get_xlabel()
    assert "nonzeros x columns / time" in ax.get_ylabel()
    assert title in ax.figure.alt
    assert "slow 10 %" in ax.figure.alt
    (limit,) = [line for line in ax.lines if line.get_marker() == "_"]
    assert limit.get_xydata().tolist() == [[pytest.approx(1), pytest.approx(500)]]
    assert to_hex(limit.get_color()) == VERMILLION.lower()
    roof = next(line for line in ax.lines if line.get_ls() == "-")
    np.testing.assert_allclose(roof.get_ydata() / roof.get_xdata(), 2000)


def test_a_known_peak_is_the_flat_roof():
    ax = roofline(table(*TWO), peak_gflops=10_000)
    assert read_title(ax).startswith("Memory-bound: fast reaches 20 %")
    assert "float32 peak 10 TFLOP/s" in read_texts(ax)
    flat = [line for line in ax.lines if set(line.get_ydata()) == {10_000}]
    assert len(flat) == 1
    ax = roofline(table(*TWO), peak_gflops=1000)  # the peak is the bound, not memory
    assert read_title(ax).startswith("fast reaches 40 %")


def test_many_cases_are_a_legend_with_means_and_ranges(bundled):
    cases = {"ours": "accel_gcn", "cuSPARSE": "cusparse"}
    ax = roofline(bundled, None, [64, 128], cases)
    result = roofline_table(bundled[bundled["columns"].isin([64, 128])], cases)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    for label, (name, reached) in zip(labels, shares(result).iterrows(), strict=False):
        assert label.startswith(f"{name}: {100 * reached['share']:.0f} %")
    assert labels[-1] == "random-gather limit of a case"
    assert sum(map(len, points(ax).values())) == len(result)
    assert f"left out: {result.attrs['left_out']} times" in ax.get_xlabel()
    assert f"mean of {len(result) // 2} cases" in read_title(ax)


def test_all_recorded_times_of_the_paper_s_graphs_are_drawn():
    recorded = records.recorded("strategies-h200")
    names = ["accel_gcn", "cusparse algorithm=fastest preprocess=True", "merge_path", "ge_spmm"]
    ax = roofline(recorded, None, None, names)
    ax.figure.draw_without_rendering()
    result = roofline_table(recorded, names)
    assert sum(map(len, points(ax).values())) == len(result) > 800
    low, high = ax.get_ylim()
    assert result["gflops"].between(low, high).all()
    assert (result["copy_roof_gflops"] < high).all()
    # A point above its limit is explained.
    above = "above the random-gather limit: caches serve rows of X that it reads again"
    assert (result["gflops"] > result["gather_roof_gflops"]).any()
    assert above in ax.get_xlabel()
    assert above not in roofline(table(*TWO)).get_xlabel()
    with pytest.raises(ArgumentError, match="several settings"):
        roofline(recorded)


def test_a_table_measured_without_a_gpu_raises():
    cpu = accelviz.benchmark("cora", "accel_gcn", 16, "cpu", repeats=1, progress=False)
    with pytest.raises(ArgumentError, match="no limits"):
        roofline(cpu)
    with pytest.raises(ArgumentError, match="a table of `benchmark`"):
        roofline(pd.DataFrame({"strategy": ["accel_gcn"]}), "cora")
