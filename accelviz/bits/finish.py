"""What follows a product in the same kernel: back to values, batch norm, ReLU, bits again.

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
    """What becomes of the whole numbers of a product.

    The values are `relu(((A B) row_scale) weight + bias)`, of what A and B stand for.

    Attributes
    ----------
    bits : int, optional
        Bits of the result, which is a BitTensor then (`bitMM2Bit` of QGTC); float32 if None.
    low, high : float
        The range of the result's levels.
    side : {"left", "right"}
        Of which operand of the next product the result is.
    row_scale : array of float32, shape (rows,), optional
        One over the degrees, for means of neighbors.
    weight, bias : array of float32, shape (columns,), optional
        Batch norm, or a layer's bias.
    relu : bool
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
        """What the levels of the result stand for."""
        return Scale.of_range(self.low, self.high, self.bits or 1)

    @property
    def epilogue(self) -> Epilogue:
        """What a plan knows of it: all but numbers."""
        return Epilogue(self.bits or 0, self.side if self.bits else "left", bool(self.relu))

    def operands(self, A: BitTensor, B: BitTensor) -> dict[str, Any]:
        """Return what kernels make values of sums with, by name.

        A stands for a q + b and B for c p + d, so that A B = a c (q p) + a d (row sums of q) +
        b (c (column sums of p) + K d). With A a pattern of zeros and ones, a = 1 and b = 0, the
        second term is the degree times B's offset, which Equation 2.2 asks for.

        Returns
        -------
        dict of str to array or number
            `alpha`, `beta`, `gamma` (float32, by column) and `row_scale` (by row), for values
            `(sum alpha + row_sum beta) row_scale + gamma`; of bits `low` and `step`, too.

        Raises
        ------
        ArgumentError
            If A has a scale for each column, which a sum over the columns cannot take out; or a
            row scale, where A has an offset; or a vector is not of finite numbers.
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
    """Return the `weight` and `bias` of Equation 2.8, float32, shape (columns,).

    Parameters
    ----------
    mean, variance, gamma, beta : array of numbers, shape (columns,)
    eps : float
        Added to the variance.

    Raises
    ------
    ArgumentError
        If they are not finite, not of one size, or a variance is below 0.
    """
    vectors = {"mean": mean, "variance": variance, "gamma": gamma, "beta": beta}
    m, v, g, b = (_vector(name, array, np.size(mean)) for name, array in vectors.items())
    if v.min(initial=0) < 0:
        raise ArgumentError("variance", f"{v.min():g} is in it", "numbers of at least 0")
    weight = g / np.sqrt(v + eps)
    return weight.astype(np.float32), (b - m * weight).astype(np.float32)


def _vector(name: str, array: Any, size: int, default: float = 0.0) -> npt.NDArray[np.float64]:
    """Return numbers as float64, `default` for None, if there are `size` and all are finite.

    Raises
    ------
    ArgumentError
    """
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
    """Return what a level is multiplied by and added to, float64."""
    if scale is None:
        return np.ones(1), np.zeros(1)
    return scale.step.astype(np.float64), scale.offset.astype(np.float64)
