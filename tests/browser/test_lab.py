"""The harness itself: widgets live in a real JupyterLab, and a dying kernel is noticed."""

import statistics

import pytest

SLIDER = """
import ipywidgets
slider = ipywidgets.IntSlider(value=3, min=0, max=50, description="warps")
shown = ipywidgets.HTML("value 3")
slider.observe(lambda change: setattr(shown, "value", f"value {change['new']}"), "value")
ipywidgets.VBox([slider, shown])
"""

ANYWIDGET = '''
import anywidget, traitlets

class Counter(anywidget.AnyWidget):
    """A range input whose picture is made in Python."""
    _esm = """
    export default { render({ model, el }) {
      el.innerHTML = '<input type=range min=0 max=1000><div class=picture></div>';
      const input = el.querySelector('input'), picture = el.querySelector('.picture');
      input.value = model.get('value');
      // On the very element that has the focus, or JupyterLab takes the arrow keys.
      input.dataset.lmSuppressShortcuts = 'true';
      input.addEventListener('input', () => {
        model.set('value', Number(input.value));
        model.save_changes();
      });
      const show = () => {
        picture.innerHTML = model.get('html');
        picture.dataset.shown = Number(picture.dataset.shown ?? 0) + 1;
      };
      model.on('change:html', show);
      model.on('comm_live_update', () => { picture.textContent = 'disconnected'; });
      picture.addEventListener('click', () => {
        try { model.send({}); } catch (error) { picture.textContent = String(error); }
      });
      show();
    } };
    """
    value = traitlets.Int(10).tag(sync=True)
    html = traitlets.Unicode("").tag(sync=True)

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.observe(self._draw, "value")
        self._draw()

    def _draw(self, change=None):
        bars = "".join(
            f'<rect x="{4 * i}" y="{50 - i * self.value % 50}" width="3" height="50"/>'
            for i in range(RECTANGLES)
        )
        self.html = f'<b>value {self.value}</b><svg width="900" height="100">{bars}</svg>'

RECTANGLES = 500
counter = Counter()
counter
'''


@pytest.fixture(scope="module")
def shared(open_for_all):
    return open_for_all("0")


@pytest.fixture
def notebook(shared):
    shared.fill(SLIDER, ANYWIDGET)
    return shared.run_all()


def test_widgets_move_with_the_keys_and_are_timed(notebook):
    handle = notebook.page.locator(".noUi-handle")
    handle.wait_for()
    handle.focus()
    for value in (4, 5):
        notebook.page.keyboard.press("ArrowRight")
        notebook.page.get_by_text(f"value {value}", exact=True).wait_for()
    picture = notebook.screenshot("slider", notebook.page.locator(".jp-OutputArea").first)
    assert picture.read_bytes().startswith(b"\x89PNG")
    page = notebook.page
    slider = page.locator("input[type=range]")
    page.get_by_text("value 10", exact=True).wait_for()
    times = notebook.key_to_repaint(slider, ["ArrowRight"] * 10, ".picture", "data-shown")
    page.get_by_text("value 20", exact=True).wait_for()
    assert len(times) == 10
    assert all(0 < time < 60_000 for time in times)
    print(f"key to repaint: median {statistics.median(times):.0f} ms")

    shows_45 = "return document.querySelector('.picture b').textContent === 'value 45'"
    assert notebook.burst(slider, "ArrowRight", 25, until=shows_45) > 0
    notebook.wait_idle()
    assert page.locator(".picture b").inner_text() == "value 45"
    assert notebook.complaints() == []


def test_a_killed_kernel_is_noticed(notebook):
    before = notebook.server.kernel_process(notebook.kernel_id())
    notebook.kill_kernel()
    assert "restart" in notebook.dismiss_dialogs().lower()
    notebook.wait_idle()
    # What a widget has to go by when its kernel is killed or restarted.
    notebook.page.get_by_text("disconnected", exact=True).wait_for()
    after = notebook.server.kernel_process(notebook.kernel_id())
    assert after.pid != before.pid
    assert notebook.run_all().cell_errors() == []


def test_what_goes_wrong_is_reported(shared):
    notebook = shared
    before = len(notebook.console_errors())
    notebook.fill(
        "1 / 0",
        "import sys; print('mind the step', file=sys.stderr)",
        "from IPython.display import HTML, Javascript\n"
        "display(Javascript('console.error(\"in the console\")'))\n"
        "display(Javascript('setTimeout(() => { throw new Error(\"in the page\") })'))",
    )

    run = notebook.run
    run(0)  # not all of them: how far Jupyter gets after an error depends on the time it takes
    (division,) = notebook.cell_errors()
    assert "ZeroDivisionError" in division
    assert len(notebook.console_errors()) == before
    run(1)
    run(2)
    assert "mind the step" in notebook.cell_errors()[1]
    for source in ("in the console", "in the page"):
        notebook.wait_until(lambda source=source: source in str(notebook.console_errors()))


def test_a_kernel_that_was_shut_down_is_gone(notebook):
    process = notebook.server.kernel_process(notebook.kernel_id())
    notebook.shut_down_kernel()
    notebook.wait("return kernel === null")
    assert notebook.kernel_status() is None
    process.wait(30)
    # No event tells a widget, but it cannot send.
    notebook.page.locator(".picture").click()
    notebook.page.get_by_text("Error: Cannot send", exact=True).wait_for()
