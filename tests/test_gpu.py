"""The inherited tests on a real GPU: `pytest -m gpu`."""

import dataclasses

import numpy as np
import pytest

import accelviz
from accelviz import measure
from accelviz.errors import ArgumentError, DeviceUnavailable, KernelError
from accelviz.executors import find_executor, gpu_state
from accelviz.graph import Graph
from accelviz.measure.accuracy import Oracle
from accelviz.strategies.spmm.cusparse import ALGORITHMS
from tests.graphs import COLUMNS, GRAPHS
from tests.inherited import KERNELS, check_results

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module", autouse=True)
def _gpu():
    state = gpu_state()
    assert state.ready, f"{state.detail}: {state.fix}"


@pytest.mark.parametrize("strategy", accelviz.strategies())
@pytest.mark.parametrize("name", GRAPHS)
def test_kernel_matches_the_oracle(strategy, name):
    check_results(GRAPHS[name](), strategy, "cuda", columns=(*COLUMNS, 512, 1000, 1024, 1500))


@pytest.mark.parametrize(
    ("max_block_warps", "max_warp_nzs"),
    [(1, 1), (1, 32), (2, 2), (5, 7), (32, 32), (32, 1), (8, 3), (1, 65535)],
)
def test_accel_gcn_is_right_for_any_setting(max_block_warps, max_warp_nzs):
    setting = {"max_block_warps": max_block_warps, "max_warp_nzs": max_warp_nzs}
    for name in ("empty", "isolated_ends", "hub", "all_degrees"):
        check_results(GRAPHS[name](), "accel_gcn", "cuda", columns=(1, 33, 800, 2100), **setting)


@pytest.mark.parametrize("strategy", accelviz.strategies())
def test_device_arrays_stay_on_the_device(strategy):
    import cupy

    graph = accelviz.load_graph("cora")
    host = measure.features(graph.shape[1], 33)
    X = cupy.asarray(host)
    result = accelviz.spmm(graph, X, strategy)
    assert isinstance(result, cupy.ndarray)
    assert Oracle(graph, host).error(result.get()) <= 1
    out = cupy.full(result.shape, cupy.nan, cupy.float32)
    assert accelviz.spmm(graph, X, strategy, out=out) is out
    cupy.testing.assert_allclose(out, result, rtol=1e-4, atol=1e-4)
    with pytest.raises(ArgumentError, match="a C-contiguous float32 cupy array"):
        accelviz.spmm(graph, X, strategy, out=np.empty(result.shape, np.float32))
    wide = measure.features(graph.shape[1], 128)
    shifted = cupy.concatenate([cupy.zeros(1, cupy.float32), cupy.asarray(wide.ravel())])[1:]
    place = cupy.full(graph.n_rows * 128 + 1, cupy.nan, cupy.float32)[1:].reshape(-1, 128)
    accelviz.spmm(graph, shifted.reshape(wide.shape), strategy, out=place)  # no vector is aligned
    assert Oracle(graph, wide).error(place.get()) <= 1
    on_host = accelviz.spmm(graph, host, strategy)
    assert isinstance(on_host, np.ndarray)


@pytest.mark.parametrize("strategy", accelviz.strategies())
def test_features_past_two_gigabytes(strategy):
    """4 K d above 2^31 bytes: positions in X and Y need 64 bits."""
    import cupy

    n_cols = 10_000
    graph = accelviz.load_graph("luxembourg-osm")
    X = cupy.random.standard_normal((graph.shape[1], n_cols), dtype=cupy.float32)
    result = accelviz.spmm(graph, X, strategy)
    assert X.nbytes > 2**32
    for columns in (slice(0, 3), slice(n_cols - 3, n_cols)):
        host = np.ascontiguousarray(X[:, columns].get())
        assert Oracle(graph, host).error(result[:, columns].get()) <= 1


