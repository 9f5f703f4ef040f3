"""What a saved page says, and that it leads nowhere where there is nothing to see."""

import re

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
from .test_product import FAULTS, Shown


def test_words_say_whose_threads_and_columns_are_meant(browser, tmp_path):
    shown = Shown(
        browser, explore("cora", n_cols=64, row=1358).save(tmp_path / "words.html", trace=False)
    )
    shown.page.locator("[data-f^='lane:']").nth(42).hover(force=True)
    assert shown.text(".av-tip").startswith(
        "Thread 42 of the combined warp (2 warps of 32) has column 42 of Y"
    )
    shown.page.locator("rect[data-f='field:1:0']").hover(force=True)
    assert "Place: position of the row in the order" in shown.text(".av-tip")
    shown.page.locator(".av-of-order rect[data-say]").nth(1).hover(position={"x": 9, "y": 2})
    assert shown.text(".av-tip").startswith("Degrees again, with the rows in their places.")
    assert "and 159 more of the 168 rows of X" in shown.page.locator(".av-of-read").text_content()
    shown.page.locator("[data-control=first]").select_option("graphblast")
    shown.page.evaluate(FRAME)
    assert "columns 32 to 63, belong to 1 more block for the same row" in shown.text(".av-answer")
    shown.close()


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("strategy", "heads", "way", "said", "width"),
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
            "row 5,258 of d_alpha: 256 bytes, 8 sectors; as much of alpha.",
            480,
        ),
        ("fusegnn_gar of spmm_gradient", "Aᵀ X dY dX", "of dY → row 1,358 of dX", "of dY: ", 848),
        ("lane_groups of gat_gradient", "Aᵀ V dY dV", "of dY → row 1,358 of dV", "of dY: ", 480),
    ],
)
def test_matrices_have_the_names_of_the_operation(
    browser, tmp_path, strategy, heads, way, said, width
):
    explorer = explore("cora", find_strategy(*strategy.split(" of ")), n_cols=64, row=1358)
    look = {"viewport": {"width": width, "height": 1000}, "color_scheme": "dark"}
    shown = Shown(browser, explorer.save(tmp_path / "names.html", trace=False), **look)
    names = shown.page.locator(".av-of-equation svg text.av-b").all_text_contents()
    assert names == heads.split()
    assert way in " ".join(shown.text(".av-answer").split())
    shown.page.locator(".av-of-strip .av-draw").focus()
    assert said in shown.text(".av-tip")
    assert shown.page.evaluate(FAULTS) == []
    # The times are the operation's own: other operations have strategies of the same name.
    shown.page.get_by_role("tab", name="Numbers").click()
    shown.page.evaluate(FRAME)
    times = recorded_times(accelviz.load_graph("cora"), explorer.operation)
    own = times["strategy"] == explorer.settings["first"]
    times = times[(times["columns"] == 64) & own]["median_us"]
    told = f"Nothing was recorded of {explorer.operation.name} on cora with 64 columns"
    if len(times):
        told = f"first, recorded{times.iloc[0]:.1f}".removesuffix(".0") + " µs"
    assert told in shown.page.locator("[data-view=times]").text_content()
    shown.close()


def test_why_a_softmax_takes_longer_is_said(browser, tmp_path):
    strategy, graph = find_strategy("lane_groups", "edge_softmax"), accelviz.load_graph("pubmed")
    pair = strategy.plan(graph, 1), find_strategy("row_warp", "edge_softmax").plan(graph, 1)
    waits = [f"{100 * plan.statistics.idle_share:.1f} %" for plan in pair]
    most = graph.degrees.max()
    lanes = pair[0].parameters["lanes"]
    panel = explore("pubmed", strategy, second="row_warp")
    shown = Shown(browser, panel.save(tmp_path / "numbers.html", trace=False))
    shown.page.get_by_role("tab", name="Numbers").click()
    shown.page.evaluate(FRAME)
    said = shown.page.locator("[data-view=times] .av-note").last.inner_text()
    assert f"first's warp time {waits[0]} is waiting, of the second's {waits[1]}." in said
    each = [f"{-(-most // of):,} turns of a " for of in (lanes, 32)]
    named = f"lane group of {lanes} lane{'s' * (lanes > 1)} in the first, "
    assert f"busiest needs {each[0]}{named}{each[1]}warp of 32 lanes in the second." in said
    shown.close()


