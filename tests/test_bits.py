"""Bit tensors and their products: exact results on the host, in the emulator and on a GPU."""

import importlib
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

import accelviz
from accelviz import bits, load_graph
from accelviz.devices import run_operation
from accelviz.devices.cuda import compile_cubin, compiler
from accelviz.devices.cuda.state import READY, GpuState
from accelviz.errors import ArgumentError, DeviceUnavailable, PartitionError
from accelviz.plans import KernelSpec
from accelviz.strategies import find_strategy
from accelviz.strategies.bits import products
from accelviz.strategies.bits.packing import row_levels
from tests.compilers import needs_compiler
from tests.graphs import MADE, graph_of_degrees
from tests.inherited import check_results

#: The module; the package's attribute of the same name is the function.
product_module = importlib.import_module("accelviz.bits.product")

each_device = pytest.mark.parametrize(
    "device",
    [
        "cpu",
        pytest.param("emulator", marks=needs_compiler),
        pytest.param("cuda", marks=pytest.mark.gpu),
    ],
)
each_side = pytest.mark.parametrize("side", ["left", "right"])
#: Shapes that are no multiples of 8 or 32, empty, of one element, and beyond a line's padding.
SHAPES = [(5, 7), (1, 1), (33, 129), (40, 31), (0, 4), (3, 0), (8, 128)]


def host(array):
    return array.get() if hasattr(array, "get") else array


def numbers(shape, width, seed=0):
    return np.random.default_rng((seed, width, *shape)).integers(0, 1 << width, shape)


