"""Products of features with parameters, with their epilogues and gradients.

One factor is as tall as the graph and the other is small, so that memory bounds a product on a GPU.
There, bias, activation, dropout and their gradients are applied to the product in registers, and
products of the same matrix read it once (`strategies.dense`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from accelviz.devices import Device, ready
from accelviz.devices.choice import owner
from accelviz.layers import dense
from accelviz.layers.dense import IDENTITY, Epilogue
from accelviz.layers.products import Matrix
from accelviz.strategies.dense.operation import Form
from accelviz.strategies.dense.strategies import dense_plan


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


def affine(inputs: Sequence[Any], weights: Sequence[Any], epilogue: Epilogue = IDENTITY) -> Any:
    """Return `epilogue` of the sum of `A @ W` over the pairs of both.

    Parameters
    ----------
    inputs : sequence of one or two arrays of float32, shape (n, inner), or Matrix
        A Matrix holds sparse features.
    weights : sequence of as many arrays of float32, shape (inner, n_cols)
    epilogue : Epilogue
    """
    if (device := _owner(*inputs)) is not None:
        form = Form(
            inputs=len(inputs),
            bias=epilogue.bias is not None,
            activation=epilogue.activation,
            dropout=epilogue.rate > 0,
        )
        operands = {"bias": epilogue.bias} if form.bias else {}
        if form.dropout:
            operands |= {"rate": epilogue.rate, "random": epilogue.words}
        (result,) = _products(device, form, inputs, weights, operands)
        return result
    Z = None
    for A, W in zip(inputs, weights, strict=True):
        Z = times_weights(A, W, onto=Z)
    return epilogue.apply(Z)


def times_both(A: Any, weights: Sequence[Any]) -> list[Any]:
    """Return `A @ W` of each of two matrices W."""
    if (device := _owner(A)) is not None:
        return _products(device, Form(outputs=len(weights)), [A], weights)
    return [times_weights(A, W) for W in weights]


def _owner(*inputs: Any) -> Device | None:
    """Return the device on which all inputs lie; None for NumPy's, and for sparse features."""
    sparse = any(isinstance(A, Matrix) for A in inputs)
    return None if sparse else owner(inputs[0])


def _products(
    device: Device,
    form: Form,
    inputs: Sequence[Any],
    weights: Sequence[Any],
    operands: Mapping[str, Any] = MappingProxyType({}),
) -> list[Any]:
    """Run a form of the dense product on a device."""
    n_rows, inner = inputs[0].shape
    n_cols = weights[0].shape[0 if form.transposed else 1]
    plan = dense_plan(form, n_rows, inner, n_cols, of_gradient=False)
    matrices = _named(form, A=inputs, W=weights)
    return [*ready(plan, device).run({**matrices, **operands}).values()]


def _named(form: Form, **matrices: Sequence[Any]) -> dict[str, Any]:
    """Return matrices by the names that a form gives them."""
    return {
        name: array
        for letter, arrays in matrices.items()
        for name, array in zip(form.names(letter), arrays, strict=True)
    }


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
    if (device := owner(gradients[0])) is not None:
        operands: dict[str, Any] = {}
        if activation is not None:
            operands = {"positive": activation.result, "scale": float(activation.scale)}
        form = Form(inputs=len(gradients), transposed=True, activation_gradient=bool(operands))
        (result,) = _products(device, form, gradients, weights, operands)
        return result
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
    if (device := _owner(*inputs)) is not None:
        form = Form(inputs=len(inputs), outputs=len(gradients))
        (n_rows, inner), n_cols = inputs[0].shape, gradients[0].shape[1]
        plan = dense_plan(form, n_rows, inner, n_cols, of_gradient=True)
        *results, sums_of_last = (
            ready(plan, device).run(_named(form, A=inputs, D=gradients)).values()
        )
        return results, sums_of_last
    results = [
        A.transposed_times(D) if isinstance(A, Matrix) else dense.matmul(A, D, transposed="A")
        for A in inputs
        for D in gradients
    ]
    return results, dense.column_sums(gradients[-1]) if sums else None
