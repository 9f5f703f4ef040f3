"""Own layers and depth, other tasks, no split, several graphs, and trained networks that go on.

Reference computations are float64 with dense matrices, PyTorch, or an uninterrupted training.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from accelviz import layers
from accelviz.datasets import NodeData, disjoint_union
from accelviz.errors import ArgumentError, DeviceUnavailable, GraphError
from accelviz.layers import AGNN, GAT, GCN, GIN, SAGE, Linear, Network, Noise, Products, losses
from accelviz.layers.layer import Layer
from accelviz.layers.train import Run
from tests.inherited import central_differences
from tests.test_layers import gin, small_graph
from tests.test_training import SMALL, small_data, train

N, RNG = 60, np.random.default_rng(8)
#: Three labels of which a node has any number, and two targets with one unknown node.
MANY = SMALL.features[:, :3] + 0.3 * RNG.standard_normal((N, 3)) > 0
TARGETS = SMALL.features[:, :2] @ RNG.standard_normal((2, 2)) + 1
TARGETS[SMALL.test[0]] = np.nan
LABELLED = np.setdiff1d(SMALL.test, SMALL.test[:1])
MANY_LABELS = NodeData(**small_data(labels=MANY))
VALUES = NodeData(**small_data(labels=TARGETS, test=LABELLED))
TASKS = {"classes": SMALL, "labels": MANY_LABELS, "values": VALUES}
OWN = [GCN(12, 8, activation="relu", dropout=0.3), GAT(8, 4, heads=2), Linear(8, 2)]


def equal(one, other):
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


def without_times(history):
    return history.drop(columns=[name for name in history if name.endswith("seconds")])


# Layers and depth ----------------------------------------------------------------------------


def test_the_gradient_of_five_layers_of_gin_is_that_of_float64():
    """The papers' GIN, 5 x 64, at three columns of each parameter."""
    graph, rng = small_graph(), np.random.default_rng(3)
    model = layers.MODELS["gin"]
    stack = model.build(7, 3, **{**model.options, "depth": 5, "dropout": 0.0})
    assert [(layer.n_in, layer.n_out) for layer in stack] == [(7, 64), *[(64, 64)] * 3, (64, 3)]
    network = Network(stack, graph, Products(device="cpu"), seed=2)
    X = 0.1 * rng.standard_normal((graph.n_rows, 7)).astype(np.float32)
    labels = rng.integers(0, 3, graph.n_rows).astype(np.int32)
    weights = np.full(graph.n_rows, 1 / graph.n_rows, np.float32)
    logits, contexts = network.forward(X, network.noise)
    loss, gradient = losses.cross_entropy(logits, labels, weights)
    network.backward(contexts, gradient)
    A, wide = graph.adjacency.toarray().astype(float), network.flat.astype(float)

    def exact(flat):
        Y, start = X.astype(float), 0
        for layer in network.layers:
            parameters = {}
            for name, shape in layer.shapes().items():
                size = int(np.prod(shape))
                parameters[name] = flat[start : start + size].reshape(shape)
                start += size
            Y = gin(layer, A, Y, parameters)
        shifted = Y - Y.max(axis=1, keepdims=True)
        logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return -logs[np.arange(len(Y)), labels].mean()

    assert loss.sum() == pytest.approx(exact(wide), rel=1e-5)
    chosen = np.sort(rng.permutation(wide.size)[:300])

    def of_chosen(values):
        changed = wide.copy()
        changed[chosen] = values
        return exact(changed)

    expected = central_differences(of_chosen, wide[chosen], 1e-6)
    assert abs(expected).max() > 1e-2
    np.testing.assert_allclose(network.gradient[chosen], expected, atol=1e-5)


