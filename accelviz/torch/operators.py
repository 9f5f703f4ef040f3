"""Sparse operations of the layers as PyTorch operators: `accelviz::spmm` and so on.

An operation takes plain tensors. `edge_index`, int64 or int32 of shape (2, E), has the sources of
the edges in row 0 and their targets in row 1. With `n_loops` > 0, self loops in `edge_index` are
ignored, and one self loop for each of the nodes 0 to n_loops - 1 is added. The *items* of a graph
are its E edges and then these loops; a weight is one number per item.

In eager mode a function calls its backend through `torch.autograd.Function`, at half the host time
of a registered operator. Compiled and exported code has the registered operator. Both have the same
formulas of autograd.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

from accelviz.torch import composed, host
from accelviz.torch.composed import Size

_library = torch.library.Library("accelviz", "DEF")
#: Types of tensors without a `__torch_function__` of their own.
PLAIN = (torch.Tensor, torch.nn.Parameter)


def backend(tensor: Any) -> Any:
    """Return the module that computes for tensors on this device."""
    if tensor.is_cuda:
        from accelviz.torch import device

        return device
    return host


class Operator:
    """An operation in two forms: an autograd function for eager mode, and a registered operator.

    Parameters
    ----------
    schema : str
        Name, arguments and results in the language of `torch.library`.
    fake : callable
        Returns empty outputs for the arguments.
    setup, backward : callable, optional
        As of `torch.library.register_autograd`; without them, results are not differentiable.
    compute : callable, optional
        Computes on every device. By default it is the function of the schema's name in the backend
        of the first argument.
    """

    def __init__(
        self,
        schema: str,
        fake: Callable[..., Any],
        setup: Callable[..., None] | None = None,
        backward: Callable[..., Any] | None = None,
        compute: Callable[..., Any] | None = None,
    ) -> None:
        name = schema.partition("(")[0]

        def by_backend(edge_index: Any, *arguments: Any) -> Any:
            return getattr(backend(edge_index), name)(edge_index, *arguments)

        compute = compute or by_backend
        _library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
        for key in ("CPU", "CUDA"):
            _library.impl(name, compute, key)
        torch.library.register_fake(f"accelviz::{name}", fake, lib=_library)
        self._compute, self._registered = compute, getattr(torch.ops.accelviz, name).default
        self._function: Any = None
        if setup is None or backward is None:
            return

        def forward(ctx: Any, *arguments: Any) -> Any:
            outputs = compute(*arguments)
            setup(ctx, arguments, outputs)
            return outputs

        torch.library.register_autograd(
            f"accelviz::{name}", backward, setup_context=setup, lib=_library
        )
        namespace = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        self._function = types.new_class(
            name, (torch.autograd.Function,), exec_body=lambda body: body.update(namespace)
        )

    def __call__(self, *arguments: Any) -> Any:
        """Run the operation."""
        tensors = [argument for argument in arguments if isinstance(argument, torch.Tensor)]
        if torch.compiler.is_compiling() or any(type(tensor) not in PLAIN for tensor in tensors):
            return self._registered(*arguments)
        needs_gradient = any(tensor.requires_grad for tensor in tensors)
        if needs_gradient and self._function and torch.is_grad_enabled():
            return self._function.apply(*arguments)
        return self._compute(*arguments)


def _numbers(ctx: Any, numbers: Any) -> None:
    ctx.set_materialize_grads(False)
    ctx.numbers = tuple(numbers)


# ------------------------------------------------------------------------------------------- spmm


def _spmm_fake(
    edge_index: Any, weight: Any, x: Any, sources: int, targets: int, loops: int, *modes: Any
) -> Any:
    _, transposed = modes
    return x.new_empty((sources if transposed else targets, x.size(1)))


def _spmm_setup(ctx: Any, inputs: Any, output: Any) -> None:
    edge_index, weight, x, *numbers = inputs
    needs_x = weight is not None and weight.requires_grad
    ctx.save_for_backward(edge_index, weight, x if needs_x else None)
    _numbers(ctx, numbers)


def _spmm_backward(ctx: Any, dy: Any) -> Any:
    edge_index, weight, x = ctx.saved_tensors
    sources, targets, loops, scaling, transposed = ctx.numbers
    size = sources, targets, loops
    d_weight = dx = None
    if dy is not None:
        dy = dy.contiguous()
        if x is not None and torch.is_grad_enabled():
            d_weight = composed.spmm_weight_gradient(edge_index, x, dy, *size, transposed)
        elif x is not None:
            d_weight, dx = _spmm_gradient(edge_index, weight, x, dy, *size, transposed)
        if dx is None and ctx.needs_input_grad[2]:
            dx = _spmm(edge_index, weight, dy, *size, scaling, not transposed)
    return None, d_weight, dx, *(None,) * len(ctx.numbers)


_SIZE = "SymInt sources, SymInt targets, SymInt loops"
_spmm_gradient = Operator(
    f"spmm_gradient(Tensor edge_index, Tensor weight, Tensor x, Tensor dy, {_SIZE}, "
    "bool transposed) -> (Tensor, Tensor)",
    lambda edge_index, weight, x, *_: (torch.empty_like(weight), torch.empty_like(x)),
)
_spmm = Operator(
    f"spmm(Tensor edge_index, Tensor? weight, Tensor x, {_SIZE}, str scaling, bool transposed) "
    "-> Tensor",
    _spmm_fake,
    _spmm_setup,
    _spmm_backward,
)


def spmm(
    edge_index: Any,
    x: Any,
    size: Size,
    weight: Any = None,
    scaling: str = "sum",
) -> Any:
    """Sum the features of each target's sources.

    Parameters
    ----------
    edge_index : tensor of int64 or int32, shape (2, E)
    x : tensor of float32, float16 or bfloat16, shape (n_sources, n_cols)
        Sums are float32.
    size : Size
    weight : tensor of float32, shape (n_items,), optional
        Requires `scaling` "sum".
    scaling : {"sum", "mean", "symmetric"}
        Factor of an item from s to t, where n counts the items by target: 1, 1 / n(t), or
        1 / sqrt(n(s) n(t)), which is 0 if n(s) is 0.

    Returns
    -------
    tensor of x's dtype, shape (n_targets, n_cols)
        Rows without items are zero.
    """
    if isinstance(edge_index, torch.Tensor):
        return _spmm(edge_index, weight, x, *size, scaling, False)
    return edge_index.spmm(x, size, weight, scaling)


# --------------------------------------------------------------------------------------- extremum


def _extremum_fake(edge_index: Any, x: Any, sources: int, targets: int, *rest: Any) -> Any:
    shape = targets, x.size(1)
    return x.new_empty(shape), x.new_empty(shape, dtype=torch.int32)


def _extremum_setup(ctx: Any, inputs: Any, output: Any) -> None:
    edge_index, x, *numbers = inputs
    ctx.save_for_backward(edge_index, x, *output)
    ctx.mark_non_differentiable(output[1])
    _numbers(ctx, numbers)


def _extremum_backward(ctx: Any, dy: Any, _: Any) -> Any:
    edge_index, x, y, source = ctx.saved_tensors
    dx = None
    if dy is not None:
        differentiable = torch.is_grad_enabled()
        gradient = composed.extremum_gradient if differentiable else _extremum_gradient
        dx = gradient(edge_index, x, y, dy, source, *ctx.numbers[:3])
    return None, dx, *(None,) * len(ctx.numbers)


_extremum_gradient = Operator(
    "extremum_gradient(Tensor edge_index, Tensor x, Tensor y, Tensor dy, Tensor source, "
    f"{_SIZE}) -> Tensor",
    lambda edge_index, x, *_: torch.empty_like(x),
)
_extremum = Operator(
    f"extremum(Tensor edge_index, Tensor x, {_SIZE}, bool largest) -> (Tensor, Tensor)",
    _extremum_fake,
    _extremum_setup,
    _extremum_backward,
)


def extremum(edge_index: Any, x: Any, size: Size, largest: bool = True) -> Any:
    """Return the largest or smallest feature of each target's sources, column by column.

    Parameters
    ----------
    edge_index, size
        As of `spmm`.
    x : tensor of float32, shape (n_sources, n_cols)
    largest : bool

    Returns
    -------
    tensor of float32, shape (n_targets, n_cols)
        0 for a target without items. Equal extrema share the gradient equally.
    """
    if isinstance(edge_index, torch.Tensor):
        return _extremum(edge_index, x, *size, largest)[0]
    return edge_index.extremum(x, size, largest)


# -------------------------------------------------------------------------------------- attention


def _attention_fake(
    edge_index: Any, score: str, first: Any, second: Any, third: Any, random: Any, *numbers: Any
) -> Any:
    values = second if score in ("gatv2", "cosine") else third
    targets, heads = numbers[3], values.size(1)
    statistics = [values.new_empty((targets, heads)) for _ in range(2)]
    return values.new_empty((targets, *values.shape[1:])), *statistics


def _attention_setup(ctx: Any, inputs: Any, output: Any) -> None:
    edge_index, score, first, second, third, random, *numbers = inputs
    ctx.save_for_backward(edge_index, first, second, third, random, *output)
    ctx.mark_non_differentiable(*output[1:])
    ctx.score = score
    _numbers(ctx, numbers)


def _attention_backward(ctx: Any, dy: Any, *_: Any) -> Any:
    edge_index, first, second, third, random, *results = ctx.saved_tensors
    gradients: Any = (None,) * 3
    if dy is not None:
        operands = edge_index, ctx.score, first, second, third, random
        if torch.is_grad_enabled():
            gradients = composed.attention_gradient(*operands, dy, *ctx.numbers)
        else:
            gradients = _attention_gradient(*operands, *results, dy.contiguous(), *ctx.numbers)
    return None, None, *gradients, None, *(None,) * len(ctx.numbers)


_attention_gradient = Operator(
    "attention_gradient(Tensor edge_index, str score, Tensor first, Tensor second, Tensor third, "
    "Tensor? random, Tensor y, Tensor row_max, Tensor row_sum, Tensor dy, float slope, float rate, "
    f"{_SIZE}) -> (Tensor, Tensor, Tensor)",
    lambda edge_index, score, *tensors: tuple(map(torch.empty_like, tensors[:3])),
)
_attention = Operator(
    "attention(Tensor edge_index, str score, Tensor first, Tensor second, Tensor third, "
    f"Tensor? random, float slope, float rate, {_SIZE}) -> (Tensor, Tensor, Tensor)",
    _attention_fake,
    _attention_setup,
    _attention_backward,
)

#: Operands of each score, in the order of the operator's arguments.
ATTENTION_OPERANDS = {
    "gat": ("receiver", "sender", "V"),
    "gatv2": ("R", "V", "a"),
    "cosine": ("Q", "V", "scale"),
    "dot": ("Q", "K", "V"),
}


def attention(
    edge_index: Any,
    score: str,
    size: Size,
    *,
    slope: float = 0.0,
    rate: float = 0.0,
    **tensors: Any,
) -> Any:
    """Return `sum of dropout(softmax(score)) V` over the items of each target, per head.

    Parameters
    ----------
    edge_index, size
        As of `spmm`.
    score : {"gat", "gatv2", "cosine", "dot"}
        Score of an item from s to t, as of accelviz's operations of these names.
    slope : float
        Negative slope of the LeakyReLU of "gat" and "gatv2".
    rate : float
        Rate of dropout of the softmax, at least 0 and below 1.
    **tensors : tensors of float32
        Operands by the names of `ATTENTION_OPERANDS`: "gat" has `receiver` (n_targets, heads),
        `sender` (n_sources, heads) and `V` (n_sources, heads, n_cols); "gatv2" `R` (n_targets,
        heads, n_cols), `V` and `a` (heads, n_cols); "cosine" `Q` (n_targets, heads, n_cols), `V`
        and `scale` (n_sources, heads); "dot" `Q`, `K` and `V`.

    Returns
    -------
    tensor of float32, shape (n_targets, heads, n_cols)
        Rows without items are zero.
    """
    if not isinstance(edge_index, torch.Tensor):
        return edge_index.attention(score, size, {"slope": slope, "rate": rate}, tensors)
    operands = [tensors[name].contiguous() for name in ATTENTION_OPERANDS[score]]
    random = random_words(edge_index.device) if rate else None
    return _attention(edge_index, score, *operands, random, slope, rate, *size)[0]


def random_words(device: Any) -> Any:
    """Return the words of `accelviz.random` for a dropout: two as the seed, site 0 and step 0."""
    seed = torch.randint(-(1 << 31), 1 << 31, (2,), device=device)
    return torch.cat([seed, torch.zeros_like(seed)]).to(torch.int32)
