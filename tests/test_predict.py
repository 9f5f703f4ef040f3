"""Predictions before answers, and comparison of a learner's code with the solution."""

import itertools
import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import eye_array

import accelviz
from accelviz import plots
from accelviz.course import PRODUCTS, compare, predict, sealed
from accelviz.course.exercise import seal
from accelviz.datasets import graph_of_degrees
from accelviz.errors import ArgumentError

ORDER = ["third", "first", "second"]
WORK = accelviz.plan(graph_of_degrees([1]), "graphblast", 1).workload()


def test_the_answer_is_computed_once_and_shown_with_its_pictures():
    import matplotlib.pyplot as plt

    called, before = [], plt.get_fignums()

    def answer():
        called.append(1)
        return np.float64(3.0)

    def show():
        return [*plots.block_close_ups([WORK, WORK], warps_per_block=1), "a <text>"]

    asked = predict("How `much`?", answer, show=show, because="As <it> is.\n\nSo.")
    assert called == []
    content = asked.content()
    assert content["pictures"].count("<img ") == 1
    assert content["pictures"].endswith("a &lt;text&gt;</pre>")
    assert content["because"] == "<p>As &lt;it&gt; is.</p><p>So.</p>"
    assert content["answer"] == 3
    assert content["question"] == "How <code>much</code>?"
    asked.html()
    assert called == [1]
    assert plt.get_fignums() == before  # or the cell would show it below


@pytest.mark.parametrize(
    ("answer", "options", "form", "text"),
    [
        (3, {"unit": "us"}, "number", "3 us"),
        ("b", {"choices": ["a", "b"]}, "choice", "b"),
        ({24, 16}, {"unit": "warps"}, "number", "16 warps or 24 warps"),
        ({"b", "c"}, {"choices": ["a", "b", "c"]}, "choice", "b or c"),
        (lambda: {"b", "c"}, {"choices": ["a", "b", "c"]}, "choice", "b or c"),
        (ORDER, {"choices": sorted(ORDER)}, "order", "1. third, 2. first, 3. second"),
        (np.array([4, 0, 9]), {"draw": "warp"}, "drawn", "4, 0, 9"),
    ],
)
def test_without_a_script_the_answer_is_folded_away(answer, options, form, text):
    asked = predict("How much?", answer, **options)
    assert asked.form == form
    before, after = asked.html().split("<details>")
    assert f"<b>{text}</b>" in after
    assert f"<b>{text}</b>" not in before
    for choice in options.get("choices", ()):
        assert f"<li>{choice}</li>" in before


def test_choices_have_an_order_of_their_own():
    choices = ["falls", "rises", "stays"]
    questions = [f"Question {number}?" for number in range(60)]
    orders = {
        question: predict(question, "rises", choices=choices).offered() for question in questions
    }
    first = [order[0] for order in orders.values()]
    assert all(10 <= first.count(choice) <= 30 for choice in choices)
    for question, order in orders.items():  # neither the answer nor the given order matters
        assert predict(question, "falls", choices=choices[::-1]).offered() == order
    sorting = predict("Sort.", ORDER, choices=sorted(ORDER))
    assert sorting.offered() == sorted(ORDER)


@pytest.mark.parametrize(
    ("answer", "options", "said"),
    [
        ("a", {}, "answer: got 'a'"),
        (math.nan, {}, "answer: got nan"),
        ("c", {"choices": ["a", "b"]}, "one of the choices"),
        ({"a", "c"}, {"choices": ["a", "b"]}, "one of the choices"),
        ({3, math.inf}, {}, "answer: got inf"),
        (set(), {}, "numbers or choices, equally right"),
        (["a"], {"choices": ["a", "b"]}, "all choices in order"),
        ("a", {"choices": ["a", "a"]}, "choices: one is there twice"),
        (3, {"within": 0.5}, "within: got 0.5"),
        (3, {"draw": "warp"}, "whole numbers, a bar each"),
        ([1, -1], {"draw": "warp"}, "whole numbers, a bar each"),
    ],
)
def test_questions_that_cannot_be(answer, options, said):
    with pytest.raises(ArgumentError, match=re.escape(said)):
        predict("?", answer, **options)


