"""Chapter 6 of the thesis on a GPU: sliding channels beside what the chapter leaves out.

    python benchmarks/measure/convolution.py --output layers.csv

Forward and backward: convolutions of 1 x 1 of VGG16 (32 x 32 images) and MobileNet (224 x 224).
The chapter's kernels have channels first, all others last. Rivals are PyTorch's: a pointwise
convolution, a grouped one, sliding channels as one dense product with a masked matrix, and a
composition of a convolution a window. All that convolves with sliding channels is checked against
float64: `error` is the largest error of 4,096 pixels, or of all weights, over the bound of its
arithmetic. Times are medians of CUDA events, with the L2 flushed before each. `floor_us` is the
time of a copy of as many bytes as an operation has to read and write. `strided_windows` with
parameters is another cut of its blocks than the rule's.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from study import machine, parser, record

import accelviz
from accelviz.convolution import ChannelMap
from accelviz.devices import find_device
from accelviz.devices.cuda.compiler import compile_options, compiled
from accelviz.graph import Graph
from accelviz.plans.arithmetic import CUT_OFF, ROUNDING
from accelviz.plans.operation import EPS32

#: Input and output channels, and pixels of a side.
LAYERS = {
    "vgg16": ((64, 64, 32), (128, 128, 16), (256, 256, 8), (512, 512, 4), (512, 512, 2)),
    "mobilenet": ((64, 128, 56), (128, 128, 56), (256, 256, 28), (512, 512, 14), (1024, 1024, 7)),
}
#: What is measured, by value: network, batch, cg and co, and how many of the network's layers.
CELLS = (
    *((name, 256, 2, 0.5, 5) for name in ("mobilenet", "vgg16")),
    ("mobilenet", 256, 8, 0.5, 4),
    ("vgg16", 256, 8, 0.5, 3),
    ("mobilenet", 256, 4, 0.5, 3),
    ("mobilenet", 16, 2, 0.5, 3),
    ("vgg16", 16, 2, 0.5, 3),
    ("mobilenet", 256, 2, 0.25, 3),
    ("vgg16", 64, 2, 0.5, 3),
)
#: Cuts of our blocks beside the rule's: parameters, their values, and the fewest channels.
CUTS = {
    "scc_last": (
        ("pieces", "piece", "warpgroups", "stages"),
        (
            *((4, 64, 2, 4), (2, 128, 2, 4), (4, 64, 1, 4), (4, 32, 2, 4), (4, 32, 1, 4)),
            *((1, 128, 2, 6), (1, 128, 1, 4), (1, 64, 2, 4), (1, 64, 1, 6)),
        ),
        32,
    ),
    "scc_last_weights": (
        ("channels", "filter_warps", "channel_warps", "pixel_warps", "pixels", "stages"),
        (
            *((2, 2, 2, 1, 32, 2), (2, 2, 2, 1, 32, 3), (2, 4, 2, 1, 32, 3), (2, 4, 2, 1, 16, 4)),
            *((2, 2, 4, 1, 32, 3), (2, 2, 1, 2, 32, 3), (2, 1, 1, 4, 32, 3), (1, 1, 2, 2, 32, 3)),
        ),
        64,
    ),
}
#: Batch, cg and co of the layers that are measured with these too.
CUT_SETTING = 256, 2, 0.5
#: Most bytes of what a composition copies.
MOST_STACK = 8 << 30
SAMPLE = 4096


def main() -> None:
    options = parser(__doc__, repeats=9).parse_args()
    record(layers(options.repeats), options.output, machine())


@functools.cache
def channel_map(*sizes: Any) -> ChannelMap:
    """Return one object for equal sizes, whose pattern is looked through once."""
    return ChannelMap(*sizes)


class Layer:
    """A convolution with its operands on the GPU, in both layouts, and what is right."""

    def __init__(self, shape: tuple[int, int, int], batch: int, groups: int, overlap: float):
        import cupy

        before, after, side = shape
        self.channels = channel_map(before, after, groups, overlap)
        self.setting = batch, groups, overlap
        self._known: dict[str, Any] = {}
        self.images, self.pixels = batch, side * side
        rng = cupy.random.default_rng(0)
        n = batch * self.pixels
        self.X = rng.standard_normal((n, before), dtype=np.float32)
        self.dY = rng.standard_normal((n, after), dtype=np.float32)
        weights = np.random.default_rng(1).standard_normal((after, self.channels.width))
        self.weights = weights.astype(np.float32)
        self.entries = cupy.asarray(self.channels.values(self.weights))
        self.dense = cupy.asarray(self.channels.dense(self.weights))
        self.mask = self.dense != 0
        self.about = {
            "layer": f"{before}-{after}@{side}",
            "batch": batch,
            "cg": groups,
            "co": overlap,
            "windows": self.channels.cyclic_distance,
        }

    def first(self, rows: Any) -> Any:
        """Return a map of channels last as one of channels first."""
        import cupy

        return cupy.ascontiguousarray(rows.reshape(self.images, self.pixels, -1).transpose(0, 2, 1))

    def last(self, planes: Any) -> Any:
        """Return a map of channels first as one of channels last."""
        return planes.transpose(0, 2, 1).reshape(self.images * self.pixels, -1)

    def error(self, outputs: Any, arithmetic: str = "float32") -> float:
        """Hold Y, dX or the weights' gradient, by name, to float64."""
        worst = 0.0
        for name, array in outputs.items():
            if name not in self._known:
                self._known[name] = self._exact(name)
            exact, bound, terms = self._known[name]
            if arithmetic != "float32":
                bound = bound * (CUT_OFF + ROUNDING[arithmetic] / (EPS32 * terms))
            array = array if name == "d_values" else array[:SAMPLE]
            worst = max(worst, float((abs(array - exact) / bound).max()))
        return round(worst, 4)

    def _exact(self, name: str) -> tuple[Any, Any, int]:
        wide = self.dense.astype(np.float64)
        if name == "d_values":
            sums = [wide * 0, wide * 0]
            for i in range(0, len(self.X), 1 << 17):
                X, dY = (array[i : i + (1 << 17)].astype(np.float64) for array in (self.X, self.dY))
                sums = [sums[0] + dY.T @ X, sums[1] + abs(dY).T @ abs(X)]
            rows, columns = (
                np.repeat(np.arange(self.channels.out_channels), self.channels.width),
                self.channels.graph.column_indices,
            )
            return sums[0][rows, columns], EPS32 * len(self.X) * sums[1][rows, columns], len(self.X)
        matrix, rows = (wide.T, self.X) if name == "Y" else (wide, self.dY)
        rows = rows[:SAMPLE].astype(np.float64)
        terms = max(1, int((self.mask.sum(axis=1 if name == "Y" else 0)).max()))
        return rows @ matrix, EPS32 * terms * (abs(rows) @ abs(matrix)), terms

    def floor(self, direction: str) -> float:
        """Count the bytes that a pass has to read and write."""
        written = (
            self.X.nbytes if direction == "backward" else 0
        )  # X and dY are read, dX is written
        return self.X.nbytes + self.dY.nbytes + written + self.entries.nbytes


