"""Random numbers by counter: Philox, of which every device and every pass draws the same.

A generator with a state cannot be asked again. Dropout has to be: its gradient needs the same mask
as its forward pass, and a kernel has no room to keep one. Here the number of an element is a
function of a seed and of the element's own counter, so that nothing is kept.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

#: Multipliers and key increments of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
#: SC 2011, for four words of 32 bits.
_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_K0, _K1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_ROUNDS = 10
_WORD, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
#: Bits of a word that a float32 below 1 holds exactly.
_FLOAT_BITS = 24
_DROPPED_BITS, _UNIT = np.uint64(32 - _FLOAT_BITS), np.float32(2.0**-_FLOAT_BITS)


def _mixed(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> tuple[Any, Any, Any, Any]:
    """Mix words that are uint64 below 2^32, numbers or arrays: a product needs all 64 bits."""
    for _ in range(_ROUNDS):
        p0, p1 = c0 * _M0, c2 * _M1
        c0, c1 = (p1 >> _HALF) ^ c1 ^ k0, p1 & _WORD
        c2, c3 = (p0 >> _HALF) ^ c3 ^ k1, p0 & _WORD
        k0, k1 = (k0 + _K0) & _WORD, (k1 + _K1) & _WORD
    return c0, c1, c2, c3


_mixed_number = numba.njit(cache=True, nogil=True)(_mixed)


def philox(key: tuple[Any, Any], counter: tuple[Any, Any, Any, Any]) -> tuple[Any, ...]:
    """Mix a counter with a key by Philox4x32-10.

    Parameters
    ----------
    key : tuple of two int, or of two arrays
        The two words of a seed.
    counter : tuple of four arrays or int
        The words of the counter, integers from 0 to 2^32 - 1, which are broadcast. NumPy's or
        CuPy's; at least one is an array.

    Returns
    -------
    tuple of four arrays of uint32
        Four independent words for each counter.
    """
    words = (np.uint64(c) if isinstance(c, int) else c.astype(np.uint64) for c in (*counter, *key))
    return tuple(c.astype(np.uint32) for c in _mixed(*words))


def uniform(words: Any) -> Any:
    """Return words of 32 random bits as float32 from 0 to below 1, each of 2^24 values."""
    return (words >> words.dtype.type(_DROPPED_BITS)).astype(np.float32) * _UNIT


def element_uniform(n: int, seed: int, site: int = 0, step: int = 0) -> npt.NDArray[np.float32]:
    """Draw a number for each element of an array.

    Parameters
    ----------
    n : int
        Elements.
    seed : int
        0 to 2^64 - 1: the key.
    site : int
        Which array of a step it is, 0 to 2^16 - 1.
    step : int
        0 to 2^32 - 1.

    Returns
    -------
    array of float32, shape (n,)
        Element `i` is word `i % 4` of the counter `(i / 4, i / 4 >> 32, site, step)`.
    """
    drawn = np.empty(n, np.float32)
    _draw_elements(drawn, *_key(seed), np.uint64(site), np.uint64(step))
    return drawn


def edge_uniform(
    nonzeros: npt.NDArray[Any], heads: int, seed: int, site: int = 0, step: int = 0
) -> npt.NDArray[np.float32]:
    """Draw a number for each nonzero and head.

    Parameters
    ----------
    nonzeros : array of int, shape (n,)
        Their places in the caller's order, so that a kernel that walks them in any order, or
        transposed, draws the same.
    heads : int
        Below 2^16.
    seed, site, step
        As of `element_uniform`.

    Returns
    -------
    array of float32, shape (n, heads)
        Of nonzero `k` and head `h`: word 0 of the counter `(k, k >> 32, site + h * 2^16, step)`.
    """
    drawn = np.empty((len(nonzeros), heads), np.float32)
    _draw_edges(drawn, nonzeros, *_key(seed), np.uint64(site), np.uint64(step))
    return drawn


def edge_uniform_of(nonzeros: Any, heads: int, words: Any, xp: Any = np) -> Any:
    """Draw what `edge_uniform` draws, given seed, site and step as kernels read them.

    `words`, uint32, shape (4,), may lie on a GPU: they are not read on the host.
    """
    if xp is np:
        low, high, site, step = (int(word) for word in words)
        return edge_uniform(nonzeros, heads, low | high << 32, site, step)
    low, high, site, step = (words[i].astype(np.uint64) for i in range(4))
    k = nonzeros.astype(np.uint64)[:, None]
    head = site + (xp.arange(heads, dtype=np.uint64) << np.uint64(16))[None, :]
    return uniform(philox((low, high), (k & _WORD, k >> _HALF, head, step))[0])


def _key(seed: int) -> tuple[np.uint64, np.uint64]:
    return np.uint64(seed & int(_WORD)), np.uint64(seed >> 32 & int(_WORD))


@numba.njit(cache=True, nogil=True)
def _draw_elements(drawn: Any, k0: Any, k1: Any, site: Any, step: Any) -> None:
    for block in range(-(-drawn.size // 4)):
        b = np.uint64(block)
        words = _mixed_number(b & _WORD, b >> _HALF, site, step, k0, k1)
        for i in range(4):
            if 4 * block + i < drawn.size:
                drawn[4 * block + i] = np.float32(words[i] >> _DROPPED_BITS) * _UNIT


@numba.njit(cache=True, nogil=True)
def _draw_edges(drawn: Any, nonzeros: Any, k0: Any, k1: Any, site: Any, step: Any) -> None:
    for e in range(drawn.shape[0]):
        k = np.uint64(nonzeros[e])
        for h in range(drawn.shape[1]):
            head = site + (np.uint64(h) << np.uint64(16))
            word = _mixed_number(k & _WORD, k >> _HALF, head, step, k0, k1)[0]
            drawn[e, h] = np.float32(word >> _DROPPED_BITS) * _UNIT
