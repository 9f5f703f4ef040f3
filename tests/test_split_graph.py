"""Training over several processes: equal to one, equal each run, resumed, and refused (torchrun).

The programs of the processes are in ranks.py.
"""

import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch.nn import functional  # noqa: E402

from accelviz.torch import GCNConv, SplitGraph, TrainingStep, composed, exchange  # noqa: E402
from accelviz.torch.composed import Size  # noqa: E402
from accelviz.torch.edges import fix  # noqa: E402
from tests import ranks  # noqa: E402
from tests.compilers import needs_compiler  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
#: A bias of keys has no gradient, which rounding replaces by any sign of Adam's step.
WITHOUT_GRADIENT = ("lin_key.bias",)

pytestmark = [pytest.mark.xdist_group("ranks"), pytest.mark.long]


def needs_two_gpus(test):
    """Mark a test as one that runs on two GPUs only."""
    too_few = torch.cuda.device_count() < 2
    return pytest.mark.gpu(pytest.mark.skipif(too_few, reason="fewer than two GPUs")(test))


def torchrun(size, folder, *programs, options=()):
    """Run programs of ranks.py; return the finished process."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", *options]
    command += ["--nproc-per-node", str(size), str(ROOT / "tests" / "ranks.py"), str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    options = {"capture_output": True, "text": True, "env": environment, "timeout": 300}
    return subprocess.run([*command, *programs], **options)


def results(folder, program, size):
    return [torch.load(folder / f"{program} {rank}.pt") for rank in range(size)]


def assert_equal_within_rounding(result, alone):
    np.testing.assert_allclose(result["losses"], alone["losses"], rtol=2e-6)
    for name, parameter in alone["net"].items():
        if not name.endswith(WITHOUT_GRADIENT):
            np.testing.assert_allclose(result["net"][name], parameter, atol=2e-6, err_msg=name)
    np.testing.assert_allclose(result["scores"], alone["scores"], rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def alone():
    """Results of one process; the models are those of PyTorch Geometric (test_torch_modules.py)."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    results = {model: ranks.trained(model) for model in ranks.MODELS}
    yield results | {"dropped features": ranks.trained("dropped features", halo=True)}
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """The folder with the results of two ranks."""
    folder = tmp_path_factory.mktemp("two")
    run = torchrun(
        2, folder, ",".join(["models", *ranks.MODELS]), "refused", "sampled", "chosen", "documented"
    )
    assert run.returncode == 0, run.stderr
    return folder


def check_models(by_rank, alone):
    for name, result in by_rank[0].items():
        for other in by_rank[1:]:
            for key, parameter in result["net"].items():
                assert torch.equal(parameter, other[name]["net"][key]), (name, key)
        model = name.removesuffix(", halo")
        if model in alone:
            assert_equal_within_rounding(result, alone[model])
    for key, parameter in by_rank[0]["gat"]["net"].items():
        assert torch.equal(parameter, by_rank[0]["again"]["net"][key]), key
    assert by_rank[0]["dropout"]["losses"] == by_rank[1]["dropout again"]["losses"]
    assert by_rank[0]["dropout"]["losses"][0] != pytest.approx(alone["gat"]["losses"][0], rel=1e-3)
    assert_equal_within_rounding(by_rank[0]["without overlap"], alone["sage"])
    assert_equal_within_rounding(by_rank[0]["uneven"], ranks.star())
    without_additions = ranks.trained("gcn", split=ranks.load_nodes("cora").graph)
    for by in ("metis", "rows"):
        assert_equal_within_rounding(by_rank[0][by], without_additions)


def test_two_ranks_learn_what_one_process_does(two, alone):
    by_rank = results(two, "models", 2)
    assert {*ranks.MODELS, "gcn, halo", "gatv2, halo"} < by_rank[0].keys()
    check_models(by_rank, alone)


def test_three_ranks_learn_what_one_process_does(alone, tmp_path):
    run = torchrun(3, tmp_path, "models,gcn weighted,sage max,gat")
    assert run.returncode == 0, run.stderr
    check_models(results(tmp_path, "models", 3), alone)


