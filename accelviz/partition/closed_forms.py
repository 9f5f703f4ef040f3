"""What each partition does to a graph, in closed form from the degrees of its rows.

No workload is built. Where only a degree histogram is given, what depends on the order of the rows
is None; with the row pointers one pass over the rows finds that too.
"""

from __future__ import annotations

from dataclasses import replace

import numba
import numpy as np

from accelviz.ordering import RowDegrees
from accelviz.partition.block_level import BlockSetting
from accelviz.partition.merge_path import first_nonzeros, merge_path_partition
from accelviz.partition.summary import Integers, Loads, PartitionSummary

INT4_BYTES = 16


def block_level(rows: RowDegrees, n_cols: int, setting: BlockSetting) -> PartitionSummary:
    """Algorithms 1 and 2 of Accel-GCN: the rows are sorted, so the histogram says everything.

    Parameters
    ----------
    rows : RowDegrees
    n_cols : int
        Columns of X, for the atomics.
    setting : BlockSetting
    """
    histogram = rows.histogram
    loads = np.zeros(min(setting.max_warp_nzs, histogram.largest) + 1, dtype=np.int64)
    blocks, slots, shared, cut, runs, parts = _count_block_level(
        histogram.degrees,
        histogram.rows,
        setting.factors,
        setting.max_block_warps,
        setting.max_warp_nzs,
        loads,
    )
    return PartitionSummary(
        blocks=blocks,
        warps=blocks * setting.max_block_warps,
        slots=slots,
        loads=Loads.counted(loads),
        metadata_bytes=INT4_BYTES * blocks,
        rows_shared=shared,
        rows_cut=cut,
        shared_atomics=runs * n_cols,
        global_atomics=parts * n_cols,
    )


