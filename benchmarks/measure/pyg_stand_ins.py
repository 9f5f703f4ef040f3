"""Stand-ins for the datasets that PyTorch Geometric's examples download.

`install(folder)` replaces how each dataset class gets its data, so that an example runs unchanged
and without a network. Cora and CiteSeer are real (`accelviz.datasets.load_nodes`). All others are
random graphs with the fields, types and feature widths of the original, and fewer nodes. Neighbor
sampling and METIS partitions, for which PyTorch Geometric needs `pyg-lib`, are in Python here, and
loaders work in the process itself.
"""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pymetis
import torch
import torch_geometric.datasets as pyg
import torch_geometric.typing
from torch_geometric.data import Data, Dataset, HeteroData, InMemoryDataset, TemporalData
from torch_geometric.loader import ClusterData
from torch_geometric.sampler import HeteroSamplerOutput, NeighborSampler, SamplerOutput
from torch_geometric.utils import coalesce

from accelviz.datasets import load_nodes

#: Shapes of the stand-ins for TUDataset: graphs, nodes a graph, node labels, node attributes,
#: classes. The examples cut TRIANGLES at graphs 30,000 and 35,000, and COLORS-3 at 500 and 3,000.
TU_SHAPES = {
    "MUTAG": (188, 18, 7, 0, 2),
    "PROTEINS": (120, 39, 3, 1, 2),
    "PROTEINS_full": (120, 39, 3, 29, 2),
    "IMDB-BINARY": (200, 20, 0, 0, 2),
    "TRIANGLES": (35_200, 7, 0, 1, 10),
    "COLORS-3": (3_200, 20, 0, 5, 11),
}


