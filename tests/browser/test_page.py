"""The saved page, opened from a file: keyboard, accessibility, themes, widths, texts."""

import re
from decimal import Decimal
from xml.etree import ElementTree

import pytest
from matplotlib import image

import accelviz
from accelviz.analysis.lookup import find_row
from accelviz.measure.prediction import recorded_times
from accelviz.strategies import SDDMM, SPMM, find_strategy

from .lab import FRAME, artifacts
from .saved import AT_CONTROLS, KEEP_PICTURE

GROUPS = ("product", "balance", "numbers", "play")
#: Rules of axe-core: all of WCAG up to 2.2 AA. A width of 424 is 848 at a zoom of 200 %.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest.fixture(scope="module")
def opened(browser, tmp_path_factory):
    """One page for all tests; `complaints` collects errors and requests to the network."""
    path = tmp_path_factory.mktemp("saved") / "cora.html"
    accelviz.explore("cora").save(path, trace=False)
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.add_init_script(AT_CONTROLS)
    page.clock.install()
    page.complaints = []
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("console", lambda m: m.type == "error" and page.complaints.append(m.text))
    page.on("request", lambda r: r.url.startswith("http") and page.complaints.append(r.url))
    page.goto(path.as_uri())
    page.wait_for_selector(".av-panel[data-drawn]")
    yield page
    context.close()


@pytest.fixture
def page(opened):
    """The page after a reset at its top, 848 pixels wide; a test must not cause complaints."""
    set_appearance(opened, 848)
    if opened.locator(".av-tour").count():  # it would go on and set another row
        opened.locator(".av-tour [data-control=end]").click()
    opened.locator("[data-control=reset]").click()
    opened.locator("[data-group=product]").click()
    opened.evaluate("() => scrollTo(0, 0)")
    opened.evaluate(FRAME)
    yield opened
    assert opened.complaints == []


def set_appearance(page, width, scheme="light"):
    page.set_viewport_size({"width": width, "height": 1000})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.evaluate(FRAME)


def control(page, name):
    return page.locator(f"[data-control={name}]")


def tab(page, group):
    page.locator(f"[data-group={group}]").click()
    page.evaluate(FRAME)


def choose(page, name, option):
    control(page, name).select_option(option)
    page.evaluate(FRAME)


def type_into_field(page, name, text):
    page.locator(f"[data-control={name}] ~ input").click()
    page.keyboard.press("Control+a")
    page.keyboard.type(text)
    page.keyboard.press("Enter")
    page.evaluate(FRAME)


def headline(page):
    return page.locator(".av-headline").inner_text()


@pytest.fixture
def stopped_clock(page):
    """Changes of a setting at one time are one step of the history, however slow the machine is."""
    page.evaluate(
        "() => { const { now } = performance, time = performance.now();"
        " performance.now = Object.assign(() => time, { now }); }"
    )
    yield
    page.evaluate("() => { performance.now = performance.now.now; }")


def test_keys_reach_every_control(page, stopped_clock):
    tab(page, "numbers")
    waiting = page.locator("[data-statistic=idle_share] td").first
    type_into_field(page, "max_block_warps", "4")
    table = accelviz.sweep("cora", max_block_warps=[4, 6]).idle_share.map("{:.2%}".format)
    page.wait_for_function("t => document.body.innerText.includes(t)", arg=table[0])
    assert waiting.inner_text() == table[0]
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    page.wait_for_function("t => document.body.innerText.includes(t)", arg=table[1])
    page.keyboard.press("Control+z")
    page.wait_for_function("() => document.body.innerText.includes('12 x 32')")
    page.keyboard.press("Control+Shift+Z")
    page.wait_for_function("t => document.body.innerText.includes(t)", arg=table[1])
    control(page, "reset").click()
    page.wait_for_function("() => document.body.innerText.includes('12 x 32')")


def test_tab_reaches_everything_and_leaves(page):
    focusable = page.evaluate(
        "() => [...document.querySelectorAll('.av-panel :is(button, input, select)')].filter("
        "(e) => !e.disabled && e.tabIndex >= 0 && e.getClientRects().length).length"
    )
    seen = []
    for _ in range(focusable + 20):
        page.keyboard.press("Tab")
        now = page.evaluate(
            "() => { const e = document.activeElement; if (e === document.body) return null;"
            " e.dataset.walked ??= Math.random(); return e.dataset.walked; }"
        )
        if now in seen:
            break
        if now is not None:
            seen.append(now)
    assert len(seen) >= focusable


