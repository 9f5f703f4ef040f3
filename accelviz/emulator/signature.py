"""Parameters of a compiled kernel, and checks of the arguments for them."""

from __future__ import annotations

import contextlib
import itertools
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

    `kind` and `itemsize` describe an element of the array that it points to, or its own value; of a
    vector, one component. `size` counts the bytes of all components. Kinds are NumPy's letters, "s"
    for a structure, "p" for a pointer and "v" for void.
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
        """Whether it is a structure or a vector by value."""
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
        """Return for every field of a structured type whether it has the component's type."""
        return [field[0].base == np.dtype(self.dtype) for field in (dtype.fields or {}).values()]

    def check_array(self, array: Any) -> None:
        """Refuse an array of another type, or one that is on a GPU.

        Raises
        ------
        ArgumentError
        """
        if not self.pointer:
            expected = f"a number, for the parameter `{self}`"
            if not self.by_parts:
                expected += f"; if an array is meant, `{self.type} *{self.name}` in the kernel"
            raise ArgumentError(self.name, f"an array of shape {np.shape(array)}", expected)
        if self.takes(array.dtype):
            return
        fields = (array.dtype.fields or {}).values()
        parts = [array.real.dtype] if array.dtype.kind == "c" else [one[0].base for one in fields]
        method = "view" if parts and all(map(self.takes, parts)) else "astype"
        expected = f"an array of {self.dtype}, as of {self.name}.{method}(np.{self.dtype})"
        if self.kind in "sp":
            expected = f"elements of {self.size} bytes"
            if fields:
                expected += ", as of np.dtype([...], align=True) with the members' types in order"
        elif fields and method == "astype":  # which NumPy refuses
            expected = f"an array of {self.dtype}, such as one field, copied"
        problem = f"an array of {array.dtype} for the parameter `{self}`"
        raise ArgumentError(self.name, problem, expected)

    def number(self, value: Any) -> bytes:
        """Return a number as the kernel gets it.

        Raises
        ------
        ArgumentError
            If the parameter cannot hold it.
        """
        problem = f"got {value!r} for the parameter `{self}`"
        if self.pointer:
            if value is None:
                return bytes(8)
            expected = f"an array of {self.dtype}, for the parameter `{self}`"
            if isinstance(value, list | tuple) and self.kind in _NAMES:
                expected += f": np.array({self.name}, np.{self.dtype})"
            raise ArgumentError(self.name, f"got {value!r}, a {type(value).__name__}", expected)
        if self.by_parts:
            return self._structure(value)
        real = isinstance(value, int | float | np.number | np.bool_) and not np.iscomplexobj(value)
        if self.kind == "f":
            expected = f"a number within {self.dtype}"
            with np.errstate(over="ignore"):
                number = np.array(value if real else 0, self.dtype)
            fits = real and (np.isfinite(number) or not np.isfinite(value))
        else:
            low, high, expected = 0, 1, "True or False"
            if self.kind != "b":
                low, high = np.iinfo(self.dtype).min, np.iinfo(self.dtype).max
                expected = f"a whole number from {low} to {high}"
            fits = real and np.isfinite(value) and value == int(value) and low <= value <= high
            number = np.array(int(value) if fits else 0, self.dtype)
        if not fits:
            raise ArgumentError(self.name, problem, expected)
        return number.tobytes()

    def _structure(self, value: Any) -> bytes:
        fields = getattr(getattr(value, "dtype", None), "fields", None)
        expected = f"{self.size} bytes as of np.array((...), np.dtype([...], align=True))"
        parts = np.empty(0)
        if self.kind in "sp":
            if fields and np.size(value) == 1:
                parts = np.asarray(value)
        else:
            expected = f"{self.size // self.itemsize} numbers of {self.dtype}"
            if not fields:
                with contextlib.suppress(TypeError, ValueError, OverflowError):
                    parts = np.array(value, self.dtype)
            elif all(self._of(value.dtype)):
                parts = np.asarray(value)
        if parts.nbytes != self.size or parts.dtype.hasobject:
            expected += f", for the parameter `{self}`"
            raise ArgumentError(self.name, f"got {value!r}", expected)
        return parts.tobytes()


def parameters(text: str, names: Sequence[str]) -> tuple[Parameter, ...]:
    """Parse the lines of `describe` in entry.h, one for each parameter."""
    described = []
    for number, line in enumerate(text.splitlines()):
        form, const, kind, itemsize, size, pretty = line.split(" ", 5)
        name = names[number] if number < len(names) else f"argument {number + 1}"
        sizes = int(itemsize), int(size)
        described.append(Parameter(name, form == "p", const == "1", kind, *sizes, _spelled(pretty)))
    return tuple(described)


def _spelled(pretty: str) -> str:
    """Return a type's name, as one would write it, from a compiler's name of an instance."""
    match = re.search(r"T = (.*)\]$", pretty)
    name = match[1].replace("long long int", "long long") if match else "?"
    return re.sub(r"\s*\*", " *", name)


def check_count(parameters: Sequence[Parameter], names: Sequence[str], kernel: str) -> None:
    """Raise ArgumentError unless a kernel has as many parameters as there are arguments."""
    if len(parameters) != len(names):
        takes = ", ".join(map(str, parameters)) or "none"
        problem = f"got {len(names)} arguments" + (f" ({', '.join(names)})" if names else "")
        raise ArgumentError(kernel, problem, f"{len(parameters)}: {takes}")


def shared_once(arrays: Sequence[tuple[str, npt.NDArray[Any]]]) -> dict[str, str]:
    """Map the names of arrays to that of an earlier array in the same memory.

    Raises
    ------
    ArgumentError
        If two overlap in another way.
    """
    same: dict[str, str] = {}
    for (other_name, other), (name, array) in itertools.combinations(arrays, 2):
        if name in same or not np.may_share_memory(array, other):
            continue
        if array.ctypes.data == other.ctypes.data and array.nbytes == other.nbytes:
            same[name] = same.get(other_name, other_name)
        elif np.shares_memory(array, other):
            raise ArgumentError(name, f"it overlaps {other_name}", "memory of its own")
    return same
