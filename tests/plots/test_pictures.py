"""Pictures show the data that they are given."""

import io
import subprocess
import sys
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest

import accelviz
from accelviz import plots
from accelviz.analysis.balance import (
    LoadMap,
    block_idle_shares,
    load_map,
    plan_load_map,
)
from accelviz.analysis.locality import locality
from accelviz.analysis.pattern import pattern_map
from accelviz.datasets import twin
from accelviz.ordering import DegreeHistogram
from accelviz.plots.style import VERMILLION, strategy_colours
from accelviz.workload import nonzeros_per_warp
from tests.graphs import GRAPHS
from tests.plots.pictures import cut_off, read_texts, read_title


def test_a_close_up_has_a_bar_for_each_warp_with_work():
    plan = accelviz.plan("cora", "accel_gcn")
    works = [plan.workload(block, block + 1) for block in (0, 251)]
    first, last = plots.block_close_ups(works, warps_per_block=12)
    assert [bar.get_width() for bar in first.patches] == [1.0] * 12
    assert [bar.get_width() for bar in last.patches] == [28.0] * 6
    faces = [bar.get_facecolor() for bar in first.patches]
    assert all(one != next_one for one, next_one in pairwise(faces))  # another row each
    assert len({bar.get_facecolor() for bar in last.patches}) == 1  # one row
    assert read_texts(last) == ["no work"] * 6
    assert first.get_xlim() == last.get_xlim()
    assert (first.get_title(), last.get_title()) == ("block 0", "block 251")


@pytest.mark.parametrize("max_columns", [252, 251, 100, 7, 1])
def test_a_load_map_has_the_most_and_the_mean_of_all_blocks_in_slices_of_any_size(max_columns):
    plan = accelviz.plan("cora", "accel_gcn", 32)
    exact = nonzeros_per_warp(plan.workload(), 12)
    for size in (1, 17, 50, 1000):
        loads = load_map(plan.workload_slices(blocks=size), 252, plan.hardware, max_columns)
        assert len(loads.most) == max_columns
        for column, (first, last) in enumerate(pairwise(loads.blocks)):
            assert first < last
            np.testing.assert_array_equal(loads.most[column], exact[first:last].max(axis=0))
            np.testing.assert_allclose(loads.mean[column], exact[first:last].mean(axis=0))
    assert len(plan_load_map(plan).most) == plan_load_map(plan).n_blocks == 252


def test_block_idle_shares_have_the_plan_s_share_as_weighted_mean():
    for columns in (32, 64, 100):
        plan = accelviz.plan("cora", "accel_gcn", columns)
        shares = block_idle_shares(plan)
        work = plan.hardware.of_workload(plan.workload())
        _, slots = plan.hardware.block_times(work)
        assert np.average(shares, weights=slots) == pytest.approx(plan.statistics.idle_share)


def test_load_maps_share_scales_and_state_the_blocks_of_a_column():
    one, two = np.array([[1, 0], [4, 2]]), np.array([[32, 8]])
    maps = {
        "one": LoadMap(one, one.astype(float), np.array([0, 1, 2])),
        "two": LoadMap(two, two / 2, np.array([0, 5])),
    }
    first, second = plots.load_maps(maps)
    assert first.get_xlim() == second.get_xlim() == (-0.5, 4.5)
    assert first.images[0].norm is second.images[0].norm
    # A line of the largest numbers and one of the means for each warp.
    masked = first.images[0].get_array().mask.tolist()
    assert masked == [[False, False], [False, False], [True, False], [True, False]]
    assert second.images[0].get_array().tolist() == [[32], [16], [8], [4]]
    assert read_texts(first) == ["no block"]
    assert "up to 5 blocks a column: most above, mean below" in second.texts[0].get_text()


def test_a_strategy_has_one_colour_in_every_picture():
    known = list(accelviz.strategies())
    every = [*known, "mine", "yours"]
    colours = strategy_colours(every)
    assert list(colours) == every
    assert len(set(colours.values())) == len(every)
    assert VERMILLION not in colours.values()  # of losses and limits
    for name in [*known, "mine"]:
        assert strategy_colours([name]) == {name: colours[name]}
    names = {"Accel-GCN": "accel_gcn", "GE-SpMM": "ge_spmm", "gnnadvisor ngs=32": "gnnadvisor"}
    assert strategy_colours(names) == {name: colours[strategy] for name, strategy in names.items()}
    two = strategy_colours(["accel_gcn partition=block", "accel_gcn partition=warp"])
    assert two["accel_gcn partition=block"] == colours["accel_gcn"]
    assert len(set(two.values())) == 2
    assert len(strategy_colours(map(str, range(30)))) == 30


def test_plots_are_imported_lazily():
    code = "import sys, accelviz; print('matplotlib' in sys.modules, accelviz.plots.__name__)"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.split() == ["False", "accelviz.plots"]


