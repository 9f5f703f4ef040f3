"""Closed forms of a workload's statistics equal those of the workload; `sweep` tabulates them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accelviz
from accelviz import measure
from accelviz.analysis.sweep import STATISTICS, sweep
from accelviz.analysis.traffic import launch_traffic
from accelviz.errors import ArgumentError, PartitionError
from accelviz.ordering import DegreeHistogram, RowDegrees
from accelviz.plans import Buffers, Layout, Plan, Provenance, Strategy
from accelviz.plans.launch import Call, LaunchConfig
from accelviz.plans.settings import Settings, setting
from accelviz.strategies import OPERATIONS, REGISTRY, SDDMM, SPMM, find_strategy
from accelviz.workload import Workload
from tests.compilers import needs_compiler
from tests.graphs import GRAPHS, MADE, graph_of_degrees
from tests.inherited import KERNELS

degree_lists = st.lists(
    st.one_of(st.integers(0, 5), st.integers(0, 70), st.sampled_from([31, 32, 33, 64, 384, 385])),
    max_size=60,
)
#: Ranges of parameters to draw from; beyond them most graphs give equal results.
RANGES = {
    **dict.fromkeys(("max_warp_nzs", "ngs", "column_tile"), st.integers(1, 80)),
    **dict.fromkeys(("group_nzs", "short_nzs"), st.integers(1, 40)),
    "items_per_thread": st.integers(1, 3),
}


def value_strategy(name, parameter):
    """Return a Hypothesis strategy of a parameter's values, None included if a rule replaces it."""
    values = RANGES.get(name)
    if values is None and parameter.choices:
        values = st.sampled_from(parameter.choices)
    elif values is None:
        values = st.integers(1, parameter.most // parameter.step).map(parameter.step.__mul__)
    return st.none() | values if parameter.default is None else values


#: Strategies excluded from this file: their blocks depend on the columns that rows share, or their
#: atomics on the values of sums, so that degrees do not determine the statistics.
EXCLUDED = (
    *("spmm windows", "spmm window_tiles", "sddmm window_tiles"),
    *("scc_last strided_windows", "scc_last_weights strided_windows"),
    *("bit_product warpgroup", "bit_product split", "bit_product paper"),
    *("bit_spmm_8 lane_groups", "bit_spmm_4 lane_groups"),  # by values of sums
)
#: All other strategies with kernels, of every operation, by name.
BY_DEGREES = {
    name: strategy
    for strategy in REGISTRY
    if strategy.plan(MADE["one_node"](), 4).kernel is not None
    and (name := f"{strategy.operation.name} {strategy.name}") not in EXCLUDED
}


def settings_of(strategy):
    """Draw settings of a strategy from its declared parameters."""
    values = {
        name: value_strategy(name, parameter) for name, parameter in strategy.parameters.items()
    }
    return st.fixed_dictionaries({}, optional=values)


def closed_form(graph, strategy, n_cols, **parameters):
    return strategy.closed_form(graph, n_cols, **parameters)


def counted_rows(plan):
    """Count rows that several warps of a block share, and rows in several blocks."""
    table = plan.workload().to_frame().query("nz_count > 0")
    in_block = table.groupby(["row", "block"])["warp"].nunique()
    shared = int((in_block > 1).groupby("row").any().sum())
    blocks = table.groupby("row")["block"].agg(["min", "max"])
    return shared, int((blocks["min"] < blocks["max"]).sum())


def check_against_workload(graph, strategy, n_cols, **parameters):
    summary = closed_form(graph, strategy, n_cols, **parameters)
    plan = accelviz.plan(graph, strategy, n_cols, **parameters)
    counted = plan.statistics
    assert summary.loads.nonzeros.tolist() == counted.loads.nonzeros.tolist()
    assert summary.loads.warps.tolist() == counted.loads.warps.tolist()
    for name in (
        *("blocks", "warps", "workers", "busy_warps", "steps", "slots", "longest", "nonzeros"),
        *("idle_warps", "idle_share"),
    ):
        assert getattr(summary, name) == getattr(counted, name), name
    assert summary.largest == counted.largest
    assert summary.imbalance == pytest.approx(counted.imbalance, rel=1e-12)
    assert summary.metadata_bytes == plan.metadata_bytes
    assert (summary.rows_shared, summary.rows_cut) == counted_rows(plan)
    # Without the order of the rows, some statistics are unknown (None); the others are equal.
    from_histogram = strategy.closed_form(
        RowDegrees(strategy.degrees(graph).histogram), n_cols, **parameters
    )
    sums = ("rows_shared", "rows_cut", "shared_atomics", "global_atomics")
    for name in (
        "blocks",
        "warps",
        "workers",
        "busy_warps",
        "steps",
        "slots",
        "metadata_bytes",
        *sums,
    ):
        known = getattr(from_histogram, name)
        assert known is None or known == getattr(summary, name), name
    if from_histogram.loads is not None:
        assert from_histogram.loads.nonzeros.tolist() == summary.loads.nonzeros.tolist()
        assert from_histogram.loads.warps.tolist() == summary.loads.warps.tolist()


def test_every_strategy_with_a_kernel_has_a_closed_form():
    for strategy in BY_DEGREES.values():
        assert closed_form(MADE["one_node"](), strategy, 64) is not None


@pytest.mark.sample(3)
@pytest.mark.parametrize("strategy", BY_DEGREES.values(), ids=BY_DEGREES)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_closed_forms_equal_the_counted_workload(strategy, data):
    graph = graph_of_degrees(data.draw(degree_lists), 400)
    n_cols = data.draw(st.sampled_from([1, 3, 16, 33, 64, 130, 300]))
    setting = data.draw(settings_of(strategy))
    try:
        closed_form(graph, strategy, n_cols, **setting)
    except PartitionError:  # settings that exclude each other: the plan is refused, too
        with pytest.raises(PartitionError):
            accelviz.plan(graph, strategy, n_cols, **setting)
    else:
        check_against_workload(graph, strategy, n_cols, **setting)


@pytest.mark.long
@pytest.mark.sample(3)
@pytest.mark.parametrize("strategy", BY_DEGREES.values(), ids=BY_DEGREES)
def test_closed_forms_on_every_graph(strategy):
    # Beyond SpMM and SDDMM partition schemes are shared: each operation has every third graph.
    step = 1 if strategy.operation in (SPMM, SDDMM) else 3
    for make in [*GRAPHS.values()][KERNELS.index(strategy) % step :: step]:
        check_against_workload(make(), strategy, 64)


def check_atomics(strategy, **parameters):
    # A launch in the emulator takes long, so each strategy has one of two graphs.
    name, n_cols = (("isolated_ends", 33), ("wide", 3))[KERNELS.index(strategy) % 2]
    graph = MADE[name]()
    plan = accelviz.plan(graph, strategy, n_cols, **parameters)
    inputs = measure.random_inputs(plan.operation, plan.pattern, plan.widths)
    counted = launch_traffic(plan, *inputs)
    atomics = counted[counted["kind"] == "atomic"].groupby("space", observed=False)
    floats = (atomics["bytes"].sum() / 4).to_dict()
    summary = closed_form(graph, strategy, n_cols, **parameters)
    assert summary.shared_atomics == floats.get("shared", 0)
    assert summary.global_atomics == floats.get("global", 0)


def with_turn(turn):
    """Parametrize a test by strategy: beyond SpMM and SDDMM, each has one of two turns.

    Pairs of strategies take turns, because neighbors have different graphs in `check_atomics`.
    """
    strategies = {
        name: strategy
        for name, strategy in BY_DEGREES.items()
        if strategy.operation in (SPMM, SDDMM) or KERNELS.index(strategy) // 2 % 2 == turn
    }
    return pytest.mark.parametrize("strategy", strategies.values(), ids=strategies)


@pytest.mark.sample(6)
@needs_compiler
@with_turn(0)
def test_atomics_are_those_that_the_kernel_carries_out(strategy):
    # All parameters together, each at its first value to try.
    tried = {name: p.tries[0] for name, p in strategy.parameters.items() if p.tries}
    check_atomics(strategy, **tried)
    if strategy.operation is SPMM and "partition" in strategy.parameters:
        check_atomics(strategy, partition="warp")


@pytest.mark.long
@needs_compiler
@with_turn(1)
def test_atomics_with_the_defaults(strategy):
    check_atomics(strategy)


def test_what_a_histogram_determines_and_what_it_does_not():
    degrees = {0: 2, 3: 20, 40: 5, 500: 1}
    table = sweep(degrees, strategies=accelviz.strategies()).set_index("strategy")
    whole = sweep(MADE["wide"](), strategies=accelviz.strategies()).set_index("strategy")
    same = table == whole
    missing = table.isna() & ~whole.isna()
    parameters = list(table.columns[: table.columns.get_loc("blocks")])
    assert (same | missing | (table.isna() & whole.isna())).all(axis=None)
    assert not missing.loc[["accel_gcn", "fusegnn_gar"]].any(axis=None)
    assert missing.columns[missing.loc["gnnadvisor"]].tolist() == [
        *("idle_share", "rows_shared", "rows_cut", "shared_atomics", "global_atomics")
    ]
    assert missing.columns[missing.loc["graphblast"]].tolist() == ["idle_share"]
    assert table.loc["cusparse", list(STATISTICS)].isna().all()
    assert table.loc["graphblast", parameters].dropna().to_dict() == {
        "n_cols": 64, "block_warps": find_strategy("graphblast").defaults()["block_warps"]
    }  # fmt: skip


def test_a_sweep_has_every_combination_in_order():
    table = sweep("cora", max_block_warps=np.array([2, 4]), max_warp_nzs=(8, 16, 32))
    assert table[["max_block_warps", "max_warp_nzs"]].to_numpy().tolist() == [
        [block, warp] for block in (2, 4) for warp in (8, 16, 32)
    ]
    assert table.attrs["graph"] == "cora"
    assert table.dtypes["max_block_warps"] == table.dtypes["blocks"] == np.int64
    for row in table.itertuples():
        plan = accelviz.plan(
            "cora", "accel_gcn", max_block_warps=row.max_block_warps, max_warp_nzs=row.max_warp_nzs
        )
        assert (row.blocks, row.idle_share) == (plan.launch.n_blocks, plan.statistics.idle_share)


def test_each_strategy_takes_the_parameters_that_it_has():
    table = sweep(
        "cora",
        strategies=["accel_gcn", "gnnadvisor", "graphblast"],
        max_warp_nzs=[16, 32],
        ngs=[8, 16, 32],
        n_cols=[16, 64],
    )
    assert table.groupby("strategy").size().to_dict() == {
        "accel_gcn": 4,
        "gnnadvisor": 6,
        "graphblast": 2,
    }
    assert table["ngs"].dtype == "Int64"
    assert table.query("strategy == 'gnnadvisor'")["max_warp_nzs"].isna().all()
    assert table.query("strategy == 'graphblast'")["ngs"].isna().all()
    partitions = sweep("cora", partition=["block", "warp"])["partition"]
    assert partitions.tolist() == ["block", "warp"]


def test_a_sweep_of_a_parameter_has_its_values_to_try():
    for strategy in BY_DEGREES.values():
        tried = {key: p.tries for key, p in strategy.parameters.items() if p.tries}
        operation = strategy.operation.name
        for key, values in tried.items():
            accepted = [value for value in values if is_accepted(strategy, **{key: value})]
            table = sweep({1: 9, 40: 3}, strategy.name, operation=operation, **{key: accepted})
            assert table.equals(sweep({1: 9, 40: 3}, strategy, **{key: accepted}))
            assert table.columns.tolist() == ["strategy", "n_cols", *tried, *STATISTICS]
            assert table[key].tolist() == accepted


def is_accepted(strategy, **setting):
    try:
        strategy.plan(MADE["one_node"](), 64, **setting)
    except PartitionError:  # the value excludes the default of another parameter
        return False
    return True


def test_quartiles_are_those_of_the_warps_with_work():
    graph = MADE["all_degrees"]()
    loads = (
        accelviz.plan(graph, "accel_gcn")
        .workload()
        .to_frame()
        .groupby(["block", "warp"])["nz_count"]
        .sum()
    )
    row = sweep(graph).iloc[0]
    for share, column in ((25, "warp_nzs_q1"), (50, "warp_nzs_median"), (75, "warp_nzs_q3")):
        assert row[column] == np.percentile(loads, share, method="inverted_cdf")
    assert row["warp_nzs_mean"] == pytest.approx(loads.mean())


# Of dense products the registry has only a library's strategy, which has no kernel.
@pytest.mark.parametrize("operation", [name for name in OPERATIONS if not name.startswith("dense")])
@pytest.mark.parametrize("graph", [{}, {0: 3}, "empty", "no_edges"])
def test_sweeps_of_nothing(graph, operation):
    graph = GRAPHS[graph]() if isinstance(graph, str) else graph
    kernels = [strategy for strategy in KERNELS if strategy.operation.name == operation]
    table = sweep(graph, strategies=kernels)
    assert len(table) == len(kernels) > 0
    assert (table["busy_warps"].fillna(0) == 0).all()
    assert (table["idle_share"].fillna(0) == 0).all()


class Part(Settings):
    part: int = setting(2, "where to cut", 9, tries=(2, 3, 4))


class Halves(Strategy):
    """Two warps, for the first part of the rows and the rest; written like a student's strategy."""

    operation = SPMM
    name = "halves"
    Settings = Part

    def build(self, graph, widths, settings):
        """Plan it."""
        middle = graph.n_rows // settings.part

        def workload(start, stop):
            rows = np.arange(graph.n_rows)
            return Workload(
                np.zeros_like(rows),
                (rows >= middle).astype(int),
                rows,
                graph.row_pointers[:-1],
                graph.degrees,
            )

        return Plan(
            Layout(graph.pattern, workload),
            (Call(LaunchConfig((1, 1, 1), 2)),),
            Buffers(),
            Provenance(self, graph.values, widths, settings),
        )


def test_a_strategy_without_a_closed_form_is_counted():
    row = sweep("cora", strategies=[Halves(), "accel_gcn"]).iloc[0]
    assert row["idle_share"] == accelviz.plan("cora", Halves()).statistics.idle_share > 0
    assert np.isnan(row["shared_atomics"])
    swept = sweep("cora", Halves(), part=[2, 3])
    assert swept.columns.tolist() == ["strategy", "n_cols", "part", *STATISTICS]
    assert swept["part"].tolist() == [2, 3]
    with pytest.raises(ArgumentError, match="'halves' has no `describe`.*the graph itself"):
        sweep({3: 4}, strategies=Halves())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"graph": {-1: 3}}, ArgumentError, "a degree of -1"),
        ({"graph": {3: -1}}, ArgumentError, "a number of rows of -1"),
        ({"graph": {1.5: 3}}, ArgumentError, "a degree of 1.5"),
        ({"graph": {3: True}}, ArgumentError, "a number of rows of True"),
        ({"max_block_warps": []}, ArgumentError, "max_block_warps: got no value"),
        ({"max_block_warps": 33}, PartitionError, "max_block_warps: got 33"),
        ({"max_warp_nzs": [4, 0]}, PartitionError, "max_warp_nzs: got 0"),
        ({"max_warp_nzs": 2.5}, PartitionError, "got 2.5. Expected: 1 to 65535"),
        ({"ngs": 3}, ArgumentError, "no strategy of this sweep has such a parameter"),
        ({"strategies": []}, ArgumentError, "strategies: got none"),
        ({"strategies": "magic"}, ArgumentError, "there is no 'magic'"),
        ({"n_cols": 0}, ArgumentError, "1 to 2147483647"),
        ({"partition": "row"}, PartitionError, "'block' or 'warp'"),
    ],
)
def test_bad_sweeps_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        sweep(**{"graph": {3: 4}, **arguments})


def test_a_dict_of_degrees_may_be_unsorted_and_have_degrees_of_no_row():
    from_dict = sweep({5: 2, 1: 7, 9: 0})
    from_histogram = sweep(DegreeHistogram(np.array([1, 5]), np.array([7, 2])))
    pd.testing.assert_frame_equal(from_dict, from_histogram)


def test_another_operation_is_swept_with_its_fastest_strategy():
    table = accelviz.sweep("cora", operation="sddmm")
    assert {*table["strategy"]} == {SDDMM.fastest}
