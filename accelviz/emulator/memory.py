"""Memory of a launch: arguments, at addresses far apart, and initial values of variables."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.emulator.process import Common

#: Address of the first slot and bytes of a slot, as in runtime.h. Each array has its own slot and
#: begins at a quarter of it, so that negative indices stay in the slot.
_SLOTS, _SLOT_BYTES = 1 << 43, 1 << 38
_PAGE = 1 << 14
#: Bytes before the arrays in common memory, for the request and the values of arguments.
HEAD = 1 << 17


class Space(enum.IntEnum):
    """Kinds of memory; `EmulatorSpace` in runtime.h."""

    ARGUMENT, SHARED, DEVICE_VARIABLE, CONSTANT, DYNAMIC, HOST = range(6)


#: Spaces of variables that can have an initial value from the host.
OUTER = Space.CONSTANT, Space.DEVICE_VARIABLE


@dataclass(frozen=True, eq=False)
class Known:
    """A piece of memory that kernels may access, as `EmulatorArray` in runtime.h."""

    name: str
    size: int  # bytes
    address: int
    data: npt.NDArray[Any] | None = None  # view of an argument in common memory
    content: int = 0  # offset of `data` in common memory
    space: Space = Space.ARGUMENT
    writable: bool = True
    initialised: bool = False
    filled_bytes: int = 0
    restricted: bool = False  # an array of several parameters, of which one is `__restrict__`
    parameters: tuple[str, ...] = ()  # names of the parameters, if there are several

    @property
    def itemsize(self) -> int:
        """Bytes of an element; 0 if unknown."""
        return 0 if self.data is None else self.data.itemsize

    @property
    def shared(self) -> bool:
        """Whether it is shared memory of a block."""
        return self.space in (Space.SHARED, Space.DYNAMIC)


@dataclass
class Memory:
    """Arguments of a launch by name. Arrays are in `common`, which the launch's process maps."""

    common: Common
    known: dict[str, Known] = field(default_factory=dict)  # arrays
    numbers: dict[str, Any] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)  # alias to name of an array
    symbols: dict[str, Known] = field(default_factory=dict)  # initial values of variables

    @classmethod
    def of(
        cls,
        arguments: Mapping[str, Any],
        writable: Sequence[str] = (),
        unwritten: Sequence[str] = (),
        aliases: Mapping[str, str] | None = None,
        symbols: Mapping[str, npt.NDArray[Any]] | None = None,
        restrict: Collection[str] = (),
    ) -> Memory:
        """Copy arrays into common memory; `aliases` are names of arrays that are not copied.

        `restrict` are the names of `__restrict__` parameters.
        """
        aliases, arrays, numbers = aliases or {}, dict[str, npt.NDArray[Any]](), dict[str, Any]()
        for name, value in arguments.items():
            if name not in aliases:
                (arrays if isinstance(value, np.ndarray) else numbers)[name] = value
        pairs = [*arrays.items(), *(symbols or {}).items()]
        pages = [-(-array.nbytes // _PAGE) for _, array in pairs]
        common, content = Common(HEAD + sum(pages) * _PAGE), HEAD
        memory = cls(common, numbers=numbers, aliases=aliases)
        for slot, ((name, array), n_pages) in enumerate(zip(pairs, pages, strict=True)):
            flat: npt.NDArray[Any] = np.frombuffer(common.data, array.dtype, array.size, content)
            data = flat.reshape(array.shape)
            data[...] = array
            names = {name, *(alias for alias, other in aliases.items() if other == name)}
            if slot >= len(arrays):
                memory.symbols[name] = Known(name, array.nbytes, 0, data, content)
            else:
                memory.known[name] = Known(
                    *(name, array.nbytes, _address(slot), data, content),
                    writable=not names.isdisjoint(writable),
                    initialised=names.isdisjoint(unwritten),
                    restricted=len(names) > 1 and not names.isdisjoint(restrict),
                    parameters=tuple(key for key in arguments if key in names),
                )
            content += n_pages * _PAGE
        return memory

    def array(self, name: str) -> Known | None:
        """Return an argument's array, or None for a number."""
        return self.known.get(self.aliases.get(name, name))

    def written(self, names: Sequence[str]) -> None:
        """Mark arrays as initialised for later launches."""
        for name in {self.aliases.get(name, name) for name in names} & self.known.keys():
            self.known[name] = replace(self.known[name], initialised=True)

    def contents(self) -> list[npt.NDArray[np.uint8]]:
        """Return copies of the arrays' bytes, with empty copies of read-only arrays."""
        return [self._bytes(known)[: known.size * known.writable].copy() for known in self._all()]

    def restore(self, contents: Sequence[npt.NDArray[np.uint8]]) -> None:
        """Write back a result of `contents`."""
        for known, content in zip(self._all(), contents, strict=True):
            self._bytes(known)[: len(content)] = content

    def _all(self) -> list[Known]:
        return [*self.known.values(), *self.symbols.values()]

    def _bytes(self, known: Known) -> npt.NDArray[np.uint8]:
        content = known.content if known.size else 0
        return np.frombuffer(self.common.data, np.uint8, known.size, content)


def _address(slot: int) -> int:
    # Irregular distances, so that no round 64-bit index of one array is inside another array.
    jitter = slot * 0x9E3779B9 % (1 << 16) * _PAGE
    return _SLOTS + slot * _SLOT_BYTES + _SLOT_BYTES // 4 + jitter