def planned(graph: Any, name: str, operation: str, widths: dict[str, Any], **operands: Any) -> Any:
    """Return what queues a plan, its outputs, the plan, and what queues each of its kernels."""
    plan = accelviz.plan(graph, name, operation=operation, **widths)
    ready = find_device("cuda").prepare(plan)
    inputs, outputs = ready.inputs(ready.placed(operands)), ready.outputs()
    calls = [functools.partial(call, {**inputs, **outputs}) for call in ready.calls]
    return functools.partial(ready.queue, inputs, outputs), outputs, plan, calls


def ours(layer: Layer) -> Iterator[tuple[str, str, str, Callable[[], None], float]]:
    """Give pass, strategy, arithmetic, what to time and the error."""
    pattern, n = layer.channels.graph, len(layer.X)
    turned = pattern.transposed()
    back = layer.entries[turned.nonzeros]
    for arithmetic in ("tf32", "3xtf32"):
        widths = {"n_cols": n, "arithmetic": arithmetic}
        for direction, graph, operation, operands, output in (
            ("forward", pattern, "scc_last", {"values": layer.entries, "X": layer.X}, "Y"),
            ("d_input", turned.graph, "scc_last", {"values": back, "X": layer.dY}, "dX"),
            ("d_weights", pattern, "scc_last_weights", {"X": layer.X, "dY": layer.dY}, "d_values"),
        ):
            others = cuts_of(graph, operation, widths) if layer.setting == CUT_SETTING else []
            cuts = [{}, *others]
            for cut in cuts:
                run, outputs, *_ = planned(
                    graph, "strided_windows", operation, {**widths, **cut}, **operands
                )
                run()
                (result,) = outputs.values()
                error = layer.error({output: result}, arithmetic)
                word = "".join(f" {key}={value}" for key, value in cut.items())
                yield direction, "strided_windows" + word, arithmetic, run, error


