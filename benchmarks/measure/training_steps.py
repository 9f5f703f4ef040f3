"""Time of a whole training step, ours beside PyTorch Geometric's, and the memory that it takes.

Networks of two layers, 128 -> 64 -> 16, on random features and labels of every node: forward,
backward, Adam, no dropout. Each graph and form has a process, in which models follow each other;
what one has freed does not count for the next one's peak of memory.
Ours is one CUDA graph; PyTorch Geometric's is tried with `edge_index` and with CSR, and the table
in the end takes the faster. GAT has 8 heads of 8 columns, then one of 16; AGNN two propagations of
64 columns.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from study import host_seconds

from accelviz import load_graph
from accelviz.datasets import NodeData
from accelviz.devices import find_device
from accelviz.layers import dense
from accelviz.layers.models import find_model
from accelviz.layers.network import Network
from accelviz.layers.products import Products
from accelviz.layers.train import Run
from accelviz.measure.records import hardware, source_commit

#: What opens a graph; twins are kept on disk, as each form has a process.
GRAPHS: dict[str, tuple[str, dict[str, Any]]] = {
    "cora": ("cora", {}),
    "pubmed": ("pubmed", {}),
    "collab shuffled": ("collab", {"order": "shuffled", "cache": True}),
    **{name: (name, {"cache": True}) for name in ("amazon0601", "yelp", "reddit")},
}
MODELS = ("gcn", "gin", "sage", "gat", "agnn")
FORMS = ("ours", "edge_index", "csr")
#: Our layers by other products, not run unless asked for: a system's, to measure its claims, or our
#: own. In these the matrix multiplies the features anew in each step, as it does in PyTorch
#: Geometric; "ours" does it once, as features do not change.
OTHERS: dict[str, Any] = {"gnnadvisor": ("gnnadvisor", {"ngs": None}), "ours, A X anew": None}
N_FEATURES, N_HIDDEN, N_CLASSES, HEADS = 128, 64, 16, 8
WARMUP, STEPS = 5, 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="a CSV, to which rows are added")
    parser.add_argument("--graphs", nargs="*", default=[g for g in GRAPHS if g != "reddit"])
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--forms", nargs="*", default=FORMS, choices=(*FORMS, *OTHERS))
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--timeout", type=float, default=300, help="seconds of a process")
    parser.add_argument("--case", help="of one process, as JSON: what the others are started with")
    options = parser.parse_args()
    if options.case:
        for row in measured(**json.loads(options.case)):
            print(json.dumps(row), flush=True)
        return
    run = time.strftime("%Y-%m-%d %H:%M:%S")
    for graph in options.graphs:
        for form in options.forms:
            case = {"graph": graph, "form": form, "device": options.device}
            for measurement in in_a_process({**case, "models": options.models}, options.timeout):
                row = {"run": run, **case, **measurement, **hardware(options.device)}
                row["commit"] = source_commit()
                exists = options.output.exists()
                table = pd.DataFrame([row], columns=[*COLUMNS, *hardware(options.device)])
                table.to_csv(options.output, mode="a", header=not exists, index=False)
                print(f"{graph:16} {form:11} {row['model']:5}", row["step_ms"], row["problem"])
    print(ratios(pd.read_csv(options.output)).to_string(index=False))


COLUMNS = [
    *("run", "graph", "model", "form", "device", "nodes", "edges", "step_ms", "quartile1_ms"),
    *("quartile3_ms", "peak_mib", "loss", "problem", "commit"),
]


def in_a_process(case: dict[str, Any], timeout: float) -> list[dict[str, Any]]:
    """Measure all models of a case; those after a failure are rows with its problem."""
    command = [sys.executable, __file__, "--output", "none", "--case", json.dumps(case)]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        said, problem = answer.stdout, (answer.stderr.strip().splitlines() or [""])[-1][:200]
    except subprocess.TimeoutExpired as late:
        said, problem = (late.stdout or b"").decode(), f"not done in {timeout:.0f} s"
    rows = [json.loads(line) for line in said.splitlines()]
    done = {row["model"] for row in rows}
    empty = {"step_ms": float("nan"), "peak_mib": float("nan"), "problem": problem}
    return [*rows, *({"model": model, **empty} for model in case["models"] if model not in done)]


def measured(graph: str, models: list[str], form: str, device: str) -> Iterator[dict[str, Any]]:
    """Time the steps of each model in this process."""
    name, knobs = GRAPHS[graph]
    loaded = load_graph(name, **knobs)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((loaded.n_rows, N_FEATURES), dtype=np.float32)
    labels = rng.integers(0, N_CLASSES, loaded.n_rows)
    for model in models:
        gc.collect()  # what the one before held
        forget(form, device)
        if form in FORMS[1:]:
            step = theirs(loaded, X, labels, model, form)
        else:
            step = ours(loaded, X, labels, model, device, form)
        losses = [step() for _ in range(WARMUP)]
        times, peak = timed(step, form, device)
        quartiles = np.percentile(times, [25, 50, 75]) * 1e3
        yield {
            "model": model,
            "nodes": loaded.n_rows,
            "edges": loaded.nnz,
            "loss": float(losses[0]),
            "step_ms": quartiles[1],
            "quartile1_ms": quartiles[0],
            "quartile3_ms": quartiles[2],
            "peak_mib": peak / 2**20,
            "problem": "",
        }
        del step


def forget(form: str, device: str) -> None:
    """Give back what the pool holds and nobody uses, and begin its peak anew."""
    if device == "cuda" and form not in FORMS[1:]:
        find_device("cuda").xp.get_default_memory_pool().free_all_blocks()
    elif device == "cuda":
        import torch

        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def ours(graph: Any, X: Any, labels: Any, model: str, device: str, form: str = "ours") -> Any:
    """Return a step of ours: a recording on a GPU."""
    options: dict[str, Any] = {"hidden": N_HIDDEN, "dropout": 0.0}
    if model == "gat":
        options |= {"hidden": N_HIDDEN // HEADS, "heads": HEADS, "attention_dropout": 0.0}
    network_kind, options = find_model(model, options)
    # Every node is learned from; the other splits are not looked at here.
    nodes = np.arange(graph.n_rows)
    data = NodeData(graph, X, labels, nodes[:-2], nodes[-2:-1], nodes[-1:])
    products = Products(OTHERS.get(form), device)
    products.stream.__enter__()  # on which the process goes on
    network = Network(network_kind.build(N_FEATURES, N_CLASSES, **options), graph, products)
    run = Run(network, data, dense.Adam(network_kind.rate), 0.0, "all")
    if form in OTHERS:
        network.fix(None)
    return products.captured(run.step)


def theirs(graph: Any, X: Any, labels: Any, model: str, form: str) -> Any:
    """Return a step of PyTorch Geometric's."""
    import torch
    import torch_geometric.nn as layers

    def mlp(n_in: int, n_out: int) -> Any:
        parts = torch.nn.Linear(n_in, n_out), torch.nn.ReLU(), torch.nn.Linear(n_out, n_out)
        return torch.nn.Sequential(*parts)

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first: Any = torch.nn.Identity()
            self.last: Any = torch.nn.Identity()
            if model == "gcn":
                self.one = layers.GCNConv(N_FEATURES, N_HIDDEN)
                self.two = layers.GCNConv(N_HIDDEN, N_CLASSES)
            elif model == "sage":
                self.one = layers.SAGEConv(N_FEATURES, N_HIDDEN)
                self.two = layers.SAGEConv(N_HIDDEN, N_CLASSES)
            elif model == "gin":
                self.one = layers.GINConv(mlp(N_FEATURES, N_HIDDEN))
                self.two = layers.GINConv(mlp(N_HIDDEN, N_CLASSES))
            elif model == "gat":
                self.one = layers.GATConv(N_FEATURES, N_HIDDEN // HEADS, heads=HEADS)
                self.two = layers.GATConv(N_HIDDEN, N_CLASSES, heads=1, concat=False)
            else:
                self.first = torch.nn.Linear(N_FEATURES, N_HIDDEN)
                self.one = layers.AGNNConv(requires_grad=False)
                self.two = layers.AGNNConv()
                self.last = torch.nn.Linear(N_HIDDEN, N_CLASSES)

        def forward(self, x: Any, edges: Any) -> Any:
            x = self.first(x)
            x = torch.relu(x) if model == "agnn" else x
            x = self.one(x, edges)
            x = x if model == "agnn" else torch.relu(x)
            return self.last(self.two(x, edges))

    torch.manual_seed(0)
    features, classes = torch.from_numpy(X).cuda(), torch.from_numpy(labels).cuda()
    rows = np.repeat(np.arange(graph.n_rows), graph.degrees)
    if form == "edge_index":
        pair = np.stack([graph.column_indices.astype(np.int64), rows])
        edges = torch.from_numpy(pair).cuda()
    else:
        parts = (
            graph.row_pointers,
            graph.column_indices.astype(np.int64),
            np.ones_like(graph.values),
        )
        parts = tuple(torch.from_numpy(array.copy()).cuda() for array in parts)
        edges = torch.sparse_csr_tensor(*parts, size=graph.shape)
    net = Net().cuda()
    optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
    entropy = torch.nn.CrossEntropyLoss()

    def step() -> Any:
        optimiser.zero_grad()
        loss = entropy(net(features, edges), classes)
        loss.backward()
        optimiser.step()
        return loss.detach()

    return step


def timed(step: Any, form: str, device: str) -> tuple[Any, int]:
    """Return the seconds of every step, waits for the GPU included, and the peak of memory.

    The peak is what the framework's pool holds of the device, for both alike.
    """
    wait, peak = (lambda: None), (lambda: 0)
    if device == "cuda" and form not in FORMS[1:]:
        cupy = find_device("cuda").xp
        pools = cupy.get_default_memory_pool(), step.pool
        wait = cupy.cuda.Device().synchronize
        peak = lambda: sum(pool.total_bytes() for pool in pools)  # noqa: E731
    elif device == "cuda":
        import torch

        wait, peak = torch.cuda.synchronize, torch.cuda.max_memory_reserved
    return host_seconds(step, STEPS, wait=wait), peak()


def ratios(table: pd.DataFrame) -> pd.DataFrame:
    """Return ours beside PyTorch Geometric's faster form, by model and graph of the last run."""
    table = table[table["run"] == table["run"].iloc[-1]]
    rows = []
    for (graph, model), cases in table.groupby(["graph", "model"], sort=False):
        by_form = cases.set_index("form")
        others = by_form[by_form.index.isin(FORMS[1:])].dropna(subset="step_ms")
        own_forms = by_form[~by_form.index.isin(FORMS[1:])]
        if own_forms.empty or others.empty:
            continue
        ours, best = own_forms.iloc[0], others.loc[others["step_ms"].idxmin()]
        rows.append(
            {
                "graph": graph,
                "model": model,
                "form": best.name,
                "ours_ms": ours.step_ms,
                "pyg_ms": best.step_ms,
                "times_as_fast": best.step_ms / ours.step_ms,
                "memory_share": ours.peak_mib / others["peak_mib"].min(),
            }
        )
    return pd.DataFrame(rows).round(3)


if __name__ == "__main__":
    main()
