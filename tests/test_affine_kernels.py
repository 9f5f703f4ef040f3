"""The products of layers on tensor cores, in the emulator, against float64 and NumPy's steps."""

from types import SimpleNamespace

import numpy as np
import pytest

from accelviz.devices import find_device
from accelviz.devices.cuda import compile_cubin, compiler, products
from accelviz.devices.cuda.products import fits, kernel_of, threads_of_gradient
from accelviz.emulator import emulate
from accelviz.errors import DeviceUnavailable
from accelviz.layers import Noise, dense
from accelviz.plans import Call, LaunchConfig
from tests.compilers import needs_compiler

ROWS, BLOCKS = 70, 2  # the last tile is not full
NOISE = Noise.of(seed=(7 << 32) + 11, n_sites=4, step=3).at(2)
rng = np.random.default_rng(0)

each_shape = pytest.mark.parametrize(
    "shape", [(32, 16, 1, 2), (48, 48, 1, 1), (64, 32, 2, 1), (16, 80, 1, 1)]
)


def normal(*shape):
    return rng.standard_normal(shape, dtype=np.float32)


def launch(entry, blocks, threads, arguments, shape, **options):
    shared = options.pop("shared_bytes", 0)
    spec = kernel_of(entry, shape, **options)
    numbers = {"kernel": entry, "shared_bytes": shared}
    emulate(spec.configured_source(), blocks, threads, *arguments, **numbers)


def product(inputs, weights, bias, positive, scale, rate, shape, **options):
    inner, columns, in_parts, out_parts = shape
    results = [np.full((ROWS, columns), np.nan, np.float32) for _ in range(out_parts)]
    ends = [(each[0], each[-1] if len(each) > 1 else None) for each in (inputs, weights, results)]
    arguments = *ends[0], *ends[1], bias, positive, *ends[2], ROWS, scale, rate, NOISE.words.copy()
    options["shared_bytes"] = 4 * in_parts * inner * out_parts * columns
    launch("product", BLOCKS, 256, arguments, shape, dropout=rate > 0, **options)
    return np.concatenate(results, axis=1)


def assert_exact(found, A, B, bound=1e-6):
    """Hold an error to a share of the sum of |a b|: that of float32, not that of TF32 (1e-3)."""
    A, B = A.astype(float), B.astype(float)
    assert (abs(found - A @ B) / (abs(A) @ abs(B))).max() < bound


@pytest.mark.sample(2)
@needs_compiler
@each_shape
def test_products_have_the_accuracy_of_float32(shape):
    inner, columns, in_parts, out_parts = shape
    transposed = out_parts == 1  # as where the gradient goes back
    inputs = [normal(ROWS, inner) for _ in range(in_parts)]
    weights = [normal(inner, columns) for _ in range(max(in_parts, out_parts))]
    given = [W.T.copy() for W in weights] if transposed else weights
    found = product(inputs, given, None, None, 1.0, 0.0, shape, transposed=transposed)
    B = np.concatenate(weights, axis=0 if in_parts > 1 else 1)
    assert_exact(found, np.concatenate(inputs, axis=1), B)


@needs_compiler
@pytest.mark.parametrize(("activation", "rate"), [("relu", 0.6), ("elu", 0.0), ("none", 0.3)])
def test_what_follows_a_product(activation, rate):
    A, W, b, shape = normal(ROWS, 32), normal(32, 48), normal(48), (32, 48, 1, 1)
    number = ("none", "relu", "elu").index(activation)
    found = product([A], [W], b, None, 1.0, rate, shape, activation=number)
    expected = dense.finish(A @ W, b, activation, rate, NOISE)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5)


@needs_compiler
def test_the_slope_after_a_product():
    A, W, X = normal(ROWS, 32), normal(16, 32), normal(ROWS, 16)
    found = product([A], [W], None, X, 2.5, 0.0, (32, 16, 1, 1), transposed=True)
    np.testing.assert_allclose(found, A @ W.T * (X > 0) * 2.5, rtol=1e-5, atol=5e-5)


@pytest.mark.sample(2)
@needs_compiler
@each_shape
def test_gradients_of_weights_and_bias(shape):
    inner, columns, in_parts, out_parts = shape
    inputs = [normal(ROWS, inner) for _ in range(in_parts)]
    gradients = [normal(ROWS, columns) for _ in range(out_parts)]
    left, right = in_parts * inner, out_parts * columns
    parts = np.full((BLOCKS, left + 1, right), np.nan, np.float32)
    factors = [(each[0], each[-1] if len(each) > 1 else None) for each in (inputs, gradients)]
    arguments = *factors[0], *factors[1], parts, ROWS
    launch("weight_gradient", BLOCKS, threads_of_gradient(left, right), arguments, shape)
    n_results = max(in_parts, out_parts)
    found = [np.full((inner, columns), np.nan, np.float32) for _ in range(n_results)]
    sums = np.full(columns, np.nan, np.float32)
    arguments = parts, found[0], found[-1] if n_results > 1 else None, sums, BLOCKS
    launch("add_parts", -(-((left + 1) * right) // 32), 256, arguments, shape)
    A, D = np.concatenate(inputs, axis=1), np.concatenate(gradients, axis=1)
    assert_exact(np.concatenate(found, axis=0 if in_parts > 1 else 1), A.T, D)
    np.testing.assert_allclose(sums, gradients[-1].sum(axis=0, dtype=float), atol=1e-4)


def test_what_does_not_fit_is_known():
    assert fits(128, 128, 1, 1)
    assert fits(128, 64, 2, 1)
    unfit = (100, 64, 1, 1), (64, 7, 1, 1), (128, 128, 2, 1), (16, 256, 1, 1), (144, 112, 1, 1)
    for shape in unfit:
        assert not fits(*shape)


@pytest.mark.sample(2)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_products_compile_for_gpus(arch):
    try:
        for entry, options in [("product", {"activation": 1, "dropout": True}), ("add_parts", {})]:
            assert len(compile_cubin(kernel_of(entry, (128, 64, 2, 1), **options), arch)) > 1000
    except DeviceUnavailable as error:
        pytest.skip(f"kernels are not compile-checked here: {error}")


def test_large_shared_memory_is_asked_for_on_each_device(monkeypatch):
    """CUDA keeps it for the device that was current; kernels themselves are compiled for each."""

    class Function:
        max_dynamic_shared_size_bytes = 0

        def __call__(self, grid, block, arguments, shared_mem):
            launched.append((devices[-1], shared_mem, self.max_dynamic_shared_size_bytes))

    launched, devices = [], [0]
    of_device = {0: Function(), 1: Function()}
    module = SimpleNamespace(get_function=lambda _: of_device[devices[-1]])
    device = SimpleNamespace(Device=lambda: SimpleNamespace(id=devices[-1]))
    monkeypatch.setattr(compiler, "_module", lambda *_: module)
    monkeypatch.setattr(compiler, "_compiled", {})
    monkeypatch.setattr(compiler, "import_cupy", lambda: SimpleNamespace(cuda=device))
    shape = (64, 64, 1, 1)
    call = Call(LaunchConfig((1, 1, 1), 1, 50_000), kernel_of("product", shape))
    for number in (0, 1):
        devices.append(number)
        find_device("cuda").launch(call, {})
        kernel = products._kernel(("product", shape), 60_000)
        assert kernel.max_dynamic_shared_size_bytes == 60_000
    assert launched == [(0, 50_000, 50_000), (1, 50_000, 50_000)]
