"""Layers for PyTorch have the results, gradients and parameters of PyTorch Geometric's."""

import copy
import re
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pyg = pytest.importorskip("torch_geometric.nn")

from accelviz import torch as ours  # noqa: E402
from accelviz.torch import operators  # noqa: E402
from tests.torch_cases import (  # noqa: E402
    LAYERS,
    N_SOURCES,
    N,
    as_form,
    assert_alike,
    both,
    edges,
    features,
    layer_of,
    matrix,
    outcome,
    weights,
)

#: Warnings of PyTorch (sparse tensors are in beta) and, on a GPU, of PyTorch Geometric, which
#: suggests a package for a faster maximum.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse"),
    pytest.mark.filterwarnings("ignore:Converting sparse tensor"),
    pytest.mark.filterwarnings("ignore:.*torch-scatter"),
]
each_device = pytest.mark.parametrize(
    "device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
)
each_layer = pytest.mark.parametrize("case", LAYERS)
FORMS = ("edge_index", "transposed", "EdgeIndex", "csr", "csr of ones", "coo", "csc")
#: Cases that run PyTorch Geometric's code for any graph.
PYGS = ("gcn max", "sage several", "sage median", "gcn decomposed", "gat dropped", "gat max")


@pytest.mark.sample(3)
@each_layer
@each_device
@pytest.mark.parametrize("form", FORMS)
def test_results_and_gradients_are_pygs(case, device, form):
    theirs, layer = both(case, device)
    try:
        expected = outcome(theirs, features(device), as_form(form, device))
    except (NotImplementedError, ValueError) as error:
        ours_alone = form == "csc" and ("alone" in case or "transformer" in case)
        extremum = "max" in case or "min" in case
        if device == "cuda" and form == "csr of ones" and extremum and case not in PYGS:
            ours_alone = True
        if not ours_alone:
            with pytest.raises(type(error), match=re.escape(str(error)[:40])):
                layer(features(device), as_form(form, device))
            return
        theirs, _ = both(case, device)  # new, because the first call has set lazy sizes
        other_form = "csr" if form == "csc" else "edge_index"
        expected = outcome(theirs, features(device), as_form(other_form, device))
    assert_alike(outcome(layer, features(device), as_form(form, device)), expected)


@each_layer
def test_our_operations_run_where_they_can(case, monkeypatch):
    calls = []
    backend = operators.backend
    monkeypatch.setattr(operators, "backend", lambda x: (calls.append(x), backend(x))[1])
    layer = layer_of(ours, case)
    layer(features(), edges())
    assert bool(calls) == (case not in PYGS)


@each_layer
def test_parameters_are_pygs_in_order_and_value(case):
    theirs, layer = both(case)
    assert repr(layer) == repr(theirs)
    expected = theirs.state_dict()
    assert list(layer.state_dict()) == list(expected)
    assert [name for name, _ in layer.named_parameters()] == [
        name for name, _ in theirs.named_parameters()
    ]
    if "lazy" not in case:
        assert_alike(list(layer.state_dict().values()), list(expected.values()), 0, 0)
    layer.load_state_dict(expected, strict=True)
    theirs.load_state_dict(copy.deepcopy(layer).state_dict(), strict=True)
    torch.manual_seed(7)
    theirs.reset_parameters()
    torch.manual_seed(7)
    layer.reset_parameters()
    if "lazy" not in case:
        assert_alike([*layer.parameters()], [*theirs.parameters()], 0, 0)


@each_device
@pytest.mark.parametrize("case", [case for case in LAYERS if case.startswith("gcn")])
def test_edge_weights_have_gradients(case, device):
    theirs, layer = both(case, device)
    pairs, weight = edges(device), weights(device)
    if device == "cuda":  # Of several loops of a node, either library takes any one there.
        loops = (pairs[0] == 3) & (pairs[1] == 3)
        pairs, weight = pairs[:, ~loops], weight.detach()[~loops].requires_grad_()
    expected = outcome(theirs, features(device), pairs, weight)
    assert_alike(outcome(layer, features(device), pairs, weight), expected)


