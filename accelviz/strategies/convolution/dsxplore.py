"""DSXplore: a thread a pixel of a channel, forward and backward (chapter 6 of the thesis)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from accelviz.errors import PartitionError
from accelviz.graph import MAX_SIDE, Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.row_split import RowSplit, row_workload
from accelviz.plans.description import Description
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance, Strategy, Widths
from accelviz.plans.settings import Settings, setting
from accelviz.strategies.blocks import block_threads_of
from accelviz.strategies.convolution.operation import SCC, SCC_GRADIENT
from accelviz.strategies.convolution.windows import prepared_windows

_SIZES = ("n_rows", "n_senders", "images", "n_cols")


class BlockSize(Settings):
    """`block_size` (threads of a block, a multiple of 32 up to 1,024)."""

    block_size: int = block_threads_of(256, 64, 128, 256, 512)


class StackSettings(BlockSize):
    """Whether windows that repeat are copied once; and `block_size`."""

    cyclic: int = setting(0, "copy repeated windows once", choices=(0, 1), tries=(0, 1))


def _pixels(widths: Widths) -> int:
    return widths["images"] * widths["n_cols"]


def _sizes(graph: Graph, widths: Widths) -> dict[str, Any]:
    """Return the sizes that every kernel takes.

    Raises
    ------
    PartitionError
        If there are 2^31 nonzeros or more.
    """
    if graph.nnz > MAX_SIDE:
        raise PartitionError("graph", f"{graph.nnz:,} weights", f"at most {MAX_SIDE:,}")
    sizes = *graph.shape, widths["images"], widths["n_cols"]
    return dict(zip(_SIZES, map(np.int32, sizes), strict=True))


def _by_row(graph: Graph) -> dict[str, Any]:
    """Return where each filter's channels begin, and which they are."""
    return {"row_pointers": graph.row_pointers, "channels": graph.column_indices}


