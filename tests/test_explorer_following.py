"""The explorer without its looks: a row is followed through settings, graphs and strategies."""

import dataclasses
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import accelviz
from accelviz.analysis.traffic import requests
from accelviz.datasets import bundled_graphs
from accelviz.errors import AccelvizError, ArgumentError
from accelviz.graph import Graph
from accelviz.plans import Call, Parameter, Strategy
from accelviz.strategies import SPMM
from accelviz.strategies.spmm.accel_gcn import AccelGCN
from accelviz.widgets import state as state_module
from accelviz.widgets.state import State, Traced, choices, longest
from tests.graphs import MADE
from tests.inherited import SPMM_KERNELS
from tests.pages import WARP_LEVEL, holds_row, needs_compiler, work
from tests.test_lookup import Dealt

LABELS = tuple(choices())


@pytest.fixture(scope="module")
def cora():
    return accelviz.load_graph("cora")


# --- a row that is followed ---------------------------------------------------------------------


@pytest.mark.parametrize("strategy", [*SPMM_KERNELS, WARP_LEVEL])
@pytest.mark.parametrize("name", ["hub", "all_degrees", "isolated_ends"])
def test_the_block_shown_has_the_row_whatever_changes(name, strategy):
    graph = MADE[name]()
    state = State(graph, first=strategy)
    degrees = graph.degrees
    for row in {longest(graph), int(degrees.argmin()), 0, graph.n_rows - 1}:
        state.change(row=row)
        for settings in (
            *({"max_block_warps": each} for each in (1, 2, 3, 12, 31, 32)),
            *({"max_warp_nzs": each} for each in (1, 3, 32, 1024)),
            *({"n_cols": each} for each in (1, 50, 257)),
        ):
            state.change(**settings)
            assert state.settings.row == row
            place = state.place
            assert place.row == row
            assert state.first.plan.output_rows[place.place] == row
            if place.blocks:
                assert state.settings.block in place.blocks
                assert holds_row(state)
            else:
                assert degrees[row] == 0
                assert state.settings.block == 0


def test_of_several_blocks_the_one_shown_stays_or_moves_as_little_as_it_can():
    graph = MADE["hub"]()
    state = State(graph, max_block_warps=1, max_warp_nzs=32)
    (first, *_, last) = state.place.blocks
    assert len(state.place.blocks) == 94  # 3000 nonzeros, 32 to a block
    assert state.settings.block == first
    state.change(block=last - 3, row=50)
    assert (state.settings.row, state.settings.block) == (50, last - 3)
    state.change(n_cols=100)
    assert state.settings.block == last - 3
    state.change(max_block_warps=2)  # 47 blocks of 64, after fewer blocks of other rows
    assert len(state.place.blocks) == 47
    assert state.settings.block == state.place.blocks[-1]
    state.change(block=0, row=50)
    assert state.settings.block == state.place.blocks[0]


