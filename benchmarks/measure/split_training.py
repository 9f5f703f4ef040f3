"""Time of a captured training step on several GPUs beside one GPU, and PyTorch Geometric's on one.

    torchrun --nproc-per-node 2 benchmarks/measure/split_training.py --output steps.csv

A network of two layers, 128 -> 64 -> 16 (GAT with 8 heads of 8 columns, then one of 16), cross
entropy over half of the nodes, Adam. Forms of a graph:

    split       SplitGraph and TrainingStep on all GPUs; features of neighbors are fetched once
    in turn     as `split`, but products and exchanges do not overlap
    Edges       accelviz's layers on one GPU, captured by TrainingStep
    one rank    SplitGraph and TrainingStep on one GPU

and with dropout (0.5) of the features:

    split, dropout     as `split`: all ranks drop the same elements
    exchanged          the features are dropped by their rank, and exchanged in each step
    Edges, dropout     as `Edges`
    one rank, dropout  as `one rank`, with the elements of `split, dropout`

and PyTorch Geometric's:

    cached, csr cached, edge_index, csr, loops      PyTorch Geometric on one GPU, a plain loop

A row of the CSV is a graph, a network and a form: times of steps by CUDA events (the slowest rank
of each step), the losses of steps 1 and 12, and the largest relative difference of a loss from that
of `Edges`, or of `one rank, dropout` for `split, dropout`. All forms start with the same
parameters. peak_mib is the largest of a rank, with the graph and the features. build_s is the time
to make the graph's form from arrays of the host, first_ms that of the first step, with compilation.
exchange_ms is the time of an exchange of 16 columns alone, with copies. predicted_ms is
`many_gpus.predict_step`, and choice the number of GPUs that `SplitGraph(devices="auto")` uses.
Without a GPU all runs on the CPU, to try the script.
"""

from __future__ import annotations

import gc
import importlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from study import Row, append, full_machine, parser, step_milliseconds
from torch import distributed, nn
from torch.nn import functional

from accelviz import many_gpus
from accelviz import torch as ours
from accelviz.datasets import load_graph
from accelviz.datasets.synthetic.random_models import rmat, stochastic_block
from accelviz.graph import Graph
from accelviz.torch import blocks


def uniform(n_nodes: int, degree: int) -> Graph:
    """Return a graph whose nodes have a random neighbor in each of `degree` ranges of nodes."""
    width, random = n_nodes // degree, np.random.default_rng(0)
    columns = random.integers(width, size=(n_nodes, degree), dtype=np.int32)
    columns += np.arange(0, n_nodes, width, dtype=np.int32)
    pointers, ones = np.arange(0, columns.size + 1, degree), np.ones(columns.size, np.float32)
    return Graph(pointers, columns.ravel(), ones, (n_nodes, n_nodes), "uniform")


FEATURES, HIDDEN, CLASSES, HEADS = 128, 64, 16, 8
MODELS, DROPOUT = ("gcn", "sage", "gat"), 0.5
#: Forms of all GPUs.
SPLIT = ("split", "in turn", "split, dropout", "exchanged")
#: Edges and nodes of the large graphs.
LARGE = 64_000_000, 2_000_000
GRAPHS: dict[str, Callable[[], Graph]] = {
    "blocks": lambda: stochastic_block(LARGE[0], n_nodes=LARGE[1]),
    "blocks shuffled": lambda: stochastic_block(LARGE[0], n_nodes=LARGE[1], order="shuffled"),
    "yelp": lambda: load_graph("yelp"),
    "cora": lambda: load_graph("cora"),
    "rmat": lambda: rmat(LARGE[0], n_nodes=1 << 21),
    "uniform": lambda: uniform(2_000_000, 50),
    "tiny": lambda: stochastic_block(20_000, n_nodes=1_000),
}
DEFAULT = ("cora", "blocks", "blocks shuffled", "yelp")
#: Steps before timing, whose losses are compared; the first three are not captured.
COMPARED = 12
#: The largest relative difference of losses; sums have other orders.
TOLERANCE = 1e-3
SMALL_EDGES = 1_000_000
COLUMNS = (
    *("graph", "nodes", "edges", "model", "form", "gpus", "captured", "median_ms", "p10_ms"),
    *("p90_ms", "steps", "first_loss", "loss", "difference", "peak_mib", "build_s", "first_ms"),
    *(
        "cut_share",
        "halo_rows",
        "exchange_ms",
        "predicted_ms",
        "choice",
        "error",
        "hardware",
        "driver",
        "cuda",
        "cupy",
    ),
    *("torch", "pyg", "date", "commit"),
)
#: Losses of the steps of a graph and network, by what they are compared with.
Losses = dict[str, list[float]]
is_gpu = torch.cuda.is_available()


