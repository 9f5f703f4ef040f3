"""A class that hands in right, blank, unusual and hostile submissions of the shipped assignments.

Most attacks are submissions of a part of A1, because every test runs in a process of its own.
"""

from __future__ import annotations

import contextlib
import copy
import os
import socket
from collections.abc import Collection
from pathlib import Path
from typing import Any

import nbformat

from accelviz.course.autograde import sandbox
from accelviz.course.autograde.assignments import Assignment
from accelviz.course.autograde.border import Limits
from accelviz.course.autograde.cells import is_locked, is_solution, is_test, question_of
from accelviz.devices import find_device
from tests.course import tiny
from tests.course.attacks import ATTACKS, SAY, STUFFED
from tests.course.honest import HONEST
from tests.course.wrong import A1, A4, A5, ASSIGNMENTS, PART

COMPILER = find_device("emulator").unavailable_reason() is None
#: Texts that no submission may show: of the grader's environment, of its notes, of another student.
SECRETS = ("secret of the course", "notes of the instructor", "what another student wrote")
#: The course's seed, which no submission may show either. The points of some attacks depend on it.
SEED = 918_273
_TEXTS = (nbformat.v4.new_markdown_cell, nbformat.v4.new_raw_cell)


def filled_in(assignment: Assignment, solutions: Any = None) -> Any:
    """Return a release with `solutions`, by the last parts of the grade ids, else the right ones.

    With `solutions` the cells without a grade id, which take most of the time, are removed.
    """
    notebook = copy.deepcopy(assignment.released)
    pairs = list(zip(notebook.cells, assignment.source.cells, strict=True))
    if solutions is not None:
        pairs = [(cell, solution) for cell, solution in pairs if question_of(cell)]
        notebook.cells = [cell for cell, _ in pairs]
    for cell, solution in pairs:
        if is_solution(cell):
            lines = [line for line in solution.source.split("\n") if "SOLUTION" not in line]
            key = question_of(cell).partition("-")[2]
            cell.source = (solutions or {}).get(key, "\n".join(lines))
    return notebook


def points_of(notebook: Any, assignment: Assignment, seed: int = 0) -> dict[str, float]:
    """Return the points of each graded code cell of a submission, without nbgrader."""
    tests = {question_of(cell): cell.source for cell in assignment.source.cells}
    for cell in notebook.cells:
        if is_locked(cell):
            cell.source = tests[question_of(cell)]
    runs = sandbox.run(notebook, Limits(), library=assignment.folder, seed=seed)
    points = {}
    for run in runs:
        cell = notebook.cells[run.index]
        if is_test(cell):
            values = [output.data["text/plain"] for output in cell.outputs if "data" in output]
            most = float(cell.metadata["nbgrader"]["points"])
            failed = any(output.output_type == "error" for output in cell.outputs)
            points[run.question] = 0.0 if failed else float(values[0]) if values else most
    return points


def hand_in(root: Path, student: str, name: str, notebook: Any) -> Path:
    folder = root / "submitted" / student / name
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / f"{name}.ipynb")
    return folder


def part() -> Any:
    """Return the source of the assignment `PART`: two questions of A1, 8 points."""
    notebook = copy.deepcopy(ASSIGNMENTS[A1].source)
    parts = ("A1-imports", "A1-places", "A1-inverse")
    notebook.cells = [cell for cell in notebook.cells if question_of(cell).startswith(parts)]
    return notebook


