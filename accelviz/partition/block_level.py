"""Accel-GCN's block-level partition: Algorithms 1 and 2 (section III-C).

The rows are sorted by ascending degree. A block has several rows of equal degree, or a part of one
row that is too long for a block. Its metadata is one int4. The partition is computed from the
degree histogram alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Ints, Longs
from accelviz.errors import PartitionError, checked_integer
from accelviz.immutable import Immutable, taken_over
from accelviz.ordering import DegreeHistogram, RowDegrees
from accelviz.partition.hardware_warps import HardwareWarps
from accelviz.partition.scheme import Scheme
from accelviz.partition.summary import PartitionSummary, counted, launched
from accelviz.workload import Workload, nonzeros_per_warp, spread

#: `warp_nzs` and `block_rows` share the 32 bits of `info`, 16 each.
FIELD_BITS = 16
FIELD_LIMIT = (1 << FIELD_BITS) - 1
#: Size of one block's metadata in bytes.
INT4_BYTES = 16
#: Largest value of the int4's words, which are signed.
WORD_LIMIT = int(np.iinfo(np.int32).max)
#: Published setting: 12 warps of up to 32 nonzeros (section III-C and the ablations).
MAX_BLOCK_WARPS = 12
MAX_WARP_NZS = 32
#: Largest value of each parameter, and the reason.
SETTING_LIMITS = {
    "max_block_warps": (32, "a CUDA block has at most 1,024 threads"),
    "max_warp_nzs": (FIELD_LIMIT, "the metadata stores it in 16 bits"),
}


def ceil_div(dividend: Longs, divisor: Longs | int) -> Longs:
    """Divide integers and round up."""
    quotient: Longs = -(-dividend // divisor)
    return quotient


@dataclass(frozen=True)
class BlockSetting(Immutable):
    """The two parameters of the partition.

    Parameters
    ----------
    max_block_warps : int
        Number of warps per block, 1 to 32.
    max_warp_nzs : int
        Largest number of nonzeros per warp, 1 to 65,535 (16 bits of the metadata).

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
        """Largest number of nonzeros per block; a longer row is split over several blocks."""
        return self.max_block_warps * self.max_warp_nzs

    @cached_property
    def factors(self) -> Longs:
        """Divisors of max_block_warps, ascending: the possible numbers of warps per row."""
        warps = np.arange(1, self.max_block_warps + 1)
        return taken_over(warps[self.max_block_warps % warps == 0])

    def pattern(self, degrees: npt.ArrayLike) -> tuple[Longs, Longs, Longs]:
        """Compute the partition pattern of rows with 1 to deg_bound nonzeros (Algorithm 1).

        Parameters
        ----------
        degrees : array_like of int, any shape
            Each 1 to deg_bound.

        Returns
        -------
        factor, block_rows, warp_nzs : arrays of int64, the shape of `degrees`
            `factor` is the number of warps reserved per row: the smallest divisor f of
            max_block_warps with f * max_warp_nzs >= degree. `block_rows` = max_block_warps / f is
            the number of rows per block, and `warp_nzs` = ceil(degree / f) the largest number of
            nonzeros per warp.

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
    """Decoded metadata of several blocks. Every array is int64 of shape (blocks,).

    Attributes
    ----------
    degree : array
        Degree of the block's rows.
    first_row : array
        First row of the block, in degree-sorted order.
    first_nz : array
        Position of the block's first nonzero in the degree-sorted matrix (`loc` in the paper).
    rows : array
        Number of rows in the block; 1 if the block has a part of a split row.
    warp_nzs : array
        Number of nonzeros per warp; the last warp of a row may have fewer.
    row_nzs : array
        Number of nonzeros of each row in the block: the degree, or the size of the part.
    """

    degree: Longs
    first_row: Longs
    first_nz: Longs
    rows: Longs
    warp_nzs: Longs
    row_nzs: Longs

    @property
    def warps_per_row(self) -> Longs:
        """Number of warps per row, int64, shape (blocks,): ceil(row_nzs / warp_nzs), at least 1."""
        return np.maximum(ceil_div(self.row_nzs, np.maximum(self.warp_nzs, 1)), 1)

    def workload(self, start: int, block_warps: int) -> Workload:
        """Return the workload of these blocks; the first one has the number `start`.

        With `w` warps per row, a block has `w` runs of nonzeros per row: run `v` is part `v mod w`
        of row `v div w`. Warp `v mod block_warps` handles run `v`.
        """
        per_row = self.warps_per_row
        block, run = spread(self.rows * per_row)
        row, part = np.divmod(run, per_row[block])
        offset = part * self.warp_nzs[block]
        return Workload(
            block=start + block,
            warp=run % block_warps,
            row=self.first_row[block] + row,
            nz_start=self.first_nz[block] + row * self.row_nzs[block] + offset,
            nz_count=np.minimum(self.warp_nzs[block], self.row_nzs[block] - offset),
        )


def unpack(metadata: Ints, setting: BlockSetting) -> BlockFields:
    """Decode int4 metadata.

    Parameters
    ----------
    metadata : array of int32, shape (blocks, 4)
        As `block_partition` returns it.
    setting : BlockSetting
        The setting of that partition. The meaning of `info` depends on its deg_bound.

    Raises
    ------
    PartitionError
        If `metadata` is not an int32 array of four columns, or contradicts `setting`.

    Notes
    -----
    In a part of a split row, all warps of the block get equally many nonzeros:
    `warp_nzs = ceil(info / max_block_warps)`. The paper leaves this to the kernel.
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
    """Decode int4 metadata without checks; its words may be unsigned.

    For a part of a split row, `info` is the number of its nonzeros or, with `numbered_parts`, the
    index of the part in its row.
    """
    degree, first_row, first_nz, info = metadata.view(np.uint32).astype(np.int64).T
    whole = degree <= setting.deg_bound
    nonzeros = _part_nzs(degree, info, setting.deg_bound) if numbered_parts else info
    return BlockFields(
        degree,
        first_row,
        first_nz,
        rows=np.where(whole, info & FIELD_LIMIT, 1),
        warp_nzs=np.where(whole, info >> FIELD_BITS, ceil_div(nonzeros, setting.max_block_warps)),
        row_nzs=np.where(whole, degree, nonzeros),
    )


