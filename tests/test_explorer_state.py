"""The explorer without its looks: settings are checked, and nothing changes by halves."""

import dataclasses
import json
import re

import numpy as np
import pytest

import accelviz
from accelviz.errors import AccelvizError, ArgumentError, PartitionError
from accelviz.partition.summary import PartitionSummary
from accelviz.plans import Parameter
from accelviz.strategies import REGISTRY, find_strategy
from accelviz.widgets.state import Settings, State, choices, longest, offered
from tests.graphs import MADE, graph_of_degrees
from tests.pages import WARP_LEVEL, holds_row, work

PUBLISHED = "accel_gcn, default 12 x 32"
LABELS = tuple(choices())


@pytest.fixture(scope="module")
def cora():
    return accelviz.load_graph("cora")


def everything(state):
    """What a change that fails must leave as it was."""
    return state.settings, dict(state.before), state.traced, state.graph


# --- where it begins ----------------------------------------------------------------------------


def test_it_opens_at_the_longest(cora):
    state = State(cora)
    row = int(np.diff(cora.row_pointers).argmax())
    assert state.settings == Settings("cora", "accel_gcn", WARP_LEVEL, row=row, block=251)
    shown = {name: value for name, (_, value) in state.sliders.items()}
    assert shown == {"max_block_warps": 12, "max_warp_nzs": 32}
    assert state.place.degree == 168
    assert holds_row(state)
    assert state.before == {}
    assert state.traced is None


def test_it_opens_where_it_is_told(cora):
    sides, given = {"first": "merge_path", "second": "cusparse"}, {"items_per_thread": 3}
    state = State(cora, n_cols=17, row=7, **sides, **given, max_warp_nzs=5)
    wanted = {"graph": "cora", "n_cols": 17, "row": 7, **sides}
    assert {name: getattr(state.settings, name) for name in wanted} == wanted
    assert state.first.plan.parameters["items_per_thread"] == 3
    assert holds_row(state)
    assert state.before == {}  # nothing has changed yet
    state.change(second="accel_gcn")  # what was set for it was kept
    assert state.second.parameters["max_warp_nzs"] == 5
    assert State(cora, block=10).settings.block == 10


@pytest.mark.parametrize("degrees", [[3], [0, 0, 2, 5, 5, 1], [0], []])
def test_the_longest(degrees):
    graph = graph_of_degrees(degrees, 9)
    assert longest(graph) == (degrees.index(max(degrees)) if degrees else 0)


def test_what_can_be_chosen():
    assert set(accelviz.strategies()) < set(LABELS)
    assert LABELS[:4] == ("accel_gcn", WARP_LEVEL, "accel_gcn, combined_warp=False", PUBLISHED)
    every = choices()
    both = ("max_block_warps", "max_warp_nzs")
    assert every["accel_gcn"].sliders == every[WARP_LEVEL].sliders == both
    for choice in every.values():
        own = choice.strategy.parameters
        tried = tuple(name for name in own if own[name].tries)
        assert choice.sliders == (() if {*tried} <= {*choice.fixed} else tried)
        assert {*choice.fixed} <= {*own}
    assert every["gnnadvisor"].sliders == ("ngs", "dw", "block_warps")
    assert every["lane_groups"].sliders
    assert every["cusparse"].sliders == ()
    assert every[WARP_LEVEL].fixed == {"partition": "warp"}
    assert every[PUBLISHED].fixed == {"max_block_warps": 12, "max_warp_nzs": 32}


def test_what_a_slider_offers():
    own = find_strategy("accel_gcn").parameters
    assert offered(own["max_block_warps"], 12) == tuple(range(1, 33))
    nonzeros = offered(own["max_warp_nzs"], 100)
    assert nonzeros[:8] == (1, 2, 3, 4, 6, 8, 12, 16)
    assert nonzeros[-3:] == (512, 768, 1024)
    assert 100 in nonzeros
    for strategy in REGISTRY:
        for name, each in strategy.parameters.items():
            if each.tries:
                values = offered(each, each.default)
                assert {each.default, *each.tries} <= {*values}
                assert len(values) == len({*values}) <= 33
                for value in values:
                    assert each.checked(name, value) == value
    rule = offered(find_strategy("gnnadvisor").parameters["dw"], None)
    assert rule == (None, *range(1, 33))
    assert offered(Parameter("a", choices=("a", "b"), tries=("a", "b")), "b") == ("a", "b")


