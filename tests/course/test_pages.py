"""The course as web pages: run, complete, readable without a network, and linked to one another."""

# ruff: noqa: E402 (what is tested needs what is skipped for)

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

nbformat = pytest.importorskip("nbformat", reason="pages need nbformat")
pytest.importorskip("nbconvert", reason="pages need nbconvert")
pytest.importorskip("ipykernel", reason="running notebooks needs ipykernel")

from accelviz import cli
from accelviz.course.site.pages import write
from accelviz.course.site.rendering import Renderer
from accelviz.course.site.sources import Source
from accelviz.errors import ArgumentError

# The pages are made once, by one worker.
pytestmark = pytest.mark.xdist_group("pages")

ROOT = Path(__file__).resolve().parents[2]
DOT = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
FIRST = r"""# 1 · First, with `code` and $X$

Of something.

**You will be able to**

- say *one*
  thing;
- read $Y = A X$.

It takes about 25 minutes."""
LINKS = """[next](02-second.ipynb), [a text](../docs/a%20text.md#there), [data](../data.csv),
[nothing](../docs/nothing.md), [paper](https://example.org/paper) and [above](#up).

$$\\frac{a}{b} \\tag{1}$$ and $\\nonsense$

<details><summary>Solution</summary>

Because of **this**.

```python
x = 1
```

</details>"""
SHOWN = f"""import os
from IPython.display import HTML, display
print(6 * 7, repr(os.environ["CUDA_VISIBLE_DEVICES"]), os.path.basename(os.getcwd()))
display(HTML('<img alt="a dot" src="data:image/png;base64,{DOT}">'))
view = {{"model_id": "m", "version_major": 2, "version_minor": 0}}
panel = {{"application/vnd.jupyter.widget-view+json": view, "text/html": "<b>the panel</b>"}}
display(panel, raw=True)"""
TEXT = """# A text

[back](../notebooks/01-first.ipynb), [another](deep/other.md), ![a dot](dot.png)"""


class Page(HTMLParser):
    """The links, pictures and places of a page, and what is open around each text."""

    def __init__(self, path):
        super().__init__()
        self.links, self.pictures, self.scripts, self.folded = {}, [], [], ""
        self.places = set()
        self.open, self.link = [], None
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        own = dict(attributes)
        self.places.add(own.get("id"))
        if tag == "a" and "href" in own:
            self.link = own["href"]
            self.links.setdefault(self.link, "")
        if tag == "img":
            self.pictures.append((own.get("alt"), own["src"]))
        if tag == "script" or "http" in own.get("src", "") or tag == "link":
            self.scripts.append(own)
        if tag == "details":
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag == "a":
            self.link = None
        if tag == "details":
            self.open.pop()

    def handle_data(self, data):
        if self.link is not None:
            self.links[self.link] += data
        if self.open:
            self.folded += data


def notebook(path, *cells):
    made = [
        nbformat.v4.new_markdown_cell(text) if kind == "text" else nbformat.v4.new_code_cell(text)
        for kind, text in cells
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=made), path)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    import base64

    root = tmp_path_factory.mktemp("a course")
    lessons = root / "notebooks"
    notebook(lessons / "01-first.ipynb", ("text", FIRST), ("text", LINKS), ("code", SHOWN))
    notebook(lessons / "02-second.ipynb", ("text", "# 2 · Second"))
    notebook(lessons / "03-broken.ipynb", ("text", "# 3 · Broken"), ("code", "1 / 0"))
    notebook(lessons / "10-last.ipynb", ("text", "# 10 · Last\n\n[broken](03-broken.ipynb)"))
    notebook(lessons / "beside.ipynb", ("text", "# Beside it"))
    notebook(
        *(lessons / "puzzles" / "1-easy.ipynb", ("text", "# Easy\n\nIt takes about 9 minutes.")),
        *(("text", "[first](../01-first.ipynb)"), ("code", "print(6 * 7)")),
    )
    (root / "docs" / "deep").mkdir(parents=True)
    (root / "docs" / "a text.md").write_text(TEXT)
    (root / "docs" / "deep" / "other.md").write_text("# Other\n\n[up](../../../outside.md)")
    (root / "docs" / "dot.png").write_bytes(base64.b64decode(DOT))
    (root / "data.csv").write_text("1\n")
    return root