@pytest.mark.parametrize("model", layers.MODELS)
@pytest.mark.parametrize("depth", [1, 4])
def test_every_model_has_any_depth(model, depth):
    trained = train(model, depth=depth, epochs=30, hidden=8, dropout=0.1, seed=1)
    kinds = [layer for layer in trained.layers if not isinstance(layer, Linear)]
    assert len(kinds) == depth
    assert trained.history.loss.iloc[-1] < trained.history.loss.iloc[0]


def test_the_papers_agnn_trains_all_but_the_first_beta():
    agnn = layers.MODELS["agnn"]
    stack = agnn.build(12, 2, **{**agnn.options, "depth": 4, "hidden": 32})
    assert [isinstance(layer, AGNN) and layer.train_beta for layer in stack[1:5]] == [
        *(False, True, True, True)
    ]
    assert [stack[0].width, stack[5].n_in] == [32, 32]


def test_a_list_of_the_models_layers_is_the_model():
    model = layers.MODELS["gcn"]
    stack = model.build(12, 2, **model.options)
    options = {"rate": model.rate, "input_dropout": 0.5, "seed": 3}
    listed, named = train(stack, decay=0.0, **options), train("gcn", seed=3, decay=0.0)
    equal(listed.parameters, named.parameters)
    assert listed.model == "GCN, GCN"


def test_a_list_may_be_used_again_in_another_order():
    """Networks copy layers, so that what one network sets does not reach the next."""
    first, second = GCN(12, 12, activation="relu", dropout=0.2), GCN(12, 12)
    train([first, second, Linear(12, 2)])
    again = train([second, first, Linear(12, 2)])
    fresh = [GCN(12, 12), GCN(12, 12, activation="relu", dropout=0.2), Linear(12, 2)]
    equal(again.parameters, train(fresh).parameters)
    # The next layer no longer applies the ReLU of layer 1.
    equal(train(again.layers[1:2]).parameters, train(fresh[1:2]).parameters)
    twice = train([first, first])
    distinct = [GCN(**first.arguments), GCN(**first.arguments)]
    equal(twice.parameters, train(distinct).parameters)
    assert (twice.parameters["0.W"] != twice.parameters["1.W"]).any()


class Scaled(Layer):
    """A layer of a user: `s X`, with one parameter."""

    applies_input_activation = False

    def __init__(self, n_in, *, s=2.0, unit=None):
        super().__init__(n_in, n_in, bias=False)
        self.s = s

    def shapes(self):
        return {"s": (1,)}

    def linear(self, context):
        return context.X * context.parameters["s"]

    def linear_gradient(self, dZ, context):
        ds = (dZ * context.X).sum().reshape(1)
        return {"s": ds}, dZ * context.parameters["s"]


def test_layers_say_how_they_were_made():
    assert repr(GIN(4, np.int64(3), eps=0.5)) == "GIN(n_in=4, n_out=3, eps=0.5)"
    arguments = {"n_in": 4, "n_out": 3, "aggregate": "max", "dropout": 0.5}
    assert SAGE(**arguments).arguments == arguments
    assert Scaled(3, s=1.0).arguments == {"n_in": 3, "s": 1.0}


# Tasks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["labels", "values"])
def test_losses_and_scores_are_those_of_float64(task):
    rng = np.random.default_rng(5)
    Y = (8 * rng.standard_normal((40, 3))).astype(np.float32)
    wide, known = Y.astype(float), np.sort(rng.permutation(40)[:11])
    labels = rng.random((40, 3)).astype(np.float32)
    labels = np.round(labels) if task == "labels" else labels
    weights = np.zeros(40, np.float32)
    weights[known] = 1 / 11

    def exact(Y):
        Y, L = Y[known], labels[known]
        if task == "values":
            return ((Y - L) ** 2).mean()
        return (np.logaddexp(0, Y) - Y * L).mean()

    kind = losses.TASKS[task]
    loss, gradient = kind.loss(Y, labels, weights)
    assert loss.dtype == gradient.dtype == np.float32
    assert loss.sum() == pytest.approx(exact(wide), rel=1e-6)
    np.testing.assert_allclose(gradient, central_differences(exact, wide, 1e-6), atol=1e-6)
    score = kind.score(kind.counts(Y, labels)[known].sum(axis=0), 11)
    if task == "values":
        assert score == pytest.approx(exact(wide), rel=1e-6)
    else:
        predicted, true = wide[known] > 0, labels[known] > 0.5
        both = (predicted & true).sum()
        precision, recall = both / predicted.sum(), both / true.sum()
        assert score == pytest.approx(2 * precision * recall / (precision + recall))


