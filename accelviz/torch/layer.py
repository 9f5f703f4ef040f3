"""What the layers share: the calls that accelviz's operations cover, and the forms of a graph."""

from __future__ import annotations

import functools
import inspect
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import torch
import torch.nn.modules.module as torch_module
from torch.nn import functional
from torch_geometric import EdgeIndex, nn
from torch_geometric.nn import aggr
from torch_geometric.typing import SparseTensor

from accelviz.errors import ArgumentError
from accelviz.torch import operators
from accelviz.torch.edges import Edges, check_edge_index, parts
from accelviz.torch.split import SplitGraph

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
INDICES = (torch.int64, torch.int32)
_REDUCTIONS = {
    aggr.SumAggregation: "sum",
    aggr.MeanAggregation: "mean",
    aggr.MaxAggregation: "max",
    aggr.MinAggregation: "min",
}
#: Methods of `MessagePassing` that our operations replace.
_REPLACED = ("message", "aggregate", "update", "message_and_aggregate", "edge_update")
_HOOKS = tuple(
    f"_{method}_forward{kind}_hooks"
    for method in ("propagate", "message", "aggregate", "message_and_aggregate", "edge_update")
    for kind in ("_pre", "")
)
_PYG = "torch_geometric."
_FEATURES = "a tensor of shape (n_nodes, n_features), or a pair of tensors"
_STRATEGY = """
`strategy` : str, Strategy, or dict of operation to one of these, optional
    Run the layer by plans of this system of `accelviz.strategies()`, forward and backward. A
    strategy without effect on the layer raises ArgumentError.
"""
_warned = False


