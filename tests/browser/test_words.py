"""Texts of a saved page: sentences, tooltips, names, and reasons for what it cannot show."""

import re

import numpy as np
import pytest

import accelviz
from accelviz.analysis.lookup import find_row
from accelviz.analysis.traffic import requests
from accelviz.errors import AccelvizError, ArgumentError
from accelviz.measure import random_inputs
from accelviz.measure.prediction import recorded_times
from accelviz.strategies import REGISTRY, find_strategy
from accelviz.widgets import explore, explorer

from ..compilers import needs_compiler
from .lab import FRAME
from .saved import FAULTS


def test_tooltips_name_threads_columns_and_places(saved):
    view = saved(explore("cora", n_cols=64, row=1358))
    view.page.locator("[data-f^='lane:']").nth(42).hover(force=True)
    assert view.text(".av-tip").startswith(
        "Thread 42 of the combined warp (2 warps of 32) has column 42 of Y"
    )
    field = view.page.locator("rect[data-f='field:1:0']")
    field.evaluate("field => field.scrollIntoView({ block: 'center' })")
    field.hover(force=True)
    assert "Place: position of the row in the order" in view.text(".av-tip")
    view.page.locator(".av-of-order rect[data-say]").nth(1).hover(position={"x": 9, "y": 2})
    assert view.text(".av-tip").startswith("Degrees again, with the rows in their places.")
    assert "and 159 more of the 168 rows of X" in view.page.locator(".av-of-read").text_content()
    view.choose("first", "graphblast")
    assert "columns 32 to 63, belong to 1 more block for the same row" in view.text(".av-answer")


@pytest.mark.long
@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("strategy", "heads", "way", "sentence", "width"),
    [
        (
            "lane_groups of sddmm",
            "A U V scores",
            "row 1,358 of U and 168 rows of V → 168 numbers of scores",
            "of V: ",
            1700,
        ),
        ("lane_groups of sddmm", "A U V scores", "168 numbers of scores", "of V: ", 480),
        (
            "lane_groups of edge_softmax",
            "A scores alpha",
            "of alpha",
            "row 5,258 of scores: ",
            1700,
        ),
        (
            "lane_groups of edge_softmax_gradient",
            "A alpha d_alpha d_scores",
            "of alpha and of d_alpha → 168 rows of d_scores",
            "row 5,258 of d_alpha: 256 bytes, 8 sectors; as many bytes of alpha.",
            480,
        ),
        ("fusegnn_gar of spmm_gradient", "Aᵀ X dY dX", "of dY → row 1,358 of dX", "of dY: ", 848),
        ("lane_groups of gat_gradient", "Aᵀ V dY dV", "of dY → row 1,358 of dV", "of dY: ", 480),
    ],
)
def test_matrices_have_the_names_of_the_operation(saved, strategy, heads, way, sentence, width):
    explorer = explore("cora", find_strategy(*strategy.split(" of ")), n_cols=64, row=1358)
    look = {"viewport": {"width": width, "height": 1000}, "color_scheme": "dark"}
    view = saved(explorer, **look)
    names = view.page.locator(".av-of-equation svg text.av-b").all_text_contents()
    assert names == heads.split()
    assert way in " ".join(view.text(".av-answer").split())
    view.page.locator(".av-of-strip .av-draw").focus()
    assert sentence in view.text(".av-tip")
    assert view.page.evaluate(FAULTS) == []
    # The times are those of this operation; other operations have strategies of the same name.
    view.tab("Numbers")
    times = recorded_times(accelviz.load_graph("cora"), explorer.operation)
    is_first = times["strategy"] == explorer.settings["first"]
    times = times[(times["columns"] == 64) & is_first]["median_us"]
    expected = f"Nothing was recorded of {explorer.operation.name} on cora with 64 columns"
    if len(times):
        expected = f"first, recorded{times.iloc[0]:.1f} µs"
    assert expected in view.page.locator("[data-view=times]").text_content()


