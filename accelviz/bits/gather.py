"""The rival that stays sparse: sums of neighbors' features of 8 or 4 bits, in 32-bit numbers.

A dense product of bits multiplies every pair of nodes; this reads a row of X for each edge, a
quarter or an eighth of the bytes of float32. Which is faster is a matter of the density.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.bits import devices
from accelviz.bits.product import MOST_SUM
from accelviz.bits.tensor import padded
from accelviz.datasets import load_graph
from accelviz.devices import Device, find_device
from accelviz.devices.base import on_host
from accelviz.errors import ArgumentError, checked_integer
from accelviz.plans import Call, KernelSpec, LaunchConfig, Plan
from accelviz.strategies import find_strategy

#: Bits of a number that a row can have, and bytes that a lane loads.
ROW_BITS, VECTOR_BYTES = (8, 4), 16
#: Nibbles that add up in a byte.
_MOST_AT_ONCE = 17


@dataclass(frozen=True, eq=False)
class LowBitRows:
    """A matrix of whole numbers of 8 or 4 bits, row after row.

    Attributes
    ----------
    words : array of uint32, shape (rows, words)
        The first number in the lowest bits; rows are padded to 16 bytes. On the host, or of CuPy.
    shape : tuple of two int
    bits : int
    """

    words: Any
    shape: tuple[int, int]
    bits: int

    def levels(self) -> npt.NDArray[np.int32]:
        """Return the whole numbers, int32, shape (rows, columns)."""
        words = self.words if isinstance(self.words, np.ndarray) else self.words.get()
        shifts = np.arange(0, 32, self.bits, dtype=np.uint32)
        found = words[:, :, None] >> shifts & np.uint32((1 << self.bits) - 1)
        return found.reshape(len(words), -1)[:, : self.shape[1]].astype(np.int32)


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
    found = on_host("numbers", numbers)
    if bits not in ROW_BITS:
        raise ArgumentError("bits", f"got {bits!r}", "8 or 4")
    if found.ndim != 2 or found.dtype.kind not in "biu":
        raise ArgumentError("numbers", f"{found.ndim}-D of {found.dtype}", "a matrix of integers")
    if found.size and (found.min() < 0 or int(found.max()) >> bits):
        what = f"{found.min()} to {found.max()}"
        raise ArgumentError("numbers", what, f"0 to {(1 << bits) - 1}, which {bits} bits hold")
    wide = np.zeros((found.shape[0], padded(found.shape[1], VECTOR_BYTES * 8 // bits)), np.uint8)
    wide[:, : found.shape[1]] = found
    rows = wide if bits == 8 else wide[:, ::2] | np.uint8(16) * wide[:, 1::2]
    return LowBitRows(np.ascontiguousarray(rows).view("<u4"), found.shape, bits)


def _checked_rows(X: Any) -> None:
    if not isinstance(X, LowBitRows):
        raise ArgumentError("X", f"got a {type(X).__name__}", "what pack_rows returns")


class Gather:
    """A plan of the sums of neighbors' rows, by the blocks of `lane_groups`.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
        Its pattern; weights are not used.
    columns : int
    bits : {8, 4}

    Attributes
    ----------
    blocks : Plan
        That of `lane_groups` for rows of float32 that have as many bytes: what it cuts, this cuts.
    calls : tuple of Call
        Clearing what several blocks add to, where there is such a row, and the sums.
    """

    def __init__(self, graph: Any, columns: int, bits: int) -> None:
        if bits not in ROW_BITS:
            raise ArgumentError("bits", f"got {bits!r}", "8 or 4")
        columns = checked_integer("columns", columns, error=ArgumentError)
        graph = load_graph(graph)
        most = int(graph.degrees.max(initial=0)) * ((1 << bits) - 1)
        if most > MOST_SUM:
            raise ArgumentError("graph", f"its sums could reach {most:,}", f"at most {MOST_SUM:,}")
        self.graph, self.columns, self.bits = graph, columns, bits
        self.vectors = max(padded(columns * bits, VECTOR_BYTES * 8) // (VECTOR_BYTES * 8), 1)
        strategy = find_strategy("lane_groups", "spmm")
        self.blocks: Plan = strategy.plan(graph, 4 * self.vectors, stage=True)
        kernel = self.blocks.kernel
        assert kernel is not None
        names = ("lanes", "lane_vectors", "groups", "block_threads", "deg_bound", "staged")
        config = {name: kernel.config[name] for name in (*names, "info_field_bits")}
        config |= {"bits": bits, "at_once": min(kernel.config["at_once"], _MOST_AT_ONCE)}
        rest = ["metadata", "output_rows", "columns", "X", "Y", "row_vectors", "n_cols"]
        launch = self.blocks.launch
        own = LaunchConfig(launch.grid, launch.warps_per_block)
        calls = [Call(own, KernelSpec("bits/gather.cu", "gather", config, tuple(rest)))]
        degrees = np.asarray(self.blocks.arrays["metadata"])[:, 0]
        cut = int((degrees > config["deg_bound"]).sum())
        if cut:
            few = LaunchConfig((cut, 1, 1), launch.warps_per_block)
            clear = ("metadata", "output_rows", "Y", "n_cols")
            calls.insert(0, Call(few, KernelSpec("bits/gather.cu", "clear", config, clear)))
        self.calls = tuple(calls)

    def arguments(self, X: LowBitRows, device: Device) -> dict[str, Any]:
        """Return what the kernels take by name, a new output among it.

        Raises
        ------
        ArgumentError
            If X has other rows, columns or bits.
        """
        _checked_rows(X)
        wanted = self.graph.shape[1], self.columns
        if X.shape != wanted or X.bits != self.bits:
            what = f"{X.shape[0]:,} x {X.shape[1]:,} of {X.bits} bits"
            raise ArgumentError("X", what, f"{wanted[0]:,} x {wanted[1]:,} of {self.bits} bits")
        out = device.empty((self.graph.n_rows, self.columns), np.int32)
        arrays = {name: self.blocks.arrays[name] for name in ("metadata", "output_rows", "columns")}
        sizes = {"row_vectors": self.vectors, "n_cols": self.columns}
        return {**arrays, "X": X.words, "Y": out, **sizes}

    def run(self, X: LowBitRows, device: str = "auto") -> Any:
        """Add up; return int32, shape (rows, columns)."""
        _checked_rows(X)
        chosen = devices.chosen(device, X.words)
        if chosen.name == "cpu":
            self.arguments(X, chosen)
            return self._matrix @ X.levels()
        arguments = chosen.arguments(self.arguments(X, chosen))
        self._launch(chosen, arguments)
        return arguments["Y"]

    def _launch(self, device: Device, arguments: dict[str, Any]) -> None:
        for call in self.calls:
            assert call.kernel is not None
            device.launch(call, {name: arguments[name] for name in call.kernel.arguments})

    @cached_property
    def _matrix(self) -> Any:
        found = self.graph.adjacency.astype(np.int32)
        found.data[:] = 1
        return found

    def seconds(
        self, X: LowBitRows, repeats: int = 20, warmup: int = 3, *, cold: bool = False
    ) -> npt.NDArray[np.float64]:
        """Time runs on the GPU, operands and result in place; seconds, shape (repeats,)."""
        gpu = find_device("cuda")
        arguments = gpu.arguments(self.arguments(X, gpu))
        return gpu.seconds(lambda: self._launch(gpu, arguments), repeats, warmup, cold=cold)
