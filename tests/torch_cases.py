"""Layers of accelviz.torch and PyTorch Geometric with the same options, on the same graph."""

import numpy as np
import torch
import torch_geometric.nn as pyg
from torch_geometric import EdgeIndex

from accelviz import torch as ours

N, N_SOURCES, N_IN = 40, 25, 6

#: Case: name of the layer, arguments and options; "mlp" and "wide mlp" are networks for GINConv.
LAYERS = {
    "gcn": ("GCNConv", (6, 4), {}),
    "gcn wide": ("GCNConv", (6, 9), {}),
    "gcn wider": ("GCNConv", (6, 15), {"bias": False}),
    "gcn lazy": ("GCNConv", (-1, 4), {}),
    "gcn plain": ("GCNConv", (6, 4), {"normalize": False, "bias": False}),
    "gcn improved": ("GCNConv", (6, 4), {"improved": True}),
    "gcn without loops": ("GCNConv", (6, 9), {"add_self_loops": False}),
    "gcn cached": ("GCNConv", (6, 4), {"cached": True}),
    "gcn reversed": ("GCNConv", (6, 4), {"flow": "target_to_source"}),
    "gcn max": ("GCNConv", (6, 4), {"aggr": "max"}),
    "gcn decomposed": ("GCNConv", (6, 4), {"decomposed_layers": 2}),
    "gin": ("GINConv", ("mlp",), {"train_eps": True, "eps": 0.3}),
    "gin fixed": ("GINConv", ("mlp",), {}),
    "gin wide": ("GINConv", ("wide mlp",), {}),
    "gin mean": ("GINConv", ("mlp",), {"aggr": "mean"}),
    "gin max": ("GINConv", ("mlp",), {"aggr": "max", "eps": -0.2}),
    "gin reversed": ("GINConv", ("mlp",), {"flow": "target_to_source"}),
    "sage": ("SAGEConv", (6, 4), {}),
    "sage wide": ("SAGEConv", (6, 9), {"normalize": True}),
    "sage lazy": ("SAGEConv", (-1, 4), {}),
    "sage sum": ("SAGEConv", (6, 4), {"aggr": "sum", "project": True, "root_weight": False}),
    "sage add": ("SAGEConv", (6, 4), {"aggr": "add", "bias": False}),
    "sage max": ("SAGEConv", (6, 4), {"aggr": "max"}),
    "sage min": ("SAGEConv", (6, 9), {"aggr": "min", "project": True}),
    "sage several": ("SAGEConv", (6, 4), {"aggr": ["mean", "max"]}),
    "sage median": ("SAGEConv", (6, 4), {"aggr": "median"}),
    "sage object": ("SAGEConv", (6, 4), {"aggr": pyg.MeanAggregation()}),
    "sage pair": ("SAGEConv", ((6, 6), 4), {}),
    "gat": ("GATConv", (6, 4), {"heads": 3}),
    "gat mean": ("GATConv", (6, 4), {"heads": 3, "concat": False, "residual": True}),
    "gat alone": ("GATConv", (6, 4), {"add_self_loops": False, "bias": False}),
    "gat lazy": ("GATConv", (-1, 4), {"heads": 2, "residual": True}),
    "gat pair": ("GATConv", ((6, 6), 4), {"heads": 2, "residual": True}),
    "gat edges": ("GATConv", (6, 4), {"edge_dim": 3, "fill_value": 0.5}),
    "gat steep": ("GATConv", (6, 4), {"negative_slope": 0.7}),
    "gat dropped": ("GATConv", (6, 4), {"dropout": 1.0}),
    "gat max": ("GATConv", (6, 4), {"aggr": "max"}),
    "gat reversed": ("GATConv", (6, 4), {"flow": "target_to_source", "heads": 2}),
    "gatv2": ("GATv2Conv", (6, 4), {"heads": 2}),
    "gatv2 shared": ("GATv2Conv", (6, 4), {"heads": 2, "share_weights": True, "concat": False}),
    "gatv2 alone": ("GATv2Conv", (6, 4), {"add_self_loops": False, "residual": True}),
    "gatv2 lazy": ("GATv2Conv", (-1, 4), {"heads": 2}),
    "gatv2 pair": ("GATv2Conv", ((6, 6), 4), {"residual": True, "concat": False, "heads": 3}),
    "gatv2 edges": ("GATv2Conv", (6, 4), {"edge_dim": 3}),
    "transformer": ("TransformerConv", (6, 4), {"heads": 2}),
    "transformer beta": ("TransformerConv", (6, 4), {"heads": 3, "beta": True, "concat": False}),
    "transformer alone": ("TransformerConv", (6, 4), {"root_weight": False, "bias": False}),
    "transformer lazy": ("TransformerConv", (-1, 4), {"heads": 2}),
    "transformer pair": ("TransformerConv", ((6, 6), 4), {"heads": 2}),
    "agnn": ("AGNNConv", (), {}),
    "agnn fixed": ("AGNNConv", (), {"requires_grad": False}),
    "agnn alone": ("AGNNConv", (), {"add_self_loops": False}),
}


