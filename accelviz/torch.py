"""Layers for PyTorch with the constructors and state dicts of PyTorch Geometric's.

`from accelviz.torch import GCNConv` in place of `from torch_geometric.nn import GCNConv` changes a
model. Tensors go to the kernels and back without a copy (DLPack), on PyTorch's current stream.
Edges are brought into CSR once for each `edge_index` tensor and kept as long as it lives.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import weakref
from typing import Any, ClassVar

import numpy as np

from accelviz.errors import ArgumentError, checked_choice
from accelviz.executors import find_executor, ready
from accelviz.executors.run import plan_of
from accelviz.graph import Graph
from accelviz.layers.attention import NORM_EPS, SLOPE
from accelviz.strategies import OPERATIONS, find_strategy

try:
    import torch
    from torch.nn import functional
except ModuleNotFoundError as error:
    what = "accelviz.torch needs PyTorch: pip install 'accelviz[torch]'"
    raise ModuleNotFoundError(what, name=error.name) from error

__all__ = ["AGNNConv", "Edges", "GATConv", "GATv2Conv", "GCNConv", "GINConv", "SAGEConv"]


class Edges:
    """The edges of a graph as CSR, for as many layers and steps as use them.

    Parameters
    ----------
    edge_index : tensor of int64, shape (2, E), or sparse CSR tensor
        Senders and receivers, or the matrix whose row is the receiver.
    n_nodes : int
    loops : bool
        Give every node a self loop, where it has none.

    Attributes
    ----------
    rows, columns : tensors of int64, shape (nnz,)
        Receiver and sender of each nonzero.
    position : tensor of int64, shape (E,)
        The nonzero of each edge; edges that are there twice share one.
    own : tensor of int64
        The nonzeros on the diagonal that are self loops, in the order of the nodes; with `loops`
        one for each node.
    had_loop : tensor of bool, shape (n_nodes,)
        Which nodes had a self loop already.
    weight : tensor or None
        The values of a sparse tensor, one for each edge.

    Raises
    ------
    ArgumentError
        If `edge_index` is neither, or a node does not exist.
    """

    _numbers = itertools.count()
    _all: ClassVar[weakref.WeakValueDictionary[int, Edges]] = weakref.WeakValueDictionary()
    #: A backward pass may come when its `edge_index` is gone already.
    _recent: ClassVar[collections.deque[Edges]] = collections.deque(maxlen=16)
    _known: ClassVar[dict[tuple[int, int, bool], tuple[Any, int, Edges]]] = {}

    def __init__(self, edge_index: Any, n_nodes: int, loops: bool) -> None:
        senders, receivers, self.weight = _pairs(edge_index)
        ends = torch.stack([senders, receivers])
        if ends.numel() and (int(ends.min()) < 0 or int(ends.max()) >= n_nodes):
            what = f"nodes {int(ends.min())} to {int(ends.max())} for {n_nodes} rows of x"
            raise ArgumentError("edge_index", what, f"0 to {n_nodes - 1}")
        nodes = torch.arange(n_nodes, device=ends.device)
        keys = receivers * n_nodes + senders
        both = torch.cat([keys, nodes * n_nodes + nodes]) if loops else keys
        unique, place = torch.unique(both, return_inverse=True)
        self.rows, self.columns = unique // n_nodes, unique % n_nodes
        self.position, self.own = place[: keys.numel()], place[keys.numel() :]
        self.had_loop = torch.zeros(n_nodes, dtype=torch.bool, device=ends.device)
        self.had_loop[receivers[senders == receivers]] = True
        self.repeated = int(keys.numel() - torch.unique(self.position).numel())
        counts = torch.bincount(self.rows, minlength=n_nodes).cpu().numpy()
        self.graph = Graph(
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            self.columns.cpu().numpy().astype(np.int32),
            np.ones(unique.numel(), np.float32),
            (n_nodes, n_nodes),
            "edge_index",
        )
        self.number = next(self._numbers)
        Edges._all[self.number] = self
        Edges._recent.append(self)
        self.constants: dict[str, Any] = {}

    @classmethod
    def of(cls, edge_index: Any, n_nodes: int, loops: bool) -> Edges:
        """Return the edges of a tensor, made once while it lives unchanged; Edges as they are."""
        if isinstance(edge_index, Edges):
            return edge_index
        key = (id(edge_index), n_nodes, loops)
        version = getattr(edge_index, "_version", 0)
        reference, known, found = cls._known.get(key, (lambda: None, 0, None))
        if found is None or reference() is not edge_index or known != version:
            found = cls(edge_index, n_nodes, loops)
            forget = weakref.ref(edge_index, lambda _: cls._known.pop(key, None))
            cls._known[key] = (forget, version, found)
        return found

    def single(self, layer: str) -> Edges:
        """Return itself if no edge is there twice.

        Raises
        ------
        ArgumentError
            If one is: a weight is that of a pair of nodes here.
        """
        if self.repeated:
            what = f"{self.repeated} edges are there twice, and {layer} weighs each by itself"
            raise ArgumentError("edge_index", what, "torch_geometric.utils.coalesce(edge_index)")
        return self

    def values(self, weight: Any = None) -> Any:
        """Return the weights of edges, 1 if not given, added up for each nonzero."""
        weight = self.weight if weight is None else weight
        if weight is None:
            weight = torch.ones(self.position.numel(), device=self.position.device)
        zeros = torch.zeros(self.rows.numel(), device=weight.device, dtype=weight.dtype)
        return zeros.index_add(0, self.position, weight.reshape(-1))

    def row_sums(self, values: Any) -> Any:
        """Add up weights of nonzeros over each row."""
        zeros = torch.zeros(self.graph.n_rows, device=values.device, dtype=values.dtype)
        return zeros.index_add(0, self.rows, values)


def _pairs(edge_index: Any) -> tuple[Any, Any, Any]:
    """Return senders, receivers and weights, the last None if there are none."""
    if hasattr(edge_index, "csr") and not isinstance(edge_index, torch.Tensor):  # torch_sparse
        pointers, columns, weight = edge_index.csr()
    elif isinstance(edge_index, torch.Tensor) and edge_index.layout == torch.sparse_csr:
        pointers, columns = edge_index.crow_indices(), edge_index.col_indices()
        weight = edge_index.values()
    elif isinstance(edge_index, torch.Tensor) and edge_index.layout == torch.sparse_coo:
        return _pairs(edge_index.to_sparse_csr())
    else:
        fits = isinstance(edge_index, torch.Tensor) and edge_index.dim() == 2
        if not fits or edge_index.size(0) != 2 or edge_index.dtype != torch.int64:
            what = f"a {type(edge_index).__name__}"
            if isinstance(edge_index, torch.Tensor):
                what = f"shape {tuple(edge_index.shape)}, {edge_index.dtype}"
            right = "a tensor of int64 of shape (2, E), or a sparse CSR tensor"
            raise ArgumentError("edge_index", what, right)
        return edge_index[0], edge_index[1], None
    rows = torch.arange(pointers.numel() - 1, device=pointers.device)
    return columns.long(), rows.repeat_interleave(pointers.diff()), weight


# The operations, for autograd and torch.compile. ------------------------------------------------


def _operation(number: int, name: str, keys: str, tensors: list[Any], numbers: list[float]) -> Any:
    """Run an operation on edges: the tensors' names come first in `keys`, then the numbers'."""
    operation, graph = _of(number, name)
    names = keys.split(",")
    device, executor = tensors[0].device, find_executor(tensors[0].device.type)
    given = {key: t.detach().contiguous() for key, t in zip(names, tensors, strict=False)}
    widths = operation.widths_of(given)
    plan = plan_of(graph, find_strategy(operation.fastest, operation), widths)
    shapes = {each.name: each.shape(plan.sizes) for each in operation.outputs}
    outputs = {key: torch.empty(shape, device=device) for key, shape in shapes.items()}
    arrays, out = ({key: _array(t) for key, t in ts.items()} for ts in (given, outputs))
    arrays |= dict(zip(names[len(tensors) :], numbers, strict=True))
    with _on_stream(device):
        ready(plan, executor).run(arrays, out)
    return list(outputs.values())


def _of(number: int, name: str) -> tuple[Any, Graph]:
    edges = Edges._all[number]
    if name == "spmm_transposed":
        return OPERATIONS["spmm"], edges.graph.transposed().graph
    return OPERATIONS[name], edges.graph


def _array(tensor: Any) -> Any:
    """Return a tensor's memory as an array of CuPy or NumPy; words are unsigned there."""
    if tensor.device.type == "cpu":
        array = tensor.numpy()
    else:
        from accelviz.executors.cuda.dense import cupy_module

        with _on_stream(tensor.device):
            array = cupy_module().from_dlpack(tensor)
    return array.view(np.uint32) if tensor.dtype == torch.int32 else array


