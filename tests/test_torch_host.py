"""The operations of `accelviz.torch.operators` on the CPU, against float64 and PyTorch."""

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from accelviz.errors import ArgumentError  # noqa: E402
from accelviz.plans.operation import EPS32  # noqa: E402
from accelviz.torch import composed, host, host_graph, operators  # noqa: E402
from accelviz.torch.operators import ATTENTION_OPERANDS, Size  # noqa: E402

HEADS, WIDTH = 3, 5


def random_edges(sources, targets, n_edges, seed=0):
    """Return (2, n_edges): half of the edges have one target, and some pairs repeat."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, [[sources], [targets]], (2, n_edges))
    edges[1, : n_edges // 2] = targets // 2
    edges[:, -5:] = edges[:, :5]
    return torch.from_numpy(edges)


#: (edge_index, size) by name; "bipartite" has isolated nodes of both kinds.
GRAPHS = {
    "square": (random_edges(40, 40, 400), Size(40, 40)),
    "loops": (random_edges(40, 40, 400), Size(40, 40, 40)),
    "bipartite": (random_edges(50, 20, 120), Size(90, 60)),
    "bipartite_loops": (random_edges(20, 50, 120), Size(70, 60, 30)),
    "no_edges": (torch.zeros((2, 0), dtype=torch.int64), Size(3, 4)),
    "loops_only": (torch.tensor([[1, 1], [1, 1]]), Size(3, 3, 3)),
    "no_targets": (torch.zeros((2, 0), dtype=torch.int64), Size(3, 0)),
    "no_nodes": (torch.zeros((2, 0), dtype=torch.int64), Size(0, 0)),
}
graphs = pytest.mark.parametrize("name", GRAPHS)


@pytest.fixture(autouse=True)
def _same_start():
    torch.manual_seed(0)
    host_graph._cache.clear()


@pytest.fixture(params=["edges", "csr"])
def way(request, monkeypatch):
    """Let small products go over the edges, as by default, or have a CSR form as large ones do."""
    if request.param == "csr":
        monkeypatch.setattr(host, "SMALL_ELEMENTS", 0)


def doubles(tensors):
    return [None if t is None else t.detach().double().requires_grad_() for t in tensors]


def assert_within(result, expected, bound):
    assert result.shape == expected.shape
    error = (result.detach().double() - expected).abs()
    assert bool((error <= bound.broadcast_to(error.shape)).all()), float((error - bound).max())


def sum_bound(edge_index, size, transposed, weight, x, scaling):
    """Return the bound of a float32 sum of n products of three factors: (n + 6) eps sum |terms|."""
    absolute = [None if t is None else t.detach().double().abs() for t in (weight, x)]
    magnitude = composed.spmm(edge_index, *absolute, *size, scaling, transposed)
    ones = torch.ones((len(x), 1), dtype=torch.float64)
    terms = composed.spmm(edge_index, None, ones, *size, "sum", transposed)
    return (terms + 6) * EPS32 * magnitude


MODES = [("sum", True), ("sum", False), ("mean", False), ("symmetric", False)]


@pytest.mark.sample(4)
@graphs
@pytest.mark.parametrize(("scaling", "weighted"), MODES)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("n_cols", [0, 1, 7, 64])
@pytest.mark.usefixtures("way")
def test_spmm_and_its_gradients_are_sums_in_float32(name, scaling, weighted, transposed, n_cols):
    edge_index, size = GRAPHS[name]
    x = torch.randn(size[1 if transposed else 0], n_cols, requires_grad=True)
    weight = torch.randn(edge_index.size(1) + size.loops, requires_grad=True) if weighted else None
    y = torch.ops.accelviz.spmm(edge_index, weight, x, *size, scaling, transposed)
    if not transposed:
        assert torch.equal(y, operators.spmm(edge_index, x, size, weight, scaling))
    dy = torch.randn_like(y)
    weight64, x64 = doubles([weight, x])
    y64 = composed.spmm(edge_index, weight64, x64, *size, scaling, transposed)
    assert_within(y, y64, sum_bound(edge_index, size, transposed, weight, x, scaling))
    (dx,) = torch.autograd.grad(y, x, dy, retain_graph=True)
    (dx64,) = torch.autograd.grad(y64, x64, dy.double(), retain_graph=True)
    assert_within(dx, dx64, sum_bound(edge_index, size, not transposed, weight, dy, scaling))
    if weighted:
        (d_weight,) = torch.autograd.grad(y, weight, dy)
        (d_weight64,) = torch.autograd.grad(y64, weight64, dy.double())
        absolute = edge_index, x.detach().double().abs(), dy.double().abs()
        magnitude = composed.spmm_weight_gradient(*absolute, *size, transposed)
        assert_within(d_weight, d_weight64, (n_cols + 1) * EPS32 * magnitude)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sums_of_16_bit_numbers_are_float32(dtype):
    n_edges = 5000  # a sum in float16 would stop at 2048
    edge_index = torch.stack([torch.arange(n_edges), torch.zeros(n_edges, dtype=torch.int64)])
    size = Size(n_edges, 1)
    x = torch.ones(n_edges, 2, dtype=dtype, requires_grad=True)
    weight = torch.ones(n_edges, requires_grad=True)
    for given_weight in (None, weight):
        y = operators.spmm(edge_index, x, size, given_weight)
        assert y.dtype == dtype
        assert torch.equal(y, torch.full((1, 2), n_edges, dtype=dtype))
    y.sum().backward()
    assert (x.grad.dtype, weight.grad.dtype) == (dtype, torch.float32)
    assert torch.equal(weight.grad, torch.full((n_edges,), 2.0))


@graphs
@pytest.mark.parametrize("largest", [True, False])
def test_extrema_share_their_gradient(name, largest):
    edge_index, size = GRAPHS[name]
    x = torch.randint(-3, 4, (size.sources, 9)).float().requires_grad_()  # with equal extrema
    y = operators.extremum(edge_index, x, size, largest)
    dy = torch.randn_like(y)
    (dx,) = torch.autograd.grad(y, x, dy)
    source, target, counts = composed.items(edge_index, *size)
    index = target[counts][:, None].expand(-1, 9)
    x64, y64 = x.detach().double().requires_grad_(), torch.zeros(size.targets, 9).double()
    reduction = "amax" if largest else "amin"
    y64 = y64.scatter_reduce(0, index, x64[source[counts]], reduction, include_self=False)
    assert torch.equal(y.double(), y64)
    (dx64,) = torch.autograd.grad(y64, x64, dy.double(), retain_graph=True)
    (magnitude,) = torch.autograd.grad(y64, x64, dy.double().abs())
    assert_within(dx, dx64, EPS32 * (edge_index.size(1) + 3) * magnitude)


def test_an_extremum_of_a_nan_is_nan():
    edge_index, size = torch.tensor([[0, 1, 2, 1], [0, 0, 0, 1]]), Size(3, 2)
    x = torch.tensor([[1.0, 5.0], [np.nan, 1.0], [2.0, np.nan]], requires_grad=True)
    for largest in (True, False):
        y = operators.extremum(edge_index, x, size, largest)
        assert torch.equal(y.isnan(), torch.tensor([[True, True], [True, False]]))
    y[1, 1].backward()
    assert torch.equal(x.grad, torch.tensor([[0.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))


def attention_operands(score, size):
    by_target, by_source = (size.targets, HEADS, WIDTH), (size.sources, HEADS, WIDTH)
    shapes = {
        "receiver": by_target[:2],
        "sender": by_source[:2],
        "scale": by_source[:2],
        "V": by_source,
        "K": by_source,
        "Q": by_target,
        "R": by_target,
        "a": (HEADS, WIDTH),
    }
    return {
        name: torch.randn(shapes[name], requires_grad=True) for name in ATTENTION_OPERANDS[score]
    }


def random_words(rate):
    """Return the words that `operators.attention` draws next, which stay the next ones."""
    if rate == 0:
        return None
    state = torch.get_rng_state()
    seed = torch.randint(-(1 << 31), 1 << 31, (2,))
    torch.set_rng_state(state)
    return torch.cat([seed, torch.zeros_like(seed)]).to(torch.int32)


@graphs
@pytest.mark.parametrize("score", ATTENTION_OPERANDS)
@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_attention_and_its_gradients_equal_those_in_float64(name, score, rate):
    edge_index, size = GRAPHS[name]
    operands = attention_operands(score, size)
    words, exact = random_words(rate), doubles(operands.values())
    y = operators.attention(edge_index, score, size, slope=0.2, rate=rate, **operands)
    y64 = composed.attention(edge_index, score, *exact, words, 0.2, rate, *size)
    dy = torch.randn_like(y)
    results = y, *torch.autograd.grad(y, list(operands.values()), dy)
    for result, expected in zip(
        results, (y64, *torch.autograd.grad(y64, exact, dy.double())), strict=True
    ):
        # Scores of up to 20 have errors of up to 20 (WIDTH + 3) / 2 units of eps.
        # Differences of numbers of unit size may be 0.
        largest = max([1.0, *expected.abs().reshape(-1).tolist()])
        assert_within(result, expected, torch.tensor(100 * EPS32 * largest))


def test_rows_longer_than_a_piece_rescale_their_sums():
    n = 1000
    edge_index = torch.stack([torch.arange(n), torch.zeros(n, dtype=torch.int64)])
    sender = torch.linspace(-50, 50, n)[:, None].requires_grad_()
    V, receiver = torch.randn(n, 1, 4, requires_grad=True), torch.zeros(1, 1, requires_grad=True)
    operands = receiver, sender, V
    exact = doubles(operands)
    names = dict(zip(ATTENTION_OPERANDS["gat"], operands, strict=True))
    y = operators.attention(edge_index, "gat", Size(n, 1), slope=0.5, **names)
    y64 = composed.attention(edge_index, "gat", *exact, None, 0.5, 0.0, n, 1, 0)
    assert_within(y, y64, torch.tensor(100 * EPS32))
    dy = torch.randn_like(y)
    gradients = torch.autograd.grad(y, operands, dy)
    for gradient, expected in zip(
        gradients, torch.autograd.grad(y64, exact, dy.double()), strict=True
    ):
        assert_within(gradient, expected, torch.tensor(100 * EPS32))


def test_gradients_of_large_scores_lose_nothing():
    edge_index, size = GRAPHS["square"]
    # These scores are exact in float32; their logarithm of a sum of powers is not.
    sender = 2.0**20 + torch.randint(0, 16, (size.sources, HEADS)) / 8
    operands = torch.zeros(size.targets, HEADS), sender, torch.randn(size.sources, HEADS, WIDTH)
    operands = [operand.requires_grad_() for operand in operands]
    exact = doubles(operands)
    names = dict(zip(ATTENTION_OPERANDS["gat"], operands, strict=True))
    y = operators.attention(edge_index, "gat", size, slope=0.2, **names)
    y64 = composed.attention(edge_index, "gat", *exact, None, 0.2, 0.0, *size)
    dy = torch.randn_like(y)
    gradients = torch.autograd.grad(y, operands, dy)
    for gradient, expected in zip(
        gradients, torch.autograd.grad(y64, exact, dy.double()), strict=True
    ):
        assert_within(gradient, expected, 100 * EPS32 * (1 + expected.abs().max()))


def test_scores_that_are_not_finite_act_as_in_pytorch():
    n = 300  # more than one piece of a row
    edge_index = torch.stack([torch.arange(n), torch.zeros(n, dtype=torch.int64)])
    sender = torch.full((n, 1), -torch.inf)
    sender[-1] = 1.0
    operands = {"receiver": torch.zeros(1, 1), "sender": sender, "V": torch.randn(n, 1, 2)}
    y = operators.attention(edge_index, "gat", Size(n, 1), slope=0.2, **operands)
    assert torch.equal(y[0], operands["V"][-1])
    sender[5] = torch.nan
    assert operators.attention(edge_index, "gat", Size(n, 1), slope=0.2, **operands).isnan().all()


# ------------------------------------------------------------------------------ changes and cache


def change_by_alias(edge_index):
    edge_index.numpy()[0, 3] = 7


def change_by_data(edge_index):
    edge_index.data = edge_index.flip(0)


def change_in_place(edge_index):
    edge_index[1] = 0


def change_by_swap(edge_index):
    sources = edge_index.numpy()[0]
    sources[[0, 300]] = sources[[300, 0]]


CHANGES = [change_by_alias, change_by_data, change_in_place, change_by_swap]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.usefixtures("way")
def test_each_change_of_edge_index_is_noticed(change):
    edge_index, size = GRAPHS["loops"]
    edge_index = edge_index.clone()
    x = torch.randn(size.sources, 3)
    before = operators.spmm(edge_index, x, size)
    change(edge_index)
    after = operators.spmm(edge_index, x, size)
    assert not torch.equal(before, after)
    expected = composed.spmm(edge_index, None, x.double(), *size, "sum", False)
    assert_within(after, expected, sum_bound(edge_index, size, False, None, x, "sum"))


def test_hashes_of_small_changes_differ():
    edges = np.arange(2 * 101, dtype=np.int64).reshape(2, 101)
    hashes = {host_graph._content_hash(edges)}
    changed = 1
    for k, bit in itertools.product(range(edges.size), (0, 1, 31, 63)):
        edges.reshape(-1).view(np.uint64)[k] ^= np.uint64(1 << bit)
        hashes.add(host_graph._content_hash(edges))
        edges.reshape(-1).view(np.uint64)[k] ^= np.uint64(1 << bit)
        changed += 1
    for k in range(edges.size - 4):  # words that enter one sum or neighbouring ones
        for distance in (1, 4):
            swapped = edges.copy().reshape(-1)
            swapped[[k, k + distance]] = swapped[[k + distance, k]]
            hashes.add(host_graph._content_hash(swapped.reshape(2, -1)))
            changed += 1
    assert len(hashes) == changed


def test_equal_content_shares_one_graph():
    edge_index, size = GRAPHS["square"]
    _, graph = host_graph.adjacency(edge_index, *size)
    assert host_graph.adjacency(edge_index.clone(), *size)[1] is graph
    assert host_graph.adjacency(edge_index, 41, 40, 0)[1] is not graph


def test_the_cache_is_bounded(monkeypatch):
    monkeypatch.setattr(host, "SMALL_ELEMENTS", 0)
    x = torch.randn(100, 4)

    def run(seed):
        operators.spmm(random_edges(100, 100, 1000, seed), x, Size(100, 100), scaling="mean")

    run(0)
    (graph,) = host_graph._cache.values()
    arrays = [graph.values(None, "mean", False), graph.csr(None, False).items]
    arrays += [*graph.csr(None, False).records.walk, graph.csr(None, False).records.cost]
    assert graph.nbytes == sum(array.nbytes for array in arrays)
    monkeypatch.setattr(host_graph, "CACHE_BYTES", 3 * graph.nbytes)
    for seed in range(6):
        run(seed)
    assert len(host_graph._cache) == 3
    assert sum(graph.nbytes for graph in host_graph._cache.values()) <= 3 * graph.nbytes
    monkeypatch.setattr(host_graph, "CACHE_BYTES", 10)  # the latest graph stays
    run(7)
    assert len(host_graph._cache) == 1
    monkeypatch.setattr(host_graph, "CACHE_BYTES", 1 << 30)
    monkeypatch.setattr(host_graph, "CACHE_GRAPHS", 2)
    for seed in range(4):
        run(seed)
    assert len(host_graph._cache) <= 3


def test_the_cache_holds_no_memory_of_edge_index():
    edge_index, size = GRAPHS["loops"]
    edge_index = edge_index.clone()
    _, graph = host_graph.adjacency(edge_index, *size)
    expected = graph.csr(None, False).columns.copy()
    edge_index.zero_()
    assert np.array_equal(graph.csr(None, False).columns, expected)


@pytest.mark.usefixtures("way")
def test_a_graph_first_used_in_inference_mode_can_be_trained_on():
    values, size = GRAPHS["loops"]
    with torch.inference_mode():
        edge_index, x = values.clone(), torch.randn(size.sources, 3)
        expected = operators.spmm(edge_index, x, size)
    x = x.clone().requires_grad_()
    for tensor in (edge_index.clone(), values):
        y = operators.spmm(tensor, x, size)
        y.sum().backward()
        assert torch.equal(y, expected)


# ------------------------------------------------------------------------------ threads and sorts


@pytest.mark.parametrize("loops", [0, 50_000])
def test_threads_do_not_change_a_bit(loops):
    n_nodes, n_edges = 50_000, 600_000
    edge_index, size = random_edges(n_nodes, n_nodes, n_edges), Size(n_nodes, n_nodes, loops)
    x = torch.randn(n_nodes, 8, requires_grad=True)
    operands = {name: torch.randn(n_nodes, 2, 4, requires_grad=True) for name in "RV"}
    operands["a"] = torch.randn(2, 4, requires_grad=True)
    results = []
    threads = torch.get_num_threads()
    try:
        for n in (1, 2, 2):
            torch.set_num_threads(n)
            host_graph._cache.clear()
            torch.manual_seed(1)
            y = operators.spmm(edge_index, x, size, scaling="symmetric")
            z = operators.attention(edge_index, "gatv2", size, slope=0.2, rate=0.5, **operands)
            gradients = torch.autograd.grad([y.sum(), z.sum()], [x, *operands.values()])
            (graph,) = host_graph._cache.values()
            csr = graph.csr(None, False)
            results.append([y, z, *gradients, *map(torch.from_numpy, (csr.columns, csr.items))])
    finally:
        torch.set_num_threads(threads)
    for result in zip(*results, strict=True):
        assert torch.equal(result[0], result[1])
        assert torch.equal(result[1], result[2])


@graphs
def test_items_are_sorted_and_equal_ones_keep_their_order(name):
    edge_index, size = GRAPHS[name]
    edges, graph = host_graph.adjacency(edge_index, *size)
    source, target, counts = (z.numpy() for z in composed.items(edge_index, *size))
    items = np.flatnonzero(counts)
    for by_source, rows, columns in ((False, target, source), (True, source, target)):
        csr = graph.csr(edges, by_source)
        order = items[np.argsort(rows[items], kind="stable")]
        assert np.array_equal(csr.items, order)
        assert np.array_equal(csr.columns, columns[order])
        n_rows = size.sources if by_source else size.targets
        assert np.array_equal(csr.degrees, np.bincount(rows[items], minlength=n_rows))


# ---------------------------------------------------------------------------------------- inputs


def layouts(edge_index):
    yield edge_index.int()
    yield edge_index.flip(0).flip(0)
    yield edge_index.t().contiguous().t()
    yield torch.cat([edge_index, edge_index], 1)[:, : edge_index.size(1)]
    yield torch.cat([torch.zeros(1), edge_index.reshape(-1)]).int()[1:].reshape(2, -1)


@graphs
def test_each_layout_of_edge_index_gives_the_same_bits(name):
    edge_index, size = GRAPHS[name]
    x = torch.randn(size.sources, 4)
    expected = operators.spmm(edge_index, x, size, scaling="mean")
    for layout in layouts(edge_index):
        assert torch.equal(operators.spmm(layout, x, size, scaling="mean"), expected)


def test_operands_need_not_be_contiguous():
    edge_index, size = GRAPHS["square"]
    x, dy = torch.randn(6, size.sources).t(), torch.randn(6, size.targets).t()
    weight = torch.randn(2 * edge_index.size(1))[::2]
    for operation in (operators.spmm, operators.extremum):
        y = operation(edge_index, x, size)
        assert torch.equal(y, operation(edge_index, x.contiguous(), size))
    operands = edge_index, weight, x, dy, *size, False
    for result, expected in zip(
        host.spmm_gradient(*operands),
        host.spmm_gradient(edge_index, weight.contiguous(), x.contiguous(), *operands[3:]),
        strict=True,
    ):
        assert torch.equal(result, expected)


@pytest.mark.parametrize("node", [-1, 3, 1 << 31, -(1 << 40)])
@pytest.mark.parametrize("row", [0, 1])
@pytest.mark.usefixtures("way")
def test_a_node_that_does_not_exist_is_refused(node, row):
    edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
    edge_index[row, 1] = node
    message = rf"edge_index: .*{node}.* Expected: sources 0 to 2, targets 0 to 2"
    with pytest.raises(ArgumentError, match=message):
        operators.spmm(edge_index, torch.ones(3, 1), Size(3, 3))
    assert not host_graph._cache


def test_operands_of_other_shapes_and_dtypes_are_refused():
    edge_index, x = torch.tensor([[0, 1], [1, 0]]), torch.ones(2, 1)
    for wrong in (
        edge_index.float(),
        edge_index.short(),
        edge_index[0],
        torch.zeros((3, 1)).long(),
    ):
        with pytest.raises(ArgumentError, match=r"edge_index: shape .* int64 or int32, shape"):
            operators.spmm(wrong, x, Size(2, 2))
    with pytest.raises(ArgumentError, match=r"x: shape \(1, 1\).* Expected: float32, shape \(2, 1"):
        operators.spmm(edge_index, x[:1], Size(2, 2))
    with pytest.raises(ArgumentError, match=r"x: shape \(2, 1\), torch.float64"):
        operators.spmm(edge_index, x.double(), Size(2, 2))
    with pytest.raises(ArgumentError, match=r"weight: shape \(2,\).* shape \(4,\)"):
        operators.spmm(edge_index, x, Size(2, 2, 2), torch.ones(2))
    with pytest.raises(ArgumentError, match="loops: got 3"):
        operators.spmm(edge_index, x, Size(2, 2, 3))
    V = torch.ones(2, 1, 3)
    with pytest.raises(ArgumentError, match=r"K: shape \(2, 1, 2\)"):
        operators.attention(edge_index, "dot", Size(2, 2), Q=V, K=V[..., :2], V=V)
