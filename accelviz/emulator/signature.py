"""What a kernel takes, as its compiled code says, and whether that is what it is given."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.errors import ArgumentError

_NAMES = {"f": "float", "i": "int", "u": "uint"}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel.

    `kind` and `itemsize` are those of the elements of what it points to, or of itself, and of
    vectors the components'; `size` has all of them. Kinds are NumPy's, and "s" for a structure.
    """

    name: str
    pointer: bool
    const: bool
    kind: str
    itemsize: int
    size: int
    type: str

    def __str__(self) -> str:
        return f"{self.type}{'' if self.type.endswith('*') else ' '}{self.name}"

    @property
    def dtype(self) -> str:
        """NumPy's name of the elements."""
        bits = 8 * self.itemsize
        return "bool" if self.kind == "b" else f"{_NAMES.get(self.kind, 'V')}{bits}"

    @property
    def by_parts(self) -> bool:
        """Whether it is a structure or a vector, given by value."""
        return not self.pointer and (self.kind in "sp" or self.size != self.itemsize)

    def takes(self, dtype: np.dtype[Any]) -> bool:
        """Whether an array of this type holds what the kernel reads."""
        if self.kind == "v":
            return True
        if dtype.fields and self.kind != "s":  # a vector, member by member
            return dtype.itemsize == self.size and set(self._of(dtype)) == {True}
        if self.kind == "s":  # by parts, or whole
            return dtype.itemsize > 0 and self.size % dtype.itemsize == 0
        if self.itemsize == 1:
            return dtype.itemsize == 1 and dtype.kind in "iub"
        return dtype.kind == self.kind and dtype.itemsize == self.itemsize

    def _of(self, dtype: np.dtype[Any]) -> list[bool]:
        """Say of each field of a structured type whether it is of the component's type."""
        return [field[0].base == np.dtype(self.dtype) for field in (dtype.fields or {}).values()]

    def check_array(self, array: Any) -> None:
        """Refuse an array of another type, or one that is on a GPU.

        Raises
        ------
        ArgumentError
        """
        if not self.pointer:
            what = f"an array of shape {np.shape(array)}"
            right = f"a number, for the parameter `{self}`"
            if not self.by_parts:
                right += f"; if an array is meant, `{self.type} *{self.name}` in the kernel"
            raise ArgumentError(self.name, what, right)
        if not self.takes(array.dtype):
            parts = [field[0].base for field in (array.dtype.fields or {}).values()]
            if array.dtype.kind == "c":
                parts = [array.real.dtype]
            how = "view" if parts and all(map(self.takes, parts)) else "astype"
            right = f"an array of {self.dtype}, as of {self.name}.{how}(np.{self.dtype})"
            if array.dtype.fields and how == "astype":  # which NumPy refuses
                right = f"an array of {self.dtype}, such as one field, copied"
            if self.kind in "sp":
                right = f"elements of {self.size} bytes"
                if array.dtype.fields:
                    right += ", as of np.dtype([...], align=True) with the members' types in order"
            what = f"an array of {array.dtype} for the parameter `{self}`"
            raise ArgumentError(self.name, what, right)

    def number(self, value: Any) -> bytes:
        """Return a number as the kernel gets it.

        Raises
        ------
        ArgumentError
            If the parameter cannot hold it.
        """
        if self.pointer:
            if value is None:
                return bytes(8)
            what = f"got {value!r}, a {type(value).__name__}"
            right = f"an array of {self.dtype}, for the parameter `{self}`"
            if isinstance(value, list | tuple) and self.kind in _NAMES:
                right += f": np.array({self.name}, np.{self.dtype})"
            raise ArgumentError(self.name, what, right)
        if self.by_parts:
            return self._structure(value)
        wrong = ArgumentError(self.name, f"got {value!r} for the parameter `{self}`", self._right())
        if not isinstance(value, int | float | np.number | np.bool_) or isinstance(value, complex):
            raise wrong
        dtype = np.dtype(self.dtype)
        if self.kind == "f":
            with np.errstate(over="ignore"):
                made = np.array(value, dtype=dtype)
            if np.isinf(made) and not np.isinf(value):
                raise wrong
            return made.tobytes()
        if not np.isfinite(value) or value != int(value):
            raise wrong
        low, high = (0, 1) if self.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        if not low <= int(value) <= high:
            raise wrong
        return np.array(int(value), dtype=dtype).tobytes()

    def _right(self) -> str:
        if self.kind == "f":
            return f"a number within {self.dtype}"
        if self.kind == "b":
            return "True or False"
        span = np.iinfo(self.dtype)
        return f"a whole number from {span.min} to {span.max}"

    def _structure(self, value: Any) -> bytes:
        dtype = getattr(value, "dtype", None)
        if self.kind in "sp":
            kind = "np.array((...), np.dtype([...], align=True))"
            right = f"{self.size} bytes as of {kind}, for the parameter `{self}`"
            whole = dtype is not None and dtype.fields and np.size(value) == 1
            made = np.asarray(value) if whole else np.empty(0)
        else:
            right = (
                f"{self.size // self.itemsize} numbers of {self.dtype}, for the parameter `{self}`"
            )
            whole = dtype is not None and dtype.fields
            try:
                made = np.asarray(value) if whole else np.array(value, self.dtype)
            except (TypeError, ValueError, OverflowError):
                made = np.empty(0)
            if whole and not all(self._of(made.dtype)):
                made = np.empty(0)
        if made.nbytes != self.size or made.dtype.hasobject:
            raise ArgumentError(self.name, f"got {value!r}", right)
        return made.tobytes()


def parameters(text: str, names: Sequence[str]) -> tuple[Parameter, ...]:
    """Read what `describe` in entry.h has written, a line for each parameter."""
    found = []
    for number, line in enumerate(text.splitlines()):
        form, const, kind, itemsize, size, pretty = line.split(" ", 5)
        name = names[number] if number < len(names) else f"argument {number + 1}"
        found.append(
            Parameter(
                *(name, form == "p", const == "1", kind, int(itemsize), int(size)),
                _spelled(pretty),
            )
        )
    return tuple(found)


def _spelled(pretty: str) -> str:
    """Take a type's name out of what compilers call a function template, as one would write it."""
    found = re.search(r"T = (.*)\]$", pretty)
    name = found[1].replace("long long int", "long long") if found else "?"
    return re.sub(r"\s*\*", " *", name)


def check_count(found: Sequence[Parameter], given: Sequence[str], kernel: str) -> None:
    """Refuse more or fewer arguments than a kernel has parameters.

    Raises
    ------
    ArgumentError
    """
    if len(found) != len(given):
        takes = ", ".join(map(str, found)) or "none"
        had = f"{len(given)} arguments" + (f" ({', '.join(given)})" if given else "")
        raise ArgumentError(kernel, f"got {had}", f"{len(found)}: {takes}")


def shared_once(arrays: Sequence[tuple[str, npt.NDArray[Any]]]) -> dict[str, str]:
    """Say of arrays which of them are the very memory of one before.

    Raises
    ------
    ArgumentError
        If two overlap in another way.
    """
    same: dict[str, str] = {}
    for place, (name, array) in enumerate(arrays):
        for other_name, other in arrays[:place]:
            if not np.may_share_memory(array, other):
                continue
            one, two = (each.__array_interface__ for each in (array, other))
            if one["data"][0] == two["data"][0] and array.nbytes == other.nbytes:
                same[name] = same.get(other_name, other_name)
                break
            if np.shares_memory(array, other):
                raise ArgumentError(name, f"it overlaps {other_name}", "memory of its own")
    return same
