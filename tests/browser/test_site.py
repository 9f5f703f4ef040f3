"""The site of `make docs`, built without running notebooks: links, search, what is alive."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest

import accelviz
from accelviz.course import predict
from accelviz.widgets import assets

from .lab import artifacts

pytestmark = pytest.mark.long

pytest.importorskip("furo", reason="the site needs the extra docs")
pytest.importorskip("myst_nb", reason="the site needs the extra docs")

ROOT = Path(__file__).resolve().parents[2]
#: Attributes by which a page loads something at once.
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


class Page(HTMLParser):
    """Links, ids and loaded addresses of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.ids, self.loaded = set(), set(), set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids |= {values[name] for name in ("id", "name") if values.get(name)}
        if address := values.get({"a": "href", "form": "action"}.get(tag)):
            self.links.add(address)
        elif tag == "meta" and values.get("http-equiv") == "refresh":
            self.links.add(values["content"].partition("url=")[2])
        if tag in LOADED and values.get(LOADED[tag]):
            self.loaded.add(values[LOADED[tag]])


def build(source, folder, **options):
    """Build a site as `make docs` does, without running notebooks."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-c", "docs/site"]
    for name, value in {"nb_execution_mode": "off", **options}.items():
        command += ["-D", f"{name}={value}"]
    command += ["-d", str(folder / "doctrees"), str(source), str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build(".", tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in site.rglob("*.html")}


def targets(path, page):
    """Yield the file and the anchor of each link inside the site."""
    for link in page.links:
        parts = urlsplit(link)
        if not parts.scheme and not parts.netloc:
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            yield file, unquote(parts.fragment)


def test_every_page_is_reachable_and_no_link_is_dead(site, pages):
    reached, waiting = set(), [site / "index.html"]
    while waiting:
        path = waiting.pop()
        if path in reached or path not in pages:
            continue
        reached.add(path)
        for file, anchor in targets(path, pages[path]):
            assert file.is_file(), f"{path}: {file}"
            if anchor and file in pages:
                assert anchor in pages[file].ids, f"{path}: {file}#{anchor}"
            waiting.append(file)
    assert reached == pages.keys()
    lessons = {path.stem for path in (ROOT / "notebooks").glob("[0-9]*.ipynb")}
    assert lessons <= {path.stem for path in reached}


def test_pages_load_from_their_folder_only(site, pages):
    for path, page in pages.items():
        for address in page.loaded:
            assert not urlsplit(address).scheme.startswith("http"), f"{path}: {address}"
            assert not address.startswith("//"), f"{path}: {address}"
    for path in [*site.rglob("*.css"), *site.rglob("*.js")]:
        text = path.read_text("utf-8")
        assert not re.search(r"(url\(|@import|import\(|src=)\s*[\"']?(https?:)?//", text), path


def test_answers_of_predictions_are_not_in_the_pages(pages):
    for path in pages:
        if path.parent.name == "notebooks":
            assert "because=" not in re.sub(r"<[^>]+>", "", path.read_text("utf-8")), path


@pytest.fixture
def opened(browser, site):
    page = browser.new_page(viewport={"width": 360, "height": 800})
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: message.type == "error" and complaints.append(message.text))
    page.on("request", lambda r: r.url.startswith("http") and complaints.append(r.url))
    yield page
    assert complaints == []
    page.close()


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("time my own strategy on my own graph", "How do I time my own strategy"),
        ("benchmark", "benchmark"),
    ],
)
def test_search_works_from_a_folder(opened, site, query, title):
    opened.goto((site / "search.html").as_uri() + "?q=" + query.replace(" ", "+"))
    opened.locator("#search-results li").first.wait_for()
    opened.locator("#search-results > p").get_by_text("found").first.wait_for()
    results = opened.locator("#search-results li").all_inner_texts()
    assert any(title.lower() in text.lower() for text in results[:3]), results[:10]


#: A page of each kind: start, docs with code, tables and pictures, lesson, API, gallery, search.
KINDS = [
    *("docs/site/index", "docs/timing", "docs/performance", "docs/sources", "docs/site/house"),
    *(
        "notebooks/05-why-a-warp-waits",
        "notebooks/puzzles/1-threads-and-memory",
        "notebooks/glossary",
    ),
    *("docs/site/api/accelviz", "docs/site/measurements", "search"),
]


@pytest.mark.parametrize("width", [360, 1280])
def test_pages_are_accessible(opened, site, width):
    """Each page has both widths and both color schemes: the narrow one in turn light and dark."""
    from axe_playwright_python.sync_playwright import Axe  # a test without it is skipped

    opened.set_viewport_size({"width": width, "height": 800})
    for number, name in enumerate(KINDS):
        scheme = ("light", "dark")[(number + (width > 360)) % 2]
        opened.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        opened.goto((site / f"{name}.html").as_uri())
        # Without `preload` it fetches style sheets, which a page from a folder may not.
        report = Axe().run(opened, options={"resultTypes": ["violations"], "preload": False})
        violations = {
            violation["id"]: [node["html"][:120] for node in violation["nodes"][:3]]
            for violation in report.response["violations"]
        }
        assert violations == {}, name
        assert opened.evaluate("document.documentElement.scrollWidth") <= width, name
        picture = artifacts() / f"site-{Path(name).name}-{width}-{scheme}.png"
        opened.screenshot(path=picture)


def test_a_record_is_found_filtered_and_sorted(opened, site):
    opened.goto((site / "docs" / "site" / "measurements.html").as_uri())
    records = sorted((ROOT / "benchmarks" / "results").glob("*.csv*"))
    assert opened.locator(".record").count() == len(records)
    opened.get_by_label("Words").fill("sddmm counters")
    assert opened.locator(".record:visible").count() == 1
    card = opened.locator("[data-record=counters-sddmm-h200]")
    card.locator("summary").click()
    card.get_by_text("12 of 12 rows").wait_for()
    card.get_by_label("columns").select_option("64")
    card.get_by_text("6 of 12 rows").wait_for()
    card.get_by_role("button", name="instructions").click()
    column = card.locator("th").all_inner_texts().index("instructions") + 1
    texts = card.locator(f"tbody td:nth-child({column})").all_inner_texts()
    numbers = [float(text) for text in texts]
    assert len(numbers) == 6
    assert numbers == sorted(numbers)
    assert opened.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.fixture(scope="module")
def lesson(tmp_path_factory):
    """A page of a notebook with a prediction and the explorer, as they are after running it."""
    source = tmp_path_factory.mktemp("source")
    asked = predict("How much is $2x$?", 12.5, unit="%", because="So it is.")
    explorer = accelviz.explore("cora")
    pages = [asked.html(), assets.page(explorer.content(), "one", explorer.fallback())]
    outputs = [nbformat.v4.new_output("display_data", data={"text/html": html}) for html in pages]
    folded = {"jupyter": {"source_hidden": True}}
    cells = [
        nbformat.v4.new_markdown_cell("# A lesson\n\nWith $x^2$."),
        nbformat.v4.new_code_cell("secret", outputs=outputs[:1], metadata=folded),
        nbformat.v4.new_code_cell("explorer", outputs=outputs[1:]),
    ]
    python = {"language_info": {"name": "python", "pygments_lexer": "ipython3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=python), source / "lesson.ipynb")
    folder = tmp_path_factory.mktemp("lesson")
    build(source, folder, root_doc="lesson", include_patterns="**")
    return folder / "lesson.html"


def test_predictions_and_explorer_are_alive_in_both_themes(opened, lesson):
    opened.emulate_media(color_scheme="light", reduced_motion="reduce")
    opened.goto(lesson.as_uri())
    assert opened.locator("math").count() == 1
    assert opened.get_by_text("secret").count() == 0
    asked = opened.locator(".av-asked")
    asked.locator("input").fill("25")
    asked.locator("input").press("Enter")
    asked.get_by_text("So it is.").wait_for()
    opened.get_by_role("tab", name="Numbers").click()
    opened.get_by_role("tabpanel").get_by_text("idle").first.wait_for()
    assert opened.evaluate("document.documentElement.scrollWidth") <= 360
    scheme = "() => getComputedStyle(document.querySelector('.av-page')).colorScheme"
    schemes = set()
    for _ in range(3):  # automatic, light and dark, in an order of the theme
        schemes.add(opened.evaluate(scheme))
        opened.locator("button.theme-toggle:visible").click()
    assert {"light", "dark"} <= schemes
