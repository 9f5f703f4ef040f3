"""Times of chapter 6 on a GPU: sliding channels beside PyTorch's convolutions.

    python benchmarks/measure/convolution.py --output layers.csv

Forward and backward: convolutions of 1 x 1 of VGG16 (32 x 32 images) and MobileNet (224 x 224). The
chapter's kernels use NCHW layout, all others NHWC. PyTorch's convolutions are a pointwise one, a
grouped one, sliding channels as one dense product with a masked matrix, and a composition of one
convolution per window. All convolutions with sliding channels are compared with float64: `error` is
the largest error of 4,096 pixels, or of all weights, over the bound of its arithmetic. Times are
medians of CUDA events, with the L2 flushed before each run. `floor_us` is the time of a copy of all
bytes that an operation must read and write. `strided_windows` with parameters has other block
settings than the rule's.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cupy
import numpy as np
import torch
from study import Row, machine, median_us, parser, record
from torch.nn import functional
from torch.nn.grad import conv2d_input, conv2d_weight

import accelviz
from accelviz.convolution import ChannelMap
from accelviz.devices import find_device
from accelviz.devices.cuda.compiler import compiled
from accelviz.devices.cuda.nvrtc import compile_options
from accelviz.devices.cuda.timing import CudaLimits, event_seconds
from accelviz.graph import Graph
from accelviz.plans.arithmetic import ROUNDING, TRUNCATION_FACTOR
from accelviz.plans.operation import EPS32

#: Input channels, output channels, and side in pixels.
LAYERS = {
    "vgg16": ((64, 64, 32), (128, 128, 16), (256, 256, 8), (512, 512, 4), (512, 512, 2)),
    "mobilenet": ((64, 128, 56), (128, 128, 56), (256, 256, 28), (512, 512, 14), (1024, 1024, 7)),
}
#: Measurements, most important first: network, batch, cg, co, and number of layers.
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
#: Further settings of our blocks: names, values, and the least number of channels.
SETTINGS = {
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
#: Batch, cg and co of the layers that are also measured with SETTINGS.
VARIED = 256, 2, 0.5
#: Our arithmetic; and the operation of each pass with its output. "d_input" uses the transposed
#: pattern.
ARITHMETIC = ("tf32", "3xtf32")
PASSES = {
    "forward": ("scc_last", "Y"),
    "d_input": ("scc_last", "dX"),
    "d_weights": ("scc_last_weights", "d_values"),
}
#: Largest copy of a composition in bytes.
MOST_STACK = 8 << 30
SAMPLE = 4096
#: Pass, strategy, arithmetic, function to time, error.
Case = tuple[str, str, str, Callable[[], object], float]
NO_ERROR = float("nan")


def main() -> None:
    options = parser(__doc__, repeats=9).parse_args()
    record(layers(options.repeats), options.output, machine())


#: Cached by size, so that the pattern of equal layers is analysed once.
channel_map = functools.cache(ChannelMap)


class Layer:
    """A convolution with its operands on the GPU in both layouts, and its float64 results."""

    def __init__(self, shape: tuple[int, int, int], batch: int, groups: int, overlap: float):
        before, after, side = shape
        self.channels = channel_map(before, after, groups, overlap)
        self._known: dict[str, Any] = {}
        self.is_varied = (batch, groups, overlap) == VARIED
        self.images, self.side, n = batch, side, batch * side * side
        rng = cupy.random.default_rng(0)
        self.X = rng.standard_normal((n, before), dtype=np.float32)
        self.dY = rng.standard_normal((n, after), dtype=np.float32)
        weights = np.random.default_rng(1).standard_normal((after, self.channels.width))
        self.weights = weights.astype(np.float32)
        self.entries = cupy.asarray(self.channels.values(self.weights))
        self.dense = cupy.asarray(self.channels.dense(self.weights))
        self.about = {
            "layer": f"{before}-{after}@{side}",
            "batch": batch,
            "cg": groups,
            "co": overlap,
            "windows": self.channels.cyclic_distance,
        }

    def first(self, rows: Any) -> Any:
        """Convert a map from NHWC to NCHW layout."""
        planes = rows.reshape(self.images, self.side**2, -1)
        return cupy.ascontiguousarray(planes.transpose(0, 2, 1))

    def last(self, planes: Any) -> Any:
        """Convert a map from NCHW to NHWC layout."""
        return planes.transpose(0, 2, 1).reshape(len(self.X), -1)

    def error(self, outputs: Any, arithmetic: str = "float32") -> float:
        """Return the largest error of arrays named Y, dX or d_values over its bound."""
        worst = 0.0
        for name, array in outputs.items():
            if name not in self._known:
                self._known[name] = self._exact(name)
            exact, bound, terms = self._known[name]
            if arithmetic != "float32":
                bound = bound * (TRUNCATION_FACTOR + ROUNDING[arithmetic] / (EPS32 * terms))
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
            graph = self.channels.graph
            entries = np.repeat(np.arange(graph.n_rows), graph.degrees), graph.column_indices
            return sums[0][entries], EPS32 * len(self.X) * sums[1][entries], len(self.X)
        matrix, rows = (wide.T, self.X) if name == "Y" else (wide, self.dY)
        rows = rows[:SAMPLE].astype(np.float64)
        terms = max(1, int((matrix != 0).sum(axis=0).max()))
        return rows @ matrix, EPS32 * terms * (abs(rows) @ abs(matrix)), terms

    def floor(self, direction: str) -> float:
        """Return the bytes that a pass must read and write."""
        maps = self.X.nbytes + self.dY.nbytes + self.entries.nbytes
        return maps + (self.X.nbytes if direction == "backward" else 0)  # which writes dX


def planned(graph: Graph, name: str, operation: str, settings: Row, **operands: Any) -> Any:
    """Return a function that launches a plan, its outputs, and a function per kernel."""
    plan = accelviz.plan(graph, name, operation=operation, **settings)
    ready = find_device("cuda").prepare(plan)
    inputs, outputs = ready.inputs(ready.placed(operands)), ready.outputs()
    ready.launch(inputs, outputs)
    stream = cupy.cuda.get_current_stream().ptr
    calls = [functools.partial(call, {**inputs, **outputs}, stream) for call in ready.calls]
    return functools.partial(ready.launch, inputs, outputs), outputs, calls


def named(strategy: str, settings: Row) -> str:
    """Return a strategy with settings in the format of a record."""
    return strategy + "".join(f" {name}={value}" for name, value in settings.items())


def ours(layer: Layer) -> Iterator[Case]:
    """Check our kernels with the rule's settings and with others."""
    transposed = layer.channels.graph.transposed()
    operands = {
        "forward": {"values": layer.entries, "X": layer.X},
        "d_input": {"values": layer.entries[transposed.nonzeros], "X": layer.dY},
        "d_weights": {"X": layer.X, "dY": layer.dY},
    }
    for arithmetic, direction in itertools.product(ARITHMETIC, PASSES):
        operation, output = PASSES[direction]
        cases = settings_of(layer.channels, len(layer.X), layer.is_varied, direction, arithmetic)
        for graph, settings in cases:
            run, outputs, _ = planned(
                graph, "strided_windows", operation, settings, **operands[direction]
            )
            (result,) = outputs.values()
            others = {k: v for k, v in settings.items() if k not in ("n_cols", "arithmetic")}
            error = layer.error({output: result}, arithmetic)
            yield direction, named("strided_windows", others), arithmetic, run, error


