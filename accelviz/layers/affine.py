"""Dense products of node features with parameters, with their epilogues and gradients.

The feature matrix has one row per node and the parameter matrix is small, so that memory bandwidth
limits these products on a GPU. GPU kernels therefore apply bias, activation, dropout and their
gradients in registers, and read a matrix once for two products with it (`strategies.dense`).
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
    """The gradient of a ReLU followed by dropout, computed from their result.

    Parameters
    ----------
    result : array of float32, shape (n, n_cols)
        Result of ReLU and dropout. Where it is 0, the gradient is 0.
    scale : float
        Gradient of the other elements, `1 / (1 - rate)` of the dropout.
    """

    result: Any
    scale: float = 1.0

    def apply(self, gradient: Any) -> Any:
        """Return the gradient before ReLU and dropout, given the one after them."""
        return gradient * ((self.result > 0) * np.float32(self.scale))


def affine(inputs: Sequence[Any], weights: Sequence[Any], epilogue: Epilogue = IDENTITY) -> Any:
    """Return `epilogue(A1 @ W1 + A2 @ W2)`, or of one product, shape (n, n_cols).

    Parameters
    ----------
    inputs : sequence of one or two arrays of float32, shape (n, inner), or Matrix
        The matrices A. A Matrix holds sparse features.
    weights : sequence of the same number of arrays of float32, shape (inner, n_cols)
        The matrices W.
    epilogue : Epilogue
    """
    if (device := _fused_device(*inputs)) is not None:
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
    """Return `[A @ W for W in weights]`, reading A once on a GPU."""
    if (device := _fused_device(A)) is not None:
        return _products(device, Form(outputs=len(weights)), [A], weights)
    return [times_weights(A, W) for W in weights]


def _fused_device(*inputs: Any) -> Device | None:
    """Return the device of the inputs; None for NumPy arrays and sparse features."""
    sparse = any(isinstance(A, Matrix) for A in inputs)
    return None if sparse else owner(inputs[0])


def _products(
    device: Device,
    form: Form,
    inputs: Sequence[Any],
    weights: Sequence[Any],
    operands: Mapping[str, Any] = MappingProxyType({}),
) -> list[Any]:
    """Run the fused kernel for a form of the dense product."""
    n_rows, inner = inputs[0].shape
    n_cols = weights[0].shape[0 if form.transposed else 1]
    plan = dense_plan(form, n_rows, inner, n_cols, of_gradient=False)
    operands = {**_operands_of(form, A=inputs, W=weights), **operands}
    return [*ready(plan, device).run(operands).values()]


def _operands_of(form: Form, **matrices: Sequence[Any]) -> dict[str, Any]:
    """Return the matrices as operands, by the names that `form` has for each letter."""
    return {
        name: array
        for letter, arrays in matrices.items()
        for name, array in zip(form.names(letter), arrays, strict=True)
    }


def times_weights(A: Any, W: Any, onto: Any = None) -> Any:
    """Return `A @ W`, or `onto + A @ W`; A is an array or a Matrix of sparse features."""
    if not isinstance(A, Matrix):
        return dense.matmul(A, W, onto=onto)
    return A.times(W) if onto is None else onto + A.times(W)


def input_gradient(
    gradients: Sequence[Any], weights: Sequence[Any], activation: ActivationGradient | None = None
) -> Any:
    """Return the gradient with respect to X of products `X @ W`: the sum of `D @ W.T`, (n, inner).

    Parameters
    ----------
    gradients : sequence of one or two arrays of float32, shape (n, n_cols)
        D, the gradient with respect to each product.
    weights : sequence of the same number of arrays of float32, shape (inner, n_cols)
        The matrices W.
    activation : ActivationGradient, optional
        Gradient of the activation that computed X. The result is multiplied with it.
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
    """Return the gradients with respect to weights and bias of products `A @ W + b`.

    Parameters
    ----------
    inputs : sequence of arrays of float32, shape (n, inner)
        The matrices A. Either `inputs` or `gradients` has one array only, which is combined with
        each array of the other.
    gradients : sequence of arrays of float32, shape (n, n_cols)
        D, the gradient with respect to each product.
    sums : bool
        Whether to compute the gradient with respect to the bias.

    Returns
    -------
    list of arrays of float32, shape (inner, n_cols)
        `A.T @ D` of each pair.
    array of float32, shape (n_cols,), or None
        Column sums of the last D.
    """
    if (device := _fused_device(*inputs)) is not None:
        form = Form(inputs=len(inputs), outputs=len(gradients))
        (n_rows, inner), n_cols = inputs[0].shape, gradients[0].shape[1]
        plan = dense_plan(form, n_rows, inner, n_cols, of_gradient=True)
        outputs = ready(plan, device).run(_operands_of(form, A=inputs, D=gradients))
        *results, column_sums = outputs.values()
        return results, column_sums
    results = [
        A.transposed_times(D) if isinstance(A, Matrix) else dense.matmul(A, D, transposed="A")
        for A in inputs
        for D in gradients
    ]
    return results, dense.column_sums(gradients[-1]) if sums else None