# --- a learner's functions --------------------------------------------------------------------


def nothing(a, b): ...


def broken(a, b):
    return a[0] / 0


def changes(a, b):
    a[:] = 0
    return a + b


@pytest.mark.parametrize(
    ("mine", "cases", "said"),
    [
        (nothing, [(1, 2)], "Not written yet: nothing gives nothing."),
        (broken, [([1], 2)], "Not yet: broken([1], 2) raises ZeroDivisionError: division by zero"),
        (lambda a, b: a - b, [(1, 0), (1, 2)], "(1, 2) gives -1. Expected: 3."),
        (lambda a, b: a + b + 1e-9, [(1, 2), (np.arange(3), 2)], "Right, in all 2 cases."),
        (lambda a, b: [5, 6], [(np.arange(3), 5)], "Expected: the shape (3,), not (2,)."),
        (
            lambda a, b: a - b,
            [(np.zeros((9, 9)), 5)],
            "(<array of 9 x 9>, 5) gives <array of 9 x 9>",
        ),
        (lambda a, b: a * b, [(np.arange(3), 2)], "Expected: 2 at 0, not 0."),
        (lambda a, b: "3", [(1, 2)], "gives '3'. Expected: 3."),
        (lambda a, b: [[1], [1, 2]], [(1, 2)], "Expected: 3."),
        (changes, [(np.arange(3), 2)], "Expected: 3 at 1, not 2."),
    ],
)
def test_a_function_is_right_or_its_first_mistake_is_named(capsys, mine, cases, said):
    compare(mine, lambda a, b: a + b, *cases)
    assert said in capsys.readouterr().out


def test_arguments_must_not_change_and_several_arrays_are_compared_one_by_one(capsys):
    def doubled(a):
        a *= 2
        return a

    compare(doubled, lambda a: 2 * a, (np.arange(3),))
    said = "doubled([0, 1, 2]) is right, but doubled changes its argument 1."
    assert said in capsys.readouterr().out
    compare(lambda a: np.isnan(a).sum(), lambda a: np.isnan(a).sum(), (np.array([1, np.nan]),))
    assert capsys.readouterr().out == "Right.\n"
    pair = (np.arange(3), np.zeros((2, 2)))
    for mine, message in (
        ((np.arange(3), np.zeros((2, 2))), "Right."),
        ([[0, 1, 2], np.eye(2)], "Result 2: Expected: 0 at (0, 0), not 1."),
        ([[0, 1, 2]], "Expected: 2 results."),
        (np.arange(3), "Expected: 2 results."),
    ):
        compare(mine, pair)
        assert message in capsys.readouterr().out


