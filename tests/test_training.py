import json
import re
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from accelviz import datasets, layers, load_graph
from accelviz.datasets import NodeData, load_nodes
from accelviz.devices.programs import prepared_program
from accelviz.errors import AccelvizError, ArgumentError, DeviceUnavailable, GraphError
from accelviz.layers import MODELS, Adam, Matrix, Network, Products, memory
from accelviz.layers import products as products_module
from accelviz.layers.models import find_model
from accelviz.layers.train import Run
from accelviz.strategies import OPERATIONS, strategies


def small_data(**changes):
    """Return data of two communities of 30 nodes; edges are more informative than features."""
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2
    near = labels[:, None] == labels[None]
    edges = np.triu(rng.random((60, 60)) < np.where(near, 0.2, 0.02), 1)
    features = rng.standard_normal((60, 12)) + 0.5 * labels[:, None]
    parts = np.split(rng.permutation(60), [20, 40])
    arguments = {
        "graph": sparse.csr_array((edges | edges.T).astype(np.float32)),
        "features": features,
        "labels": labels,
        **dict(zip(("train", "val", "test"), parts, strict=True)),
        "name": "two communities",
    }
    return {**arguments, **changes}


SMALL = NodeData(**small_data())


def train(model="gcn", data=SMALL, **options):
    return layers.train(model, data, **{"device": "cpu", "progress": False, "epochs": 5, **options})


# Data ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("cora", (2708, 1433, 7, 140)), ("Citeseer", (3327, 3703, 6, 120))],
)
def test_bundled_data_is_the_published_one(name, sizes):
    data = load_nodes(name)
    assert (data.n_nodes, data.n_features, data.n_outputs, data.train.size) == sizes
    assert (data.val.size, data.test.size) == (500, 1000)
    assert (np.bincount(data.labels[data.train]) == 20).all()
    sums = data.features.adjacency.sum(axis=1)
    np.testing.assert_allclose(sums[data.features.degrees > 0], 1, rtol=1e-6)
    assert load_nodes(data) is data


def test_masks_and_numbers_of_nodes_are_the_same():
    mask = np.zeros(60, bool)
    mask[SMALL.train] = True
    np.testing.assert_array_equal(NodeData(**small_data(train=mask)).train, SMALL.train)


NAN = small_data()["features"].copy()
NAN[17, 4] = np.nan
SPARSE_NAN = sparse.csr_array(np.where(np.isnan(NAN), np.nan, 0) + np.eye(60, 12))
LABELS = small_data()["labels"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": None}, "labels: there are none"),
        ({"labels": LABELS[:-1]}, r"labels: shape \(59,\) for 60 nodes"),
        ({"labels": LABELS * 0.5j}, "labels: .*dtype complex128"),
        ({"labels": LABELS - 3}, "labels: -3 of node 0"),
        ({"labels": np.full(60, -1)}, "labels: no node has one"),
        ({"labels": np.where(np.arange(60) == 7, 4000, LABELS)}, r"4000 of node 7.*: 0 to 2"),
        ({"labels": np.where(np.arange(60) == SMALL.train[3], -1, LABELS)}, "train: 1 of its node"),
        ({"train": np.ones(59, bool)}, r"train: a mask of shape \(59,\)"),
        ({"val": np.zeros(60, bool)}, "val: no node is in it"),
        ({"test": [59, 60]}, "test: there is no node 60"),
        ({"test": [-1, 4]}, "test: there is no node -1"),
        ({"test": [4, 4]}, "test: 1 nodes are twice"),
        ({"test": LABELS}, r"test: a number, 0 or 1.*mask.astype\(bool\)"),
        ({"test": [0.5]}, "test: shape"),
        ({"val": SMALL.train}, "train: 20 nodes are in val or test too"),
        ({"features": np.ones((59, 3))}, "features: shape"),
        ({"features": np.ones(60)}, "features: shape"),
        ({"features": np.ones((60, 0))}, "features: shape"),
        ({"features": [["a"]] * 60}, "features: "),
        ({"features": np.ones((60, 3), complex)}, "features: they are complex"),
        ({"features": NAN}, r"features: 1 are NaN.*\(nan\) is column 4 of node 17"),
        ({"features": SPARSE_NAN}, r"features: 1 are NaN.*\(nan\) is column 4 of node 17"),
        ({"features": np.full((60, 2), 1e300)}, "features: 120 are NaN or infinite"),
        ({"graph": sparse.csr_array(np.ones((60, 61)))}, "graph: 60 x 61 is not square"),
    ],
)
def test_data_that_does_not_fit_is_named(change, message):
    with pytest.raises((ArgumentError, GraphError), match=message):
        NodeData(**small_data(**change))