@pytest.mark.parametrize(("width", "stay"), [(848, True), (424, False)])
def test_controls_stay_visible_beside_the_pictures(page, width, stay):
    page.set_viewport_size({"width": width, "height": 650})
    type_into_field(page, "max_block_warps", "4")
    slider, why = control(page, "max_block_warps"), page.locator(".av-fig-block")
    why.evaluate("figure => figure.scrollIntoView({ block: 'end' })")
    page.evaluate(FRAME)
    before = why.inner_html()
    top = slider.bounding_box()["y"]
    assert (0 <= top < why.bounding_box()["y"]) == stay
    if stay:
        slider.focus()
        page.keyboard.press("ArrowLeft")
        page.evaluate(FRAME)
        assert slider.bounding_box()["y"] == top
        assert why.inner_html() != before
        # The controls do not cover the element that Tab reaches.
        type_into_field(page, "max_warp_nzs", "8")
        strip = page.locator(".av-of-strip .av-draw")
        page.locator(".av-blocks button").first.focus()
        strip.evaluate("strip => scrollBy(0, strip.getBoundingClientRect().top - 90)")
        for _ in range(5):  # over pictures, which are in reach of the keys
            page.keyboard.press("Shift+Tab")
            if strip.evaluate("strip => strip === document.activeElement"):
                break
        assert strip.evaluate("strip => strip === document.activeElement")
        controls = page.locator(".av-controls").bounding_box()
        page.wait_for_function(
            "y => document.activeElement.getBoundingClientRect().top >= y",
            arg=controls["y"] + controls["height"] - 1,
        )
    tab(page, "play")  # has its own sticky controls
    assert page.locator(".av-controls").evaluate("e => getComputedStyle(e).position") == "static"


