"""Windows as our own kernels read them: distinct columns 32 to a word, and bits for each row.

For each row and word, 32 bits say which of the word's columns the row has. A row's nonzeros are
then found in the order of the matrix itself, so that values need no order of their own: the
position of one is the row's first in the block plus the bits set before it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Ints, Longs
from accelviz.errors import PartitionError
from accelviz.graph import Graph, Pattern
from accelviz.partition.windows import Windows, row_windows, window_tiles
from accelviz.store import Stopwatch
from accelviz.tiles import Tiles
from accelviz.workload import Workload, spread

#: Columns whose bits a word holds.
WORD_COLUMNS = 32
#: The rule, within bounds: columns enough for 1,024 parts, which keep a GPU busy, but no less than
#: the mean of a window and no more than eight times it. Parts meet by atomics, one for each row and
#: column of X: on an H200 windows cut in two where there was no need took 2.1 to 3.6 times as long.
LEAST_PART, MOST_PART = 256, 2048
ENOUGH_PARTS, MEANS = 1 << 10, 8
#: Parts of a window are numbered in 16 bits, positions of nonzeros in 32.
MOST_PARTS, MOST_NONZEROS = (1 << 16) - 1, (1 << 32) - 1


@dataclass(frozen=True, eq=False)
class SharedColumns:
    """The windows of a graph, cut into blocks.

    Attributes
    ----------
    windows : Windows
    metadata : array of int32, shape (blocks, 4)
        Of each block its window, its first word, its distinct columns, and the parts of the window
        times 2^16 plus the number of this one. Parts of cut windows come first.
    part_columns : int
        Most distinct columns of a block.
    cut_blocks : int
        How many of the blocks are parts of cut windows.
    starts : array of uint32, shape (blocks, rows)
        Position of the first nonzero that each row has in the block.
    columns : array of int32, shape (words, 32)
        The distinct columns; a window's last one fills up its last word.
    bits : array of uint32, shape (words, rows)
        Bit j is set where the row has column j of the word.
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
    """Translate a graph into windows of `rows` rows, and split those of many columns; kept.

    A part has at most `part_columns` distinct columns, a multiple of 32; None is for the rule.
    Returned as well is what that took, step by step.

    Raises
    ------
    PartitionError
        If there are 2^32 nonzeros or more.
    """
    if graph.nnz > MOST_NONZEROS:
        raise PartitionError("graph", f"{graph.nnz:,} nonzeros", f"at most {MOST_NONZEROS:,}")

    def translate(clock: Stopwatch) -> tuple[Windows, Longs, Ints, Any]:
        with clock.step("sparse graph translation"):
            windows = row_windows(graph, rows)
        with clock.step("words"):
            words = windows.blocks(WORD_COLUMNS)
            window, offset = spread(words)
            index = windows.pointers[window] + offset * WORD_COLUMNS
            index = np.minimum(
                index[:, None] + np.arange(WORD_COLUMNS), windows.pointers[window + 1][:, None] - 1
            )
            first_words = np.append(0, np.cumsum(words))
            bits = np.zeros((words.sum(), rows), np.uint32)
            row = np.repeat(np.arange(graph.n_rows), graph.degrees)
            word, bit = np.divmod(windows.edge_to_column.astype(np.uint32), WORD_COLUMNS)
            where = first_words[row // rows] + word, row % rows
            np.bitwise_or.at(bits, where, np.uint32(1) << bit)
            columns = windows.columns[index] if index.size else index.astype(np.int32)
            return windows, first_words, columns, bits

    def cut(clock: Stopwatch) -> SharedColumns:
        with clock.step("parts"):
            distinct = np.diff(windows.pointers)
            wanted = part_columns or chosen_part(windows)
            least = -(-int(distinct.max(initial=0)) // (MOST_PARTS * WORD_COLUMNS))
            most = max(wanted, least * WORD_COLUMNS)
            parts = np.maximum(-(-distinct // most), 1)
            cut_first = np.argsort(parts == 1, kind="stable")
            owner, number = spread(parts[cut_first])
            window = cut_first[owner]
            first = number * most
            words = (
                window,
                first_words[window] + first // WORD_COLUMNS,
                np.minimum(distinct[window] - first, most),
                (parts[window] << 16 | number).astype(np.uint32).view(np.int32),
            )
            row = np.minimum(window[:, None] * rows + np.arange(rows), graph.n_rows)
            starts = graph.row_pointers[row].astype(np.uint32)
            n_cut = int(parts[parts > 1].sum())
            # Parts of cut windows begin at the first nonzero at or beyond their first column.
            key = (np.repeat(np.arange(graph.n_rows), graph.degrees) << 32) + windows.edge_to_column
            starts[:n_cut] = np.searchsorted(key, (row[:n_cut] << 32) + first[:n_cut, None])
            metadata = np.stack([word.astype(np.int32) for word in words], axis=1)
        for array in (metadata, starts, columns, bits):
            array.setflags(write=False)
        return SharedColumns(windows, metadata, wanted, n_cut, starts, columns, bits)

    translation, seconds = graph.store.prepared(f"shared columns of {rows} rows", translate)
    windows, first_words, columns, bits = translation
    shared, more = graph.store.prepared(f"shared columns of {rows} rows, {part_columns}", cut)
    return shared, {**seconds, **more}


def shared_tiles(pattern: Pattern, shared: SharedColumns, width: int, block_records: int) -> Tiles:
    """Divide windows into tiles of `width` columns, a divisor of 32, and tell each one's block.

    A block of the launch has `block_records` records of the metadata.
    """
    tiles = window_tiles(pattern, shared.windows, width)
    window, first_word, columns = shared.metadata[:, :3].astype(np.int64).T
    line, offset = spread(-(-columns // width))
    words, blocks = shared.windows.blocks(WORD_COLUMNS), shared.windows.blocks(width)
    begun = first_word - (np.cumsum(words) - words)[window]  # words of earlier parts
    first = (np.cumsum(blocks) - blocks)[window] + begun * (WORD_COLUMNS // width)
    block = np.empty_like(tiles.block)
    block[first[line] + offset] = line // block_records
    block.setflags(write=False)
    return replace(tiles, block=block)


def chosen_part(windows: Windows) -> int:
    """Choose the most distinct columns of a part, a multiple of 32, by the rule."""
    columns = int(windows.columns.size)
    mean = columns // max(len(windows), 1)
    wanted = min(max(columns // ENOUGH_PARTS, mean), MEANS * mean)
    return min(max(-(-wanted // WORD_COLUMNS) * WORD_COLUMNS, LEAST_PART), MOST_PART)


def cut_workspace(
    shared: SharedColumns, n_cols: int, tiles: int
) -> dict[str, tuple[int, npt.DTypeLike]]:
    """Return the zeroed workspace in which the parts of a cut window meet, two or more of each."""
    places = max(shared.cut_blocks // 2, 1)
    return {
        "cut_sums": (places * shared.windows.rows * n_cols, np.float32),
        "arrivals": (places * tiles, np.uint32),
    }


def window_workload(
    row_pointers: Longs,
    shared: SharedColumns,
    warp_rows: int,
    block_records: int,
    start: int,
    stop: int,
) -> Workload:
    """Spell out which warp has which nonzeros in blocks `start` to `stop` - 1.

    A warp has `warp_rows` rows. A block of the launch has `block_records` records of the metadata,
    a warp each, or one. There is a record for each row and block with nonzeros, and one for each
    row without.
    """
    rows, n_rows = shared.windows.rows, row_pointers.size - 1
    first, last = start * block_records, min(stop * block_records, len(shared.metadata))
    metadata = shared.metadata[first:last]
    begin = shared.starts[first:last].astype(np.int64)
    row = metadata[:, :1].astype(np.int64) * rows + np.arange(rows)
    row_begin, row_end = (row_pointers[np.minimum(row + i, n_rows)] for i in (0, 1))
    number, parts = metadata[:, 3:] & 0xFFFF, metadata.view(np.uint32)[:, 3:] >> 16
    # A part ends where the next line begins, the last one with its row.
    after = np.full_like(begin, -1)
    after[: len(shared.starts) - first - 1] = shared.starts[first + 1 : last + 1]
    end = np.where(number + 1 < parts, after, row_end)
    has_work = (row < n_rows) & ((end > begin) | (row_begin == row_end) & (number == 0))
    line, row_index = selected = np.nonzero(has_work)
    warp = row_index // warp_rows + line % block_records
    return Workload(
        start + line // block_records,
        warp,
        row[selected],
        begin[selected],
        end[selected] - begin[selected],
    )
