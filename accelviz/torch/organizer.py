"""The network optimizer of chapter 7 of the thesis for PyTorch modules: `convolution.optimize`.

`torch.fx` traces the module. Nodes through which every path leads divide its graph into units; the
stage organizer (`convolution.organize`) moves units between stages, and the decomposer replaces the
3 x 3 convolutions of the units by a block.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from accelviz.convolution.networks import STANDARD, UNITS, Network, Stage, Step, organize
from accelviz.convolution.receptive import ALPHA, Kernel
from accelviz.errors import ArgumentError
from accelviz.torch.sliding import SlidingChannelConv2d
from accelviz.torch.units import (
    ACTIVATION_CALLS,
    ACTIVATIONS,
    Unit,
    is_elementwise,
    layer_of,
    shapes_of,
    stages_of,
    traced,
)

_NN = torch.nn


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
        Names of the convolutions that the block replaces, those of added units included, and of
        those in no unit.
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
    (13018, 11130)
    """
    graph_module = traced(model)
    shapes = shapes_of(graph_module, input_size)
    costs = [_costs(graph_module, shapes)]
    kind, stages, others = stages_of(graph_module, shapes)
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
    costs.append(_costs(graph_module, shapes_of(graph_module, input_size)))
    parameters, flops = zip(*costs, strict=True)
    plan = network.stages, organized.stages, tuple(steps), network.block
    return graph_module, Report(kind, *plan, tuple(replaced), others, parameters, flops)


def _costs(graph_module: Any, shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, int]:
    """Return the numbers of parameters and of multiply-adds for one image."""
    flops = 0
    for node in graph_module.graph.nodes:
        layer = layer_of(node)
        if isinstance(layer, _NN.Conv2d | SlidingChannelConv2d):
            _, _, height, width = shapes[node.name]
            flops += layer.weight.numel() * height * width
        elif isinstance(layer, _NN.Linear):
            flops += layer.weight.numel()
    return sum(parameter.numel() for parameter in graph_module.parameters()), flops


def _remove(graph: Any, unit: Unit) -> None:
    """Remove a unit whose input and output have one shape."""
    unit.output.replace_all_uses_with(unit.source)
    for node in reversed(unit.nodes):
        graph.erase_node(node)


def _append(graph_module: Any, units: list[Unit], name: str, channels: int) -> Unit:
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
                layer = _fresh(layer_of(node), channels if resized else 0)
                graph_module.add_submodule(duplicate.target, layer)
            last.append(duplicate)
            last, copies[node] = duplicate, duplicate
    outside = [user for user in template.output.users if user not in copies.values()]
    for user in outside:
        user.replace_input_with(template.output, last)
    run = copies[template.run[0]], copies[template.run[1]]
    nodes = [copies[node] for node in template.nodes]
    return Unit(template.kind, nodes, run)


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


def _decompose(graph_module: Any, unit: Unit, block: tuple[Kernel, ...]) -> list[str]:
    """Replace a unit's run of convolutions by a block; return the names of the replaced."""
    first, last = unit.run
    if first.all_input_nodes[0].op == "placeholder":
        return []
    conv, standard = layer_of(first), STANDARD[unit.kind]
    between = [*_followers(first)]
    biases = [
        not any(isinstance(layer_of(node), _NN.BatchNorm2d) for node in nodes)
        for nodes in (between, [*_followers(last)])
    ]
    stride = conv.stride[0]
    if stride > 1 and all(kernel.width == 1 for kernel in block):
        problem = f"no kernel can have the stride of {first.target!r}"
        raise ArgumentError("block", problem, "one of 3 x 3 pixels")
    before, inner = conv.in_channels, layer_of(last).out_channels
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
                layer = layer_of(follower)
                if isinstance(layer, _NN.BatchNorm2d):
                    call(f"{number}_norm", _norm(layer, after))
                elif isinstance(layer, ACTIVATIONS):
                    call(f"{number}_activation", copy.deepcopy(layer))
                elif layer is None and follower.target in ACTIVATION_CALLS:
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
    weighted = (number for number, kernel in enumerate(block) if kernel.kind != "shuffle")
    return max(weighted, default=-1)


def _followers(node: Any) -> Iterator[Any]:
    """Yield the layers after a convolution that keep shapes, up to the next of another kind."""
    while len(node.users) == 1 and is_elementwise(user := next(iter(node.users))):
        yield user
        node = user


def _convolution(kernel: Kernel, before: int, after: int, stride: int, bias: bool) -> Any:
    """Return a kernel's layer; one of several pixels keeps width and height at stride 1."""
    if kernel.kind == "shuffle":
        return _NN.ChannelShuffle(kernel.groups)
    if kernel.kind == "rpw":
        return SlidingChannelConv2d(before, after, kernel.groups, kernel.overlap, bias)
    groups = before if kernel.kind == "dw" else kernel.groups
    sizes = kernel.width, stride, kernel.width // 2
    return _NN.Conv2d(before, after, *sizes, groups=groups, bias=bias)