def chapters(layer: Layer) -> Iterator[tuple[str, str, str, Callable[[], None], float]]:
    """Give the chapter's kernels; of the channel stack only what fits in memory."""
    graph, widths = layer.channels.graph, {"n_cols": layer.pixels, "images": layer.images}
    X, dY = layer.first(layer.X), layer.first(layer.dY)
    forward = [("dsxplore", {}), ("channel_stack", {"cyclic": 1}), ("convolution_stack", {})]
    if 4 * graph.nnz * len(layer.X) <= MOST_STACK:
        forward.append(("channel_stack", {"cyclic": 0}))
    for name, parameters in forward:
        run, outputs, *_ = planned(
            *(graph, name, "scc", {**widths, **parameters}), values=layer.entries, X=X
        )
        run()
        word = "".join(f" {key}={value}" for key, value in parameters.items())
        yield "forward", name + word, "float32", run, layer.error({"Y": layer.last(outputs["Y"])})
    for name in ("dsxplore", "dsxplore_var"):
        operands = {"values": layer.entries, "X": X, "dY": dY}
        run, outputs, _, calls = planned(graph, name, "scc_gradient", widths, **operands)
        run()
        gradients = {"dX": layer.last(outputs["dX"]), "d_values": outputs["d_values"]}
        yield "backward", name, "float32", run, layer.error(gradients)
        if name == "dsxplore":
            for direction, call in zip(("d_weights", "d_input"), calls, strict=True):
                yield direction, name, "float32", call, float("nan")


def rivals(layer: Layer) -> Iterator[tuple[str, str, str, Callable[[], None], float]]:
    """PyTorch's, channels last; those that are other convolutions have no error."""
    import torch
    from torch.nn import functional
    from torch.nn.grad import conv2d_input, conv2d_weight

    channels, side = layer.channels, int(layer.pixels**0.5)
    X, dY, dense = (
        torch.as_tensor(array, device="cuda") for array in (layer.X, layer.dY, layer.dense)
    )
    maps = [array.reshape(layer.images, side, side, -1).permute(0, 3, 1, 2) for array in (X, dY)]
    whole = torch.randn(channels.out_channels, channels.in_channels, 1, 1, device="cuda")
    part = whole[:, : channels.width].contiguous()
    mask = torch.as_tensor(layer.mask, device="cuda")
    kernels = [array.to(memory_format=torch.channels_last) for array in (whole, part)]
    windows = torch.tensor(channels.windows, device="cuda").long()
    weights = torch.as_tensor(layer.weights, device="cuda")
    cycle = channels.cyclic_distance
    by_window = [weights[i::cycle, :, None, None].contiguous() for i in range(cycle)]
    Y, dX = torch.empty_like(dY), torch.empty_like(X)

    def stacked() -> None:
        copies = [functional.conv2d(maps[0][:, windows[i]], by_window[i]) for i in range(cycle)]
        torch.stack(copies, 2).flatten(1, 2)

    for arithmetic in ("tf32", "float32"):
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = (
            arithmetic == "tf32"
        )
        torch.backends.cudnn.benchmark = True
        for name, groups, kernel in (("pw", 1, kernels[0]), ("gpw", channels.groups, kernels[1])):

            def forward(kernel: Any = kernel, groups: int = groups) -> None:
                functional.conv2d(maps[0], kernel, groups=groups)

            def d_input(kernel: Any = kernel, groups: int = groups) -> None:
                conv2d_input(maps[0].shape, kernel, maps[1], groups=groups)

            def d_weights(kernel: Any = kernel, groups: int = groups) -> None:
                conv2d_weight(maps[0], kernel.shape, maps[1], groups=groups)

            backward = (d_input, d_weights) if arithmetic == "tf32" else ()
            for direction in (forward, *backward):
                yield direction.__name__, name, arithmetic, direction, float("nan")
        torch.matmul(X, dense.T, out=Y)
        rounding = "tf32" if arithmetic == "tf32" else "float32"
        import cupy

        error = layer.error({"Y": cupy.asarray(Y[:SAMPLE])}, rounding)
        yield "forward", "masked", arithmetic, lambda: torch.matmul(X, dense.T, out=Y), error
        yield "d_input", "masked", arithmetic, lambda: torch.matmul(dY, dense, out=dX), float("nan")
        yield "d_weights", "masked", arithmetic, lambda: (dY.T @ X) * mask, float("nan")
        if layer.images <= 64:
            yield "forward", "torch windows", arithmetic, stacked, float("nan")


