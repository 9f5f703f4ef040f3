"""A notebook in a real JupyterLab, driven through the browser.

Playwright is imported only when it is needed, so that tests can be collected without it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .server import PATIENCE, ROOT, Server

if TYPE_CHECKING:
    from playwright.sync_api import ConsoleMessage, Error, Locator, Page, Request


def artifacts() -> Path:
    """Return the folder for screenshots."""
    folder = Path(os.environ.get("ACCELVIZ_ARTIFACTS") or ROOT / ".artifacts")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


#: Beginning of scripts for the page: `panel` is the notebook, `kernel` may be null.
PANEL = """
const panel = jupyterapp.shell.currentWidget;
const kernel = panel?.sessionContext?.session?.kernel ?? null;
"""

#: Resolves once everything is drawn, also pictures outside of the screen.
FRAME = """() => new Promise((done) => requestAnimationFrame(function wait() {
  if (document.querySelector("[data-later]")) requestAnimationFrame(wait);
  else setTimeout(done);
}))"""


class Notebook:
    """A notebook in the browser, with errors and requests recorded.

    Attributes
    ----------
    page
        The page, an object of Playwright.
    outside
        Addresses outside of this machine that the page requested.
    """

    def __init__(self, server: Server, page: Page, name: str) -> None:
        self.server, self.page, self.name = server, page, name
        self.outside: list[str] = []
        self._console: list[tuple[str, str]] = []
        page.set_default_timeout(PATIENCE * 1000)
        page.on("console", self._on_console)
        page.on("pageerror", self._on_page_error)
        page.on("request", self._on_request)

    def open(self) -> Notebook:
        """Open it in JupyterLab, which is loaded if necessary; wait until its kernel is idle."""
        path = f"{self.name}.ipynb"
        if self.page.url.startswith(self.server.url):
            opening = f"jupyterapp.commands.execute('docmanager:open', {{path: '{path}'}})"
            self.page.evaluate(f"async () => {{ await {opening} }}")
        else:
            self.page.goto(f"{self.server.url}lab/tree/{path}?reset&token={self.server.token}")
            self.wait("return typeof jupyterapp !== 'undefined'", panel=False)
            self.page.evaluate("async () => { await jupyterapp.restored }")
        self.wait(f"return panel?.context?.path === {json.dumps(self.name + '.ipynb')}")
        self.page.evaluate(f"async () => {{ {PANEL} await panel.context.ready }}")
        self.wait_idle()
        return self

    def close(self) -> None:
        """Close it without a dialog, and end its kernel."""
        if not self.page.is_closed():
            self.page.remove_listener("console", self._on_console)
            self.page.remove_listener("pageerror", self._on_page_error)
            self.page.remove_listener("request", self._on_request)
            self.page.evaluate(
                """path => {
                  for (const widget of [...jupyterapp.shell.widgets('main')])
                    if (widget.context?.path === path) widget.dispose();
                }""",
                f"{self.name}.ipynb",
            )
        self.server.end_kernel(f"{self.name}.ipynb")

    def fill(self, *cells: str) -> None:
        """Replace all cells by code cells, and select the first."""
        code_cells = [{"cell_type": "code", "source": cell} for cell in cells]
        self.ask(
            f"""
            const model = panel.content.model.sharedModel;
            model.transact(() => {{
              model.deleteCellRange(0, model.cells.length);
              model.insertCells(0, {json.dumps(code_cells)});
            }});
            panel.content.activeCellIndex = 0;
            """
        )

    def wait(self, body: str, *, panel: bool = True, seconds: float = PATIENCE) -> None:
        """Wait until the JavaScript `body`, which may use `panel` and `kernel`, returns true."""
        self.page.wait_for_function(
            f"() => {{ {PANEL if panel else ''} {body} }}", timeout=seconds * 1000
        )

    def wait_until(self, ready: Callable[[], Any], seconds: float = PATIENCE) -> Any:
        """Return the first truthy result of `ready`, a Python function."""
        for _ in range(round(seconds * 20)):
            if answer := ready():
                return answer
            self.page.wait_for_timeout(50)  # processes events of the page
        raise TimeoutError(f"waited {seconds:.0f} s in vain")

    def ask(self, body: str) -> Any:
        """Return the result of the JavaScript `body`, which may use `panel` and `kernel`."""
        return self.page.evaluate(f"async () => {{ {PANEL} {body} }}")

    def command(self, name: str) -> None:
        """Run a command of JupyterLab and wait until it is done."""
        self.page.evaluate(
            """name => {
              window.commandDone = null;
              jupyterapp.commands.execute(name).then(
                () => { window.commandDone = 'yes' },
                error => { window.commandDone = String(error) });
            }""",
            name,
        )
        self.wait("return window.commandDone !== null", panel=False)
        done = self.page.evaluate("window.commandDone")
        assert done == "yes", f"{name}: {done}"

    def run_all(self) -> Notebook:
        """Run every cell and wait until each has ended and the kernel is idle."""
        self.command("notebook:run-all-cells")
        self.wait_idle()
        return self

    def run(self, cell: int) -> None:
        """Run a cell and wait until it has ended and the kernel is idle."""
        self.ask(f"panel.content.activeCellIndex = {cell}")
        self.command("notebook:run-cell")
        self.wait_idle()

    def wait_idle(self, seconds: float = PATIENCE) -> None:
        idle = "kernel?.connectionStatus === 'connected' && kernel.status === 'idle'"
        self.wait(f"return {idle}", seconds=seconds)

    def cell_errors(self) -> list[str]:
        """Return exceptions, standard error, and errors of widgets, of all cells."""
        answer = self.ask(
            """
            const errors = [];
            for (const cell of panel.content.model.cells) {
              if (cell.type !== 'code') continue;
              for (const output of cell.outputs.toJSON()) {
                if (output.output_type === 'error') errors.push(output.traceback.join('\\n'));
                if (output.name === 'stderr') errors.push([output.text].flat().join(''));
              }
            }
            for (const node of panel.node.querySelectorAll('.jupyter-widgets-error-widget'))
              errors.push(node.textContent);
            return errors;
            """
        )
        return [re.sub(r"\x1b\[[0-9;]*m", "", text) for text in answer]

    def console_errors(self) -> list[str]:
        """Return the page's uncaught errors and the errors in its console."""
        self.page.evaluate("0")  # earlier messages of the page have arrived after this call
        return [f"{text} [{url}]" for url, text in self._console]

    def complaints(self) -> list[str]:
        """Return errors of cells and page, and addresses requested outside of this machine."""
        return [*self.cell_errors(), *self.console_errors(), *self.outside]

    def screenshot(self, name: str, target: Locator) -> None:
        """Save a screenshot of an element."""
        target.screenshot(path=artifacts() / f"lab-{name}.png")

    # The kernel

    def kernel_id(self) -> str:
        return self.ask("return kernel.id")

    def kernel_status(self) -> str | None:
        """Return the kernel's status in JupyterLab; None if there is no kernel."""
        return self.ask("return kernel?.status ?? null")

    def kill_kernel(self) -> None:
        """Kill the kernel's process, as the system does when memory runs out."""
        self.server.kernel_process(self.kernel_id()).kill()

    def shut_down_kernel(self) -> None:
        """Shut the kernel down as JupyterLab's menu does."""
        self.command("kernelmenu:shutdown")

    def dismiss_dialogs(self, seconds: float = PATIENCE) -> str:
        """Wait for a dialog of JupyterLab, accept it and return its text."""
        dialog = self.page.locator(".jp-Dialog-content").first
        dialog.wait_for(timeout=seconds * 1000)
        text = dialog.inner_text()
        self.page.locator(".jp-Dialog .jp-mod-accept").first.click()
        dialog.wait_for(state="detached")
        return text

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._console.append((message.location.get("url", ""), message.text))

    def _on_page_error(self, error: Error) -> None:
        self._console.append(("", f"{error}\n{error.stack}"))

    def _on_request(self, request: Request) -> None:
        local = ("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")
        if not request.url.startswith(local):
            self.outside.append(request.url)