def test_extreme_logits_are_no_problem():
    logits = np.array([[1e4, -1e4, 0]], np.float32)
    loss, gradient = losses.binary_cross_entropy(
        logits, np.array([[0, 1, 1]], np.float32), np.ones(1, np.float32)
    )
    assert loss[0] == pytest.approx((2e4 + np.log(2)) / 3)
    np.testing.assert_allclose(gradient, [[1 / 3, -1 / 3, -1 / 6]], rtol=1e-6)


@pytest.mark.parametrize("task", TASKS)
def test_a_training_is_that_of_pytorch(task):
    """The same initial parameters, dense matrices, PyTorch's losses and its Adam."""
    torch = pytest.importorskip("torch")
    data = TASKS[task]
    trained = train(data=data, epochs=12, dropout=0.0, decay=5e-4, rate=0.02, seed=2)
    stack = layers.MODELS["gcn"].build(12, data.n_outputs, hidden=16, depth=2, dropout=0.0)
    initial = Network(stack, data.graph, Products(device="cpu"), seed=2).initial()
    p = {name: torch.tensor(array, requires_grad=True) for name, array in initial.items()}
    A = data.graph.adjacency.toarray() + np.eye(N, dtype=np.float32)
    root = A.sum(axis=1) ** -0.5
    A, X = torch.tensor(root[:, None] * A * root), torch.tensor(data.features)
    known, functional = torch.tensor(data.train), torch.nn.functional
    L = torch.tensor(data.labels if task == "classes" else data.labels.astype(np.float32))
    loss_of = {
        "classes": functional.cross_entropy,
        "labels": functional.binary_cross_entropy_with_logits,
        "values": functional.mse_loss,
    }[task]
    groups = [
        {"params": [p["0.W"], p["0.b"]], "weight_decay": 5e-4},
        {"params": [p["1.W"], p["1.b"]], "weight_decay": 0.0},
    ]
    optimiser, expected = torch.optim.Adam(groups, lr=0.02), []
    for _ in range(12):
        optimiser.zero_grad()
        Y = A @ ((A @ (X @ p["0.W"]) + p["0.b"]).relu() @ p["1.W"]) + p["1.b"]
        loss = loss_of(Y[known], L[known])
        loss.backward()
        optimiser.step()
        expected.append(loss.item())
    np.testing.assert_allclose(trained.history.loss, expected, rtol=2e-5)


@pytest.mark.parametrize("task", ["labels", "values"])
@pytest.mark.parametrize("model", layers.MODELS)
def test_every_model_learns_every_task(task, model):
    data = TASKS[task]
    trained = train(model, data, epochs=60, dropout=0.0, rate=0.02)
    metric = losses.TASKS[task].metric
    assert trained.logits.shape == (N, data.n_outputs)
    assert trained.history.loss.iloc[-1] < 0.8 * trained.history.loss.iloc[0]
    assert trained.metric == metric
    for split in ("train", "val", "test"):
        assert trained.scores[split] == pytest.approx(trained.history[f"{split}_{metric}"].iloc[-1])
    assert trained.test_accuracy is None
    assert f"test {metric} " in repr(trained)
    known = data.test
    if task == "values":
        expected = ((trained.logits[known] - data.labels[known]) ** 2).mean()
    else:
        predicted, true = trained.logits[known] > 0, data.labels[known]
        expected = 2 * (predicted & true).sum() / (predicted.sum() + true.sum())
    assert trained.scores["test"] == pytest.approx(expected, rel=1e-5)


