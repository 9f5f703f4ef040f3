"""Accel-GCN's block-level partition: Algorithms 1 and 2 and the int4 metadata (section III-C).

The cut, the bits of the int4, its workload and its closed form. The rows are in ascending order of
degree, so everything here follows from the degree histogram alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np
import numpy.typing as npt

from accelviz.errors import PartitionError, checked_integer
from accelviz.ordering import DegreeHistogram, RowDegrees
from accelviz.partition.metadata import WORD_BITS, Field, MetadataLine, numbered, word_lines
from accelviz.partition.summary import Integers, Loads, PartitionSummary
from accelviz.workload import Workload, spread

#: The published setting (section III-C and the ablations use 12 warps of up to 32 nonzeros).
MAX_BLOCK_WARPS = 12
MAX_WARP_NZS = 32

#: A CUDA block has at most 1,024 threads, 32 warps.
WARPS_LIMIT = 32
#: `warp_nzs` and `block_rows` share the 32 bits of `info`, 16 each.
FIELD_BITS = 16
FIELD_LIMIT = (1 << FIELD_BITS) - 1
#: Bytes of one block's metadata.
INT4_BYTES = 16
#: `row` and `loc` are signed 32-bit words of the int4.
WORD_LIMIT = int(np.iinfo(np.int32).max)
#: The largest values of the two parameters, and why.
SETTING_LIMITS = {
    "max_block_warps": (WARPS_LIMIT, "a CUDA block has at most 1,024 threads"),
    "max_warp_nzs": (FIELD_LIMIT, "the metadata stores it in 16 bits"),
}


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
    def factors(self) -> npt.NDArray[np.int64]:
        """Divisors of max_block_warps, ascending: the warps that may share one row."""
        divisors = [f for f in range(1, self.max_block_warps + 1) if self.max_block_warps % f == 0]
        return np.array(divisors, dtype=np.int64)

    def pattern(
        self, degrees: npt.ArrayLike
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
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
            raise PartitionError(
                "degrees",
                f"{degrees.min()} to {degrees.max()}",
                f"1 to deg_bound, {self.deg_bound}",
            )
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

    degree: npt.NDArray[np.int64]
    first_row: npt.NDArray[np.int64]
    first_nz: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    warp_nzs: npt.NDArray[np.int64]
    row_nzs: npt.NDArray[np.int64]

    @property
    def warps_per_row(self) -> npt.NDArray[np.int64]:
        """Warps with work in each row: ceil(row_nzs / warp_nzs), int64, shape (blocks,)."""
        return ceil_div(self.row_nzs, self.warp_nzs)


def block_partition(
    histogram: DegreeHistogram, setting: BlockSetting | None = None
) -> npt.NDArray[np.int32]:
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
    work = histogram.degrees > 0
    degrees, rows = histogram.degrees[work], histogram.rows[work]
    whole = degrees <= setting.deg_bound
    block_rows, warp_fields = np.ones_like(degrees), np.zeros_like(degrees)
    _, block_rows[whole], warp_nzs = setting.pattern(degrees[whole])
    warp_fields[whole] = _pack_info(warp_nzs, np.zeros_like(warp_nzs))  # rows come block by block
    blocks = np.where(
        whole, ceil_div(rows, block_rows), rows * ceil_div(degrees, setting.deg_bound)
    )
    metadata = np.empty((int(blocks.sum()), 4), dtype=np.int32)
    first_row = histogram.n_rows - int(rows.sum())
    _emit(metadata, degrees, rows, block_rows, warp_fields, first_row, setting.deg_bound)
    return metadata


def ceil_div(
    dividend: npt.NDArray[np.int64], divisor: npt.NDArray[np.int64] | int
) -> npt.NDArray[np.int64]:
    """Divide integers and round up."""
    quotient: npt.NDArray[np.int64] = -(-dividend // divisor)
    return quotient


def _pack_info(
    warp_nzs: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    for name, field in (("warp_nzs", warp_nzs), ("block_rows", rows)):
        if field.size and (field.min() < 0 or field.max() > FIELD_LIMIT):
            raise PartitionError(name, f"{field.max()}", f"0 to {FIELD_LIMIT}, 16 bits")
    return warp_nzs << FIELD_BITS | rows


@numba.njit(cache=True, nogil=True)
def _emit(
    metadata: npt.NDArray[np.int32],
    degrees: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    block_rows: npt.NDArray[np.int64],
    warp_fields: npt.NDArray[np.int64],
    row: int,
    deg_bound: int,
) -> None:
    block = 0
    loc = 0
    for i in range(degrees.size):
        degree = degrees[i]
        end = row + rows[i]
        while row < end:
            if degree <= deg_bound:
                taken = min(block_rows[i], end - row)
                _write(metadata[block], degree, row, loc, warp_fields[i] | taken)
                block += 1
                row += taken
                loc += taken * degree
            else:
                for start in range(0, degree, deg_bound):
                    part = min(deg_bound, degree - start)
                    _write(metadata[block], degree, row, loc + start, part)
                    block += 1
                row += 1
                loc += degree


@numba.njit(cache=True, nogil=True)
def _write(words: npt.NDArray[np.int32], degree: int, row: int, loc: int, info: int) -> None:
    words[0], words[1], words[2], words[3] = degree, row, loc, info


def pack(fields: BlockFields, setting: BlockSetting) -> npt.NDArray[np.int32]:
    """Encode decoded blocks as int4 metadata; the inverse of `unpack`.

    Parameters
    ----------
    fields : BlockFields
        Blocks made with `setting`.
    setting : BlockSetting
        Only its deg_bound is used.

    Returns
    -------
    array of int32, shape (blocks, 4)

    Raises
    ------
    PartitionError
        If a field does not fit its bits.
    """
    whole = fields.degree <= setting.deg_bound
    info = np.array(fields.row_nzs)
    info[whole] = _pack_info(fields.warp_nzs[whole], fields.rows[whole])
    words = np.stack([fields.degree, fields.first_row, fields.first_nz, info], axis=1)
    if words[:, :3].size and (words[:, :3].min() < 0 or words[:, :3].max() > WORD_LIMIT):
        raise PartitionError("metadata", "a word does not fit", f"0 to {WORD_LIMIT}, 31 bits")
    return words.astype(np.uint32).view(np.int32)


def unpack(metadata: npt.NDArray[np.int32], setting: BlockSetting) -> BlockFields:
    """Decode int4 metadata.

    Parameters
    ----------
    metadata : array of int32, shape (blocks, 4)
        As `block_partition` gives it.
    setting : BlockSetting
        The one it was made with: which meaning `info` has depends on deg_bound.

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
    check_words(metadata)
    degree, first_row, first_nz = metadata[:, :3].T.astype(np.int64)
    info = metadata[:, 3].view(np.uint32).astype(np.int64)
    whole = degree <= setting.deg_bound
    rows = np.where(whole, info & FIELD_LIMIT, 1)
    warp_nzs = np.where(whole, info >> FIELD_BITS, ceil_div(info, setting.max_block_warps))
    row_nzs = np.where(whole, degree, info)
    per_row = ceil_div(row_nzs, np.maximum(warp_nzs, 1))
    possible = (
        (degree >= 1)
        & (first_row >= 0)
        & (first_nz >= 0)
        & (rows >= 1)
        & (warp_nzs >= 1)
        & (warp_nzs <= setting.max_warp_nzs)
        & (rows * per_row <= setting.max_block_warps)
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
    return BlockFields(degree, first_row, first_nz, rows, warp_nzs, row_nzs)


def block_workload(
    metadata: npt.NDArray[np.int32], setting: BlockSetting, start: int = 0, stop: int | None = None
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
        handles part `v mod w` of row `v div w`; the warps left over have none.
    """
    stop = len(metadata) if stop is None else stop
    fields = unpack(metadata[start:stop], setting)
    per_row = fields.warps_per_row
    block, warp = spread(fields.rows * per_row)
    row_in_block = warp // per_row[block]
    offset = warp % per_row[block] * fields.warp_nzs[block]
    return Workload(
        block=start + block,
        warp=warp,
        row=fields.first_row[block] + row_in_block,
        nz_start=fields.first_nz[block] + row_in_block * fields.row_nzs[block] + offset,
        nz_count=np.minimum(fields.warp_nzs[block], fields.row_nzs[block] - offset),
    )


def block_level_lines(
    metadata: npt.NDArray[np.int32], setting: BlockSetting, blocks: int | Iterable[int]
) -> list[MetadataLine]:
    """Take the int4 of some blocks apart (Accel-GCN, section III-C).

    Parameters
    ----------
    metadata : array of int32, shape (blocks, 4)
        As `block_partition` gives it.
    setting : BlockSetting
        The one it was made with.
    blocks : int or iterable of int
        Which blocks.

    Raises
    ------
    ArgumentError
        If there is no such block.
    PartitionError
        If the metadata cannot have been made with `setting`.
    """
    found = []
    numbers = numbered(blocks)
    for block, line in zip(numbers, word_lines(metadata, numbers, called="block"), strict=True):
        fields = unpack(metadata[block : block + 1], setting)
        degree, row, loc, rows, warp_nzs, row_nzs = (
            int(column[0])
            for column in (
                fields.degree,
                fields.first_row,
                fields.first_nz,
                fields.rows,
                fields.warp_nzs,
                fields.row_nzs,
            )
        )
        begin = (
            (Field("degree", WORD_BITS, degree),),
            (Field("first row", WORD_BITS, row),),
            (Field("first nonzero (loc)", WORD_BITS, loc),),
        )
        if degree > setting.deg_bound:
            info: tuple[Field, ...] = (Field("info: nonzeros of this part", WORD_BITS, row_nzs),)
            meaning = (
                f"degree {degree:,}, more than the {setting.deg_bound:,} that a block takes: this "
                f"one takes {_counted(row_nzs)} of row {row:,}, the first at position {loc:,}, "
                f"at most {warp_nzs:,} a warp"
            )
        else:
            info = (
                Field("info: nonzeros of a warp", WORD_BITS - FIELD_BITS, warp_nzs),
                Field("info: rows", FIELD_BITS, rows),
            )
            per_row = int(fields.warps_per_row[0])
            who = f"each of the {rows} rows from row {row:,} on" if rows > 1 else f"row {row:,}"
            share = "one warp a row" if per_row == 1 else f"{per_row} warps share a row"
            meaning = (
                f"degree {degree:,}: {who} has {_counted(degree)}, the first at position {loc:,}; "
                f"{share}, at most {_counted(warp_nzs)} each"
            )
        found.append(MetadataLine(line.title, line.words, (*begin, info), meaning))
    return found


def _counted(nonzeros: int) -> str:
    return f"{nonzeros:,} nonzero{'' if nonzeros == 1 else 's'}"


def check_words(metadata: npt.NDArray[np.int32]) -> None:
    """Refuse what is not an array of int4 words: int32, shape (blocks, 4)."""
    if metadata.ndim != 2 or metadata.shape[1] != 4 or metadata.dtype != np.int32:
        raise PartitionError(
            "metadata", f"shape {metadata.shape} of {metadata.dtype}", "(blocks, 4) of int32"
        )


def block_summary(rows: RowDegrees, n_cols: int, setting: BlockSetting) -> PartitionSummary:
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
