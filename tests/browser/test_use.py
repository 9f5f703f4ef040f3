"""What a reader does to a saved page: scroll, press keys, drag, save pictures, change the theme."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse

import accelviz
from accelviz.analysis.balance import block_idle_shares
from accelviz.analysis.lanes import sector_runs
from accelviz.analysis.lookup import find_row
from accelviz.measure.prediction import recorded_times
from accelviz.strategies import SPMM, find_strategy
from accelviz.widgets import explore
from accelviz.widgets.pack import pack_text

from ..compilers import needs_compiler
from .lab import FRAME
from .saved import AT_CONTROLS, FAULTS, KEEP_PICTURE

#: Returns the geometry of all marks that can glide, by name.
GEOMETRY = """() => Object.fromEntries([...document.querySelectorAll("[data-m]")].map((mark) =>
  [mark.dataset.m, ["x", "y", "width", "height", "x1", "y1", "x2", "y2"].map((name) =>
    Math.round(10 * Number(mark.getAttribute(name) ?? 0)))]))"""
WIDTHS = (424, 848, 1180, 1440)
#: Two widths in each color scheme: a scheme has no rule on the layout.
WIDTHS_AND_SCHEMES = pytest.mark.parametrize(
    ("width", "scheme"), [*zip(WIDTHS, ("light", "dark") * 2, strict=True)]
)


def type_into(page, field, value):
    box = page.get_by_label(f"{field}, as a number", exact=True)
    box.fill(str(value))
    box.press("Enter")


@pytest.mark.long
def test_a_glide_that_is_redrawn_half_way_ends_where_it_should(browser, tmp_path):
    path = explore("cora").save(tmp_path / "page.html", trace=False)
    ends = []
    for motion in ("no-preference", "reduce"):
        page = browser.new_page(viewport={"width": 1180, "height": 2200}, reduced_motion=motion)
        page.add_init_script(AT_CONTROLS)
        page.goto(path.as_uri())
        page.wait_for_selector("[data-drawn]")
        page.wait_for_timeout(600)  # so that the next drawing glides
        for field, value in (("follow row", 1776), ("columns", 128), ("follow row", 1358)):
            type_into(page, field, value)
            page.wait_for_timeout(30)
        page.locator(".av-panel").focus()
        for _ in range(2):
            page.keyboard.press("Control+z")
            page.wait_for_timeout(60)
        page.wait_for_function("() => !document.querySelector('[data-later]')")
        page.wait_for_timeout(700)
        ends.append(page.evaluate(GEOMETRY))
        page.close()
    assert ends[0] == ends[1]


@pytest.mark.long
@WIDTHS_AND_SCHEMES
def test_time_and_idle_share_stay_in_sight_and_nothing_is_cut_off(saved, width, scheme):
    view = saved(
        explore("cora", second="gnnadvisor"),
        viewport={"width": width, "height": 800},
        color_scheme=scheme,
    )
    for group in ("One row", "Every warp", "Numbers"):
        view.tab(group)
        for y in (0, 300, 900, 5000):
            view.page.evaluate(f"() => window.scrollTo(0, {y})")
            view.page.evaluate(FRAME)
            box = view.page.locator(".av-of-side").first.bounding_box()
            assert -1 <= box["y"] < 800, (group, y)
            seen = view.page.evaluate(
                "([x, y]) => Boolean(document.elementFromPoint(x, y).closest('.av-of-side'))",
                [box["x"] + 10, box["y"] + 8],
            )
            assert seen, (group, y)
        wide = "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        assert view.page.evaluate(wide), group
    theme = view.page.evaluate("() => document.querySelector('.av-panel').style.colorScheme")
    assert theme == scheme


@pytest.mark.long
@pytest.mark.parametrize(
    ("style", "theme"),
    [
        ("background: #1e1e1e", "dark"),
        ("background: #ffffff", "light"),
        ("background: color(srgb 1 1 1)", "light"),
        ("background: oklch(0.25 0 0)", "dark"),
        ("background: transparent; color: #cccccc", "dark"),  # as in VS Code
        ("background: transparent; color: #3b3b3b", "light"),
    ],
)
def test_the_theme_is_that_of_the_page(saved, style, theme):
    """VS Code and Colab colour the page or its text, whatever the browser prefers."""
    scheme = {"dark": "light", "light": "dark"}[theme]
    view = saved(explore("cora"), color_scheme=scheme)
    panel = view.page.locator(".av-panel")
    view.page.evaluate(f"() => document.body.style.cssText = '{style}'")
    view.page.evaluate(FRAME)
    view.page.evaluate(FRAME)
    assert panel.evaluate("panel => panel.style.colorScheme") == theme
    colour = panel.evaluate("panel => getComputedStyle(panel).backgroundColor")
    assert (max(map(int, colour[4:-1].split(","))) < 128) == (theme == "dark")


@pytest.mark.long
def test_colours_of_few_and_many_are_the_same_in_both_themes(saved):
    for scheme in ("light", "dark"):
        view = saved(explore("cora"), color_scheme=scheme)
        view.tab("Every warp")
        swatches = view.page.locator(".av-map-legend .av-pair .av-swatch").evaluate_all(
            "all => all.map((one) => getComputedStyle(one).backgroundColor)"
        )
        few, *_, many = (list(map(int, colour[4:-1].split(","))) for colour in swatches)
        assert few[2] > few[0]  # blue
        assert many[0] > many[2]  # orange


def test_every_mark_is_in_reach_of_the_keys(saved):
    view = saved(explore("cora", row=100))
    page = view.page
    for name in ("block", "told", "read", "order", "neighbors", "equation"):
        picture = page.locator(f".av-of-{name} svg[tabindex='0']").first
        picture.focus()
        sentences = set()
        for key in ("ArrowRight", "ArrowRight", "End", "Home"):
            page.keyboard.press(key)
            assert page.locator(".av-tip").is_visible(), (name, key)
            sentences.add(view.text(".av-tip"))
        assert len(sentences) >= 2, name
    # Enter presses a mark: a run of another row in the block is followed.
    page.locator(".av-of-block svg").focus()
    for _ in range(40):
        page.keyboard.press("ArrowRight")
        if "Click to follow that row" in view.text(".av-tip"):
            break
    page.keyboard.press("Enter")
    page.evaluate(FRAME)
    assert page.get_by_label("follow row, as a number").input_value() != "100"


def test_a_block_chosen_on_the_map_does_not_change_the_followed_row(saved):
    view = saved(explore("cora", row=1358))
    view.tab("Every warp")
    view.page.locator("[data-filled=true]").wait_for()
    canvas = view.page.locator(".av-map canvas").first
    canvas.click(position={"x": 40, "y": 60})
    view.page.evaluate(FRAME)
    row = view.page.get_by_label("follow row, as a number")
    assert row.input_value() == "1358"
    block = view.page.get_by_label("block, as a number").input_value()
    assert block != "251"
    view.tab("One row")
    assert f"Block {block}: " in view.text(".av-fig-block .av-name")
    assert "It has nothing of row 1,358." in view.text(".av-fig-block")
    view.page.locator("[data-control=back]").click()
    view.page.evaluate(FRAME)
    assert "Block 251: " in view.text(".av-fig-block .av-name")
    # By keys: cells have tooltips, and Enter chooses a block.
    view.tab("Every warp")
    canvas.focus()
    for key in ("Home", "ArrowRight", "ArrowDown"):
        view.page.keyboard.press(key)
    assert "warp 1: " in view.text(".av-tip")
    view.page.keyboard.press("Enter")
    view.page.evaluate(FRAME)
    assert row.input_value() == "1358"
    assert view.page.get_by_label("block, as a number").input_value() in ("0", "1")


def test_the_map_keeps_its_place_while_the_setting_changes(saved):
    view = saved(explore("cora", second="gnnadvisor"))
    view.tab("Every warp")
    tops = set()
    for warps in (12, 4, 32, 1):
        view.type("max_block_warps", warps)
        view.page.locator("[data-filled=true]").wait_for()
        tops.add(round(view.page.locator("[data-view=loads]").bounding_box()["y"]))
    assert len(tops) == 1


def test_a_tooltip_covers_no_mark_of_its_picture(saved):
    view = saved(explore("cora", row=100), viewport={"width": 1180, "height": 1000})
    picture = view.page.locator(".av-of-block svg")
    picture.scroll_into_view_if_needed()
    view.page.locator(".av-of-block rect.av-rest").first.hover()
    tip, box = (one.bounding_box() for one in (view.page.locator(".av-tip"), picture))
    assert tip["y"] >= box["y"] + box["height"] or tip["y"] + tip["height"] <= box["y"]


def test_the_description_is_that_of_the_setting(saved):
    view = saved(explore("cora", second=None, partition="warp"))
    assert "the caller's row order, warp-level partition" in view.text(".av-descriptions")
    view.choose("combined_warp", "false")
    assert "warps that loop over columns" in view.text(".av-descriptions")
    assert "degree sorting" not in view.text(".av-descriptions")


def test_the_matrix_of_a_large_graph_is_drawn(saved):
    matrix = scipy.sparse.random_array((1500, 1500), density=0.5, rng=0, format="csr")
    matrix = scipy.sparse.block_diag([matrix, matrix * 0], format="csr")
    matrix.eliminate_zeros()
    graph = accelviz.load_graph(matrix, name="large")
    assert graph.nnz > 1_000_000
    view = saved(explore(graph))
    squares = view.page.locator(".av-of-equation path.av-density").evaluate_all(
        "all => all.map((one) => one.getAttribute('d').split('M').length - 1)"
    )
    assert sum(squares) == 48 * 48  # a quarter of 96 x 96: the lower right of the matrix is empty


def test_large_times_have_no_decimals(saved):
    view = saved(explore("cora", "row_thread", second=None))
    assert ": 543 µs on H200" in view.text(".av-headline")


def test_the_numbers_of_a_view_are_python_s(saved):
    """Ten displayed numbers of the block, the map and the table."""
    plan = accelviz.plan("cora", "accel_gcn", 64)
    view = saved(explore("cora", second=None, row=100))
    block = int(view.page.get_by_label("block, as a number").input_value())
    steps = plan.hardware.steps_of_nonzeros(
        plan.hardware.of_workload(plan.workload(block, block + 1))
    )[0]
    bars = view.page.locator(".av-of-block .av-waits").evaluate_all(
        "all => all.map((bar) => Number(bar.getAttribute('width')))"
    )
    scale = float(np.ptp(bars)) / max(np.ptp(steps), 1)
    if scale:
        assert np.round(np.array(bars) / scale).tolist() == (steps.max() - steps).tolist()
    statistics = plan.statistics
    view.tab("Numbers")
    expected = {
        "idle_share": f"{statistics.idle_share:.2%}",
        "idle_warps": f"{statistics.idle_warps:.2%}",
        "imbalance": f"{statistics.imbalance:.2f}",
        **{
            name: f"{getattr(statistics, name):,}"
            for name in ("longest", "warps", "busy_warps", "largest", "blocks", "metadata_bytes")
        },
        "mean": f"{statistics.mean:.2f}",
    }
    for name, text in expected.items():
        cell = view.page.locator(f"[data-statistic={name}] td").first
        assert cell.inner_text() == text, name


def test_blocks_are_ranked_by_their_idle_share(saved):
    plan = accelviz.plan("cora", "accel_gcn", 64)
    shares = block_idle_shares(plan)
    steps = plan.hardware.steps_of_nonzeros(plan.hardware.of_workload(plan.workload()))
    ranking = np.lexsort((-steps.max(axis=1), -shares))  # of equal shares the longest block

    def rank_text(shares, block):
        more = np.count_nonzero(shares > shares[block] + 1e-9)
        equal = np.count_nonzero(np.abs(shares - shares[block]) < 1e-9) - 1
        others = f"{equal} other{'s' if equal > 1 else ''}"
        if not shares[block]:
            return f"Block {block} never idles, like {others} of {len(shares)} blocks."
        time = f"for {100 * shares[block]:.1f} % of its warps' time"
        if not more:
            together = f", together with {others}" if equal else ""
            return f"Block {block} idles most of {len(shares)} blocks{together}: {time}."
        idle = f"{more} of {len(shares)} blocks {'idle' if more > 1 else 'idles'} more."
        return f"Block {block} idles {time}{f', like {others}' if equal else ''}: {idle}"

    view = saved(explore("cora", second="gnnadvisor", row=100))
    view.tab("Every warp")
    view.page.locator("[data-filled=true]").wait_for()
    seen = []
    for i, control in enumerate(("worst", *["next worst"] * 7)):
        view.page.locator(f"[data-control='{control}']").click()
        view.page.evaluate(FRAME)
        block = ranking[i]
        seen.append(rank_text(shares, block))
        assert seen[-1] in view.text(".av-worst")
        assert view.page.get_by_label("block, as a number").input_value() == str(block)
    # Several blocks idle most; the first that idles less has its place after all of them.
    assert "together with" in seen[0]
    assert "idle more" in seen[-1]
    view.type("block", 251)
    assert shares[251] == 0
    assert rank_text(shares, 251) in view.text(".av-worst")
    # The share is in reach of pointer and keys.
    strip = view.page.locator("canvas.av-shares").first
    strip.focus()
    view.page.keyboard.press("End")
    assert (
        view.text(".av-tip") == f"Block 251: {100 * shares[251]:.1f} % of its warps' time is idle."
    )
    box = strip.bounding_box()
    view.page.mouse.move(box["x"] + (100.5 / 252) * box["width"], box["y"] + 8)
    assert view.text(".av-tip").startswith(f"Block 100: {100 * shares[100]:.1f} % ")
    second = accelviz.plan("cora", "gnnadvisor", 64)
    steps = second.hardware.steps_of_nonzeros(second.hardware.of_workload(second.workload()))
    shares = block_idle_shares(second)
    worst = int(np.lexsort((-steps.max(axis=1), -shares))[0])
    assert rank_text(shares, worst) in view.page.locator(".av-worst").nth(1).inner_text()


def test_the_same_row_stands_beside_in_the_second_strategy(saved):
    view = saved(explore("cora", second="gnnadvisor", row=100))
    plan = accelviz.plan("cora", "gnnadvisor", 64)
    (block,) = find_row(plan, 100).blocks
    share = block_idle_shares(plan)[block]
    title = view.text(".av-fig-beside .av-name")
    assert f"gnnadvisor, block {block}: the same row there ({100 * share:.1f} % idle)" in title
    steps = plan.hardware.steps_of_nonzeros(
        plan.hardware.of_workload(plan.workload(block, block + 1))
    )[0]
    assert view.page.locator(".av-of-beside [data-m^='second h']").count() == len(steps)
    view.page.locator(".av-of-beside [data-f^='second warp']").first.hover()
    assert f"Warp 0 of block {block}." in view.text(".av-tip")
    view.choose("second", "")
    assert view.page.locator(".av-fig-beside").is_hidden()


@pytest.mark.long
@needs_compiler
@pytest.mark.parametrize(
    ("name", "n_cols"), [("accel_gcn", 64), ("accel_gcn", 40), ("gnnadvisor", 64), ("ge_spmm", 33)]
)
def test_the_sectors_of_a_warp_are_those_of_a_trace(bundle, name, n_cols):
    graph = accelviz.load_graph("cora")
    explorer = explore("cora", name, second=None, n_cols=n_cols, row=1358)
    plan = accelviz.plan(graph, name, n_cols)
    block = find_row(plan, 1358).blocks[0]
    traced = accelviz.trace(plan, np.ones((graph.shape[1], n_cols), np.float32), block=block)
    reads = sector_runs(traced[(traced["array"] == "X").to_numpy(bool)])
    expected = reads.groupby("warp")["begins"].sum()
    counted = bundle.evaluate(
        """async ({ text, block, warps }) => {
          const { followedRow, makeStore, sectorsOfWarp, unpackText } = accelvizPage;
          const store = makeStore(await unpackText(text));
          store.set({ row: 1358, block });
          const row = followedRow(store.scene());
          return Array.from({ length: warps }, (_, warp) => sectorsOfWarp(row, warp));
        }""",
        {
            "text": pack_text(explorer.content()),
            "block": int(block),
            "warps": plan.launch.warps_per_block,
        },
    )
    assert counted == [int(expected.get(warp, 0)) for warp in range(len(counted))]


def test_a_switch_isolates_degree_sorting(saved):
    graph = accelviz.load_graph("cora")
    ordered = accelviz.degree_sort(graph).apply_to_graph(graph)
    expected = accelviz.plan(ordered, "graphblast", 64).statistics
    view = saved(explore("cora", "graphblast", second=None, row=1358))
    view.page.locator("[data-control=pin]").click()
    view.choose("sorted", "yes")
    lines = view.page.locator(".av-of-side").all_inner_texts()
    natural = accelviz.plan(graph, "graphblast", 64).statistics
    for line, statistics in zip(lines, (expected, natural), strict=True):
        assert f"{100 * statistics.idle_share:.1f} % of warp time idle" in line
    assert "no time recorded" in lines[0]
    # The row has moved to the end, and its block is that of its place.
    assert "place 2,707 in the order" in view.text(".av-way-line")
    assert f"block {(graph.n_rows - 1) // 4}" in view.text(".av-way-line")
    view.tab("Numbers")
    cell = view.page.locator("[data-statistic=idle_share] td").first
    assert cell.inner_text() == f"{expected.idle_share:.2%}"
    view.choose("first", "accel_gcn")
    assert view.page.locator("[data-control=sorted]").inner_text() == (
        "by degree, as the strategy does"
    )


def recorded_of(graph, n_cols=64):
    """Recorded times of registered strategies, and their run with most strategies."""
    times = recorded_times(accelviz.load_graph(graph)).query(f"columns == {n_cols}")
    times = times[times["strategy"].isin(accelviz.strategies())]
    return times, times.groupby("run")["strategy"].nunique().idxmax()


@pytest.mark.long
@pytest.mark.parametrize("graph", ["cora", "pubmed"])
def test_strategies_are_ranked_by_times_of_one_run(saved, graph):
    times, main = recorded_of(graph)
    ranked = times[times["run"] == main].sort_values("median_us", kind="stable")
    ranked = ranked.drop_duplicates("strategy")
    view = saved(explore(graph, second=None))
    view.tab("Numbers")
    tables = view.page.locator("table.av-fastest")
    assert tables.count() == times["run"].nunique()
    rows = tables.first.locator("tbody tr")
    assert rows.evaluate_all("all => all.map((row) => row.dataset.strategy)") == [*ranked.strategy]
    names = [table.locator("caption").inner_text() for table in tables.all()]
    assert len(set(names)) == len(names)
    for row, (_, record) in zip(rows.all(), ranked.iterrows(), strict=True):
        cells = row.locator("td").all_inner_texts()
        median = record["median_us"]
        assert cells[1] == (f"{median:.1f} µs" if median < 99.95 else f"{median:.0f} µs")
        # The same setting of other runs stands beside it, and is not ranked.
        same = times.query("strategy == @record.strategy and parameters == @record.parameters")
        others = same[same["run"] != main].drop_duplicates("run")["median_us"]
        assert sorted(re.findall(r"[\d.]+", cells[3])) == sorted(f"{us:.1f}" for us in others)
    # How certain the first place is: the spread of this run, and the order in others.
    first, second = ranked.iloc[0], ranked.iloc[1]
    text = view.text("[data-view=recorded] p")
    assert first["quartile3_us"] < second["quartile1_us"]
    assert f"took {second['median_us'] / first['median_us']:.2f} times as long" in text
    assert "do not overlap" in text


def test_times_beside_one_another_are_of_one_run(saved):
    """The first setting of the page was measured in several runs, the second in one of them."""
    times, _ = recorded_of("cora")
    cases = times[times["strategy"] == "accel_gcn"]
    first, second = (
        cases[[setting.items() >= expected.items() for setting in cases["setting"]]]
        for expected in (
            {"max_block_warps": "12", "max_warp_nzs": "32", "partition": "block"},
            {"partition": "warp", "combined_warp": "True"},
        )
    )
    medians = first.drop_duplicates("run")["median_us"]
    assert len(medians) == 3
    view = saved(explore("cora"))
    line = view.page.locator(".av-of-side").first
    assert f"({medians.min():.1f} to {medians.max():.1f} in 3 runs)" in line.inner_text()
    line.get_by_text("in 3 runs").hover()
    for median in medians:
        assert f"{median:.1f} µs" in view.text(".av-tip") + line.inner_text()
    view.tab("Numbers")
    (run,) = set(second["run"])
    pair = [of[of["run"] == run]["median_us"].iloc[0] for of in (first, second)]
    row = view.page.locator("[data-statistic=time]")
    assert row.locator("th").inner_text().endswith(run[:10])
    cells = row.locator("td").all_inner_texts()
    assert cells[:2] == [f"{median:.1f} µs" for median in pair]
    assert cells[2].startswith(f"−{round(pair[1], 1) - round(pair[0], 1):.1f} µs")


def test_the_fastest_recorded_setting_is_one_press_away(saved):
    known, main = recorded_of("pubmed")
    of_run = known[known["run"] == main]
    fastest = of_run.loc[of_run["median_us"].idxmin()]
    view = saved(explore("pubmed", second=None))
    view.tab("Numbers")
    text = view.text("[data-view=recorded] p")
    assert f"with 64 columns: {fastest['strategy']}, {fastest['median_us']:.1f} µs" in text
    # A cell of the heat map sets both parameters.
    first = known[known["strategy"] == "accel_gcn"]
    one_run = first[first["run"] == first["run"].iloc[0]]
    cells = view.page.locator(".av-heat [data-cell]")
    assert cells.count() == len(one_run)
    best = one_run.loc[one_run["median_us"].idxmin()]
    marked = view.page.locator(".av-heat .av-best-cell").first.get_attribute("data-say")
    assert f": {best['median_us']:.1f} µs, half of the repeats" in marked
    assert "fastest of these" in marked
    view.page.locator(".av-heat .av-best-cell").first.click()
    view.page.evaluate(FRAME)
    for name in ("max_block_warps", "max_warp_nzs"):
        field = view.page.get_by_label(f"{name}, as a number")
        assert field.input_value() == best["setting"][name]
    view.page.locator("[data-control=fastest]").click()
    view.page.evaluate(FRAME)
    assert f"{fastest['strategy']}: {fastest['median_us']:.1f} µs" in view.text(".av-headline")


@pytest.mark.long
@WIDTHS_AND_SCHEMES
def test_each_cell_of_the_heat_map_has_its_number_and_frames_are_explained(saved, width, scheme):
    view = saved(
        explore("cora", second=None),
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
    )
    view.tab("Numbers")
    said = view.page.locator(".av-heat [data-cell]").evaluate_all(
        "all => all.map((cell) => cell.dataset.say.match(/: ([\\d.,]+) µs/)[1])"
    )
    texts = view.page.locator(".av-heat :is(.av-few, .av-many)").all_text_contents()
    assert texts == said
    assert len(said) == 45
    times = [float(text) for text in said]
    best = view.page.locator(".av-best-frame").count()
    assert best >= times.count(min(times)) / 2
    note = view.page.locator("[data-view=recorded] > .av-view > .av-note").last.inner_text()
    assert f"the fastest of these, {min(times)} µs, of {best} settings" in note
    assert "as it is set" in note
    assert "nothing was measured" not in note  # all cells are there
    # No table and no picture is cut.
    for name in ("table.av-fastest", ".av-heat svg", ".av-statistics"):
        for part in view.page.locator(name).all():
            box = part.bounding_box()
            assert box["x"] + box["width"] <= width, name
    assert view.page.evaluate(FAULTS) == []


def test_a_change_with_less_idle_share_and_more_time_is_explained(saved):
    graph = accelviz.load_graph("cora")
    ordered = accelviz.degree_sort(graph).apply_to_graph(graph)
    before, after = (accelviz.plan(one, "row_thread", 64).statistics for one in (graph, ordered))
    assert after.idle_share > before.idle_share
    assert after.slots < before.slots
    view = saved(explore("cora", "row_thread", second=None))
    assert view.page.locator(".av-why").is_hidden()
    view.choose("sorted", "yes")
    share = [f"{100 * one.idle_share:.1f} %" for one in (before, after)]
    idle = [one.slots - one.steps for one in (before, after)]
    fell = [100 - 100 * now / then for then, now in (idle, (before.steps, after.steps))]
    assert view.text(".av-why") == (
        f"The idle share rose, {share[0]} to {share[1]}, but there is less warp time: "
        f"{before.slots:,} steps, {idle[0]:,} of them idle, before; {after.slots:,} steps, "
        f"{idle[1]:,} of them idle, now. Idle steps fell by {fell[0]:.0f} %, busy ones fell by "
        f"{fell[1]:.0f} %. A warp lasts as long as the longest of its 32 rows, and sorted rows of "
        "a warp are alike."
    )
    assert f"(before: {share[0]})" in view.text(".av-headline")
    view.type("follow row", 5)
    assert view.page.locator(".av-why").is_hidden()
    # A recorded time that rises while the idle share falls.
    view.choose("first", "accel_gcn")
    assert view.page.locator(".av-why").is_hidden()
    view.type("max_block_warps", 4)
    assert "but the kernel took more time, 7.8 µs before and 14.6 µs now" in view.text(".av-why")


def test_a_menu_without_a_choice_is_a_text(saved):
    view = saved(explore("cora", second=None))
    for width in WIDTHS:
        view.page.set_viewport_size({"width": width, "height": 900})
        for menu in view.page.locator("select:visible").all():
            assert menu.locator("option").count() > 1
    order = view.page.locator("[data-control=sorted]")
    assert order.inner_text() == "by degree, as the strategy does"
    order.hover()
    assert "It has no other one" in view.text(".av-tip")
    view.choose("partition", "warp")
    view.choose("sorted", "yes")
    assert "rows sorted: no time recorded" in view.text(".av-headline")


def test_fewer_columns_that_take_longer_are_explained(saved):
    times = recorded_times(accelviz.load_graph("cora")).query("strategy == 'ge_spmm'")
    assert times["run"].nunique() == 1
    slow, fast = (times[times["columns"] == n]["median_us"].iloc[0] for n in (16, 64))
    view = saved(explore("cora", "ge_spmm", second=None, n_cols=16))
    assert "coalesced row caching, without merged warps." in view.text(".av-descriptions")
    view.tab("Numbers")
    note = view.page.locator("[data-view=times] .av-note").last.inner_text()
    assert f": {slow:.1f} µs with 16 columns, {fast:.1f} µs with 64. The kernel differs" in note
    assert 'without merged warps" with 16 columns, "coalesced row caching and coarse-' in note
    view.choose("first", "accel_gcn")
    assert "Fewer columns" not in view.text("[data-view=times]")


def test_empty_combined_warps_are_told_from_empty_warps(saved):
    statistics = accelviz.plan("cora", "accel_gcn", 64).statistics
    empty, idle = statistics.loads.idle, statistics.warps - statistics.busy_warps
    assert empty != idle
    view = saved(explore("cora", second=None))
    view.tab("Every warp")
    assert (
        f"First: of {statistics.workers:,} combined warps, {empty} have no nonzero. Of the "
        f"{statistics.warps:,} warps of the hardware that do their work, {idle} are without any."
    ) in view.text("[data-view=loads]")


def test_the_sectors_of_a_block_are_written_below_its_reads(saved):
    view = saved(explore("cora", second=None, row=1914))
    text = view.text(".av-fig-read .av-below")
    block, total = re.search(r"In all, block (\d+) reads ([\d,]+) sectors of X", text).groups()
    plan = accelviz.plan("cora", "accel_gcn", 64)
    work = plan.workload(int(block), int(block) + 1)
    # A nonzero reads 256 bytes, 8 sectors, by two warps.
    assert int(total.replace(",", "")) == 8 * work.nz_count.sum()
    assert f"(warps 0 and 1: {4 * work.nz_count.sum()} each; warps 2 to 11: none)" in text


def test_the_story_asks_and_the_slider_answers(saved):
    view = saved(explore("cora"), story=True)
    page = view.page
    assert page.locator(".av-panel").get_attribute("data-shown") == "story"
    assert not page.locator(".av-controls").is_visible()
    strategy, graph = find_strategy("accel_gcn", SPMM), accelviz.load_graph("cora")
    plans = [strategy.plan(graph, 64, max_block_warps=warps) for warps in (12, 4)]
    shares = [plan.statistics.idle_share for plan in plans]
    assert shares[1] < shares[0]
    before, after = (f"{share:.1%}".replace("%", " %") for share in shares)
    assert f"{before} of warp time idle" in view.text(".av-headline")
    page.locator("[data-control='guess rises']").click()
    assert "You say that it rises" in view.text(".av-story-answer")
    box = page.locator("[data-view=story] input[type=number]")
    box.fill("4")
    box.press("Enter")
    page.evaluate(FRAME)
    answer = view.text(".av-story-answer")
    assert f"the idle share falls, {before} to {after};" in answer
    assert "you said that it rises." in answer
    page.locator("[data-control='guess again']").click()
    assert "Predict" in view.text(".av-story-answer")


def test_the_story_has_five_steps_and_all_controls_are_remembered(saved):
    view = saved(explore("cora"), story=True)
    page, seen = view.page, []
    for step in range(5):
        seen.append(view.text(".av-story-text"))
        assert page.locator("[data-view=story] svg:visible").first.is_visible()
        assert page.evaluate(FAULTS) == []
        if step < 4:
            page.locator("[data-control='next step']").click()
            page.evaluate(FRAME)
    assert len(set(seen)) == 5
    row, block = (
        re.search(pattern, text)[1].replace(",", "")
        for pattern, text in ((r"Row ([\d,]+) of A", seen[1]), (r"of block ([\d,]+)", seen[0]))
    )
    page.locator("[data-control='all controls']").click()
    page.evaluate(FRAME)
    # The pictures go on with the row and the block of the story.
    assert page.get_by_label("follow row, as a number").input_value() == row != "1358"
    assert page.get_by_label("block, as a number").input_value() == block
    assert f"Row {int(row):,} of A" in view.text(".av-way-line")
    page.reload()
    view.errors.remove(page.url)
    page.wait_for_selector("[data-drawn]")
    assert page.locator(".av-panel").get_attribute("data-shown") == "product"
    assert page.locator(".av-controls").is_visible()


#: Returns the boxes of pictures on their way, and the geometry of the marks that can glide.
ON_THE_WAY = "() => document.querySelectorAll('.av-zoomed').length"


#: Goes to the next step of the story, and halts its animations at their beginning.
HALT_AT_NEXT_STEP = """async () => {
  document.querySelector("[data-control='next step']").click();
  while (!document.getAnimations().length) await new Promise(requestAnimationFrame);
  for (const one of document.getAnimations()) {
    one.playbackRate = 0;
    one.currentTime = 0;
  }
}"""


@pytest.mark.long
def test_a_step_s_framed_mark_grows_into_the_next_picture(browser, tmp_path):
    path = explore("cora").save(tmp_path / "page.html", trace=False)
    page = browser.new_page(viewport={"width": 848, "height": 900})
    page.goto(path.as_uri())
    page.wait_for_selector("[data-drawn]")
    slow = "rate => document.getAnimations().forEach((one) => (one.playbackRate = rate))"
    stage, picture = page.locator(".av-stage"), page.locator(".av-story-picture:not(.av-zoomed)")
    for step in range(4):
        mark = page.locator(".av-chosen").bounding_box()
        page.evaluate(HALT_AT_NEXT_STEP)
        whole, small = stage.bounding_box(), picture.bounding_box()
        assert page.evaluate(ON_THE_WAY) == 1
        assert small["width"] < 1.01 * whole["width"]
        if step != 0:  # the bar of a warp is as wide as the picture
            assert small["width"] < 0.75 * whole["width"]
        middle = small["x"] + small["width"] / 2
        assert middle == pytest.approx(mark["x"] + mark["width"] / 2, abs=0.06 * whole["width"])
        # A change of the setting half-way stops no mark.
        page.evaluate(slow, 1)
        page.wait_for_timeout(150)
        page.locator("[data-view=story] input[type=range]").press("ArrowLeft")
        page.wait_for_function("() => !document.querySelector('.av-zoomed')")
        page.wait_for_function("() => !document.getAnimations().length")
        assert picture.bounding_box()["width"] == stage.bounding_box()["width"]
    page.wait_for_timeout(400)
    ends = page.evaluate(GEOMETRY)
    page.emulate_media(reduced_motion="reduce")
    page.locator("[data-control='step 3']").click()
    assert page.evaluate(ON_THE_WAY) == 0  # no motion
    page.locator("[data-control='step 4']").click()
    assert page.evaluate(GEOMETRY) == ends
    page.close()


def test_a_mark_of_the_story_is_followed_by_a_click(saved):
    view = saved(explore("cora"), story=True)
    page = view.page
    page.locator(".av-chosen").click()
    page.evaluate(FRAME)
    assert page.locator("[data-control='step 1']").get_attribute("aria-pressed") == "true"
    row = re.match(r"Row ([\d,]+) of A", view.text(".av-story-text"))[1]
    page.locator(".av-chosen").click()
    page.evaluate(FRAME)
    page.locator("[data-view=story] [data-filled=true]").wait_for()
    before = view.text(".av-story-buttons")
    page.locator("[data-view=story] [data-control='next worst']").click()
    page.evaluate(FRAME)
    assert view.text(".av-story-buttons") != before  # the bits of another block are next
    followed = re.search(r"with row ([\d,]+)", view.text(".av-story-buttons"))[1]
    page.locator("[data-group=product]").click()
    page.evaluate(FRAME)
    # The other groups follow the story's row; undo goes back to the row of the call.
    number = page.get_by_label("follow row, as a number")
    assert number.input_value() == followed.replace(",", "") != row.replace(",", "")
    page.locator("[data-control=undo]").click()
    page.evaluate(FRAME)
    assert number.input_value() == "1358"


@pytest.mark.long
@pytest.mark.parametrize("graph", ["cora", "pubmed"])
def test_ten_cells_of_the_map_are_python_s(saved, graph):
    """Some columns of Pubmed's map have one block, others two."""
    plan = accelviz.plan(graph, "accel_gcn", 64)
    steps = plan.hardware.steps_of_nonzeros(plan.hardware.of_workload(plan.workload()))
    shares = block_idle_shares(plan)
    view = saved(explore(graph, second=None), viewport={"width": 1180, "height": 1000})
    view.tab("Every warp")
    view.page.locator("[data-filled=true]").wait_for()
    view.page.locator("canvas.av-cells").focus()
    keys = ["End", *["PageUp", "ArrowDown"] * 5, *["ArrowLeft", "ArrowUp"] * 8]
    cells, kinds = set(), set()
    for key in keys:
        view.page.keyboard.press(key)
        text = view.text(".av-tip").replace(",", "")
        first, last, warp = re.match(
            r"Blocks? (\d+)(?: (?:to|and) (\d+))? warp (\d+): ", text
        ).groups()
        blocks, warp = slice(int(first), int(last or first) + 1), int(warp)
        most, share = steps[blocks, warp].max(), f"{100 * shares[blocks].mean():.1f}"
        if last is None:
            assert f": {most} nonzero{'' if most == 1 else 's'}. " in text
            assert f" {share} % of the block's warp time is idle." in text
        else:
            assert f" {most} at most. " in text
            assert f" {share} % of the blocks' warp time is idle on average." in text
        cells.add((int(first), warp))
        kinds.add(last is None)
    assert len(cells) >= 10
    assert kinds == ({True} if graph == "cora" else {True, False})