def test_early_stopping_of_a_regression_keeps_the_smallest_error():
    trained = train(data=VALUES, epochs=400, patience=8, rate=0.1, dropout=0.0)
    errors = trained.history.val_mse
    assert trained.epoch == int(errors.argmin()) + 1
    assert len(errors) == trained.epoch + 8 < 400
    assert trained.scores["val"] == pytest.approx(errors.min())


def test_labels_are_read_by_their_type():
    assert (SMALL.task, MANY_LABELS.task, VALUES.task) == ("classes", "labels", "values")
    assert MANY_LABELS.labels.dtype == np.bool_
    zeros_and_ones = NodeData(**small_data(labels=MANY.astype(np.int8)))
    np.testing.assert_array_equal(zeros_and_ones.labels, MANY)
    one = NodeData(**small_data(labels=SMALL.features[:, 0]))
    assert (one.task, one.n_outputs, one.labels.shape) == ("values", 1, (N, 1))
    assert "2 values" in repr(VALUES)


# Splits and graphs ---------------------------------------------------------------------------


def test_without_a_split_all_labelled_nodes_are_for_training():
    labels = np.where(np.arange(N) % 5 == 0, -1, SMALL.labels)
    alone = NodeData(SMALL.graph, SMALL.features, labels)
    np.testing.assert_array_equal(alone.train, np.flatnonzero(labels >= 0))
    assert alone.val.size == alone.test.size == 0
    trained = train(data=alone, epochs=30)
    assert trained.test_accuracy is None
    assert trained.scores.keys() == {"train"}
    assert trained.scores["train"] > 0.8
    assert not {"val_accuracy", "test_accuracy"} & {*trained.history}
    assert "train accuracy" in repr(trained)
    same = NodeData(SMALL.graph, SMALL.features, labels, train=labels >= 0)
    equal(trained.parameters, train(data=same, epochs=30).parameters)
    partly = NodeData(SMALL.graph, SMALL.features, labels, test=[1, 2])
    np.testing.assert_array_equal(partly.train, np.setdiff1d(alone.train, [1, 2]))
    targets = NodeData(SMALL.graph, SMALL.features, TARGETS)
    np.testing.assert_array_equal(targets.train, np.flatnonzero(~np.isnan(TARGETS[:, 0])))


def sparse_part(seed, n=20, **splits):
    rng = np.random.default_rng(seed)
    edges = sparse.random_array((n, n), density=0.15, rng=rng, dtype=np.float32)
    features = sparse.csr_array(np.maximum(rng.standard_normal((n, 12)), 0))
    return NodeData(edges, features, rng.integers(0, 2, n), name=f"part {seed}", **splits)


@pytest.mark.parametrize("model", layers.MODELS)
def test_a_union_computes_what_its_graphs_do(model):
    parts = [sparse_part(seed, n) for seed, n in ((1, 20), (2, 7), (3, 33))]
    union = disjoint_union(parts, name="three")
    blocks = np.zeros((60, 60), np.float32)
    for part, start in zip(parts, (0, 20, 27), strict=True):
        end = start + part.n_nodes
        blocks[start:end, start:end] = part.graph.adjacency.toarray()
    np.testing.assert_array_equal(union.graph.adjacency.toarray(), blocks)
    trained = train(model, union, epochs=3)
    apart = [trained.predict(part.graph, part.features, device="cpu") for part in parts]
    np.testing.assert_allclose(np.concatenate(apart), trained.logits, rtol=1e-5, atol=1e-6)


