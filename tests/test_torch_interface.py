"""What surrounds a layer: models, explanations, hooks, subclasses, compilation, types, errors."""

import copy
import inspect
import pickle
import warnings

import pytest

torch = pytest.importorskip("torch")
pyg = pytest.importorskip("torch_geometric.nn")

from torch_geometric import EdgeIndex  # noqa: E402
from torch_geometric.data import Data, HeteroData  # noqa: E402
from torch_geometric.explain import Explainer, GNNExplainer  # noqa: E402

from accelviz import load_graph  # noqa: E402
from accelviz import torch as ours  # noqa: E402
from accelviz.errors import ArgumentError, GraphError  # noqa: E402
from accelviz.torch import host  # noqa: E402
from accelviz.torch import layer as layer_module  # noqa: E402
from tests.torch_cases import (  # noqa: E402
    LAYERS,
    N_SOURCES,
    N,
    assert_alike,
    both,
    edges,
    features,
    layer_of,
    matrix,
    outcome,
    weights,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse"),
    pytest.mark.filterwarnings("ignore:.*torch-scatter"),
    pytest.mark.filterwarnings("ignore:.*float64"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*should not be instantiated"),
]
#: A case of each layer.
ONE_EACH = ("gcn", "gin", "sage", "sage max", "gat", "gatv2", "transformer", "agnn")
LAZY = [case for case in LAYERS if "lazy" in case]
each_kind = pytest.mark.parametrize("case", ONE_EACH)
each_device = pytest.mark.parametrize(
    "device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
)


@pytest.fixture
def no_operations(monkeypatch):
    """Let every operation of ours fail, so that only PyTorch Geometric's code can compute."""
    for name in ("spmm", "extremum", "attention"):
        monkeypatch.delattr(host, name)


# ------------------------------------------------------------------ PyTorch Geometric's own code


@pytest.mark.parametrize("name", sorted({type(both(case)[1]).__name__ for case in ONE_EACH}))
def test_signatures_and_documentation_have_pygs_parameters(name):
    layer, theirs = getattr(ours, name), getattr(pyg, name)
    parameters = dict(inspect.signature(layer).parameters)
    strategy = parameters.pop("strategy")
    assert (strategy.kind, strategy.default) == (inspect.Parameter.KEYWORD_ONLY, None)
    assert parameters == dict(inspect.signature(theirs).parameters)
    called, expected = (inspect.signature(kind.forward).parameters for kind in (layer, theirs))
    assert [(parameter.name, parameter.default) for parameter in called.values()] == [
        (parameter.name, parameter.default) for parameter in expected.values()
    ]
    assert "`strategy`" in layer.__doc__
    assert inspect.getdoc(theirs) in layer.__doc__


def test_a_subclass_has_its_own_signature():
    class Mine(ours.GCNConv):
        """Mine."""

        def __init__(self, n_features):
            super().__init__(n_features, 4, strategy="gnnadvisor")

    assert [*inspect.signature(Mine).parameters] == ["n_features"]
    assert Mine.__doc__ == "Mine."
    assert Mine(6).lin.weight.shape == (4, 6)


@pytest.mark.usefixtures("no_operations")
def test_edge_features_and_returned_attention_are_pygs():
    attributes = torch.randn(edges().shape[1], 3)
    for case in ("gat edges", "gatv2 edges"):
        theirs, layer = both(case)
        expected = outcome(theirs, features(), edges(), attributes)
        assert_alike(outcome(layer, features(), edges(), attributes), expected)
        expected = theirs(features(), edges(), return_attention_weights=True)
        y, (pairs, alpha) = layer(features(), edges(), return_attention_weights=True)
        assert_alike([y, pairs, alpha], [expected[0], *expected[1]])


@pytest.mark.usefixtures("no_operations")
@pytest.mark.parametrize("method", ["message", "aggregate", "update", "propagate"])
@pytest.mark.parametrize("level", ["class", "base", "mixin", "instance"])
def test_an_overridden_method_is_called(method, level):
    calls = []

    def override(self, *arguments, **options):
        calls.append(method)
        return getattr(pyg.SAGEConv, method)(self, *arguments, **options)

    if method == "message":  # PyTorch Geometric reads the names of its parameters

        def override(self, x_j):
            calls.append(method)
            return x_j

    elif method == "aggregate":

        def override(self, inputs, index, ptr=None, dim_size=None):
            calls.append(method)
            return pyg.MessagePassing.aggregate(self, inputs, index, ptr, dim_size)

    elif method == "update":

        def override(self, inputs):
            calls.append(method)
            return inputs

    override.__name__ = method
    if level == "instance":
        layer = layer_of(ours, "sage")
        if method == "propagate":
            layer.explain = True  # sets and removes an attribute of this name
            layer.explain = False
        setattr(layer, method, override.__get__(layer))
    elif level == "class":
        layer = type("Mine", (ours.SAGEConv,), {method: override})(6, 4)
    elif level == "base":
        base = type("Base", (ours.SAGEConv,), {method: override})
        base(6, 4)  # PyTorch Geometric changes a class when it makes the first instance
        layer = type("Mine", (base,), {})(6, 4)
    else:
        mixin = type("Mixin", (), {method: override})
        layer = type("Mine", (mixin, ours.SAGEConv), {})(6, 4)
    layer(features(), edges())
    assert calls == [method]


def test_a_subclass_without_such_a_method_runs_our_operations():
    class Mine(ours.GCNConv):
        def forward(self, x, edge_index):
            return super().forward(x, edge_index).relu()

    layer = Mine(6, 4)
    expected = layer(features(), edges())
    assert not Mine._overridden
    assert not type("Yours", (Mine,), {})._overridden
    theirs = pyg.GCNConv(6, 4)
    theirs.load_state_dict(layer.state_dict())
    assert_alike([expected], [theirs(features(), edges()).relu()])


@pytest.mark.usefixtures("no_operations")
@pytest.mark.parametrize("kind", ["propagate", "message", "aggregate"])
@pytest.mark.parametrize("when", ["_pre", ""])
def test_hooks_of_message_passing_are_called(kind, when):
    calls = []
    layer = layer_of(ours, "sage")
    hook = getattr(layer, f"register_{kind}_forward{when}_hook")(lambda *_: calls.append(kind))
    if kind == "message" and when:
        hook.remove()
        hook = layer.register_message_forward_pre_hook(
            lambda _, inputs: (calls.append(kind), inputs)[1]
        )
    layer(features(), edges())
    assert calls == [kind]
    hook.remove()
    with pytest.raises(AttributeError):  # the fixture has removed our operations
        layer(features(), edges())


@pytest.mark.parametrize("case", ["gcn", "gcn wide", "sage", "sage wide", "gat", "gatv2"])
def test_hooks_of_linear_modules_see_pygs_arguments(case):
    theirs, layer = both(case)
    seen = {id(theirs): [], id(layer): []}
    for model in (theirs, layer):
        for child in model.children():
            child.register_forward_hook(
                lambda _, inputs, out, model=model: seen[id(model)].extend([*inputs, out])
            )
    theirs(features(), edges())
    layer(features(), edges())
    assert_alike(seen[id(layer)], seen[id(theirs)])


@each_kind
def test_explanations_are_pygs(case):
    def explain(layer):
        model = torch.nn.Module()
        model.layer = layer
        model.forward = lambda x, edge_index: layer(x, edge_index).log_softmax(-1)
        torch.manual_seed(0)
        explainer = Explainer(
            model,
            GNNExplainer(epochs=3),
            explanation_type="model",
            node_mask_type="attributes",
            edge_mask_type="object",
            model_config={
                "mode": "multiclass_classification",
                "task_level": "node",
                "return_type": "log_probs",
            },
        )
        explanation = explainer(features().detach(), edges())
        return [explanation.edge_mask, explanation.node_mask]

    theirs, layer = both(case)
    assert_alike(explain(layer), explain(theirs))
    assert_alike(outcome(layer, features(), edges()), outcome(theirs, features(), edges()))


# ------------------------------------------------------------------------------------- models


def test_heterogeneous_models_are_pygs():
    data = HeteroData()
    data["paper"].x, data["author"].x = features().detach(), features("cpu", N_SOURCES).detach()
    data["author", "writes", "paper"].edge_index = edges("cpu", N_SOURCES)
    data["paper", "cites", "paper"].edge_index = edges()
    data["paper", "rev", "author"].edge_index = edges("cpu", N_SOURCES).flip(0)

    def of_types(layers):
        convolution = pyg.HeteroConv(
            {
                ("author", "writes", "paper"): layers.SAGEConv((-1, -1), 4),
                ("paper", "cites", "paper"): layers.GCNConv(-1, 4),
                ("paper", "rev", "author"): layers.GATConv((-1, -1), 4, add_self_loops=False),
            },
            aggr="sum",
        )
        return convolution(data.x_dict, data.edge_index_dict)

    def transformed(layers):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first = layers.SAGEConv((-1, -1), 5)
                self.last = layers.GATv2Conv((-1, -1), 4, add_self_loops=False)

            def forward(self, x, edge_index):
                return self.last(self.first(x, edge_index).relu(), edge_index)

        return pyg.to_hetero(Net(), data.metadata())(data.x_dict, data.edge_index_dict)

    for build in (of_types, transformed):
        results = []
        for layers in (pyg, ours):
            torch.manual_seed(0)
            results.append([*build(layers).values()])
        assert_alike(*results)


@pytest.mark.parametrize(
    ("model", "layer"),
    [("GCN", "GCNConv"), ("GraphSAGE", "SAGEConv"), ("GIN", "GINConv"), ("GAT", "GATConv")],
)
def test_basic_models_take_our_layers(model, layer):
    base = getattr(pyg, model)

    class Mine(base):
        def init_conv(self, *arguments, **options):
            theirs = super().init_conv(*arguments, **options)
            theirs.__class__ = getattr(ours, layer)
            return theirs

    results = []
    for kind in (base, Mine):
        torch.manual_seed(0)
        network = kind(6, 8, num_layers=3, out_channels=4, jk="cat")
        results.append(outcome(network, features(), edges()))
    assert_alike(*results)


@pytest.mark.parametrize("case", ["gcn", "sage", "gat alone"])
def test_directed_graphs_are_pygs(case):
    theirs, layer = (pyg.DirGNNConv(layer, alpha=0.3) for layer in both(case))
    layer.load_state_dict(theirs.state_dict())
    assert_alike(outcome(layer, features(), edges()), outcome(theirs, features(), edges()))


def test_clusters_of_a_graph_are_pygs():
    theirs, layer = both("sage")
    data = Data(features().detach(), edges())
    parts = [data.subgraph(torch.arange(first, N, 3)) for first in range(3)]
    for part in parts:
        assert_alike(
            outcome(layer, part.x, part.edge_index), outcome(theirs, part.x, part.edge_index)
        )


# -------------------------------------------------------------------------------- compilation


def _random(seed):
    generator = torch.Generator().manual_seed(seed)
    n_nodes, n_edges = 30 + 7 * seed, 100 + 31 * seed
    pairs = torch.randint(0, n_nodes, (2, n_edges), generator=generator)
    return torch.randn(n_nodes, 6, generator=generator).requires_grad_(), pairs


@pytest.mark.long
@pytest.mark.parametrize("case", [*ONE_EACH, "gcn wide", "gcn reversed", "gat mean"])
def test_other_graphs_are_not_compiled_again(case):
    from torch._dynamo.testing import CompileCounterWithBackend

    torch._dynamo.reset()
    layer, counter = layer_of(ours, case), CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(layer, backend=counter, fullgraph=True, dynamic=True)
    graphs = []
    for seed in range(5):
        x, pairs = _random(seed)
        assert_alike(outcome(compiled, x, pairs), outcome(layer, x, pairs), atol=1e-4)
        graphs.append(counter.frame_count)
    assert graphs[1:] == [graphs[1]] * 4
    compiled(*_random(0))
    targets = {str(node.target) for graph in counter.graphs for node in graph.graph.nodes}
    assert any(target.startswith("accelviz.") for target in targets), targets


@pytest.mark.long
@pytest.mark.parametrize(("case", "weighted"), [("gcn", True), ("sage max", False), ("gat", False)])
def test_inductor_compiles_a_training_step(case, weighted):
    layer = layer_of(ours, case)
    arguments = features(), edges(), *([weights()] if weighted else [])
    compiled = torch.compile(layer, fullgraph=True)
    assert_alike(outcome(compiled, *arguments), outcome(layer, *arguments))


@each_kind
def test_exported_layers_take_other_graphs(case):
    layer = layer_of(ours, case)
    nodes, pairs = torch.export.Dim("nodes", min=2), torch.export.Dim("pairs", min=2)
    program = torch.export.export(layer, _random(0), dynamic_shapes=({0: nodes}, {1: pairs}))
    for seed in range(3):
        assert_alike([program.module()(*_random(seed))], [layer(*_random(seed))])


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("case", ONE_EACH[:-1])
def test_scripted_and_traced_layers_are_pygs(case):
    layer = layer_of(ours, case)
    expected = layer(features(), edges())
    assert_alike([torch.jit.trace(layer, (features(), edges()))(features(), edges())], [expected])
    if case not in ("gin", "gat", "gatv2", "transformer"):  # PyTorch Geometric cannot script these
        assert_alike([torch.jit.script(layer)(features(), edges())], [expected])
    assert_alike([layer(features(), edges())], [expected])


@each_kind
def test_layers_are_copied_and_pickled(case):
    layer = layer_of(ours, case)
    expected = layer(features(), edges())
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert_alike([other(features(), edges())], [expected])


# --------------------------------------------------------------------- types and modes of autograd


@pytest.mark.parametrize("case", sorted({*LAYERS} - {*LAZY, "sage median"}))
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_types_of_16_bits_are_close_to_32(case, dtype):
    layer, reference = both(case)[1], both(case)[1]
    layer = layer.to(dtype)
    y = layer(features().to(dtype), edges())
    assert y.dtype == dtype
    tolerance = 0.05 if dtype == torch.float16 else 0.3
    torch.testing.assert_close(y.float(), reference(features(), edges()), rtol=0.1, atol=tolerance)
    y.sum().backward()


@pytest.mark.parametrize("case", sorted({*LAYERS} - {*LAZY}))
@pytest.mark.parametrize("weighted", [False, True])
def test_autocast_has_pygs_types(case, weighted):
    if weighted and not case.startswith("gcn"):
        return
    theirs, layer = both(case)
    weight = (weights().detach(),) if weighted else ()
    with torch.autocast("cpu", torch.bfloat16):
        expected = theirs(features(), edges(), *weight)
        result = layer(features(), edges(), *weight)
    assert result.dtype == expected.dtype
    torch.testing.assert_close(result, expected, rtol=0.1, atol=0.2)
    result.float().sum().backward()


@each_device
@each_kind
def test_training_may_follow_inference(case, device):
    theirs, layer = both(case, device)
    x, pairs, adj = features(device), edges(device), matrix(device, True).to_sparse_csr()
    if device == "cuda" and "max" in case:
        adj = pairs  # PyTorch Geometric has no maximum over a sparse tensor there.
    with torch.inference_mode():
        layer(x, pairs)
        layer(x, adj)
        layer(x.clone(), pairs.clone())
    assert_alike(outcome(layer, x, pairs), outcome(theirs, x, pairs))
    assert_alike(outcome(layer, x, adj), outcome(theirs, x, adj))


@pytest.mark.parametrize(
    "case", ["gcn", "gcn wide", "sage", "gin mean", "gat", "gatv2", "transformer", "agnn"]
)
def test_gradients_have_gradients(case):
    def second(layer):
        x = features()
        if isinstance(layer, pyg.GCNConv):
            arguments, inputs = (edges(), weights()), [x]
            inputs.append(arguments[1])
        else:
            arguments, inputs = (edges(),), [x]
        y = layer(x, *arguments)
        gradients = torch.autograd.grad(y.pow(2).sum(), inputs, create_graph=True)
        penalty = sum(gradient.pow(2).sum() for gradient in gradients)
        return torch.autograd.grad(penalty, [*inputs, *layer.parameters()], allow_unused=True)

    theirs, layer = both(case)
    results, expected = second(layer), second(theirs)
    for one, other in zip(results, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            scale = max(1.0, float(other.abs().max()))
            torch.testing.assert_close(one / scale, other / scale, rtol=1e-3, atol=1e-4)


@each_kind
def test_float64_is_right_and_warns_once(case, monkeypatch):
    monkeypatch.setattr(layer_module, "_warned", False)
    layer, x = layer_of(ours, case).double(), features().double()
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        layer(x, edges())
        layer(x, edges())
    assert sum("float64" in str(message.message) for message in messages) == 1
    x = torch.randn(N, 6, dtype=torch.float64).requires_grad_()  # without equal extrema
    assert torch.autograd.gradcheck(lambda x: layer(x, edges()), (x,), fast_mode=True)


@each_device
def test_a_backward_pass_may_span_many_graphs(device):
    theirs, layer = both("gcn", device)
    results = []
    for model in (theirs, layer):
        total = 0
        for seed in range(40):
            x, pairs = (tensor.detach().to(device) for tensor in _random(seed % 7))
            total = total + model(x, pairs).pow(2).sum()
            del pairs
        results.append(torch.autograd.grad(total, [*model.parameters()]))
    assert_alike(results[1], results[0], rtol=1e-3, atol=1e-1)


@pytest.mark.parametrize("case", ["gcn", "sage", "gat"])
def test_torch_func_runs_pygs_code(case):
    layer = layer_of(ours, case)
    x = features().detach()
    gradient = torch.func.grad(lambda x: layer(x, edges()).pow(2).sum())(x)
    x.requires_grad_()
    expected = torch.autograd.grad(layer(x, edges()).pow(2).sum(), x)[0]
    torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-4)


def _opcheck_arguments():
    size, x, y = (N, N, N), features(), torch.randn(N, 6)
    scores = torch.randn(N, 2).requires_grad_()
    values = torch.randn(N, 2, 3).requires_grad_()
    weight = torch.rand(edges().shape[1] + N).requires_grad_()
    vectors = torch.randn(2, 3).requires_grad_()
    random = torch.tensor([1, 2, 0, 0], dtype=torch.int32)
    attention = torch.ops.accelviz.attention.default
    yield torch.ops.accelviz.spmm.default, (edges(), None, x, *size, "symmetric", False)
    yield torch.ops.accelviz.spmm.default, (edges(), weight, x, *size, "sum", True)
    yield torch.ops.accelviz.spmm_gradient.default, (edges(), weight.detach(), y, y, *size, False)
    yield torch.ops.accelviz.extremum.default, (edges(), x, N, N, 0, True)
    gat = ("gat", scores, scores, values, random, 0.2, 0.5)
    yield attention, (edges(), *gat, *size)
    yield attention, (edges(), "gatv2", values, values, vectors, None, 0.2, 0.0, *size)
    yield attention, (edges(), "cosine", values, values, scores, None, 0.0, 0.0, *size)
    yield attention, (edges(), "dot", values, values, values, None, 0.0, 0.0, *size)


@pytest.mark.parametrize("number", range(8))
def test_operators_pass_opcheck(number):
    operator, arguments = [*_opcheck_arguments()][number]
    torch.library.opcheck(operator, arguments)


# ------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: ours.GCNConv(6, 4)(torch.randn(5, 6), torch.tensor([[0], [5]])), "edge_index"),
        (lambda: ours.SAGEConv(6, 4)(torch.randn(5, 6), torch.tensor([[-1], [0]])), "edge_index"),
        (lambda: ours.GATConv(6, 4)(torch.randn(5, 6), torch.tensor([[0], [9]])), "edge_index"),
        (lambda: ours.GCNConv(6, 4)(torch.randn(5, 6), torch.zeros(3, 2).long()), "edge_index"),
        (lambda: ours.GCNConv(6, 4)(torch.randn(5, 6), torch.zeros(2, 3)), "edge_index"),
        (lambda: ours.GATConv(6, 4)(torch.randn(5, 6), torch.zeros(6).long()), "edge_index"),
        (lambda: ours.GATConv(6, 4)(torch.randn(5, 6), [[0], [1]]), "edge_index"),
        (lambda: ours.GCNConv(6, 4)(torch.randn(5, 6), torch.eye(6).to_sparse_csr()), "edge_index"),
        (
            lambda: ours.SAGEConv(6, 4)(torch.randn(5, 6), torch.eye(6).to_sparse_csr()),
            "edge_index",
        ),
        (lambda: ours.GCNConv(6, 4)(torch.randn(N, 6), edges(), torch.ones(3)), "edge_weight"),
        (lambda: ours.SAGEConv(6, 4)(torch.randn(N, 6), edges(), (N, N + 1)), "size"),
        (lambda: ours.GATConv(6, 4)(torch.randn(N, 6), edges(), size=(3, N)), "size"),
        (lambda: ours.SAGEConv(6, 4)(torch.randn(5, 6), ours.Edges(edges(), N)), "edge_index"),
        (
            lambda: ours.SAGEConv(6, 4)(features(), ours.Edges(edges(), N, weights())),
            "edge_index",
        ),
        (lambda: ours.Edges(edges(), N - 3), "edge_index"),
        (lambda: ours.Edges(edges(), (N, 5)), "edge_index"),
        (lambda: ours.Edges(edges(), N, torch.ones(3)), "weight"),
        (lambda: ours.Edges(edges().float(), N), "edge_index"),
        (lambda: ours.GCNConv(6, 4)(None, edges()), "x"),
        (lambda: ours.SAGEConv(6, 4)((None, torch.randn(N, 6)), edges()), "x"),
        (lambda: ours.GATConv(6, 4)([[1.0] * 6] * N, edges()), "x"),
    ],
)
def test_errors_name_the_argument(call, argument):
    with pytest.raises(ArgumentError, match=f"^{argument}: "):
        call()