def _call(entry: str, file: str, planes: int, pixels: int, block: int, *arguments: str) -> Call:
    """Return a launch with a block for so many pixels of each of some planes."""
    spec = KernelSpec(f"convolution/{file}.cu", entry, {"block_threads": block}, arguments)
    return Call(LaunchConfig((planes, -(-pixels // block), 1), block // WARP_SIZE), spec)


def _layout(graph: Graph, walked: Graph, main: int = 0) -> Layout:
    """Give each filter, or each channel of the transpose, a block."""
    workload = partial(row_workload, walked.row_pointers, 1, 1)
    return Layout(graph.pattern, workload, walked.pattern, workers_per_block=1, main=main)


class _PlaneByPlane(Strategy):
    """What they share: the blocks of the workload are filters, whose warps share each weight."""

    worker = "block"

    def describe(self, settings: BlockSize, rows: RowDegrees, widths: Widths) -> Description:
        """Name the filters: one a block."""
        return Description(RowSplit(1, 1))


class Dsxplore(_PlaneByPlane):
    """A thread has a pixel of an output channel (section 6.4.2, output-centric forward pass).

    It takes `block_size` (threads of a block, a multiple of 32 up to 1,024).
    """

    operation = SCC
    name = "dsxplore"
    summary = "output-centric: a thread has a pixel of an output channel and walks its window"
    Settings = BlockSize

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Find the distinct windows; give each filter a block for so many pixels.

        Raises
        ------
        PartitionError
            If there are 2^31 weights or more, or too many pixels for a grid.
        """
        sizes, pixels = _sizes(graph, widths), (_pixels(widths), settings.block_size)
        windows, seconds = prepared_windows(graph)
        arrays: dict[str, Any] = {
            "window_of": windows.of_filter,
            "window_runs": windows.pointers,
            "runs": windows.runs,
            "row_pointers": graph.row_pointers,
        }
        operands = *arrays, "values", "X", "Y", *_SIZES
        call = _call("dsxplore", "dsxplore", graph.n_rows, *pixels, *operands)
        return Plan(
            _layout(graph, graph),
            (call,),
            Buffers(arrays | sizes, zero_outputs=()),
            Provenance(self, graph.values, widths, settings, seconds),
        )


class ChannelStack(_PlaneByPlane):
    """Copy the channels of each filter, then convolve the copies (section 6.4.1).

    It takes `cyclic` (1: windows that repeat are copied once, the channel-cyclic optimization; 0:
    every filter's) and `block_size`.
    """

    operation = SCC
    name = "channel_stack"
    summary = "copies the channels of each window behind each other, then convolves in groups"
    Settings = StackSettings

    def build(self, graph: Graph, widths: Widths, settings: StackSettings) -> Plan:
        """Lay out the copies.

        Raises
        ------
        PartitionError
            As `Dsxplore.build` does.
        """
        sizes, pixels = _sizes(graph, widths), (_pixels(widths), settings.block_size)
        windows, seconds = prepared_windows(graph)
        first = windows.starts[windows.of_filter] if settings.cyclic else graph.row_pointers[:-1]
        channels = windows.channels if settings.cyclic else graph.column_indices
        copied = "channels", "X", "stack", "n_planes", *_SIZES[1:]
        read = "first_plane", "row_pointers", "values", "stack", "Y", "n_rows", "n_planes"
        arrays = {
            "channels": channels,
            "first_plane": first.astype(np.int32),
            "row_pointers": graph.row_pointers,
            "n_planes": np.int32(channels.size),
            **sizes,
        }
        stack = {"stack": (_pixels(widths) * channels.size, np.float32)}
        return Plan(
            _layout(graph, graph, main=1),
            (
                _call("stack_channels", "channel_stack", channels.size, *pixels, *copied),
                _call("convolve_stack", "channel_stack", graph.n_rows, *pixels, *read, *_SIZES[2:]),
            ),
            Buffers(arrays, workspace=stack, zero_outputs=()),
            Provenance(self, graph.values, widths, settings, seconds),
        )


class ConvolutionStack(_PlaneByPlane):
    """Copy each window's channels once, convolve filter by filter, then concatenate (6.4.1).

    The chapter's PyTorch-Opt: the convolution-stack composition with the channel-cyclic
    optimization, Figure 6.6(b). It takes `block_size`.
    """

    operation = SCC
    name = "convolution_stack"
    summary = "copies each window once, convolves each filter into a map of its own, concatenates"
    Settings = BlockSize

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Lay out the copies, and a map for each filter.

        Raises
        ------
        PartitionError
            As `Dsxplore.build` does.
        """
        sizes, pixels = _sizes(graph, widths), (_pixels(widths), settings.block_size)
        windows, seconds = prepared_windows(graph)
        file = "convolution_stack"
        copied = "channels", "X", "stack", "n_planes", *_SIZES[1:]
        read = "first_plane", "row_pointers", "values", "stack", "maps", "n_planes", *_SIZES[2:]
        planes = windows.channels.size
        arrays = {
            "channels": windows.channels,
            "first_plane": windows.starts[windows.of_filter],
            "row_pointers": graph.row_pointers,
            "n_planes": np.int32(planes),
            **sizes,
        }
        copies = {
            "stack": (_pixels(widths) * planes, np.float32),
            "maps": (_pixels(widths) * graph.n_rows, np.float32),
        }
        written = "maps", "Y", "n_rows", *_SIZES[2:]
        return Plan(
            _layout(graph, graph, main=1),
            (
                _call("stack_channels", "channel_stack", planes, *pixels, *copied),
                _call("convolve_apart", file, graph.n_rows, *pixels, *read),
                _call("concatenate", file, graph.n_rows, *pixels, *written),
            ),
            Buffers(arrays, workspace=copies, zero_outputs=()),
            Provenance(self, graph.values, widths, settings, seconds),
        )


class DsxploreGradient(_PlaneByPlane):
    """A thread has a pixel of an input channel and pulls (section 6.4.2, input-centric).

    The gradient by the weights comes first. It takes `block_size`.
    """

    operation = SCC_GRADIENT
    name = "dsxplore"
    summary = "input-centric: a thread has a pixel of an input channel and pulls, without atomics"
    Settings = BlockSize

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Give each filter, and then each input channel, a block for so many pixels.

        Raises
        ------
        PartitionError
            As `Dsxplore.build` does.
        """
        sizes, pixels = _sizes(graph, widths), (_pixels(widths), settings.block_size)
        turned, nonzeros = graph.transposed().graph, graph.transposed().nonzeros
        file = "dsxplore_gradient"
        by_filter = _by_row(graph)
        by_channel: dict[str, Any] = {
            "filter_pointers": turned.row_pointers,
            "filters": turned.column_indices,
            "order": nonzeros,
        }
        weights = *by_filter, "X", "dY", "d_values", *_SIZES
        pull = *by_channel, "values", "dY", "dX", *_SIZES
        provenance = Provenance(self, graph.values, widths, settings)
        back = Plan(
            _layout(graph, turned),
            (_call("input_centric", file, turned.n_rows, *pixels, *pull),),
            Buffers(by_channel | sizes, zero_outputs=()),
            provenance,
        )
        return Plan(
            _layout(graph, graph),
            (_call("weight_gradient", file, graph.n_rows, *pixels, *weights),),
            Buffers(by_filter | sizes, zero_outputs=("d_values",)),
            provenance,
            then=(back,),
        )

    def describe(self, settings: BlockSize, rows: RowDegrees, widths: Widths) -> Description:
        """Name the filters; a warp adds to a weight's gradient once."""
        return Description(RowSplit(1, 1, -(-_pixels(widths) // WARP_SIZE)))


class DsxploreVariant(_PlaneByPlane):
    """A thread has a pixel of an output channel and pushes: DSXplore-Var of section 6.5.4.

    It takes `block_size`.
    """

    operation = SCC_GRADIENT
    name = "dsxplore_var"
    summary = "output-centric: a thread has a pixel of an output channel and pushes, by atomics"
    Settings = BlockSize

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Give each filter a block for so many pixels.

        Raises
        ------
        PartitionError
            As `Dsxplore.build` does.
        """
        sizes, pixels = _sizes(graph, widths), (_pixels(widths), settings.block_size)
        arrays = _by_row(graph)
        operands = (
            *arrays,
            *(operand.name for operand in SCC_GRADIENT.inputs),
            "d_values",
            "dX",
            *_SIZES,
        )
        call = _call("output_centric", "dsxplore_gradient", graph.n_rows, *pixels, *operands)
        return Plan(
            _layout(graph, graph),
            (call,),
            Buffers(arrays | sizes),
            Provenance(self, graph.values, widths, settings),
        )

    def describe(self, settings: BlockSize, rows: RowDegrees, widths: Widths) -> Description:
        """Name the filters; each weight is an atomic a pixel, and one a warp for its gradient."""
        return Description(RowSplit(1, 1, -(-_pixels(widths) // WARP_SIZE) + _pixels(widths)))
