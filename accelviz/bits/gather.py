"""The rival that stays sparse: sums of neighbors' features of 8 or 4 bits, in 32-bit numbers.

A dense product of bits multiplies every pair of nodes; this reads a row of X for each edge, a
quarter or an eighth of the bytes of float32. Which is faster is a matter of the density.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Ints
from accelviz.datasets import load_graph
from accelviz.devices import choose, find_device
from accelviz.devices.base import ready
from accelviz.devices.choice import owner
from accelviz.devices.operands import on_host
from accelviz.errors import ArgumentError, checked_integer, checked_type
from accelviz.strategies.bits.lane_groups import LaneGroups
from accelviz.strategies.bits.packing import ROW_BITS, check_numbers, row_levels, row_words


@dataclass(frozen=True, eq=False)
class LowBitRows:
    """A matrix of whole numbers of 8 or 4 bits, row after row.

    Attributes
    ----------
    words : array of uint32, shape (rows, words)
        The first number in the lowest bits; rows are padded to 16 bytes. On the host or a device.
    shape : tuple of two int
    bits : int
    """

    words: Any
    shape: tuple[int, int]
    bits: int

    def levels(self) -> Ints:
        """Return the whole numbers, int32, shape (rows, columns)."""
        holder = owner(self.words)
        words = self.words if holder is None else holder.to_host(self.words)
        return row_levels(words, self.bits)[:, : self.shape[1]]


def _check_bits(bits: int) -> None:
    if bits not in ROW_BITS:
        raise ArgumentError("bits", f"got {bits!r}", "8 or 4")


def pack_rows(numbers: Any, bits: int) -> LowBitRows:
    """Pack whole numbers row by row.

    Parameters
    ----------
    numbers : array of integers, shape (rows, columns)
        From 0 to 2^bits - 1.
    bits : {8, 4}

    Raises
    ------
    ArgumentError
        If `bits` is another number, or a number has more.
    """
    levels = on_host("numbers", numbers)
    _check_bits(bits)
    check_numbers(levels, bits)
    rows, columns = levels.shape
    wide = np.zeros((rows, 32 // bits * row_words(columns, bits)), np.uint8)
    wide[:, :columns] = levels
    narrow = wide if bits == 8 else wide[:, ::2] | np.uint8(16) * wide[:, 1::2]
    words = np.ascontiguousarray(narrow).view("<u4").astype(np.uint32, copy=False)
    return LowBitRows(words, levels.shape, bits)


class Gather:
    """The sums of neighbors' rows, by the blocks of `lane_groups`.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
        Its pattern; weights are not used.
    columns : int
    bits : {8, 4}

    Attributes
    ----------
    plan : Plan
        Of the operation `bit_spmm_8` or `bit_spmm_4`.
    """

    def __init__(self, graph: Any, columns: int, bits: int) -> None:
        _check_bits(bits)
        columns = checked_integer("columns", columns, error=ArgumentError)
        self.bits = bits
        self.plan = LaneGroups(bits).plan(load_graph(graph), columns)

    def _words(self, X: LowBitRows) -> dict[str, Any]:
        checked_type("X", X, LowBitRows, "what pack_rows returns")
        shape = self.plan.pattern.shape[1], self.plan.n_cols
        if X.shape != shape or X.bits != self.bits:
            problem = f"{X.shape[0]:,} x {X.shape[1]:,} of {X.bits} bits"
            raise ArgumentError("X", problem, f"{shape[0]:,} x {shape[1]:,} of {self.bits} bits")
        return {"X": X.words}

    def run(self, X: LowBitRows, device: str = "auto") -> Any:
        """Add up; return int32, shape (rows, columns).

        Raises
        ------
        ArgumentError
            If X has other rows, columns or bits.
        """
        operands = self._words(X)
        return ready(self.plan, choose(device, operands.values(), self.plan)).run(operands)["Y"]

    def seconds(
        self, X: LowBitRows, repeats: int = 20, warmup: int = 3, *, cold: bool = False
    ) -> npt.NDArray[np.float64]:
        """Time runs on the GPU, operands and result in place; seconds, shape (repeats,)."""
        on_gpu = ready(self.plan, find_device("cuda"))
        return on_gpu.seconds(self._words(X), repeats, warmup, cold=cold)
