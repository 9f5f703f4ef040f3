"""What several devices do, as data: kernels, the memory that they touch, and who waits for whom.

Executors run it, a check finds a barrier that is missing, and the model says what it should take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.errors import ArgumentError, PartitionError
from accelviz.many_gpus.split import MOST_DEVICES, Split
from accelviz.plans import Call

Buffers = Mapping[str, Any]

#: From here on float16 rounds to infinity: halfway from its largest number to the next power of 2.
_FLOAT16_OVERFLOW = 65520


def of(name: str, device: int) -> str:
    """Return what a buffer of a device is called: "X of device 1"."""
    return f"{name} of device {device}"


@dataclass(frozen=True)
class Buffer:
    """Memory of one device.

    Attributes
    ----------
    device : int
    size : int
        Elements.
    dtype : str
    kind : {"input", "output", "zero", "workspace"}
        What callers bring; what they get; what is zero before the first run, and left so; what one
        step leaves for another.
    cleared : bool
        Whether an output is cleared before the first step; that is timed.
    """

    device: int
    size: int
    dtype: str
    kind: str
    cleared: bool = False


@dataclass(frozen=True, eq=False)
class Step:
    """A launch on one device.

    Attributes
    ----------
    name : str
    device : int
    queue : {"compute", "link"}
        Steps of one device and queue come one after the other, those of two at the same time.
    call : Call
        The kernel and its launch.
    arrays : mapping of str to array or NumPy scalar
        Arguments that never change, by the kernel's names.
    buffers : mapping of str to str
        The other arguments: the kernel's names to those of buffers.
    writes : frozenset of str
        The buffers that it writes; it reads the others, and may read these.
    after : tuple of int
        Numbers of steps, of any device, that have to be over.
    replay : callable
        `replay(buffers)` does the same on the CPU, from the partition. Buffers are flat arrays.
    link_bytes : mapping of int to int
        Bytes that come from each other device.
    """

    name: str
    device: int
    queue: str
    call: Call
    arrays: Mapping[str, Any]
    buffers: Mapping[str, str]
    writes: frozenset[str]
    after: tuple[int, ...]
    replay: Callable[[Buffers], None]
    link_bytes: Mapping[int, int] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Name and device, for messages."""
        return f"{self.name!r} on device {self.device}"


