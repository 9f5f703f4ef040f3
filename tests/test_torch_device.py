"""The GPU backend of accelviz.torch: on a GPU, and without one, its launches in the emulator."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric.nn")

from accelviz.devices.usual import usual_kernels  # noqa: E402
from accelviz.errors import ArgumentError  # noqa: E402
from accelviz.torch import blocks, composed, device, edge_sums, host, operators  # noqa: E402
from tests import torch_cases, torch_in_emulator  # noqa: E402
from tests.compilers import needs_compiler  # noqa: E402

#: On a GPU PyTorch Geometric warns that a package has a faster maximum.
pytestmark = [needs_compiler, pytest.mark.filterwarnings("ignore:.*torch-scatter")]


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def on(request, monkeypatch):
    """Return the device of tensors: "cpu", where launches run in the emulator, or "cuda"."""
    blocks._recent = blocks._EdgeLists()
    if request.param == "cuda":
        yield "cuda"
        return
    torch_in_emulator.emulate(monkeypatch)
    yield "cpu"
    torch_in_emulator.clear()


@pytest.fixture
def by_partitions(monkeypatch):
    """Let small products have a partition, as large ones do."""
    monkeypatch.setattr(edge_sums, "_MOST_ELEMENTS", 0)


@pytest.fixture(params=["edge_sums", "partitions"])
def way(request):
    """Return the way of small products, and let the test use it."""
    if request.param == "partitions":
        request.getfixturevalue("by_partitions")
    return request.param


def graph(on, n_sources=50, n_targets=50, n_edges=300, hub=80, dtype=torch.int64, seed=0):
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, [[n_sources - 2], [n_targets - 2]], (2, n_edges))
    pairs[1, :hub] = 3  # a row that is split, with edges that exist several times
    pairs[0, hub : hub + 40] = 5
    pairs = np.ascontiguousarray(pairs[:, rng.permutation(n_edges)])
    return torch.from_numpy(pairs).to(on, dtype)


def features(on, *shape, seed=1):
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return torch.from_numpy(values).to(on)


def close(result, expected):
    return torch.allclose(result.double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.sample(3)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    ("scaling", "size", "weighted", "n_cols"),
    [
        ("sum", (50, 50, 0), True, 16),
        ("sum", (50, 50, 50), True, 7),
        ("mean", (60, 50, 0), False, 8),
        ("symmetric", (50, 50, 50), False, 33),
        ("sum", (50, 64, 0), False, 128),
    ],
)
def test_spmm(on, way, scaling, size, weighted, n_cols, transposed):
    edge_index = graph(on, *size[:2])
    weight = features(on, 300 + size[2], seed=2) if weighted else None
    x = features(on, size[transposed], n_cols)
    arguments = (*size, scaling, transposed)
    y = device.spmm(edge_index, weight, x, *arguments)
    double = None if weight is None else weight.double()
    expected = composed.spmm(edge_index, double, x.double(), *arguments)
    assert close(y, expected)
    if way == "partitions":
        assert torch.equal(y, device.spmm(edge_index, weight, x, *arguments))
    assert len(blocks._recent) == (way == "partitions")


@pytest.mark.parametrize("scaling", ["sum", "mean", "symmetric"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.usefixtures("by_partitions")
def test_a_product_is_added_to_what_it_starts_with(on, scaling, transposed):
    edge_index, x, start = graph(on), features(on, 50, 6), features(on, 50, 6, seed=2)
    options = 50, 50, 50, scaling, transposed
    expected = start.double() + composed.spmm(edge_index, None, x.double(), *options)
    y = device.spmm(edge_index, None, x, *options, start)
    assert y.data_ptr() == start.data_ptr()
    assert close(y, expected)


@pytest.mark.parametrize("n_cols", [6, 8])
def test_the_dropout_of_a_row_depends_on_its_node(on, n_cols):
    nodes = torch.tensor([7, 2, 9, 2], device=on)
    x = features(on, 4, n_cols)
    random = torch.tensor([-5, 11, 0, 3], dtype=torch.int32, device=on)
    y = device.row_dropout(x, nodes, random, 0.4)
    assert torch.equal(y.cpu(), host.row_dropout(x.cpu(), nodes.cpu(), random.cpu(), 0.4))
    assert torch.equal(y[1] == 0, y[3] == 0)
    assert not torch.equal(y[0] == 0, y[1] == 0)
    assert 0 < int((y == 0).sum()) < y.numel()
    other = device.row_dropout(x, nodes, random + 1, 0.4)
    assert not torch.equal(other == 0, y == 0)


LAYERS = [
    *("gcn", "gcn wide", "sage", "sage wide", "sage max", "sage min", "sage pair"),
    *("gin fixed", "gin wide"),
]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("case", LAYERS)
def test_layers_are_pygs(on, case):
    theirs, ours = torch_cases.both(case, on)
    x, edge_index = torch_cases.features(on), torch_cases.edges(on)
    if case == "sage pair":
        x = x, torch_cases.features(on)
    if case == "gin wide":  # columns of X one after another
        x = torch_cases.features(on).detach().t().contiguous().t().requires_grad_()
    outcomes = (torch_cases.outcome(layer, x, edge_index) for layer in (ours, theirs))
    torch_cases.assert_alike(*outcomes)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_16_bit_features_have_float32_sums(on, dtype):
    edge_index, x = graph(on), features(on, 50, 16).to(dtype)
    y = device.spmm(edge_index, None, x, 50, 50, 0, "sum", False)
    expected = composed.spmm(edge_index, None, x.double(), 50, 50, 0, "sum", False)
    assert y.dtype == dtype
    assert torch.equal(y, expected.to(dtype))


@pytest.mark.parametrize("transposed", [False, True])
def test_the_gradients_of_weights_and_features(on, transposed):
    edge_index, size = graph(on, 60, 50), (60, 50, 0)
    weight, x = features(on, 300, seed=2), features(on, size[transposed], 12)
    dy = features(on, size[not transposed], 12, seed=3)
    d_weight, dx = device.spmm_gradient(edge_index, weight, x, dy, *size, transposed)
    double = x.double(), dy.double(), *size, transposed
    expected = composed.spmm_weight_gradient(edge_index, *double)
    assert close(d_weight, expected)
    arguments = weight.double(), dy.double(), *size, "sum", not transposed
    expected = composed.spmm(edge_index, *arguments)
    assert close(dx, expected)


@pytest.mark.usefixtures("by_partitions")
def test_every_change_of_the_edges_is_noticed(on):
    edge_index, x = graph(on), features(on, 50, 8)
    arguments = None, x, 50, 50, 50, "symmetric", False
    before = device.spmm(edge_index, *arguments)
    (edges_before,) = blocks._recent.values()
    edge_index.data[0, :50] = 7  # the version counter of edge_index does not notice
    y = device.spmm(edge_index, *arguments)
    expected = composed.spmm(edge_index, None, x.double(), *arguments[2:])
    assert [*blocks._recent.values()] == [edges_before]
    assert not torch.allclose(y, before)
    assert close(y, expected)
    edge_index.data = graph(on, seed=5)
    y = device.spmm(edge_index, *arguments)
    expected = composed.spmm(edge_index, None, x.double(), *arguments[2:])
    assert close(y, expected)


@pytest.mark.usefixtures("by_partitions")
def test_memory_of_a_captured_graph_is_kept_and_its_partitions_are_not_stored(on, monkeypatch):
    edge_index, x = graph(on), features(on, 50, 8)
    arguments = 50, 50, 0, "sum", False
    device.spmm(edge_index, None, x, *arguments)
    (captured,) = blocks._recent.values()
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    monkeypatch.setattr(blocks, "_captured", [])
    expected = device.spmm(edge_index, None, x, *arguments)
    assert blocks._captured == [captured]
    wide = features(on, 50, 200)  # a product that was not run before the capture
    y = device.spmm(edge_index, None, wide, *arguments)
    assert close(y, composed.spmm(edge_index, None, wide.double(), *arguments))
    assert len(captured.products) == 1
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    blocks.fix(edge_index)  # as `Edges` of the same tensor
    assert torch.equal(device.spmm(edge_index, None, x, *arguments), expected)
    assert captured not in blocks._recent.values()
    assert blocks._captured == [captured]


@pytest.mark.usefixtures("by_partitions")
def test_the_partitions_of_deleted_edges_are_forgotten(on):
    edge_index, x = graph(on), features(on, 50, 8)
    device.spmm(edge_index, None, x, 50, 50, 0, "sum", False)
    assert len(blocks._recent) == 1
    del edge_index
    assert not blocks._recent


@pytest.mark.usefixtures("by_partitions")
def test_partitions_have_a_bound_in_bytes(on, monkeypatch):
    many, x = [graph(on, seed=seed) for seed in range(9)], features(on, 50, 8)
    for edge_index in many[:4]:
        device.spmm(edge_index, None, x, 50, 50, 0, "sum", False)
    used = sum(entry.bytes for entry in blocks._recent.values())
    limit = used / blocks._MEMORY_SHARE
    monkeypatch.setattr(blocks, "_total_memory", lambda _: limit)
    for edge_index in many[4:]:
        device.spmm(edge_index, None, x, 50, 50, 0, "sum", False)
    assert len(blocks._recent) == 5  # those before the latest have the bytes of four


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("node", [50, -1, 1 << 40])
def test_a_node_that_does_not_exist_is_an_error_of_the_next_call(on, node):
    edge_index, x = graph(on), features(on, 50, 8)
    edge_index[0, 3] = node
    device.spmm(edge_index, None, x, 50, 50, 0, "sum", False)
    if on == "cuda":
        torch.cuda.synchronize()
    with pytest.raises(ArgumentError, match=rf"edge_index: .* node {node},"):
        device.spmm(edge_index, None, x, 50, 50, 0, "sum", False)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("form", ["int32", "columns", "rows", "empty", "one edge"])
def test_forms_of_edge_index(on, form):
    edge_index = graph(on)
    if form == "int32":
        edge_index = edge_index.int()
    elif form == "columns":  # strided elements
        edge_index = edge_index.t().contiguous().t()
    elif form == "rows":
        edge_index = torch.cat([edge_index, edge_index])[::2]
    else:
        edge_index = edge_index[:, : form == "one edge"]
    for x in (features(on, 50, 8), features(on, 8, 50).t()):
        y = device.spmm(edge_index, None, x, 50, 50, 50, "mean", False)
        expected = composed.spmm(edge_index, None, x.double(), 50, 50, 50, "mean", False)
        assert close(y, expected)


def test_fixed_edges_and_deterministic_results_have_partitions(on):
    edge_index, x = graph(on), features(on, 50, 8)
    arguments = None, x, 50, 50, 0, "sum", False
    device.spmm(edge_index, *arguments)
    assert not blocks._recent
    blocks.fix(edge_index)
    device.spmm(edge_index, *arguments)
    assert [len(edges.products) for edges in blocks._recent.values()] == [1]
    other = graph(on, seed=5)
    torch.use_deterministic_algorithms(True)
    try:
        device.spmm(other, *arguments)
    finally:
        torch.use_deterministic_algorithms(False)
    assert len(blocks._recent) == 2


def test_sizes_without_rows_columns_or_items(on):
    edge_index = graph(on)[:, :0]
    for sources, targets, n_cols in ((0, 0, 4), (5, 0, 4), (0, 5, 4), (5, 5, 0), (5, 5, 4)):
        x = features(on, sources, n_cols)
        y = device.spmm(edge_index, None, x, sources, targets, 0, "sum", False)
        assert torch.equal(y.cpu(), torch.zeros(targets, n_cols))
    with pytest.raises(ArgumentError, match="x: 7 rows for 50 nodes"):
        device.spmm(graph(on), None, features(on, 7, 4), 50, 50, 0, "sum", False)


@pytest.mark.parametrize("largest", [False, True])
def test_extrema_share_the_gradient(on, largest):
    edge_index, x = graph(on), features(on, 50, 6).round()
    x[:, 3:] = x[:, 3:].clamp(0, 1) * (1 if largest else -1)  # with extrema of 0
    y, source = device.extremum(edge_index, x, 50, 50, 0, largest)
    x.requires_grad_()
    index = edge_index[1][:, None].expand(-1, 6)
    reduction = "amax" if largest else "amin"
    expected = torch.zeros(50, 6, device=on).scatter_reduce(
        0, index, x[edge_index[0]], reduction, include_self=False
    )
    dy = features(on, 50, 6, seed=4)
    (expected_dx,) = torch.autograd.grad(expected, x, dy)
    assert torch.equal(y, expected)
    dx = device.extremum_gradient(edge_index, x.detach(), y, dy, source, 50, 50, 0)
    assert torch.allclose(dx, expected_dx, atol=1e-5)


@pytest.mark.parametrize("on", ["cpu"], indirect=True)
@pytest.mark.usefixtures("on")
def test_kernels_of_operations_are_among_those_that_doctor_compiles():
    plans = [*usual_kernels()]
    usual = [*plans, *device.tensor_kernels(plans)]
    known = {(spec.configured_source(), spec.entry, str(spec.defines)) for spec in usual}
    walks = [
        device._spmm_walk(n_cols, "float32", rows, rows, rows * degree, 0)
        for n_cols in (16, 64, 256)
        for rows, degree in ((2_048, 4), (20_480, 8), (524_288, 16))
    ]
    for name, heads in (("gat", 8), ("gat_gradient", 8), ("gatv2", 1), ("spmm_gradient", 1)):
        walks += device._walks(name, 16, heads, False, 0)[0]
    specs = [walk.kernel.spec for walk in walks]
    specs += [blocks._kernel(dtype, 0).spec for dtype in (torch.int32, torch.int64)]
    specs += edge_sums.specs(torch.int64, 64)
    for spec in specs:
        assert (spec.configured_source(), spec.entry, str(spec.defines)) in known


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("heads", "n_cols", "rate"), [(3, 5, 0.0), (3, 5, 0.4), (1, 16, 0.4), (8, 8, 0.0)]
)
@pytest.mark.parametrize("score", operators.ATTENTION_OPERANDS)
def test_attention_and_its_gradient(on, score, heads, n_cols, rate):
    """Each score has every size and both rates; one size has both rates."""
    size = (50, 50, 50) if score != "dot" else (60, 50, 0)
    edge_index = graph(on, *size[:2])
    shapes = {"receiver": (50, heads), "sender": (size[0], heads), "a": (heads, n_cols)}
    shapes |= {"scale": (size[0], heads), "Q": (50, heads, n_cols), "R": (50, heads, n_cols)}
    operands = [
        features(on, *shapes.get(name, (size[0], heads, n_cols)), seed=i)
        for i, name in enumerate(operators.ATTENTION_OPERANDS[score])
    ]
    random = torch.tensor([7, -9, 0, 0], dtype=torch.int32, device=on) if rate else None
    numbers = random, 0.2, rate, *size
    results = device.attention(edge_index, score, *operands, *numbers)
    doubles = [operand.double().requires_grad_() for operand in operands]
    expected = composed.attention(edge_index, score, *doubles, *numbers)
    assert close(results[0], expected)
    dy = features(on, 50, heads, n_cols, seed=9)
    gradients = device.attention_gradient(
        edge_index, score, *operands, random, *results, dy, *numbers[1:]
    )
    expected = torch.autograd.grad(expected, doubles, dy.double())
    for gradient, expected_gradient in zip(gradients, expected, strict=True):
        assert torch.allclose(gradient.double(), expected_gradient, rtol=1e-4, atol=1e-4)
