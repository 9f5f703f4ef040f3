"""Counter-based random numbers: Philox, with equal results on the CPU and the GPU.

The random number of an element is a function of a seed and of a counter that identifies the
element. Dropout needs this: the backward pass draws the same mask as the forward pass again, and no
kernel stores it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.compiled import njit

#: Multipliers and key increments of Philox4x32: Salmon et al., "Parallel random numbers: as easy as
#: 1, 2, 3", SC 2011.
_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_K0, _K1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_ROUNDS = 10
_LOW_WORD, _WORD_BITS = np.uint64(0xFFFFFFFF), np.uint64(32)
#: Random bits of a float32 from 0 to 1, all of which it represents exactly.
_FLOAT_BITS = 24
_DROPPED_BITS, _UNIT = np.uint64(32 - _FLOAT_BITS), np.float32(2.0**-_FLOAT_BITS)


def _rounds(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> tuple[Any, Any, Any, Any]:
    """Apply the rounds of Philox to words stored as uint64, because products have 64 bits."""
    for _ in range(_ROUNDS):
        p0, p1 = c0 * _M0, c2 * _M1
        c0, c1 = (p1 >> _WORD_BITS) ^ c1 ^ k0, p1 & _LOW_WORD
        c2, c3 = (p0 >> _WORD_BITS) ^ c3 ^ k1, p0 & _LOW_WORD
        k0, k1 = (k0 + _K0) & _LOW_WORD, (k1 + _K1) & _LOW_WORD
    return c0, c1, c2, c3


# Inlined by Numba, because LLVM vectorises no loop with a call that it inlines itself.
_rounds_compiled = njit(inline="always")(_rounds)


def philox(key: tuple[Any, Any], counter: tuple[Any, Any, Any, Any]) -> tuple[Any, ...]:
    """Compute Philox4x32-10.

    Parameters
    ----------
    key : tuple of two int, or of two arrays
        The two words of a seed.
    counter : tuple of four arrays or int
        The words of the counter, 0 to 2^32 - 1, broadcast against each other. At least one is an
        array, of NumPy or CuPy.

    Returns
    -------
    tuple of four arrays of uint32
        Four independent random words per counter.
    """
    words = (np.uint64(w) if isinstance(w, int) else w.astype(np.uint64) for w in (*counter, *key))
    return tuple(word.astype(np.uint32) for word in _rounds(*words))


def uniform(words: Any) -> Any:
    """Convert words of 32 random bits to float32 in [0, 1), multiples of 2^-24."""
    return (words >> words.dtype.type(_DROPPED_BITS)).astype(np.float32) * _UNIT


def element_uniform(n: int, seed: int, site: int = 0, step: int = 0) -> npt.NDArray[np.float32]:
    """Draw a uniform number in [0, 1) for each element of an array.

    Parameters
    ----------
    n : int
        Number of elements.
    seed : int
        0 to 2^64 - 1, the key of Philox.
    site : int
        Number of the array within a training step, 0 to 2^16 - 1.
    step : int
        Number of the training step, 0 to 2^32 - 1.

    Returns
    -------
    array of float32, shape (n,)
        Element `i` is word `i % 4` of the counter `(j, j >> 32, site, step)`, where `j = i // 4`.
    """
    drawn = np.empty(n, np.float32)
    _draw_elements(drawn, *_key(seed), np.uint64(site), np.uint64(step))
    return drawn


def edge_uniform(
    nonzeros: npt.NDArray[Any], heads: int, seed: int, site: int = 0, step: int = 0
) -> npt.NDArray[np.float32]:
    """Draw a uniform number in [0, 1) for each nonzero and attention head.

    Parameters
    ----------
    nonzeros : array of int, shape (n,)
        Positions of the nonzeros in the caller's graph. The result depends only on them, so that a
        kernel may handle permuted or transposed nonzeros.
    heads : int
        Number of heads, below 2^16.
    seed, site, step
        As for `element_uniform`.

    Returns
    -------
    array of float32, shape (n, heads)
        For nonzero `k` and head `h`, word 0 of the counter `(k, k >> 32, site + h * 2^16, step)`.
    """
    drawn = np.empty((len(nonzeros), heads), np.float32)
    _draw_edges(drawn, nonzeros, *_key(seed), np.uint64(site), np.uint64(step))
    return drawn


def edge_uniform_of(nonzeros: Any, heads: int, words: Any, xp: Any = np) -> Any:
    """Draw the numbers of `edge_uniform` with the parameters in an array, as kernels read them.

    `words`, uint32, shape (4,), are seed (low, high), site and step. With CuPy as `xp` they are on
    the GPU, and the host does not read them.
    """
    if xp is np:
        low, high, site, step = (int(word) for word in words)
        return edge_uniform(nonzeros, heads, low | high << 32, site, step)
    low, high, site, step = (words[i].astype(np.uint64) for i in range(4))
    k = nonzeros.astype(np.uint64)[:, None]
    head = site + (xp.arange(heads, dtype=np.uint64) << np.uint64(16))[None, :]
    return uniform(philox((low, high), (k & _LOW_WORD, k >> _WORD_BITS, head, step))[0])


def row_uniform(nodes: Any, n_cols: int, words: Any) -> npt.NDArray[np.float32]:
    """Draw a uniform number in [0, 1) for each element of rows, by the numbers of their nodes.

    Parameters
    ----------
    nodes : array of int64, shape (n,)
        0 to 2^32 - 1.
    n_cols : int
    words : array of uint32, shape (4,)
        Seed (low, high), site and step.

    Returns
    -------
    array of float32, shape (n, n_cols)
        For node `n` and column `c`, word `c % 4` of the counter `(n, c // 4, site, step)`.
    """
    fours = np.arange(-(-n_cols // 4), dtype=np.uint32)
    low, high, site, step = (int(word) for word in words)
    drawn = philox((low, high), (nodes[:, None], fours[None, :], site, step))
    return uniform(np.stack(drawn, axis=2).reshape(len(nodes), 4 * fours.size)[:, :n_cols])


def _key(seed: int) -> tuple[np.uint64, np.uint64]:
    return np.uint64(seed & int(_LOW_WORD)), np.uint64(seed >> 32 & int(_LOW_WORD))


@njit(nogil=True)
def _draw_elements(drawn: Any, k0: Any, k1: Any, site: Any, step: Any) -> None:
    for block in range(-(-drawn.size // 4)):
        b = np.uint64(block)
        words = _rounds_compiled(b & _LOW_WORD, b >> _WORD_BITS, site, step, k0, k1)
        for i in range(4):
            if 4 * block + i < drawn.size:
                drawn[4 * block + i] = np.float32(words[i] >> _DROPPED_BITS) * _UNIT


@njit(nogil=True)
def _draw_edges(drawn: Any, nonzeros: Any, k0: Any, k1: Any, site: Any, step: Any) -> None:
    piece = np.empty(256, np.float32)  # contiguous, so that the loop over nonzeros is vectorised
    for h in range(drawn.shape[1]):
        head = site + (np.uint64(h) << np.uint64(16))
        for first in range(0, drawn.shape[0], piece.size):
            length = min(piece.size, drawn.shape[0] - first)
            for e in range(length):
                k = np.uint64(nonzeros[first + e])
                word = _rounds_compiled(k & _LOW_WORD, k >> _WORD_BITS, head, step, k0, k1)[0]
                piece[e] = np.float32(np.int32(word >> _DROPPED_BITS)) * _UNIT
            for e in range(length):
                drawn[first + e, h] = piece[e]
