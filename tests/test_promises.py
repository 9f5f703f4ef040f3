"""Guarantees of plans, stores and graphs, for all operations, strategies and host devices."""

import dataclasses
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest
from scipy import sparse

import accelviz
from accelviz import measure
from accelviz.devices import find_device, run_operation
from accelviz.devices.base import Device
from accelviz.devices.ready_plan import ready
from accelviz.errors import AccelvizError, ArgumentError, PartitionError
from accelviz.graph import Graph
from accelviz.measure.accuracy import Oracle
from accelviz.ordering.degree import SortedRows
from accelviz.plans import Call, Strategy
from accelviz.store import MAX_ENTRIES, Store
from accelviz.strategies import SDDMM, SPMM
from tests.compilers import HOST, needs_compiler
from tests.graphs import MADE, graph_of_degrees
from tests.inherited import KERNELS, each_strategy, with_random_weights

DEGREES = [0, 3, 1, 40, 2, 0, 7]


def operands_of(plan, **more):
    """Return random inputs of a plan by name; `more` adds or replaces inputs."""
    dense = measure.random_inputs(plan.operation, plan.pattern, plan.widths)
    return plan.operation.named(*dense, **more)


# --- weights (values) are operands, not part of a plan -------------------------------------------


class RecordingStrategy(Strategy):
    """A strategy that records the column count of each plan that it builds."""

    operation = SPMM
    name = "counted"

    def __init__(self):
        self.built = []

    def build(self, graph, widths, settings):
        self.built.append(widths["n_cols"])
        return KERNELS[0].plan(graph, **widths)


@HOST
def test_new_values_make_no_new_plan(device):
    graph, strategy = graph_of_degrees(DEGREES), RecordingStrategy()
    X = measure.features(graph.shape[1], 9)
    for seed in range(5):
        values = measure.random_weights(graph, seed).values
        Y = accelviz.spmm(graph, X, values, strategy=strategy, device=device)
        assert Oracle(graph, X, values=values).error(Y) <= 1
        # A graph with the same pattern and these weights uses the same plan.
        again = accelviz.spmm(graph.with_values(values), X, strategy=strategy, device=device)
        np.testing.assert_array_equal(Y, again)
    assert Oracle(graph, X).error(accelviz.spmm(graph, X, strategy=strategy, device=device)) <= 1
    assert strategy.built == [9]


@pytest.mark.parametrize("on", ["host", pytest.param("gpu", marks=pytest.mark.gpu)])
def test_repeated_products_of_graphs_that_share_a_store_have_their_weights(on):
    """Calls without options take a short way from the second on."""
    module = pytest.importorskip("cupy") if on == "gpu" else np
    graph = graph_of_degrees(DEGREES)
    graphs = [graph, *(measure.random_weights(graph, seed) for seed in (1, 2))]
    X = measure.features(graph.shape[1], 9)
    for _ in range(3):
        for one in graphs:
            Y = accelviz.spmm(one, module.asarray(X))
            assert Oracle(one, X).error(Y if on == "host" else Y.get()) <= 1


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_the_short_way_takes_and_refuses_what_the_long_one_does(device):
    graph = with_random_weights(graph_of_degrees(DEGREES))
    X = measure.features(graph.shape[1], 9)
    spmm = partial(accelviz.spmm, graph, device=device)
    wanted = spmm(X)
    out = np.full_like(wanted, np.nan)
    for same in (X, X.astype(">f4"), X.astype(np.float64), np.asfortranarray(X), X.tolist()):
        np.testing.assert_array_equal(spmm(same), wanted)
    assert spmm(X, out=out) is out
    np.testing.assert_array_equal(out, wanted)
    with pytest.raises(ArgumentError, match="X: shape"):
        spmm(X[:-1])
    with pytest.raises(ArgumentError, match="masked"):
        spmm(np.ma.masked_array(X))
    with pytest.raises(ArgumentError, match="device: there is no"):
        accelviz.spmm(graph, X, device=[device])


