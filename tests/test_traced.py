"""The page's encoded trace equals the trace."""

import numpy as np
import pandas as pd
import pytest

import accelviz
from accelviz.errors import ArgumentError
from accelviz.measure import random_inputs
from accelviz.strategies import REGISTRY, find_strategy
from accelviz.widgets.pack import pack_text
from accelviz.widgets.traced import packed_requests, sources, trace_content
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


def traced_block(name, n_cols, parameters, block=None):
    plan = accelviz.plan(MADE["every_kind"](), name, n_cols=n_cols, **parameters)
    inputs = random_inputs(plan.operation, plan.pattern, plan.widths)
    waits = []
    block = plan.launch.n_blocks // 2 if block is None else block
    return plan, accelviz.trace(plan, *inputs, block=block, waits=waits), waits


def unpacked(content):
    """Decode a trace to one row per access and lane, as in `accelviz.trace`."""
    columns = content["columns"]
    request, lane = np.nonzero(columns["lanes"][:, None] >> np.arange(32) & 1)
    begins, offset = columns["begins"].array, columns["offsets"].array
    assert np.array_equal(begins, np.searchsorted(request, np.arange(len(begins))))
    sites = pd.DataFrame(content["sites"]).iloc[columns["site"][request]].reset_index(drop=True)
    back = sites.assign(warp=columns["warp"][request], lane=lane, step=request, offset=offset)
    return back.assign(index=offset // sites["size"], block=content["block"]).drop(
        columns=["size", "role"]
    )


@pytest.mark.parametrize(("name", "n_cols", "parameters"), CASES)
def test_a_packed_trace_unpacks_to_the_same(name, n_cols, parameters):
    plan, traced, waits = traced_block(name, n_cols, parameters)
    assert len(traced)
    content = trace_content(traced, plan, waits)
    back = unpacked(content)
    assert {*back} == {*traced}
    for column in back:
        as_text = isinstance(traced[column].dtype, pd.CategoricalDtype)
        expected = traced[column].astype(str) if as_text else traced[column]
        assert np.array_equal(back[column], expected), column
    assert content["waits"] == waits
    # The source of a kernel given as text is included, with each line that accesses memory.
    texts = content["source"]
    for site in content["sites"]:
        assert site["line"] <= texts[site["file"]].count("\n")


@pytest.mark.parametrize(
    ("strategy", "roles"),
    [
        (
            ("accel_gcn", "spmm"),
            {"metadata": "structure", "columns": "nonzeros", "values": "nonzeros"}
            | {"X": "input", "Y": "output"},
        ),
        (
            ("lane_groups", "sddmm"),
            {"rows": "structure", "columns": "nonzeros", "U": "input", "V": "input"}
            | {"scores": "output"},
        ),
    ],
)
def test_roles_of_arrays(strategy, roles):
    graph = MADE["every_kind"]()
    sites = accelviz.explore(graph, find_strategy(*strategy), n_cols=64).traced()["trace"]["sites"]
    assert roles.items() <= {site["array"]: site["role"] for site in sites}.items()


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    "strategy",
    [one for one in REGISTRY if not one.operation.name.startswith(("scc", "bit_", "dense_"))],
    ids=lambda strategy: f"{strategy.operation.name}-{strategy.name}",
)
def test_the_explorer_traces_every_strategy(strategy):
    graph = MADE["every_kind"]()
    plan = strategy.plan(graph, 64)
    if strategy.by_sender != strategy.operation.by_sender:
        with pytest.raises(ArgumentError, match="strategies: 'by_source' walks the matrix, not"):
            accelviz.explore(graph, strategy)
        return
    tracks = accelviz.explore(graph, strategy, n_cols=64).traced()
    if not plan.has_workload:  # of a library's kernel nothing can be seen
        assert tracks == {}
        return
    assert tracks["trace"]["warps"] == plan.launch.warps_per_block
    assert len(tracks["trace"]["columns"]["site"])


def test_a_packed_trace_is_small():
    _, traced, _ = traced_block("row_thread", 3, {}, block=0)
    text = pack_text(packed_requests(traced)["columns"])
    assert len(text) < traced.memory_usage().sum() / 12


def test_no_access_is_no_trace():
    _, traced, _ = traced_block("accel_gcn", 64, {})
    assert not packed_requests(traced[:0])["columns"]["lanes"].size


@pytest.mark.parametrize("name", ["accel_gcn", "gnnadvisor"])
def test_warps_wait_until_the_last_of_their_block_is_there(name):
    graph = MADE["every_kind"]()
    parameters = {"max_block_warps": 4, "max_warp_nzs": 32} if name == "accel_gcn" else {"ngs": 16}
    plan = accelviz.plan(graph, name, n_cols=32, **parameters)
    inputs = random_inputs(plan.operation, plan.pattern, plan.widths)
    unequal = 0
    for block in range(plan.launch.n_blocks):
        waits = []
        traced = accelviz.trace(plan, *inputs, block=block, waits=waits)
        for left in {wait["left"] for wait in waits}:
            together = [wait for wait in waits if wait["left"] == left]
            arrived = [wait["arrived"] for wait in together]
            assert sorted(wait["warp"] for wait in together) == list(range(4))
            assert max(arrived) == left
            unequal += min(arrived) < left
            for wait in together:
                # The warp does nothing in between.
                steps = traced[(traced["warp"] == wait["warp"])]["step"]
                assert not steps.between(wait["arrived"], left - 1).any()
                assert "__syncthreads" in sources(plan)[wait["file"]].split("\n")[wait["line"] - 1]
    assert unequal


@pytest.mark.parametrize("name", ["cit-hepph", "mit8"])
def test_pages_of_the_largest_bundled_graphs_have_less_than_a_megabyte(name, tmp_path):
    path = accelviz.explore(name).save(tmp_path / "page.html", trace=False)
    assert path.stat().st_size < 1_000_000
