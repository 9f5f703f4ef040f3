"""Preprocessing on a real GPU equals the host's, and its plan's results are right."""

import dataclasses

import numpy as np
import pytest
from scipy import sparse

import accelviz
from accelviz import measure
from accelviz.devices import device_plan, find_device, gpu_state
from accelviz.devices.cuda import transposed, uploaded
from accelviz.devices.cuda.compiler import compiled
from accelviz.errors import ArgumentError, PartitionError
from accelviz.graph import Graph, Pattern
from accelviz.measure.accuracy import Oracle
from accelviz.ordering import DegreeHistogram, degree_sort
from accelviz.ordering.local import is_local
from accelviz.partition.block_level import BlockSetting
from accelviz.partition.subwarps import in_place_order, subwarp_blocks
from accelviz.strategies.spmm.lane_groups.preprocessing import launch, preprocess, spec
from tests.graphs import GRAPHS
from tests.inherited import with_random_weights

pytestmark = pytest.mark.gpu
GPU = find_device("cuda")

#: Subwarps of a block, most nonzeros of one subwarp, and of one that handles several rows.
SETTINGS = [(16, 32, 8), (12, 5, 4), (1, 1, 1), (25, 8, 128), (32, 128, 1), (7, 64, 3)]


@pytest.fixture(scope="module", autouse=True)
def _gpu():
    state = gpu_state()
    assert state.ready, f"{state.detail}: {state.fix}"


def of_degrees(degrees, n_cols=None) -> Graph:
    """Return a graph with these degrees, whose columns are the first ones, and random values."""
    degrees = np.asarray(degrees, np.int64)
    row_pointers = np.concatenate([[0], np.cumsum(degrees)])
    nnz = int(row_pointers[-1])
    columns = np.arange(nnz) - np.repeat(row_pointers[:-1], degrees)
    values = np.random.default_rng(nnz).standard_normal(nnz).astype(np.float32)
    n_cols = int(max(degrees.max(initial=1), 1)) if n_cols is None else n_cols
    return Graph(row_pointers, columns.astype(np.int32), values, (degrees.size, n_cols))


def check_identical(graph: Graph, settings=SETTINGS) -> None:
    permutation = degree_sort(graph)
    histogram = DegreeHistogram.of(graph.row_pointers)
    pattern, nonzero_order = permutation.apply_to_pattern(graph.pattern)
    on_gpu = uploaded(graph)
    for max_groups, group_nzs, short_nzs in settings:
        groups = BlockSetting(max_groups, group_nzs)
        by_degree, cut_blocks = subwarp_blocks(histogram, groups, short_nzs)
        in_place = in_place_order(by_degree, cut_blocks, permutation.order)
        for block_order, metadata in (("degree", by_degree), ("place", in_place)):
            partition = preprocess(GPU, on_gpu, groups, short_nzs, block_order)
            case = f"{graph.name}, {max_groups}, {group_nzs}, {short_nzs}, {block_order}"
            assert partition.cut_blocks == cut_blocks, case
            for array, expected in (
                (partition.output_rows, permutation.order),
                (partition.metadata, metadata),
                (partition.columns, pattern.column_indices),
                (partition.nonzero_order, nonzero_order),
            ):
                assert array.dtype.itemsize == 4, case
                np.testing.assert_array_equal(array.get(), expected, err_msg=case)


@pytest.mark.parametrize("name", GRAPHS)
def test_it_is_bit_for_bit_the_host_s(name):
    check_identical(with_random_weights(GRAPHS[name]()))


def test_degrees_of_every_kind_are_sorted():
    rng = np.random.default_rng(11)
    long = [70_000, 66_000, 65_536, 65_535, 65_536, 300, 256, 255]
    for degrees in (
        np.full(5_000, 3),
        np.zeros(300_000, np.int64),
        np.minimum(rng.zipf(1.7, 400_000) - 1, 30_000),
        rng.permutation([*long, *rng.integers(0, 5, 200_000)]),
        rng.integers(0, 700, 30_000),
        rng.permutation(np.repeat(np.arange(3_000), 2)),
        [3_000_000, *rng.integers(0, 3, 1_000)],
        [1 << 24, *rng.integers(0, 70, 300_000)],
        *(rng.integers(0, 9, size) for size in (1, 31, 32, 33, 1023, 1024, 1025, 135_168, 135_169)),
    ):
        check_identical(of_degrees(degrees), SETTINGS[:2])


def test_twins_are_bit_for_bit_the_host_s():
    for order in ("natural", "shuffled"):
        check_identical(accelviz.load_graph("collab-twin", order=order), SETTINGS[:2])


def test_it_comes_out_the_same_every_time():
    rng = np.random.default_rng(2)
    pattern = uploaded(of_degrees(np.minimum(rng.zipf(1.6, 300_000) - 1, 5_000)))
    first = preprocess(GPU, pattern, BlockSetting(16, 32), 8)
    for _ in range(50):
        again = preprocess(GPU, pattern, BlockSetting(16, 32), 8)
        for name in ("metadata", "output_rows", "columns", "nonzero_order"):
            assert (getattr(again, name) == getattr(first, name)).all()