WRONG_VALUES = [
    (np.ones(52), r"values: shape \(52,\).*shape \(53,\): nonzeros = 53"),
    (np.ones((53, 1)), r"values: shape \(53, 1\)"),
    (np.ones(53, complex), "values: dtype complex128"),
    (np.full(53, "1"), "values: dtype <U1"),
    (np.array([None] * 53), "values: dtype object"),
    (np.where(np.arange(53) == 7, np.nan, 1), "values: some are NaN or infinite"),
    (np.where(np.arange(53) == 7, np.inf, 1), "values: some are NaN or infinite"),
    (np.where(np.arange(53) == 7, 1e300, 1), "values: some are NaN or infinite"),  # in float32
    ("lane_groups", r"values: got 'lane_groups'.*strategy="),
]


@HOST
@pytest.mark.parametrize(("values", "message"), WRONG_VALUES, ids=[s[:30] for _, s in WRONG_VALUES])
def test_wrong_values_are_named(values, message, device):
    graph = graph_of_degrees(DEGREES)
    assert graph.nnz == 53
    X = measure.features(graph.shape[1], 4)
    with pytest.raises(ArgumentError, match=message):
        accelviz.spmm(graph, X, values, device=device)


class CudaArray:
    """An object with the attributes of a CUDA array, which NumPy must not read."""

    __cuda_array_interface__: ClassVar = {}
    dtype = np.dtype(np.float32)

    def __init__(self, *shape):
        self.shape = shape


@HOST
def test_arrays_of_a_gpu_are_not_taken_for_the_host_s(device):
    graph = graph_of_degrees(DEGREES)
    X, U = measure.features(40, 4), measure.features(7, 4)
    with pytest.raises(ArgumentError, match="values: it lies on the GPU"):
        accelviz.spmm(graph, X, CudaArray(53), device=device)
    with pytest.raises(ArgumentError, match="X: it lies on the GPU"):
        accelviz.spmm(graph, CudaArray(40, 4), device=device)
    for name, factors in (
        ("U", (CudaArray(7, 1, 4), X[:, None])),
        ("V", (U[:, None], CudaArray(40, 1, 4))),
    ):
        with pytest.raises(ArgumentError, match=f"{name}: it lies on the GPU"):
            accelviz.sddmm(graph, *factors, device=device)


def test_values_may_be_of_any_real_type_and_any_strides():
    graph = graph_of_degrees(DEGREES)
    X = measure.features(40, 4)
    wide = np.arange(106) - 50
    for values in (wide[::2], wide[::2].astype("i1"), wide[::2].astype(">f8"), (wide[::2] > 0)):
        Y = accelviz.spmm(graph, X, values, device="cpu")
        exact = np.asarray(values, np.float32)
        assert Oracle(graph, X, values=exact).error(Y) <= 1
        np.testing.assert_array_equal(Y, accelviz.spmm(graph, X, list(values), device="cpu"))


# --- dense inputs, outputs -----------------------------------------------------------------------


@HOST
@pytest.mark.parametrize(
    ("U", "V", "message"),
    [
        ((6, 4), (40, 4), r"U: shape \(6, 4\).*shape \(7, 4\)"),
        ((7, 4), (7, 4), r"V: shape \(7, 4\).*shape \(40, 4\)"),
        ((7, 4), (40, 5), r"V: shape \(40, 5\).*shape \(40, 4\)"),
        ((7, 2, 4), (40, 3, 4), r"V: shape \(40, 3, 4\).*shape \(40, 2, 4\)"),
        ((7, 2, 4), (40, 8), r"V: shape \(40, 8\).*shape \(40, 2, 4\).*heads"),
        ((7,), (40,), r"U: shape \(7,\)"),
        ((7, 0), (40, 0), "U: shape .*at least one n_cols"),
        ((7, 0, 4), (40, 0, 4), "U: shape .*at least one heads"),
    ],
)
def test_u_and_v_that_do_not_fit_are_named(U, V, message, device):
    with pytest.raises(ArgumentError, match=message):
        accelviz.sddmm(graph_of_degrees(DEGREES), np.ones(U), np.ones(V), device=device)


