"""Data classes of the corpus: kernels, their launches, their mistakes, and results of checkers.

A case is a kernel of the corpus, correct or with one mistake. `Kernel.make` returns its `Launch`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

SEED = 20260101
#: Kinds of mistakes with which a kernel never ends, at least if blocks run one after another.
ENDLESS = ("endless loop", "wait for ever", "wait for a later block", "stale compare-and-swap")
#: Kinds of mistakes, and for each a regular expression that a checker's report must match.
KINDS = {
    **dict.fromkeys(
        (
            *("missing barrier", "missing warp barrier", "warp barrier for half a warp"),
            *("stale buffer", "late write", "warp-synchronous code", "no atomic"),
            *("unwritten global memory", "output not cleared"),
            *("race in shared memory", "race in global memory", "race of bytes"),
        ),
        "a race|nothing has written|store the same value|still copies",
    ),
    **dict.fromkeys(
        (
            *("read past the end", "write past the end", "before the beginning"),
            *("read past shared memory", "write past shared memory", "missing guard"),
            *("read past constant memory", "read past a device table", "write past a local array"),
            *("wrong stride", "index far outside", "index below zero", "int overflow of an index"),
            *("too little dynamic shared memory", "race between blocks", "unwritten shared memory"),
        ),
        "out of bounds|a race|nothing has written|store the same value",
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
    "fence on the wrong side": "a race|fence",
    "deadlock": "a deadlock",
    "scope too small": "a race|scope",
    "misaligned access": "misaligned",
    "write to const memory": "is an input",
    "division by zero": "by zero",
    "failed assertion": "assert",
    **dict.fromkeys(ENDLESS, "did not end"),
    **dict.fromkeys(
        ("copy not waited for", "copy from what is written", "wait for too few copies"),
        "still copies|without a wait|a race|nothing has written",
    ),
    "copy without a commit": "still copies|without a wait",
    "block beyond its bound": "__launch_bounds__",
    "unfilled constant": "nobody has given a value",
    "read-only load of what is written": "__ldg",
    "lane outside the mask": "outside its mask|outside the mask|exchange",
    "shuffle width": "power of two",
    **dict.fromkeys(
        ("unwritten vector", "unwritten 16-bit number", "unwritten local array"),
        "local variable that nothing has written",
    ),
    "branch on an unwritten variable": "local variable that nothing has written",
    "race of halves": "a race",
    "unwritten half": "nothing has written",
    "shift too far": "shifts",
    "conversion out of range": "converts a floating-point number",
}


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel and its expected results.

    `arguments` are arrays and NumPy scalars by parameter name, in order; `expected` has outputs.
    Arrays in `unwritten` are not initialized before the launch. `too_few_bytes` of dynamic shared
    memory, instead of `shared_bytes`, make the kernel access memory beyond it. `tolerance` is
    relative and absolute.
    """

    grid: tuple[int, ...] | int
    block: tuple[int, ...] | int
    arguments: Mapping[str, Any]
    expected: Mapping[str, Any]
    unwritten: tuple[str, ...] = ()
    shared_bytes: int = 0
    too_few_bytes: int = 0
    tolerance: float = 0.0

    def wrong_outputs(self, outputs: Mapping[str, Any]) -> list[str]:
        """Return the names of the outputs that differ from the expected ones."""
        is_close = partial(np.allclose, rtol=self.tolerance, atol=self.tolerance)
        return [
            name
            for name, expected in self.expected.items()
            if not is_close(np.ravel(outputs[name]), np.ravel(expected))
        ]


@dataclass(frozen=True)
class Mistake:
    """A change of a kernel's text or launch that makes it wrong, from mistakes.toml.

    Attributes
    ----------
    kind : str
        A key of `KINDS`; a kernel has at most one mistake of each kind.
    old, new : str
        Text that occurs once in the kernel, and its replacement.
    wrong_from : int
        Least number of warps per block with which the changed kernel breaks a rule of CUDA. With
        fewer warps its behavior is defined, though its results may differ.
    hangs : bool
        Whether the kernel may never end on a GPU.
    unwritten : tuple of str
        Replaces `Launch.unwritten`, unless empty.
    """

    kind: str
    old: str = ""
    new: str = ""
    wrong_from: int = 1
    hangs: bool = False
    unwritten: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kernel:
    """A correct kernel: its text, its launch by (warps, generator), and mistakes for it."""

    name: str
    code: str
    make: Callable[[int, np.random.Generator], Launch]
    mistakes: tuple[Mistake, ...]
    entry: str
    warps: tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """A kernel, correct or with one of its mistakes."""

    kernel: Kernel
    mistake: Mistake | None = None

    @property
    def name(self) -> str:
        """The kernel's name, followed by a colon and the kind of the mistake, if any."""
        return self.kernel.name + (f": {self.mistake.kind}" if self.mistake else "")

    @property
    def endless(self) -> bool:
        """Whether a thread may run or wait forever, or until a later block has run."""
        return self.mistake is not None and self.mistake.kind in ENDLESS

    @property
    def code(self) -> str:
        """The kernel's text, with the mistake applied."""
        if self.mistake is None or not self.mistake.old:
            return self.kernel.code
        if self.kernel.code.count(self.mistake.old) != 1:
            raise ValueError(f"{self.name}: {self.mistake.old!r} is not there once")
        return self.kernel.code.replace(self.mistake.old, self.mistake.new)

    @property
    def warps(self) -> tuple[int, ...]:
        """Numbers of warps per block to run: those with which the mistake breaks a rule."""
        least = self.mistake.wrong_from if self.mistake else 1
        return tuple(warps for warps in self.kernel.warps if warps >= least)

    def launch(self, warps: int) -> Launch:
        """Return the launch for a number of warps per block; equal in every call."""
        launch = self.kernel.make(warps, np.random.default_rng(SEED + warps))
        if self.mistake and self.mistake.kind == "too little dynamic shared memory":
            return replace(launch, shared_bytes=launch.too_few_bytes)
        if self.mistake and self.mistake.unwritten:
            return replace(launch, unwritten=self.mistake.unwritten)
        return launch


@dataclass(frozen=True)
class CheckerResult:
    """Result of one checker on one case.

    `hit` is whether it reported a problem, and `result` how the run ended. `seconds` is ""
    for a run among others in one process. `first_seconds` is the time of a first run, which
    includes compilation, or "" if there is none.
    """

    hit: bool
    result: str
    seconds: float | str
    report: str = ""
    first_seconds: float | str = ""


F32, I32 = np.float32, np.int32


def arguments(**values: Any) -> dict[str, Any]:
    """Return a kernel's arguments: arrays are flattened, Python integers become int32."""
    return {
        name: I32(value) if isinstance(value, int) else np.ravel(value) if np.ndim(value) else value
        for name, value in values.items()
    }


def whole(random: np.random.Generator, *shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return random integers from -8 to 8 as float32, whose sums are exact in any order."""
    return random.integers(-8, 9, shape).astype(F32)
