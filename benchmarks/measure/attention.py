"""Our attention beside PyTorch Geometric's layers on a GPU: forward, backward and peak memory.

    python benchmarks/measure/attention.py --output attention.csv
    python benchmarks/measure/attention.py --graphs cora yelp --scores gat --heads 4 --columns 16

Needs CuPy, torch and torch_geometric. Only attention is timed: the dense transforms of GATConv,
GATv2Conv and AGNNConv are replaced by the identity, self-loops are not added, and dropout is 0. PyG
computes GAT's two score terms and AGNN's norms, which are per node, inside its layer; ours gets
them as inputs. Times are medians of CUDA events, warm. Peaks are all allocations, including inputs
and plans. Results are compared first: `difference` is the largest |ours - theirs| over the largest
|theirs| of Y. Gradients are compared with float64 in the tests.
"""

from __future__ import annotations

import argparse
from typing import Any

import cupy
import numpy as np
import torch
from study import Row, edge_index, full_machine, median_us, parser, record, reset_torch_memory
from torch_geometric.nn import AGNNConv, GATConv, GATv2Conv

import accelviz
from accelviz.devices import find_device
from accelviz.graph import Graph

GRAPHS = ("cora", "pubmed", "collab", "amazon0601", "yelp")
SCORES = ("gat", "gatv2", "cosine")
#: Largest allowed `difference`.
MOST_DIFFERENCE = 1e-4
_WARMUP = 3


def main() -> None:
    options = parser(__doc__, graphs=GRAPHS, repeats=20)
    options.add_argument("--scores", nargs="+", default=SCORES, choices=SCORES)
    options.add_argument("--strategy", default="lane_groups")
    options.add_argument("--heads", type=int, default=8, help="of gat and gatv2; cosine has one")
    options.add_argument("--columns", type=int, default=8, help="of a head")
    chosen = options.parse_args()
    graphs = map(accelviz.load_graph, chosen.graphs)
    cases = (compared(graph, score, chosen) for graph in graphs for score in chosen.scores)
    record(cases, chosen.output, full_machine())


def compared(graph: Graph, score: str, options: argparse.Namespace) -> Row:
    """Check and time one score on one graph, ours and then PyG's."""
    heads, n_cols = options.heads, options.columns
    if score == "cosine":  # AGNN: one head of all columns
        heads, n_cols = 1, heads * n_cols
    rng = np.random.default_rng(0)
    x = rng.standard_normal((graph.n_rows, heads, n_cols), dtype=np.float32)
    a = 0.3 * rng.standard_normal((2, heads, n_cols), dtype=np.float32)
    dY = rng.standard_normal(x.shape, dtype=np.float32)
    mine = ours(graph, score, x, a, dY, options)
    pyg = theirs(graph, score, x, a, dY, options.repeats)
    difference = np.abs(mine["Y"] - pyg["Y"]).max() / np.abs(pyg["Y"]).max()
    assert difference < MOST_DIFFERENCE, f"{graph.name}, {score}: Y differs by {difference:.2g}"
    return {
        "strategy": options.strategy,
        "graph": graph.name,
        "edges": graph.nnz,
        "score": score,
        "heads": heads,
        "columns": n_cols,
        "difference": float(difference),
        **{f"ours_{k}": mine[k] for k in ("forward_us", "backward_us", "peak_mib", "setup_ms")},
        **{f"pyg_{k}": pyg[k] for k in ("forward_us", "backward_us", "peak_mib")},
        "times_as_fast": (pyg["forward_us"] + pyg["backward_us"])
        / (mine["forward_us"] + mine["backward_us"]),
    }


def ours(graph: Graph, score: str, x: Any, a: Any, dY: Any, options: argparse.Namespace) -> Row:
    """Time our forward and backward plans with a separate memory pool."""
    torch.cuda.empty_cache()
    pool = cupy.cuda.MemoryPool()
    with cupy.cuda.using_allocator(pool.malloc):
        widths = {"heads": x.shape[1], "n_cols": x.shape[2]}
        plans = [
            accelviz.plan(graph, options.strategy, operation=name, **widths)
            for name in (score, f"{score}_gradient")
        ]
        forward, backward = (find_device("cuda").prepare(plan) for plan in plans)
        X = cupy.asarray(x)
        inputs: dict[str, Any] = {"V": X}
        if score == "gat":
            inputs["receiver"] = (X * cupy.asarray(a[1])).sum(-1)
            inputs["sender"] = (X * cupy.asarray(a[0])).sum(-1)
        elif score == "gatv2":
            inputs |= {"R": X.copy(), "a": cupy.asarray(a[0])}
        else:
            scale = 1 / cupy.linalg.norm(X, axis=-1)
            inputs |= {"Q": X * scale[..., None], "scale": scale}
        outputs = forward.run(inputs)
        operands = {**inputs, **outputs, "dY": cupy.asarray(dY)}
        backward.run(operands)
        return {
            "Y": outputs["Y"].get(),
            "forward_us": median_us(forward.seconds(inputs, options.repeats, _WARMUP)),
            "backward_us": median_us(backward.seconds(operands, options.repeats, _WARMUP)),
            "peak_mib": pool.total_bytes() / 2**20,
            "setup_ms": 1e3 * sum(sum(plan.setup_seconds.values()) for plan in plans),
        }


def theirs(graph: Graph, score: str, x: Any, a: Any, dY: Any, repeats: int) -> Row:
    """Time PyG's layer on `edge_index`, with its dense transforms replaced by the identity."""
    cupy.get_default_memory_pool().free_all_blocks()
    reset_torch_memory()
    n_rows, heads, n_cols = x.shape
    edges = edge_index(graph)
    X = torch.as_tensor(x.reshape(n_rows, -1)).cuda().requires_grad_()
    more = {"add_self_loops": False}
    if score == "cosine":
        layer = AGNNConv(requires_grad=True, **more)
    else:
        kind = GATConv if score == "gat" else GATv2Conv
        layer = kind(heads * n_cols, n_cols, heads=heads, bias=False, **more)
        for name in ("lin", "lin_l", "lin_r", "lin_src", "lin_dst"):
            if getattr(layer, name, None) is not None:
                setattr(layer, name, torch.nn.Identity())
        weights = {"att_src": a[0], "att_dst": a[1]} if score == "gat" else {"att": a[0]}
        with torch.no_grad():
            for name, value in weights.items():
                getattr(layer, name).copy_(torch.as_tensor(value[None]))
    layer = layer.cuda()
    back = torch.as_tensor(dY.reshape(n_rows, -1)).cuda()

    Y = layer(X, edges).detach().cpu().numpy().reshape(x.shape)
    times = []
    for _ in range(_WARMUP + repeats):
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
        X.grad = None
        marks[0].record()
        result = layer(X, edges)
        marks[1].record()
        result.backward(back)
        marks[2].record()
        torch.cuda.synchronize()
        del result
        times.append([1e3 * marks[i].elapsed_time(marks[i + 1]) for i in range(2)])
    medians = np.median(times[_WARMUP:], axis=0).tolist()
    peak = torch.cuda.max_memory_allocated() / 2**20
    return {"Y": Y, "forward_us": medians[0], "backward_us": medians[1], "peak_mib": peak}


if __name__ == "__main__":
    main()
