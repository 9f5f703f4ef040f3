"""Estimated effort of each lesson (minutes, exercises, predictions), without running it."""

import ast
import builtins
import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pandas as pd
import pytest

from accelviz.course import known, predict
from accelviz.course.exercise import HINTS

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
#: Lessons in order, then electives.
LESSONS = [
    *sorted(FOLDER.glob("[0-9][0-9]-*.ipynb")),
    *sorted(FOLDER.glob("electives/*.ipynb")),
]
#: Rates of a beginner who does every task: two students needed 1.6 to 1.8 times what earlier rates
#: said (57 minutes in the mean where 36 were counted).
WORDS_PER_MINUTE, LINES_PER_MINUTE = 80, 7.5
MINUTES_PER_PREDICTION, MINUTES_PER_EXERCISE, MINUTES_PER_PICTURE = 1.2, 6.5, 0.8
#: Most minutes of a lesson, and of an elective; lines of a cell; least cells to write in.
MAX_MINUTES, MAX_ELECTIVE_MINUTES, MAX_LINES, MIN_EXERCISES = 40, 100, 11, 2

each_lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)


@dataclass(frozen=True)
class Effort:
    """Numbers of words, lines of code and tasks in a lesson.

    A kernel to climb may be long, and half of it is known from the rung before.
    """

    words: int
    lines: int
    longest_cell: int
    predictions: int
    exercises: int
    pictures: int

    @property
    def minutes(self) -> float:
        return (
            self.words / WORDS_PER_MINUTE
            + self.lines / LINES_PER_MINUTE
            + self.predictions * MINUTES_PER_PREDICTION
            + self.exercises * MINUTES_PER_EXERCISE
            + self.pictures * MINUTES_PER_PICTURE
        )


def text_in(source):
    """Return the texts in calls of `predict`, which count as words and not as code."""
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
    """Count lines of code, without comments, empty lines and lines of text only."""
    only_text = re.compile(r"""\s*(#|$|(because=)?\(?["'].*["'],?\)?\s*$)""")
    return sum(not only_text.match(line) for line in source.splitlines())


def folded(cell):
    """Return whether JupyterLab, Colab and the pages hide the cell's source."""
    metadata = cell.metadata
    return metadata.get("jupyter", {}).get("source_hidden") and metadata.get("cellView") == "form"


