"""Dense steps of layers: products, activations, dropout, the loss, the optimisers.

Each function takes NumPy or CuPy arrays. On a GPU all but the products and sums are one kernel each
(`devices.cuda.dense`); the code for NumPy defines their results.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from accelviz.arrays import Floats
from accelviz.devices.base import is_device_array
from accelviz.devices.choice import owner
from accelviz.errors import ArgumentError
from accelviz.random import element_uniform

#: Multiplications below which one thread does a product: a BLAS wakes all of its threads, and on a
#: machine that has other work waits for them a hundred times as long as they take.
_SMALL_PRODUCTS = 1 << 22
ACTIVATIONS = ("none", "relu", "elu")


class Noise:
    """The random numbers of an array's dropout.

    Parameters
    ----------
    table : array of uint32, shape (n_sites, 4)
        Of each array of a step: the two words of the seed, the site and the step, as kernels read
        them. On a GPU it lies in device memory, so that a captured step can go on counting.
    site : int
    """

    def __init__(self, table: Any, site: int) -> None:
        self.table, self.site = table, site

    @classmethod
    def of(cls, seed: int, n_sites: int, step: int = 0) -> Noise:
        """Return the first site of a new table on the host."""
        low, high = seed & 0xFFFFFFFF, seed >> 32
        return cls(np.array([(low, high, i, step) for i in range(n_sites)], np.uint32), 0)

    def at(self, site: int) -> Noise:
        """Return the numbers of another array of the same step."""
        return Noise(self.table, site)

    @property
    def words(self) -> Any:
        """Seed, site and step as kernels read them, uint32, shape (4,)."""
        return self.table[self.site]

    @property
    def key(self) -> tuple[int, int, int]:
        """Seed, site and step, of a table on the host."""
        low, high, site, step = (int(word) for word in self.words)
        return low | high << 32, site, step


def matmul(A: Any, B: Any, *, transposed: str = "", onto: Any = None) -> Any:
    """Return `A @ B`, where "A" or "B" may be `transposed`; added to `onto`, if that is given."""
    if is_device_array(A):
        from accelviz.devices.cuda import dense

        return dense.matmul(A, B, transposed, onto)
    if A.size * B.size // (B.shape[0] or 1) <= _SMALL_PRODUCTS:
        product = _small_product(A, B, transposed)
    else:
        product = (A.T if transposed == "A" else A) @ (B.T if transposed == "B" else B)
    return product if onto is None else onto + product


def _small_product(A: Any, B: Any, transposed: str) -> Any:
    columns = B.shape[0] if transposed == "B" else B.shape[1]
    product = np.zeros((A.shape[1] if transposed == "A" else A.shape[0], columns), np.float32)
    other = np.ascontiguousarray(B.T if transposed == "B" else B)
    (_add_outer if transposed == "A" else _add_rows)(np.ascontiguousarray(A), other, product)
    return product


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def _add_rows(A: Floats, B: Floats, product: Floats) -> None:
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            a = A[i, k]
            for j in range(B.shape[1]):
                product[i, j] += a * B[k, j]


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def _add_outer(A: Floats, B: Floats, product: Floats) -> None:
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            a = A[i, k]
            for j in range(B.shape[1]):
                product[k, j] += a * B[i, j]


def column_sums(A: Any) -> Any:
    """Return the sum of each column, as a product with ones."""
    if is_device_array(A):
        from accelviz.devices.cuda import dense

        return dense.column_sums(A)
    return A.sum(axis=0)


def block_diagonal(vectors: Any) -> Any:
    """Return a matrix whose column `h` has vector `h` in rows `h * n` and on, zeros elsewhere.

    `vectors` has the shape (heads, n), the result (heads * n, heads): `X @ result` are the products
    of each head's columns with its vector.
    """
    heads, n = vectors.shape
    xp = array_module(vectors)
    return (vectors[:, :, None] * xp.eye(heads, dtype=np.float32)[:, None]).reshape(
        heads * n, heads
    )


def diagonal_blocks(matrix: Any, heads: int) -> Any:
    """Return the vectors of `block_diagonal` that a matrix of its shape has, (heads, n)."""
    blocks = array_module(matrix).eye(heads, dtype=np.float32)[:, None]
    return (matrix.reshape(heads, -1, heads) * blocks).sum(axis=2)


def side_by_side(*matrices: Any) -> Any:
    """Return matrices of as many rows as one.

    CuPy's own `concatenate` and `stack` copy addresses from the host, which a captured step cannot
    repeat.
    """
    xp, rows = array_module(matrices[0]), matrices[0].shape[0]
    joined = xp.empty((rows, sum(matrix.shape[1] for matrix in matrices)), np.float32)
    start = 0
    for matrix in matrices:
        joined[:, start : start + matrix.shape[1]] = matrix
        start += matrix.shape[1]
    return joined


def array_module(array: Any) -> Any:
    """Return NumPy or CuPy, whichever an array is of."""
    device = owner(array)
    return np if device is None else device.xp


def dropout_mask(shape: tuple[int, ...], rate: float, noise: Noise) -> Any:
    """Return the factors of dropout: 0 with probability `rate`, else `1 / (1 - rate)`.

    float32 of that shape; element `i` in C order draws number `i` of `noise`.
    """
    drawn = element_uniform(math.prod(shape), *noise.key)
    return ((drawn >= np.float32(rate)) * np.float32(1 / (1 - rate))).reshape(shape)


def dropout(X: Any, rate: float, noise: Noise | None) -> Any:
    """Return `X` with elements dropped at random; its own gradient, given the same noise."""
    if noise is None or rate == 0:
        return X
    if is_device_array(X):
        from accelviz.devices.cuda import dense

        return dense.finish(X, None, "none", rate, noise)
    return X * dropout_mask(X.shape, rate, noise)


def finish(
    Z: Any, bias: Any, activation: str, rate: float, noise: Noise | None, added: Any = None
) -> Any:
    """Return `dropout(activation(Z + added + bias))`, the end of every layer.

    Parameters
    ----------
    Z : array of float32, shape (n, n_cols)
        It may be overwritten.
    bias : array of float32, shape (n_cols,), optional
    activation : {"none", "relu", "elu"}
    rate : float
        Of dropout; 0 to below 1.
    noise : Noise, optional
        None: nothing is dropped, as when a network is judged.
    added : array of float32, shape (n, n_cols), optional
    """
    rate = 0.0 if noise is None else rate
    if is_device_array(Z):
        from accelviz.devices.cuda import dense

        return dense.finish(Z, bias, activation, rate, noise, added)
    Z = Z if added is None else Z + added
    Z = Z if bias is None else Z + bias
    if activation == "relu":
        Z = np.maximum(Z, 0)
    elif activation == "elu":
        Z = np.where(Z > 0, Z, np.expm1(np.minimum(Z, 0)))
    return Z if rate == 0 else Z * dropout_mask(Z.shape, rate, noise)  # type: ignore[arg-type]


def finish_gradient(dY: Any, Y: Any, activation: str, rate: float, noise: Noise | None) -> Any:
    """Return the gradient of `finish` by Z, of its result and the gradient by that.

    The slope follows from the result: of ReLU it is 1 where Y > 0, of ELU it is `1 + activation(Z)`
    below 0. Elements that were dropped draw the same numbers again.
    """
    rate = 0.0 if noise is None else rate
    if is_device_array(dY):
        from accelviz.devices.cuda import dense

        return dense.finish_gradient(dY, Y, activation, rate, noise)
    dZ = dY
    if rate:
        assert noise is not None
        # A ReLU's result is 0 wherever it was dropped.
        dZ = dY * (
            np.float32(1 / (1 - rate))
            if activation == "relu"
            else dropout_mask(Y.shape, rate, noise)
        )
    if activation == "relu":
        dZ = dZ * (Y > 0)
    elif activation == "elu":
        dZ = dZ * np.where(Y > 0, 1, 1 + Y * np.float32(1 - rate))
    return dZ


def checked_loss(loss: float, epoch: int) -> float:
    """Return the loss of an epoch, or refuse to go on if it is not finite.

    Raises
    ------
    ArgumentError
        Numbers have left float32, and nothing is learned from there on.
    """
    if not math.isfinite(loss):
        raise ArgumentError(
            "rate", f"the loss of epoch {epoch} is {loss}", "a smaller rate, or smaller features"
        )
    return loss


def cross_entropy(logits: Any, labels: Any, weights: Any) -> tuple[Any, Any]:
    """Return the cross entropy after a softmax, and its gradient by the logits.

    Parameters
    ----------
    logits : array of float32, shape (n, n_classes)
    labels : array of int32, shape (n,)
        A class each; -1 only where the weight is 0.
    weights : array of float32, shape (n,)
        The weight of each row: one over the number of nodes to learn from, else 0.

    Returns
    -------
    loss : array of float32, shape (n,)
        Of each row, times its weight; the loss is their sum.
    gradient : array of float32, shape (n, n_classes)
    """
    if is_device_array(logits):
        from accelviz.devices.cuda import dense

        return dense.cross_entropy(logits, labels, weights)
    rows = np.flatnonzero(weights)
    chosen = logits[rows]
    shifted = chosen - chosen.max(axis=1, keepdims=True)
    powers = np.exp(shifted)
    sums = powers.sum(axis=1, keepdims=True)
    labeled, counts = (np.arange(rows.size), labels[rows]), weights[rows]
    loss, gradient = np.zeros_like(weights), np.zeros_like(logits)
    loss[rows] = (np.log(sums[:, 0]) - shifted[labeled]) * counts
    share = powers / sums
    share[labeled] -= 1
    gradient[rows] = share * counts[:, None]
    return loss, gradient


@dataclass
class Adam:
    """Adam with L2 decay added to the gradient (Kingma and Ba, ICLR 2015), as `torch.optim.Adam`.

    Parameters
    ----------
    rate : float
    beta1, beta2, eps : float
        The published values if not given.
    """

    rate: float
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    name = "adam"
    n_states = 2

    def update(self, flat: Any, gradient: Any, states: Any, decay: Any, words: Any) -> None:
        """Change all parameters, which lie behind each other, in place.

        Parameters
        ----------
        flat, gradient, decay : arrays of float32, shape (n_parameters,)
            `decay` is the factor of the L2 penalty of each.
        states : array of float32, shape (n_states, n_parameters)
        words : array of uint32, shape (4,)
            Of `Noise`; the last counts the steps before this one.
        """
        if is_device_array(flat):
            from accelviz.devices.cuda import dense

            rates = (self.rate, self.beta1, self.beta2, self.eps)
            dense.adam(flat, gradient, states, decay, words, rates)
            return
        t = int(words[3]) + 1
        gradient = gradient + decay * flat
        mean, square = states
        mean += (1 - self.beta1) * (gradient - mean)
        square += (1 - self.beta2) * (gradient * gradient - square)
        scale = np.sqrt(square / (1 - self.beta2**t)) + self.eps
        flat -= (self.rate / (1 - self.beta1**t)) * mean / scale


@dataclass
class SGD:
    """Stochastic gradient descent with momentum and L2 decay, as `torch.optim.SGD`."""

    rate: float
    momentum: float = 0.0
    name = "sgd"
    n_states = 1

    def update(self, flat: Any, gradient: Any, states: Any, decay: Any, words: Any) -> None:
        """Change all parameters in place; see `Adam`."""
        (speed,) = states
        speed *= self.momentum
        speed += gradient
        speed += decay * flat
        flat -= self.rate * speed


OPTIMISERS = {optimiser.name: optimiser for optimiser in (Adam, SGD)}
