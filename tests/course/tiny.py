"""A tiny assignment of 10 points, and functions that fill in and damage submissions of it."""

import copy

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

NAME = "T1"


def marked(cell, grade_id, **details):
    cell["id"] = grade_id
    cell.metadata["nbgrader"] = {
        "grade": False,
        "solution": False,
        "locked": False,
        "task": False,
        "schema_version": 3,
        "grade_id": grade_id,
        **details,
    }
    return cell


_TEST = {"grade": True, "locked": True}
_CELLS = [
    ("title", None, "# A tiny assignment\n\nTwo functions and a question."),
    ("setup", {"locked": True}, "import math"),
    ("text-double", None, "Write `double`."),
    (
        "double",
        {"solution": True},
        '''def double(x):
    """Return twice x."""
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION''',
    ),
    (
        "test-double",
        {**_TEST, "points": 3},
        """assert double(2) == 4
### BEGIN HIDDEN TESTS
assert double(-3) == -6
### END HIDDEN TESTS""",
    ),
    ("text-total", None, "Write `total`."),
    ("total", {"solution": True}, "def total(values):\n    return math.fsum(values)"),
    (
        "test-total",
        {**_TEST, "points": 4},
        """cases = [([], 0), ([1, 2], 3)]
### BEGIN HIDDEN TESTS
cases += [([-1], -1), ([0.1] * 10, 1.0)]
### END HIDDEN TESTS
4 * sum(total(values) == right for values, right in cases) / len(cases)""",
    ),
    (
        "why",
        {"grade": True, "solution": True, "points": 3},
        "Rounding differs, for the order of the sum does.",
    ),
]


def source():
    """Return the source: two functions, one with partial credit, and an answer in words."""
    cells = []
    for cell_id, marks, text in _CELLS:
        is_text = marks is None or cell_id == "why"
        cell = new_markdown_cell(text, id=cell_id) if is_text else new_code_cell(text)
        cells.append(marked(cell, cell_id, **marks) if marks else cell)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return new_notebook(cells=cells, metadata=metadata)


def write_source(folder):
    """Write the assignment into a folder of assignments."""
    home = folder / NAME
    home.mkdir(parents=True)
    nbformat.write(source(), home / f"{NAME}.ipynb")
    (home / "data.txt").write_text("7\n")
    return home


DOUBLE = "def double(x):\n    return x + x"
TOTAL = "def total(values):\n    return math.fsum(values)"
WHY = "Because floats are rounded."


def answered(release, double=DOUBLE, total=TOTAL, why=WHY):
    """Fill in a release."""
    notebook = copy.deepcopy(release)
    for grade_id, text in (("double", double), ("total", total), ("why", why)):
        if text is not None:
            cell_of(notebook, grade_id).source = text
    return notebook


def cell_of(notebook, grade_id):
    (marked_cell,) = [
        cell
        for cell in notebook.cells
        if cell.metadata.get("nbgrader", {}).get("grade_id") == grade_id
    ]
    return marked_cell


def place_of(notebook, grade_id):
    return notebook.cells.index(cell_of(notebook, grade_id))


def pasted(notebook, grade_id, after, **changes):
    """Insert a copy of a cell with its metadata after another cell; return the copy."""
    twin = copy.deepcopy(cell_of(notebook, grade_id))
    twin["id"] = f"{grade_id}-copy"
    twin.update(changes)
    notebook.cells.insert(place_of(notebook, after) + 1, twin)
    return twin


def stripped(notebook, keep_ids=True):
    """Return a notebook without nbgrader metadata."""
    notebook = copy.deepcopy(notebook)
    for k, cell in enumerate(notebook.cells):
        cell.metadata.pop("nbgrader", None)
        if not keep_ids:
            cell["id"] = f"other-{k}"
    return notebook
