"""Dense operations of training: products, activations, dropout, the optimiser.

Each function takes NumPy arrays or arrays of one device. On a device it launches one kernel (or a
BLAS product); the NumPy code defines the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from accelviz.arrays import Floats
from accelviz.compiled import njit
from accelviz.devices import Device
from accelviz.devices.choice import owner
from accelviz.plans.launch import WARP_SIZE, Call
from accelviz.strategies.dense import steps
from accelviz.strategies.dense.operation import activated, dropout_mask
from accelviz.strategies.dense.steps import AT_ONCE, SUM_BLOCKS, THREADS

#: Largest product, in multiplications, that one thread computes. For small products a BLAS on a
#: busy machine waits up to a hundred times longer for its threads than they compute.
_MAX_SMALL_PRODUCT = 1 << 22


class Noise:
    """The source of random numbers for the dropout of one array.

    A site is an array that has dropout. Its random numbers are a function of seed, site, step and
    element (`accelviz.random`).

    Parameters
    ----------
    table : array of uint32, shape (n_sites, 4)
        One row of words per site, as kernels read it: low and high word of the seed, site, number
        of steps so far. On a GPU it is in device memory, so that a captured graph can count steps.
    site : int
    """

    def __init__(self, table: Any, site: int) -> None:
        self.table, self.site = table, site

    @classmethod
    def of(cls, seed: int, n_sites: int, step: int = 0) -> Noise:
        """Return site 0 of a new table on the host."""
        low, high = seed & 0xFFFFFFFF, seed >> 32
        return cls(np.array([(low, high, i, step) for i in range(n_sites)], np.uint32), 0)

    def at(self, site: int) -> Noise:
        """Return the source of another site of the same step."""
        return Noise(self.table, site)

    @property
    def words(self) -> Any:
        """Row of the table for this site: seed, site and step, uint32, shape (4,)."""
        return self.table[self.site]


@dataclass(frozen=True)
class Epilogue:
    """The last operations of a layer, applied to a product Z: `dropout(activation(Z + bias))`.

    Parameters
    ----------
    bias : array of float32, shape (n_cols,), optional
    activation : {"none", "relu", "elu"}
    dropout : float
        Share of the elements that is dropped, 0 to below 1.
    noise : Noise, optional
        Random numbers of dropout. Without them, as in evaluation, there is no dropout.
    """

    bias: Any = None
    activation: str = "none"
    dropout: float = 0.0
    noise: Noise | None = None

    @property
    def rate(self) -> float:
        """Effective rate of dropout: `dropout`, or 0 without noise."""
        return 0.0 if self.noise is None else float(self.dropout)

    @property
    def words(self) -> Any:
        """Random words of dropout (`Noise.words`); None if the rate is 0."""
        return self.noise.words if self.noise is not None and self.rate else None

    def apply(self, Z: Any, added: Any = None) -> Any:
        """Return the epilogue of `Z + added`, (n, n_cols); Z may be overwritten."""
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
        """Return the gradient with respect to Z, given the result Y and its gradient dY.

        The slope of the activation follows from the result: that of ReLU is 1 where Y > 0, that of
        ELU is `1 + activation(Z)` below 0. The dropout mask is computed again from `noise`.
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
        if rate:  # with ReLU, Y is 0 at dropped elements, so that the mask below covers them
            mask = np.float32(1 / (1 - rate)) if relu else dropout_mask(Y.shape, rate, self.words)
            dZ = dY * mask
        if relu:
            return dZ * (Y > 0)
        if self.activation == "elu":
            dZ = dZ * np.where(Y > 0, 1, 1 + Y * np.float32(1 - rate))
        return dZ


IDENTITY = Epilogue()


def matmul(A: Any, B: Any, *, transposed: str = "", onto: Any = None) -> Any:
    """Return `A @ B`, plus `onto` if given; `transposed="A"` takes `A.T`, "B" takes `B.T`."""
    if (device := owner(A)) is not None:
        return device.matmul(A, B, transposed, onto)
    if A.size * B.size // (B.shape[0] or 1) <= _MAX_SMALL_PRODUCT:
        product = _small_product(A, B, transposed)
    else:
        product = (A.T if transposed == "A" else A) @ (B.T if transposed == "B" else B)
    return product if onto is None else onto + product


