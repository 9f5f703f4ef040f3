"""Programs: steps on one or several devices, with the buffers that the steps read and write.

Devices run programs; `Program.check` finds missing barriers.
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
    """Return the part of a buffer's name without the device: "X" for "X of device 1"."""
    return name.rpartition(" of device ")[0]


@dataclass(frozen=True)
class Buffer:
    """Memory on one device.

    Attributes
    ----------
    device : int
    size : int
        Number of elements.
    dtype : str
    kind : {"input", "output", "zero", "workspace"}
        "input" is passed by the caller, "output" is returned to the caller, "zero" is zero before
        and after each run, "workspace" is written by one step and read by another.
    zeroed : bool
        Whether an output is set to zero before the first step. Timings include this.
    """

    device: int
    size: int
    dtype: str
    kind: str
    zeroed: bool = False

    @property
    def starts_zero(self) -> bool:
        """Whether it is zero before the first step."""
        return self.zeroed or self.kind == "zero"

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.size * np.dtype(self.dtype).itemsize


@dataclass(frozen=True, eq=False)
class Step:
    """One unit of work on one device: a kernel launch, or a function that launches several.

    Attributes
    ----------
    name : str
    device : int
    queue : {"compute", "link", ""}
        Steps in one queue of a device run one after the other; two queues run concurrently. A step
        without a queue waits only for the steps in `after`.
    call : Call, optional
        The kernel and its launch. A step with neither `call` nor `work` is for `schedule` only.
    arrays : mapping of str to array or NumPy scalar
        Constant arguments, by the name of the kernel's parameter.
    buffers : mapping of str to str
        All other arguments: name of the kernel's parameter to name of the buffer.
    writes : frozenset of str
        Buffers that the step writes, and may read as well. All other buffers are only read.
    after : tuple of int
        Numbers of steps, on any device, that must end before this one begins.
    replay : callable, optional
        `replay(buffers)` does the step's work on the CPU. Buffers are flat arrays.
    link_bytes : mapping of int to int
        Bytes received from each other device.
    work : callable, optional
        `work(values)` launches a step without a call, such as the backward pass of a network. It
        reads its input arrays from `values`, by buffer name, and stores its results there.
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
        """Buffers that the step reads or writes."""
        return self.writes.union(self.buffers.values())


@dataclass(frozen=True, eq=False)
class Program:
    """Steps and the buffers that they read and write.

    Attributes
    ----------
    steps : tuple of Step
        Steps in a valid sequential order; the position of a step is its number.
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
    def _dependencies(self) -> tuple[frozenset[int], ...]:
        """For each step, the steps in `after` and the step before it in its queue."""
        dependencies, last = [], dict[tuple[int, str], int]()
        for number, step in enumerate(self.steps):
            earlier = last.get((step.device, step.queue), number) if step.queue else number
            dependencies.append(frozenset({*step.after, earlier} - {number}))
            last[step.device, step.queue] = number
        return tuple(dependencies)

    @cached_property
    def before(self) -> tuple[frozenset[int], ...]:
        """For each step, all steps that have ended when it begins."""
        ended: list[frozenset[int]] = []
        for dependencies in self._dependencies:
            ended.append(dependencies.union(*(ended[number] for number in dependencies)))
        return tuple(ended)

    @cached_property
    def barriers(self) -> tuple[int, ...]:
        """Numbers of steps that need a barrier first when every device has its own process.

        There is also a barrier before the first step and after the last.
        """
        numbers, last_barrier = list[int](), 0
        for number, step in enumerate(self.steps):
            if any(n >= last_barrier and self.steps[n].device != step.device for n in step.after):
                numbers.append(number)
                last_barrier = number
        return tuple(numbers)

    def remote(self, step: Step) -> list[str]:
        """Return the buffers of other devices that a step reads."""
        names = sorted({*step.buffers.values()})
        return [name for name in names if self.buffers[name].device in step.link_bytes]

    def check(self) -> None:
        """Check that unordered steps do not access the same buffer, unless both only read it.

        Raises
        ------
        PartitionError
            If two steps lack a barrier between them, or a step waits for a later one.
        """
        for number, step in enumerate(self.steps):
            later = [dependency for dependency in step.after if dependency >= number]
            if later:
                problem = f"{step.label} waits for step {later[0]}, which comes later"
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
        """Return a valid order of the steps; for a seed other than 0 a random one."""
        if not seed:
            return list(range(len(self.steps)))
        rng, waiting, order = np.random.default_rng(seed), set(range(len(self.steps))), list[int]()
        while waiting:
            ready = sorted(number for number in waiting if not self.before[number] & waiting)
            order.append(ready[rng.integers(len(ready))])
            waiting.remove(order[-1])
        return order

    def schedule(self, seconds: Sequence[float]) -> list[tuple[float, float]]:
        """Return the start and stop of each step, if step `number` takes `seconds[number]`."""
        times: list[tuple[float, float]] = []
        for dependencies, duration in zip(self._dependencies, seconds, strict=True):
            start = max((times[number][1] for number in dependencies), default=0.0)
            times.append((start, start + duration))
        return times

    def host_buffers(self, inputs: Buffers) -> dict[str, npt.NDArray[Any]]:
        """Return all buffers as flat NumPy arrays.

        Buffers that no step has written contain NaN, or the largest integer, so that a read before
        a write shows in the results.
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
        """Run the steps on the CPU by their `replay`; return all buffers, flat."""
        arrays = self.host_buffers(inputs)
        for step in self.steps:
            assert step.replay is not None
            step.replay(arrays)
        return arrays
