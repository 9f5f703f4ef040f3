"""The lessons' exercises refuse wrong answers and accept unusual right ones, in all their cases."""

import ast
import decimal
import fractions
import math
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import accelviz
from accelviz.analysis.balance import group_idle_share
from accelviz.course import PRODUCTS, compare, known, references, sparse_columns
from accelviz.datasets import load_graph
from accelviz.errors import ArgumentError
from accelviz.many_gpus import plan, split
from accelviz.ordering import vertex_order
from accelviz.partition.windows import row_windows

from . import lesson_answers, more_right_answers, table_answers
from .wrong_lines import with_pieces_replaced

nbformat = pytest.importorskip("nbformat", reason="lessons are notebooks")
FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
CHECK = re.compile(r'^compare\((?:sparse_columns\()?(\w+)\)?, \*known\("(\w+)"\).*', re.M)
WRONG = lesson_answers.WRONG | table_answers.WRONG
RIGHT = lesson_answers.RIGHT | table_answers.RIGHT


def solutions():
    """Return solution, check and cell of the exercises that `known` checks, by name."""
    texts = {}
    for path in [*FOLDER.glob("*.ipynb"), *FOLDER.glob("electives/*.ipynb")]:
        for cell, after in pairwise(nbformat.read(path, as_version=4).cells):
            if check := CHECK.search(cell.source):
                assert check[1] == check[2]
                code = re.search(r"<summary>Solution.*?```python\n(.*?)```", after.source, re.S)[1]
                texts[check[1]] = code, check[0], cell.source
    return texts


SOLUTIONS = solutions()
each_exercise = pytest.mark.parametrize("name", references.EXERCISES)


#: Names that solutions and checks use.
NAMES = {"np": np, "pd": pd, "math": math, "sparse": sparse, "accelviz": accelviz}
NAMES |= {"PRODUCTS": PRODUCTS, "compare": compare, "known": known}
NAMES |= {"sparse_columns": sparse_columns, "row_windows": row_windows}
NAMES |= {"group_idle_share": group_idle_share, "vertex_order": vertex_order}


def said_of(name, answer, capsys):
    """Return what an exercise says of an answer."""
    names, (solution, check, _) = dict(NAMES), SOLUTIONS[name]
    text = with_pieces_replaced(solution, answer)
    names |= {"decimal": decimal, "fractions": fractions, "reference": known(name)[0]}
    exec(f"{name} = {text}" if text.startswith("lambda") else text, names)
    with np.errstate(all="ignore"):
        exec(check, names)
    return capsys.readouterr().out


def test_every_exercise_has_answers():
    assert {*references.EXERCISES} == {*SOLUTIONS} == {*WRONG} == {*RIGHT}
    assert min(map(len, WRONG.values())) >= 5
    assert min(map(len, RIGHT.values())) >= 3
    with pytest.raises(ArgumentError, match="there is no exercise 'sector'"):
        known("sector")


@each_exercise
def test_cases_have_unequal_sizes_and_other_values(name):
    function, *cases = known(name)
    assert len(cases) >= 3
    assert len({repr(function(*case)) for case in cases}) >= 2


@each_exercise
def test_an_exercise_that_nobody_has_written_is_not_wrong(name, capsys):
    _, check, cell = SOLUTIONS[name]
    (stub,) = (node for node in ast.parse(cell).body if getattr(node, "name", "") == name)
    names = dict(NAMES)
    exec(ast.unparse(stub), names)
    exec(check, names)
    assert capsys.readouterr().out == f"Not written yet: {name} gives nothing.\n"


@each_exercise
def test_wrong_answers_are_refused(name, capsys):
    for answer in [*WRONG[name], "lambda *arguments: reference(*arguments)"]:
        said = said_of(name, answer, capsys)
        assert said.startswith("Not yet: "), (answer, said)


@pytest.mark.long
@each_exercise
def test_right_answers_pass(name, capsys):
    for answer in [{}, *RIGHT[name], *more_right_answers.RIGHT.get(name, ())]:
        said = said_of(name, answer, capsys)
        assert said.startswith("Right, in all "), (answer, said)


def test_the_bytes_that_travel_are_those_of_the_plans():
    two = split(load_graph("pubmed"), 2)
    function, *_ = known("travels")
    for part in two.parts:
        for number, scheme in enumerate(("mgg", "halo")):
            steps = [step for step in plan(two, 16, scheme).steps if step.device == part.device]
            moved = sum(sum(step.link_bytes.values()) for step in steps)
            assert moved == function(part, 16)[number]