def _small_product(A: Any, B: Any, transposed: str) -> Any:
    columns = B.shape[0] if transposed == "B" else B.shape[1]
    product = np.zeros((A.shape[1] if transposed == "A" else A.shape[0], columns), np.float32)
    add_product = _add_transposed_product if transposed == "A" else _add_product
    contiguous_B = np.ascontiguousarray(B.T if transposed == "B" else B)
    add_product(np.ascontiguousarray(A), contiguous_B, product)
    return product


@njit(nogil=True, fastmath={"contract"})
def _add_product(A: Floats, B: Floats, product: Floats) -> None:
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            a = A[i, k]
            for j in range(B.shape[1]):
                product[i, j] += a * B[k, j]


@njit(nogil=True, fastmath={"contract"})
def _add_transposed_product(A: Floats, B: Floats, product: Floats) -> None:
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            a = A[i, k]
            for j in range(B.shape[1]):
                product[k, j] += a * B[i, j]


def column_sums(A: Any) -> Any:
    """Return the sum of each column; on a device the order of additions is deterministic."""
    device = owner(A)
    if device is None:
        return A.sum(axis=0)
    (n_rows, n_cols), width = A.shape, min(A.shape[1], THREADS)
    blocks = max(1, min(SUM_BLOCKS, n_rows * width // THREADS))
    partial_sums, sums = device.empty((blocks, n_cols)), device.empty(n_cols)
    first_call, last_call = steps.column_sums("A", "sums", blocks)
    first_arguments = {"A": device.contiguous(A), "parts": partial_sums, "n_rows": n_rows}
    last_arguments = {"parts": partial_sums, "sums": sums, "n_parts": blocks}
    for call, arguments in ((first_call, first_arguments), (last_call, last_arguments)):
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
    """Launch the kernel `entry` of kernels/layers/<file>.cu on at least `threads` threads."""
    dropout = epilogue.rate > 0
    kernel = steps.step_kernel(entry, tuple(arguments), epilogue.activation, dropout, file)
    device.launch(Call(steps.elements_launch(threads), kernel), arguments)


def log_lanes_of_row(n_cols: int) -> int:
    """Return log2 of the lanes of the subwarp that handles a matrix row, at most a warp."""
    return min(WARP_SIZE.bit_length() - 1, (n_cols - 1).bit_length())


def block_diagonal(vectors: Any) -> Any:
    """Return a matrix with vector `h` in rows `h * n` to `(h + 1) * n - 1` of column `h`, else 0.

    `vectors` has the shape (heads, n), the result the shape (heads * n, heads). Column `h` of
    `X @ result` is the product of head h's columns of X with vector `h`.
    """
    heads, n = vectors.shape
    identity = array_module(vectors).eye(heads, dtype=np.float32)
    return (vectors[:, :, None] * identity[:, None]).reshape(heads * n, heads)


def diagonal_blocks(matrix: Any, heads: int) -> Any:
    """Return the vectors in the blocks of `block_diagonal`, (heads, n): its inverse."""
    blocks = array_module(matrix).eye(heads, dtype=np.float32)[:, None]
    return (matrix.reshape(heads, -1, heads) * blocks).sum(axis=2)


def side_by_side(*matrices: Any) -> Any:
    """Concatenate matrices with the same number of rows along the columns.

    CuPy's `concatenate` and `stack` copy pointers from the host, which a captured graph cannot
    replay.
    """
    xp, rows = array_module(matrices[0]), matrices[0].shape[0]
    joined = xp.empty((rows, sum(matrix.shape[1] for matrix in matrices)), np.float32)
    start = 0
    for matrix in matrices:
        joined[:, start : start + matrix.shape[1]] = matrix
        start += matrix.shape[1]
    return joined


def array_module(array: Any) -> Any:
    """Return the module of an array, NumPy or CuPy."""
    device = owner(array)
    return np if device is None else device.xp


@dataclass
class Adam:
    """Adam with L2 decay added to the gradient (Kingma and Ba, ICLR 2015), as `torch.optim.Adam`.

    Parameters
    ----------
    rate : float
        Learning rate.
    beta1, beta2, eps : float
        By default the published values.
    """

    rate: float
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8

    def update(self, flat: Any, gradient: Any, states: Any, decay: Any, words: Any) -> None:
        """Update all parameters in place.

        Parameters
        ----------
        flat, gradient, decay : arrays of float32, shape (n_parameters,)
            All parameters in one array, their gradients, and the factors of their L2 penalties.
        states : array of float32, shape (2, n_parameters)
            Running means of the gradient and of its square.
        words : array of uint32, shape (4,)
            `Noise.words`; the last one is the number of steps before this one.
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