def _on_stream(device: Any) -> contextlib.AbstractContextManager[Any]:
    """Make CuPy use PyTorch's current stream."""
    if device.type == "cpu":
        return contextlib.nullcontext()
    from accelviz.executors.cuda.dense import cupy_module

    stream, cuda = torch.cuda.current_stream(device), cupy_module().cuda
    if hasattr(stream, "__cuda_stream__") and hasattr(cuda.Stream, "from_external"):
        found: contextlib.AbstractContextManager[Any] = cuda.Stream.from_external(stream)
    else:  # before CuPy 14 or the protocol in PyTorch
        found = cuda.ExternalStream(stream.cuda_stream, stream.device_index)
    return found


def _shapes(number: int, name: str, keys: str, tensors: list[Any], numbers: list[float]) -> Any:
    """Return empty results, for torch.compile."""
    operation, graph = _of(number, name)
    given = dict(zip(keys.split(","), tensors, strict=False))
    sizes = operation.sizes(graph.pattern, operation.widths_of(given))
    return [tensors[0].new_empty(each.shape(sizes)) for each in operation.outputs]


_run = torch.library.custom_op(
    "accelviz::operation",
    _operation,
    mutates_args=(),
    schema="(int number, str name, str keys, Tensor[] tensors, float[] numbers) -> Tensor[]",
)
_run.register_fake(_shapes)