@pytest.mark.parametrize("name", ["isolated_ends", "hub", "wide", "tall", "no_edges", "empty"])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"group_nzs": 4, "short_nzs": 2, "block_threads": 64, "block_order": "degree"},
        {"column_tile": 32, "lanes": 5, "storage": "float16"},
    ],
)
def test_the_plan_is_the_host_s(name, parameters):
    check_plan(with_random_weights(GRAPHS[name]()), parameters)


def test_the_plan_is_the_host_s_where_the_vertex_order_matters():
    import cupy

    rng = np.random.default_rng(1)
    degrees = rng.integers(0, 60, 250_000)
    rows = np.repeat(np.arange(degrees.size), degrees)
    near = (rows + rng.integers(-300, 300, rows.size)) % degrees.size
    far = rng.integers(0, degrees.size, rows.size)
    for columns in (near, far):
        ones = np.ones(rows.size, np.float32)
        graph = accelviz.load_graph(
            sparse.coo_array((ones, (rows, columns)), shape=(degrees.size,) * 2).tocsr()
        )
        assert is_local(uploaded(graph), cupy) is is_local(graph.pattern)
        check_plan(graph, {}, columns=(64,))


def check_plan(graph: Graph, parameters, columns=(33, 64)) -> None:
    import cupy

    for n_cols in columns:
        host = accelviz.plan(graph, "lane_groups", n_cols, **parameters)
        ours = device_plan(uploaded(graph), n_cols, **parameters)
        assert ours.kernel == host.kernel
        assert ours.launch == host.launch
        assert ours.buffers.zeroed_workspace == host.buffers.zeroed_workspace
        assert ours.parameters == host.parameters
        assert len(ours.workload()) == len(host.workload())
        X = measure.features(graph.shape[1], n_cols)
        out = cupy.full((graph.n_rows, n_cols), cupy.nan, cupy.float32)
        with pytest.raises(ArgumentError, match="values: it is missing"):
            accelviz.spmm(ours, cupy.asarray(X), out=out)
        accelviz.spmm(ours, cupy.asarray(X), cupy.asarray(graph.values), out=out)
        theirs = accelviz.spmm(host, cupy.asarray(X))
        np.testing.assert_allclose(out.get(), theirs.get(), rtol=1e-3, atol=1e-3)
        if ours.storage == "float32":
            assert Oracle(graph, X).error(out.get()) <= 1


def test_a_sparse_matrix_on_the_gpu_is_multiplied_there():
    import cupy
    from cupyx.scipy import sparse as gpu_sparse

    graph = accelviz.load_graph("pubmed")
    X = measure.features(graph.shape[1], 32)
    for matrix in (
        gpu_sparse.csr_matrix(graph.adjacency),
        gpu_sparse.coo_matrix(graph.adjacency),
    ):
        result = accelviz.spmm(matrix, cupy.asarray(X))
        assert Oracle(graph, X).error(result.get()) <= 1
        on_host = accelviz.spmm(matrix, X, None, "lane_groups", "cuda", column_tile=16)
        assert isinstance(on_host, np.ndarray)
        assert Oracle(graph, X).error(on_host) <= 1
    matrix = gpu_sparse.csr_matrix(graph.adjacency)
    before = accelviz.spmm(matrix, cupy.asarray(X))
    matrix.data *= 2
    after = accelviz.spmm(matrix, cupy.asarray(X))
    np.testing.assert_allclose(after.get(), 2 * before.get(), rtol=1e-5, atol=1e-5)
    with pytest.raises(
        ArgumentError, match="strategy: 'accel_gcn' of spmm for a matrix that lies on"
    ):
        accelviz.spmm(matrix, X, strategy="accel_gcn")
    with pytest.raises(ArgumentError, match="device: 'cpu' for a matrix that lies on the GPU"):
        accelviz.spmm(matrix, X, device="cpu")
    with pytest.raises(ArgumentError, match="no such parameter"):
        accelviz.spmm(matrix, X, strategy="lane_groups", nothing=1)
    with pytest.raises(ArgumentError, match="X: shape"):
        accelviz.spmm(matrix, X[:, 0])
    with pytest.raises(ArgumentError, match="X: shape"):
        accelviz.spmm(matrix, X[:-1])