def test_a_killed_rank_ends_all_and_torchrun_resumes_from_the_checkpoint(tmp_path):
    run = torchrun(2, tmp_path, "resumed,2,6,cpu", options=("--max-restarts", "1"))
    assert run.returncode == 0, run.stderr
    assert "exitcode: -9" in run.stderr
    whole = ranks.trained("gcn", 6)
    resumed = results(tmp_path, "resumed", 2)[0]
    assert len(resumed["losses"]) in (3, 4)  # rank 0 may have saved the step before the kill
    resumed["losses"] = whole["losses"][: 6 - len(resumed["losses"])] + resumed["losses"]
    assert_equal_within_rounding(resumed, whole)
    state = torch.load(tmp_path / "state.pt")
    assert state["steps"] == 6
    longer = ranks.trained("gcn", 8, path=tmp_path / "state.pt")  # one process resumes
    assert longer["losses"] == pytest.approx(ranks.trained("gcn", 8)["losses"][6:], rel=2e-6)


def seconds_since_the_fault(folder):
    return time.time() - float((folder / "time of the fault").read_text())


def test_a_killed_rank_is_named_within_ten_seconds_and_ends_all(tmp_path):
    run = torchrun(2, tmp_path, "resumed,2,600,cpu")
    assert run.returncode
    assert seconds_since_the_fault(tmp_path) < 10
    assert re.search(r"rank +: 1 .*\n.*exitcode +: -9", run.stderr)
    assert torch.load(tmp_path / "state.pt")["steps"] in (2, 3)
    left = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, text=True)
    assert not left.stdout


@needs_two_gpus
def test_a_killed_rank_of_a_captured_step_ends_all_and_torchrun_resumes(tmp_path):
    run = torchrun(2, tmp_path, "resumed,5,8,cuda", options=("--max-restarts", "1"))
    assert run.returncode == 0, run.stderr
    resumed = results(tmp_path, "resumed", 2)[0]
    whole = ranks.trained("gcn", 8, device="cuda:0", capture=False)
    expected = whole["losses"][8 - len(resumed["losses"]) :]
    np.testing.assert_allclose(resumed["losses"], expected, rtol=1e-4)


@needs_two_gpus
def test_a_gpu_that_fails_is_named_within_ten_seconds_and_ends_all(tmp_path):
    run = torchrun(2, tmp_path, "lost")
    assert run.returncode
    assert seconds_since_the_fault(tmp_path) < 10
    assert re.search(r"rank +: 1 ", run.stderr)
    assert "device-side assert" in run.stderr
    left = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, text=True)
    assert not left.stdout


@needs_compiler
def test_emulated_ranks_learn_the_same_and_a_missing_barrier_is_found(tmp_path):
    run = torchrun(2, tmp_path, "emulated")
    assert run.returncode == 0, run.stderr
    for alone, emulated, hasty in results(tmp_path, "emulated", 2):
        for model, result in alone.items():
            assert_equal_within_rounding(emulated[model], result)
        assert np.isnan(hasty["losses"]).all()


def test_one_of_two_ranks_has_all_nodes_if_that_is_faster(two):
    first, second = results(two, "chosen", 2)
    assert first["reason"] == second["reason"]
    assert re.match("1 device: a step takes .* ms on 2 devices", first["reason"])
    assert (first["idle"], first["size"], second["idle"]) == (False, 1, True)
    np.testing.assert_allclose(first["scores"], first["expected"], atol=1e-5)


def test_wrong_calls_are_refused_on_all_ranks(two):
    expected = {
        "sizes": "ranks have different graphs: (nodes, edges) [(2708, 10559), (2708, 10558)]",
        "other edges": "ranks have different edges or weights",
        "other weights": "ranks have different edges or weights",
        "other values": "ranks have different edges or weights",
        "ranges": "ranks have different ranges",
        "ranks": "1 nodes for 2 ranks",
        "split": "a split over 3 devices for 2 ranks",
        "rows": "2708 rows for",
        "float64": "this call needs PyTorch Geometric's code",
        "strategy": "this call needs PyTorch Geometric's code",
        "features of edges": "this call needs PyTorch Geometric's code",
        "weight": "SplitGraph with weights, which SAGEConv has no use for",
        "edge_weight": "given beside a SplitGraph",
        "speeds": "equal shares for GPU 0, GPU 1",
        "inplace": "features with a halo would change each step",
        "weights": "a SplitGraph with weights",
    }
    for messages in results(two, "refused", 2):
        assert messages.keys() == expected.keys()
        for case, text in expected.items():
            assert text in messages[case], messages[case]