BIPARTITE = [
    *("sage", "sage wide", "sage sum", "sage max", "sage pair", "sage lazy", "gin", "gin max"),
    *("gat", "gat mean", "gat alone", "gat pair", "gatv2", "gatv2 shared", "gatv2 pair"),
]


def _pair(device):
    return features(device, N_SOURCES), features(device)


@each_device
@pytest.mark.parametrize("case", BIPARTITE)
@pytest.mark.parametrize("swapped", [False, True])
def test_sources_and_targets_may_be_other_nodes(case, device, swapped):
    theirs, layer = both(case, device)
    x, size, pairs = _pair(device), (N_SOURCES, N), edges(device, N_SOURCES)
    if swapped:
        x, size, pairs = x[::-1], size[::-1], pairs.flip(0)
    expected = outcome(theirs, x, pairs)
    assert_alike(outcome(layer, x, pairs), expected)
    assert_alike(outcome(layer, x, ours.Edges(pairs, size)), expected)
    if not case.startswith(("gatv2", "transformer")):
        assert_alike(outcome(layer, x, pairs, size=size), expected)


@each_device
@pytest.mark.parametrize("case", ["sage", "sage wide", "sage max", "gin", "gat", "gat pair"])
def test_targets_may_have_no_features(case, device):
    theirs, layer = both(case, device)
    x, pairs = (_pair(device)[0], None), edges(device, N_SOURCES)
    expected = outcome(theirs, x, pairs, size=(N_SOURCES, N))
    assert_alike(outcome(layer, x, pairs, size=(N_SOURCES, N)), expected)


@pytest.mark.sample(7)
@each_device
@pytest.mark.parametrize("case", ["gcn", "gin", "sage", "sage max", "gat", "gatv2", "agnn"])
def test_indices_of_32_bits_have_the_results_of_64(case, device):
    layer = layer_of(ours, case, device)
    expected = outcome(layer, features(device), edges(device))
    assert_alike(outcome(layer, features(device), edges(device).int()), expected)
    decomposed = layer_of(ours, "gcn decomposed", device)
    expected = outcome(decomposed, features(device), edges(device))
    assert_alike(outcome(decomposed, features(device), edges(device).int()), expected)


@each_device
@pytest.mark.parametrize("case", ["gcn", "gcn plain", "gin", "sage", "gat", "gatv2", "agnn"])
def test_fixed_edges_are_those_of_the_tensor(case, device):
    layer = layer_of(ours, case, device)
    expected = outcome(layer, features(device), edges(device))
    assert_alike(outcome(layer, features(device), ours.Edges(edges(device), N)), expected)
    if case.startswith("gcn"):
        expected = outcome(layer, features(device), edges(device), weights(device))
        fixed = ours.Edges(edges(device), N, weights(device))
        assert_alike(outcome(layer, features(device), fixed), [*expected[:2], *expected[3:]])


@each_device
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", ["edge_index", "csr", "EdgeIndex"])
def test_a_cached_graph_is_the_first(device, weighted, form):
    theirs, layer = both("gcn cached", device)
    weight = (weights(device).detach(),) if weighted and form == "edge_index" else ()
    graph, other = as_form(form, device), edges(device).flip(0)
    expected = outcome(theirs, features(device), graph, *weight)
    assert_alike(outcome(layer, features(device), graph, *weight), expected)
    assert_alike(outcome(layer, features(device), other), expected)
    layer.explain, layer._edge_mask = True, torch.ones(0, device=device)
    layer._apply_sigmoid, layer.explain_message = False, lambda inputs, **_: inputs
    assert_alike(outcome(layer, features(device), other), expected)  # PyTorch Geometric's code
    layer.explain = False
    del layer.explain_message
    layer.reset_parameters()
    theirs.load_state_dict(layer.state_dict())
    theirs._cached_edge_index = None
    assert_alike(outcome(layer, features(device), other), outcome(theirs, features(device), other))


