"""A strategy's description of its lanes equals the trace of its kernel."""

import numpy as np
import pytest

import accelviz
from accelviz.measure import random_inputs
from accelviz.strategies import REGISTRY, find_operation, find_strategy
from tests.compilers import needs_compiler
from tests.graphs import MADE

CASES = [
    *((known.name, 64, {}) for known in REGISTRY if known.operation.name == "spmm"),
    ("accel_gcn", 96, {"combined_warp": False}),
    ("accel_gcn", 96, {"partition": "warp"}),
    ("accel_gcn", 1500, {"max_block_warps": 24}),
    ("gnnadvisor", 20, {}),
    ("gnnadvisor", 128, {"dw": 8}),
    ("graphblast", 33, {}),
    ("ge_spmm", 20, {}),
    ("ge_spmm", 130, {}),
    ("merge_path", 130, {}),
    ("lane_groups", 20, {}),
    ("lane_groups", 130, {"column_tile": 64}),
    ("fusegnn_gar", 20, {}),
    ("fusegnn_gas", 300, {"block_size": 128}),
    ("row_thread", 3, {}),
]
SDDMM = [("row_warp", 40, {}), ("lane_groups", 64, {}), ("lane_groups", 20, {"heads": 3})]


opened = MADE["every_kind"]


def lanes_and_columns(plan, reading, row_columns, array):
    """Yield for each access of the gathered matrix: lane, expected lane, columns of the load."""
    total = int(np.prod(plan.launch.grid))
    inputs = random_inputs(plan.operation, plan.pattern, plan.widths)
    blocks = sorted({0, total // 2, min(total // 2 + 1, total - 1), total - 1})
    traced = accelviz.trace(plan, *inputs, block=blocks)
    read = traced[(traced["array"] == array) & (traced["kind"] == "load")]
    assert len(read)
    column = read["index"].to_numpy() % row_columns
    tile = read["block"].to_numpy() // plan.launch.n_blocks * reading.tile
    assert (column >= tile).all()
    assert (column < tile + reading.tile).all()
    lane = (read["warp"].to_numpy() * 32 + read["lane"].to_numpy()) % reading.lanes
    return lane, (column - tile) // reading.vector % reading.lanes, read["bytes"] // 4


@pytest.mark.sample(2)
@needs_compiler
@pytest.mark.parametrize(("name", "n_cols", "settings"), CASES)
def test_a_lane_reads_the_columns_that_the_strategy_says(name, n_cols, settings):
    strategy, graph = find_strategy(name), opened()
    reading = strategy.described(graph, n_cols, **settings).lanes
    plan = accelviz.plan(graph, name, n_cols=n_cols, **settings)
    if plan.kernel is None:
        assert reading is None
        return
    lane, expected, columns = lanes_and_columns(plan, reading, n_cols, "X")
    assert (lane == expected).all()
    assert (columns == reading.vector).all()
    assert -(-n_cols // reading.tile) == plan.launch.grid[1]


@needs_compiler
@pytest.mark.parametrize(("name", "n_cols", "settings"), SDDMM)
def test_so_it_is_for_the_senders_of_an_sddmm(name, n_cols, settings):
    strategy, graph = find_strategy(name, find_operation("sddmm")), opened()
    settings = {"heads": 1, **settings}
    reading = strategy.described(graph, n_cols, **settings).lanes
    plan = strategy.plan(graph, n_cols, **settings)
    lane, expected, columns = lanes_and_columns(plan, reading, n_cols, "V")
    assert (lane == expected).all()
    assert (columns == reading.vector).all()


@pytest.mark.sample(12)
@needs_compiler
@pytest.mark.parametrize(
    ("operation", "array"),
    [
        *(("gat", "V"), ("gatv2", "V"), ("dot", "K"), ("cosine", "V"), ("spmm_gradient", "dY")),
        *(("gat_gradient", "dY"), ("gatv2_gradient", "dY")),
        *(("dot_gradient", "dY"), ("cosine_gradient", "dY")),
    ],
)
@pytest.mark.parametrize(
    ("name", "n_cols", "settings"),
    [
        *(("lane_groups", 64, {}), ("lane_groups", 20, {}), ("lane_groups", 6, {"head_lanes": 4})),
        ("row_warp", 40, {}),
    ],
)
def test_so_it_is_for_attention(operation, array, name, n_cols, settings):
    strategy, graph = find_strategy(name, operation), opened()
    reading = strategy.described(graph, n_cols, **settings).lanes
    plan = strategy.plan(graph, n_cols, **settings)
    lane, expected, columns = lanes_and_columns(plan, reading, n_cols, array)
    assert (lane == expected).all()
    assert (columns == reading.vector).all()