def random_graph(
    n_nodes: int, degree: int, n_features: int, n_classes: int, directed: bool = False
) -> Data:
    """Return a graph whose features depend on the class, with masks for a split of 60:20:20."""
    y = torch.randint(n_classes, (n_nodes,))
    part = torch.rand(n_nodes)
    data = Data(
        x=torch.randn(n_classes, n_features)[y] + torch.randn(n_nodes, n_features),
        edge_index=random_edges(n_nodes, n_nodes, n_nodes * degree // 2),
        y=y,
        train_mask=part < 0.6,
        val_mask=(part >= 0.6) & (part < 0.8),
        test_mask=part >= 0.8,
    )
    if not directed:
        edges = torch.cat([data.edge_index, data.edge_index.flip(0)], dim=1)
        data.edge_index = coalesce(edges, num_nodes=n_nodes)
    return data


def random_edges(n_sources: int, n_targets: int, n_edges: int) -> Any:
    """Return distinct edges, sorted by source."""
    edges = torch.stack([torch.randint(n, (n_edges,)) for n in (n_sources, n_targets)])
    return coalesce(edges, num_nodes=max(n_sources, n_targets))


def planetoid(dataset: Any) -> Any:
    if dataset.name.lower() == "pubmed":
        return random_graph(2_000, 5, 500, 3)
    nodes = load_nodes(dataset.name.lower())
    targets, sources = nodes.graph.adjacency.tocoo().coords
    data = Data(
        x=torch.from_numpy((nodes.features.adjacency.toarray() > 0).astype(np.float32)),
        edge_index=torch.from_numpy(np.stack([sources, targets]).astype(np.int64)),
        y=torch.from_numpy(nodes.labels.copy()),
    )
    for split in ("train", "val", "test"):
        mask = torch.zeros(nodes.n_nodes, dtype=torch.bool)
        mask[torch.from_numpy(getattr(nodes, split).copy())] = True
        data[f"{split}_mask"] = mask
    return data


def tu(dataset: Any) -> Any:
    n_graphs, n_nodes, n_labels, n_attributes, n_classes = TU_SHAPES[dataset.name]
    graphs = []
    for index in range(n_graphs):
        graph = random_graph(n_nodes - 4 + index % 9, 3, 1, 1)
        y = index % n_classes
        attributes = torch.rand(graph.num_nodes, n_attributes) + y / n_classes
        x = torch.cat([attributes, torch.eye(max(n_labels, 1))[graph.y + y % max(n_labels, 1)]], 1)
        x = x[:, : n_attributes + n_labels]
        fields = {"x": x} if x.numel() else {"num_nodes": graph.num_nodes}
        graphs.append(Data(edge_index=graph.edge_index, y=torch.tensor([y]), **fields))
    sizes = {f"num_{field}": 0 for field in ("edge_labels", "edge_attributes")}
    dataset.sizes = sizes | {"num_node_labels": n_labels, "num_node_attributes": n_attributes}
    return graphs


def ppi(dataset: Any) -> Any:
    def graph() -> Data:
        data = random_graph(150, 14, 50, 8)
        return Data(x=data.x, edge_index=data.edge_index, y=(data.x @ weight > 0).float())

    weight = torch.randn(50, 121)
    return [[graph() for _ in range(size)] for size in (4, 2, 2)]


def wikipedia_network(dataset: Any) -> Any:
    data = random_graph(1_000, 16, 500, 5, directed=True)
    parts = torch.rand(data.num_nodes, 10)
    data.train_mask, data.val_mask, data.test_mask = (
        parts < 0.5,
        parts > 0.8,
        (parts - 0.65) ** 2 < 0.0225,
    )
    return data


def heterogeneous(target: str, n_classes: int, nodes: dict[str, Any], edges: Any) -> HeteroData:
    """Return a graph of several node types; `nodes` maps a type to its size and features."""
    data = HeteroData()
    for node_type, (n_nodes, n_features) in nodes.items():
        graph = random_graph(n_nodes, 1, n_features or 1, n_classes)
        if n_features:
            data[node_type].x = graph.x
        else:
            data[node_type].num_nodes = n_nodes
        if node_type == target:
            for key in ("y", "train_mask", "val_mask", "test_mask"):
                data[node_type][key] = graph[key]
    for edge_type, n_edges in edges.items():
        sizes = nodes[edge_type[0]][0], nodes[edge_type[-1]][0]
        data[edge_type].edge_index = random_edges(*sizes, n_edges)
    return data


def movie_lens(dataset: Any) -> Any:
    nodes = {"movie": (900, 404), "user": (200, 0)}
    data = heterogeneous("", 5, nodes, {("user", "rates", "movie"): 10_000})
    ratings = data["user", "rates", "movie"]
    ratings.edge_label = torch.randint(6, (ratings.num_edges,))
    ratings.time = torch.randint(1_000_000, (ratings.num_edges,))
    return data


def taobao(dataset: Any) -> Any:
    nodes = {"user": (500, 0), "item": (300, 0), "category": (20, 0)}
    edges = {("user", "to", "item"): 9_000, ("item", "to", "category"): 300}
    data = heterogeneous("", 5, nodes, edges)
    clicks = data["user", "item"]
    clicks.time = torch.randint(1_000_000, (clicks.num_edges,))
    clicks.behavior = torch.randint(4, (clicks.num_edges,))
    return data


def imdb(dataset: Any) -> Any:
    nodes = {"movie": (800, 300), "director": (400, 300), "actor": (900, 300)}
    data = heterogeneous("movie", 3, nodes, {})
    for other, n_edges in (("director", 800), ("actor", 2_400)):
        edges = random_edges(800, nodes[other][0], n_edges)
        data["movie", "to", other].edge_index = edges
        data[other, "to", "movie"].edge_index = edges.flip(0)
    return data


def dblp(dataset: Any) -> Any:
    nodes = {"author": (800, 334), "paper": (2_000, 500), "term": (900, 50), "conference": (20, 0)}
    data = heterogeneous("author", 4, nodes, {})
    for other, n_edges in (("author", 3_000), ("term", 9_000), ("conference", 2_000)):
        edges = random_edges(2_000, nodes[other][0], n_edges)
        data["paper", "to", other].edge_index = edges
        data[other, "to", "paper"].edge_index = edges.flip(0)
    return data


def ogb_mag(dataset: Any) -> Any:
    width = 128 if dataset.preprocess else 0
    sizes = {"author": 1_500, "institution": 100, "field_of_study": 300}
    nodes = {"paper": (2_000, 128)} | {key: (size, width) for key, size in sizes.items()}
    edges = {
        ("author", "affiliated_with", "institution"): 1_500,
        ("author", "writes", "paper"): 6_000,
        ("paper", "cites", "paper"): 8_000,
        ("paper", "has_topic", "field_of_study"): 9_000,
    }
    data = heterogeneous("paper", 10, nodes, edges)
    data["paper"].year = torch.randint(2010, 2020, (2_000,))
    return data


def jodie(dataset: Any) -> Any:
    n_events = 2_000
    fields = {"src": torch.randint(100, (n_events,)), "dst": torch.randint(100, 150, (n_events,))}
    time = torch.sort(torch.randint(1_000_000, (n_events,))).values
    return TemporalData(**fields, t=time, msg=torch.randn(n_events, 172), y=time * 0)


def upfd(dataset: Any) -> Any:
    def graph(y: int) -> Data:
        leaves = torch.arange(1, 30)
        parents = (torch.rand(29) * leaves).long()
        x = torch.rand(30, 10 if dataset.feature == "profile" else 300) + 0.2 * y
        return Data(x=x, edge_index=torch.stack([parents, leaves]), y=torch.tensor([y]))

    return [[graph(index % 2) for index in range(size)] for size in (62, 31, 221)]


def graph_land(dataset: Any) -> Any:
    data = random_graph(2_000, 10, 40, 2)
    data.y = data.y.float()
    return data


class NodeProperties(InMemoryDataset):
    """Stand-in for `ogb.nodeproppred.PygNodePropPredDataset`."""

    def __init__(self, name: str, root: str = "", transform: Any = None) -> None:
        super().__init__("ogb", transform)
        width, n_classes = (128, 40) if name == "ogbn-arxiv" else (100, 47)
        data = random_graph(3_000, 12, width, n_classes)
        self.nodes = {
            split: data[f"{mask}_mask"].nonzero().view(-1)
            for split, mask in (("train", "train"), ("valid", "val"), ("test", "test"))
        }
        fields = {"x": data.x, "edge_index": data.edge_index, "y": data.y[:, None]}
        self.data, self.slices = self.collate([Data(**fields, num_nodes=data.num_nodes)])

    def get_idx_split(self) -> Any:
        """Return the nodes of each part."""
        return self.nodes


class Evaluator:
    """Stand-in for `ogb.nodeproppred.Evaluator`."""

    def __init__(self, name: str) -> None:
        pass

    def eval(self, labels: dict[str, Any]) -> dict[str, float]:
        """Return the accuracy."""
        return {"acc": (labels["y_true"] == labels["y_pred"]).double().mean().item()}


class Hops:
    """The nodes and edges of a sample, by type, in the order in which hops reach them."""

    def __init__(self, node_types: Any, edge_types: Any, is_disjoint: bool) -> None:
        self.is_disjoint = is_disjoint
        self.nodes: dict[Any, list[int]] = {key: [] for key in node_types}
        self.seeds: dict[Any, list[int]] = {key: [] for key in node_types}
        self.numbers: dict[Any, dict[tuple[int, int], int]] = {key: {} for key in node_types}
        self.edges: dict[Any, list[tuple[int, int, int]]] = {key: [] for key in edge_types}

    def number(self, node_type: Any, node: int, seed: int) -> int:
        """Return a node's number in the sample; one per seed that reaches it if disjoint."""
        numbers = self.numbers[node_type]
        key = node, seed if self.is_disjoint else 0
        if key not in numbers:
            numbers[key] = len(numbers)
            self.nodes[node_type].append(node)
            self.seeds[node_type].append(seed)
        return numbers[key]


def sample_neighbors(sampler: Any, seed: Any, seed_time: Any = None, **_: Any) -> Any:
    """Stand-in for `NeighborSampler._sample`: without replacement, in the forward direction."""
    is_heterogeneous = isinstance(seed, dict)
    if is_heterogeneous:
        pointers, rows, times = sampler.colptr_dict, sampler.row_dict, sampler.edge_time or {}
        counts = sampler.num_neighbors.get_mapped_values(sampler.edge_types)
        ends, node_types = sampler.to_edge_type, sampler.node_types
    else:
        pointers, rows, times = {"": sampler.colptr}, {"": sampler.row}, {}
        counts = {"": sampler.num_neighbors.get_mapped_values()}
        ends, node_types = {"": ("", "", "")}, [""]
        seed, seed_time = {"": seed}, None
    random = np.random.default_rng(int(torch.randint(1 << 31, ())))
    hops, limits, n_seeds = Hops(node_types, ends, sampler.disjoint), [], 0
    for node_type, nodes in seed.items():
        for node in nodes.tolist():
            hops.number(node_type, node, n_seeds)
            n_seeds += 1
        if seed_time is not None:
            limits += seed_time[node_type].tolist()
    n_nodes = {key: [len(nodes)] for key, nodes in hops.nodes.items()}
    n_edges: dict[Any, list[int]] = {key: [] for key in ends}
    first = dict.fromkeys(node_types, 0)
    for hop in range(sampler.num_neighbors.num_hops):
        last = {key: len(nodes) for key, nodes in hops.nodes.items()}
        for key, (source_type, _, target_type) in ends.items():
            n_before = len(hops.edges[key])
            for target in range(first[target_type], last[target_type]):
                node, origin = hops.nodes[target_type][target], hops.seeds[target_type][target]
                edges = np.arange(pointers[key][node], pointers[key][node + 1])
                if limits and key in times:
                    edges = edges[times[key].numpy()[edges] <= limits[origin]]
                count = counts[key][hop]
                if 0 <= count < edges.size:
                    is_last = sampler.temporal_strategy == "last" and key in times
                    edges = edges[-count:] if is_last else random.choice(edges, count, False)
                for edge in edges.tolist():
                    source = hops.number(source_type, int(rows[key][edge]), origin)
                    hops.edges[key].append((source, target, edge))
            n_edges[key].append(len(hops.edges[key]) - n_before)
        for key, nodes in hops.nodes.items():
            n_nodes[key].append(len(nodes) - last[key])
        first = last
    edges = {key: torch.tensor(hops.edges[key], dtype=torch.int64).view(-1, 3).T for key in ends}
    fields: dict[str, Any] = {
        "node": {key: torch.tensor(nodes, dtype=torch.int64) for key, nodes in hops.nodes.items()},
        "num_sampled_nodes": n_nodes,
        **{
            field: {ends[key]: edges[key][i] for key in ends}
            for i, field in enumerate(("row", "col", "edge"))
        },
        "num_sampled_edges": {ends[key]: number for key, number in n_edges.items()},
        "batch": {key: torch.tensor(batch, dtype=torch.int64) for key, batch in hops.seeds.items()},
    }
    if not sampler.disjoint:
        fields["batch"] = dict.fromkeys(fields["batch"])
    if not is_heterogeneous:
        return SamplerOutput(
            **{field: next(iter(by_type.values())) for field, by_type in fields.items()}
        )
    return HeteroSamplerOutput(**fields | ({} if sampler.disjoint else {"batch": None}))


def metis(data: Any, edge_index: Any, n_nodes: int) -> Any:
    """Stand-in for `ClusterData._metis`."""
    edges = coalesce(torch.cat([edge_index, edge_index.flip(0)], 1), num_nodes=n_nodes)
    edges = edges[:, edges[0] != edges[1]]
    pointers = torch.cat([torch.zeros(1), torch.bincount(edges[0], minlength=n_nodes).cumsum(0)])
    graph = pymetis.CSRAdjacency(pointers.int().numpy(), edges[1].int().numpy())
    return torch.tensor(pymetis.part_graph(data.num_parts, adjacency=graph)[1])


STAND_INS = {
    "Planetoid": planetoid,
    "TUDataset": tu,
    "PPI": ppi,
    "Reddit": lambda dataset: random_graph(2_000, 10, 602, 41),
    "Flickr": lambda dataset: random_graph(2_000, 10, 500, 7),
    "WikipediaNetwork": wikipedia_network,
    "MovieLens": movie_lens,
    "Taobao": taobao,
    "IMDB": imdb,
    "DBLP": dblp,
    "OGB_MAG": ogb_mag,
    "JODIEDataset": jodie,
    "UPFD": upfd,
    "GraphLandDataset": graph_land,
}


def install(folder: Path) -> None:
    """Replace datasets, which are stored in `folder`, neighbor sampling, METIS and workers."""
    initialize = Dataset.__init__

    def in_folder(self: Any, root: Any = None, *arguments: Any, **options: Any) -> None:
        initialize(self, str(folder / type(self).__name__), *arguments, **options)

    def process(self: Any) -> None:
        content = STAND_INS[type(self).__name__](self)
        is_split = isinstance(content, list) and isinstance(content[0], list)
        parts = content if is_split else [content if isinstance(content, list) else [content]]
        for path, items in zip(self.processed_paths, parts, strict=True):
            items = [item for item in items if self.pre_filter is None or self.pre_filter(item)]
            if self.pre_transform is not None:
                items = [self.pre_transform(item) for item in items]
            data, slices = self.collate(items)
            sizes = (self.sizes,) if type(self).__name__ == "TUDataset" else ()
            torch.save((data.to_dict(), slices, *sizes, type(data)), path)

    load = torch.utils.data.DataLoader.__init__

    def without_workers(self: Any, *arguments: Any, **options: Any) -> None:
        load(self, *arguments, **options | {"num_workers": 0, "persistent_workers": False})

    torch.utils.data.DataLoader.__init__ = without_workers
    ClusterData._metis = metis
    NeighborSampler._sample = sample_neighbors
    torch_geometric.typing.WITH_EDGE_TIME_NEIGHBOR_SAMPLE = True
    Dataset.__init__ = in_folder
    for name in STAND_INS:
        getattr(pyg, name)._download = lambda self: None
        getattr(pyg, name).process = process
    ogb = types.ModuleType("ogb.nodeproppred")
    ogb.PygNodePropPredDataset, ogb.Evaluator = NodeProperties, Evaluator
    sys.modules |= {"ogb": types.ModuleType("ogb"), "ogb.nodeproppred": ogb}
