"""Which filters read the same channels, and where the channels of each lie, as kernels read it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accelviz.arrays import Ints
from accelviz.graph import Graph, Pattern, taken_over
from accelviz.strategies.blocks import prepared


@dataclass(frozen=True, eq=False)
class DistinctWindows:
    """The distinct windows of channels of a pattern, in the order in which filters need them.

    Of sliding channels there are as many as Algorithm 7's cyclic distance, and filter `o` reads
    window `o` modulo that.

    Attributes
    ----------
    of_filter : array of int32, shape (filters,)
    pointers : array of int32, shape (windows + 1,)
        Where the runs of each window begin in `runs`.
    runs : array of int32, shape (runs, 2)
        First channel and count of consecutive ones; a window that goes round has two.
    channels : array of int32
        The channels of all windows, one window after the other.
    starts : array of int32, shape (windows + 1,)
        Where those of each begin.
    """

    of_filter: Ints
    pointers: Ints
    runs: Ints
    channels: Ints
    starts: Ints

    def __len__(self) -> int:
        return self.pointers.size - 1


def distinct_windows(pattern: Pattern) -> DistinctWindows:
    """Find the rows of a pattern that have the same columns."""
    pointers, columns = pattern.row_pointers.tolist(), pattern.column_indices
    known: dict[bytes, int] = {}
    of_filter = np.empty(pattern.n_rows, np.int32)
    windows: list[Ints] = []
    for row in range(pattern.n_rows):
        window = columns[pointers[row] : pointers[row + 1]]
        number = known.setdefault(window.tobytes(), len(known))
        if number == len(windows):
            windows.append(window)
        of_filter[row] = number
    channels = np.concatenate([*windows, np.empty(0, np.int32)]).astype(np.int32)
    starts = np.cumsum([0, *map(len, windows)], dtype=np.int32)
    begins = np.ones(channels.size, bool)
    begins[1:] = np.diff(channels) != 1
    begins[starts[:-1][np.diff(starts) > 0]] = True
    first = np.flatnonzero(begins)
    counts = np.diff(np.append(first, channels.size))
    runs = np.stack([channels[first], counts], axis=1).astype(np.int32)
    arrays = of_filter, np.searchsorted(first, starts).astype(np.int32), runs, channels, starts
    return DistinctWindows(*(taken_over(array) for array in arrays))


def prepared_windows(graph: Graph) -> tuple[DistinctWindows, dict[str, float]]:
    """Find them once for a graph, with the seconds that it took."""
    pattern = graph.pattern
    return prepared(graph, "distinct windows", "channel map", lambda: distinct_windows(pattern))
