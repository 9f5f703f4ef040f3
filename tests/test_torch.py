"""Layers for PyTorch, compared with PyTorch Geometric's or, without it, with dense matrices."""

import copy
import re
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from accelviz import torch as ours  # noqa: E402
from accelviz.errors import ArgumentError  # noqa: E402

#: Warnings of PyTorch (CSR is in beta; Dynamo reads `.grad` of any tensor) and, on a GPU, of
#: PyTorch Geometric, which suggests a package for a faster maximum.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse"),
    pytest.mark.filterwarnings("ignore:The .grad attribute"),
    pytest.mark.filterwarnings("ignore:.*should not be instantiated"),
    pytest.mark.filterwarnings("ignore:.*torch-scatter"),
]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
each_device = pytest.mark.parametrize("device", DEVICES)
N = 40


def edges(device, repeated=False):
    rng = np.random.default_rng(0)
    pairs = np.unique(rng.integers(0, N - 2, (2, 150)), axis=1)  # two nodes are isolated
    pairs = np.concatenate([pairs, pairs[:, :7]], axis=1) if repeated else pairs
    return torch.from_numpy(pairs[:, rng.permutation(pairs.shape[1])]).to(device)


def mlp():
    return torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 4))


LAYERS = {
    "gcn": ("GCNConv", (6, 4), {}),
    "gcn wide": ("GCNConv", (6, 9), {}),
    "gcn plain": ("GCNConv", (6, 4), {"normalize": False, "bias": False}),
    "gin": ("GINConv", (), {"train_eps": True, "eps": 0.3}),
    "gin fixed": ("GINConv", (), {}),
    "sage": ("SAGEConv", (6, 4), {}),
    "sage wide": ("SAGEConv", (6, 9), {"normalize": True}),
    "sage sum": ("SAGEConv", (6, 4), {"aggr": "sum", "project": True, "root_weight": False}),
    "sage max": ("SAGEConv", (6, 4), {"aggr": "max"}),
    "gat": ("GATConv", (6, 4), {"heads": 3}),
    "gat mean": ("GATConv", (6, 4), {"heads": 3, "concat": False, "residual": True}),
    "gat alone": ("GATConv", (6, 4), {"add_self_loops": False}),
    "gatv2": ("GATv2Conv", (6, 4), {"heads": 2}),
    "gatv2 shared": ("GATv2Conv", (6, 4), {"heads": 2, "share_weights": True, "concat": False}),
    "agnn": ("AGNNConv", (), {}),
    "agnn fixed": ("AGNNConv", (), {"requires_grad": False}),
}
each_layer = pytest.mark.parametrize("case", LAYERS)


def layer_of(module, case, device):
    name, arguments, options = LAYERS[case]
    torch.manual_seed(1)
    arguments = (mlp(),) if name == "GINConv" else arguments
    return getattr(module, name)(*arguments, **options).to(device)


def features(device):
    torch.manual_seed(2)
    # Some are equal, as after a ReLU, so that several neighbors have the maximum.
    return torch.randn(N, 6, device=device).clamp(min=-0.5).requires_grad_()


def outcome(layer, x, *arguments):
    """Return the result and every gradient of a loss that weights each element differently."""
    y = layer(x, *arguments)
    torch.manual_seed(3)
    # PyG registers parameters in a different order.
    named = [parameter for _, parameter in sorted(layer.named_parameters())]
    inputs = [x, *(parameter for parameter in (*arguments[1:], *named) if parameter.requires_grad)]
    return [y, *torch.autograd.grad((y * torch.randn_like(y)).sum(), inputs)]


