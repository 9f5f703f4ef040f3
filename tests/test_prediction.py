"""Recorded times are found by graph and setting."""

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
    parameters_of,
    recorded_graphs,
    recorded_times,
    waiting_beside_time,
)
from accelviz.strategies import REGISTRY, find_operation, find_strategy
from tests.graphs import MADE

ACCEL = find_strategy("accel_gcn")
#: Operations with recorded times in the package.
SCORES = ("gat", "gatv2", "cosine")
RECORDED = [
    *("spmm", "spmm_gradient", "sddmm", "edge_softmax", "edge_softmax_gradient"),
    *(f"{score}{suffix}" for score in SCORES for suffix in ("", "_gradient")),
]


def renamed(graph, name):
    return Graph(graph.row_pointers, graph.column_indices, graph.values, graph.shape, name)


def made_table(graph, *settings, state="warm", **more):
    """Return a recorded table with a row per (parameters, median_us)."""
    table = pd.DataFrame(settings, columns=["parameters", "median_us"])
    same = {"hardware": "a GPU", "date": "2026-01-02", "graph": graph.name, "state": state}
    same |= {"fingerprint": fingerprint(graph), "operation": "spmm", "strategy": "accel_gcn"}
    same |= {"columns": 64, "gather_limit_us": 2.5, "repeats": 11, "run": "one", "commit": "abc"}
    same |= {"quartile1_us": 1.0, "quartile3_us": 9.0, "floor_us": 2.5}
    return table.assign(**same | more)


def setting(block_warps=12, warp_nzs=32, partition="block", combined=True):
    sizes = f"max_block_warps={block_warps} max_warp_nzs={warp_nzs}"
    return f"{sizes} partition={partition} combined_warp={combined}"


@pytest.fixture
def ship(monkeypatch):
    """Return a function that makes these the only recorded tables of the package."""

    def install(**tables):
        def recorded(name):
            if name.replace("-", "_") not in tables:
                raise ArgumentError("name", "no such table", "another")
            return tables[name.replace("-", "_")]

        monkeypatch.setattr(records, "recorded", recorded)
        prediction._warm.cache_clear()

    yield install
    prediction._warm.cache_clear()


@pytest.mark.parametrize("operation", RECORDED)
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
    columns = ["strategy", "parameters", "columns", "median_us", "run"]
    assert sorted(times[columns].to_numpy().tolist()) == sorted(wanted[columns].to_numpy().tolist())
    assert list(map(records.parameters_text, times["setting"])) == [*times["parameters"]]
    # Times of the run with most settings of a strategy come first; none is below its empty launch.
    for _, of_strategy in times.groupby(["strategy", "columns"]):
        sizes = of_strategy.groupby("run")["parameters"].nunique()
        assert sizes[of_strategy["run"].iloc[0]] == sizes.max()
    assert (times["median_us"] > times["launch_us"]).all()


def test_a_graph_that_has_only_the_name_was_not_recorded():
    assert len(recorded_times(renamed(accelviz.load_graph("cora"), "another"))) == 0
    for name in ("cora", "as-caida", "Citation-twin"):
        times = recorded_times(renamed(MADE["wide"](), name))
        assert len(times) == 0


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
    # The first table wins if several have a case.
    assert waiting_beside_time(graph, 64, "accel_gcn").iloc[0, 1] == 3.0


def test_cold_times_do_not_count_and_missing_tables_are_none(ship):
    graph = MADE["wide"]()
    ship(bundled_h200=made_table(graph, (setting(), 7.0), state="cold"))
    assert len(recorded_times(graph)) == 0
    ship()
    assert len(recorded_times(graph)) == 0
    table = waiting_beside_time(graph, 64, "accel_gcn")
    assert table.columns[1] == "us: none recorded"
    assert table.iloc[:, 1].isna().all()


@pytest.mark.parametrize(
    ("case", "n_cols", "expected"),
    [
        # the default in other notations
        ("accel_gcn", 64, 20.0),
        ("accel_gcn max_block_warps=12", 64, 20.0),
        ("accel_gcn max_block_warps=12 max_warp_nzs=32", 64, 20.0),
        ("accel_gcn max_block_warps=6", 64, 10.0),
        ("accel_gcn max_block_warps=6 max_warp_nzs=64", 64, 12.0),
        ("accel_gcn partition=warp max_block_warps=6", 64, 31.0),
        ("accel_gcn combined_warp=False max_block_warps=24", 64, 50.0),
        ("accel_gcn max_block_warps=8", 96, 11.0),
        # not recorded: another setting, other columns, another strategy
        ("accel_gcn max_block_warps=13", 64, None),
        ("accel_gcn combined_warp=False", 64, None),
        ("accel_gcn", 32, None),
        ("graphblast", 64, None),
    ],
)
def test_the_time_of_a_case_is_that_of_this_very_setting(ship, case, n_cols, expected):
    graph = MADE["wide"]()
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
        bundled_h200=pd.concat(
            [
                made_table(graph, (setting(8), 11.0), columns=96),
                made_table(graph, ("", 3.0), strategy="plain"),
            ]
        ),
    )
    table = waiting_beside_time(graph, n_cols, case)
    if expected is None:
        assert np.isnan(table.iloc[0, 1])
        assert table.attrs == {"hardware": "", "date": ""}
    else:
        assert table.iloc[0, 1] == expected
        assert table.attrs == {"hardware": "a GPU", "date": "2026-01-02"}
        assert table.columns[1] == "us, a GPU, 2026-01-02"


def test_parameters_are_read_as_they_are_written():
    for strategy in REGISTRY:
        defaults = strategy.defaults()
        assert parameters_of(records.parameters_text(defaults)) == {
            key: str(value) for key, value in defaults.items()
        }
    assert parameters_of("") == parameters_of(np.nan) == {}