class Layer:
    """Base class of accelviz's layers, before the class of PyTorch Geometric's layer.

    A call that the operations do not cover runs `super().forward`: features of edges, other
    aggregations, explanations, hooks of message passing, overridden methods such as `message`,
    float64, other devices than CPU and CUDA.

    A layer has the parameters of PyTorch Geometric's layer and `strategy`.
    """

    _overridden = False
    #: `spmm`, `extremum` and `attention`, of `operators` or of a strategy.
    _operators: Any = operators
    #: Names of the layer's operations by reduction, those of the forward pass first.
    _operations: ClassVar[dict[str, tuple[str, ...]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._overridden = any(_overrides(base) for base in _bases_before_pyg(cls))
        pyg: Any = cls.__bases__[-1]
        if cls.__module__.startswith("accelviz.torch.") and pyg.__module__.startswith(_PYG):
            document(cls, pyg, _STRATEGY)
            if not TYPE_CHECKING:  # An editor then completes the parameters of PyTorch Geometric.
                cls.__init__ = _constructor(pyg)

    def _set_strategy(self: Any, strategy: Any) -> None:
        if strategy is not None:
            from accelviz.torch.strategies import Strategies

            operations = self._operations.get(_REDUCTIONS.get(type(self.aggr_module), ""), ())
            self._operators = Strategies(type(self).__name__, operations, strategy)

    def _set_jittable_templates(self: Any, *arguments: Any) -> None:
        """Keep what explanations call, which instances of a base class have replaced."""
        super()._set_jittable_templates(*arguments)  # type: ignore[misc]
        if not self._overridden:
            type(self)._orig_propagate = nn.MessagePassing.propagate

    def __prepare_scriptable__(self: Any) -> Any:
        """Return PyTorch Geometric's layer with the same state, for `torch.jit.script`."""
        self._unwrapped(None)
        pyg: Any = next(base for base in type(self).__mro__ if base.__module__.startswith(_PYG))
        layer = pyg.__new__(pyg)
        layer.__dict__ = {**self.__dict__, "_cached_edge_index": None}
        layer._set_jittable_templates()
        return layer

    def _reduction(self: Any, x: Any) -> str | None:
        """Return the reduction of the messages; None if PyTorch Geometric's code has to run."""
        if self._overridden or self._explain or self._decomposed_layers != 1:
            return None
        if not isinstance(x, torch.Tensor):
            if isinstance(x, tuple | list):
                return None
            raise ArgumentError("x", f"a {type(x).__name__}", _FEATURES)
        if x.dtype not in FLOATS:
            _warn_of_float64(x)
            return None
        if x.dim() != 2 or x.layout is not torch.strided or not (x.is_cpu or x.is_cuda):
            return None
        if self.node_dim not in (0, -2):
            return None
        if torch.compiler.is_compiling():
            return _REDUCTIONS.get(type(self.aggr_module))
        state = self.__dict__
        for name in _HOOKS:
            if state[name]:
                return None
        for name in _REPLACED:
            if name in state:
                return None
        # PyTorch Geometric sets this attribute too, for and after explanations.
        propagate = state.get("propagate")
        if propagate is not None and propagate.__func__ is not type(self)._jinja_propagate:
            return None
        module = state["_modules"]["aggr_module"]
        if module._forward_hooks or module._forward_pre_hooks:
            return None
        if torch.jit.is_tracing() or torch._C._functorch.peek_interpreter_stack() is not None:
            return None
        return _REDUCTIONS.get(type(module))

    def _graph(
        self: Any, edge_index: Any, x: Any, target: Any = None, size: Any = None
    ) -> tuple[Any, int, int] | None:
        """Return edge_index and the numbers of sources and targets; None as for `_reduction`.

        Parameters
        ----------
        edge_index : tensor, EdgeIndex, Edges or SplitGraph
        x, target : tensor
            Features of the sources, and of the targets if they are known.
        size : (int, int), optional
            The caller's argument `size`.
        """
        name = "size"
        if type(edge_index) is SplitGraph:
            if self._operators is not operators or self.flow != "source_to_target":
                return None
            return edge_index, edge_index.rows_of(x), edge_index.n_own
        if type(edge_index) is not torch.Tensor:
            if isinstance(edge_index, Edges):
                name, size, edge_index = "edge_index", edge_index.size, edge_index.edge_index
            elif isinstance(edge_index, EdgeIndex):
                if torch.compiler.is_compiling():
                    return None
                name, size = "edge_index", edge_index.sparse_size()
                edge_index = edge_index.as_tensor()
            elif not isinstance(edge_index, torch.Tensor):
                check_edge_index(edge_index)
        if edge_index.dtype not in INDICES or edge_index.dim() != 2 or edge_index.size(0) != 2:
            check_edge_index(edge_index)
            return None
        if edge_index.device != x.device:
            raise ArgumentError("edge_index", f"on {edge_index.device}", f"on {x.device}, as x")
        if self.flow != "source_to_target":
            if size is not None or (target is not None and target is not x):
                return None
            edge_index = edge_index.flip(0)
        sources = x.size(0)
        targets = sources if target is None else target.size(0)
        if size is not None:
            if size[1] is not None and target is None:
                targets = size[1]
            if size[0] not in (None, sources) or size[1] not in (None, targets):
                problem = f"a size of {tuple(size)} for {sources} sources and {targets} targets"
                raise ArgumentError(name, problem, f"({sources}, {targets})")
        return edge_index, sources, targets

    def _is_fusible(self: Any, edge_index: Any) -> bool:
        """Return whether a layer may be one autograd function."""
        return self._operators is operators and isinstance(edge_index, torch.Tensor)

    def _refuse_weights(self, edge_index: Any) -> None:
        """Raise ArgumentError for a graph with weights, which the layer would ignore."""
        if type(edge_index) in (Edges, SplitGraph) and edge_index.weight is not None:
            kind = type(edge_index).__name__
            problem = f"{kind} with weights, which {type(self).__name__} has no use for"
            raise ArgumentError("edge_index", problem, f"{kind} without weights")

    def _unwrapped(self: Any, edge_index: Any, size: Any = None) -> tuple[Any, Any]:
        """Return the two arguments as PyTorch Geometric's layers take them."""
        if type(edge_index) is SplitGraph:
            problem = "a SplitGraph, and this call needs PyTorch Geometric's code"
            expected = "an edge_index; or a call that accelviz's operations cover (docs/pytorch.md)"
            raise ArgumentError("edge_index", problem, expected)
        if self._operators is not operators:
            self._operators.refuse()
        if type(edge_index) is Edges:
            size = edge_index.size if size is None else size
            edge_index = edge_index.edge_index
        if isinstance(edge_index, torch.Tensor) and edge_index.dtype is torch.int32:
            edge_index = edge_index.long()  # Its gradients are wrong for int32 (PyTorch 2.13, CPU).
        return edge_index, size


def _constructor(pyg: Any) -> Any:
    """Return the constructor of a class after `Layer` and a layer of PyTorch Geometric."""

    @functools.wraps(pyg.__init__)
    def construct(self: Any, *arguments: Any, strategy: Any = None, **options: Any) -> None:
        super(Layer, self).__init__(*arguments, **options)
        self._set_strategy(strategy)

    signature = inspect.signature(pyg.__init__)
    parameters = list(signature.parameters.values())
    position = len(parameters) - (parameters[-1].kind is inspect.Parameter.VAR_KEYWORD)
    strategy = inspect.Parameter("strategy", inspect.Parameter.KEYWORD_ONLY, default=None)
    parameters.insert(position, strategy)
    construct.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return construct


def document(cls: Any, pyg: Any, *paragraphs: str) -> None:
    """Append paragraphs and the documentation of PyTorch Geometric's class to that of a class."""
    heading = f"The documentation of `torch_geometric.nn.{pyg.__name__}`:"
    texts = cls.__doc__, *paragraphs, heading, pyg.__doc__
    cls.__doc__ = "\n\n".join(inspect.cleandoc(text or "") for text in texts)


def ends(x: Any, edge_index: Any) -> tuple[Any, Any]:
    """Return the features of sources and of targets, which are x if x is a tensor."""
    if isinstance(x, torch.Tensor):
        return x, edge_index.own_rows(x) if type(edge_index) is SplitGraph else x
    if not isinstance(x, tuple | list) or len(x) != 2:
        raise ArgumentError("x", f"a {type(x).__name__}", _FEATURES)
    return x[0], x[1]


def is_sparse(edge_index: Any) -> bool:
    """Return whether this is a sparse tensor of torch or torch_sparse with a number per edge."""
    if isinstance(edge_index, torch.Tensor):
        return edge_index.layout is not torch.strided
    return isinstance(edge_index, SparseTensor)


def convertible(adj: Any) -> bool:
    """Return whether a sparse tensor has at most a number per edge, without a gradient."""
    if torch.compiler.is_compiling():
        return False
    gradient = adj.requires_grad
    values = parts(adj)[-1]
    return not (gradient() if callable(gradient) else gradient) and (
        values is None or values.dim() == 1
    )


def is_plain(module: Any, *types: type) -> bool:
    """Return whether a module is of a type, by default `Linear`, and nobody observes its calls."""
    return (
        type(module) in (types or (nn.Linear, torch.nn.Linear))
        and not module._forward_hooks
        and not module._forward_pre_hooks
        and not module._backward_hooks
        and not module._backward_pre_hooks
        and not torch_module._has_any_global_hook()
    )


def dense(linear: Any, x: Any) -> Any:
    """Return `linear(x)`, without the host time of a module's call if nobody observes it."""
    if torch.compiler.is_compiling() or not is_plain(linear):
        return linear(x)
    parameters = linear._parameters
    return functional.linear(x, parameters["weight"], parameters["bias"])


def _bases_before_pyg(cls: type) -> Any:
    for base in cls.__mro__:
        if base.__module__.startswith(_PYG):
            return
        if not base.__module__.startswith("accelviz.torch."):
            yield base


def _overrides(base: type) -> bool:
    """Return whether a class defines a method that our operations replace."""
    members, prefix = vars(base), f"{base.__module__}_{base.__name__}"
    # PyTorch Geometric adds methods of these names to the class of each instance.
    generated = ("propagate", "edge_updater")
    return any(name in members for name in _REPLACED) or any(
        name in members and not str(members[name].__module__).startswith(prefix)
        for name in generated
    )


def _warn_of_float64(x: Any) -> None:
    global _warned
    is_double = isinstance(x, torch.Tensor) and x.dtype is torch.float64
    if is_double and not _warned and not torch.compiler.is_compiling():
        _warned = True
        message = "accelviz.torch computes float64 with PyTorch Geometric's code, which is slower"
        warnings.warn(message, stacklevel=4)
