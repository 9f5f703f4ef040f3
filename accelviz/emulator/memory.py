"""The memory that kernels find: arguments far apart, and what variables begin as."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.emulator.process import Common
from accelviz.emulator.symbols import Space

#: Where arguments lie: the first slot and the bytes of one, as in runtime.h. An array begins in the
#: second quarter of its slot, so that negative indices stay in it too.
_SLOTS, _SLOT_BYTES = 1 << 43, 1 << 38
_PAGE = 1 << 14
#: Bytes in front of the arrays, for the request and the values of arguments.
HEAD = 1 << 17

#: Where variables are that the host can fill.
OUTER = Space.CONSTANT, Space.DEVICE_VARIABLE


@dataclass(frozen=True, eq=False)
class Known:
    """Memory that a kernel may touch; see `EmulatorArray` in runtime.h.

    `data` is what it holds, None for the kernel's own variables.
    """

    name: str
    size: int
    address: int
    data: npt.NDArray[Any] | None = None
    place: int = 0
    space: Space = Space.ARGUMENT
    writable: bool = True
    initialised: bool = False
    filling: int = 0  # bytes at `place` that a variable begins with

    @property
    def itemsize(self) -> int:
        """Bytes of an element, 0 where it is not known."""
        return 0 if self.data is None else self.data.itemsize

    @property
    def shared(self) -> bool:
        """Whether each block has its own."""
        return self.space in (Space.SHARED, Space.DYNAMIC)


@dataclass
class Memory:
    """Arguments of kernels by name: arrays where kernels find them, and numbers."""

    common: Common
    known: dict[str, Known] = field(default_factory=dict)
    numbers: dict[str, Any] = field(default_factory=dict)
    same: Mapping[str, str] = field(default_factory=dict)
    symbols: dict[str, Known] = field(default_factory=dict)  # what variables begin as

    @classmethod
    def of(
        cls,
        arguments: Mapping[str, Any],
        writable: Sequence[str] = (),
        unwritten: Sequence[str] = (),
        same: Mapping[str, str] | None = None,
        symbols: Mapping[str, npt.NDArray[Any]] | None = None,
    ) -> Memory:
        """Copy arrays to where kernels find them; `same` names those that are another's memory."""
        same, symbols = same or {}, symbols or {}
        arrays = {
            name: array
            for name, array in arguments.items()
            if isinstance(array, np.ndarray) and name not in same
        }
        places, end = [], HEAD
        for array in [*arrays.values(), *symbols.values()]:
            places.append(end)
            end += -(-array.nbytes // _PAGE) * _PAGE
        memory = cls(Common(end), same=same)
        pairs = [*arrays.items(), *symbols.items()]
        for slot, ((name, array), place) in enumerate(zip(pairs, places, strict=True)):
            flat: npt.NDArray[Any] = np.frombuffer(
                memory.common.data, array.dtype, array.size, place
            )
            data = flat.reshape(array.shape)
            data[...] = array
            if slot >= len(arrays):
                memory.symbols[name] = Known(name, array.nbytes, 0, data, place)
                continue
            names = {name, *(one for one, other in same.items() if other == name)}
            memory.known[name] = Known(
                *(name, array.nbytes, _address(slot), data, place),
                writable=bool(names & {*writable}),
                initialised=not names & {*unwritten},
            )
        memory.numbers = {
            name: value
            for name, value in arguments.items()
            if name not in memory.known and name not in same
        }
        return memory

    def array(self, name: str) -> Known | None:
        """Return the array that an argument is, if it is one."""
        return self.known.get(self.same.get(name, name))

    def written(self, names: Sequence[str]) -> None:
        """Let later launches read what these hold."""
        for name in {self.same.get(name, name) for name in names} & self.known.keys():
            self.known[name] = replace(self.known[name], initialised=True)

    def digest(self, more: Sequence[Any]) -> bytes:
        """Name all that kernels find here, and `more` that decides what they do."""
        digest = hashlib.blake2b(repr((more, self.numbers)).encode())
        for known in self._all():
            digest.update(repr(known.name).encode())
            digest.update(memoryview(self.common.data)[known.place : known.place + known.size])
        return digest.digest()

    def contents(self) -> list[npt.NDArray[np.uint8]]:
        """Return what each writable array holds, as bytes, and nothing for the others."""
        return [self._bytes(known).copy() for known in self._all()]

    def _all(self) -> list[Known]:
        return [*self.known.values(), *self.symbols.values()]

    def restore(self, contents: Sequence[npt.NDArray[np.uint8]]) -> None:
        """Let writable arrays hold again what `contents` has returned."""
        for known, content in zip(self._all(), contents, strict=True):
            self._bytes(known)[:] = content

    def _bytes(self, known: Known) -> npt.NDArray[np.uint8]:
        size = known.size if known.writable else 0
        content: npt.NDArray[np.uint8] = np.frombuffer(
            self.common.data, np.uint8, size, known.place if size else 0
        )
        return content


def _address(slot: int) -> int:
    # Not at a round distance, so that no round index of 64 bits leads from one into another either.
    jitter = slot * 0x9E3779B9 % (1 << 16) * _PAGE
    return _SLOTS + slot * _SLOT_BYTES + _SLOT_BYTES // 4 + jitter
