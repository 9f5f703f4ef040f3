"""Time to open the explorer, and from a key press to the repainted page, in Chromium.

    python benchmarks/measure/explorer.py --graphs pubmed reddit-approximate-twin

Needs Chromium (on PATH, or named in ACCELVIZ_CHROMIUM) and Playwright. The page is the one that
`explore(...).save(...)` writes, with the controls at 848 px, or with `--lab` the output of a cell
in JupyterLab with a kernel. Each slider is moved 60 times on the visible view. A time is from the
browser's key event to the end of the frame that shows its effect; that of the map of all blocks is
from the click on its tab to the last block.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from study import parser

import accelviz

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.browser.lab import Notebook  # noqa: E402
from tests.browser.saved import AT_CONTROLS  # noqa: E402
from tests.browser.server import Server, find_browser, launch  # noqa: E402

MOVES = 60
SLIDERS = ("max_block_warps", "max_warp_nzs", "n_cols", "row", "block")
GROUPS = ("product", "balance", "numbers")
SHOWN = "const now = document.querySelector('.av-panel').dataset.drawn;"
READY = SHOWN + "return before === undefined ? {now} : now !== before.now;"


# Resolves with the milliseconds from `key` going down to the end of the frame that shows what
# `ready` (a function body) waits for. The frame's callback comes before its layout and paint; the
# message posted from it comes after.
REPAINT = """
([key, presses, ready, milliseconds]) => {
  const isReady = new Function('before', ready);
  const before = new Function('before', ready)(undefined);
  window.repaint = new Promise((resolve, reject) => {
    let start = null, left = presses;
    const observer = new MutationObserver(check);
    const timer = setTimeout(() => stop(() => reject(new Error('not repainted in time'))),
                             milliseconds);
    window.addEventListener('keydown', down, true);
    observer.observe(document.body,
      {attributes: true, characterData: true, childList: true, subtree: true});
    function stop(then) {
      observer.disconnect();
      clearTimeout(timer);
      window.removeEventListener('keydown', down, true);
      then();
    }
    function down(event) {
      if (event.key === key && left > 0 && --left === 0) start = event.timeStamp;
      check();
    }
    function check() {
      if (start === null || !isReady(before)) return;
      observer.disconnect();
      requestAnimationFrame(() => {
        const channel = new MessageChannel();
        channel.port1.onmessage = () => stop(() => resolve(performance.now() - start));
        channel.port2.postMessage(null);
      });
    }
  });
  window.repaint.catch(() => null);
}
"""


def main() -> None:
    arguments = parser(__doc__, graphs=["pubmed"], output=False)
    arguments.add_argument("--lab", action="store_true", help="in a JupyterLab, with a kernel")
    options = arguments.parse_args()
    path = find_browser()
    if path is None:
        sys.exit("There is no Chromium: install it, or name it in ACCELVIZ_CHROMIUM.")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = launch(playwright, path)
        if options.lab:
            in_lab(browser, options.graphs, Path(folder))
        else:
            for name in options.graphs:
                saved(browser, accelviz.load_graph(name), Path(folder))
        browser.close()


def in_lab(browser, graphs: list[str], folder: Path) -> None:
    """Measure a cell's output. Opening is the time of running the cell; the graph is loaded."""
    server = Server(folder).start()
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.set_default_timeout(600_000)
    page.add_init_script(AT_CONTROLS)
    try:
        server.write_notebook("explorer", [])
        notebook = Notebook(server, page, "explorer").open()
        for name in graphs:
            loading = f"import accelviz\ngraph = accelviz.load_graph({name!r})\ngraph.nnz"
            notebook.fill(loading, "accelviz.explore(graph)")
            notebook.run(0)
            start = time.perf_counter()
            notebook.run(1)
            page.wait_for_selector(".av-panel[data-drawn]")
            print(f"{name} in JupyterLab\n  opens in {time.perf_counter() - start:.2f} s")
            measure(page)
            print("  complaints:", notebook.complaints() or "none", flush=True)
    finally:
        server.stop()


def saved(browser, graph, folder: Path) -> None:
    page_of_graph = folder / "explorer.html"
    start = time.perf_counter()
    accelviz.explore(graph).save(page_of_graph, trace=False)
    seconds, size = time.perf_counter() - start, page_of_graph.stat().st_size
    print(f"{graph.name}, {graph.n_rows:,} rows, {graph.nnz:,} nonzeros")
    print(f"  saved in {seconds:.2f} s, {size / 1e6:.2f} MB", flush=True)
    page = browser.new_page(viewport={"width": 848, "height": 1000})
    page.add_init_script(AT_CONTROLS)
    start = time.perf_counter()
    page.goto(page_of_graph.as_uri())
    page.wait_for_selector(".av-panel[data-drawn]", timeout=120_000)
    print(f"  opens in {time.perf_counter() - start:.2f} s", flush=True)
    measure(page)
    page.close()


def measure(page) -> None:
    """Move every slider in every group of views, and print its times."""
    for group in GROUPS:
        start = time.perf_counter()
        page.locator(f"[data-group={group}]").click()
        if group == "balance":
            page.wait_for_selector("[data-view=map] [data-filled=true]")
            print(f"  map of all blocks after {time.perf_counter() - start:.2f} s")
        page.wait_for_timeout(1500)
        for slider in SLIDERS:
            times = []
            control = page.locator(f"[data-control={slider}]").first
            for move in range(MOVES):  # back and forth, each after the previous one was shown
                control.focus()
                key = "ArrowLeft" if move % 10 < 5 else "ArrowRight"
                page.evaluate(REPAINT, [key, 1, READY, 60_000])
                page.keyboard.press(key)
                times.append(page.evaluate("window.repaint"))
            median, p90, most = np.percentile(times, [50, 90, 100])
            quantiles = f"median {median:.0f} ms, p90 {p90:.0f} ms, most {most:.0f} ms"
            print(f"  {group}, {slider}: {quantiles}", flush=True)


if __name__ == "__main__":
    main()
