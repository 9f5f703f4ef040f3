"""Stages and units of a PyTorch module, as chapter 7 of the thesis has them, traced by `torch.fx`.

Nodes through which every path leads divide the graph of a module into units.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.nn import functional

from accelviz.convolution.networks import UNITS, Stage
from accelviz.errors import ArgumentError, checked_integer, checked_type
from accelviz.torch.sliding import SlidingChannelConv2d

_NN = torch.nn
ACTIVATIONS = _NN.ReLU, _NN.ReLU6, _NN.LeakyReLU, _NN.ELU, _NN.SiLU, _NN.GELU, _NN.Hardswish
ACTIVATION_CALLS: tuple[Any, ...] = (
    *(functional.relu, functional.relu6, functional.silu, functional.gelu, functional.elu),
    *(functional.leaky_relu, torch.relu, "relu", "relu_"),
)
#: Layers and calls that keep shapes and belong to the convolution before them.
_ELEMENTWISE = *ACTIVATIONS, _NN.BatchNorm2d, _NN.Dropout, _NN.Dropout2d, _NN.Identity
_ELEMENTWISE_CALLS = *ACTIVATION_CALLS, functional.dropout, functional.dropout2d
_ADDITIONS = operator.add, operator.iadd, torch.add, "add", "add_"
#: Calls that return sizes instead of tensors.
_SIZES = "size", getattr, operator.getitem
#: All known layers and calls. The others are between stages or after the last one.
_LAYERS = (
    *(_NN.Conv2d, *_ELEMENTWISE, _NN.Flatten, _NN.Linear, _NN.Softmax, _NN.LogSoftmax),
    *(_NN.MaxPool2d, _NN.AvgPool2d, _NN.AdaptiveAvgPool2d, _NN.AdaptiveMaxPool2d),
)
_CALLS: tuple[Any, ...] = (
    *(*_ELEMENTWISE_CALLS, *_ADDITIONS, *_SIZES, functional.max_pool2d, torch.max_pool2d),
    *(functional.avg_pool2d, functional.adaptive_avg_pool2d, functional.adaptive_max_pool2d),
    *(torch.flatten, torch.mean, functional.softmax, functional.log_softmax, "flatten", "view"),
    *("reshape", "mean", "squeeze", "softmax", "log_softmax"),
)
_EXPECTED = "Conv2d, BatchNorm2d, activations, Dropout, pooling, residual sums, Flatten, Linear"


class _Tracer(torch.fx.Tracer):
    """Does not look into sliding-channel convolutions, which check the shapes of their maps."""

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        """Return whether a module is one node of the graph."""
        is_sliding = isinstance(m, SlidingChannelConv2d)
        return is_sliding or super().is_leaf_module(m, module_qualified_name)


def traced(model: Any) -> Any:
    """Return a copy of the model as a graph of known layers and calls."""
    checked_type("model", model, _NN.Module, "a torch.nn.Module")
    tracer = _Tracer()
    try:
        graph = tracer.trace(copy.deepcopy(model))
    except Exception as error:
        problem = f"torch.fx cannot trace it: {str(error).strip().splitlines()[0]}"
        expected = "a forward without branches on the values or sizes of tensors"
        raise ArgumentError("model", problem, expected) from error
    graph_module = torch.fx.GraphModule(tracer.root, graph)
    seen = set[str]()
    for node in graph_module.graph.nodes:
        if node.op == "call_module":
            layer = layer_of(node)
            if type(layer) not in _LAYERS:
                problem = f"layer {node.target!r} is a {type(layer).__name__}"
                raise ArgumentError("model", problem, _EXPECTED)
            if node.target in seen and any(True for _ in layer.parameters()):
                raise ArgumentError("model", f"layer {node.target!r} is called twice", "once")
            seen.add(node.target)
        elif node.op in ("call_function", "call_method") and node.target not in _CALLS:
            name = getattr(node.target, "__name__", node.target)
            raise ArgumentError("model", f"it calls {name!r}", _EXPECTED)
        elif node.op == "get_attr":
            problem = f"it uses the tensor {node.target!r} outside of a layer"
            raise ArgumentError("model", problem, _EXPECTED)
    inputs = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    if len(inputs) != 1:
        raise ArgumentError("model", f"it has {len(inputs)} inputs", "one, of images")
    return graph_module


def layer_of(node: Any) -> Any:
    """Return the layer that a node calls; None for other nodes."""
    if node.op != "call_module":
        return None
    return node.graph.owning_module.get_submodule(node.target)


class _Interpreter(torch.fx.Interpreter):
    """Records the shape of each node's result."""

    def run_node(self, node: Any) -> Any:
        """Run a node."""
        result = super().run_node(node)
        if isinstance(result, torch.Tensor):
            self.shapes[node.name] = tuple(result.shape)
        return result

    def traced_shapes(self, images: Any) -> dict[str, tuple[int, ...]]:
        """Return shapes by the names of nodes."""
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.run(images)
        return self.shapes


