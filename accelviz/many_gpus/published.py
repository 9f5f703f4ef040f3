"""MGG as published (Wang et al., OSDI 2023; thesis, chapter 4): local and remote partitions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from accelviz.errors import (
    ArgumentError,
    PartitionError,
    checked_choice,
    checked_integer,
    checked_number,
    checked_type,
)
from accelviz.graph import taken_over
from accelviz.many_gpus.halo import Words, rows_of_words
from accelviz.many_gpus.program import SplitProgram, features_and_results, peer_buffers
from accelviz.many_gpus.split import WORD_BITS, Part, Split, word_shift
from accelviz.partition.neighbor_groups import NeighborGroups, neighbor_groups
from accelviz.plans import Call, KernelSpec, LaunchConfig
from accelviz.plans.operation import FLOAT_BYTES
from accelviz.plans.program import Buffers, Step, buffer_name

#: Which threads fetch a remote row, in the numbers of mgg.cu.
GETS = {"thread": 0, "warp": 1, "block": 2}
#: The ranges of section 4.6.
MOST_PS, MOST_DIST, MOST_WPB = 32, 16, 16
INT_BYTES = 4
#: Shared memory that a block can have on every GPU since 2020 but the small ones of 8.6 and 8.9.
SHARED_BYTES = 163 * 1024


@dataclass(frozen=True)
class Setting:
    """How MGG maps its partitions (Equations 4.1 to 4.3).

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
        of_local, of_remote = -(-local // self.dist), -(-remote // self.dist)
        return max(of_local, of_remote) if interleave else of_local + of_remote

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
) -> SplitProgram:
    """Map a split's rows onto the devices as MGG does.

    Parameters
    ----------
    split : Split
    n_cols : int
        Columns of the features.
    ps, dist, wpb : int
        See `Setting`. The evaluation fixes 16, 1 and 2 while it varies another parameter. If `ps`
        is None, a row has one local and one remote partition, whatever its length.
    interleave : bool
        Whether each warp has local and remote partitions (section 4.5.1).
    asynchronous : bool
        Whether a warp sums a local partition while the first remote row travels (section 4.5.2).
    get : {"thread", "warp", "block"}
        Which threads fetch a remote row. A block has a barrier at each row, so that its fetches are
        never asynchronous.

    Raises
    ------
    ArgumentError, PartitionError
        If a setting is out of range, or its shared memory is more than a block can have.
    """
    graphs = [graph for part in split.parts for graph in (part.local, part.remote)]
    longest = max(int(graph.degrees.max(initial=1)) for graph in graphs)
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
        problem = f"{setting.shared_bytes:,} bytes of shared memory for {n_cols} columns"
        raise PartitionError("wpb", problem, f"at most {SHARED_BYTES:,}; fewer warps to a block")
    asynchronous = asynchronous and get != "block"
    parameters: dict[str, Any] = {"ps": ps, "dist": dist, "wpb": wpb, "interleave": interleave}
    parameters |= {"asynchronous": asynchronous, "get": get}
    config = {"n_devices": split.n_devices, "row_bits": word_shift(split.n_devices)}
    config |= {"ps": setting.ps, "dist": dist, "wpb": wpb, "interleave": int(interleave)}
    config |= {"async": int(asynchronous), "get": GETS[get]}
    return SplitProgram(
        steps=tuple(_step(part, split.n_devices, setting, config) for part in split.parts),
        buffers=features_and_results(split, n_cols, zeroed=True),
        split=split,
        scheme="mgg",
        n_cols=n_cols,
        parameters=parameters,
    )


