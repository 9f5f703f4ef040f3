"""The explorer and the question in a real JupyterLab: what a hand on the keyboard sees.

Latencies are printed, not asserted: `python -m pytest -m large -k latency` of this
file on a quiet machine.
"""

import re
import statistics
from pathlib import Path

import pytest

import accelviz

OPEN = "import accelviz\npanel = accelviz.explore({arguments})\npanel"
IDLE = "return !panel.node.querySelector('.av-panel.av-busy')"


class Panel:
    """The panel of a notebook's last cell, as a reader of the page handles it."""

    def __init__(self, notebook, which=".av-panel"):
        self.notebook, self.page = notebook, notebook.page
        self.box = self.page.locator(f".jp-NotebookPanel:not(.lm-mod-hidden) {which}").first
        self.box.wait_for()

    def control(self, name):
        return self.box.locator(f"[data-control={name}]").first

    def view(self, name):
        return self.box.locator(f"[data-view={name}]")

    def settle(self):
        """Wait until the last request is answered."""
        self.notebook.wait(IDLE)

    def press(self, name, *keys):
        self.control(name).focus()
        for key in keys:
            self.page.keyboard.press(key)
        self.settle()

    def choose(self, name, value):
        self.control(name).select_option(value)
        self.settle()

    def statistics(self):
        """The numbers of the table, by name: of the first and of the second strategy."""
        rows = self.view("statistics").locator("tbody tr").all()
        cells = [[cell.inner_text() for cell in row.locator("th, td").all()] for row in rows]
        return {name: (first, second) for name, first, _, second, _ in cells}

    def run_cell(self, number):
        self.notebook.ask(f"panel.content.activeCellIndex = {number}")
        self.notebook.command("notebook:run-cell")
        self.notebook.wait_idle()

    def message(self):
        return self.box.locator(".av-message").inner_text()


@pytest.fixture(scope="module")
def living():
    """The notebook that tests of this module share, in a list, while its kernel lives."""
    return []


@pytest.fixture
def panel_of(open_for_all, living):
    def open_(*cells):
        """Run the first cell; those after it are for the test to run."""
        if not living:
            living.append(open_for_all())
        notebook = living[0]
        notebook.fill(*cells)
        notebook.command("notebook:run-cell")
        notebook.wait_idle()
        assert notebook.cell_errors() == []
        return Panel(notebook)

    return open_


@pytest.fixture
def explorer(panel_of):
    return lambda arguments="'cora'", *later: panel_of(OPEN.format(arguments=arguments), *later)


def quiet(panel):
    assert panel.notebook.cell_errors() == []
    assert panel.notebook.console_errors() == []
    assert panel.notebook.outside == []


def shows(panel, **settings):
    """The table on the screen has the numbers of `sweep`."""
    wanted = accelviz.sweep("cora", **settings).iloc[0]
    shown = panel.statistics()
    assert shown["blocks"][0] == f"{wanted.blocks:,.0f}"
    assert shown["warps with work"][0] == f"{wanted.busy_warps:,.0f}"
    assert shown["share of time waiting"][0] == f"{wanted.idle_share:.2%}"
    assert shown["bytes of metadata"][0] == f"{wanted.metadata_bytes:,.0f}"
    assert shown["atomics in shared"][0] == f"{wanted.shared_atomics:,.0f}"


def test_each_slider_moves_the_numbers_to_those_of_sweep(explorer):
    panel = explorer()
    shows(panel)
    panel.press("max_block_warps", "ArrowLeft", "ArrowLeft")
    shows(panel, max_block_warps=10)
    panel.press("max_warp_nzs", "ArrowRight")
    shows(panel, max_block_warps=10, max_warp_nzs=48)
    panel.press("n_cols", "ArrowRight")
    shows(panel, max_block_warps=10, max_warp_nzs=48, n_cols=80)
    assert panel.control("max_block_warps").input_value() == "9"  # the tenth of its values
    quiet(panel)
    picture = panel.notebook.screenshot("sliders", panel.box)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_burst_of_keys_ends_on_the_right_picture(explorer):
    panel = explorer("'cora', max_block_warps=4")
    panel.control("max_block_warps").focus()
    for _ in range(25):
        panel.page.keyboard.press("ArrowRight")
    panel.settle()
    shows(panel, max_block_warps=29)
    assert "accel_gcn 29 x 32" in panel.box.locator(".av-title").inner_text()
    quiet(panel)