def _part_nzs(degree: Any, part: Any, deg_bound: int) -> Any:
    return np.minimum(deg_bound, degree - part * deg_bound)


def block_partition(histogram: DegreeHistogram, setting: BlockSetting | None = None) -> Ints:
    """Compute the metadata of every block, for rows sorted by ascending degree (Algorithm 2).

    Parameters
    ----------
    histogram : DegreeHistogram
        Degrees of the matrix. Rows of degree 0 are the first ones and have no block.
    setting : BlockSetting, optional
        By default 12 warps of up to 32 nonzeros.

    Returns
    -------
    array of int32, shape (blocks, 4)
        One int4 per block: `(degree, first row, position of first nonzero, info)`. `info` is
        `warp_nzs << 16 | rows` for a degree up to deg_bound, else the number of nonzeros in the
        block.

    Raises
    ------
    PartitionError
        If there are 2^31 nonzeros or more, which the int4's `loc` cannot address.

    Notes
    -----
    The published algorithm emits an empty block if a degree is a multiple of deg_bound, or if the
    number of rows of a degree is a multiple of block_rows. This implementation does not.
    """
    setting = setting or BlockSetting()
    if histogram.nnz > WORD_LIMIT:
        raise PartitionError(
            "graph",
            f"{histogram.nnz:,} nonzeros",
            f"at most {WORD_LIMIT:,}: the int4 holds a block's first nonzero in 31 bits",
        )
    metadata = _patterns(histogram, setting).int4()
    first_part = np.searchsorted(metadata[:, 0], setting.deg_bound, side="right")
    parts = metadata[first_part:]
    parts[:, 3] = _part_nzs(parts[:, 0], parts[:, 3], setting.deg_bound)
    return metadata


def _patterns(histogram: DegreeHistogram, setting: BlockSetting) -> RowPatterns:
    nonempty = histogram.degrees > 0
    degrees, rows = histogram.degrees[nonempty], histogram.rows[nonempty]
    _, block_rows, warp_nzs = setting.pattern(np.minimum(degrees, setting.deg_bound))
    first_row = histogram.n_rows - int(rows.sum())
    return RowPatterns(degrees, rows, block_rows, warp_nzs, setting, first_row)


