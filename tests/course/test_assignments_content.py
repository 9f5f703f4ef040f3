"""The assignments' notebooks: metadata of cells, points in the text, releases for students."""

import ast
import copy
import math
import re

import pytest

# A GPU machine that only runs the kernels need not have Jupyter.
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

import numpy as np  # noqa: E402

import accelviz  # noqa: E402
from accelviz.datasets import graph_of_degrees  # noqa: E402
from accelviz.files import notebooks_directory  # noqa: E402
from accelviz.measure import records  # noqa: E402
from accelviz.partition.block_level import BlockSetting  # noqa: E402
from tests.course.wrong import ASSIGNMENTS, marked  # noqa: E402
from tests.course.wrong_answers import WRONG  # noqa: E402

#: Points of each assignment, and how many of them are given by hand.
POINTS = {
    "A1-counting-sort": (20, 0),
    "A2-block-partition": (30, 0),
    "A3-your-own-scheme": (40, 0),
    "A4-cuda-kernel": (40, 0),
    "A5-report": (40, 32),
}
#: Seeds of hidden tests.
SEED = re.compile(r"\b4[1-5]\d\d\b")


# The notebooks


def test_there_are_five_assignments():
    assert sorted(POINTS) == list(ASSIGNMENTS)


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_cells_have_valid_nbgrader_metadata(name):
    notebook, seen = ASSIGNMENTS[name].source, []
    assert notebook.metadata["kernelspec"]["name"] == "python3"
    for cell, known in marked(notebook):
        assert known["schema_version"] == 3
        assert known["cell_type"] == cell.cell_type
        assert known["grade_id"].startswith(name[:2] + "-")
        assert cell.id == known["grade_id"]
        kinds = {kind for kind in ("grade", "solution", "locked", "task") if known[kind]}
        test, written = {"grade", "locked"}, {"grade", "solution"}
        assert kinds in (test, written, {"solution"}, {"locked"}, {"locked", "task"})
        assert (cell.cell_type == "markdown") == (kinds in (written, {"locked", "task"}))
        assert ("points" in known) == bool(kinds & {"grade", "task"})
        seen.append(known["grade_id"])
    assert len(set(seen)) == len(seen)
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_points_in_the_text_match_the_metadata(name):
    total, by_hand = POINTS[name]
    notebook = ASSIGNMENTS[name].source
    most = [(cell.cell_type, known.get("points", 0)) for cell, known in marked(notebook)]
    assert sum(points for _, points in most) == total
    assert sum(points for kind, points in most if kind == "markdown") == by_hand
    assert f"**{total} points.**" in notebook.cells[0].source
    table = [line.split("|") for line in notebook.cells[0].source.splitlines() if line[:2] == "| "]
    column = [text.strip() for text in table[0]].index("points")
    cells = [line[column].strip() for line in table[1:]]
    assert sum(int(text) for text in cells if text.isdigit()) == total
    for cell, known in marked(notebook):
        if "Hidden test" in cell.source:
            points = f"{known['points']} point{'s' if known['points'] > 1 else ''})"
            assert points in cell.source.splitlines()[0], known["grade_id"]


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_a_release_has_neither_solutions_nor_hidden_tests(name):
    notebook = ASSIGNMENTS[name].released
    for cell, known in marked(notebook):
        for word in ("BEGIN", "END SOLUTION", "MARK SCHEME"):
            assert word not in cell.source, known["grade_id"]
        assert not SEED.search(cell.source), known["grade_id"]
        if cell.cell_type == "code":
            ast.parse(cell.source)
        if known["solution"] and cell.cell_type == "code":
            assert "raise NotImplementedError()" in cell.source
    seeds = [
        seed for cell, _ in marked(ASSIGNMENTS[name].source) for seed in SEED.findall(cell.source)
    ]
    assert bool(seeds) == (name != "A5-report")


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_notebooks_assignments_has_the_releases(name):
    folder = notebooks_directory() / "assignments"
    released_notebook = nbformat.read(folder / name / f"{name}.ipynb", as_version=4)
    assert released_notebook == ASSIGNMENTS[name].released
    assert sorted(path.name for path in folder.iterdir()) == list(ASSIGNMENTS)


def test_a_source_runs_from_top_to_bottom_in_a_kernel():
    name = "A1-counting-sort"  # grading runs all assignments, without a kernel
    notebook = copy.deepcopy(ASSIGNMENTS[name].source)
    nbclient.NotebookClient(
        notebook,
        timeout=180,
        store_widget_state=False,
        resources={"metadata": {"path": ASSIGNMENTS[name].folder}},
    ).execute()
    points = 0.0
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            assert output.get("name") != "stderr", output["text"]
    for cell, known in marked(notebook):
        if cell.cell_type != "code" or not known["grade"]:
            continue
        assert all(output.output_type == "execute_result" for output in cell.outputs)
        texts = [output["data"]["text/plain"] for output in cell.outputs]
        points += float(texts[0]) if texts else known["points"]
    total, by_hand = POINTS[name]
    assert points == total - by_hand