@pytest.mark.long
@pytest.mark.parametrize("graph", ["cora", "pubmed"])
def test_the_bars_of_the_charts_are_python_s(saved, graph):
    """Loads of both strategies, and degrees with what the first does with such rows."""
    plans = [accelviz.plan(graph, name, 64) for name in ("accel_gcn", "gnnadvisor")]
    view = saved(explore(graph, second="gnnadvisor"))
    view.tab("Every warp")
    said = "all => all.map((bar) => bar.dataset.say)"
    bars = view.page.locator("[data-view=loads] rect[data-say]").evaluate_all(said)
    for side, plan in zip(("first", "second"), plans, strict=True):
        loads, counts = plan.statistics.loads, {}
        for text in bars:
            if text.startswith(side):
                count, low, high = re.search(
                    r": ([\d,]+) .* with (no|[\d,]+)(?: to ([\d,]+))? nonzero", text
                ).groups()
                low, high = (
                    int((x or low).replace("no", "0").replace(",", "")) for x in (low, high)
                )
                inside = (loads.nonzeros >= low) & (loads.nonzeros <= high)
                expected = int(loads.warps[inside].sum()) if high else loads.idle
                counts[low] = int(count.replace(",", ""))
                assert counts[low] == expected, text
        assert sum(counts.values()) == plan.statistics.workers
    degrees, rows = np.unique(accelviz.load_graph(graph).degrees, return_counts=True)
    first, covered = plans[0], 0
    for text in view.page.locator("[data-view=degrees] rect[data-say]").evaluate_all(said):
        low, high, count, treatment = re.match(
            r"Degree ([\d,]+)(?: to ([\d,]+))?: ([\d,]+) rows?, (.*)\. Click", text
        ).groups()
        low, high = (int((x or low).replace(",", "")) for x in (low, high))
        inside = (degrees >= low) & (degrees <= high)
        assert int(count.replace(",", "")) == rows[inside].sum(), text
        covered += rows[inside].sum()
        for degree in degrees[inside]:
            row = int(np.flatnonzero(accelviz.load_graph(graph).degrees == degree)[0])
            blocks = find_row(first, row).blocks
            work = first.workload(blocks[0], blocks[-1] + 1)
            workers = np.unique(work.warp[work.row == find_row(first, row).walked_row]).size
            several = "cut over blocks" if len(blocks) > 1 else "combined warps share it"
            assert treatment == (
                several if len(blocks) > 1 or workers > 1 else "one combined warp has it"
            )
    assert covered == rows[degrees > 0].sum()