def hand_in_all(root: Path, port: int, asked: Collection[str | None]) -> None:
    """Fill `submitted/` of a course; of the attackers, only with those in `asked`."""
    assignments = {**ASSIGNMENTS, PART: Assignment(root / "source" / PART)}
    for name, assignment in ASSIGNMENTS.items():
        if COMPILER or name != A4:
            perfect = filled_in(assignment)
            perfect.cells.append(nbformat.v4.new_markdown_cell(SECRETS[2]))
            hand_in(root, "perfect", name, perfect)
        blank = copy.deepcopy(assignment.released)
        blank.cells = [cell for cell in blank.cells if question_of(cell)]
        hand_in(root, "blank", name, blank)
    for student, attack in ATTACKS.items():
        if student in asked and (COMPILER or attack.assignment != A4):
            solutions = {
                key: text.replace("{root}", str(root))
                .replace("{port}", str(port))
                .replace("{say}", SAY)
                if attack.assignment == PART
                else text
                for key, text in attack.solutions.items()
            }
            notebook = filled_in(assignments[attack.assignment], solutions)
            for part in attack.moved:
                names = [question_of(cell).partition("-")[2] for cell in notebook.cells]
                notebook.cells.append(notebook.cells.pop(names.index(part)))
            if attack.first:
                notebook.cells.insert(0, nbformat.v4.new_code_cell(attack.first))
            folder = hand_in(root, student, attack.assignment, notebook)
            for name, text in attack.files.items():
                (folder / name).write_text(text)
    for student in HONEST.keys() & asked:
        name, solutions = HONEST[student]
        if COMPILER or name != A4:
            hand_in(root, student, name, filled_in(assignments[name], solutions))
    for student in STUFFED.keys() & asked:
        notebook = filled_in(assignments[PART], {})
        if STUFFED[student].cell:
            copies = 100 if student == "wordy" else 1
            cells = [nbformat.v4.new_code_cell(STUFFED[student].cell) for _ in range(copies)]
            notebook.cells += cells
        if student == "claims":
            locked = {"grade": True, "locked": True, "solution": False, "points": 777}
            tiny.marked(notebook.cells[-1], "A1-extra", **locked)
            notebook.metadata["accelviz"] = {"key": "", "runs": []}
            notebook.metadata["kernelspec"] |= {
                "name": "sh",
                "argv": ["touch", f"{root}/left-behind"],
            }
            notebook.metadata |= {
                "widgets": {"x": {}},
                "jupytext": {"cell_metadata_filter": "-all"},
            }
            notebook.cells += [new("a <b>bold</b> <script>alert(1)</script>") for new in _TEXTS]
            notebook.cells[-1].metadata["raw_mimetype"] = "text/html"
            data = dict.fromkeys(
                ("text/html", "application/javascript"), "<script>alert(1)</script>"
            )
            output = nbformat.v4.new_output("display_data", data)
            notebook.cells.append(nbformat.v4.new_code_cell(" ", outputs=[output]))  # never run
        _add_files(hand_in(root, student, PART, notebook), student)
    (root / "submitted" / "linked").mkdir()
    (root / "submitted" / "linked" / A1).symlink_to(root / "submitted" / "perfect" / A1)
    (root / "submitted" / "linked-file" / A1).mkdir(parents=True)
    link = root / "submitted" / "linked-file" / A1 / f"{A1}.ipynb"
    link.symlink_to(root / "submitted" / "perfect" / A1 / f"{A1}.ipynb")
    hand_in(root, "=1+1", A5, ASSIGNMENTS[A5].released)  # a formula for spreadsheets
    hand_in(root, "zoe", A1, filled_in(ASSIGNMENTS[A1], {}))  # graded after the attacks


def _add_files(folder: Path, kind: str) -> None:
    if kind == "sparse":
        with open(folder / "large.bin", "wb") as file:
            file.truncate(3 << 30)
    elif kind == "many":
        for k in range(500):
            (folder / f"{k}.txt").write_text("x")
    elif kind == "devices":
        for name in ("pipe", "pipe.ipynb"):
            os.mkfifo(folder / name)
        (folder / "etc").symlink_to("/etc")
        (folder / "passwd.txt").symlink_to("/etc/passwd")
        (folder / "copy.ipynb").hardlink_to(folder / f"{PART}.ipynb")
        for name in ("-rf", "$(id)", "a\nb", "\x1b[2J", "\u202etxt", "x" * 255, " ", "'=1+1;"):
            (folder / name).write_text("x")
        with socket.socket(socket.AF_UNIX) as listening, contextlib.chdir(folder):
            listening.bind("socket")
    elif kind == "latin1":
        (folder / os.fsdecode(b"Gr\xf6\xdfe.txt")).write_text("x")
    elif kind == "shadows":
        wrong = "raise SystemExit('shadowed')"
        (folder / "accelviz").mkdir()
        for name in (
            *("accelviz/__init__", "accelviz/course", "ipykernel_launcher", "numpy", "json"),
            *("sitecustomize", "usercustomize", "conftest", "ipython_config", "nbgrader_config"),
            *("jupyter_config", "matplotlib", "numba", "setup", "__main__"),
        ):
            (folder / f"{name}.py").write_text(wrong)
        for name in ("left.pth", "matplotlibrc", "pyproject.toml", "pytest.ini", "specs"):
            (folder / name).write_text(f"import json; {wrong}\n")


def lost_points(grades: Any, student: str) -> dict[str, float]:
    """Return the questions of a student with fewer than all points, and these points."""
    rows = grades[(grades["student"] == student) & grades[["points", "max"]].notna().all(axis=1)]
    left = rows[rows["points"] != rows["max"]]
    names = [name.partition("-")[2] for name in left["question"]]
    return dict(zip(names, left["points"], strict=True))
