"""Parameters of a compiled kernel, and checks and conversion of arguments."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.errors import ArgumentError, short

_NAMES = {"f": "float", "i": "int", "u": "uint"}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel.

    `kind`, `itemsize` and `size` describe the value, or an element of the array if the parameter is
    a pointer. For a CUDA vector, such as float4, `kind` and `itemsize` are those of a component.
    """

    name: str
    pointer: bool
    const: bool  # whether the pointer is to const
    kind: str  # NumPy's letter, or "s" for a structure ("e" without members), "p" pointer, "v" void
    itemsize: int  # bytes of the value or of a vector's component
    size: int  # bytes of the value
    type: str

    def __str__(self) -> str:
        return f"{self.type}{'' if self.type.endswith('*') else ' '}{self.name}"

    @property
    def dtype(self) -> str:
        """NumPy's name of the type of a value, an element or a vector's component."""
        bits = 8 * self.itemsize
        return "bool" if self.kind == "b" else f"{_NAMES.get(self.kind, 'V')}{bits}"

    @property
    def is_composite(self) -> bool:
        """Whether it is a structure or a vector passed by value."""
        return not self.pointer and (self.kind in "spe" or self.size != self.itemsize)

    def accepts(self, dtype: np.dtype[Any]) -> bool:
        """Return whether the kernel can read the elements of an array of this dtype."""
        if not dtype.isnative:
            return False
        if self.kind == "v":
            return True
        if dtype.fields and self.kind != "s":  # a vector as a structure of its components
            return dtype.itemsize == self.size and self._has_component_fields(dtype)
        if "__nv_bfloat16" in self.type and dtype.kind == "f":
            return False  # float16 has as many bytes, and another meaning
        if self.kind == "s":  # a whole structure, or one of several equal parts
            return dtype.itemsize > 0 and self.size % dtype.itemsize == 0
        if self.itemsize == 1:
            return dtype.itemsize == 1 and dtype.kind in "iub"
        return dtype.kind == self.kind and dtype.itemsize == self.itemsize

    def _has_component_fields(self, dtype: np.dtype[Any]) -> bool:
        """Return whether all fields of a structured dtype have the type of a component."""
        fields = (dtype.fields or {}).values()
        return all(field[0].base == np.dtype(self.dtype) for field in fields)

    def _structured(self, dtype: np.dtype[Any] | None) -> str:
        """Return how to make a dtype with the size of this structure, for messages."""
        if dtype is None or not dtype.isalignedstruct:
            return "np.dtype([...], align=True) with the members' types in order"
        # NumPy aligns a vector's components, CUDA the vector.
        return (
            "np.dtype({'names': [...], 'formats': [...], 'offsets': [...], 'itemsize': "
            f"{self.size}}}): CUDA aligns vectors, such as int4 and float4 to 16 bytes, float2 to 8"
        )

    def check_array(self, array: Any) -> None:
        """Raise ArgumentError unless the parameter is a pointer to the array's element type."""
        if not self.pointer:
            expected = f"a number, for the parameter `{self}`"
            if not self.is_composite:
                expected += f"; if an array is meant, `{self.type} *{self.name}` in the kernel"
            raise ArgumentError(self.name, f"an array of shape {np.shape(array)}", expected)
        if self.accepts(array.dtype):
            return
        fields = (array.dtype.fields or {}).values()
        parts = [array.real.dtype] if array.dtype.kind == "c" else [one[0].base for one in fields]
        method = "view" if parts and all(map(self.accepts, parts)) else "astype"
        expected = f"an array of {self.dtype}, as of {self.name}.{method}(np.{self.dtype})"
        if self.kind in "sp":
            expected = f"elements of {self.size} bytes"
            if fields:
                expected += f", as of {self._structured(array.dtype)}"
        if "__nv_bfloat16" in self.type:
            expected = "their bits in uint16; for `accelviz check`, FILL:bfloat16:SHAPE"
        elif fields and method == "astype":  # NumPy cannot convert structures
            expected = f"an array of {self.dtype}, such as one field, copied"
        problem = f"an array of {array.dtype} for the parameter `{self}`"
        raise ArgumentError(self.name, problem, expected)

    def number(self, value: Any) -> bytes:
        """Return the bytes of an argument that is not an array; None is a null pointer.

        Raises
        ------
        ArgumentError
            If the parameter's type cannot represent the value.
        """
        problem = f"got {short(value)} for the parameter `{self}`"
        if self.pointer:
            if value is None:
                return bytes(8)
            expected = f"an array of {self.dtype}, for the parameter `{self}`"
            if isinstance(value, list | tuple) and self.kind in _NAMES:
                expected += f": np.array({self.name}, np.{self.dtype})"
            raise ArgumentError(
                self.name, f"got {short(value)}, a {type(value).__name__}", expected
            )
        if self.kind == "e":
            return bytes(self.size)
        if self.is_composite:
            return self._composite(value)
        real = isinstance(value, int | float | np.number | np.bool_) and not np.iscomplexobj(value)
        if self.kind == "f":
            expected = f"a number within {self.dtype}"
            with np.errstate(over="ignore"):
                number = np.array(value if real else 0, self.dtype)
            in_range = real and (np.isfinite(number) or not np.isfinite(value))
        else:
            low, high, expected = 0, 1, "True or False"
            if self.kind != "b":
                low, high = np.iinfo(self.dtype).min, np.iinfo(self.dtype).max
                expected = f"a whole number from {low} to {high}"
            in_range = real and np.isfinite(value) and value == int(value) and low <= value <= high
            number = np.array(int(value) if in_range else 0, self.dtype)
        if not in_range:
            raise ArgumentError(self.name, problem, expected)
        return number.tobytes()

    def _composite(self, value: Any) -> bytes:
        fields = getattr(getattr(value, "dtype", None), "fields", None)
        dtype = value.dtype if fields else None
        expected = f"{self.size} bytes as of np.array((...), {self._structured(dtype)})"
        composite = np.empty(0)
        if self.kind in "sp":
            if fields and np.size(value) == 1:
                composite = np.asarray(value)
        else:
            expected = f"{self.size // self.itemsize} numbers of {self.dtype}"
            if not fields:
                with contextlib.suppress(TypeError, ValueError, OverflowError):
                    composite = np.array(value, self.dtype)
            elif self._has_component_fields(value.dtype):
                composite = np.asarray(value)
        if composite.nbytes != self.size or composite.dtype.hasobject:
            expected += f", for the parameter `{self}`"
            raise ArgumentError(self.name, f"got {short(value)}", expected)
        return composite.tobytes()


