"""The channel map of a sliding-channel convolution (SCC): chapter 6 of the thesis, DSXplore.

A filter reads a window of neighboring input channels. The window of the next filter starts some
channels later and overlaps it; after the last channel a window continues at channel 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.errors import ArgumentError, checked_integer, is_number
from accelviz.graph import Graph
from accelviz.immutable import taken_over


@dataclass(frozen=True)
class ChannelMap:
    """The input channels that each filter reads; SCC-cgX-coY% in the chapter.

    Parameters
    ----------
    in_channels, out_channels : int
    groups : int
        The chapter's cg, a divisor of `in_channels`. A window has `in_channels / groups` channels.
    overlap : float
        The chapter's co, 0 to 1: the share of a window's channels that are also in the window of
        the previous filter.

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    Notes
    -----
    `groups=1` is a pointwise convolution. `overlap=0` has the windows of a grouped pointwise
    convolution, but filter `o` reads group `o % groups`.

    Two faults of Algorithm 7 are corrected here; `algorithm_7` reproduces them. The algorithm
    truncates the overlap to whole channels, so that a third of 3 channels becomes 0 channels; here
    the overlap is rounded, and is at least one channel if it is positive. In the algorithm a window
    that ends with the last channel has end 0, so that with one group the second window is (0, 0).
    """

    in_channels: int
    out_channels: int
    groups: int = 1
    overlap: float = 0.0

    def __post_init__(self) -> None:
        for name in ("in_channels", "out_channels", "groups"):
            checked_integer(name, getattr(self, name), error=ArgumentError)
        if self.in_channels % self.groups:
            expected = f"a divisor of in_channels, which are {self.in_channels}"
            raise ArgumentError("groups", f"got {self.groups}", expected)
        if not (is_number(self.overlap) and 0 <= self.overlap <= 1):
            raise ArgumentError("overlap", f"got {self.overlap!r}", "a share from 0 to 1")

    @property
    def name(self) -> str:
        """The chapter's notation, such as SCC-cg2-co50%."""
        return f"SCC-cg{self.groups}-co{self.overlap:.0%}"

    @property
    def width(self) -> int:
        """Number of channels of a window."""
        return self.in_channels // self.groups

    @property
    def step(self) -> int:
        """Channels between the starts of consecutive windows."""
        shared = math.floor(self.overlap * self.width + 0.5)
        return self.width - (max(1, shared) if self.overlap else 0)

    @property
    def cyclic_distance(self) -> int:
        """Number of distinct windows: filter `o` and `o + cyclic_distance` read the same one."""
        return min(self.in_channels // math.gcd(self.in_channels, self.step), self.out_channels)

    @property
    def parameters(self) -> int:
        """Number of weights of all filters."""
        return self.out_channels * self.width

    def flops(self, pixels: int) -> int:
        """Return the number of multiply-adds, which the chapters call FLOPs.

        Parameters
        ----------
        pixels : int
            Pixels of all images, N x H x W, at least 0.

        Raises
        ------
        ArgumentError
            If `pixels` is not such an integer.
        """
        pixels = checked_integer("pixels", pixels, least=0, error=ArgumentError)
        return pixels * self.parameters

    @cached_property
    def windows(self) -> npt.NDArray[np.int32]:
        """Channels that each filter reads, in the window's order, (out_channels, width)."""
        start = np.arange(self.out_channels, dtype=np.int64) * self.step
        channels = (start[:, None] + np.arange(self.width)) % self.in_channels
        return taken_over(channels.astype(np.int32))

    @cached_property
    def _order(self) -> npt.NDArray[np.int64]:
        """Index of each nonzero's weight in the flat array of weights, (nnz,)."""
        filters = np.arange(self.out_channels)[:, None] * self.width
        return taken_over((filters + np.argsort(self.windows, axis=1)).ravel())

    @cached_property
    def graph(self) -> Graph:
        """Matrix (out_channels, in_channels) with 1 at the channels that a filter reads."""
        pointers = np.arange(self.out_channels + 1, dtype=np.int64) * self.width
        columns, ones = self.windows.ravel()[self._order], np.ones(self.parameters, np.float32)
        shape = self.out_channels, self.in_channels
        name = f"{self.name} {self.in_channels} to {self.out_channels}"
        arrays = taken_over(pointers), taken_over(columns), taken_over(ones)
        return Graph(*arrays, shape, name, source="sliding channels")

    def values(self, weights: Any) -> Any:
        """Return weights in the order of the graph's nonzeros, shape (nnz,).

        Parameters
        ----------
        weights : NumPy or CuPy array, shape (out_channels, width)
            Weight `k` of filter `o` belongs to channel `windows[o, k]`.

        Raises
        ------
        ArgumentError
            If the weights have another shape.
        """
        self._check(weights)
        return weights.ravel()[self._order]

    def _check(self, weights: Any) -> None:
        shape = (self.out_channels, self.width)
        if tuple(weights.shape) != shape:
            problem = f"shape {tuple(weights.shape)} for {self.name}"
            expected = f"shape {shape}: filters, channels of a window"
            raise ArgumentError("weights", problem, expected)

    def weights(self, values: Any) -> Any:
        """Return values in the graph's order as weights, (out_channels, width)."""
        return values[np.argsort(self._order)].reshape(self.out_channels, self.width)

    def dense(self, weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return weights as a dense matrix, (out_channels, in_channels); raises as `values`."""
        self._check(weights)
        matrix = np.zeros((self.out_channels, self.in_channels), weights.dtype)
        np.put_along_axis(matrix, self.windows.astype(np.int64), weights, axis=1)
        return matrix


def algorithm_7(
    in_channels: int, out_channels: int, groups: int, overlap: float
) -> list[tuple[int, int]]:
    """Return the channel map of Algorithm 7 of the thesis as printed, with its faults.

    Returns
    -------
    list of (int, int)
        First channel and end (exclusive) of each distinct window.

    Raises
    ------
    ArgumentError
        As `ChannelMap` does.
    """
    ChannelMap(in_channels, out_channels, groups, overlap)
    end = width = in_channels // groups
    windows = [(0, width)]
    for _ in range(1, out_channels):
        start = end - int(overlap * width)
        end = start + width
        window = start % in_channels, end % in_channels
        if window in windows:
            break
        windows.append(window)
    return windows
