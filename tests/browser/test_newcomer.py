"""What a newcomer stumbled over: undo, typed values, terms, times, notes, and the story's row."""

import re

import pytest

import accelviz
from accelviz import explore
from accelviz.datasets import bundled_graphs
from accelviz.measure.prediction import recorded_times
from accelviz.strategies import REGISTRY, SPMM
from accelviz.widgets.offers import COLUMNS

from .lab import FRAME

#: Numbers of warps that a text names: "warp 3", "warps 0 and 1", "warps 2 to 5".
WARPS = re.compile(r"(?<!combined )\bwarps? (\d+)(?:(?:, \d+)* (?:to|and) (\d+))?")


def field(view, name):
    return view.page.locator(f"[data-control={name}] ~ input")


@pytest.mark.long
@pytest.mark.parametrize("where", ["h1", ".av-graph"])
def test_undo_takes_back_the_setting_and_not_the_text_of_its_field(saved, where):
    view = saved(explore("cora"))
    page = view.page
    view.tab("Numbers")
    for columns in (32, 128):
        page.clock.fast_forward(1000)  # each is a step of the history
        view.page.locator("[data-control=n_cols] ~ input").click()
        page.keyboard.press("Control+a")
        page.keyboard.type(str(columns))
        page.keyboard.press("Enter")
        page.evaluate(FRAME)
    page.locator(where).click()  # also outside of the panel
    for key, columns in (("Control+z", 32), ("Control+z", 64), ("Control+Shift+z", 32)):
        page.keyboard.press(key)
        page.evaluate(FRAME)
        assert field(view, "n_cols").input_value() == str(columns)
        assert page.locator("[data-control=n_cols]").get_attribute("aria-valuetext") == str(columns)
        share = accelviz.plan("cora", "accel_gcn", columns).statistics.idle_share
        assert view.text("[data-statistic=idle_share] td") == f"{share:.2%}"


@pytest.mark.long
def test_each_recorded_column_count_of_a_bundled_graph_is_offered():
    operations = {strategy.operation.name: strategy.operation for strategy in REGISTRY}
    recorded = {
        int(columns)
        for graph in map(accelviz.load_graph, bundled_graphs())
        for operation in operations.values()
        for columns in recorded_times(graph, operation)["columns"].unique()
    }
    assert {17, 33} < recorded < {*COLUMNS}


@pytest.mark.long
def test_a_typed_value_is_set_or_its_replacement_is_explained(saved):
    view = saved(explore("cora"))
    note = view.page.locator(".av-message")
    for columns in (17, 33, 50, 100):
        view.type("columns", columns)
        assert field(view, "n_cols").input_value() == str(columns)
        assert note.is_hidden()
    for name, typed, value, texts in (
        ("columns", 20, 17, ("columns: 20 is not", "nearest, 17", "n_cols=20) makes a page")),
        ("max_block_warps", 33, 32, ("33 is not", "nearest, 32, is set", "values are 1 to 32")),
        ("max_block_warps", 99, 32, ("99 is not", "nearest, 32, is set")),
        ("follow row", 5000, 2707, ("5000 is not", "values are 0 to 2707")),
        ("block", 9999, None, ("9999 is not", "values are 0 to ")),
    ):
        view.type(name, typed)
        box = view.page.get_by_label(f"{name}, as a number", exact=True)
        assert value is None or box.input_value() == str(value)
        assert all(text in note.inner_text() for text in texts), note.inner_text()
        assert "makes a page" in note.inner_text() or name != "columns"
    view.page.get_by_label("close this note").locator("visible=true").click()
    view.page.evaluate(FRAME)
    assert note.is_hidden()


