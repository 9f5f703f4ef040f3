"""The networks that `train` accepts: by name, with the hyperparameters of papers, or as layers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
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
    name : str
    build : callable
        `build(n_features, n_outputs, **options)` returns the layers.
    options : mapping
        Default keyword arguments of `build`.
    rate, decay : float
        Learning rate, and factor of the L2 penalty.
    decayed : {"first", "all"}
        Layers whose parameters have the penalty.
    source : str
        Origin of the hyperparameters.
    """

    name: str
    build: Callable[..., list[Layer]]
    options: Mapping[str, Any]
    rate: float
    decay: float
    decayed: str
    source: str


def _stack(layer: Callable[..., Layer], activation: str = "relu") -> Callable[..., list[Layer]]:
    """Return `build` for equal layers; with attention the last one takes the mean of its heads."""

    def build(
        n_features: int,
        n_outputs: int,
        *,
        hidden: int,
        depth: int,
        dropout: float,
        output_heads: int | None = None,
        **options: Any,
    ) -> list[Layer]:
        stack: list[Layer] = []
        for _ in range(depth - 1):
            epilogue = {"activation": activation, "dropout": dropout}
            stack.append(layer(n_features, hidden, **epilogue, **options))
            n_features = stack[-1].width
        if output_heads is not None:
            options |= {"heads": output_heads, "concat": False}
        return [*stack, layer(n_features, n_outputs, **options)]

    return build


def _agnn(
    n_features: int, n_outputs: int, *, hidden: int, depth: int, dropout: float, fused: bool
) -> list[Layer]:
    attention = [AGNN(hidden, train_beta=i > 0, fused=fused) for i in range(depth - 1)]
    return [
        Linear(n_features, hidden, activation="relu"),
        *attention,
        AGNN(hidden, train_beta=depth > 1, dropout=dropout, fused=fused),
        Linear(hidden, n_outputs),
    ]


_GCN: dict[str, Any] = {"hidden": 16, "depth": 2, "dropout": 0.5}
_GIN = {"hidden": 64, "depth": 2, "dropout": 0.6}
_SAGE = {**_GCN, "aggregate": "mean"}
_GATV2: dict[str, Any] = {"hidden": 8, "depth": 2, "heads": 8, "output_heads": 1, "dropout": 0.6}
_GATV2 |= {"attention_dropout": 0.6}
_GAT = {**_GATV2, "fused": True}
_GIN_SOURCE = "by accuracy on Cora's validation nodes (docs/training.md)"

_MODELS = (
    Model("gcn", _stack(GCN), _GCN, 0.01, 5e-4, "first", "Kipf and Welling, ICLR 2017"),
    Model("gin", _stack(GIN), _GIN, 0.005, 5e-3, "all", _GIN_SOURCE),
    Model("sage", _stack(SAGE), _SAGE, 0.01, 5e-4, "all", "the settings of GCN"),
    Model("gat", _stack(GAT, "elu"), _GAT, 0.005, 5e-4, "all", "Velickovic et al., ICLR 2018"),
    Model("gatv2", _stack(GATv2, "elu"), _GATV2, 0.005, 5e-4, "all", "the settings of GAT"),
    Model("agnn", _agnn, {**_GCN, "fused": True}, 0.01, 5e-4, "all", "Thekumparampil et al., 2018"),
)
MODELS = {model.name: model for model in _MODELS}


def checked_layers(argument: str, layers: Any) -> list[Layer]:
    """Return layers as a list; raises ArgumentError unless each takes what the one before gives."""
    if not isinstance(layers, Sequence) or not all(isinstance(layer, Layer) for layer in layers):
        raise ArgumentError(argument, f"got {layers!r:.80}", "a list of layers")
    if not layers:
        raise ArgumentError(argument, "there is no layer", "at least one")
    for before, after in itertools.pairwise(layers):
        if before.width != after.n_in:
            problem = f"{before} gives {before.width} columns and {after} takes {after.n_in}"
            raise ArgumentError(argument, problem, "as many")
    return list(layers)


def model_of_layers(layers: Any, **changes: Any) -> Model:
    """Return the model of given layers; `changes` replace its attributes, such as `rate`."""
    layers = checked_layers("model", layers)
    name = ", ".join(type(layer).__name__ for layer in layers)
    defaults = {"options": {"input_dropout": 0.0}, "rate": 0.01, "decay": 0.0, "decayed": "all"}
    defaults |= {"name": name, "source": "Kingma and Ba, ICLR 2015"}
    return Model(build=lambda *sizes, **options: layers, **{**defaults, **changes})


def find_model(model: Any, changes: Mapping[str, Any]) -> tuple[Model, dict[str, Any]]:
    """Return a model and its options; `changes` replace some of its defaults.

    Parameters
    ----------
    model : str, sequence of Layer, or Model
    changes : mapping

    Raises
    ------
    ArgumentError
        If there is no such model, it has no such option, or `hidden` or `depth` is invalid.
    """
    if isinstance(model, list | tuple):
        model = model_of_layers(model)
    elif isinstance(model, str):
        model = MODELS.get(model.lower(), model)
    if not isinstance(model, Model):
        expected = f"one of {', '.join(MODELS)}, a list of layers, or a trained network"
        raise ArgumentError("model", f"there is no {model!r:.80}", expected)
    for name in changes:
        if name not in model.options:
            expected = f"one of {', '.join(model.options)}"
            raise ArgumentError(name, f"{model.name} has no such option", expected)
    options = {**model.options, **changes}
    for name, value in options.items():  # checkpoints store them as JSON
        options[name] = value.item() if isinstance(value, np.generic) else value
    for name in {"hidden", "depth"} & {*options}:
        checked_integer(name, options[name], error=ArgumentError)
    return model, options
