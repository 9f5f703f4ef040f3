"""The test harness itself: it reports errors, and widgets notice the end of their kernel."""

import pytest

ANYWIDGET = '''
import anywidget

class Clicked(anywidget.AnyWidget):
    _esm = """
    export default { render({ model, el }) {
      el.innerHTML = '<div class="clicked">connected</div>';
      const box = el.firstChild;
      model.on('comm_live_update', () => { box.textContent = 'disconnected'; });
      box.addEventListener('click', () => {
        try { model.send({}); } catch (error) { box.textContent = String(error); }
      });
    } };
    """

Clicked()
'''


@pytest.fixture
def notebook(lab_notebook):
    lab_notebook.fill(ANYWIDGET)
    return lab_notebook.run_all()


@pytest.mark.long
def test_a_killed_kernel_is_noticed(notebook):
    before = notebook.server.kernel_process(notebook.kernel_id())
    notebook.kill_kernel()
    assert "restart" in notebook.dismiss_dialogs().lower()
    notebook.wait_idle()
    # The event by which a widget notices that its kernel was killed or restarted.
    notebook.page.get_by_text("disconnected", exact=True).wait_for()
    after = notebook.server.kernel_process(notebook.kernel_id())
    assert after.pid != before.pid
    assert notebook.run_all().cell_errors() == []


def test_errors_of_cells_and_page_are_reported(lab_notebook):
    notebook = lab_notebook
    before = len(notebook.console_errors())
    notebook.fill(
        "1 / 0",
        "import sys; print('mind the step', file=sys.stderr)",
        "from IPython.display import HTML, Javascript\n"
        "display(Javascript('console.error(\"in the console\")'))\n"
        "display(Javascript('setTimeout(() => { throw new Error(\"in the page\") })'))",
    )

    run = notebook.run
    run(0)  # one by one: whether Jupyter runs the cells after an error depends on timing
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
    # The widget gets no event, but sending fails.
    notebook.page.locator(".clicked").click()
    notebook.page.get_by_text("Error: Cannot send", exact=True).wait_for()
