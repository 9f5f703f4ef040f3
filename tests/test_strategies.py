"""The inherited tests on the CPU, and checks of declarations."""

import dataclasses
import re

import numpy as np
import pytest
from scipy import sparse

import accelviz
from accelviz import measure
from accelviz.devices import find_device, gpu_state
from accelviz.errors import (
    ArgumentError,
    DeviceUnavailable,
    GraphError,
    KernelError,
    PartitionError,
)
from accelviz.measure.accuracy import Oracle
from accelviz.plans.replay import Records
from accelviz.strategies.spmm.row_sums import sum_csr, sum_rows
from accelviz.workload import Workload
from tests.graphs import COLUMNS, GRAPHS, columns_of, graph_of_degrees, is_large
from tests.inherited import KERNELS, all_widths, check_results, each_case, each_strategy


@each_case(GRAPHS, sample=lambda _: 3)
def test_workload_covers_each_nonzero_exactly_once(strategy, name):
    graph = GRAPHS[name]()
    some = all_widths(strategy.operation, (64, 7, 33))
    turn = KERNELS.index(strategy) % 3
    for widths in some[turn : turn + 1] if is_large(name) else some:
        plan = strategy.plan(graph, **widths)
        plan.check()
        every_width, settings = strategy.checked(widths["n_cols"], widths)
        resolved = strategy.resolve(settings, graph, every_width)
        known = {name: value for name, value in resolved.values().items() if value is not None}
        assert known.items() <= plan.parameters.items()
        description = strategy.described(graph, **widths)
        if description is not None and description.scheme is not None:  # else a plan may know
            assert None not in resolved.values().values()
        counted = plan.statistics
        # Some count a nonzero once for each attention head, or thread of a column.
        heads = getattr(description and description.scheme, "heads", 1)
        assert counted.nonzeros == graph.nnz * (heads if plan.layout.slice_loads else 1)
        assert counted.loads.busy + counted.loads.idle == counted.workers
        assert counted.workers == plan.launch.n_blocks * plan.workers_per_block
        assert counted.warps == plan.launch.n_blocks * plan.launch.warps_per_block
        assert 0 <= counted.busy_warps <= counted.warps
        assert counted.steps <= counted.slots


@each_case(GRAPHS, sample=lambda name: 18 if is_large(name) else 6)
def test_cpu_replay_matches_the_oracle(strategy, name):
    columns = columns_of(name, 1 if is_large(name) else 3)
    check_results(GRAPHS[name](), strategy, "cpu", columns=columns)


@each_strategy()
def test_cpu_replay_takes_every_column_count(strategy):
    check_results(GRAPHS["every_kind"](), strategy, "cpu", columns=COLUMNS)


@pytest.mark.parametrize("n_cols", [1, 2, 3, 5, 8, 15, 17, 31, 48, 64, 65, 100, 128, 129, 200])
def test_rows_summed_in_one_run_have_the_bits_of_rows_summed_by_records(n_cols):
    graph, random = GRAPHS["every_kind"](), np.random.default_rng(n_cols)
    X = random.standard_normal((graph.n_cols, n_cols), np.float32)
    values = random.standard_normal(graph.nnz, np.float32)
    n_merged = 0
    for strategy in (item for item in KERNELS if item.operation.name == "spmm"):
        plan = strategy.plan(graph, n_cols)
        records = Records.by_row(plan)
        walk = records.csr_walk(bool(plan.zero_outputs))
        Y = np.zeros((2, graph.n_rows, n_cols), np.float32)
        sum_rows(0, graph.n_rows, records.walk, values, X, Y[0])
        sum_csr(0, graph.n_rows, walk, values, X, Y[1])
        np.testing.assert_array_equal(*Y, strategy.name)
        n_merged += walk[0].size < records.walk[1].size
    assert n_merged > 3


@pytest.mark.parametrize(
    ("first_record", "nz_start", "nz_count", "zeroed", "row_pointers"),
    [
        ([0, 2, 3], [0, 2, 3], [2, 1, 4], False, [0, 3, 7]),
        ([0, 2, 3], [2, 0, 3], [1, 2, 4], False, None),  # in another order
        ([0, 2, 3], [0, 2, 4], [2, 1, 3], False, None),  # a nonzero is left out
        ([0, 0, 2], [0, 3], [3, 4], False, None),  # a row is not written
        ([0, 0, 2], [0, 3], [3, 4], True, [0, 0, 7]),
        ([0, 0, 0], [], [], True, None),
    ],
)
def test_records_are_one_run_a_row_where_they_follow_one_another(
    first_record, nz_start, nz_count, zeroed, row_pointers
):
    columns, rows = np.arange(7, dtype=np.int32), np.array([1, 0], np.int32)
    arrays = (np.array(array, np.int64) for array in (first_record, nz_start, nz_count))
    walk = Records((*arrays, columns, rows), np.arange(3)).csr_walk(zeroed)
    assert (walk is None) == (row_pointers is None)
    if walk is not None:
        assert [*walk[1], walk[1][-1] + walk[2][-1]] == row_pointers
        assert walk[0].tolist() == [0, 1, 2]
        assert walk[3] is columns
        assert walk[4] is rows