def test_a_saved_story_has_its_value_and_no_question(saved):
    view = saved(explore("cora"), story=True)
    page = view.page
    page.evaluate(KEEP_PICTURE)
    for guess in (None, "falls"):
        if guess:
            page.locator(f"[data-control='guess {guess}']").click()
            box = page.locator("[data-view=story] input[type=number]")
            box.fill("4")
            box.press("Enter")
            page.evaluate(FRAME)
        with page.expect_download():
            page.locator("[data-control=png]").click()
        picture = page.evaluate("window.picture")
        text = " ".join("".join(ElementTree.fromstring(picture).itertext()).split())
        assert f"max_block_warps {4 if guess else 12}" in text
        assert "<input" not in picture
        assert "Predict" not in text
        assert "second:" not in text  # the story has one strategy
        assert view.text(".av-story-text").replace("\n", " ") in text
        assert ("you said that it falls: right" in text) == bool(guess)


def test_the_story_explains_its_terms_and_why_warps_have_no_work(saved):
    plan = accelviz.plan("cora", "accel_gcn", 64)
    view = saved(explore("cora"), story=True)
    assert "A warp is 32 threads of the GPU" in view.text(".av-story-caption")
    block = int(re.search(r"of block ([\d,]+)", view.text(".av-story-text"))[1].replace(",", ""))
    work = plan.workload(block, block + 1)
    steps = plan.hardware.steps_of_nonzeros(plan.hardware.of_workload(work))[0]
    assert len(np.unique(work.row)) == 1
    degree = int(work.nz_count.sum())
    assert view.text(".av-story-text").endswith(
        f" {(steps == 0).sum()} warps have no work: a block takes rows of one length only, and "
        f"just one row of {degree} nonzeros is left for it."
    )
    # A change shows what a smaller parameter does, and why less idling may take more time.
    view.page.locator("[data-control='guess falls']").click()
    box = view.page.locator("[data-view=story] input[type=number]")
    box.fill("4")
    box.press("Enter")
    view.page.evaluate(FRAME)
    before, after = (
        accelviz.plan("cora", "accel_gcn", 64, max_block_warps=warps).statistics
        for warps in (12, 4)
    )
    text = view.text(".av-story-answer")
    assert (
        f"{before.blocks} blocks of 12 warps became {after.blocks} blocks of 4 warps; "
        f"{before.warps - before.busy_warps} of {before.warps:,} warps had no work, now "
        f"{after.warps - after.busy_warps} of {after.warps:,} warps."
    ) in text
    assert f"steps in its longest warp ({after.longest} against {before.longest})" in text


