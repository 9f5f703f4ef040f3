"""Time and memory of a whole training step, ours beside PyTorch Geometric's.

Networks of two layers, 128 -> 64 -> 16, on random features and labels of every node: forward,
backward, Adam, no dropout. Each graph and form runs in its own process, one model after another;
the peak of memory is reset between models. Ours is one CUDA graph. PyTorch Geometric runs with
`edge_index` and with CSR, and the printed table has the faster. GAT has 8 heads of 8 columns, then
one of 16; AGNN two propagations of 64 columns.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from study import append, edge_index, host_seconds, parser, reset_torch_memory

from accelviz import load_graph
from accelviz.datasets import NodeData
from accelviz.layers import dense
from accelviz.layers.models import find_model
from accelviz.layers.network import Network
from accelviz.layers.products import Products
from accelviz.layers.train import Run
from accelviz.measure.records import hardware, source_commit

#: Arguments of load_graph; twins are stored on disk, because each form has its own process.
GRAPHS: dict[str, tuple[str, dict[str, Any]]] = {
    "cora": ("cora", {}),
    "pubmed": ("pubmed", {}),
    "collab shuffled": ("collab", {"order": "shuffled", "cache": True}),
    **{name: (name, {"cache": True}) for name in ("amazon0601", "yelp", "reddit")},
}
MODELS = ("gcn", "gin", "sage", "gat", "agnn")
FORMS = ("ours", "edge_index", "csr")
#: Our layers with other products, only run if named: by a system's kernels, or by ours without
#: caching. In these A X of the first layer is computed in each step, as in PyTorch Geometric;
#: "ours" computes it once, because features do not change.
OTHERS: dict[str, Any] = {"gnnadvisor": ("gnnadvisor", {"ngs": None}), "ours, A X anew": None}
N_FEATURES, N_HIDDEN, N_CLASSES, HEADS = 128, 64, 16, 8
WARMUP, STEPS = 5, 30


def main() -> None:
    options = parser(__doc__, graphs=[graph for graph in GRAPHS if graph != "reddit"])
    options.add_argument("--models", nargs="*", default=MODELS)
    options.add_argument("--forms", nargs="*", default=FORMS, choices=(*FORMS, *OTHERS))
    options.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    options.add_argument("--timeout", type=float, default=300, help="seconds of a process")
    options.add_argument("--case", help="of one process, as JSON: what the others are started with")
    chosen = options.parse_args()
    if chosen.case:
        for row in measured(**json.loads(chosen.case)):
            print(json.dumps(row), flush=True)
        return
    about = {**hardware(chosen.device), "run": time.strftime("%Y-%m-%d %H:%M:%S")}
    about["commit"] = source_commit()
    for graph in chosen.graphs:
        for form in chosen.forms:
            case = {"graph": graph, "form": form, "device": chosen.device}
            rows = in_a_process({**case, "models": chosen.models}, chosen.timeout)
            empty = dict.fromkeys(COLUMNS)
            append(({**empty, **about, **case, **row} for row in rows), chosen.output)
            for row in rows:
                print(f"{graph:16} {form:11} {row['model']:5}", row["step_ms"], row["problem"])
    print(ratios(pd.read_csv(chosen.output)).to_string(index=False))


COLUMNS = (
    *("run", "graph", "model", "form", "device", "nodes", "edges", "step_ms", "quartile1_ms"),
    *("quartile3_ms", "peak_mib", "loss", "problem", "commit"),
)


def in_a_process(case: dict[str, Any], timeout: float) -> list[dict[str, Any]]:
    """Measure all models of a case; models after a failure get rows with its problem."""
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
        gc.collect()  # memory of the previous model
        if form in FORMS[1:]:
            step, wait, peak = theirs(loaded, X, labels, model, form)
        else:
            step, wait, peak = ours(loaded, X, labels, model, device, form)
        loss = float(step())
        times = host_seconds(step, STEPS, warmup=WARMUP - 1, wait=wait)
        quartiles = np.percentile(times, [25, 50, 75]) * 1e3
        yield {
            "model": model,
            "nodes": loaded.n_rows,
            "edges": loaded.nnz,
            "loss": loss,
            **dict(zip(("quartile1_ms", "step_ms", "quartile3_ms"), quartiles, strict=True)),
            "peak_mib": peak() / 2**20,
            "problem": "",
        }
        del step, wait, peak


#: A step, a wait for its end, and the peak of the framework's memory pool.
Measured = tuple[Callable[[], Any], Callable[[], object], Callable[[], int]]


def ours(graph: Any, X: Any, labels: Any, model: str, device: str, form: str) -> Measured:
    """Return a step of ours; on a GPU a captured graph."""
    options: dict[str, Any] = {"hidden": N_HIDDEN, "dropout": 0.0}
    if model == "gat":
        options |= {"hidden": N_HIDDEN // HEADS, "heads": HEADS, "attention_dropout": 0.0}
    network_kind, options = find_model(model, options)
    # All nodes train; the other splits must not be empty, but are not used.
    nodes = np.arange(graph.n_rows)
    data = NodeData(graph, X, labels, nodes[:-2], nodes[-2:-1], nodes[-1:])
    products = Products(OTHERS.get(form), device)
    cupy = products.xp
    if device == "cuda":
        cupy.get_default_memory_pool().free_all_blocks()
    products.stream.__enter__()  # for the rest of the process
    network = Network(network_kind.build(N_FEATURES, N_CLASSES, **options), graph, products)
    run = Run(network, data, dense.Adam(network_kind.rate), 0.0, "all")
    if form in OTHERS:
        network.fix(None)
    step = products.captured(run.program)
    if device == "cpu":
        return (lambda: step()["loss"]), (lambda: None), (lambda: 0)
    pools = cupy.get_default_memory_pool(), getattr(step, "pool", None)
    peak = lambda: sum(pool.total_bytes() for pool in pools if pool)  # noqa: E731
    return (lambda: step()["loss"]), cupy.cuda.Device().synchronize, peak


def theirs(graph: Any, X: Any, labels: Any, model: str, form: str) -> Measured:
    """Return a step of PyTorch Geometric."""
    import torch
    import torch_geometric.nn as layers

    reset_torch_memory()
    linear, relu, passing = torch.nn.Linear, torch.nn.ReLU(), "x, edges -> x"

    def mlp(n_in: int, n_out: int) -> Any:
        return torch.nn.Sequential(linear(n_in, n_out), torch.nn.ReLU(), linear(n_out, n_out))

    def two(one: Any, other: Any) -> list[Any]:
        return [(one, passing), relu, (other, passing)]

    networks = {
        "gcn": lambda: two(
            layers.GCNConv(N_FEATURES, N_HIDDEN), layers.GCNConv(N_HIDDEN, N_CLASSES)
        ),
        "sage": lambda: two(
            layers.SAGEConv(N_FEATURES, N_HIDDEN), layers.SAGEConv(N_HIDDEN, N_CLASSES)
        ),
        "gin": lambda: two(
            layers.GINConv(mlp(N_FEATURES, N_HIDDEN)), layers.GINConv(mlp(N_HIDDEN, N_CLASSES))
        ),
        "gat": lambda: two(
            layers.GATConv(N_FEATURES, N_HIDDEN // HEADS, heads=HEADS),
            layers.GATConv(N_HIDDEN, N_CLASSES, heads=1, concat=False),
        ),
        "agnn": lambda: [
            *(linear(N_FEATURES, N_HIDDEN), relu),
            *((layers.AGNNConv(requires_grad=False), passing), (layers.AGNNConv(), passing)),
            linear(N_HIDDEN, N_CLASSES),
        ],
    }
    torch.manual_seed(0)
    features, classes = torch.from_numpy(X).cuda(), torch.from_numpy(labels).cuda()
    edges = edge_index(graph)
    if form == "csr":
        pointers = torch.tensor(graph.row_pointers).cuda()
        ones = torch.ones(graph.nnz, device="cuda")
        edges = torch.sparse_csr_tensor(pointers, edges[0], ones, size=graph.shape)
    net = layers.Sequential("x, edges", networks[model]()).cuda()
    optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
    entropy = torch.nn.CrossEntropyLoss()

    def step() -> Any:
        optimiser.zero_grad()
        loss = entropy(net(features, edges), classes)
        loss.backward()
        optimiser.step()
        return loss.detach()

    return step, torch.cuda.synchronize, torch.cuda.max_memory_reserved


def ratios(table: pd.DataFrame) -> pd.DataFrame:
    """Return ours beside PyTorch Geometric's faster form, by graph and model of the last run."""
    table = table[table["run"] == table["run"].iloc[-1]]
    rows = []
    for (graph, model), cases in table.groupby(["graph", "model"], sort=False):
        by_form = cases.set_index("form")
        others = by_form[by_form.index.isin(FORMS[1:])].dropna(subset="step_ms")
        own_forms = by_form[~by_form.index.isin(FORMS[1:])]
        if own_forms.empty or others.empty:
            continue
        ours, best = own_forms.iloc[0], others.loc[others["step_ms"].idxmin()]
        row = {"graph": graph, "model": model, "form": best.name}
        row |= {"ours_ms": ours.step_ms, "pyg_ms": best.step_ms}
        row["times_as_fast"] = best.step_ms / ours.step_ms
        rows.append({**row, "memory_share": ours.peak_mib / others["peak_mib"].min()})
    return pd.DataFrame(rows).round(3)


if __name__ == "__main__":
    main()
