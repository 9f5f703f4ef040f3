"""`strategy=` of the PyTorch layers runs plans of a strategy, forward and backward."""

import contextlib
import itertools

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from accelviz import torch as ours  # noqa: E402
from accelviz.devices import find_device  # noqa: E402
from accelviz.errors import ArgumentError  # noqa: E402
from accelviz.strategies import find_strategy, strategies  # noqa: E402
from accelviz.torch import strategies as strategies_module  # noqa: E402
from tests.compilers import needs_compiler  # noqa: E402
from tests.torch_cases import (  # noqa: E402
    LAYERS,
    N_SOURCES,
    N,
    assert_alike,
    both,
    edges,
    features,
    matrix,
    outcome,
    weights,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse"),
    pytest.mark.filterwarnings("ignore:The .grad attribute"),
    pytest.mark.filterwarnings("ignore:.*should not be instantiated"),
    pytest.mark.filterwarnings("ignore:.*torch-scatter"),
]
each_device = pytest.mark.parametrize(
    "device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
)
#: Strategies whose kernels round to TF32 on a GPU.
ROUNDED = ("tc_gnn", "windows", "window_tiles")


def layer_with(case, strategy, device):
    name, arguments, options = LAYERS[case]
    torch.manual_seed(1)
    if arguments == ("mlp",):
        arguments = (torch.nn.Linear(6, 4),)
    return getattr(ours, name)(*arguments, strategy=strategy, **options).to(device)


def unique_edges(device):
    return torch.unique(edges(device), dim=1)


@pytest.fixture
def runs(monkeypatch):
    """Record the operation and the strategy of each run."""
    calls, run = [], strategies_module._run

    def recorded(name, strategy, *arguments, **operands):
        calls.append((name, strategy.name))
        return run(name, strategy, *arguments, **operands)

    monkeypatch.setattr(strategies_module, "_run", recorded)
    return calls


@each_device
@pytest.mark.parametrize("strategy", [name for name in strategies("spmm") if name != "cusparse"])
@pytest.mark.parametrize("case", ["gcn", "sage", "gin"])
def test_products_of_every_strategy(case, strategy, device, runs):
    weight = (weights(device),) if case == "gcn" else ()
    expected = outcome(layer_with(case, None, device), features(device), edges(device), *weight)
    layer = layer_with(case, strategy, device)
    tolerance = {"rtol": 2e-2, "atol": 2e-2} if strategy in ROUNDED else {}
    assert_alike(outcome(layer, features(device), edges(device), *weight), expected, **tolerance)
    scores = strategy if strategy in strategies("sddmm") else "lane_groups"
    products = [("spmm", strategy), *([("sddmm", scores)] if weight else []), ("spmm", strategy)]
    assert runs == products


@each_device
@pytest.mark.parametrize(
    ("case", "operation"),
    [("gat", "gat"), ("gatv2", "gatv2"), ("agnn", "cosine"), ("transformer", "dot")],
)
def test_attention_of_every_strategy(case, operation, device, runs):
    pairs = unique_edges(device)
    expected = outcome(layer_with(case, None, device), features(device), pairs)
    for strategy in strategies(operation):
        runs.clear()
        layer = layer_with(case, strategy, device)
        assert_alike(outcome(layer, features(device), pairs), expected)
        assert runs == [(operation, strategy), (f"{operation}_gradient", strategy)]


def test_models_have_strategies(runs):
    pairs = edges("cpu")
    for name in ("GCN", "GraphSAGE", "GIN"):
        results = []
        for options in ({}, {"strategy": "gnnadvisor"}):
            torch.manual_seed(0)
            model = getattr(ours, name)(6, 8, num_layers=2, **options)
            results.append(outcome(model, features("cpu"), pairs))
        assert_alike(*results)
        assert runs == [("spmm", "gnnadvisor")] * 4
        runs.clear()
        assert "`strategy`" in getattr(ours, name).__doc__
    with pytest.raises(ArgumentError, match="strategy"):
        ours.GAT(6, 8, num_layers=2, strategy="gnnadvisor")


