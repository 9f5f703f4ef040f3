"""Reproducible random numbers: twins must not depend on the version of a library.

Recorded measurements identify a twin by its seed. NumPy guarantees the bit streams of its
generators, but not the results of its methods, so this module implements the few methods needed
with integers and exact operations on doubles. The generator is SplitMix64 (Steele, Lea and Flood
2014).
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.compiled import njit

State = npt.NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def stream(seed: int, name: str) -> State:
    """Return the state of the random stream `name` of `seed`: uint64, shape (1,)."""
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    return np.frombuffer(digest, dtype="<u8").astype(np.uint64)


@njit(inline="always")
def bits(state: State) -> Any:
    """Draw 64 random bits."""
    state[0] += _STEP
    x = state[0]
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    return x ^ (x >> np.uint64(31))


@njit(inline="always")
def below(state: State, bound: int) -> Any:
    """Draw an int64 from 0 to `bound` - 1, with a bias of at most `bound` / 2^64."""
    return np.int64(bits(state) % np.uint64(bound))


@njit(inline="always")
def unit(state: State) -> Any:
    """Draw a float64 from [0, 1)."""
    return np.float64(bits(state) >> np.uint64(11)) * 2.0**-53


@njit(nogil=True)
def shuffle(state: State, array: npt.NDArray[Any]) -> None:
    """Shuffle `array` in place (Fisher and Yates)."""
    for i in range(array.size - 1, 0, -1):
        j = below(state, i + 1)
        array[i], array[j] = array[j], array[i]