#: Returns the texts of the sentence and of its copy, if they are on the screen and not covered.
VISIBLE_SENTENCES = """() =>
[...document.querySelectorAll(".av-answer strong, .av-copied")].filter((line) => {
  const { left, top, bottom } = line.getBoundingClientRect();
  line.style.pointerEvents = "auto";
  const isVisible = [top + 1, bottom - 1].every((y) =>
    line.contains(document.elementFromPoint(left + 12, y)));
  line.style.pointerEvents = "";
  return isVisible;
}).map((line) => line.textContent)"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("width", "height", "from_top", "copied"),
    [
        (480, 480, 0, True),
        (848, 480, 0, True),
        (424, 500, 0, True),  # 848 at a zoom of 200 %
        (480, 640, 60, True),
        (848, 650, 900, True),  # with sticky controls
        (1280, 1000, 0, False),
    ],
)
def test_the_sentence_or_its_copy_is_visible_while_controls_are_used(
    page, width, height, from_top, copied
):
    page.set_viewport_size({"width": width, "height": height})
    page.mouse.move(1, 1)
    line, copy, was_copied = page.locator(".av-answer strong"), page.locator(".av-copied"), False

    def is_visible_once():
        page.evaluate(FRAME)  # on a busy machine the key's changes take several frames
        return page.evaluate(VISIBLE_SENTENCES) == [line.text_content()]

    for name in ("row", "block", "max_block_warps", "max_warp_nzs"):
        for spot in (control(page, name), page.locator(f"[data-control={name}] ~ input")):
            spot.focus()
            page.evaluate("y => scrollTo(0, y)", from_top)
            box = spot.bounding_box()
            if not 0 <= box["y"] <= height - box["height"]:  # the next key would scroll to it
                spot.evaluate("control => control.scrollIntoView({ block: 'end' })")
            page.keyboard.press("ArrowDown")
            assert any(is_visible_once() for _ in range(10)), name
            was_copied |= copy.is_visible()
            # The copy does not cover the control.
            spot.click(trial=True)
            box = spot.bounding_box()
            if copy.is_visible():
                message = copy.bounding_box()
                above, below = box["y"] - message["y"] - message["height"], message["y"] - box["y"]
                assert above >= 0 or below >= box["height"], name
    assert was_copied == copied
    # There is no copy while the line itself is visible, nor in other groups.
    line.evaluate("line => line.scrollIntoView({ block: 'center' })")
    copy.wait_for(state="hidden")
    tab(page, "numbers")
    control(page, "row").focus()
    copy.wait_for(state="hidden")


@pytest.mark.long
@pytest.mark.parametrize("width", [760, 848, 1100, 1280, 1700])
def test_no_strategy_moves_what_is_below_the_controls(page, width):
    set_appearance(page, width)
    first, tabs = control(page, "first"), page.locator(".av-tabs")
    counts, places = set(), set()
    for name in ("graphblast", "accel_gcn", "lane_groups", "window_tiles", "cusparse"):
        first.select_option(name)
        page.evaluate(FRAME)
        counts.add(page.locator(".av-parameters > *").count())
        places.add(tabs.bounding_box()["y"])
    assert max(counts) > 6 > min(counts)
    assert len(places) == 1


def test_comparing_with_nothing_moves_no_control(page):
    second = control(page, "second")
    before = second.bounding_box()["y"]
    second.select_option("")
    page.evaluate(FRAME)
    assert second.bounding_box()["y"] == before
    assert "nothing to compare with" in headline(page)


def test_a_strategy_that_needs_a_kernel_has_a_message(page):
    first, sentence = control(page, "first"), page.locator(".av-message")
    choose(page, "first", "windows")
    sentence.filter(has_text="No kernel answers here").wait_for()
    assert "Python lists which of its warps does what" in page.locator(".av-answer").inner_text()
    assert "its warps are not listed here" in headline(page)
    choose(page, "second", "")
    tab(page, "balance")
    note = page.locator("[data-view=map] > .av-view > .av-note")
    assert note.count() == 1
    assert note.is_hidden()  # no colours to explain
    # The message disappears with the next strategy.
    first.select_option("graphblast")
    page.evaluate(FRAME)
    assert sentence.is_hidden()
    assert note.is_visible()


def test_the_sentence_of_a_row_stays_visible_beside_its_pictures(page):
    page.set_viewport_size({"width": 848, "height": 800})
    sentence, row = page.locator(".av-answer strong"), control(page, "row")
    figure = page.locator(".av-fig-read")
    figure.evaluate("figure => figure.scrollIntoView({ block: 'end' })")
    page.evaluate(FRAME)
    before, box = sentence.inner_text(), sentence.bounding_box()
    controls = page.locator(".av-controls").bounding_box()
    assert controls["y"] >= 0
    assert box["y"] == pytest.approx(controls["y"] + controls["height"], abs=1)
    row.focus()
    page.keyboard.press("End")
    page.evaluate(FRAME)
    assert sentence.inner_text() != before
    assert sentence.bounding_box()["y"] == box["y"]


def test_every_control_and_picture_has_a_name(page):
    for group in GROUPS:
        tab(page, group)
        nameless = page.evaluate(
            """() => [...document.querySelectorAll(
              '.av-panel :is(input, select, button, svg[role], canvas[role])')].filter((e) =>
              e.getClientRects().length && !e.getAttribute('aria-label') && !e.textContent.trim() &&
              ![...(e.labels ?? [])].some((l) => l.textContent.trim()))
              .map((e) => e.outerHTML)"""
        )
        assert nameless == [], group
        # JupyterLab's shortcuts are disabled only for elements with this attribute.
        taken = page.evaluate(
            """() => [...document.querySelectorAll(
              '.av-panel, .av-panel :is(input, select, button, [tabindex])')].filter((e) =>
              !e.dataset.lmSuppressShortcuts).map((e) => e.outerHTML.slice(0, 120))"""
        )
        assert taken == [], group


@pytest.mark.long
@pytest.mark.parametrize(("turn", "width"), [*enumerate([424, 848, 1180, 1440])])
def test_nothing_is_cut_off_at_any_width(page, turn, width):
    """Groups are in turn light and dark, and at the next width the other way round."""
    from axe_playwright_python.sync_playwright import Axe  # a test without it is skipped

    for number, group in enumerate(("story", *(f"step {i}" for i in range(1, 5)), *GROUPS)):
        scheme = ("light", "dark")[(turn + number) % 2]
        set_appearance(page, width, scheme)
        page.locator(f"[data-group='{group}'], [data-control='{group}']").first.click()
        page.evaluate(FRAME)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, group
        small = page.evaluate(
            """() => [...document.querySelectorAll('.av-panel *')].filter((e) =>
              [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) &&
              e.getClientRects().length && parseFloat(getComputedStyle(e).fontSize) < 11)
              .map((e) => e.outerHTML.slice(0, 120))"""
        )
        assert small == [], group
        report = Axe().run(page, options={"runOnly": RULES, "resultTypes": ["violations"]})
        assert report.response["violations"] == [], group
        page.screenshot(path=artifacts() / f"page-{group}-{width}-{scheme}.png", full_page=True)


@pytest.mark.parametrize("width", [848, 1700])
def test_names_are_not_broken_and_no_line_crosses_them(page, width):
    set_appearance(page, width)
    tab(page, "numbers")
    torn = page.evaluate(
        """() => [...document.querySelectorAll(".av-statistics th:has(.av-mark)")].filter((e) => {
          const node = e.lastChild, range = document.createRange(), tops = new Set();
          const start = node.data.length - node.data.trimStart().length;
          const space = node.data.indexOf(" ", start);
          range.setStart(node, start);
          range.setEnd(node, space < 0 ? node.data.length : space);
          for (const box of range.getClientRects()) tops.add(Math.round(box.bottom / 6));
          return tops.size > 1; }).map((e) => e.innerText)"""
    )
    assert torn == []
    tab(page, "product")
    # Later marks cover earlier ones: a plate must lie between each line and a text over it.
    covered = page.evaluate(
        """() => { const all = [...document.querySelectorAll(".av-of-order svg > *")];
        const lines = all.filter((e) => e.matches(".av-way"));
        const meets = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom &&
          b.top < a.bottom;
        return all.filter((e) => e.matches("text")).map((text) => {
          const box = text.getBoundingClientRect(), at = all.indexOf(text);
          const over = lines.filter((line) => meets(line.getBoundingClientRect(), box));
          return over.every((line) => all.indexOf(line) < at &&
            all.slice(all.indexOf(line), at).some((e) => e.matches(".av-plate") &&
              meets(e.getBoundingClientRect(), box))); }); }"""
    )
    assert len(covered) >= 4
    assert all(covered)
    # The followed row's bar does not cover its name.
    after = page.evaluate(
        """() => { const all = [...document.querySelectorAll(".av-of-block svg > *")];
        return all.filter((e) => e.matches("text.av-on")).map((text) =>
          all.slice(all.indexOf(text)).filter((e) => e.matches("rect.av-row")).some((e) => {
            const [a, b] = [e, text].map((element) => element.getBoundingClientRect());
            return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
          })); }"""
    )
    assert after
    assert not any(after)


def long_names():
    settings = {"group_nzs": 64, "short_nzs": 8, "stage": False, "storage": "bfloat16"}
    return accelviz.explore(
        "cora", "lane_groups", second="lane_groups", pinned=settings, **settings
    )


def test_on_a_phone_a_page_with_a_trace_and_long_names_scrolls_downwards_only(saved):
    view = saved(long_names(), trace=True, viewport={"width": 320, "height": 780})
    view.type("follow row", 0)  # of another block than the traced one
    for group in ("story", *GROUPS):
        view.page.locator(f"[data-group={group}]").click()
        view.page.evaluate(FRAME)
        assert view.page.evaluate("document.documentElement.scrollWidth") <= 320, group
    assert view.page.locator("[data-control=replay]").is_visible()


def test_on_a_phone_rankings_and_the_equation_of_three_operands_are_whole(saved):
    view = saved(accelviz.explore("cora"), viewport={"width": 360, "height": 780})
    tab(view.page, "numbers")
    wider = "(boxes) => boxes.filter((box) => box.scrollWidth > box.clientWidth).length"
    assert view.page.locator(".av-scroll:has(.av-fastest)").evaluate_all(wider) == 0
    explorer = accelviz.explore("cora", operation="sddmm")
    view = saved(explorer, viewport={"width": 360, "height": 780})
    tab(view.page, "product")
    equation = view.page.locator(".av-fig-equation svg")
    overhang = "(svg) => svg.getBBox().x + svg.getBBox().width - svg.viewBox.baseVal.width"
    assert equation.evaluate(overhang) <= 0


def test_long_names_leave_the_numbers_whole(browser, tmp_path):
    explorer = long_names()
    page = browser.new_page()
    page.add_init_script(AT_CONTROLS)
    page.goto(explorer.save(tmp_path / "long.html", trace=False).as_uri())
    tab(page, "numbers")
    for width in (424, 480, 848, 1000):
        set_appearance(page, width)
        box = page.locator("[data-view=statistics] .av-scroll")
        assert box.evaluate("box => box.scrollWidth - box.clientWidth") == 0, width
    assert "storage=bfloat16" in box.locator("th").first.inner_text().replace("\n", "")
    page.close()


def test_a_pinned_setting_is_part_of_the_copied_code(page):
    control(page, "pin").click()
    control(page, "max_block_warps").focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("() => document.body.innerText.includes('11 x 32')")
    assert "accel_gcn 12 x 32" in headline(page)
    control(page, "code").click()
    message = page.locator(".av-message", has_text="max_block_warps=11")
    code = message.inner_text().removeprefix("Copied: ")
    panel = eval(code, {"accelviz": accelviz})
    assert panel.settings["parameters"] == {"max_block_warps": 11}
    assert panel.settings["second"] == "accel_gcn"


def test_values_chosen_by_a_rule_are_shown(page):
    choose(page, "first", "gnnadvisor")
    for n_cols in ("64", "16"):
        type_into_field(page, "n_cols", n_cols)
        chosen = find_strategy("gnnadvisor").plan(accelviz.load_graph("cora"), int(n_cols))
        for name in ("dw", "block_warps"):
            slider = page.locator(".av-slider", has=control(page, name))
            value = f"by rule: {chosen.parameters[name]}"
            assert slider.locator("output").inner_text() == value
            assert slider.locator("[type=range]").get_attribute("aria-valuetext") == value
    # A rule that replaces a default number is written as None, and named in the comment.
    control(page, "ngs").focus()
    page.keyboard.press("Home")
    page.wait_for_function("() => document.body.innerText.includes('ngs by rule: 1024')")
    control(page, "code").click()
    message = page.locator(".av-message", has_text="ngs=None")
    code = message.inner_text().removeprefix("Copied: ")
    call, comment = code.split("  # by rule: ")
    assert comment == "ngs=1024, dw=16, block_warps=4"
    assert eval(call, {"accelviz": accelviz}).settings["parameters"] == {"ngs": None}


def test_copied_code_has_the_operation_and_a_later_block(browser, tmp_path):
    strategy = find_strategy("lane_groups", SDDMM)
    blocks = find_row(strategy.plan(accelviz.load_graph("cora"), 256), 1358).blocks
    assert blocks[-1] > blocks[0]
    settings = {"n_cols": 256, "row": 1358, "block": blocks[-1]}
    path = accelviz.explore("cora", strategy, **settings).save(tmp_path / "sddmm.html", trace=False)
    page = browser.new_page()
    page.add_init_script(AT_CONTROLS)
    page.goto(path.as_uri())
    page.locator(".av-panel[data-drawn]").wait_for()
    control(page, "code").click()
    sentence = page.locator(".av-message:not([hidden])").inner_text()
    names = {"accelviz": accelviz}
    imported, call = re.sub("^[^:]*: ", "", sentence).splitlines()
    exec(imported, names)
    panel = eval(call, names)
    assert panel.operation == SDDMM
    assert panel.settings["first"] == "lane_groups"
    for name, value in {"nCols": 256, "row": 1358, "block": blocks[-1]}.items():
        assert panel.settings[name] == value
    page.close()


def test_times_are_those_that_were_recorded(page):
    tab(page, "numbers")
    for strategy in ("lane_groups", "gnnadvisor", "row_thread"):
        choose(page, "first", strategy)
        page.wait_for_function(
            "s => document.querySelector('.av-headline').innerText.includes(s)", arg=strategy
        )
        page.locator("[data-view=times] svg", has_text="first, recorded").wait_for()
    # A curve has the times of one run, with quartiles; between them nothing is said.
    choose(page, "first", "accel_gcn")
    times = recorded_times(accelviz.load_graph("cora"), SPMM)
    times = times[(times["columns"] == 64) & (times["strategy"] == "accel_gcn")]
    one_run = times[times["run"] == times["run"].iloc[0]]
    published = {"max_warp_nzs": "32", "partition": "block", "combined_warp": "True"}
    on_curve = [published.items() <= setting.items() for setting in one_run["setting"]]
    points = page.locator("[data-view=times] rect[data-say^=max_block_warps]").evaluate_all(
        "all => all.map((point) => point.dataset.say)"
    )
    expected = [
        f"max_block_warps {setting['max_block_warps']}: {time:,.1f}" + " µs"
        for setting, time in one_run[on_curve][["setting", "median_us"]].to_numpy()
    ]
    assert [point.split(",")[0] for point in points] == expected
    # Each point and both bars have their quartiles.
    assert page.locator("[data-view=times] path.av-spread").count() >= len(expected)
    launch = one_run["launch_us"].iloc[0]
    assert (one_run["median_us"] > launch).all()
    assert "an empty launch" in page.locator("[data-view=times]").inner_text()


def written(time):
    """A time in microseconds as the page writes it."""
    return f"{time:,.1f}" + " µs" if time < 99.95 else f"{time:,.0f} µs"


def test_time_stands_before_the_share_of_waiting(page):
    """The idle share alone misleads: GNNAdvisor idles more than Accel-GCN and is faster here."""
    times = recorded_times(accelviz.load_graph("cora"), SPMM)
    times = times[times["columns"] == 64]
    slow = times[(times["strategy"] == "row_thread")]["median_us"].iloc[0]
    fast = times[times["strategy"] == "gnnadvisor"]["median_us"].iloc[0]
    tab(page, "numbers")
    choose(page, "second", "gnnadvisor")
    choose(page, "first", "row_thread")
    lines = page.locator(".av-of-side").all_inner_texts()
    for line, name, time in zip(lines, ("row_thread", "gnnadvisor"), (slow, fast), strict=True):
        assert f"{name}: {written(time)} on H200" in line
        assert line.endswith(" % of warp time idle")
    cells = page.locator(".av-statistics tbody tr").first.locator("td").all_inner_texts()
    by = written(round(slow, 1) - round(fast, 1))
    assert cells == [written(slow), written(fast), f"+{by} ▼"]
    message = page.locator("[data-view=times] .av-note").last.inner_text()
    assert f"The first took {slow / fast:.2f} times as long" in message
    # Nothing is said of the time of a setting that was not measured.
    type_into_field(page, "block_warps", "7")
    cells = page.locator(".av-statistics tbody tr").first.locator("td").all_inner_texts()
    assert (cells[0], cells[2]) == ("–", "")
    sentence = page.locator(".av-of-side").first
    assert re.search(r": no time recorded, [\d.]+ % of warp time idle", sentence.inner_text())
    sentence.get_by_text("no time recorded").hover()
    assert "This setting was not measured" in page.locator(".av-tip").inner_text()
    assert page.locator("[data-view=times] text", has_text="first: not recorded").count() == 1
    page.mouse.move(1, 1)


def test_the_headline_shows_the_changes_of_time_and_idle_share(page):
    """Here the idle share falls and the time rises."""
    type_into_field(page, "max_block_warps", "2")
    sentence = page.locator(".av-of-side").first.inner_text()
    shares = accelviz.sweep("cora", max_block_warps=[12, 2]).idle_share
    times = recorded_times(accelviz.load_graph("cora"), SPMM).query("columns == 64")
    before, now = (
        times[[s.get("max_block_warps") == value and s["partition"] == "block"
        and s["max_warp_nzs"] == "32" and s["combined_warp"] == "True"
        for s in times["setting"]]]["median_us"].iloc[0]
        for value in ("12", "2")
    )  # fmt: skip
    assert now > before
    assert f"{now:.1f} µs on H200" in sentence
    rounded = [f"{100 * share:.1f} %" for share in shares]
    assert sentence.endswith(
        f"{rounded[1]} of warp time idle (before: {before:.1f} µs, {rounded[0]})"
    )
    control(page, "row").focus()
    page.keyboard.press("ArrowRight")
    page.evaluate(FRAME)
    assert "before" not in page.locator(".av-of-side").first.inner_text()


def read_number(text):
    """The first number in a text, as an exact decimal."""
    match = re.search(r"([−+]?)([\d,]+(?:\.\d+)?)([kM]?)", text)
    sign, size = -1 if match[1] == "−" else 1, {"": 1, "k": 10**3, "M": 10**6}[match[3]]
    return sign * Decimal(match[2].replace(",", "")) * size


def test_differences_are_those_of_the_displayed_numbers(page):
    tab(page, "numbers")
    control(page, "pin").click()
    first, seen = page.locator(".av-of-side").first, set()

    def headline_numbers():
        matches = (re.search(rf"[\d.]+ {unit}", first.inner_text()) for unit in ("µs", "%"))
        return [read_number(match[0]) if match else None for match in matches]

    numbers_before = headline_numbers()
    control(page, "max_block_warps").focus()
    for _ in range(10):
        page.clock.fast_forward(1000)  # makes each key a separate step of the history
        page.keyboard.press("ArrowLeft")
        page.evaluate(FRAME)
        # In the headline: the numbers before the key, if they were others.
        note = re.search(r"\(before: (.*)\)", first.inner_text())
        for before, now, unit in zip(numbers_before, headline_numbers(), ("µs", "%"), strict=True):
            displayed = note and re.search(rf"([\d.]+) {unit}", note[1])
            changed = None not in (now, before) and now != before
            assert (read_number(displayed[1]) if displayed else None) == (
                before if changed else None
            )
            seen.add((unit, bool(displayed)))
        numbers_before = headline_numbers()
        # In the table: the difference to the pinned setting.
        for line in page.locator(".av-statistics tbody tr").all():
            first_text, second_text, by = line.locator("td").all_inner_texts()
            if first_text == "–":  # no time recorded
                assert by == ""
                continue
            difference = read_number(first_text) - read_number(second_text)
            rounded = abs(read_number(by) - difference) * 200 <= abs(difference) * ("k" in by)
            assert read_number(by) == difference or rounded, (line.inner_text(), by)
    assert {("µs", False), ("%", True)} <= seen


def test_the_two_settings_are_not_named_as_matrices(page):
    for group in GROUPS[:3]:
        tab(page, group)
        marks = page.locator(".av-mark").all_inner_texts()
        assert marks
        assert set(marks) == {"first", "second"}


@pytest.mark.long
def test_a_number_is_typed_with_real_keys(browser, tmp_path):
    explorer = accelviz.explore("pubmed", "graphblast", block_warps=1)
    path = explorer.save(tmp_path / "pubmed.html", trace=False)
    page = browser.new_page()
    page.add_init_script(AT_CONTROLS)
    page.clock.install()
    page.goto(path.as_uri())
    page.wait_for_selector(".av-panel[data-drawn]")
    for name in ("row", "block"):
        type_into(page, name, 19716)
    page.close()


def type_into(page, name, most):
    field, undo = page.locator(f"[data-control={name}] ~ input"), control(page, "undo")
    before = field.input_value()
    assert undo.is_disabled()
    field.click()
    page.keyboard.press("Control+a")
    for key in "4711":
        page.keyboard.press(key)
        page.set_viewport_size({"width": 900 + int(key), "height": 900})  # a repaint meanwhile
        page.evaluate(FRAME)
    assert field.input_value() == "4711"
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('.av-answer').innerText.includes('4,711')")
    page.clock.fast_forward(800)  # a change now would be another step of the history
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert not field.evaluate("field => field === document.activeElement")
    assert field.input_value() == "4711"
    undo.click()
    page.evaluate(FRAME)
    assert field.input_value() == before
    assert undo.is_disabled()
    field.fill("99999999")
    field.press("Enter")
    page.evaluate(FRAME)
    assert field.input_value() == str(most)
    undo.click()
    page.evaluate(FRAME)


def test_a_confirmation_disappears(page):
    control(page, "code").click()
    page.locator(".av-message.av-gentle", has_text="Copied").wait_for()
    page.clock.fast_forward(1000)
    page.evaluate(FRAME)
    assert page.locator(".av-message").is_visible()
    page.clock.fast_forward(4000)
    page.evaluate(FRAME)
    assert page.locator(".av-message").is_hidden()


@pytest.mark.long
@pytest.mark.parametrize("width", [848, 1700])
def test_controls_and_tabs_keep_their_places(page, width):
    set_appearance(page, width)

    def places():
        page.evaluate(FRAME)
        names = (".av-controls", "[data-control=row]", "[data-control=block]", "[data-group=play]")
        boxes = [page.locator(name).bounding_box() for name in names]
        top = boxes[0]["y"]  # the height of the headline above varies
        return [(box["x"], box["y"] - top) for box in boxes[1:]]

    before = places()
    for strategy in ("gnnadvisor", "row_thread", "merge_path", "accel_gcn"):
        choose(page, "first", strategy)
        assert places() == before, strategy
    for group in ("play", "product"):
        tab(page, group)
        assert places() == before, group
    top = page.locator(".av-controls").bounding_box()
    control(page, "code").click()
    page.locator(".av-message.av-gentle").wait_for()
    assert places() == before
    assert page.locator(".av-controls").bounding_box() == top
    assert page.locator(".av-message").bounding_box()["y"] < 1000  # on the screen


@pytest.mark.parametrize(("width", "height"), [(480, 700), (848, 620)])
def test_the_tour_shows_the_elements_it_explains(page, width, height):
    page.set_viewport_size({"width": width, "height": height})
    control(page, "tour").click()
    seen, places = 0, set()
    while page.locator(".av-tour").count():
        page.locator(".av-toured").wait_for()
        page.evaluate(FRAME)
        box = page.locator(".av-toured").bounding_box()
        assert box["y"] < 600, page.locator(".av-tour").inner_text()
        assert box["y"] + box["height"] > 0, page.locator(".av-tour").inner_text()
        assert box["height"] > 0
        covered = page.evaluate(
            """() => { const box = document.querySelector(".av-toured").getBoundingClientRect();
            const top = document.elementFromPoint(box.x + 5, Math.max(box.y, 0) + 5);
            return Boolean(top.closest(".av-controls")) !==
              Boolean(document.querySelector(".av-controls .av-toured")); }"""
        )
        assert not covered, page.locator(".av-tour").inner_text()
        seen += 1
        button = page.locator(".av-tour [data-control=next]")
        box_of_button = button.bounding_box()
        places.add(tuple(round(box_of_button[side]) for side in ("x", "y", "width", "height")))
        button.click()
    assert seen >= 7
    assert len(places) == 1  # the button keeps its place


def test_the_tour_goes_on_when_its_action_was_done(page):
    page.set_viewport_size({"width": 1180, "height": 900})
    box, stop = page.locator(".av-tour"), page.locator(".av-tour b").first

    def done(result):
        page.locator(".av-tour [role=status] b").wait_for()  # the tick
        assert re.search(result, box.inner_text()), box.inner_text()
        number = int(stop.inner_text().split()[0])
        page.clock.fast_forward(7000)
        if number < 7:
            page.wait_for_function(
                "text => document.querySelector('.av-tour b').textContent.startsWith(text)",
                arg=str(number + 1),
            )
            page.evaluate(FRAME)

    control(page, "tour").click()
    page.locator("[data-control=row].av-toured").wait_for()
    control(page, "row").press("ArrowLeft")
    graph = accelviz.load_graph("cora")
    done(f"Row 1,357 has {graph.degrees[1357]} nonzero")
    page.locator(".av-of-block text[data-f*='warp:']").first.hover()
    done(r"✓\s+Warp \d+ of block")
    control(page, "max_block_warps").press("ArrowLeft")
    before, after = accelviz.sweep("cora", max_block_warps=[12, 11]).idle_share.map("{:.1%}".format)
    done(f"The idle share went from {before} to {after}".replace("%", " %"))
    control(page, "worst").click()
    done(r"✓\s+Block \d+ idles most of \d+ blocks, together with \d+ others: for ")
    control(page, "pin").click()
    done("Both settings are the same now")
    control(page, "max_warp_nzs").press("ArrowRight")
    done("The idle share went from ")
    control(page, "fastest").click()
    done("The idle share went from ")
    assert box.count() == 0


def test_the_tour_counts_what_is_done_before_it_is_drawn(page):
    page.evaluate("""() => {
        document.querySelector("[data-control=tour]").click();
        const row = document.querySelector("[data-control=row]");
        row.value = Number(row.value) - 1;
        row.dispatchEvent(new Event("input", { bubbles: true }));
    }""")
    page.locator(".av-tour [role=status] b").wait_for()  # the tick


def test_a_tour_that_begins_anew_is_not_led_on_by_the_earlier_one(page):
    control(page, "tour").click()
    page.locator("[data-control=row].av-toured").wait_for()
    control(page, "row").press("ArrowLeft")
    page.locator(".av-tour [role=status] b").wait_for()  # the tick
    control(page, "tour").click()
    row = control(page, "row").input_value()
    page.clock.fast_forward(7000)
    page.evaluate(FRAME)
    assert page.locator(".av-tour b").first.inner_text().startswith("1 of")
    assert control(page, "row").input_value() == row


def test_without_scripts_the_page_has_the_idle_shares(browser, tmp_path):
    explorer = accelviz.explore("cora", first="gnnadvisor", second="accel_gcn")
    page = browser.new_page(java_script_enabled=False)
    page.goto(explorer.save(tmp_path / "mute.html", trace=False).as_uri())
    text = page.locator("main").inner_text()
    page.close()
    share = accelviz.sweep("cora", "gnnadvisor").iloc[0].idle_share
    assert "cora, 2,708 rows, 10,556 nonzeros." in text
    assert f"idle: gnnadvisor: {share:.1%}, accel_gcn: " in text


@pytest.mark.long
@pytest.mark.parametrize("group", GROUPS[:3])
def test_a_saved_picture_has_a_heading_and_no_controls(page, group):
    choose(page, "first", "merge_path")
    type_into_field(page, "items_per_thread", "1")
    tab(page, group)
    page.evaluate(KEEP_PICTURE)
    with page.expect_download() as download:
        control(page, "png").click()
    assert download.value.suggested_filename == "cora.png"
    download.value.save_as(artifacts() / f"saved-{group}.png")
    pixels = image.imread(artifacts() / f"saved-{group}.png")
    assert pixels.shape[1] == 2 * page.locator(".av-panel").bounding_box()["width"]
    assert (pixels != pixels[2, 2]).any(axis=2).mean() > 0.02  # more than the background
    picture = ElementTree.fromstring(page.evaluate("window.picture"))
    assert not [mark for mark in picture.iter() if mark.tag.endswith(("}button", "}input"))]
    text = " ".join("".join(picture.itertext()).split())
    for sentence in (
        "cora, 2,708 rows",
        "first: merge_path (items_per_thread=1",
        "second: accel_gcn (",
    ):
        assert sentence in text
    # Its lines say how long and how idle, as the headline does.
    for line in page.locator(".av-of-side").all_inner_texts():
        for fact in re.findall(r"[\d.,]+ (?:µs|%)", re.sub(r"\(.*?\)", "", line)):
            assert fact in text
    # A canvas has the size and the background that it has in the page.
    canvases = page.locator(".av-group:not([hidden]) canvas").evaluate_all(
        """all => all.map((canvas) => { const look = getComputedStyle(canvas);
          return [look.width, look.height, look.backgroundColor]; })"""
    )
    images = [mark.get("style") for mark in picture.iter() if mark.tag.endswith("}img")]
    assert len(images) == len(canvases) == (4 if group == "balance" else 0)
    for style, (width, height, background) in zip(images, canvases, strict=True):
        assert f"width: {width}" in style
        assert f"height: {height}" in style
        assert background in style
    if group == "product":
        why = page.locator(".av-answer strong").inner_text()
        assert why in text
        assert re.search(r"Row 1,358 is in blocks [\d,]+ to [\d,]+\.", text)
