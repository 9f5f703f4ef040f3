"""The inherited tests on a real GPU: `pytest -m gpu`."""

import dataclasses
import itertools
import time

import numpy as np
import pytest

import accelviz
from accelviz import measure
from accelviz.devices import find_device, gpu_state
from accelviz.devices.cuda import timing
from accelviz.errors import ArgumentError, DeviceUnavailable, KernelError
from accelviz.graph import Graph
from accelviz.measure.accuracy import Oracle
from accelviz.plans.operation import EPS32
from accelviz.strategies import REGISTRY, SPMM
from accelviz.strategies.cusparse import ALGORITHMS
from tests.graphs import COLUMNS, GRAPHS, columns_of
from tests.inherited import case_name, check_results, each_graph, each_strategy, fits_memory

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module", autouse=True)
def _gpu():
    state = gpu_state()
    assert state.ready, f"{state.detail}: {state.fix}"


@pytest.mark.parametrize(
    ("strategy", "name"),
    [
        pytest.param(
            strategy, name, id=f"{name}-{case_name(strategy)}", marks=pytest.mark.xdist_group(name)
        )
        for name, strategy in itertools.product(GRAPHS, REGISTRY)
        if fits_memory(strategy, name)
    ],
)
def test_kernel_matches_the_oracle(strategy, name):
    check_results(GRAPHS[name](), strategy, "cuda", columns=columns_of(name, 7, 64))


@each_strategy(REGISTRY)
@each_graph(["every_kind", "isolated_ends", "all_degrees", "cora"])
def test_kernel_takes_every_column_count(strategy, name):
    check_results(GRAPHS[name](), strategy, "cuda", columns=(*COLUMNS, 512, 1000, 1024, 1500))


def poisoned(shape, dtype):
    """Return a GPU array of NaN, or of the largest integer."""
    import cupy

    return cupy.full(shape, np.nan if dtype.kind == "f" else np.iinfo(dtype).max, dtype)


@each_strategy(REGISTRY)
def test_device_arrays_stay_on_the_device(strategy):
    import cupy

    graph, operation = accelviz.load_graph("cora"), strategy.operation
    ready_for = {}
    for n_cols in (33, 128):
        plan = strategy.plan(graph, n_cols)
        ready = ready_for[n_cols] = find_device("cuda").prepare(plan)
        host = measure.random_inputs(operation, graph.pattern, plan.widths)
        oracle = Oracle(graph, *host, operation=operation)
        dense = [cupy.asarray(array) for array in host]
        operands = operation.named(*dense, values=None)
        operands = {operand.name: operands.get(operand.name) for operand in operation.inputs}
        results = ready.run(operands)
        assert all(isinstance(array, cupy.ndarray) for array in results.values())
        assert oracle.error(results, plan.arithmetic) <= 1
        output = operation.outputs[0]
        shape, dtype = output.shape(plan.sizes), output.dtype
        out = poisoned(shape, dtype)
        results = ready.run(operands, {output.name: out})
        assert results[output.name] is out
        assert oracle.error(results, plan.arithmetic) <= 1
        with pytest.raises(ArgumentError, match=f"a writable, C-contiguous {dtype} cupy array"):
            ready.run(operands, {output.name: np.empty(shape, dtype)})
        for operand, array in zip(operation.dense, dense, strict=True):
            room = cupy.concatenate([array.ravel(), cupy.zeros(out.size, array.dtype)])
            inside = {**operands, operand.name: room[: array.size].reshape(array.shape)}
            overlapping = room[array.size - 1 :][: out.size].view(dtype).reshape(shape)
            with pytest.raises(ArgumentError, match=f"out: it overlaps {operand.name}"):
                ready.run(inside, {output.name: overlapping})
        # No vector of these arrays is aligned.
        shifted = {
            operand.name: cupy.concatenate([cupy.zeros(1, array.dtype), array.ravel()])[1:].reshape(
                array.shape
            )
            for operand, array in zip(operation.dense, dense, strict=True)
        }
        unaligned = poisoned((out.size + 1,), dtype)[1:].reshape(shape)
        results = ready.run({**operands, **shifted}, {output.name: unaligned})
        assert oracle.error(results, plan.arithmetic) <= 1
        on_host = ready.run({**operands, **dict(zip(shifted, host, strict=True))})
        assert isinstance(on_host[output.name], np.ndarray)
        assert oracle.error(on_host, plan.arithmetic) <= 1