def test_rows_and_blocks_are_linked_by_hover_and_click(explorer):
    panel = explorer()
    plan = accelviz.plan("cora")
    # A click in the middle of the map chooses a block there, and its first row with it.
    panel.view("map").locator("[data-scale]").click()
    panel.settle()
    block = int(panel.box.locator("[data-control=block] ~ input").input_value())
    assert 100 < block < 150
    work = plan.workload(block, block + 1)
    bars = panel.view("block").locator("[data-pick]")
    assert bars.count() == len(work)
    bars.nth(3).hover()
    row = int(plan.output_rows[work.row[3]])
    hint = panel.box.locator(".av-hint").inner_text()
    assert hint.startswith(f"warp {work.warp[3]}: row {row} (degree {work.nz_count[3]})")
    assert bars.nth(3).get_attribute("class") == "av-lit"
    bars.nth(3).click()
    panel.settle()
    assert f"{row:,} of 2,708" in panel.view("row").inner_text()
    words = panel.view("metadata").locator("code:not(.av-bits)").all_inner_texts()
    assert [int(word, 16) for word in words] == plan.metadata[block].tolist()
    # The row is followed while the partition changes around it.
    panel.press("max_block_warps", "ArrowRight")
    assert f"{row:,} of 2,708" in panel.view("row").inner_text()
    # A degree is chosen from its bar, by keyboard too.
    panel.view("degrees").locator("[data-pick]").last.focus()
    panel.page.keyboard.press("Enter")
    panel.settle()
    assert "degree 168" in panel.view("row").inner_text()
    quiet(panel)


def test_a_block_is_stepped_through_request_by_request(explorer):
    if accelviz.executors.find_executor("emulator").why_not() is not None:
        pytest.skip("needs a C++ compiler")
    panel = explorer("'cora', row=0")
    panel.control("trace").click()
    panel.settle()
    assert "request 1 of " in panel.view("trace").inner_text()
    panel.press("request", *["ArrowRight"] * 5)
    said = panel.view("trace").inner_text()
    assert re.search(r"request 6 of \d+: warp \d+, load of \w+ \(accel_gcn\.cuh?:\d+\)", said)
    assert re.search(r"32 lanes in need of \d+ bytes: \d sectors? of 32 bytes", said)
    panel.view("trace").locator("rect[data-key='lane 7']").hover()
    assert panel.box.locator(".av-hint").inner_text().startswith("lane 7: ")
    assert panel.view("trace").locator(".av-lit").count() == 2  # the lane and its line
    quiet(panel)
    panel.notebook.screenshot("trace", panel.box)


def test_every_strategy_and_graph_can_be_chosen(explorer):
    panel = explorer("'cora', second='graphblast'")
    for strategy in accelviz.strategies():
        panel.choose("first", strategy)
        assert strategy in panel.box.locator(".av-title").inner_text()
        assert panel.message() == ""
    assert panel.control("max_block_warps").count() == 0  # nobody has such a parameter
    assert panel.control("block_warps").is_enabled()  # the second's
    panel.choose("second", "accel_gcn")
    assert panel.control("max_block_warps").is_enabled()
    panel.choose("first", "lane_groups")
    panel.press("at_once", "Home", "ArrowRight", "ArrowRight", "ArrowRight")
    assert "at_once=3" in panel.box.locator(".av-title").inner_text()
    panel.press("at_once", "Home")
    assert "by rule" in panel.box.locator(".av-controls").inner_text()
    panel.notebook.screenshot("lane-groups", panel.box)
    panel.choose("graph", "as-caida")
    assert "as-caida" in panel.box.locator(".av-title").inner_text()
    assert "Nothing was recorded" not in panel.view("times").inner_text()
    quiet(panel)


