"""`Y = dropout(activation(A W + bias))` for the features A of a graph's nodes, and its gradient.

The pattern gives the rows alone. A form says how many matrices there are and what follows the
product, so that an operation is compiled for it.
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

#: The functions after a product, in the order in which kernels/layers count them.
ACTIVATIONS = ("none", "relu", "elu")
WIDTHS: dict[str, int | None] = {"n_cols": None, "inner": 16}


@dataclass(frozen=True)
class Form:
    """What a dense product multiplies and what follows it.

    Attributes
    ----------
    inputs, outputs : int
        Matrices A, whose products with as many W are added; or matrices W, each multiplied with the
        only A. One of them is 1, the other 1 or 2.
    transposed : bool
        Whether W is given transposed.
    bias : bool
    activation : {"none", "relu", "elu"}
    dropout : bool
    slope : bool
        Instead of those: the result is multiplied with `scale` where `positive` is above 0, and 0
        elsewhere, the gradient of a ReLU and a dropout by its input.
    """

    inputs: int = 1
    outputs: int = 1
    transposed: bool = False
    bias: bool = False
    activation: str = "none"
    dropout: bool = False
    slope: bool = False

    def names(self, letter: str) -> list[str]:
        """Return the names of the matrices A, W or Y."""
        counts = {"A": self.inputs, "Y": self.outputs, "D": self.outputs}
        return [f"{letter}{i}" for i in range(counts.get(letter, self.inputs * self.outputs))]

    @property
    def pairs(self) -> list[tuple[str, str, str]]:
        """The factors and the result of each product, by name."""
        both = range(self.inputs * self.outputs)
        return [(f"A{i % self.inputs}", f"W{i}", f"Y{i % self.outputs}") for i in both]

    @property
    def has_end(self) -> bool:
        """Whether anything follows the product."""
        return self.bias or self.dropout or self.slope or self.activation != "none"


#: The form that people ask for by name, and that of the gradient.
END, ONE = Form(bias=True, activation="relu"), Form()


def dropout_mask(shape: tuple[int, ...], rate: float, words: Any) -> Any:
    """Return the factors of dropout: 0 with probability `rate`, else `1 / (1 - rate)`.

    float32 of that shape; element `i` in C order draws number `i` of the seed, site and step that
    are the four `words`.
    """
    low, high, site, step = (int(word) for word in words)
    drawn = element_uniform(int(np.prod(shape)), low | high << 32, site, step)
    return ((drawn >= np.float32(rate)) * np.float32(1 / (1 - rate))).reshape(shape)


def activated(Z: Any, activation: str) -> Any:
    """Return `activation(Z)`."""
    if activation == "relu":
        return np.maximum(Z, 0)
    return np.where(Z > 0, Z, np.expm1(np.minimum(Z, 0))) if activation == "elu" else Z


def _products(form: Form, inputs: Arrays) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the sums of products by the result's name, and those of their magnitudes."""
    sums: dict[str, Any] = {}
    magnitudes: dict[str, Any] = {}
    for A, W, Y in form.pairs:
        features, weights = inputs[A], inputs[W].T if form.transposed else inputs[W]
        sums[Y] = sums.get(Y, 0) + features @ weights
        magnitudes[Y] = magnitudes.get(Y, 0) + np.abs(features) @ np.abs(weights)
    return sums, magnitudes


def _end(form: Form, Z: Any, inputs: Arrays) -> Any:
    if form.slope:
        return np.where(inputs["positive"] > 0, Z * inputs["scale"], 0).astype(Z.dtype)
    Z = activated(Z + inputs["bias"] if form.bias else Z, form.activation)
    return Z * dropout_mask(Z.shape, inputs["rate"], inputs["random"]) if form.dropout else Z