@pytest.mark.parametrize(
    ("mine", "expected", "said"),
    [
        (None, 3, "Not written yet"),
        (3.00001, 3, "Right."),
        ("ab", "ab", "Right."),
        ([1, 2], [1, 3], "Not yet: yours gives [1, 2]. Expected: 3 at 1, not 2."),
        ([np.int64(1)], [2], "Not yet: yours gives [1]. Expected: 2 at 0"),
        (Fraction(7, 13), 7 / 13, "Right."),
        (Decimal("0.53846"), 7 / 13, "Right."),
        ([Fraction(1, 2), Decimal("0.25")], np.array([0.5, 0.25]), "Right."),
        (2**70, float(2**70), "Right."),
        (Fraction(7, 12), 7 / 13, "Not yet: yours gives Fraction(7, 12). Expected: 0.538462."),
        (Decimal("nan"), 7 / 13, "Not yet"),
        (np.array([[3]]), 3, "Right."),
        (False, True, "Not yet: yours gives False. Expected: True."),
        ([1j, 2], np.array([1j, 2.5]), "Not yet"),
        ([4], 3, "Not yet: yours gives [4]. Expected: 3."),
        (0.538, 7 / 13, "Not yet: yours gives 0.538. Yours is rounded."),
        ([0.54, 1.0], [7 / 13, 1], "Not yet: yours gives [0.54, 1.0]. Yours is rounded."),
        ([Fraction(1, 2), "0.25"], np.array([0.5, 0.25]), "Not yet"),
        (Fraction(1, 2), sealed(seal(0.5)), "Right."),
        ("0.5", sealed(seal(0.5)), "Not yet: yours gives '0.5'. Expected: numbers."),
        (eye_array(1).tocsr(), [[2]], "Not yet: yours gives [[1.]]. Expected: 2 at (0, 0)"),
        ([0.961, -0.0001], sealed(seal([0.96, 0])), "Right."),
        (np.array([[0.961], [0.92]]), sealed(seal([0.96, 0.92])), "Right."),
        (
            [0.96, 0.93],
            sealed(seal([0.96, 0.92])),
            "Not yet: yours gives [0.96, 0.93]. That is not it. The rival is",
        ),
        (0.96, sealed(seal([0.96])), "Not yet: yours gives 0.96. That is not it.\n"),
        (0.9612, sealed(seal(0.9613, 4), digits=4), "Not yet"),
        ("ab", sealed(seal(3)), "Not yet: yours gives 'ab'. Expected: numbers."),
        (None, sealed(seal(3)), "Not written yet"),
    ],
)
def test_a_value_is_compared_too(capsys, mine, expected, said):
    compare(mine, expected)
    assert capsys.readouterr().out.startswith(said)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        (iter([16, 64]), "Right."),
        (map(int, ("16", "64")), "Right."),
        ({"dw": 16, "ngs": 64}.values(), "Right."),
        ((n * n for n in (4, 8)), "Right."),
        ((n * n for n in (4, 9)), "Expected: 64 at 1, not 81."),
        (itertools.count(), "Expected: the shape (2,), not (100000,)."),
        ({"dw": 16, "ngs": 64}, "Right."),
        ({"ngs": 64, "dw": 16}, "Expected: 16 at 0, not 64."),
        (pd.DataFrame({"dw": [16], "ngs": [64]}), "Right."),
        (np.array([[16], [64]]), "Right."),
    ],
)
def test_generators_tables_and_dictionaries_are_lists(capsys, numbers, said):
    compare(lambda: numbers, lambda: (16, 64), ())
    assert said in capsys.readouterr().out


def test_a_generator_that_fails_is_not_right(capsys):
    compare(lambda top: (1 // n for n in range(top, -1, -1)), lambda top: [0], (2,))
    assert "raises ZeroDivisionError" in capsys.readouterr().out


def test_a_result_is_not_cut_off(capsys):
    compare(pd.Series(np.arange(30) / 7, name="share"), [1, 2])
    table = capsys.readouterr().out
    assert "4.142857" in table
    assert "2.000000" in table
    compare(list(np.arange(20) / 7), [1, 2])
    assert "2.7142857142857144]. Expected" in capsys.readouterr().out
    compare(np.arange(20.0), [1, 2])
    assert "10." in capsys.readouterr().out
    compare(np.array([193, 193]), 193)
    assert "Expected: a single value, not (2,)." in capsys.readouterr().out


def added(a, b):
    inner = np.add(a, b)  # a name of its own
    return inner


@pytest.mark.parametrize(
    ("mine", "said"),
    [
        (lambda a, b: a * 1 + b, "has *. Do it without."),
        (lambda a, b: sum(x * b for x in [1]) + a, "has *."),
        (lambda a, b: np.multiply(a, 1) + b, "has multiply."),
        (lambda a, b: np.prod([a, 1]) + b * 1, "has *, prod."),
        (np.dot, "has dot."),
        (lambda a, b: a.__mul__(1) + b, "has __mul__."),
        (lambda a, b: np.convolve(a, 1)[0] + b, "has convolve."),
        (lambda a, b: a * b, "gives 4. Expected: 5."),
        (added, "Right."),
    ],
)
def test_right_is_not_enough_where_something_is_ruled_out(capsys, mine, said):
    check_against = (lambda a, b: a * b) if mine is np.dot else (lambda a, b: a + b)
    compare(mine, check_against, (4, 1), without=PRODUCTS)
    assert said in capsys.readouterr().out


def test_what_cannot_be_checked_is_not_right(capsys):
    compare(3, 3, unless="there is no compiler")
    assert capsys.readouterr().out == "Not checked: there is no compiler\n"