class _SpMM(torch.autograd.Function):
    """`A X`, with gradients by the weights and by X."""

    @staticmethod
    def forward(ctx: Any, number: int, values: Any, X: Any) -> Any:
        ctx.number = number
        ctx.save_for_backward(values, X)
        return _run(number, "spmm", "X,values", [X, values], [])[0]

    @staticmethod
    def backward(ctx: Any, dY: Any) -> Any:
        (values, X), d_values, dX = ctx.saved_tensors, None, None
        if ctx.needs_input_grad[1]:
            pair = [dY[:, None].contiguous(), X[:, None].contiguous()]
            d_values = _run(ctx.number, "sddmm", "U,V", pair, [])[0][:, 0]
        if ctx.needs_input_grad[2]:
            order = _transposed_order(ctx.number, values.device)
            given = [dY.contiguous(), values[order]]
            dX = _run(ctx.number, "spmm_transposed", "X,values", given, [])[0]
        return None, d_values, dX


@torch.compiler.disable
def _transposed_order(number: int, device: Any) -> Any:
    edges = Edges._all[number]
    if "order" not in edges.constants:
        order = torch.from_numpy(edges.graph.transposed().nonzeros.astype(np.int64))
        edges.constants["order"] = order.to(device)
    return edges.constants["order"]


class _Attention(torch.autograd.Function):
    """A fused attention: tensors by name, then numbers; the words of dropout come last of all."""

    @staticmethod
    def forward(
        ctx: Any, number: int, name: str, keys: str, numbers: Any, words: Any, *tensors: Any
    ) -> Any:
        given, named = [*tensors], keys
        if words is not None:
            given, named = [*tensors, words], _inserted(keys, len(tensors), "random")
        Y, logsumexp = _run(number, name, named, given, numbers)
        ctx.number, ctx.name, ctx.keys, ctx.numbers = number, name, keys, numbers
        ctx.save_for_backward(Y, logsumexp, words, *tensors)
        return Y

    @staticmethod
    def backward(ctx: Any, dY: Any) -> Any:
        Y, logsumexp, words, *tensors = ctx.saved_tensors
        given = [*tensors, Y, logsumexp, dY.contiguous()]
        named = _inserted(ctx.keys, len(tensors), "Y,logsumexp,dY")
        if words is not None:
            named = _inserted(named, len(given), "random")
            given.append(words)
        found = _run(ctx.number, f"{ctx.name}_gradient", named, given, ctx.numbers)
        outputs = [each.name for each in OPERATIONS[f"{ctx.name}_gradient"].outputs]
        by_name = dict(zip(outputs, found, strict=True))
        names = ctx.keys.split(",")[: len(tensors)]
        return (None,) * 5 + tuple(
            by_name[f"d{key}" if len(key) == 1 else f"d_{key}"] for key in names
        )