class Contender(NamedTuple):
    """A step, whether it is captured after three calls, and further columns of its row."""

    step: Callable[[], Any]
    captured: bool
    facts: Row


class Network(nn.Module):
    """Two layers of the module `layers`."""

    def __init__(self, layers: Any, model: str, **options: Any) -> None:
        super().__init__()
        if model == "gat":
            self.first = layers.GATConv(FEATURES, HIDDEN // HEADS, heads=HEADS, **options)
            self.last = layers.GATConv(HIDDEN, CLASSES, **options)
        else:
            layer = {"gcn": layers.GCNConv, "sage": layers.SAGEConv}[model]
            self.first = layer(FEATURES, HIDDEN, **options)
            self.last = layer(HIDDEN, CLASSES, **options)

    def forward(self, x: Any, edges: Any) -> Any:
        """Return scores of classes."""
        return self.last(self.first(x, edges).relu(), edges)


def main() -> None:
    options = parser(__doc__, graphs=DEFAULT)
    options.add_argument("--eager", action="store_true", help="capture no step")
    options.add_argument("--models", nargs="+", default=list(MODELS))
    options.add_argument("--forms", nargs="+", help="default: all that apply")
    options.add_argument("--steps", type=int, default=30, help="timed steps of a form")
    options.add_argument(
        "--limit", type=float, default=205, help="seconds, then no new form begins"
    )
    chosen = options.parse_args()
    start = time.monotonic()
    if not is_gpu:
        torch.set_num_threads(1)
    ours.SplitGraph("cora")  # joins the ranks, selects the GPU
    rank = distributed.get_rank()
    alone = distributed.new_group([0])
    machine = full_machine("cuda" if is_gpu else "cpu") if rank == 0 else {}
    machine |= {
        "torch": torch.__version__,
        "pyg": importlib.import_module("torch_geometric").__version__,
    }
    for row in rows(chosen, start, alone):
        if rank == 0:
            append([dict.fromkeys(COLUMNS) | row | machine], chosen.output)
            print(
                " ".join(str(row.get(name)) for name in COLUMNS[:19]), row.get("error"), flush=True
            )
    distributed.barrier()
    distributed.destroy_process_group()


def rows(options: Any, start: float, alone: Any) -> Iterator[Row]:
    """Yield a row for each graph, network and form."""
    late = f"not run: limit of {options.limit:.0f} s"
    for name in options.graphs:
        if from_rank_0(time.monotonic() - start) > options.limit:
            yield {"graph": name, "error": late}
            continue
        graph = GRAPHS[name]()
        data = features(graph.n_rows)
        sizes = {"graph": name, "nodes": graph.n_rows, "edges": graph.nnz}
        cut = many_gpus.Work.of(many_gpus.split(graph, distributed.get_world_size()))
        for model in options.models:
            losses: dict[str, list[float]] = {}
            for form in forms(model, graph.nnz):
                if options.forms and form not in options.forms:
                    continue
                row = {**sizes, "model": model, "form": form}
                if from_rank_0(time.monotonic() - start) > options.limit:
                    yield {**row, "error": late}
                    continue
                row |= predicted(cut, model, form)
                row |= run(options, graph, data, model, form, alone, losses)
                collect()
                yield row


def forms(model: str, edges: int) -> tuple[str, ...]:
    """Return the forms of a network; of PyTorch Geometric those that are fastest for the size."""
    small = edges < SMALL_EDGES
    of_pyg = {
        "gcn": "cached" if small else "csr cached",
        "sage": "edge_index" if small else "csr",
        "gat": "loops",
    }
    overlapping = () if model == "gat" else ("in turn",)
    exchanged = () if model == "gat" else ("exchanged",)
    dropped = "Edges, dropout", "one rank, dropout", "split, dropout"
    return "Edges", "split", *overlapping, *dropped, *exchanged, "one rank", of_pyg[model]


def run(
    options: Any, graph: Any, data: Any, model: str, form: str, alone: Any, losses: Losses
) -> Row:
    """Return the measurements of a form; all ranks call it, and rank 0 alone runs forms of one."""
    is_split = form in SPLIT
    row: Row = {"gpus": distributed.get_world_size() if is_split else 1}
    if is_split or distributed.get_rank() == 0:
        try:
            row |= measured(options, graph, data, model, form, None if is_split else alone, losses)
        except Exception as error:
            if is_split:
                raise  # the other ranks may wait for this one: end all
            row["error"] = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
    wait()
    distributed.barrier()
    return row


def measured(
    options: Any, graph: Any, data: Any, model: str, form: str, group: Any, losses: Losses
) -> Row:
    """Build a form, compare its losses and time its steps."""
    base = memory()
    marks = [time.perf_counter()]
    contender = built(graph, data, model, form, group, not options.eager)
    wait()
    marks.append(time.perf_counter())
    compared = [float(contender.step())]
    marks.append(time.perf_counter())
    compared += [float(contender.step()) for _ in range(COMPARED - 1)]
    milliseconds = times(contender.step, options.steps, group)
    low, median, high = np.percentile(milliseconds, [10, 50, 90])
    reference = compared
    if "dropout" not in form and form != "exchanged":
        reference = losses.setdefault("all", compared)
    elif form in ("one rank, dropout", "split, dropout"):
        reference = losses.setdefault("the same dropout", compared)
    difference = max(abs(a - b) / abs(b) for a, b in zip(compared, reference, strict=True))
    peak = (memory(peak=True) - base) / 2**20
    row = {"captured": contender.captured, "median_ms": median, "p10_ms": low, "p90_ms": high}
    row |= {"steps": options.steps, "first_loss": compared[0], "loss": compared[-1]}
    row |= {"difference": difference, "peak_mib": largest([peak], group)[0]}
    row |= {"build_s": marks[1] - marks[0], "first_ms": 1e3 * (marks[2] - marks[1])}
    if not difference <= TOLERANCE:
        row["error"] = f"losses differ by {difference:.2g}"
    return {**row, **contender.facts}


def built(graph: Any, data: Any, model: str, form: str, group: Any, capture: bool) -> Contender:
    """Return a form's step."""
    x, labels, counted = (tensor.clone() for tensor in data)
    torch.manual_seed(0)
    state = Network(ours, model).state_dict()
    split = form in (*SPLIT, "one rank", "one rank, dropout")
    part = ours.SplitGraph(graph if split else "cora", group=group)
    part.overlap = form != "in turn"
    device, facts, edges = part.device, {}, part
    rate = DROPOUT if "dropout" in form or form == "exchanged" else 0.0
    if split:
        x, labels, counted = (tensor[part.nodes] for tensor in data)
        facts = {"halo_rows": largest([part.n_halo], group)[0]}
        if form == "exchanged":
            narrow = x[:, :CLASSES].contiguous()
            exchange = times(lambda: part.with_halo(narrow), 10, group)
            facts["exchange_ms"] = float(np.median(exchange))
    library, options = ours, {}
    if split and form != "exchanged":
        x = part.with_halo(x)
    elif not split:
        edges = edges_of(graph, device)
        if form.startswith("Edges"):
            edges = ours.Edges(edges, graph.n_rows)
        else:
            library = importlib.import_module("torch_geometric.nn")
            edges, options = pyg_form(edges, graph, form)
    net = Network(library, model, **options).to(device)
    net.load_state_dict(state)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    share = counted / float(data[2].sum())

    def loss() -> Any:
        features = functional.dropout(x, rate) if rate else x
        scores = functional.log_softmax(net(features, edges), dim=1)
        return -(scores.gather(1, labels[:, None])[:, 0] * share).sum()

    def plain_step() -> Any:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value.detach()

    if library is not ours:
        return Contender(plain_step, False, facts)
    step = ours.TrainingStep(part, net, optimizer, loss, capture=capture)
    return Contender(step, is_gpu and capture, facts)


def features(n_nodes: int) -> tuple[Any, Any, Any]:
    """Return features, labels, and 1 for nodes that count in the loss, the same on all ranks."""
    options: Any = {"generator": torch.Generator(device()).manual_seed(0), "device": device()}
    x = torch.randn(n_nodes, FEATURES, **options)
    labels = torch.randint(CLASSES, (n_nodes,), **options)
    return x, labels, (torch.rand(n_nodes, **options) < 0.5).float()


def edges_of(graph: Any, device: Any) -> Any:
    """Return a graph's `edge_index`."""
    degrees = torch.tensor(np.diff(graph.row_pointers), device=device)
    source = torch.tensor(graph.column_indices, device=device).long()
    target = torch.arange(graph.n_rows, device=device).repeat_interleave(degrees)
    return torch.stack([source, target])


def pyg_form(edge_index: Any, graph: Any, form: str) -> tuple[Any, Row]:
    """Return a form of PyTorch Geometric, and options of its layers."""
    if form == "loops":
        loops = torch.arange(graph.n_rows, device=edge_index.device).expand(2, -1)
        return torch.cat([edge_index, loops], 1), {"add_self_loops": False}
    options = {"cached": True} if "cached" in form else {}
    if "csr" not in form:
        return edge_index, options
    pointers = torch.tensor(graph.row_pointers, device=edge_index.device)
    ones = torch.ones(graph.nnz, device=edge_index.device)
    return torch.sparse_csr_tensor(pointers, edge_index[0], ones, graph.shape), options


def predicted(work: Any, model: str, form: str) -> Row:
    """Return what the model says of a form, with the recorded rates of another machine."""
    row: Row = {"cut_share": sum(work.remote) / max(work.edges, 1)}
    if form in SPLIT or form.startswith("Edges"):
        dropout = "dropout" in form or form == "exchanged"
        options = {"dropout": dropout, "attention": model == "gat", "overlap": form != "in turn"}
        widths, constant = (FEATURES, HIDDEN, CLASSES), form != "exchanged"
        said = many_gpus.predict_step(work, widths, constant=constant, **options)
        row["predicted_ms"] = 1e3 * (said.seconds if form in SPLIT else said.one_gpu)
        row["choice"] = said.choice
    return row


def times(step: Callable[[], Any], steps: int, group: Any) -> list[float]:
    """Return milliseconds of each step, of the slowest rank."""
    wait()
    if group is None:
        distributed.barrier()
    return largest(step_milliseconds(step, steps, is_gpu), group)


def largest(numbers: list[float], group: Any) -> list[float]:
    """Return the largest of all ranks; `group` is None, or that of rank 0 alone."""
    if group is not None:
        return numbers
    tensor = torch.tensor(numbers, dtype=torch.float64, device=device())
    distributed.all_reduce(tensor, distributed.ReduceOp.MAX)
    return tensor.tolist()


def from_rank_0(number: float) -> float:
    tensor = torch.tensor(number, dtype=torch.float64, device=device())
    distributed.broadcast(tensor, 0)
    return float(tensor)


def device() -> str:
    return f"cuda:{torch.cuda.current_device()}" if is_gpu else "cpu"


def wait() -> None:
    if is_gpu:
        torch.cuda.synchronize()


def memory(peak: bool = False) -> int:
    """Return allocated bytes, and begin a new peak; or the bytes of the peak."""
    if not is_gpu:
        return 0
    if peak:
        return torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated()


def collect() -> None:
    """Free the memory of the last form, whose CUDA graph is deleted."""
    gc.collect()
    if is_gpu:
        blocks._captured.clear()
        torch.cuda.empty_cache()


if __name__ == "__main__":
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")  # no NVLink multicast
    main()
