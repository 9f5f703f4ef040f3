"""DSXplore: a thread a pixel of a channel, forward and backward (chapter 6 of the thesis)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from accelviz.arrays import Ints
from accelviz.errors import PartitionError
from accelviz.graph import MAX_SIDE, Graph, Pattern, taken_over
from accelviz.ordering import RowDegrees
from accelviz.partition.row_split import RowSplit, row_workload
from accelviz.plans import Description, Settings, Strategy, Widths, setting
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance
from accelviz.strategies.blocks import block_threads_setting, prepare_once
from accelviz.strategies.convolution.operation import SCC, SCC_GRADIENT


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
    return prepare_once(graph, "distinct windows", "channel map", lambda: distinct_windows(pattern))


_SIZES = ("n_rows", "n_channels", "images", "n_cols")


class BlockSize(Settings):
    """`block_size` (threads of a block, a multiple of 32 up to 1,024)."""

    block_size: int = block_threads_setting(256, 64, 128, 256, 512)


class StackSettings(BlockSize):
    """Whether windows that repeat are copied once; and `block_size`."""

    cyclic: int = setting(0, "copy repeated windows once", choices=(0, 1), tries=(0, 1))


def _pixels(widths: Widths) -> int:
    return widths["images"] * widths["n_cols"]


class _PlaneByPlane(Strategy):
    """A thread has a pixel of a plane: the workload's blocks are filters or channels.

    The warps of a block share each weight.
    """

    operation = SCC
    worker = "block"
    Settings = BlockSize

    def describe(self, settings: BlockSize, rows: RowDegrees, widths: Widths) -> Description:
        """Name the filters: one a block."""
        return Description(RowSplit(1, 1))

    def _planes_plan(
        self,
        graph: Graph,
        widths: Widths,
        settings: BlockSize,
        calls: tuple[tuple[str, str, int, tuple[str, ...]], ...],
        arrays: dict[str, Any],
        *,
        over: Graph | None = None,
        main: int = 0,
        seconds: dict[str, float] | None = None,
        copies: dict[str, int] | None = None,
        zero_outputs: tuple[str, ...] | None = (),
        then: tuple[Plan, ...] = (),
    ) -> Plan:
        """Plan calls (file, entry, planes, arguments): a block for so many pixels of a plane.

        `over` is the transpose, where the workload counts its nonzeros; `copies` are workspaces by
        their planes.

        Raises
        ------
        PartitionError
            If there are 2^31 nonzeros or more, or too many pixels for a grid.
        """
        if graph.nnz > MAX_SIDE:
            raise PartitionError("graph", f"{graph.nnz:,} weights", f"at most {MAX_SIDE:,}")
        walked, block, pixels = over or graph, settings.block_size, _pixels(widths)
        sizes = *graph.shape, widths["images"], widths["n_cols"]
        launches = []
        for file, entry, planes, arguments in calls:
            kernel = KernelSpec(
                f"convolution/{file}.cu", entry, {"block_threads": block}, arguments
            )
            grid = (planes, -(-pixels // block), 1)
            launches.append(Call(LaunchConfig(grid, block // WARP_SIZE), kernel))
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
    """A thread has a pixel of an output channel (section 6.4.2, output-centric forward pass)."""

    name = "dsxplore"
    summary = "output-centric: a thread has a pixel of an output channel and walks its window"

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Find the distinct windows; give each filter a block for so many pixels."""
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
    """Copy the channels of each filter, then convolve the copies (section 6.4.1)."""

    name = "channel_stack"
    summary = "copies the channels of each window behind each other, then convolves in groups"
    Settings: ClassVar[type[BlockSize]] = StackSettings
    maps: ClassVar[tuple[str, ...]] = ()

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Lay out the copies, and a map for each filter if they are concatenated afterwards."""
        windows, seconds = prepared_windows(graph)
        channels = windows.channels
        first: Any = windows.starts[windows.of_filter]
        if isinstance(settings, StackSettings) and not settings.cyclic:
            first, channels = graph.row_pointers[:-1], graph.column_indices
        arrays = {
            "channels": channels,
            "first_plane": first.astype(np.int32),
            "row_pointers": graph.row_pointers,
            "n_planes": np.int32(channels.size),
        }
        copied = "channels", "X", "stack", "n_planes", *_SIZES[1:]
        return self._planes_plan(
            *(graph, widths, settings),
            (
                ("channel_stack", "stack_channels", channels.size, copied),
                *self.convolutions(graph.n_rows),
            ),
            arrays,
            main=1,
            seconds=seconds,
            copies={"stack": channels.size, **dict.fromkeys(self.maps, graph.n_rows)},
        )

    def convolutions(self, n_rows: int) -> tuple[tuple[str, str, int, tuple[str, ...]], ...]:
        """Return the calls behind the copy."""
        read = "first_plane", "row_pointers", "values", "stack", "Y", "n_rows", "n_planes"
        return (("channel_stack", "convolve_stack", n_rows, (*read, *_SIZES[2:])),)


class ConvolutionStack(ChannelStack):
    """Copy each window's channels once, convolve filter by filter, then concatenate (6.4.1).

    The chapter's PyTorch-Opt: the convolution-stack composition with the channel-cyclic
    optimization, Figure 6.6(b).
    """

    name = "convolution_stack"
    summary = "copies each window once, convolves each filter into a map of its own, concatenates"
    Settings = BlockSize
    maps = ("maps",)

    def convolutions(self, n_rows: int) -> tuple[tuple[str, str, int, tuple[str, ...]], ...]:
        """Return the calls behind the copy."""
        read = "first_plane", "row_pointers", "values", "stack", "maps", "n_planes", *_SIZES[2:]
        written = "maps", "Y", "n_rows", *_SIZES[2:]
        return (
            ("convolution_stack", "convolve_apart", n_rows, read),
            ("convolution_stack", "concatenate", n_rows, written),
        )


class DsxploreGradient(_PlaneByPlane):
    """A thread has a pixel of an input channel and pulls (section 6.4.2, input-centric).

    The gradient by the weights comes first.
    """

    operation = SCC_GRADIENT
    name = "dsxplore"
    summary = "input-centric: a thread has a pixel of an input channel and pulls, without atomics"

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Give each filter, and then each input channel, a block for so many pixels."""
        turned, nonzeros = graph.transposed().graph, graph.transposed().nonzeros
        by_filter = {"row_pointers": graph.row_pointers, "channels": graph.column_indices}
        by_channel: dict[str, Any] = {
            "filter_pointers": turned.row_pointers,
            "filters": turned.column_indices,
            "order": nonzeros,
        }
        file, walk = "dsxplore_gradient", (graph, widths, settings)
        weights = *by_filter, "X", "dY", "d_values", *_SIZES
        pull = *by_channel, "values", "dY", "dX", *_SIZES
        back = self._planes_plan(
            *walk, ((file, "input_centric", turned.n_rows, pull),), by_channel, over=turned
        )
        call = file, "weight_gradient", graph.n_rows, weights
        return self._planes_plan(
            *walk, (call,), by_filter, zero_outputs=("d_values",), then=(back,)
        )

    def describe(self, settings: BlockSize, rows: RowDegrees, widths: Widths) -> Description:
        """Name the filters; a warp adds to a weight's gradient once."""
        return Description(RowSplit(1, 1, -(-_pixels(widths) // WARP_SIZE)))


class DsxploreVariant(_PlaneByPlane):
    """A thread has a pixel of an output channel and pushes: DSXplore-Var of section 6.5.4."""

    operation = SCC_GRADIENT
    name = "dsxplore_var"
    summary = "output-centric: a thread has a pixel of an output channel and pushes, by atomics"

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Give each filter a block for so many pixels."""
        arrays = {"row_pointers": graph.row_pointers, "channels": graph.column_indices}
        operands = *arrays, *SCC_GRADIENT.operands, *_SIZES
        call = "dsxplore_gradient", "output_centric", graph.n_rows, operands
        return self._planes_plan(graph, widths, settings, (call,), arrays, zero_outputs=None)

    def describe(self, settings: BlockSize, rows: RowDegrees, widths: Widths) -> Description:
        """Name the filters; each weight is an atomic a pixel, and one a warp for its gradient."""
        return Description(RowSplit(1, 1, -(-_pixels(widths) // WARP_SIZE) + _pixels(widths)))
