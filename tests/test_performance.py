"""Tables of docs/performance.md against values computed by hand, and against recorded results."""

import re
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from accelviz.errors import ArgumentError
from accelviz.measure import records
from accelviz.measure.ladder import OFF, ladder, ladder_cases
from benchmarks.pages import performance, targets
from benchmarks.pages.__main__ import main
from benchmarks.pages.performance_figures import limit_grid, speedup_grid

matplotlib.use("agg")
DOCUMENT = Path(__file__).parents[1] / "docs" / "performance.md"
COLUMNS = (16, 17, 32, 33, 48, 50, 64, 96, 100, 128)
#: Graphs: rows, nonzeros and the time of `lane_groups` in microseconds at any column count.
GRAPHS = {
    "tiny": (1_000, 5_000, 6.0),
    "A-twin": (300_000, 2_000_000, 80.0),
    "A-twin-shuffled": (300_000, 2_000_000, 100.0),
}
LAUNCH, GATHER_LIMIT = 2.0, {"tiny": 2.0, "A-twin": 90.0, "A-twin-shuffled": 90.0}
FASTEST = "algorithm=fastest preprocess={}"


def row(graph, strategy, parameters, columns, us, **other):
    """Return a row of a table of results."""
    rows, nonzeros, _ = GRAPHS[graph.removesuffix("-rabbit")]
    return {
        **dict.fromkeys(records.COLUMNS, ""),
        "run": "2026-01-01",
        "hardware": "made-up GPU",
        "device": "cuda",
        "repeats": 9,
        "graph": graph,
        "graph_kind": "twin" if "-twin" in graph else "real",
        "fingerprint": "0",
        "rows": rows,
        "nonzeros": nonzeros,
        "strategy": strategy,
        "parameters": parameters,
        "variant": "csr_alg3",
        "columns": columns,
        "dtype": "float32",
        "state": "warm",
        "median_us": us,
        "floor_us": LAUNCH if graph == "tiny" else 40.0,
        "gather_limit_us": GATHER_LIMIT[graph.removesuffix("-rabbit")],
        "copy_gb_per_s": 4000.0,
        "gather_gb_per_s": 8000.0,
        "error_over_bound": 0.5,
        "problem": np.nan,
        **other,
    }


def ours(preprocessed=2.0, *, peers=True):
    """Return times of `lane_groups` and others; cuSPARSE takes `preprocessed` times as long."""
    rows = []
    for graph, (_, _, us) in GRAPHS.items():
        for d in COLUMNS:
            rows.append(row(graph, "lane_groups", "lanes=8 stage=True", d, us))
            for call, times in ((True, preprocessed), (False, 3.0)):
                rows.append(row(graph, "cusparse", FASTEST.format(call), d, times * us))
            if peers and d in (16, 32, 64, 96, 128):
                rows.append(row(graph, "gnnadvisor", "ngs=32 dw=16", d, 2.7 * us))
                rows.append(row(graph, "accel_gcn", "max_warp_nzs=32", d, 2.2 * us))
    return pd.DataFrame(rows)


def found_orders():
    """Return times before and after renumbering: faster at 32 columns, slower at 128."""
    rows = []
    for ending, seconds, times in (("", 0.0, (100.0, 100.0)), ("-rabbit", 2.0, (50.0, 125.0))):
        graph = f"A-twin-shuffled{ending}"
        for d, us in zip((32, 128), times, strict=True):
            rows.append(row(graph, "lane_groups", "", d, us, order_seconds=seconds))
            vendor = FASTEST.format(True)
            rows.append(row(graph, "cusparse", vendor, d, 150.0, order_seconds=seconds))
    return pd.DataFrame(rows)


@pytest.fixture
def renew_page(monkeypatch, tmp_path):
    """Return a function that renews a copy of the document from some tables and returns its text.

    Saving figures takes most of the time, so it is skipped by default.
    """

    def renew(tables, *, figures=False):
        if not figures:
            monkeypatch.setattr(Figure, "savefig", lambda *_, **__: None)
        for name, table in tables.items():
            table.to_csv(tmp_path / f"{name}-h200.csv", index=False)
        copy = tmp_path / "performance.md"
        copy.write_text(DOCUMENT.read_text("utf-8"), "utf-8")
        main(["performance", "--docs", str(tmp_path), "--results", str(tmp_path)])
        plt.close("all")
        return copy.read_text("utf-8")

    return renew


def line(text, start):
    """Return the cells of the table row that begins with `start`."""
    [match] = [row for row in text.splitlines() if row.startswith(f"| {start}")]
    return [cell.strip() for cell in match.strip("|").split("|")]


