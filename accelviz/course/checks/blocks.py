"""Assignment A2: Algorithm 1 and 2 of Accel-GCN and the int4 metadata."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.course.checks import hidden
from accelviz.course.checks.common import case, require, whole
from accelviz.errors import PartitionError
from accelviz.ordering import DegreeHistogram
from accelviz.partition.block_level import BlockSetting, block_partition, block_workload, unpack
from accelviz.workload import Workload, check_cover


def pattern(pattern: Callable[..., Any], settings: Iterable[tuple[int, int]] = ((12, 32),)) -> None:
    """Hold Algorithm 1 to its definition, for every degree from 1 to deg_bound.

    Parameters
    ----------
    pattern : callable
        The student's: degree, max_block_warps, max_warp_nzs to factor, block_rows, warp_nzs.
    settings : iterable of (int, int)
        `max_block_warps` and `max_warp_nzs`.
    """
    for setting in itertools.starmap(BlockSetting, settings):
        warps, nonzeros = setting.max_block_warps, setting.max_warp_nzs
        with case(_setting(setting)):
            degrees = range(1, setting.deg_bound + 1)
            expected = np.stack(setting.pattern(np.array(degrees)), axis=1).tolist()
            for degree, numbers in zip(degrees, expected, strict=True):
                actual = whole("the pattern", pattern(degree, warps, nonzeros))
                require(
                    actual == numbers,
                    f"the pattern of degree {degree} is {tuple(actual)}, and should be "
                    f"{tuple(numbers)}",
                )


def info(pack: Callable[[int, int], Any], unpack: Callable[[int], Any], seed: int) -> None:
    """Hold the packing of `warp_nzs` and `rows` into the 32 bits of `info` to its definition.

    Parameters
    ----------
    pack : callable
        The student's: warp_nzs, rows to a signed 32-bit number.
    unpack : callable
        The student's: such a number to warp_nzs, rows.
    seed : int
    """
    rng = hidden.generator(seed)
    pairs = [(1, 12), (32, 1), (65_535, 1), (32_768, 2), (32_767, 32), (0, 5)]
    pairs += rng.integers((1, 1), (65_536, 33), (40, 2)).tolist()
    for warp_nzs, rows in pairs:
        with case(f"warp_nzs={warp_nzs}, rows={rows}"):
            expected = int(np.array(warp_nzs << 16 | rows, dtype=np.uint32).view(np.int32))
            (packed,) = whole("the packed number", [pack(warp_nzs, rows)])
            require(packed == expected, f"the packed number is {packed}, and should be {expected}")
            back = tuple(whole("what is unpacked", unpack(expected)))
            require(back == (warp_nzs, rows), f"unpacked, {expected} gives {back}")


def partition(partition: Callable[..., Any], cases: Mapping[str, hidden.SortedRows]) -> None:
    """Hold the metadata to Algorithm 2 as A2 states it: no empty block, no nonzero lost.

    Parameters
    ----------
    partition : callable
        The student's: ascending degrees, max_block_warps, max_warp_nzs to int32 (blocks, 4).
    cases : mapping of str to hidden.SortedRows
    """
    for name, rows in cases.items():
        with case(f"{name}, {_setting(rows.setting)}"):
            actual = np.asarray(partition(rows.degrees, *dataclasses.astuple(rows.setting)))
            require(
                actual.ndim == 2 and actual.shape[1] == 4 and actual.dtype == np.int32,
                f"the metadata is of shape {actual.shape} and {actual.dtype}, and should be "
                "(blocks, 4) of int32",
            )
            expected = _metadata(rows)
            if not np.array_equal(actual, expected):
                difference = _difference(actual, expected)
                raise AssertionError(f"{difference} {_consequence(actual, rows)}")


def decoded(decode: Callable[..., Any], cases: Mapping[str, hidden.SortedRows]) -> None:
    """Ask that right metadata, decoded, cover each nonzero once and keep to the setting.

    Parameters
    ----------
    decode : callable
        The student's: metadata, max_block_warps, max_warp_nzs to int (records, 5) of block, warp,
        row, nz_start, nz_count.
    cases : mapping of str to hidden.SortedRows
    """
    for name, rows in cases.items():
        with case(f"{name}, {_setting(rows.setting)}"):
            metadata = _metadata(rows)
            metadata.setflags(write=False)
            records = decode(metadata, *dataclasses.astuple(rows.setting))
            table = np.asarray(records).reshape(-1, 5) if len(records) == 0 else np.array(records)
            five = table.ndim == 2 and table.shape[1] == 5
            require(five, f"the records have shape {table.shape}, and should have (records, 5)")
            numbers = table.astype(np.int64)
            require(np.array_equal(numbers, table), "some records have numbers that are not whole")
            _check_records(numbers, metadata, rows)


def _check_records(
    table: npt.NDArray[np.int64], metadata: npt.NDArray[np.int32], rows: hidden.SortedRows
) -> None:
    setting = rows.setting
    _check_cover(Workload(*table.T), metadata, rows)
    block, warp, row, _, count = table.T
    places = block * setting.max_block_warps + warp
    require(np.unique(places).size == places.size, "a warp of a block has several records")
    most = unpack(metadata, setting).warp_nzs[block]
    wrong = np.flatnonzero((count < 1) | (count > most))
    if wrong.size:
        record = wrong[0]
        raise AssertionError(
            f"warp {warp[record]} of block {block[record]} has {count[record]} nonzeros, and "
            f"should have 1 to {most[record]}"
        )
    reference = block_workload(metadata, setting)
    expected = zip(reference.block.tolist(), reference.row.tolist(), strict=True)
    strange = sorted({*zip(block.tolist(), row.tolist(), strict=True)} - {*expected})
    require(not strange, f"block and row {strange[:1]} do not belong together")


def _check_cover(work: Workload, metadata: npt.NDArray[np.int32], rows: hidden.SortedRows) -> None:
    pointers = _pointers(rows.degrees)
    check_cover([work], pointers, len(metadata), rows.setting.max_block_warps)


def _metadata(rows: hidden.SortedRows) -> npt.NDArray[np.int32]:
    return block_partition(DegreeHistogram.of(_pointers(rows.degrees)), rows.setting)


def _pointers(degrees: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    return np.cumsum(np.concatenate([[0], degrees]), dtype=np.int64)


def _setting(setting: BlockSetting) -> str:
    return f"max_block_warps={setting.max_block_warps}, max_warp_nzs={setting.max_warp_nzs}"


def _difference(actual: npt.NDArray[np.int32], expected: npt.NDArray[np.int32]) -> str:
    both = min(len(actual), len(expected))
    different = np.flatnonzero((actual[:both] != expected[:both]).any(axis=1))
    if not different.size:
        counted = f"{len(actual)} blocks where {len(expected)} are right"
        return f"{counted}, the first {both} of them as they should be."
    block = int(different[0])
    return f"block {block} is {actual[block].tolist()}, and should be {expected[block].tolist()}."


def _consequence(metadata: npt.NDArray[np.int32], rows: hidden.SortedRows) -> str:
    """Say what such blocks would do, which tells more than a number that differs."""
    try:
        _check_cover(block_workload(metadata, rows.setting), metadata, rows)
    except PartitionError as error:
        return f"Carried out, they fail: {error}"
    return "Carried out, they cover each nonzero once, but are not the blocks of Algorithm 2."