def effort(notebook):
    """Count the effort of a lesson."""
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    seen = [cell.source for cell in notebook.cells if cell.cell_type == "code" and not folded(cell)]
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    fences = re.findall(r"```\w*\n(.*?)```", text, re.S)
    bare = re.sub(r"```.*?```|<[^>]+>|\]\([^)]*\)", " ", text, flags=re.S)
    said = " ".join([bare, *(part for source in code for part in text_in(source))])
    known = sum(code_lines(source) for source in code if calls(source, "climb"))
    return Effort(
        words=len(re.findall(r"[^\W_][\w.,'%°^-]*", said)),
        lines=sum(map(code_lines, [*seen, *fences])) - known // 2,
        longest_cell=max(code_lines(source) for source in code if not calls(source, "climb")),
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
    limit = MAX_ELECTIVE_MINUTES if path.parent.name == "electives" else MAX_MINUTES
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    text = "".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown").lower()
    beginning, minutes = notebook.cells[0].source, counted.minutes
    stated = int((re.search(r"takes about (\d+) minutes", beginning) or [0, 0])[1])
    predictions = [
        cell
        for cell in notebook.cells
        if cell.cell_type == "code" and calls(cell.source, "predict")
    ]
    conditions = {
        f"it takes {minutes:.0f} minutes": minutes > limit,
        f"a cell has {counted.longest_cell} lines": counted.longest_cell > MAX_LINES,
        f"{to_write(code)} cells say 'your lines'": to_write(code) < MIN_EXERCISES,
        "a prediction has no call of `predict`": "**predict" in text,
        "a prediction's answer is not hidden": not all(map(folded, predictions)),
        "no goals at the top": "ou will be able to" not in beginning,
        f"it says {stated} minutes, counted are {minutes:.0f}": abs(stated - minutes) > 4,
    }
    return [fault for fault, is_present in conditions.items() if is_present]


@each_lesson
def test_a_lesson_is_short_and_has_exercises(path):
    assert faults(path) == []


# --- names and hints that a learner needs -------------------------------------------------------


def names_in(source):
    """Return the names that Python code binds, and those that it reads."""
    bound, read = set(), set()
    for node in ast.walk(ast.parse(re.sub(r"^[%!].*$", "", source, flags=re.M))):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
    return bound, read


def missing_names(cells):
    """Return names that texts, solutions or exercises of a notebook need and no cell binds."""
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    bound, needed = names_in(code)[0] | {*dir(builtins)}, {"np"}  # an array is in every exercise
    arguments = [
        argument
        for name in re.findall(r'\bknown\("(\w+)"\)', code)
        for case in known(name)[1:]
        for argument in case
    ]
    if any(isinstance(argument, pd.DataFrame | pd.Series) for argument in arguments):
        needed.add("pd")
    for text in (cell.source for cell in cells if cell.cell_type == "markdown"):
        for fence in re.findall(r"```python\n(.*?)```", text, re.S):
            bound_by_fence, read = names_in(fence)
            needed |= read - bound_by_fence
        needed |= {*re.findall(r"`(np|pd|plots|records)\.", text)}
    return needed - bound


@each_lesson
def test_names_that_an_exercise_needs_are_imported(path):
    assert missing_names(nbformat.read(path, as_version=4).cells) == set()


def test_a_missing_name_is_found():
    cells = [
        nbformat.v4.new_code_cell('import numpy as np\ncompare(noise, *known("noise"))'),
        nbformat.v4.new_markdown_cell("`records.recorded`\n```python\nx = y + np.sum(x)\n```"),
    ]
    assert missing_names(cells) == {"pd", "records", "y"}


def test_every_sealed_answer_has_a_hint():
    sources = [cell.source for path in LESSONS for cell in nbformat.read(path, as_version=4).cells]
    digests = re.findall(r'\bsealed\("(\w+)"', "\n".join(sources))
    assert sorted(digests) == sorted(HINTS)


# --- predictions --------------------------------------------------------------------------------


def choices():
    """Yield question, answer and choices of the predictions in which these are literals."""
    for path in FOLDER.rglob("*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:
            predictions = calls(cell.source, "predict") if cell.cell_type == "code" else []
            for call in predictions:
                offered = {word.arg: word.value for word in call.keywords}.get("choices")
                if isinstance(offered, ast.List):
                    yield (*map(ast.literal_eval, (*call.args, offered)),)


def test_the_right_choice_is_not_always_the_first():
    first = [
        answer == predict(question, answer, choices=offered).offered()[0]
        for question, answer, offered in choices()
    ]
    assert len(first) >= 10
    assert 0.1 < sum(first) / len(first) < 0.5


# --- the glossary -------------------------------------------------------------------------------

#: A line of the glossary: anchor, term, place and file of the lesson that explains it first.
TERM = re.compile(
    r'- <a id="([a-z0-9-]+)"></a>\*\*(.+?)\*\*: .+ \(\[(lesson \d+|elective)\]\((.+)\)\)\.'
)


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
            first.setdefault(anchor, path.relative_to(FOLDER).as_posix())
    assert first == {anchor: file for anchor, _, _, file in terms()}
    for _, _, label, file in terms():
        elective = file.startswith("electives/")
        assert label == ("elective" if elective else f"lesson {int(file[:2])}")


def test_links_of_lessons_exist():
    """Links stay in the folder in which `make lab` starts Jupyter, which cannot open others."""
    make = (FOLDER.parent / "Makefile").read_text("utf-8")
    opened = FOLDER.parent / re.search(r"jupyter lab --notebook-dir=(\S+)", make)[1]
    for path in [*LESSONS, *FOLDER.glob("*.ipynb"), FOLDER / "glossary.md"]:
        text = path.read_text("utf-8")
        for link in re.findall(r"\]\(([^)#\s]+?)(?:#[^)]*)?\)", text):
            if not link.startswith("http"):
                target = (path.parent / link).resolve(strict=True)
                assert target.is_relative_to(opened.resolve()), f"{path.name}: {link}"


def test_code_in_texts_can_be_highlighted():
    """The site's warnings are errors, and text that a lexer does not know is a warning."""
    lexers = pytest.importorskip("pygments.lexers")
    count = 0
    for path in LESSONS:
        for cell in nbformat.read(path, as_version=4).cells:
            source = cell.source if cell.cell_type == "markdown" else ""
            for language, block in re.findall(r"^```(\w+)\n(.*?)^```", source, re.S | re.M):
                tokens = lexers.get_lexer_by_name(language).get_tokens(block)
                assert "Error" not in {kind[-1] for kind, _ in tokens if kind}, (path.name, block)
                count += 1
    assert count > 40


# --- tests of the estimate ----------------------------------------------------------------------


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