def test_a_class_may_be_without_a_node():
    assert NodeData(**small_data(labels=LABELS + 1)).n_outputs == 3
    assert NodeData(**small_data(labels=LABELS * 3)).n_outputs == 4


@pytest.mark.filterwarnings("error")
def test_a_training_that_leaves_float32_says_so():
    for rate in (1e30, 1e38):
        with pytest.raises(ArgumentError, match=r"rate: the loss of epoch \d+ is (nan|inf)"):
            train(epochs=5, rate=rate)


@pytest.mark.parametrize("name", ["pubmed", "nowhere", None, 3, "collab"])
def test_a_graph_without_labels_is_refused(name):
    with pytest.raises(ArgumentError, match="data: .*cora"):
        train(data=name)


# Training ------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_every_model_learns_two_communities(model):
    trained = train(model, epochs=60, seed=1)
    history = trained.history
    assert len(history) == 60
    assert history.loss.iloc[-5:].mean() < 0.6 * history.loss.iloc[:3].mean()
    assert trained.test_accuracy >= 0.75
    assert trained.test_accuracy == history.test_accuracy.iloc[-1]
    assert set(history) >= {"epoch", "seconds", "loss_seconds", "dense_seconds", "val_accuracy"}
    parts = [name for name in history if name.endswith("_seconds")]
    np.testing.assert_allclose(history[parts].sum(axis=1), history.seconds, rtol=1e-6)
    predicted = trained.logits[SMALL.test].argmax(axis=1)
    assert (predicted == SMALL.labels[SMALL.test]).mean() == pytest.approx(trained.test_accuracy)
    assert all(array.dtype == np.float32 for array in trained.parameters.values())


def test_cora_is_learned():
    trained = train("gcn", "cora", epochs=40)
    assert trained.test_accuracy > 0.76
    assert "spmm_features_seconds" in trained.history


def test_a_seed_gives_the_same_bits_and_another_one_others():
    one, same, other = train(seed=4), train(seed=4), train(seed=5)
    for name, array in one.parameters.items():
        np.testing.assert_array_equal(array, same.parameters[name])
    assert (one.parameters["0.W"] != other.parameters["0.W"]).any()


def with_kernel(operation):
    """Return the strategies of an operation that the CPU can replay."""
    graph = load_graph(sparse.eye_array(4, format="csr"))
    for name in strategies(operation):
        from accelviz import plan

        if plan(graph, name, 4, operation=operation).has_workload:
            yield name


#: Operations, and a model that uses each in its steps.
MODEL_OF = {
    "spmm": ("gcn", {}),
    **dict.fromkeys(["sddmm", "edge_softmax", "edge_softmax_gradient"], ("gat", {"fused": False})),
    **dict.fromkeys(["spmm_max", "spmm_extremum_gradient"], ("sage", {"aggregate": "max"})),
    **dict.fromkeys(["gat", "gat_gradient"], ("gat", {})),
    **dict.fromkeys(["gatv2", "gatv2_gradient"], ("gatv2", {})),
    **dict.fromkeys(["cosine", "cosine_gradient"], ("agnn", {})),
}
CASES = [(operation, name) for operation in MODEL_OF for name in with_kernel(operation)]


def test_every_operation_has_a_model():
    # Layers compute a product's gradients by an spmm of the transpose and an sddmm. Convolutions
    # and dense products are not on graphs; no published layer uses a minimum, and no layer here
    # separate keys and values. Networks with few bits train in float32.
    others = {name for name in OPERATIONS if name.startswith(("scc", "bit_", "dense"))}
    others |= {"spmm_gradient", "spmm_min", "dot", "dot_gradient"}
    assert set(MODEL_OF) == set(OPERATIONS) - others


@pytest.mark.long
@pytest.mark.parametrize(("operation", "name"), CASES)
def test_every_strategy_gives_the_same_losses(operation, name):
    model, options = MODEL_OF[operation]
    options = {"epochs": 20, "hidden": 8, "seed": 2, **options}
    usual = train(model, **options).history
    other = train(model, strategy={operation: name}, **options).history
    assert f"{operation}_seconds" in usual
    np.testing.assert_allclose(other.loss, usual.loss, atol=1e-4)


