"""The views "One row" and "Play" on saved pages, by mouse and keyboard."""

import itertools
import re

import numpy as np
import pytest

import accelviz
from accelviz.analysis.lookup import find_row
from accelviz.analysis.traffic import requests
from accelviz.measure import random_inputs
from accelviz.strategies import find_strategy, strategies
from accelviz.widgets import assets, explore
from accelviz.widgets.traced import trace_content

from ..compilers import needs_compiler
from ..graphs import MADE
from .lab import FRAME
from .saved import FAULTS, SavedPage

N_COLS = 64


def columns_of_cora(row):
    graph = accelviz.load_graph("cora")
    return graph.column_indices[graph.row_pointers[row] : graph.row_pointers[row + 1]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def cora(browser, folder):
    view = SavedPage(browser, explore("cora").save(folder / "cora.html", trace=False))
    yield view
    view.close()


@pytest.fixture(scope="module")
def plan():
    return accelviz.plan("cora", "accel_gcn", n_cols=N_COLS)


@pytest.mark.parametrize("row", [1358, 100, 0, 2707])
def test_the_way_of_a_row_is_that_of_the_plan(cora, plan, row):
    cora.type("follow row", row)
    location = find_row(plan, row)
    (block,) = location.blocks
    work = plan.workload(block, block + 1)
    warps = np.unique(work.warp[work.row == location.walked_row])
    sentence = cora.text(".av-way-line")
    assert f"Row {row:,} of A ({location.degree:,} nonzero" in sentence
    assert f"place {location.walked_row:,} in the order" in sentence
    assert f"block {block:,}" in sentence
    several = f"warps {warps[0]} to {warps[-1]}" if len(warps) > 1 else f"warp {warps[0]} "
    assert several in f"{sentence} "
    expected = " ".join(cora.page.locator(".av-of-told text").all_text_contents())
    first = plan.metadata[block, 1]
    assert f"{first:,} (row {plan.permutation.order[first]:,})" in expected
    # Bars of hardware warps are hatched from a warp's steps to the busiest warp's.
    loads = plan.hardware.steps_of_nonzeros(plan.hardware.of_workload(work))[0]
    hatched = cora.page.locator(".av-of-block .av-waits").evaluate_all(
        "bars => bars.map((bar) => Number(bar.getAttribute('width')))"
    )
    axis = max(np.array(hatched).max(), 1)
    if loads.min() == 0:
        assert np.array(hatched) / axis == pytest.approx(1 - loads / loads.max(), abs=0.02)
    executing = plan.hardware.executed[0][1][0]  # the worker of each pass and warp
    mine = np.flatnonzero(np.isin(executing, warps).any(axis=0))
    idles = loads[mine].min() < loads.max()
    assert ("idles: it has" in cora.text(".av-answer strong")) == idles
    label = cora.page.locator(".av-of-block svg").get_attribute("aria-label")
    busy, slots = plan.hardware.block_times(plan.hardware.of_workload(work))
    assert f"; {100 * (1 - busy[0] / slots[0]):.1f} % of the time of the block's warps" in label


def test_pointing_at_a_neighbor_lights_it_everywhere_and_says_what_it_is(cora, plan):
    cora.type("follow row", 1358)
    # The row's many neighbors are one mark, a circle in the order of columns.
    box = cora.page.locator(".av-of-neighbors .av-node").bounding_box()
    turn = 2 * np.pi * 40.5 / 168
    cora.page.mouse.move(
        box["x"] + box["width"] / 2 * (1 + 0.985 * np.sin(turn)),
        box["y"] + box["height"] / 2 * (1 - 0.985 * np.cos(turn)),
    )
    sentence = cora.text(".av-tip")
    column = int(columns_of_cora(1358)[40])
    location = find_row(plan, 1358)
    work = plan.workload(location.blocks[0], location.blocks[0] + 1)
    mine = work.row == location.walked_row
    index = (work.nz_start[mine] <= location.first_nz + 40).sum() - 1
    assert sentence == (
        f"Nonzero 40 of row 1,358: column {column:,}. Combined warp {work.warp[mine][index]} of "
        f"block {location.blocks[0]:,} reads row {column:,} of X: 256 bytes, 8 sectors."
    )
    assert cora.rings("equation") == 2  # the nonzero in A, and its row of X
    assert (cora.rings("strip"), cora.rings("block")) == (1, 2)  # its combined warp is two warps
    cora.page.keyboard.press("Escape")
    cora.page.mouse.move(1, 1)
    assert cora.page.locator(".av-tip").is_hidden()
    assert cora.rings("strip") == 0


def test_arrows_walk_the_nonzeros(cora):
    cora.type("follow row", 1358)
    columns = columns_of_cora(1358)
    cora.walk.focus()
    for key, nonzero in (("ArrowRight", 1), ("ArrowRight", 2), ("End", 167), ("ArrowLeft", 166)):
        cora.page.keyboard.press(key)
        assert cora.walk.get_attribute("aria-valuenow") == str(nonzero)
        sentence = cora.walk.get_attribute("aria-valuetext")
        assert f"Nonzero {nonzero} of row 1,358: column {columns[nonzero]:,}." in sentence
        assert cora.text(".av-tip") == sentence
    # The picture of reads shows rows of X around the current nonzero.
    assert f"row {columns[166]:,}" in cora.text(".av-of-read")
    cora.page.keyboard.press("Home")


def test_a_click_on_another_rows_bar_follows_that_row(cora):
    cora.type("follow row", 100)
    cora.page.locator(".av-of-block rect.av-rest").first.click(force=True)
    cora.page.evaluate(FRAME)
    row = int(cora.page.get_by_label("follow row, as a number").input_value())
    assert row != 100
    assert f"Row {row:,} of A" in cora.text(".av-way-line")


def test_a_row_in_several_blocks_is_walked_through_them(cora):
    cora.type("follow row", 1358)
    cora.type("max_warp_nzs", 8)
    cora.type("max_block_warps", 4)
    blocks = cora.page.locator("[data-block]")
    first, last = (int(blocks.nth(i).get_attribute("data-block")) for i in (0, -1))
    assert last > first
    cora.walk.focus()
    for key, block in (("End", last), ("Home", first)):
        cora.page.keyboard.press(key)
        cora.page.evaluate(FRAME)
        assert f"Block {block:,}: which warp works" in cora.text(".av-fig-block .av-name")
        assert f"of block {block:,} reads" in cora.walk.get_attribute("aria-valuetext")
    blocks.nth(1).click()
    cora.page.evaluate(FRAME)
    assert f"Block {first + 1:,}" in cora.text(".av-fig-block .av-name")
    assert cora.page.get_by_label("follow row, as a number").input_value() == "1358"
    cora.type("max_warp_nzs", 32)
    cora.type("max_block_warps", 12)


@pytest.mark.parametrize(("motion", "glides"), [("reduce", False), ("no-preference", True)])
def test_what_moves_glides_unless_the_reader_wants_no_motion(cora, motion, glides):
    cora.page.emulate_media(reduced_motion=motion)
    cora.type("follow row", 0)
    # A picture out of sight is drawn later, without an animation.
    cora.page.locator(".av-of-order").first.scroll_into_view_if_needed()
    cora.page.clock.fast_forward(600)  # changes in quick succession are not animated
    places = cora.page.evaluate(
        """async () => {
          const field = [...document.querySelectorAll("input")]
            .find((input) => input.getAttribute("aria-label") === "follow row, as a number");
          const mark = '.av-of-order [data-m="p20"]';
          const where = () => document.querySelector(mark).getAttribute("x");
          field.value = 2500;
          field.dispatchEvent(new Event("change"));
          const seen = new Set();
          for (let i = 0; i < 30 && seen.size < 5; ++i) {
            await new Promise(requestAnimationFrame);
            seen.add(where());
          }
          return [...seen];
        }"""
    )
    assert (len(places) > 4) == glides
    cora.page.emulate_media(reduced_motion="reduce")


@pytest.mark.long
@pytest.mark.sample(2)
@pytest.mark.parametrize(("name", "width"), [("every_kind", 480), ("hub", 1700), ("empty", 848)])
def test_every_strategy_draws_something_on_every_graph(saved, name, width):
    view = saved(
        explore(MADE[name](), n_cols=20),
        viewport={"width": width, "height": 900},
        color_scheme="dark",
    )
    for turn, strategy in enumerate(strategies()):
        settings = {"first": strategy, "nCols": (20, 512, 1)[turn % 3]}
        view.page.evaluate("(s) => [...accelvizPages.values()][0].store.set(s)", settings)
        view.page.evaluate(FRAME)
        assert view.page.evaluate(FAULTS) == [], strategy
        assert view.text(".av-answer strong")
        label = view.page.locator("[data-control=first] option:checked").inner_text()
        assert label.split(":")[0] == strategy


# --- play -----------------------------------------------------------------------------------


class Played(SavedPage):
    """A page with a trace."""

    @property
    def tracks(self):
        return self.page.get_by_role("slider", name="Requests of block")

    @property
    def at(self):
        return int(self.tracks.get_attribute("aria-valuenow"))


@pytest.fixture(scope="module")
def traced():
    """A plan, the trace of its last block, whose warps wait at barriers, the waits, the block."""
    graph = MADE["every_kind"]()
    plan = accelviz.plan(graph, "gnnadvisor", n_cols=32, ngs=16, block_warps=8)
    inputs = random_inputs(plan.operation, plan.pattern, plan.widths)
    waits = []
    block = plan.launch.n_blocks - 1
    return plan, accelviz.trace(plan, *inputs, block=block, waits=waits), waits, block


@pytest.fixture(scope="module")
def played(browser, folder, traced):
    plan, table, waits, block = traced
    view = explore(
        MADE["every_kind"](), "gnnadvisor", block=block, n_cols=32, ngs=16, block_warps=8
    )
    content = view.content()
    content["trace"] = trace_content(table, plan, waits)
    row = int(plan.workload(block, block + 1).row[0])
    content["settings"] = {**content["settings"], "row": row, "block": block}
    path = folder / "played.html"
    path.write_text(assets.document(content, "played", view.fallback()), "utf-8")
    page = Played(browser, path)
    page.tab("Play")
    yield page
    page.close()


def request_sentence(request, count, alike):
    """Beginning and end of the page's sentence on a request, from the library's counts."""
    n_bytes = f"{request['bytes']:,} bytes"
    if alike and request["lanes"] > 1:
        n_bytes = f"all the same {request['bytes'] // request['lanes']:,} bytes"
    cost = f"{request['sectors']:,} sector"
    if request["space"] == "shared":
        cost = f"{request['wavefronts']:,} pass"
    verb = {"load": "reads", "store": "writes", "atomic": "adds to"}[request["kind"]]
    return (
        f"Request {request['step']:,} (the last is {count - 1:,}): warp {request['warp']} {verb} ",
        f": {request['lanes']} lane{'s' if request['lanes'] > 1 else ''}, {n_bytes}, {cost}",
    )


@pytest.mark.long
@needs_compiler
def test_each_request_is_shown_as_it_was_traced(played, traced):
    table = requests(traced[1])
    played.tracks.focus()
    played.page.keyboard.press("Home")
    for key, step in (
        *(("ArrowRight", step) for step in range(1, 40)),
        ("End", len(table) - 1),
        *(("ArrowLeft", len(table) - 2 - i) for i in range(6)),
    ):
        played.page.keyboard.press(key)
        request = table.iloc[step]
        accesses = traced[1][traced[1]["step"] == step]
        start, end = request_sentence(request, len(table), accesses["offset"].nunique() == 1)
        sentence = played.text(".av-said")
        assert sentence.startswith(start)
        assert re.search(re.escape(end) + "(s|es through the banks| through the banks)?", sentence)
        line = played.text(".av-now")
        assert line.startswith(str(request["line"]))
        assert played.text(".av-listing b") == f"{request['file']}:{request['line']}"
        waiting = {w["warp"] for w in traced[2] if w["arrived"] <= step < w["left"]}
        numbers = set(map(int, re.findall(r"\d+", played.text(".av-request .av-waits"))))
        assert numbers == waiting or len(waiting) > 4
        # After the last request, the longest wait is named.
        longest = max((w["left"] - w["arrived"] for w in traced[2]), default=0)
        ended = f"for {longest:,} request" in played.text(".av-longest")
        assert ended == (step == len(table) - 1)
    # Up and down go to requests of the same warp.
    warp = table["warp"].iloc[played.at]
    played.page.keyboard.press("ArrowUp")
    assert table["warp"].iloc[played.at] == warp


@needs_compiler
def test_play_and_pause_stay_in_sight_of_the_lanes(played):
    before = played.page.viewport_size
    played.page.set_viewport_size({"width": 848, "height": 620})
    played.page.locator(".av-lanes").evaluate("lanes => lanes.scrollIntoView({ block: 'end' })")
    press, lanes = played.page.locator(".av-bar"), played.page.locator(".av-lanes")
    assert 0 <= press.bounding_box()["y"] < lanes.bounding_box()["y"] < 620
    played.page.set_viewport_size(before)


@needs_compiler
def test_it_plays_pauses_and_ends(played, traced):
    played.page.get_by_label("speed, in requests a second").select_option("20 a second")
    played.tracks.focus()
    played.page.keyboard.press("Home")
    clock = played.page.clock
    clock.pause_at(played.page.evaluate("Date.now() / 1000") + 1)
    played.page.keyboard.press(" ")
    clock.run_for(500)
    played.page.keyboard.press(" ")
    at = played.at
    assert 9 <= at <= 10
    clock.run_for(1000)
    assert played.at == at
    clock.resume()
    played.page.get_by_label("speed, in requests a second").select_option("500 a second")
    played.page.get_by_role("button", name="play (space)").click()
    last = traced[1]["step"].max()
    played.page.wait_for_function(
        f"() => document.querySelector('.av-tracks').getAttribute('aria-valuenow') === '{last}'"
    )
    assert played.page.get_by_role("button", name="play (space)").inner_text() == "Play"
    # At the end, every sector of X that the block needs was read.
    global_x = traced[1][(traced[1]["array"] == "X") & (traced[1]["space"] == "global")]
    sectors = global_x["offset"].floordiv(32).nunique()
    assert f"{sectors:,} of {sectors:,} sectors read so far" in played.text(".av-mapped")


@needs_compiler
def test_tracks_zoom_and_scrub(played, traced):
    table = requests(traced[1])
    played.tracks.focus()
    played.page.keyboard.press("0")
    assert f"0 to {len(table) - 1} of {len(table)} are seen" in played.tracks.get_attribute(
        "aria-label"
    )
    box = played.tracks.bounding_box()
    # A press on a track goes to its warp's nearest request; a drag scrubs.
    middle, height = box["x"] + box["width"] / 2, (box["height"] - 26) / 8
    played.page.mouse.move(middle, box["y"] + 20 + 1.5 * height)
    played.page.mouse.down()
    assert table["warp"].iloc[played.at] == 1
    assert abs(played.at - len(table) / 2) < 0.12 * len(table)
    played.page.mouse.move(middle + 200, box["y"] + 40)
    played.page.mouse.up()
    assert played.at > 0.65 * len(table)
    played.page.keyboard.press("+")
    played.page.keyboard.press("+")
    first, last = map(
        int, re.search(r"(\d+) to (\d+) of", played.tracks.get_attribute("aria-label")).groups()
    )
    assert first <= played.at <= last
    assert last - first < 0.3 * len(table)
    assert played.page.evaluate(FAULTS) == []


#: Returns how much of each track is hatched, by the pixels that have the colour of idle time.
HATCHED = """(warps) => {
  const canvas = document.querySelector(".av-tracks canvas"), scale = window.devicePixelRatio;
  const track = (parseFloat(canvas.style.height) - 26) / warps;
  const width = canvas.width - 70 * scale;
  const { data } = canvas.getContext("2d").getImageData(62 * scale, 0, width, canvas.height);
  return Array.from({ length: warps }, (_, warp) => {
    const y = Math.round((20 + warp * track + 2) * scale);
    let first = width;
    for (let x = width - 1; x >= 0; --x) {
      const [red, , blue, alpha] = data.slice(4 * (y * width + x), 4 * (y * width + x) + 4);
      if (red > 150 && blue < 120 && alpha > 60) first = x;
    }
    return first / width;
  });
}"""


@needs_compiler
def test_warps_that_are_done_are_drawn_idle(saved):
    explorer = explore("cora", second=None, row=1914)
    trace = explorer.traced()["trace"]
    warp, count = trace["columns"]["warp"], len(trace["columns"]["warp"])
    assert trace["waits"] == []
    ends = [1 + np.flatnonzero(warp == one).max() for one in range(trace["warps"])]
    view = saved(explorer, trace=True)
    view.tab("Play")
    hatched = view.page.evaluate(HATCHED, trace["warps"])
    assert hatched == pytest.approx([end / count for end in ends], abs=0.03)
    view.page.locator(".av-tracks").focus()
    for _ in range(30):
        view.page.keyboard.press("ArrowRight")
    done = [one for one, end in enumerate(ends) if end <= 30]
    assert len(done) == 10  # those without work, warps 2 to 11
    assert "Done, and idle until the block ends: warps 2 to 11." in view.text(".av-request")


@needs_compiler
def test_requests_have_the_colour_of_their_array(played, traced):
    table = requests(traced[1])
    colours = {}
    played.tracks.focus()
    for array in ("metadata", "X", "columns", "Y"):
        played.page.keyboard.press("Home")
        target = table.index[table["array"] == array][0]
        for _ in range(target // 100):
            played.page.keyboard.press("PageDown")
        while played.at < target:
            played.page.keyboard.press("ArrowRight")
        fills = played.page.locator(".av-lanes rect").evaluate_all(
            "all => all.map((one) => getComputedStyle(one).fill)"
        )
        colours[array] = fills[-1]
    assert len(set(colours.values())) == 4
    squares = played.page.locator(".av-legend .av-square").evaluate_all(
        "all => all.map((one) => getComputedStyle(one).backgroundColor)"
    )
    assert squares[:4] == [colours[name] for name in ("metadata", "columns", "X", "Y")]


@needs_compiler
def test_tooltip_of_a_wait_at_a_barrier(played, traced):
    wait = max(traced[2], key=lambda wait: wait["left"] - wait["arrived"])
    played.tracks.focus()
    played.page.keyboard.press("0")
    box = played.tracks.bounding_box()
    share = (wait["arrived"] + wait["left"]) / 2 / (traced[1]["step"].max() + 1)
    x = box["x"] + 62 + share * (box["width"] - 70)
    played.page.mouse.move(x, box["y"] + 20 + (wait["warp"] + 0.5) * (box["height"] - 26) / 8)
    sentence = played.text(".av-tip")
    assert f"Warp {wait['warp']} waits at the barrier in {wait['file']}:{wait['line']}" in sentence
    plan, _, _, block = traced
    work = plan.workload(block, block + 1)
    loads = plan.hardware.steps_of_nonzeros(plan.hardware.of_workload(work))[0]
    share, most = int(loads[wait["warp"]]), int(loads.max())
    expected = f"It has {share} nonzero" if share < most else f"None has more nonzeros, {most}"
    assert expected in sentence


def test_lanes_with_rows_of_their_own_wait_for_the_longest(saved):
    """In `row_thread`, a warp takes as long as its longest row, not as the sum of its rows."""
    plan = accelviz.plan("cora", "row_thread", N_COLS)
    work = plan.workload(0, 1)
    longest = [int(work.nz_count[work.warp == warp].max()) for warp in range(8)]
    row = next(r for r, n in zip(work.row, work.nz_count, strict=True) if n == 2 and r >= 32)
    view = saved(explore("cora", "row_thread", row=int(row)))
    sentence = view.text(".av-answer strong")
    assert f"Lane {row % 32} of warp {row // 32} of block 0 has it" in sentence
    for length in (longest[row // 32], max(longest)):
        assert f" {length}" in sentence
    assert "never idles" not in sentence
    # One line per thread, as long as its row, on a hatched bar up to the longest row.
    lines = view.page.locator(".av-of-block :is(rect.av-thread, rect.av-row)")
    widths = lines.evaluate_all("all => all.map((line) => Number(line.getAttribute('width')))")
    ends = view.page.locator(".av-of-block :is([data-m=l0], [data-m=h0])").evaluate_all(
        "all => all.map((bar) => Number(bar.getAttribute('width')))"
    )
    hatched = sum(ends)
    assert sum(width > 0 for width in widths) == (work.nz_count > 0).sum()
    assert max(widths) == pytest.approx(float(hatched), abs=1.5)
    assert min(widths) == pytest.approx(float(hatched) / max(longest), abs=1.5)


def test_rows_that_share_a_sector_are_drawn_as_one_cell(saved):
    strategy = find_strategy("lane_groups", "edge_softmax")
    softmax = explore("cora", strategy, row=1358)
    graph = accelviz.load_graph("cora")
    first, last = graph.row_pointers[1358:1360]
    assert softmax.settings["nCols"] == 1  # eight scores of 4 bytes are a sector
    sectors = np.unique(np.arange(first, last) // 8)
    view = saved(softmax)
    # The row's warp is the busiest, and all others idle until it is done.
    plan = strategy.plan(graph, 1)
    block = find_row(plan, 1358).blocks[0]
    work = plan.workload(block, block + 1)
    loads = np.sort(plan.hardware.steps_of_nonzeros(plan.hardware.of_workload(work))[0])
    assert loads[-1] == last - first > loads[-2]
    sentence = view.text(".av-answer strong")
    assert f"{(loads < loads[-1]).sum()} other warps of the block idle until it is" in sentence
    assert f"it has {loads[-1]:.0f} steps, the next busiest {loads[-2]:.0f}" in sentence
    view.page.locator(".av-of-block rect.av-row").first.hover()
    assert f"; {(loads < loads[-1]).sum()} others idle until it is done." in view.text(".av-tip")
    cells = view.page.locator(".av-of-read rect[data-f^='sector:']").evaluate_all(
        "all => all.map((cell) => ['y', 'height'].map((name) => +cell.getAttribute(name)))"
    )
    touch = [above + height == below for (above, height), (below, _) in itertools.pairwise(cells)]
    shares = [(first + i) // 8 == (first + i + 1) // 8 for i in range(len(cells) - 1)]
    assert touch == shares
    assert {*touch} == {False, True}
    assert f"row 1,358 reads is in {len(sectors)} sectors." in view.text(".av-of-read .av-below")
    # The row of the current nonzero is bold; a click on the strip chooses another nonzero.
    assert "what the nonzero framed above reads; click there" in view.text(".av-of-read")
    bold = view.page.locator(".av-of-read text.av-r")
    assert bold.text_content() == f"number {first:,}"
    assert "neighboring numbers of scores share a sector" in view.text(".av-of-read .av-below")
    strip = view.page.locator(".av-of-strip .av-hit")
    strip.click(position={"x": strip.bounding_box()["width"] - 1, "y": 9})
    assert bold.text_content() == f"number {last - 1:,}"
    assert f"reads number {last - 1:,} of scores: 4 bytes, 1 sector." in view.text(".av-tip")


@pytest.mark.long
@needs_compiler
@pytest.mark.parametrize(("operation", "n_cols"), [("edge_softmax", 1), ("gat", 1), ("gat", 12)])
def test_play_names_single_numbers_and_counts_each_sector_once(saved, operation, n_cols):
    strategy = find_strategy("row_warp", operation)
    panel = explore("cora", strategy, row=100, n_cols=n_cols)
    view = saved(panel, trace=True)
    view.tab("Play")
    plan = strategy.plan(accelviz.load_graph("cora"), n_cols)
    inputs = random_inputs(plan.operation, plan.pattern, plan.widths)
    table = accelviz.trace(plan, *inputs, block=find_row(plan, 100).blocks[0])
    single = ("receiver", "sender", "scores", "alpha")
    reads = "scores" if operation == "edge_softmax" else "V"
    read, pairs = table[(table["array"] == reads) & (table["kind"] == "load")], 0
    view.page.locator(".av-tracks").focus()
    view.page.keyboard.press("Home")
    for step, accesses in itertools.islice(table.groupby("step"), 40):
        assert f"Request {step:,} " in view.text(".av-said")
        if accesses["array"].iloc[0] in single:
            first, last = accesses["index"].min(), accesses["index"].max()
            assert last - first < accesses["index"].nunique()
            to = f" to [{last:,}]" if last > first else ""
            named = f"{accesses['array'].iloc[0]}[{first:,}]{to}: "
            assert named in view.text(".av-said")
            pairs += 1
        view.page.keyboard.press("ArrowRight")
    assert pairs
    view.page.keyboard.press("End")
    times = read.assign(sector=read["offset"] // 32).groupby("step")["sector"].nunique().sum()
    sectors = (read["offset"] // 32).nunique()
    expected = f"{sectors} of {sectors} sectors read so far, {times} times in all."
    assert expected in view.text(".av-mapped")
