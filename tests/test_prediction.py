"""Recorded times are those of this very graph, and what is predicted from them is simple."""

import itertools

import numpy as np
import pandas as pd
import pytest

import accelviz
from accelviz.errors import ArgumentError
from accelviz.graph import Graph
from accelviz.measure import prediction, records
from accelviz.measure.harness import fingerprint
from accelviz.measure.prediction import (
    TABLES,
    Timing,
    parameters_of,
    recorded_graphs,
    recorded_times,
    timing,
)
from accelviz.strategies import OPERATIONS, REGISTRY, find_operation, find_strategy
from tests.graphs import MADE

ACCEL = find_strategy("accel_gcn")
#: Operations of which no times ship with the package.
UNRECORDED = ("scc", "bit_", "dense", "spmm_max", "spmm_min", "spmm_extremum")


def renamed(graph, name):
    return Graph(graph.row_pointers, graph.column_indices, graph.values, graph.shape, name)


def made_table(graph, *settings, state="warm", **more):
    """A recorded table with a row for each (parameters, median_us)."""
    table = pd.DataFrame(settings, columns=["parameters", "median_us"])
    same = {"hardware": "a GPU", "date": "2026-01-02", "graph": graph.name, "state": state}
    same |= {"fingerprint": fingerprint(graph), "operation": "spmm", "strategy": "accel_gcn"}
    same |= {"columns": 64, "gather_limit_us": 2.5, "repeats": 11}  # nobody asks for the last
    return table.assign(**same | more)


def setting(block_warps=12, warp_nzs=32, partition="block", combined=True):
    sizes = f"max_block_warps={block_warps} max_warp_nzs={warp_nzs}"
    return f"{sizes} partition={partition} combined_warp={combined}"


@pytest.fixture
def ship(monkeypatch):
    """Let these tables be the ones that ship; those there are not are not there."""

    def install(**tables):
        def recorded(name):
            if name.replace("-", "_") not in tables:
                raise ArgumentError("name", "no such table", "another")
            return tables[name.replace("-", "_")]

        monkeypatch.setattr(records, "recorded", recorded)
        prediction._warm.cache_clear()

    yield install
    prediction._warm.cache_clear()


@pytest.mark.parametrize(
    "operation", [name for name in OPERATIONS if not name.startswith(UNRECORDED)]
)
def test_recorded_times_are_all_that_ships_of_the_graph_warm(operation):
    operation = find_operation(operation)
    graph = accelviz.load_graph("cora")
    times = recorded_times(graph, operation)
    whole = pd.concat([records.recorded(name) for name in TABLES])
    wanted = whole[
        (whole["graph"] == "cora")
        & (whole["fingerprint"] == fingerprint(graph))
        & (whole["state"] == "warm")
        & (whole["operation"] == operation.name)
    ]
    assert len(wanted) >= {"spmm": 100, "sddmm": 12}.get(operation.name, 4)
    assert {"cora", "pubmed", "mit8"} < set(recorded_graphs(operation))
    assert times["median_us"].tolist() == wanted["median_us"].tolist()
    assert times["parameters"].tolist() == wanted["parameters"].tolist()
    assert list(map(records.parameters_text, times["setting"])) == [*wanted["parameters"]]


def test_a_graph_that_has_only_the_name_was_not_recorded():
    assert len(recorded_times(renamed(accelviz.load_graph("cora"), "another"))) == 0
    for name in ("cora", "as-caida", "Citation-twin"):
        times = recorded_times(renamed(MADE["wide"](), name))
        assert len(times) == 0
        assert timing(times, ACCEL, 64, {}, lambda parameters: 1) == Timing()


def test_a_name_that_stands_for_two_graphs_gives_the_times_of_this_one(ship):
    graph, other = (renamed(MADE[name](), "twin") for name in ("wide", "tall"))
    ship(
        sweeps_h200=made_table(other, (setting(), 1.0)),
        strategies_h200=pd.concat(
            [made_table(other, (setting(), 2.0)), made_table(graph, (setting(), 3.0))]
        ),
        columns_h200=made_table(graph, (setting(), 4.0), (setting(6), 5.0)),
    )
    assert recorded_times(graph)["median_us"].tolist() == [3.0, 4.0, 5.0]
    assert recorded_times(other)["median_us"].tolist() == [1.0, 2.0]
    # Of equal cases the first table's counts.
    assert timing(recorded_times(graph), ACCEL, 64, {}, lambda _: 1).recorded == 3.0


def test_cold_times_do_not_count_and_missing_tables_are_none(ship):
    graph = MADE["wide"]()
    ship(bundled_h200=made_table(graph, (setting(), 7.0), state="cold"))
    assert len(recorded_times(graph)) == 0
    ship()
    assert len(recorded_times(graph)) == 0
    assert timing(recorded_times(graph), ACCEL, 64, {}, lambda _: 1) == Timing()


