"""Layers behind each other, with their parameters in one array."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.errors import ArgumentError
from accelviz.graph import Graph
from accelviz.layers import dense
from accelviz.layers.dense import Noise
from accelviz.layers.layer import Layer, checked_rate
from accelviz.layers.products import Matrix, Products
from accelviz.random import element_uniform

#: Numbers of arrays in a step that a layer may draw for: its result's, and its edges'.
_SITES_PER_LAYER = 2
#: Site of the first parameter's initial values, beyond those of all layers.
_FIRST_INITIAL_SITE = 1 << 15


class Network:
    """Layers behind each other on one graph.

    Parameters
    ----------
    layers : sequence of Layer
        Each takes what the one before gives.
    graph : Graph
    products : Products
        Where it runs.
    seed : int
        Of the initial values and of dropout.
    input_dropout : float
        The share of the features that is dropped while training.

    Attributes
    ----------
    flat, gradient : arrays of float32, shape (n_parameters,)
        All parameters behind each other, and their gradient.
    parameters : list of dict of str to array
        Of each layer: views of `flat`.
    noise : Noise
        What dropout draws in the next step; its table counts the steps.

    Raises
    ------
    ArgumentError
        If a layer does not take what the one before gives.
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        graph: Graph,
        products: Products,
        seed: int = 0,
        input_dropout: float = 0.0,
    ) -> None:
        self.layers, self.products, self.seed = tuple(layers), products, seed
        self.input_dropout = checked_rate("input_dropout", input_dropout)
        for before, after in zip(self.layers, self.layers[1:], strict=False):
            if before.width != after.n_in:
                what = f"one gives {before.width} columns and the next takes {after.n_in}"
                raise ArgumentError("layers", what, "as many")
        self._matrices = [layer.prepared(graph, products) for layer in self.layers]
        for i, layer in enumerate(self.layers):
            layer.needs_input_gradient = i > 0
        for before, after in zip(self.layers, self.layers[1:], strict=False):
            if before.activation == "relu" and after.takes_slope:
                before.is_met_half_way, after.input_rate = True, before.dropout
        initial = self.initial()
        self.flat = products.placed(np.concatenate([each.ravel() for each in initial.values()]))
        self.gradient = products.xp.zeros_like(self.flat)
        self.parameters = self._views(self.flat)
        self._gradients = self._views(self.gradient)
        table = Noise.of(seed, _SITES_PER_LAYER * (len(self.layers) + 1)).table
        self.noise = Noise(products.placed(table), 0)

    def fix(self, X: Any) -> None:
        """Promise that the features never change, so that layers may keep what is made of them.

        None takes the promise back. Sparse features, and those of which a part is dropped, are
        multiplied with weights first or new in each step anyway.
        """
        if not isinstance(X, Matrix) and not self.input_dropout and self._matrices[0] is not None:
            self._matrices[0].fix(X)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every parameter, by the layer's number and name: "0.W"."""
        each = enumerate(self.layers)
        return {f"{i}.{name}": s for i, layer in each for name, s in layer.shapes().items()}

    def initial(self) -> dict[str, npt.NDArray[np.float32]]:
        """Return the parameters before training, on the host.

        Matrices and vectors of attention are uniform within `sqrt(6 / (rows + columns))` of 0
        (Glorot and Bengio, 2010), biases 0, `beta` and `eps` as their layer says.
        """
        found: dict[str, npt.NDArray[np.float32]] = {}
        for site, (key, shape) in enumerate(self.shapes().items(), _FIRST_INITIAL_SITE):
            number, _, name = key.partition(".")
            if len(shape) == 1:
                value = getattr(self.layers[int(number)], name, 0.0) if shape == (1,) else 0.0
                value = value if isinstance(value, float) else 0.0
                found[key] = np.full(shape, value, np.float32)
                continue
            bound = math.sqrt(6 / sum(shape))
            drawn = element_uniform(math.prod(shape), self.seed, site).reshape(shape)
            found[key] = (2 * bound * drawn - bound).astype(np.float32)
        return found

    def _views(self, flat: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = [{} for _ in self.layers]
        start = 0
        for key, shape in self.shapes().items():
            number, _, name = key.partition(".")
            stop = start + math.prod(shape)
            found[int(number)][name] = flat[start:stop].reshape(shape)
            start = stop
        return found

    def _noise_of(self, layer: int, noise: Noise | None) -> Noise | None:
        return None if noise is None else noise.at(_SITES_PER_LAYER * (layer + 1))

    def forward(self, X: Any, noise: Noise | None = None) -> tuple[Any, list[Any]]:
        """Return the last layer's result and what `backward` needs.

        Parameters
        ----------
        X : array of float32, shape (n_nodes, n_features), or Matrix
        noise : Noise, optional
            What dropout draws, of `noise`. None: nothing is dropped.
        """
        kept = []
        if noise is not None and self.input_dropout:
            with self.products.clock("dropout"):
                X = self._dropped(X, noise)
        for i, layer in enumerate(self.layers):
            arguments = self._matrices[i], X, self.parameters[i], self._noise_of(i, noise)
            X, of_layer = layer.forward(*arguments)
            kept.append(of_layer)
        return X, kept

    def _dropped(self, X: Any, noise: Noise) -> Any:
        if not isinstance(X, Matrix):
            return dense.dropout(X, self.input_dropout, noise)
        return X.with_values(dense.dropout(X.weights, self.input_dropout, noise))

    def backward(self, kept: list[Any], dY: Any, noise: Noise | None = None) -> None:
        """Put the gradient of every parameter into `gradient`, given that of the result."""
        for i in reversed(range(len(self.layers))):
            own = self._noise_of(i, noise)
            arguments = self._matrices[i], dY, kept[i], self.parameters[i], own
            gradients, dY = self.layers[i].backward(*arguments)
            for name, gradient in gradients.items():
                self._gradients[i][name][...] = gradient

    def decay(self, rate: float, layers: str) -> Any:
        """Return the L2 factor of each parameter, (n_parameters,): of "first" or "all" layers."""
        factors = self.products.xp.zeros_like(self.flat)
        for i, parameters in enumerate(self._views(factors)):
            for array in parameters.values():
                array[...] = rate if layers == "all" or i == 0 else 0
        return factors
