"""The explorer in a real JupyterLab, with a kernel and without."""

import json
import re

import pytest

import accelviz

from ..compilers import needs_compiler
from .lab import FRAME

OPEN = "import accelviz\npanel = accelviz.explore({arguments})\npanel"


class Panel:
    """The explorer's panel in the notebook shown."""

    def __init__(self, notebook):
        self.notebook, self.page = notebook, notebook.page
        self.box = self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .av-panel").first
        self.box.wait_for()

    def control(self, name):
        return self.box.locator(f"[data-control={name}]").first

    def field(self, name):
        return self.box.locator(f"[data-control={name}] ~ input")

    def show(self, group):
        self.box.locator(f"[data-group={group}]").click()

    def type(self, name, text):
        """Type a number and press Enter."""
        self.field(name).click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(text)
        self.page.keyboard.press("Enter")

    def statistic(self, name):
        cells = self.box.locator(f"[data-statistic={name}] td").all()
        return [cell.inner_text() for cell in cells]

    def wait_for(self, name, text):
        self.box.locator(f"[data-statistic={name}] td", has_text=text).first.wait_for()


def assert_no_complaints(panel):
    assert panel.notebook.complaints() == []


def idle_share(**settings):
    """The idle share on Cora as the page writes it."""
    return f"{accelviz.sweep('cora', **settings).iloc[0].idle_share:.2%}"


@pytest.fixture(scope="module")
def notebook(lab_notebook):
    lab_notebook.page.set_viewport_size({"width": 1280, "height": 1000})
    return lab_notebook


@pytest.mark.long
def test_slow_requests_show_progress_and_can_be_cancelled(notebook):
    delay = """
import threading
from accelviz.widgets import explorer
opened, traced = threading.Event(), threading.Event()
def after(event, function):
    return lambda *arguments, **options: (event.wait(), function(*arguments, **options))[1]
explorer.load_graph = after(opened, explorer.load_graph)
explorer.trace = after(traced, explorer.trace)
"""
    arguments = "accelviz.load_graph('cora'), row=3"
    notebook.fill(OPEN.format(arguments=arguments), delay, "opened.set()", "traced.set()")
    notebook.run(1)
    notebook.run(0)
    panel = Panel(notebook)
    progress = panel.box.locator(".av-progress")
    panel.control("graph").select_option("citeseer")
    progress.get_by_text(re.compile(r"Opening citeseer: \d s\.")).wait_for()
    notebook.run(2)  # the kernel runs cells meanwhile
    panel.box.locator(".av-graph", has_text="citeseer").wait_for()
    panel.show("play")
    trace = panel.box.get_by_role("button", name="Trace")
    trace.click()
    progress.get_by_text("Running block").wait_for()
    panel.control("cancel").click()
    panel.box.get_by_text("was cancelled").wait_for()
    assert progress.is_hidden()
    notebook.run(3)
    trace.click()
    panel.box.locator(".av-playing:not([hidden])").wait_for()
    assert_no_complaints(panel)
    notebook.screenshot("traced", panel.box)


#: Returns the visible pictures as text, without the numbers of hatching patterns.
PICTURES = """async () => { const texts = [];
for (const picture of document.querySelectorAll(".av-group:not([hidden]) :is(svg, canvas)"))
  if (picture.getClientRects().length) texts.push(picture instanceof SVGElement
    ? picture.outerHTML.replace(/av-hatch-\\d+/g, "")
    : `${picture.style.width} ${picture.toDataURL()}`);
return texts; }"""


@pytest.mark.long
@needs_compiler
def test_a_change_of_theme_redraws_the_pictures(notebook):
    notebook.fill(OPEN.format(arguments="'cora', row=3"))
    notebook.run(0)
    panel = Panel(notebook)
    panel.show("play")
    panel.box.get_by_role("button", name="Trace").click()
    panel.box.locator(".av-playing:not([hidden])").wait_for()
    for group in ("play", "balance", "numbers", "product"):
        for theme in ("JupyterLab Dark", "JupyterLab Light"):
            panel.show(group)
            panel.page.evaluate(FRAME)
            before = panel.page.evaluate(PICTURES)
            panel.page.evaluate(
                "theme => jupyterapp.commands.execute('apputils:change-theme', { theme })", theme
            )
            light = str(theme.endswith("Light")).lower()
            notebook.wait(f"return document.body.dataset.jpThemeLight === '{light}'", panel=False)
            panel.page.wait_for_timeout(600)  # JupyterLab computes the layout several times
            panel.page.evaluate(FRAME)
            switched = panel.page.evaluate(PICTURES)
            panel.show(group)  # draws the group again
            panel.page.evaluate(FRAME)
            assert switched == panel.page.evaluate(PICTURES), (group, theme)
            if group in ("play", "balance"):  # canvases depend on the theme
                assert switched != before, (group, theme)
    assert_no_complaints(panel)


