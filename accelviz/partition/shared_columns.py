"""Row windows in the form that the kernels of `strategies.windows` read.

A window is a group of consecutive rows with the list of its distinct columns, as in TC-GNN
(`partition.windows`). Here the distinct columns are stored in words of 32. For each word, every row
of the window has a bit mask: bit j is set if the row has a nonzero in column j of the word. Masks
are in column order, like the nonzeros of a CSR row, so values need no second order: the position of
a nonzero is that of the row's first nonzero in the block plus the number of mask bits before it.

A thread block, or a warp of it, computes a window. A window with many distinct columns is split
into parts, each with its own metadata record. SpMM adds up the parts of a window by atomics.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Ints, Longs
from accelviz.graph import Graph, Pattern
from accelviz.immutable import Immutable, taken_over
from accelviz.partition.nonzero_runs import check_numbers
from accelviz.partition.windows import Windows, row_windows, window_tiles
from accelviz.store import Stopwatch
from accelviz.tiles import Tiles
from accelviz.workload import Workload, spread

#: Distinct columns of a word.
WORD_COLUMNS = 32
#: Default size of a part in distinct columns: all distinct columns divided by 1,024 parts, which
#: keep a GPU busy, but between 1 and 8 times the mean of a window, and within 256 to 2,048.
#: Measured on an H200: needless splitting costs a factor of 2.1 to 3.6.
TARGET_PARTS, MAX_MEANS = 1024, 8
MIN_PART_COLUMNS, MAX_PART_COLUMNS = 256, 2048
#: Largest number of parts of a window: the metadata stores it in 16 bits.
MAX_PARTS = (1 << 16) - 1


@dataclass(frozen=True, eq=False)
class SharedColumns(Immutable):
    """The windows of a graph, large ones split into parts. A record is a window or a part.

    Attributes
    ----------
    windows : Windows
    metadata : array of int32, shape (records, 4)
        `(window, first word, distinct columns, parts << 16 | part)`, where `parts` is the number of
        parts of the window and `part` the index of this one. Records of split windows come first.
    part_columns : int
        Largest number of distinct columns of a record, as given or by default.
    cut_blocks : int
        Number of records that are parts of split windows.
    starts : array of uint32, shape (records, rows)
        Position of each row's first nonzero in the record.
    columns : array of int32, shape (words, 32)
        Distinct columns, word by word. A window's last word is padded with its last column.
    bits : array of uint32, shape (words, rows)
        Bit masks: bit j is set where the row has a nonzero in column j of the word.
    """

    windows: Windows
    metadata: Ints
    part_columns: int
    cut_blocks: int
    starts: npt.NDArray[np.uint32]
    columns: Ints
    bits: npt.NDArray[np.uint32]

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Arguments of the kernels, by name."""
        names = ("columns", "metadata", "starts", "bits")
        return {name: getattr(self, name) for name in names}


