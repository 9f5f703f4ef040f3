"""Every layer, compared with an independent float64 implementation with dense matrices."""

import functools

import numpy as np
import pytest

from accelviz import load_graph
from accelviz.errors import ArgumentError
from accelviz.layers import (
    AGNN,
    GAT,
    GCN,
    GIN,
    MODELS,
    SAGE,
    GATv2,
    Linear,
    Matrix,
    Network,
    Noise,
    Products,
)
from accelviz.layers import dense as steps
from accelviz.layers.losses import cross_entropy
from accelviz.random import edge_uniform, element_uniform
from tests.graphs import MADE, graph_of_degrees
from tests.inherited import central_differences

SEED, STEP = 3, 5
NOISE = Noise.of(SEED, 10, STEP).at(8)


def small_graph():
    """Return a graph with signed weights, isolated nodes, a hub and a self loop; asymmetric."""
    graph = graph_of_degrees([3, 0, 1, 9, 2, 0, 4, 1, 2], 9, name="small")
    matrix = graph.adjacency.tolil()
    matrix[4, 4], matrix[1, 1] = 0.75, 0
    return load_graph(abs(matrix.tocsr()))


# The same layers in float64 with dense matrices. ---------------------------------------------


def finish(layer, Z, p):
    Z = Z + p["b"] if "b" in p else Z
    Z = {
        "none": Z,
        "relu": np.maximum(Z, 0),
        "elu": np.where(Z > 0, Z, np.expm1(np.minimum(Z, 0))),
    }[layer.activation]
    if layer.dropout:
        drawn = element_uniform(Z.size, SEED, NOISE.site, STEP).reshape(Z.shape)
        Z = np.where(drawn >= np.float32(layer.dropout), Z / (1 - layer.dropout), 0)
    return Z


def gcn(layer, A, X, p):
    A = A + np.diag(np.diag(A) == 0)
    root = A.sum(axis=1) ** -0.5
    return finish(layer, root[:, None] * A * root @ X @ p["W"], p)


def gin(layer, A, X, p):
    A = (A != 0) + (1 + p.get("eps", np.array([layer.eps]))[0]) * np.eye(len(A))
    return finish(layer, np.maximum(A @ X @ p["W1"] + p["b1"], 0) @ p["W"], p)


def sage(layer, A, X, p):
    share = (A != 0) / np.maximum((A != 0).sum(axis=1, keepdims=True), 1)
    return finish(layer, share @ X @ p["W"] + X @ p["Wr"], p)


def sage_max(layer, A, X, p):
    edges = A != 0
    largest = np.where(edges[:, :, None], X[None], -np.inf).max(axis=1)
    largest[~edges.any(axis=1)] = 0
    return finish(layer, largest @ p["W"] + X @ p["Wr"], p)


def attend(layer, A, scores, V, rate=0.0):
    """Return attention for `scores` of shape (n, n, heads) and V of (n, heads, n_cols)."""
    edges = (A != 0) | np.eye(len(A), dtype=bool)
    powers = np.where(edges[:, :, None], np.exp(scores - scores.max()), 0)
    alpha = powers / powers.sum(axis=1, keepdims=True)
    if rate:
        rows, columns = np.nonzero(edges)
        heads = alpha.shape[2]
        drawn = edge_uniform(np.arange(rows.size), heads, SEED, NOISE.site + 1, STEP)
        alpha[rows, columns] *= (drawn >= np.float32(rate)) / (1 - rate)
    return np.einsum("ijh,jhc->ihc", alpha, V)


def merged(layer, Y, p):
    return finish(layer, Y.reshape(len(Y), -1) if layer.concat else Y.mean(axis=1), p)


def leaky(x, slope):
    return np.where(x > 0, x, slope * x)


def gat(layer, A, X, p):
    V = (X @ p["W"]).reshape(len(X), layer.heads, -1)
    sender, receiver = (V * p["sender"]).sum(2), (V * p["receiver"]).sum(2)
    scores = leaky(receiver[:, None] + sender[None], layer.slope)
    return merged(layer, attend(layer, A, scores, V, layer.attention_dropout), p)


