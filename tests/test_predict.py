"""Predictions come before answers; a learner's lines are compared with what is right."""

import json
import math
import re

import numpy as np
import pytest
from scipy.sparse import eye_array

import accelviz
from accelviz import plots
from accelviz.course import compare, predict, sealed
from accelviz.course.exercise import seal
from accelviz.datasets import graph_of_degrees
from accelviz.errors import ArgumentError
from accelviz.widgets import entry, prediction

ORDER = ["third", "first", "second"]
WORK = accelviz.plan(graph_of_degrees([1]), "graphblast", 1).workload()


@pytest.fixture(autouse=True)
def _nothing_predicted(monkeypatch):
    monkeypatch.setattr(prediction, "_MADE", {})


@pytest.fixture
def panel():
    pytest.importorskip("anywidget")

    def make(*arguments, **options):
        return predict(*arguments, **options)

    return make


def send(panel, **change):
    panel.request = {"number": f"p:{json.dumps(change)}:{panel.page['number']}", "change": change}
    return panel.page


def seen(panel):
    return json.dumps({key: panel.page[key] for key in ("title", "controls", "views")})


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("12.5", "Right."),
        ("12.5 %", "Right."),
        ("12.5%", "Right."),
        ("25", "Too high by a factor of 2."),
        ("1,250", "Too high by a factor of 100."),
        ("5", "Too low by a factor of 2.5."),
        ("15", "Close: 1.2 times that."),
        ("0", "Off by 12.5 %."),
        ("-12.5", "Off by 25 %."),
    ],
)
def test_a_number_is_judged_by_its_factor(panel, typed, said):
    asked = panel("Which `share`?", 12.5, unit="%", within=1.5, because="As <it> is.")
    assert "12.5" not in seen(asked)
    assert "As " not in seen(asked)
    page = send(asked, typed=typed)
    html = page["views"][0]["html"]
    assert "<b>12.5 %</b>" in html
    assert said in html
    assert "As &lt;it&gt; is." in html
    assert page["controls"] == []
    assert "<code>share</code>" in page["title"]


@pytest.mark.parametrize("typed", ["", "many", "nan", "inf", "1 2"])
def test_what_is_no_number_is_no_prediction(panel, typed):
    asked = panel("How many?", 7)
    assert "Expected: a number" in send(asked, typed=typed)["message"]
    assert asked.page["views"] == []


def test_a_choice_is_one_button_and_counts_once(panel):
    asked = panel("Which?", "b", choices=["a", "b"])
    assert [each["label"] for each in asked.page["controls"]] == ["a", "b"]
    assert "Not so." in send(asked, **{"choice 0": True})["views"][0]["html"]
    assert "Not so." in send(asked, **{"choice 1": True})["views"][0]["html"]
    again = panel("Which?", "b", choices=["a", "b"])  # the cell runs again
    assert "You said <b>a</b>" in again.page["views"][0]["html"]


def test_an_order_is_pressed_and_the_last_place_is_implied(panel):
    asked = panel("Sort.", sorted(ORDER), choices=ORDER)
    for press in ("choice 0", "choice 0", "choice 1"):  # the second takes the first back
        assert send(asked, **{press: True})["views"] == []
    assert [each["label"] for each in asked.page["controls"]] == ["third", "1. first", "second"]
    said = send(asked, **{"choice 0": True})["views"][0]["html"]
    assert "<b>1. first, 2. third, 3. second</b>" in said
    assert "1 of 3 places agree" in said


def test_the_answer_is_computed_once_and_shown_with_its_pictures(panel):
    called = []

    def answer():
        called.append(1)
        return np.float64(3.0)

    def show():
        return [*plots.block_close_ups([WORK, WORK], warps_per_block=1), "a <text>"]

    asked = panel("How much?", answer, show=show)
    assert called == []
    html = send(asked, typed="3")["views"][0]["html"]
    assert html.count("<img ") == 1
    assert "a &lt;text&gt;" in html
    assert asked.html().count("<img ") == 1
    assert called == [1]
    import matplotlib.pyplot as plt

    assert plt.get_fignums() == []  # or the cell would show it below


def test_it_is_there_without_widgets(monkeypatch):
    monkeypatch.setattr(entry, "NEEDED", ("no_such_package",))
    shown = predict("How much?", 3, unit="us")._repr_html_()
    assert re.search(
        r"<fieldset.*required.*<details><summary>.*<b>3 us</b>.*</details>", shown, re.S
    )


@pytest.mark.parametrize(
    ("answer", "options", "said"),
    [
        ("a", {}, "answer: got 'a'"),
        (math.nan, {}, "answer: got nan"),
        ("c", {"choices": ["a", "b"]}, "one of the choices"),
        (["a"], {"choices": ["a", "b"]}, "all choices in order"),
        ("a", {"choices": ["a", "a"]}, "choices: one is there twice"),
        (3, {"within": 0.5}, "within: got 0.5"),
    ],
)
def test_questions_that_cannot_be(answer, options, said):
    with pytest.raises(ArgumentError, match=re.escape(said)):
        predict("?", answer, **options)


# --- a learner's own lines --------------------------------------------------------------------


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
        (lambda a, b: a * b, [(np.arange(3), 2)], "Expected: 2 at 0, not 0."),
        (lambda a, b: "3", [(1, 2)], "gives '3'. Expected: 3."),
        (lambda a, b: [[1], [1, 2]], [(1, 2)], "Expected: 3."),
        (changes, [(np.arange(3), 2)], "Expected: 3 at 1, not 2."),
    ],
)
def test_a_function_is_right_or_its_first_mistake_is_named(capsys, mine, cases, said):
    compare(mine, lambda a, b: a + b, *cases)
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("mine", "right", "said"),
    [
        (None, 3, "Not written yet"),
        (3.00001, 3, "Right."),
        ("ab", "ab", "Right."),
        ([1, 2], [1, 3], "Not yet: yours gives [1, 2]. Expected: 3 at 1, not 2."),
        ([np.int64(1)], [2], "Not yet: yours gives [1]. Expected: 2 at 0"),
        (eye_array(1).tocsr(), [[2]], "Not yet: yours gives [[1.]]. Expected: 2 at (0, 0)"),
        ([0.961, -0.0001], sealed(seal([0.96, 0])), "Right."),
        (
            [0.96, 0.93],
            sealed(seal([0.96, 0.92])),
            "Not yet: yours gives [0.96, 0.93]. That is not it.",
        ),
        (0.96, sealed(seal([0.96])), "Not yet"),
        (0.9612, sealed(seal(0.9613, 4), digits=4), "Not yet"),
        ("ab", sealed(seal(3)), "Not yet: yours gives 'ab'. Expected: numbers."),
        (None, sealed(seal(3)), "Not written yet"),
    ],
)
def test_a_value_is_compared_too(capsys, mine, right, said):
    compare(mine, right)
    assert capsys.readouterr().out.startswith(said)


def test_what_cannot_be_checked_is_not_right(capsys):
    compare(3, 3, unless="there is no compiler")
    assert capsys.readouterr().out == "Not checked: there is no compiler\n"