def test_a_wrong_number_and_a_failing_callback_say_so_in_the_panel(explorer):
    panel = explorer("'cora'", "panel.state.change = lambda **settings: 1 / 0")
    number = panel.box.locator("[data-control=row] ~ input")
    number.fill("999999")
    number.press("Enter")
    panel.settle()
    assert panel.message() == "row: got 999999. Expected: 0 to 2707."
    panel.press("max_block_warps", "ArrowLeft")
    assert panel.message() == ""
    shows(panel, max_block_warps=11)

    panel.run_cell(1)
    panel.press("max_block_warps", "ArrowLeft")
    assert "Something failed: ZeroDivisionError: division by zero" in panel.message()
    panel.box.locator(".av-message summary").click()
    assert "in _wanted" in panel.message()
    # What could not be done is not shown: the slider is where the numbers are.
    assert panel.control("max_block_warps").input_value() == "10"
    panel.notebook.screenshot("failure", panel.box)
    quiet(panel)


@pytest.mark.parametrize("how", ["shut_down_kernel", "kill_kernel"])
def test_a_slider_without_a_kernel_says_so(explorer, living, how):
    panel = explorer()
    living.clear()
    getattr(panel.notebook, how)()
    if how == "kill_kernel":
        panel.notebook.dismiss_dialogs()
    panel.control("max_block_warps").focus()
    panel.page.keyboard.press("ArrowLeft")
    panel.box.locator(".av-message", has_text="estart it and run this cell again").wait_for()
    panel.notebook.screenshot("no-kernel", panel.box)


def test_a_question_is_locked_until_it_is_guessed(panel_of):
    panel = panel_of("from accelviz.widgets import ask\nask('cora', 'idle_share', guesses=2)")
    assert panel.control("reveal").is_disabled()
    for keys in (["Home"], ["End"]):
        panel.press("max_block_warps", *keys)
        panel.control("guess").click()
        panel.settle()
    assert panel.control("guess").is_disabled()
    assert panel.view("answer").inner_text().count("Best is") == 0
    panel.control("reveal").click()
    panel.settle()
    table = accelviz.sweep(
        "cora", max_block_warps=range(2, 33), max_warp_nzs=[4, 8, 16, 32, 64, 128, 256, 512]
    )
    best = table.loc[table["idle_share"].idxmin()]
    said = panel.view("answer").inner_text()
    assert f"Best is {best.idle_share:.2%}, at {best.max_block_warps} x {best.max_warp_nzs}" in said
    assert "place" in panel.view("guesses").inner_text()
    panel.notebook.screenshot("question", panel.box)
    quiet(panel)


def summary(times):
    ordered = sorted(times)
    return (
        f"median {statistics.median(times):.0f} ms, p90 {ordered[int(0.9 * len(times))]:.0f} ms, "
        f"largest {ordered[-1]:.0f} ms of {len(times)} keys"
    )


@pytest.mark.large  # it measures and asserts nothing
@pytest.mark.parametrize("graph", ["pubmed", "citation"])
def test_latency_from_key_to_picture(explorer, graph, capsys):
    panel = explorer(f"'{graph}'")
    with capsys.disabled():
        for name, steps in (("max_block_warps", 10), ("max_warp_nzs", 7)):
            keys = (["ArrowLeft"] * steps + ["ArrowRight"] * steps) * 3
            times = panel.notebook.key_to_repaint(
                panel.control(name), keys, ".av-panel", "data-answered"
            )
            print(f"\n{graph}, {name}: {summary(times)}", end=" ")
            assert len(times) == len(keys)
    panel.notebook.screenshot(graph, panel.box)
    quiet(panel)


LESSON = Path(__file__).resolve().parents[2] / "notebooks" / "10-sweeps.ipynb"


def test_the_lesson_s_panels_live(open_notebook):
    notebook = open_notebook(path=LESSON).run_all()
    assert notebook.cell_errors() == []
    # JupyterLab keeps only the cells in sight on the page.
    notebook.ask(
        """
        const cells = panel.content.widgets;
        const cell = cells.findIndex(
          (each) => each.model.sharedModel.source.startsWith('accelviz.explore('));
        panel.content.activeCellIndex = cell;
        await panel.content.scrollToItem(cell, 'start');
        """
    )
    panel = Panel(notebook, ".av-panel:has([data-view=statistics])")  # not a prediction's
    shows(panel)
    panel.press("max_block_warps", "ArrowLeft")
    shows(panel, max_block_warps=11)
    panel.press("max_warp_nzs", "ArrowLeft")
    shows(panel, max_block_warps=11, max_warp_nzs=24)
    quiet(panel)
    notebook.screenshot("lesson", panel.box)