def test_the_last_of_several_loops_has_the_weight():
    theirs, layer = both("gcn")
    pairs, weight = edges(), weights().detach()
    is_loop = pairs[0] == pairs[1]
    weight[is_loop] = torch.arange(1.0, 1 + int(is_loop.sum()))
    assert_alike(*(outcome(one, features(), pairs, weight) for one in (layer, theirs)))


@each_device
def test_gcn_is_that_of_dense_matrices(device):
    layer, x, pairs = layer_of(ours, "gcn", device), features(device), edges(device)
    A = torch.zeros(N, N, device=device).index_put(
        (pairs[1], pairs[0]), torch.ones(()).to(device), True
    )
    A = A - torch.diag(A.diagonal()) + torch.eye(N, device=device)
    root = A.sum(1).pow(-0.5)
    expected = root[:, None] * A * root @ x @ layer.lin.weight.T + layer.bias
    torch.testing.assert_close(layer(x, pairs), expected, rtol=1e-4, atol=1e-5)


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
    mean = torch.stack([layer(x, pairs) for _ in range(400)]).mean(0)
    layer.eval()
    torch.testing.assert_close(layer(x, pairs), layer(x, pairs))
    torch.testing.assert_close(mean, layer(x, pairs), rtol=0, atol=0.5)


def test_a_changed_sparse_tensor_is_converted_again():
    theirs, layer = both("gin fixed")
    adj = matrix().to_sparse_csr()
    layer(features(), adj)
    adj.values().mul_(3)
    assert_alike(outcome(layer, features(), adj), outcome(theirs, features(), adj))


def test_the_example_of_the_docs_learns_the_same_from_pygs_layers():
    """As in docs/pytorch.md, only the line with GCNConv differs."""
    text = (Path(__file__).parents[1] / "docs" / "pytorch.md").read_text("utf-8")
    code = re.search(r"```python\n(import torch.*?)```", text, re.DOTALL)[1]
    line = re.search(r"from accelviz.torch import GCNConv  # was: (.*)", code)
    ours, theirs = {}, {}
    exec(code, ours)
    exec(code.replace(line[0], line[1]), theirs)
    assert type(theirs["net"].first) is not type(ours["net"].first)
    np.testing.assert_allclose(ours["losses"], theirs["losses"], atol=1e-4)
    assert ours["losses"][-1] < ours["losses"][0] - 0.1


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


@pytest.mark.parametrize("widths", [(5, 9), (9, 5)], ids=["wider", "narrower"])
@pytest.mark.parametrize("aggr", ["sum", "mean"])
@pytest.mark.parametrize("train_eps", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_gin_and_the_first_layer_of_its_network(widths, aggr, train_eps, bias):
    """One node of autograd has both; gradients of gradients and hooks are PyTorch Geometric's."""
    torch.manual_seed(1)
    edge_index = torch.randint(0, 30, (2, 120))
    x = torch.randn(30, widths[0], requires_grad=True)
    network = torch.nn.Sequential(torch.nn.Linear(*widths, bias=bias), torch.nn.Tanh())
    options = {"eps": 0.5, "train_eps": train_eps, "aggr": aggr}
    results = []
    for layer in [module.GINConv(network, **options) for module in (pyg, ours)]:
        y = layer(x, edge_index)
        inputs = [x, *layer.parameters()]
        gradients = torch.autograd.grad(y.square().sum(), inputs, create_graph=True)
        norm = sum(gradient.square().sum() for gradient in gradients)
        results.append([y, *gradients, *torch.autograd.grad(norm, inputs)])
    for expected, result in zip(*results, strict=True):
        torch.testing.assert_close(result, expected, rtol=1e-3, atol=1e-3)
    seen = []
    with network[0].register_forward_hook(lambda *arguments: seen.append(arguments)):
        torch.testing.assert_close(layer(x, edge_index), results[0][0])
    with network.register_forward_hook(lambda *arguments: seen.append(arguments)):
        layer(x, edge_index)
    assert [type(module) for module, *_ in seen] == [torch.nn.Linear, torch.nn.Sequential]
