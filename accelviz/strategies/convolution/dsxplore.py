"""DSXplore (chapter 6 of the thesis) and its baselines: one thread per pixel of a channel.

The window of a filter is the set of channels that it reads. Filters can have equal windows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from accelviz.arrays import Ints
from accelviz.errors import PartitionError
from accelviz.graph import MAX_SIDE, Graph, Pattern
from accelviz.immutable import taken_over
from accelviz.ordering import RowDegrees
from accelviz.partition.row_split import RowSplit, row_workload
from accelviz.plans import Description, Settings, Strategy, Widths, WorkerLanes, setting
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance
from accelviz.strategies.blocks import block_threads_setting, prepare_once
from accelviz.strategies.convolution.operation import SCC, SCC_GRADIENT


@dataclass(frozen=True, eq=False)
class DistinctWindows:
    """The distinct windows of a pattern, numbered in the order in which filters first have them.

    Sliding channels have as many distinct windows as Algorithm 7's cyclic distance d, and filter
    `o` has window `o` modulo d.

    Attributes
    ----------
    of_filter : array of int32, shape (filters,)
        Window of each filter.
    pointers : array of int32, shape (windows + 1,)
        Position in `runs` of each window's first run.
    runs : array of int32, shape (runs, 2)
        First channel and number of consecutive channels. A window that wraps around has two runs.
    channels : array of int32
        Channels of all windows, window by window.
    starts : array of int32, shape (windows + 1,)
        Position in `channels` of each window's first channel.
    """

    of_filter: Ints
    pointers: Ints
    runs: Ints
    channels: Ints
    starts: Ints

    def __len__(self) -> int:
        return self.pointers.size - 1


def distinct_windows(pattern: Pattern) -> DistinctWindows:
    """Return the distinct windows of a pattern: its distinct sets of columns of a row."""
    pointers, columns = pattern.row_pointers.tolist(), pattern.column_indices
    numbers: dict[bytes, int] = {}
    of_filter = np.empty(pattern.n_rows, np.int32)
    windows: list[Ints] = []
    for row in range(pattern.n_rows):
        window = columns[pointers[row] : pointers[row + 1]]
        number = numbers.setdefault(window.tobytes(), len(numbers))
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
    """Return a graph's distinct windows, stored in the graph, and the seconds by step."""
    pattern = graph.pattern
    return prepare_once(graph, "distinct windows", "channel map", lambda: distinct_windows(pattern))


_SIZES = ("n_rows", "n_channels", "images", "n_cols")


class BlockSize(Settings):
    """`block_size`: threads per block, a multiple of 32 up to 1,024."""

    block_size: int = block_threads_setting(256, 64, 128, 256, 512)


class StackSettings(BlockSize):
    """`block_size`, and `cyclic`: whether equal windows are copied once."""

    cyclic: int = setting(0, "copy equal windows once", choices=(0, 1), tries=(0, 1))


def _pixels(widths: Widths) -> int:
    return widths["images"] * widths["n_cols"]