@pytest.mark.long
def test_the_story_of_subwarps_says_what_a_step_is(saved):
    plan = accelviz.plan("cora", "lane_groups", 64)
    view = saved(explore("cora", "lane_groups"), story=True)
    text = view.text(".av-story-text")
    block = int(re.search(r"of block ([\d,]+)", text)[1].replace(",", ""))
    work = plan.workload(block, block + 1)
    steps = plan.hardware.steps_of_nonzeros(plan.hardware.of_workload(work))[0]
    nonzeros = work.nz_count.sum()
    assert steps.max() < nonzeros
    assert f"Warp 0 has {steps.max()} steps to do for {nonzeros} nonzeros: until it is done" in text
    caption = view.text(".av-story-caption")
    assert "In a step, each of its 4 subwarps takes one nonzero" in caption
    assert "Each nonzero is one step" not in caption
    # Maps of steps and of nonzeros have one legend.
    view = saved(explore("cora", "lane_groups", second="gnnadvisor"))
    view.tab("Every warp")
    view.page.locator("[data-filled=true]").wait_for()
    assert "steps or nonzeros and more." in view.text(".av-map-legend")
    labels = view.page.locator("[data-view=loads] text").all_text_contents()
    assert {"nonzeros of a subwarp or warp", "subwarps or warps"} <= set(labels)


