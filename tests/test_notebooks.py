"""Every lesson runs from top to bottom without warnings, GPU or network.

The folded solution of each exercise then replaces the learner's lines, and the exercise's check
must accept it; wrong answers must be refused with a message. `make test` runs one lesson
in four, `--all` runs all.
"""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import accelviz
from accelviz import course

# A machine with a GPU that only runs kernel tests may be without Jupyter.
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

#: Code that removes the previous lesson's names from a kernel.
AS_NEW = """
from matplotlib import pyplot
pyplot.close("all")
%reset -f
"""
FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
ELECTIVES, PUZZLES = (sorted(FOLDER.glob(f"{name}/*.ipynb")) for name in ("electives", "puzzles"))
NOTEBOOKS = [*sorted(FOLDER.glob("*.ipynb")), *ELECTIVES]


def test_there_are_lessons():
    assert len(ELECTIVES) == 14
    assert [path.name[:2] for path in NOTEBOOKS[:10]] == [f"{i:02}" for i in range(1, 11)]
    assert len(PUZZLES) == 6


def checks_of(source):
    """Return the calls of `compare` and `my_spmm.climb` in a cell as text."""
    return [
        ast.get_source_segment(source, line)
        for line in ast.parse(source).body
        if isinstance(line, ast.Expr)
        and isinstance(line.value, ast.Call)
        and ast.unparse(line.value.func) in ("compare", "my_spmm.climb")
    ]


#: First words of a check's output.
WRONG, RIGHT = "Not yet: ", "Right"
#: Answers that need earlier results: beginning of the lesson's name, answer, words of the output.
LATER = [
    ("05", "four_at_once = one_by_one.replace('k < 8', 'k < 9')", "Not yet: waits("),
    ("05", "four_at_once = one_by_one.replace(';', '')", "Not yet: waits("),
    ("05", "four_at_once = one_by_one", "Not yet: waits("),
    ("lanes", "padded = turned.replace('32][32]', '32][34]')", "Not yet: trips("),
    ("lanes", "padded = turned.replace('32][32]', '40][32]')", "Not yet: trips("),
    (
        "05",
        """four_at_once = one_by_one.replace(
    "++k)", "k += 4) { const int4 c = *(const int4 *)&columns[k]; const float *x = X + threadIdx.x;"
).replace("X[32 * columns[k] + threadIdx.x];", "x[32 * c.x] + x[32 * c.y]"
    " + x[32 * c.z] + x[32 * c.w]; }")""",
        RIGHT,
    ),
    ("lanes", "padded = turned.replace('32', '33')", "Not yet: trips("),
    (
        "every-strategy",
        """class LongestFirst(SortedRows):
    name = "longest_first"
    @staticmethod
    def order(graph):
        three = np.argsort(-graph.degrees)[:3]
        others = np.setdiff1d(np.arange(graph.n_rows), three)
        return accelviz.ordering.Permutation(np.append(three, others))
longest = accelviz.plan(graph, LongestFirst(), 32)""",
        "Not yet: yours gives",
    ),
    (
        "neighbor",
        "def groups(degrees, ngs): return int((degrees // ngs).sum())",
        "Not yet: groups(",
    ),
    ("neighbor", "def groups(degrees, ngs): return len(degrees)", "Not yet: groups("),
    ("neighbor", "def decider(d): return (32, 1024 * 32 // d)", "Not yet: decider("),
    ("neighbor", "def decider(d): return (16, round(1024 * 16 / d))", "Not yet: decider("),
    (
        "tensor-cores",
        "def reuse(graph, rows): return row_windows(graph, rows).reuse",
        "Not yet: the results are right, but reuse has row_windows.",
    ),
    ("bits", "crossovers = sparse[sparse > dense[8]]", "Not yet: yours gives\ndensity\n"),
]


def solved(notebook, lesson):
    """Yield cells with an answer to an exercise and its check, and the expected output."""
    answers = [(answer, said) for name, answer, said in LATER if lesson.startswith(name)]
    for cell, after in zip(notebook.cells, notebook.cells[1:], strict=False):
        checks = checks_of(cell.source) if cell.cell_type == "code" else []
        if checks:
            solution = re.search(r"<summary>Solution.*?```python\n(.*?)```", after.source, re.S)
            assert solution, f"no solution in Python after: {cell.source}"
            cell_answers = [pair for pair in answers if asks_for(cell.source, pair[0])]
            for answer, said in [*cell_answers, (solution[1], RIGHT)]:
                yield nbformat.v4.new_code_cell("\n".join([answer, *checks])), said


