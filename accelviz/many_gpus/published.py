"""MGG as published (Wang et al., OSDI 2023; chapter 4): pairs of local and remote partitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.errors import (
    ArgumentError,
    PartitionError,
    checked_choice,
    checked_integer,
    checked_number,
    checked_type,
)
from accelviz.graph import taken_over
from accelviz.many_gpus.split import Part, Split, word_shift
from accelviz.many_gpus.steps import Buffers, Program, Step, matrices, of, peers
from accelviz.partition.neighbor_groups import NeighborGroups, neighbor_groups
from accelviz.plans import Call, KernelSpec, LaunchConfig
from accelviz.plans.operation import FLOAT_BYTES

#: Who fetches a remote row, in the numbers of mgg.cu.
GETS = {"thread": 0, "warp": 1, "block": 2}
#: The ranges of section 4.6.
MOST_PS, MOST_DIST, MOST_WPB = 32, 16, 16
INT_BYTES = 4
#: Shared memory that a block can have on every GPU since 2020 but the small ones of 8.6 and 8.9.
SHARED_BYTES = 163 * 1024


@dataclass(frozen=True)
class Setting:
    """How MGG maps its partitions, and what follows from it (Equations 4.1 to 4.3).

    Attributes
    ----------
    n_cols : int
        D.
    ps : int
        Most neighbors of a partition, 1 to 32.
    dist : int
        Interleaving distance: pairs of a local and a remote partition of a warp, 1 to 16.
    wpb : int
        Warps of a block, 1 to 16.
    """

    n_cols: int
    ps: int
    dist: int
    wpb: int

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            checked_integer(name, value)

    @property
    def workload_per_warp(self) -> int:
        """WPW of Equation 4.1: 2 x ps x D x dist."""
        return 2 * self.ps * self.n_cols * self.dist

    @property
    def shared_bytes(self) -> int:
        """SMEM of Equation 4.1: neighbors, sums and fetched features of each warp, in bytes."""
        return self.wpb * (self.ps * INT_BYTES + 2 * self.n_cols * FLOAT_BYTES)

    def warps(self, local: int, remote: int, *, interleave: bool = True) -> int:
        """Equation 4.2, rounded up; without interleaving the two kinds have warps of their own."""
        if interleave:
            return -(-max(local, remote) // self.dist)
        return -(-local // self.dist) + -(-remote // self.dist)

    def blocks(self, local: int, remote: int, *, interleave: bool = True) -> int:
        """Equation 4.3, rounded up."""
        return -(-self.warps(local, remote, interleave=interleave) // self.wpb)

    def blocks_per_sm(self, local: int, remote: int, n_sms: int) -> float:
        """Equation 4.3: blocks for each SM of a device."""
        return self.blocks(local, remote) / n_sms


def mgg(
    split: Split,
    n_cols: int,
    *,
    ps: int | None = 16,
    dist: int = 1,
    wpb: int = 2,
    interleave: bool = True,
    asynchronous: bool = True,
    get: str = "warp",
) -> Program:
    """Map a split's rows onto the devices as MGG does.

    Parameters
    ----------
    split : Split
    n_cols : int
        Columns of the features.
    ps, dist, wpb : int
        See `Setting`. 16, 1 and 2 are what the evaluation fixes where it varies something else.
        Without neighbor partitions `ps` is None: a partition is all that a row has of a kind.
    interleave : bool
        Whether each warp has local and remote partitions (section 4.5.1).
    asynchronous : bool
        Whether a warp sums a local partition while the first remote row travels (section 4.5.2).
    get : {"thread", "warp", "block"}
        Who fetches a remote row. A block waits for all its warps at each row, so that nothing is
        asynchronous.

    Raises
    ------
    ArgumentError, PartitionError
        If a setting is out of range, or its shared memory is more than a block can have.
    """
    degrees = [each.degrees for part in split.parts for each in (part.local, part.remote)]
    longest = max(int(each.max(initial=1)) for each in degrees)
    setting = Setting(
        n_cols,
        longest if ps is None else checked_integer("ps", ps, MOST_PS),
        checked_integer("dist", dist, MOST_DIST),
        checked_integer("wpb", wpb, MOST_WPB),
    )
    checked_choice("get", get, GETS)
    for name, value in (("interleave", interleave), ("asynchronous", asynchronous)):
        checked_type(name, value, bool, "True or False")
    if setting.shared_bytes > SHARED_BYTES:
        what = f"{setting.shared_bytes:,} bytes of shared memory for {n_cols} columns"
        raise PartitionError("wpb", what, f"at most {SHARED_BYTES:,}; fewer warps to a block")
    asynchronous = asynchronous and get != "block"
    steps = tuple(
        _step(part, split.n_devices, setting, interleave, asynchronous, GETS[get])
        for part in split.parts
    )
    parameters: dict[str, Any] = {"ps": ps, "dist": dist, "wpb": wpb, "interleave": interleave}
    parameters |= {"asynchronous": asynchronous, "get": get}
    buffers = matrices(split, n_cols, cleared=True)
    return Program(split, "mgg", n_cols, steps, buffers, parameters)


def _step(
    part: Part, n_devices: int, setting: Setting, interleave: bool, asynchronous: bool, get: int
) -> Step:
    local = neighbor_groups(part.local.row_pointers, setting.ps)
    remote = neighbor_groups(part.remote.row_pointers, setting.ps)
    words = part.words(n_devices)[part.remote.column_indices]
    blocks = setting.blocks(len(local), len(remote), interleave=interleave)
    defines = {"N_DEVICES": n_devices, "ROW_BITS": word_shift(n_devices), "PS": setting.ps}
    defines |= {"DIST": setting.dist, "WPB": setting.wpb, "INTERLEAVE": int(interleave)}
    defines |= {"ASYNC": int(asynchronous), "GET": get}
    kinds = ("local", local, part.local, part.local.column_indices.view(np.uint32))
    others = ("remote", remote, part.remote, words)
    arrays: dict[str, Any] = {}
    for name, groups, graph, neighbors in (kinds, others):
        arrays[f"{name}_pointers"] = taken_over(groups.pointers)
        arrays[f"{name}_rows"] = taken_over(groups.rows)
        arrays[f"{name}_neighbors"] = taken_over(neighbors)
        arrays[f"{name}_values"] = graph.values
    names = (*arrays, *peers(n_devices), "Y", "n_local", "n_remote", "device", "n_cols")
    numbers = {"n_local": len(local), "n_remote": len(remote), "device": part.device}
    numbers |= {"n_cols": setting.n_cols}
    launch = LaunchConfig((blocks, 1, 1), setting.wpb, setting.shared_bytes)
    row_bytes = setting.n_cols * FLOAT_BYTES
    owners = np.bincount(part.halo_owner[part.remote.column_indices], minlength=n_devices)
    return Step(
        "aggregate",
        part.device,
        "compute",
        Call(launch, KernelSpec("many_gpus/mgg.cu", "mgg", defines, names)),
        {**arrays, **{name: np.int32(number) for name, number in numbers.items()}},
        {**peers(n_devices), "Y": of("Y", part.device)},
        frozenset({of("Y", part.device)}),
        (),
        partial(_replay, part, (local, remote), words, word_shift(n_devices), setting.n_cols),
        {p: int(count) * row_bytes for p, count in enumerate(owners) if count},
    )


def _replay(
    part: Part,
    groups: tuple[NeighborGroups, NeighborGroups],
    words: npt.NDArray[np.uint32],
    shift: int,
    n_cols: int,
    buffers: Buffers,
) -> None:
    """Sum each partition and add it to its row, as the kernel does."""
    owners = words >> np.uint32(shift)
    rows = (words & np.uint32((1 << shift) - 1)).astype(np.int64)
    Y = buffers[of("Y", part.device)].reshape(-1, n_cols)
    home = buffers[of("X", part.device)].reshape(-1, n_cols)
    fetched = np.empty((words.size, n_cols), np.float32)
    for owner in np.unique(owners):
        chosen = owners == owner
        fetched[chosen] = buffers[of("X", int(owner))].reshape(-1, n_cols)[rows[chosen]]
    gathered = (part.local, home[part.local.column_indices]), (part.remote, fetched)
    for of_kind, (graph, X) in zip(groups, gathered, strict=True):
        if len(of_kind):
            products = graph.values[:, None] * X
            np.add.at(Y, of_kind.rows, np.add.reduceat(products, of_kind.pointers[:-1]))


@dataclass(frozen=True)
class Trial:
    """A setting that the search has tried, and the seconds that it took."""

    ps: int
    dist: int
    wpb: int
    seconds: float


def search(
    seconds: Callable[..., float], n_cols: int, *, shared_bytes: int = SHARED_BYTES
) -> tuple[Trial, list[Trial]]:
    """Find `ps`, `dist` and `wpb` as section 4.6 does, one after the other.

    Parameters
    ----------
    seconds : callable
        `seconds(ps=..., dist=..., wpb=...)` runs that setting and returns what it took.
    n_cols : int
        D; settings whose SMEM (Equation 4.1) is above `shared_bytes` are not tried.
    shared_bytes : int

    Returns
    -------
    best : Trial
    trials : list of Trial
        Every setting that was tried, in order.

    Raises
    ------
    ArgumentError, PartitionError
        If an argument does not fit, `seconds` returns no number, or a warp's sums do not fit.

    Notes
    -----
    All three begin at 1. First `ps` is doubled as long as that is faster, then `dist`, then `wpb`.
    If the first increase of `wpb` is slower, `ps` retreats to the second fastest that was tried,
    and `wpb` is tried again from there. The thesis does not say by how much a parameter is
    increased; doubling stays in its ten or so iterations.
    """
    checked_type("seconds", seconds, Callable, "a function of ps, dist and wpb")
    n_cols = checked_integer("n_cols", n_cols, error=ArgumentError)
    shared_bytes = checked_integer("shared_bytes", shared_bytes, error=ArgumentError)
    trials: list[Trial] = []

    def tried(ps: int, dist: int, wpb: int) -> Trial | None:
        if ps > MOST_PS or dist > MOST_DIST or wpb > MOST_WPB:
            return None
        if Setting(n_cols, ps, dist, wpb).shared_bytes > shared_bytes:
            return None
        known = [each for each in trials if (each.ps, each.dist, each.wpb) == (ps, dist, wpb)]
        if not known:
            took = checked_number("seconds", seconds(ps=ps, dist=dist, wpb=wpb), or_zero=True)
            trials.append(Trial(ps, dist, wpb, took))
        return known[0] if known else trials[-1]

    def climbed(best: Trial, name: str) -> Trial:
        while True:
            values = {"ps": best.ps, "dist": best.dist, "wpb": best.wpb}
            other = tried(**{**values, name: 2 * values[name]})
            if other is None or other.seconds >= best.seconds:
                return best
            best = other

    first = tried(1, 1, 1)
    if first is None:
        raise PartitionError("n_cols", f"{n_cols} columns", "fewer: a warp's sums do not fit")
    best = climbed(climbed(first, "ps"), "dist")
    found = climbed(best, "wpb")
    others = sorted((each for each in trials if each.ps != best.ps), key=lambda each: each.seconds)
    if found == best and others:
        retreat = tried(others[0].ps, best.dist, best.wpb)
        if retreat is not None:
            found = min(found, climbed(retreat, "wpb"), key=lambda each: each.seconds)
    return found, trials
