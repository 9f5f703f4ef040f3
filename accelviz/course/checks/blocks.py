"""Checks of assignment A2: Algorithms 1 and 2 of Accel-GCN and the int4 metadata.

Algorithm 1 maps a row degree to a pattern: how many rows a block has, and how many nonzeros each of
its warps has. Algorithm 2 applies the patterns to rows in ascending order of degree and writes one
record of four int32 per block. The last word of a record, `info`, packs `warp_nzs` and `rows`.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.course.checks import hidden
from accelviz.course.checks.common import case, require, same, whole
from accelviz.course.checks.remote import RIGHT_HELPERS, charged_once, results_of
from accelviz.ordering import DegreeHistogram
from accelviz.partition.block_level import BlockSetting, block_partition, block_workload, unpack
from accelviz.workload import Workload, check_cover


def pattern(pattern: Callable[..., Any], settings: Iterable[tuple[int, int]] = ((12, 32),)) -> None:
    """Compare Algorithm 1 with the library's, for every degree from 1 to deg_bound.

    Parameters
    ----------
    pattern : callable
        The student's: maps degree, max_block_warps, max_warp_nzs to factor, block_rows, warp_nzs.
    settings : iterable of (int, int)
        `max_block_warps` and `max_warp_nzs`.
    """
    for setting in itertools.starmap(BlockSetting, settings):
        with case(_describe(setting)):
            values = dataclasses.astuple(setting)
            calls = [(degree, *values) for degree in range(1, setting.deg_bound + 1)]
            for (degree, *_), result in zip(calls, results_of(pattern, calls), strict=True):
                expected = right_pattern(degree, *values)
                actual = whole("the pattern", result)
                require(
                    tuple(actual) == expected,
                    f"the pattern of degree {degree} is {tuple(actual)}, and should be {expected}",
                )


def right_pattern(
    degree: int, max_block_warps: int = 12, max_warp_nzs: int = 32
) -> tuple[int, ...]:
    """Return factor, block_rows and warp_nzs of a degree, by the library."""
    patterns = BlockSetting(int(max_block_warps), int(max_warp_nzs)).pattern(np.array([degree]))
    return tuple(int(numbers[0]) for numbers in patterns)


def right_pack_info(warp_nzs: int, rows: int) -> int:
    """Pack two 16-bit numbers into a signed one of 32 bits."""
    return int(np.array(int(warp_nzs) << 16 | int(rows), dtype=np.uint32).view(np.int32))


RIGHT_HELPERS |= {
    "pattern": right_pattern,
    "pack_info": right_pack_info,
    "unpack_info": lambda info: (int(info) >> 16 & 0xFFFF, int(info) & 0xFFFF),
}


def info(pack: Callable[[int, int], Any], unpack: Callable[[int], Any], seed: int) -> None:
    """Check the packing of `warp_nzs` (upper 16 bits) and `rows` into the int32 `info`.

    Parameters
    ----------
    pack : callable
        The student's: maps warp_nzs, rows to a signed 32-bit number.
    unpack : callable
        The student's: maps such a number to warp_nzs, rows.
    seed : int
        Seed of the random pairs.
    """
    rng = hidden.generator(seed)
    pairs = [(1, 12), (32, 1), (65_535, 1), (32_768, 2), (32_767, 32), (0, 5)]
    pairs += rng.integers((1, 1), (65_536, 33), (40, 2)).tolist()
    for warp_nzs, rows in pairs:
        with case(f"warp_nzs={warp_nzs}, rows={rows}"):
            expected = right_pack_info(warp_nzs, rows)
            (packed,) = whole("the packed number", [pack(warp_nzs, rows)])
            require(packed == expected, f"the packed number is {packed}, and should be {expected}")
            unpacked = tuple(whole("what is unpacked", unpack(expected)))
            require(unpacked == (warp_nzs, rows), f"unpacked, {expected} gives {unpacked}")


@charged_once("pattern", "pack_info")
def partition(partition: Callable[..., Any], cases: Mapping[str, hidden.SortedRows]) -> None:
    """Compare a partition's metadata with the library's Algorithm 2.

    Parameters
    ----------
    partition : callable
        The student's: maps ascending degrees, max_block_warps, max_warp_nzs to int32, shape
        (blocks, 4).
    cases : mapping of str to hidden.SortedRows
    """
    for name, rows in cases.items():
        with case(f"{name}, {_describe(rows.setting)}"):
            metadata = partition(rows.degrees, *dataclasses.astuple(rows.setting))
            same("metadata", metadata, _metadata(rows))


@charged_once("unpack_info")
def decoded(decode: Callable[..., Any], cases: Mapping[str, hidden.SortedRows]) -> None:
    """Require that the decoded metadata cover each nonzero once, within the limits of the setting.

    Parameters
    ----------
    decode : callable
        The student's: maps metadata, max_block_warps, max_warp_nzs to int, shape (records, 5), with
        the columns block, warp, row, nz_start, nz_count.
    cases : mapping of str to hidden.SortedRows
    """
    for name, rows in cases.items():
        with case(f"{name}, {_describe(rows.setting)}"):
            metadata = _metadata(rows)
            metadata.setflags(write=False)
            records = decode(metadata, *dataclasses.astuple(rows.setting))
            table = np.asarray(records).reshape(-1, 5) if len(records) == 0 else np.array(records)
            require(
                table.ndim == 2 and table.shape[1] == 5,
                f"the records have shape {table.shape}, and should have (records, 5)",
            )
            integers = table.astype(np.int64)
            require(np.array_equal(integers, table), "some records have numbers that are not whole")
            _check_records(integers, metadata, rows)


def _check_records(
    table: npt.NDArray[np.int64], metadata: npt.NDArray[np.int32], rows: hidden.SortedRows
) -> None:
    setting = rows.setting
    _check_cover(Workload(*table.T), metadata, rows)
    block, warp, row, _, count = table.T
    warp_ids = block * setting.max_block_warps + warp
    require(np.unique(warp_ids).size == warp_ids.size, "a warp of a block has several records")
    max_counts = unpack(metadata, setting).warp_nzs[block]
    wrong = np.flatnonzero((count < 1) | (count > max_counts))
    if wrong.size:
        record = wrong[0]
        raise AssertionError(
            f"warp {warp[record]} of block {block[record]} has {count[record]} nonzeros, and "
            f"should have 1 to {max_counts[record]}"
        )
    reference = block_workload(metadata, setting)
    expected_pairs = zip(reference.block.tolist(), reference.row.tolist(), strict=True)
    wrong_pairs = sorted({*zip(block.tolist(), row.tolist(), strict=True)} - {*expected_pairs})
    require(not wrong_pairs, f"block and row {wrong_pairs[:1]} do not belong together")


def _check_cover(work: Workload, metadata: npt.NDArray[np.int32], rows: hidden.SortedRows) -> None:
    pointers = _pointers(rows.degrees)
    check_cover([work], pointers, len(metadata), rows.setting.max_block_warps)


def _metadata(rows: hidden.SortedRows) -> npt.NDArray[np.int32]:
    return block_partition(DegreeHistogram.of(_pointers(rows.degrees)), rows.setting)


def _pointers(degrees: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    return np.cumsum(np.concatenate([[0], degrees]), dtype=np.int64)


def _describe(setting: BlockSetting) -> str:
    return f"max_block_warps={setting.max_block_warps}, max_warp_nzs={setting.max_warp_nzs}"