def test_what_goes_wrong_on_the_gpu_is_named():
    import cupy

    graph = GRAPHS["isolated_ends"]()
    plan = accelviz.plan(graph, n_cols=4)
    X = measure.features(graph.shape[1], 4)
    for wrong, says in ((np.full(X.shape, "a"), "dtype <U1"), (X.astype(complex), "complex128")):
        with pytest.raises(ArgumentError, match=says):
            accelviz.spmm(plan, wrong, device="cuda")
    with pytest.raises(ArgumentError, match="lies on the GPU"):
        accelviz.spmm(plan, cupy.asarray(X), device="cpu")
    broken = dataclasses.replace(plan.kernel, defines={})
    with pytest.raises(KernelError, match=r"does not compile(?s:.*)which supplies the constants"):
        accelviz.spmm(dataclasses.replace(plan, kernel=broken), X, device="cuda")
    with pytest.raises(KernelError, match="has no CUDA kernel"):
        accelviz.spmm(dataclasses.replace(plan, kernel=None), X, device="cuda")
    silent = dataclasses.replace(plan.kernel, code="void nothing() {}")
    with pytest.raises(KernelError, match="RECORD_WARP"):
        accelviz.trace_gpu(dataclasses.replace(plan, kernel=silent), X)
    assert accelviz.spmm(dataclasses.replace(plan, kernel=None), X).shape == (7, 4)
    too_much = dataclasses.replace(plan.launch, dynamic_shared_bytes=1 << 20)
    with pytest.raises(KernelError, match="failed on the GPU"):
        accelviz.spmm(dataclasses.replace(plan, launch=too_much), X, device="cuda")
    n = 1_000_000
    ones = np.ones(n, np.float32)
    tall = Graph(np.arange(n + 1), np.zeros(n, np.int32), ones, (n, 1))
    X = cupy.ones((1, n), cupy.float32)  # the product would take 4 TB
    with pytest.raises(DeviceUnavailable, match="fewer columns at a time"):
        accelviz.spmm(tall, X)


def test_times_come_from_cuda_events():
    graph = accelviz.load_graph("pubmed")
    X = measure.features(graph.shape[1], 64)
    found = measure.measure(
        accelviz.plan(graph), find_executor("cuda"), Oracle(graph, X), X, repeats=7
    )
    assert found.seconds.shape == (7,)
    assert (found.seconds > 0).all()
    assert found.error <= 1


@pytest.mark.parametrize("strategy", KERNELS)
def test_every_warp_is_recorded_where_and_when_it_ran(strategy):
    import cupy

    for name, n_cols in (("pubmed", 64), ("cora", 150)):
        graph = accelviz.load_graph(name)
        plan = accelviz.plan(graph, strategy, n_cols)
        table = accelviz.trace_gpu(plan, measure.features(graph.shape[1], n_cols))
        columns, rows, _ = plan.launch.grid
        warps = plan.launch.warps_per_block
        assert len(table) == columns * rows * warps
        assert table["block"].max() == columns - 1
        assert table["tile"].max() == rows - 1
        assert table["warp"].max() == warps - 1
        assert table["start_ns"].min() == 0
        assert (table["stop_ns"] >= table["start_ns"]).all()
        assert table["stop_ns"].max() < 1e9
        assert table.groupby(["tile", "block"])["sm"].nunique().max() == 1
        sms = cupy.cuda.Device().attributes["MultiProcessorCount"]
        assert table.attrs["sms"] == sms
        assert table["sm"].min() >= 0
        assert table["sm"].max() < sms
        assert 1 <= table.attrs["blocks_per_sm"] <= 32
        assert table.attrs["step_ns"] >= 1


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_of_cusparse_is_right_or_refused(algorithm):
    try:
        accelviz.spmm(
            accelviz.load_graph("cora"), measure.features(2708, 8), "cusparse", algorithm=algorithm
        )
    except KernelError as error:
        assert "does not take this matrix" in str(error)  # noqa: PT017
        return
    for name in GRAPHS:
        check_results(GRAPHS[name](), "cusparse", "cuda", columns=(1, 33, 64), algorithm=algorithm)


def test_benchmark_on_the_gpu():
    strategies = ["accel_gcn", ("cusparse", {"algorithm": "default"})]
    table = accelviz.benchmark("pubmed", strategies, (17, 64), repeats=5, progress=False)
    assert len(table) == 8
    assert set(table["device"]) == {"cuda"}
    assert (table["median_us"] > 0).all()
    assert (table["floor_us"] > 0).all()
    assert (table["gather_limit_us"] >= table["floor_us"] * 0.5).all()
    assert table["copy_gb_per_s"].nunique() == 1
    assert (table["driver"].astype(str) != "").all()


def test_arrays_that_plans_share_are_on_the_gpu_once():
    from accelviz.executors.cuda.arrays import on_device

    graph = accelviz.load_graph("cora")
    assert on_device(graph.values) is on_device(graph.values)
    writable = np.zeros(3, np.float32)
    assert on_device(writable) is not on_device(writable)