def _inserted(keys: str, place: int, more: str) -> str:
    names = keys.split(",")
    return ",".join([*names[:place], more, *names[place:]])


def _attention(edges: Edges, name: str, rate: float, slope: float | None, **tensors: Any) -> Any:
    keys, numbers, words = [*tensors], [], None
    if slope is not None:
        keys, numbers = [*keys, "slope"], [slope]
    first = next(iter(tensors.values()))
    if rate:  # two words of a seed, from PyTorch's own generator, then a site and a step
        seed = torch.randint(-(1 << 31), 1 << 31, (2,), device=first.device)
        words = torch.cat([seed, torch.zeros_like(seed)]).to(torch.int32)
        keys, numbers = [*keys, "rate"], [*numbers, rate]
    given = [each.contiguous() for each in tensors.values()]
    return _Attention.apply(edges.number, name, ",".join(keys), numbers, words, *given)


@torch.compiler.disable
def _edges(edge_index: Any, x: Any, loops: bool) -> Edges:
    if not isinstance(x, torch.Tensor) or x.dim() != 2:
        what = f"a {type(x).__name__}"
        raise ArgumentError("x", what, "a tensor of shape (n_nodes, n_features): one set of nodes")
    if x.dtype != torch.float32:
        raise ArgumentError("x", f"dtype {x.dtype}", "torch.float32")
    return Edges.of(edge_index, x.size(0), loops)


# The layers. ------------------------------------------------------------------------------------


def _glorot(*tensors: Any) -> None:
    for tensor in tensors:
        bound = (6.0 / (tensor.size(-2) + tensor.size(-1))) ** 0.5
        torch.nn.init.uniform_(tensor, -bound, bound)


def _linear(n_in: Any, n_out: int, bias: bool) -> Any:
    if not isinstance(n_in, int) or n_in < 1:
        raise ArgumentError("in_channels", f"got {n_in!r}", "a number of columns, at least 1")
    return torch.nn.Linear(n_in, n_out, bias=bias)


def _refused(**given: Any) -> None:
    for name, (value, plain) in given.items():
        if value != plain:
            raise ArgumentError(name, f"got {value!r}", f"{plain!r}; accelviz has no other yet")


