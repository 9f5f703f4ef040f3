"""Sizes that cannot be are refused before memory is allocated."""

import contextlib
import resource
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import accelviz
from accelviz import cli, measure
from accelviz.datasets.synthetic.random_models import rmat
from accelviz.errors import AccelvizError, ArgumentError
from tests.graphs import GRAPHS
from tests.inherited import each_strategy

LARGEST = 2**31 - 1


@each_strategy()
def test_widths_of_any_size_are_planned_or_refused(strategy):
    graph = GRAPHS["every_kind"]()
    names = [*{"n_cols": 0, **strategy.operation.widths}]
    for size in (2**16, 2**24, LARGEST):
        for chosen in (names, *([name] for name in names)):
            widths = {"n_cols": 16, **dict.fromkeys(chosen, size)}
            with contextlib.suppress(AccelvizError):
                assert strategy.plan(graph, **widths).widths.items() >= widths.items()
    for wrong in (LARGEST + 1, 0, -1, 1.5, True, "8", None):
        for name in names:
            with pytest.raises(ArgumentError, match=f"^{name}: got .*Expected: 1 to {LARGEST}"):
                strategy.plan(graph, **{"n_cols": 16, name: wrong})


@pytest.fixture
def bounded():
    """Bound the memory of this process, so that a case fails where it would allocate."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


TALL = sparse.coo_array(([1.0], ([0], [0])), shape=(LARGEST, 1))


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: accelviz.load_graph([[0, 1, 1], [1, 0, LARGEST - 1]]), "shape: .*n_nodes="),
        (lambda: accelviz.load_graph([[0, 1, 1], [1, 0, LARGEST]]), "edge_index: node 2147483647"),
        (lambda: accelviz.load_graph([[0], [1]], n_nodes=LARGEST), "shape: 2,147,483,647 rows"),
        (lambda: accelviz.load_graph(TALL), "shape: 2,147,483,647 rows"),
        (lambda: rmat(10**10), "n_edges: .* GiB"),
        (lambda: measure.features(2708, 10**10), "n_cols: .* GiB"),
        (lambda: accelviz.benchmark("cora", "accel_gcn", 8 * 10**6, "cpu"), "n_cols: .* GiB"),
    ],
)
def test_sizes_beyond_the_memory(call, message, monkeypatch):
    monkeypatch.setattr("accelviz.errors.memory_bytes", lambda: 16 << 30)
    with pytest.raises(AccelvizError, match=message):
        call()


@pytest.mark.parametrize("columns", ["8000000", "99999999999", "0"])
def test_the_demo_refuses_columns_that_do_not_fit(columns, tmp_path, capsys):
    output = tmp_path / "demo.png"
    assert cli.main(["demo", "--columns", columns, "--output", str(output)]) == 2
    assert capsys.readouterr().err.startswith("accelviz: n_cols: ")
    assert not output.exists()


def test_plan_and_spmm_begin_with_the_same_strategy():
    graph, X = accelviz.load_graph("cora"), np.ones((2708, 16), np.float32)
    plan = accelviz.plan(graph, n_cols=16)
    assert plan.name == "lane_groups"
    np.testing.assert_array_equal(
        accelviz.spmm(plan, X, device="cpu"), accelviz.spmm(graph, X, device="cpu")
    )
    for number in (16, np.int64(16)):
        with pytest.raises(ArgumentError, match="strategy: got .*16.*n_cols=16"):
            accelviz.plan(graph, number)
