"""The leaderboard of a class's partition schemes and the papers' over hidden graphs."""

# ruff: noqa: E402 (what is tested needs what is skipped for)

import re
import shutil
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest

nbformat = pytest.importorskip("nbformat", reason="running submissions needs nbformat")
pytest.importorskip("nbgrader", reason="grading needs nbgrader")
if sys.platform == "win32":
    pytest.skip("submissions are not confined on Windows", allow_module_level=True)

import accelviz
from accelviz import cli
from accelviz.course.autograde.leaderboard import PAPERS, leaderboard, standings
from accelviz.course.autograde.release import release
from accelviz.course.checks import hidden
from tests.course import tiny

pytestmark = pytest.mark.xdist_group("grader")
#: The course's seed of hidden graphs.
SEED = 9

ROW_PER_WARP = """
    import os
    import numpy as np
    from accelviz.course.scheme import Partition, Scheme
    from accelviz.workload import Workload

    class Mine(Scheme):
        name = "row_per_warp"

        def partition(self, graph):
            n = graph.shape[0]
            return Partition(max(1, -(-n // 4)), 4)

        def workload(self, matrix, metadata, start, stop):
            rows = np.arange(start * 4, min(stop * 4, matrix.n_rows))
            counts = matrix.degrees[rows]
            return Workload(rows // 4, rows % 4, rows, matrix.row_pointers[rows], counts)
"""
SUBMISSIONS = {
    "ada": ROW_PER_WARP,
    "bob": ROW_PER_WARP.replace(
        "counts = matrix.degrees[rows]", "counts = matrix.degrees[rows] // 2"
    ),
    "cleo": ROW_PER_WARP.replace("n = graph.shape[0]\n", "os.abort()\n"),
    "dan": "x = 1",
    # another name for each graph, none for large ones; the process ends at a small graph
    "hal": ROW_PER_WARP.replace(
        '"row_per_warp"', "property(lambda self: os.urandom(4).hex())"
    ).replace("n = graph.shape[0]", "n = graph.shape[0] if graph.shape[0] < 1_000 else 1 // 0"),
    "ida": ROW_PER_WARP.replace(
        "n = graph.shape[0]", "n = graph.shape[0] if graph.shape[0] > 700 else os.abort()"
    ),
    # replaces the functions that compute the score; its name is HTML
    "eve": ROW_PER_WARP.replace("row_per_warp", "<script>alert(1)</script>|`").replace(
        "    class Mine",
        "    from IPython.display import display\n"
        "    from accelviz.course.checks import schemes\n"
        "    schemes.measurements['', 'hub'] = dict(scheme='best', graph='hub', score=999)\n"
        "    schemes.earned = schemes.measured = lambda *_: float('nan')\n"
        "    display({'application/json': [{'total': 999, 'score': 'nan'}]}, raw=True)\n"
        "    class Mine",
    ),
}


TEST = """
    from accelviz.course import checks
    checks.schemes.earned(Mine(), checks.hidden.graphs(5), "waiting", points=8)
"""