def test_sddmm_takes_one_head_flat_or_spelled_out_and_an_output():
    graph = graph_of_degrees(DEGREES)
    U, V = measure.features(7, 5), measure.features(40, 5, seed=1)
    flat = accelviz.sddmm(graph, U, V, device="cpu")
    assert flat.shape == (53,)
    assert Oracle(graph, U[:, None], V[:, None], operation=SDDMM).error(flat) <= 1
    spelled = accelviz.sddmm(graph, U[:, None], V[:, None], device="cpu")
    np.testing.assert_array_equal(spelled[:, 0], flat)
    out = np.full(53, np.nan, np.float32)
    assert np.shares_memory(accelviz.sddmm(graph, U, V, device="cpu", out=out), out)
    np.testing.assert_array_equal(out, flat)
    heads = np.full((53, 3), np.nan, np.float32)
    three = [np.stack([factor * k for k in (1, 2, 3)], axis=1) for factor in (U, V)]
    accelviz.sddmm(graph, *three, device="cpu", out=heads)
    np.testing.assert_allclose(heads, flat[:, None] * [1, 4, 9], rtol=1e-4, atol=1e-5)


@each_strategy()
def test_an_output_that_cannot_be_written_or_overlaps_is_refused(strategy):
    graph = graph_of_degrees(DEGREES)
    plan = strategy.plan(graph, 4)
    prepared = find_device("cpu").prepare(plan)
    operands = operands_of(plan, values=None)
    operands = {operand.name: operands.get(operand.name) for operand in plan.operation.inputs}
    output, *_ = plan.operation.outputs
    shape, dtype = output.shape(plan.sizes), output.dtype
    size = int(np.prod(shape))
    read_only = np.zeros(shape, dtype)
    read_only.setflags(write=False)
    room = np.zeros(2 * size, dtype)
    for wrong, message in (
        (read_only, "read-only"),
        (room.reshape(*shape[:-1], -1)[..., ::2], "C-contiguous"),
        (np.zeros(shape, np.float64), "float64"),
        (np.zeros((*shape, 1), dtype), "shape"),
        (np.zeros(shape, dtype).tolist(), "a list"),
    ):
        with pytest.raises(ArgumentError, match=f"out: .*{message}"):
            prepared.run(operands, {output.name: wrong})
    # An output within an input's memory: at its start, and in its middle.
    for operand in plan.operation.dense:
        array = operands[operand.name]
        for offset in (0, array.size // 2):
            memory = np.zeros(array.size + offset + size, array.dtype)
            memory[: array.size] = array.ravel()
            inside = {**operands, operand.name: memory[: array.size].reshape(array.shape)}
            out = memory[offset : offset + size].view(dtype).reshape(shape)
            with pytest.raises(ArgumentError, match=f"out: it overlaps {operand.name}"):
                prepared.run(inside, {output.name: out})
    out = room[size:].reshape(shape)
    out.fill(np.nan if dtype.kind == "f" else np.iinfo(dtype).max)
    results = prepared.run(operands, {output.name: out})
    assert results[output.name] is out
    assert all(np.isfinite(array).all() for array in results.values())


def test_an_output_that_overlaps_the_weights_is_refused():
    graph = graph_of_degrees([4, 4, 4, 4])
    memory = np.ones(32, np.float32)
    values, out = memory[:16], memory[8:24].reshape(4, 4)
    with pytest.raises(ArgumentError, match="out: it overlaps values"):
        accelviz.spmm(graph, np.ones((4, 4)), values, device="cpu", out=out)


# --- a strategy's own parameters -----------------------------------------------------------------


@each_strategy()
def test_parameters_out_of_a_strategy_s_own_range_are_named(strategy):
    """Every value that a parameter's declaration allows is accepted, and others are refused."""
    graph = MADE["isolated_ends"]()
    for name, parameter in strategy.parameters.items():
        allowed, wrong = "", [1.5, "12", [1], float("nan")]
        wrong.append(1 if any(choice is True for choice in parameter.choices) else True)
        if parameter.most is not None:
            wrong += [0, -1, parameter.most + 1, parameter.most + parameter.step, 2**40]
            allowed = f"{parameter.step} to {parameter.most}"
            wrong += [parameter.step + 1] if parameter.step > 1 else []
        if parameter.default is not None and not parameter.rule:
            wrong.append(None)
        for value in wrong:
            with pytest.raises(PartitionError, match=f"^{name}: got .*Expected: .*{allowed}"):
                strategy.plan(graph, 8, **{name: value})
        for value in (parameter.default, *parameter.tries, *parameter.choices):
            try:
                effective = strategy.plan(graph, 8, **{name: value}).parameters[name]
            except PartitionError as error:  # a value that conflicts with the other defaults
                assert name in str(error)  # noqa: PT017
            else:
                assert value is None or effective == value
                assert type(effective) in (int, bool, str)
        if parameter.most is not None:
            of_numpy = np.int64(parameter.default or parameter.step)
            plan = strategy.plan(graph, 8, **{name: of_numpy})
            assert type(plan.parameters[name]) is int
    with pytest.raises(ArgumentError, match="no_such: strategy .* has no such parameter"):
        strategy.plan(graph, 8, no_such=1)
    for width in strategy.operation.widths:
        for value in (0, -1, 1.5, True, "4", None):
            with pytest.raises(ArgumentError, match=width):
                strategy.plan(graph, **{"n_cols": 8, width: value})


# --- graphs do not change ------------------------------------------------------------------------


@pytest.mark.parametrize("shared", ["as it is", "view of it", "read-only view"])
def test_a_graph_changed_in_place_after_planning_stays_as_it_was(shared):
    source = graph_of_degrees(DEGREES)
    names = "row_pointers", "column_indices", "values"
    arrays = [getattr(source, name).copy() for name in names]
    inputs = arrays if shared == "as it is" else [array[:] for array in arrays]
    if shared == "read-only view":
        for array in inputs:
            array.setflags(write=False)
    graph = Graph(*inputs, source.shape)
    X = measure.features(source.shape[1], 5)
    plan = accelviz.plan(graph, "accel_gcn", n_cols=5)
    before = accelviz.spmm(plan, X, device="cpu")
    for array in arrays:
        array[...] = 1
    np.testing.assert_array_equal(accelviz.spmm(plan, X, device="cpu"), before)
    np.testing.assert_array_equal(
        accelviz.spmm(graph, X, strategy="accel_gcn", device="cpu"), before
    )
    held = [getattr(graph, name) for name in (*names, "degrees")]
    for array in (*held, graph.adjacency.data, graph.adjacency.indices):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        graph.values = arrays[2]


@pytest.mark.parametrize("kind", ["csr", "coo", "edges"])
def test_what_a_graph_was_made_of_may_change_afterwards(kind):
    matrix = sparse.random_array((9, 9), density=0.4, rng=0, dtype=np.float32).tocsr()
    made_of = {
        "csr": matrix,
        "coo": matrix.tocoo(),
        "edges": np.array(matrix.nonzero()),
    }[kind]
    graph = accelviz.load_graph(made_of)
    before = graph.adjacency.toarray()
    for array in (made_of,) if isinstance(made_of, np.ndarray) else (made_of.data,):
        array[...] = 2
    np.testing.assert_array_equal(graph.adjacency.toarray(), before)


def writable_arrays(value, seen):
    """Yield every writable array that is reachable from an object."""
    if id(value) in seen or isinstance(value, type | ModuleType) or callable(value):
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        holder = value
        while isinstance(holder, np.ndarray):
            if holder.flags.writeable:
                yield value
                return
            holder = holder.base
    parts = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict | list | tuple | set):
        for part in parts:
            yield from writable_arrays(part, seen)
    elif hasattr(value, "__dict__"):
        yield from writable_arrays(vars(value), seen)


