"""Fixtures of the browser tests, which share a JupyterLab and a browser in each of two workers."""

import importlib.util
from pathlib import Path

import pytest

from accelviz.widgets import assets

from .lab import Notebook
from .saved import AT_CONTROLS, SavedPage
from .server import Server, find_browser, launch

NEEDED = ("anywidget", "axe_playwright_python", "ipywidgets", "jupyterlab", "playwright")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    # With --dist loadgroup, two workers of pytest-xdist run half of the modules each.
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            half = "first" if item.path.name < "test_q" else "second"
            item.add_marker(pytest.mark.xdist_group(f"browser-{half}"))


# Package scope instead of session: Playwright's running event loop disturbs other tests.
@pytest.fixture(scope="package")
def browser():
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"a browser test needs the package {missing[0]}")
    path = find_browser()
    if path is None:
        pytest.skip("a browser test needs Chromium: install it, or name it in ACCELVIZ_CHROMIUM")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = launch(playwright, path)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def bundle(browser):
    """An empty page with the explorer's script, for tests of its computations."""
    page = browser.new_page()
    page.add_script_tag(content=assets.script())
    yield page
    page.close()


@pytest.fixture
def saved(browser, tmp_path):
    """Return a function that saves and opens an explorer; at the end, no page has had an error."""
    views = []

    def open_(explorer, *, trace=False, **options):
        path = explorer.save(tmp_path / f"{len(views)}.html", trace=trace)
        views.append(SavedPage(browser, path, **options))
        return views[-1]

    yield open_
    for view in views:
        view.close()


@pytest.fixture(scope="package")
def server(browser, tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("lab"))
    try:
        yield running.start()
    finally:
        running.stop()


@pytest.fixture(scope="package")
def pages(server, browser):
    """A list with the page that all tests share, because JupyterLab is slow to load."""
    opened_pages = []
    yield opened_pages
    for page in opened_pages:
        page.close()


@pytest.fixture(scope="module")
def lab_notebook(server, browser, pages):
    """A notebook of one cell in JupyterLab, with its kernel, for all tests of a module."""
    server.write_notebook("shared")
    if not pages:
        pages.append(browser.new_page(viewport={"width": 1400, "height": 1000}))
        pages[0].add_init_script(AT_CONTROLS)
    notebook = Notebook(server, pages[0], "shared")
    yield notebook.open()
    notebook.close()