class GCNConv(torch.nn.Module):
    """`torch_geometric.nn.GCNConv`; `cached` changes nothing, as normalised edges are kept."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        improved: bool = False,
        cached: bool = False,
        add_self_loops: bool | None = None,
        normalize: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.improved, self.normalize = improved, normalize
        self.add_self_loops = normalize if add_self_loops is None else add_self_loops
        self.in_channels, self.out_channels = in_channels, out_channels
        self.lin = _linear(in_channels, out_channels, False)
        self.bias = torch.nn.Parameter(torch.zeros(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        _glorot(self.lin.weight)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def forward(self, x: Any, edge_index: Any, edge_weight: Any = None) -> Any:
        """Return `D^-1/2 (A + I) D^-1/2 X W + b`, in the cheaper order."""
        edges = _edges(edge_index, x, self.add_self_loops and self.normalize)
        values = self._values(edges, edge_weight)
        if self.in_channels < self.out_channels:
            out = self.lin(_SpMM.apply(edges.number, values, x.contiguous()))
        else:
            out = _SpMM.apply(edges.number, values, self.lin(x))
        return out if self.bias is None else out + self.bias

    def _values(self, edges: Edges, weight: Any) -> Any:
        if not self.normalize:
            return edges.values(weight)
        kept = f"gcn {self.improved} {self.add_self_loops}"
        own = weight is None and (edges.weight is None or not edges.weight.requires_grad)
        if own and kept in edges.constants:
            return edges.constants[kept]
        values = edges.values(weight)
        if self.add_self_loops:
            # As in PyTorch Geometric, `improved` counts only where there are weights.
            weighted = weight is not None or edges.weight is not None
            missing = (~edges.had_loop).to(values.dtype) * (1.0 + (self.improved and weighted))
            values = values.index_add(0, edges.own, missing)
        root = edges.row_sums(values).pow(-0.5)
        root = root.masked_fill(root == float("inf"), 0.0)
        values = root[edges.rows] * values * root[edges.columns]
        if own:
            edges.constants[kept] = values
        return values


class GINConv(torch.nn.Module):
    """`torch_geometric.nn.GINConv`: `nn((1 + eps) x + the sum over neighbors)`."""

    def __init__(self, nn: Any, eps: float = 0.0, train_eps: bool = False) -> None:
        super().__init__()
        self.nn, self.initial_eps = nn, eps
        if train_eps:
            self.eps = torch.nn.Parameter(torch.full((1,), float(eps)))
        else:
            self.register_buffer("eps", torch.full((1,), float(eps)))

    def reset_parameters(self) -> None:
        """Draw the parameters of `nn` anew, and set eps back."""
        for module in self.nn.modules():
            if module is not self.nn and hasattr(module, "reset_parameters"):
                module.reset_parameters()
        with torch.no_grad():
            self.eps.fill_(self.initial_eps)

    def forward(self, x: Any, edge_index: Any) -> Any:
        """Add up, then apply `nn`."""
        edges = _edges(edge_index, x, False)
        summed = _SpMM.apply(edges.number, edges.values(), x.contiguous())
        return self.nn(summed + (1 + self.eps) * x)


class SAGEConv(torch.nn.Module):
    """`torch_geometric.nn.SAGEConv` with the mean or the sum."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        aggr: str = "mean",
        normalize: bool = False,
        root_weight: bool = True,
        project: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.aggr = checked_choice("aggr", aggr, ("mean", "sum", "add"))
        self.normalize, self.root_weight, self.project = normalize, root_weight, project
        self.lin = _linear(in_channels, in_channels, True) if project else None
        self.lin_l = _linear(in_channels, out_channels, bias)
        self.lin_r = _linear(in_channels, out_channels, False) if root_weight else None

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        for linear in (self.lin, self.lin_l, self.lin_r):
            if linear is not None:
                linear.reset_parameters()

    def forward(self, x: Any, edge_index: Any) -> Any:
        """Return the neighbors' part and the node's own."""
        edges = _edges(edge_index, x, False)
        neighbors = x if self.lin is None else self.lin(x).relu()
        values = edges.values(torch.ones_like(edges.position, dtype=x.dtype))
        if self.aggr == "mean":
            values = values / edges.row_sums(values).clamp(min=1)[edges.rows]
        n_in, n_out = self.lin_l.in_features, self.lin_l.out_features
        if n_out < n_in:  # the bias does not go through the mean: a node may have no neighbor
            out = functional.linear(neighbors, self.lin_l.weight)
            out = _SpMM.apply(edges.number, values, out)
            out = out if self.lin_l.bias is None else out + self.lin_l.bias
        else:
            out = self.lin_l(_SpMM.apply(edges.number, values, neighbors.contiguous()))
        if self.lin_r is not None:
            out = out + self.lin_r(x)
        return functional.normalize(out, p=2.0, dim=-1) if self.normalize else out