@pytest.mark.parametrize("label", ["gnnadvisor", "lane_groups", "graphblast", "fusegnn_gar"])
def test_every_strategy_has_its_own_sliders(cora, label):
    state = State(cora, first=label, second="cusparse")
    assert tuple(state.sliders) == state.first.choice.sliders != ()
    for name, (parameter, value) in state.sliders.items():
        for wanted in offered(parameter, value)[-3:]:
            state.change(**{name: wanted})
            assert state.sliders[name][1] == wanted
            assert state.first.plan.parameters[name] == wanted
            assert holds_row(state)


def test_a_value_that_another_strategy_cannot_have_is_left_to_its_default(cora):
    state = State(cora, first="fusegnn_gar", second="cusparse", block_size=1024)
    most = find_strategy("gnnadvisor").parameters["block_warps"].most
    state.change(first="gnnadvisor", block_warps=most)
    state.change(first="fusegnn_gas")
    own = state.first.choice.strategy.parameters["block_size"]
    fits = own.most >= 1024
    assert state.first.parameters["block_size"] == (1024 if fits else own.default)


# --- changes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("first", "graphblast"),
        ("second", "accel_gcn"),
        ("max_block_warps", 5),
        ("max_warp_nzs", 7),
        ("n_cols", 200),
        ("row", 3),
    ],
)
def test_a_change_of_each_setting(cora, name, value):
    state = State(cora)
    before = dataclasses.asdict(state.settings)
    state.change(**{name: value})
    after = dataclasses.asdict(state.settings)
    if name in before:
        assert after.pop(name) == value != before.pop(name)
    else:
        assert after.pop("given") == {name: value} != before.pop("given")
    after.pop("block"), before.pop("block")  # which follows the row
    assert after == before
    first = accelviz.plan(
        cora,
        state.first.choice.strategy,
        state.settings.n_cols,
        **{each: value for each, (_, value) in state.sliders.items() if name != "first"},
    )
    assert state.first.plan.parameters == first.parameters
    assert state.first.plan.n_cols == first.n_cols
    assert work(state.first.summary) == work(first.statistics)


def test_the_sliders_move_only_what_listens_to_them(cora):
    state = State(cora, second=PUBLISHED)
    state.change(max_block_warps=4, max_warp_nzs=8)
    assert state.first.plan.parameters["max_block_warps"] == 4
    assert state.first.plan.parameters["max_warp_nzs"] == 8
    assert state.second.plan.parameters["max_block_warps"] == 12
    assert state.second.plan.parameters["max_warp_nzs"] == 32
    state.change(first=WARP_LEVEL, second="graphblast")
    assert state.first.plan.parameters["partition"] == "warp"
    assert state.first.plan.parameters["max_warp_nzs"] == 8
    assert state.second.plan.parameters == accelviz.plan(cora, "graphblast").parameters