def test_graphs_of_a_union_keep_their_split():
    dense = replace(SMALL, train=[], val=[], test=np.arange(N))
    union = disjoint_union([SMALL, dense])
    np.testing.assert_array_equal(union.train, SMALL.train)
    np.testing.assert_array_equal(union.val, SMALL.val)
    np.testing.assert_array_equal(union.test, [*SMALL.test, *range(N, 2 * N)])
    np.testing.assert_array_equal(union.features, np.tile(SMALL.features, (2, 1)))
    np.testing.assert_array_equal(union.labels, np.tile(SMALL.labels, 2))


# Trained networks ----------------------------------------------------------------------------


#: The first list multiplies features that never change with the matrix first.
@pytest.mark.parametrize("model", [*layers.MODELS, [GCN(12, 4), GCN(4, 2)], OWN])
def test_a_network_predicts_and_is_saved(tmp_path, model):
    trained = train(model, epochs=4)
    np.testing.assert_array_equal(
        trained.predict(SMALL.graph, SMALL.features, device="cpu"), trained.logits
    )
    trained.save(tmp_path / "a.npz")
    loaded = layers.load(tmp_path / "a.npz")
    equal(loaded.parameters, trained.parameters)
    assert [*map(repr, loaded.layers)] == [*map(repr, trained.layers)]
    assert loaded.model == trained.model
    order = np.random.default_rng(2).permutation(N)
    other = SMALL.graph.adjacency[order][:, order]
    predicted = loaded.predict(other, SMALL.features[order], device="cpu")
    np.testing.assert_allclose(predicted, trained.logits[order], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model", ["gcn", "agnn", OWN])
@pytest.mark.parametrize("patience", [None, 30])
def test_a_saved_training_goes_on_bit_for_bit(tmp_path, model, patience):
    path, options = tmp_path / "half.npz", {"patience": patience, "seed": 5}
    train(model, epochs=4, **options).save(path)
    resumed = train(model, epochs=9, checkpoint=path, **options)
    whole = train(model, epochs=9, **options)
    equal(resumed.parameters, whole.parameters)
    assert without_times(resumed.history).equals(without_times(whole.history))
    loaded = layers.load(path)  # the checkpoint of epoch 9
    equal(loaded.parameters, whole.parameters)
    train([GCN(12, 2)], epochs=1).save(path)
    with pytest.raises(ArgumentError, match="^checkpoint: .* its layers differ"):
        train([GCN(12, 2, bias=False)], checkpoint=path)


@pytest.mark.parametrize("task", ["labels", "values"])
def test_every_task_goes_on_bit_for_bit(tmp_path, task):
    path = tmp_path / "half.npz"
    train(data=TASKS[task], epochs=4).save(path)
    resumed = train(data=TASKS[task], epochs=9, checkpoint=path)
    equal(resumed.parameters, train(data=TASKS[task], epochs=9).parameters)


def test_a_trained_network_is_trained_further_on_other_data(tmp_path):
    """The first step is Adam's, from the trained parameters, with the training's rate."""
    trained = train(OWN, epochs=20, rate=0.005, input_dropout=0.25)
    other = NodeData(**small_data(train=SMALL.test, test=SMALL.train))
    tuned = train(trained, other, epochs=1)
    steps = [tuned.parameters[name] - array for name, array in trained.parameters.items()]
    moved = abs(np.concatenate([step.ravel() for step in steps]))
    assert moved.max() == pytest.approx(0.005, rel=1e-3)  # Adam's first step has the rate's length
    assert tuned.settings["input_dropout"] == 0.25
    assert train(trained, other, epochs=1, rate=1e-4).settings["rate"] == 1e-4
    trained.save(tmp_path / "a.npz")
    loaded = layers.load(tmp_path / "a.npz")
    equal(train(loaded, other, epochs=3).parameters, train(trained, other, epochs=3).parameters)
    path, tuned_path = tmp_path / "a.npz", tmp_path / "tuned.npz"
    train(layers.load(path), other, epochs=2, checkpoint=tuned_path)
    resumed = train(layers.load(path), other, epochs=5, checkpoint=tuned_path)
    equal(resumed.parameters, train(trained, other, epochs=5).parameters)
    with pytest.raises(ArgumentError, match="it started from other parameters"):
        train(tuned, other, epochs=5, checkpoint=tuned_path)


def test_a_network_for_more_classes_takes_data_with_fewer():
    trained = train([GCN(12, 5)])
    assert trained.logits.shape == (N, 5)


def test_layers_of_ones_own_are_saved(tmp_path):
    stack = [Linear(12, 4, activation="relu"), Scaled(4, s=0.5), GCN(4, 2)]
    trained = train(stack, epochs=3)
    assert trained.parameters["1.s"] != 0.5
    trained.save(tmp_path / "a.npz")
    loaded = layers.load(tmp_path / "a.npz")
    assert type(loaded.layers[1]) is Scaled
    predicted = loaded.predict(SMALL.graph, SMALL.features, device="cpu")
    np.testing.assert_array_equal(predicted, trained.logits)
    with np.load(tmp_path / "a.npz") as archive:
        about = json.loads(str(archive["about"]))
    assert about["settings"]["layers"][1] == ["tests.Scaled", {"n_in": 4, "s": 0.5}]


def test_what_load_cannot_read_is_named(tmp_path):
    class Local(Scaled):
        pass

    trained = train([Linear(12, 4), Local(4), GCN(4, 2)], epochs=1)
    path = tmp_path / "a.npz"
    trained.save(path)
    Local.__qualname__ = "Renamed"
    with pytest.raises(ArgumentError, match=r"^path: .*a\.npz has a layer 'tests.*Local'"):
        layers.load(path)
    Local.__qualname__ = "test_what_load_cannot_read_is_named.<locals>.Local"
    Local.shapes = lambda self: {"s": (2,)}
    with pytest.raises(ArgumentError, match=r"^path: .*has 63 parameters, and its layers 64"):
        layers.load(path)
    with pytest.raises(ArgumentError, match=r"^path: .*missing.npz is damaged or no checkpoint"):
        layers.load(tmp_path / "missing.npz")
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ArgumentError, match=r"^path: .*a\.npz is damaged"):
        layers.load(path)
    unstorable = train([Linear(12, 4), Scaled(4, unit=np.zeros(2)), GCN(4, 2)], epochs=1)
    with pytest.raises(ArgumentError, match="^path: an argument of a layer cannot be stored"):
        unstorable.save(path)