def test_numbers_and_workers_with_long_names_are_named(browser, tmp_path):
    gat = explore("cora", find_strategy("row_warp", "gat"), row=1358)
    shown = Shown(browser, gat.save(tmp_path / "gat.html", trace=False))
    said = "reads a number of receiver for the row and a number of sender for each neighbor."
    assert said in shown.text(".av-of-equation")
    shown.close()
    sddmm = explore("cora", find_strategy("lane_groups", "sddmm"), row=1358)
    narrow = {"viewport": {"width": 480, "height": 1000}}
    shown = Shown(browser, sddmm.save(tmp_path / "sddmm.html", trace=False), **narrow)
    names = shown.page.locator(".av-of-strip text.av-r").all_text_contents()
    assert {len(each) for each in names} == {1, 2}  # groups 10 to 15 have no less room than 0 to 9
    shown.close()


@pytest.mark.parametrize(
    ("strategies", "settings", "said"),
    [
        (3, {}, "strategies: got 3"),
        ((), {"pinned": 3}, "pinned: got 3"),
        ((), {"pinned": {"ngs": 1}}, "pinned: accel_gcn has no parameter 'ngs'"),
        ((), {"second": "gnnadvisor", "pinned": {"ngs": 0}}, "ngs: got 0"),
        # As it says where one asks for another operation as if it were a strategy.
        ("gat", {}, "; of gat, find_strategy('lane_groups', 'gat')"),
        ((), {"first": "row_warp"}, "; of sddmm, find_strategy('row_warp', 'sddmm')"),
        ((), {"operation": "softmax"}, "operation: there is no 'softmax'. Expected: one of spmm"),
        ((), {"row": 2708}, "row: got 2708. Expected: 0 to 2707"),
        ((), {"n_cols": True}, "n_cols: got True"),
    ],
)
def test_what_cannot_be_shown_is_refused(strategies, settings, said):
    with pytest.raises(AccelvizError, match=re.escape(said)):
        explore("cora", strategies, **settings)


def test_a_strategy_is_compared_with_another_or_with_another_partition():
    for operation in {each.operation.name: each.operation for each in REGISTRY}.values():
        own = [each for each in REGISTRY if each.operation == operation]
        if operation.name.startswith("scc"):  # images have no row a node
            with pytest.raises(ArgumentError, match="strategies: no matrix of scc"):
                explore("cora", own[0])
            continue
        panel = explore("cora", own[0])
        now = panel.settings
        assert explore("cora", operation=operation).operation == panel.operation
        assert now["first"] == own[0].name
        assert now["second"] in [each.name for each in own]
        assert now["second"] != now["first"] or now["pinned"] == {"partition": "warp"}


def test_groups_of_other_heads_are_not_said_to_have_no_work(browser, tmp_path):
    softmax = explore("cora", find_strategy("lane_groups", "edge_softmax"))
    assert softmax.settings["nCols"] == 1  # a column is a head
    softmax.set(n_cols=8)
    narrow = {"viewport": {"width": 480, "height": 1000}}
    shown = Shown(browser, softmax.save(tmp_path / "heads.html", trace=False), **narrow)
    assert "for each of its 8 heads; only the first head's is counted" in shown.text(".av-answer")
    assert "no work" not in shown.page.locator(".av-panel").text_content()
    # Where the share of waiting is, it says what it counts, and it is compared with no other.
    for name, said in (("lane_groups", "(7 of its 8 heads counted as waiting)"), ("row_warp", "")):
        side = shown.page.locator(".av-of-side", has_text=name).inner_text()
        assert re.search(r"% of warp time waiting(.*)", side, re.S)[1].strip() == said
    assert shown.page.evaluate(FAULTS) == []
    shown.page.get_by_role("tab", name="Numbers").click()
    shown.page.evaluate(FRAME)
    cells = shown.page.locator("[data-statistic=idle_share] td").all_inner_texts()
    assert cells[2] == "–"
    assert "Only the first head's is counted as work" in shown.text("[data-view=statistics]")
    assert "By warp time alone" not in shown.text("[data-view=times]")
    shown.page.locator("[data-control=second]").select_option("lane_groups")
    shown.page.evaluate(FRAME)
    cells = shown.page.locator("[data-statistic=idle_share] td").all_inner_texts()
    assert cells[2] == "0"
    shown.close()


