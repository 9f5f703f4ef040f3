"""Ratios of times of the same run, their means, and the plots and scripts that show them."""

import itertools
import os
import runpy
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from accelviz import plots
from accelviz.errors import ArgumentError
from accelviz.measure.comparison import (
    by_columns,
    by_graph,
    geometric_mean,
    labelled,
    latest,
    overall,
    selected,
    speedups,
    table_two,
)
from accelviz.plots.style import VERMILLION
from benchmarks.pages.__main__ import main
from tests.results import table

matplotlib.use("agg")

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


def test_a_speedup_is_the_baseline_s_time_over_the_other_s():
    ratios = speedups(table(("fast", 2.0, {}), ("base", 3.0, {}), ("slow", 6.0, {})), "base")
    assert ratios[["strategy", "baseline_us", "median_us", "speedup"]].to_numpy().tolist() == [
        ["fast", 3.0, 2.0, 1.5],
        ["slow", 3.0, 6.0, 0.5],
    ]
    assert ratios.attrs["dropped"] == 0


@pytest.mark.parametrize(
    "differs",
    [
        {"run": "2026-01-02T00:00:00+00:00"},
        {"fingerprint": "01"},
        {"graph": "b"},
        {"columns": 17},
        {"state": "cold"},
        {"hardware": "another GPU"},
        {"device": "cpu"},
        {"dtype": "float16"},
    ],
    ids=lambda differs: next(iter(differs)),
)
def test_a_time_without_its_baseline_is_dropped_and_counted(differs):
    rows = [("base", 3.0, {}), ("fast", 2.0, differs), ("slow", 6.0, {})]
    ratios = speedups(table(*rows), "base")
    assert ratios["strategy"].tolist() == ["slow"]
    assert ratios.attrs["dropped"] == 1


def test_what_failed_is_no_time():
    broken = {"problem": "wrong result", "state": np.nan}
    ratios = speedups(table(("base", 3.0, {}), ("bad", np.nan, broken), ("ok", 1.0, {})), "base")
    assert ratios["strategy"].tolist() == ["ok"]
    assert ratios.attrs["dropped"] == 0


def test_of_several_runs_the_latest_that_is_whole_counts():
    runs = [{"run": f"2026-01-0{day}"} for day in (1, 2, 3)]
    rows = [
        ("own", 2.0, runs[1]),  # written first, but not the oldest
        ("base", 8.0, runs[1]),
        ("own", 1.0, runs[0]),
        ("base", 5.0, runs[0]),
        ("own", 9.0, runs[2]),  # never finished
    ]
    ratios = speedups(table(*rows), "base")
    assert ratios["speedup"].tolist() == [4.0]
    assert ratios.attrs["dropped"] == 1


SETTINGS = table(
    ("lib", 4.0, {"parameters": "algorithm=fastest"}),
    ("lib", 6.0, {"parameters": "algorithm=default"}),
    ("own", 2.0, {"parameters": "ngs=32 dw=16"}),
    ("own", 1.0, {"parameters": "ngs=320 dw=16"}),
)


