"""Exchange of rows between the ranks of a split graph, and a sum of neighbors that overlaps it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import distributed
from torch.autograd.function import once_differentiable

from accelviz.torch import operators

if TYPE_CHECKING:
    from accelviz.torch.split import SplitGraph


class Exchange:
    """Rows that the ranks send each other, the same in every call.

    A transfer runs on a stream of its own, so that kernels launched before `wait` overlap it.

    Parameters
    ----------
    halo : tensor of int64, shape (n_halo,)
        Nodes of other ranks whose rows this rank needs, in order.
    bounds : tensor of int64, shape (size + 1,)
        First node of each rank.
    rank : int
    group : ProcessGroup or None
    """

    def __init__(self, halo: Any, bounds: Any, rank: int, group: Any) -> None:
        self._group, self.n_halo = group, halo.numel()
        self.n_own = int(bounds[rank + 1] - bounds[rank])
        needed = torch.searchsorted(halo, bounds).diff()
        wanted = torch.empty_like(needed)
        distributed.all_to_all_single(wanted, needed, group=group)
        self._received, self._sent = needed.tolist(), wanted.tolist()
        rows = halo.new_empty(sum(self._sent))
        distributed.all_to_all_single(rows, halo, self._sent, self._received, group=group)
        self._sent_rows = [*(rows - bounds[rank]).split(self._sent)]

    def fetch(self, x: Any, out: Any) -> Any:
        """Begin to fetch the rows of the halo into `out`, (n_halo, ...); return what to wait for.

        `x`, (n_own, ...), has the rows of own nodes.
        """
        pieces = [
            x if rows.numel() == self.n_own else x.index_select(0, rows)
            for rows in self._sent_rows
            if rows.numel()
        ]
        sent = pieces[0] if len(pieces) == 1 else torch.cat([x[:0], *pieces])
        return self._begin(out, sent, self._received, self._sent)

    def give_back(self, gradient: Any) -> tuple[Any, Any]:
        """Begin to return the gradient of the halo, (n_halo, ...), to its owners.

        The result has the gradients that come back, which are incomplete before `wait`, and what
        to wait for.
        """
        returned = gradient.new_empty((sum(self._sent), *gradient.shape[1:]))
        return returned, self._begin(returned, gradient, self._sent, self._received)

    def add(self, returned: Any, dx: Any) -> None:
        """Add the gradients that came back to those of own nodes, (n_own, ...)."""
        # A rank asks for a row once: each addition has unique rows, and so the same bits each run.
        for rows, piece in zip(self._sent_rows, returned.split(self._sent), strict=True):
            if rows.numel() == self.n_own:
                dx += piece
            elif rows.numel():
                dx.index_add_(0, rows, piece)

    def _begin(self, out: Any, sent: Any, n_out: list[int], n_sent: list[int]) -> Any:
        group = self._group
        return distributed.all_to_all_single(out, sent, n_out, n_sent, group=group, async_op=True)


class Fetch(torch.autograd.Function):
    """Rows of own nodes, then those of the halo; backward adds the gradients at their owners."""

    @staticmethod
    def forward(ctx: Any, graph: SplitGraph, *tensors: Any) -> tuple[Any, ...]:
        """Return the rows of all sources, for tensors with rows of own nodes."""
        ctx.exchange = exchange = graph.exchange
        end = graph.n_own + graph.n_halo
        results = tuple(x.new_empty((graph.n_sources, *x.shape[1:])) for x in tensors)
        transfers = [
            exchange.fetch(x, rows[graph.n_own : end])
            for x, rows in zip(tensors, results, strict=True)
        ]
        for x, rows in zip(tensors, results, strict=True):
            rows[: graph.n_own] = x
            if end < graph.n_sources:
                rows[end:] = 0
        for transfer in transfers:
            transfer.wait()
        return results

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        """Return the gradients of the rows of own nodes."""
        exchange: Exchange = ctx.exchange
        n_own, end = exchange.n_own, exchange.n_own + exchange.n_halo
        gradients = tuple(gradient.contiguous() for gradient in gradients)
        transfers = [exchange.give_back(gradient[n_own:end]) for gradient in gradients]
        results = [gradient[:n_own].clone() for gradient in gradients]
        for dx, (returned, transfer) in zip(results, transfers, strict=True):
            transfer.wait()
            exchange.add(returned, dx)
        return None, *results


class Matrix(NamedTuple):
    """A part of a rank's edges: from its own nodes with the self loops, or from the halo.

    `edge_index` has sources numbered from 0, `weight` is None or one number per item.
    """

    edge_index: Any
    size: operators.Size
    weight: Any

    def multiply(self, x: Any, transposed: bool, start: Any = None) -> Any:
        """Return the product with x, added to `start`, which is overwritten."""
        multiply = operators.backend(x).spmm
        return multiply(self.edge_index, self.weight, x, *self.size, "sum", transposed, start)


class OverlappedSum(torch.autograd.Function):
    """Weighted sum of neighbors; products with own rows run while rows of the halo travel."""

    @staticmethod
    def forward(
        ctx: Any, x: Any, exchange: Exchange, local: Matrix, remote: Matrix, scale: Any
    ) -> Any:
        """Return the sums of own nodes, times `scale`, (n_own, 1), unless it is None."""
        ctx.operands = exchange, local, remote, scale
        rows = x.new_empty((exchange.n_halo, x.size(1)))
        transfer = exchange.fetch(x, rows)
        y = local.multiply(x, False)
        transfer.wait()
        y = remote.multiply(rows, False, y)
        return y if scale is None else y.mul_(scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Any) -> Any:
        """Return the gradient of the rows of own nodes; that of the halo travels meanwhile."""
        exchange, local, remote, scale = ctx.operands
        dy = dy.contiguous() if scale is None else dy * scale
        returned, transfer = exchange.give_back(remote.multiply(dy, True))
        dx = local.multiply(dy, True)
        transfer.wait()
        exchange.add(returned, dx)
        return dx, None, None, None, None
