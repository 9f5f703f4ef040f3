"""What the page gets of a trace is the trace."""

import numpy as np
import pandas as pd
import pytest

import accelviz
from accelviz.measure import random_inputs
from accelviz.strategies import REGISTRY
from accelviz.widgets.traced import SPELLED, TracedBlock, sources
from tests.compilers import needs_compiler
from tests.graphs import MADE

pytestmark = needs_compiler
CASES = [
    ("accel_gcn", 64, {}),
    ("accel_gcn", 3, {"max_block_warps": 4, "max_warp_nzs": 8}),
    ("gnnadvisor", 20, {}),
    ("lane_groups", 20, {}),
    ("row_thread", 3, {}),
    ("fusegnn_gar", 20, {}),
    ("lane_groups", 64, {"group_nzs": 8}),  # rows cut over blocks: memory for several types
]


def traced_block(name, n_cols, given, block=None):
    plan = accelviz.plan(MADE["every_kind"](), name, n_cols=n_cols, **given)
    inputs = random_inputs(plan.operation, plan.pattern, plan.widths)
    waits = []
    block = plan.launch.n_blocks // 2 if block is None else block
    return plan, accelviz.trace(plan, *inputs, block=block, waits=waits), waits


@pytest.mark.parametrize(("name", "n_cols", "given"), CASES)
def test_a_packed_trace_unpacks_to_the_same(name, n_cols, given):
    plan, traced, waits = traced_block(name, n_cols, given)
    assert len(traced)
    packed = TracedBlock.of(traced, waits)
    back = packed.table()
    assert list(back) == list(traced)
    for column in traced:
        as_text = isinstance(traced[column].dtype, pd.CategoricalDtype)
        expected = traced[column].astype(str) if as_text else traced[column]
        assert np.array_equal(back[column], expected), column
    assert packed.waits == waits
    # A kernel's own text is there, down to each line that touches memory.
    texts = sources(plan)
    for site in packed.sites:
        assert site["line"] <= texts[site["file"]].count("\n")


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    "strategy",
    [one for one in REGISTRY if not one.operation.name.startswith(("scc", "bit_"))],
    ids=lambda each: f"{each.operation.name}-{each.name}",
)
def test_the_explorer_traces_every_strategy(strategy):
    graph = MADE["every_kind"]()
    plan = strategy.plan(graph, 64)
    found = accelviz.explore(graph, strategy, n_cols=64).traced()
    if not plan.has_workload:  # of a library's kernel nothing can be seen
        assert found == {}
        return
    assert found["trace"]["warps"] == plan.launch.warps_per_block
    assert len(found["trace"]["columns"]["site"])


def test_lanes_side_by_side_need_no_list_of_offsets_and_others_do():
    _, traced, waits = traced_block("accel_gcn", 64, {})
    assert TracedBlock.of(traced, waits).columns["others"].size == 0
    _, traced, waits = traced_block("row_thread", 3, {}, block=0)
    packed = TracedBlock.of(traced, waits)
    assert (packed.columns["step"] == SPELLED).any()
    size = sum(column.nbytes for column in packed.columns.values())
    assert size < traced.memory_usage().sum() / 3


def test_no_access_is_no_trace():
    _, traced, _ = traced_block("accel_gcn", 64, {})
    assert not len(TracedBlock.of(traced[:0]).table())


@pytest.mark.parametrize("name", ["accel_gcn", "gnnadvisor"])
def test_warps_wait_until_the_last_of_their_block_is_there(name):
    graph = MADE["every_kind"]()
    given = {"max_block_warps": 4, "max_warp_nzs": 32} if name == "accel_gcn" else {"ngs": 16}
    plan = accelviz.plan(graph, name, n_cols=32, **given)
    inputs = random_inputs(plan.operation, plan.pattern, plan.widths)
    unequal = 0
    for block in range(plan.launch.n_blocks):
        waits = []
        traced = accelviz.trace(plan, *inputs, block=block, waits=waits)
        for left in {each["left"] for each in waits}:
            together = [each for each in waits if each["left"] == left]
            arrived = [each["arrived"] for each in together]
            assert sorted(each["warp"] for each in together) == list(range(4))
            assert max(arrived) == left
            unequal += min(arrived) < left
            for each in together:
                # In between the warp does nothing.
                own = traced[(traced["warp"] == each["warp"])]["step"]
                assert not own.between(each["arrived"], left - 1).any()
                assert "__syncthreads" in sources(plan)[each["file"]].split("\n")[each["line"] - 1]
    assert unequal