@pytest.fixture
def times(ship):
    graph = MADE["wide"]()
    gather = made_table(graph, (setting(8), 11.0), columns=96, gather_limit_us=4.0)
    ship(
        sweeps_h200=made_table(
            graph,
            (setting(6), 10.0),
            (setting(), 20.0),
            (setting(6, 64), 12.0),
            (setting(6, partition="warp"), 31.0),
            (setting(partition="warp"), 30.0),
            (setting(24, combined=False), 50.0),
        ),
        bundled_h200=pd.concat([gather, made_table(graph, ("", 3.0), strategy="plain")]),
    )
    return recorded_times(graph)


def slots(parameters):
    """Made-up warp times: 100 for the default."""
    block_warps = parameters.get("max_block_warps", 12)
    warp_nzs = parameters.get("max_warp_nzs", 32)
    return 100 + 10 * (block_warps - 12) + (warp_nzs - 32)


KNOWN = {"limit": 2.5, "hardware": "a GPU", "date": "2026-01-02"}


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        # the default itself, however it is written
        ({}, Timing(20.0, 20.0, 20.0, **KNOWN)),
        ({"max_block_warps": 12}, Timing(20.0, 20.0, 20.0, **KNOWN)),
        ({"max_block_warps": 12, "max_warp_nzs": 32}, Timing(20.0, 20.0, 20.0, **KNOWN)),
        # recorded, and predicted too: 40 of 100 slots
        ({"max_block_warps": 6}, Timing(10.0, 8.0, 20.0, **KNOWN)),
        ({"max_block_warps": 6, "max_warp_nzs": 64}, Timing(12.0, 14.4, 20.0, **KNOWN)),
        # only predicted
        ({"max_block_warps": 13}, Timing(None, 22.0, 20.0, **KNOWN)),
        ({"max_warp_nzs": 8}, Timing(None, 15.2, 20.0, **KNOWN)),
        # words choose another kernel, which has a default of its own
        ({"partition": "warp", "max_block_warps": 6}, Timing(31.0, 12.0, 30.0, **KNOWN)),
        ({"partition": "warp", "max_block_warps": 9}, Timing(None, 21.0, 30.0, **KNOWN)),
        # recorded, but its default was not
        ({"combined_warp": False, "max_block_warps": 24}, Timing(50.0, None, None, **KNOWN)),
        # neither was, and the limit is known all the same
        ({"combined_warp": False, "max_block_warps": 6}, Timing(None, None, None, **KNOWN)),
    ],
)
def test_a_setting_is_looked_up_and_predicted(times, parameters, expected):
    result = timing(times, ACCEL, 64, parameters, slots)
    assert result.predicted == pytest.approx(expected.predicted)
    assert (result.recorded, result.basis) == (expected.recorded, expected.basis)
    assert (result.limit, result.hardware, result.date) == tuple(KNOWN.values())


def test_other_columns_and_strategies_have_times_of_their_own(times):
    assert timing(times, ACCEL, 32, {}, slots) == Timing()
    assert timing(times, find_strategy("graphblast"), 64, {}, slots) == Timing()
    wide = timing(times, ACCEL, 96, {"max_block_warps": 8}, slots)
    assert (wide.recorded, wide.predicted, wide.basis, wide.limit) == (11.0, None, None, 4.0)


def test_nothing_is_predicted_where_the_warp_time_is_not_known(times):
    asked = {"max_block_warps": 6}
    assert timing(times, ACCEL, 64, asked, lambda _: None).predicted is None
    only_now = {6: 40}
    half_known = timing(
        times, ACCEL, 64, asked, lambda parameters: only_now.get(parameters.get("max_block_warps"))
    )
    assert (half_known.recorded, half_known.predicted) == (10.0, None)
    # A graph without a nonzero has no warp time to compare with.
    assert timing(times, ACCEL, 64, asked, lambda _: 0).predicted is None


def test_parameters_are_read_as_they_are_written(times):
    for strategy in REGISTRY:
        defaults = strategy.defaults()
        assert parameters_of(records.parameters_text(defaults)) == {
            key: str(value) for key, value in defaults.items()
        }
    assert parameters_of("") == parameters_of(np.nan) == {}


def test_the_prediction_of_shipped_times_is_the_ratio_of_warp_times():
    graph = accelviz.load_graph("cora")
    times = recorded_times(graph)
    shipped = times[(times["strategy"] == "accel_gcn") & (times["columns"] == 64)]
    wanted = {
        (int(row.setting["max_block_warps"]), int(row.setting["max_warp_nzs"])): row.median_us
        for row in shipped[::-1].itertuples()
        if (row.setting["partition"], row.setting["combined_warp"]) == ("block", "True")
    }
    assert len(wanted) > 10

    def warp_time(parameters):
        return ACCEL.closed_form(graph, 64, **parameters).slots

    for block_warps, warp_nzs in itertools.product((1, 7, 12, 32), (8, 32)):
        asked = {"max_block_warps": block_warps, "max_warp_nzs": warp_nzs}
        result = timing(times, ACCEL, 64, asked, warp_time)
        plans = [accelviz.plan(graph, n_cols=64, **setting) for setting in (asked, {})]
        ratio = plans[0].statistics.slots / plans[1].statistics.slots
        assert result.recorded == wanted.get((block_warps, warp_nzs))
        assert result.basis == wanted[12, 32]
        assert result.predicted == pytest.approx(wanted[12, 32] * ratio)
