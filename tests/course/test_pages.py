"""Web pages of lessons: run without a GPU, linked to one another, answers hidden."""

# ruff: noqa: E402 (what is tested needs what is skipped for)

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="pages need nbformat")
pytest.importorskip("nbconvert", reason="pages need nbconvert")
pytest.importorskip("ipykernel", reason="running notebooks needs ipykernel")

from accelviz import cli
from accelviz.course.pages import write
from accelviz.errors import ArgumentError

# One worker writes the pages for all tests.
pytestmark = pytest.mark.xdist_group("pages")

ROOT = Path(__file__).resolve().parents[2]
LINKS = "[next](02-second.ipynb#there), [paper](https://example.org/a.ipynb)"
SHOWN = """import os
from IPython.display import display
print(6 * 7, repr(os.environ["CUDA_VISIBLE_DEVICES"]), os.path.basename(os.getcwd()))
view = {"model_id": "m", "version_major": 2, "version_minor": 0}
panel = {"application/vnd.jupyter.widget-view+json": view, "text/html": "<b>panel</b>"}
display(panel, raw=True)"""


def notebook(path, *cells):
    new = {"text": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    path.parent.mkdir(parents=True, exist_ok=True)
    new_cells = [new[kind](text, **dict(*options)) for kind, text, *options in cells]
    nbformat.write(nbformat.v4.new_notebook(cells=new_cells), path)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    lessons = tmp_path_factory.mktemp("a course") / "notebooks"
    answer = (
        "code",
        "predict('How much?', 'secret')",
        {"metadata": {"jupyter": {"source_hidden": True}}},
    )
    notebook(lessons / "01-first.ipynb", ("text", "# 1 · First"), ("text", LINKS), ("code", SHOWN))
    notebook(lessons / "02-second.ipynb", ("text", "# 2 · Second"))
    notebook(lessons / "03-broken.ipynb", ("text", "# 3 · Broken"), ("code", "1 / 0"))
    notebook(lessons / "puzzles" / "1-easy.ipynb", ("text", "# Easy"), ("code", "print(7)"), answer)
    return lessons


@pytest.fixture(scope="module")
def pages(course):
    started = []
    paths, failed = write(course, course.parent / "build", progress=started.append)
    assert started == ["01-first", "02-second", "03-broken"]
    assert failed == {"03-broken.ipynb": "ZeroDivisionError: division by zero"}
    return {
        path.relative_to(course.parent / "build").as_posix(): path.read_text("utf-8")
        for path in paths
    }


def test_each_notebook_that_ran_has_a_page_which_the_index_links(pages):
    assert list(pages) == ["index.html", "01-first.html", "02-second.html", "puzzles/1-easy.html"]
    for page, title in (("02-second.html", "2 · Second"), ("puzzles/1-easy.html", "Easy")):
        assert f'<a href="{page}">{title}</a>' in pages["index.html"]


def test_cells_ran_in_their_folder_without_a_gpu(pages):
    assert "42 '' notebooks" in pages["01-first.html"]
    assert "<b>panel</b>" in pages["01-first.html"]


def test_links_to_notebooks_lead_to_pages(pages):
    assert 'href="02-second.html#there"' in pages["01-first.html"]
    assert 'href="https://example.org/a.ipynb"' in pages["01-first.html"]


def test_puzzles_are_not_run_and_answers_are_hidden(pages):
    puzzle = pages["puzzles/1-easy.html"]
    assert "<pre>7" not in puzzle
    assert "secret" not in puzzle


def test_the_command(course, capsys, monkeypatch):
    monkeypatch.chdir(course.parent)
    assert cli.main(["html", "--no-run"]) == 0
    assert "5 pages; begin with build/course/index.html" in capsys.readouterr().out
    page = course.parent / "build" / "course" / "01-first.html"
    assert "42 ''" not in page.read_text("utf-8")
    notebook(course.parent / "two" / "01-x.ipynb", ("code", "import time; time.sleep(60)"))
    assert cli.main(["html", "two", "--output", "b2", "--cell-seconds", "1"]) == 1
    assert "01-x.ipynb has no page: a cell took more than 1 s" in capsys.readouterr().out
    (course.parent / "data.csv").touch()
    assert cli.main(["html", "nowhere"]) == 2
    assert cli.main(["html", "--no-run", "--output", "data.csv"]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[1].split("/")[0] for line in errors] == ["nowhere", "data.csv"]


def test_a_notebook_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "01-x.ipynb").write_text("[]")
    with pytest.raises(ArgumentError, match=r"01-x\.ipynb: it cannot be read"):
        write(tmp_path, tmp_path / "out")


def test_the_lessons_of_this_repository_become_pages(tmp_path):
    paths, failed = write(ROOT / "notebooks", tmp_path, run=False)
    assert not failed
    lessons = sorted((ROOT / "notebooks").glob("[0-9][0-9]-*.ipynb"))
    assert {path.stem for path in lessons} < {path.stem for path in paths}
