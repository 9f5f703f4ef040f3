"""TC-GNN's SpMM and SDDMM: tiles, rounding and the paper's rule."""

import numpy as np
import pytest

import accelviz
from accelviz import measure
from accelviz.devices import find_device
from accelviz.emulator.build import unavailable_reason
from accelviz.errors import PartitionError
from accelviz.measure.accuracy import Oracle
from accelviz.plans.arithmetic import to_tf32
from accelviz.strategies import SDDMM, SPMM, find_strategy
from accelviz.strategies.tc_gnn import window_warps
from tests.graphs import GRAPHS, graph_of_degrees
from tests.inherited import with_random_weights
from tests.test_fragments import truncated_tf32

OPERATIONS = pytest.mark.parametrize("operation", [SPMM, SDDMM], ids=lambda operand: operand.name)


@OPERATIONS
@pytest.mark.parametrize("name", ["empty", "no_columns", "every_kind", "cora"])
def test_tiles_hold_the_matrix(name, operation):
    """All tiles together are the matrix; the last columns of a window may be missing."""
    graph = with_random_weights(GRAPHS[name]())
    plan = accelviz.plan(graph, "tc_gnn", operation=operation)
    plan.check()
    whole = np.zeros(graph.shape, np.float32)
    for tile in range(len(plan.tiles)):
        dense, first = plan.tiles.dense(tile, graph.values), plan.tiles.first_row[tile]
        senders = plan.tiles.column_indices[tile]
        used = senders >= 0
        rows = slice(first, min(first + 16, graph.n_rows))
        whole[rows, senders[used]] += dense[: rows.stop - first, used]
    assert np.array_equal(whole, graph.adjacency.toarray())
    elements = len(plan.tiles) * plan.tiles.rows * plan.tiles.columns
    assert plan.tiles.fill * elements == graph.nnz


@pytest.mark.parametrize("moved", ["nonzeros", "places"])
def test_tiles_that_lose_or_move_a_nonzero_are_refused(moved):
    from dataclasses import replace

    plan = accelviz.plan(graph_of_degrees([3, 5, 2]), "tc_gnn")
    wrong = getattr(plan.tiles, moved).copy()
    wrong[0] = wrong[1] if moved == "nonzeros" else wrong[0] + 8
    tiles = replace(plan.tiles, **{moved: wrong})
    with pytest.raises(PartitionError, match="nonzero"):
        replace(plan, layout=replace(plan.layout, make_tiles=lambda: tiles)).check()


@OPERATIONS
@pytest.mark.parametrize("device", ["cpu", "emulator", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_inputs_are_rounded_not_truncated(operation, device):
    """Results are within float32's bound for rounded inputs, but not for truncated inputs."""
    if device == "emulator" and unavailable_reason() is not None:
        pytest.skip(str(unavailable_reason()))
    graph = with_random_weights(GRAPHS["wide"]())
    plan = find_strategy("tc_gnn", operation).plan(graph, 40)
    dense = measure.random_inputs(operation, graph.pattern, plan.widths)
    ready = find_device(device).prepare(plan)
    outputs = ready.run(ready.placed(operation.named(*dense)))
    outputs = {name: array.get() if device == "cuda" else array for name, array in outputs.items()}

    def error(rounded):
        inputs = [rounded(operand) for operand in dense]
        values = {"values": rounded(graph.values)} if operation == SPMM else {}
        return Oracle(graph, *inputs, operation=operation, **values).error(outputs)

    assert error(to_tf32) <= 1
    assert error(truncated_tf32) > 100


def test_the_paper_s_rule_chooses_the_warps():
    """CA of section 5.4.3 has 88 edges per window, hence 2 warps."""
    assert window_warps(graph_of_degrees([5] * 8 + [6] * 8), 32) == 2
    assert window_warps(graph_of_degrees([1]), 32) == 1
    assert window_warps(graph_of_degrees([200] * 16), 16) == 16
    assert accelviz.plan("cora", "tc_gnn", block_warps=5).launch.warps_per_block == 5


@pytest.mark.parametrize("n_cols", [16, 200, 1000])
def test_every_column_is_one_warp_s(n_cols):
    """Column tiles cover all columns, and fit in registers and shared memory."""
    for warps in (1, 3, 32):
        plan = accelviz.plan("cora", "tc_gnn", n_cols, block_warps=warps)
        defines = plan.kernel.config
        tiles = plan.launch.grid[1] * defines["block_tiles"]
        assert tiles * 16 >= n_cols > (plan.launch.grid[1] - 1) * defines["block_tiles"] * 16
        assert defines["block_tiles"] <= defines["warp_tiles"] * warps <= 4 * warps
