"""The network optimizer of chapter 7 of the thesis for PyTorch modules: `convolution.optimize`.

`torch.fx` traces the module. Nodes through which every path leads divide its graph into units; the
stage organizer (`convolution.organize`) moves units between stages, and the decomposer replaces the
3 x 3 convolutions of the units by a block.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.nn import functional

from accelviz.convolution.networks import STANDARD, UNITS, Network, Stage, Step, organize
from accelviz.convolution.receptive import ALPHA, Kernel
from accelviz.errors import ArgumentError, checked_integer, checked_type
from accelviz.torch.sliding import SlidingChannelConv2d

_NN = torch.nn
_ACTIVATIONS = _NN.ReLU, _NN.ReLU6, _NN.LeakyReLU, _NN.ELU, _NN.SiLU, _NN.GELU, _NN.Hardswish
_ACTIVATION_CALLS = functional.relu, functional.relu6, functional.silu, functional.gelu
_ACTIVATION_CALLS += functional.leaky_relu, functional.elu, torch.relu, "relu", "relu_"
#: Layers and calls that keep shapes and belong to the convolution before them.
_ELEMENTWISE = *_ACTIVATIONS, _NN.BatchNorm2d, _NN.Dropout, _NN.Dropout2d, _NN.Identity
_ELEMENTWISE_CALLS = *_ACTIVATION_CALLS, functional.dropout, functional.dropout2d
_ADDITIONS = operator.add, operator.iadd, torch.add, "add", "add_"
#: Layers and calls between stages, or after the last one.
_OTHERS = _NN.MaxPool2d, _NN.AvgPool2d, _NN.AdaptiveAvgPool2d, _NN.AdaptiveMaxPool2d
_OTHERS += _NN.Flatten, _NN.Linear, _NN.Softmax, _NN.LogSoftmax
_OTHER_CALLS = functional.max_pool2d, functional.avg_pool2d, functional.adaptive_avg_pool2d
_OTHER_CALLS += functional.adaptive_max_pool2d, torch.max_pool2d, torch.flatten, torch.mean
_OTHER_CALLS += functional.softmax, functional.log_softmax, getattr, operator.getitem
_OTHER_CALLS += "flatten", "view", "reshape", "size", "mean", "squeeze", "softmax", "log_softmax"
_CALLS = *_ELEMENTWISE_CALLS, *_ADDITIONS, *_OTHER_CALLS
_LAYERS = _NN.Conv2d, *_ELEMENTWISE, *_OTHERS
_EXPECTED = "Conv2d, BatchNorm2d, activations, Dropout, pooling, residual sums, Flatten, Linear"


@dataclass(frozen=True)
class Report:
    """Decisions of `optimize`, and costs before and after.

    Attributes
    ----------
    unit : {"conv", "dw+pw", "bottleneck"}
        Kind of the model's units.
    before, after : tuple of Stage
        The stages of the model and of the result.
    steps : tuple of Step
        Steps of the stage organizer.
    block : tuple of Kernel
        Kernels that replace a 3 x 3 convolution; empty if none was replaced.
    replaced, others : tuple of str
        Names of the model's convolutions that the block replaces, and of those in no unit.
    parameters, flops : (int, int)
        Numbers of parameters, and of multiply-adds of convolutions and dense layers for one image,
        of the model and of the result.
    """

    unit: str
    before: tuple[Stage, ...]
    after: tuple[Stage, ...]
    steps: tuple[Step, ...]
    block: tuple[Kernel, ...]
    replaced: tuple[str, ...]
    others: tuple[str, ...]
    parameters: tuple[int, int]
    flops: tuple[int, int]

    def __str__(self) -> str:
        """Return the depths of the stages, the block and the costs, a line each."""
        depths = (
            "{" + ", ".join(str(stage.units) for stage in stages) + "}"
            for stages in (self.before, self.after)
        )
        block = " + ".join(kernel.name for kernel in self.block) or "none"
        (weights, fewer), (flops, less) = self.parameters, self.flops
        return (
            f"{self.unit} units of the stages: {' to '.join(depths)} in {len(self.steps)} steps\n"
            f"block: {block}, in place of {len(self.replaced)} convolutions\n"
            f"parameters: {weights:,} to {fewer:,}\n"
            f"multiply-adds: {flops:,} to {less:,}"
        )


def optimize(
    model: Any,
    input_size: tuple[int, int, int],
    *,
    block: str | Sequence[Kernel] | None = "B (MobileNet)",
    theta: float = 0.0,
    alpha: float = ALPHA,
    most: int = 100,
) -> tuple[Any, Report]:
    """Optimize a convolutional network by its 3D receptive fields (thesis, sections 7.4.1, 7.4.2).

    A stage has the consecutive units of one resolution and number of channels. A unit is a 3 x 3
    convolution, a depthwise with a pointwise one, or ResNet's bottleneck, each with what follows it
    (normalization, activation). All units after the first have the same kind; layers before it,
    between stages and after the last stage stay as they are.

    Parameters
    ----------
    model : torch.nn.Module
        A module of one input that `torch.fx` can trace. It is not changed.
    input_size : (int, int, int)
        Channels, height and width of an image; height and width are equal.
    block : str, sequence of Kernel, or None
        Kernels that replace a unit's 3 x 3 convolution, as of `Network.with_block`; None replaces
        none. A convolution of the image is not replaced. Each kernel but the last is followed by a
        normalization and an activation if the replaced convolution is.
    theta, alpha, most
        As of `convolution.organize`; `most=0` moves no unit.

    Returns
    -------
    module : torch.fx.GraphModule
        The optimized network, to be trained: units that stayed have copies of their weights, new
        layers have initial values.
    report : Report

    Raises
    ------
    ArgumentError
        If the model cannot be traced, has a layer or a unit that the chapter does not describe, or
        an argument is out of range.

    Examples
    --------
    >>> nn = torch.nn
    >>> layers = [nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1)]
    >>> model = nn.Sequential(*layers, nn.ReLU(), nn.Flatten(), nn.Linear(16 * 64, 10))
    >>> module, report = optimize(model, (3, 8, 8), most=0)
    >>> report.parameters
    (13018, 11034)
    """
    graph_module = _traced(model)
    shapes = _shapes(graph_module, input_size)
    costs = [_costs(graph_module, shapes)]
    kind, stages, others = _stages(graph_module, shapes)
    network = Network("model", tuple(stage for stage, _ in stages), kind)
    if block is not None:
        network = network.with_block(block)
    if network.block == STANDARD[kind]:  # the units are this block already
        network = replace(network, block=())
    steps = organize(network, theta, alpha, most)
    organized = network.with_depths(steps[-1].depths) if steps else network
    replaced = list[str]()
    for number, (stage, (_, units)) in enumerate(zip(organized.stages, stages, strict=True), 1):
        while len(units) > stage.units:
            _remove(graph_module.graph, units.pop())
        names = (f"organized.stage{number}_unit{n}" for n in range(len(units) + 1, stage.units + 1))
        for name in names:
            units.append(_append(graph_module, units, name, stage.channels * UNITS[kind]))
        for unit in units if network.block else ():
            replaced += _decompose(graph_module, unit, network.block)
    graph_module.graph.lint()
    graph_module.delete_all_unused_submodules()
    graph_module.recompile()
    graph_module.train(model.training)
    costs.append(_costs(graph_module, _shapes(graph_module, input_size)))
    parameters, flops = zip(*costs, strict=True)
    plan = network.stages, organized.stages, tuple(steps), network.block
    return graph_module, Report(kind, *plan, tuple(replaced), others, parameters, flops)


# ------------------------------------------------------------------------------------ reading it


def _traced(model: Any) -> Any:
    """Return a copy of the model as a graph of known layers and calls."""
    checked_type("model", model, _NN.Module, "a torch.nn.Module")
    try:
        graph_module = torch.fx.symbolic_trace(copy.deepcopy(model))
    except Exception as error:
        problem = f"torch.fx cannot trace it: {str(error).strip().splitlines()[0]}"
        expected = "a forward without branches on the values or sizes of tensors"
        raise ArgumentError("model", problem, expected) from error
    seen = set[str]()
    for node in graph_module.graph.nodes:
        if node.op == "call_module":
            layer = _layer(node)
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


def _layer(node: Any) -> Any:
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


def _shapes(graph_module: Any, input_size: Any) -> dict[str, tuple[int, ...]]:
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


def _costs(graph_module: Any, shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, int]:
    """Return the numbers of parameters and of multiply-adds for one image."""
    flops = 0
    for node in graph_module.graph.nodes:
        layer = _layer(node)
        if isinstance(layer, _NN.Conv2d | SlidingChannelConv2d):
            _, _, height, width = shapes[node.name]
            flops += layer.weight.numel() * height * width
        elif isinstance(layer, _NN.Linear):
            flops += layer.weight.numel()
    return sum(parameter.numel() for parameter in graph_module.parameters()), flops


def _kernel(node: Any) -> str:
    """Return the kind of a node's convolution, as of `Kernel`; "" for others."""
    conv = _layer(node)
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
class _Unit:
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
    nodes = [node for node in graph.nodes if node.op != "output"]
    position = {node: number for number, node in enumerate(nodes)}
    reach, piece = 0, list[Any]()
    for number, node in enumerate(nodes):
        piece.append(node)
        if reach <= number:
            yield piece
            piece = []
        reach = max([reach, *(position.get(user, len(nodes)) for user in node.users)])