def test_a_case_names_its_parameters_whole():
    assert selected(SETTINGS, "own ngs=32")["median_us"].tolist() == [2.0]
    assert selected(SETTINGS, "own ngs!=32")["median_us"].tolist() == [1.0]
    assert selected(SETTINGS, "own dw=16 ngs=320")["median_us"].tolist() == [1.0]
    ratios = speedups(SETTINGS, "lib algorithm=fastest", {"A": "own ngs=32", "B": "own ngs!=32"})
    assert ratios[["strategy", "speedup"]].to_numpy().tolist() == [["A", 2.0], ["B", 4.0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: speedups(SETTINGS, "lib"), "'lib' was measured with several settings"),
        (lambda: speedups(SETTINGS, "lib algorithm=fastest"), "'own' .*as in 'own key=value'"),
        (lambda: selected(SETTINGS, "lib algorithm=best"), "lib with 'algorithm=fastest'"),
        (lambda: selected(SETTINGS, "lib fastest"), "key=value"),
        (lambda: selected(SETTINGS, "library"), "one of lib, own"),
        (lambda: selected(SETTINGS, ""), "no '' was measured"),
        (lambda: selected(SETTINGS.drop(columns=["run", "state"]), "lib"), "no run, state"),
        (lambda: geometric_mean([1, 0]), "positive"),
        (lambda: geometric_mean([1, np.nan]), "positive"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_the_same_case_twice_in_one_run_counts_once():
    rows = table(("a", 2.0, {}), ("a", 3.0, {}), ("b", 1.0, {}))
    assert labelled(rows)["median_us"].tolist() == [2.0, 1.0]


def test_the_latest_is_found_under_two_names_and_in_joined_tables():
    rows = table(("a", 2.0, {}), ("b", 1.0, {}))
    later = rows.assign(run="9999", median_us=5.0)
    both = pd.concat([rows, later])  # whose index counts twice from 0
    ratios = latest(labelled(both, {"x": "a", "y": "a", "b": "b"}))
    assert ratios["strategy"].tolist() == ["x", "y", "b"]
    assert ratios["median_us"].tolist() == [5.0, 5.0, 5.0]


def test_a_geometric_mean():
    assert geometric_mean([0.5, 2]) == pytest.approx(1)
    assert geometric_mean([1, 2, 4]) == pytest.approx(2)
    assert np.isnan(geometric_mean([]))


def two_graphs():
    times = {("a", 16): 4.0, ("a", 32): 1.0, ("b", 16): 0.5, ("b", 32): 0.5}
    rows = [
        (name, time, {"graph": graph, "fingerprint": graph, "columns": d})
        for (graph, d), speed in times.items()
        for name, time in (("base", 1.0), ("own", 1 / speed))
    ]
    return speedups(table(*rows), "base")


def test_means_over_columns_then_over_graphs():
    graphs = by_graph(two_graphs()).set_index("graph")
    assert graphs["speedup"].tolist() == pytest.approx([2, 0.5])
    assert graphs.loc["a", ["lowest", "highest", "cases"]].tolist() == [1.0, 4.0, 2]
    mean = overall(two_graphs()).loc["own"]
    assert mean["speedup"] == pytest.approx(1)
    assert mean[["graphs", "losses"]].tolist() == [2, 1]
    assert mean[["highest_graph", "lowest_graph"]].tolist() == ["a", "b"]
    columns = by_columns(two_graphs()).set_index("columns")
    assert columns["speedup"].tolist() == pytest.approx([2**0.5, 0.5**0.5])
    assert columns["losses"].tolist() == [1, 1]


def test_no_mean_over_two_machines_or_states():
    rows = [(name, 1.0, {"state": s}) for s in ("warm", "cold") for name in ("base", "own")]
    ratios = speedups(table(*rows), "base")
    for mean in (by_graph, by_columns, overall, table_two):
        with pytest.raises(ArgumentError, match="more than one state: warm, cold"):
            mean(ratios)


def test_table_two_s_ranges_and_percent():
    speeds = {15: 9.0, 16: 1.0, 32: 4.0, 33: 1.5, 64: 1.5, 96: 0.9, 128: 2.0, 129: 9.0}
    rows = [
        (name, time, {"columns": d})
        for d, speed in speeds.items()
        for name, time in (("base", 1.0), ("own", 1 / speed))
    ]
    means = table_two(speedups(table(*rows), "base"))
    assert means.index.tolist() == ["[16, 32]", "(32, 64]", "(64, 96]", "(96, 128]"]
    np.testing.assert_allclose(means["average"], [200, 150, 90, 200])
    np.testing.assert_allclose(means["max"], [400, 150, 90, 200])
    np.testing.assert_allclose(means["min"], [100, 150, 90, 200])
    assert means["cases"].tolist() == [2, 2, 1, 1]
    nothing = table_two(speedups(table(*rows[:2]), "base"))
    assert nothing["cases"].sum() == 0
    assert nothing[["average", "max", "min"]].isna().all(axis=None)


GRAPHS = [("A-twin", "twin"), ("B-approximate-twin", "approximate twin")]
ACCEL = "max_block_warps=12 max_warp_nzs=32 partition={} combined_warp={}"


def made_up(graphs=GRAPHS, columns=(16, 32, 33, 64, 65, 96, 97, 128), states=("warm", "cold")):
    """Return a table with all columns that the figures need; its numbers are arbitrary."""
    cases = {
        ("accel_gcn", ACCEL.format("block", True)): 4.0,
        ("accel_gcn", ACCEL.format("warp", True)): 5.0,
        ("accel_gcn", ACCEL.format("block", False)): 6.0,
        ("accel_gcn", ACCEL.format("warp", False)): 7.0,
        ("gnnadvisor", "ngs=512 dw=32"): 8.0,
        ("gnnadvisor", "ngs=32 dw=32"): 9.0,
        ("graphblast", "block_warps=4"): 10.0,
        ("cusparse", "algorithm=fastest preprocess=True"): 4.5,
        ("cusparse", "algorithm=fastest preprocess=False"): 5.0,
        ("cusparse", "algorithm=default preprocess=False"): 5.5,
    }
    random = np.random.default_rng(0)
    product = itertools.product(graphs, columns, states, cases.items())
    return table(
        *(
            (
                strategy,
                time * d * random.uniform(0.7, 1.4),
                {
                    "graph": graph,
                    "graph_kind": kind,
                    "fingerprint": graph,
                    "columns": d,
                    "state": state,
                    "parameters": parameters,
                },
            )
            for (graph, kind), d, state, ((strategy, parameters), time) in product
        )
    )


PUBLISHED = "accel_gcn " + ACCEL.format("block", True)


def test_bars_stand_on_one_and_losses_hang_below():
    rows = made_up()
    others = {"own": PUBLISHED, "other": "graphblast"}
    base = "cusparse algorithm=fastest preprocess=True"
    ax = plots.speedup_bars(rows, base, others, called="the library")
    ratios = speedups(rows[rows["state"] == "warm"], base, others)
    expected = by_graph(ratios).set_index(["strategy", "graph"])["speedup"]
    bars_of_own, other = ax.containers
    names = [label.get_text() for label in ax.get_xticklabels()]
    order = expected["own"].sort_values(ascending=False).index
    assert names == [{"A-twin": "A", "B-approximate-twin": "B*"}[n] for n in order] + [
        "mean of\nall graphs"
    ]
    for bars, name in ((bars_of_own, "own"), (other, "other")):
        ends = [bar.get_y() + bar.get_height() for bar in bars]
        np.testing.assert_allclose(
            ends, [*expected[name][order], overall(ratios).loc[name, "speedup"]]
        )
        assert {bar.get_y() for bar in bars} == {1}
        hatched = [bar.get_hatch() is not None for bar in bars]
        assert hatched == ["approximate" in name for name in order] + [False]
    assert "times as fast as the library" in ax.get_title(loc="left")
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    means = overall(ratios)["speedup"]
    assert texts[:2] == [f"{name}: {means[name]:.2f} in the mean" for name in others]
    assert "approximate" in texts[-1]
    numbers = {text.get_text(): text.get_color() for text in ax.texts if text.get_rotation() == 90}
    for speedup in [*expected["own"], means["own"]]:
        assert numbers[f"{speedup:.2f}"] == (VERMILLION if speedup < 1 else "#000000")
    plt.close(ax.figure)


def test_a_panel_for_each_graph_with_the_measured_times():
    rows = made_up(states=("warm",))
    page = plots.time_against_columns(rows, ["A-twin"], {"own": PUBLISHED, "b": "graphblast"})
    (ax,) = page.axes
    times = labelled(rows[rows["graph"] == "A-twin"], {"own": PUBLISHED})
    assert ax.lines[0].get_xdata().tolist() == times["columns"].tolist()
    assert ax.lines[0].get_ydata().tolist() == times["median_us"].tolist()
    assert ax.get_ylim()[0] == 0
    assert "A" in page.alt
    assert "16 to 128" in page.alt
    page = plots.time_against_columns(rows, strategies={"own": PUBLISHED}, log=True)
    assert [ax.get_yscale() for ax in page.axes] == ["log", "log"]
    with pytest.raises(ArgumentError, match="A-twin, B-approximate-twin"):
        plots.time_against_columns(rows, ["C"], {"own": PUBLISHED})


def test_ranges_show_every_column_count():
    rows = made_up(columns=range(16, 129, 8))
    without = "accel_gcn partition=warp combined_warp=True"
    ax = plots.speedup_ranges(
        rows, without, PUBLISHED, called=("B", "A"), ax=Figure(layout="constrained").subplots()
    )
    ratios = speedups(rows[rows["state"] == "warm"], without, {"A": PUBLISHED})
    dots = np.concatenate([line.get_xdata() for line in ax.lines if line.get_marker() == "o"])
    np.testing.assert_allclose(np.sort(dots), np.sort(ratios["speedup"]))
    texts = [text.get_text() for text in ax.texts]
    assert f"{overall(ratios).loc['A', 'speedup']:.2f}" in texts
    assert {"slower", "faster"} <= set(texts)
    for draw in (plots.speedup_ranges, plots.speedup_bars):
        with pytest.raises(ArgumentError, match="no hot time|no 'accel_gcn' was measured"):
            draw(rows, without, PUBLISHED, state="hot")


@pytest.fixture
def script(monkeypatch):
    """Return a function that runs a script of benchmarks/ with command-line arguments."""

    def run(name, *arguments):
        (path,) = BENCHMARKS.glob(f"*/{name}.py")
        monkeypatch.syspath_prepend(str(path.parent))
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *map(str, arguments)])
        runpy.run_path(str(path), run_name="__main__")
        plt.close("all")

    return run