# Bad input -----------------------------------------------------------------------------------


def test_layers_that_cannot_fit_are_refused_before_they_are_tried():
    with pytest.raises(DeviceUnavailable, match="wants .* GiB .*: a smaller graph, or narrower"):
        train([GCN(12, 1 << 40), GCN(1 << 40, 2)])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: train([]), "^model: there is no layer"),
        (lambda: train([GCN, GCN]), "^model: got .*: a list of layers"),
        (lambda: train([GCN(11, 2)]), "^model: GCN.* takes 11 columns.*: 12, as the features"),
        (lambda: train([GCN(12, 1)]), "^model: GCN.* gives 1 columns.*: 2, one for each of the cl"),
        (lambda: train([GCN(12, 4)], VALUES), "^model: GCN.* gives 4 columns.*: 2, .* the values"),
        (
            lambda: train([GCN(12, 4), GCN(5, 2)]),
            "^model: GCN.*=4.* gives 4 columns and .* takes 5",
        ),
        (lambda: train([GCN(12, 2)], hidden=3), "^hidden: GCN has no such .*: one of input_dropou"),
        (lambda: train([GCN(12, 2)], input_dropout=1), "^input_dropout: got 1"),
        (lambda: train(depth=0), "^depth: got 0"),
        (lambda: train(depth=1.5), r"^depth: got 1\.5"),
        (lambda: train(train(epochs=1), TASKS["labels"]), "^model: .* gives 2 columns"),
        (
            lambda: train(data=NodeData(SMALL.graph, SMALL.features, SMALL.labels), patience=3),
            "^patience: .* has no validation nodes",
        ),
        (lambda: train(data=replace(SMALL, train=[])), "^data: two communities has no training"),
        (lambda: Network([], SMALL.graph, Products(device="cpu")), "^layers: there is no layer"),
        (
            lambda: train(epochs=1).predict(SMALL.graph, SMALL.features[:, 1:]),
            "^features: they have 11 columns.*: 12, as in training",
        ),
        (
            lambda: train(epochs=1).predict(SMALL.graph, SMALL.features[1:]),
            r"^features: shape \(59, 12\)",
        ),
        (
            lambda: train(epochs=1).predict(sparse.eye_array(3, 4, format="csr"), np.ones((3, 12))),
            "^graph: 3 x 4 is not square",
        ),
        (lambda: train(epochs=1).save("model.pt"), "^path: model.pt"),
        (lambda: layers.load(3), "^path: got 3"),
        (lambda: disjoint_union([]), "^parts: there is none"),
        (lambda: disjoint_union([SMALL, "cora"]), "^parts: some are no NodeData"),
        (lambda: disjoint_union([SMALL, VALUES]), "^parts: task of part 1: values"),
        (
            lambda: disjoint_union([SMALL, sparse_part(1)]),
            "^parts: features of part 1: sparse, of part 0: dense",
        ),
        (lambda: NodeData(**small_data(labels=MANY * 2)), "^labels: .* node 0 has others than"),
        (lambda: NodeData(**small_data(labels=MANY[:, 0])), r"^labels: shape \(60,\), dtype bool"),
        (lambda: NodeData(**small_data(labels=MANY[None])), r"^labels: shape \(1, 60, 3\)"),
        (lambda: NodeData(**small_data(labels=TARGETS * 1e300)), "^labels: one of node 0 is inf"),
        (lambda: NodeData(**small_data(labels=TARGETS * np.nan)), "^labels: every node has a NaN"),
        (lambda: NodeData(**small_data(labels=TARGETS)), "^test: 1 of its nodes have no label"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises((ArgumentError, GraphError), match=message):
        call()


# On a GPU ------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("task", ["labels", "values"])
def test_a_gpu_learns_the_other_tasks(tmp_path, task):
    """Also as a captured CUDA graph: steps after the first ones are one launch."""
    options = {"data": TASKS[task], "epochs": 20, "depth": 3, "hidden": 8, "seed": 6}
    expected = train(**options)
    trained = train(device="cuda", **options)
    np.testing.assert_allclose(trained.history.loss, expected.history.loss, atol=1e-4)
    assert np.isnan(trained.history.dense_seconds.iloc[-1])
    assert trained.scores == pytest.approx(expected.scores, abs=1e-2)
    predicted = trained.predict(TASKS[task].graph, TASKS[task].features, device="cuda")
    np.testing.assert_array_equal(predicted, trained.logits)
    trained.save(tmp_path / "a.npz")
    resumed = train(device="cuda", checkpoint=tmp_path / "a.npz", **{**options, "epochs": 30})
    whole = train(device="cuda", **{**options, "epochs": 30})
    np.testing.assert_array_equal(resumed.logits, whole.logits)


@pytest.mark.parametrize("task", TASKS)
def test_a_step_of_any_task_brings_nothing_from_the_host(monkeypatch, task):
    """A captured graph cannot copy from the host."""
    data, products = TASKS[task], Products(device="cpu")
    stack = [GIN(12, 4, activation="relu", dropout=0.5), SAGE(4, data.n_outputs)]
    run = Run(Network(stack, data.graph, products), data, layers.Adam(0.01), 0.0, "all")
    run.advance()
    placed = []
    monkeypatch.setattr(Products, "placed", lambda self, array: placed.append(array) or array)
    run.advance()
    assert not placed
    assert isinstance(run.network.noise, Noise)
