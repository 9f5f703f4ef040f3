"""The int4 metadata of Accel-GCN's blocks decoded for display, as a table and bit by bit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple
from typing import TYPE_CHECKING

from accelviz.arrays import Ints
from accelviz.partition.block_level import FIELD_BITS, FIELD_LIMIT, BlockSetting, unpack
from accelviz.partition.metadata import WORD_BITS, Field, MetadataRecord, as_list, word_records

if TYPE_CHECKING:
    import pandas as pd


def block_table(metadata: Ints, setting: BlockSetting) -> pd.DataFrame:
    """Return a table of the four words of each block, with `info` decoded.

    Parameters
    ----------
    metadata : array of int32, shape (blocks, 4)
        As `block_partition` returns it.
    setting : BlockSetting
        The setting of that partition.
    """
    import pandas as pd

    table = pd.DataFrame(metadata, columns=["degree", "first place", "first nonzero", "info"])
    words = [word % (1 << WORD_BITS) for word in table["info"].tolist()]
    table["info"] = [f"0x{word:08x}" for word in words]
    table["decoded"] = [
        f"{word} of a long row"
        if degree > setting.deg_bound
        else f"{word >> FIELD_BITS} a warp | {_counted(word & FIELD_LIMIT, 'row')}"
        for degree, word in zip(table["degree"], words, strict=True)
    ]
    return table


def block_level_records(
    metadata: Ints, setting: BlockSetting, blocks: int | Iterable[int]
) -> list[MetadataRecord]:
    """Decode the int4 of selected blocks (Accel-GCN, section III-C).

    Parameters
    ----------
    metadata, setting
        As for `block_table`.
    blocks : int or iterable of int
        Block numbers.

    Raises
    ------
    ArgumentError
        If a block does not exist.
    PartitionError
        If the metadata contradicts `setting`.
    """
    records = []
    numbers = as_list(blocks)
    for block, record in zip(numbers, word_records(metadata, numbers, called="block"), strict=True):
        fields = unpack(metadata[block : block + 1], setting)
        degree, row, loc, rows, warp_nzs, row_nzs = (int(column[0]) for column in astuple(fields))
        if degree > setting.deg_bound:
            info: tuple[Field, ...] = (Field("info: nonzeros of this part", WORD_BITS, row_nzs),)
            meaning = (
                f"degree {degree:,}, more than the {setting.deg_bound:,} that a block takes: this "
                f"one takes {_counted(row_nzs)} of the row in place {row:,}, the first at position "
                f"{loc:,}, at most {warp_nzs:,} a warp"
            )
        else:
            info = (
                Field("info: nonzeros of a warp", WORD_BITS - FIELD_BITS, warp_nzs),
                Field("info: rows", FIELD_BITS, rows),
            )
            per_row = int(fields.warps_per_row[0])
            owner = f"the row in place {row:,}"
            if rows > 1:
                owner = f"each of the {rows} rows from place {row:,} on"
            warps = "one warp a row" if per_row == 1 else f"{per_row} warps share a row"
            meaning = (
                f"degree {degree:,}: {owner} has {_counted(degree)}, the first at position "
                f"{loc:,}; {warps}, at most {_counted(warp_nzs)} each"
            )
        first_words = (("degree", degree), ("first place", row), ("first nonzero (loc)", loc))
        words = (*((Field(name, WORD_BITS, value),) for name, value in first_words), info)
        records.append(MetadataRecord(record.title, record.words, words, meaning))
    return records


def _counted(number: int, noun: str = "nonzero") -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
