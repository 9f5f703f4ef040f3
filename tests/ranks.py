"""Programs that test_split_graph.py starts: `torchrun ranks.py FOLDER NAME,ARGUMENT... NAME...`.

`trained` is run by one process too, whose results those of several have to equal.
"""

import copy
import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest
from scipy import sparse

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")  # whose import warns

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from accelviz import many_gpus  # noqa: E402
from accelviz import torch as ours  # noqa: E402
from accelviz.datasets import load_nodes  # noqa: E402
from accelviz.errors import AccelvizError  # noqa: E402
from accelviz.torch import Sampler, SplitGraph, TrainingStep, exchange  # noqa: E402

CPU = {"device": "cpu"}
WIDTH, CLASSES = 16, 7


def layers_of(model):
    mlp = nn.Sequential(nn.Linear(WIDTH, 8), nn.ReLU(), nn.Linear(8, 8))
    return {
        "gcn": lambda: (ours.GCNConv(WIDTH, 8), ours.GCNConv(8, CLASSES)),
        "gcn weighted": lambda: (
            ours.GCNConv(WIDTH, 12),
            ours.GCNConv(12, CLASSES, improved=True),
        ),
        "gin": lambda: (ours.GINConv(mlp, train_eps=True), ours.GINConv(nn.Linear(8, CLASSES))),
        "sage": lambda: (ours.SAGEConv(WIDTH, 8), ours.SAGEConv(8, CLASSES)),
        "sage max": lambda: (
            ours.SAGEConv(WIDTH, 8, aggr="max"),
            ours.SAGEConv(8, CLASSES, aggr="max"),
        ),
        "gat": lambda: (
            ours.GATConv(WIDTH, 4, heads=2, residual=True),
            ours.GATConv(8, CLASSES, concat=False),
        ),
        "gatv2": lambda: (ours.GATv2Conv(WIDTH, 4, heads=2), ours.GATv2Conv(8, CLASSES)),
        "dropout": lambda: (
            ours.GATConv(WIDTH, 4, heads=2, dropout=0.5),
            nn.Dropout(0.5),
            ours.GATConv(8, CLASSES, dropout=0.5),
        ),
        "dropped features": lambda: (
            nn.Dropout(0.4),
            ours.SAGEConv(WIDTH, 8),
            ours.GATConv(8, CLASSES),
        ),
        "agnn": lambda: (nn.Linear(WIDTH, 8), ours.AGNNConv(), nn.Linear(8, CLASSES)),
        "transformer": lambda: (
            ours.TransformerConv(WIDTH, 4, heads=2),
            ours.TransformerConv(8, CLASSES),
        ),
    }[model]()


MODELS = ("gcn", "gcn weighted", "gin", "sage", "sage max", "gat", "gatv2", "agnn", "transformer")