def test_lane_groups_are_not_counted_against_warps(browser, tmp_path):
    explorer = explore("cora", "accel_gcn", second="lane_groups", n_cols=64)
    shown = Shown(browser, explorer.save(tmp_path / "units.html", trace=False))
    shown.page.get_by_role("tab", name="Numbers").click()
    shown.page.evaluate(FRAME)
    heads = shown.page.locator(".av-statistics thead th").all_inner_texts()
    assert heads[0].endswith("in combined warps")
    assert heads[1].endswith("in lane groups")
    for name, known in (("warps", False), ("mean", False), ("blocks", True)):
        cells = shown.page.locator(f"[data-statistic={name}] td").all_inner_texts()
        assert (cells[2] != "–") == known, name
    shown.page.locator("[data-control=second]").select_option("gnnadvisor")
    shown.page.locator("[data-control=first]").select_option("graphblast")
    shown.page.evaluate(FRAME)
    cells = shown.page.locator("[data-statistic=warps] td").all_inner_texts()
    assert cells[2].startswith(("+", "−"))
    shown.close()


def beside(tip, other):
    told, box = tip.bounding_box(), other.bounding_box()
    return told["y"] >= box["y"] + box["height"] or told["y"] + told["height"] <= box["y"]


def test_words_on_the_screen_say_what_they_mean(browser, tmp_path):
    """The words at which a newcomer stopped."""
    path = explore(
        "pubmed", "gnnadvisor", second="accel_gcn", pinned={"max_block_warps": 8}, row=100
    )
    shown = Shown(browser, path.save(tmp_path / "tips.html", trace=False))
    page = shown.page

    def said(spot):
        spot.hover()
        tip = page.locator(".av-tip:not([hidden])")
        if not tip.count():
            return ""
        assert beside(tip, spot)  # what one points at can still be read
        return tip.inner_text()

    def control(name):
        return page.locator(f".av-control:has(> [data-control={name}]) > span:not(.av-mark)")

    gnnadvisor = find_strategy("gnnadvisor")
    for name in ("ngs", "dw", "block_warps"):
        meaning = gnnadvisor.parameters[name].meaning
        assert said(control(name)) == f"{name}, of the first setting: {meaning}."
    assert "the strategy chooses it" in said(page.locator("output", has_text="by rule").first)
    way, why = (page.locator(f".av-answer {each}") for each in (".av-way-line", "strong"))
    assert said(way.locator("[data-f]").first)
    assert all(beside(page.locator(".av-tip"), each) for each in (way, why))
    assert said(page.locator(".av-of-strip .av-hit"))
    assert beside(page.locator(".av-tip"), page.locator(".av-of-strip svg"))
    sides = page.locator(".av-of-side")
    assert said(sides.first.get_by_text("gnnadvisor")).startswith(
        f"gnnadvisor: {gnnadvisor.summary}. Set to ngs 32, dw by rule"
    )
    assert "max_block_warps 8, max_warp_nzs 32" in said(sides.nth(1).get_by_text("accel_gcn"))
    assert "counts nonzeros alone" in said(sides.first.get_by_text("waiting"))
    # What there is to choose says what it does; what was pinned, how it is set.
    names = page.locator("[data-control=first] option").all_inner_texts()
    assert f"row_thread: {find_strategy('row_thread').summary}" in names
    chosen = page.locator("[data-control=second]").evaluate("each => each.selectedOptions[0].text")
    assert chosen == "accel_gcn 8 x 32"
    page.get_by_role("tab", name="Numbers").click()
    page.evaluate(FRAME)
    table = page.locator(".av-statistics")
    assert "NVIDIA H200" in said(sides.first.get_by_text("recorded"))
    assert "1 is perfect balance" in said(table.get_by_text("busiest over mean"))
    assert "percentage points" in said(table.get_by_text(" pt ").first)
    limit = page.locator("[data-view=times] text", has_text="limit of random gathers")
    assert said(limit).startswith("Limit of random gathers: how long")
    # Away from them, and out of the panel, nothing is said.
    page.mouse.move(1, 1)
    assert page.locator(".av-tip").is_hidden()
    shown.close()