def _units(graph: Any) -> tuple[list[tuple[_Unit, bool]], list[Any]]:
    """Return the units, each with whether it follows the last directly, and their convolutions."""
    units, joined, source = list[tuple[_Unit, bool]](), False, None
    for piece in _pieces(graph):
        node, layer = piece[-1], _layer(piece[-1])
        unit = units[-1][0] if units and joined else None
        if len(piece) > 1:
            has_convolution = any(isinstance(_layer(one), _NN.Conv2d) for one in piece)
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
                units.append((_Unit(kind, [node], (node, node)), joined))
                joined = True
        elif unit and _is_elementwise(node):
            unit.nodes.append(node)
        else:
            joined = False
        source = node
    return units, [node for node in graph.nodes if isinstance(_layer(node), _NN.Conv2d)]


def _is_elementwise(node: Any) -> bool:
    return isinstance(_layer(node), _ELEMENTWISE) or node.target in _ELEMENTWISE_CALLS


def _residual(piece: list[Any], source: Any) -> _Unit:
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
    convs = [[node for node in path if isinstance(_layer(node), _NN.Conv2d)] for path in paths]
    kernels = [[_kernel(node) for node in path] for path in convs]
    whole = sum(map(len, paths)) + 1 == len(piece)
    if whole and kernels in ([[], ["pw", "conv", "pw"]], [["pw"], ["pw", "conv", "pw"]]):
        return _Unit("bottleneck", piece, (convs[1][1], convs[1][1]))
    convolutions = [node for node in piece if isinstance(_layer(node), _NN.Conv2d)]
    text = ", ".join(f"{_kernel(node) or _layer(node)}" for node in convolutions)
    return _Unit(f"a residual unit of {text}", piece, (convolutions[0], convolutions[-1]))


