"""MGG as published (Wang et al., OSDI 2023; thesis, chapter 4), and its parameter search.

MGG divides each row's neighbors into partitions of at most `ps` neighbors: local ones, whose
features are on the device, and remote ones. A warp computes pairs of a local and a remote
partition, and fetches remote rows while it sums local ones.
"""

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
from accelviz.immutable import taken_over
from accelviz.many_gpus.halo import Words, rows_of_words
from accelviz.many_gpus.program import SplitProgram, features_and_results, peer_buffers
from accelviz.many_gpus.split import WORD_BITS, Part, Split, word_shift
from accelviz.partition.neighbor_groups import NeighborGroups, neighbor_groups
from accelviz.plans import Call, KernelSpec, LaunchConfig
from accelviz.plans.operation import FLOAT_BYTES
from accelviz.plans.program import Buffers, Step, buffer_name

#: Threads that fetch a remote row together, with their codes in mgg.cu.
GETS = {"thread": 0, "warp": 1, "block": 2}
#: Upper bounds of `ps`, `dist` and `wpb` in section 4.6.
MAX_PS, MAX_DIST, MAX_WPB = 32, 16, 16
INT_BYTES = 4
#: Shared memory of a block on compute capability 8.0 and later, except 8.6 and 8.9.
SHARED_BYTES = 163 * 1024