def shapes_of(graph_module: Any, input_size: Any) -> dict[str, tuple[int, ...]]:
    """Return the shape of each node's result for one image, without computing it."""
    if not isinstance(input_size, Sequence) or len(input_size) != 3:
        expected = "channels, height and width of an image"
        raise ArgumentError("input_size", f"got {input_size!r}", expected)
    for size in input_size:
        checked_integer("input_size", size, error=ArgumentError)
    meta = copy.deepcopy(graph_module).to("meta").eval()
    dtype = next((tensor.dtype for tensor in meta.parameters()), torch.float32)
    try:
        images = torch.empty(1, *input_size, device="meta", dtype=dtype)
        return _Interpreter(meta).traced_shapes(images)
    except Exception as error:
        problem = f"the model does not run on {tuple(input_size)}: {str(error).splitlines()[0]}"
        raise ArgumentError("input_size", problem, "the size of its images") from error


def _kernel(node: Any) -> str:
    """Return the kind of a node's convolution, as of `Kernel`; "" for others."""
    conv = layer_of(node)
    if type(conv) is not _NN.Conv2d or conv.stride[0] != conv.stride[1]:
        return ""
    if conv.kernel_size == (1, 1) and conv.groups == 1 and conv.padding in ((0, 0), "same"):
        return "pw"
    same = conv.kernel_size == (3, 3) and conv.padding in ((1, 1), "same")
    if same and conv.dilation == (1, 1) and conv.groups == 1:
        return "conv"
    if same and conv.dilation == (1, 1) and conv.groups == conv.in_channels == conv.out_channels:
        return "dw"
    return ""


@dataclass
class Unit:
    """Consecutive nodes with one input and one output.

    `kind` is a key of UNITS or, for a unit that the chapter does not describe, a description.
    `run` has the convolutions that a block replaces: the first and the last.
    """

    kind: str
    nodes: list[Any]
    run: tuple[Any, Any]

    @property
    def source(self) -> Any:
        """The node whose result the unit reads."""
        return self.nodes[0].all_input_nodes[0]

    @property
    def output(self) -> Any:
        """The node with the unit's result."""
        return self.nodes[-1]


def _pieces(graph: Any) -> Iterator[list[Any]]:
    """Yield groups of nodes; all paths lead through the last node of each group."""
    nodes = [node for node in graph.nodes if node.target not in _SIZES]
    position = {node: number for number, node in enumerate(nodes)}
    reach, piece = 0, list[Any]()
    for number, node in enumerate(nodes):
        piece.append(node)
        if reach <= number:
            yield piece
            piece = []
        reach = max([reach, *(position.get(user, 0) for user in node.users)])