def layers(repeats: int) -> Iterator[dict[str, Any]]:
    """Check and time everything, layer by layer."""
    from accelviz.devices.cuda.timing import CudaLimits, event_seconds

    cells = [
        (network, shape, *setting)
        for network, *setting, most in CELLS
        for shape in LAYERS[network][:most]
    ]
    compile_all(cells)
    bandwidth = CudaLimits().copy_bandwidth
    for network, shape, batch, groups, overlap in cells:
        layer = Layer(shape, batch, groups, overlap)
        for direction, name, arithmetic, run, error in itertools.chain(
            ours(layer), chapters(layer), rivals(layer)
        ):
            times = event_seconds(run, repeats, 2, cold=True)
            yield {
                "network": network,
                **layer.about,
                "pass": direction,
                "strategy": name,
                "arithmetic": arithmetic,
                "median_us": round(float(np.median(times)) * 1e6, 2),
                "floor_us": round(layer.floor(direction) / bandwidth * 1e6, 2),
                "error": error,
            }


def compile_all(cells: list[Any]) -> None:
    """Compile our kernels on all cores before anything is timed."""
    plans = []
    for _, (before, after, side), batch, groups, overlap in cells:
        graph = channel_map(before, after, groups, overlap).graph
        n = batch * side * side
        for arithmetic in ("tf32", "3xtf32"):
            widths = {"n_cols": n, "arithmetic": arithmetic}
            for operation, pattern in (
                ("scc_last", graph),
                ("scc_last", graph.transposed().graph),
                ("scc_last_weights", graph),
            ):
                cuts = [{}]
                if (batch, groups, overlap) == CUT_SETTING:
                    cuts += cuts_of(pattern, operation, widths)
                plans += [
                    accelviz.plan(pattern, operation=operation, **widths, **cut) for cut in cuts
                ]
    kernels = [call.kernel for plan in plans for call in plan.calls]
    wanted = {(kernel.source(), compile_options(kernel)): kernel for kernel in kernels}
    with ThreadPoolExecutor(12) as threads:
        list(threads.map(compiled, wanted.values()))
    print(f"{len(wanted)} kernels compiled", flush=True)


def cuts_of(graph: Graph, operation: str, widths: dict[str, Any]) -> list[dict[str, int]]:
    """Return other cuts of our blocks than the rule's, none wider than the layer."""
    names, values, side = CUTS[operation]
    plan = accelviz.plan(graph, operation=operation, **widths)
    cuts = []
    for sizes in values:
        cut = dict(zip(names, sizes, strict=True))
        filters, channels = cut.get("pieces", 1) * cut.get("piece", 64), 32
        if operation == "scc_last_weights":
            filters *= cut["filter_warps"]
            channels *= cut["channels"] * cut["channel_warps"]
        fits = filters <= max(64, graph.n_rows) and channels <= max(side, graph.shape[1])
        if fits and any(plan.parameters[name] != value for name, value in cut.items()):
            cuts.append(cut)
    return cuts


if __name__ == "__main__":
    main()