def strategies_run(**options):
    """Return the strategy of each operation that a training plans, by name."""
    planned = {}
    with pytest.MonkeyPatch.context() as patch:
        plan_of = products_module.plan_of
        patch.setattr(
            products_module,
            "plan_of",
            lambda graph, strategy, widths: (
                planned.update({strategy.operation.name: strategy.name})
                or plan_of(graph, strategy, widths)
            ),
        )
        train(epochs=1, **options)
    return planned


COMPOSED_TC_GNN = {
    **dict.fromkeys(["spmm", "sddmm"], "tc_gnn"),
    **dict.fromkeys(["edge_softmax", "edge_softmax_gradient"], "lane_groups"),
}


@pytest.mark.parametrize(
    ("model", "options", "strategy", "expected"),
    [
        ("gat", {}, "fusegnn_gas", {"gat": "fusegnn_gas", "gat_gradient": "fusegnn_gas"}),
        (
            "gat",
            {},
            ("fusegnn_gar", {"block_size": 64}),
            {"gat": "fusegnn_gar", "gat_gradient": "fusegnn_gar"},
        ),
        ("gcn", {}, "fusegnn_gas", {"spmm": "fusegnn_gas"}),
        ("gat", {"fused": False}, "tc_gnn", COMPOSED_TC_GNN),
        # These have no fused attention: the layers run its parts.
        ("gat", {}, "tc_gnn", COMPOSED_TC_GNN),
        ("agnn", {}, "tc_gnn", COMPOSED_TC_GNN),
        ("agnn", {}, {"spmm": "tc_gnn", "sddmm": "tc_gnn"}, COMPOSED_TC_GNN),
        ("agnn", {}, "row_warp", {"cosine": "row_warp", "cosine_gradient": "row_warp"}),
    ],
)
def test_a_name_switches_on_every_operation_of_a_system(model, options, strategy, expected):
    assert strategies_run(model=model, strategy=strategy, **options) == expected


@pytest.mark.parametrize(
    ("model", "strategy", "message"),
    [
        ("gat", "accel_gcn", "of spmm.*GAT does not run.*strategies of gat, gat_gradient"),
        ("agnn", "fusegnn_gas", "Linear, AGNN does not run.*cosine, cosine_gradient"),
        ("gatv2", "tc_gnn", "of spmm, sddmm.*GATv2 does not run"),
        ("gcn", {"spmm": "accel_gcn", "gat": "fusegnn_gas"}, "of gat.*GCN does not run"),
        ("sage", {"spmm_max": "row_warp"}, "of spmm_max.*SAGE does not run.*strategies of spmm"),
    ],
)
def test_a_strategy_without_effect_is_refused(model, strategy, message):
    with pytest.raises(ArgumentError, match=message):
        train(model, strategy=strategy)
    trained = train(model, epochs=1)
    with pytest.raises(ArgumentError, match=message):
        trained.predict(SMALL.graph, SMALL.features, strategy=strategy, device="cpu")


def test_a_mapping_may_name_the_product_of_sparse_features():
    data = NodeData(**small_data(features=sparse.csr_array(np.eye(60, dtype=np.float32))))
    planned = strategies_run(model="gat", data=data, strategy={"spmm": "accel_gcn"})
    assert planned["spmm"] == "accel_gcn"


@pytest.mark.parametrize("model", ["gat", "agnn"])
def test_fused_attention_learns_what_the_composed_one_learns(model):
    losses = [train(model, epochs=20, fused=fused).history.loss for fused in (True, False)]
    np.testing.assert_allclose(*losses, atol=1e-4)