@each_device
def test_other_forms_and_extrema(device, runs):
    for case, name in itertools.product(("sage max", "sage min"), ("row_warp", "by_source")):
        with torch.no_grad():  # PyTorch's gradient counts an initial 0 if the extremum is 0
            x = features(device).round().clamp(0, 1) * (1 if case == "sage max" else -1)
        pairs = unique_edges(device)
        expected = outcome(both(case)[0].to(device), x.requires_grad_(), pairs)
        layer = layer_with(case, name, device)
        assert_alike(outcome(layer, x, pairs), expected)
        assert runs[-1] == ("spmm_extremum_gradient", name)
    x, pairs = (features(device, N_SOURCES), features(device)), edges(device, N_SOURCES)
    expected = outcome(layer_with("sage", None, device), x, pairs)
    assert_alike(outcome(layer_with("sage", "gnnadvisor", device), x, pairs), expected)
    adj = matrix(device).to_sparse_csr()
    expected = outcome(layer_with("gcn", None, device), features(device), adj)
    choices = {"spmm": find_strategy("merge_path"), "sddmm": "tc_gnn"}
    assert_alike(outcome(layer_with("gcn", choices, device), features(device), adj), expected)


@needs_compiler
@pytest.mark.parametrize("name", strategies("spmm_extremum_gradient"))
def test_gradients_of_extrema_by_their_kernels(name, monkeypatch):
    """With ties, and with extrema of 0, whose gradient PyTorch shares with an initial 0."""
    x, pairs = features().round().requires_grad_(), unique_edges("cpu")
    expected = outcome(both("sage max")[0], x, pairs)
    emulator = contextlib.nullcontext(find_device("emulator"))
    monkeypatch.setattr(strategies_module, "device_of", lambda tensor: emulator)
    monkeypatch.setattr(strategies_module, "as_array", lambda tensor, device: tensor.numpy())
    choice = {"spmm_extremum_gradient": name}
    assert_alike(outcome(layer_with("sage max", choice, "cpu"), x, pairs), expected)


def test_a_graph_is_built_once_and_again_after_a_change(monkeypatch):
    built, build = [], strategies_module._Matrix.__init__
    monkeypatch.setattr(
        strategies_module._Matrix,
        "__init__",
        lambda self, *arguments: (built.append(1), build(self, *arguments))[1],
    )
    layer, plain = layer_with("gcn", "merge_path", "cpu"), layer_with("gcn", None, "cpu")
    array = edges().numpy().copy()
    pairs = torch.from_numpy(array)
    for _ in range(3):
        layer(features(), pairs)
    assert len(built) == 1
    array[:, 0] = 7, 8  # PyTorch does not notice
    assert_alike([layer(features(), pairs)], [plain(features(), pairs)])
    assert len(built) == 2


def test_dropout_and_compiled_models():
    layer = ours.GATConv(6, 4, dropout=0.5, strategy="fusegnn_gas")
    torch.manual_seed(0)
    first = layer(features(), unique_edges("cpu"))
    torch.manual_seed(0)
    torch.testing.assert_close(layer(features(), unique_edges("cpu")), first)
    torch._dynamo.reset()
    layer = layer_with("gcn", "merge_path", "cpu")
    expected = outcome(layer, features(), edges())
    compiled = torch.compile(layer, backend="aot_eager")
    assert_alike(outcome(compiled, features(), edges()), expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ours.GCNConv(6, 4, strategy="nothing"), "strategy: there is no 'nothing'"),
        (
            lambda: ours.GATConv(6, 4, strategy="tc_gnn"),
            "strategy: 'tc_gnn' is of spmm, sddmm, not of",
        ),
        (
            lambda: ours.SAGEConv(6, 4, strategy={"sddmm": "tc_gnn"}),
            "strategy: 'sddmm' has no effect on SAGEConv. Expected: strategies of spmm",
        ),
        (
            lambda: ours.SAGEConv(6, 4, aggr="median", strategy="tc_gnn"),
            "strategy: SAGEConv with this aggregation",
        ),
        (
            lambda: ours.AGNNConv(strategy=find_strategy("merge_path")),
            "strategy: 'merge_path' is of spmm",
        ),
        (
            lambda: ours.GCNConv(6, 4, strategy="tc_gnn").double()(features().double(), edges()),
            "strategy: GCNConv runs PyTorch Geometric's code for this call",
        ),
        (
            lambda: ours.GATConv(6, 4, strategy="row_warp")(features(), edges()),
            "edge_index: 12 duplicate edges",
        ),
        (
            lambda: ours.GCNConv(6, 4, strategy="tc_gnn")(features(), edges() + N),
            "edge_index: nodes",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:.*float64")
def test_refusals(call, message):
    with pytest.raises(ArgumentError) as error:
        call()
    assert str(error.value).startswith(message), error.value