@pytest.mark.long
def test_the_document_is_renewed_from_other_results(tmp_path, capsys):
    text = (BENCHMARKS.parent / "docs" / "reproduction.md").read_text("utf-8")
    copy = tmp_path / "reproduction.md"
    copy.write_text(text, "utf-8")
    graphs = [*GRAPHS, ("A-twin-shuffled", "twin")]
    made_up(graphs).query("not parameters.str.contains('warp=False|partition=warp')").to_csv(
        tmp_path / "strategies-h200.csv", index=False
    )
    made_up(states=("warm",)).query(
        "parameters in [@ACCEL.format('block', True), 'ngs=32 dw=32', 'block_warps=4', "
        "'algorithm=fastest preprocess=True']"
    ).to_csv(tmp_path / "columns-h200.csv", index=False)
    made_up(states=("warm",)).query("strategy == 'accel_gcn'").to_csv(
        tmp_path / "ablations-h200.csv", index=False
    )
    main(["reproduction", "--docs", str(tmp_path), "--results", str(tmp_path)])
    assert "fusegnn-table-3 stays as it is: there is no" in capsys.readouterr().out
    renewed = copy.read_text("utf-8")
    for name in ("figure2", "equation1", "figure5", "figure6", "figure7", "figure8"):
        assert f"](figures/{name}.png)" in renewed
        assert 10_000 < (tmp_path / "figures" / f"{name}.png").stat().st_size < 400_000
    assert "made-up GPU" in renewed
    assert "| GNNAdvisor, groups of 32 | 1.86, 3.41 |" in renewed
    assert "| Combined warp, (64, 96] | 105.5 | " in renewed
    # Text that does not depend on measurements is the committed text.
    for part in ("figure-2", "equation-1", "fusegnn-table-3"):
        marks = f"<!-- {part} -->", f"<!-- end of {part} -->"
        assert text.split(marks[0])[1].split(marks[1])[0] in renewed