@dataclass(frozen=True, eq=False)
class Program:
    """`Y = A X` on several devices: what each does, of one split and width.

    Attributes
    ----------
    split : Split
    scheme : str
        Who made it: "halo", "mgg" or "whole".
    n_cols : int
    steps : tuple of Step
        In an order in which they can run one after the other.
    buffers : mapping of str to Buffer
    parameters : mapping
        The scheme's own, with the values that took effect.
    """

    split: Split
    scheme: str
    n_cols: int
    steps: tuple[Step, ...]
    buffers: Mapping[str, Buffer]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.check()

    @property
    def n_devices(self) -> int:
        """Devices."""
        return self.split.n_devices

    @cached_property
    def before(self) -> tuple[frozenset[int], ...]:
        """The steps that are over when each step begins: `after`, their own, and its queue's."""
        found: list[frozenset[int]] = []
        last: dict[tuple[int, str], int] = {}
        for number, step in enumerate(self.steps):
            direct = set(step.after) | {last.get((step.device, step.queue), -1)} - {-1}
            found.append(frozenset(direct).union(*(found[each] for each in direct)))
            last[step.device, step.queue] = number
        return tuple(found)

    @cached_property
    def meetings(self) -> tuple[int, ...]:
        """The steps before which all devices meet, where each has a process and runs its own.

        They meet before the first step and after the last as well.
        """
        found, since = list[int](), 0
        for number, step in enumerate(self.steps):
            if any(e >= since and self.steps[e].device != step.device for e in step.after):
                found.append(number)
                since = number
        return tuple(found)

    def remote(self, step: Step) -> list[str]:
        """Return the buffers of other devices that a step reads."""
        names = sorted({*step.buffers.values()})
        return [name for name in names if self.buffers[name].device in step.link_bytes]

    def check(self) -> None:
        """Refuse steps that touch the same memory at the same time, one of them writing.

        Raises
        ------
        PartitionError
            Naming two steps that lack a barrier between them, or a step that waits for a later one.
        """
        for number, step in enumerate(self.steps):
            late = [each for each in step.after if each >= number]
            if late:
                what = f"{step.label} waits for step {late[0]}, which comes later"
                raise PartitionError("steps", what, "an order in which they can run")
            for earlier in set(range(number)) - self.before[number]:
                other = self.steps[earlier]
                shared = step.writes & {*other.buffers.values(), *other.writes}
                shared |= other.writes & {*step.buffers.values()}
                if shared:
                    what = f"{other.label} and {step.label} both touch {min(shared)!r}, one writes"
                    right = "a barrier between the two: the number of one in `after` of the other"
                    raise PartitionError("steps", what, right)

    def order(self, seed: int = 0) -> list[int]:
        """Return an order in which the steps may run: for seeds other than 0 a random one."""
        if not seed:
            return list(range(len(self.steps)))
        rng, left, order = np.random.default_rng(seed), set(range(len(self.steps))), list[int]()
        while left:
            free = sorted(each for each in left if not self.before[each] & left)
            order.append(free[rng.integers(len(free))])
            left.remove(order[-1])
        return order

    def inputs(self, X: npt.NDArray[np.float32]) -> dict[str, npt.NDArray[np.float32]]:
        """Deal features out: the devices' inputs by their buffers' names, flat.

        Raises
        ------
        ArgumentError
            If float16 is what others are to fetch, and cannot hold a finite number: the row.
        """
        if self.parameters.get("storage") == "float16":
            beyond = np.isfinite(X) & (np.abs(X) >= _FLOAT16_OVERFLOW)
            if beyond.any():
                row = int(np.argmax(beyond.any(axis=1)))
                what = f"{X[row][beyond[row]][0]:g} in row {row:,} would be infinite in float16"
                right = "smaller numbers, or storage='bfloat16' or 'float32'"
                raise ArgumentError("X", what, right)
        parts = enumerate(self.split.apply(X))
        return {of("X", p): np.ascontiguousarray(part, np.float32).ravel() for p, part in parts}

    def result(self, buffers: Buffers) -> npt.NDArray[np.float32]:
        """Collect the devices' outputs, in the caller's order."""
        rows = [part.n_rows for part in self.split.parts]
        arrays = [buffers[of("Y", p)].reshape(n, self.n_cols) for p, n in enumerate(rows)]
        return self.split.collect(arrays)

    def __repr__(self) -> str:
        settings = "".join(f", {name}={value}" for name, value in self.parameters.items())
        return (
            f"Program({self.scheme!r} for {self.split.graph.name!r} on {self.n_devices} devices, "
            f"n_cols={self.n_cols}{settings}: {len(self.steps)} launches)"
        )


def matrices(split: Split, n_cols: int, *, cleared: bool) -> dict[str, Buffer]:
    """Return the buffers of X and Y of each device."""
    found = {}
    for part in split.parts:
        size = part.n_rows * n_cols
        found[of("X", part.device)] = Buffer(part.device, size, "float32", "input")
        found[of("Y", part.device)] = Buffer(part.device, size, "float32", "output", cleared)
    return found


def family(name: str) -> str:
    """Return what a buffer is called on every device: "X" of "X of device 1"."""
    return name.rpartition(" of device ")[0]


def peers(n_devices: int, name: str = "X") -> dict[str, str]:
    """Return the arguments X0 to X7 of kernels that read all devices' memory."""
    return {f"X{i}": of(name, i if i < n_devices else 0) for i in range(MOST_DEVICES)}


def every(steps: Sequence[Step], name: str) -> tuple[int, ...]:
    """Return the numbers of all steps of a name, to wait for on all devices."""
    return tuple(number for number, step in enumerate(steps) if step.name == name)