def test_a_cached_graph_refuses_other_nodes():
    layer = layer_of(ours, "gcn cached")
    layer(features(), edges())
    with pytest.raises(ArgumentError, match="^x: 5 rows for the cached graph of 40 nodes"):
        layer(torch.randn(5, 6), edges())


def test_not_a_number_stays_one():
    theirs, layer = both("sage max")
    x = features().detach()
    x[7] = torch.nan
    assert_alike([layer(x, edges()).isnan()], [theirs(x, edges()).isnan()])


def test_features_of_three_dimensions_run_pygs_code():
    theirs, layer = both("gcn")
    x = torch.randn(2, N, 6)
    assert_alike([layer(x, edges())], [theirs(x, edges())])


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr", "bsc"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32"])
def test_sparse_tensors_are_graphs(layout, dtype):
    dense = torch.tensor([[0, 2, 0, 0], [3, 0, 0, 1], [0, 0, 0, 0], [0, 0, 5, 0]])
    dense = dense.to(getattr(torch, dtype))
    blocks = {"blocksize": (2, 2)} if layout.startswith("bs") else {}
    tensor = dense.to_sparse(layout=getattr(torch, f"sparse_{layout}"), **blocks)
    for needs_gradient in {False, tensor.is_floating_point()}:
        graph = load_graph(tensor.requires_grad_(needs_gradient))
        assert torch.equal(torch.tensor(graph.toarray()), dense.detach().float())
        assert graph.source == "torch matrix"