def test_a_block_has_its_first_row_followed(cora):
    for label in (*SPMM_KERNELS, WARP_LEVEL):
        state = State(cora, first=label, n_cols=20)
        plan = state.first.plan
        for block in (0, plan.launch.n_blocks // 2, plan.launch.n_blocks - 1):
            state.change(block=block)
            work = plan.workload(block, block + 1)
            row = plan.output_rows[work.row[0]]
            assert (state.settings.block, state.settings.row) == (block, row)
            assert type(state.settings.row) is int
            assert holds_row(state)
            assert state.work.to_frame().equals(work.to_frame())


def test_a_row_of_a_degree(cora):
    state = State(cora)
    degrees = np.diff(cora.row_pointers)
    for low, high in ((1, 1), (30, 40), (168, 500), (0, 3)):
        row = state.row_of_degree(low, high)
        assert row == min(i for i, degree in enumerate(degrees) if low <= degree <= high)
    with pytest.raises(ArgumentError, match="no row has 100 to 160 nonzeros"):
        state.row_of_degree(100, 160)


# --- graphs and strategies of every kind --------------------------------------------------------


def test_another_graph_is_shown_at_its_longest(cora):
    state = State(cora, n_cols=32, max_block_warps=6)
    state.change(graph="citeseer")
    other = accelviz.load_graph("citeseer")
    assert state.graph.n_rows == other.n_rows
    assert state.settings.row == int(other.degrees.argmax())
    assert (state.settings.n_cols, state.settings.given) == (32, {"max_block_warps": 6})
    assert holds_row(state)
    state.change(graph="cora", row=5)
    assert state.graph is cora
    assert state.settings.row == 5
    state.change(graph="citeseer", block=3)
    assert state.settings.block == 3
    assert holds_row(state)


@pytest.mark.parametrize("label", LABELS)
def test_odd_graphs_with_every_strategy(label):
    for name in ("empty", "no_edges", "no_columns", "one_node", "one_node_with_loop", "wide"):
        graph = MADE[name]()
        state = State(graph, first=label, second=label, max_block_warps=2)
        state.change(max_block_warps=3, n_cols=7)
        plan = state.first.plan
        if label.startswith("cusparse"):
            assert state.place is state.work is state.first.loads is None
            assert state.first.summary.blocks is None
            assert state.settings.block == 0
        else:
            assert work(state.first.summary) == work(plan.statistics)
            assert state.first.loads.n_blocks == plan.launch.n_blocks
            assert (state.work is None) == (plan.launch.n_blocks == 0)
            assert (state.place is None) == (graph.n_rows == 0)
        if graph.n_rows:
            state.change(row=graph.n_rows - 1)
            assert state.settings.row == graph.n_rows - 1


def test_a_library_and_back(cora):
    state = State(cora, row=17)
    state.change(first="cusparse")
    assert state.place is state.work is state.first.loads is None
    assert state.settings.row == 17
    state.change(max_block_warps=4)  # the second still listens
    state.change(row=20)
    state.change(block=9)
    assert (state.settings.row, state.settings.block) == (20, 0)
    state.change(first="accel_gcn", second="cusparse")
    assert state.place.row == 20
    assert holds_row(state)


def test_thread_groups_are_counted_in_place_of_warps(cora):
    state = State(cora, first="fusegnn_gas", n_cols=20)
    groups = 256 // 20
    assert state.first.loads.load.shape[1] == groups != state.first.plan.launch.warps_per_block
    assert state.first.loads.worker == "thread group"
    assert state.work.warp.max() == groups - 1


def test_a_graph_of_ones_own_wins_over_the_bundled_one_of_its_name():
    own = MADE["wide"]()
    named = Graph(own.row_pointers, own.column_indices, own.values, own.shape, "cora")
    state = State(named)
    assert state.graph is named
    assert state.graphs == ("cora", *(name for name in bundled_graphs() if name != "cora"))
    state.change(graph="citeseer")
    state.change(graph="cora")
    assert state.graph is named
    assert state.timing(state.first).limit is None  # that was recorded of another graph
    assert State(own).graphs == ("made", *bundled_graphs())


class Counted(AccelGCN):
    """Accel-GCN that does not say in closed form what it does."""

    name = "counted"

    def summarize(self, rows, n_cols, **parameters):
        return None


class Plain(Strategy):
    """A warp a row, with the defaults of a beginner."""

    operation = SPMM
    name = "plain"

    def build(self, graph, n_cols):
        whole = accelviz.plan(graph, "graphblast", n_cols)
        return dataclasses.replace(whole, calls=(Call(whole.launch),))


def test_strategies_of_ones_own_come_first(cora):
    state = State(cora, [Dealt(), Plain(), "merge_path"])
    labels = list(state.choices)
    assert [label for label in labels if "," not in label][:4] == [
        *("dealt", "plain", "merge_path", "accel_gcn")
    ]
    assert len(labels) == len(LABELS) + 2
    assert state.settings.first == "dealt"
    assert state.first.plan.name == "dealt"
    assert work(state.first.summary) == work(state.first.plan.statistics)
    assert state.first.summary.rows_shared is None  # the workload does not say how sums meet
    assert holds_row(state)
    state.change(second="plain")
    assert work(state.second.summary) == work(accelviz.plan(cora, "graphblast").statistics)
    # Its own parameters are what the sliders move.
    own = State(cora, [Counted()], max_block_warps=5)
    assert own.first.choice.sliders == ("max_block_warps", "max_warp_nzs")
    assert work(own.first.summary) == work(accelviz.plan(cora, max_block_warps=5).statistics)

    class Cards(Dealt):
        """Says which numbers of blocks are worth a try."""

        name = "cards"
        parameters: ClassVar = {
            "blocks": Parameter(5, "piles", 50, tries=(2, 5, 10)),
            "empty": Parameter(True, choices=(True, False)),
        }

    state = State(cora, [Cards()], blocks=3)
    assert {*state.choices} >= {"cards", "cards, empty=False", "cards, default 5"}
    assert state.first.plan.launch.n_blocks == 3
    state.change(first="cards, empty=False", blocks=7)
    assert (state.first.plan.launch.n_blocks, state.first.plan.cleared) == (7, ("Y",))


@pytest.mark.parametrize("own", [Dealt(), "merge_path"])
def test_one_strategy_needs_no_list(cora, own):
    state = State(cora, own)
    assert state.settings.first == next(iter(state.choices)) == getattr(own, "name", own)


def test_what_is_no_strategy(cora):
    with pytest.raises(ArgumentError, match="there is no 'mine'"):
        State(cora, ["mine"])
    with pytest.raises(ArgumentError, match="got the class Dealt. Expected: an object of it"):
        State(cora, [Dealt])


# --- traces -------------------------------------------------------------------------------------


@needs_compiler
@pytest.mark.parametrize("label", ["accel_gcn", "fusegnn_gar", WARP_LEVEL])
def test_a_trace_is_of_the_block_that_is_shown(label):
    graph = MADE["wide"]()
    state = State(graph, first=label, n_cols=33, row=20)
    traced = state.trace()
    assert traced is state.traced
    assert set(traced.table["block"]) == {state.settings.block}
    values = traced.table[traced.table["array"] == "values"]["index"].unique()
    work = state.work
    expected = [
        np.arange(start, start + count)
        for start, count in zip(work.nz_start, work.nz_count, strict=True)
    ]
    assert sorted(values) == sorted(np.concatenate(expected))
    counted = requests(traced.table)
    assert len(traced.steps) == len(counted) == traced.table["step"].nunique()
    for step, request in enumerate(counted["step"]):
        traced.go(step)
        assert set(traced.lanes["step"]) == {request}
        assert len(traced.lanes) == counted["lanes"][step]
    # A trace of another setting is of no use.
    for settings in ({"row": 21}, {"n_cols": 32}, {"second": "graphblast"}):
        state.trace()
        state.change(**settings)
        assert state.traced is None
    state.trace()
    state.change(row=state.settings.row)
    assert state.traced is not None


@needs_compiler
def test_what_has_no_kernel_cannot_be_traced(cora):
    for state in (State(cora, first="cusparse"), State(cora, [Plain()]), State(MADE["empty"]())):
        with pytest.raises(AccelvizError) as caught:
            state.trace()
        assert len(str(caught.value)) < 200
        assert state.traced is None


def test_a_graph_that_is_too_large_is_not_traced(cora, monkeypatch):
    state = State(cora)
    arrays = state.first.plan.arrays.values()
    size = sum(np.asarray(array).nbytes for array in arrays) + 2 * 4 * 2 * 2708 * 64

    def run(plan, X, block):
        assert X.shape == (2708, 64)
        assert block == state.settings.block
        return "traced"

    monkeypatch.setattr(state_module, "TRACE_BYTES", size)
    assert state.trace(run).table == "traced"
    state.change(row=0)
    monkeypatch.setattr(state_module, "TRACE_BYTES", size - 1)
    with pytest.raises(ArgumentError) as caught:
        state.trace(run)
    assert str(caught.value) == (
        "graph: a trace would copy 3 MB of matrices. "
        "Expected: at most 3 MB: a smaller graph or fewer columns."
    )
    assert state.traced is None


@pytest.mark.parametrize("steps", [[], [5], [2, 2, 9, 4]])
def test_steps_of_a_trace_stay_within_it(steps):
    traced = Traced(pd.DataFrame({"step": np.array(steps, dtype=int)}))
    assert traced.steps == sorted(set(steps))
    last = max(len(set(steps)) - 1, 0)
    for wanted, there in ((-3, 0), (0, 0), (1, min(1, last)), (10**9, last)):
        traced.go(wanted)
        assert traced.step == there
        shown = traced.lanes["step"].unique().tolist()
        assert shown == ([traced.steps[there]] if steps else [])
