"""`Network`: a sequence of layers on one graph, with all parameters in one array."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.graph import Graph
from accelviz.layers.dense import Epilogue, Noise
from accelviz.layers.layer import Context, Layer, checked_rate
from accelviz.layers.models import checked_layers
from accelviz.layers.products import Matrix, Products
from accelviz.random import element_uniform

#: Random sites (`Noise`) of a layer: dropout of its result, and of its attention weights.
_SITES_PER_LAYER = 2
#: Random site of the first parameter's initial values, above those of all layers.
_FIRST_INITIAL_SITE = 1 << 15


def parameter_shapes(layers: Sequence[Layer]) -> dict[str, tuple[int, ...]]:
    """Return the shape of every parameter, by the layer's number and name: "0.W"."""
    numbered = enumerate(layers)
    return {f"{i}.{name}": s for i, layer in numbered for name, s in layer.shapes().items()}


def parameters_by_name(layers: Sequence[Layer], flat: Any) -> dict[str, Any]:
    """Return views of an array of all parameters, by the names of `parameter_shapes`."""
    views, start = {}, 0
    for name, shape in parameter_shapes(layers).items():
        stop = start + math.prod(shape)
        views[name] = flat[start:stop].reshape(shape)
        start = stop
    return views


class Network:
    """A sequence of layers on one graph.

    Parameters
    ----------
    layers : sequence of Layer
        The width of each layer is the `n_in` of the next. The network has copies of them.
    graph : Graph
    products : Products
        The device and the strategies.
    seed : int
        Seed of the initial values and of dropout.
    input_dropout : float
        Share of the features that is dropped in training, 0 to below 1.
    start : mapping of str to array of float32, optional
        Initial parameters by name, as `parameters_by_name` returns them.

    Attributes
    ----------
    layers : tuple of Layer
    flat, gradient : arrays of float32, shape (n_parameters,)
        All parameters in one array, and their gradient.
    parameters : list of dict of str to array
        Parameters of each layer by name, as views of `flat`.
    noise : Noise
        Random numbers of dropout in the next step; its table counts the steps.

    Raises
    ------
    ArgumentError
        If the width of a layer differs from the `n_in` of the next.
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        graph: Graph,
        products: Products,
        seed: int = 0,
        input_dropout: float = 0.0,
        start: Mapping[str, Any] | None = None,
    ) -> None:
        self.layers = tuple(
            copy.copy(products.suited(layer)) for layer in checked_layers("layers", layers)
        )
        self.products, self.seed = products, seed
        self.input_dropout = checked_rate("input_dropout", input_dropout)
        for i, layer in enumerate(self.layers):
            layer.needs_input_gradient = i > 0
            layer.next_layer_applies_activation, layer.input_rate = False, None
        for before, after in itertools.pairwise(self.layers):
            if before.activation == "relu" and after.applies_input_activation:
                before.next_layer_applies_activation, after.input_rate = True, before.dropout
        self._matrices = [layer.prepared(graph, products) for layer in self.layers]
        initial = {**self.initial(), **(start or {})}
        self.flat = products.placed(np.concatenate([array.ravel() for array in initial.values()]))
        self.gradient = products.xp.zeros_like(self.flat)
        self.parameters = self._views(self.flat)
        self._gradients = self._views(self.gradient)
        table = Noise.of(seed, _SITES_PER_LAYER * (len(self.layers) + 1)).table
        self.noise = Noise(products.placed(table), 0)

    def fix(self, X: Any) -> None:
        """Declare that the features X never change; the first layer then multiplies them once.

        None withdraws the declaration. It has no effect with sparse features, which are multiplied
        with the weights first, nor with dropout of features.
        """
        if not isinstance(X, Matrix) and not self.input_dropout and self._matrices[0] is not None:
            self._matrices[0].fix(X)

    def initial(self) -> dict[str, npt.NDArray[np.float32]]:
        """Return the initial parameters, on the host.

        Matrices and vectors of attention are uniform within `sqrt(6 / (rows + columns))` of 0
        (Glorot and Bengio, 2010), biases are 0, and `beta` and `eps` have their layer's values.
        """
        initial: dict[str, npt.NDArray[np.float32]] = {}
        for site, (key, shape) in enumerate(
            parameter_shapes(self.layers).items(), _FIRST_INITIAL_SITE
        ):
            number, _, name = key.partition(".")
            if len(shape) == 1:
                value = getattr(self.layers[int(number)], name, 0.0) if shape == (1,) else 0.0
                value = value if isinstance(value, float) else 0.0
                initial[key] = np.full(shape, value, np.float32)
                continue
            bound = math.sqrt(6 / sum(shape))
            drawn = element_uniform(math.prod(shape), self.seed, site).reshape(shape)
            initial[key] = (2 * bound * drawn - bound).astype(np.float32)
        return initial

    def _views(self, flat: Any) -> list[dict[str, Any]]:
        views: list[dict[str, Any]] = [{} for _ in self.layers]
        for key, array in parameters_by_name(self.layers, flat).items():
            number, _, name = key.partition(".")
            views[int(number)][name] = array
        return views

    def forward(self, X: Any, noise: Noise | None = None) -> tuple[Any, list[Context]]:
        """Return the last layer's result and the contexts that `backward` needs.

        Parameters
        ----------
        X : array of float32, shape (n_nodes, n_features), or Matrix
        noise : Noise, optional
            Random numbers of dropout, usually `self.noise`. Without them there is no dropout.
        """
        contexts = []
        if noise is not None and self.input_dropout:
            with self.products.clock("dropout"):
                X = self._dropped(X, noise)
        layers = zip(self.layers, self._matrices, self.parameters, strict=True)
        for number, (layer, matrix, parameters) in enumerate(layers, 1):
            layer_noise = None if noise is None else noise.at(_SITES_PER_LAYER * number)
            X, context = layer.forward(matrix, X, parameters, layer_noise)
            contexts.append(context)
        return X, contexts

    def _dropped(self, X: Any, noise: Noise) -> Any:
        dropout = Epilogue(dropout=self.input_dropout, noise=noise)
        if not isinstance(X, Matrix):
            return dropout.apply(X)
        return X.with_values(dropout.apply(X.weights))

    def backward(self, contexts: list[Context], dY: Any) -> None:
        """Write the gradients of all parameters to `gradient`, given that of the result, `dY`."""
        layers = zip(self.layers, contexts, self._gradients, strict=True)
        for layer, context, targets in reversed([*layers]):
            gradients, dY = layer.backward(dY, context)
            for name, gradient in gradients.items():
                targets[name][...] = gradient

    def decay(self, rate: float, layers: str) -> Any:
        """Return the L2 factors of parameters: `rate` in the "first" or in "all" layers, else 0."""
        factors = self.products.xp.zeros_like(self.flat)
        for i, parameters in enumerate(self._views(factors)):
            for array in parameters.values():
                array[...] = rate if layers == "all" or i == 0 else 0
        return factors
