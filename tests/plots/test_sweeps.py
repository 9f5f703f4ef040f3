"""Sweep tables, and their pictures as lines and heat maps."""

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import LogNorm, to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

import accelviz
from accelviz.analysis.settings import at_setting, best, distinguishing, grid, lines
from accelviz.analysis.sweep import STATISTICS, sweep
from accelviz.errors import ArgumentError
from accelviz.plots.draw import label_ends, moved_apart, write_title
from accelviz.plots.quantities import (
    count_text,
    mark_axis,
    parameter_label,
    percent_text,
    statistic_kind,
    statistic_name,
    writer,
)
from accelviz.plots.style import VERMILLION
from accelviz.plots.sweeps import sweep_heatmap, sweep_lines
from tests.plots.pictures import cut_off, read_texts, read_title

WARPS, NZS = (2, 4, 8, 12), (8, 32)


@pytest.fixture(scope="module")
def cora():
    return sweep("cora", n_cols=32, max_block_warps=WARPS, max_warp_nzs=NZS)


@pytest.fixture(scope="module")
def counted():
    """The statistics of each setting's real workload."""
    plans = {
        (warps, nzs): accelviz.plan(
            "cora", "accel_gcn", max_block_warps=warps, max_warp_nzs=nzs, n_cols=32
        )
        for warps, nzs in itertools.product(WARPS, NZS)
    }
    return {setting: plan.statistics for setting, plan in plans.items()}


def table_of(*rows, names=("strategy", "n_cols", "max_block_warps", "max_warp_nzs")):
    """A table with the parameters of `rows` and, last in each of them, the idle share."""
    table = pd.DataFrame([row[:-1] for row in rows], columns=list(names))
    table["blocks"] = range(len(rows), 0, -1)
    table["idle_share"] = [row[-1] for row in rows]
    return table