def test_a_graph_that_is_loaded_twice_shares_nothing_that_can_change():
    one, other = accelviz.load_graph("cora"), accelviz.load_graph("cora")
    assert one is not other
    for graph in (one, other):
        accelviz.spmm(graph, np.ones((2708, 4)), device="cpu")
        _ = graph.adjacency, graph.degrees, graph.transposed()
    assert one.store is not other.store
    assert one.pattern is not other.pattern
    mutable = (dict, list, set, Store)
    identities = [
        {
            *map(id, writable_arrays(vars(graph), set())),
            *(id(value) for value in vars(graph).values() if isinstance(value, mutable)),
        }
        for graph in (one, other)
    ]
    assert not identities[0] & identities[1]
    one.adjacency.data = np.zeros(one.nnz, np.float32)  # SciPy lets callers replace the arrays
    assert other.adjacency.data.all()
    assert accelviz.load_graph("cora").adjacency.data.all()


# --- the transpose -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*MADE, "cora", "as-caida"])
def test_the_transpose_is_scipy_s(name):
    graph = with_random_weights(MADE[name]() if name in MADE else accelviz.load_graph(name))
    turned = graph.transposed()
    positions = sparse.csr_array(
        (np.arange(1, graph.nnz + 1), graph.column_indices, graph.row_pointers), shape=graph.shape
    )
    wanted = positions.T.tocsr()
    wanted.sort_indices()
    assert turned.graph.shape == graph.shape[::-1]
    np.testing.assert_array_equal(turned.graph.row_pointers, wanted.indptr)
    np.testing.assert_array_equal(turned.graph.column_indices, wanted.indices)
    np.testing.assert_array_equal(turned.nonzeros, wanted.data - 1)
    np.testing.assert_array_equal(turned.graph.values, graph.values[turned.nonzeros])
    assert turned.nonzeros.dtype == np.int32
    assert not turned.nonzeros.flags.writeable
    assert graph.transposed() is turned
    back = turned.graph.transposed()
    np.testing.assert_array_equal(back.graph.column_indices, graph.column_indices)
    np.testing.assert_array_equal(turned.nonzeros[back.nonzeros], np.arange(graph.nnz))