def _stages(
    graph_module: Any, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[str, list[tuple[Stage, list[_Unit]]], tuple[str, ...]]:
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
    stages = list[tuple[Stage, list[_Unit]]]()
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


# ----------------------------------------------------------------------------------- changing it


def _remove(graph: Any, unit: _Unit) -> None:
    """Remove a unit whose input and output have one shape."""
    unit.output.replace_all_uses_with(unit.source)
    for node in reversed(unit.nodes):
        graph.erase_node(node)


def _append(graph_module: Any, units: list[_Unit], name: str, channels: int) -> _Unit:
    """Append a copy of a stage's last unit, whose layers have initial values; return it."""
    template, last = units[-1], units[-1].output
    resized = len(units) == 1  # the first unit of a stage may change the shape
    if resized and template.kind == "bottleneck":
        problem = f"the stage of {template.run[0].target!r} has one bottleneck, and is to get more"
        raise ArgumentError("model", problem, "two, as the first has a shortcut of its own")
    copies = {template.source: last}
    with graph_module.graph.inserting_after(last):
        for node in template.nodes:
            duplicate = graph_module.graph.node_copy(node, copies.__getitem__)
            if node.op == "call_module":
                duplicate.target = f"{name}.{node.target.replace('.', '_')}"
                layer = _fresh(_layer(node), channels if resized else 0)
                graph_module.add_submodule(duplicate.target, layer)
            last.append(duplicate)
            last, copies[node] = duplicate, duplicate
    outside = [user for user in template.output.users if user not in copies.values()]
    for user in outside:
        user.replace_input_with(template.output, last)
    run = copies[template.run[0]], copies[template.run[1]]
    nodes = [copies[node] for node in template.nodes]
    return _Unit(template.kind, nodes, run)


def _fresh(layer: Any, channels: int) -> Any:
    """Return a copy of a layer with initial values; with `channels`, of as many in and out."""
    layer = copy.deepcopy(layer)
    if channels and isinstance(layer, _NN.Conv2d):
        layer.stride, layer.in_channels, layer.out_channels = (1, 1), channels, channels
        layer.groups = channels if layer.groups > 1 else 1
        shape = channels, channels // layer.groups, *layer.kernel_size
        layer.weight = _NN.Parameter(layer.weight.new_empty(shape))
        if layer.bias is not None:
            layer.bias = _NN.Parameter(layer.bias.new_empty(channels))
    elif channels and isinstance(layer, _NN.BatchNorm2d):
        return _norm(layer, channels)
    if hasattr(layer, "reset_parameters"):
        layer.reset_parameters()
    return layer


def _norm(layer: Any, channels: int) -> Any:
    """Return a batch normalization like `layer` of other channels."""
    options = layer.eps, layer.momentum, layer.affine, layer.track_running_stats
    norm = _NN.BatchNorm2d(channels, *options)
    tensor = next((one for one in layer.state_dict().values() if one.is_floating_point()), None)
    return norm if tensor is None else norm.to(tensor.device, tensor.dtype)


def _decompose(graph_module: Any, unit: _Unit, block: tuple[Kernel, ...]) -> list[str]:
    """Replace a unit's run of convolutions by a block; return the names of the replaced."""
    first, last = unit.run
    if first.all_input_nodes[0].op == "placeholder":
        return []
    conv, standard = _layer(first), STANDARD[unit.kind]
    between = [*_followers(first)]
    biases = [
        not any(isinstance(_layer(node), _NN.BatchNorm2d) for node in nodes)
        for nodes in (between, [*_followers(last)])
    ]
    stride = conv.stride[0]
    if stride > 1 and all(kernel.width == 1 for kernel in block):
        raise ArgumentError(
            "block", f"no kernel can have the stride of {first.target!r}", "a 3 x 3"
        )
    before, inner = conv.in_channels, _layer(last).out_channels
    node, graph = first.all_input_nodes[0], graph_module.graph
    position, added, last_weights = first, list[Any](), _last_with_weights(block)

    def call(name: str, layer: Any) -> None:
        nonlocal node, position
        graph_module.add_submodule(f"{first.target}_{name}", layer)
        with graph.inserting_after(position):
            node = position = graph.call_module(f"{first.target}_{name}", (node,))
        added.append(node)

    for number, kernel in enumerate(block):
        after = before if kernel.kind in ("dw", "shuffle") else inner
        kernel.reads(before, after)  # raises ArgumentError for channels that do not fit
        step = stride if kernel.width > 1 else 1
        stride = 1 if kernel.width > 1 else stride
        layer = _convolution(kernel, before, after, step, biases[number == last_weights])
        call(f"{number}_{kernel.kind}", layer.to(conv.weight.device, conv.weight.dtype))
        before = after
        if kernel.kind != "shuffle" and number != last_weights:
            for follower in between:
                layer = _layer(follower)
                if isinstance(layer, _NN.BatchNorm2d):
                    call(f"{number}_norm", _norm(layer, after))
                elif isinstance(layer, _ACTIVATIONS):
                    call(f"{number}_activation", copy.deepcopy(layer))
                elif layer is None and follower.target in _ACTIVATION_CALLS:
                    with graph.inserting_after(position):
                        node = position = graph.node_copy(follower, lambda _, node=node: node)
                    added.append(node)
    names = [one.target for one in (first, last)][: len(standard)]
    last.replace_all_uses_with(node)
    start, end = unit.nodes.index(first), unit.nodes.index(last) + 1
    for one in reversed(unit.nodes[start:end]):
        graph.erase_node(one)
    unit.nodes[start:end] = added
    return names


def _last_with_weights(block: Sequence[Kernel]) -> int:
    return max(number for number, kernel in enumerate(block) if kernel.kind != "shuffle")


def _followers(node: Any) -> Iterator[Any]:
    """Yield the layers after a convolution that keep shapes, up to the next of another kind."""
    while len(node.users) == 1 and _is_elementwise(user := next(iter(node.users))):
        yield user
        node = user


def _convolution(kernel: Kernel, before: int, after: int, stride: int, bias: bool) -> Any:
    """Return a kernel's layer; one of several pixels keeps width and height at stride 1."""
    if kernel.kind == "shuffle":
        return _NN.ChannelShuffle(kernel.groups)
    if kernel.kind == "rpw":
        return SlidingChannelConv2d(before, after, kernel.groups, kernel.overlap, bias)
    groups = before if kernel.kind == "dw" else kernel.groups
    options = {"stride": stride, "padding": kernel.width // 2, "groups": groups, "bias": bias}
    return _NN.Conv2d(before, after, kernel.width, **options)