@pytest.fixture(scope="module")
def done(course):
    started = []
    found = write(course / "notebooks", course / "build", progress=started.append)
    assert started == ["01-first", "03-broken"]  # the others have no code that needs a kernel
    return found


@pytest.fixture(scope="module")
def pages(course, done):
    return {path.relative_to(course / "build").as_posix(): Page(path) for path in done.pages}


def test_each_notebook_that_ran_and_each_text_has_a_page(pages, done):
    assert list(pages) == [
        *("index.html", "01-first.html", "02-second.html", "10-last.html", "beside.html"),
        "puzzles/1-easy.html",
        *("docs/a text.html", "docs/deep/other.html"),
    ]
    assert done.failed == {"03-broken.ipynb": "ZeroDivisionError: division by zero"}
    assert done.formulas == [r"\nonsense"]


def test_the_index_lists_lessons_in_order_with_their_goals(course, pages):
    links = pages["index.html"].links
    assert list(links) == [
        *("01-first.html", "02-second.html", "10-last.html", "puzzles/1-easy.html", "beside.html"),
        *("docs/a%20text.html", "docs/deep/other.html"),
    ]
    assert links["02-second.html"] == "2 · Second"
    text = (course / "build" / "index.html").read_text("utf-8")
    assert "<li>say <em>one</em> thing;</li>" in text
    assert "25 minutes. After it you can" in text
    assert 'aria-label="Y = A X"' in text


def test_puzzles_are_shown_and_not_run(course, pages):
    text = (course / "build" / "puzzles" / "1-easy.html").read_text("utf-8")
    assert "On this page no kernel runs" in text
    assert "<pre>42" not in text
    assert pages["puzzles/1-easy.html"].links["../01-first.html"] == "first"
    assert "Easy</a>, 9 minutes" in (course / "build" / "index.html").read_text("utf-8")


def test_cells_ran_in_their_folder_without_a_gpu(course, pages):
    text = (course / "build" / "01-first.html").read_text("utf-8")
    assert "42 '' notebooks" in unescape(text)
    assert ("a dot", f"data:image/png;base64,{DOT}") in pages["01-first.html"].pictures


def test_a_panel_is_shown_as_it_was(course):
    text = (course / "build" / "01-first.html").read_text("utf-8")
    assert "<b>the panel</b>" in text
    assert "jupyter-widgets" not in re.sub(r"(?s)<style.*?</style>", "", text)


def test_links_lead_to_pages_or_are_text(pages):
    links = pages["01-first.html"].links
    assert links["02-second.html"] == "2 · Second →next2 · Second →"
    assert links["docs/a%20text.html#there"] == "a text"
    assert links["https://example.org/paper"] == "paper"
    assert links["#up"] == "above"
    assert {"data", "nothing"}.isdisjoint(links.values())
    assert pages["docs/a text.html"].links["../01-first.html"] == "back"
    assert "deep/other.html" in pages["docs/a text.html"].links
    assert list(pages["docs/deep/other.html"].links) == ["../../index.html"]
    assert "03-broken.html" not in pages["10-last.html"].links


def test_a_lesson_leads_to_the_ones_beside_it(pages):
    assert {"01-first.html", "index.html", "10-last.html"} == set(pages["02-second.html"].links)
    assert set(pages["beside.html"].links) == {"index.html"}


def test_solutions_stay_folded(pages):
    folded = pages["01-first.html"].folded
    assert "Because of this." in folded
    assert "x = 1" in re.sub(r"\s+", " ", folded)


def test_pages_need_no_network_and_pictures_are_inside(pages):
    for name, page in pages.items():
        assert page.scripts == [], name
        for alt, source in page.pictures:
            assert alt
            assert source.startswith("data:")
    assert pages["docs/a text.html"].pictures == [("a dot", f"data:image/png;base64,{DOT}")]