def test_a_note_explains_why_a_softmax_takes_longer(saved):
    strategy, graph = find_strategy("lane_groups", "edge_softmax"), accelviz.load_graph("pubmed")
    pair = strategy.plan(graph, 1), find_strategy("row_warp", "edge_softmax").plan(graph, 1)
    most = graph.degrees.max()
    lanes = pair[0].parameters["lanes"]
    panel = explore("pubmed", strategy, second="row_warp")
    view = saved(panel)
    view.tab("Numbers")
    sentence = view.page.locator("[data-view=times] .av-note").last.inner_text()
    first, second = (-(-most // of) for of in (lanes, 32))
    assert f"turns of the busiest lanes ({first:,} against {second:,})" in sentence


@pytest.mark.long
def test_numbers_and_workers_with_long_names_have_labels(saved):
    gat = explore("cora", find_strategy("row_warp", "gat"), row=1358)
    view = saved(gat)
    sentence = "reads a number of receiver for the row and a number of sender for each neighbor."
    assert sentence in view.text(".av-of-equation")
    sddmm = explore("cora", find_strategy("lane_groups", "sddmm"), row=1358)
    narrow = {"viewport": {"width": 480, "height": 1000}}
    view = saved(sddmm, **narrow)
    names = view.page.locator(".av-of-strip text.av-r").all_text_contents()
    assert {len(name) for name in names} == {1, 2}  # subwarps 0 to 9 and 10 to 15


@pytest.mark.parametrize(
    ("strategies", "settings", "sentence"),
    [
        (3, {}, "strategies: got 3"),
        ((), {"pinned": 3}, "pinned: got 3"),
        ((), {"pinned": {"ngs": 1}}, "pinned: accel_gcn has no parameter 'ngs'"),
        ((), {"second": "gnnadvisor", "pinned": {"ngs": 0}}, "ngs: got 0"),
        # Names of other operations, and of their strategies, are explained.
        ("gat", {}, "; of gat, find_strategy('lane_groups', 'gat')"),
        ((), {"first": "row_warp"}, "; of sddmm, find_strategy('row_warp', 'sddmm')"),
        ((), {"operation": "softmax"}, "operation: there is no 'softmax'. Expected: one of spmm"),
        ((), {"row": 2708}, "row: got 2708. Expected: 0 to 2707"),
        ((), {"n_cols": True}, "n_cols: got True"),
    ],
)
def test_invalid_settings_are_refused(strategies, settings, sentence):
    with pytest.raises(AccelvizError, match=re.escape(sentence)):
        explore("cora", strategies, **settings)


def test_a_strategy_is_compared_with_another_or_with_another_partition():
    for operation in {
        strategy.operation.name: strategy.operation for strategy in REGISTRY
    }.values():
        strategies = [strategy for strategy in REGISTRY if strategy.operation == operation]
        if operation.name.startswith(("scc", "bit_", "dense")):  # no operand has a row per node
            with pytest.raises(ArgumentError, match=f"strategies: no matrix of {operation.name}"):
                explore("cora", strategies[0])
            continue
        panel = explore("cora", strategies[0])
        settings = panel.settings
        assert explore("cora", operation=operation).operation == panel.operation
        assert settings["first"] == strategies[0].name
        if len(strategies) == 1 and not settings["pinned"]:
            assert settings["second"] is None
            continue
        assert settings["second"] in [strategy.name for strategy in strategies]
        assert settings["second"] != settings["first"] or settings["pinned"] == {
            "partition": "warp"
        }


def test_the_subwarps_of_all_heads_are_counted(saved):
    strategy, graph = find_strategy("lane_groups", "edge_softmax"), accelviz.load_graph("cora")
    softmax = explore("cora", strategy)
    assert softmax.settings["nCols"] == 1  # one column per head
    softmax.set(n_cols=8)
    view = saved(softmax, viewport={"width": 480, "height": 1000})
    text = view.text(".av-answer")
    assert "Each of its 8 heads has a subwarp, of which this is the first." in text
    plan = strategy.plan(graph, 8)
    side = view.page.locator(".av-of-side", has_text="lane_groups").inner_text()
    assert f"{plan.statistics.idle_share:.1%}".replace("%", " %") in side
    assert plan.statistics.loads.busy == 8 * np.count_nonzero(graph.degrees)
    # A head takes as many steps as each other one.
    assert plan.statistics.idle_share < 0.5
    assert view.page.evaluate(FAULTS) == []
    view.tab("Numbers")
    cells = view.page.locator("[data-statistic=idle_share] td").all_inner_texts()
    assert cells[0] == f"{plan.statistics.idle_share:.2%}"
    assert cells[2].startswith(("+", "−", "0"))


def test_counts_of_subwarps_are_not_compared_with_warps(saved):
    explorer = explore("cora", "accel_gcn", second="lane_groups", n_cols=64)
    view = saved(explorer)
    view.tab("Numbers")
    heads = view.page.locator(".av-statistics thead th").all_inner_texts()
    assert heads[0].endswith("in combined warps")
    assert heads[1].endswith("in subwarps")
    for name, known in (("warps", True), ("mean", False), ("blocks", True)):
        cells = view.page.locator(f"[data-statistic={name}] td").all_inner_texts()
        assert (cells[2] != "–") == known, name
    view.choose("second", "gnnadvisor")
    view.choose("first", "graphblast")
    cells = view.page.locator("[data-statistic=mean] td").all_inner_texts()
    assert cells[2].startswith(("+", "−"))


def beside(tip, other):
    expected, box = tip.bounding_box(), other.bounding_box()
    return (
        expected["y"] >= box["y"] + box["height"] or expected["y"] + expected["height"] <= box["y"]
    )


def test_terms_on_the_screen_have_tooltips(saved):
    """The terms that new users asked about."""
    panel = explore(
        "pubmed", "gnnadvisor", second="accel_gcn", pinned={"max_block_warps": 8}, row=100
    )
    view = saved(panel)
    page = view.page

    def tooltip_of(spot):
        spot.hover()
        tip = page.locator(".av-tip:not([hidden])")
        if not tip.count():
            return ""
        assert beside(tip, spot)  # the tooltip does not cover the term
        return tip.inner_text()

    def control(name):
        return page.locator(f".av-control:has(> [data-control={name}]) > span:not(.av-mark)")

    gnnadvisor = find_strategy("gnnadvisor")
    for name in ("ngs", "dw", "block_warps"):
        meaning = gnnadvisor.parameters[name].meaning
        assert tooltip_of(control(name)) == f"{name}, of the first setting: {meaning}."
    assert "the strategy chooses it" in tooltip_of(page.locator("output", has_text="by rule").first)
    way, why = (page.locator(f".av-answer {part}") for part in (".av-way-line", "strong"))
    assert tooltip_of(way.locator("[data-f]").first)
    assert all(beside(page.locator(".av-tip"), part) for part in (way, why))
    assert tooltip_of(page.locator(".av-of-strip .av-hit"))
    assert beside(page.locator(".av-tip"), page.locator(".av-of-strip svg"))
    sides = page.locator(".av-of-side")
    assert tooltip_of(sides.first.get_by_text("gnnadvisor")).startswith(
        f"gnnadvisor: {gnnadvisor.summary}. Set to ngs 32, dw by rule"
    )
    assert "max_block_warps 8, max_warp_nzs 32" in tooltip_of(sides.nth(1).get_by_text("accel_gcn"))
    assert "of all warps of the hardware" in tooltip_of(sides.first.get_by_text("idle"))
    # Menus have the summaries of strategies, and the settings of the pinned one.
    names = page.locator("[data-control=first] option").all_inner_texts()
    assert f"row_thread: {find_strategy('row_thread').summary}" in names
    chosen = page.locator("[data-control=second]").evaluate("menu => menu.selectedOptions[0].text")
    assert chosen == "accel_gcn 8 x 32"
    view.tab("Numbers")
    table = page.locator(".av-statistics")
    assert "NVIDIA H200" in tooltip_of(sides.first.get_by_text("on H200"))
    assert "1 is perfect balance" in tooltip_of(table.get_by_text("busiest worker over the mean"))
    assert "percentage points" in tooltip_of(table.get_by_text(" pt ").first)
    limit = page.locator("[data-view=times] text", has_text="limit of random gathers")
    assert tooltip_of(limit).startswith("Limit of random gathers: how long")
    # Without a term at the pointer, there is no tooltip.
    page.mouse.move(1, 1)
    assert page.locator(".av-tip").is_hidden()


def test_the_followed_row_is_marked_in_both_maps(saved):
    view = saved(explore("cora", row=1358))
    page = view.page
    page.get_by_role("tab", name="Every warp").click()
    page.locator("[data-filled=true]").wait_for()
    plan = accelviz.plan("cora", "accel_gcn", n_cols=64, partition="warp")
    block = find_row(plan, 1358).blocks[0]
    second = page.locator(".av-map-frame").nth(1)
    mark = second.locator(".av-map-cursor").bounding_box()
    frame = second.bounding_box()
    share = (mark["x"] + mark["width"] / 2 - frame["x"]) / frame["width"]
    assert share == pytest.approx((block + 0.5) / plan.launch.n_blocks, abs=0.005)
    assert page.locator(".av-map-cursor").count() == 2


def test_caption_and_tooltip_of_a_map_agree(saved):
    view = saved(explore("cora", "fusegnn_gas", block_size=128))
    view.tab("Every warp")
    view.page.locator("[data-filled=true]").wait_for()
    caption = view.text(".av-map-title")
    many = re.search(r"the same warp of up to (\d+) blocks", caption)
    view.page.locator(".av-map canvas").first.hover(position={"x": 300, "y": 8})
    sentence = view.text(".av-tip")
    first, last = re.search(r"Blocks ([\d,]+) to ([\d,]+)", sentence).groups()
    assert 2 <= int(last.replace(",", "")) - int(first.replace(",", "")) + 1 <= int(many[1])
    ticks = view.page.locator(".av-map-axis").first.locator("text").all_text_contents()
    assert ticks[0] == "0"
    assert len(ticks) >= 4


def test_without_a_trace_or_a_kernel_play_explains_how_to_get_one(saved):
    view = saved(explore("cora", "cusparse", second="accel_gcn"))
    view.tab("Play")
    assert "library" in view.text(".av-offer")
    view.page.locator("[data-control=swap]").click()
    view.page.evaluate(FRAME)
    assert "Open the notebook that made the page" in view.text(".av-offer")
    view.tab("Numbers")
    unknown = view.page.locator("[data-statistic=imbalance] td").nth(1)
    assert unknown.inner_text() == "\N{EN DASH}"
    view.page.locator("[data-control=tour]").click()
    assert "1 of 7" in view.text(".av-tour")  # without the stop at Play


def test_a_page_saved_without_a_trace_gives_the_reason(saved, monkeypatch):
    monkeypatch.setattr(explorer, "QUICK_TRACE", 1)
    plan = accelviz.plan("cora", "accel_gcn", n_cols=64)
    block = find_row(plan, 1358).blocks[0]
    size = 64 * plan.workload(block, block + 1).nz_count.sum()
    view = saved(explore("cora", row=1358), trace=True)
    view.tab("Play")
    why = f"block {block:,} has {size:,} nonzeros times columns, of which a page keeps at most 1."
    assert f"this page has none, nor the trace of a block: {why}" in view.text(".av-offer")


@needs_compiler
def test_a_saved_page_plays_its_block_and_returns_to_it(saved):
    plan = accelviz.plan("cora", "accel_gcn", n_cols=64)
    cora = saved(explore("cora"), trace=True)
    # The story has another block; the only one that can be played is shown after it, too.
    cora.tab("Story")
    block, story = find_row(plan, 1358).blocks[0], cora.text(".av-story-text")
    assert f"block {block}" not in story
    cora.tab("Play")
    assert f"Play has block {block}, with row 1,358" in cora.text(".av-message")
    cora.tab("Story")
    assert cora.text(".av-story-text") == story
    cora.tab("Play")
    table = requests(
        accelviz.trace(plan, *random_inputs(plan.operation, plan.pattern, plan.widths), block=block)
    )
    assert f"(the last is {len(table) - 1:,}): warp" in cora.text(".av-said")
    cora.type("follow row", 0)
    assert "keeps the trace of one block" in cora.text(".av-offer")
    cora.page.locator(".av-offer button").click()
    cora.page.evaluate(FRAME)
    assert f"(the last is {len(table) - 1:,}): warp" in cora.text(".av-said")
    # The return to the traced block does not change the second side.
    cora.choose("second", "row_thread")
    cora.type("follow row", 0)
    cora.page.locator(".av-offer button").click()
    cora.page.evaluate(FRAME)
    assert cora.page.locator("[data-control=row] ~ input").input_value() == "1358"
    assert cora.page.locator("[data-control=second]").input_value() == "row_thread"