def gatv2(layer, A, X, p):
    V, R = ((X @ p[name]).reshape(len(X), layer.heads, -1) for name in ("W", "Wr"))
    scores = (leaky(R[:, None] + V[None], layer.slope) * p["a"]).sum(3)
    return merged(layer, attend(layer, A, scores, V, layer.attention_dropout), p)


def agnn(layer, A, X, p):
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    scores = p.get("beta", np.array([layer.beta]))[0] * (unit @ unit.T)
    return finish(layer, attend(layer, A, scores[:, :, None], X[:, None])[:, 0], p)


def linear(layer, A, X, p):
    return finish(layer, X @ p["W"], p)


CASES = {
    "linear": (linear, lambda: Linear(5, 4, activation="elu")),
    "gcn": (gcn, lambda: GCN(5, 4, activation="relu", dropout=0.4)),
    "gcn wide": (gcn, lambda: GCN(5, 7, activation="elu", dropout=0.3)),
    "gcn weights first": (gcn, lambda: GCN(5, 7, order="weights first", bias=False)),
    "gcn matrix first": (gcn, lambda: GCN(5, 3, order="matrix first")),
    "gin": (gin, lambda: GIN(5, 4, n_hidden=6, activation="relu")),
    "gin eps": (gin, lambda: GIN(5, 4, n_hidden=3, train_eps=True)),
    "gin fixed eps": (gin, lambda: GIN(5, 4, eps=0.25, dropout=0.5)),
    "sage": (sage, lambda: SAGE(5, 4, activation="relu")),
    "sage wide": (sage, lambda: SAGE(5, 9, dropout=0.5)),
    "sage max": (sage_max, lambda: SAGE(5, 4, aggregate="max", activation="elu")),
    "gat": (gat, lambda: GAT(5, 4, activation="elu", dropout=0.4)),
    "gat heads": (gat, lambda: GAT(5, 4, heads=3, attention_dropout=0.5)),
    "gat mean": (gat, lambda: GAT(5, 4, heads=3, concat=False, activation="elu")),
    "gatv2": (gatv2, lambda: GATv2(5, 4, heads=2, activation="elu")),
    "gatv2 mean": (gatv2, lambda: GATv2(5, 4, heads=3, concat=False, attention_dropout=0.3)),
    "gat composed": (gat, lambda: GAT(5, 4, heads=3, attention_dropout=0.5, fused=False)),
    "agnn": (agnn, lambda: AGNN(5, beta=0.75)),
    "agnn composed": (agnn, lambda: AGNN(5, beta=0.75, fused=False)),
    "agnn fixed": (agnn, lambda: AGNN(5, train_beta=False, activation="relu", dropout=0.5)),
}
each_case = pytest.mark.parametrize("case", CASES)


def random_parameters(layer, rng):
    return {
        name: rng.standard_normal(shape).astype(np.float32)
        for name, shape in layer.shapes().items()
    }


@pytest.mark.parametrize("model", MODELS)
def test_networks_of_graphs_that_share_a_store_have_their_weights(model):
    graph = small_graph()
    X = np.random.default_rng(4).standard_normal((graph.n_rows, 5)).astype(np.float32)
    weights = np.random.default_rng(5).uniform(0.5, 2, graph.nnz).astype(np.float32)
    other = graph.with_values(weights)

    def result(graph):
        layers = MODELS[model].build(5, 3, **MODELS[model].options)
        return Network(layers, graph, Products(device="cpu"), seed=1).forward(X)[0]

    result(graph)
    np.testing.assert_array_equal(result(other), result(load_graph(other.adjacency)))