def assert_alike(results, expected):
    assert len(results) == len(expected)
    for one, other in zip(results, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@each_layer
@each_device
@pytest.mark.parametrize("form", ["edge_index", "csr"])
def test_results_gradients_and_state_dicts_are_pygs(case, device, form):
    pyg = pytest.importorskip("torch_geometric.nn")
    theirs, layer = layer_of(pyg, case, device), layer_of(ours, case, device)
    layer.load_state_dict(theirs.state_dict(), strict=True)
    theirs.load_state_dict(copy.deepcopy(layer).state_dict(), strict=True)
    pairs = edges(device)
    expected = outcome(theirs, features(device), pairs)
    if form == "csr":
        ones = torch.ones(pairs.shape[1], device=device)
        pairs = torch.sparse_coo_tensor(pairs.flip(0), ones, (N, N)).coalesce().to_sparse_csr()
    assert_alike(outcome(layer, features(device), pairs), expected)


@each_device
def test_gcn_is_that_of_dense_matrices(device):
    layer, x, pairs = layer_of(ours, "gcn", device), features(device), edges(device)
    A = torch.zeros(N, N, device=device)
    A[pairs[1], pairs[0]] = 1
    A = A + torch.diag((A.diagonal() == 0).float())
    root = A.sum(1).pow(-0.5)
    expected = root[:, None] * A * root @ x @ layer.lin.weight.T + layer.bias
    torch.testing.assert_close(layer(x, pairs), expected, rtol=1e-4, atol=1e-5)


@each_device
@pytest.mark.parametrize("weighted", [False, True])
def test_an_improved_gcn_is_pygs(device, weighted):
    pyg = pytest.importorskip("torch_geometric.nn")
    pairs = edges(device)
    weight = torch.linspace(0.5, 2, pairs.shape[1], device=device) if weighted else None
    theirs, layer = (layers.GCNConv(6, 4, improved=True).to(device) for layers in (pyg, ours))
    layer.load_state_dict(theirs.state_dict())
    x = features(device)
    torch.testing.assert_close(
        layer(x, pairs, weight), theirs(x, pairs, weight), rtol=1e-4, atol=1e-5
    )


@each_device
@pytest.mark.parametrize("repeated", [False, True])
def test_edge_weights_have_gradients(device, repeated):
    pyg = pytest.importorskip("torch_geometric.nn")
    pairs = edges(device, repeated)
    pairs = pairs[:, pairs[0] != pairs[1]]
    torch.manual_seed(5)
    weight = torch.rand(pairs.shape[1], device=device).requires_grad_()
    theirs, layer = layer_of(pyg, "gcn", device), layer_of(ours, "gcn", device)
    layer.load_state_dict(theirs.state_dict())
    expected = outcome(theirs, features(device), pairs, weight)
    assert_alike(outcome(layer, features(device), pairs, weight), expected)


@each_device
@pytest.mark.parametrize("case", ["gat", "gatv2"])
def test_dropout_of_attention_follows_pytorchs_seed(case, device):
    layer, x, pairs = layer_of(ours, case, device), features(device).detach(), edges(device)
    layer.dropout = 0.5
    results = []
    for seed in (7, 7, 8):
        torch.manual_seed(seed)
        results.append(layer(x, pairs))
    torch.testing.assert_close(results[0], results[1])
    assert not torch.allclose(results[0], results[2])
    layer.eval()
    torch.testing.assert_close(layer(x, pairs), layer(x, pairs))


@each_layer
@each_device
def test_torch_compile_does_not_break_it(case, device):
    layer, pairs = layer_of(ours, case, device), edges(device)
    expected = outcome(layer, features(device), pairs)
    compiled = torch.compile(layer, backend="aot_eager")
    assert_alike(outcome(compiled, features(device), pairs), expected)


def test_the_example_of_the_docs_learns_the_same_from_pygs_layers():
    """As in docs/training.md, only the line with GCNConv differs."""
    pytest.importorskip("torch_geometric")
    text = (Path(__file__).parents[1] / "docs/training.md").read_text("utf-8")
    code = re.search(r"```python\n(import torch.*?)```", text, re.DOTALL)[1]
    line = re.search(r"from accelviz.torch import GCNConv  # was: (.*)", code)
    ours, theirs = {}, {}
    exec(code, ours)
    exec(code.replace(line[0], line[1]), theirs)
    assert type(theirs["net"].first) is not type(ours["net"].first)
    np.testing.assert_allclose(ours["losses"], theirs["losses"], atol=1e-4)
    assert ours["losses"][-1] < ours["losses"][0] - 0.1


@each_device
def test_edges_are_made_once_for_a_tensor_and_again_when_it_changes(device):
    pairs = edges(device)
    first = ours.Edges.of(pairs, N, True)
    assert ours.Edges.of(pairs, N, True) is first
    assert ours.Edges.of(pairs.clone(), N, True) is not first
    pairs[0, 0] = (pairs[0, 0] + 1) % N
    assert ours.Edges.of(pairs, N, True) is not first


@pytest.mark.gpu
def test_the_current_stream_is_respected():
    layer, x, pairs = layer_of(ours, "gat", "cuda"), features("cuda"), edges("cuda")
    expected = layer(x, pairs)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        doubled = x * 2
        result = layer(doubled, pairs)
    stream.synchronize()
    torch.testing.assert_close(result, layer(x * 2, pairs))
    assert not torch.allclose(result, expected)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: ours.GCNConv(-1, 4), "in_channels"),
        (lambda: ours.GATConv(6, 4, edge_dim=3), "edge_dim"),
        (lambda: ours.SAGEConv(6, 4, aggr="lstm"), "aggr"),
        (lambda: ours.GCNConv(6, 4)(torch.randn(5, 6), torch.tensor([[0], [5]])), "edge_index"),
        (lambda: ours.GCNConv(6, 4)(torch.randn(5, 6), torch.zeros(3, 2).long()), "edge_index"),
        (lambda: ours.GCNConv(6, 4)(torch.randn(5, 6).double(), edges("cpu")), "x"),
        (lambda: ours.GATConv(6, 4)(torch.randn(N, 6), edges("cpu", True)), "edge_index"),
        (lambda: ours.GCNConv(6, 4)(torch.randn(5, 6), torch.eye(6).to_sparse_csr()), "edge_index"),
        (lambda: ours.GCNConv(6, 4)(torch.randn(N, 6), edges("cpu"), torch.ones(3)), "edge_weight"),
        (lambda: ours.SAGEConv(6, 4)(torch.randn(2, 5, 6), edges("cpu")), "x"),
    ],
)
def test_what_is_not_there_is_said(call, argument):
    with pytest.raises(ArgumentError, match=f"^{argument}: "):
        call()