@pytest.mark.parametrize("alt", ["", ' alt="a dot"'])
def test_keys_reach_cells_and_outputs_images_have_a_text_and_code_is_no_html(tmp_path, alt):
    image = f'<img src="data:image/png;base64,{DOT}"{alt}>'
    shown = [
        nbformat.v4.new_output("display_data", {"text/html": image}),
        nbformat.v4.new_output("stream", text="<b>"),
    ]
    cell = nbformat.v4.new_code_cell("x = '<script>1</script>'", outputs=shown)
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("text"), cell])
    text = Renderer({}).page(Source(tmp_path / "a.ipynb", "a.html", made))
    tags = re.findall(r"<div [^>]*jp-(?:Cell-inputWrapper|OutputArea-output)[^>]*>", text)
    assert len(tags) == 4
    assert all('tabindex="0"' in tag for tag in tags)
    (tag,) = re.findall("<img [^>]*>", text)
    assert ('alt="a dot"' if alt else 'alt="No description') in tag
    assert "<script>1" not in text
    assert "&lt;script&gt;" in text


def test_titles_are_plain(course):
    text = (course / "build" / "01-first.html").read_text("utf-8")
    assert "<title>1 · First, with code and X</title>" in text
    assert text.count("<h1") == 1


def test_the_command(course, capsys, monkeypatch):
    monkeypatch.chdir(course)
    assert cli.main(["html", "--no-run"]) == 0
    printed = capsys.readouterr().out
    assert "left as TeX: \\nonsense\n9 pages; begin with build/course/index.html" in printed
    text = (course / "build" / "course" / "01-first.html").read_text("utf-8")
    assert "42 ''" not in unescape(text)
    notebook(course / "two" / "01-x.ipynb", ("code", "import time; time.sleep(60)"))
    assert cli.main(["html", "two", "--output", "b2", "--cell-seconds", "1"]) == 1
    assert "01-x.ipynb has no page: a cell took more than 1 s" in capsys.readouterr().out
    assert cli.main(["html", "docs"]) == 2
    assert cli.main(["html", "nowhere"]) == 2
    assert cli.main(["html", "--no-run", "--output", "data.csv"]) == 2
    error = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[1] for line in error] == ["docs", "nowhere", "data.csv"]


def test_a_notebook_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "01-x.ipynb").write_text("[]")
    with pytest.raises(ArgumentError, match=r"01-x\.ipynb: it cannot be read"):
        write(tmp_path, tmp_path / "out")


def test_the_lessons_of_this_repository(tmp_path):
    """All links lead somewhere, all formulas are drawn; the text is not run here."""
    done = write(ROOT / "notebooks", tmp_path, run=False)
    assert done.formulas == []
    pages = {path.resolve(): Page(path) for path in done.pages}
    for path, page in pages.items():
        assert page.scripts == []
        for link in page.links:
            if not link.startswith("http"):
                to, _, place = link.partition("#")
                target = (path.parent / unquote(to)).resolve() if to else path
                assert target in pages, f"{path.name}: {link}"
                assert not place or place in pages[target].places, f"{path.name}: {link}"
    lessons = sorted((ROOT / "notebooks").glob("[0-9][0-9]-*.ipynb"))
    assert [path.stem for path in done.pages[1 : len(lessons) + 1]] == [
        path.stem for path in lessons
    ]


def test_each_lesson_says_its_goals_and_how_long_it_takes():
    from accelviz.course.site.sources import find_sources

    lessons = [each for each in find_sources(ROOT / "notebooks") if each.is_lesson]
    assert len(lessons) >= 10
    for lesson in lessons:
        assert lesson.title.startswith(f"{int(lesson.path.name[:2])} · ")
        assert 3 <= len(lesson.goals) <= 6, lesson.title
        assert 20 <= lesson.minutes <= 40, lesson.title
