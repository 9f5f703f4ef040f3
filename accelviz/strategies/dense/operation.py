"""`Y = dropout(activation(A W + bias))` for node features A, and its gradient, as operations.

A `Form` has the number of matrices and the epilogue, the steps after the product. Each form is an
operation with kernels of its own. Of the graph's pattern only the number of rows is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from accelviz.graph import Pattern
from accelviz.plans import Operand, Operation, Plan
from accelviz.plans.operation import DEVICE_SCALARS, EPS32, FLOAT_BYTES, ROWS, Arrays, Traffic
from accelviz.plans.plan import Widths
from accelviz.random import element_uniform

#: Activations. Their positions are their numbers in kernels/layers.
ACTIVATIONS = ("none", "relu", "elu")
WIDTHS: dict[str, int | None] = {"n_cols": None, "inner": 16}


@dataclass(frozen=True)
class Form:
    """Numbers of matrices and epilogue of a dense product.

    Attributes
    ----------
    inputs, outputs : int
        With 2 inputs, Y0 = A0 W0 + A1 W1. With 2 outputs, Y0 = A0 W0 and Y1 = A0 W1. At most one of
        them is 2; otherwise they are 1.
    transposed : bool
        Whether W is given transposed.
    bias : bool
    activation : {"none", "relu", "elu"}
    dropout : bool
    activation_gradient : bool
        Epilogue in place of those three, the gradient of ReLU and dropout by their input: the
        product times `scale` where `positive` is above 0, and 0 elsewhere.
    """

    inputs: int = 1
    outputs: int = 1
    transposed: bool = False
    bias: bool = False
    activation: str = "none"
    dropout: bool = False
    activation_gradient: bool = False

    def names(self, letter: str) -> list[str]:
        """Return the names of the matrices of a letter: "A", "W", "Y", or "D" for gradients."""
        counts = {"A": self.inputs, "Y": self.outputs, "D": self.outputs}
        return [f"{letter}{i}" for i in range(counts.get(letter, self.inputs * self.outputs))]

    @property
    def products(self) -> list[tuple[str, str, str]]:
        """Names (A, W, Y) of each product: its factors, and the result to which it is added."""
        numbers = range(self.inputs * self.outputs)
        return [(f"A{i % self.inputs}", f"W{i}", f"Y{i % self.outputs}") for i in numbers]

    @property
    def has_epilogue(self) -> bool:
        """Whether any step follows the product."""
        return self.bias or self.dropout or self.activation_gradient or self.activation != "none"


#: The forms of the operations "dense_product" and "dense_product_gradient".
LINEAR_RELU, PRODUCT = Form(bias=True, activation="relu"), Form()


def dropout_mask(shape: tuple[int, ...], rate: float, words: Any) -> Any:
    """Return dropout's factors, float32: 0 with probability `rate`, else `1 / (1 - rate)`.

    The element of index `i` in C order uses random number `i` of the stream given by `words`: the
    two words of a seed, a site and a step.
    """
    low, high, site, step = (int(word) for word in words)
    uniform = element_uniform(int(np.prod(shape)), low | high << 32, site, step)
    return ((uniform >= np.float32(rate)) * np.float32(1 / (1 - rate))).reshape(shape)


def activated(Z: Any, activation: str) -> Any:
    """Return `activation(Z)`."""
    if activation == "relu":
        return np.maximum(Z, 0)
    return np.where(Z > 0, Z, np.expm1(np.minimum(Z, 0))) if activation == "elu" else Z


def _products(form: Form, inputs: Arrays) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the results by name, and the same sums of the products' magnitudes."""
    sums: dict[str, Any] = {}
    magnitudes: dict[str, Any] = {}
    for A, W, Y in form.products:
        features, weights = inputs[A], inputs[W].T if form.transposed else inputs[W]
        sums[Y] = sums.get(Y, 0) + features @ weights
        magnitudes[Y] = magnitudes.get(Y, 0) + np.abs(features) @ np.abs(weights)
    return sums, magnitudes


def _apply_epilogue(form: Form, Z: Any, inputs: Arrays) -> Any:
    if form.activation_gradient:
        return np.where(inputs["positive"] > 0, Z * inputs["scale"], 0).astype(Z.dtype)
    Z = activated(Z + inputs["bias"] if form.bias else Z, form.activation)
    return Z * dropout_mask(Z.shape, inputs["rate"], inputs["random"]) if form.dropout else Z


