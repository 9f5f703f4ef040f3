"""Devices: a new device is one class, and launches on a GPU pass the right arguments."""

import ctypes
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import accelviz
from accelviz import bits
from accelviz.devices import DEVICES, Device, choose, find_device, run_operation
from accelviz.devices.cuda import CudaDevice, compiler
from accelviz.devices.cuda import device as cuda_device
from accelviz.devices.cuda import plan as cuda_plan
from accelviz.devices.cuda.cubins import Cubin
from accelviz.devices.programs import prepared_program
from accelviz.errors import ArgumentError, DeviceUnavailable
from accelviz.layers import train
from accelviz.measure import random_inputs
from accelviz.plans import Call, KernelSpec, LaunchConfig
from accelviz.plans.launch import NO_TENSOR_MAP, TENSOR_MAP, TensorMap
from accelviz.plans.program import Buffer, Program, Step
from accelviz.strategies import OPERATIONS
from tests.graphs import graph_of_degrees


class FarArray:
    """An array that NumPy cannot read."""

    def __init__(self, host):
        self.host, self.shape, self.dtype = host, host.shape, host.dtype

    def reshape(self, *shape):
        return FarArray(self.host.reshape(*shape))


class FarDevice(Device):
    """A fourth device, with its own class of arrays."""

    name, timed, array_type = "far", True, FarArray

    def to_device(self, array):
        return FarArray(array.copy())

    def to_host(self, array):
        return array.host.copy()

    def write(self, array, values):
        array.host[...] = values


@pytest.fixture
def far():
    DEVICES.append(FarDevice())
    yield DEVICES[-1]
    DEVICES.pop()


GRAPH = graph_of_degrees([3, 0, 40, 1, 7, 0, 2], 50)