def test_the_emulator_trains_too():
    usual = train("agnn", hidden=4, epochs=2)
    emulated = train("agnn", hidden=4, epochs=2, device="emulator")
    np.testing.assert_allclose(emulated.history.loss, usual.history.loss, atol=1e-4)
    assert emulated.device == "emulator"


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("model", MODELS)
def test_a_step_after_the_first_brings_nothing_from_the_host(monkeypatch, model, fused):
    """A captured graph cannot copy from the host, also with Cora's sparse features and dropout."""
    options = {**MODELS[model].options, "hidden": 4, "dropout": 0.5}
    if "fused" in options:
        options["fused"] = fused
    elif not fused:
        options |= {"aggregate": "max"} if model == "sage" else {}
    sparse_features = sparse.csr_array(np.maximum(SMALL.features, 0))
    data, products = NodeData(**small_data(features=sparse_features)), Products(device="cpu")
    network = Network(
        MODELS[model].build(12, 2, **options), data.graph, products, input_dropout=0.5
    )
    if model == "gin":  # its matrix depends on a parameter
        network = Network(
            [layers.GIN(12, 4, train_eps=True), layers.GIN(4, 2, eps=0.5)], data.graph, products
        )
    run = Run(network, data, Adam(0.01), 0.0, "all")
    step, _ = prepared_program(run.program, {}, products.executor)
    step()
    placed = []
    monkeypatch.setattr(Products, "placed", lambda self, array: placed.append(array) or array)
    step()
    run.score_sums(run.logits())
    assert not placed


@pytest.mark.parametrize("model", ["gcn", "gin", "sage"])
@pytest.mark.parametrize(("dropout", "stored"), [(0.0, True), (0.5, False)])
def test_features_that_never_change_are_gathered_once(monkeypatch, model, dropout, stored):
    gathered, run = [], Products.run
    monkeypatch.setattr(
        Products,
        "run",
        lambda self, *operands: gathered.append(operands[2]["X"].shape[1]) or run(self, *operands),
    )
    # From 12 columns to 4 the weights are applied first, unless A X is cached.
    losses = train(model, hidden=4, dropout=dropout, epochs=3).history.loss
    assert gathered.count(12) == int(stored)
    monkeypatch.setattr(Matrix, "is_fixed", lambda self, X: False)
    anew = train(model, hidden=4, dropout=dropout, epochs=3).history.loss
    np.testing.assert_allclose(losses, anew, rtol=1e-5)


def test_parameters_of_a_strategy_may_follow_from_the_columns():
    asked = []

    def parameters(n_cols):
        asked.append(n_cols)
        return {"ngs": 16}

    trained = train(strategy=("gnnadvisor", parameters), epochs=20)
    np.testing.assert_allclose(trained.history.loss, train(epochs=20).history.loss, atol=1e-4)
    assert set(asked) == {12, 2}


def test_early_stopping_keeps_the_best_epoch():
    trained = train(epochs=300, patience=10, rate=0.05)
    history = trained.history
    best = int(history.val_accuracy.argmax())
    assert trained.epoch == best + 1
    assert len(history) == best + 11 < 300
    assert trained.scores["val"] == history.val_accuracy[best]
    assert trained.test_accuracy == history.test_accuracy[best]


def test_a_self_loop_is_not_doubled():
    looped = small_data()["graph"].tolil()
    looped.setdiag(1)
    losses = train(data=NodeData(**small_data(graph=looped.tocsr()))).history.loss
    np.testing.assert_allclose(losses, train().history.loss, rtol=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_isolated_nodes_are_classified_too(model):
    matrix = small_data()["graph"].tolil()
    matrix[SMALL.test[:3]] = 0
    matrix[:, SMALL.test[:3]] = 0
    trained = train(model, NodeData(**small_data(graph=matrix.tocsr())))
    assert np.isfinite(trained.logits).all()
    assert np.isfinite(trained.history.loss).all()


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"model": "transformer"}, "model"),
        ({"hidden": 0}, "hidden"),
        ({"heads": 4}, "heads"),
        ({"epochs": 0}, "epochs"),
        ({"rate": -1}, "rate"),
        ({"rate": float("nan")}, "rate"),
        ({"rate": True}, "rate"),
        ({"decay": -1.0}, "decay"),
        ({"decay": float("nan")}, "decay"),
        ({"seed": -1}, "seed"),
        ({"patience": 0}, "patience"),
        ({"dropout": 1.5}, "dropout"),
        ({"strategy": "nobody"}, "strategy"),
        ({"device": "abacus"}, "device"),
        ({"checkpoint": "model.pt"}, "checkpoint"),
        ({"checkpoint": 3}, "checkpoint"),
    ],
)
def test_arguments_that_make_no_sense_are_named(options, argument):
    with pytest.raises(AccelvizError, match=f"^({argument}): "):
        train(**options)


# On a GPU the first steps are launched one by one, the others as one captured graph.


