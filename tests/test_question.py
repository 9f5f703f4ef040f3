"""The question for a class: guesses are ranked, and the answer is locked until it may be seen."""

import html
import importlib.util
import itertools
import json
import re
import xml.etree.ElementTree as ET

import pandas as pd
import pytest

import accelviz
from accelviz.errors import AccelvizError, ArgumentError
from accelviz.strategies import find_strategy
from accelviz.widgets import drawing, entry
from accelviz.widgets.sweep_state import STATISTICS, SweepState

FIRST, SECOND = "max_block_warps", "max_warp_nzs"

VALUES = {(2, 8): 5.0, (2, 16): 3.0, (4, 8): 1.0, (4, 16): 3.0, (8, 8): 1.0, (8, 16): 9.0}


def made(values=None, statistic="blocks", name="made"):
    values = VALUES if values is None else values
    lines = [(block, warp, value) for (block, warp), value in values.items()]
    table = pd.DataFrame(lines, columns=[FIRST, SECOND, statistic])
    table.attrs["graph"] = name
    return table


def guess(state, *setting):
    state.choose(**dict(zip((FIRST, SECOND), setting, strict=True)))
    state.guess()


# --- the state --------------------------------------------------------------------------------


def test_it_begins_in_the_middle_and_knows_nothing_of_guesses():
    state = SweepState(made(), "blocks")
    assert state.graph == "made"
    assert state.choices == {FIRST: [2, 4, 8], SECOND: [8, 16]}
    assert state.setting == (4, 16)
    assert state.guessed == []
    assert {state.found, state.may_reveal, state.revealed} == {False}
    assert state.of_setting == VALUES


@pytest.mark.parametrize(
    ("most", "best", "answers", "places"),
    [
        (False, 1.0, {(4, 8), (8, 8)}, {1.0: 1, 3.0: 3, 5.0: 5, 9.0: 6}),
        (True, 9.0, {(8, 16)}, {9.0: 1, 5.0: 2, 3.0: 3, 1.0: 5}),
    ],
)
def test_what_is_best_and_the_places_of_the_rest(most, best, answers, places):
    state = SweepState(made(), "blocks", most=most)
    assert state.best == best
    assert set(state.answers) == answers
    for setting, value in VALUES.items():
        assert state.of_setting[setting] == value
        assert state.place(setting) == places[value]  # equal values share a place


def test_guesses_are_used_up_before_the_answer_may_be_seen():
    state = SweepState(made(), "blocks", guesses=2)
    with pytest.raises(ArgumentError, match="reveal: 2 guesses are left"):
        state.reveal()
    guess(state, 2, 8)
    assert not state.may_reveal
    with pytest.raises(ArgumentError, match="reveal: 1 guess is left"):
        state.reveal()
    with pytest.raises(ArgumentError, match="guess: 2 x 8 was guessed already"):
        state.guess()
    assert state.guessed == [(2, 8)]  # which costs nothing
    guess(state, 8, 16)
    assert state.may_reveal
    assert not state.found
    with pytest.raises(ArgumentError, match="guess: there is none left"):
        guess(state, 4, 8)
    assert not state.revealed
    state.reveal()
    assert state.revealed


@pytest.mark.parametrize("best", [(4, 8), (8, 8)])
def test_any_of_the_best_ends_the_search(best):
    state = SweepState(made(), "blocks", guesses=5)
    guess(state, 2, 16)
    assert not state.found
    guess(state, *best)
    assert state.found
    assert state.may_reveal
    with pytest.raises(ArgumentError, match="there is none left"):
        guess(state, 2, 8)
    state.reveal()


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({FIRST: 3}, f"{FIRST}: got 3. Expected: one of 2, 4, 8"),
        ({FIRST: "4"}, f"{FIRST}: got '4'"),
        ({SECOND: None}, f"{SECOND}: got None"),
        ({"n_cols": 64}, "n_cols: there is no such setting"),
        ({FIRST: 2, SECOND: 7}, f"{SECOND}: got 7. Expected: one of 8, 16"),
    ],
)
def test_settings_that_there_are_not_move_no_slider(setting, said):
    state = SweepState(made(), "blocks")
    with pytest.raises(ArgumentError, match=re.escape(said)):
        state.choose(**setting)
    assert state.setting == (4, 16)
    state.choose(**{SECOND: 8})
    assert state.setting == (4, 8)
    state.choose()
    assert state.setting == (4, 8)


@pytest.mark.parametrize("statistic", ["speed", "warp_nzs_median", "", "strategy"])
def test_statistics_that_there_are_not(statistic):
    with pytest.raises(ArgumentError, match="Expected: blocks, warps, busy_warps, idle_warps"):
        SweepState(made(), statistic)


def test_a_statistic_that_is_not_known_everywhere():
    table = made({**VALUES, (2, 8): float("nan")})
    with pytest.raises(ArgumentError, match="'blocks' is not known of every setting"):
        SweepState(table, "blocks")


