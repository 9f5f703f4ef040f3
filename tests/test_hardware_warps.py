"""Steps of hardware warps, and idle shares, against what the kernels do in the emulator."""

import numpy as np
import pytest

import accelviz
from accelviz.analysis.balance import block_idle_shares
from accelviz.analysis.sweep import summary
from accelviz.measure import random_inputs
from accelviz.partition.hardware_warps import HardwareWarps, LaneColumns, WorkerLanes
from accelviz.strategies import find_strategy
from tests.compilers import needs_compiler
from tests.graphs import MADE, graph_of_degrees

#: Degrees whose blocks have idle warps, shared rows and rows of several blocks.
UNEVEN = [1] * 40 + [2] * 17 + [7] * 5 + [40, 41, 90, 500, 0, 3]

#: Strategy, columns, settings.
CASES = [
    ("accel_gcn", 32, {}),
    ("accel_gcn", 64, {}),
    ("accel_gcn", 96, {}),
    ("accel_gcn", 40, {}),
    ("accel_gcn", 64, {"max_block_warps": 5, "max_warp_nzs": 8}),
    ("accel_gcn", 128, {"combined_warp": False}),
    ("accel_gcn", 64, {"partition": "warp"}),
    ("graphblast", 64, {}),
    ("ge_spmm", 100, {}),
    ("gnnadvisor", 64, {}),
    ("merge_path", 64, {}),
    ("row_thread", 3, {}),
    ("neugraph", 70, {}),
    ("neugraph", 200, {"block_size": 128}),
    ("fusegnn_gar", 48, {}),
    ("fusegnn_gar", 12, {}),
]


def loads_of_warps(plan, block):
    """Number of loads of X by each hardware warp of a block, from a run in the emulator."""
    X = np.ones((plan.walked.shape[1], plan.n_cols), np.float32)
    table = accelviz.trace(plan, X, block=block)
    of_x = table[(table["array"] == "X").to_numpy(bool)]
    counts = of_x.groupby("warp", observed=True)["step"].nunique()
    return counts.reindex(range(plan.launch.warps_per_block), fill_value=0).to_numpy()


