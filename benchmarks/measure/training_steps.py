"""Time and memory of a whole training step or inference, ours beside PyTorch Geometric's.

    python benchmarks/measure/training_steps.py --output steps.csv
    python benchmarks/measure/training_steps.py --models gcn-2x16 gin-5x64 --forms gnnadvisor \
        edge_index csr --passes training inference --graphs artist com-amazon --output steps.csv

A model is a name, of two layers 128 -> 64 -> 16, or a name with depth and width: the systems'
papers have gcn-2x16, gin-5x64 and agnn-4x32. Features and labels of every node are random. A
training step is forward, backward and Adam without dropout, an inference the forward pass. Each
graph and form runs in its own process, one model after another; the peak of memory is reset between
them. Ours is one CUDA graph. PyTorch Geometric runs with `edge_index` and with CSR, and the printed
table has the faster. GAT has 8 heads, then one; AGNN has propagations between two dense layers.
"""

from __future__ import annotations

import gc
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from study import append, edge_index, host_seconds, open_graph, parser, reset_torch_memory

from accelviz import load_graph
from accelviz.datasets import NodeData
from accelviz.errors import AccelvizError
from accelviz.layers import dense
from accelviz.layers.models import find_model
from accelviz.layers.network import Network
from accelviz.layers.products import Products
from accelviz.layers.train import Run
from accelviz.measure.records import hardware, source_commit
from accelviz.plans.program import Buffer, Program, Step

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
#: "ours" computes it once, because features do not change. "gnnadvisor" has its Decider's groups,
#: "gnnadvisor 32" those of a warp's size.
OTHERS: dict[str, Any] = {
    "gnnadvisor": ("gnnadvisor", {"ngs": None}),
    "gnnadvisor 32": "gnnadvisor",
    **{name: name for name in ("tc_gnn", "neugraph", "graphblast", "cusparse")},
    "ours, A X anew": None,
}
PASSES = ("training", "inference")
N_FEATURES, N_HIDDEN, N_CLASSES, HEADS, DEPTH = 128, 64, 16, 8, 2
WARMUP, STEPS = 5, 30


def main() -> None:
    options = parser(__doc__, graphs=[graph for graph in GRAPHS if graph != "reddit"])
    options.add_argument("--models", nargs="*", default=MODELS, help="such as gcn or gin-5x64")
    options.add_argument("--passes", nargs="*", default=PASSES[:1], choices=PASSES)
    options.add_argument("--steps", type=int, default=STEPS, help="timed steps of a case")
    options.add_argument("--features", type=int, default=N_FEATURES, help="columns of X")
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
            case |= {"features": chosen.features}
            several = {"models": chosen.models, "passes": chosen.passes, "steps": chosen.steps}
            rows = in_a_process({**case, **several}, chosen.timeout)
            empty = dict.fromkeys(COLUMNS)
            append(({**empty, **about, **case, **row} for row in rows), chosen.output)
            for row in rows:
                about_row = f"{graph:16} {form:11} {row['model']:9} {row['pass']:9}"
                print(about_row, row["step_ms"], row["problem"], flush=True)
    print(ratios(pd.read_csv(chosen.output)).to_string(index=False))