def test_more_nonzeros_than_31_bits_count():
    """The graph is made and multiplied on the GPU; nonzeros and rows are checked by samples."""
    import cupy

    if cupy.cuda.runtime.memGetInfo()[0] < 50 << 30:
        pytest.skip("needs 50 GB of GPU memory")
    rng = np.random.default_rng(31)
    n_columns, n_cols = 1_000_000, 8
    degrees = np.append(rng.integers(0, 735, 6_000_000), [3_000_000, 5, 0])
    nnz = int(degrees.sum())
    assert nnz > 1 << 31
    graph = Pattern(
        cupy.asarray(np.concatenate([[0], np.cumsum(degrees)])),
        cupy.empty(nnz, np.int32),
        (degrees.size, n_columns),
    )
    values = cupy.empty(nnz, np.float32)
    for first in range(0, nnz, 1 << 28):
        part = slice(first, min(first + (1 << 28), nnz))
        size = part.stop - part.start
        graph.column_indices[part] = cupy.random.randint(0, n_columns, size, np.int32)
        values[part] = cupy.random.uniform(-1, 1, size, np.float32)
    plan = device_plan(graph, n_cols)
    order = np.argsort(degrees, kind="stable").astype(np.int32)
    arrays = {name: plan.arrays[name] for name in ("output_rows", "metadata", "columns")}
    np.testing.assert_array_equal(arrays["output_rows"].get(), order)
    groups = BlockSetting(plan.workers_per_block, plan.parameters["group_nzs"])
    histogram = DegreeHistogram(*np.unique(degrees, return_counts=True))
    metadata, cut = subwarp_blocks(histogram, groups, plan.parameters["short_nzs"])
    np.testing.assert_array_equal(arrays["metadata"].get(), in_place_order(metadata, cut, order))
    rows = rng.integers(0, degrees.size, 1 << 20)
    rows = rows[degrees[order[rows]] > 0]
    rows[:3] = degrees.size - 1, degrees.size - 2, degrees.size - 100_000
    within = (rng.random(rows.size) * degrees[order[rows]]).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(degrees[order])])
    target = cupy.asarray(starts[rows] + within)
    source = graph.row_pointers[cupy.asarray(order[rows])] + cupy.asarray(within)
    assert int(target.max()) > 1 << 31
    assert int(source.max()) > 1 << 31
    assert (arrays["columns"][target] == graph.column_indices[source]).all()
    assert (plan.layout.nonzero_order[target] == source).all()
    X = cupy.random.uniform(-1, 1, (n_columns, n_cols), np.float32)
    out = cupy.full((degrees.size, n_cols), cupy.nan, np.float32)
    accelviz.spmm(plan, X, values, out=out)
    assert bool(cupy.isfinite(out).all())
    pointers = graph.row_pointers.get()
    for row in [*rng.integers(0, degrees.size, 300), *range(degrees.size - 100, degrees.size)]:
        part = slice(int(pointers[row]), int(pointers[row + 1]))
        terms = values[part, None].astype(np.float64) * X[graph.column_indices[part]]
        error = cupy.abs(out[row] - terms.sum(axis=0))
        assert bool((error <= 1e-4 * cupy.abs(terms).sum(axis=0)).all()), row


def test_what_is_wrong_is_named():
    graph = uploaded(accelviz.load_graph("cora"))
    groups = BlockSetting(16, 32)
    pointers, columns = graph.row_pointers, graph.column_indices
    for wrong, message in (
        ((pointers.astype(np.int32), columns), "row_pointers: .*int32.*cupy array of int64"),
        ((pointers, columns.astype(np.int64)), "column_indices: .*int64"),
        ((pointers[:-1], columns), "2708 for 2708 rows"),
    ):
        with pytest.raises(ArgumentError, match=message):
            preprocess(GPU, Pattern(*wrong, graph.shape), groups, 8)
    with pytest.raises(PartitionError, match="block_order"):
        preprocess(GPU, graph, groups, 8, "random")
    with pytest.raises(ArgumentError, match="no such parameter"):
        device_plan(graph, 16, nothing=1)
    with pytest.raises(ArgumentError, match="2709 for 7 rows"):
        preprocess(GPU, dataclasses.replace(graph, shape=(7, 2708)), groups, 8)


@pytest.mark.parametrize("name", GRAPHS)
def test_the_transpose_is_the_host_s(name):
    graph = GRAPHS[name]()
    turned, (pattern, order) = graph.transposed(), transposed(uploaded(graph))
    assert pattern.shape == turned.graph.shape
    for array, expected in (
        (pattern.row_pointers, turned.graph.row_pointers),
        (pattern.column_indices, turned.graph.column_indices),
        (order, turned.nonzeros),
    ):
        np.testing.assert_array_equal(array.get(), expected)


def test_steps_are_recorded_in_order():
    import cupy

    pattern = uploaded(accelviz.load_graph("pubmed"))
    launch(GPU, pattern, BlockSetting(16, 32), 8, RECORD_STEPS=1)()
    module, _ = compiled(spec("partition", RECORD_STEPS=1), cooperative=True)
    steps = cupy.ndarray(32, np.uint64, module.get_global("step_times")).get()
    steps = steps[:6]  # the start, four waits, the end
    assert (steps > 0).all()
    assert (np.diff(steps.astype(np.int64)) >= 0).all()