@needs_compiler
@pytest.mark.parametrize(("name", "n_cols", "settings"), CASES)
def test_the_steps_of_a_warp_are_its_loads_of_x(name, n_cols, settings):
    plan = accelviz.plan(graph_of_degrees(UNEVEN, 600), name, n_cols, **settings)
    last = plan.launch.grid[0] - 1
    for block in sorted({0, last // 2, last}):
        loads = plan.hardware.of_workload(plan.workload(block, block + 1))
        (_, steps), *_ = plan.hardware.steps(loads)
        assert loads_of_warps(plan, block).tolist() == steps[0].tolist(), block


#: Strategy, operation, widths, settings, and the operand or result with a number per product.
HEADS = [
    ("lane_groups", "edge_softmax", {"n_cols": 1}, {}, "alpha"),
    ("lane_groups", "edge_softmax", {"n_cols": 3}, {"long_row": 50}, "alpha"),
    ("lane_groups", "edge_softmax_gradient", {"n_cols": 8}, {"long_row": 20}, "d_scores"),
    ("lane_groups", "sddmm", {"n_cols": 16, "heads": 3}, {"group_products": 4}, "scores"),
    ("lane_groups", "sddmm", {"n_cols": 32, "heads": 8}, {}, "scores"),
]


@needs_compiler
@pytest.mark.parametrize(("name", "operation", "widths", "settings", "result"), HEADS)
def test_the_load_of_a_warp_is_the_results_it_writes(name, operation, widths, settings, result):
    """All attention heads are counted, those of long rows too."""
    graph = graph_of_degrees(UNEVEN, 600)
    plan = find_strategy(name, operation).plan(graph, **widths, **settings)
    inputs = random_inputs(plan.operation, graph.pattern, plan.widths)
    table = accelviz.trace(plan, *inputs, block=range(plan.launch.n_blocks))
    written = table[((table["array"] == result) & (table["kind"] == "store")).to_numpy(bool)]
    counts = np.zeros((plan.launch.n_blocks, plan.launch.warps_per_block), np.int64)
    np.add.at(counts, (written["block"].to_numpy(), written["warp"].to_numpy()), 1)
    loads = plan.layout.slice_loads(0, plan.launch.n_blocks)
    assert counts.tolist() == loads.reshape(*counts.shape, -1).sum(axis=2).tolist()
    scheme = summary(plan.strategy, graph, widths["n_cols"], settings) if len(widths) == 1 else None
    for statistics in filter(None, (plan.statistics, scheme)):
        assert statistics.nonzeros == counts.sum() == graph.nnz * widths.get("heads", plan.n_cols)
        assert statistics.idle_share == plan.statistics.idle_share


@pytest.mark.parametrize("n_cols", [3, 64])
def test_every_product_has_a_thread_of_its_own(n_cols):
    graph = graph_of_degrees(UNEVEN, 600)
    plan = accelviz.plan(graph, "unfused_gas", n_cols)
    threads = plan.layout.slice_loads(0, plan.launch.n_blocks)
    assert threads.ravel().nonzero()[0].tolist() == [*range(graph.nnz * n_cols)]
    # Only warps of the last block idle.
    assert plan.statistics.busy_warps == -(-graph.nnz * n_cols // 32)
    assert (block_idle_shares(plan)[:-1] == 0).all()


@pytest.mark.parametrize(
    ("graph", "shares"),
    [("cora", (34.0, 16.2, 5.0)), ("pubmed", (10.9, 4.3, 1.6))],
)
def test_the_idle_share_depends_on_the_columns(graph, shares):
    """Passes of combined warps fill the gaps of other passes."""
    table = accelviz.sweep(graph, n_cols=[32, 64, 128])
    assert [round(100 * share, 1) for share in table["idle_share"]] == list(shares)
    counted = [accelviz.plan(graph, "accel_gcn", n).statistics.idle_share for n in (32, 64, 128)]
    assert counted == table["idle_share"].tolist()


def test_warps_counted_by_hand():
    loads = np.array([[5, 3, 0, 0]])
    # Combined warps of two hardware warps, 4 warps a block: passes (0 0 1 1) and (2 2 3 3).
    combined = HardwareWarps.of(4, None, LaneColumns(64, 1, 64), 64)
    assert [steps.tolist() for _, steps in combined.steps(loads)] == [[[5, 5, 3, 3]]]
    assert vars(combined.occupancy(loads)) == {
        "busy_warps": 4, "steps": 16, "slots": 20, "longest": 5
    }  # fmt: skip
    # With 96 columns the tiles have 64 and 32: in the second only each first warp has columns.
    tiles = HardwareWarps.of(4, None, LaneColumns(64, 1, 64), 96)
    assert [steps.tolist() for _, steps in tiles.steps(loads)] == [[[5, 5, 3, 3]], [[5, 0, 3, 0]]]
    # Subwarps of 16 lanes: a warp lasts as long as the longer of its two.
    halves = HardwareWarps.of(4, WorkerLanes(16, 2), LaneColumns(16, 4, 64), 64)
    assert [steps.tolist() for _, steps in halves.steps(loads)] == [[[5, 0]]]
    # Lanes 24 to 47 of the second worker lie in two warps.
    across = HardwareWarps.of(2, WorkerLanes(24, 2), None, 24)
    assert [steps.tolist() for _, steps in across.steps(np.array([[5, 3]]))] == [[[5, 3]]]
    assert [steps.tolist() for _, steps in across.steps(np.array([[1, 3]]))] == [[[3, 3]]]
    # A row a lane: the longest row counts, not the sum.
    lanes = find_strategy("row_thread").plan(MADE["every_kind"](), 64)
    longest = max(lanes.workload().nz_count)
    assert lanes.hardware.row_per_lane
    assert lanes.hardware.of_workload(lanes.workload()).max() == longest


@pytest.mark.parametrize("warps", [1, 2, 3, 4, 12])
@pytest.mark.parametrize("lanes", [8, 24, 32, 64, 96, 128, 256])
@pytest.mark.parametrize("n_cols", [32, 64, 100, 128])
def test_steps_are_named_nonzeros_where_they_are_those_of_a_warp_s_workers(warps, lanes, n_cols):
    placed = WorkerLanes(lanes, warps)
    hardware = HardwareWarps.of(12, placed, LaneColumns(lanes, 1, max(n_cols, lanes)), n_cols)
    loads = 3 ** np.arange(12, dtype=np.int64)
    _, workers, iterations = hardware.executed[0]
    nonzeros = [
        sum(loads[worker] for worker in {*workers[:, :, warp][iterations[:, :, warp] > 0]})
        for warp in range(warps)
    ]
    is_nonzeros = hardware.steps_of_nonzeros(loads[None])[0].tolist() == nonzeros
    assert hardware.unit == ("nonzero" if is_nonzeros else "step")