def test_the_transpose_multiplies_gradients():
    """For Y = A X, the gradient by X is A^T times the gradient by Y, for any weights."""
    graph = MADE["wide"]()
    values = measure.random_weights(graph, 3).values
    turned = graph.transposed()
    G = measure.features(graph.n_rows, 6)
    back = accelviz.spmm(turned.graph, G, values[turned.nonzeros], device="cpu")
    wanted = graph.with_values(values).adjacency.astype(np.float64).T @ G
    np.testing.assert_allclose(back, wanted, rtol=1e-4, atol=1e-4)


def test_the_transpose_of_other_weights_has_them():
    graph = graph_of_degrees(DEGREES)
    graph.transposed()
    other = graph.with_values(np.arange(graph.nnz, dtype=np.float32)).transposed()
    np.testing.assert_array_equal(other.graph.values, other.nonzeros)


# --- the store -----------------------------------------------------------------------------------


def test_strategies_and_column_counts_share_what_was_sorted():
    graph = graph_of_degrees(DEGREES)
    rows, seconds = SortedRows.of(graph)
    plans = [
        accelviz.plan(graph, strategy, n_cols)
        for strategy in ("accel_gcn", "lane_groups")
        for n_cols in (3, 64)
    ]
    for plan in plans:
        assert plan.walked is rows.pattern
        assert plan.permutation is rows.permutation
        assert plan.layout.nonzero_order is rows.nonzero_order
        assert {name: plan.setup_seconds[name] for name in seconds} == seconds
    spelled_out = [
        accelviz.plan(graph, "fusegnn_gas", 3),
        accelviz.plan(graph, "lane_groups", 3, operation="sddmm"),
        accelviz.plan(graph, "lane_groups", 9, operation="sddmm", heads=2),
    ]
    assert len({id(plan.arrays["rows"]) for plan in spelled_out}) == 1
    # A graph of the same pattern with other weights shares all of it.
    other = graph.with_values(np.ones(graph.nnz, np.float32))
    assert accelviz.plan(other, "accel_gcn", 5).walked is rows.pattern


def test_a_store_is_bounded_and_forgets_what_was_used_longest_ago():
    store = Store()
    for key in ("a", "b", *range(MAX_ENTRIES - 2)):
        store.get(key, lambda key=key: str(key).upper())
    assert store.get("a", lambda: "new") == "A"
    store.get("d", lambda: "D")
    assert len(store) == MAX_ENTRIES
    assert store.get("a", lambda: "new") == "A"
    assert store.get("b", lambda: "new") == "new"
    with pytest.raises(ZeroDivisionError):
        store.get("e", lambda: 1 / 0)
    assert store.get("e", lambda: "E") == "E"
    assert len(Store()) == 0
    graph, strategy = graph_of_degrees(DEGREES), RecordingStrategy()
    column_counts = [*range(1, MAX_ENTRIES + 9)]
    for n_cols in [*column_counts, column_counts[-1], 1]:  # the last is in the store, 1 is not
        accelviz.spmm(graph, np.ones((40, n_cols)), strategy=strategy, device="cpu")
        assert len(graph.store) <= MAX_ENTRIES
    assert strategy.built == [*column_counts, 1]