def test_the_curtain_of_the_story_covers_each_bar_until_it_has_filled(browser, tmp_path):
    path = explore("cora").save(tmp_path / "page.html", trace=False)
    page = browser.new_page(viewport={"width": 848, "height": 900})
    page.clock.install()
    page.goto(path.as_uri())
    page.wait_for_selector("[data-drawn]")
    page.clock.run_for(800)
    curtain = page.locator(".av-curtain").bounding_box()
    bars = page.locator(".av-stage rect[data-m]:not([data-m=end])").evaluate_all(
        "all => all.map((bar) => { const { left, right, bottom } = bar.getBoundingClientRect();"
        " return [left, right, bottom]; })"
    )
    start, end = min(bar[0] for bar in bars), max(bar[1] for bar in bars)
    assert start < curtain["x"] < end
    assert curtain["y"] + curtain["height"] >= max(bar[2] for bar in bars)
    assert curtain["x"] + curtain["width"] >= end
    page.clock.run_for(3000)
    assert page.locator(".av-curtain").bounding_box()["width"] <= 2
    page.close()


def test_metadata_speaks_of_combined_warps_where_they_are(saved):
    """A row that a combined warp has is not said to be one warp's."""
    view = saved(explore("cora", row=1358))
    assert "6 combined warps share a row" in view.text(".av-of-told .av-below")
    bits = view.page.locator(".av-of-told svg").first
    assert "nonzeros of each28rows" in bits.text_content()
    bits.locator("[data-f='field:3:0']").first.hover()
    assert "How many nonzeros a combined warp takes" in view.text(".av-tip")
    view.choose("combined_warp", "false")
    assert "6 warps share a row" in view.text(".av-of-told .av-below")
    assert "nonzeros of a warp28rows" in bits.text_content()


