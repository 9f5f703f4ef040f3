"""Dense steps of layers: products, activations, dropout, the loss, the optimisers.

Each function takes arrays of NumPy or of a device. On a device all but the products are one kernel
each; the code for NumPy defines their results.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from accelviz.arrays import Floats
from accelviz.devices import Device
from accelviz.devices.choice import owner
from accelviz.errors import ArgumentError
from accelviz.plans.launch import WARP_SIZE, Call
from accelviz.strategies.dense import steps
from accelviz.strategies.dense.operation import activated, dropout_mask
from accelviz.strategies.dense.steps import AT_ONCE, SUM_BLOCKS, THREADS

#: Multiplications below which one thread does a product: a BLAS wakes all of its threads, and on a
#: machine that has other work waits for them a hundred times as long as they take.
_SMALL_PRODUCTS = 1 << 22


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


@dataclass(frozen=True)
class Epilogue:
    """What follows a product, the end of every layer: `dropout(activation(Z + bias))`.

    Parameters
    ----------
    bias : array of float32, shape (n_cols,), optional
    activation : {"none", "relu", "elu"}
    dropout : float
        Share of the elements that is dropped, 0 to below 1.
    noise : Noise, optional
        None: nothing is dropped, as when a network is judged.
    """

    bias: Any = None
    activation: str = "none"
    dropout: float = 0.0
    noise: Noise | None = None

    @property
    def rate(self) -> float:
        """The share that is dropped in this pass."""
        return 0.0 if self.noise is None else float(self.dropout)

    @property
    def words(self) -> Any:
        """The words that dropout draws from; None if nothing is dropped."""
        return self.noise.words if self.noise is not None and self.rate else None

    def apply(self, Z: Any, added: Any = None) -> Any:
        """Apply it to `Z + added`, (n, n_cols); Z may be overwritten."""
        if self.bias is None and added is None and self.activation == "none" and not self.rate:
            return Z
        if (device := owner(Z)) is not None:
            Z = device.contiguous(Z)
            Y = device.empty(Z.shape)
            arguments = {"Z": Z, "added": added, "bias": self.bias, "Y": Y, "n": np.int64(Z.size)}
            arguments |= {"n_cols": Z.shape[-1], "rate": self.rate, "random": self.words}
            launch(device, "finish", -(-Z.size // AT_ONCE), arguments, self)
            return Y
        Z = Z if added is None else Z + added
        Z = activated(Z if self.bias is None else Z + self.bias, self.activation)
        return Z * dropout_mask(Z.shape, self.rate, self.words) if self.rate else Z

    def gradient(self, dY: Any, Y: Any) -> Any:
        """Return the gradient by Z, of the result and the gradient by that.

        The slope follows from the result: of ReLU it is 1 where Y > 0, of ELU it is
        `1 + activation(Z)` below 0. Elements that were dropped draw the same numbers again.
        """
        rate, relu = self.rate, self.activation == "relu"
        if self.activation == "none" and not rate:
            return dY
        if (device := owner(dY)) is not None:
            dY = device.contiguous(dY)
            dZ = device.empty(dY.shape)
            arguments = {"dY": dY, "Y": device.contiguous(Y), "dZ": dZ, "n": np.int64(dY.size)}
            arguments |= {"rate": rate, "random": self.words}
            launch(device, "finish_gradient", -(-dY.size // AT_ONCE), arguments, self)
            return dZ
        dZ = dY
        if rate:  # a ReLU's result is 0 wherever it was dropped
            mask = np.float32(1 / (1 - rate)) if relu else dropout_mask(Y.shape, rate, self.words)
            dZ = dY * mask
        if relu:
            return dZ * (Y > 0)
        if self.activation == "elu":
            dZ = dZ * np.where(Y > 0, 1, 1 + Y * np.float32(1 - rate))
        return dZ


IDENTITY = Epilogue()


def matmul(A: Any, B: Any, *, transposed: str = "", onto: Any = None) -> Any:
    """Return `A @ B`, where "A" or "B" may be `transposed`; added to `onto`, if that is given."""
    if (device := owner(A)) is not None:
        return device.matmul(A, B, transposed, onto)
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
    """Return the sum of each column; on a device in an order that is always the same."""
    device = owner(A)
    if device is None:
        return A.sum(axis=0)
    (n_rows, n_cols), width = A.shape, min(A.shape[1], THREADS)
    blocks = max(1, min(SUM_BLOCKS, n_rows * width // THREADS))
    parts, sums = device.empty((blocks, n_cols)), device.empty(n_cols)
    first, last = steps.column_sums("A", "sums", blocks)
    of_all = {"A": device.contiguous(A), "parts": parts, "n_rows": n_rows}
    of_parts = {"parts": parts, "sums": sums, "n_parts": blocks}
    for call, arguments in ((first, of_all), (last, of_parts)):
        device.launch(call, {**arguments, "n_cols": n_cols, "width": width})
    return sums


def launch(
    device: Device,
    entry: str,
    threads: int,
    arguments: dict[str, Any],
    epilogue: Epilogue = IDENTITY,
    file: str = "dense",
) -> None:
    """Launch a kernel of kernels/layers on at least so many threads."""
    end = epilogue.activation, epilogue.rate > 0
    kernel = steps.step_kernel(entry, tuple(arguments), *end, file)
    device.launch(Call(steps.elements_launch(threads), kernel), arguments)


def log_lanes_of_row(n_cols: int) -> int:
    """Return the binary logarithm of how many lanes have a row of a matrix, at most a warp."""
    return min(WARP_SIZE.bit_length() - 1, (n_cols - 1).bit_length())


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
    if (device := owner(logits)) is not None:
        (n_rows, n_classes), log_lanes = logits.shape, log_lanes_of_row(logits.shape[1])
        losses, gradient = device.empty(weights.shape), device.empty(logits.shape)
        arguments = {"logits": device.contiguous(logits), "labels": labels, "weights": weights}
        arguments |= {"losses": losses, "gradient": gradient, "n_rows": n_rows}
        arguments |= {"n_classes": n_classes, "log_lanes": log_lanes}
        launch(device, "cross_entropy", n_rows << log_lanes, arguments)
        return losses, gradient
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
        if (device := owner(flat)) is not None:
            arguments = {"flat": flat, "gradient": gradient, "mean": states[0]}
            arguments |= {"square": states[1], "decay": decay, "words": words}
            arguments |= {"n": np.int64(flat.size), "rate": float(self.rate)}
            arguments |= {"beta1": self.beta1, "beta2": self.beta2, "eps": self.eps}
            arguments |= {"log_beta1": math.log(self.beta1), "log_beta2": math.log(self.beta2)}
            launch(device, "adam", flat.size, arguments)
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
