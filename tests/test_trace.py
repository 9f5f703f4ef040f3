"""Traces list the accesses of each lane, and traffic counts them as a GPU does."""

import dataclasses

import numpy as np
import pytest

import accelviz
from accelviz import measure
from accelviz.analysis.traffic import launch_traffic, requests, traffic
from accelviz.devices import trace
from accelviz.emulator import trace_kernel
from accelviz.errors import ArgumentError, KernelError
from tests.compilers import needs_compiler
from tests.graphs import GRAPHS
from tests.traces import LANES, made_request

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def cora():
    graph = accelviz.load_graph("cora")
    return accelviz.plan(graph, "accel_gcn", n_cols=64), measure.features(graph.shape[1], 64)


def test_a_trace_shows_the_workload_of_its_block(cora):
    plan, X = cora
    for block in (0, 100, 251):
        traced = trace(plan, X, block=block)
        assert (traced["block"] == block).all()
        values = traced[traced["array"] == "values"]
        work = plan.workload(block, block + 1)
        expected = np.concatenate(
            [np.arange(s, s + c) for s, c in zip(work["nz_start"], work["nz_count"], strict=True)]
        )
        # Two warps cover the 64 columns, so each nonzero is read by 64 lanes.
        assert np.sort(values["index"]).tolist() == np.sort(np.repeat(expected, 64)).tolist()
        columns = traced[traced["array"] == "columns"]["index"].to_numpy()
        features = traced[traced["array"] == "X"]
        rows = plan.walked.column_indices[columns]
        assert np.bincount(features["index"] // 64).tolist() == np.bincount(rows).tolist()


def test_lanes_of_a_request_are_neighbors(cora):
    plan, X = cora
    table = requests(trace(plan, X, block=100))
    gathers = table[table["array"] == "X"]
    assert (gathers["lanes"] == 32).all()
    assert (gathers["sectors"] == 4).all()  # 32 neighboring floats: coalesced
    assert (gathers["lines"] == 1).all()
    broadcast = table[table["array"] == "columns"]
    assert (broadcast["sectors"] == 1).all()  # one element for all lanes


def test_steps_are_in_program_order_for_every_lane(cora):
    plan, X = cora
    traced = trace(plan, X, block=251)
    for _, lane in traced.groupby(["warp", "lane"]):
        assert lane["step"].is_monotonic_increasing
    kinds = traced.groupby("step")[["line", "warp", "kind", "array"]].nunique()
    assert (kinds == 1).all().all()  # a step is one instruction of one warp


def test_the_last_tile_of_columns_leaves_lanes_idle():
    graph = accelviz.load_graph("cora")
    plan = accelviz.plan(graph, "accel_gcn", n_cols=40)
    table = requests(trace(plan, measure.features(graph.shape[1], 40), block=3))
    assert set(table[table["array"] == "X"]["lanes"]) == {32, 8}
    assert set(table[table["array"] == "X"]["sectors"]) <= {1, 4, 5, 2}


def test_a_launch_reads_what_the_arithmetic_asks_for(cora):
    plan, X = cora
    table = launch_traffic(plan, X).set_index(["array", "kind"]).sort_index()
    nnz, rows = plan.pattern.nnz, plan.pattern.n_rows
    assert table.loc[("X", "load"), "requests"] == 2 * nnz
    assert table.loc[("X", "load"), "sectors"] == 8 * nnz
    assert table.loc[("X", "load"), "bytes"] == 4 * 64 * nnz
    assert table.loc[("Y", "store"), "requests"] == 2 * rows
    assert table.loc[("metadata", "load"), "requests"] == plan.statistics.warps
    assert table.loc[("metadata", "load"), "bytes"] == 16 * 32 * plan.statistics.warps
    shared = table.loc[("partial", "atomic")]
    assert (shared["wavefronts"] == shared["requests"]).all()  # no two lanes share a bank


def test_tracing_changes_no_result():
    plan = accelviz.plan(GRAPHS["hub"](), "accel_gcn", n_cols=33)
    X = measure.features(plan.pattern.shape[1], 33)
    total = trace(plan, X, block=range(int(np.prod(plan.launch.grid))))
    atomics = total[(total["array"] == "Y") & (total["kind"] == "atomic")]
    assert len(atomics)  # the hub's parts add up in global memory
    assert traffic(total)["requests"].sum() == total.groupby("block")["step"].nunique().sum()


def test_a_structure_is_copied_by_words():
    plan = accelviz.plan(GRAPHS["hub"](), "row_thread", n_cols=3)
    source = plan.kernel.source()
    copy = "if (threadIdx.x < 32) reinterpret_cast<Three *>(Y)[threadIdx.x] = "
    copy += "reinterpret_cast<const Three *>(X)[threadIdx.x]; return;"
    code = "struct Three { float x, y, z; };\n" + source.replace("RECORD_WARP;", copy, 1)
    call = dataclasses.replace(plan.calls[0], kernel=dataclasses.replace(plan.kernel, code=code))
    plan = dataclasses.replace(plan, calls=(call,))
    table = requests(trace(plan, measure.features(plan.pattern.shape[1], 3)))
    table = table[table["warp"] == 0]
    for array in ("X", "Y"):
        assert (table[table["array"] == array]["lanes"] == 32).all()
        assert (table[table["array"] == array]["sectors"] == 12).all()
        assert len(table[table["array"] == array]) == 3


@pytest.mark.parametrize(
    ("space", "offsets", "size", "expected"),
    [  # sectors and lines of global memory, wavefronts of shared memory
        ("global", 4 * LANES, 4, (4, 1, 0)),
        ("global", 0 * LANES, 4, (1, 1, 0)),
        ("global", 4 * LANES + 4, 4, (5, 2, 0)),
        ("global", 128 * LANES, 4, (32, 32, 0)),
        ("global", 16 * LANES, 16, (16, 4, 0)),
        ("global", 8 * LANES, 8, (8, 2, 0)),
        ("global", (2 * (LANES % 2) - 1) * 2**62, 4, (2, 2, 0)),  # no pair fits 64 bits
        ("shared", 4 * LANES, 4, (0, 0, 1)),
        ("shared", 0 * LANES, 4, (0, 0, 1)),  # a broadcast
        ("shared", 8 * LANES, 4, (0, 0, 2)),
        ("shared", 128 * LANES, 4, (0, 0, 32)),
        ("shared", 4 * (LANES * 33), 4, (0, 0, 1)),  # padding takes the conflict away
        ("shared", 16 * LANES, 16, (0, 0, 4)),
        ("shared", 8 * LANES, 8, (0, 0, 2)),
    ],
)
def test_sectors_lines_and_bank_conflicts(space, offsets, size, expected):
    (table,) = requests(made_request(offsets, size=size, space=space)).to_dict("records")
    assert (table["sectors"], table["lines"], table["wavefronts"]) == expected
    assert table["bytes"] == 32 * size


def test_collisions_of_atomics():
    (table,) = requests(made_request(4 * (LANES // 4), kind="atomic")).to_dict("records")
    assert table["collisions"] == 24


def test_blocks_that_there_are_not(cora):
    with pytest.raises(ArgumentError, match="block: got 252.*0 to 251"):
        trace(*cora, block=252)
    assert trace(*cora, block=[]).empty
    assert list(trace(*cora, block=[]).columns) == list(trace(*cora, block=0).columns)


def stream(offsets, **options):
    """Return a trace with one request per offset."""
    return made_request(offsets, np.arange(len(offsets)), **options).assign(lane=0)


REVERSED = """
__global__ void reversed(const float *X, float *Y) {
    __shared__ float tile[64];
    tile[threadIdx.x] = X[threadIdx.x];
    Y[threadIdx.x] = tile[63 - threadIdx.x];
}
"""


def test_a_kernel_of_one_s_own_is_traced_and_its_arrays_stay():
    X, Y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    mended = REVERSED.replace("];\n    Y", "];\n    __syncthreads();\n    Y")
    traced = trace_kernel(mended, 1, 64, X, Y)
    assert not Y.any()
    table = traffic(traced).set_index(["array", "kind"])["sectors"]
    assert table["X", "load"] == table["Y", "store"] == 8
    read = traced[(traced["array"] == "tile") & (traced["kind"] == "load")]
    assert (read["index"] == 63 - 32 * read["warp"] - read["lane"]).all()


def test_a_trace_raises_or_ends_at_the_mistake():
    X, Y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    with pytest.raises(KernelError, match="a race"):
        trace_kernel(REVERSED, 1, 64, X, Y)
    traced = trace_kernel(REVERSED, 1, 64, X, Y, to_the_mistake=True)
    assert set(traced["array"]) == {"X", "tile"}
    assert (traced["kind"][traced["array"] == "tile"] == "store").all()