def edges(device="cpu", n_sources=N, n_targets=N):
    """Return random edges with duplicates, self loops and isolated nodes."""
    rng = np.random.default_rng(0)
    pairs = np.stack([rng.integers(0, n_sources - 2, 150), rng.integers(0, n_targets - 2, 150)])
    loops = np.array([[3, 3, 5, 11], [3, 3, 5, 11]])
    pairs = np.concatenate([pairs, pairs[:, :7], loops], axis=1)
    return torch.from_numpy(pairs[:, rng.permutation(pairs.shape[1])]).contiguous().to(device)


def weights(device="cpu"):
    """Return a positive weight for each edge, with a gradient.

    Loops of one node have one weight: on a GPU, PyTorch Geometric takes any of several.
    """
    torch.manual_seed(5)
    pairs = edges()
    weight = torch.rand(pairs.shape[1]) + 0.1
    weight[pairs[0] == pairs[1]] = 0.7
    return weight.to(device).requires_grad_()


def features(device="cpu", n_rows=N, n_cols=N_IN):
    """Return features of which several are equal, as after a ReLU: maxima are shared."""
    torch.manual_seed(2)
    return torch.randn(n_rows, n_cols).clamp(min=-0.5).to(device).requires_grad_()


def matrix(device="cpu", ones=False):
    """Return the edges as a sparse COO matrix, targets as rows."""
    values = torch.ones(edges().shape[1]) if ones else weights().detach()
    adj = torch.sparse_coo_tensor(edges().flip(0), values, (N, N)).coalesce()
    if ones:
        adj.values().fill_(1)
    return adj.to(device)


def as_form(form, device="cpu"):
    """Return the graph in the form of this name."""
    return {
        "edge_index": lambda: edges(device),
        "transposed": lambda: edges(device).t().contiguous().t(),
        "EdgeIndex": lambda: EdgeIndex(edges(device), sparse_size=(N, N)),
        "csr": lambda: matrix(device).to_sparse_csr(),
        "csr of ones": lambda: matrix(device, True).to_sparse_csr(),
        "coo": lambda: matrix(device),
        "csc": lambda: matrix(device).to_sparse_csc(),
    }[form]()


def layer_of(module, case, device="cpu"):
    """Return the layer of a case with parameters of a seed."""
    name, arguments, options = LAYERS[case]
    torch.manual_seed(1)
    if arguments == ("wide mlp",):
        arguments = (torch.nn.Sequential(torch.nn.Linear(6, 8)),)
    if arguments == ("mlp",):
        first, last = torch.nn.Linear(6, 5), torch.nn.Linear(5, 4)
        arguments = (torch.nn.Sequential(first, torch.nn.ReLU(), last),)
    return getattr(module, name)(*arguments, **options).to(device)


def outcome(layer, x, *arguments, **options):
    """Return the result and every gradient of a loss that weights each element differently."""
    torch.manual_seed(4)  # for parameters of lazy layers
    y = layer(x, *arguments, **options)
    torch.manual_seed(3)
    loss = (y * torch.randn_like(y)).sum()
    inputs = [*(x if isinstance(x, tuple) else (x,)), *arguments, *layer.parameters()]
    inputs = [
        tensor for tensor in inputs if isinstance(tensor, torch.Tensor) and tensor.requires_grad
    ]
    return [y, *torch.autograd.grad(loss, inputs, allow_unused=True)]


def assert_alike(results, expected, rtol=1e-4, atol=2e-5):
    """Compare results and gradients, None with None."""
    assert len(results) == len(expected)
    for one, other in zip(results, expected, strict=True):
        if one is None or other is None:
            assert one is other
        else:
            torch.testing.assert_close(one, other, rtol=rtol, atol=atol)


def both(case, device="cpu"):
    """Return PyTorch Geometric's layer and ours."""
    return layer_of(pyg, case, device), layer_of(ours, case, device)
