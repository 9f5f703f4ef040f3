"""fuseGNN's two kernels: edges in parallel with atomics, and one block per vertex."""

import json

import numpy as np
import pytest

import accelviz
from accelviz.errors import PartitionError
from accelviz.files import results_directory
from accelviz.partition.nonzero_runs import rows_of_nonzeros
from accelviz.partition.thread_groups import thread_groups
from accelviz.plans import launch
from accelviz.strategies.fusegnn import chosen_aggregation, faster_aggregation
from benchmarks.pages.document import Results
from tests.compilers import EMULATOR
from tests.graphs import MADE, graph_of_degrees
from tests.inherited import check_results

BOTH = ("fusegnn_gas", "fusegnn_gar")


def test_figure_7_has_three_groups_of_five_columns():
    assert thread_groups(16, 5) == 3
    assert [thread_groups(128, m) for m in (1, 64, 65, 127, 128, 129)] == [128, 2, 1, 1, 1, 1]


def test_coo_names_the_row_of_every_nonzero():
    rows, _ = rows_of_nonzeros(graph_of_degrees([2, 0, 3, 0]))
    assert rows.tolist() == [0, 0, 2, 2, 2]
    assert rows.dtype == np.int32


@pytest.mark.parametrize("n_cols", [1, 5, 60, 64, 65, 1000])
def test_gas_gives_every_edge_to_a_group_in_order(n_cols):
    graph = MADE["tall"]()
    plan = accelviz.plan(graph, "fusegnn_gas", n_cols, block_size=128)
    groups = max(1, 128 // n_cols)
    assert plan.workers_per_block == groups
    assert plan.launch.warps_per_block == 4
    assert plan.launch.n_blocks == -(-graph.nnz // groups)
    assert plan.zero_outputs == ("Y",)
    plan.check()
    work = plan.workload()
    assert work.nz_start.tolist() == list(range(graph.nnz))
    assert set(work.nz_count) == {1}
    np.testing.assert_array_equal(work.block * groups + work.warp, work.nz_start)
    np.testing.assert_array_equal(np.bincount(work.row, minlength=graph.n_rows), graph.degrees)


@pytest.mark.parametrize("n_cols", [1, 5, 60, 64, 65, 1000])
def test_gar_gives_every_row_a_block_whose_groups_take_turns(n_cols):
    graph = graph_of_degrees([0, 1, 2, 3, 200, 0])
    plan = accelviz.plan(graph, "fusegnn_gar", n_cols, block_size=128)
    groups = max(1, 128 // n_cols)
    assert plan.workers_per_block == groups
    assert plan.launch.grid == (6, 1, 1)
    assert plan.zero_outputs == ()
    plan.check()
    work = plan.workload()
    np.testing.assert_array_equal(work.block, work.row)
    if groups == 1:
        assert work.row.tolist() == list(range(6))
        np.testing.assert_array_equal(work.nz_count, graph.degrees)
    else:
        assert work.row.tolist() == [0, 1, *[2] * 2, *[3] * 3, *[4] * 200, 5]
        np.testing.assert_array_equal(work.nz_count, graph.degrees[work.row] > 0)
        np.testing.assert_array_equal(
            work.warp, (work.nz_start - graph.row_pointers[work.row]) % groups
        )


@pytest.mark.parametrize("device", ["cpu", EMULATOR])
@pytest.mark.parametrize("strategy", BOTH)
def test_many_columns(strategy, device):
    check_results(MADE["isolated_ends"](), strategy, device, columns=(10_000,))


def test_more_edges_than_a_grid_has_blocks_are_refused(monkeypatch):
    monkeypatch.setattr(launch, "GRID_LIMITS", (6, 1, 1))
    graph = MADE["isolated_ends"]()  # 7 nonzeros
    accelviz.plan(graph, "fusegnn_gas", 128)
    with pytest.raises(PartitionError, match=r"grid: 7 blocks in x.*at most 6.*fewer columns"):
        accelviz.plan(graph, "fusegnn_gas", 129)


def recorded_passes():
    """Yield nodes, edges, columns, and µs of GAS, GAR and the conversion of each recorded pass."""
    results = Results(results_directory())
    for row in results["fusegnn-crossover-h200"].itertuples():
        nodes = round(row.edges / row.degree)
        yield nodes, row.edges, row.columns, row.gas_us, row.gar_us, row.conversion_us
    nodes = {"cora": 2708, "pubmed": 19717, "reddit": 232965}
    latency = results["fusegnn-latency-h200"].query("model == 'gcn'")
    for (graph, columns), cases in latency.groupby(["graph", "hidden"]):
        parts = {row.form: json.loads(row.parts_ms) for row in cases.itertuples()}
        if parts.get("gas") and parts.get("gar"):
            ms = parts["gas"]["spmm"], parts["gar"]["spmm"], parts["gar"]["conversion"]
            yield nodes[graph], cases.edges.iloc[0], columns, *(1e3 * time for time in ms)


@pytest.mark.parametrize(("converted", "wrong", "loss"), [(False, 1, 1.02), (True, 2, 1.31)])
def test_the_choice_is_that_of_the_recorded_passes(converted, wrong, loss):
    losses = []
    for nodes, edges, columns, gas, gar, conversion in recorded_passes():
        chosen = chosen_aggregation(nodes, edges, columns, converted)
        times = {"fusegnn_gas": gas, "fusegnn_gar": gar + conversion * converted}
        losses.append(times[chosen] / min(times.values()))
    assert len(losses) == 41
    assert sum(factor > 1 for factor in losses) == wrong
    assert max(losses) < loss


def test_the_choice_takes_a_graph_or_its_name():
    assert faster_aggregation("cora", 64) == "fusegnn_gas"  # as the paper says of Cora
    assert faster_aggregation(MADE["empty"](), 16) == "fusegnn_gas"


@pytest.mark.parametrize("strategy", BOTH)
def test_weights_of_attention_are_two_kernels_before_the_aggregation(strategy):
    graph = graph_of_degrees([3, 0, 2], 4)
    plan = accelviz.plan(graph, strategy, 8, operation="gat", heads=2)
    before = ["edge_powers", "edge_weights"]
    assert [call.kernel.entry for call in plan.calls] == [
        *before,
        f"{strategy}_heads",
        "row_maxima",
    ]
    assert plan.kernel.entry == f"{strategy}_heads"
    assert plan.buffers.workspace["weights"][0] == 2 * graph.nnz
    back = accelviz.plan(graph, strategy, 8, operation="gat_gradient", heads=2)
    entries = ["statistics_of_gat", "weights_again", f"{strategy}_gradient_heads", "edge_gradient"]
    assert [call.kernel.entry for call in back.calls] == entries
    np.testing.assert_array_equal(back.layout.nonzero_order, graph.transposed().nonzeros)
