"""DSXplore: a thread a pixel of a channel, forward and backward (chapter 6 of the thesis)."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from accelviz.errors import PartitionError
from accelviz.graph import MAX_SIDE, Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.cut import Cut
from accelviz.partition.row_split import row_workload
from accelviz.plans import Call, KernelSpec, LaunchConfig, Parameter, Plan, Strategy
from accelviz.plans.launch import WARP_SIZE
from accelviz.strategies.blocks import block_threads_of
from accelviz.strategies.convolution.operation import SCC, SCC_GRADIENT
from accelviz.strategies.convolution.windows import prepared_windows

_THREADS = {"block_size": block_threads_of(256, 64, 128, 256, 512)}
_SIZES = ("n_rows", "n_senders", "images", "n_cols")


def _sizes(graph: Graph, images: int, n_cols: int) -> dict[str, Any]:
    """Return the sizes that every kernel takes.

    Raises
    ------
    PartitionError
        If there are 2^31 nonzeros or more.
    """
    if graph.nnz > MAX_SIDE:
        raise PartitionError("graph", f"{graph.nnz:,} weights", f"at most {MAX_SIDE:,}")
    return dict(zip(_SIZES, map(np.int32, (*graph.shape, images, n_cols)), strict=True))


def _by_row(graph: Graph) -> dict[str, Any]:
    """Return where each filter's channels begin, and which they are."""
    return {"row_pointers": graph.row_pointers, "channels": graph.column_indices}