@pytest.mark.gpu
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("model", MODELS)
def test_a_gpu_learns_what_a_cpu_learns(model, fused):
    options = {"epochs": 20, "hidden": 8, "seed": 6}
    if "fused" in MODELS[model].options:
        options |= {"fused": fused}
    elif not fused:
        pytest.skip("it has one form")
    expected = train(model, **options).history
    training = train(model, device="cuda", **options)
    np.testing.assert_allclose(training.history.loss, expected.loss, atol=1e-4)
    assert training.device == "cuda"
    assert training.history.dense_seconds[0] > 0
    assert np.isnan(training.history.dense_seconds.iloc[-1])


@pytest.mark.gpu
@pytest.mark.parametrize("model", ["gcn", "gin", "sage", "gat"])
def test_products_on_tensor_cores_learn_the_same(model):
    """All widths are multiples of 16, so no product of a layer uses cuBLAS.

    Features are small, because GIN's sums of larger ones are so close to 0 that rounding decides
    the ReLU: relative changes of features by 1e-5 then change losses by up to 1.4e-3. With these
    features losses change by 5e-6.
    """
    rng = np.random.default_rng(0)
    changes = {"features": 0.1 * rng.standard_normal((60, 32)), "labels": np.arange(60) % 16}
    data = NodeData(**small_data(**changes))
    options = {"data": data, "epochs": 20, "hidden": 16, "seed": 6}
    expected = train(model, **options).history
    history = train(model, device="cuda", **options).history
    np.testing.assert_allclose(history.loss, expected.loss, atol=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("model", "changes"),
    [("gcn", {}), ("agnn", {}), ("gin", {}), ("gatv2", {}), ("gat", {}), ("gat", {"fused": False})],
)
def test_a_gpu_learns_cora_and_resumes(tmp_path, model, changes):
    """Results are bit-identical whether steps are launched singly or as a captured graph."""
    options = {"device": "cuda", "seed": 1, **changes}
    whole = train(model, "cora", epochs=60, **options)
    assert whole.test_accuracy > (0.76 if model == "gcn" else 0.5)
    train(model, "cora", epochs=31, checkpoint=tmp_path / "a.npz", **options)
    resumed = train(model, "cora", epochs=60, checkpoint=tmp_path / "a.npz", **options)
    np.testing.assert_array_equal(resumed.logits, whole.logits)


@pytest.mark.gpu
@pytest.mark.parametrize("aggregate", ["mean", "max"])
def test_sage_on_a_gpu(aggregate):
    losses = [
        train("sage", epochs=20, device=device, aggregate=aggregate).history.loss
        for device in ("cpu", "cuda")
    ]
    np.testing.assert_allclose(*losses, atol=1e-4)


def test_what_cannot_fit_is_refused_before_it_is_tried():
    message = r"wants [\d,]+\.\d GiB at the least.* What to do: hidden=(\d+) would fit"
    with pytest.raises(DeviceUnavailable, match=message) as refused:
        train(hidden=1 << 40)
    fits = int(re.search(message, str(refused.value))[1])
    free = Products(device="cpu").executor.free_bytes()
    least = [
        memory.least_bytes(MODELS["gcn"].build(12, 2, hidden=hidden, depth=2, dropout=0.5), 60)
        for hidden in (fits, 2 * fits)
    ]
    assert least[0] <= free / memory._MAX_RATIO < least[1]