def settings_of(
    channels: ChannelMap, n_cols: int, varied: bool, direction: str, arithmetic: str
) -> Iterator[tuple[Graph, Row]]:
    """Yield pattern and settings: the rule's, then others that are not wider than the layer."""
    operation, _ = PASSES[direction]
    graph = channels.graph.transposed().graph if direction == "d_input" else channels.graph
    widths = {"n_cols": n_cols, "arithmetic": arithmetic}
    yield graph, widths
    names, values, fewest = SETTINGS[operation]
    rule = accelviz.plan(graph, operation=operation, **widths).parameters
    for sizes in values if varied else ():
        setting = dict(zip(names, sizes, strict=True))
        filters, inputs = setting.get("pieces", 1) * setting.get("piece", 64), 32
        if operation == "scc_last_weights":
            filters *= setting["filter_warps"]
            inputs *= setting["channels"] * setting["channel_warps"]
        fits = filters <= max(64, graph.n_rows) and inputs <= max(fewest, graph.shape[1])
        if fits and any(rule[name] != value for name, value in setting.items()):
            yield graph, {**widths, **setting}


def chapters(layer: Layer) -> Iterator[Case]:
    """Check the chapter's kernels, without channel stacks that do not fit in memory."""
    graph, widths = layer.channels.graph, {"n_cols": layer.side**2, "images": layer.images}
    X, dY = layer.first(layer.X), layer.first(layer.dY)
    forward: list[tuple[str, Row]] = [("dsxplore", {}), ("channel_stack", {"cyclic": 1})]
    forward.append(("convolution_stack", {}))
    if 4 * graph.nnz * len(layer.X) <= MOST_STACK:
        forward.append(("channel_stack", {"cyclic": 0}))
    for name, setting in forward:
        operands = {"values": layer.entries, "X": X}
        run, outputs, _ = planned(graph, name, "scc", {**widths, **setting}, **operands)
        error = layer.error({"Y": layer.last(outputs["Y"])})
        yield "forward", named(name, setting), "float32", run, error
    for name in ("dsxplore", "dsxplore_var"):
        operands = {"values": layer.entries, "X": X, "dY": dY}
        run, outputs, calls = planned(graph, name, "scc_gradient", widths, **operands)
        gradients = {"dX": layer.last(outputs["dX"]), "d_values": outputs["d_values"]}
        yield "backward", name, "float32", run, layer.error(gradients)
        if name == "dsxplore":
            for direction, call in zip(("d_weights", "d_input"), calls, strict=True):
                yield direction, name, "float32", call, NO_ERROR