BAD = [
    ({"colour": 3}, ArgumentError, "colour: there is no such setting. Expected: graph, first, "),
    ({"graph": "no such graph"}, ArgumentError, "graph: there is no 'no such graph'"),
    ({"graph": 3}, ArgumentError, "graph: there is no 3. Expected: cora, "),
    ({"graph": None}, ArgumentError, "graph: there is no None"),
    ({"first": "fastest"}, ArgumentError, "first: there is no 'fastest'. Expected: accel_gcn, "),
    ({"second": ["accel_gcn"]}, ArgumentError, "second: there is no"),
    ({"max_block_warps": "12"}, PartitionError, "max_block_warps: got '12'. Expected: 1 to 32"),
    ({"max_block_warps": 4.0}, PartitionError, "max_block_warps: got 4.0"),
    ({"max_block_warps": None}, PartitionError, "max_block_warps: got None"),
    ({"max_warp_nzs": True}, PartitionError, "max_warp_nzs: got True"),
    ({"n_cols": None}, ArgumentError, "n_cols: got None"),
    ({"row": [1]}, ArgumentError, "row: got"),
    ({"max_block_warps": 0}, PartitionError, "max_block_warps: got 0. Expected: 1 to 32"),
    ({"max_block_warps": 33}, PartitionError, "max_block_warps: got 33. Expected: 1 to 32"),
    ({"max_warp_nzs": 65536}, PartitionError, "max_warp_nzs: got 65536. Expected: 1 to 65535"),
    ({"n_cols": 0}, ArgumentError, "n_cols: got 0"),
    ({"row": -1}, ArgumentError, "row: got -1. Expected: 0 to 2707"),
    ({"row": 2708}, ArgumentError, "row: got 2708. Expected: 0 to 2707"),
    ({"block": -1}, ArgumentError, "block: got -1. Expected: 0 to 251"),
    ({"block": 252}, ArgumentError, "block: got 252. Expected: 0 to 251"),
    # What is right beside what is wrong is not done either.
    ({"n_cols": 16, "max_block_warps": 99}, PartitionError, "max_block_warps: got 99"),
    ({"graph": "citeseer", "row": 3327}, ArgumentError, "row: got 3327. Expected: 0 to 3326"),
    ({"first": "cusparse", "row": 2708}, ArgumentError, "row: got 2708. Expected: 0 to 2707"),
    ({"first": "cusparse", "max_warp_nzs": 0}, PartitionError, "max_warp_nzs: got 0"),
]


@pytest.mark.parametrize(("settings", "error", "said"), BAD)
def test_what_cannot_be_changes_nothing(cora, settings, error, said):
    state = State(cora)
    state.change(n_cols=32, row=11)
    before = everything(state)
    with pytest.raises(error) as caught:
        state.change(**settings)
    assert str(caught.value).startswith(said)
    assert everything(state) == before
    assert isinstance(caught.value, AccelvizError)
    if "graph" not in settings:  # neither does it open there
        with pytest.raises(error, match=re.escape(said)):
            State(cora, **settings)
    state.change(max_block_warps=5)
    assert state.first.parameters["max_block_warps"] == 5
    assert holds_row(state)


def test_a_setting_of_a_strategy_on_an_empty_graph_is_checked_too():
    state = State(MADE["empty"](), second="graphblast")
    for settings in ({"max_block_warps": 99}, {"n_cols": -1}, {"row": 1}, {"block": 1}):
        with pytest.raises(AccelvizError):
            state.change(**settings)
    state.change(max_block_warps=3, row=0, block=0)
    assert state.settings.given == {"max_block_warps": 3}


def test_numbers_of_numpy_become_numbers_of_python(cora):
    state = State(cora, n_cols=np.int32(16))
    state.change(max_block_warps=np.int64(4), row=np.int64(3))
    assert json.loads(json.dumps(dataclasses.asdict(state.settings)))["given"] == {
        "max_block_warps": 4
    }
    assert state.timing(state.first).recorded is not None


# --- the change since the last setting ----------------------------------------------------------


def test_what_was_before_is_the_last_setting(cora):
    state = State(cora)
    defaults = work(accelviz.plan(cora).statistics)
    state.change(max_block_warps=4)
    assert work(state.before["first"]) == defaults
    four = work(state.first.summary)
    assert four != defaults
    for moved in ({"row": 3}, {"block": 8}, {"row": 4, "block": 0}, {"max_block_warps": 4}, {}):
        state.change(**moved)  # looking elsewhere is no other setting
        assert work(state.before["first"]) == defaults
    with pytest.raises(PartitionError):
        state.change(max_block_warps=99)
    assert work(state.before["first"]) == defaults
    second = work(state.second.summary)
    state.change(max_warp_nzs=8, row=9)
    assert work(state.before["first"]) == four
    assert work(state.before["second"]) == second
    state.change(first="graphblast")
    assert (
        state.before["first"].blocks
        == accelviz.plan(cora, max_block_warps=4, max_warp_nzs=8).launch.n_blocks
    )
    state.change(graph="citeseer")
    assert state.before == {}  # another graph's numbers are nothing to compare with
    assert isinstance(state.first.summary, PartitionSummary)
