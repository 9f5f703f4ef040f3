"""Which input channels each filter of a sliding-channel convolution reads (chapter 6)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.errors import ArgumentError, checked_integer, is_number
from accelviz.graph import Graph, taken_over


@dataclass(frozen=True)
class ChannelMap:
    """SCC-cgX-coY%: filters read windows of neighboring channels that overlap and go round.

    Parameters
    ----------
    in_channels, out_channels : int
    groups : int
        The chapter's cg, a divisor of `in_channels`: a filter reads `in_channels / groups` of them.
    overlap : float
        The chapter's co: the share of its channels that a filter has in common with the one before,
        0 to 1.

    Raises
    ------
    ArgumentError
        If one of them is out of range.

    Notes
    -----
    `groups=1` is a pointwise convolution. `overlap=0` has the windows of a grouped pointwise one,
    but dealt out in turns: filter `o` reads group `o` modulo `groups`.

    Two faults of Algorithm 7 are mended here, and `algorithm_7` shows them. It cuts the overlap off
    to whole channels, so that a third of 3 channels is none; here it is rounded, and a positive one
    is at least a channel. And a window that ends with the last channel ends at 0 there, so that
    with one group the second window is (0, 0).
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
        """As the chapter writes it: SCC-cg2-co50%."""
        return f"SCC-cg{self.groups}-co{self.overlap:.0%}"

    @property
    def width(self) -> int:
        """Channels that a filter reads."""
        return self.in_channels // self.groups

    @property
    def step(self) -> int:
        """Channels from the first of a filter to the first of the next."""
        shared = math.floor(self.overlap * self.width + 0.5)
        return self.width - (max(1, shared) if self.overlap else 0)

    @property
    def cyclic_distance(self) -> int:
        """How many filters later the same window comes again: the number of distinct windows."""
        return min(self.in_channels // math.gcd(self.in_channels, self.step), self.out_channels)

    @property
    def parameters(self) -> int:
        """Weights of all filters."""
        return self.out_channels * self.width

    def flops(self, pixels: int) -> int:
        """Return the multiplications for so many pixels, as the chapters count: one with its add.

        Parameters
        ----------
        pixels : int
            Of all images: N x H x W.

        Raises
        ------
        ArgumentError
            If they are no integer of at least 0.
        """
        pixels = checked_integer("pixels", pixels, least=0, error=ArgumentError)
        return pixels * self.parameters

    @cached_property
    def windows(self) -> npt.NDArray[np.int32]:
        """The channels that each filter reads, in the window's order, (out_channels, width)."""
        start = np.arange(self.out_channels, dtype=np.int64) * self.step
        channels = (start[:, None] + np.arange(self.width)) % self.in_channels
        return taken_over(channels.astype(np.int32))

    @cached_property
    def _order(self) -> npt.NDArray[np.int64]:
        """The weight, all filters' flat, that each nonzero of the graph has."""
        filters = np.arange(self.out_channels)[:, None] * self.width
        return taken_over((filters + np.argsort(self.windows, axis=1)).ravel())

    @cached_property
    def graph(self) -> Graph:
        """The pattern as a matrix of filters by channels, all weights 1; for `accelviz.plan`."""
        pointers = np.arange(self.out_channels + 1, dtype=np.int64) * self.width
        columns, ones = self.windows.ravel()[self._order], np.ones(self.parameters, np.float32)
        shape = self.out_channels, self.in_channels
        name = f"{self.name} {self.in_channels} to {self.out_channels}"
        arrays = taken_over(pointers), taken_over(columns), taken_over(ones)
        return Graph(*arrays, shape, name, source="sliding channels")

    def values(self, weights: Any) -> Any:
        """Bring weights of shape (out_channels, width) into the graph's order, (nnz,).

        Parameters
        ----------
        weights : array
            Of NumPy or CuPy; weight `k` of a filter belongs to channel `windows[filter, k]`.

        Raises
        ------
        ArgumentError
            If they have another shape.
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
        """Bring values in the graph's order back into shape (out_channels, width)."""
        return values[np.argsort(self._order)].reshape(self.out_channels, self.width)

    def dense(self, weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the masked dense matrix, (out_channels, in_channels); raises as `values`."""
        self._check(weights)
        matrix = np.zeros((self.out_channels, self.in_channels), weights.dtype)
        np.put_along_axis(matrix, self.windows.astype(np.int64), weights, axis=1)
        return matrix


def algorithm_7(
    in_channels: int, out_channels: int, groups: int, overlap: float
) -> list[tuple[int, int]]:
    """Return the channel map that Algorithm 7 of the thesis makes as it is printed, faults and all.

    Returns
    -------
    list of (int, int)
        First channel and end of each distinct window; as many as the cyclic distance.

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