def arithmetic_of(strategy):
    return accelviz.plan("cora", strategy).arithmetic


@each_strategy([one for one in REGISTRY if one.operation is SPMM])
def test_values_on_the_device(strategy):
    import cupy

    graph = accelviz.load_graph("cora")
    X = measure.features(graph.shape[1], 17)
    values = measure.random_weights(graph, 5).values
    oracle = Oracle(graph, X, values=values)
    for weights, features in itertools.product(
        (values, cupy.asarray(values)), (X, cupy.asarray(X))
    ):
        Y = accelviz.spmm(graph, features, weights, strategy=strategy)
        assert isinstance(Y, type(features))
        assert oracle.error(Y, arithmetic_of(strategy)) <= 1
    for wrong, message in (
        (cupy.ones(3, cupy.float32), r"values: shape \(3,\)"),
        (cupy.ones(graph.nnz, complex), "values: dtype complex128"),
        (np.full(graph.nnz, np.nan), "values: some are NaN"),
    ):
        with pytest.raises(ArgumentError, match=message):
            accelviz.spmm(graph, cupy.asarray(X), wrong, strategy=strategy)


@pytest.mark.parametrize("strategy", accelviz.strategies())
def test_features_past_two_gigabytes(strategy):
    """4 K d exceeds 2^31 bytes: indices into X and Y need 64 bits."""
    import cupy

    n_cols = 10_000
    graph = accelviz.load_graph("luxembourg-osm")
    X = cupy.random.standard_normal((graph.shape[1], n_cols), dtype=cupy.float32)
    result = accelviz.spmm(graph, X, strategy=strategy)
    assert X.nbytes > 2**32
    for columns in (slice(0, 3), slice(n_cols - 3, n_cols)):
        host = np.ascontiguousarray(X[:, columns].get())
        part = result[:, columns].get()
        assert Oracle(graph, host).error(part, arithmetic_of(strategy)) <= 1


