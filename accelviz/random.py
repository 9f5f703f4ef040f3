"""Random numbers by counter: Philox, of which every device and every pass draws the same.

A generator with a state cannot be asked again. Dropout has to be: its gradient needs the same mask
as its forward pass, and a kernel has no room to keep one. Here the number of an element is a
function of a seed and of the element's own counter, so that nothing is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

#: Multipliers and key increments of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
#: SC 2011, for four words of 32 bits.
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_INCREMENTS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_WORD = 0xFFFFFFFF
#: Bits of a word that a float32 below 1 holds exactly.
_FLOAT_BITS = 24


def philox(key: tuple[int, int], counter: tuple[Any, Any, Any, Any]) -> tuple[Any, ...]:
    """Mix a counter with a key by Philox4x32-10.

    Parameters
    ----------
    key : tuple of two int
        The two words of a seed.
    counter : tuple of four arrays or int
        The words of the counter, integers from 0 to 2^32 - 1, which are broadcast. NumPy's or
        CuPy's; at least one is an array.

    Returns
    -------
    tuple of four arrays of uint32
        Four independent words for each counter.
    """
    # In 64 bits, of which a product needs all; every word stays below 2^32.
    c0, c1, c2, c3 = (np.uint64(c) if isinstance(c, int) else c.astype(np.uint64) for c in counter)
    k0, k1 = (int(word) for word in key)
    half, mask = np.uint64(32), np.uint64(_WORD)
    for _ in range(_ROUNDS):
        p0, p1 = c0 * np.uint64(_MULTIPLIERS[0]), c2 * np.uint64(_MULTIPLIERS[1])
        c0, c1 = (p1 >> half) ^ c1 ^ np.uint64(k0), p1 & mask
        c2, c3 = (p0 >> half) ^ c3 ^ np.uint64(k1), p0 & mask
        k0, k1 = (k0 + _INCREMENTS[0]) & _WORD, (k1 + _INCREMENTS[1]) & _WORD
    return tuple(c.astype(np.uint32) for c in (c0, c1, c2, c3))


def uniform(words: Any) -> Any:
    """Return words of 32 random bits as float32 from 0 to below 1, each of 2^24 values."""
    bits = words >> np.uint32(32 - _FLOAT_BITS)
    return bits.astype(np.float32) * np.float32(2.0**-_FLOAT_BITS)


def element_uniform(n: int, seed: int, site: int = 0, step: int = 0, xp: Any = np) -> Any:
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
    xp : module
        NumPy or CuPy.

    Returns
    -------
    array of float32, shape (n,)
        Element `i` is word `i % 4` of the counter `(i / 4, i / 4 >> 32, site, step)`.
    """
    blocks = xp.arange(-(-n // 4), dtype=np.uint64)
    low, high = blocks & np.uint64(_WORD), blocks >> np.uint64(32)
    words = philox(_key(seed), (low, high, site, step))
    return uniform(xp.stack(words, axis=1).reshape(-1)[:n])


def edge_uniform(
    nonzeros: Any, heads: int, seed: int, site: int = 0, step: int = 0, xp: Any = np
) -> Any:
    """Draw a number for each nonzero and head.

    Parameters
    ----------
    nonzeros : array of int, shape (n,)
        Their places in the caller's order, so that a kernel that walks them in any order, or
        transposed, draws the same.
    heads : int
        Below 2^16.
    seed, site, step, xp
        As of `element_uniform`.

    Returns
    -------
    array of float32, shape (n, heads)
        Of nonzero `k` and head `h`: word 0 of the counter `(k, k >> 32, site + h * 2^16, step)`.
    """
    k = nonzeros.astype(np.uint64)[:, None]
    head = site + (xp.arange(heads, dtype=np.uint64) << np.uint64(16))[None, :]
    counter = (k & np.uint64(_WORD), k >> np.uint64(32), head, step)
    return uniform(philox(_key(seed), counter)[0])


def _key(seed: int) -> tuple[int, int]:
    return seed & _WORD, seed >> 32 & _WORD
