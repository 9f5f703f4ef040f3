"""Networks of both libraries, and the graphs and batches that torch_training.py trains them on."""

from __future__ import annotations

import functools
import importlib
import itertools
import json
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

N_FEATURES, N_HIDDEN, N_CLASSES, HEADS = 128, 64, 16, 8
LIBRARIES = {"PyG": "torch_geometric.nn", "accelviz": "accelviz.torch"}
MODELS = ("gcn", "sage", "gin", "gat", "gatv2", "agnn")
#: Arguments of load_graph for twins; other names are those of load_graph, or files.
TWINS: dict[str, dict[str, Any]] = {
    "collab shuffled": {"graph": "collab", "order": "shuffled", "cache": True},
    "yelp": {"graph": "yelp", "cache": True},
}
#: R-MAT graphs: logarithm of the number of nodes, and number of drawn edges.
RMAT = {
    "rmat 20 M": (20, 20_000_000),
    "rmat 2 M": (17, 2_000_000),
    "rmat small": (11, 10_000),
    "rmat tiny": (9, 2_000),
}
#: Arguments of a network, and the labels of the first rows of its result.
Batch = tuple[tuple[Any, ...], Tensor]


class Block(NamedTuple):
    """Edges of one layer, from all rows of `x` to the first `n_targets`."""

    edge_index: Tensor
    n_targets: int


class NodeNetwork(nn.Module):
    """Two convolutions, between linear layers for AGNN, whose convolution keeps the width."""

    def __init__(self, layers: Any, model: str, form: str) -> None:
        super().__init__()
        is_agnn = model == "agnn"
        self.before = nn.Sequential(nn.Linear(N_FEATURES, N_HIDDEN), nn.ReLU())
        self.after: nn.Module = nn.Linear(N_HIDDEN, N_CLASSES)
        if not is_agnn:
            self.before, self.after = nn.Sequential(), nn.Identity()
        self.activation = nn.Identity() if is_agnn else nn.ReLU()
        self.first = convolution(layers, model, N_FEATURES, N_HIDDEN, form)
        self.last = convolution(layers, model, N_HIDDEN, N_CLASSES, form, heads=1)

    def forward(self, x: Tensor, first_edges: Any, last_edges: Any = None) -> Tensor:
        """Return scores of classes; the last layer has the first one's edges by default."""
        last_edges = first_edges if last_edges is None else last_edges
        x = self.activation(apply(self.first, self.before(x), first_edges))
        return self.after(apply(self.last, x, last_edges))


class GraphNetwork(nn.Module):
    """Three layers, the sum over each graph, and a linear layer."""

    def __init__(self, layers: Any, model: str) -> None:
        super().__init__()
        widths = [N_FEATURES, N_HIDDEN, N_HIDDEN, N_HIDDEN]
        pairs = itertools.pairwise(widths)
        self.layers = nn.ModuleList(convolution(layers, model, *pair, "") for pair in pairs)
        self.linear = nn.Linear(N_HIDDEN, N_CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor, graph_of_node: Tensor, n_graphs: int) -> Any:
        """Return scores of classes of each graph."""
        from torch_geometric.nn import global_add_pool

        for layer in self.layers:
            x = layer(x, edge_index).relu()
        return self.linear(global_add_pool(x, graph_of_node, size=n_graphs))


def apply(layer: nn.Module, x: Tensor, edges: Any) -> Tensor:
    """Apply a convolution; of a Block, to a pair of sources and targets where PyG allows it."""
    if not isinstance(edges, Block):
        return layer(x, edges)
    if hasattr(layer, "improved"):  # GCN takes no pair, so that its rows beyond the targets go
        return layer(x, edges.edge_index)[: edges.n_targets]
    return layer((x, x[: edges.n_targets]), edges.edge_index)