def random(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def test_a_fourth_device_multiplies_where_its_arrays_lie(far):
    X, U = random(50, 16), random(7, 16)
    expected = accelviz.spmm(GRAPH, X, device="cpu")
    far_result = accelviz.spmm(GRAPH, far.to_device(X))
    np.testing.assert_array_equal(far_result.host, expected)
    out = far.empty((7, 16))
    assert (
        accelviz.spmm(accelviz.plan(GRAPH, "lane_groups", n_cols=16), far.to_device(X), out=out)
        is out
    )
    np.testing.assert_array_equal(out.host, expected)
    dots = accelviz.sddmm(GRAPH, far.to_device(U), far.to_device(X))
    np.testing.assert_array_equal(dots.host, accelviz.sddmm(GRAPH, U, X, device="cpu"))
    alpha = accelviz.edge_softmax(GRAPH, dots)
    assert alpha.shape == (GRAPH.nnz,)
    np.testing.assert_allclose(np.add.reduceat(alpha.host, [0, 3, 43, 44, 51]), 1, rtol=1e-6)


def test_a_fourth_device_multiplies_bits_where_they_lie(far):
    X, Z = random(7, 50), random(50, 9)
    A, B = (bits.quantize(far.to_device(Y), 3, side) for Y, side in ((X, "left"), (Z, "right")))
    assert isinstance(A.words, FarArray)
    host = A.on_host(), B.on_host()
    np.testing.assert_array_equal(bits.levels(B).host, bits.quantize(Z, 3, "right").levels())
    for finish in (None, bits.Finish(relu=True), bits.Finish(bits=2, side="right")):
        result = bits.product(A, B, finish=finish)
        expected = bits.product(*host, device="cpu", finish=finish)
        if finish is not None and finish.bits:
            result, expected = result.words, expected.words
        np.testing.assert_array_equal(result.host, expected)
    levels, plan = (
        np.arange(450).reshape(50, 9) % 16,
        accelviz.plan(GRAPH, n_cols=9, operation="bit_spmm_4"),
    )
    words = far.to_device(bits.pack_rows(levels, 4))
    sums = run_operation("bit_spmm_4", plan, {"X": words})["Y"]
    np.testing.assert_array_equal(sums.host, (GRAPH.adjacency.toarray() != 0) @ levels)
    with pytest.raises(ArgumentError, match="device: an operand lies on 'far'"):
        bits.levels(A, "cpu")


@pytest.mark.parametrize(
    "name", [name for name in OPERATIONS if not name.startswith(("scc", "dense"))]
)
def test_a_fourth_device_runs_every_operation(far, name):
    operation = OPERATIONS[name]
    graph = graph_of_degrees([3, 0, 40, 1, 7, 0, 2, *[5] * 43], 50)
    widths = {width: default or 8 for width, default in operation.widths.items()}
    plan = accelviz.plan(graph, operation=name, **widths)
    drawn = random_inputs(operation, graph.pattern, plan.widths)
    inputs = dict(zip((one.name for one in operation.dense), drawn, strict=True))
    expected = find_device("cpu").prepare(plan).run(inputs)
    placed = {key: far.to_device(np.asarray(array)) for key, array in inputs.items()}
    outputs = far.prepare(plan).run(placed)
    for key, array in expected.items():
        np.testing.assert_array_equal(outputs[key].host, array)


@pytest.mark.parametrize("model", ["gcn", "agnn", "gat"])
def test_a_fourth_device_trains(far, model):
    options = {"epochs": 2, "progress": False}
    expected, training = (train(model, "cora", device=one, **options) for one in ("cpu", "far"))
    assert training.device == "far"
    np.testing.assert_array_equal(training.logits, expected.logits)


def test_a_fourth_device_is_refused_what_it_does_not_have(far):
    X = far.to_device(random(50, 16))
    with pytest.raises(ArgumentError, match="of dtype object to NumPy"):
        accelviz.spmm(GRAPH, X, device="cpu")
    far.overlap = lambda one, other: one is other
    with pytest.raises(ArgumentError, match="it overlaps X"):
        accelviz.spmm(graph_of_degrees([1] * 50, 50), X, out=X)
    with pytest.raises(ArgumentError, match=r"float32 tests array of shape \(7, 16\)"):
        accelviz.spmm(GRAPH, X, out=np.empty((7, 16), np.float32))
    with pytest.raises(DeviceUnavailable, match="device 'far': it runs no kernel"):
        far.launch(Call(LaunchConfig((1, 1, 1), 1)), {})


def test_one_decision_for_all(far):
    X = far.to_device(random(2))
    assert choose("auto", [random(2), X]) is far
    assert choose("emulator", [X]).name == "emulator"
    assert choose(timed=True).timed
    with pytest.raises(ArgumentError, match="there is no 'gpu'.*auto, cuda, cpu, emulator.*far"):
        choose("gpu")


class Pointer:
    """An array with an address on a simulated GPU."""

    def __init__(self, address):
        self.data = SimpleNamespace(ptr=address)


def words(address, count=1):
    """Return 64-bit words of memory."""
    return list((ctypes.c_uint64 * count).from_address(address))


@pytest.fixture
def launches(monkeypatch):
    """Record launches with a simulated driver: function, sizes, stream and arguments.

    An argument whose name begins with "map" is a structure of 16 words, passed by value.
    """
    recorded, specs = [], []

    def launch(function, *sizes_and_parameters):
        *sizes, stream, parameters, _ = sizes_and_parameters
        names = specs[-1].arguments
        addresses = zip(words(parameters, len(names)), names, strict=True)
        arguments = [words(address, 16 if name[:3] == "map" else 1) for address, name in addresses]
        recorded.append((function, sizes, stream, arguments))

    def compiled(spec, *_, **__):
        specs.append(spec)
        return None, SimpleNamespace(kernel=SimpleNamespace(ptr=77))

    driver, stream = SimpleNamespace(launchKernel=launch), SimpleNamespace(ptr=5)
    cuda = SimpleNamespace(driver=driver, get_current_stream=lambda: stream)
    monkeypatch.setattr(cuda_plan, "import_cupy", lambda: SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(cuda_plan, "compiled", compiled)
    return recorded


def test_a_launch_carries_pointers_and_numbers(launches):
    spec = KernelSpec("k.cu", "k", {}, ("metadata", "X", "n_cols", "rate"), "")
    plan = SimpleNamespace(arrays={"metadata": Pointer(1 << 40), "n_cols": np.int32(-3)})
    launch = cuda_plan.KernelLaunch(plan, Call(LaunchConfig((5, 2, 1), 4, 96), spec))
    launch({"X": Pointer(4096), "rate": np.float32(0.5)}, 11)
    launch({"X": Pointer(8192), "rate": np.float32(0.5)}, 11)
    half = int(np.float32(0.5).view(np.uint32))
    arguments = [[[1 << 40], [x], [(1 << 32) - 3], [half]] for x in (4096, 8192)]
    assert launches == [(77, [5, 2, 1, 128, 1, 1, 96], 11, values) for values in arguments]
    cuda_plan.KernelLaunch(plan, Call(LaunchConfig((0, 1, 1), 4), spec))({}, 11)
    assert len(launches) == 2


def test_a_tensor_map_is_passed_by_value(launches, monkeypatch):
    """The parameter is the address of the structure, built from the operand's address."""

    def described(array, tensor_map):
        assert tensor_map.box == (32, 8)
        return np.full(16, array.data.ptr + 1, np.uint64).view(TENSOR_MAP).reshape(())

    monkeypatch.setattr(cuda_plan, "tensor_map", described)
    spec = KernelSpec("k.cu", "k", {}, ("A", "map_of_a"), "")
    maps = {"map_of_a": TensorMap("A", (4, 8), (16,), (32, 8))}
    plan = SimpleNamespace(arrays={"map_of_a": NO_TENSOR_MAP})
    launch = cuda_plan.KernelLaunch(plan, Call(LaunchConfig((1, 1, 1), 1), spec, maps))
    for address in (4096, 8192):
        launch({"A": Pointer(address)}, 11)
        assert launches[-1][-1] == [[address], [address + 1] * 16]


def test_a_step_of_a_program_passes_its_tensor_maps_by_value(monkeypatch):
    """The copy engine takes a placeholder for an illegal instruction."""
    passed = []

    class Recorder(CudaDevice):
        require = as_device_array = staticmethod(lambda *array: array and array[0])

        def empty(self, size, dtype):
            return Pointer(size)

        def launch(self, call, arguments):
            passed.append(tuple(self.arguments(call, arguments).values()))

    def described(array, tensor_map):
        return np.full(16, array.data.ptr + 1, np.uint64).view(TENSOR_MAP).reshape(())

    monkeypatch.setattr(cuda_device, "tensor_map", described)
    spec = KernelSpec("k.cu", "k", {}, ("A", "Y", "map_of_a"), "")
    call = Call(LaunchConfig((1, 1, 1), 1), spec, {"map_of_a": TensorMap("A", (4, 8), (16,), (8,))})
    arrays, names = {"map_of_a": NO_TENSOR_MAP}, {"A": "in", "Y": "out"}
    step = Step("k", 0, "compute", call, arrays, names, frozenset({"out"}), replay=print)
    buffers = {"in": Buffer(0, 8, "int32", "input"), "out": Buffer(0, 64, "int32", "output")}
    run, _ = prepared_program(Program((step,), buffers), {"in": Pointer(4096)}, Recorder())
    run()
    run()
    assert [words["words"].tolist() for *_, words in passed] == [[4097] * 16] * 2


def test_a_kernel_is_loaded_once_for_each_device(monkeypatch):
    current, modules = [0], []

    def module(**options):
        modules.append(options)
        return SimpleNamespace(get_function=lambda name: SimpleNamespace(name=name))

    def device():
        return SimpleNamespace(id=current[-1], compute_capability="89")

    def cached_cubin(spec, arch, *options):
        assert spec.entry == "row_thread"
        return Cubin(Path("/", arch, *options), "mangled")

    fake = SimpleNamespace(cuda=SimpleNamespace(Device=device), RawModule=module)
    monkeypatch.setattr(compiler, "import_cupy", lambda: fake)
    monkeypatch.setattr(compiler, "cached_cubin", cached_cubin)
    monkeypatch.setattr(compiler, "_compiled", {})
    spec = KernelSpec("spmm/row_thread.cu", "row_thread", {"n": 1}, ())
    first = compiler.compiled(spec)
    assert first[1].name == "mangled"
    assert compiler.compiled(spec) is first
    assert compiler.compiled(spec, "-G") is not first
    assert compiler.compiled(spec, cooperative=True) is not first
    current.append(1)
    assert compiler.compiled(spec) is not first
    paths, cooperative = zip(*(options.values() for options in modules), strict=True)
    assert [Path(path).parts[1:] for path in paths] == [
        ("sm_89",),
        ("sm_89", "-G"),
        *2 * [("sm_89",)],
    ]
    assert cooperative == (False, False, True, False)


def test_a_repeated_product_is_one_launch_of_the_same_arguments(launches, monkeypatch):
    """`run_single` passes the same pointers as `launch`, and leaves other arrays to `run`."""
    kind = type("ndarray", (), {})

    def array(shape, dtype=np.float32, address=1 << 20):
        one, shape = kind(), shape if isinstance(shape, tuple) else (shape,)
        one.dtype, one.shape, one.nbytes = np.dtype(dtype), shape, 4 * int(np.prod(shape))
        one.flags, one.data = SimpleNamespace(c_contiguous=True), SimpleNamespace(ptr=address)
        return one

    def on_far_gpu(value):
        return value if isinstance(value, np.generic) else array(value.shape)

    cupy = cuda_plan.import_cupy()
    cupy.ndarray, cupy.empty, cupy.zeros = kind, array, array
    monkeypatch.setattr(cuda_plan, "import_cupy", lambda: cupy)
    monkeypatch.setattr("accelviz.devices.cuda.device.import_cupy", lambda: cupy)
    monkeypatch.setattr(cuda_plan, "on_device", on_far_gpu)
    monkeypatch.setattr("accelviz.devices.cuda.device.on_device", on_far_gpu)
    monkeypatch.setattr(CudaDevice, "take", lambda self, array, order: array)
    plan = accelviz.plan(GRAPH, "lane_groups", 16)
    ready = cuda_plan.CudaPlan(plan, CudaDevice())
    X, Y = array((50, 16), address=1 << 30), array((7, 16), address=1 << 31)
    assert ready.run_single(X, Y) is Y
    assert ready.run_single(X, None).shape == (7, 16)
    ready.launch(ready.inputs({"X": X, "values": array(GRAPH.nnz)}), {"Y": Y})
    arguments = [words for *_, words in launches]
    assert arguments[0] == arguments[2]
    assert arguments[0].count([1 << 30]) == arguments[0].count([1 << 31]) == 1
    odd = [array((50, 16), np.float64), array((50, 8)), array((50, 16), address=(1 << 30) + 4), 3]
    assert all(ready.run_single(one, Y) is None for one in odd)
    assert ready.run_single(X, array((7, 16), address=(1 << 30) + 64)) is None  # it overlaps X
    assert len(launches) == 3


def test_nobody_outside_its_folder_asks_for_cupy():
    package = Path(accelviz.__file__).parent
    asks = re.compile(r"import_cupy|import cupy|from cupy")
    askers = [path for path in package.rglob("*.py") if asks.search(path.read_text("utf-8"))]
    assert {path.parent.relative_to(package).as_posix() for path in askers} == {"devices/cuda"}