@pytest.mark.parametrize("strategy", accelviz.strategies("sddmm"))
def test_scores_of_features_past_two_gigabytes(strategy):
    import cupy

    n_cols = 10_000
    graph = accelviz.load_graph("luxembourg-osm")
    U, V = (cupy.random.standard_normal((n, n_cols), dtype=cupy.float32) for n in graph.shape)
    scores = accelviz.sddmm(graph, U, V, strategy=strategy)
    rows = np.repeat(np.arange(graph.n_rows), graph.degrees)
    for k in (0, 1, graph.nnz // 2, graph.nnz - 1):
        products = (U[rows[k]].astype(float) * V[graph.column_indices[k]]).get()
        assert abs(float(scores[k]) - products.sum()) <= n_cols * EPS32 * np.abs(products).sum()


def test_what_goes_wrong_on_the_gpu_is_named():
    import cupy

    graph = GRAPHS["isolated_ends"]()
    plan = accelviz.plan(graph, "accel_gcn", n_cols=4)
    X = measure.features(graph.shape[1], 4)
    for wrong, message in ((np.full(X.shape, "a"), "dtype <U1"), (X.astype(complex), "complex128")):
        with pytest.raises(ArgumentError, match=message):
            accelviz.spmm(plan, wrong, device="cuda")
    with pytest.raises(ArgumentError, match="lies on the GPU"):
        accelviz.spmm(plan, cupy.asarray(X), device="cpu")

    def with_call(**changes):
        return dataclasses.replace(plan, calls=(dataclasses.replace(plan.calls[0], **changes),))

    broken = with_call(kernel=dataclasses.replace(plan.kernel, config={}))
    with pytest.raises(KernelError, match=r"does not compile(?s:.*) in KernelSpec\(config"):
        accelviz.spmm(broken, X, device="cuda")
    with pytest.raises(DeviceUnavailable, match="has no CUDA kernel"):
        accelviz.spmm(with_call(kernel=None), X, device="cuda")
    silent = dataclasses.replace(plan.kernel, code="void nothing() {}")
    with pytest.raises(KernelError, match="RECORD_WARP"):
        accelviz.trace_gpu(with_call(kernel=silent), X)
    assert accelviz.spmm(with_call(kernel=None), X).shape == (7, 4)
    too_much = dataclasses.replace(plan.launch, dynamic_shared_bytes=1 << 20)
    with pytest.raises(DeviceUnavailable, match="1024 KiB of shared memory a block"):
        accelviz.spmm(with_call(launch=too_much), X, device="cuda")
    for_a_warp = f'extern "C" __global__ void __launch_bounds__(32) {plan.kernel.entry}() {{}}'
    narrow = dataclasses.replace(plan.kernel, code=for_a_warp)
    with pytest.raises(KernelError, match="failed on the GPU"):
        accelviz.spmm(with_call(kernel=narrow), X, device="cuda")
    n = 1_000_000
    ones = np.ones(n, np.float32)
    tall = Graph(np.arange(n + 1), np.zeros(n, np.int32), ones, (n, 1))
    X = cupy.ones((1, n), cupy.float32)  # the product would take 4 TB
    with pytest.raises(DeviceUnavailable, match="fewer columns at a time"):
        accelviz.spmm(tall, X)


def test_times_come_from_cuda_events(monkeypatch):
    """The host's clock would include the host's work, and miss launches that still run."""
    graph = accelviz.load_graph("pubmed")
    X = measure.features(graph.shape[1], 64)
    plan, executor = accelviz.plan(graph, "accel_gcn"), find_device("cuda")
    measurement = measure.measure(plan, executor, Oracle(graph, X), X, repeats=7)
    assert measurement.seconds.shape == (7,)
    assert (measurement.seconds > 0).all()
    assert measurement.error <= 1

    ready = executor.prepare(plan)
    launch, on_gpu, on_host = ready.launch, 2e-3, 60e-6

    def work_for_the_gpu(inputs, outputs):
        timing._machine("pause")((1,), (1,), (np.uint64(on_gpu * 1e9),))

    def work_for_the_host(inputs, outputs):
        end = time.perf_counter() + on_host
        while time.perf_counter() < end:
            pass
        launch(inputs, outputs)

    def least():  # another process on the GPU makes the others longer
        return ready.seconds({"X": X}, 7, 3).min()

    quick = least()
    assert quick < on_host / 2
    monkeypatch.setattr(ready, "launch", work_for_the_gpu)
    assert on_gpu <= least() < 1.1 * on_gpu
    monkeypatch.setattr(ready, "launch", work_for_the_host)
    assert least() < quick + on_host / 2


@each_strategy()
def test_every_warp_is_recorded_where_and_when_it_ran(strategy):
    import cupy

    for name, n_cols in (("pubmed", 64), ("cora", 150)):
        graph = accelviz.load_graph(name)
        plan = accelviz.plan(graph, strategy, n_cols)
        dense = measure.random_inputs(plan.operation, graph.pattern, plan.widths)
        table = accelviz.trace_gpu(plan, *dense)
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


@pytest.mark.parametrize("algorithm", ALGORITHMS["spmm"])
def test_every_algorithm_of_cusparse_is_right_or_refused(algorithm):
    try:
        accelviz.spmm(
            accelviz.load_graph("cora"),
            measure.features(2708, 8),
            strategy="cusparse",
            algorithm=algorithm,
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
    from accelviz.devices.cuda.arrays import on_device

    graph = accelviz.load_graph("cora")
    assert on_device(graph.values) is on_device(graph.values)
    writable = np.zeros(3, np.float32)
    assert on_device(writable) is not on_device(writable)