class Net(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.layers = nn.ModuleList(layers_of(model))

    def forward(self, x, graph):
        for number, layer in enumerate(self.layers):
            x = x.relu() if number and not isinstance(self.layers[0], nn.Dropout) else x
            x = layer(x) if isinstance(layer, nn.Linear | nn.Dropout) else layer(x, graph)
        return x


def edges_of_cora(weighted=False):
    """Return edges with a duplicate and a loop, the number of nodes, weights, features, labels."""
    nodes = load_nodes("cora")
    rows, columns = nodes.graph.adjacency.tocoo().coords
    edge_index = torch.stack([torch.tensor(columns), torch.tensor(rows)]).long()
    edge_index = torch.cat([edge_index, torch.tensor([[3, 3, 5], [3, 3, 5]])], 1)
    weight = torch.linspace(0.5, 2, edge_index.size(1)) if weighted else None
    x = torch.randn(2708, WIDTH, generator=torch.Generator().manual_seed(1))
    return edge_index, 2708, weight, x, torch.tensor(nodes.labels)


def trained(
    model,
    steps=3,
    halo=False,
    split=None,
    path=None,
    kill_at=None,
    device="cpu",
    capture=True,
    overlap=True,
):
    """Train; return losses, parameters and the scores of all nodes."""
    edge_index, n_nodes, weight, x, labels = edges_of_cora("weighted" in model)
    if split is None:
        graph = SplitGraph(edge_index, n_nodes, weight, device=device)
    else:
        graph = SplitGraph(split, device=device)
    graph.overlap = overlap
    torch.manual_seed(graph.rank)  # the parameters are those of rank 0
    net = Net(model).to(graph.device)
    x, labels = x.to(graph.device), labels.to(graph.device)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    rows = graph.with_halo(x[graph.nodes]) if halo else x[graph.nodes]
    labels = labels[graph.nodes]

    def loss():
        return functional.cross_entropy(net(rows, graph), labels, reduction="sum") / n_nodes

    step = TrainingStep(graph, net, optimizer, loss, capture=capture)
    if path is not None and path.exists():
        step.load(path)
    losses = []
    for number in range(step.steps, steps):
        losses.append(float(step()))
        if path is not None:
            step.save(path)
        if number == kill_at and graph.rank == graph.size - 1:
            end_after(path.parent, lambda: os.kill(os.getpid(), signal.SIGKILL))
    net.eval()
    with torch.no_grad():
        scores = graph.collect(net(rows, graph))
    return {"losses": losses, "net": net.state_dict(), "scores": scores}


def end_after(folder, fault):
    """Save the time, then run what ends this process."""
    (folder / "time of the fault").write_text(str(time.time()))
    fault()


def lost(folder):
    """Train; the GPU of the last rank fails between steps."""
    edge_index, n_nodes, _, x, _ = edges_of_cora()
    graph = SplitGraph(edge_index, n_nodes)
    layer, x = ours.GCNConv(WIDTH, 4).to(graph.device), x.to(graph.device)[graph.nodes]
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    step = TrainingStep(graph, layer, optimizer, lambda: layer(x, graph).square().sum() / n_nodes)
    for number in range(1000):
        float(step())
        if number == 5 and graph.rank == graph.size - 1:
            end_after(folder, lambda: torch._assert_async(torch.zeros(1, device=graph.device)))


def captured(folder, kind, *names):
    """Train each model on GPUs, twice with captured steps and once without."""
    results = {}
    for name in names:
        for form, capture in (("captured", True), ("again", True), ("plain", False)):
            options = {"device": None, "capture": capture, "halo": name == "dropped features"}
            results[name, form] = trained(name, 8, **options)
    torch.save(results, folder / f"{kind} {os.environ['RANK']}.pt")


def star():
    """Train on edges into one node, which leave ranks without a node; as `trained`."""
    edge_index = torch.stack([torch.arange(9), torch.full((9,), 4)])
    graph = SplitGraph(edge_index, 9, **CPU)
    torch.manual_seed(0)
    layer, x = ours.GATConv(3, 2), torch.linspace(-1, 1, 27).view(9, 3)[graph.nodes]
    step = TrainingStep(
        *(graph, layer, torch.optim.SGD(layer.parameters(), 0.1)),
        lambda: layer(x, graph).square().sum(),
    )
    losses = [float(step()) for _ in range(3)]
    scores = graph.collect(layer(x, graph))
    return {"losses": losses, "net": layer.state_dict(), "scores": scores}


def models(folder, *names):
    """Train models, one twice, some with the halo fetched before, one on splits."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    results = {model: trained(model) for model in names}
    for model in (name for name in names if name in ("gcn", "gat", "gatv2", "sage")):
        results[f"{model}, halo"] = trained(model, halo=True)
    results["again"] = trained("gat")
    results["dropout"], results["dropout again"] = trained("dropout"), trained("dropout")
    results["dropped features"] = trained("dropped features", halo=True)
    results["without overlap"] = trained("sage", overlap=False)
    results["uneven"] = star()
    for by in ("metis", "rows"):
        divided = many_gpus.split(load_nodes("cora").graph, size, by=by)
        results[by] = trained("gcn", split=divided)
    torch.save(results, folder / f"models {rank}.pt")


def resumed(folder, kill_at, steps, device):
    """Train with a checkpoint after each step; the last rank dies, in the first attempt only."""
    first = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
    options = {"path": folder / "state.pt", "device": "cpu" if device == "cpu" else None}
    results = trained("gcn", int(steps), kill_at=int(kill_at) if first else None, **options)
    torch.save(results, folder / f"resumed {os.environ['RANK']}.pt")


class LateTransfer:
    """A transfer that runs in `wait`; what it is to bring is NaN before."""

    def __init__(self, exchange, out, sent, *counts):
        if out.is_floating_point():
            out.fill_(torch.nan)
        self.arguments, self.group = (out, sent, *counts), exchange._group

    def wait(self):
        torch.distributed.all_to_all_single(*self.arguments, group=self.group)


def small_graph(weighted=False):
    """Return what `edges_of_cora` returns, for 60 nodes and 400 edges."""
    random = torch.Generator().manual_seed(0)
    edge_index = torch.randint(60, (2, 400), generator=random)
    x = torch.randn(60, WIDTH, generator=random)
    return edge_index, 60, None, x, torch.randint(CLASSES, (60,), generator=random)


def emulated(folder):
    """Train with kernels in the emulator and late transfers, and once with no `wait`."""
    from tests import torch_in_emulator

    names = "sage", "gat", "dropped features"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "edges_of_cora", small_graph)
        patch.setattr(exchange.Exchange, "_begin", lambda *transfer: LateTransfer(*transfer))
        results = {name: trained(name, 2, halo="dropped" in name) for name in names}
        torch_in_emulator.emulate(patch)
        patch.setattr("accelviz.torch.edge_sums._MOST_ELEMENTS", 0)
        emulated = {name: trained(name, 2, halo="dropped" in name) for name in names}
        patch.setattr(LateTransfer, "wait", lambda self: None)
        hasty = trained("sage", 1)
        torch_in_emulator.clear()
    torch.save((results, emulated, hasty), folder / f"emulated {os.environ['RANK']}.pt")


def documented(folder):
    """Run the program of docs/many-gpus.md, which leaves the group, and saves its network."""
    text = (Path(__file__).parents[1] / "docs" / "many-gpus.md").read_text("utf-8")
    code = re.search(r"```python\n(# train.py.*?)```", text, re.DOTALL)[1]
    os.chdir(folder)
    names = {}
    exec(compile(code, "train.py", "exec"), names)
    torch.save(names["losses"], folder / f"documented {names['graph'].rank}.pt")


def chosen(folder):
    """Train on one of the ranks, which the model chooses; the others are idle."""
    edge_index, n_nodes, _, x, _ = edges_of_cora()
    options = {"devices": "auto", "columns": (WIDTH, 4), **CPU}
    slow = SplitGraph(edge_index, n_nodes, one_gpu=1.0, **options)
    assert (slow.size, slow.prediction.devices, slow.is_idle) == (2, 2, False)
    graph = SplitGraph(edge_index, n_nodes, **options)
    results = {"idle": graph.is_idle, "rank": graph.rank, "reason": str(graph.prediction)}
    if not graph.is_idle:
        torch.manual_seed(0)
        layer = ours.GCNConv(WIDTH, 4)
        results["scores"] = layer(x, graph).detach()
        results["expected"] = layer(x, edge_index).detach()
        results["size"] = graph.size
    else:
        layer = ours.GCNConv(WIDTH, 4)
        with pytest.raises(AccelvizError, match="rank 1 is idle"):
            TrainingStep(graph, layer, torch.optim.SGD(layer.parameters(), 0.1), lambda: 0)
        assert str(graph) == "SplitGraph(rank 1, idle)"
    torch.save(results, folder / f"chosen {results['rank']}.pt")


def refused(folder):
    """Do what is refused; save the messages."""
    edge_index, n_nodes, weight, x, _ = edges_of_cora(weighted=True)
    rank = int(os.environ["RANK"])
    graph = SplitGraph(edge_index, n_nodes, **CPU)
    rows = x[graph.nodes]
    cases = {
        "sizes": lambda: SplitGraph(edge_index[:, rank:], n_nodes, **CPU),
        "other edges": lambda: SplitGraph(abs(2707 * rank - edge_index), n_nodes, **CPU),
        "other weights": lambda: SplitGraph(edge_index, n_nodes, weight * (rank + 1), **CPU),
        "other values": lambda: SplitGraph(sparse.eye_array(4, format="csr") * (rank + 2), **CPU),
        "ranges": lambda: SplitGraph(many_gpus.split("cora", 2, by=[0, 2000 + rank, 2708]), **CPU),
        "ranks": lambda: SplitGraph(torch.tensor([[0], [0]]), 1, **CPU),
        "split": lambda: SplitGraph(many_gpus.split("cora", 3), **CPU),
        "rows": lambda: ours.GCNConv(WIDTH, 4)(x, graph),
        "float64": lambda: ours.GCNConv(WIDTH, 4).double()(rows.double(), graph),
        "strategy": lambda: ours.GCNConv(WIDTH, 4, strategy="tc_gnn")(rows, graph),
        "features of edges": lambda: ours.GATConv(WIDTH, 4)(rows, graph, torch.ones(5, 1)),
        "weight": lambda: ours.SAGEConv(WIDTH, 4)(
            rows, SplitGraph(edge_index, n_nodes, weight, **CPU)
        ),
        "edge_weight": lambda: ours.GCNConv(WIDTH, 4)(rows, graph, weight),
        "speeds": lambda: unequal(edge_index, n_nodes),
        "inplace": lambda: functional.dropout(graph.with_halo(rows), inplace=True),
        "weights": lambda: Sampler(
            SplitGraph(edge_index, n_nodes, weight, **CPU), rows, rows, (), 1
        ),
    }
    messages = {}
    for case, run in cases.items():
        try:
            run()
        except AccelvizError as error:
            messages[case] = str(error)
    torch.save(messages, folder / f"refused {rank}.pt")


def unequal(edge_index, n_nodes):
    """Create a graph on simulated GPUs of two kinds, which an explicit split allows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("accelviz.torch.split._device_name", lambda _: f"GPU {os.environ['RANK']}")
        assert SplitGraph(many_gpus.split("cora", 2, by=[0, 2000, 2708]), **CPU).size == 2
        SplitGraph(edge_index, n_nodes, **CPU)


def sampled(folder):
    """Train on sampled neighbors with DistributedDataParallel; check what is sampled."""
    edge_index, n_nodes, _, x, labels = edges_of_cora()
    graph = SplitGraph(edge_index, n_nodes, **CPU)
    rows, size = x[graph.nodes], torch.distributed.get_world_size()
    torch.manual_seed(0)
    layers = {"sage": ours.SAGEConv, "gat": ours.GATConv}
    # The second rank has half as many seeds, and at the end none.
    seeds = torch.arange(0, graph.n_own, 60)[:: 1 + graph.rank]
    results = {}
    for name, layer in layers.items():
        net = nn.ModuleList([layer(WIDTH, 8), layer(8, CLASSES)])
        model = nn.parallel.DistributedDataParallel(Sequence(net))
        whole = copy.deepcopy(net)
        optimizers = [torch.optim.SGD(copied.parameters(), lr=0.1) for copied in (net, whole)]
        for batch in Sampler(graph, rows, seeds, (-1, -1), 8):
            assert torch.equal(batch.x, x[batch.nodes])
            of_ranks = [None] * size
            torch.distributed.all_gather_object(of_ranks, graph.nodes[batch.seeds])
            for optimizer in optimizers:
                optimizer.zero_grad()
            out = model(batch.x, batch.edge_index)[: len(batch.seeds)]
            total_loss(out, labels[graph.nodes][batch.seeds]).backward()
            out = Sequence(whole)(x, edge_index)
            losses = [total_loss(out[nodes], labels[nodes]) for nodes in of_ranks]
            (sum(losses) / size).backward()
            for optimizer in optimizers:
                optimizer.step()
        results[name] = net.state_dict(), whole.state_dict()
    edges, degrees = {*zip(*edge_index.tolist(), strict=True)}, torch.bincount(edge_index[1])
    seen = set()
    for batch in Sampler(graph, rows, seeds, (3, 2), 8, torch.Generator().manual_seed(1)):
        source, target = batch.nodes[batch.edge_index]
        assert {*zip(source.tolist(), target.tolist(), strict=True)} <= edges
        counts = torch.bincount(batch.edge_index[1], minlength=len(batch.nodes))
        first = len(batch.seeds)
        assert torch.equal(counts[:first], degrees[batch.nodes[:first]].clamp(max=3))
        assert (counts[first:] <= 2).all()
        assert torch.equal(batch.nodes[:first], graph.nodes[batch.seeds])
        assert len(batch.nodes.unique()) == len(batch.nodes)
        seen |= {*batch.seeds.tolist()}
    assert seen == {*seeds.tolist()}
    torch.save(results, folder / f"sampled {graph.rank}.pt")


def total_loss(out, labels):
    return functional.cross_entropy(out, labels, reduction="sum")


class Sequence(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, x, edge_index):
        first, last = self.layers
        return last(first(x, edge_index).relu(), edge_index)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for command in sys.argv[2:]:
        name, *arguments = command.split(",")
        globals()[name](Path(sys.argv[1]), *arguments)
    if torch.distributed.is_initialized():
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()
