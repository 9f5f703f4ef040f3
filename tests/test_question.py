"""Questions for a class: text, solution, and that the answer is not readable in the source."""

import base64
import html
import re

import numpy as np
import pandas as pd
import pytest

import accelviz
from accelviz.datasets import graph_of_degrees
from accelviz.errors import AccelvizError, ArgumentError
from accelviz.strategies import find_strategy
from accelviz.widgets import ask
from accelviz.widgets.question import STATISTICS, Question

FIRST, SECOND = "max_block_warps", "max_warp_nzs"
VALUES = {(2, 8): 5.0, (2, 16): 3.0, (4, 8): 1.0, (4, 16): 3.0, (8, 8): 1.0, (8, 16): 9.0}


def sweep(values=None):
    values = VALUES if values is None else values
    lines = [(block, warp, value) for (block, warp), value in values.items()]
    table = pd.DataFrame(lines, columns=[FIRST, SECOND, "blocks"])
    table.attrs["graph"] = "made"
    return table


def test_it_has_the_values_of_all_settings_in_order():
    content = Question(sweep(), "blocks", most=True, guesses=2, explanation="Because.").content
    assert content["names"] == [FIRST, SECOND]
    assert content["choices"] == [[2, 4, 8], [8, 16]]
    assert content["values"].tolist() == [*VALUES.values()]
    assert (content["most"], content["guesses"], content["share"]) == (True, 2, False)
    assert content["question"] == "Which setting of made has the most blocks?"
    missing = Question(sweep({(2, 8): 1.0, (4, 16): 2.0}), "blocks").content["values"]
    assert np.isnan(missing).tolist() == [False, True, True, False]


def test_every_name_is_a_statistic_of_a_sweep():
    table = accelviz.sweep("cora", max_block_warps=[4, 8], max_warp_nzs=[16, 32])
    for statistic in STATISTICS:
        assert Question(table, statistic).content["values"].tolist() == table[statistic].tolist()


@pytest.mark.parametrize("statistic", ["speed", "warp_nzs_median", "", "strategy"])
def test_statistics_that_there_are_not(statistic):
    with pytest.raises(ArgumentError, match="Expected: blocks, warps, busy_warps, idle_warps"):
        Question(sweep(), statistic)


def test_a_statistic_that_is_not_known_everywhere():
    with pytest.raises(ArgumentError, match="'blocks' is not known of every setting"):
        Question(sweep({**VALUES, (2, 8): float("nan")}), "blocks")


@pytest.mark.parametrize("guesses", [0, -1, True, 1.5, "3", None])
def test_a_number_of_guesses_that_cannot_be(guesses):
    with pytest.raises(ArgumentError, match="guesses: got"):
        Question(sweep(), "blocks", guesses=guesses)


def test_it_says_what_is_wrong_with_a_question():
    with pytest.raises(ArgumentError, match="statistic: there is no 'speed'"):
        ask("cora", "speed")
    with pytest.raises(ArgumentError, match="no strategy of this sweep has such a parameter"):
        ask("cora", strategy="graphblast", max_block_warps=[4])
    with pytest.raises(ArgumentError, match="Expected: one or two parameters"):
        Question(sweep().drop(columns=[FIRST, SECOND]), "blocks")
    with pytest.raises(AccelvizError, match="max_block_warps: got 40"):
        ask("cora", max_block_warps=[40])


@pytest.mark.parametrize(
    ("strategy", "settings", "names"),
    [
        ("graphblast", {}, ["block_warps"]),
        ("gnnadvisor", {}, ["ngs", "dw"]),
        ("gnnadvisor", {"block_warps": [1, 2], "ngs": [8, 16, 32]}, ["ngs", "block_warps"]),
        ("fusegnn_gar", {}, ["block_size"]),
    ],
)
def test_it_asks_about_any_strategy(strategy, settings, names):
    content = ask("cora", "blocks", strategy=strategy, **settings).content
    parameters = find_strategy(strategy).parameters
    assert content["names"] == names
    assert content["choices"] == [[*settings.get(name, parameters[name].tries)] for name in names]


def test_the_answer_cannot_be_read_in_the_page():
    asked = ask(graph_of_degrees([3] * 12 + [7] * 5 + [40]), "idle_share", explanation="Since so.")
    text = re.sub(r'<script type="text/plain".*?</script>', "", html.unescape(asked.html()))
    assert "Since so." not in text
    for value in asked.content["values"]:
        assert f"{value:.2%}" not in text
        assert repr(float(value)) not in text or value == 0
    (data,) = re.findall(r'-data">([^<]*)</script>', asked.html())
    assert b"values" not in base64.b64decode(data)
