"""A program: several steps with the memory that they read and write, on one device or many.

Devices run it, `check` finds a missing barrier, and `schedule` says when each step runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.errors import PartitionError
from accelviz.plans.launch import Call

Buffers = Mapping[str, Any]


def buffer_name(family: str, device: int) -> str:
    """Return the name of a device's buffer: "X of device 1" of the family "X"."""
    return f"{family} of device {device}"


def buffer_family(name: str) -> str:
    """Return what a buffer is called on every device: "X" of "X of device 1"."""
    return name.rpartition(" of device ")[0]


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
        Brought by the caller; returned to the caller; zero before the first run and left zero by
        each; written by one step for another.
    zeroed : bool
        Whether an output is set to zero before the first step. That is timed.
    """

    device: int
    size: int
    dtype: str
    kind: str
    zeroed: bool = False

    @property
    def starts_zero(self) -> bool:
        """Whether the first step finds zeros."""
        return self.zeroed or self.kind == "zero"

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.size * np.dtype(self.dtype).itemsize


@dataclass(frozen=True, eq=False)
class Step:
    """A launch on one device, or several that belong together.

    Attributes
    ----------
    name : str
    device : int
    queue : {"compute", "link", ""}
        Steps of one device and queue run one after the other, those of two at the same time. A step
        without a queue waits for those in `after` alone.
    call : Call, optional
        The kernel and its launch. A step without a call and `work` has a time only, for `schedule`.
    arrays : mapping of str to array or NumPy scalar
        Arguments that never change, by the kernel's names.
    buffers : mapping of str to str
        The other arguments: the kernel's names to names of buffers.
    writes : frozenset of str
        Buffers that it writes. It reads the others, and may read these.
    after : tuple of int
        Numbers of the steps, of any device, that have to end first.
    replay : callable, optional
        `replay(buffers)` does the same on the CPU, from the partition. Buffers are flat arrays.
    link_bytes : mapping of int to int
        Bytes that come from each other device.
    work : callable, optional
        `work(values)` launches a step without a call, such as the backward pass of a network. It
        takes the arrays that it reads from `values`, by buffer, and stores there those it makes.
    """

    name: str
    device: int
    queue: str = "compute"
    call: Call | None = None
    arrays: Mapping[str, Any] = field(default_factory=dict)
    buffers: Mapping[str, str] = field(default_factory=dict)
    writes: frozenset[str] = frozenset()
    after: tuple[int, ...] = ()
    replay: Callable[[Buffers], None] | None = None
    link_bytes: Mapping[int, int] = field(default_factory=dict)
    work: Callable[[dict[str, Any]], None] | None = None

    @property
    def label(self) -> str:
        """Name and device, for messages."""
        return f"{self.name!r} on device {self.device}"

    @property
    def touched(self) -> frozenset[str]:
        """Buffers that it reads or writes."""
        return self.writes.union(self.buffers.values())


@dataclass(frozen=True, eq=False)
class Program:
    """Steps and the buffers that they read and write.

    Attributes
    ----------
    steps : tuple of Step
        In an order in which they can run one after the other.
    buffers : mapping of str to Buffer

    Raises
    ------
    PartitionError
        As `check` does.
    """

    steps: tuple[Step, ...]
    buffers: Mapping[str, Buffer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.check()

    @property
    def n_devices(self) -> int:
        """Number of devices."""
        return 1 + max((step.device for step in self.steps), default=0)

    @cached_property
    def _direct(self) -> tuple[frozenset[int], ...]:
        """The steps that each step waits for: `after`, and the one before it in its queue."""
        direct, last = [], dict[tuple[int, str], int]()
        for number, step in enumerate(self.steps):
            earlier = last.get((step.device, step.queue), number) if step.queue else number
            direct.append(frozenset({*step.after, earlier} - {number}))
            last[step.device, step.queue] = number
        return tuple(direct)

    @cached_property
    def before(self) -> tuple[frozenset[int], ...]:
        """All steps that have ended when each step begins."""
        ended: list[frozenset[int]] = []
        for direct in self._direct:
            ended.append(direct.union(*(ended[number] for number in direct)))
        return tuple(ended)

    @cached_property
    def barriers(self) -> tuple[int, ...]:
        """Steps that need a barrier first when every device runs in its own process.

        There is a barrier before the first step and after the last as well.
        """
        numbers, since = list[int](), 0
        for number, step in enumerate(self.steps):
            if any(n >= since and self.steps[n].device != step.device for n in step.after):
                numbers.append(number)
                since = number
        return tuple(numbers)

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
            late = [later for later in step.after if later >= number]
            if late:
                problem = f"{step.label} waits for step {late[0]}, which comes later"
                raise PartitionError("steps", problem, "an order in which they can run")
            for earlier in set(range(number)) - self.before[number]:
                other = self.steps[earlier]
                shared = (step.writes & other.touched) | (other.writes & step.touched)
                if shared:
                    problem = (
                        f"{other.label} and {step.label} both touch {min(shared)!r}, one writes"
                    )
                    expected = "a barrier between them: the number of one in `after` of the other"
                    raise PartitionError("steps", problem, expected)

    def order(self, seed: int = 0) -> list[int]:
        """Return an order in which the steps may run, a random one for seeds other than 0."""
        if not seed:
            return list(range(len(self.steps)))
        rng, left, order = np.random.default_rng(seed), set(range(len(self.steps))), list[int]()
        while left:
            free = sorted(number for number in left if not self.before[number] & left)
            order.append(free[rng.integers(len(free))])
            left.remove(order[-1])
        return order

    def schedule(self, seconds: Sequence[float]) -> list[tuple[float, float]]:
        """Return when each step starts and stops, in seconds, if it takes `seconds[number]`."""
        times: list[tuple[float, float]] = []
        for direct, duration in zip(self._direct, seconds, strict=True):
            start = max((times[number][1] for number in direct), default=0.0)
            times.append((start, start + duration))
        return times

    def host_buffers(self, inputs: Buffers) -> dict[str, npt.NDArray[Any]]:
        """Return all buffers on the host, flat.

        A buffer that no step has written holds NaN, or the largest integer, so that a step that
        reads it is seen.
        """
        arrays: dict[str, npt.NDArray[Any]] = {}
        for name, buffer in self.buffers.items():
            if buffer.kind == "input":
                arrays[name] = inputs[name]
                continue
            unset = np.nan if buffer.dtype == "float32" else np.iinfo(buffer.dtype).max
            arrays[name] = np.full(buffer.size, 0 if buffer.starts_zero else unset, buffer.dtype)
        return arrays

    def replay(self, inputs: Buffers) -> dict[str, npt.NDArray[Any]]:
        """Do on the CPU what the steps' partitions say; return all buffers, flat."""
        arrays = self.host_buffers(inputs)
        for step in self.steps:
            assert step.replay is not None
            step.replay(arrays)
        return arrays