def test_a_resumed_run_draws_the_dropout_of_the_features_that_an_unbroken_one_draws(tmp_path):
    def losses(first, last):
        torch.manual_seed(0)
        graph = SplitGraph("cora", device="cpu")
        x = graph.with_halo(torch.ones(graph.n_own, 8))
        model = GCNConv(8, 4)
        step = TrainingStep(
            graph,
            model,
            torch.optim.SGD(model.parameters(), 0.1),
            lambda: model(functional.dropout(x), graph).square().mean(),
        )
        if first:
            torch.manual_seed(1)  # a program that resumes may have drawn other numbers
            step.load(tmp_path / "state.pt")
        result = [float(step()) for _ in range(first, last)]
        step.save(tmp_path / "state.pt")
        return result

    whole = losses(0, 4)
    assert len(set(whole)) == 4
    assert losses(0, 2) + losses(2, 4) == whole


def test_sampled_neighbors_train_with_distributed_data_parallel(two):
    for states in results(two, "sampled", 2):
        for state, reference in states.values():
            for name, parameter in reference.items():
                np.testing.assert_allclose(state[name], parameter, atol=1e-6)


def test_the_program_of_the_docs_learns_on_two_ranks(two):
    first, second = results(two, "documented", 2)
    assert first == second
    assert first[-1] < first[0] - 0.1
    assert torch.load(two / "model.pt")["convs.0.lin_l.weight"].shape == (16, 1433)


@needs_two_gpus
@pytest.mark.parametrize("kind", ["sums", "attentions"])
def test_captured_steps_on_two_gpus_equal_those_of_one(tmp_path, kind):
    models = {
        "sums": ("gcn", "gcn weighted", "gin", "sage", "sage max", "dropped features"),
        "attentions": ("gat", "gatv2", "agnn", "transformer", "dropout"),
    }[kind]
    run = torchrun(2, tmp_path, ",".join(["captured", kind, *models]))
    assert run.returncode == 0, run.stderr
    result = torch.load(tmp_path / f"{kind} 0.pt", map_location="cpu")
    for model in models:
        first, again, plain = (result[model, form] for form in ("captured", "again", "plain"))
        assert first["losses"] == again["losses"], model
        for name, parameter in first["net"].items():
            assert torch.equal(parameter, again["net"][name]), (model, name)
        np.testing.assert_allclose(first["losses"], plain["losses"], rtol=1e-5, err_msg=model)
        if model != "dropout":
            options = {"halo": model == "dropped features", "device": "cuda:0", "capture": False}
            one = ranks.trained(model, 8, **options)
            np.testing.assert_allclose(first["losses"], one["losses"], rtol=1e-4, err_msg=model)


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def alone_in_a_group(request):
    """Return a device whose process is the only rank, and sends rows to itself."""
    backend = "nccl" if request.param == "cuda" else "gloo"
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group(backend, store=store, rank=0, world_size=1)
    yield request.param
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize("n_halo", [30, 100])  # some rows, or all
def test_a_sum_overlaps_an_exchange_of_a_rank_with_itself(alone_in_a_group, n_halo):
    random, on = torch.Generator().manual_seed(0), alone_in_a_group
    halo = torch.randperm(100, generator=random)[:n_halo].sort()[0]
    targets = torch.randint(100, (2, 900), generator=random).to(on)
    local_edges = torch.stack([torch.randint(100, (900,), generator=random).to(on), targets[0]])
    remote_edges = torch.stack([torch.randint(n_halo, (900,), generator=random).to(on), targets[1]])
    for edges in (local_edges, remote_edges):
        fix(edges)
    weight, x, dy, scale = (
        torch.rand(*shape, generator=random).to(on)
        for shape in ((1000,), (100, 16), (100, 16), (100, 1))
    )
    parts = (
        exchange.Exchange(halo.to(on), torch.tensor([0, 100], device=on), 0, None),
        exchange.Matrix(local_edges, Size(100, 100, 100), weight),
        exchange.Matrix(remote_edges, Size(n_halo, 100), None),
        scale,
    )
    x.requires_grad_()

    def step():
        y = exchange.OverlappedSum.apply(x, *parts)
        return y.detach(), *torch.autograd.grad(y, x, dy)

    rows = x.detach().double()
    expected = composed.spmm(local_edges, weight.double(), rows, 100, 100, 100, "sum", False)
    remote = rows[halo.to(on)]
    expected += composed.spmm(remote_edges, None, remote, n_halo, 100, 0, "sum", False)
    y, dx = step()
    torch.testing.assert_close(y.double(), scale * expected, rtol=1e-5, atol=1e-5)
    d_sum = (scale * dy).double()
    expected = composed.spmm(local_edges, weight.double(), d_sum, 100, 100, 100, "sum", True)
    d_halo = composed.spmm(remote_edges, None, d_sum, n_halo, 100, 0, "sum", True)
    expected.index_add_(0, halo.to(on), d_halo)
    torch.testing.assert_close(dx.double(), expected, rtol=1e-5, atol=1e-5)
    if on == "cuda":
        replayed = captured(step)
        for _ in range(3):
            assert all(map(torch.equal, replayed(), (y, dx)))