COLUMNS = (
    *("run", "graph", "model", "form", "pass", "features", "device", "nodes", "edges", "step_ms"),
    *("quartile1_ms", "quartile3_ms", "peak_mib", "loss", "problem", "commit"),
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
    done = {(row["model"], row["pass"]) for row in rows}
    empty = {"step_ms": float("nan"), "peak_mib": float("nan"), "problem": problem}
    cases = itertools.product(case["models"], case["passes"])
    missing = [case_of for case_of in cases if case_of not in done]
    return [*rows, *({"model": model, "pass": kind, **empty} for model, kind in missing)]


def measured(
    graph: str,
    models: list[str],
    passes: list[str],
    form: str,
    device: str,
    features: int,
    steps: int,
) -> Iterator[dict[str, Any]]:
    """Time the passes of each model in this process."""
    name, knobs = GRAPHS.get(graph, (graph, None))
    loaded = open_graph(name, cache=True) if knobs is None else load_graph(name, **knobs)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((loaded.n_rows, features), dtype=np.float32)
    labels = rng.integers(0, N_CLASSES, loaded.n_rows)
    for model, kind in itertools.product(models, passes):
        gc.collect()  # memory of the previous model
        about = loaded, X, labels, model, kind, device, form
        try:
            step, wait, peak = theirs(*about) if form in FORMS[1:] else ours(*about)
        except AccelvizError as error:  # a system without this model's operations
            yield {"model": model, "pass": kind, "step_ms": np.nan, "problem": str(error)}
            continue
        loss = float(step())
        times = host_seconds(step, steps, warmup=WARMUP - 1, wait=wait)
        quartiles = np.percentile(times, [25, 50, 75]) * 1e3
        yield {
            "model": model,
            "pass": kind,
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


def sizes(model: str) -> tuple[str, int, int]:
    """Return the name of a model, its layers and their columns: "gin-5x64" or "gin"."""
    name, _, size = model.partition("-")
    depth, hidden = map(int, size.split("x")) if size else (DEPTH, N_HIDDEN)
    return name, depth, hidden


def ours(
    graph: Any, X: Any, labels: Any, model: str, kind: str, device: str, form: str
) -> Measured:
    """Return a pass of ours; on a GPU a captured graph."""
    name, depth, hidden = sizes(model)
    options: dict[str, Any] = {"hidden": hidden, "depth": depth, "dropout": 0.0}
    if name == "gat":
        options |= {"hidden": hidden // HEADS, "heads": HEADS, "attention_dropout": 0.0}
    network_kind, options = find_model(name, options)
    # All nodes train; the other splits must not be empty, but are not used.
    nodes = np.arange(graph.n_rows)
    data = NodeData(graph, X, labels, nodes[:-2], nodes[-2:-1], nodes[-1:])
    products = Products(OTHERS.get(form), device)
    cupy = products.xp
    if device == "cuda":
        cupy.get_default_memory_pool().free_all_blocks()
    products.stream.__enter__()  # for the rest of the process
    network = Network(network_kind.build(X.shape[1], N_CLASSES, **options), graph, products)
    products.check_effect(network.layers, False)
    run = Run(network, data, dense.Adam(network_kind.rate), 0.0, "all")
    if form in OTHERS:
        network.fix(None)
    step = products.captured(run.program if kind == "training" else inference(run))
    result = lambda: step()["loss" if kind == "training" else "logit"]  # noqa: E731
    if device == "cpu":
        return result, (lambda: None), (lambda: 0)
    pools = cupy.get_default_memory_pool(), getattr(step, "pool", None)
    peak = lambda: sum(pool.total_bytes() for pool in pools if pool)  # noqa: E731
    return result, cupy.cuda.Device().synchronize, peak


def inference(run: Run) -> Program:
    """Return a program of the forward pass alone, whose output is one of the results."""

    def forward(values: dict[str, Any]) -> None:
        values["logit"] = run.logits()[0, 0]

    step = Step("forward", 0, "", buffers={}, writes=frozenset({"logit"}), work=forward)
    return Program((step,), {"logit": Buffer(0, 1, "float32", "output")})


def theirs(
    graph: Any, X: Any, labels: Any, model: str, kind: str, device: str, form: str
) -> Measured:
    """Return a pass of PyTorch Geometric."""
    import torch
    import torch_geometric.nn as layers

    reset_torch_memory()
    linear, relu, passing = torch.nn.Linear, torch.nn.ReLU(), "x, edges -> x"

    name, depth, hidden = sizes(model)

    def mlp(n_in: int, n_out: int) -> Any:
        return torch.nn.Sequential(linear(n_in, n_out), torch.nn.ReLU(), linear(n_out, n_out))

    def attention(n_in: int, n_out: int) -> Any:
        if n_out == hidden:
            return layers.GATConv(n_in, hidden // HEADS, heads=HEADS)
        return layers.GATConv(n_in, n_out, heads=1, concat=False)

    stacked = {
        "gcn": layers.GCNConv,
        "sage": layers.SAGEConv,
        "gin": lambda n_in, n_out: layers.GINConv(mlp(n_in, n_out)),
        "gat": attention,
    }
    modules: list[Any] = []
    if name == "agnn":
        cosines = [layers.AGNNConv(requires_grad=number > 0) for number in range(depth)]
        modules = [
            (linear(X.shape[1], hidden), "x -> x"),
            relu,
            *((one, passing) for one in cosines),
        ]
        modules.append(linear(hidden, N_CLASSES))
    else:
        widths = [X.shape[1], *[hidden] * (depth - 1), N_CLASSES]
        for n_in, n_out in itertools.pairwise(widths):
            modules += [(stacked[name](n_in, n_out), passing), relu]
        modules.pop()
    torch.manual_seed(0)
    features, classes = (torch.from_numpy(array).to(device) for array in (X, labels))
    edges = edge_index(graph, device)
    if form == "csr":
        pointers = torch.tensor(graph.row_pointers).to(device)
        ones = torch.ones(graph.nnz, device=device)
        edges = torch.sparse_csr_tensor(pointers, edges[0], ones, size=graph.shape)
    net = layers.Sequential("x, edges", modules).to(device)
    optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
    entropy = torch.nn.CrossEntropyLoss()

    def step() -> Any:
        optimiser.zero_grad()
        loss = entropy(net(features, edges), classes)
        loss.backward()
        optimiser.step()
        return loss.detach()

    @torch.no_grad()
    def forward() -> Any:
        return net(features, edges)[0, 0]

    chosen = step if kind == "training" else forward
    if device == "cpu":
        return chosen, (lambda: None), (lambda: 0)
    return chosen, torch.cuda.synchronize, torch.cuda.max_memory_reserved


def ratios(table: pd.DataFrame) -> pd.DataFrame:
    """Return ours beside PyTorch Geometric's faster form, by graph and model of the last run."""
    table = table[table["run"] == table["run"].iloc[-1]]
    rows = []
    for (graph, model, kind), cases in table.groupby(["graph", "model", "pass"], sort=False):
        by_form = cases.set_index("form")
        others = by_form[by_form.index.isin(FORMS[1:])].dropna(subset="step_ms")
        own_forms = by_form[~by_form.index.isin(FORMS[1:])]
        if own_forms.empty or others.empty:
            continue
        ours, best = own_forms.iloc[0], others.loc[others["step_ms"].idxmin()]
        row = {"graph": graph, "model": model, "pass": kind, "form": best.name}
        row |= {"ours_ms": ours.step_ms, "pyg_ms": best.step_ms}
        row["times_as_fast"] = best.step_ms / ours.step_ms
        rows.append({**row, "memory_share": ours.peak_mib / others["peak_mib"].min()})
    return pd.DataFrame(rows).round(3)


if __name__ == "__main__":
    main()
