"""What a kernel of the corpus is: its text, its launch, and the mistakes it can be given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

SEED = 20260101
#: Kinds in which something never ends, at least not where blocks run one after another.
ENDLESS = ("endless loop", "wait for ever", "wait for a later block")
#: Every kind of mistake, and the least that a report has to say of it: a regular expression.
KINDS = {
    **dict.fromkeys(
        (
            *("missing barrier", "missing warp barrier", "warp barrier for half a warp"),
            *("stale buffer", "late write", "warp-synchronous code", "no atomic"),
            *("unwritten global memory", "output not cleared"),
            *("race in shared memory", "race in global memory", "race of bytes"),
        ),
        "a race|nothing has written",
    ),
    **dict.fromkeys(
        (
            *("read past the end", "write past the end", "before the beginning"),
            *("read past shared memory", "write past shared memory", "missing guard"),
            *("read past constant memory", "read past a device table", "write past a local array"),
            *("wrong stride", "index far outside", "index below zero", "int overflow of an index"),
            *("too little dynamic shared memory", "race between blocks", "unwritten shared memory"),
        ),
        "out of bounds|a race|nothing has written",
    ),
    **dict.fromkeys(
        ("return before a barrier", "barrier in a branch", "different barriers"),
        "barrier|nothing has written",
    ),
    **dict.fromkeys(
        ("exchange in a branch", "return before an exchange", "different exchanges", "wrong mask"),
        "exchange|lane",
    ),
    "unwritten local variable": "nothing has written|uninitiali[sz]ed",
    "missing fence": "a race|fence",
    "scope too small": "a race|scope",
    "misaligned access": "misaligned",
    "write to const memory": "is an input",
    "division by zero": "by zero",
    "failed assertion": "assert",
    **dict.fromkeys(ENDLESS, "did not end"),
}


@dataclass(frozen=True)
class Launch:
    """One call of a kernel, and what it has to find.

    `arguments` are arrays and NumPy scalars by the kernel's own names, in its order; `expected` has
    the outputs. The content of those in `unwritten` is left to chance before the call. With
    `too_few_bytes` of dynamic shared memory the kernel leaves it.
    """

    grid: tuple[int, ...] | int
    block: tuple[int, ...] | int
    arguments: Mapping[str, Any]
    expected: Mapping[str, Any]
    unwritten: tuple[str, ...] = ()
    shared_bytes: int = 0
    too_few_bytes: int = 0
    tolerance: float = 0.0

    def wrong(self, outputs: Mapping[str, Any]) -> list[str]:
        """Return the names of the outputs that differ from what is expected."""
        close = partial(np.allclose, rtol=self.tolerance, atol=self.tolerance)
        return [
            name
            for name, expected in self.expected.items()
            if not close(np.ravel(outputs[name]), np.ravel(expected))
        ]


@dataclass(frozen=True)
class Mistake:
    """A change of a kernel's text, or of its launch, that makes it wrong; see mistakes.toml.

    Attributes
    ----------
    kind : str
        A key of `KINDS`, once a kernel.
    old, new : str
        What of the text, there once, becomes what.
    wrong_from : int
        The fewest warps a block with which it breaks a rule of CUDA's; with fewer the kernel is
        right, or computes something else by the rules.
    hangs : bool
        Whether a GPU may never come back from it.
    unwritten : tuple of str
        Outputs that the launch leaves to chance in place of those of the right one.
    """

    kind: str
    old: str = ""
    new: str = ""
    wrong_from: int = 1
    hangs: bool = False
    unwritten: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kernel:
    """A correct kernel, `name` in its text, and mistakes for it."""

    name: str
    code: str
    make: Callable[[int, np.random.Generator], Launch]
    mistakes: tuple[Mistake, ...]
    entry: str
    warps: tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """A kernel as it stands, or with one of its mistakes."""

    kernel: Kernel
    mistake: Mistake | None = None

    @property
    def name(self) -> str:
        """The kernel's name, and the kind of the mistake after a colon."""
        return self.kernel.name + (f": {self.mistake.kind}" if self.mistake else "")

    @property
    def endless(self) -> bool:
        """Whether some thread runs or waits for ever, or until a later block has run."""
        return self.mistake is not None and self.mistake.kind in ENDLESS

    @property
    def code(self) -> str:
        """The text to compile."""
        if self.mistake is None or not self.mistake.old:
            return self.kernel.code
        if self.kernel.code.count(self.mistake.old) != 1:
            raise ValueError(f"{self.name}: {self.mistake.old!r} is not there once")
        return self.kernel.code.replace(self.mistake.old, self.mistake.new)

    @property
    def warps(self) -> tuple[int, ...]:
        """The warps a block to run it with: those with which it is a mistake, if it is one."""
        least = self.mistake.wrong_from if self.mistake else 1
        return tuple(warps for warps in self.kernel.warps if warps >= least)

    def launch(self, warps: int) -> Launch:
        """Make the call for a number of warps a block, the same each time."""
        launch = self.kernel.make(warps, np.random.default_rng(SEED + warps))
        if self.mistake and self.mistake.kind == "too little dynamic shared memory":
            return replace(launch, shared_bytes=launch.too_few_bytes)
        if self.mistake and self.mistake.unwritten:
            return replace(launch, unwritten=self.mistake.unwritten)
        return launch


@dataclass(frozen=True)
class Seen:
    """What one way of looking made of a case: whether it reported something, and how it ended."""

    hit: bool
    result: str
    seconds: float
    report: str = ""
    first_seconds: float | str = ""


F32, I32 = np.float32, np.int32


def arguments(**values: Any) -> dict[str, Any]:
    """Make a kernel's arguments: arrays become one-dimensional, Python's integers int32."""
    return {
        name: I32(value) if isinstance(value, int) else np.ravel(value) if np.ndim(value) else value
        for name, value in values.items()
    }


def whole(random: np.random.Generator, *shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Make small whole numbers as floats, whose sums are exact in any order."""
    return random.integers(-8, 9, shape).astype(F32)