def test_tensors_as_edges_and_what_is_no_graph():
    edge_index = torch.tensor([[0, 0, 1], [1, 1, 0]])
    repeated = torch.sparse_coo_tensor(edge_index, torch.ones(3), (3, 2))
    assert load_graph(repeated).toarray().tolist() == [[0, 2], [1, 0], [0, 0]]
    weight = torch.tensor([0.5, 2.0, 3.0], requires_grad=True)
    graph = load_graph(edge_index, n_nodes=4, weights=weight)
    assert (graph.shape, graph.toarray()[:2, :2].tolist()) == ((4, 4), [[0, 3], [2.5, 0]])
    sized = EdgeIndex([[0, 1], [1, 0]], sparse_size=(5, 5))
    assert load_graph(sized).shape == (5, 5)
    for wrong, message in (
        (torch.ones(2, 2, 2).to_sparse(), r"shape \(2, 2, 2\)"),
        (torch.ones(2, 2, 2).to_sparse(2), r"values of shape \(4, 2\)"),
        (torch.eye(2).to_sparse() * 1j, "complex64"),
        (torch.eye(3), "2 x E edge_index"),
        (torch.nn.Linear(2, 2), "got a Linear"),
    ):
        with pytest.raises(GraphError, match=message):
            load_graph(wrong)
