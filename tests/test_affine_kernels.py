"""Dense products with epilogues: kernels for tensor cores in the emulator, plans with cuBLAS."""

from types import SimpleNamespace

import numpy as np
import pytest

from accelviz import measure
from accelviz.devices import find_device
from accelviz.devices.cuda import compile_cubin, compiler
from accelviz.emulator import emulate
from accelviz.errors import DeviceUnavailable
from accelviz.layers import Noise, affine
from accelviz.measure.accuracy import Oracle
from accelviz.plans import Call, LaunchConfig, LibraryCall
from accelviz.strategies.dense.operation import Form, gradient, product
from accelviz.strategies.dense.strategies import (
    Cublas,
    TensorTiles,
    dense_plan,
    supports_tensor_tiles,
)
from tests.compilers import HOST, needs_compiler
from tests.graphs import MADE, graph_of_degrees
from tests.inherited import Case

#: A number of rows with which the last tile is not full.
ROWS = graph_of_degrees([1, 0, 3] * 23 + [2])
END = {"bias": True, "activation": "relu", "dropout": True}
PRODUCTS = [
    (Form(outputs=2), 32, 16),
    (Form(), 48, 48),
    (Form(inputs=2), 64, 32),
    (Form(transposed=True), 16, 80),
    (Form(**END), 32, 48),
    (Form(bias=True, activation="elu"), 16, 16),
    (Form(inputs=2, bias=True, dropout=True), 16, 32),
    (Form(transposed=True, activation_gradient=True), 32, 16),
    (Form(inputs=2, transposed=True, activation_gradient=True), 16, 16),
]
GRADIENTS = [(Form(outputs=2), 32, 16), (Form(), 48, 48), (Form(inputs=2), 64, 32)]
CASES = [(product(form), *sizes) for form, *sizes in PRODUCTS]
CASES += [(gradient(form), *sizes) for form, *sizes in GRADIENTS]
each_case = pytest.mark.parametrize(
    ("operation", "inner", "n_cols"), CASES, ids=lambda value: getattr(value, "name", str(value))
)


def form_of(operation):
    return operation.reference.args[0]


@pytest.mark.sample(2)
@HOST
@each_case
def test_tensor_tiles_have_the_accuracy_of_float32(operation, inner, n_cols, device):
    for graph in (ROWS, MADE["empty"]()):
        plan = TensorTiles(form_of(operation), operation).plan(graph, n_cols, inner=inner)
        plan.check()
        case = Case(graph, operation, {"n_cols": n_cols, "inner": inner})
        case.check(plan, find_device(device))


@needs_compiler
@each_case
def test_what_cublas_leaves_is_done_by_kernels(operation, inner, n_cols):
    """cuBLAS's calls are computed by NumPy, the kernels run in the emulator."""
    plan = Cublas(form_of(operation), operation).plan(ROWS, n_cols + 1, inner=inner + 3)
    dense = measure.random_inputs(operation, ROWS.pattern, plan.widths)
    settings = {one.name: 0.3 if one.name == "rate" else one.default for one in operation.settings}
    oracle = Oracle(ROWS, *dense, operation=operation, **settings)
    arrays = {**plan.arrays, **operation.named(*dense), **settings}
    if "random" in settings:
        arrays["random"] = np.array(settings["random"], np.uint32)
    for name, (size, dtype) in plan.buffers.workspace.items():
        arrays[name] = np.full(size, np.nan, dtype)
    outputs = {one.name: one.shape(plan.sizes) for one in operation.outputs}
    arrays |= {name: np.full(shape, np.nan, np.float32) for name, shape in outputs.items()}
    for call in plan.calls:
        if isinstance(call, LibraryCall):
            A, B, result = (arrays[name] for name in call.arguments)
            A, B = A.T if call.transposed == "A" else A, B.T if call.transposed == "B" else B
            result[...] = A @ B + (result if call.adds else 0)
        else:
            kernel, launch = call.kernel, call.launch
            arguments = [arrays[name] for name in kernel.arguments]
            source, sizes = kernel.configured_source(), (launch.grid, launch.block)
            emulate(source, *sizes, *arguments, kernel=kernel.entry)
    assert oracle.error({name: arrays[name] for name in outputs}) <= 1


