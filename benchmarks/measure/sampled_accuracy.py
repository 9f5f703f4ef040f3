"""Accuracy of GraphSAGE trained with and without sampled neighbors (Table 4.3 of the thesis).

Two layers of 32 columns, 100 epochs of all training nodes. With sampling, each layer of each step
reads at most `fanout` random neighbors of a node. Tests read all neighbors. Runs on a CPU.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import torch
from study import append, parser
from torch.nn import functional
from tqdm import tqdm

from accelviz.datasets import NodeData, load_nodes
from accelviz.measure.records import source_commit
from accelviz.torch import SAGEConv

EPOCHS, HIDDEN = 100, 32


def sampled_edges(data: NodeData, fanout: int, rng: np.random.Generator) -> torch.Tensor:
    """Return an `edge_index` with at most `fanout` random neighbors of each node; 0: with all."""
    graph = data.graph
    targets = np.repeat(np.arange(graph.n_rows), graph.degrees)
    columns = graph.column_indices
    if fanout:
        order = np.lexsort((rng.random(columns.size), targets))  # random within each row
        rank = np.arange(columns.size) - np.repeat(graph.row_pointers[:-1], graph.degrees)
        columns, targets = columns[order][rank < fanout], targets[rank < fanout]
    return torch.from_numpy(np.stack([columns, targets]).astype(np.int64))


def accuracy(data: NodeData, fanout: int, seed: int) -> float:
    """Train GraphSAGE and return its test accuracy with all neighbors."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    layers = SAGEConv(data.n_features, HIDDEN), SAGEConv(HIDDEN, data.n_outputs)
    parameters = [parameter for layer in layers for parameter in layer.parameters()]
    optimiser = torch.optim.Adam(parameters, lr=0.01, weight_decay=5e-4)
    features = torch.from_numpy(data.features.toarray())
    labels = torch.from_numpy(data.labels.astype(np.int64))
    every_edge = sampled_edges(data, 0, rng)

    def logits(edges: list[torch.Tensor], training: bool) -> torch.Tensor:
        inner = functional.dropout(layers[0](features, edges[0]).relu(), 0.5, training)
        return layers[1](inner, edges[1])

    for _ in range(EPOCHS):
        edges = [sampled_edges(data, fanout, rng) if fanout else every_edge for _ in layers]
        optimiser.zero_grad()
        functional.cross_entropy(logits(edges, True)[data.train], labels[data.train]).backward()
        optimiser.step()
    with torch.no_grad():
        guesses = logits([every_edge, every_edge], False)[data.test].argmax(1)
    return float((guesses == labels[data.test]).float().mean())


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--data", nargs="*", default=["cora", "citeseer"])
    arguments.add_argument("--fanouts", nargs="*", type=int, default=[0, 1, 2])
    arguments.add_argument("--seeds", type=int, default=5)
    options = arguments.parse_args()
    torch.set_num_threads(1)
    cases = [*product(options.data, options.fanouts, range(options.seeds))]
    for name, fanout, seed in tqdm(cases):
        share = accuracy(load_nodes(name), fanout, seed)
        row = {"data": name, "fanout": fanout, "seed": seed, "test_accuracy": round(share, 4)}
        append([row | {"epochs": EPOCHS, "commit": source_commit()}], options.output)


if __name__ == "__main__":
    main()
