"""The inherited tests with every kernel's own source, emulated."""

import numpy as np
import pytest

import accelviz
from accelviz import measure
from accelviz.measure.accuracy import Oracle
from accelviz.executors.emulator import EmulatorExecutor
from accelviz.executors.emulator.build import why_not
from tests.graphs import COLUMNS, GRAPHS, MADE
from tests.inherited import KERNELS, check_results, weighted

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

BUNDLED = [name for name in GRAPHS if name not in MADE]


@pytest.mark.parametrize("strategy", KERNELS)
@pytest.mark.parametrize("name", MADE)
def test_kernel_matches_the_oracle(strategy, name):
    graph = GRAPHS[name]()
    wide = (512, 1000, 1500) if graph.nnz < 10_000 else ()
    check_results(graph, strategy, "emulator", columns=(*COLUMNS, *wide))


@pytest.mark.parametrize("strategy", KERNELS)
@pytest.mark.parametrize("name", BUNDLED)
def test_kernel_matches_the_oracle_on_real_graphs(strategy, name):
    columns = (3, 33, 64) if GRAPHS[name]().nnz < 100_000 else (16,)
    check_results(GRAPHS[name](), strategy, "emulator", columns=columns)


@pytest.mark.parametrize("strategy", KERNELS)
@pytest.mark.parametrize("name", ["hub", "all_degrees", "isolated_ends"])
def test_the_order_of_threads_and_blocks_does_not_matter(strategy, name):
    graph = weighted(GRAPHS[name]())
    X = measure.features(graph.shape[1], 40)
    oracle = Oracle(graph, X)
    plan = accelviz.plan(graph, strategy, 40)
    for seed in range(1, 6):
        measure.check(EmulatorExecutor(seed=seed).prepare(plan), X, oracle)


@pytest.mark.parametrize(
    ("max_block_warps", "max_warp_nzs"),
    [(1, 1), (1, 32), (2, 2), (5, 7), (32, 32), (32, 1), (8, 3), (1, 65535)],
)
def test_accel_gcn_is_right_for_any_setting(max_block_warps, max_warp_nzs):
    setting = {"max_block_warps": max_block_warps, "max_warp_nzs": max_warp_nzs}
    for name in ("empty", "isolated_ends", "hub", "all_degrees"):
        check_results(GRAPHS[name](), "accel_gcn", "emulator", columns=(1, 33, 100), **setting)


def test_unchecked_runs_give_the_same():
    graph = accelviz.load_graph("cora")
    X = measure.features(graph.shape[1], 64)
    plan = accelviz.plan(graph)
    checked, unchecked = (
        EmulatorExecutor(checked=checked).prepare(plan).multiply(X) for checked in (True, False)
    )
    np.testing.assert_allclose(checked, unchecked, rtol=1e-5, atol=1e-5)
    assert (EmulatorExecutor(checked=False).prepare(plan).seconds(X, 2) > 0).all()