def test_every_question_is_answered_by_the_times(renew_page, tmp_path):
    text = renew_page({"ours": ours()}, figures=True)
    # 90 / 100 in shuffled order; 6 / (2 + 2) on the small graph.
    assert line(text, "share of the random-gather")[1:] == ["0.90, 0.90, 0.90, 0.90, 0.90"]
    assert line(text, "time over an empty launch")[1:] == ["1.50 (1.50 to 1.50)"]
    assert line(text, "over cuSPARSE, d = 16")[1:] == ["2.00 preprocessed, 3.00 not"]
    assert line(text, "over cuSPARSE, d = 17")[1:] == ["2.00 preprocessed, 3.00 not"]
    assert line(text, "over cuSPARSE, the worst")[1:] == ["2.000 preprocessed, 3.000 not"]
    # X of 300,000 rows is larger than 50 MiB from 44 columns on.
    assert line(text, "natural over shuffled")[1:] == ["1.25 (1.25 to 1.25)"]
    assert line(text, "over our `gnnadvisor`")[1:] == ["2.70 (2.70 to 2.70)"]
    assert line(text, "over our `accel_gcn`")[1:] == ["2.20 (2.20 to 2.20)"]
    assert "| preprocessing on the GPU" not in text
    assert "**On an made-up GPU" in text
    assert "is 2.00 times as fast as cuSPARSE**" in text
    assert "slower in none of 30 cases; the least is 2.00" in text
    assert "our GNNAdvisor 2.70, our Accel-GCN (the published scheme) 2.20." in text
    for name in ("speedup", "limit", "roofline"):
        assert 10_000 < (tmp_path / "figures" / f"performance-{name}.png").stat().st_size < 450_000


def test_what_is_said_turns_with_the_times(renew_page):
    text = renew_page({"ours": ours(0.9, peers=False)})
    assert line(text, "over cuSPARSE, the worst")[1:] == ["0.900 preprocessed, 3.000 not"]
    assert "It is slower in 30 of 30 cases; the least is 0.90" in text
    assert "| over our `accel_gcn`" not in text
    assert "our Accel-GCN" not in text


def test_others_are_held_against_ours_case_by_case():
    rows = [
        row("tiny", "merge_path", "", 16, 12.0),
        row("tiny", "merge_path", "", 32, 48.0),
        row("tiny", "merge_path", "", 32, 3.0, state="cold"),
        row("tiny", "merge_path", "", 19, 3.0),  # a column count that ours does not have
        row("A-twin", "ge_spmm", "", 16, 60.0),
        row("A-twin", "accel_gcn", "", 16, 1.0),  # measured in our run already
    ]
    said = targets.other_peers(ours(), [pd.DataFrame(rows)])
    assert said.endswith("`ge_spmm` 0.75 (0.75), `merge_path` 4.00 (2.00).")


def test_sections_without_results_are_left_out(renew_page, capsys):
    text = renew_page({"ours": ours()})
    said = capsys.readouterr().out
    for name in ("ladder", "tuning", "sixteen-bits", "preprocessing"):
        assert f"<!-- {name} -->\n\n<!-- end of {name} -->" in text
        assert f"{name} is left out" in said
    assert "## Sixteen bits" not in text
    assert "rabbit" not in text


def test_sixteen_bits_and_found_orders_have_their_place(renew_page):
    half = [
        row("A-twin", "lane_groups", f"storage={dtype}", d, us, dtype=dtype, gather_limit_us=limit)
        for d in (32, 64)
        for dtype, us, limit in (
            ("float32", 80.0, 90.0),
            ("float16", 50.0, 50.0),
            ("bfloat16", 64.0, 50.0),
        )
    ]
    tables = {"ours": ours(), "half": pd.DataFrame(half), "orders": found_orders()}
    text = renew_page(tables)
    mean = "1.41 (1.25 to 1.60)"  # sqrt(1.6 * 1.25)
    assert line(text, "16-bit features")[1:] == [mean]
    assert line(text, "float16 | 1.60")[1:] == ["1.60", "1.60"]
    assert line(text, "bfloat16 | 1.25")[1:] == ["1.25", "1.25"]
    # The order takes 2 s and saves 50 us per product; the speedups are 150 / 50 and 150 / 125.
    assert line(text, "32 | 2.00")[1:] == ["2.00 (2.00 to 2.00)", "40,000 to 40,000", "3.00"]
    assert line(text, "128 | 0.80")[1:] == ["0.80 (0.80 to 0.80)", "never", "1.20"]
    assert "in 2.0 to 2.0 s. On 1 shuffled" in text
    assert "times had no partner" not in text
    # Times in Rabbit order are in no mean over the graphs.
    assert line(text, "over cuSPARSE, d = 16")[1:] == ["2.00 preprocessed, 3.00 not"]


def test_errors_of_sixteen_bits_are_listed():
    errors = {"float32": (1e-8, 2e-8), "float16": (1e-4, 2e-4)}
    rows = [
        {
            "graph": graph,
            "columns": 64,
            "storage": name,
            "norm": e,
            "median": e / 2,
            "largest": 3 * e,
        }
        for name, both in errors.items()
        for graph, e in zip(("tiny", "A-twin"), both, strict=True)
    ]
    text = performance.accuracy(pd.DataFrame(rows))
    assert "d = 64, on tiny, A natural)" in text
    cells = line(text, "float16")
    assert cells[1:] == ["1.0e-04 to 2.0e-04", "5.0e-05 to 1.0e-04", "3.0e-04 to 6.0e-04"]


