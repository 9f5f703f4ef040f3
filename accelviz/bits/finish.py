"""What follows a product in the same kernel: back to values, batch norm, ReLU, bits again.

Section 2.4.5 of the thesis (inter-layer kernel fusion, Equation 2.8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.bits.tensor import BitTensor, Floats, Scale
from accelviz.devices.base import on_host
from accelviz.errors import ArgumentError


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
    size = np.size(mean)
    given = {"mean": mean, "variance": variance, "gamma": gamma, "beta": beta}
    m, v, g, b = (_vector(name, each, size) for name, each in given.items())
    if v.min(initial=0) < 0:
        raise ArgumentError("variance", f"{v.min():g} is in it", "numbers of at least 0")
    weight = g / np.sqrt(v + eps)
    return weight.astype(np.float32), (b - m * weight).astype(np.float32)


def _vector(name: str, given: Any, size: int) -> npt.NDArray[np.float64]:
    """Return numbers as float64, if there are `size` of them and all are finite.

    Raises
    ------
    ArgumentError
    """
    found = on_host(name, given)
    if found.dtype.kind not in "biuf" or found.shape != (size,) or not np.isfinite(found).all():
        what = f"shape {found.shape}, dtype {found.dtype}"
        what += (
            ", with NaN or infinity" if found.dtype.kind == "f" and found.shape == (size,) else ""
        )
        raise ArgumentError(name, what, f"finite numbers, shape ({size},)")
    return found.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Coefficients:
    """What kernels make values of sums with: `(sum alpha + row_sum beta) row_scale + gamma`.

    A stands for a q + b and B for c p + d, so that A B = a c (q p) + a d (row sums of q) +
    b (c (column sums of p) + K d). With A a pattern of zeros and ones, a = 1 and b = 0, the second
    term is the degree times B's offset, which Equation 2.2 asks for.

    Attributes
    ----------
    alpha, beta, gamma : array of float32, shape (columns,)
    row_scale : array of float32, shape (rows,)
    """

    alpha: Floats
    beta: Floats
    gamma: Floats
    row_scale: Floats

    @classmethod
    def of(cls, A: BitTensor, B: BitTensor, finish: Finish) -> Coefficients:
        """Work them out.

        Raises
        ------
        ArgumentError
            If A has a scale for each column, which a sum over the columns cannot take out; or a
            row scale, where A has an offset; or what `finish` has is no vector of finite numbers.
        """
        rows, inner, columns = A.shape[0], A.shape[1], B.shape[1]
        ones = np.ones(columns)
        a, b = _numbers(A.scale)
        if a.size > 1:
            what = "A has a scale for each column, over which the product sums"
            raise ArgumentError("A", what, "one scale for all: per_column=False")
        c, d = (ones * each for each in _numbers(B.scale))
        weight = ones if finish.weight is None else _vector("weight", finish.weight, columns)
        bias = 0 * ones if finish.bias is None else _vector("bias", finish.bias, columns)
        row_scale = np.ones(rows)
        if finish.row_scale is not None:
            row_scale = _vector("row_scale", finish.row_scale, rows)
        gamma = bias
        if b[0]:
            if finish.row_scale is not None:
                what = "A stands for other values than zeros and ones"
                raise ArgumentError("row_scale", what, "A without an offset, as a pattern")
            gamma = bias + weight * b[0] * (c * B.on_host().sums + inner * d)
        made = a[0] * c * weight, a[0] * d * weight, gamma, row_scale
        return cls(*(each.astype(np.float32) for each in made))


def _numbers(scale: Scale | None) -> tuple[Any, Any]:
    """Return step and offset, float64."""
    if scale is None:
        return np.ones(1), np.zeros(1)
    return scale.step.astype(np.float64), scale.offset.astype(np.float64)


def finished(
    sums: Any, row_sums: Any, coefficients: Coefficients, finish: Finish
) -> Floats | tuple[Any, int]:
    """Do on the host what kernels do, operation by operation in float32.

    Parameters
    ----------
    sums : array of int32, shape (rows, columns)
    row_sums : array of int64, shape (rows,)
        Of A's numbers.
    coefficients : Coefficients
    finish : Finish

    Returns
    -------
    array of float32, or (levels, clipped)
    """
    f = coefficients
    value = sums.astype(np.float32) * f.alpha + row_sums.astype(np.float32)[:, None] * f.beta
    value = value * f.row_scale[:, None] + f.gamma
    if finish.relu:
        value = np.maximum(value, np.float32(0))
    return value if finish.bits is None else finish.scale.levels(value, finish.bits)
