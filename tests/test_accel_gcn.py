"""Accel-GCN's ablations: the warp-level partition scheme, and warps that are not combined."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accelviz
from accelviz.partition.warp_level import cuts_rows, warp_partition, warp_workload
from accelviz.workload import Workload
from tests.graphs import GRAPHS, graph_of_degrees


def test_the_warp_level_plan_keeps_the_caller_s_order():
    graph = GRAPHS["isolated_ends"]()
    plan = accelviz.plan(graph, "accel_gcn", partition="warp", max_block_warps=2, max_warp_nzs=2)
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
    plan = accelviz.plan(graph, "accel_gcn", partition="warp", max_block_warps=2, max_warp_nzs=2)
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
            accelviz.plan("cora", "accel_gcn", partition=partition, combined_warp=value)
            for value in (True, False)
        )
        config = {**alone.kernel.config, "combined_warp": 1}
        assert combined.kernel.config == config != alone.kernel.config
        assert combined.kernel == dataclasses.replace(alone.kernel, config=config)
        assert combined.launch == alone.launch
        assert combined.workload().to_frame().equals(alone.workload().to_frame())