def _call(entry: str, file: str, planes: int, pixels: int, block: int, *arguments: str) -> Call:
    """Return a launch with a block for so many pixels of each of some planes."""
    spec = KernelSpec(f"convolution/{file}.cu", entry, {"block_threads": block}, arguments)
    return Call(LaunchConfig((planes, -(-pixels // block), 1), block // WARP_SIZE), spec)


def _planned(graph: Graph, walked: Graph, *calls: Call, **more: Any) -> Plan:
    """Return a plan whose blocks have a filter, or a channel of the transpose, each."""
    each = partial(row_workload, walked.row_pointers, 1, 1)
    return Plan(graph.pattern, calls, each, walked.pattern, workers_per_block=1, **more)


class _PlaneByPlane(Strategy):
    """What they share: the blocks of the workload are filters, whose warps share each weight."""

    worker = "block"

    def cut(self, rows: RowDegrees, n_cols: int, *, images: int = 1, **parameters: Any) -> Cut:
        """Name the filters: one a block."""
        return Cut("rows", {"each": 1, "warps": 1})


class Dsxplore(_PlaneByPlane):
    """A thread has a pixel of an output channel (section 6.4.2, output-centric forward pass).

    It takes `block_size` (threads of a block, a multiple of 32 up to 1,024).
    """

    operation = SCC
    name = "dsxplore"
    summary = "output-centric: a thread has a pixel of an output channel and walks its window"
    parameters: ClassVar = _THREADS

    def build(self, graph: Graph, n_cols: int, *, images: int, block_size: int) -> Plan:
        """Find the distinct windows; give each filter a block for so many pixels.

        Raises
        ------
        PartitionError
            If there are 2^31 weights or more, or too many pixels for a grid.
        """
        sizes = _sizes(graph, images, n_cols)
        windows, seconds = prepared_windows(graph)
        arrays: dict[str, Any] = {
            "window_of": windows.of_filter,
            "window_runs": windows.pointers,
            "runs": windows.runs,
            "row_pointers": graph.row_pointers,
        }
        pixels = images * n_cols, block_size
        operands = *arrays, "values", "X", "Y", *_SIZES
        call = _call("dsxplore", "dsxplore", graph.n_rows, *pixels, *operands)
        return _planned(graph, graph, call, arrays=arrays | sizes, clears=(), setup_seconds=seconds)


class ChannelStack(_PlaneByPlane):
    """Copy the channels of each filter, then convolve the copies (section 6.4.1).

    It takes `cyclic` (1: windows that repeat are copied once, the channel-cyclic optimization; 0:
    every filter's) and `block_size`.
    """

    operation = SCC
    name = "channel_stack"
    summary = "copies the channels of each window behind each other, then convolves in groups"
    parameters: ClassVar = {
        "cyclic": Parameter(0, "copy repeated windows once", choices=(0, 1), tries=(0, 1)),
        **_THREADS,
    }

    def build(
        self, graph: Graph, n_cols: int, *, images: int, cyclic: int, block_size: int
    ) -> Plan:
        """Lay out the copies.

        Raises
        ------
        PartitionError
            As `Dsxplore.build` does.
        """
        sizes = _sizes(graph, images, n_cols)
        windows, seconds = prepared_windows(graph)
        first = windows.starts[windows.of_filter] if cyclic else graph.row_pointers[:-1]
        channels = windows.channels if cyclic else graph.column_indices
        pixels = images * n_cols, block_size
        copied = "channels", "X", "stack", "n_planes", *_SIZES[1:]
        read = "first_plane", "row_pointers", "values", "stack", "Y", "n_rows", "n_planes"
        return _planned(
            graph,
            graph,
            _call("stack_channels", "channel_stack", channels.size, *pixels, *copied),
            _call("convolve_stack", "channel_stack", graph.n_rows, *pixels, *read, *_SIZES[2:]),
            arrays={
                "channels": channels,
                "first_plane": first.astype(np.int32),
                "row_pointers": graph.row_pointers,
                "n_planes": np.int32(channels.size),
                **sizes,
            },
            workspace={"stack": (images * channels.size * n_cols, np.float32)},
            main=1,
            clears=(),
            setup_seconds=seconds,
        )


class ConvolutionStack(_PlaneByPlane):
    """Copy each window's channels once, convolve filter by filter, then concatenate (6.4.1).

    The chapter's PyTorch-Opt: the convolution-stack composition with the channel-cyclic
    optimization, Figure 6.6(b). It takes `block_size`.
    """

    operation = SCC
    name = "convolution_stack"
    summary = "copies each window once, convolves each filter into a map of its own, concatenates"
    parameters: ClassVar = _THREADS

    def build(self, graph: Graph, n_cols: int, *, images: int, block_size: int) -> Plan:
        """Lay out the copies, and a map for each filter.

        Raises
        ------
        PartitionError
            As `Dsxplore.build` does.
        """
        sizes = _sizes(graph, images, n_cols)
        windows, seconds = prepared_windows(graph)
        pixels, file = (images * n_cols, block_size), "convolution_stack"
        copied = "channels", "X", "stack", "n_planes", *_SIZES[1:]
        read = "first_plane", "row_pointers", "values", "stack", "maps", "n_planes", *_SIZES[2:]
        planes = windows.channels.size
        return _planned(
            graph,
            graph,
            _call("stack_channels", "channel_stack", planes, *pixels, *copied),
            _call("convolve_apart", file, graph.n_rows, *pixels, *read),
            _call("concatenate", file, graph.n_rows, *pixels, "maps", "Y", "n_rows", *_SIZES[2:]),
            arrays={
                "channels": windows.channels,
                "first_plane": windows.starts[windows.of_filter],
                "row_pointers": graph.row_pointers,
                "n_planes": np.int32(planes),
                **sizes,
            },
            workspace={
                "stack": (images * planes * n_cols, np.float32),
                "maps": (images * graph.n_rows * n_cols, np.float32),
            },
            main=1,
            clears=(),
            setup_seconds=seconds,
        )


class DsxploreGradient(_PlaneByPlane):
    """A thread has a pixel of an input channel and pulls (section 6.4.2, input-centric).

    The gradient by the weights comes first. It takes `block_size`.
    """

    operation = SCC_GRADIENT
    name = "dsxplore"
    summary = "input-centric: a thread has a pixel of an input channel and pulls, without atomics"
    parameters: ClassVar = _THREADS

    def build(self, graph: Graph, n_cols: int, *, images: int, block_size: int) -> Plan:
        """Give each filter, and then each input channel, a block for so many pixels.

        Raises
        ------
        PartitionError
            As `Dsxplore.build` does.
        """
        sizes = _sizes(graph, images, n_cols)
        turned, nonzeros = graph.transposed().graph, graph.transposed().nonzeros
        pixels, file = (images * n_cols, block_size), "dsxplore_gradient"
        by_filter = _by_row(graph)
        by_channel: dict[str, Any] = {
            "filter_pointers": turned.row_pointers,
            "filters": turned.column_indices,
            "order": nonzeros,
        }
        weights = *by_filter, "X", "dY", "d_values", *_SIZES
        pull = *by_channel, "values", "dY", "dX", *_SIZES
        call = _call("input_centric", file, turned.n_rows, *pixels, *pull)
        back = _planned(graph, turned, call, arrays=by_channel | sizes, clears=())
        call = _call("weight_gradient", file, graph.n_rows, *pixels, *weights)
        arrays = by_filter | sizes
        return _planned(graph, graph, call, arrays=arrays, clears=("d_values",), then=(back,))

    def cut(self, rows: RowDegrees, n_cols: int, *, images: int = 1, **parameters: Any) -> Cut:
        """Name the filters; a warp adds to a weight's gradient once."""
        return _by_filter(images * n_cols, 0)


class DsxploreVariant(_PlaneByPlane):
    """A thread has a pixel of an output channel and pushes: DSXplore-Var of section 6.5.4.

    It takes `block_size`.
    """

    operation = SCC_GRADIENT
    name = "dsxplore_var"
    summary = "output-centric: a thread has a pixel of an output channel and pushes, by atomics"
    parameters: ClassVar = _THREADS

    def build(self, graph: Graph, n_cols: int, *, images: int, block_size: int) -> Plan:
        """Give each filter a block for so many pixels.

        Raises
        ------
        PartitionError
            As `Dsxplore.build` does.
        """
        sizes = _sizes(graph, images, n_cols)
        arrays = _by_row(graph)
        operands = *arrays, *(each.name for each in SCC_GRADIENT.inputs), "d_values", "dX", *_SIZES
        pixels = images * n_cols, block_size
        call = _call("output_centric", "dsxplore_gradient", graph.n_rows, *pixels, *operands)
        return _planned(graph, graph, call, arrays=arrays | sizes)

    def cut(self, rows: RowDegrees, n_cols: int, *, images: int = 1, **parameters: Any) -> Cut:
        """Name the filters; each weight is an atomic a pixel, and one a warp for its gradient."""
        return _by_filter(images * n_cols, images * n_cols)


def _by_filter(pixels: int, pushed: int) -> Cut:
    """Return one filter a block, with the atomics that each weight takes."""
    return Cut("rows", {"each": 1, "warps": 1, "atomics": -(-pixels // WARP_SIZE) + pushed})