def test_there_are_wrong_submissions_of_every_kind():
    counts = {name: sum(wrong.assignment == name for wrong in WRONG) for name in list(ASSIGNMENTS)}
    assert min(counts.values()) >= 3
    assert sum(counts.values()) >= 40


# The marking schemes


def marking(cell_id):
    return next(cell for cell in ASSIGNMENTS["A5-report"].source.cells if cell.id == cell_id).source


@pytest.mark.parametrize("graph", ["cora", "pubmed"])
def test_marking_schemes_quote_the_recorded_numbers(graph):
    times = records.recorded("sweeps-h200").query("graph == @graph and columns == 64")
    setting = times["parameters"].str.extract(r"max_block_warps=(\d+) max_warp_nzs=(\d+)")
    setting = setting.astype(int)
    times = times.assign(max_block_warps=setting[0], max_warp_nzs=setting[1])
    table = accelviz.sweep(
        graph,
        max_block_warps=sorted(setting[0].unique()),
        max_warp_nzs=sorted(setting[1].unique()),
    )
    both = times.merge(table, on=["max_block_warps", "max_warp_nzs"])
    assert len(both) == 45
    published = both.query("max_block_warps == 12 and max_warp_nzs == 32")["median_us"].item()
    fastest = both["median_us"].min()
    gain = f"{1 - fastest / published:.1%}"
    measure, explain = marking("A5-measure"), marking("A5-explain")
    for number in (f"{fastest:.2f} us", f"{published:.2f} us"):
        assert number in measure
    assert f"{math.floor(float(gain[:-1]) + 0.5)} % less" in measure
    assert f"{both['floor_us'].iloc[0]:.2f} us" in measure
    ranks = both[["median_us", "idle_share", "largest"]].rank().corr()["median_us"]
    assert f"{ranks['idle_share']:.2f}" in explain
    assert f"{ranks['largest']:.2f}" in explain
    cut = both["rows_cut"] > 0
    assert f"{both.loc[cut, 'median_us'].min():.2f} us" in explain
    assert both.loc[~cut, "median_us"].min() == fastest


# The examples


def tables(name):
    """Return the tables of a release as lists of rows of cells, headers included."""
    text = "\n".join(
        cell.source for cell in ASSIGNMENTS[name].source.cells if cell.cell_type == "markdown"
    )
    blocks = re.findall(r"(?:^\|.*\n)+", text + "\n", re.M)
    lines = (block.splitlines() for block in blocks)
    return [
        [[part.strip() for part in line.strip("|").split("|")] for line in block] for block in lines
    ]


def numbers(rows, count):
    """Return the first `count` numbers of each line of a table below its header."""
    return [[int(re.match(r"\d+", cell)[0]) for cell in row[:count]] for row in rows[2:]]


def test_the_tiny_example_of_a1_is_sorted_right():
    steps = {
        row[0]: row[1].strip("`")
        for row in next(t for t in tables("A1-counting-sort") if t[0][0] == "step")
    }
    degrees = np.array(ast.literal_eval(steps["degrees"]))
    counts = np.bincount(degrees)
    order = np.argsort(degrees, kind="stable")
    expected = {
        "counts": counts,
        "places": np.cumsum(counts) - counts,
        "order": order,
        "inverse": np.argsort(order),
    }
    for step, array in expected.items():
        assert ast.literal_eval(steps[step]) == array.tolist()


def test_the_tables_of_a2_are_those_of_the_plan():
    degrees = [0, 1, 1, 3, 5]
    setting = {"max_block_warps": 2, "max_warp_nzs": 2}
    plan = accelviz.plan(graph_of_degrees(degrees), "accel_gcn", 32, **setting)
    by_header = {tuple(table[0][:2]): table for table in tables("A2-block-partition")}
    patterns = numbers(by_header["degree", "`factor`"], 4)
    rule = BlockSetting(**setting)
    assert patterns == [[degree, *map(int, rule.pattern(degree))] for degree in (1, 3)]
    blocks = numbers(by_header["block", "degree"], 5)
    assert [block[1:] for block in blocks] == plan.metadata.tolist()
    work = plan.workload(0, len(blocks))
    columns = (work.block, work.warp, work.row, work.nz_start, work.nz_count)
    assert numbers(by_header["block", "warp"], 5) == np.stack(columns, axis=1).tolist()
    text = "\n".join(cell.source for cell in ASSIGNMENTS["A2-block-partition"].source.cells)
    assert f"3 - 2^{{32}} = {np.uint32(40000 << 16 | 3).astype(np.int32)}$" in text


def test_the_example_and_the_scale_of_a4():
    runs = [-(-count // 32) for count in (2, 40, 0, 1, 2)]
    assert sum(runs) == 5
    text = "\n".join(cell.source for cell in ASSIGNMENTS["A4-cuda-kernel"].source.cells)
    for words in ("*Row 1 has two runs", "three of the four warps of block 1 have none"):
        assert words in text
    half = 32 / math.sqrt(32 / 4)  # 8 log(32 / s) / log(32 / 4) = 4
    assert f"half of them for about {half:.0f}, none for 32" in text