@pytest.mark.long
@pytest.mark.parametrize(
    ("warps", "n_cols"), [(1, 64), (2, 64), (2, 128), (3, 128), (5, 64), (12, 128)]
)
def test_no_text_names_a_warp_that_the_block_does_not_have(saved, warps, n_cols):
    """A worker has 2 warps (64 columns) or 4: more than the block, no divisor of it, a divisor."""
    view = saved(explore("cora", max_block_warps=warps, n_cols=n_cols, second=None))
    plan = accelviz.plan("cora", "accel_gcn", n_cols, max_block_warps=warps)
    assert plan.statistics.warps == warps * plan.statistics.blocks
    view.tab("Story")
    assert ("start together" in view.text(".av-story-text")) == (warps > 1)
    view.tab("One row")
    text = view.text(".av-fig-block") + view.text(".av-answer")
    named = [int(number) for match in WARPS.findall(text) for number in match if number]
    assert max(named, default=0) < warps, text
    # A warp that takes a nonzero in several passes takes a step in each.
    axis = view.page.locator(".av-of-block svg").first.text_content()
    assert f"{plan.hardware.unit}s, which is time" in axis
    per_worker = -(-n_cols // 32)
    assert (plan.hardware.unit == "step") == (per_worker > warps)
    below = view.text(".av-of-block .av-below")
    if per_worker > warps:
        assert f"is {32 * per_worker} threads, and a block has just {warps} warp" in below
    elif warps % per_worker:
        assert f"no multiple of {per_worker}" in below
    else:
        assert f"is {per_worker} warps side by side" in below


@pytest.mark.long
def test_numbers_of_workers_and_of_warps_are_told_apart(saved):
    view = saved(explore("cora"))
    page = view.page
    view.tab("Numbers")
    statistics = accelviz.plan("cora", "accel_gcn", 64).statistics
    assert statistics.longest > statistics.largest == 32
    for key, name, meaning in (
        ("largest", "nonzeros of the busiest combined warp", "max_warp_nzs limits this number"),
        ("longest", "steps of the longest warp", "only the times compare all"),
        ("idle_warps", "share of warps without work", "Warps with work idle, too"),
    ):
        head = page.locator(f"[data-statistic={key}] th")
        assert head.inner_text() == name
        head.hover()
        assert meaning in view.text(".av-tip")
    page.locator("[data-control=max_warp_nzs]").locator("..").locator("span").first.hover()
    assert "a warp of the partition" in view.text(".av-tip")
    view.choose("second", "lane_groups")  # its workers are subwarps
    assert view.text("[data-statistic=largest] th") == "nonzeros of the busiest worker"
    page.locator(".av-headline").get_by_text("12 x 32").hover()
    assert '"12 x 32" is max_block_warps x max_warp_nzs.' in view.text(".av-tip")


@pytest.mark.long
@pytest.mark.parametrize("second", [None, "accel_gcn", "gnnadvisor", "lane_groups", "cusparse"])
def test_a_setting_has_one_time_on_the_page(saved, second):
    view = saved(explore("cora", second=second))
    view.tab("Numbers")
    sides = view.page.locator(".av-headline .av-of-side").all_inner_texts()
    cells = view.page.locator("[data-statistic=time] td").all_inner_texts()
    bars = view.text("[data-view=times] .av-draw")
    for side, cell in zip(sides, cells[: 1 + bool(second)], strict=False):
        assert f": {cell} on H200" in side
        assert cell in bars
    # The limit is that of the run that the times are of.
    view.page.locator("[data-view=times] text", has_text="limit of random").first.hover()
    tip, run = view.text(".av-tip"), view.text("[data-statistic=time] th")
    assert run.removeprefix("time on a GPU, ") in tip
    date = re.search(r"Measured in the run of .*, ([\d-]+(?: [\d:]+)?)\.$", tip)[1]
    table = recorded_times(accelviz.load_graph("cora"), SPMM).query("columns == 64")
    table = table[table["run"].str.startswith(date.replace(" ", "T"))]
    (limit,) = table["gather_limit_us"].unique()
    assert f"{limit:.1f} µs" in bars


@pytest.mark.long
def test_a_block_without_the_followed_row_is_not_mixed_with_it(saved):
    view = saved(explore("cora", row=1358))
    view.tab("Every warp")
    view.page.locator("[data-filled=true]").wait_for()
    assert "The line is block 251, which is shown and has the followed row" in view.text(
        ".av-map-legend"
    )
    view.type("block", 97)
    legend = view.text(".av-map-legend")
    assert "block 97, which is shown; the followed row, 1,358, is in block 251." in legend
    view.tab("One row")
    assert "block 97 reads" in view.text(".av-of-block .av-below")
    assert "block 97" not in view.text(".av-of-read")
    assert "(in block 251, not in the one above)" in view.text(".av-fig-read .av-name")
    assert view.text(".av-fig-told .av-name") == "What tells block 97 its work"


@pytest.fixture(scope="module")
def traced(browser, tmp_path_factory):
    return explore("cora", max_block_warps=4).save(tmp_path_factory.mktemp("traced") / "page.html")


@pytest.mark.long
def test_keys_of_play_work_after_a_press_of_a_button(browser, traced):
    page = browser.new_page(viewport={"width": 1180, "height": 1000}, reduced_motion="reduce")
    page.add_init_script('localStorage["accelviz group"] = "play"')
    page.goto(traced.as_uri())
    tracks = page.locator(".av-tracks")
    page.get_by_label("to the last request (End)").click()
    last = int(tracks.get_attribute("aria-valuenow"))
    for key, by in (("ArrowLeft", -1), ("ArrowLeft", -2), ("ArrowRight", -1), ("Home", -last)):
        page.keyboard.press(key)
        page.evaluate(FRAME)
        assert int(tracks.get_attribute("aria-valuenow")) == last + by
    page.keyboard.press(" ")  # presses the focused button, once
    page.evaluate(FRAME)
    assert int(tracks.get_attribute("aria-valuenow")) == last
    page.get_by_label("speed, in requests a second").focus()
    page.keyboard.press("ArrowLeft")  # the menu's own key
    page.evaluate(FRAME)
    assert int(tracks.get_attribute("aria-valuenow")) == last
    lanes = page.locator(".av-lanes text")
    assert {"0", "8", "16", "24"} <= {*lanes.all_text_contents()}
    page.set_viewport_size({"width": 424, "height": 900})
    page.wait_for_function("() => document.querySelector('.av-lanes svg').clientWidth < 424")
    assert {"0", "8", "16", "24"} <= {*lanes.all_text_contents()}
    page.close()


@pytest.mark.long
@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_play_of_the_story_lets_the_bars_fill(saved, motion):
    view = saved(explore("cora"), story=True, reduced_motion=motion)
    page, seen = view.page, []
    page.clock.pause_at(page.evaluate("Date.now() / 1000") + 1)  # no time but `run_for`'s goes by
    page.clock.run_for(4000)
    curtain = page.locator(".av-curtain")
    picture = page.locator(".av-stage svg").first.bounding_box()
    page.locator("[data-control='play block']").click()
    page.clock.run_for(160)  # half a jump, of which there are eight with reduced motion
    for _ in range(7):
        page.clock.run_for(325)
        box = curtain.bounding_box()
        assert box["y"] >= picture["y"] + 15  # the sentence above the bars stays readable
        seen.append(box["x"] - picture["x"])
    assert seen == sorted(set(seen))
    assert seen[0] < 0.3 * picture["width"] < 0.7 * picture["width"] < seen[-1]
    page.clock.run_for(1000)
    assert curtain.bounding_box()["width"] <= 2


@pytest.mark.long
def test_the_row_of_the_story_is_that_of_the_other_groups_and_back(saved):
    view = saved(explore("cora"), story=True)
    button = view.text("[data-control='all controls']")
    row = re.search(r"with row ([\d,]+)", button)[1]
    assert row != "1,358"
    for name in ("One row", "Play", "Numbers"):
        view.tab(name)
        assert field(view, "row").input_value() == row.replace(",", "")
        view.tab("Story")
        assert f"with row {row}" in view.text("[data-control='all controls']")
    view.tab("One row")
    view.type("follow row", 1358)
    view.tab("Story")
    assert "with row 1,358" in view.text("[data-control='all controls']")


def test_a_wheel_over_a_field_scrolls_the_page_and_changes_no_value(saved):
    view = saved(explore("cora"), viewport={"width": 848, "height": 500})
    box = field(view, "block")
    before = box.input_value()
    box.click()
    view.page.mouse.wheel(0, 120)
    view.page.evaluate(FRAME)
    assert box.input_value() == before
    view.page.wait_for_function("scrollY > 0")


def test_a_pressed_control_has_no_tooltip_in_the_way(saved):
    view = saved(explore("cora"), story=True, viewport={"width": 424, "height": 900})
    button = view.page.locator("[data-control='next step']")
    button.hover()
    assert view.page.locator(".av-tip").is_visible()
    button.click()
    view.page.evaluate(FRAME)
    assert view.page.locator(".av-tip").is_hidden()


def test_the_tour_asks_why_a_warp_idles_where_one_does(saved):
    view = saved(explore("cora"))
    assert "(0.0 % idle)" in view.text(".av-fig-block .av-name")
    view.page.locator("[data-control=tour]").click()
    view.page.locator(".av-tour [data-control=next]").click()
    view.page.locator(".av-of-block .av-toured").wait_for()
    view.page.evaluate(FRAME)
    idle = re.search(r"\(([\d.]+) % idle\)", view.text(".av-fig-block .av-name"))[1]
    assert float(idle) > 50
    # Its followed row is one of the block.
    assert "nothing of row" not in view.text(".av-fig-block")


def test_a_note_covers_nothing_that_is_reached(saved):
    view = saved(explore("cora"), viewport={"width": 1180, "height": 700})
    page = view.page
    view.tab("Every warp")
    view.type("max_block_warps", 4)  # less idle share, more time: a note that stays
    page.locator("[data-filled=true]").wait_for()
    why = page.locator(".av-why")
    assert why.is_visible()
    for name in ("worst", "'next worst'"):
        page.evaluate("scrollTo(0, 0)")
        page.locator(f"[data-control={name}]").focus()
        button = page.locator(f"[data-control={name}]").bounding_box()
        note = why.bounding_box()
        assert button["y"] + button["height"] <= note["y"] or button["y"] >= sum(
            note[key] for key in ("y", "height")
        )
    why.get_by_label("close this note").click()
    page.evaluate(FRAME)
    assert why.is_hidden()
    view.type("max_block_warps", 2)
    view.type("max_block_warps", 4)
    page.clock.fast_forward(1000)


@pytest.mark.long
@pytest.mark.parametrize("width", [424, 848, 1180])
def test_menus_and_times_are_whole_at_any_width(saved, width):
    view = saved(explore("cora", second="gnnadvisor"), viewport={"width": width, "height": 900})
    for name in ("first", "second"):
        menu = view.page.locator(f"[data-control={name}]")
        needed, width_of_menu = menu.evaluate(
            "menu => { const pen = document.createElement('canvas').getContext('2d');"
            " pen.font = getComputedStyle(menu).font;"
            " return [pen.measureText(menu.selectedOptions[0].text).width, menu.clientWidth]; }"
        )
        assert needed + 24 <= width_of_menu
    view.tab("Numbers")
    spread = view.page.locator(".av-fastest").first.get_by_text(re.compile(r"[\d.]+ to [\d.]+ µs"))
    rows = view.page.locator(".av-fastest").first.locator("tbody tr").count()
    assert spread.locator("visible=true").count() == rows
    assert view.page.get_by_text("half of the repeats").first.locator("visible=true").count() or (
        view.page.locator(".av-narrow").first.is_visible()
    )


def test_equal_settings_and_one_column_are_written_as_such(saved):
    view = saved(explore("cora", n_cols=1))
    texts = []
    for name in ("One row", "Every warp", "Numbers", "Play"):
        view.tab(name)
        texts.append(view.page.locator(".av-panel").inner_text())
    wrong = re.findall(
        r"(?<![\d,.] )(?<![\d,.])\b1 (?:column|row|warp|block|nonzero|sector|step|byte|lane)s\b",
        "\n".join(texts),
    )
    assert wrong == []
    assert "with 1 column." in texts[2]
    view.type("columns", 64)
    view.tab("Numbers")
    view.page.locator("[data-control=pin]").click()
    view.page.evaluate(FRAME)
    times = view.text("[data-view=times]")
    assert "Both are the same setting." in times
    assert "overlap" not in times