@each_case
def test_a_layer_and_its_gradients_are_those_of_float64(case):
    reference, make = CASES[case]
    layer, graph, rng = make(), small_graph(), np.random.default_rng(len(case))
    X = rng.standard_normal((graph.n_rows, layer.n_in)).astype(np.float32)
    parameters = random_parameters(layer, rng)
    matrix = layer.prepared(graph, Products(device="cpu"))
    Y, context = layer.forward(matrix, X, parameters, NOISE)
    A, wide = graph.adjacency.toarray().astype(float), X.astype(float)
    wide_parameters = {name: value.astype(float) for name, value in parameters.items()}
    expected = reference(layer, A, wide, wide_parameters)
    np.testing.assert_allclose(Y, expected, rtol=2e-5, atol=2e-5)

    dY = rng.standard_normal(Y.shape).astype(np.float32)
    gradients, dX = layer.backward(dY, context)
    assert set(gradients) == set(parameters)

    inputs = {**wide_parameters, "X": wide}

    def result(name, changed):
        changed_inputs = {**inputs, name: changed}
        X = changed_inputs.pop("X")
        return float((dY * reference(layer, A, X, changed_inputs)).sum())

    for name, gradient in {**gradients, "X": dX}.items():
        array = inputs[name]
        expected = central_differences(functools.partial(result, name), array, 1e-6)
        scale = 1 + abs(expected).max()
        assert gradient.shape == array.shape, name
        assert gradient.dtype == np.float32, name
        np.testing.assert_allclose(gradient / scale, expected / scale, atol=2e-5, err_msg=name)


