"""A sparse product with the dense products around it as one autograd function, for eager mode.

Each node of PyTorch's autograd graph costs the host 10 to 50 microseconds in the forward pass and
again in the backward pass. On small graphs that is most of a training step. Here a layer is one
node.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from accelviz.torch import operators
from accelviz.torch.operators import PLAIN


def applies(x: Any, target: Any, weight: Any, *parameters: Any) -> bool:
    """Return whether `Convolution` covers a call with weights of items and dense parameters."""
    if not torch.is_grad_enabled() or torch.compiler.is_compiling():
        return False
    if weight is not None and (weight.requires_grad or type(weight) not in PLAIN):
        return False
    for tensor in (x, target, *parameters):
        if tensor is not None and (
            type(tensor) not in PLAIN or tensor.dtype is not torch.float32 or tensor.dim() > 2
        ):
            return False
    return not torch.is_autocast_enabled(x.device.type)


class Convolution(torch.autograd.Function):
    """`(A + shift I) (x L^T) + bias + target R^T`, where A is the matrix of `operators.spmm`.

    With `dense_first` False it is `((A + shift I) x) L^T + ...`, which has the same value. `shift`
    is a tensor of one element, or None for 0.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Any,
        left: Any,
        bias: Any,
        target: Any,
        root_weight: Any,
        edge_index: Any,
        weight: Any,
        size: operators.Size,
        scaling: str,
        dense_first: bool,
        shift: Any = None,
    ) -> Any:
        """Return the features of the targets, (n_targets, n_out)."""
        spmm = operators.backend(x).spmm
        numbers, target_is_x = (*size, scaling, False), target is x
        if dense_first:
            saved, h, start = x, torch.mm(x, left.t()), None
            if root_weight is not None:
                start = functional.linear(target, root_weight, bias)
            elif shift is not None:
                start = h * shift if bias is None else torch.addcmul(bias, h, shift)
            y = spmm(edge_index, weight, h, *numbers, start)
            if start is None and bias is not None:
                y.add_(bias)
        else:
            x = x.contiguous()
            start = None if shift is None else x * shift
            saved = spmm(edge_index, weight, x, *numbers, start)
            y = functional.linear(saved, left, bias)
            if root_weight is not None:
                y.addmm_(target, root_weight.t())
        saved = saved if left.requires_grad else None
        ctx.save_for_backward(edge_index, weight, saved, left, target, root_weight, bias, x, shift)
        ctx.options, ctx.target_is_x = (size, scaling, dense_first), target_is_x
        return y

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        """Return the gradients of the tensors that have one."""
        edge_index, weight, saved, left, target, root_weight, bias, x, shift = ctx.saved_tensors
        size, scaling, dense_first = ctx.options
        needs = ctx.needs_input_grad
        if torch.is_grad_enabled():
            # Views, because x may be the target, or the target be computed from x.
            operands: Any = x, left, bias, target, root_weight
            inputs = [None if tensor is None else tensor.view_as(tensor) for tensor in operands]
            arguments: Any = *inputs, edge_index, weight, *ctx.options, shift
            y = _composed(*arguments)
            wanted: Any = [tensor for tensor, need in zip(inputs, needs, strict=False) if need]
            gradients = torch.autograd.grad(y, wanted, dy, create_graph=True, allow_unused=True)
            remaining = iter(gradients)
            return *(next(remaining) if need else None for need in needs[:5]), *(None,) * 6
        dx = d_left = d_target = start = None
        dy = dy.contiguous()
        spmm, numbers = operators.backend(dy).spmm, (*size, scaling, True)
        if needs[3] and root_weight is not None:
            d_target = torch.mm(dy, root_weight)
            if ctx.target_is_x:  # one gradient for both
                start, d_target = d_target, None
        if dense_first:
            if needs[0] or needs[1]:
                shifted = None if shift is None else dy * shift
                dh: Any = spmm(edge_index, weight, dy, *numbers, shifted)
                d_left = torch.mm(dh.t(), saved) if needs[1] else None
                if needs[0]:
                    dx = torch.mm(dh, left) if start is None else start.addmm_(dh, left)
        else:
            d_left = torch.mm(dy.t(), saved) if needs[1] else None
            if needs[0]:
                ds = torch.mm(dy, left)
                start = start if shift is None else ds * shift
                dx = spmm(edge_index, weight, ds, *numbers, start)
        d_bias = dy.sum(0) if needs[2] else None
        d_right = torch.mm(dy.t(), target) if needs[4] else None
        return dx, d_left, d_bias, d_target, d_right, *(None,) * 6


def _composed(
    x: Any,
    left: Any,
    bias: Any,
    target: Any,
    root_weight: Any,
    edge_index: Any,
    weight: Any,
    size: operators.Size,
    scaling: str,
    dense_first: bool,
    shift: Any,
) -> Any:
    """Compute `Convolution` by differentiable operations, for gradients of gradients."""
    h = functional.linear(x, left) if dense_first else x
    y = operators.spmm(edge_index, h, size, weight, scaling)
    y = y if shift is None else y + shift * h
    if not dense_first:
        y = functional.linear(y, left, bias)
    elif bias is not None:
        y = y + bias
    return y if root_weight is None else y + functional.linear(target, root_weight)