def asks_for(source, answer):
    """Return whether a cell checks a name that an answer defines."""
    name = re.match(r"(?:def |class )?(\w+)", answer)[1]
    return "\ncompare(" in source and re.search(rf"^(def |class )?{name}\b", source, re.M)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Start one kernel for all lessons of this process, which saves a quarter of the time."""
    folder = {"metadata": {"path": tmp_path_factory.mktemp("lessons")}}  # for my_spmm.cu
    session = nbclient.NotebookClient(nbformat.v4.new_notebook(), timeout=180, resources=folder)
    yield session
    session.nb = nbformat.v4.new_notebook()
    session.execute()  # ends the kernel


def outputs(client, path):
    """Run a notebook and return the outputs of its cells by their source."""
    notebook = client.nb = nbformat.read(path, as_version=4)
    answers = [*solved(notebook, path.stem)]
    added = [cell for cell, _ in answers]
    notebook.cells = [nbformat.v4.new_code_cell(AS_NEW), *notebook.cells, *added]
    client.execute(cleanup_kc=False)
    for cell, verdict in answers:
        printed = "".join(output.get("text", "") for output in cell.outputs)
        said = printed.rpartition("\r")[2].lstrip()  # after a progress bar
        assert said.startswith(verdict), f"{said}\n{cell.source}"
    shown_outputs = [
        (cell.source, output) for cell in notebook.cells for output in cell.get("outputs", [])
    ]
    for _, output in shown_outputs:
        assert output.get("name") != "stderr", output["text"]
    return shown_outputs


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "path",
    # The document of graphs, which makes thirty twins, is no lesson.
    [
        pytest.param(path, marks=pytest.mark.long if path.stem == "graphs" else ())
        for path in NOTEBOOKS
    ],
    ids=lambda path: path.stem,
)
def test_lesson_runs(client, path):
    contents = [output.get("data", {}) for _, output in outputs(client, path)]
    assert any("image/png" in data or "<img" in data.get("text/html", "") for data in contents)


#: Answers of students, for values: lesson and description, with the first words of the output.
#: Those for functions are in course/lesson_answers.py.
ANSWERS = {
    ("more the digits of the text", RIGHT): "both = 0.93",
    ("more groups of warps", WRONG): "both = 0.948",
    ("09 a list", RIGHT): "setting = [15, 8]",
    ("09 an array", RIGHT): "setting = np.array([15, 8])",
    ("09 the other way round", WRONG): "setting = (8, 15)",
    ("tensor-cores the digits of the text", RIGHT): "crossovers = [0.008, 0.06]",
    ("tensor-cores the density before", WRONG): "crossovers = [1 / 256, 1 / 16]",
    ("bits the digits of the text", RIGHT): "crossovers = [0.016, 0.004]",
    ("bits the density after", WRONG): "crossovers = [1 / 32, 1 / 256]",
}


@pytest.mark.parametrize(("called", "verdict"), ANSWERS)
def test_an_exercise_knows_right_from_nearly_right(called, verdict, capsys):
    answer, lesson = ANSWERS[called, verdict].strip(), called.split()[0]
    (path,) = (path for path in NOTEBOOKS if path.stem.startswith(lesson))
    cells = nbformat.read(path, as_version=4).cells
    (cell,) = (cell for cell in cells if asks_for(cell.source, answer))
    names = {"np": np, "accelviz": accelviz}
    names |= {name: getattr(course, name) for name in course.__all__}
    for source in (cell.source, answer, *checks_of(cell.source)):
        exec(source, names)
    not_written, said = capsys.readouterr().out.split("\n", 1)
    assert not_written.startswith(("Not written yet", "Not yet: yours gives Ellipsis"))
    assert said.startswith(verdict)


@pytest.mark.parametrize("path", PUZZLES, ids=lambda path: path.stem)
def test_puzzles_that_nobody_has_filled_in_say_what_to_do(client, path):
    verdicts = [
        (source, output["data"]["text/html"])
        for source, output in outputs(client, path)
        if "puzzles.check(" in source
    ]
    assert verdicts
    for source, html in verdicts:
        if "// --- your lines\n\n" in source:
            assert "✗ Not yet.</b>" in html
            assert "Write your lines between the two marks" in html
        else:
            assert "accelviz-picture" in html


@pytest.mark.parametrize("path", [*NOTEBOOKS, *PUZZLES], ids=lambda path: path.stem)
def test_lesson_is_committed_without_outputs(path):
    for cell in nbformat.read(path, as_version=4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
