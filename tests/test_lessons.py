"""How long a lesson takes, and what is in it for the learner: counted, nothing is run."""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
LESSONS = sorted(FOLDER.glob("[0-9][0-9]-*.ipynb"))
#: Rates of a student who meets the subject for the first time and tries everything. Three earlier
#: lessons took 60 to 90 minutes when they were tried; by these rates it was 80 to 95.
WORDS_A_MINUTE, LINES_A_MINUTE = 130, 12
MINUTES_A_PREDICTION, MINUTES_AN_EXERCISE, MINUTES_A_PICTURE = 0.75, 4.0, 0.5
MOST_MINUTES, MOST_LINES, LEAST_EXERCISES = 40, 11, 3

each_lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)


@dataclass(frozen=True)
class Effort:
    """What a lesson asks of its reader."""

    words: int
    lines: int
    longest_cell: int
    predictions: int
    exercises: int
    pictures: int

    @property
    def minutes(self) -> float:
        return (
            self.words / WORDS_A_MINUTE
            + self.lines / LINES_A_MINUTE
            + self.predictions * MINUTES_A_PREDICTION
            + self.exercises * MINUTES_AN_EXERCISE
            + self.pictures * MINUTES_A_PICTURE
        )


def text_in(source):
    """The words of a prediction, which are read as text though they stand in code."""
    return [
        node.value
        for call in calls(source, "predict")
        for node in ast.walk(call)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def calls(source, name):
    return [
        node
        for node in ast.walk(ast.parse(re.sub(r"^[%!].*$", "", source, flags=re.M)))
        if isinstance(node, ast.Call)
        and name in (getattr(node.func, key, "") for key in ("id", "attr"))
    ]


def code_lines(source):
    """Lines of code; comments, empty lines and those that hold nothing but text do not count."""
    only_text = re.compile(r"""\s*(#|$|(because=)?\(?["'].*["'],?\)?\s*$)""")
    return sum(not only_text.match(line) for line in source.splitlines())


def folded(cell):
    """Whether JupyterLab, Colab and the pages hide the cell's source, as it holds an answer."""
    metadata = cell.metadata
    return metadata.get("jupyter", {}).get("source_hidden") and metadata.get("cellView") == "form"


def effort(notebook):
    """Count what a lesson asks of its reader."""
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    seen = [cell.source for cell in notebook.cells if cell.cell_type == "code" and not folded(cell)]
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    fences = re.findall(r"```\w*\n(.*?)```", text, re.S)
    bare = re.sub(r"```.*?```|<[^>]+>|\]\([^)]*\)", " ", text, flags=re.S)
    said = " ".join([bare, *(part for source in code for part in text_in(source))])
    return Effort(
        words=len(re.findall(r"[^\W_][\w.,'%°^-]*", said)),
        lines=sum(map(code_lines, [*seen, *fences])),
        longest_cell=max(map(code_lines, code)),
        predictions=sum(len(calls(source, "predict")) for source in code)
        + text.lower().count("**predict"),
        exercises=max(to_write(code), text.count("<summary>Solution")),
        pictures=sum(source.count("plots.") for source in code),
    )


def to_write(code):
    return sum("your line" in source.lower() for source in code)


def faults(path):
    notebook = nbformat.read(path, as_version=4)
    counted = effort(notebook)
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    told = re.search(r"takes about (\d+) minutes", notebook.cells[0].source)
    beginning = notebook.cells[0].source.lower()
    return [
        fault
        for fault, is_there in {
            f"it takes {counted.minutes:.0f} minutes": counted.minutes > MOST_MINUTES,
            f"a cell has {counted.longest_cell} lines": counted.longest_cell > MOST_LINES,
            f"{to_write(code)} things to write (a cell says 'your lines')": to_write(code)
            < LEAST_EXERCISES,
            "a prediction has nowhere to go": "**predict"
            in "".join(
                cell.source.lower() for cell in notebook.cells if cell.cell_type == "markdown"
            ),
            "a prediction's answer can be read above it": any(
                cell.cell_type == "code" and calls(cell.source, "predict") and not folded(cell)
                for cell in notebook.cells
            ),
            "no goals at the top": "ou will be able to" not in beginning,
            f"it says {told and told[1]} minutes, counted are {counted.minutes:.0f}": told is None
            or abs(int(told[1]) - counted.minutes) > 4,
        }.items()
        if is_there
    ]


@each_lesson
def test_a_lesson_is_short_and_has_exercises(path):
    assert faults(path) == []


# --- the glossary -------------------------------------------------------------------------------

#: A line of it: anchor, term, number and file of the lesson that explains it first.
TERM = re.compile(r'- <a id="([a-z0-9-]+)"></a>\*\*(.+?)\*\*: .+ \(\[lesson (\d+)\]\((.+)\)\)\.')


def terms():
    lines = (FOLDER / "glossary.md").read_text("utf-8").splitlines()
    return [TERM.fullmatch(line).groups() for line in lines if line.startswith("- ")]


def test_the_glossary_is_in_order_and_each_term_once():
    names = [name.casefold() for _, name, _, _ in terms()]
    assert names == sorted(names)
    assert len({anchor for anchor, *_ in terms()}) == len(names)


def test_terms_link_to_the_first_lesson_that_links_to_them():
    first = {}
    for path in LESSONS:
        cells = nbformat.read(path, as_version=4).cells
        text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        for anchor in re.findall(r"glossary\.md#([a-z0-9-]+)", text):
            first.setdefault(anchor, path.name)
    assert first == {anchor: file for anchor, _, _, file in terms()}
    assert all(int(number) == int(file[:2]) for _, _, number, file in terms())


def test_links_of_lessons_exist():
    """Jupyter opens nothing that lies outside of the folder in which `make lab` starts it."""
    make = (FOLDER.parent / "Makefile").read_text("utf-8")
    opened = FOLDER.parent / re.search(r"jupyter lab --notebook-dir=(\S+)", make)[1]
    for path in [*FOLDER.glob("*.ipynb"), FOLDER / "glossary.md"]:
        text = path.read_text("utf-8")
        for link in re.findall(r"\]\(([^)#\s]+?)(?:#[^)]*)?\)", text):
            if not link.startswith("http"):
                target = (FOLDER / link).resolve(strict=True)
                assert target.is_relative_to(opened.resolve()), f"{path.name}: {link}"


# --- the counting itself ------------------------------------------------------------------------


def test_effort_counts_words_lines_and_exercises():
    cells = [
        nbformat.v4.new_markdown_cell(
            "# 1 · Two words\n\n[a link](far/away.md)\n```python\nx = 1\n```"
        ),
        nbformat.v4.new_code_cell("# a comment\n\nplots.a(x)\nplots.b(x);"),
        nbformat.v4.new_code_cell(
            'predict(\n    "How many are there?",\n    3,\n    because="So it "\n    "is.",\n)'
        ),
        nbformat.v4.new_code_cell("def f():\n    ...  # your lines\n\n\ncompare(f, g)"),
    ]
    counted = effort(nbformat.v4.new_notebook(cells=cells))
    assert counted.words == 5 + 4 + 3
    assert (counted.lines, counted.longest_cell) == (1 + 2 + 3 + 3, 3)
    assert (counted.predictions, counted.exercises, counted.pictures) == (1, 1, 2)
