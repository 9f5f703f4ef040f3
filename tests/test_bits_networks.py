"""Batches of dense subgraphs, and networks with few bits, trained and run on them."""

import numpy as np
import pytest

from accelviz import bits
from accelviz.bits import batches, networks
from accelviz.datasets import stochastic_block
from accelviz.datasets.nodes import NodeData, load_nodes
from accelviz.errors import ArgumentError, DeviceUnavailable
from accelviz.layers import Network, Products
from tests.graphs import graph_of_degrees
from tests.test_bits import each_device, host


def planted(n=240, classes=4, within=0.9):
    graph = stochastic_block(8 * n, n_nodes=n, n_blocks=classes, within=within, seed=3)
    rng = np.random.default_rng(3)
    labels = np.arange(n) * classes // n
    X = rng.standard_normal((classes, 12))[labels] + rng.standard_normal((n, 12))
    split = np.split(rng.permutation(n), (n // 6, n // 3))
    return NodeData(graph, X.astype(np.float32), labels, *split, name="planted")


def test_batches_have_every_edge_that_no_cut_takes():
    graph = stochastic_block(3000, n_nodes=200, n_blocks=7, seed=1)
    part = np.random.default_rng(1).permutation(np.arange(200) * 7 // 200)
    every = list(batches.batches(graph, part, 3))
    assert [batch.starts.size - 1 for batch in every] == [3, 3, 1]
    assert np.array_equal(np.sort(np.concatenate([one.nodes for one in every])), np.arange(200))
    dense = graph.adjacency.toarray() != 0
    same = part[:, None] == part
    for batch in every:
        expected = (dense & same)[np.ix_(batch.nodes, batch.nodes)]
        np.fill_diagonal(expected, True)
        assert np.array_equal(batch.A.levels(), expected)
        assert np.array_equal(batch.degrees, expected.sum(axis=1))
    assert batches.cut_edges(graph, part) == (dense & ~same).sum()


@pytest.mark.long  # Numba compiles Rabbit order
def test_rabbit_order_is_cut_into_equal_parts():
    graph = stochastic_block(3000, n_nodes=200, n_blocks=4, within=0.99, order="shuffled", seed=1)
    part = batches.partition(graph, 4, "rabbit")
    assert (np.bincount(part) == 50).all()
    assert batches.cut_edges(graph, part) < 0.4 * graph.nnz


def test_metis_cuts_communities_apart():
    pytest.importorskip("pymetis")
    graph = stochastic_block(8000, n_nodes=400, n_blocks=4, within=0.97, order="shuffled", seed=2)
    part = batches.partition(graph, 4)
    assert batches.cut_edges(graph, part) < 0.05 * graph.nnz


def test_a_partition_needs_a_square_graph_and_its_package(monkeypatch):
    graph = graph_of_degrees([1, 2])
    monkeypatch.setitem(__import__("sys").modules, "pymetis", None)
    with pytest.raises(DeviceUnavailable, match="pymetis is not installed.*method='rabbit'"):
        batches.partition(graph, 2)
    with pytest.raises(ArgumentError, match="parts: got 3.*1 to 2"):
        batches.partition(graph, 3)
    with pytest.raises(ArgumentError, match="method: there is no 'best'"):
        batches.partition(graph, 2, "best")
    with pytest.raises(ArgumentError, match="graph: 2 x 5"):
        batches.partition(graph_of_degrees([1, 2], 5), 1)


def test_tensors_travel_in_one_piece():
    A = batches.pack_pattern(graph_of_degrees([3, 0, 7, 2]))
    X = bits.pack(np.arange(70).reshape(7, 10) % 8, 3, "right")
    buffer, (A_moved, X_moved) = batches.one_transfer(A, X)
    assert buffer.nbytes == A.nbytes + X.nbytes
    assert np.array_equal(bits.product(A_moved, X_moved, device="cpu"), A.levels() @ X.levels())
    assert np.shares_memory(buffer, X_moved.words)


@pytest.mark.sample(8)
@each_device
@pytest.mark.parametrize("model", networks.MODELS)
def test_whole_numbers_come_to_what_training_rounds_to(model, device):
    """Ties of floor may round differently in float32, in a few of a thousand numbers."""
    nodes = planted()
    training, trained = networks.train(model, nodes, 4, epochs=40, device="cpu", progress=False)
    (batch,) = batches.batches(nodes.graph, batches.partition(nodes.graph, 1), 1)
    quantized = networks.BitNetwork.of(trained, nodes, 4)
    logits = host(quantized.run(batch, quantized.features(nodes.features), device))
    near = np.isclose(logits, training.logits, rtol=1e-3, atol=1e-3).all(axis=1)
    assert near.mean() > 0.95
    assert networks.accuracy(logits, nodes) > 0.6
    assert networks.accuracy(logits, nodes) == pytest.approx(training.test_accuracy, abs=0.03)


@pytest.mark.gpu
@pytest.mark.parametrize("n_nodes", [541, 3560])
@pytest.mark.parametrize("model", networks.MODELS)
def test_wide_batches_run_as_on_the_host(model, n_nodes):
    """The sizes at which warpgroups multiply, whose operands the copy engine brings."""
    nodes = planted(n_nodes)
    (batch,) = batches.batches(nodes.graph, np.zeros(n_nodes, np.int32), 1)
    for width in (8, 4, 2):
        built = networks.layers_of(model, 12, 4, width)
        network = Network(built, nodes.graph, Products(None, "cpu"))
        quantized = networks.BitNetwork.of(network, nodes, width)
        X = quantized.features(nodes.features)
        on_gpu = host(quantized.run(batch, X, "cuda"))
        np.testing.assert_allclose(on_gpu, quantized.run(batch, X, "cpu"), rtol=1e-5, atol=1e-5)


def test_bags_of_words_are_single_bits():
    nodes = load_nodes("cora")
    built = networks.layers_of("gcn", nodes.n_features, nodes.n_outputs, 8)
    network = Network(built, nodes.graph, Products(None, "cpu"))
    quantized = networks.BitNetwork.of(network, nodes, 8)
    few = np.arange(50)
    X = quantized.features(nodes.features, few)
    assert X.bits == 1
    assert np.array_equal(X.sums, nodes.features.degrees[:50])
    with pytest.raises(ArgumentError, match="features: sparse, and other than ones"):
        networks.check_bags_of_words(graph_of_degrees([1, 2]))


def test_gradients_go_straight_through():
    """Gradients with 16 bits are close to those of float32, those with 2 bits are not."""
    nodes = planted(60, 3)
    gradients = {}
    for width in (32, 16, 2):
        built = networks.layers_of("gcn", 12, 3, width)
        network = Network(built, nodes.graph, Products(None, "cpu"))
        logits, contexts = network.forward(nodes.features)
        dY = np.cos(np.arange(logits.size, dtype=np.float32)).reshape(logits.shape)
        network.backward(contexts, dY)
        gradients[width] = network.gradient.copy()
    size = abs(gradients[32]).max()
    assert abs(gradients[16] - gradients[32]).max() < 0.05 * size
    assert np.isfinite(gradients[2]).all()
    assert abs(gradients[2] - gradients[32]).max() > 0.05 * size


def test_other_bits_and_models_are_refused():
    with pytest.raises(ArgumentError, match="bits: got 20.*1 to 16"):
        networks.layers_of("gcn", 4, 2, 20)
    with pytest.raises(ArgumentError, match="model.*'gat'"):
        networks.layers_of("gat", 4, 2, 8)
