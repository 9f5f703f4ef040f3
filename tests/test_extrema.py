"""SpMM with maximum or minimum: ties, NaN, the gradient, and the cost of adding a reduction."""

import dataclasses
import inspect
import re
from functools import partial

import numpy as np
import pytest
from scipy import sparse

import accelviz
from accelviz.devices import run_operation
from accelviz.files import kernel_directory
from accelviz.strategies import OPERATIONS
from accelviz.strategies.spmm import extrema
from tests.compilers import EMULATOR, needs_compiler

each_device = pytest.mark.parametrize("device", ["cpu", EMULATOR])


@pytest.mark.long
@each_device
@pytest.mark.parametrize("strategy", ["lane_groups", "row_warp", "by_source"])
@pytest.mark.parametrize("reduction", ["max", "min"])
def test_neighbors_that_are_equal_share_the_gradient(reduction, strategy, device):
    # Row 0 has three neighbors, two of which are equal in column 0; row 1 has none; row 2 one.
    graph = accelviz.load_graph(sparse.csr_array([[1, 1, 1, 0], [0] * 4, [0, 0, 0, -5.0]]))
    sign = 1 if reduction == "max" else -1
    X = sign * np.array([[2.0, 1], [2, 5], [1, 5], [4, 4]], np.float32)
    outputs = run_operation(f"spmm_{reduction}", graph, {"X": X}, device=device)
    np.testing.assert_array_equal(outputs["Y"], sign * np.array([[2, 5], [0, 0], [4, 4]]))
    np.testing.assert_array_equal(outputs["source"], [[~2, ~2], [-1, -1], [3, 3]])
    np.testing.assert_array_equal(extrema.shares(outputs["source"]), [[0.5] * 2, [0, 0], [1, 1]])
    shared = [[4, 0], [4, 4], [0, 4], [8, 8]]
    np.testing.assert_array_equal(gradient_of(graph, X, outputs, device, strategy), shared)
    of_first = run_operation(f"spmm_{reduction}", graph, {"X": X, "first": 1}, device=device)
    np.testing.assert_array_equal(of_first["Y"], outputs["Y"])
    np.testing.assert_array_equal(of_first["source"], [[0, 1], [-1, -1], [3, 3]])
    dX = gradient_of(graph, X, of_first, device, strategy)
    np.testing.assert_array_equal(dX, [[8, 0], [0, 8], [0, 0], [8, 8]])


def gradient_of(graph, X, outputs, device, strategy):
    """Return the gradient of X for dY of eights."""
    operands = {"X": X, **outputs, "dY": np.full(outputs["Y"].shape, 8, np.float32)}
    run_gradient = partial(run_operation, "spmm_extremum_gradient", graph, operands)
    return run_gradient(strategy=strategy, device=device)["dX"]


@each_device
def test_a_nan_is_passed_on(device):
    graph = accelviz.load_graph(sparse.csr_array(np.ones((2, 3))))
    for order in ([np.nan, 1, 2], [1, np.nan, 2], [1, 2, np.nan]):
        X = np.array(order, np.float32)[:, None]
        outputs = run_operation("spmm_max", graph, {"X": X}, device=device)
        assert np.isnan(outputs["Y"]).all()
        np.testing.assert_array_equal(outputs["source"], ~1)
        for strategy in ("lane_groups", "by_source"):
            np.testing.assert_array_equal(gradient_of(graph, X, outputs, device, strategy), 0)


def test_a_reduction_is_a_line_of_a_table_and_a_functor():
    """`spmm_min` is a line of each table, and a functor of two functions in the kernels."""
    most, least = OPERATIONS["spmm_max"], OPERATIONS["spmm_min"]
    fields = [field.name for field in dataclasses.fields(most)]
    differing = [name for name in fields if getattr(most, name) != getattr(least, name)]
    assert differing == ["name", "formula", "reference", "replay", "reduction"]
    for name in ("reference", "replay"):  # the same function of the reduction
        ours, theirs = getattr(most, name), getattr(least, name)
        assert ours.func is theirs.func
        assert (ours.args, theirs.args) == (("max",), ("min",))
    python, cuda = inspect.getsource(extrema), kernel_directory() / "attention/extrema.cuh"
    assert len(re.findall(r'"min"', python)) == 3  # the table, a docstring, the operation
    assert len(re.findall(r"\bLeast\b", cuda.read_text("utf-8"))) == 1
    for strategy in ("lane_groups", "row_warp"):
        plans = [accelviz.plan("cora", strategy, operation=one, n_cols=8) for one in (most, least)]
        assert [plan.kernel.entry for plan in plans] == ["largest<Config>", "least<Config>"]
        assert plans[0].launch == plans[1].launch


@pytest.mark.long
@pytest.mark.parametrize(("turn", "n_cols"), [*enumerate([1, 33, 64, 67, 96, 101, 131, 200])])
@pytest.mark.parametrize("strategy", ["lane_groups", "row_warp"])
@needs_compiler
def test_columns_are_processed_in_tiles(strategy, turn, n_cols):
    """Rows of all kinds of length, split ones too, and equal features.

    The column counts are in turn of the maximum and the minimum, whose kernels differ in one
    comparison; where one strategy has the maximum, the other one has the minimum.
    """
    rng = np.random.default_rng(3)
    lengths = np.array([0, 1, 2, 3, 9, 33, 150, 1300, 2, 1])
    edges = np.concatenate([rng.choice(1400, length, replace=False) for length in lengths])
    pointers = np.concatenate([[0], lengths.cumsum()])
    matrix = sparse.csr_array((np.ones(edges.size), edges, pointers), shape=(10, 1400))
    graph = accelviz.load_graph(matrix)
    X = rng.integers(-40, 40, (1400, n_cols)).astype(np.float32)
    reduction = ("max", "min")[(turn + (strategy == "row_warp")) % 2]
    results = [
        run_operation(f"spmm_{reduction}", graph, {"X": X}, strategy=strategy, device=device)
        for device in ("emulator", "cpu")
    ]
    for name in ("Y", "source"):
        np.testing.assert_array_equal(results[0][name], results[1][name])
    dY = rng.standard_normal(results[0]["Y"].shape, np.float32)
    operands = {"X": X, **results[0], "dY": dY}
    run_gradient = partial(run_operation, "spmm_extremum_gradient", graph, operands)
    expected = run_gradient(device="cpu")["dX"]
    for walk in {strategy, "by_source"} if reduction == "max" else {strategy}:
        dX = run_gradient(strategy=walk, device="emulator")["dX"]
        np.testing.assert_allclose(dX, expected, rtol=1e-5, atol=1e-6)