def rivals(layer: Layer) -> Iterator[Case]:
    """Check PyTorch's convolutions in NHWC layout; pointwise and grouped ones have no error."""
    channels = layer.channels
    X, dY, dense = (
        torch.as_tensor(array, device="cuda") for array in (layer.X, layer.dY, layer.dense)
    )
    mask = dense != 0
    shape = layer.images, layer.side, layer.side, -1
    image, d_image = (array.reshape(shape).permute(0, 3, 1, 2) for array in (X, dY))
    pointwise = torch.randn(channels.out_channels, channels.in_channels, 1, 1, device="cuda")
    grouped = pointwise[:, : channels.width].contiguous()
    pointwise, grouped = (
        array.to(memory_format=torch.channels_last) for array in (pointwise, grouped)
    )
    windows = torch.tensor(channels.windows, device="cuda").long()
    weights = torch.as_tensor(layer.weights, device="cuda")
    cycle = channels.cyclic_distance
    by_window = [weights[i::cycle, :, None, None].contiguous() for i in range(cycle)]
    Y, dX = torch.empty_like(dY), torch.empty_like(X)

    def stacked() -> None:
        copies = [functional.conv2d(image[:, windows[i]], by_window[i]) for i in range(cycle)]
        torch.stack(copies, 2).flatten(1, 2)

    torch.backends.cudnn.benchmark = True
    for arithmetic in ("tf32", "float32"):
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = (
            arithmetic == "tf32"
        )
        for name, groups, kernel in (("pw", 1, pointwise), ("gpw", channels.groups, grouped)):
            forward = functools.partial(functional.conv2d, image, kernel, groups=groups)
            yield "forward", name, arithmetic, forward, NO_ERROR
            for direction, gradient, operands in (
                ("d_input", conv2d_input, (image.shape, kernel, d_image)),
                ("d_weights", conv2d_weight, (image, kernel.shape, d_image)),
            ):
                if arithmetic == "tf32":
                    run = functools.partial(gradient, *operands, groups=groups)
                    yield direction, name, arithmetic, run, NO_ERROR
        torch.matmul(X, dense.T, out=Y)
        error = layer.error({"Y": cupy.asarray(Y[:SAMPLE])}, arithmetic)
        yield "forward", "masked", arithmetic, lambda: torch.matmul(X, dense.T, out=Y), error
        yield "d_input", "masked", arithmetic, lambda: torch.matmul(dY, dense, out=dX), NO_ERROR
        yield "d_weights", "masked", arithmetic, lambda: (dY.T @ X) * mask, NO_ERROR
        if layer.images <= 64:
            yield "forward", "torch windows", arithmetic, stacked, NO_ERROR


def layers(repeats: int) -> Iterator[Row]:
    """Compile our kernels on all cores, then check and time everything layer by layer."""
    cells = [
        (network, shape, *setting)
        for network, *setting, most in CELLS
        for shape in LAYERS[network][:most]
    ]
    compile_all(cells)
    bandwidth = CudaLimits().copy_bandwidth
    for network, *cell in cells:
        layer = Layer(*cell)
        for direction, name, arithmetic, run, error in itertools.chain(
            ours(layer), chapters(layer), rivals(layer)
        ):
            yield {
                "network": network,
                **layer.about,
                "pass": direction,
                "strategy": name,
                "arithmetic": arithmetic,
                "median_us": round(median_us(event_seconds(run, repeats, 2, cold=True)), 2),
                "floor_us": round(layer.floor(direction) / bandwidth * 1e6, 2),
                "error": error,
            }


def compile_all(cells: list[Any]) -> None:
    """Compile our kernels on all cores."""
    plans = [
        accelviz.plan(graph, operation=PASSES[direction][0], **settings)
        for _, (before, after, side), batch, *sizes in cells
        for direction, arithmetic in itertools.product(PASSES, ARITHMETIC)
        for graph, settings in settings_of(
            *(channel_map(before, after, *sizes), batch * side**2, (batch, *sizes) == VARIED),
            *(direction, arithmetic),
        )
    ]
    kernels = [call.kernel for plan in plans for call in plan.calls]
    different = {(kernel.source(), compile_options(kernel)): kernel for kernel in kernels}
    with ThreadPoolExecutor(12) as threads:
        list(threads.map(compiled, different.values()))
    print(f"{len(different)} kernels compiled", flush=True)


if __name__ == "__main__":
    main()