@each_case
def test_the_first_layer_needs_no_gradient_by_its_input(case):
    _, make = CASES[case]
    layer, graph, rng = make(), small_graph(), np.random.default_rng(1)
    X = rng.standard_normal((graph.n_rows, layer.n_in)).astype(np.float32)
    parameters = random_parameters(layer, rng)
    matrix = layer.prepared(graph, Products(device="cpu"))
    passes = []
    for needed in (True, False):
        layer.needs_input_gradient = needed
        Y, context = layer.forward(matrix, X, parameters, NOISE)
        passes.append(layer.backward(np.ones_like(Y), context))
    assert passes[1][1] is None
    for name, gradient in passes[0][0].items():
        np.testing.assert_allclose(passes[1][0][name], gradient, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", [c for c in CASES if not c.startswith("agnn")])
def test_sparse_features_are_as_good_as_dense_ones(case):
    _, make = CASES[case]
    layer, graph, rng = make(), small_graph(), np.random.default_rng(2)
    X = rng.standard_normal((graph.n_rows, layer.n_in)).astype(np.float32)
    X[rng.random(X.shape) < 0.6] = 0
    from scipy import sparse

    products = Products(device="cpu")
    features = Matrix(load_graph(sparse.csr_array(X)), products)
    parameters, layer.needs_input_gradient = random_parameters(layer, rng), False
    matrix, passes = layer.prepared(graph, products), []
    for operand in (X, features):
        Y, context = layer.forward(matrix, operand, parameters, NOISE)
        passes.append((Y, layer.backward(np.ones_like(Y), context)[0]))
    np.testing.assert_allclose(passes[1][0], passes[0][0], rtol=1e-4, atol=1e-5)
    for name, gradient in passes[0][1].items():
        np.testing.assert_allclose(passes[1][1][name], gradient, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("n_in", "n_out", "needed", "fixed", "first"),
    [
        (128, 64, False, False, True),
        (130, 64, False, False, False),
        (64, 100, True, False, True),
        (100, 64, True, False, False),
        (130, 64, False, True, True),
        (129, 64, True, True, False),
    ],
)
def test_the_order_is_the_one_that_gathers_fewer_columns(n_in, n_out, needed, fixed, first):
    for layer in (GCN(n_in, n_out), GIN(n_in, 7, n_hidden=n_out), SAGE(n_in, n_out)):
        layer.needs_input_gradient = needed
        assert layer.matrix_first(np.ones((3, n_in)), fixed) is first


@pytest.mark.parametrize("model", ["gcn", "gin", "sage", "agnn"])
def test_a_layer_may_apply_the_activation_of_the_one_before(model):
    """A layer's gradient includes the previous layer's ReLU and dropout, with equal results."""
    graph, products, gradients = small_graph(), Products(device="cpu"), []
    X = np.random.default_rng(4).standard_normal((graph.n_rows, 5)).astype(np.float32)
    for apart in (False, True):
        options = MODELS[model].options
        layers = MODELS[model].build(5, 3, **{**options, "dropout": 0.3})
        network = Network(layers, graph, products, seed=1)
        assert any(layer.next_layer_applies_activation for layer in network.layers)
        if apart:
            for layer in network.layers:
                layer.next_layer_applies_activation, layer.input_rate = False, None
        Y, contexts = network.forward(X, network.noise)
        network.backward(contexts, np.ones_like(Y))
        gradients.append(network.gradient)
    np.testing.assert_allclose(*gradients, rtol=1e-5, atol=1e-6)


def test_cross_entropy_is_that_of_float64():
    rng = np.random.default_rng(0)
    logits = (20 * rng.standard_normal((40, 6))).astype(np.float32)
    labels = rng.integers(0, 6, 40).astype(np.int32)
    weights = np.zeros(40, np.float32)
    weights[rng.permutation(40)[:11]] = 1 / 11
    labels[weights == 0] = -1
    loss, gradient = cross_entropy(logits, labels, weights)
    wide, rows = logits.astype(float), np.flatnonzero(weights)

    def exact(changed):
        chosen = changed[rows]
        top = chosen.max(axis=1, keepdims=True)
        logs = chosen - top - np.log(np.exp(chosen - top).sum(axis=1, keepdims=True))
        return -logs[np.arange(11), labels[rows]].mean()

    assert loss.sum() == pytest.approx(exact(wide), rel=1e-6)
    np.testing.assert_allclose(gradient, central_differences(exact, wide, 1e-6), atol=1e-6)


def test_dropout_draws_again_what_it_drew():
    X = np.ones((300, 7), np.float32)
    dropout = steps.Epilogue(dropout=0.6, noise=NOISE)
    dropped = dropout.apply(X)
    np.testing.assert_array_equal(dropout.apply(X), dropped)
    assert set(np.unique(dropped)) == {0, np.float32(1 / (1 - 0.6))}
    assert abs((dropped == 0).mean() - 0.6) < 0.05
    assert steps.Epilogue(dropout=0.6).apply(X) is X
    assert (steps.Epilogue(dropout=0.6, noise=NOISE.at(9)).apply(X) != dropped).any()


@pytest.mark.parametrize("name", ["one_node", "no_edges", "isolated_ends", "one_node_with_loop"])
@each_case
def test_nodes_without_edges_are_no_problem(name, case):
    _, make = CASES[case]
    graph, layer, rng = MADE[name](), make(), np.random.default_rng(4)
    if graph.shape[0] != graph.shape[1]:
        pytest.skip("not square")
    X = rng.standard_normal((graph.n_rows, layer.n_in)).astype(np.float32)
    parameters = random_parameters(layer, rng)
    matrix = layer.prepared(graph, Products(device="cpu"))
    Y, context = layer.forward(matrix, X, parameters)
    gradients, dX = layer.backward(np.ones_like(Y), context)
    for array in (Y, dX, *gradients.values()):
        assert np.isfinite(array).all()


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: GCN(0, 4), "n_in"),
        (lambda: GCN(4, 0), "n_out"),
        (lambda: GIN(4, 4, n_hidden=0), "n_hidden"),
        (lambda: GAT(4, 4, heads=0), "heads"),
        (lambda: GATv2(4, 4, fused=False), "fused"),
        (lambda: GCN(4, 4, dropout=1.0), "dropout"),
        (lambda: GCN(4, 4, dropout=-0.1), "dropout"),
        (lambda: GAT(4, 4, attention_dropout=2), "attention_dropout"),
        (lambda: GCN(4, 4, activation="tanh"), "activation"),
        (lambda: GCN(4, 4, order="any"), "order"),
        (lambda: SAGE(4, 4, aggregate="lstm"), "aggregate"),
        (lambda: Products({"spmv": "accel_gcn"}), "strategy"),
        (lambda: Products("none of them"), "strategy"),
        (lambda: Products(device="tpu"), "device"),
    ],
)
def test_impossible_layers_are_refused(make, argument):
    with pytest.raises(ArgumentError, match=f"^{argument}: "):
        make()