def _units(graph: Any) -> tuple[list[tuple[Unit, bool]], list[Any]]:
    """Return the units, each with whether it follows the last directly, and their convolutions."""
    units, joined, source = list[tuple[Unit, bool]](), False, None
    for piece in _pieces(graph):
        node, layer = piece[-1], layer_of(piece[-1])
        unit = units[-1][0] if units and joined else None
        if len(piece) > 1:
            has_convolution = any(isinstance(layer_of(one), _NN.Conv2d) for one in piece)
            if has_convolution:
                units.append((_residual(piece, source), joined))
            joined = has_convolution
        elif isinstance(layer, _NN.Conv2d):
            kernel = _kernel(node)
            if unit and unit.kind == "dw" and kernel == "pw":
                unit.kind, unit.run = "dw+pw", (unit.run[0], node)
                unit.nodes.append(node)
            else:
                kind = kernel or repr(layer)
                units.append((Unit(kind, [node], (node, node)), joined))
                joined = True
        elif unit and is_elementwise(node):
            unit.nodes.append(node)
        else:
            joined = False
        source = node
    return units, [node for node in graph.nodes if isinstance(layer_of(node), _NN.Conv2d)]


def is_elementwise(node: Any) -> bool:
    """Return whether a node keeps shapes and belongs to the convolution before it."""
    return isinstance(layer_of(node), _ELEMENTWISE) or node.target in _ELEMENTWISE_CALLS


def _residual(piece: list[Any], source: Any) -> Unit:
    """Return a unit whose last node adds the results of two paths."""
    paths = list[list[Any]]()
    terms = piece[-1].args[:2] if piece[-1].target in _ADDITIONS else ()
    for node in terms:
        path = list[Any]()
        while isinstance(node, torch.fx.Node) and node is not source and node in piece:
            path.insert(0, node)
            node = node.args[0] if node.args else None
        paths.append(path if node is source else [])
    paths.sort(key=len)
    convs = [[node for node in path if isinstance(layer_of(node), _NN.Conv2d)] for path in paths]
    kernels = [[_kernel(node) for node in path] for path in convs]
    whole = sum(map(len, paths)) + 1 == len(piece)
    if whole and kernels in ([[], ["pw", "conv", "pw"]], [["pw"], ["pw", "conv", "pw"]]):
        return Unit("bottleneck", piece, (convs[1][1], convs[1][1]))
    convolutions = [node for node in piece if isinstance(layer_of(node), _NN.Conv2d)]
    text = ", ".join(f"{_kernel(node) or layer_of(node)}" for node in convolutions)
    return Unit(f"a residual unit of {text}", piece, (convolutions[0], convolutions[-1]))


def stages_of(
    graph_module: Any, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[str, list[tuple[Stage, list[Unit]]], tuple[str, ...]]:
    """Return the kind of the units, the stages with their units, and other convolutions' names."""
    units, convolutions = _units(graph_module.graph)
    kinds = [unit.kind for unit, _ in units]
    if not kinds:
        raise ArgumentError("model", "it has no convolution", _EXPECTED)
    kind = max(kinds, key=lambda one: (one in UNITS, kinds.count(one)))
    first = kinds.index(kind)
    for unit, _ in units[first:]:
        if unit.kind not in UNITS or unit.kind != kind:
            problem = f"at {unit.run[0].target!r} it has {unit.kind}"
            also = f", as before it ({kind})" if kind in UNITS else ""
            raise ArgumentError("model", problem, f"units of one kind of {', '.join(UNITS)}{also}")
    stages = list[tuple[Stage, list[Unit]]]()
    for unit, joined in units[first:]:
        _, channels, height, width = shapes[unit.output.name]
        if height != width:
            problem = f"maps of {height} x {width} pixels at {unit.run[0].target!r}"
            raise ArgumentError("input_size", problem, "square images")
        inner = channels // UNITS[kind]
        before = shapes[unit.source.name][1]
        last = stages[-1][0] if stages and joined else None
        if last and (last.width, last.channels) == (width, inner):
            stages[-1] = replace(last, units=last.units + 1), [*stages[-1][1], unit]
        else:
            stages.append((Stage(width, before, inner, 1), [unit]))
    inside = {node for _, units in stages for unit in units for node in unit.nodes}
    return kind, stages, tuple(str(node.target) for node in convolutions if node not in inside)