def test_a_search_is_held_against_the_rule():
    table = pd.DataFrame(
        {
            "graph": ["tiny", "A-twin-shuffled"],
            "columns": [32, 128],
            "rule_us": [10.0, 120.0],
            "tuned_us": [10.0, 100.0],
            "seconds": [1.0, 2.0],
            "pays_after": [np.inf, 100_000.0],
        }
    )
    text = performance.tuning({"tuning-h200": table})
    assert "On tiny, A shuffled at d = 32, 128" in text
    assert "is 1.00 to 1.20 times as fast as the rule's. The search takes 1.0 to 2.0 s." in text
    assert text.endswith("It pays after 100,000 products in the best case.")


def test_each_rung_is_divided_by_the_one_before():
    rungs, off = ladder(), OFF
    assert len(rungs) == len(ladder_cases()) == 11
    rows, us = [], 1024.0
    chosen = {"vector": 4, "stage": True, "at_once": 2, "group_nzs": 32, "short_nzs": 8}
    chosen |= {"block_order": "place", "column_tile": 64}
    for name, changed in rungs.values():
        lanes = name == "lane_groups"
        settings = {key: changed.get(key, chosen[key]) for key in off} if lanes else {}
        parameters = " ".join(f"{key}={value}" for key, value in settings.items())
        rows.append(row("A-twin", name, parameters, 32, us))
        us /= 2
    text = "\n\n".join(performance.ladder({"ladder-h200": pd.DataFrame(rows)}))
    for name, share in zip([*rungs][1:-1], 90 / 1024 * 2.0 ** np.arange(1, 10), strict=True):
        assert line(text, f"{name} |") == [name, "2.00", f"{share:.2f}"]
    assert line(text, "cuSPARSE")[1] == ""


def test_the_readme_s_result_is_the_page_s():
    root = Path(__file__).resolve().parents[1]
    page = (root / "docs" / "performance.md").read_text("utf-8")
    told = re.search(r"\[([\d.]+) times as fast as cuSPARSE\]", (root / "README.md").read_text())
    assert told is not None
    assert f"is {told[1]} times as fast as cuSPARSE**" in page
    assert "It is slower in none of 450 cases" in page


#: Graph and columns, with the times of cuSPARSE and `lane_groups`; limits are 10 us.
TIMES = {
    "even": {16: (20.0, 10.0), 64: (40.0, 20.0)},
    "odd": {16: (9.0, 12.0), 64: (30.0, 10.0)},
    "part": {64: (50.0, 40.0)},
}


def grid_rows():
    """Return TIMES as a table of results."""
    rows = [
        {
            **row("tiny", strategy, "", columns, us, gather_limit_us=10.0),
            "graph": graph,
        }
        for graph, times in TIMES.items()
        for columns, pair in times.items()
        for strategy, us in zip(("cusparse", "lane_groups"), pair, strict=True)
    ]
    return pd.DataFrame(rows)


def numbers(ax):
    """Return the ratios drawn in a grid by graph and columns, and the set of bold ones."""
    rows = [label.get_text() for label in ax.get_yticklabels()]
    columns = [label.get_text() for label in ax.get_xticklabels()]
    ratios, bold = {}, set()
    for text in ax.texts:
        x, y = text.get_position()
        ratios[rows[round(y)], columns[round(x)]] = float(text.get_text())
        if text.get_fontweight() == "bold":
            bold.add((rows[round(y)], columns[round(x)]))
    return ratios, bold


def test_speedups_stand_at_their_graph_and_columns():
    ax = speedup_grid(Figure().subplots(), grid_rows(), "cusparse", "lane_groups")
    ratios, bold = numbers(ax)
    assert ratios == {
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
    assert "1 of 5 slower, lowest 0.75" in ax.get_xlabel()


def test_shares_of_the_limit_are_no_losses():
    ax = limit_grid(Figure().subplots(), grid_rows(), "lane_groups")
    ratios, bold = numbers(ax)
    assert ratios["even", "16"] == 1.0
    assert ratios["odd", "16"] == 0.83
    assert ratios["part", "64"] == 0.25
    assert {graph for graph, _ in bold} == {"geometric mean"}
    assert "3 of 5 below it, lowest 0.25" in ax.get_xlabel()


def test_nothing_to_divide_is_said():
    ax, rows = Figure().subplots(), grid_rows()
    with pytest.raises(ArgumentError):
        speedup_grid(ax, rows[rows["strategy"] == "lane_groups"], "cusparse", "lane_groups")
    with pytest.raises(ArgumentError, match="no such ratio"):
        limit_grid(ax, rows.assign(gather_limit_us=np.nan), "lane_groups")