def test_the_followed_row_is_marked_in_both_maps(browser, tmp_path):
    shown = Shown(browser, explore("cora", row=1358).save(tmp_path / "both.html", trace=False))
    page = shown.page
    page.get_by_role("tab", name="Every warp").click()
    page.locator("[data-filled=true]").wait_for()
    plan = accelviz.plan("cora", n_cols=64, partition="warp")
    block = find_row(plan, 1358).blocks[0]
    second = page.locator(".av-map-frame").nth(1)
    mark = second.locator(".av-map-cursor").bounding_box()
    frame = second.bounding_box()
    share = (mark["x"] + mark["width"] / 2 - frame["x"]) / frame["width"]
    assert share == pytest.approx((block + 0.5) / plan.launch.n_blocks, abs=0.005)
    assert page.locator(".av-map-cursor").count() == 2
    shown.close()


def test_a_map_says_the_same_in_its_caption_and_its_tooltip(browser, tmp_path):
    path = explore("cora", "fusegnn_gas", block_size=128).save(tmp_path / "map.html", trace=False)
    shown = Shown(browser, path)
    shown.page.get_by_role("tab", name="Every warp").click()
    shown.page.locator("[data-filled=true]").wait_for()
    caption = shown.text(".av-map-title")
    many = re.search(r"most of up to (\d+) blocks( and up to (\d+) threads)?", caption)
    shown.page.locator(".av-map canvas").first.hover(position={"x": 300, "y": 8})
    said = shown.text(".av-tip")
    first, last = re.search(r"Blocks ([\d,]+) to ([\d,]+)", said).groups()
    assert 2 <= int(last.replace(",", "")) - int(first.replace(",", "")) + 1 <= int(many[1])
    ticks = shown.page.locator(".av-map-axis").first.locator("text").all_text_contents()
    assert ticks[0] == "0"
    assert len(ticks) >= 4
    shown.close()


def test_without_a_trace_or_a_kernel_it_says_how_to_get_one(browser, tmp_path):
    path = explore("cora", "cusparse", second="accel_gcn").save(
        tmp_path / "library.html", trace=False
    )
    shown = Shown(browser, path)
    shown.page.get_by_role("tab", name="Play").click()
    assert "library" in shown.text(".av-offer")
    shown.page.locator("[data-control=swap]").click()
    shown.page.evaluate(FRAME)
    assert "Open the notebook that made the page" in shown.text(".av-offer")
    shown.page.get_by_role("tab", name="Numbers").click()
    unknown = shown.page.locator("[data-statistic=imbalance] td").nth(1)
    assert unknown.inner_text() == "\N{EN DASH}"
    shown.page.locator("[data-control=tour]").click()
    assert "1 of 7" in shown.text(".av-tour")  # no word of Play
    shown.close()


def test_why_a_page_was_saved_without_a_trace_is_said(browser, tmp_path, monkeypatch):
    monkeypatch.setattr(explorer, "QUICK_TRACE", 1)
    path = explore("cora", row=1358).save(tmp_path / "large.html")
    plan = accelviz.plan("cora", n_cols=64)
    block = find_row(plan, 1358).blocks[0]
    size = 64 * plan.workload(block, block + 1).nz_count.sum()
    shown = Shown(browser, path)
    shown.page.get_by_role("tab", name="Play").click()
    shown.page.evaluate(FRAME)
    why = f"block {block:,} has {size:,} nonzeros times columns, of which a page keeps at most 1."
    assert f"this page has none, nor the trace of a block: {why}" in shown.text(".av-offer")
    shown.close()


@needs_compiler
def test_a_saved_page_plays_its_block_and_finds_back_to_it(browser, tmp_path):
    plan = accelviz.plan("cora", n_cols=64)
    cora = Shown(browser, explore("cora").save(tmp_path / "cora.html"))
    cora.page.get_by_role("tab", name="Play").click()
    block = find_row(plan, 1358).blocks[0]
    table = requests(
        accelviz.trace(plan, *random_inputs(plan.operation, plan.pattern, plan.widths), block=block)
    )
    assert f"(the last is {len(table) - 1:,}): warp" in cora.text(".av-said")
    cora.type("follow row", 0)
    assert "keeps the trace of one block" in cora.text(".av-offer")
    cora.page.locator(".av-offer button").click()
    cora.page.evaluate(FRAME)
    assert f"(the last is {len(table) - 1:,}): warp" in cora.text(".av-said")
    cora.close()
