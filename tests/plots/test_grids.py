"""Grids of ratios: every number stands where it belongs, losses are marked."""

import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from accelviz.errors import ArgumentError
from accelviz.measure import records

_NAMES = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "pages" / "grids.py"))
speedup_grid, limit_grid = _NAMES["speedup_grid"], _NAMES["limit_grid"]

#: Graph to the times of the baseline and of our own, by columns; limits are 10 us.
TIMES = {
    "even": {16: (20.0, 10.0), 64: (40.0, 20.0)},
    "odd": {16: (9.0, 12.0), 64: (30.0, 10.0)},
    "part": {64: (50.0, 40.0)},
}


def table():
    rows = [
        {
            **dict.fromkeys(records.COLUMNS, ""),
            "run": "2026-01-01",
            "hardware": "made-up GPU",
            "device": "cuda",
            "state": "warm",
            "graph": graph,
            "fingerprint": "0",
            "columns": columns,
            "dtype": "float32",
            "strategy": strategy,
            "median_us": us,
            "gather_limit_us": 10.0,
            "problem": np.nan,
        }
        for graph, times in TIMES.items()
        for columns, pair in times.items()
        for strategy, us in zip(("cusparse", "lane_groups"), pair, strict=True)
    ]
    return pd.DataFrame(rows)


def numbers(ax):
    """Return the written ratios by graph and columns, and which are bold."""
    rows = [label.get_text() for label in ax.get_yticklabels()]
    columns = [label.get_text() for label in ax.get_xticklabels()]
    found, bold = {}, set()
    for text in ax.texts:
        x, y = text.get_position()
        found[rows[round(y)], columns[round(x)]] = float(text.get_text())
        if text.get_fontweight() == "bold":
            bold.add((rows[round(y)], columns[round(x)]))
    return found, bold


def test_speedups_stand_at_their_graph_and_columns():
    ax = speedup_grid(table())
    found, bold = numbers(ax)
    assert found == {
        ("even", "16"): 2.0,
        ("even", "64"): 2.0,
        ("odd", "16"): 0.75,
        ("odd", "64"): 3.0,
        ("part", "64"): 1.25,
        ("geometric mean", "16"): 1.22,  # sqrt(2 * 0.75)
        ("geometric mean", "64"): 1.96,  # cbrt(2 * 3 * 1.25)
    }
    assert bold == {("odd", "16"), ("geometric mean", "16"), ("geometric mean", "64")}
    order = [label.get_text() for label in ax.get_yticklabels()]
    assert order == ["even", "odd", "part", "geometric mean"]
    assert "1.62 times as fast" in ax.get_title(loc="left")  # (2 * 2 * 0.75 * 3 * 1.25)^(1/5)
    assert "1 of 5 slower, lowest 0.75" in ax.get_xlabel()
    assert "0.75 to 3.00" in ax.figure.alt


def test_shares_of_the_limit_are_no_losses():
    ax = limit_grid(table())
    found, bold = numbers(ax)
    assert found["even", "16"] == 1.0
    assert found["odd", "16"] == 0.83
    assert found["part", "64"] == 0.25
    assert {row for row, _ in bold} == {"geometric mean"}
    assert "3 of 5 below it, lowest 0.25" in ax.get_xlabel()


def test_it_draws_where_it_is_told_and_shows_recorded_results():
    _, ax = plt.subplots()
    recorded = records.recorded("bundled-h200")
    assert speedup_grid(recorded, "cusparse", "accel_gcn", ax=ax) is ax
    assert "accel_gcn over cusparse" in ax.get_title(loc="left")


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("bundled-h200", "lane_groups over cusparse"),
        ("strategies-h200", "accel_gcn over cusparse"),
        ("ours-h200", "lane_groups over cusparse"),
        ("orders-h200", "lane_groups over cusparse"),
    ],
)
def test_the_shipped_results_need_no_arguments(name, title):
    ax = speedup_grid(records.recorded(name))
    assert title in ax.get_title(loc="left")


def test_of_several_settings_the_fastest_counts():
    slow = table().assign(parameters="a=1")
    fast = slow.assign(parameters="a=2", median_us=slow["median_us"] / 2)
    ax = speedup_grid(pd.concat([slow, fast], ignore_index=True))
    assert numbers(ax)[0] == numbers(speedup_grid(table()))[0]


def test_nothing_to_divide_is_said():
    with pytest.raises(ArgumentError):
        speedup_grid(table()[lambda t: t["strategy"] == "lane_groups"])
    with pytest.raises(ArgumentError, match="no such ratio"):
        limit_grid(table().assign(gather_limit_us=np.nan))
