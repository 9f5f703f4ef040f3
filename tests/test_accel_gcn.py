"""Accel-GCN's ablations: the warp-level partition, and warps that walk the columns alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accelviz
from accelviz.partition.warp_level import cuts_rows, warp_partition, warp_workload
from accelviz.workload import Workload
from tests.compilers import needs_compiler
from tests.graphs import GRAPHS, graph_of_degrees


@needs_compiler
def test_the_emulated_kernels_make_shared_rows_meet_in_shared_memory():
    # Degrees 2, 5, 2, 9 in warps of two nonzeros, four warps a block: rows 0 1 1 1 | 2 3 3 3 | 3 3.
    graph = graph_of_degrees([2, 5, 2, 9])
    plan = accelviz.plan(graph, partition="warp", max_block_warps=4, max_warp_nzs=2, n_cols=3)
    traced = accelviz.trace(plan, np.ones((graph.shape[1], 3), np.float32), block=range(3))
    written = traced[traced["array"] == "Y"]
    # A row of 3 columns is written at once, from whichever warp leads it.
    stores = written.groupby(["block", "kind", "warp"])["index"].unique()
    assert {key: np.sort(value).tolist() for key, value in stores.items()} == {
        (0, "store", 0): [0, 1, 2],  # row 0, alone in its warp
        (0, "store", 1): [3, 4, 5],  # row 1: three warps met
        (1, "store", 0): [6, 7, 8],
        (1, "atomic", 1): [9, 10, 11],  # row 3: three warps met, and the next block has more
        (2, "atomic", 0): [9, 10, 11],
    }
    shared = traced[(traced["array"] == "partial") & (traced["kind"] == "atomic")]
    assert shared.groupby("block")["warp"].unique().map(sorted).to_dict() == {
        0: [1, 2, 3],
        1: [1, 2, 3],
        2: [0, 1],
    }


def test_the_warp_level_plan_keeps_the_caller_s_order():
    graph = GRAPHS["isolated_ends"]()
    plan = accelviz.plan(graph, partition="warp", max_block_warps=2, max_warp_nzs=2)
    assert plan.walked is plan.pattern is graph.pattern
    assert plan.layout.nonzero_order is None
    assert plan.permutation is None
    # Degrees 0 2 1 3 0 1 0: row 3 has two warps, in two blocks.
    assert plan.metadata.tolist() == [
        [1, 0, 2, 0],
        [2, 2, 1, 0],
        [3, 3, 2, 0],
        [3, 5, 1, 0],
        [5, 6, 1, 0],
    ]
    assert plan.launch.grid == (3, 1, 1)
    assert plan.kernel.file == "spmm/accel_gcn_warp.cu"
    assert list(plan.setup_seconds) == ["warp partition"]


@pytest.mark.parametrize(
    ("degrees", "cleared"),
    [([4, 4], False), ([4, 0, 4], True), ([2, 8, 2], True), ([], False), ([0], True)],
)
def test_the_warp_level_output_is_cleared_only_where_it_must_be(degrees, cleared):
    graph = graph_of_degrees(degrees)
    plan = accelviz.plan(graph, partition="warp", max_block_warps=2, max_warp_nzs=2)
    assert plan.zero_outputs == (("Y",) if cleared else ())


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(1, 9), st.integers(1, 8))
def test_warp_level_slices_and_cut_rows(degrees, max_warp_nzs, warps):
    metadata = warp_partition(np.cumsum([0, *degrees]), max_warp_nzs)
    whole = warp_workload(metadata, warps).to_frame()
    blocks = -(-len(metadata) // warps)
    sliced = [warp_workload(metadata, warps, block, block + 1) for block in range(blocks)]
    assert whole.equals(Workload.concatenate(sliced).to_frame())
    assert cuts_rows(metadata, warps) == (whole.groupby("row")["block"].nunique() > 1).any()


def test_without_the_combined_warp_only_the_mapping_of_threads_differs():
    for partition in ("block", "warp"):
        combined, alone = (
            accelviz.plan("cora", partition=partition, combined_warp=value)
            for value in (True, False)
        )
        assert combined.kernel.config.pop("combined_warp") == 1
        assert alone.kernel.config.pop("combined_warp") == 0
        assert combined.kernel == alone.kernel
        assert combined.launch == alone.launch
        assert combined.workload().to_frame().equals(alone.workload().to_frame())


def test_column_counts_share_the_sorted_graph():
    graph = accelviz.load_graph("cora")
    first = accelviz.plan(graph, n_cols=16)
    second = accelviz.plan(graph, n_cols=100, max_warp_nzs=8, combined_warp=False)
    assert first.walked is second.walked
    assert first.layout.nonzero_order is second.layout.nonzero_order
    assert first.permutation is second.permutation
    assert list(first.setup_seconds) == ["degree sort", "permute rows", "block partition"]
    assert first.setup_seconds["degree sort"] == second.setup_seconds["degree sort"]
    for plan in (first, second, accelviz.plan(graph, partition="warp")):
        arrays = [array for array in plan.arrays.values() if isinstance(array, np.ndarray)]
        assert not any(array.flags.writeable for array in arrays)