@pytest.mark.parametrize("model", MODELS)
def test_what_is_advised_would_fit(model):
    """Features are not wider than the hidden layers."""
    n, rng = 4000, np.random.default_rng(0)
    matrix = sparse.random_array((n, n), density=4 / n, rng=rng, dtype=np.float32)
    X, half = rng.standard_normal((n, 64), dtype=np.float32), np.arange(n // 2)
    data = NodeData(matrix, X, np.arange(n) % 8, half, half[:9] + n // 2, half[9:] + n // 2)
    products = Products(device="cpu")
    known, options = find_model(model, {"hidden": 8 if "gat" in model else 64})
    stack = known.build(64, 8, **options)
    network = Network(stack, data.graph, products, input_dropout=options["dropout"])
    run = Run(network, data, Adam(known.rate), known.decay, known.decayed)
    run.advance()
    tracemalloc.start()
    try:
        run.advance()
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    least = memory.least_bytes(stack, n)
    assert least < most < memory._MAX_RATIO * least


@pytest.mark.parametrize("error", [MemoryError("7.0 GiB for an array"), None])
def test_running_out_of_memory_is_explained(monkeypatch, error):
    def run_out(self):
        if error is not None:
            raise error
        raise DeviceUnavailable("device 'cpu'", "of a plan", "") from MemoryError()

    monkeypatch.setattr(Run, "advance", run_out)
    with pytest.raises(DeviceUnavailable, match="out of memory: .* hidden=(8|4|2) would fit"):
        train()


def test_a_device_that_is_not_there_is_not_called_out_of_memory(monkeypatch):
    def gone(self):
        raise DeviceUnavailable("device 'cpu'", "it is gone", "")

    monkeypatch.setattr(Run, "advance", gone)
    with pytest.raises(DeviceUnavailable, match="it is gone"):
        train()


# Checkpoints ---------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["gcn", "gat"])
def test_a_checkpoint_goes_on_bit_for_bit(tmp_path, model):
    path = tmp_path / "half.npz"
    train(model, epochs=4, checkpoint=path)
    resumed, whole = train(model, epochs=9, checkpoint=path), train(model, epochs=9)
    for name, array in whole.parameters.items():
        np.testing.assert_array_equal(array, resumed.parameters[name])
    timed = [name for name in whole.history if name.endswith("seconds")]
    assert resumed.history.drop(columns=timed).equals(whole.history.drop(columns=timed))
    again = train(model, epochs=9, checkpoint=path)
    np.testing.assert_array_equal(again.logits, whole.logits)
    with pytest.raises(ArgumentError, match="^epochs: got 8, and .*half.npz has gone on to 9"):
        train(model, epochs=8, checkpoint=path)


def test_settings_may_be_numpys(tmp_path):
    settings = {"hidden": np.int64(8), "dropout": np.float32(0.5), "rate": np.float64(0.01)}
    train(epochs=np.int32(1), checkpoint=tmp_path / "a.npz", **settings)
    plain = {name: value.item() for name, value in settings.items()}
    resumed = train(epochs=2, checkpoint=tmp_path / "a.npz", **plain)
    np.testing.assert_array_equal(resumed.logits, train(epochs=2, **plain).logits)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "sage"}, "model is 'gcn', not 'sage'"),
        ({"hidden": 8}, "hidden is 16, not 8"),
        ({"seed": 1}, "seed is 0, not 1"),
        ({"rate": 0.02}, "rate is 0.01, not 0.02"),
        (
            {"data": NodeData(**small_data(labels=np.roll(LABELS, 1)))},
            "its graph, features, labels or split differ",
        ),
    ],
)
def test_a_checkpoint_of_another_training_is_refused(tmp_path, change, message):
    path = tmp_path / "one.npz"
    train(epochs=1, checkpoint=path)
    with pytest.raises(ArgumentError, match=message):
        train(checkpoint=path, **change)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    path = tmp_path / "one.npz"
    train(epochs=1, checkpoint=path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for length in (0, 10, len(whole) // 2, len(whole) - 30):
        path.write_bytes(whole[:length])
        with pytest.raises(ArgumentError, match="checkpoint: .* is damaged"):
            train(checkpoint=path)
    refused = 0
    for _ in range(60):
        byte, bit = rng.integers(len(whole)), 1 << rng.integers(8)
        damaged = bytearray(whole)
        damaged[byte] ^= bit
        path.write_bytes(damaged)
        try:
            training = train(epochs=1, checkpoint=path)
        except ArgumentError:
            refused += 1
        else:  # a bit that means nothing, such as a date in the archive
            assert training.test_accuracy == train(epochs=1).test_accuracy
    assert refused > 30
    path.write_bytes(whole)
    with np.load(path) as archive:
        arrays = {**archive}
    np.savez(path, **{**arrays, "flat": arrays["flat"] + 1})
    with pytest.raises(ArgumentError, match="does not match its checksum"):
        train(checkpoint=path)
    about = json.loads(str(arrays["about"]))
    np.savez(path, **{**arrays, "about": np.array(json.dumps({**about, "version": 99}))})
    with pytest.raises(ArgumentError, match="version 99"):
        train(checkpoint=path)


def test_the_public_names_are_exported():
    assert {"NodeData", "load_nodes"} <= set(datasets.__all__)
    assert {"spmm", "sddmm", "edge_softmax"} <= set(OPERATIONS)
    assert repr(train()).startswith("Training('gcn' on 'two communities': 5 epochs")
