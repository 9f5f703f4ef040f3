"""Models for PyTorch compute what PyTorch Geometric's compute, with accelviz's layers."""

import pytest

torch = pytest.importorskip("torch")
pyg = pytest.importorskip("torch_geometric.nn")

from accelviz import torch as ours  # noqa: E402
from tests.torch_cases import assert_alike, edges, features, outcome  # noqa: E402

MODELS = {
    "GCN": {"cached": True},
    "GraphSAGE": {"aggr": "max", "jk": "cat"},
    "GIN": {"norm": "batch_norm", "train_eps": True},
    "GAT": {"heads": 2, "jk": "lstm"},
    "GAT v2": {"v2": True, "heads": 2},
}


def both(case):
    """Return the models of both libraries, made with the same seed."""
    models = []
    for library in (pyg, ours):
        torch.manual_seed(1)
        models.append(getattr(library, case.split()[0])(6, 8, 3, out_channels=4, **MODELS[case]))
    return models


@pytest.mark.filterwarnings("ignore:`torch.jit")
@pytest.mark.parametrize("case", MODELS)
def test_models_are_pygs_with_our_layers(case):
    theirs, model = both(case)
    assert all(type(layer).__module__.startswith("accelviz.torch") for layer in model.convs)
    assert str(theirs) == str(model)
    expected = outcome(theirs, features(), edges())
    assert_alike(outcome(model, features(), edges()), expected)
    if "GAT" in case:  # PyTorch Geometric 2.8's attention layers cannot be scripted
        return
    scripted = torch.jit.script(model)
    torch.testing.assert_close(scripted(features(), edges()), model(features(), edges()))


def test_models_run_our_products(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("PyTorch Geometric's message passing")

    monkeypatch.setattr(pyg.MessagePassing, "propagate", refuse)
    for case in MODELS:
        _, model = both(case)
        assert model(features(), edges()).isfinite().all()
