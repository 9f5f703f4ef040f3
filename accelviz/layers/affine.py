"""Products of features with parameters, with their epilogues and gradients.

One factor is as tall as the graph and the other is small, so that memory bounds a product on a GPU.
Bias, activation, dropout and their gradients are applied to the product in registers, and products
of the same matrix read it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accelviz.devices.base import is_device_array
from accelviz.layers import dense
from accelviz.layers.dense import Noise
from accelviz.layers.products import Matrix


@dataclass(frozen=True)
class Epilogue:
    """Applied to a product's result: `dropout(activation(Z + bias))`.

    Parameters
    ----------
    bias : array of float32, shape (n_cols,), optional
    activation : {"none", "relu", "elu"}
    rate : float
        Of dropout.
    noise : Noise, optional
        None: nothing is dropped.
    """

    bias: Any = None
    activation: str = "none"
    rate: float = 0.0
    noise: Noise | None = None

    def apply(self, Z: Any, added: Any = None) -> Any:
        """Apply it to a matrix, after adding another one to it."""
        return dense.finish(Z, self.bias, self.activation, self.rate, self.noise, added)


@dataclass(frozen=True)
class ActivationGradient:
    """The gradient of a ReLU and the dropout after it, read off their result.

    Parameters
    ----------
    result : array of float32, shape (n, n_cols)
        It is 0 where the ReLU or the dropout made it 0.
    scale : float
        The factor of dropout for the other elements.
    """

    result: Any
    scale: float = 1.0

    def apply(self, gradient: Any) -> Any:
        """Multiply a gradient with it."""
        return gradient * ((self.result > 0) * np.float32(self.scale))


_IDENTITY = Epilogue()


def affine(inputs: Sequence[Any], weights: Sequence[Any], epilogue: Epilogue = _IDENTITY) -> Any:
    """Return `epilogue` of the sum of `A @ W` over the pairs of both.

    Parameters
    ----------
    inputs : sequence of one or two arrays of float32, shape (n, inner), or Matrix
        A Matrix holds sparse features.
    weights : sequence of as many arrays of float32, shape (inner, n_cols)
    epilogue : Epilogue
    """
    if is_device_array(inputs[0]) and not isinstance(inputs[-1], Matrix):
        from accelviz.devices.cuda import products

        rate = 0.0 if epilogue.noise is None else epilogue.rate
        options = {"bias": epilogue.bias, "activation": epilogue.activation}
        results = products.product(inputs, weights, rate=rate, noise=epilogue.noise, **options)
        if results is not None:
            return results[0]
    Z = None
    for A, W in zip(inputs, weights, strict=True):
        Z = times_weights(A, W, onto=Z)
    return epilogue.apply(Z)


def times_both(A: Any, weights: Sequence[Any]) -> list[Any]:
    """Return `A @ W` of each of two matrices W."""
    if is_device_array(A):
        from accelviz.devices.cuda import products

        results = products.product([A], weights)
        if results is not None:
            return results
    return [times_weights(A, W) for W in weights]


def times_weights(A: Any, W: Any, onto: Any = None) -> Any:
    """Return `A @ W`, of dense A or of sparse features; added to `onto`, if that is given."""
    if not isinstance(A, Matrix):
        return dense.matmul(A, W, onto=onto)
    return A.times(W) if onto is None else onto + A.times(W)


def input_gradient(
    gradients: Sequence[Any], weights: Sequence[Any], activation: ActivationGradient | None = None
) -> Any:
    """Return the sum of `D @ W.T`, the gradient of products by their input, times `activation`.

    Parameters
    ----------
    gradients : sequence of one or two arrays of float32, shape (n, n_cols)
        By each result.
    weights : sequence of as many arrays of float32, shape (inner, n_cols)
    activation : ActivationGradient, optional
        Of the layer that made the input.
    """
    if is_device_array(gradients[0]):
        from accelviz.devices.cuda import products

        options = {}
        if activation is not None:
            options = {"positive": activation.result, "scale": activation.scale}
        results = products.product(gradients, weights, transposed=True, **options)
        if results is not None:
            return results[0]
    dX = None
    for D, W in zip(gradients, weights, strict=True):
        dX = dense.matmul(D, W, transposed="B", onto=dX)
    return dX if activation is None else activation.apply(dX)


def weight_gradients(
    inputs: Sequence[Any], gradients: Sequence[Any], *, sums: bool = True
) -> tuple[list[Any], Any]:
    """Return `A.T @ D`, the gradients of products by their weights, and that by the bias.

    Parameters
    ----------
    inputs, gradients : sequences of arrays of float32, shape (n, inner) and (n, n_cols)
        One of them has one array, which goes with each of the other's.
    sums : bool
        Whether the gradient by the bias is wanted.

    Returns
    -------
    list of arrays of float32, shape (inner, n_cols)
    array of float32, shape (n_cols,)
        The sums of the last gradient's columns.
    """
    if is_device_array(gradients[0]) and not any(isinstance(A, Matrix) for A in inputs):
        from accelviz.devices.cuda import products

        results = products.weight_gradients(inputs, gradients)
        if results is not None:
            return results
    results = [
        A.transposed_times(D) if isinstance(A, Matrix) else dense.matmul(A, D, transposed="A")
        for A in inputs
        for D in gradients
    ]
    return results, dense.column_sums(gradients[-1]) if sums else None
