"""An array that counts its reads; light to import, because submissions' processes use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt


class Counted(np.lib.mixins.NDArrayOperatorsMixin):
    """A read-only array that counts in `reads` how many of its elements are read.

    An operation or a NumPy function counts as one read of every element, indexing as one read of
    every selected element.
    """

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self._array, self.reads = array, 0

    def _read(self, value: Any) -> Any:
        self.reads += int(np.size(value))
        return value

    def __array__(self, dtype: Any = None, copy: Any = None) -> npt.NDArray[Any]:
        return np.asarray(self._read(self._array), dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(*map(_plain, inputs), **options)

    def __array_function__(self, function: Any, _: Any, args: Any, options: Any) -> Any:
        return function(*map(_plain, args), **{name: _plain(options[name]) for name in options})

    def __getitem__(self, key: Any) -> Any:
        return self._read(self._array[key])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._read(self._array))

    def __len__(self) -> int:
        return len(self._array)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self._array, name)
        if callable(value):
            self._read(self._array)
        return value


def _plain(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, Counted) else value


def call_counting_reads(function: Callable[[Any], Any], array: npt.NDArray[Any]) -> tuple[Any, int]:
    """Return a function's result for an array, and the number of elements that it reads."""
    counted = Counted(array)
    return function(counted), counted.reads
