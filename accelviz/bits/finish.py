"""`Finish`, steps after a product in the same kernel: real values, batch norm, ReLU, quantization.

Section 2.4.5 of the thesis (inter-layer kernel fusion, Equation 2.8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Floats
from accelviz.bits.tensor import BitTensor, Scale
from accelviz.devices.operands import on_host
from accelviz.errors import ArgumentError
from accelviz.strategies.bits.operation import Epilogue


@dataclass(frozen=True, eq=False)
class Finish:
    """Steps after a product: `relu(((A B) row_scale) weight + bias)`, quantized if `bits` is given.

    A B is the product of the real values of A and B.

    Attributes
    ----------
    bits : int, optional
        Bits of the result, a BitTensor (`bitMM2Bit` of QGTC). Without, the result is float32.
    low, high : float
        Range of the result's levels.
    side : {"left", "right"}
        Operand of the next product that the result is.
    row_scale : array of float32, shape (rows,), optional
        Factors of the rows, such as 1 / degree for means over the neighbors.
    weight, bias : array of float32, shape (columns,), optional
        Factor and summand of batch norm, or a layer's bias.
    relu : bool
        Whether negative values are set to zero.
    """

    bits: int | None = None
    low: float = 0.0
    high: float = 1.0
    side: str = "left"
    row_scale: Any = None
    weight: Any = None
    bias: Any = None
    relu: bool = False

    @property
    def scale(self) -> Scale:
        """Scale of the result's levels."""
        return Scale.of_range(self.low, self.high, self.bits or 1)

    @property
    def epilogue(self) -> Epilogue:
        """The properties that a plan depends on: bits, side and ReLU."""
        return Epilogue(self.bits or 0, self.side if self.bits else "left", bool(self.relu))

    def operands(self, A: BitTensor, B: BitTensor) -> dict[str, Any]:
        """Return the coefficients by which a kernel computes values from integer sums, by name.

        Let q and p be the integers of A and B, and a q + b and c p + d their values. Then
        A B = a c (q p) + a d (row sums of q) + b (c (column sums of p) + K d). For a binary A
        (a = 1, b = 0) the second term is the degree times B's offset, as in Equation 2.2.

        Returns
        -------
        dict of str to array or number
            `alpha`, `beta`, `gamma` (float32, shape (columns,)) and `row_scale` (shape (rows,)) of
            `(sum alpha + row_sum beta) row_scale + gamma`. With `bits`, also `low` and `step`.

        Raises
        ------
        ArgumentError
            If A has a scale per column, over which the product sums; or `row_scale` is given and A
            has an offset; or a vector has a number that is not finite.
        """
        rows, inner, columns = A.shape[0], A.shape[1], B.shape[1]
        a, b = _step_and_offset(A.scale)
        if a.size > 1:
            problem = "A has a scale for each column, over which the product sums"
            raise ArgumentError("A", problem, "one scale for all: per_column=False")
        c, d = (np.ones(columns) * number for number in _step_and_offset(B.scale))
        weight = _vector("weight", self.weight, columns, 1.0)
        gamma = _vector("bias", self.bias, columns, 0.0)
        row_scale = _vector("row_scale", self.row_scale, rows, 1.0)
        if b[0]:
            if self.row_scale is not None:
                problem = "A stands for other values than zeros and ones"
                raise ArgumentError("row_scale", problem, "A without an offset, as a pattern")
            gamma = gamma + weight * b[0] * (c * B.sums + inner * d)
        vectors = {"alpha": a[0] * c * weight, "beta": a[0] * d * weight, "gamma": gamma}
        vectors["row_scale"] = row_scale
        operands: dict[str, Any] = {name: array.astype("f4") for name, array in vectors.items()}
        if self.bits:
            scale = self.scale
            operands |= {"low": scale.low[0], "step": scale.step[0]}
        return operands


def batch_norm(
    mean: Any, variance: Any, gamma: Any, beta: Any, eps: float = 1e-5
) -> tuple[Floats, Floats]:
    """Return the `weight` and `bias` of batch norm (Equation 2.8), float32, shape (columns,).

    Parameters
    ----------
    mean, variance, gamma, beta : array of numbers, shape (columns,)
    eps : float
        Summand of the variance.

    Raises
    ------
    ArgumentError
        If a number is not finite, sizes differ, or a variance is below 0.
    """
    vectors = {"mean": mean, "variance": variance, "gamma": gamma, "beta": beta}
    m, v, g, b = (_vector(name, array, np.size(mean)) for name, array in vectors.items())
    if v.min(initial=0) < 0:
        raise ArgumentError("variance", f"{v.min():g} is in it", "numbers of at least 0")
    weight = g / np.sqrt(v + eps)
    return weight.astype(np.float32), (b - m * weight).astype(np.float32)


def _vector(name: str, array: Any, size: int, default: float = 0.0) -> npt.NDArray[np.float64]:
    """Return `size` finite numbers as float64, `default` for None; else raise `ArgumentError`."""
    if array is None:
        return np.full(size, default)
    vector = on_host(name, array)
    finite = vector.dtype.kind in "biuf" and bool(np.isfinite(vector).all())
    if vector.shape != (size,) or not finite:
        problem = f"shape {vector.shape}, dtype {vector.dtype}"
        if vector.dtype.kind == "f" and vector.shape == (size,):
            problem += ", with NaN or infinity"
        raise ArgumentError(name, problem, f"finite numbers, shape ({size},)")
    return vector.astype(np.float64)


def _step_and_offset(scale: Scale | None) -> tuple[Any, Any]:
    if scale is None:
        return np.ones(1), np.zeros(1)
    return scale.step.astype(np.float64), scale.offset.astype(np.float64)
