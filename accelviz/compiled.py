"""Compilation of Python functions by Numba, whose results are cached where that is possible."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any


class Compiled:
    """A function that Numba compiles when it is first called; its import takes half a second.

    Compiled functions may call each other: Numba takes this object for the `dispatcher`, of which
    it has what Numba looks at. As a function it is copied and pickled by its name.
    """

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        names = set(functools.WRAPPER_ASSIGNMENTS) - {"__annotations__"}  # which could be changed
        functools.update_wrapper(self, function, names)
        self.py_func, self._options = function, MappingProxyType(options)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__

    @functools.cached_property
    def dispatcher(self) -> Any:
        """Numba's function, with a cache on disk, or without if no folder is writable.

        Numba raises an error here if neither the package's folder nor the user's cache is.
        """
        import numba

        try:
            return numba.njit(cache=True, **self._options)(self.py_func)
        except RuntimeError:
            return numba.njit(**self._options)(self.py_func)

    @property
    def targetoptions(self) -> Any:
        """Numba's options, such as that it is to be inlined."""
        return self.dispatcher.targetoptions

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_

    def __call__(self, *arguments: Any) -> Any:  # noqa: D102
        return self.dispatcher(*arguments)


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that makes a function a `Compiled` one; options are `numba.njit`'s."""
    return lambda function: Compiled(function, options)
