"""The site of `make docs`, built without running notebooks: links, search, gallery, no network."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

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


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-c", "docs/site"]
    command += ["-D", "nb_execution_mode=off", "-d", str(folder / "doctrees"), ".", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return folder


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
    numbers = [int(row.split("\t")[3]) for row in card.locator("tbody tr").all_inner_texts()]
    assert numbers == sorted(numbers)
    assert opened.evaluate("document.documentElement.scrollWidth") <= 360