def _reference(form: Form, pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    """Multiply in float64; see `Operation.reference`.

    A sum of `inner` products is off as one of `spmm`; the functions after it have slopes of at most
    1 and round a few times more, and the factors of dropout and of the slope enlarge both.
    """
    sums, magnitudes = _products(form, inputs)
    terms = inputs["A0"].shape[1] * form.inputs
    factor = 1.0
    if form.slope or form.dropout:
        factor = abs(inputs["scale"]) if form.slope else 1 / (1 - inputs["rate"])
    results = {}
    for name, Z in sums.items():
        magnitude = magnitudes[name] + (np.abs(inputs["bias"]) if form.bias else 0)
        results[name] = _end(form, Z, inputs), EPS32 * factor * (terms + 4) * magnitude
    return results


def _replay(form: Form, plan: Plan) -> Callable[[Arrays, Arrays], None]:
    def run(inputs: Arrays, outputs: Arrays) -> None:
        for name, Z in _products(form, inputs)[0].items():
            outputs[name][...] = _end(form, Z, inputs)

    return run


def _traffic(operands: Sequence[Operand], pattern: Pattern, widths: Widths, _: int) -> Traffic:
    """Count every matrix once; nothing is gathered."""
    sizes = {ROWS: pattern.shape[0], DEVICE_SCALARS: 4, **widths}
    elements = sum(int(np.prod(operand.shape(sizes))) for operand in operands)
    return Traffic.of_columns(pattern, 0, FLOAT_BYTES * elements)


def _operation(name: str, **parts: Any) -> Operation:
    operands = (*parts["inputs"], *parts["outputs"])
    traffic = partial(_traffic, operands)
    return Operation(name, widths=WIDTHS, fastest="cublas", traffic=traffic, **parts)


@cache
def product(form: Form) -> Operation:
    """Return the operation of a form: `A0, ..., W0, ...` to `Y0, ...`."""
    tall, small = (ROWS, "inner"), ("n_cols", "inner") if form.transposed else ("inner", "n_cols")
    inputs = [Operand(name, tall) for name in form.names("A")]
    inputs += [Operand(name, small) for name in form.names("W")]
    inputs += [Operand("bias", ("n_cols",))] * form.bias
    inputs += [Operand("positive", (ROWS, "n_cols"))] * form.slope
    inputs += [Operand("scale", (), default=1.0)] * form.slope
    if form.dropout:
        inputs.append(Operand("rate", (), default=0.0, least=0.0, below=1.0))
        inputs.append(Operand("random", (DEVICE_SCALARS,), default=(0, 0, 0, 0)))
    return _operation(
        "dense_product" if form == END else f"dense_product of {form}",
        terms=lambda pattern, sizes: np.full((1, 1), sizes["inner"] * form.inputs),
        formula="Y = dropout(activation(A W + bias))",
        inputs=tuple(inputs),
        outputs=tuple(Operand(name, (ROWS, "n_cols")) for name in form.names("Y")),
        reference=partial(_reference, form),
        replay=partial(_replay, form),
    )


def _gradient_reference(
    form: Form, pattern: Pattern, inputs: Arrays
) -> Mapping[str, tuple[Any, Any]]:
    """Multiply in float64; sums over the rows are off as those of `spmm`."""
    rows, results = pattern.shape[0], {}
    for A, W, Y in form.pairs:
        features, D = inputs[A], inputs[Y.replace("Y", "D")]
        results[f"d{W}"] = features.T @ D, EPS32 * rows * (np.abs(features).T @ np.abs(D))
    last = inputs[form.names("D")[-1]]
    results["db"] = last.sum(axis=0), EPS32 * rows * np.abs(last).sum(axis=0)
    return results


def _gradient_replay(form: Form, plan: Plan) -> Callable[[Arrays, Arrays], None]:
    def run(inputs: Arrays, outputs: Arrays) -> None:
        for name, (result, _) in _gradient_reference(form, plan.pattern, inputs).items():
            outputs[name][...] = result

    return run


@cache
def gradient(form: Form) -> Operation:
    """Return the gradient by weights and bias, of the gradient D by `A W + bias`.

    The gradient by A is the product of a transposed form. `db` is the sum of the last D's columns.
    """
    inputs = [Operand(name, (ROWS, "inner")) for name in form.names("A")]
    inputs += [Operand(name, (ROWS, "n_cols")) for name in form.names("D")]
    outputs = [Operand(f"d{name}", ("inner", "n_cols")) for name in form.names("W")]
    return _operation(
        "dense_product_gradient" if form == ONE else f"dense_product_gradient of {form}",
        terms=lambda pattern, sizes: np.full((1, 1), pattern.shape[0]),
        formula="dW = A^T D, db = the sums of D's columns",
        inputs=tuple(inputs),
        outputs=(*outputs, Operand("db", ("n_cols",))),
        reference=partial(_gradient_reference, form),
        replay=partial(_gradient_replay, form),
    )