def marked(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_every_statistic_has_a_name_and_a_kind():
    for name in STATISTICS:
        assert "_" not in statistic_name(name)
        assert statistic_kind(name) in ("share", "count", "ratio", "number")
    assert statistic_name("mine") == "mine"
    assert statistic_kind("mine") == "number"
    assert parameter_label("max_block_warps") == "max_block_warps (most warps per block)"
    assert parameter_label("mine") == "mine"


def test_number_formats():
    shares = [0, 1, 0.1094, 0.0002, 0.3396]
    assert [writer("idle_share")(value) for value in shares] == [
        *("0 %", "100.0 %", "10.9 %", "0.02 %", "34.0 %")
    ]
    assert [percent_text(v) for v in (0, 0.0001, 0.098, 0.38, 0.9995, 0.996, 1)] == [
        *("0 %", "under 0.1 %", "9.8 %", "38 %", "100 %", "99.6 %", "100 %")
    ]
    assert [count_text(v) for v in (0, 12, 12345, 1234567, 2e9)] == [
        *("0", "12", "12,345", "1.23 M", "2 G")
    ]
    assert writer("imbalance")(8.256) == "8.26"
    assert [writer("warp_nzs_mean")(v) for v in (2.7326, 12345.6)] == ["2.73", "12,346"]


@pytest.mark.parametrize(
    ("statistic", "low", "high", "log", "expected"),
    [
        ("idle_share", 0, 0.5, False, ["0 %", "10 %", "50 %"]),
        ("blocks", 100, 6000, True, ["100", "200", "1,000", "5,000"]),
        ("imbalance", 0, 40, False, ["0", "10", "40"]),
        ("warp_nzs_mean", 0, 1, False, ["0", "0.2"]),
    ],
)
def test_ticks_are_round_in_their_unit(statistic, low, high, log, expected):
    ax = Figure().subplots()
    if log:
        ax.set_yscale("log")
    ax.set_ylim(low, high)
    mark_axis(ax.yaxis, statistic, low, high, log=log)
    texts = [ax.yaxis.get_major_formatter()(value) for value in ax.get_yticks()]
    assert set(expected) <= set(texts)
    assert sum(low <= tick <= high for tick in ax.get_yticks()) <= 12


def test_the_best_of_equal_settings_has_the_fewest_blocks():
    table = table_of(*[("a", 64, warps, 32, share) for warps, share in ((1, 0), (2, 0.5), (4, 0))])
    row, equal = best(table, "idle_share")
    assert row["max_block_warps"] == 4  # `table_of` counts blocks downwards
    assert equal == 1
    assert best(table, "blocks") == (None, 0)  # neither more nor fewer are better
    assert best(table.assign(idle_share=np.nan), "idle_share") == (None, 0)


def test_a_setting_without_a_value_is_not_found(cora):
    published = {"max_block_warps": 12, "max_warp_nzs": 32}
    row = at_setting(cora, "idle_share", published)
    assert (row["max_block_warps"], row["max_warp_nzs"]) == (12, 32)
    assert at_setting(cora, "idle_share", {"max_block_warps": 13}) is None
    assert at_setting(cora, "idle_share", {"ngs": 32}) is None
    assert at_setting(cora, "idle_share", None) is None
    assert at_setting(cora.assign(idle_share=np.nan), "idle_share", published) is None


def test_lines_split_a_sweep_by_the_other_parameters():
    table = sweep("cora", ["accel_gcn", "gnnadvisor"], max_block_warps=[2, 4], ngs=[8, 32])
    assert distinguishing(table) == ["strategy", "max_block_warps", "ngs"]
    result = lines(table, "max_block_warps")
    assert [(dict(line.key), line.constant, len(line.rows)) for line in result] == [
        ({"strategy": "accel_gcn"}, False, 2),
        ({"strategy": "gnnadvisor", "ngs": 8}, True, 1),
        ({"strategy": "gnnadvisor", "ngs": 32}, True, 1),
    ]


def test_a_grid_has_the_statistics_of_the_workloads(cora, counted):
    shuffled = cora.sample(frac=1, random_state=1)
    result = grid(shuffled, "idle_share", "max_block_warps", "max_warp_nzs")
    assert (list(result), list(result.index)) == (list(WARPS), list(NZS))
    assert result.attrs["left_out"] == []
    for warps, nzs in itertools.product(WARPS, NZS):
        assert result.loc[nzs, warps] == pytest.approx(counted[warps, nzs].idle_share)
    with_hole = grid(cora.iloc[1:], "idle_share", "max_block_warps", "max_warp_nzs")
    assert np.isnan(with_hole.iloc[0, 0])


@pytest.mark.parametrize("y", ["idle_share", "blocks", "largest", "busy_warps"])
def test_lines_show_the_statistics_of_the_workloads(cora, counted, y):
    ax = sweep_lines(cora, y)
    curves = [line for line in ax.lines if len(line.get_xdata()) == len(WARPS)]
    for line, nzs in zip(curves, NZS, strict=True):
        assert line.get_xdata().tolist() == list(WARPS)
        expected = [getattr(counted[warps, nzs], y) for warps in WARPS]
        np.testing.assert_allclose(line.get_ydata(), expected)
    assert {"8", "32"} <= set(read_texts(ax))
    assert any("max_warp_nzs" in text for text in read_texts(ax))
    assert ax.get_xlabel() == "max_block_warps (most warps per block)"


def test_lines_mark_the_best_and_the_published_setting(cora, counted):
    ax = sweep_lines(cora)
    (warps, nzs), lowest = min(counted.items(), key=lambda setting: setting[1].idle_share)
    published = counted[12, 32].idle_share
    marks = {line.get_marker(): line.get_xydata().tolist() for line in ax.lines}
    assert marks["*"] == [[warps, pytest.approx(lowest.idle_share)]]
    assert marks["D"] == [[12, pytest.approx(published)]]
    title = (
        f"idle share of cora: {100 * lowest.idle_share:.1f} % at {warps} x {nzs}, "
        f"{100 * published:.1f} % at the published 12 x 32"
    )
    assert read_title(ax) == title
    assert title in ax.figure.alt
    assert f"published: {100 * published:.1f} %" in marked(ax)


@pytest.mark.sample(4)
@pytest.mark.parametrize("y", ["idle_share", "largest"])
@pytest.mark.parametrize("x", ["max_block_warps", "max_warp_nzs"])
def test_no_curve_is_below_the_labels_of_the_marks(x, y):
    table = accelviz.sweep("cora", max_block_warps=range(1, 33), max_warp_nzs=range(2, 40, 3))
    ax = sweep_lines(table, y, x)
    ax.figure.draw_without_rendering()
    box = ax.get_legend().get_window_extent()
    for line in ax.lines:
        path = line.get_path().transformed(line.get_transform())
        assert not path.intersects_bbox(box, filled=False)
    title = next(text for text in ax.findobj(Text) if read_title(ax)[:20] in text.get_text())
    assert not box.overlaps(title.get_window_extent())
    assert cut_off(ax.figure) == []


def test_marks_of_another_setting_and_no_marks(cora):
    ax = sweep_lines(cora, published={"max_block_warps": 4, "max_warp_nzs": 8})
    marks = {line.get_marker(): line.get_xdata().tolist() for line in ax.lines}
    assert marks["D"] == [4]
    ax = sweep_lines(cora, "blocks", published=None)
    assert not {"*", "D"} & {line.get_marker() for line in ax.lines}
    assert " to " in read_title(ax)
    ax = sweep_lines(cora, "blocks")  # neither more nor fewer are better
    assert [line.get_marker() for line in ax.lines if len(line.get_xdata()) == 1] == ["D"]


def test_the_published_setting_may_be_the_best_or_every_setting_equal():
    rows = [("a", 64, warps, 32, share) for warps, share in ((4, 0.5), (12, 0.25))]
    ax = sweep_lines(table_of(*rows))
    title = "idle share: 25.0 % at the published 12 x 32, no setting here is lower"
    assert read_title(ax) == title
    assert marked(ax) == ["best, published: 25.0 %"]
    same = table_of(*[(*row[:-1], 0.5) for row in rows])
    ax = sweep_lines(same, published=None)
    assert read_title(ax) == "idle share: 50.0 % at every setting"
    assert "*" not in {line.get_marker() for line in ax.lines}
    one_more = table_of(*[(*row[:-1], 0.0) for row in rows], ("a", 64, 2, 32, 1.0))
    assert sweep_lines(one_more, published=None).get_title(loc="left") == (
        "idle share: 0 % at 12 x 32 and 1 other setting"
    )


def test_a_strategy_without_the_parameter_is_a_dashed_line():
    table = sweep("cora", max_block_warps=WARPS, strategies=["accel_gcn", "graphblast", "cusparse"])
    ax = sweep_lines(table)
    (dashed,) = [
        line for line in ax.lines if line.get_ls() == "--" and np.isfinite(line.get_ydata()).all()
    ]
    expected = accelviz.plan("cora", "graphblast", 64).statistics.idle_share
    np.testing.assert_allclose(dashed.get_ydata(), expected)
    assert {"accel_gcn", "graphblast"} <= set(read_texts(ax))
    assert ax.get_xlabel().endswith("do not determine it: cusparse")
    assert "(accel_gcn)" in read_title(ax)


def test_the_best_may_be_a_strategy_without_the_parameter():
    table = table_of(("a", 64, 4, 32, 0.5), ("a", 64, 8, 32, 0.4), ("b", 64, None, None, 0.1))
    ax = sweep_lines(table, published=None)
    assert read_title(ax) == "idle share: 10.0 % at b"
    (star,) = [line for line in ax.lines if line.get_marker() == "*"]
    assert star.get_ydata() == [0.1]


def test_parameters_are_spaced_as_they_grow():
    table = sweep("cora", max_block_warps=range(1, 33))
    ax = sweep_lines(table)
    assert ax.get_xscale() == "linear"
    assert {4, 8, 12, 32} <= set(ax.get_xticks())
    powers = sweep("cora", max_warp_nzs=[1, 2, 4, 8, 16, 32])
    ax = sweep_lines(powers, x="max_warp_nzs")
    assert ax.get_xscale() == "log"
    assert ax.get_xticks().tolist() == [1, 2, 4, 8, 16, 32]
    words = sweep("cora", partition=["block", "warp"])
    ax = sweep_lines(words, x="partition")
    assert [text.get_text() for text in ax.get_xticklabels()] == ["block", "warp"]


def test_counts_far_apart_are_on_a_logarithmic_axis(cora):
    table = sweep("pubmed", max_block_warps=(1, 32), max_warp_nzs=(1, 128))
    assert sweep_lines(table, "blocks").get_yscale() == "log"
    assert sweep_lines(cora, "blocks").get_yscale() == "linear"
    bar = sweep_heatmap(table, "blocks").images[0]
    assert isinstance(bar.norm, LogNorm)


def test_many_lines_are_shaded_in_order_and_partly_labelled():
    table = sweep("cora", max_block_warps=range(1, 33), max_warp_nzs=(8, 32))
    ax = sweep_lines(table, x="max_warp_nzs")
    named = [text for text in read_texts(ax) if text.isdigit()]
    assert 8 <= len(named) <= 13
    assert {"1", "32"} <= set(named)
    colours = [to_hex(line.get_color()) for line in ax.lines if len(line.get_xdata()) == 2]
    assert len(set(colours)) == 32


def test_a_heat_map_shows_the_statistics_of_the_workloads(cora, counted):
    ax = sweep_heatmap(cora)
    (image,) = ax.images
    for i, nzs in enumerate(NZS):
        for j, warps in enumerate(WARPS):
            share = counted[warps, nzs].idle_share
            assert image.get_array()[i, j] == pytest.approx(share)
            assert f"{100 * share:.1f}" in read_texts(ax)
    assert [text.get_text() for text in ax.get_xticklabels()] == list(map(str, WARPS))
    assert [text.get_text() for text in ax.get_yticklabels()] == list(map(str, NZS))
    assert {"best", "published"} <= set(read_texts(ax))
    assert "12 x 32" in read_title(ax)
    bar = ax.figure.axes[1]
    assert "idle share" in bar.get_ylabel()
    assert all(text.get_text().endswith("%") for text in bar.get_yticklabels())


def test_a_heat_map_outlines_the_best_and_the_published_cell(cora, counted):
    ax = sweep_heatmap(cora)
    (warps, nzs), _ = min(counted.items(), key=lambda setting: setting[1].idle_share)
    outlines = {to_hex(outline.get_edgecolor()): outline.get_xy() for outline in ax.patches}
    assert outlines[VERMILLION.lower()] == (WARPS.index(warps) - 0.5, NZS.index(nzs) - 0.5)
    assert outlines["#000000"] == (WARPS.index(12) - 0.5, NZS.index(32) - 0.5)


def test_a_large_heat_map_has_no_numbers_in_its_cells():
    table = sweep("cora", max_block_warps=range(2, 33), max_warp_nzs=[1, 2, 4, 8, 16, 32, 64, 128])
    ax = sweep_heatmap(table)
    assert len(ax.texts) == 2
    assert all(text.startswith(("best: ", "published: ")) for text in read_texts(ax))
    assert ax.images[0].get_array().shape == (8, 31)
    ax.figure.draw_without_rendering()


def test_a_heat_map_names_omitted_strategies_and_masks_missing_cells():
    names = ["accel_gcn", "graphblast"]
    table = sweep("cora", names, max_block_warps=[4, 12], max_warp_nzs=[8, 32])
    ax = sweep_heatmap(table.drop(index=0))
    assert ax.get_xlabel().endswith("without max_block_warps or max_warp_nzs: graphblast")
    assert ax.images[0].get_array().mask.tolist() == [[True, False], [False, False]]


def test_other_parameters_can_be_the_axes():
    table = sweep("cora", strategies="gnnadvisor", ngs=[8, 32], block_warps=[2, 4, 8])
    ax = sweep_heatmap(table, "idle_warps", x="block_warps", y="ngs")
    for i, ngs in enumerate((8, 32)):
        for j, warps in enumerate((2, 4, 8)):
            plan = accelviz.plan("cora", "gnnadvisor", 64, ngs=ngs, block_warps=warps)
            cell = ax.images[0].get_array()[i, j]
            assert cell == pytest.approx(plan.statistics.idle_warps)
    assert "published" not in read_texts(ax)


def test_undetermined_statistics_are_stated():
    nothing = table_of(*[("a", 64, warps, nzs, np.nan) for warps in (2, 4) for nzs in (8, 32)])
    for draw in (sweep_lines, sweep_heatmap):
        ax = draw(nothing)
        assert "do not determine it" in read_title(ax)
        ax.figure.draw_without_rendering()


@pytest.mark.parametrize("graph", [{}, {0: 3}, {2: 10}], ids=["empty", "no nonzero", "regular"])
def test_sweeps_of_tiny_graphs_are_drawn(graph):
    table = sweep(graph, max_block_warps=[1, 2, 4], max_warp_nzs=[1, 2])
    for name in STATISTICS[::4]:
        sweep_lines(table, name).figure.draw_without_rendering()
        sweep_heatmap(table, name).figure.draw_without_rendering()
        plt.close("all")


@pytest.mark.parametrize(
    ("draw", "options", "message"),
    [
        (sweep_lines, {"y": "warmth"}, "no such column"),
        (sweep_lines, {"x": "warmth"}, "no such column"),
        (sweep_lines, {"x": "n_cols"}, "only 32"),
        (sweep_lines, {"y": "strategy"}, "numbers"),
        (sweep_lines, {"y": "max_block_warps"}, "columns that differ"),
        (sweep_heatmap, {"value": "warmth"}, "no such column"),
        (sweep_heatmap, {"y": "n_cols"}, "only 32"),
        (sweep_heatmap, {"y": "max_block_warps"}, "columns that differ"),
    ],
)
def test_invalid_sweeps_raise(cora, draw, options, message):
    with pytest.raises(ArgumentError, match=message):
        draw(cora, **options)


def test_duplicate_settings_raise(cora):
    twice = pd.concat([cora, cora.assign(n_cols=64)], ignore_index=True)
    with pytest.raises(ArgumentError, match="which differ in n_cols"):
        sweep_heatmap(twice)
    with pytest.raises(
        ArgumentError, match="2 rows at .*max_block_warps=2, which differ in nothing"
    ):
        sweep_lines(pd.concat([cora, cora], ignore_index=True))
    with pytest.raises(ArgumentError, match="no value"):
        sweep_lines(cora.iloc[:0])


def test_labels_move_apart_about_their_middle_and_stay_in_order():
    np.testing.assert_allclose(moved_apart(np.array([0.0, 50.0]), 10), [0, 50])
    np.testing.assert_allclose(moved_apart(np.array([0.0, 0.0, 0.0]), 10), [-10, 0, 10])
    places = moved_apart(np.array([0.0, 9.0, 12.0, 40.0, 41.0]), 10)
    assert (np.diff(places) >= 10 - 1e-9).all()
    np.testing.assert_allclose(places[:3].mean(), 7)
    assert moved_apart(np.array([]), 10).size == 0


def test_labels_that_are_not_finite_are_omitted():
    ax = Figure().subplots()
    label_ends(ax, [(float("nan"), "nowhere", "k"), (0.5, "there", "k")], "heading")
    assert read_texts(ax) == ["there", "heading"]
    label_ends(ax, [])


def test_a_title_is_wrapped_between_words_and_keeps_numbers_whole():
    ax = Figure(figsize=(4, 3)).subplots()
    sentence = "idle share of some graph or other: 10.9 % at the published 12 x 32, 3 more"
    write_title(ax, sentence)
    written = ax.get_title(loc="left")
    assert "\n" in written
    assert written.replace("\n", " ") == sentence
    assert all(f"\n{word}" not in written for word in ("%", "x", "32"))