def convolution(
    layers: Any, model: str, n_in: int, n_out: int, form: str, heads: int = HEADS
) -> nn.Module:
    """Return a layer of the module `layers`; its output has `n_out` columns."""
    loops = {"add_self_loops": False} if form == "loops" else {}
    if model == "gcn":
        return layers.GCNConv(n_in, n_out, cached="cached" in form)
    if model in ("sage", "sage-max"):
        return layers.SAGEConv(n_in, n_out, aggr="max" if model == "sage-max" else "mean")
    if model == "gin":
        mlp = nn.Sequential(nn.Linear(n_in, n_out), nn.ReLU(), nn.Linear(n_out, n_out))
        return layers.GINConv(mlp)
    if model == "agnn":
        return layers.AGNNConv(**loops)
    layer = {"gat": layers.GATConv, "gatv2": layers.GATv2Conv}[model]
    return layer(n_in, n_out // heads, heads=heads, **loops)


def network(case: dict[str, Any], library: str, form: str) -> nn.Module:
    """Return a case's network, or its layer alone, with the initial parameters of PyG's."""

    def build(library: str) -> nn.Module:
        layers = importlib.import_module(LIBRARIES[library])
        if case["command"] == "graphs":
            return GraphNetwork(layers, case["model"])
        if case["command"] == "host":
            return convolution(layers, case["model"], N_FEATURES, N_HIDDEN, form)
        return NodeNetwork(layers, case["model"], form)

    torch.manual_seed(0)
    reference = build("PyG")
    if library == "PyG":
        return reference
    net = build(library)
    net.load_state_dict(reference.state_dict())
    return net


# Fixed graphs.


def rmat(scale: int, n_draws: int, device: str, seed: int = 0) -> tuple[Tensor, int]:
    """Return `edge_index` and the number of nodes of an R-MAT graph, without loops.

    a = 0.57, b = c = 0.19. Edges are unique and sorted by target; nodes are in a random order.
    """
    generator = torch.Generator(device).manual_seed(seed)
    n_nodes = 1 << scale
    ends = torch.zeros((2, n_draws), dtype=torch.int64, device=device)
    for _ in range(scale):
        draw = torch.rand(n_draws, generator=generator, device=device)
        ends *= 2
        ends[0] += draw >= 0.76
        ends[1] += ((draw >= 0.57) & (draw < 0.76)) | (draw >= 0.95)
    ends = torch.randperm(n_nodes, generator=generator, device=device)[ends]
    keys = torch.unique(ends[1] * n_nodes + ends[0])
    edge_index = torch.stack([keys % n_nodes, keys // n_nodes])
    return edge_index[:, edge_index[0] != edge_index[1]].contiguous(), n_nodes


@functools.lru_cache(maxsize=1)
def open_edges(name: str, device: str) -> tuple[Tensor, int]:
    """Return `edge_index`, sorted by target, and the number of nodes of a graph."""
    if name in RMAT:
        return rmat(*RMAT[name], device)
    from accelviz import load_graph

    graph = load_graph(**TWINS.get(name, {"graph": name}))
    pointers, sources = map(torch.tensor, (graph.row_pointers, graph.column_indices))
    targets = torch.arange(graph.n_rows).repeat_interleave(pointers.diff())
    return torch.stack([sources.long(), targets]).to(device), graph.n_rows


def as_form(edge_index: Tensor, n_nodes: int, form: str) -> Any:
    """Return edges, sorted by target, in the form of that name."""
    if form == "loops":
        from torch_geometric.utils import add_self_loops

        return add_self_loops(edge_index, num_nodes=n_nodes)[0]
    if form == "EdgeIndex":
        from torch_geometric import EdgeIndex

        size = (n_nodes, n_nodes)
        return EdgeIndex(edge_index, sparse_size=size, sort_order="col").fill_cache_()
    if form == "Edges":
        from accelviz.torch import Edges

        return Edges(edge_index, n_nodes)
    if form.startswith("csr"):
        nodes = torch.arange(n_nodes + 1, device=edge_index.device)
        pointers = torch.searchsorted(edge_index[1].contiguous(), nodes)
        ones = torch.ones(edge_index.size(1), device=edge_index.device)
        return torch.sparse_csr_tensor(pointers, edge_index[0], ones, size=(n_nodes, n_nodes))
    return edge_index.clone()


@functools.lru_cache(maxsize=1)
def features(n_rows: int, device: str) -> tuple[Tensor, Tensor]:
    """Return random features and labels."""
    generator = torch.Generator(device).manual_seed(1)
    x = torch.randn((n_rows, N_FEATURES), generator=generator, device=device)
    return x, torch.randint(N_CLASSES, (n_rows,), generator=generator, device=device)


# Batches that change from step to step.


class NeighborSampler:
    """Mini-batches of a graph, sampled on its device without replacement.

    Neighbors are stratified: of a node's d neighbors in their order, one of each d / fan_out.
    As in PyG's NeighborLoader, the second hop expands the nodes that the first one added.
    """

    def __init__(self, name: str, device: str, n_seeds: int, fan_outs: tuple[int, ...]) -> None:
        edge_index, self.n_nodes = open_edges(name, device)
        self.neighbors, targets = edge_index.contiguous()
        self.pointers = torch.searchsorted(
            targets, torch.arange(self.n_nodes + 1, device=edge_index.device)
        )
        self.x, self.labels = features(self.n_nodes, device)
        self.generator = torch.Generator(device).manual_seed(0)
        self.order = torch.randperm(self.n_nodes, generator=self.generator, device=device)
        self.n_seeds, self.fan_outs = n_seeds, fan_outs

    def sample_neighbors(self, nodes: Tensor, fan_out: int) -> tuple[Tensor, Tensor]:
        """Return up to `fan_out` neighbors of each node, and the index of the node."""
        starts = self.pointers[nodes].unsqueeze(1)
        degrees = self.pointers[nodes + 1].unsqueeze(1) - starts
        strata = degrees * torch.arange(fan_out + 1, device=nodes.device) // fan_out
        sizes = strata.diff(dim=1)
        # float64, so that a draw times a hub's stratum is never rounded up to the next stratum
        draw = torch.rand(
            sizes.shape, generator=self.generator, device=nodes.device, dtype=torch.float64
        )
        positions = starts + strata[:, :-1] + (draw * sizes).long()
        index, column = (sizes > 0).nonzero(as_tuple=True)
        return self.neighbors[positions[index, column]], index

    def batch(self, number: int, form: str) -> Batch:
        """Return batch `number` as one subgraph for both layers, or as blocks."""
        self.generator.manual_seed(number)
        first = number * self.n_seeds % (self.n_nodes - self.n_seeds + 1)
        nodes = seeds = self.order[first : first + self.n_seeds]
        edges, n_expanded, blocks = nodes.new_empty((2, 0)), 0, []
        for fan_out in self.fan_outs:
            n_targets = nodes.numel()
            neighbors, index = self.sample_neighbors(nodes[n_expanded:], fan_out)
            nodes, sources = append_nodes(nodes, neighbors)
            edges = torch.cat([edges, torch.stack([sources, index + n_expanded])], dim=1)
            n_expanded = n_targets
            blocks.insert(0, Block(edges, n_targets))
        edges_of_layers = blocks if form == "blocks" else [edges]
        return (self.x[nodes], *edges_of_layers), self.labels[seeds]


def append_nodes(nodes: Tensor, neighbors: Tensor) -> tuple[Tensor, Tensor]:
    """Return distinct `nodes` followed by new neighbors, and the neighbors' positions in them."""
    both = torch.cat([nodes, neighbors])
    unique, inverse = torch.unique(both, return_inverse=True)
    positions = torch.arange(both.numel(), device=both.device)
    first = torch.full_like(unique, both.numel()).scatter_reduce_(0, inverse, positions, "amin")
    order = first.argsort()
    ranks = torch.empty_like(order)
    ranks[order] = positions[: order.numel()]
    return unique[order], ranks[inverse[nodes.numel() :]]


class Molecules:
    """Batches of small graphs from a shuffled dataset: random trees with a few rings."""

    def __init__(self, n_graphs: int, batch_size: int, device: str) -> None:
        from torch_geometric.data import Data

        generator = torch.Generator().manual_seed(0)
        self.batch_size, self.device, self.graphs = batch_size, device, []
        for _ in range(n_graphs):
            n_nodes = int(torch.randint(20, 41, (), generator=generator))
            nodes = torch.arange(1, n_nodes)
            # A bond to one of the four atoms before; a ring of six for every eighth atom.
            back = torch.randint(1, 5, (n_nodes - 1,), generator=generator)
            parents = (nodes - back).clamp(min=0)
            rings = nodes[5::8]
            bonds = torch.stack([torch.cat([nodes, rings]), torch.cat([parents, rings - 5])])
            x = torch.randn((n_nodes, N_FEATURES), generator=generator)
            label = torch.randint(N_CLASSES, (1,), generator=generator)
            both_directions = torch.cat([bonds, bonds.flip(0)], dim=1)
            self.graphs.append(Data(x=x, edge_index=both_directions, y=label))
        self.order = torch.randperm(n_graphs, generator=generator).tolist()

    def batch(self, number: int, form: str) -> Batch:
        """Return batch `number`, collated by torch_geometric.data.Batch."""
        from torch_geometric.data import Batch as GraphBatch

        first = number * self.batch_size % (len(self.order) - self.batch_size + 1)
        chosen = self.order[first : first + self.batch_size]
        batch = GraphBatch.from_data_list([self.graphs[i] for i in chosen]).to(self.device)
        return (batch.x, batch.edge_index, batch.batch, batch.num_graphs), batch.y


@functools.lru_cache(maxsize=1)
def batches(command: str, name: str, device: str, tiny: bool) -> Callable[[int, str], Batch]:
    """Return the function from a batch's number and form to the batch."""
    if command == "minibatch":
        return NeighborSampler(name, device, 16 if tiny else 1024, (10, 10)).batch
    if command == "graphs":
        return Molecules(*((24, 8) if tiny else (2560, 128)), device).batch
    x, labels = features(1 << RMAT[name][0], device)
    return lambda number, form: ((x, rmat(*RMAT[name], device, seed=number)[0]), labels)


def first_call(library: str, model: str, name: str, device: str, import_seconds: float) -> None:
    """Print seconds of this process's import and of a model's first and second call.

    A call is the network's forward and backward pass, the first with its construction. CUDA's
    context and cuBLAS exist before.
    """
    edge_index, n_nodes = open_edges(name, device)
    x, labels = features(n_nodes, device)
    (x @ x.new_ones(N_FEATURES, 1)).cpu()
    torch.manual_seed(0)
    seconds, net = {"import": import_seconds}, None
    for call in ("first", "second"):
        start = time.perf_counter()
        if net is None:
            layers = importlib.import_module(LIBRARIES[library])
            net = NodeNetwork(layers, model, "edge_index").to(device)
        loss = nn.functional.cross_entropy(net(x, edge_index), labels)
        loss.backward()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds[call] = time.perf_counter() - start
    json.dump({**seconds, "loss": float(loss)}, sys.stdout)