@numba.njit(cache=True, nogil=True)
def _count_block_level(
    degrees: Integers,
    rows: Integers,
    factors: Integers,
    block_warps: int,
    warp_nzs: int,
    loads: Integers,
) -> tuple[int, int, int, int, int, int]:
    """Blocks, slots, rows shared, rows cut, runs that share a row in a block, parts of cut rows."""
    blocks = slots = shared = cut = runs = parts = 0
    deg_bound = block_warps * warp_nzs
    k = 0
    for i in range(degrees.size):
        degree, count = degrees[i], rows[i]
        if degree == 0 or count == 0:
            continue
        if degree <= deg_bound:
            while factors[k] * warp_nzs < degree:
                k += 1
            own = -(-degree // factors[k])
            here = -(-count // (block_warps // factors[k]))
            warps = -(-degree // own)
            loads[own] += count * (warps - 1)
            loads[degree - (warps - 1) * own] += count
            blocks += here
            slots += here * block_warps * own
            if warps > 1:
                shared += count
                runs += count * warps
        else:
            whole, rest = degree // deg_bound, degree % deg_bound
            loads[warp_nzs] += count * whole * block_warps
            slots += count * whole * deg_bound
            here = whole
            if block_warps > 1:
                shared += count
                runs += count * whole * block_warps
            if rest > 0:
                own = -(-rest // block_warps)
                warps = -(-rest // own)
                loads[own] += count * (warps - 1)
                loads[rest - (warps - 1) * own] += count
                slots += count * block_warps * own
                here += 1
                if warps > 1:
                    runs += count * warps
            blocks += count * here
            parts += count * here
            cut += count
    return blocks, slots, shared, cut, runs, parts


def runs_in_order(
    rows: RowDegrees, n_cols: int, most: int, block_warps: int, run_bytes: int
) -> PartitionSummary:
    """Cut each row into runs of `most` nonzeros, one a warp; consecutive runs make a block.

    The warp-level partition and GNNAdvisor's neighbor groups. Runs of a row in one block add up in
    shared memory; parts of a row in several blocks meet in the output, once a block.

    Parameters
    ----------
    rows : RowDegrees
    n_cols : int
        Columns of X, for the atomics.
    most : int
        Most nonzeros of a run.
    block_warps : int
        Warps of a block.
    run_bytes : int
        Bytes of metadata for each run.
    """
    histogram = rows.histogram
    whole, rest = np.divmod(histogram.degrees, most)
    warps = int(histogram.rows @ (whole + (rest > 0)))
    blocks = -(-warps // block_warps)
    loads = np.zeros(min(most, histogram.largest) + 1, dtype=np.int64)
    np.add.at(loads, rest, histogram.rows)  # what is left of each row; none at 0
    if most < loads.size:
        loads[most] += int(histogram.rows @ whole)
    slots = shared = cut = runs = parts = None
    if rows.row_pointers is not None:
        slots, shared, cut, runs, parts = _walk_runs(rows.row_pointers, most, block_warps)
    return PartitionSummary(
        blocks=blocks,
        warps=blocks * block_warps,
        slots=slots,
        loads=Loads.counted(loads),
        metadata_bytes=run_bytes * warps,
        rows_shared=shared,
        rows_cut=cut,
        shared_atomics=None if runs is None else runs * n_cols,
        global_atomics=None if parts is None else parts * n_cols,
    )


@numba.njit(cache=True, nogil=True)
def _walk_runs(
    row_pointers: Integers, most: int, block_warps: int
) -> tuple[int, int, int, int, int]:
    """Slots, rows shared, rows cut, runs that share a row in a block, parts of cut rows."""
    slots = shared = cut = runs = parts = 0
    filled = 0  # warps of the block that is being filled
    busiest = 0
    for row in range(row_pointers.size - 1):
        degree = row_pointers[row + 1] - row_pointers[row]
        if degree <= most:  # most rows, spared the divisions
            if degree > 0:
                busiest = max(busiest, degree)
                filled += 1
                if filled == block_warps:
                    slots += block_warps * busiest
                    filled = busiest = 0
            continue
        left = -(-degree // most)
        last = degree - (left - 1) * most
        pieces = 0
        shares = False
        while left > 0:
            taken = min(left, block_warps - filled)
            if filled == 0 and left > block_warps:  # whole blocks of full runs, all at once
                many = (left - 1) // block_warps
                slots += many * block_warps * most
                pieces += many
                if block_warps > 1:
                    shares = True
                    runs += many * block_warps
                left -= many * block_warps
                continue
            left -= taken
            pieces += 1
            if taken > 1:
                shares = True
                runs += taken
            busiest = max(busiest, most if taken > 1 or left > 0 else last)
            filled += taken
            if filled == block_warps:
                slots += block_warps * busiest
                filled = busiest = 0
        if shares:
            shared += 1
        if pieces > 1:
            cut += 1
            parts += pieces
    return slots + block_warps * busiest, shared, cut, runs, parts


def rows_in_order(rows: RowDegrees, rows_per_warp: int, block_warps: int) -> PartitionSummary:
    """Give each warp `rows_per_warp` consecutive rows; nothing is shared or cut.

    Parameters
    ----------
    rows : RowDegrees
    rows_per_warp, block_warps : int
    """
    histogram = rows.histogram
    blocks = -(-histogram.n_rows // (rows_per_warp * block_warps))
    slots = loads = None
    if rows_per_warp == 1:
        busy = histogram.degrees > 0
        loads = Loads(histogram.degrees[busy], histogram.rows[busy])
    if rows.row_pointers is not None:
        starts = np.append(rows.row_pointers[:-1:rows_per_warp], rows.row_pointers[-1])
        per_warp = np.diff(starts)
        if loads is None:
            loads = Loads.of_warps(per_warp)
        slots = _slots(per_warp, block_warps)
    return PartitionSummary(
        blocks=blocks,
        warps=blocks * block_warps,
        slots=slots,
        loads=loads,
        metadata_bytes=0,
        rows_shared=0,
        rows_cut=0,
        shared_atomics=0,
        global_atomics=0,
    )


def merge_path(
    rows: RowDegrees, n_cols: int, warp_items: int, block_warps: int
) -> PartitionSummary:
    """Share rows plus nonzeros equally; pieces of rows cut between warps are added by atomics.

    Parameters
    ----------
    rows : RowDegrees
    n_cols : int
        Columns of X, for the atomics.
    warp_items : int
        Rows plus nonzeros of a warp.
    block_warps : int
    """
    histogram = rows.histogram
    warps = -(-(histogram.n_rows + histogram.nnz) // warp_items)
    blocks = -(-warps // block_warps)
    size = PartitionSummary(
        blocks=blocks,
        warps=blocks * block_warps,
        metadata_bytes=np.dtype(np.int32).itemsize * (warps + 1),
        shared_atomics=0,
    )
    pointers = rows.row_pointers
    if pointers is None:
        return size
    first_rows = merge_path_partition(pointers, warp_items)
    starts = first_nonzeros(pointers, first_rows, warp_items, 0, first_rows.size)
    per_warp = np.diff(starts)
    # Where a share begins inside a row, that row is cut between the share and the one before.
    boundary = np.arange(1, warps)
    row = first_rows[boundary].astype(np.int64)
    inside = (pointers[row] < starts[boundary]) & (starts[boundary] < pointers[row + 1])
    boundary, row = boundary[inside], row[inside]
    in_block = boundary % block_warps != 0
    pieces = row.size + _distinct(row)
    return replace(
        size,
        slots=_slots(per_warp, block_warps),
        loads=Loads.of_warps(per_warp),
        rows_shared=_distinct(row[in_block]),
        rows_cut=_distinct(row[~in_block]),
        global_atomics=pieces * n_cols,
    )


def edges(rows: RowDegrees, n_cols: int, groups: int) -> PartitionSummary:
    """Give each of a block's thread groups one nonzero, and add every product by an atomic.

    Parameters
    ----------
    rows : RowDegrees
    n_cols : int
        Columns of X, for the atomics.
    groups : int
        Thread groups of a block; they are what counts as its warps.
    """
    nnz = rows.histogram.nnz
    blocks = -(-nnz // groups)
    shared = cut = None
    if rows.row_pointers is not None:
        begin, end = rows.row_pointers[:-1], rows.row_pointers[1:]
        work = end > begin
        begin, last = begin[work], end[work] - 1
        boundaries = last // groups - begin // groups
        cut = int(np.count_nonzero(boundaries))
        shared = int(np.count_nonzero(last - begin > boundaries))
    return PartitionSummary(
        blocks=blocks,
        warps=blocks * groups,
        slots=blocks * groups,
        loads=Loads.counted(np.array([0, nnz])),
        metadata_bytes=0,
        rows_shared=shared,
        rows_cut=cut,
        shared_atomics=0,
        global_atomics=nnz * n_cols,
    )


def vertices(rows: RowDegrees, groups: int) -> PartitionSummary:
    """Give each block a row, whose nonzeros its thread groups take in turn.

    Parameters
    ----------
    rows : RowDegrees
    groups : int
        Thread groups of a block; they are what counts as its warps.
    """
    histogram = rows.histogram
    each, more = np.divmod(histogram.degrees, groups)
    # Of a row's groups, `more` have one nonzero above `each`.
    nonzeros = np.concatenate([each, each + 1])
    warps = np.concatenate([histogram.rows * (groups - more), histogram.rows * more])
    return PartitionSummary(
        blocks=histogram.n_rows,
        warps=histogram.n_rows * groups,
        slots=int(histogram.rows @ (each + (more > 0))) * groups,
        loads=_gathered(nonzeros, warps),
        metadata_bytes=0,
        rows_shared=int(histogram.rows[histogram.degrees > 1].sum()) if groups > 1 else 0,
        rows_cut=0,
        shared_atomics=0,
        global_atomics=0,
    )


def _gathered(nonzeros: Integers, warps: Integers) -> Loads:
    """Add up the warps of entries with equally many nonzeros."""
    distinct, place = np.unique(nonzeros, return_inverse=True)
    sums = np.zeros(distinct.size, dtype=np.int64)
    np.add.at(sums, place, warps)
    work = (distinct > 0) & (sums > 0)
    return Loads(distinct[work], sums[work])


def _slots(per_warp: Integers, block_warps: int) -> int:
    """Sum the busiest warp of each block, times its warps; the last block may not be full."""
    if not per_warp.size:
        return 0
    busiest = np.maximum.reduceat(per_warp, np.arange(0, per_warp.size, block_warps))
    return int(busiest.sum()) * block_warps


def _distinct(ascending: Integers) -> int:
    return int(np.count_nonzero(np.diff(ascending, prepend=-1)))