class _PlaneByPlane(Strategy):
    """Base class: one thread per pixel of a plane, which is one filter's or channel's feature map.

    The workload's blocks are filters or channels.
    """

    operation = SCC
    worker = "block"
    Settings = BlockSize

    def describe(self, settings: BlockSize, rows: RowDegrees, widths: Widths) -> Description:
        """Describe a row split with one filter per block."""
        return self._described(settings)

    def _described(self, settings: BlockSize, atomics: int = 0) -> Description:
        block_size = settings.block_size
        workers = WorkerLanes(block_size, block_size // WARP_SIZE)
        return Description(RowSplit(1, 1, atomics), workers=workers)

    def _planes_plan(
        self,
        graph: Graph,
        widths: Widths,
        settings: BlockSize,
        calls: tuple[tuple[str, str, int, tuple[str, ...]], ...],
        arrays: dict[str, Any],
        *,
        transposed: Graph | None = None,
        main: int = 0,
        seconds: dict[str, float] | None = None,
        copies: dict[str, int] | None = None,
        zero_outputs: tuple[str, ...] | None = (),
        then: tuple[Plan, ...] = (),
    ) -> Plan:
        """Plan calls (file, entry, planes, arguments); a block has `block_size` pixels of a plane.

        `transposed` is the transposed graph if the main call walks it; `copies` has the number of
        planes of each workspace.

        Raises
        ------
        PartitionError
            If there are 2^31 nonzeros or more, or too many pixels for a grid.
        """
        if graph.nnz > MAX_SIDE:
            raise PartitionError("graph", f"{graph.nnz:,} weights", f"at most {MAX_SIDE:,}")
        walked, block_size, pixels = transposed or graph, settings.block_size, _pixels(widths)
        sizes = *graph.shape, widths["images"], widths["n_cols"]
        config, launches = {"block_threads": block_size}, []
        for file, entry, planes, arguments in calls:
            kernel = KernelSpec(f"convolution/{file}.cu", entry, config, arguments)
            grid = (planes, -(-pixels // block_size), 1)
            launches.append(Call(LaunchConfig(grid, block_size // WARP_SIZE), kernel))
        workspace = {name: (pixels * n, np.float32) for name, n in (copies or {}).items()}
        return Plan(
            Layout(
                graph.pattern,
                partial(row_workload, walked.row_pointers, 1, 1),
                walked.pattern,
                workers_per_block=1,
                main=main,
            ),
            tuple(launches),
            Buffers(
                arrays | dict(zip(_SIZES, map(np.int32, sizes), strict=True)),
                workspace=workspace,
                zero_outputs=zero_outputs,
            ),
            Provenance(self, graph.values, widths, settings, seconds or {}),
            then,
        )


class Dsxplore(_PlaneByPlane):
    """One thread per pixel of an output channel (section 6.4.2, output-centric forward pass)."""

    name = "dsxplore"
    summary = "output-centric: a thread per pixel of an output channel, which walks its window"

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Find the distinct windows and assign the pixels of each filter to blocks."""
        windows, seconds = prepared_windows(graph)
        arrays: dict[str, Any] = {
            "window_of": windows.of_filter,
            "window_runs": windows.pointers,
            "runs": windows.runs,
            "row_pointers": graph.row_pointers,
        }
        call = "dsxplore", "dsxplore", graph.n_rows, (*arrays, "values", "X", "Y", *_SIZES)
        return self._planes_plan(graph, widths, settings, (call,), arrays, seconds=seconds)


class ChannelStack(_PlaneByPlane):
    """Copy the channels of each filter, then convolve the copies (section 6.4.1).

    `maps` names the workspaces with a plane per filter, for a subclass.
    """

    name = "channel_stack"
    summary = "copies the channels of all windows into one array, then convolves in groups"
    Settings: ClassVar[type[BlockSize]] = StackSettings
    maps: ClassVar[tuple[str, ...]] = ()

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Plan the copy of the channels and the convolutions of the copies."""
        windows, seconds = prepared_windows(graph)
        channels = windows.channels
        first_plane: Any = windows.starts[windows.of_filter]
        if isinstance(settings, StackSettings) and not settings.cyclic:
            first_plane, channels = graph.row_pointers[:-1], graph.column_indices
        arrays = {
            "channels": channels,
            "first_plane": first_plane.astype(np.int32),
            "row_pointers": graph.row_pointers,
            "n_planes": np.int32(channels.size),
        }
        arguments = "channels", "X", "stack", "n_planes", *_SIZES[1:]
        copy = "channel_stack", "stack_channels", channels.size, arguments
        return self._planes_plan(
            *(graph, widths, settings),
            (copy, *self.convolutions(graph.n_rows)),
            arrays,
            main=1,
            seconds=seconds,
            copies={"stack": channels.size, **dict.fromkeys(self.maps, graph.n_rows)},
        )

    def convolutions(self, n_rows: int) -> tuple[tuple[str, str, int, tuple[str, ...]], ...]:
        """Return the calls after the copy, as `_planes_plan` has them."""
        arguments = "first_plane", "row_pointers", "values", "stack", "Y", "n_rows", "n_planes"
        return (("channel_stack", "convolve_stack", n_rows, (*arguments, *_SIZES[2:])),)


class ConvolutionStack(ChannelStack):
    """Copy the channels of each window once, convolve each filter separately, concatenate (6.4.1).

    The chapter's PyTorch-Opt: the convolution-stack composition with the channel-cyclic
    optimization, Figure 6.6(b).
    """

    name = "convolution_stack"
    summary = "copies each window once, convolves each filter into its own map, concatenates"
    Settings = BlockSize
    maps = ("maps",)

    def convolutions(self, n_rows: int) -> tuple[tuple[str, str, int, tuple[str, ...]], ...]:
        """Return the calls after the copy."""
        read = "first_plane", "row_pointers", "values", "stack", "maps", "n_planes", *_SIZES[2:]
        written = "maps", "Y", "n_rows", *_SIZES[2:]
        return (
            ("convolution_stack", "convolve_apart", n_rows, read),
            ("convolution_stack", "concatenate", n_rows, written),
        )


class DsxploreGradient(_PlaneByPlane):
    """One thread per pixel of an input channel reads dY (section 6.4.2, input-centric).

    A plan first computes the gradient by the weights, with blocks of filters, then dX.
    """

    operation = SCC_GRADIENT
    name = "dsxplore"
    summary = "input-centric: a thread per pixel of an input channel sums dX without atomics"

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Assign the pixels of each filter, and then of each input channel, to blocks."""
        transposed, nonzeros = graph.transposed().graph, graph.transposed().nonzeros
        by_filter = {"row_pointers": graph.row_pointers, "channels": graph.column_indices}
        by_channel: dict[str, Any] = {
            "filter_pointers": transposed.row_pointers,
            "filters": transposed.column_indices,
            "order": nonzeros,
        }
        file, problem = "dsxplore_gradient", (graph, widths, settings)
        arguments = *by_channel, "values", "dY", "dX", *_SIZES
        call = file, "input_centric", transposed.n_rows, arguments
        dX_plan = self._planes_plan(*problem, (call,), by_channel, transposed=transposed)
        arguments = *by_filter, "X", "dY", "d_values", *_SIZES
        call = file, "weight_gradient", graph.n_rows, arguments
        return self._planes_plan(
            *problem, (call,), by_filter, zero_outputs=("d_values",), then=(dX_plan,)
        )

    def describe(self, settings: BlockSize, rows: RowDegrees, widths: Widths) -> Description:
        """Describe the filters; each warp of pixels adds to a weight's gradient by one atomic."""
        return self._described(settings, -(-_pixels(widths) // WARP_SIZE))


class DsxploreVariant(_PlaneByPlane):
    """One thread per pixel of an output channel adds to dX: DSXplore-Var of section 6.5.4."""

    operation = SCC_GRADIENT
    name = "dsxplore_var"
    summary = "output-centric: a thread per pixel of an output channel adds to dX by atomics"

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Assign the pixels of each filter to blocks."""
        arrays = {"row_pointers": graph.row_pointers, "channels": graph.column_indices}
        operands = *arrays, *SCC_GRADIENT.operands, *_SIZES
        call = "dsxplore_gradient", "output_centric", graph.n_rows, operands
        return self._planes_plan(graph, widths, settings, (call,), arrays, zero_outputs=None)

    def describe(self, settings: BlockSize, rows: RowDegrees, widths: Widths) -> Description:
        """Describe the filters; per weight there is an atomic per pixel, and one per warp."""
        pixels = _pixels(widths)
        return self._described(settings, -(-pixels // WARP_SIZE) + pixels)