@pytest.mark.long
def test_it_works_in_a_notebook_with_a_kernel_and_without(notebook):
    asks = "from accelviz.course import predict\npredict('How many?', 12)"
    notebook.fill(
        OPEN.format(arguments="'cora'"),
        "print(panel.settings['parameters'], panel.settings['graph'])",
        asks,
    )
    notebook.run(0)
    panel = Panel(notebook)
    panel.show("numbers")
    panel.wait_for("idle_share", idle_share())
    # JupyterLab leaves keys to the panel's sliders and number fields.
    panel.control("max_block_warps").focus()
    panel.page.keyboard.press("ArrowLeft")
    panel.wait_for("idle_share", idle_share(max_block_warps=11))
    panel.type("max_block_warps", "8")
    panel.wait_for("idle_share", idle_share(max_block_warps=8))
    # Nor does it handle keys, which would delete the cell, while a picture or the panel has focus.
    panel.show("product")
    for focused in (panel.box.locator(".av-of-strip .av-draw"), panel.box):
        focused.focus()
        for key in "abxdd":
            panel.page.keyboard.press(key)
    assert notebook.ask("return panel.content.model.cells.length") == 3
    # The sliders stay visible at the bottom of the panel.
    lowest = panel.box.locator(".av-fig-read")
    lowest.scroll_into_view_if_needed()
    panel.page.evaluate(FRAME)
    top = panel.page.locator(".jp-Notebook:visible .jp-WindowedPanel-outer").bounding_box()["y"]
    assert panel.box.bounding_box()["y"] < top
    assert panel.control("max_block_warps").bounding_box()["y"] >= top
    panel.show("numbers")
    # The settings have arrived in Python.
    notebook.run(1)
    assert "{'max_block_warps': 8} cora" in panel.page.locator(".jp-OutputArea").nth(1).inner_text()
    # A prediction takes keys, too.
    notebook.run(2)
    panel.page.locator("[data-control=typed]").focus()
    panel.page.keyboard.type("24")
    panel.page.keyboard.press("Enter")
    panel.page.get_by_text("Too high by a factor of 2.").wait_for()
    # The panel saves a picture.
    with panel.page.expect_download() as download:
        panel.control("png").click()
    assert download.value.path().read_bytes().startswith(b"\x89PNG")
    # The kernel loads another graph.
    panel.control("graph").select_option("citeseer")
    panel.box.locator(".av-graph", has_text="citeseer").wait_for()
    panel.control("graph").select_option("cora")
    panel.box.locator(".av-graph", has_text="cora").wait_for()
    assert_no_complaints(panel)
    # The saved notebook contains the page and its last settings.
    notebook.wait(
        "return [...panel.content.model.cells.get(0).outputs.toJSON()].some("
        "(output) => JSON.stringify(output).includes('&quot;max_block_warps&quot;: 8'))"
    )
    notebook.command("docmanager:save")
    notebook.screenshot("live", panel.box)
    path = notebook.server.root / f"{notebook.name}.ipynb"
    assert path.stat().st_size < 800_000
    saved = json.loads(path.read_text())
    assert any("av-page" in json.dumps(output) for output in saved["cells"][0]["outputs"])
    assert not any("av-opening" in json.dumps(output) for output in saved["cells"][0]["outputs"])

    notebook.shut_down_kernel()
    notebook.page.evaluate(
        "path => [...jupyterapp.shell.widgets('main')].filter("
        "(widget) => widget.context?.path === path).forEach((widget) => widget.dispose())",
        path.name,
    )
    notebook.page.evaluate(
        "async (path) => { await jupyterapp.commands.execute('docmanager:open', {path, "
        "kernelPreference: {shouldStart: false, canStart: false}}) }",
        path.name,
    )
    panel = Panel(notebook)
    panel.show("numbers")
    panel.wait_for("idle_share", idle_share(max_block_warps=8))
    panel.control("max_block_warps").focus()
    panel.page.keyboard.press("ArrowRight")
    panel.wait_for("idle_share", idle_share(max_block_warps=9))
    view = panel.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)").inner_text()
    assert "model not found" not in view
    assert "Loading widget" not in view
    notebook.screenshot("without-kernel", panel.box)