@pytest.mark.parametrize("guesses", [0, -1, True, 1.5, "3", None])
def test_a_number_of_guesses_that_cannot_be(guesses):
    with pytest.raises(ArgumentError, match="guesses: got"):
        SweepState(made(), "blocks", guesses=guesses)


def test_one_setting_and_a_statistic_that_is_always_the_same():
    alone = SweepState(made({(6, 32): 4.0}), "blocks", guesses=1)
    assert alone.setting == (6, 32)
    assert alone.place((6, 32)) == 1
    alone.guess()
    assert alone.found
    same = SweepState(made(dict.fromkeys(VALUES, 7.0)), "blocks", most=True)
    assert set(same.answers) == set(VALUES)
    same.guess()
    assert same.found


def test_every_name_is_a_statistic_of_a_sweep():
    table = accelviz.sweep("cora", max_block_warps=[4, 8], max_warp_nzs=[16, 32])
    assert set(STATISTICS) <= set(table.columns)
    for statistic in STATISTICS:
        state = SweepState(table, statistic)
        assert state.best == table[statistic].min()
        assert SweepState(table, statistic, most=True).best == table[statistic].max()
        assert len(state.of_setting) == 4


# --- the panel --------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _needs_widgets(request):
    if "panel" in request.node.name:
        pytest.importorskip("anywidget")
        pytest.importorskip("ipywidgets")


def send(panel, _count=itertools.count(), **change):  # noqa: B008 - counts over all tests
    number = f"q:{next(_count)}"
    panel.request = {"number": number, "change": change}
    assert panel.page["number"] == number
    json.dumps(panel.page)
    return panel.page


def view(page, name):
    (found,) = [each for each in page["views"] if each["name"] == name]
    return found["html"]


def buttons(page):
    return {each["name"]: each["enabled"] for each in page["controls"] if each["kind"] == "button"}


def cells(page):
    """The cells of the answer by their setting: colour and what is said of it."""
    (svg,) = re.findall(r"<svg.*</svg>", view(page, "answer"))
    found = {}
    for rect in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}rect"):
        setting, _, said = rect.get("data-info").partition(": ")
        block, warp = map(int, setting.split(" x "))
        found[block, warp] = (rect.get("fill"), said, rect.get("stroke"))
    return found


def ask_cora(statistic="idle_share", **settings):
    grid = {FIRST: [2, 4, 12, 30], SECOND: [8, 32, 64]}
    table = accelviz.sweep("cora", **grid)
    values = {
        (block, warp): value
        for block, warp, value in zip(table[FIRST], table[SECOND], table[statistic], strict=True)
    }
    return entry.ask("cora", statistic, **grid, **settings), values


@pytest.mark.parametrize("most", [False, True])
def test_the_panel_of_a_question_is_locked_until_it_may_be_seen(most):
    panel, values = ask_cora(most=most, guesses=2, explanation="Because of <this>.")
    size = "largest" if most else "smallest"
    assert f"has the {size} share of time waiting?" in panel.page["title"]
    ranked = sorted(set(values.values()), reverse=most)
    wrong = next(setting for setting, value in values.items() if value == ranked[-1])
    second = next(setting for setting, value in values.items() if value == ranked[1])

    def locked(page, guessed):
        for setting, (colour, said, _) in cells(page).items():
            if setting in guessed:
                assert f"{values[setting]:.2%}, place " in said
                assert colour in drawing.LOADS
            else:
                assert (colour, said) == (drawing.IDLE, "guess first")
        text = json.dumps({key: page[key] for key in ("title", "controls", "views")})
        for value in values.values():
            # Another setting may happen to have the value of one that was guessed.
            if not any(f"{value:.2%}" == f"{values[each]:.2%}" for each in guessed):
                assert f"{value:.2%}" not in text
                assert repr(float(value)) not in text
        assert "Best is" not in text
        assert "Because" not in text

    locked(panel.page, [])
    assert buttons(panel.page) == {"guess": True, "reveal": False}
    page = send(panel, reveal=True)
    assert page["message"] == "reveal: 2 guesses are left. Expected: guessing first."
    locked(page, [])
    page = send(panel, **{FIRST: wrong[0], SECOND: wrong[1]}, guess=True)
    locked(page, [wrong])
    last = sum((value > ranked[-1]) if most else (value < ranked[-1]) for value in values.values())
    said = view(page, "guesses")
    assert f"1. {wrong[0]} x {wrong[1]}" in said
    assert f"place {last + 1}" in said
    assert "of 12" in said
    assert "1 guess left" in said
    page = send(panel, guess=True)
    assert "was guessed already" in page["message"]
    page = send(panel, **{FIRST: second[0], SECOND: second[1]}, guess=True)
    locked(page, [wrong, second])
    assert "No guess is left" in view(page, "guesses")
    assert buttons(page) == {"guess": False, "reveal": True}
    page = send(panel, reveal=True)
    assert buttons(page) == {"guess": False, "reveal": False}
    assert "Because of &lt;this&gt;." in view(page, "answer")
    best = [setting for setting, value in values.items() if value == ranked[0]]
    listed = ", ".join(f"{block} x {warp}" for block, warp in best)
    assert f"Best is {ranked[0]:.2%}, at {listed} (red)" in view(page, "answer")
    for setting, (colour, said, stroke) in cells(page).items():
        assert said.startswith(f"{values[setting]:.2%}, place ")
        assert (stroke == drawing.VERMILLION) == (setting in best)
        if setting in best:
            assert colour == drawing.LOADS[0]
        if values[setting] == ranked[-1]:
            assert colour == drawing.LOADS[-1]


