"""Features with the rows of a halo, whose dropout is the same on all ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from accelviz.errors import ArgumentError
from accelviz.torch import operators

if TYPE_CHECKING:
    from accelviz.torch.split import SplitGraph

_DROPOUTS = (functional.dropout, torch.dropout)


class HaloRows(torch.Tensor):
    """Rows of a rank's nodes and its halo, (n_sources, ...).

    `torch.nn.functional.dropout` of them drops elements by the number of the node, so that all
    ranks drop the same elements of a node's row. All else is that of a tensor.
    """

    graph: SplitGraph

    @classmethod
    def of(cls, x: Any, graph: SplitGraph) -> Any:
        """Return the tensor x with the type of this class."""
        rows = x.as_subclass(cls)
        rows.graph = graph
        return rows

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of PyTorch; results with as many rows have this type."""
        kwargs = kwargs or {}
        graph = next((value.graph for value in args if isinstance(value, cls)), None)
        if func in _DROPOUTS and graph is not None:
            return _functional_dropout(graph, *args, **kwargs)
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **kwargs)
        is_tensor = type(result) is torch.Tensor and result.dim() > 0
        if is_tensor and graph is not None and result.size(0) == graph.n_sources:
            return cls.of(result, graph)
        return result


def plain(x: Any) -> Any:
    """Return a tensor without the type `HaloRows`."""
    return x.as_subclass(torch.Tensor) if isinstance(x, HaloRows) else x


def _functional_dropout(
    graph: SplitGraph,
    input: Any,  # noqa: A002
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
) -> Any:
    """Return what `functional.dropout` returns; the names are those of PyTorch."""
    if not 0 <= p < 1:
        raise ArgumentError("p", f"got {p}", "a rate of at least 0 and below 1")
    if not training or p == 0:
        return input
    if inplace:
        raise ArgumentError("inplace", "features with a halo would change each step", "False")
    x = plain(input)
    if x.size(0) != graph.n_sources:
        return functional.dropout(x, p)
    rows = x.float().flatten(1).contiguous()
    dropped = _Dropout.apply(rows, graph.source_nodes(), graph.next_random(), float(p))
    return HaloRows.of(dropped.view(x.shape).to(x.dtype), graph)


class _Dropout(torch.autograd.Function):
    """Dropout of rows, (n_rows, n_cols), by the numbers of their nodes."""

    @staticmethod
    def forward(ctx: Any, x: Any, nodes: Any, random: Any, rate: float) -> Any:
        """Return x with elements of each row set to 0, and the others divided by 1 - rate."""
        ctx.save_for_backward(nodes, random)
        ctx.rate = rate
        return operators.backend(x).row_dropout(x, nodes, random, rate)

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        """Return the gradient of x."""
        nodes, random = ctx.saved_tensors
        return _Dropout.apply(dy.contiguous(), nodes, random, ctx.rate), None, None, None
