"""The networks that `train` accepts by name, with the hyperparameters of their papers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from accelviz.errors import ArgumentError, checked_integer
from accelviz.layers.attention import AGNN, GAT, GATv2
from accelviz.layers.convolution import GCN, GIN, SAGE
from accelviz.layers.layer import Layer, Linear


@dataclass(frozen=True)
class Model:
    """A kind of network with its hyperparameters.

    Attributes
    ----------
    build : callable
        `build(n_features, n_classes, **options)` returns the layers.
    options : mapping
        Default keyword arguments of `build`.
    rate, decay : float
        Learning rate, and factor of the L2 penalty.
    decayed : {"first", "all"}
        Layers whose parameters have the penalty.
    source : str
        Origin of the hyperparameters.
    """

    build: Callable[..., list[Layer]]
    options: Mapping[str, Any]
    rate: float
    decay: float
    decayed: str
    source: str


def _two_layers(layer: Callable[..., Layer]) -> Callable[..., list[Layer]]:
    def build(
        n_features: int, n_classes: int, *, hidden: int, dropout: float, **options: Any
    ) -> list[Layer]:
        first = layer(n_features, hidden, activation="relu", dropout=dropout, **options)
        return [first, layer(hidden, n_classes, **options)]

    return build


def _attention(layer: type[GAT]) -> Callable[..., list[Layer]]:
    def build(
        n_features: int,
        n_classes: int,
        *,
        hidden: int,
        heads: int,
        output_heads: int,
        dropout: float,
        **options: Any,
    ) -> list[Layer]:
        epilogue: dict[str, Any] = {"activation": "elu", "dropout": dropout}
        first = layer(n_features, hidden, heads=heads, **epilogue, **options)
        last = layer(first.width, n_classes, heads=output_heads, concat=False, **options)
        return [first, last]

    return build


def _agnn(
    n_features: int, n_classes: int, *, hidden: int, dropout: float, fused: bool
) -> list[Layer]:
    return [
        Linear(n_features, hidden, activation="relu"),
        AGNN(hidden, train_beta=False, fused=fused),
        AGNN(hidden, dropout=dropout, fused=fused),
        Linear(hidden, n_classes),
    ]


_GCN: dict[str, Any] = {"hidden": 16, "dropout": 0.5}
_GIN = {"hidden": 64, "dropout": 0.6}
_SAGE = {**_GCN, "aggregate": "mean"}
_GAT = {"hidden": 8, "heads": 8, "output_heads": 1, "dropout": 0.6, "attention_dropout": 0.6}
_GAT |= {"fused": True}
_AGNN = {**_GCN, "fused": True}
_GIN_SOURCE = "by accuracy on Cora's validation nodes (docs/training.md)"

MODELS: dict[str, Model] = {
    "gcn": Model(_two_layers(GCN), _GCN, 0.01, 5e-4, "first", "Kipf and Welling, ICLR 2017"),
    "gin": Model(_two_layers(GIN), _GIN, 0.005, 5e-3, "all", _GIN_SOURCE),
    "sage": Model(_two_layers(SAGE), _SAGE, 0.01, 5e-4, "all", "the settings of GCN"),
    "gat": Model(_attention(GAT), _GAT, 0.005, 5e-4, "all", "Velickovic et al., ICLR 2018"),
    "gatv2": Model(_attention(GATv2), _GAT, 0.005, 5e-4, "all", "the settings of GAT"),
    "agnn": Model(_agnn, _AGNN, 0.01, 5e-4, "all", "Thekumparampil et al., 2018"),
}


def find_model(model: str, changes: Mapping[str, Any]) -> tuple[Model, dict[str, Any]]:
    """Return a model and its options; `changes` replace some of its defaults.

    Raises
    ------
    ArgumentError
        If there is no such model, it has no such option, or `hidden` is not a positive integer.
    """
    if not isinstance(model, str) or model.lower() not in MODELS:
        raise ArgumentError("model", f"there is no {model!r}", f"one of {', '.join(MODELS)}")
    known_model = MODELS[model.lower()]
    for name in changes:
        if name not in known_model.options:
            expected = f"one of {', '.join(known_model.options)}"
            raise ArgumentError(name, f"{model} has no such option", expected)
    options = {**known_model.options, **changes}
    for name, value in options.items():  # checkpoints store them as JSON
        options[name] = value.item() if isinstance(value, np.generic) else value
    checked_integer("hidden", options["hidden"], error=ArgumentError)
    return known_model, options