def _reference(form: Form, pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    # The bound of `inner` products is that of `spmm`. Activations have derivatives of at most 1 and
    # round a few times more; the factors of dropout and `scale` multiply the bound.
    sums, magnitudes = _products(form, inputs)
    terms = inputs["A0"].shape[1] * form.inputs
    factor = 1.0
    if form.activation_gradient or form.dropout:
        factor = abs(inputs["scale"]) if form.activation_gradient else 1 / (1 - inputs["rate"])
    results = {}
    for name, Z in sums.items():
        magnitude = magnitudes[name] + (np.abs(inputs["bias"]) if form.bias else 0)
        results[name] = _apply_epilogue(form, Z, inputs), EPS32 * factor * (terms + 4) * magnitude
    return results


def _replay(form: Form, plan: Plan) -> Callable[[Arrays, Arrays], None]:
    def run(inputs: Arrays, outputs: Arrays) -> None:
        for name, Z in _products(form, inputs)[0].items():
            outputs[name][...] = _apply_epilogue(form, Z, inputs)

    return run


def _traffic(operands: Sequence[Operand], pattern: Pattern, widths: Widths, _: int) -> Traffic:
    sizes = {ROWS: pattern.shape[0], DEVICE_SCALARS: 4, **widths}  # every matrix is streamed once
    elements = sum(int(np.prod(operand.shape(sizes))) for operand in operands)
    return Traffic.of_columns(pattern, 0, FLOAT_BYTES * elements)


def _operation(name: str, **parts: Any) -> Operation:
    operands = (*parts["inputs"], *parts["outputs"])
    traffic = partial(_traffic, operands)
    return Operation(name, widths=WIDTHS, fastest="cublas", traffic=traffic, **parts)


def _terms(inputs: int, pattern: Pattern, sizes: Widths) -> Any:
    """Return the number of products of an output's entry; 0 inputs are a sum over the rows."""
    return np.full((1, 1), sizes["inner"] * inputs if inputs else pattern.shape[0])


@cache
def product(form: Form) -> Operation:
    """Return the operation of a form: `A0, ..., W0, ...` to `Y0, ...`."""
    tall, small = (ROWS, "inner"), ("n_cols", "inner") if form.transposed else ("inner", "n_cols")
    inputs = [Operand(name, tall) for name in form.names("A")]
    inputs += [Operand(name, small) for name in form.names("W")]
    inputs += [Operand("bias", ("n_cols",))] * form.bias
    inputs += [Operand("positive", (ROWS, "n_cols"))] * form.activation_gradient
    inputs += [Operand("scale", (), default=1.0)] * form.activation_gradient
    if form.dropout:
        inputs.append(Operand("rate", (), default=0.0, least=0.0, below=1.0))
        inputs.append(Operand("random", (DEVICE_SCALARS,), default=(0, 0, 0, 0)))
    return _operation(
        "dense_product" if form == LINEAR_RELU else f"dense_product of {form}",
        terms=partial(_terms, form.inputs),
        formula="Y = dropout(activation(A W + bias))",
        inputs=tuple(inputs),
        outputs=tuple(Operand(name, (ROWS, "n_cols")) for name in form.names("Y")),
        reference=partial(_reference, form),
        replay=partial(_replay, form),
    )


def _gradient_reference(
    form: Form, pattern: Pattern, inputs: Arrays
) -> Mapping[str, tuple[Any, Any]]:
    rows, results = pattern.shape[0], {}  # the bound of sums over the rows is that of `spmm`
    for A, W, Y in form.products:
        features, D = inputs[A], inputs[Y.replace("Y", "D")]
        results[f"d{W}"] = features.T @ D, EPS32 * rows * (np.abs(features).T @ np.abs(D))
    last_D = inputs[form.names("D")[-1]]
    results["db"] = last_D.sum(axis=0), EPS32 * rows * np.abs(last_D).sum(axis=0)
    return results


def _gradient_replay(form: Form, plan: Plan) -> Callable[[Arrays, Arrays], None]:
    def run(inputs: Arrays, outputs: Arrays) -> None:
        for name, (result, _) in _gradient_reference(form, plan.pattern, inputs).items():
            outputs[name][...] = result

    return run


@cache
def gradient(form: Form) -> Operation:
    """Return the gradient of a form by weights and bias, where D is the gradient by `A W + bias`.

    The gradient by A is the product of a transposed form. `db` has the column sums of the last D.
    """
    inputs = [Operand(name, (ROWS, "inner")) for name in form.names("A")]
    inputs += [Operand(name, (ROWS, "n_cols")) for name in form.names("D")]
    outputs = [Operand(f"d{name}", ("inner", "n_cols")) for name in form.names("W")]
    return _operation(
        "dense_product_gradient" if form == PRODUCT else f"dense_product_gradient of {form}",
        terms=partial(_terms, 0),
        formula="dW = A^T D, db = the sums of D's columns",
        inputs=tuple(inputs),
        outputs=(*outputs, Operand("db", ("n_cols",))),
        reference=partial(_gradient_reference, form),
        replay=partial(_gradient_replay, form),
    )