@dataclass(frozen=True)
class Setting:
    """MGG's mapping parameters (Equations 4.1 to 4.3).

    Attributes
    ----------
    n_cols : int
        Columns of the features, D in the paper.
    ps : int
        Maximum number of neighbors of a partition, 1 to 32.
    dist : int
        Interleaving distance: number of pairs of a local and a remote partition per warp, 1 to 16.
    wpb : int
        Warps per block, 1 to 16.
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
        """SMEM of Equation 4.1: bytes for the neighbors, sums and fetched features of all warps."""
        return self.wpb * (self.ps * INT_BYTES + 2 * self.n_cols * FLOAT_BYTES)

    def warps(self, local: int, remote: int, *, interleave: bool = True) -> int:
        """Return the number of warps for numbers of partitions: Equation 4.2, rounded up.

        Without interleaving, local and remote partitions have separate warps.
        """
        local_warps, remote_warps = -(-local // self.dist), -(-remote // self.dist)
        return max(local_warps, remote_warps) if interleave else local_warps + remote_warps

    def blocks(self, local: int, remote: int, *, interleave: bool = True) -> int:
        """Return the number of blocks: Equation 4.3, rounded up."""
        return -(-self.warps(local, remote, interleave=interleave) // self.wpb)

    def blocks_per_sm(self, local: int, remote: int, n_sms: int) -> float:
        """Return the blocks per SM of a device, Equation 4.3."""
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
    """Return MGG's program of a product on the devices of a split.

    Parameters
    ----------
    split : Split
    n_cols : int
        Columns of the features.
    ps, dist, wpb : int
        See `Setting`. The defaults are the fixed values of the paper's evaluation. If `ps` is None,
        each row has one local and one remote partition, of any length.
    interleave : bool
        Whether each warp has both local and remote partitions (section 4.5.1).
    asynchronous : bool
        Whether a warp sums a local partition during the fetch of the first remote row (section
        4.5.2).
    get : {"thread", "warp", "block"}
        Threads that fetch a remote row together. With "block", each row ends with a barrier, so
        that fetches are never asynchronous.

    Raises
    ------
    ArgumentError, PartitionError
        If a parameter is out of range, or a block would need too much shared memory.
    """
    graphs = [graph for part in split.parts for graph in (part.local, part.remote)]
    longest = max(int(graph.degrees.max(initial=1)) for graph in graphs)
    setting = Setting(
        n_cols,
        longest if ps is None else checked_integer("ps", ps, MAX_PS),
        checked_integer("dist", dist, MAX_DIST),
        checked_integer("wpb", wpb, MAX_WPB),
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
    """Return the kernel launch of one device."""
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
    # MGG fetches a row for each remote edge.
    rows_of_owner = np.bincount(part.halo_owner[part.remote.column_indices], minlength=n_devices)
    row_bytes = n_cols * FLOAT_BYTES
    return Step(
        "aggregate",
        part.device,
        call=Call(launch, KernelSpec("many_gpus/mgg.cu", "mgg", config, names)),
        arrays={**arrays, **{name: np.int32(size) for name, size in sizes.items()}},
        buffers={**peer_buffers(n_devices), "Y": target},
        writes=frozenset({target}),
        replay=partial(_replay, part, (local, remote), words, config["row_bits"], n_cols),
        link_bytes={owner: int(n) * row_bytes for owner, n in enumerate(rows_of_owner) if n},
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
    """A setting that `search` has measured, and its seconds."""

    ps: int
    dist: int
    wpb: int
    seconds: float


def search(
    seconds: Callable[..., float], n_cols: int, *, shared_bytes: int = SHARED_BYTES
) -> tuple[Trial, list[Trial]]:
    """Search `ps`, `dist` and `wpb` one after the other, as in section 4.6.

    Parameters
    ----------
    seconds : callable
        `seconds(ps=..., dist=..., wpb=...)` runs a setting and returns its seconds.
    n_cols : int
        Columns of the features, D in the paper.
    shared_bytes : int
        Settings with more shared memory per block (SMEM, Equation 4.1) are not tried.

    Returns
    -------
    best : Trial
    trials : list of Trial
        All measured settings, in order.

    Raises
    ------
    ArgumentError, PartitionError
        If an argument is invalid, `seconds` does not return a number, or the sums of one warp need
        more than `shared_bytes`.

    Notes
    -----
    All parameters start at 1. First `ps` is doubled as long as that is faster, then `dist`, then
    `wpb`. If the first increase of `wpb` is slower, `ps` returns to the second fastest value that
    was tried, and the search of `wpb` is repeated. The thesis does not state the increments; with
    doubling, the search takes about the ten iterations that it reports.
    """
    checked_type("seconds", seconds, Callable, "a function of ps, dist and wpb")
    n_cols = checked_integer("n_cols", n_cols, error=ArgumentError)
    shared_bytes = checked_integer("shared_bytes", shared_bytes, error=ArgumentError)
    if Setting(n_cols, 1, 1, 1).shared_bytes > shared_bytes:
        raise PartitionError("n_cols", f"{n_cols} columns", "fewer: a warp's sums do not fit")
    trials: list[Trial] = []

    @functools.cache
    def measure(ps: int, dist: int, wpb: int) -> Trial:
        """Measure a setting; one that cannot run has infinite seconds."""
        setting = Setting(n_cols, ps, dist, wpb)
        in_range = ps <= MAX_PS and dist <= MAX_DIST and wpb <= MAX_WPB
        if not in_range or setting.shared_bytes > shared_bytes:
            return Trial(ps, dist, wpb, math.inf)
        measured = checked_number("seconds", seconds(ps=ps, dist=dist, wpb=wpb), or_zero=True)
        trials.append(Trial(ps, dist, wpb, measured))
        return trials[-1]

    def climb(best: Trial, name: str) -> Trial:
        """Double a parameter as long as that is faster."""
        values = {"ps": best.ps, "dist": best.dist, "wpb": best.wpb}
        doubled = measure(**{**values, name: 2 * values[name]})
        return climb(doubled, name) if doubled.seconds < best.seconds else best

    one_warp = climb(climb(measure(ps=1, dist=1, wpb=1), "ps"), "dist")
    best = climb(one_warp, "wpb")
    other_ps = [trial for trial in trials if trial.ps != one_warp.ps]
    if best == one_warp and other_ps:
        second = min(other_ps, key=lambda trial: trial.seconds)
        retreat = measure(ps=second.ps, dist=one_warp.dist, wpb=one_warp.wpb)
        best = min(best, climb(retreat, "wpb"), key=lambda trial: trial.seconds)
    return best, trials
