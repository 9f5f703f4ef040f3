"""Accel-GCN's block-level partition: Algorithms 1 and 2 (section III-C).

The rows are in ascending order of degree, so everything here follows from the degree histogram
alone. An int4 describes a block.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Ints, Longs
from accelviz.errors import PartitionError, checked_integer
from accelviz.ordering import DegreeHistogram, RowDegrees
from accelviz.partition.scheme import Scheme
from accelviz.partition.summary import Loads, PartitionSummary
from accelviz.workload import Workload, spread

#: `warp_nzs` and `block_rows` share the 32 bits of `info`, 16 each.
FIELD_BITS = 16
FIELD_LIMIT = (1 << FIELD_BITS) - 1
#: Bytes of one block's metadata.
INT4_BYTES = 16
#: `row` and `loc` are signed 32-bit words of the int4.
WORD_LIMIT = int(np.iinfo(np.int32).max)
#: The published setting (section III-C and the ablations use 12 warps of up to 32 nonzeros).
MAX_BLOCK_WARPS = 12
MAX_WARP_NZS = 32
#: The largest values of the two parameters, and why.
SETTING_LIMITS = {
    "max_block_warps": (32, "a CUDA block has at most 1,024 threads"),
    "max_warp_nzs": (FIELD_LIMIT, "the metadata stores it in 16 bits"),
}


def ceil_div(dividend: Longs, divisor: Longs | int) -> Longs:
    """Divide integers and round up."""
    quotient: Longs = -(-dividend // divisor)
    return quotient


@dataclass(frozen=True)
class BlockSetting:
    """The two parameters of the partition, checked.

    Parameters
    ----------
    max_block_warps : int
        Warps in a block, 1 to 32.
    max_warp_nzs : int
        Most nonzeros one warp handles, 1 to 65,535 (16 bits of the metadata).

    Raises
    ------
    PartitionError
        If either is out of range.
    """

    max_block_warps: int = MAX_BLOCK_WARPS
    max_warp_nzs: int = MAX_WARP_NZS

    def __post_init__(self) -> None:
        for name, (upper, why) in SETTING_LIMITS.items():
            checked = checked_integer(name, getattr(self, name), upper, why=why)
            object.__setattr__(self, name, checked)

    @property
    def deg_bound(self) -> int:
        """Most nonzeros that one block handles; a row with more is split over several blocks."""
        return self.max_block_warps * self.max_warp_nzs

    @cached_property
    def factors(self) -> Longs:
        """Divisors of max_block_warps, ascending: the warps that may share one row."""
        warps = np.arange(1, self.max_block_warps + 1)
        return warps[self.max_block_warps % warps == 0]

    def pattern(self, degrees: npt.ArrayLike) -> tuple[Longs, Longs, Longs]:
        """Algorithm 1: the partition pattern of rows with 1 to deg_bound nonzeros.

        Parameters
        ----------
        degrees : array_like of int, any shape
            Each 1 to deg_bound.

        Returns
        -------
        factor, block_rows, warp_nzs : arrays of int64, the shape of `degrees`
            `factor` warps are set aside for a row, the smallest divisor f of max_block_warps with
            f x max_warp_nzs >= degree; a block holds `block_rows` = max_block_warps / f rows; each
            warp handles up to `warp_nzs` = ceil(degree / f) nonzeros.

        Raises
        ------
        PartitionError
            If a degree is out of range.
        """
        degrees = np.asarray(degrees, dtype=np.int64)
        if degrees.size and (degrees.min() < 1 or degrees.max() > self.deg_bound):
            span = f"1 to deg_bound, {self.deg_bound}"
            raise PartitionError("degrees", f"{degrees.min()} to {degrees.max()}", span)
        factor = self.factors[np.searchsorted(self.factors * self.max_warp_nzs, degrees)]
        return factor, self.max_block_warps // factor, ceil_div(degrees, factor)


@dataclass(frozen=True, eq=False)
class BlockFields:
    """The metadata of some blocks, decoded. Every array is int64 of shape (blocks,).

    Attributes
    ----------
    degree : array
        Degree of the block's rows.
    first_row : array
        First row, in degree-sorted order.
    first_nz : array
        Position of the block's first nonzero in the degree-sorted matrix (`loc` in the paper).
    rows : array
        Rows in the block; 1 where the block holds a part of one row.
    warp_nzs : array
        Nonzeros of each warp, except that a row's last warp may have fewer.
    row_nzs : array
        Nonzeros of each row inside this block: the degree, or the part of a split row.
    """

    degree: Longs
    first_row: Longs
    first_nz: Longs
    rows: Longs
    warp_nzs: Longs
    row_nzs: Longs

    @property
    def warps_per_row(self) -> Longs:
        """Warps of each row, int64, shape (blocks,): ceil(row_nzs / warp_nzs), but at least 1."""
        return np.maximum(ceil_div(self.row_nzs, np.maximum(self.warp_nzs, 1)), 1)

    def workload(self, start: int, block_warps: int) -> Workload:
        """Spell out which of the `block_warps` warps does what; block `start` is the first.

        A block deals out a share for each row, or, where `w` warps work on a row, `w` of them:
        share `v` is part `v mod w` of row `v div w`. The shares go to the warps in turn.
        """
        per_row = self.warps_per_row
        block, share = spread(self.rows * per_row)
        row, part = np.divmod(share, per_row[block])
        offset = part * self.warp_nzs[block]
        return Workload(
            block=start + block,
            warp=share % block_warps,
            row=self.first_row[block] + row,
            nz_start=self.first_nz[block] + row * self.row_nzs[block] + offset,
            nz_count=np.minimum(self.warp_nzs[block], self.row_nzs[block] - offset),
        )


def unpack(metadata: Ints, setting: BlockSetting) -> BlockFields:
    """Decode int4 metadata.

    Parameters
    ----------
    metadata : array of int32, shape (blocks, 4)
        As `block_partition` gives it.
    setting : BlockSetting
        The one it was made with. The meaning of `info` depends on its deg_bound.

    Returns
    -------
    BlockFields

    Raises
    ------
    PartitionError
        If `metadata` is no int32 array of four columns, or cannot have been made with `setting`.

    Notes
    -----
    The nonzeros of a part of a split row are dealt out to all warps of the block evenly,
    `warp_nzs = ceil(info / max_block_warps)`; the paper leaves this to the kernel.
    """
    metadata = np.asarray(metadata)
    if metadata.ndim != 2 or metadata.shape[1] != 4 or metadata.dtype != np.int32:
        problem = f"shape {metadata.shape} of {metadata.dtype}"
        raise PartitionError("metadata", problem, "(blocks, 4) of int32")
    fields = decoded(metadata, setting)
    possible = (
        (metadata[:, :3] >= (1, 0, 0)).all(axis=1)
        & (fields.rows >= 1)
        & (fields.warp_nzs >= 1)
        & (fields.warp_nzs <= setting.max_warp_nzs)
        & (fields.rows * fields.warps_per_row <= setting.max_block_warps)
    )
    if not possible.all():
        block = int(np.argmin(possible))
        words = ", ".join(str(word) for word in metadata[block])
        raise PartitionError(
            "metadata",
            f"block {block} reads ({words}), which max_block_warps={setting.max_block_warps}, "
            f"max_warp_nzs={setting.max_warp_nzs} cannot give",
            "the setting that the metadata was made with",
        )
    return fields


def decoded(metadata: Ints, setting: BlockSetting, *, numbered_parts: bool = False) -> BlockFields:
    """Decode int4 metadata without a check; its words may be unsigned.

    With `numbered_parts`, the last word of a part of a split row is its number in the row in place
    of its nonzeros.
    """
    degree, first_row, first_nz, info = metadata.view(np.uint32).astype(np.int64).T
    whole = degree <= setting.deg_bound
    nonzeros = _part_nzs(degree, info, setting.deg_bound) if numbered_parts else info
    shares = ceil_div(nonzeros, setting.max_block_warps)
    return BlockFields(
        degree,
        first_row,
        first_nz,
        rows=np.where(whole, info & FIELD_LIMIT, 1),
        warp_nzs=np.where(whole, info >> FIELD_BITS, shares),
        row_nzs=np.where(whole, degree, nonzeros),
    )


def _part_nzs(degree: Any, part: Any, deg_bound: int) -> Any:
    """Return how many nonzeros parts of split rows have, given degrees and part numbers."""
    return np.minimum(deg_bound, degree - part * deg_bound)


def block_partition(histogram: DegreeHistogram, setting: BlockSetting | None = None) -> Ints:
    """Algorithm 2: the metadata of every block, for rows in ascending order of degree.

    Parameters
    ----------
    histogram : DegreeHistogram
        Degrees of the matrix. Rows of degree 0 come first in the order and get no block.
    setting : BlockSetting, optional
        12 warps of up to 32 nonzeros if not given.

    Returns
    -------
    array of int32, shape (blocks, 4)
        One int4 a block: `(degree, first row, position of first nonzero, info)`. `info` is
        `warp_nzs << 16 | rows` for a degree up to deg_bound and the number of nonzeros in the block
        above it.

    Raises
    ------
    PartitionError
        If there are 2^31 nonzeros or more, which the int4's `loc` cannot address.

    Notes
    -----
    The algorithm as printed emits an empty block where a degree is a multiple of deg_bound, or the
    rows of a degree a multiple of block_rows. Here no block is empty.
    """
    setting = setting or BlockSetting()
    if histogram.nnz > WORD_LIMIT:
        raise PartitionError(
            "graph",
            f"{histogram.nnz:,} nonzeros",
            f"at most {WORD_LIMIT:,}: the int4 holds a block's first nonzero in 31 bits",
        )
    metadata = _patterns(histogram, setting).int4()
    parts = metadata[metadata[:, 0] > setting.deg_bound]
    parts[:, 3] = _part_nzs(parts[:, 0], parts[:, 3], setting.deg_bound)
    metadata[len(metadata) - len(parts) :] = parts
    return metadata


def _patterns(histogram: DegreeHistogram, setting: BlockSetting) -> RowPatterns:
    work = histogram.degrees > 0
    degrees, rows = histogram.degrees[work], histogram.rows[work]
    _, block_rows, warp_nzs = setting.pattern(np.minimum(degrees, setting.deg_bound))
    first_row = histogram.n_rows - int(rows.sum())
    return RowPatterns(degrees, rows, block_rows, warp_nzs, setting, first_row)


@dataclass(frozen=True, eq=False)
class RowPatterns:
    """How the rows of each degree are dealt out to blocks. Arrays are int64 of shape (degrees,).

    Attributes
    ----------
    degrees, rows : array
        The degrees, ascending, and how many rows have each, from row `first_row` on.
    block_rows, warp_nzs : array
        Rows of a block and nonzeros of a warp. They do not count for degrees above the setting's
        deg_bound: such rows are split into parts, and each part has a block.
    setting : BlockSetting
    first_row : int
    """

    degrees: Longs
    rows: Longs
    block_rows: Longs
    warp_nzs: Longs
    setting: BlockSetting
    first_row: int = 0

    def int4(self) -> Ints:
        """Describe every block in the order of the rows, int32, shape (blocks, 4).

        A line is `(degree, first row, position of first nonzero, info)`, where `info` is
        `warp_nzs << 16 | rows`, or the number of a part in its row.
        """
        bound = self.setting.deg_bound
        split = self.degrees > bound
        parts = np.where(split, ceil_div(self.degrees, bound), 1)
        block_rows = np.where(split, 1, self.block_rows)
        degree, block = spread(ceil_div(self.rows, block_rows) * parts)
        row, part = block, np.zeros_like(block)
        tail = np.flatnonzero(split[degree])
        row[tail], part[tail] = np.divmod(block[tail], parts[degree[tail]])
        row *= block_rows[degree]
        nonzeros = self.degrees * self.rows
        first_row = self.first_row + (np.cumsum(self.rows) - self.rows)[degree] + row
        first_nz = (np.cumsum(nonzeros) - nonzeros)[degree] + row * self.degrees[degree]
        rows = np.minimum(block_rows[degree], self.rows[degree] - row)
        info = np.where(split[degree], part, self.warp_nzs[degree] << FIELD_BITS | rows)
        words = self.degrees[degree], first_row, first_nz + part * bound, info
        return np.stack(words, axis=1, dtype=np.int32, casting="unsafe")

    def kinds(self) -> tuple[Longs, BlockFields]:
        """Count blocks that are alike: how many there are of each kind, and such a block.

        The blocks begin nowhere: their `first_row` and `first_nz` are 0.
        """
        bound, warps = self.setting.deg_bound, self.setting.max_block_warps
        split = self.degrees > bound
        degree = np.concatenate([self.degrees, self.degrees, *[self.degrees[split]] * 2])
        full, left = np.where(split, 0, np.divmod(self.rows, self.block_rows))
        parts, rest = np.divmod(self.degrees[split], bound)
        one = np.ones_like(rest)
        n_rows = self.rows[split]
        blocks = np.concatenate([full, left > 0, n_rows * parts, n_rows * (rest > 0)])
        rows = np.concatenate([self.block_rows, left, one, one])
        warp_nzs = np.concatenate(
            [self.warp_nzs, self.warp_nzs, one * bound // warps, ceil_div(rest, warps)]
        )
        row_nzs = np.concatenate([self.degrees, self.degrees, one * bound, rest])
        columns = (degree, 0 * degree, 0 * degree, rows, warp_nzs, row_nzs)
        return blocks[blocks > 0], BlockFields(*(array[blocks > 0] for array in columns))


def block_workload(
    metadata: Ints, setting: BlockSetting, start: int = 0, stop: int | None = None
) -> Workload:
    """Spell out which warp does what in some blocks, from their metadata alone.

    Parameters
    ----------
    metadata : array of int32, shape (blocks, 4)
        As `block_partition` gives it.
    setting : BlockSetting
        The one it was made with.
    start, stop : int
        First block and the one after the last; all blocks if not given.

    Returns
    -------
    Workload
        One record for each warp that has work. In a block of rows with `w` warps each, warp `v`
        handles part `v mod w` of row `v div w`; the warps left over do nothing.
    """
    return unpack(metadata[start:stop], setting).workload(start, setting.max_block_warps)


@dataclass(frozen=True)
class BlockLevel(Scheme):
    """Blocks of up to `warps` warps, with at most `most` nonzeros a warp (Algorithms 1 and 2).

    Rows are sorted by degree, so that the histogram alone gives the closed form.
    """

    kind = "block_level"
    warps: int
    most: int

    def summary(self, rows: RowDegrees, n_cols: int) -> PartitionSummary:
        """Count what the algorithms make; see `Scheme`."""
        setting, histogram = BlockSetting(self.warps, self.most), rows.histogram
        blocks, kind = _patterns(histogram, setting).kinds()
        n_blocks, n_rows, per_row = int(blocks.sum()), blocks * kind.rows, kind.warps_per_row
        part, together = kind.degree > setting.deg_bound, per_row > 1
        split_rows = int(histogram.rows[histogram.degrees > setting.deg_bound].sum())
        return PartitionSummary(
            blocks=n_blocks,
            warps=n_blocks * self.warps,
            slots=int(blocks @ kind.warp_nzs) * self.warps,
            loads=Loads.of_shares(n_rows, kind.row_nzs, kind.warp_nzs),
            metadata_bytes=INT4_BYTES * n_blocks,
            rows_shared=int(n_rows[together & ~part].sum()) + split_rows * (self.warps > 1),
            rows_cut=split_rows,
            shared_atomics=int(n_rows[together] @ per_row[together]) * n_cols,
            global_atomics=int(blocks[part].sum()) * n_cols,
        )
