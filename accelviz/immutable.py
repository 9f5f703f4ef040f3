"""Read-only arrays, and the base class of dataclasses that never change."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from types import MappingProxyType
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from accelviz.errors import short

#: Types that need no check, because plans have many of them.
_SCALARS = {bool, int, str, type(None), np.int32, np.int64}
#: Owners of the memory of arrays that this module has made read-only, by `id`.
_OWNERS: weakref.WeakValueDictionary[int, npt.NDArray[Any]] = weakref.WeakValueDictionary()


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a read-only copy of an array, or the array itself if nobody can write to it."""
    is_frozen = not array.flags.writeable and _OWNERS.get(id(array.base)) is not None
    return array if is_frozen else taken_over(array.copy())


def taken_over(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Make an array read-only without copying it; no other references to it may exist."""
    owner = array.base if isinstance(array.base, np.ndarray) else array
    owner.setflags(write=False)
    array.setflags(write=False)
    _OWNERS[id(owner)] = owner
    return array.view()  # NumPy does not make a view of a read-only array writable again


def read_only(value: Any) -> Any:
    """Return a NumPy array, a mapping, a list or tuple, or a `partial` with read-only parts."""
    if type(value) in _SCALARS:
        return value
    if isinstance(value, np.ndarray):
        return frozen(value)
    if isinstance(value, Mapping):
        return MappingProxyType(dict(zip(value, map(read_only, value.values()), strict=True)))
    if type(value) in (list, tuple):
        return tuple(map(read_only, value))
    if type(value) is partial:
        return partial(value.func, *map(read_only, value.args), **read_only(value.keywords))
    return value


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {_text(entry)}' for key, entry in value.items())}}}"
    if isinstance(value, partial):
        return str(getattr(value.func, "__name__", value.func))
    return repr(value) if isinstance(value, Immutable) else short(value)


class Immutable:
    """Base of frozen dataclasses whose fields are made read-only by `read_only`.

    A copy is the object itself. An unpickled object is made and checked by the constructor. The
    repr has the shapes of arrays in place of their elements, and no field that is None.
    """

    def __init_subclass__(cls) -> None:
        if "__repr__" not in vars(cls):  # else `dataclass` would add its own
            cls.__repr__ = Immutable.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        values = ((field.name, getattr(self, field.name)) for field in fields(cast(Any, self)))
        texts = (f"{name}={_text(value)}" for name, value in values if value is not None)
        return f"{type(self).__name__}({', '.join(texts)})"

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            object.__setattr__(self, name, read_only(value))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        values = [getattr(self, field.name) for field in fields(cast(Any, self)) if field.init]
        return type(self), tuple(
            dict(value) if isinstance(value, MappingProxyType) else value for value in values
        )