def test_a_panel_whose_question_is_answered():
    panel, values = ask_cora("blocks", question="Which is <best>?")
    assert panel.page["title"] == "<b>Which is &lt;best&gt;?</b>"
    best = min(values, key=values.get)
    page = send(panel, **{FIRST: best[0], SECOND: best[1]})
    assert [each["value"] for each in page["controls"] if each["kind"] == "slider"] == [*best]
    (mark,) = [setting for setting, cell in cells(page).items() if cell[2] == "black"]
    assert mark == best
    page = send(panel, guess=True)
    assert "Found it!" in view(page, "guesses")
    assert ">best<" in view(page, "guesses")
    assert f"{values[best]:,.0f}" in view(page, "guesses")
    assert buttons(page) == {"guess": False, "reveal": True}


def test_a_panel_of_one_setting_or_of_equal_ones():
    panel = entry.ask("cora", "blocks", max_block_warps=5, max_warp_nzs=[8])
    assert len(cells(panel.page)) == 1
    send(panel, guess=True)
    page = send(panel, reveal=True)
    assert "at 5 x 8 (red)" in view(page, "answer")
    panel = entry.ask({1: 100}, "rows_cut", most=True, max_block_warps=[1, 2, 3])
    send(panel, guess=True)
    page = send(panel, reveal=True)
    assert {colour for colour, *_ in cells(page).values()} == {drawing.LOADS[0]}  # all are best
    assert "and 18 others (red)" in view(page, "answer")


def test_a_panel_says_what_is_wrong_with_its_question():
    with pytest.raises(ArgumentError, match="statistic: there is no 'speed'"):
        entry.ask("cora", "speed")
    with pytest.raises(ArgumentError, match="guesses: got 0"):
        entry.ask("cora", guesses=0)
    with pytest.raises(ArgumentError, match="no strategy of this sweep has such a parameter"):
        entry.ask("cora", strategy="graphblast", max_block_warps=[4])
    with pytest.raises(ArgumentError, match="Expected: one or two parameters"):
        SweepState(made().drop(columns=[FIRST, SECOND]), "blocks")
    with pytest.raises(AccelvizError, match="max_block_warps: got 40"):
        entry.ask("cora", max_block_warps=[40])


@pytest.mark.parametrize(
    ("strategy", "given", "names"),
    [
        ("graphblast", {}, ["block_warps"]),
        ("gnnadvisor", {}, ["ngs", "dw"]),
        ("gnnadvisor", {"block_warps": [1, 2], "ngs": [8, 16, 32]}, ["ngs", "block_warps"]),
        ("fusegnn_gar", {}, ["block_size"]),
    ],
)
def test_a_panel_asks_about_any_strategy(strategy, given, names):
    panel = entry.ask("cora", "blocks", strategy=strategy, **given)
    sliders = {each["name"]: each["values"] for each in panel.page["controls"][: len(names)]}
    own = find_strategy(strategy).parameters
    assert list(sliders) == names
    assert sliders == {name: [*given.get(name, own[name].tries)] for name in names}
    send(panel, guess=True)
    assert "place" in view(panel.page, "guesses") or ">best<" in view(panel.page, "guesses")


def test_a_panel_without_a_kernel_keeps_its_secret():
    panel, values = ask_cora()
    text = html.unescape(panel.html())
    assert "Your guesses" in text
    for value in values.values():
        assert f"{value:.2%}" not in text


# --- the front doors ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        (["anywidget"], "it needs anywidget, which"),
        (["ipywidgets"], "it needs ipywidgets, which"),
        (["ipywidgets", "anywidget"], "it needs ipywidgets and anywidget, which"),
    ],
)
def test_what_is_not_installed_is_named_with_its_remedy(monkeypatch, missing, said):
    there = importlib.util.find_spec

    def find_spec(name, *rest):
        return None if name in missing else there(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    with pytest.raises(AccelvizError) as caught:
        entry.ask("cora")
    assert str(caught.value).startswith(f"ask: {said}")
    assert "pip install 'accelviz[lab]'" in str(caught.value)