@needs_compiler
def test_layers_run_products_by_these_plans(monkeypatch):
    rng = np.random.default_rng(1)
    shapes = (50, 32), (50, 16), (32, 16), (32, 16), (16,)
    X, D, W, W2, b = (rng.standard_normal(shape, np.float32) for shape in shapes)
    noise, gradient = Noise.of(3, 4).at(2), affine.ActivationGradient(X, 1.25)

    def results():
        yield affine.affine([X], [W], affine.Epilogue(b, "relu", 0.4, noise))
        yield affine.affine([X, X], [W, W2])
        yield from affine.times_both(X, [W, W2])
        yield affine.input_gradient([D], [W])
        yield affine.input_gradient([D, D], [W, W2], gradient)
        for inputs, gradients in (([X], [D]), ([X, X], [D]), ([X], [D, D])):
            products, sums = affine.weight_gradients(inputs, gradients)
            yield from (*products, sums)

    expected = [*results()]
    monkeypatch.setattr(affine, "owner", lambda _: find_device("emulator"))
    for result, expected_result in zip(results(), expected, strict=True):
        np.testing.assert_allclose(result, expected_result, rtol=1e-4, atol=1e-4)


def test_what_does_not_fit_is_left_to_cublas():
    assert supports_tensor_tiles(128, 128, 1, 1)
    assert supports_tensor_tiles(128, 64, 2, 1)
    unfit = (100, 64, 1, 1), (64, 7, 1, 1), (128, 128, 2, 1), (16, 256, 1, 1), (144, 112, 1, 1)
    for inner, n_cols, inputs, outputs in unfit:
        assert not supports_tensor_tiles(inner, n_cols, inputs, outputs)
        plan = dense_plan(Form(inputs, outputs), 10, inner, n_cols, of_gradient=False)
        assert plan.name == "cublas"


@pytest.mark.long
@pytest.mark.sample(2)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_products_compile_for_gpus(arch):
    plans = [dense_plan(Form(2, **END), 99, 128, 64, of_gradient=False)]
    plans.append(dense_plan(Form(2), 99, 128, 64, of_gradient=True))
    try:
        for plan in plans:
            assert len(compile_cubin(plan.calls[-1].kernel, arch)) > 1000
    except DeviceUnavailable as error:
        pytest.skip(f"kernels are not compile-checked here: {error}")


def test_large_shared_memory_is_asked_for_on_each_device(monkeypatch):
    """CUDA stores this setting for the current device; kernels are compiled for each device."""

    class Function:
        max_dynamic_shared_size_bytes = 0

        def __call__(self, grid, block, arguments, shared_mem):
            launched.append((devices[-1], shared_mem, self.max_dynamic_shared_size_bytes))

    launched, devices = [], [0]
    of_device = {0: Function(), 1: Function()}
    device = SimpleNamespace(Device=lambda: SimpleNamespace(id=devices[-1]))
    monkeypatch.setattr(compiler, "_load", lambda *_: (None, of_device[devices[-1]]))
    monkeypatch.setattr(compiler, "_compiled", {})
    monkeypatch.setattr(compiler, "import_cupy", lambda: SimpleNamespace(cuda=device))
    kernel = dense_plan(Form(), 10, 64, 64, of_gradient=False).kernel
    for number in (0, 1):
        devices.append(number)
        for size in (50_000, 60_000):
            find_device("cuda").launch(Call(LaunchConfig((1, 1, 1), 1, size), kernel), {})
    assert launched == [(n, size, size) for n in (0, 1) for size in (50_000, 60_000)]