def notebook(code):
    """Return a notebook with a scheme and the test that measures it."""
    scheme = tiny.marked(nbformat.v4.new_code_cell(textwrap.dedent(code)), "scheme", solution=True)
    test = nbformat.v4.new_code_cell(textwrap.dedent(TEST))
    test = tiny.marked(test, "test-scheme", grade=True, locked=True, points=8)
    metadata = {"kernelspec": {"name": "python3", "display_name": "P", "language": "python"}}
    return nbformat.v4.new_notebook(cells=[scheme, test], metadata=metadata)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a graded course with a seed of its own, and a submission that came later."""
    source = tmp_path_factory.mktemp("sources") / "A3-scheme"
    source.mkdir()
    nbformat.write(notebook("x = 0"), source / "A3-scheme.ipynb")
    root = tmp_path_factory.mktemp("course")
    release(root, shipped=source.parent)
    settings = root / "nbgrader_config.py"
    settings.write_text(re.sub(r"seed = \d+", f"seed = {SEED}", settings.read_text()))
    (root / "submitted" / "flo" / "A3-scheme").mkdir(parents=True)
    for student, code in SUBMISSIONS.items():
        home = root / "submitted" / student / "A3-scheme"
        home.mkdir(parents=True)
        nbformat.write(notebook(code), home / "A3-scheme.ipynb")
    assert cli.main(["assignments", "grade", "--course", str(root), "--as-root"]) == 1
    shutil.copytree(root / "submitted" / "ada", root / "submitted" / "gus")
    return root


@pytest.fixture(scope="module")
def board(folder):
    return leaderboard(folder)


@pytest.fixture
def graphs(monkeypatch):
    """The hidden graphs of the course."""
    monkeypatch.setenv(hidden.COURSE_SEED, str(SEED))
    return hidden.graphs(5)


def waiting(graph):
    """Return the idle share of a scheme with one warp per row, four warps per block."""
    padded = np.zeros(-(-graph.shape[0] // 4) * 4)
    padded[: graph.shape[0]] = graph.degrees
    return 1 - graph.nnz / (4 * padded.reshape(-1, 4).max(axis=1).sum())


def test_a_scheme_is_measured_on_each_hidden_graph(board, graphs):
    rows = board[board["student"] == "ada"].set_index("graph")
    assert set(rows.index) == set(graphs)
    assert rows["exact_cover"].all()
    for name, graph in graphs.items():
        assert rows.loc[name, "waiting"] == pytest.approx(waiting(graph))
        assert rows.loc[name, "busiest_warp"] == graph.degrees.max()
        assert rows.loc[name, "cut_parts"] == 0
    assert list(rows["total"]) == pytest.approx([100 * rows["score"].mean()] * 5, abs=0.051)


@pytest.mark.parametrize(
    ("student", "says"),
    [
        ("bob", "PartitionError: "),
        ("cleo", "process died"),
        ("dan", "NameError: name 'Mine' is not defined"),
        ("flo", "it is not graded"),
        ("gus", "it is not graded"),
    ],
)
def test_a_scheme_that_fails_has_no_score_and_leaves_the_others(board, student, says):
    rows = board[board["student"] == student]
    assert rows["problem"].str.contains(says, regex=False).all()
    assert not rows["exact_cover"].any()
    assert (rows["total"] == 0).all()


def test_the_best_scheme_is_first_and_the_papers_last(board, graphs):
    students = list(dict.fromkeys(board["student"]))
    assert students[:2] == ["ada", "eve"]
    assert students[-1] == PAPERS
    assert sorted(students[2:4]) == ["hal", "ida"]
    assert sorted(students[4:-1]) == ["bob", "cleo", "dan", "flo", "gus"]
    papers = board[board["student"] == PAPERS]
    assert papers[papers["scheme"] == "accel_gcn"]["waiting"].mean() == pytest.approx(
        np.mean(
            [
                accelviz.plan(graph, "accel_gcn", 32).statistics.idle_share
                for graph in graphs.values()
            ]
        )
    )


def test_a_submission_cannot_change_its_score(board):
    numbers = [name for name in board.columns if board[name].dtype.kind == "f"]
    groups = board.groupby("student")
    scores = {student: rows[numbers].reset_index(drop=True) for student, rows in groups}
    pd.testing.assert_frame_equal(scores["eve"], scores["ada"])
    assert standings(board)["scheme"].tolist()[1] == "<script>alert(1)</script>|`"


def test_a_graph_without_a_score_counts(board):
    for student in ("hal", "ida"):
        rows = board[board["student"] == student]
        assert 0 < rows["exact_cover"].sum() < 5
        assert len(set(rows["scheme"])) == 1
        assert list(rows["total"]) == pytest.approx([20 * rows["score"].sum()] * len(rows), abs=0.1)


def test_the_standings_have_a_row_for_each_scheme(board):
    lines = standings(board)
    assert list(lines.columns[:4]) == ["rank", "student", "scheme", "exact_cover"]
    assert lines.iloc[0, :4].tolist() == [1, "ada", "row_per_warp", 5]
    assert lines["rank"].dropna().tolist() == [1, 1, 3, 4, 5, 5, 5, 5, 5]
    assert (lines["student"] == PAPERS).sum() == lines["rank"].isna().sum() == 4
    scores = board[board["student"] == "ada"].set_index("graph")["score"]
    assert lines.loc[0, list(scores.index)].tolist() == pytest.approx([*(100 * scores)])


def test_the_command_writes_a_table_and_a_page(folder, capsys):
    assert cli.main(["assignments", "leaderboard", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:2] == ["1", "ada"]
    assert any(line.startswith("cleo : ") and "process died" in line for line in lines)
    frame = pd.read_csv(folder / "leaderboard.csv")
    assert set(frame["student"]) == {*SUBMISSIONS, "flo", "gus", PAPERS}
    page = (folder / "leaderboard.html").read_text("utf-8")
    assert page.startswith('<!doctype html>\n<meta charset="utf-8">')
    assert "&lt;NA&gt;" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script" not in page