def _step(part: Part, n_devices: int, setting: Setting, config: dict[str, int]) -> Step:
    local = neighbor_groups(part.local.row_pointers, setting.ps)
    remote = neighbor_groups(part.remote.row_pointers, setting.ps)
    words, n_cols = part.words(n_devices)[part.remote.column_indices], setting.n_cols
    interleave = bool(config["interleave"])
    blocks = setting.blocks(len(local), len(remote), interleave=interleave)
    arrays: dict[str, Any] = {}
    for kind, groups, graph, neighbors in (
        ("local", local, part.local, part.local.column_indices.view(np.uint32)),
        ("remote", remote, part.remote, words),
    ):
        arrays[f"{kind}_pointers"] = taken_over(groups.pointers)
        arrays[f"{kind}_rows"] = taken_over(groups.rows)
        arrays[f"{kind}_neighbors"] = taken_over(neighbors)
        arrays[f"{kind}_values"] = graph.values
    sizes = {"n_local": len(local), "n_remote": len(remote)}
    sizes |= {"device": part.device, "n_cols": n_cols}
    names = (*arrays, *peer_buffers(n_devices), "Y", *sizes)
    launch = LaunchConfig((blocks, 1, 1), setting.wpb, setting.shared_bytes)
    target = buffer_name("Y", part.device)
    owners = np.bincount(part.halo_owner[part.remote.column_indices], minlength=n_devices)
    return Step(
        "aggregate",
        part.device,
        call=Call(launch, KernelSpec("many_gpus/mgg.cu", "mgg", config, names)),
        arrays={**arrays, **{name: np.int32(size) for name, size in sizes.items()}},
        buffers={**peer_buffers(n_devices), "Y": target},
        writes=frozenset({target}),
        replay=partial(_replay, part, (local, remote), words, config["row_bits"], n_cols),
        link_bytes={p: int(n) * n_cols * FLOAT_BYTES for p, n in enumerate(owners) if n},
    )


def _replay(
    part: Part,
    groups: tuple[NeighborGroups, NeighborGroups],
    words: Words,
    shift: int,
    n_cols: int,
    buffers: Buffers,
) -> None:
    """Sum each partition and add it to its row, as the kernel does."""
    names = (buffer_name("X", owner) for owner in range(1 << (WORD_BITS - shift)))
    sources = {owner: buffers[name] for owner, name in enumerate(names) if name in buffers}
    local = sources[part.device].reshape(-1, n_cols)[part.local.column_indices]
    remote = rows_of_words(words, shift, sources, n_cols)
    Y = buffers[buffer_name("Y", part.device)].reshape(-1, n_cols)
    pairs = (part.local, local), (part.remote, remote)
    for partitions, (graph, X) in zip(groups, pairs, strict=True):
        if len(partitions):
            sums = np.add.reduceat(graph.values[:, None] * X, partitions.pointers[:-1])
            np.add.at(Y, partitions.rows, sums)


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
    if Setting(n_cols, 1, 1, 1).shared_bytes > shared_bytes:
        raise PartitionError("n_cols", f"{n_cols} columns", "fewer: a warp's sums do not fit")
    trials: list[Trial] = []

    @functools.cache
    def measure(ps: int, dist: int, wpb: int) -> Trial:
        """Try a setting; one that cannot run takes infinitely long."""
        setting = Setting(n_cols, ps, dist, wpb)
        in_range = ps <= MOST_PS and dist <= MOST_DIST and wpb <= MOST_WPB
        if not in_range or setting.shared_bytes > shared_bytes:
            return Trial(ps, dist, wpb, math.inf)
        took = checked_number("seconds", seconds(ps=ps, dist=dist, wpb=wpb), or_zero=True)
        trials.append(Trial(ps, dist, wpb, took))
        return trials[-1]

    def climb(best: Trial, name: str) -> Trial:
        """Double a parameter as long as that is faster."""
        values = {"ps": best.ps, "dist": best.dist, "wpb": best.wpb}
        doubled = measure(**{**values, name: 2 * values[name]})
        return climb(doubled, name) if doubled.seconds < best.seconds else best

    narrow = climb(climb(measure(ps=1, dist=1, wpb=1), "ps"), "dist")
    best = climb(narrow, "wpb")
    others = sorted((t for t in trials if t.ps != narrow.ps), key=lambda trial: trial.seconds)
    if best == narrow and others:
        retreat = measure(ps=others[0].ps, dist=narrow.dist, wpb=narrow.wpb)
        best = min(best, climb(retreat, "wpb"), key=lambda trial: trial.seconds)
    return best, trials