@dataclass(frozen=True, eq=False)
class RowPatterns:
    """The partition pattern of the rows of each degree. Arrays are int64 of shape (degrees,).

    Attributes
    ----------
    degrees, rows : array
        The degrees, ascending, and the number of rows of each.
    block_rows, warp_nzs : array
        Rows per block and nonzeros per warp. Unused for degrees above the setting's deg_bound: such
        rows are split into parts of up to deg_bound nonzeros, one block per part.
    setting : BlockSetting
    first_row : int
        Row number of the first row of the smallest degree.
    """

    degrees: Longs
    rows: Longs
    block_rows: Longs
    warp_nzs: Longs
    setting: BlockSetting
    first_row: int = 0

    def int4(self) -> Ints:
        """Return the metadata of every block in row order, int32, shape (blocks, 4).

        A record is `(degree, first row, position of first nonzero, info)`, where `info` is
        `warp_nzs << 16 | rows`, or the index of a part in its row.
        """
        bound = self.setting.deg_bound
        split = self.degrees > bound
        parts = np.where(split, ceil_div(self.degrees, bound), 1)
        block_rows = np.where(split, 1, self.block_rows)
        degree, block = spread(ceil_div(self.rows, block_rows) * parts)
        # `degree` and `block` are indices: of the block's degree, and among blocks of that degree.
        row, part = block, np.zeros_like(block)
        is_part = np.flatnonzero(split[degree])
        row[is_part], part[is_part] = np.divmod(block[is_part], parts[degree[is_part]])
        row *= block_rows[degree]
        nonzeros = self.degrees * self.rows
        first_row = self.first_row + (np.cumsum(self.rows) - self.rows)[degree] + row
        first_nz = (np.cumsum(nonzeros) - nonzeros)[degree] + row * self.degrees[degree]
        rows = np.minimum(block_rows[degree], self.rows[degree] - row)
        info = np.where(split[degree], part, self.warp_nzs[degree] << FIELD_BITS | rows)
        words = self.degrees[degree], first_row, first_nz + part * bound, info
        return np.stack(words, axis=1, dtype=np.int32, casting="unsafe")

    def distinct_blocks(self) -> tuple[Longs, BlockFields]:
        """Return the number of blocks of each kind, int64, shape (kinds,), and the kinds.

        Blocks of one kind have equal fields apart from `first_row` and `first_nz`, which are 0.
        """
        bound, warps = self.setting.deg_bound, self.setting.max_block_warps
        split = self.degrees > bound
        split_degrees, split_rows = self.degrees[split], self.rows[split]
        full_blocks, last_rows = np.where(split, 0, np.divmod(self.rows, self.block_rows))
        full_parts, last_nzs = np.divmod(split_degrees, bound)
        one = np.ones_like(last_nzs)
        # Per degree: full blocks, last block. Per split degree: full parts, last part.
        degree = np.concatenate([self.degrees, self.degrees, split_degrees, split_degrees])
        blocks = np.concatenate(
            [full_blocks, last_rows > 0, split_rows * full_parts, split_rows * (last_nzs > 0)]
        )
        rows = np.concatenate([self.block_rows, last_rows, one, one])
        warp_nzs = np.concatenate(
            [self.warp_nzs, self.warp_nzs, one * bound // warps, ceil_div(last_nzs, warps)]
        )
        row_nzs = np.concatenate([self.degrees, self.degrees, one * bound, last_nzs])
        fields = (degree, 0 * degree, 0 * degree, rows, warp_nzs, row_nzs)
        return blocks[blocks > 0], BlockFields(*(field[blocks > 0] for field in fields))


def block_workload(
    metadata: Ints, setting: BlockSetting, start: int = 0, stop: int | None = None
) -> Workload:
    """Return the workload of blocks `start` to `stop` - 1, by default of all blocks.

    Parameters
    ----------
    metadata : array of int32, shape (blocks, 4)
        As `block_partition` returns it.
    setting : BlockSetting
        The setting of that partition.
    start, stop : int
        First block, and the block after the last.

    Returns
    -------
    Workload
        One record per busy warp. With `w` warps per row, warp `v` of a block handles part `v mod w`
        of row `v div w`. The other warps are idle.
    """
    return unpack(metadata[start:stop], setting).workload(start, setting.max_block_warps)


@dataclass(frozen=True)
class BlockLevel(Scheme):
    """Blocks of `warps` warps with at most `most` nonzeros each (Algorithms 1 and 2)."""

    kind = "block_level"
    warps: int
    most: int

    def summary(self, rows: RowDegrees, n_cols: int, hardware: HardwareWarps) -> PartitionSummary:
        """Count the blocks of the degree histogram; see `Scheme`."""
        setting, histogram = BlockSetting(self.warps, self.most), rows.histogram
        blocks, fields = _patterns(histogram, setting).distinct_blocks()
        n_blocks, n_rows, per_row = int(blocks.sum()), blocks * fields.rows, fields.warps_per_row
        is_part, shared = fields.degree > setting.deg_bound, per_row > 1
        split_rows = int(histogram.rows[histogram.degrees > setting.deg_bound].sum())
        loads = nonzeros_per_warp(fields.workload(0, self.warps), self.warps)
        return replace(
            launched(n_blocks, hardware),
            **counted(loads, hardware, blocks),
            metadata_bytes=INT4_BYTES * n_blocks,
            rows_shared=int(n_rows[shared & ~is_part].sum()) + split_rows * (self.warps > 1),
            rows_cut=split_rows,
            shared_atomics=int(n_rows[shared] @ per_row[shared]) * n_cols,
            global_atomics=int(blocks[is_part].sum()) * n_cols,
        )