def captured(step):
    """Return a function that replays a captured step and returns its results."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        results = step()

    def replay():
        for result in results:
            result.fill_(torch.nan)
        graph.replay()
        return results

    return replay


def test_errors_of_one_process():
    cases = [
        (lambda: SplitGraph(torch.zeros(3, 2)), "edge_index: shape"),
        (lambda: SplitGraph(torch.tensor([[0], [5]]), 5, device="cpu"), "nodes 0 to 5"),
        (lambda: SplitGraph(torch.tensor([[0], [1]]), device="cpu"), "n_nodes: missing"),
        (lambda: SplitGraph("cora", 5, device="cpu"), "n_nodes: for a graph that has its own"),
        (lambda: SplitGraph("cora", devices=2, device="cpu"), "devices: got 2.*1 to 1"),
        (lambda: SplitGraph("cora", devices="auto", device="cpu"), "columns: missing"),
        (lambda: SplitGraph("cora", columns=(8, 4), device="cpu"), "devices='auto'"),
        (lambda: SplitGraph("cora", attention=True, device="cpu"), "attention: given with"),
        (lambda: SplitGraph(sparse.eye_array(2, 3), device="cpu"), "graph: 2 x 3"),
        (
            lambda: SplitGraph(torch.tensor([[0], [1]]), 2, torch.ones(3), device="cpu"),
            "weight: shape",
        ),
    ]
    for run, message in cases:
        with pytest.raises(ranks.AccelvizError, match=message):
            run()
    graph = SplitGraph("cora", device="cpu")
    model = GCNConv(4, 2).double()
    mixed = torch.nn.ModuleList([model, GCNConv(4, 2)])
    with pytest.raises(ranks.AccelvizError, match="parameters of one type on cpu"):
        TrainingStep(graph, mixed, torch.optim.SGD(mixed.parameters(), 0.1), lambda: 0)
    assert str(graph) == ("SplitGraph(rank 0 of 1: 2,708 of 2,708 nodes, 10,556 edges, halo of 0)")


def test_a_launcher_without_an_address_is_told_so(monkeypatch):
    launched(monkeypatch, 0)
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(ranks.AccelvizError, match="MASTER_ADDR"):
        SplitGraph("cora", device="cpu")


def launched(monkeypatch, rank, port=None):
    """Let this process be one of two."""
    values = {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": rank}
    if port is not None:
        values |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    for name, value in values.items():
        monkeypatch.setenv(name, str(value))


def test_more_processes_than_gpus_are_refused(monkeypatch):
    launched(monkeypatch, 1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ranks.AccelvizError, match="rank 1 wants GPU 1 of 1"):
        SplitGraph("cora")


@pytest.mark.parametrize("rank", [0, 1])
def test_a_port_in_use_and_a_missing_first_rank_are_errors(monkeypatch, rank):
    monkeypatch.setattr("accelviz.many_gpus.process.JOIN_SECONDS", 2)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        if rank == 0:
            other.listen()
        launched(monkeypatch, rank, other.getsockname()[1])
        start = time.monotonic()
        with pytest.raises(ranks.AccelvizError, match=r"MASTER_PORT of the first host"):
            SplitGraph("cora", device="cpu")
        assert time.monotonic() - start < 10