@each_strategy()
def test_the_workload_reads_the_same_in_slices(strategy):
    plan = strategy.plan(GRAPHS["all_degrees"](), 33)
    whole = plan.workload().to_frame()
    assert whole.equals(Workload.concatenate(plan.workload_slices(blocks=7)).to_frame())
    assert list(whole.columns) == ["block", "warp", "row", "nz_start", "nz_count"]
    first, last = plan.launch.n_blocks // 3, plan.launch.n_blocks // 2
    some = whole[whole["block"].between(first, last)].reset_index(drop=True)
    assert plan.workload(first, last + 1).to_frame().equals(some)
    with pytest.raises(PartitionError, match="blocks"):
        plan.workload(0, 10**6)


@each_strategy()
def test_plans_of_several_widths_share_what_is_as_long_as_the_nonzeros(strategy):
    graph = GRAPHS["wide"]()
    plans = [strategy.plan(graph, **widths) for widths in all_widths(strategy.operation, (64, 100))]
    assert plans[0].setup_seconds.keys() == plans[1].setup_seconds.keys()
    for one, other in zip(*(plan.parts for plan in plans), strict=True):
        assert one.walked is other.walked
        assert one.permutation is other.permutation
        assert one.layout.nonzero_order is other.layout.nonzero_order
        for name, array in one.arrays.items():
            if isinstance(array, np.ndarray):
                assert not array.flags.writeable
                assert array.nbytes < 4 * graph.nnz or array is other.arrays[name]


def test_a_workload_that_forgets_a_nonzero_is_found_out():
    graph = graph_of_degrees([4, 4, 4])
    plan = accelviz.plan(graph, "graphblast")

    def without_the_first(start, stop):
        table = plan.workload(start, stop).to_frame()[1:]
        return Workload(*(table[column].to_numpy() for column in table))

    layout = dataclasses.replace(plan.layout, slice_workload=without_the_first)
    forgetful = dataclasses.replace(plan, layout=layout)
    with pytest.raises(PartitionError, match=r"never covered, the first at position 0"):
        forgetful.check()
    X = measure.features(4, 64)
    with pytest.raises(KernelError, match=r"wrong result on 'made' with n_cols = 64"):
        measure.measure(forgetful, find_device("cpu"), Oracle(graph, X), X)


def test_the_oracle_rejects_what_is_slightly_wrong():
    graph = GRAPHS["isolated_ends"]()
    X = measure.features(graph.shape[1], 4)
    result = accelviz.spmm(graph, X, device="cpu")
    oracle = Oracle(graph, X)
    assert oracle.error(result) <= 1
    for row, column, wrong in ((1, 0, np.nan), (0, 0, 1e-30), (1, 1, np.inf)):
        Y = result.copy()
        Y[row, column] = wrong
        assert oracle.error(Y) == np.inf
    Y = result.copy()
    Y[3, 2] *= 1 + 1e-5
    assert oracle.error(Y) > 1


def test_rows_without_a_nonzero_are_exactly_zero_and_the_caller_s_order_is_kept():
    matrix = sparse.csr_array(np.diag([3.0, 0.0, 2.0]))
    result = accelviz.spmm(matrix, np.eye(3), device="cpu")
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, np.diag([3, 0, 2]).astype(np.float32))
    assert not np.signbit(result).any()


def test_spmm_takes_a_plan_a_list_and_an_output():
    graph = GRAPHS["isolated_ends"]()
    X = measure.features(graph.shape[1], 3)
    plan = accelviz.plan(graph, "accel_gcn", n_cols=3)
    out = np.full((graph.n_rows, 3), np.nan, np.float32)
    assert accelviz.spmm(plan, X.tolist(), device="cpu", out=out) is out
    np.testing.assert_array_equal(out, accelviz.spmm(graph, X, device="cpu"))
    np.testing.assert_array_equal(
        out, accelviz.spmm(graph, X.astype("f8").T.copy().T, device="cpu")
    )
    with pytest.raises(ArgumentError, match="beside a Plan"):
        accelviz.spmm(plan, X, max_block_warps=4)