def parameters(text: str, names: Sequence[str]) -> tuple[Parameter, ...]:
    """Parse the output of `describe` in entry.h, which has one line per parameter."""
    parsed = []
    for number, line in enumerate(text.splitlines()):
        form, const, kind, itemsize, size, pretty = line.split(" ", 5)
        name = names[number] if number < len(names) else f"argument {number + 1}"
        sizes = int(itemsize), int(size)
        kind = "s" if kind == "e" and form == "p" else kind
        parsed.append(Parameter(name, form == "p", const == "1", kind, *sizes, _type_name(pretty)))
    return tuple(parsed)


def _type_name(pretty: str) -> str:
    """Return the type's name from `__PRETTY_FUNCTION__` of `name_of<T>` in entry.h."""
    match = re.search(r"T = (.*)\]$", pretty)
    name = match[1].replace("long long int", "long long") if match else "?"
    return re.sub(r"\s*\*", " *", readable_types(name))


def readable_types(text: str) -> str:
    """Return a text of the compiler's with CUDA's names of half, bfloat16 and their pairs."""
    text = re.sub(r" \{aka '[^']*emulator::[^']*'\}", "", text)
    text = re.sub(r"\b(?:emulator::)?Narrow<5, ?10>", "half", text)
    text = re.sub(r"\b(?:emulator::)?Narrow<8, ?7>", "__nv_bfloat16", text)
    text = re.sub(r"\b(?:emulator::)?Pair<half ?>", "half2", text)
    return re.sub(r"\b(?:emulator::)?Pair<__nv_bfloat16 ?>", "__nv_bfloat162", text)


def find_aliases(arrays: Sequence[tuple[str, npt.NDArray[Any]]]) -> dict[str, str]:
    """Return {name: name of an earlier array} for arrays with the memory of an earlier array.

    Raises
    ------
    ArgumentError
        If two arrays overlap only in part.
    """
    aliases: dict[str, str] = {}
    for (other_name, other), (name, array) in itertools.combinations(arrays, 2):
        if name in aliases or not np.may_share_memory(array, other):
            continue
        if array.ctypes.data == other.ctypes.data and array.nbytes == other.nbytes:
            aliases[name] = aliases.get(other_name, other_name)
        elif np.shares_memory(array, other):
            raise ArgumentError(name, f"it overlaps {other_name}", "memory of its own")
    return aliases
