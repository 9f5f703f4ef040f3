import numpy as np
import pytest

from accelviz import layers
from accelviz.datasets import NodeData
from accelviz.errors import ArgumentError
from accelviz.layers.gnnadvisor import renumbered
from accelviz.ordering import random_order
from tests.test_training import SMALL, small_data, train

QUICK = {"device": "cpu", "progress": False, "epochs": 8}


def test_decisions_are_printed_with_their_reasons(capsys):
    layers.gnnadvisor("gcn", "cora", **{**QUICK, "epochs": 1})
    said = capsys.readouterr().out
    for part in ("2,708 nodes", "16 and 7 columns", "sqrt(AES)", "Rabbit order", "Equation 3.6"):
        assert part in said
    assert "dw = 16" in said
    assert "ngs = 1024" in said
    layers.gnnadvisor("gcn", SMALL, quiet=True, **QUICK)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("model", ["gcn", "gin"])
def test_new_numbers_change_nothing_but_the_order(model):
    settings = {**QUICK, "dropout": 0.0, "seed": 3}
    advised = layers.gnnadvisor(model, SMALL, quiet=True, **settings)
    usual = train(model, **settings)
    np.testing.assert_allclose(advised.history.loss, usual.history.loss, atol=1e-4)
    np.testing.assert_allclose(advised.logits, usual.logits, atol=1e-3)
    assert advised.data is SMALL


def test_renumbered_data_is_the_same_graph():
    order = random_order(SMALL.graph, seed=4)
    data = renumbered(SMALL, order)
    np.testing.assert_array_equal(np.sort(order.order[data.train]), SMALL.train)
    dense, wanted = data.graph.adjacency.toarray(), SMALL.graph.adjacency.toarray()
    np.testing.assert_array_equal(dense, wanted[np.ix_(order.order, order.order)])
    np.testing.assert_array_equal(data.labels, SMALL.labels[order.order])


def test_widths_are_those_that_are_gathered():
    data = layers.advise("gcn", SMALL).widths
    assert data == (12, 2)  # 12 features and 16 hidden columns: the matrix comes first
    assert layers.advise("gcn", SMALL, hidden=4).widths == (4, 2)
    assert layers.advise("gcn", "cora", hidden=64).widths == (64, 7)
    wide = layers.advise("gin", "cora", hidden=64)
    assert wide.widths == (64, 7)
    assert [(layer.n_cols, layer.dw) for layer in wide.decisions] == [(64, 32), (7, 16)]


@pytest.mark.parametrize("model", ["gat", "mlp", None])
def test_only_the_papers_models(model):
    with pytest.raises(ArgumentError, match="model: "):
        layers.gnnadvisor(model, SMALL, **QUICK)


@pytest.mark.parametrize(
    "wrong", [{"strategy": "accel_gcn"}, {"hiden": 8}, {"hidden": 0}, {"heads": 2}]
)
def test_what_it_does_not_take_is_refused_before_anything_is_printed(capsys, wrong):
    with pytest.raises(ArgumentError, match=f"^{next(iter(wrong))}: "):
        layers.gnnadvisor("gcn", SMALL, **QUICK, **wrong)
    assert capsys.readouterr().out == ""


def test_a_graph_without_edges_is_trained_too():
    empty = small_data()["graph"] * 0
    empty.eliminate_zeros()
    data = NodeData(**small_data(graph=empty))
    trained = layers.gnnadvisor("gcn", data, quiet=True, **QUICK)
    assert np.isfinite(trained.history.loss).all()