def test_a_pattern_has_a_title_and_alt_text():
    ax = plots.nonzero_pattern(accelviz.load_graph("cora"))
    assert read_title(ax) == "10,556 nonzeros in 2,708 rows and 2,708 columns"
    assert "10,556 nonzeros" in ax.figure.alt


@pytest.mark.parametrize("name", ["facebook", "cit-hepph", "wide"])
@pytest.mark.parametrize("cells", [1, 7, 200])
def test_a_pattern_map_counts_every_nonzero(name, cells):
    graph = GRAPHS[name]()
    pattern = pattern_map(graph, cells=cells)
    assert pattern.shape == tuple(min(cells, side) for side in graph.shape)
    places = np.array(graph.adjacency.tocoo().coords, dtype=np.int64).T
    expected = np.zeros_like(pattern)
    np.add.at(expected, tuple((places * expected.shape // graph.shape).T), 1)
    np.testing.assert_array_equal(pattern, expected)


def test_a_graph_card_shows_every_fact_and_marks_synthetic_graphs():
    for graph, colour in ((accelviz.load_graph("cora"), "black"), (twin({3: 8}), VERMILLION)):
        figure = plots.graph_card("cora" if graph.name == "cora" else graph)
        facts, _, pattern, _ = figure.axes
        texts = {text.get_text().replace("\n", " "): text for text in facts.texts}
        for label, fact in accelviz.describe(graph).lines():
            assert label in texts
            assert fact in texts
        assert texts[dict(accelviz.describe(graph).lines())["kind"]].get_color() == colour
        assert pattern.images[0].get_array().sum() == graph.nnz
        data, metadata = figure._repr_mimebundle_()
        assert data["image/png"].startswith(b"\x89PNG")
        assert accelviz.describe(graph).source in metadata["image/png"]["alt"]


def test_a_graph_card_of_an_empty_graph():
    figure = plots.graph_card(GRAPHS["empty"]())
    assert read_texts(figure.axes[2]) == ["no nonzero"]
    figure.savefig(io.BytesIO())


def test_brackets_show_every_graph_s_four_statistics():
    names = ("cora", "facebook")
    localities = {}
    for name in names:
        real = accelviz.load_graph(name)
        natural, shuffled = (twin(real, order=order) for order in ("natural", "shuffled"))
        localities[name] = tuple(map(locality, (natural, real, shuffled)))
    axes = plots.locality_brackets(localities)
    assert [label.get_text() for label in axes[0].get_yticklabels()] == list(names)
    for statistic, ax in zip(localities["cora"][0].relative, axes, strict=True):
        assert statistic.split()[0] in ax.get_xlabel() or "overlap" in ax.get_xlabel()
        points = {tuple(point) for line in ax.lines for point in line.get_xydata()}
        for y, name in enumerate(names):
            assert {(one.relative[statistic], y) for one in localities[name]} <= points


def test_a_plan_or_a_graph_is_enough_for_a_picture():
    graph = accelviz.load_graph("cora")
    plan, ours = accelviz.plan(graph, "accel_gcn"), accelviz.plan(graph, "lane_groups")
    (ax,) = plots.load_maps(plan)
    assert read_title(ax) == "accel_gcn: 16.2% of warp time idle"
    axes = plots.load_maps({"a": plan, "b": plan_load_map(ours)})
    assert [read_title(ax)[:2] for ax in axes] == ["a:", "b"]
    first, second = plots.warp_loads({"a": plan, "b": ours})
    assert (first.get_ylabel(), second.get_ylabel()) == ("combined warps", "subwarps")
    assert "10,556 nonzeros" in plots.nonzero_pattern(graph).figure.alt
    histogram = DegreeHistogram.of(graph.row_pointers)
    for draw in (plots.degree_histogram, plots.degree_shares):
        alts = [draw(graph).figure.alt, draw(histogram.degrees, histogram.rows).figure.alt]
        assert alts[0] == alts[1]
    with pytest.raises(accelviz.errors.ArgumentError):
        plots.degree_histogram(histogram.degrees)


def test_no_text_is_cut_off():
    table = accelviz.measure.records.recorded("strategies-h200")
    cases = ("cusparse algorithm=fastest preprocess=True", "accel_gcn combined_warp=True")
    swept = accelviz.sweep("cora", max_block_warps=range(1, 33), max_warp_nzs=[8, 32, 128])
    plan = accelviz.plan("pubmed", "accel_gcn", 64)
    for ax in (
        plots.speedup_ranges(table, cases[0], f"{cases[1]} partition=block"),
        plots.sweep_lines(swept),
        plots.sweep_heatmap(swept),
        plots.warp_loads({"a strategy with a long name, of whom nobody knows why": plan})[0],
        plots.load_maps({"another one with a name that is as long as that": plan})[0],
        plots.block_assignment(accelviz.plan("cora", "gnnadvisor")),
    ):
        assert cut_off(ax.figure) == []
        plt.close(ax.figure)