#: Returns how many pixels at the right end of the tracks have the colour of idle time.
HATCHED = """() => {
  const canvas = document.querySelector(".av-tracks canvas"), wide = 2;
  const { data } = canvas.getContext("2d").getImageData(canvas.width - 8 - wide, 22, wide, 10000);
  let hatched = 0;
  for (let i = 0; i < data.length; i += 4)
    hatched += data[i + 3] > 60 && data[i] > 1.5 * data[i + 1] && data[i + 1] > data[i + 2];
  return hatched;
}"""


@pytest.mark.long
@needs_compiler
@pytest.mark.parametrize(("row", "idle"), [(1358, ""), (1914, "warps 2 to 11")])
def test_play_hatches_the_warps_that_idle_in_one_row(saved, row, idle):
    """Of warps that have equal work, the emulator ends one before the other: none idles."""
    view = saved(explore("cora", second=None, row=row), trace=True)
    view.tab("Play")
    assert (view.page.evaluate(HATCHED) > 0) == bool(idle)
    view.page.locator(".av-tracks").press("End")
    view.page.evaluate(FRAME)
    text = view.text(".av-request")
    assert ("idle until the block ends" in text) == bool(idle)
    assert idle in text
    assert ("All warps of this block have as much to do" in view.text(".av-turns")) == (not idle)
    view.tab("One row")
    assert view.page.locator(".av-of-block text", has_text="no work").count() == (10 if idle else 0)
    # Whatever was changed, a press leads back to what can be played.
    view.choose("first", "row_thread")
    view.choose("sorted", "yes")
    view.type("columns", 16)
    view.tab("Play")
    assert "cannot be traced" in view.text(".av-offer")
    view.page.locator("[data-control=replay]").click()
    view.page.evaluate(FRAME)
    assert "Request 0 (the last is" in view.text(".av-said")
    assert view.page.locator("[data-control=sorted]").inner_text().startswith("by degree")
