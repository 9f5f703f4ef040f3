"""Mini-batches of sampled neighbors of a split graph: edges and features come from their owners."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import distributed

from accelviz.errors import ArgumentError, checked_integer

if TYPE_CHECKING:
    from accelviz.torch.split import SplitGraph


class Batch(NamedTuple):
    """Seeds with sampled neighbors.

    Attributes
    ----------
    x : tensor, shape (n_nodes, ...)
        Features of the nodes.
    edge_index : tensor of int64, shape (2, E)
        Sampled edges, with the nodes numbered by their rows of `x`.
    seeds : tensor of int64, shape (n_seeds,)
        Rows of the seeds among own nodes, such as rows of the rank's labels. Rows 0 to n_seeds - 1
        of `x` and of a layer's result are theirs.
    nodes : tensor of int64, shape (n_nodes,)
        The caller's numbers of the nodes.
    """

    x: Any
    edge_index: Any
    seeds: Any
    nodes: Any


class Sampler:
    """Batches of seeds with sampled neighbors, for layers of any kind.

    Each rank has the edges into its nodes and their features. A batch asks the owners of its nodes
    for edges, hop by hop, and for features. All ranks iterate at the same time, over equally many
    batches; a rank with few seeds has empty ones.

    Parameters
    ----------
    graph : SplitGraph
    x : tensor, shape (n_own, ...)
        Features of own nodes.
    seeds : tensor of int64, shape (n_seeds,)
        Rows of this rank's seeds among its own nodes.
    sizes : sequence of int
        Largest number of sampled edges into a node, for each hop. -1 takes all edges.
    batch_size : int
        Number of seeds of a rank's batch.
    generator : torch.Generator, optional
        On the graph's device, for the order of the seeds and the samples.

    Raises
    ------
    ArgumentError
        If an argument has a wrong type or is out of range.

    Examples
    --------
    >>> from accelviz.torch import SAGEConv, Sampler, SplitGraph
    >>> graph = SplitGraph("cora", device="cpu")
    >>> sampler = Sampler(graph, torch.ones(2708, 8), torch.arange(10), (5, 5), 4)
    >>> [SAGEConv(8, 3)(batch.x, batch.edge_index)[: len(batch.seeds)].shape for batch in sampler]
    [torch.Size([4, 3]), torch.Size([4, 3]), torch.Size([2, 3])]
    """

    def __init__(
        self,
        graph: SplitGraph,
        x: Any,
        seeds: Any,
        sizes: Sequence[int],
        batch_size: int,
        generator: Any = None,
    ) -> None:
        if graph.weight is not None:
            raise ArgumentError("graph", "a SplitGraph with weights", "one without weights")
        if x.size(0) != graph.n_own:
            problem = f"{x.size(0)} rows for {graph.n_own} nodes of rank {graph.rank}"
            raise ArgumentError("x", problem, "x[graph.nodes]")
        if seeds.numel() and not 0 <= int(seeds.min()) <= int(seeds.max()) < graph.n_own:
            problem = f"{int(seeds.min())} to {int(seeds.max())}"
            raise ArgumentError("seeds", problem, f"rows of own nodes, 0 to {graph.n_own - 1}")
        self.sizes = [
            size if size == -1 else checked_integer("sizes", size, error=ArgumentError)
            for size in sizes
        ]
        self.batch_size = checked_integer("batch_size", batch_size, error=ArgumentError)
        self.graph, self.x, self.seeds, self._generator = graph, x, seeds, generator
        self._bounds = torch.tensor(graph.bounds, device=graph.device)
        self._first = int(graph.bounds[graph.rank])
        order = torch.sort(graph.edge_index[1].long(), stable=True)[1]
        numbers = torch.arange(self._first, self._first + graph.n_own, device=graph.device)
        self._sources = graph.all_rows(numbers)[graph.edge_index[0][order].long()]
        self._degrees = torch.bincount(graph.edge_index[1], minlength=graph.n_own)
        self._ends = self._degrees.cumsum(0)

    def __len__(self) -> int:
        """Return the number of batches, the same on all ranks."""
        n_batches = torch.tensor(-(-self.seeds.numel() // self.batch_size)).to(self.graph.device)
        if self.graph.size > 1:
            distributed.all_reduce(n_batches, distributed.ReduceOp.MAX, group=self.graph.group)
        return int(n_batches)

    def __iter__(self) -> Iterator[Batch]:
        """Yield batches; the seeds have a new order in each iteration."""
        options = {"generator": self._generator, "device": self.graph.device}
        order = torch.randperm(self.seeds.numel(), **options)
        seeds = self.seeds.to(self.graph.device)[order]
        for number in range(len(self)):
            yield self._batch(seeds[number * self.batch_size :][: self.batch_size])

    def _batch(self, seeds: Any) -> Batch:
        nodes = frontier = seeds + self._first
        sources, targets = [seeds[:0]], [seeds[:0]]
        for size in self.sizes:
            counts, of_frontier = self._ask(frontier, lambda rows, k=size: self._sampled(rows, k))
            sources.append(of_frontier)
            targets.append(frontier.repeat_interleave(counts))
            known = torch.isin(of_frontier, nodes)
            frontier = torch.unique(of_frontier[~known])
            nodes = torch.cat([nodes, frontier])
        _, x = self._ask(nodes, lambda rows: (torch.ones_like(rows), self.x[rows]))
        _, callers = self._ask(nodes, lambda rows: (torch.ones_like(rows), self.graph.nodes[rows]))
        ascending, order = torch.sort(nodes)
        edges = torch.stack([torch.cat(sources), torch.cat(targets)])
        return Batch(x, order[torch.searchsorted(ascending, edges)], seeds, callers)

    def _sampled(self, rows: Any, size: int) -> tuple[Any, Any]:
        """Return the number of sampled edges into each row's node, and their sources."""
        degrees = self._degrees[rows]
        starts = self._ends[rows] - degrees
        row = torch.arange(rows.numel(), device=rows.device).repeat_interleave(degrees)
        position = torch.arange(row.numel(), device=rows.device)
        position -= (degrees.cumsum(0) - degrees)[row]
        if size >= 0:  # the edges with the smallest of random numbers
            options = {"generator": self._generator, "device": rows.device}
            keys = row + torch.rand(row.numel(), dtype=torch.float64, **options)
            order = torch.sort(keys)[1]
            is_sampled = position < size
            position, row = position[order][is_sampled], row[is_sampled]
            degrees = degrees.clamp(max=size)
        return degrees, self._sources[starts[row] + position]

    def _ask(self, nodes: Any, answer: Any) -> tuple[Any, Any]:
        """Return what the owners of nodes answer: a number of values for each node, and the values.

        `answer` gets rows of own nodes and returns the numbers and the values.
        """
        if self.graph.size == 1:
            counts, values = answer(nodes)
            return counts, values
        ascending, order = torch.sort(nodes)
        asked = torch.searchsorted(ascending, self._bounds).diff()
        rows = self._exchanged(ascending, asked)
        counts, values = answer(rows[0] - self._first)
        returned = self._exchanged(counts, rows[1])[0]
        of_rank = torch.stack([part.sum() for part in counts.split(rows[1].tolist())])
        values, _ = self._exchanged(values, of_rank)
        # Back to the order of `nodes`.
        inverse = torch.empty_like(order)
        inverse[order] = torch.arange(order.numel(), device=order.device)
        starts = returned.cumsum(0) - returned
        counts = returned[inverse]
        offset = torch.arange(int(counts.sum()), device=order.device)
        offset -= (counts.cumsum(0) - counts).repeat_interleave(counts)
        return counts, values[starts[inverse].repeat_interleave(counts) + offset]

    def _exchanged(self, values: Any, counts: Any) -> tuple[Any, Any]:
        """Send `counts[r]` of the values to rank r; return what came, and its counts."""
        group, received = self.graph.group, torch.empty_like(counts)
        distributed.all_to_all_single(received, counts, group=group)
        sizes = received.tolist(), counts.tolist()
        out = values.new_empty((sum(sizes[0]), *values.shape[1:]))
        distributed.all_to_all_single(out, values.contiguous(), *sizes, group=group)
        return out, received
