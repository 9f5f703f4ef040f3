"""The int4 that describes a block: its bits, what they say, and its file, named `.block4`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from accelviz.arrays import Ints, Longs
from accelviz.errors import ArgumentError, PartitionError
from accelviz.files import written_whole
from accelviz.workload import Workload, spread

if TYPE_CHECKING:
    from accelviz.partition.block_level import BlockSetting

#: `warp_nzs` and `block_rows` share the 32 bits of `info`, 16 each.
FIELD_BITS = 16
FIELD_LIMIT = (1 << FIELD_BITS) - 1
#: Bytes of one block's metadata.
INT4_BYTES = 16
#: `row` and `loc` are signed 32-bit words of the int4.
WORD_LIMIT = int(np.iinfo(np.int32).max)


def ceil_div(dividend: Longs, divisor: Longs | int) -> Longs:
    """Divide integers and round up."""
    quotient: Longs = -(-dividend // divisor)
    return quotient


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


def pack(fields: BlockFields, setting: BlockSetting) -> Ints:
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
    for name, field in (("warp_nzs", fields.warp_nzs), ("block_rows", fields.rows)):
        if _outside(field[whole], FIELD_LIMIT):
            raise PartitionError(name, f"{field[whole].max()}", f"0 to {FIELD_LIMIT}, 16 bits")
    info = np.where(whole, fields.warp_nzs << FIELD_BITS | fields.rows, fields.row_nzs)
    words = np.stack([fields.degree, fields.first_row, fields.first_nz, info], axis=1)
    if _outside(words[:, :3], WORD_LIMIT):
        raise PartitionError("metadata", "a word does not fit", f"0 to {WORD_LIMIT}, 31 bits")
    return words.astype(np.uint32).view(np.int32)


def _outside(array: Longs, most: int) -> bool:
    return bool(array.size and (array.min() < 0 or array.max() > most))


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
    _check_words(metadata)
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
    nonzeros = part_nzs(degree, info, setting.deg_bound) if numbered_parts else info
    shares = ceil_div(nonzeros, setting.max_block_warps)
    return BlockFields(
        degree,
        first_row,
        first_nz,
        rows=np.where(whole, info & FIELD_LIMIT, 1),
        warp_nzs=np.where(whole, info >> FIELD_BITS, shares),
        row_nzs=np.where(whole, degree, nonzeros),
    )


def part_nzs(degree: Any, part: Any, deg_bound: int) -> Any:
    """Return how many nonzeros parts of split rows have, given degrees and part numbers."""
    return np.minimum(deg_bound, degree - part * deg_bound)


def save_block4(path: str | os.PathLike[str], metadata: Ints) -> None:
    """Write metadata as a raw `.block4` file: little-endian int32, four words a block.

    Parameters
    ----------
    path : str or PathLike
        Ends in `.block4`. The file appears whole or not at all.
    metadata : array of int32, shape (blocks, 4)

    Raises
    ------
    ArgumentError
        If the path ends otherwise, or its folder cannot be written to.
    PartitionError
        If `metadata` has another shape or dtype.
    """
    _check_name(path)
    _check_words(metadata)
    with written_whole(path) as temporary:
        np.ascontiguousarray(metadata, dtype="<i4").tofile(temporary)


def load_block4(path: str | os.PathLike[str], setting: BlockSetting | None = None) -> Ints:
    """Read a raw `.block4` file.

    Parameters
    ----------
    path : str or PathLike
        Ends in `.block4`.
    setting : BlockSetting, optional
        If given, every block is checked against it, as `unpack` does.

    Returns
    -------
    array of int32, shape (blocks, 4)

    Raises
    ------
    ArgumentError
        If the path ends otherwise.
    PartitionError
        If the file does not exist, is truncated, or does not fit `setting`.
    """
    _check_name(path)
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise PartitionError(str(path), error.strerror or str(error), "a readable file") from error
    if len(content) % INT4_BYTES:
        raise PartitionError(
            str(path),
            f"{len(content)} bytes, which ends inside block {len(content) // INT4_BYTES}",
            "a whole number of 16-byte blocks; the file is truncated or no .block4 file",
        )
    metadata = np.frombuffer(content, dtype="<i4").reshape(-1, 4).astype(np.int32)
    if setting is not None:
        unpack(metadata, setting)
    return metadata


def _check_name(path: str | os.PathLike[str]) -> None:
    if Path(path).suffix != ".block4":
        raise ArgumentError("path", f"got {str(path)!r}", "a name that ends in .block4")


def _check_words(metadata: Ints) -> None:
    if metadata.ndim != 2 or metadata.shape[1] != 4 or metadata.dtype != np.int32:
        raise PartitionError(
            "metadata", f"shape {metadata.shape} of {metadata.dtype}", "(blocks, 4) of int32"
        )