class _Heads(torch.nn.Module):
    """What GATConv and GATv2Conv share."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int,
        concat: bool,
        slope: float,
        dropout: float,
        add_self_loops: bool,
        bias: bool,
        residual: bool,
    ) -> None:
        super().__init__()
        self.heads, self.out_channels, self.concat = heads, out_channels, concat
        self.negative_slope, self.dropout = slope, dropout
        self.add_self_loops = add_self_loops
        width = heads * out_channels if concat else out_channels
        self.res = _linear(in_channels, width, False) if residual else None
        self.bias = torch.nn.Parameter(torch.zeros(width)) if bias else None

    def _finished(self, out: Any, x: Any) -> Any:
        out = out.flatten(1) if self.concat else out.mean(dim=1)
        if self.res is not None:
            out = out + self.res(x)
        return out if self.bias is None else out + self.bias

    def _by_head(self, x: Any) -> Any:
        return x.view(-1, self.heads, self.out_channels)

    def _attend(self, edge_index: Any, x: Any, name: str, **tensors: Any) -> Any:
        edges = _edges(edge_index, x, self.add_self_loops).single(type(self).__name__)
        rate = self.dropout if self.training else 0.0
        return _attention(edges, name, rate, self.negative_slope, **tensors)

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                _glorot(parameter)
            elif name == "bias":
                torch.nn.init.zeros_(parameter)


class GATConv(_Heads):
    """`torch_geometric.nn.GATConv`, without features of edges; fused, forward and backward."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = SLOPE,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        edge_dim: int | None = None,
        fill_value: Any = "mean",
        bias: bool = True,
        residual: bool = False,
    ) -> None:
        _refused(edge_dim=(edge_dim, None))
        shared = heads, concat, negative_slope, dropout, add_self_loops, bias, residual
        super().__init__(in_channels, out_channels, *shared)
        self.lin = _linear(in_channels, heads * out_channels, False)
        self.att_src = torch.nn.Parameter(torch.empty(1, heads, out_channels))
        self.att_dst = torch.nn.Parameter(torch.empty(1, heads, out_channels))
        self.reset_parameters()

    def forward(self, x: Any, edge_index: Any) -> Any:
        """Score by sender and receiver, weigh, add up."""
        V = self._by_head(self.lin(x))
        ends = {"receiver": (V * self.att_dst).sum(-1), "sender": (V * self.att_src).sum(-1)}
        return self._finished(self._attend(edge_index, x, "gat", **ends, V=V), x)


class GATv2Conv(_Heads):
    """`torch_geometric.nn.GATv2Conv`, without features of edges; fused, forward and backward."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = SLOPE,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        edge_dim: int | None = None,
        fill_value: Any = "mean",
        bias: bool = True,
        share_weights: bool = False,
        residual: bool = False,
    ) -> None:
        _refused(edge_dim=(edge_dim, None))
        shared = heads, concat, negative_slope, dropout, add_self_loops, bias, residual
        super().__init__(in_channels, out_channels, *shared)
        self.lin_l = _linear(in_channels, heads * out_channels, bias)
        self.lin_r = self.lin_l
        if not share_weights:
            self.lin_r = _linear(in_channels, heads * out_channels, bias)
        self.att = torch.nn.Parameter(torch.empty(1, heads, out_channels))
        self.reset_parameters()

    def forward(self, x: Any, edge_index: Any) -> Any:
        """Score by sender and receiver together, weigh, add up."""
        V, R = self._by_head(self.lin_l(x)), self._by_head(self.lin_r(x))
        found = self._attend(edge_index, x, "gatv2", R=R, V=V, a=self.att[0])
        return self._finished(found, x)


class AGNNConv(torch.nn.Module):
    """`torch_geometric.nn.AGNNConv`; fused, forward and backward."""

    def __init__(self, requires_grad: bool = True, add_self_loops: bool = True) -> None:
        super().__init__()
        self.add_self_loops = add_self_loops
        if requires_grad:
            self.beta = torch.nn.Parameter(torch.ones(1))
        else:
            self.register_buffer("beta", torch.ones(1))

    def reset_parameters(self) -> None:
        """Set beta back to 1."""
        with torch.no_grad():
            self.beta.fill_(1.0)

    def forward(self, x: Any, edge_index: Any) -> Any:
        """Score by cosines, weigh, add up."""
        edges = _edges(edge_index, x, self.add_self_loops).single("AGNNConv")
        scale = 1 / x.norm(dim=-1, keepdim=True).clamp(min=NORM_EPS)
        Q = (self.beta * scale * x)[:, None]
        found = _attention(edges, "cosine", 0.0, None, Q=Q, V=x[:, None], scale=scale)
        return found[:, 0]