@pytest.mark.sample(4)
@each_side
@pytest.mark.parametrize("width", range(1, 17))
def test_words_are_where_the_paper_puts_them(width, side):
    """Figure 2.4: planes, then lines, then words; a word's first number is in its lowest bit."""
    for shape in SHAPES:
        x = numbers(shape, width)
        packed = bits.pack(x, width, side)
        lines, along = shape if side == "left" else shape[::-1]
        assert packed.words.shape == (width, -(-lines // 8) * 8, -(-along // 128) * 4)
        expected = np.zeros(packed.words.shape, np.uint32)
        for line, k in np.ndindex(lines, along):
            number = x[line, k] if side == "left" else x[k, line]
            for plane in range(width):
                expected[plane, line, k // 32] |= np.uint32((number >> plane & 1) << k % 32)
        assert np.array_equal(packed.words, expected)
        assert np.array_equal(bits.levels(packed), x)
        assert packed.largest == x.max(initial=0)


@pytest.mark.sample(4)
@each_device
@pytest.mark.parametrize(
    ("width", "per_column", "side"), [(1, False, "left"), (3, True, "right"), (16, True, "left")]
)
def test_a_matrix_is_quantized_by_equation_2_2(width, per_column, side, device):
    X = np.random.default_rng(width).standard_normal((37, 70)).astype(np.float32)
    X[:, 3] = 1.5  # a column without a range
    tensor = bits.quantize(X, width, side, per_column=per_column, device=device)
    low, high = (getattr(X, end)(axis=0 if per_column else None) for end in ("min", "max"))
    step = (high - low) / np.float32(2**width)
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = np.minimum(np.floor((X - low) / step), 2**width - 1)
    assert np.array_equal(host(bits.levels(tensor, device)), np.nan_to_num(expected))
    assert tensor.clipped == 0
    half = np.broadcast_to(step, X.shape) * 0.501 + 1e-6
    assert (abs(tensor.values() - X) <= half).all()
    other = bits.quantize(X, width, side, low=-1, high=1, device=device)
    assert other.clipped == (abs(X) > 1).sum()
    assert np.array_equal(other.levels() == 0, np.float32(2) / 2**width > X + 1)


def test_infinity_is_clipped_to_the_ends_of_a_range():
    tensor = bits.quantize([[-np.inf, 0.5, np.inf]], 2, "left", low=0, high=1)
    assert tensor.levels().tolist() == [[0, 2, 3]]
    assert tensor.clipped == 2


#: Every number of bits on either side, so that each kernel has passes of one and several planes.
WIDTHS = [*zip(range(1, 17), [16, 1, 9, 4, 2, 8, 3, 5, 1, 7, 1, 2, 1, 1, 1, 15], strict=True)]
WIDTHS += [(1, t) for t in (1, 2, 3, 4, 6, 10, 11, 12, 13, 14)]
#: Numbers of bits to run in the emulator, by algorithm, and sizes for them.
EMULATED = {"tiled": [(1, 1), (3, 9)], "split": [(1, 4), (5, 2)], "paper": [(3, 9)]}
EMULATED["warpgroup"] = [(1, 2), (3, 9), (1, 4)]
SIZES = {(1, 1): (70, 45, 700), (3, 9): (33, 40, 513), (1, 4): (1, 1, 1), (5, 2): (40, 33, 130)}
SIZES[1, 2] = (150, 44, 3100)
each_algorithm = pytest.mark.parametrize("algorithm", bits.ALGORITHMS)


def operands(widths, sizes):
    """Return random operands with zero tiles; few numbers are large, so that sums fit 2^31."""
    (s, t), (m, n, k) = widths, sizes
    a, b = numbers((m, k), s), numbers((k, n), t, 1)
    a[: m // 2, : k // 2] = 0
    if s + t > 20:
        b[1:] = 0
    return a, b


@pytest.mark.sample(5)
@each_device
@each_algorithm
def test_products_equal_those_of_numpy_in_every_bit(algorithm, device):
    for widths in EMULATED.get(algorithm, [(1, 1)]) if device == "emulator" else WIDTHS:
        sizes = SIZES.get(widths, (37, 21, 300))
        a, b = operands(widths, sizes)
        A, B = bits.pack(a, widths[0], "left"), bits.pack(b, widths[1], "right")
        for jump in (True, False) if widths[0] == 1 else (True,):
            result = host(bits.product(A, B, device=device, algorithm=algorithm, jump=jump))
            assert result.dtype == np.int32
            assert np.array_equal(result, a @ b), (widths, sizes, jump)


def test_blocks_of_warpgroups_go_on_from_tile_to_tile(monkeypatch):
    monkeypatch.setattr(products, "SMS", 2)
    for m, n, k in ((530, 130, 1100), (300, 45, 100)):  # an odd number of tiles, and of columns
        a, b = operands((1, 2), (m, n, k))
        A, B = bits.pack(a, 1, "left"), bits.pack(b, 2, "right")
        plan = bits.plan_product(A, B, "warpgroup")
        assert plan.plan.launch.grid == (2, 1, 1)
        assert np.array_equal(plan.run(A, B, "emulator"), a @ b), (m, n, k)


@pytest.mark.sample(4)
@each_device
@pytest.mark.parametrize("algorithm", ["tiled", "split"])
def test_a_tile_of_a_may_be_read_again_for_each_plane_of_b(algorithm, device):
    a, b = operands((2, 3), (40, 20, 600))
    A, B = bits.pack(a, 2, "left"), bits.pack(b, 3, "right")
    plan = bits.plan_product(A, B, algorithm, reuse=False)
    assert plan.plan.kernel.config["b_planes"] == 1
    assert plan.plan.kernel.config["b_passes"] == 3
    assert np.array_equal(host(plan.run(A, B, device)), a @ b)


@each_device
def test_empty_and_one_node_operands(device):
    for m, n, k in ((0, 3, 5), (3, 0, 5), (3, 2, 0), (1, 1, 1)):
        a, b = np.ones((m, k), int), np.full((k, n), 3)
        A, B = bits.pack(a, 1, "left"), bits.pack(b, 2, "right")
        for algorithm in bits.ALGORITHMS:
            result = bits.product(A, B, device=device, algorithm=algorithm)
            assert np.array_equal(host(result), a @ b)


def test_zero_tiles_are_jumped_over():
    """Zero tiles are those without a nonzero of the graph, in each algorithm's tile size."""
    a = np.zeros((96, 2048), np.float32)
    a[40, 600] = a[95, 2047] = 1
    graph = load_graph(csr_array(a))
    tiles = {"split": (32, 512), "paper": (32, 512), "popc": (32, 1024), "warpgroup": (128, 1024)}
    for algorithm, size in {**tiles, "tiled": (128, 256)}.items():
        plan = accelviz.plan(graph, algorithm, 8, operation="bit_product")
        plan.check()
        assert (plan.tiles.rows, plan.tiles.columns) == size
        assert len(plan.tiles) == 2
    assert accelviz.plan(graph, "split", 8, operation="bit_product", jump=False).tiles is None


def test_large_results_go_to_warpgroups_where_there_are_some(monkeypatch):
    A = bits.pack(np.ones((1024, 8), int), 2, "left")
    B, few, less = (bits.pack(np.ones((8, n), int), 2, "right") for n in (256, 128, 255))
    for capability, large in (("90", "warpgroup"), ("80", "tiled"), ("120", "tiled")):
        monkeypatch.setattr(product_module, "gpu_state", lambda: GpuState(READY, ""))
        monkeypatch.setattr(compiler, "import_cupy", lambda name=capability: fake_cupy(name))
        assert bits.plan_product(A, B).plan.name == large
        assert bits.plan_product(A, few).plan.name == "split"
        assert bits.plan_product(A, less).plan.name == ("split" if large == "tiled" else large)
        assert bits.plan_product(A, B, reuse=False).plan.name == "tiled"
        finished = "split" if large == "tiled" else large
        for finish in (bits.Finish(), bits.Finish(bits=2)):
            assert bits.plan_product(A, B, finish=finish).plan.name == finished
        many = bits.pack(np.ones((8, 256), int), 9, "right")  # too many planes for whole words
        assert bits.plan_product(A, many, finish=bits.Finish(bits=2)).plan.name == "split"
    monkeypatch.setattr(compiler, "import_cupy", lambda: fake_cupy("120"))
    spec = bits.plan_product(A, B, "warpgroup").plan.kernel
    with pytest.raises(DeviceUnavailable, match="that only sm_90a has, and this GPU is sm_120"):
        compiler.compiled(spec)


def fake_cupy(capability):
    device = SimpleNamespace(compute_capability=capability, id=0)
    return SimpleNamespace(cuda=SimpleNamespace(Device=lambda: device))


FINISHES = {
    "values": {},
    "relu": {"relu": True},
    "left": {"bits": 3, "side": "left", "low": -1.0, "high": 2.0},
    "right": {"bits": 11, "side": "right", "low": 0.0, "high": 3.0, "relu": True},
}
each_finish = pytest.mark.parametrize("name", FINISHES)
each_finishing = pytest.mark.parametrize("algorithm", ["split", "warpgroup"])


@pytest.mark.sample(4)
@each_device
@each_finish
@each_finishing
def test_what_follows_in_the_kernel_is_exact(name, algorithm, device):
    """Results are close to float64 of the dequantized operands, and equal to the host's."""
    rng = np.random.default_rng(5)
    X, W = rng.uniform(-1, 2, (45, 70)), rng.standard_normal((70, 37)) / 8
    A, B = bits.quantize(X, 4, "left"), bits.quantize(W, 3, "right", per_column=True)
    weight, bias = bits.batch_norm(*rng.random((4, 37)))
    finish = bits.Finish(weight=weight, bias=bias, **FINISHES[name])
    result = bits.product(A, B, device=device, algorithm=algorithm, finish=finish)
    exact = A.values().astype(np.float64) @ B.values().astype(np.float64) * weight + bias
    exact = np.maximum(exact, 0) if finish.relu else exact
    if finish.bits is None:
        assert np.allclose(host(result), exact, rtol=1e-5, atol=1e-4)
        return
    expected = bits.quantize(exact, finish.bits, finish.side, low=finish.low, high=finish.high)
    assert abs(result.levels() - expected.levels()).max() <= 1
    assert (result.levels() != expected.levels()).mean() < 0.002  # at the ends of steps
    on_host = bits.product(A.on_host(), B.on_host(), device="cpu", finish=finish)
    assert np.array_equal(result.on_host().words, on_host.words)


@each_device
@each_finishing
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(
    ("rows", "columns", "width"), [(150, 300, 1), (129, 33, 5), (150, 300, None), (129, 33, None)]
)
def test_finished_results_of_several_tiles_are_the_hosts(
    rows, columns, width, side, algorithm, device
):
    rng = np.random.default_rng(7)
    A = bits.pack(numbers((rows, 300), 2), 2, "left")
    B = bits.pack(numbers((300, columns), 1), 1, "right")
    bias, row_scale = 100 * rng.standard_normal(columns), rng.random(rows)
    ends = {"low": -40.0, "high": 300.0}  # the level of 0 is not 0, but that of padding is
    finish = bits.Finish(bits=width, side=side, bias=bias, row_scale=row_scale, **ends)
    results = [
        bits.product(A, B, device=where, finish=finish, algorithm=name)
        for where, name in (("cpu", None), (device, algorithm))
    ]
    assert np.array_equal(
        *(result.on_host().words if width else host(result) for result in results)
    )


@pytest.mark.sample(5)
@each_device
@each_finish
@each_finishing
def test_an_epilogue_keeps_to_the_bound_of_its_operation(name, algorithm, device):
    strategy = products.ALGORITHMS[algorithm](bits.Finish(**FINISHES[name]).epilogue)
    check_results(MADE["every_kind"](), strategy, device, columns=(33,))


@each_device
@each_finishing
def test_a_pattern_takes_the_offset_times_its_degrees(algorithm, device):
    """If A has only zeros and ones, Equation 2.2's offset is added once per neighbor."""
    rng = np.random.default_rng(6)
    a = rng.random((50, 50)) < 0.1
    X = rng.uniform(3, 5, (50, 9)).astype(np.float32)
    A, B = bits.pack(a, 1, "left"), bits.quantize(X, 8, "right")
    degrees = np.maximum(a.sum(1), 1).astype(np.float32)
    finish = bits.Finish(row_scale=1 / degrees)
    result = host(bits.product(A, B, device=device, algorithm=algorithm, finish=finish))
    means = a @ X / degrees[:, None]
    assert abs(result - means).max() <= 1.01 * B.scale.step[0] / 2
    assert not result[a.sum(1) == 0].any()


@pytest.mark.long
def test_kernels_beside_the_algorithms_compile_for_a_gpu():
    packing = {"along_columns": 1, "per_column": 0}
    specs = [
        *(KernelSpec("bits/pack.cu", entry, packing, ()) for entry in ("quantize", "levels")),
        KernelSpec("bits/rates.cu", "bit_products", {"repeats": 8}, ()),
        KernelSpec("bits/rates.cu", "group_products", {"repeats": 8}, (), arch="sm_90a"),
        *(
            bits.plan_product(BIT, WIDE, name, finish=bits.Finish(bits=4, relu=True)).plan.kernel
            for name in ("split", "warpgroup")
        ),
    ]
    for spec, arch in zip(specs, ("sm_80", "sm_90", "sm_120", "", "sm_80", ""), strict=True):
        assert len(compile_cubin(spec, spec.arch or arch)) > 1000


@pytest.mark.sample(4, always=lambda case: case["columns"] == 3)
@each_device
@pytest.mark.parametrize(("width", "columns"), [(8, 64), (4, 70), (8, 3), (4, 600)])
def test_sums_of_rows_equal_those_of_numpy(width, columns, device):
    """Rows are empty, short, shared by subwarps of a block, and split over blocks."""
    rng = np.random.default_rng(columns)
    few = columns > 64
    graph = graph_of_degrees([0, 1, 2, 17, *(3,) * 20, 90, 0, *((130, 400) if few else (2100,))])
    X = rng.integers(0, 1 << width, (graph.shape[1], columns))
    operation, words = f"bit_spmm_{width}", bits.pack_rows(X, width)
    assert np.array_equal(row_levels(words, width)[:, :columns], X)
    plan = accelviz.plan(graph, n_cols=columns, operation=operation)
    sums = run_operation(operation, plan, {"X": words}, device=device)["Y"]
    assert np.array_equal(host(sums), (graph.adjacency.toarray() != 0).astype(int) @ X)


def test_operations_take_packed_words_alone():
    graph = graph_of_degrees([3, 0, 2])
    plan = accelviz.plan(graph, n_cols=20, operation="bit_spmm_8")
    words = bits.pack_rows(np.arange(60).reshape(3, 20), 8)
    with pytest.raises(ArgumentError, match=r"n_cols: packed operands of bit_spmm_8 do not"):
        run_operation("bit_spmm_8", graph, {"X": words})
    with pytest.raises(ArgumentError, match=r"X: shape \(3, 4\).*columns = 3, words of a row = 8"):
        run_operation("bit_spmm_8", plan, {"X": words[:, :4]}, device="cpu")
    with pytest.raises(ArgumentError, match="X: dtype float32.*uint32"):
        run_operation("bit_spmm_8", plan, {"X": np.zeros((3, 8), np.float32)}, device="cpu")
    out = {"Y": np.zeros((3, 20), np.float32)}
    with pytest.raises(ArgumentError, match="out: .*int32 numpy array"):
        run_operation("bit_spmm_8", plan, {"X": words}, device="cpu", out=out)
    with pytest.raises(ArgumentError, match="a_bits: got 17.*1 to 16"):
        accelviz.plan(graph, operation="bit_product", a_bits=17)
    hub = SimpleNamespace(degrees=np.array([1 << 24]))
    with pytest.raises(ArgumentError, match="graph: its sums could reach 4,278,190,080"):
        find_strategy("lane_groups", "bit_spmm_8").build(hub, {"n_cols": 1}, None)


BIT, WIDE = (bits.pack(np.ones((4, 4), int), 1, side) for side in ("left", "right"))
TALL = bits.pack(np.full((1, 40000), 65535), 16, "left")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bits.pack([[0]], 0, "left"), "bits: got 0.*1 to 16"),
        (lambda: bits.quantize([[0.0]], 17, "left"), "bits: got 17.*1 to 16"),
        (lambda: bits.pack([[2]], 1, "left"), "numbers: 2 to 2.*0 to 1, which 1 bits hold"),
        (lambda: bits.pack([[0.5]], 1, "left"), "numbers: 2-D of float64.*`quantize`"),
        (lambda: bits.pack(load_graph("cora").adjacency, 1, "left"), r"numbers: .*\.toarray\(\)"),
        (lambda: bits.quantize(load_graph("cora").adjacency, 2, "left"), r"X: .*X\.toarray\(\)"),
        (lambda: bits.pack([[1]], 1, "top"), "side: there is no 'top'.*left, right"),
        (lambda: bits.quantize([[np.nan]], 2, "left"), "X: some are NaN"),
        (lambda: bits.quantize([[0.0, np.inf]], 2, "left"), "range: .*finite"),
        (lambda: bits.quantize([[1.0]], 2, "left", low=3, high=2), "range: from 3 to 2"),
        (
            lambda: bits.quantize([[5.0, 0.0]], 2, "left", low=0, high=1, clip=False),
            "X: 1 values are out of the range",
        ),
        (lambda: bits.product(WIDE, BIT), "A: packed as the right operand.*side='left'"),
        (lambda: bits.product(BIT, BIT), "B: packed as the left operand"),
        (lambda: bits.product(np.ones((2, 2)), WIDE), "A: got a ndarray.*BitTensor"),
        (
            lambda: bits.product(TALL, bits.pack(np.full((40000, 1), 3), 2, "right")),
            r"its sums could reach 7,864,200,000.*2\^31 - 1",
        ),
        (lambda: bits.quantize([[-3e38, 3e38]], 2, "left"), "range: from -3"),
        (lambda: bits.quantize([[1e300, 1]], 2, "left"), "range: from 1.0 to inf"),
        (lambda: bits.quantize(np.eye(3), 2, "left", low=[0] * 3, high=[1] * 2), "3 lower and 2"),
        (lambda: bits.quantize(np.eye(2), 2, "left", low="a"), "range: .*U1.*numbers"),
        (lambda: bits.product(BIT, WIDE, finish=3), "finish: got a int"),
        (
            lambda: bits.product(BIT, WIDE, finish=bits.Finish(2, weight=[1, 1, np.nan, 1])),
            "weight: .*with NaN",
        ),
        (lambda: bits.product(BIT, WIDE, finish=bits.Finish(bias=["a"] * 4)), "bias: .*U1"),
        (lambda: bits.batch_norm([0], [-5], [1], [0]), "variance: -5 is in it"),
        (lambda: bits.plan_product(BIT, WIDE, "tiled", warps_m=9), "warps_m: got 9.*1 to 8"),
        (lambda: bits.plan_product(BIT, WIDE, warps_m=7, warps_n=5), "warps_m: 7 x 5 .*at most 32"),
        (
            lambda: bits.product(BIT, WIDE, algorithm="warpgroup", reuse=False),
            "reuse: 'warpgroup' has no such setting.*jump",
        ),
        (lambda: bits.levels(np.ones(3)), "tensor: got a ndarray.*BitTensor"),
        (lambda: bits.batches.one_transfer(BIT, 3), r"tensors\[1\]: got a int"),
        (lambda: bits.pack_rows([[1]], 3), "bits: got 3"),
        (lambda: bits.pack_rows([[0, 16]], 4), "numbers: 0 to 16.*0 to 15"),
        (lambda: bits.pack_rows(load_graph("cora").adjacency, 8), r"numbers: .*numbers\.toarray"),
        (lambda: next(bits.batches.batches("cora", np.zeros(9, int), 1)), "part: shape .9,."),
        (lambda: bits.batches.cut_edges("cora", np.full(2708, -1)), "part: .*at least 0"),
        (lambda: bits.product(TALL, WIDE), "B: 4 rows for 40,000 columns of A"),
        (lambda: bits.product(BIT, WIDE, algorithm="fast"), "algorithm: there is no 'fast'"),
        (lambda: bits.product(BIT, WIDE, device="tpu"), "device: there is no 'tpu'"),
        (
            lambda: bits.product(BIT, WIDE, algorithm="popc", finish=bits.Finish()),
            "'popc' leaves whole",
        ),
        (
            lambda: bits.product(
                bits.quantize(np.eye(4), 2, "left", per_column=True, low=[0] * 4, high=[1] * 4),
                WIDE,
                finish=bits.Finish(),
            ),
            "A: A has a scale for each column",
        ),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises((ArgumentError, PartitionError), match=message):
        call()