def test_what_is_made_may_ask_for_more():
    store = Store()

    def outer():
        return store.get("inner", lambda: 1) + 1

    assert store.get("outer", outer) == 2
    assert len(store) == 2


@HOST
def test_many_threads_that_ask_at_once_make_one_plan(device):
    prepared, threads = [], 8
    start = threading.Barrier(threads)

    graph, strategy = graph_of_degrees(DEGREES), RecordingStrategy()
    executor = find_device(device)
    X = measure.features(40, 6)

    class Counting(Device):
        name = device

        def prepare(self, plan):
            prepared.append(plan)
            return executor.prepare(plan)

    def multiply(seed):
        values = measure.random_weights(graph, seed).values
        start.wait()
        Y = accelviz.spmm(graph, X, values, strategy=strategy, device=device)
        return Oracle(graph, X, values=values).error(Y)

    with ThreadPoolExecutor(threads) as pool:
        assert max(pool.map(multiply, range(threads))) <= 1
    assert strategy.built == [6]
    plan = accelviz.plan(graph, strategy, 6)
    with ThreadPoolExecutor(threads) as pool:

        def prepare(_):
            start.wait()
            return ready(plan, Counting())

        plans = [*pool.map(prepare, range(threads))]
        assert all(prepared_plan is plans[0] for prepared_plan in plans)
    assert len(prepared) == 1


def test_a_copy_in_another_process_has_a_store_of_its_own():
    import pickle

    graph = accelviz.load_graph("cora")
    accelviz.spmm(graph, np.ones((2708, 2)), device="cpu")
    assert len(graph.store) > 0
    copy = pickle.loads(pickle.dumps(graph))
    assert len(copy.store) == 0
    np.testing.assert_array_equal(copy.column_indices, graph.column_indices)


@each_strategy()
def test_all_of_a_graph_is_freed_with_it_at_once(strategy):
    check_freed(strategy, "cpu")


@needs_compiler
@each_strategy(daily=False)
def test_all_of_an_emulated_graph_is_freed_with_it_at_once(strategy):
    check_freed(strategy, "emulator")


def check_freed(strategy, device):
    graph = graph_of_degrees(DEGREES)
    gc.disable()
    try:
        # Run as a caller does, so that the store has the plan and the device's prepared plan.
        operation = strategy.operation
        widths = {**operation.widths, "n_cols": 7}
        dense = measure.random_inputs(operation, graph.pattern, widths)
        named = operation.named(*dense)
        known = {} if "n_cols" in operation.widths_of(named) else {"n_cols": 7}
        run_operation(operation, graph, named, strategy, device, parameters=known)
        plan = strategy.plan(graph, 7)
        prepared = ready(plan, find_device(device))
        prepared.run(operands_of(plan))
        for held, name in (
            *((graph, "adjacency"), (graph, "degrees")),
            *((plan, "statistics"), (plan, "output_rows")),
        ):
            assert getattr(held, name) is not None
        accelviz.describe(graph)
        turned = graph.transposed()
        arrays = [graph.column_indices, graph.values, graph.row_pointers, turned.nonzeros]
        arrays += [array for array in plan.arrays.values() if isinstance(array, np.ndarray)]
        arrays += [plan.walked.column_indices]
        objects = [graph, plan, graph.store, graph.pattern, prepared, turned.graph]
        references = [*map(weakref.ref, (*arrays, *objects))]
        del graph, plan, prepared, held, turned, dense, arrays, objects
        assert [reference() for reference in references if reference() is not None] == []
    finally:
        gc.enable()


# --- plans of several calls (their results are checked in inherited.py) --------------------------


@needs_compiler
def test_a_plan_of_several_calls_needs_all_of_them():
    graph = MADE["isolated_ends"]()
    plan, X = accelviz.plan(graph, "unfused_gas", 5), measure.features(graph.shape[1], 5)
    first, *others = plan.calls
    for calls, message in (
        (others, "nothing has written before"),
        ([first, *(Call(call.launch) for call in others)], "has no CUDA kernel"),
    ):
        with pytest.raises(AccelvizError, match=message):
            accelviz.spmm(dataclasses.replace(plan, calls=tuple(calls)), X, device="emulator")
