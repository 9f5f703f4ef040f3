"""The lessons' exercises refuse wrong answers and accept unusual right ones, in all their cases."""

import math
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import accelviz
from accelviz.course import PRODUCTS, compare, known, references, sparse_columns
from accelviz.errors import ArgumentError

from .lesson_answers import RIGHT, WRONG
from .wrong_lines import with_pieces_replaced

nbformat = pytest.importorskip("nbformat", reason="lessons are notebooks")
FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
CHECK = re.compile(r'^compare\((?:sparse_columns\()?(\w+)\)?, \*known\("(\w+)"\)', re.M)


def solutions():
    """Return the solutions of the exercises that lessons check with `known`, by name."""
    texts = {}
    for path in [*FOLDER.glob("*.ipynb"), *FOLDER.glob("electives/*.ipynb")]:
        for cell, after in pairwise(nbformat.read(path, as_version=4).cells):
            if check := CHECK.search(cell.source):
                assert check[1] == check[2]
                code = re.search(r"<summary>Solution.*?```python\n(.*?)```", after.source, re.S)[1]
                texts[check[1]] = code
    return texts


SOLUTIONS = solutions()
each_exercise = pytest.mark.parametrize("name", references.EXERCISES)


def said_of(name, answer, capsys):
    """Return what an exercise says of an answer."""
    names = {"np": np, "math": math, "sparse": sparse, "accelviz": accelviz}
    text = with_pieces_replaced(SOLUTIONS[name], answer)
    exec(f"{name} = {text}" if text.startswith("lambda") else text, names)
    function = sparse_columns(names[name]) if name == "forward" else names[name]
    with np.errstate(all="ignore"):
        compare(function, *known(name), without=PRODUCTS if name == "dot" else ())
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
def test_wrong_answers_are_refused(name, capsys):
    for answer in WRONG[name]:
        said = said_of(name, answer, capsys)
        assert said.startswith("Not yet: "), (answer, said)


@each_exercise
def test_right_answers_pass(name, capsys):
    for answer in [{}, *RIGHT[name]]:
        said = said_of(name, answer, capsys)
        assert said.startswith("Right, in all "), (answer, said)