@pytest.mark.xdist_group("twins")
def test_measuring_goes_on_where_it_was_stopped(script, tmp_path, capsys):
    path = tmp_path / "times.csv"
    options = ["--graphs", "pubmed-twin", "--columns", "16", "--repeats", "2", "--device", "cpu"]
    options += ["--strategies", "accel_gcn", "graphblast", "row_thread", "cusparse"]
    script("measure", "strategies", *options, "--output", path)
    whole = pd.read_csv(path)
    assert "left out on cpu: cusparse" in capsys.readouterr().out
    assert set(whole["graph"]) == {"Pubmed-twin"}
    assert {"accel_gcn", "graphblast", "row_thread"} <= set(whole["strategy"])
    assert set(whole["state"]) == {"warm", "cold"}
    assert len(set(whole["run"])) == 1
    assert whole["problem"].isna().all()

    script("measure", "strategies", *options, "--output", path)
    pd.testing.assert_frame_equal(pd.read_csv(path), whole)  # nothing is measured twice

    whole.iloc[:3].to_csv(path, index=False)  # killed in the middle of a column count
    script("measure", "strategies", *options, "--output", path)
    again = pd.read_csv(path)
    assert "it was not finished" in capsys.readouterr().out
    assert len(again) == len(whole)
    assert len(set(again["run"])) == 1
    assert speedups(again[again["state"] == "warm"], "graphblast", ["accel_gcn"]).attrs == {
        "dropped": 0
    }


def test_one_thread_a_row_is_spared_large_graphs_and_most_columns(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS / "measure"))
    names = runpy.run_path(str(BENCHMARKS / "measure" / "measure.py"))
    parts, studies = names["parts"], names["STUDIES"]
    cases, columns = ["accel_gcn", "row_thread"], [16, 32, 64]
    small = list(parts(studies["strategies"], cases, columns, 10**6))
    assert small == [(cases, [16, 64]), (["accel_gcn"], [32])]
    large = list(parts(studies["strategies"], cases, columns, 10**8))
    assert large == [(["accel_gcn"], columns)]
    assert list(parts(studies["bundled"], cases, columns, 10**6)) == [(cases, columns)]
    assert len(studies["strategies"].graphs) == 18
    ablations = studies["ablations"].all_cases()
    assert len({tuple(parameters.items()) for _, parameters in ablations}) == 4


@pytest.mark.long
@pytest.mark.xdist_group("twins")
def test_prepare_fills_the_cache(tmp_path):
    answer = subprocess.run(
        [
            *(sys.executable, str(BENCHMARKS / "measure" / "measure.py"), "prepare"),
            *("--graphs", "pubmed-twin", "--cache", str(tmp_path), "--processes", "1"),
        ],
        env=os.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Pubmed-twin: 99,203 nonzeros" in answer.stdout
    assert len(list((tmp_path / "graphs").glob("pubmed-*.npz"))) == 1