X5, ACCEL = np.zeros((7, 5), np.float32), {"strategy": "accel_gcn"}


@pytest.mark.parametrize(
    ("X", "options", "error", "message"),
    [
        (np.zeros((6, 5)), {}, ArgumentError, r"X: shape \(6, 5\) .* Expected: shape \(7, 5\)"),
        (np.zeros(7), {}, ArgumentError, r"X: shape \(7,\).*2-D"),
        (np.zeros((7, 0)), {}, ArgumentError, "at least one n_cols"),
        (np.zeros((7, 5), complex), {}, ArgumentError, "X: dtype complex128"),
        (np.full((7, 5), "a"), {}, ArgumentError, "X: dtype <U1"),
        (X5, {"strategy": "acel_gcn"}, ArgumentError, "no 'acel_gcn'.*accel_gcn"),
        (X5, {"device": "tpu"}, ArgumentError, "no 'tpu'.*auto, cuda, cpu"),
        (X5, {**ACCEL, "max_block_warps": 0}, PartitionError, "max_block_warps: got 0.*1 to 32"),
        (X5, {**ACCEL, "max_block_warps": 33}, PartitionError, "1 to 32, because a CUDA block"),
        (X5, {**ACCEL, "max_block_warps": 2.5}, PartitionError, "max_block_warps: got 2.5"),
        (X5, {**ACCEL, "max_block_warps": [1]}, PartitionError, r"max_block_warps: got \[1\]"),
        (X5, {**ACCEL, "max_warp_nzs": 65536}, PartitionError, "65535, because .* 16 bits"),
        (X5, {**ACCEL, "ngs": 3}, ArgumentError, r"ngs: .*max_block_warps=12, max_warp_nzs=32"),
        (X5, {"max_block_warps": 4}, ArgumentError, "max_block_warps: given without a strategy"),
        (X5, {"out": np.zeros((7, 5))}, ArgumentError, "out: .*float64.*float32"),
        (X5, {"out": np.zeros((5, 7), np.float32).T}, ArgumentError, "C-contiguous"),
    ],
)
def test_wrong_arguments_are_named(X, options, error, message):
    with pytest.raises(error, match=message):
        accelviz.spmm(GRAPHS["isolated_ends"](), X, **{"device": "cpu", **options})


@pytest.mark.parametrize("n_cols", [0, -1, 1.5, True, "64", None])
def test_a_column_count_is_a_positive_integer(n_cols):
    with pytest.raises(ArgumentError, match="n_cols"):
        accelviz.plan("cora", "accel_gcn", n_cols=n_cols)


def test_a_graph_that_is_none_is_refused():
    with pytest.raises(GraphError, match=r"got a NoneType.*bundled name"):
        accelviz.spmm(None, X5)


def test_cuda_without_a_gpu_says_what_to_do():
    if gpu_state().ready:
        pytest.skip("there is a GPU")
    with pytest.raises(DeviceUnavailable, match="What to do: "):
        accelviz.spmm(GRAPHS["isolated_ends"](), X5, device="cuda")


def test_strategies_lists_what_there_is():
    assert "accel_gcn" in accelviz.strategies()
    assert all(accelviz.strategies().values())


@pytest.mark.parametrize("strategy", ["graphblast", "ge_spmm", "row_thread"])
def test_row_strategies_give_every_row_to_a_warp_in_order(strategy):
    graph = GRAPHS["isolated_ends"]()
    for block_warps in (1, 3, 32):
        plan = accelviz.plan(graph, strategy, block_warps=block_warps)
        plan.check()
        work = plan.workload()
        assert work.row.tolist() == list(range(graph.n_rows))
        np.testing.assert_array_equal(work.nz_count, graph.degrees)
        rows_per_warp = 32 if strategy == "row_thread" else 1
        np.testing.assert_array_equal(
            work.block * block_warps + work.warp, work.row // rows_per_warp
        )
        assert plan.metadata is None
    for wrong in (0, 33, True, 1.5, "4"):
        with pytest.raises(PartitionError, match="block_warps"):
            accelviz.plan(graph, strategy, block_warps=wrong)


def test_memory_that_nobody_wrote_is_wrong_without_a_warning():
    """It may hold a signaling NaN, of whose conversion NumPy warns."""
    graph = graph_of_degrees([2, 3])
    Y = np.full((2, 4), 0x7F800001, np.uint32).view(np.float32)
    oracle = Oracle(graph, np.ones((graph.shape[1], 4), np.float32))
    assert oracle.error(Y) == np.inf
    assert re.match(r"Y\[0, 0\] is nan .*, 8 of 8 elements are wrong", oracle.first_wrong(Y))