def shared_columns(
    graph: Graph, rows: int, part_columns: int | None
) -> tuple[SharedColumns, dict[str, float]]:
    """Divide a graph into windows of `rows` rows and split large ones; cached in the graph's store.

    A part has at most `part_columns` distinct columns, a multiple of 32; None chooses the number.
    Returns the windows, and the seconds of each preprocessing step.

    Raises
    ------
    PartitionError
        If there are 2^32 nonzeros or more.
    """
    check_numbers(graph.nnz)

    def translate(clock: Stopwatch) -> tuple[Windows, Longs, Ints, Any]:
        with clock.step("sparse graph translation"):
            windows = row_windows(graph, rows)
        with clock.step("words"):
            words = windows.blocks(WORD_COLUMNS)
            first_words = np.append(0, np.cumsum(words))
            window, offset = spread(words)
            first_column = windows.pointers[window] + offset * WORD_COLUMNS
            last_column = windows.pointers[window + 1] - 1
            index = first_column[:, None] + np.arange(WORD_COLUMNS)
            index = np.minimum(index, last_column[:, None])
            columns = windows.columns[index] if index.size else index.astype(np.int32)
            bits = np.zeros((words.sum(), rows), np.uint32)
            row = np.repeat(np.arange(graph.n_rows), graph.degrees)
            word, bit = np.divmod(windows.edge_to_column.astype(np.uint32), WORD_COLUMNS)
            mask_index = first_words[row // rows] + word, row % rows
            np.bitwise_or.at(bits, mask_index, np.uint32(1) << bit)
            return windows, first_words, taken_over(columns), taken_over(bits)

    def split(clock: Stopwatch) -> SharedColumns:
        with clock.step("parts"):
            distinct = np.diff(windows.pointers)
            limit = part_columns or default_part_columns(windows)
            # A part number has 16 bits, so that very large windows need larger parts.
            min_part_words = -(-int(distinct.max(initial=0)) // (MAX_PARTS * WORD_COLUMNS))
            size = max(limit, min_part_words * WORD_COLUMNS)
            parts = np.maximum(-(-distinct // size), 1)
            split_first = np.argsort(parts == 1, kind="stable")
            owner, part = spread(parts[split_first])
            window = split_first[owner]
            first = part * size
            fields = (
                window,
                first_words[window] + first // WORD_COLUMNS,
                np.minimum(distinct[window] - first, size),
                (parts[window] << 16 | part).astype(np.uint32).view(np.int32),
            )
            metadata = np.stack([field.astype(np.int32) for field in fields], axis=1)
            row = np.minimum(window[:, None] * rows + np.arange(rows), graph.n_rows)
            starts = graph.row_pointers[row].astype(np.uint32)
            n_split = int(parts[parts > 1].sum())
            # In a part, a row starts at its first nonzero at or after the part's first column.
            key = (np.repeat(np.arange(graph.n_rows), graph.degrees) << 32) + windows.edge_to_column
            starts[:n_split] = np.searchsorted(key, (row[:n_split] << 32) + first[:n_split, None])
        starts = taken_over(starts)
        return SharedColumns(windows, taken_over(metadata), limit, n_split, starts, columns, bits)

    translation, seconds = graph.store.prepared(f"shared columns of {rows} rows", translate)
    windows, first_words, columns, bits = translation
    key = f"shared columns of {rows} rows, {part_columns}"
    shared, split_seconds = graph.store.prepared(key, split)
    return shared, {**seconds, **split_seconds}


def shared_tiles(pattern: Pattern, shared: SharedColumns, width: int, block_records: int) -> Tiles:
    """Divide windows into tiles of `width` columns, a divisor of 32.

    A thread block computes the tiles of `block_records` consecutive records.
    """
    tiles = window_tiles(pattern, shared.windows, width)
    window, first_word, columns = shared.metadata[:, :3].astype(np.int64).T
    record, offset = spread(-(-columns // width))
    words, n_tiles = shared.windows.blocks(WORD_COLUMNS), shared.windows.blocks(width)
    earlier_words = first_word - (np.cumsum(words) - words)[window]  # of the window's earlier parts
    first_tile = (np.cumsum(n_tiles) - n_tiles)[window] + earlier_words * (WORD_COLUMNS // width)
    block = np.empty_like(tiles.block)
    block[first_tile[record] + offset] = record // block_records
    return replace(tiles, block=taken_over(block))


def default_part_columns(windows: Windows) -> int:
    """Choose the largest number of distinct columns of a part, a multiple of 32."""
    columns = int(windows.columns.size)
    mean = columns // max(len(windows), 1)
    size = min(max(columns // TARGET_PARTS, mean), MAX_MEANS * mean)
    multiple = -(-size // WORD_COLUMNS) * WORD_COLUMNS
    return min(max(multiple, MIN_PART_COLUMNS), MAX_PART_COLUMNS)


def cut_workspace(
    shared: SharedColumns, n_cols: int, tiles: int
) -> dict[str, tuple[int, npt.DTypeLike]]:
    """Return size and dtype of the zeroed workspace in which parts of split windows add up."""
    max_split_windows = max(shared.cut_blocks // 2, 1)  # a split window has at least two parts
    return {
        "cut_sums": (max_split_windows * shared.windows.rows * n_cols, np.float32),
        "arrivals": (max_split_windows * tiles, np.uint32),
    }


def window_workload(
    row_pointers: Longs,
    shared: SharedColumns,
    warp_rows: int,
    block_records: int,
    start: int,
    stop: int,
) -> Workload:
    """Return the workload of thread blocks `start` to `stop` - 1.

    A warp has `warp_rows` rows. A thread block has `block_records` metadata records, either one or
    one per warp. Each row has a workload record for each part that has nonzeros of it; a row
    without nonzeros has one in its window's first part.
    """
    rows, n_rows = shared.windows.rows, row_pointers.size - 1
    first, last = start * block_records, min(stop * block_records, len(shared.metadata))
    metadata = shared.metadata[first:last]
    begin = shared.starts[first:last].astype(np.int64)
    row = metadata[:, :1].astype(np.int64) * rows + np.arange(rows)
    row_begin, row_end = (row_pointers[np.minimum(row + i, n_rows)] for i in (0, 1))
    part, parts = metadata[:, 3:] & 0xFFFF, metadata.view(np.uint32)[:, 3:] >> 16
    # A part ends where the next part starts; the last part ends with the row.
    next_begin = np.full_like(begin, -1)
    next_begin[: len(shared.starts) - first - 1] = shared.starts[first + 1 : last + 1]
    end = np.where(part + 1 < parts, next_begin, row_end)
    has_work = (row < n_rows) & ((end > begin) | (row_begin == row_end) & (part == 0))
    record, row_index = selected = np.nonzero(has_work)
    return Workload(
        block=start + record // block_records,
        warp=row_index // warp_rows + record % block_records,
        row=row[selected],
        nz_start=begin[selected],
        nz_count=end[selected] - begin[selected],
    )
