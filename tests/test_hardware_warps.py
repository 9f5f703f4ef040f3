"""Steps of hardware warps, and idle shares, against what the kernels do in the emulator."""

import numpy as np
import pytest

import accelviz
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
