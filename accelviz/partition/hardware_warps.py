"""Hardware warps: which workers of a block each executes, and how many steps that takes.

A worker is the unit of threads whose nonzeros a workload counts: a warp, a combined warp of several
hardware warps, or a part of a warp such as a subwarp. In one step a warp loads a part of a gathered
row, such as a row of X, for one nonzero of each of its workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Longs
from accelviz.immutable import read_only
from accelviz.workload import Workload, nonzeros_per_warp

#: Lanes of a hardware warp.
WARP_SIZE = 32


@dataclass(frozen=True)
class LaneColumns:
    """How the lanes of a worker cover the columns of a gathered row, such as a row of X.

    In iteration t = 0, 1, ... lane `l` reads columns `(t * lanes + l) * vector` to
    `(t * lanes + l + 1) * vector - 1` of its block's column tile, up to the end of the tile.

    Attributes
    ----------
    lanes : int
        Number of lanes that share one row. More than 32 are several hardware warps; with 1, each
        lane of a warp has its own rows.
    vector : int
        Number of neighboring columns that a lane reads with one load.
    tile : int
        Number of columns of a column tile. Blocks along the grid's y have consecutive tiles.
    """

    lanes: int
    vector: int
    tile: int


@dataclass(frozen=True)
class WorkerLanes:
    """The lanes of a block that its workers occupy.

    Attributes
    ----------
    spacing : int
        Number of lanes from the first lane of a worker to that of the next.
    block_warps : int
        Number of hardware warps of a block.
    lanes : int
        Number of lanes, from a worker's first, that work on its nonzeros; 0 for `spacing`.
    """

    spacing: int
    block_warps: int
    lanes: int = 0


@dataclass(frozen=True)
class HardwareWarps:
    """The hardware warps of a block, with the workers that each executes.

    Worker `w` occupies `lanes` lanes from lane `w * spacing` on. If that is more lanes than the
    block has, the block takes several passes: in pass `p`, hardware warp `h` has lanes
    `32 * (h + p * warps)` and following. A pass takes as many steps as the longest of the warp's
    workers has nonzeros, times the iterations over columns in which its lanes have a column. No
    warp waits for another between passes.

    Attributes
    ----------
    workers, warps : int
        Workers and hardware warps of a block.
    spacing, lanes : int
        As of `WorkerLanes`.
    columns : LaneColumns, optional
        Columns of a worker's lanes. Without them, every lane has a column in one iteration.
    n_cols : int
        Number of columns of X.
    """

    workers: int
    warps: int
    spacing: int = WARP_SIZE
    lanes: int = WARP_SIZE
    columns: LaneColumns | None = None
    n_cols: int = 1

    @classmethod
    def of(
        cls, workers: int, lanes: WorkerLanes | None, columns: LaneColumns | None, n_cols: int
    ) -> HardwareWarps:
        """Place workers on warps; without `lanes`, workers are warps or combined warps."""
        if lanes is None:
            width = -(-(columns.lanes if columns else 1) // WARP_SIZE) * WARP_SIZE
            return cls(workers, workers, width, width, columns, n_cols)
        spacing, width = lanes.spacing, lanes.lanes or lanes.spacing
        return cls(workers, lanes.block_warps, spacing, width, columns, n_cols)

    @property
    def row_per_lane(self) -> bool:
        """Whether each lane of a warp has rows of its own, and the worker is the warp."""
        whole_warps = self.workers == self.warps and self.spacing == WARP_SIZE
        return whole_warps and self.columns is not None and self.columns.lanes == 1

    @property
    def passes(self) -> int:
        """Number of passes in which a block executes its workers."""
        return max(1, -(-self.workers * self.spacing // (self.warps * WARP_SIZE)))

    @cached_property
    def executed(self) -> tuple[tuple[int, Longs, Longs], ...]:
        """Workers of each pass and warp, by kind of column tile.

        Returns
        -------
        tuple of (int, array of int64, array of int64)
            Number of column tiles of the kind; workers, shape (k, passes, warps); iterations over
            columns that a nonzero of the worker takes, of the same shape, 0 where there is none.
        """
        numbers = np.arange(self.passes * self.warps).reshape(self.passes, self.warps)
        first_lane = WARP_SIZE * numbers
        first = np.maximum((first_lane - self.lanes) // self.spacing + 1, 0)
        most = int(((first_lane + WARP_SIZE - 1) // self.spacing - first).max(initial=0)) + 1
        worker = first + np.arange(most)[:, None, None]
        present = (worker < self.workers) & (worker * self.spacing < first_lane + WARP_SIZE)
        skipped = np.maximum(first_lane - worker * self.spacing, 0)  # lanes of earlier warps
        worker = np.where(present, worker, 0)
        lanes = self.columns
        # Where a description of columns has fewer lanes than a worker, the others read too.
        if lanes is None or lanes.lanes + WARP_SIZE <= self.lanes:
            return tuple(read_only([(1, worker, present.astype(np.int64))]))
        kinds = []
        full_tiles, last_columns = divmod(self.n_cols, lanes.tile)
        for tiles, width in ((full_tiles, lanes.tile), (1, last_columns)):
            if tiles and width:
                left = np.where(skipped < lanes.lanes, width - skipped * lanes.vector, 0)
                iterations = -(-np.maximum(left, 0) // (lanes.lanes * lanes.vector))
                kinds.append((tiles, worker, iterations * present))
        return tuple(read_only(kinds))

    def steps(self, loads: Longs) -> Iterator[tuple[int, Longs]]:
        """Yield, by kind of column tile, the number of tiles and the steps of each warp.

        Parameters
        ----------
        loads : array of int64, shape (blocks, workers)
            Nonzeros of each worker; of a lane's longest row if `row_per_lane`.

        Yields
        ------
        tiles : int
        steps : array of int64, shape (blocks, warps)
        """
        for tiles, workers, iterations in self.executed:
            steps = np.zeros((len(loads), self.warps), dtype=np.int64)
            for of_pass, repeats in zip(
                workers.swapaxes(0, 1), iterations.swapaxes(0, 1), strict=True
            ):
                longest = loads[:, of_pass[0]] * repeats[0]
                for worker, times in zip(of_pass[1:], repeats[1:], strict=True):
                    np.maximum(longest, loads[:, worker] * times, out=longest)
                steps += longest
            yield tiles, steps

    @property
    def unit(self) -> str:
        """What `steps_of_nonzeros` counts: "nonzero" if that is the nonzeros of a warp's workers.

        It is "step" if several workers share a warp, lanes have rows of their own, or a warp takes
        several steps for a nonzero: more than another warp, or steps in several passes.
        """
        _, workers, iterations = self.executed[0]
        counts = iterations // self._fewest
        of_worker = np.zeros((self.warps, self.workers), dtype=np.int64)
        np.add.at(of_worker, (np.arange(self.warps), workers), counts)
        is_shared = ((counts > 0).sum(axis=0) > 1).any()
        return "step" if self.row_per_lane or is_shared or of_worker.max() > 1 else "nonzero"

    @property
    def _fewest(self) -> int:
        iterations = self.executed[0][2]
        return int(np.gcd.reduce(iterations[iterations > 0])) if iterations.any() else 1

    def steps_of_nonzeros(self, loads: Longs) -> Longs:
        """Return the steps in a full column tile without a common factor, (blocks, warps)."""
        _, steps = next(self.steps(loads))
        return steps // self._fewest

    def block_times(self, loads: Longs) -> tuple[Longs, Longs]:
        """Return steps and warp time (`slots`) of each block, over all column tiles."""
        total, slots = np.zeros((2, len(loads)), dtype=np.int64)
        for tiles, steps in self.steps(loads):
            total += tiles * steps.sum(axis=1)
            slots += tiles * steps.max(axis=1, initial=0) * self.warps
        return total, slots

    def of_workload(self, workload: Workload) -> Longs:
        """Return what `steps` takes for the blocks of a workload, shape (blocks, workers)."""
        return nonzeros_per_warp(workload, self.workers, longest=self.row_per_lane)

    def occupancy(self, loads: Longs, blocks: npt.ArrayLike = 1) -> Occupancy:
        """Sum up the steps of blocks.

        Parameters
        ----------
        loads : array of int64, shape (kinds, workers)
            Loads of each kind of block, as for `steps`.
        blocks : array of int64, shape (kinds,), or int
            Number of blocks of each kind.
        """
        counts = np.broadcast_to(np.asarray(blocks, dtype=np.int64), len(loads))
        busy, total, slots, longest = None, 0, 0, 0
        for tiles, steps in self.steps(loads):
            if busy is None:
                busy = int(counts @ np.count_nonzero(steps, axis=1))
            total += tiles * int(counts @ steps.sum(axis=1))
            most = steps.max(axis=1, initial=0)
            slots += tiles * int(counts @ most) * self.warps
            longest = max(longest, int(most[counts > 0].max(initial=0)))
        return Occupancy(busy or 0, total, slots, longest)


@dataclass(frozen=True)
class Occupancy:
    """Steps of the hardware warps of several blocks.

    Attributes
    ----------
    busy_warps : int
        Number of warps with at least one step, of one column tile.
    steps : int
        Sum of the warps' steps, over all column tiles.
    slots : int
        Sum over the blocks of warps per block times steps of the block's busiest warp.
    longest : int
        Steps of the busiest warp.
    """

    busy_warps: int = 0
    steps: int = 0
    slots: int = 0
    longest: int = 0

    def __add__(self, other: Occupancy) -> Occupancy:
        return Occupancy(
            self.busy_warps + other.busy_warps,
            self.steps + other.steps,
            self.slots + other.slots,
            max(self.longest, other.longest),
        )


def in_blocks(per_worker: Longs, workers: int) -> Longs:
    """Return the loads of consecutive workers in rows of `workers`, filled up with zeros."""
    padding = -per_worker.size % workers
    return np.append(per_worker, np.zeros(padding, dtype=np.int64)).reshape(-1, workers)
