"""SpMM with maximum or minimum: ties, NaN, the gradient, and the cost of adding a reduction."""

import dataclasses
import inspect
import re

import numpy as np
import pytest
from scipy import sparse

import accelviz
from accelviz.devices import run_operation
from accelviz.files import kernel_directory
from accelviz.strategies import OPERATIONS
from accelviz.strategies.spmm import extrema
from tests.compilers import EMULATOR

each_device = pytest.mark.parametrize("device", ["cpu", EMULATOR])


@each_device
@pytest.mark.parametrize("reduction", ["max", "min"])
def test_neighbors_that_are_equal_share_the_gradient(reduction, device):
    # Row 0 has three neighbors, two of which are equal in column 0; row 1 has none; row 2 one.
    graph = accelviz.load_graph(sparse.csr_array([[1, 1, 1, 0], [0] * 4, [0, 0, 0, -5.0]]))
    sign = 1 if reduction == "max" else -1
    X = sign * np.array([[2.0, 1], [2, 5], [1, 5], [4, 4]], np.float32)
    outputs = run_operation(f"spmm_{reduction}", graph, {"X": X}, device=device)
    np.testing.assert_array_equal(outputs["Y"], sign * np.array([[2, 5], [0, 0], [4, 4]]))
    np.testing.assert_array_equal(outputs["share"], [[0.5, 0.5], [0, 0], [1, 1]])
    operands = {"X": X, "Y": outputs["Y"], "dY": 8 * outputs["share"]}
    dX = run_operation("spmm_extremum_gradient", graph, operands, device=device)["dX"]
    np.testing.assert_array_equal(dX, [[4, 0], [4, 4], [0, 4], [8, 8]])


@each_device
def test_a_nan_is_passed_on(device):
    graph = accelviz.load_graph(sparse.csr_array(np.ones((2, 3))))
    for order in ([np.nan, 1, 2], [1, np.nan, 2], [1, 2, np.nan]):
        X = np.array(order, np.float32)[:, None]
        assert np.isnan(run_operation("spmm_max", graph, {"X": X}, device=device)["Y"]).all()


def test_a_reduction_is_a_line_of_a_table_and_a_functor():
    """`spmm_min` needs four files: its table line, its functor, the registry and this test."""
    most, least = OPERATIONS["spmm_max"], OPERATIONS["spmm_min"]
    fields = [field.name for field in dataclasses.fields(most)]
    differing = [name for name in fields if getattr(most, name) != getattr(least, name)]
    assert differing == ["name", "formula", "reference", "replay", "reduction"]
    for name in ("reference", "replay"):  # the same function of the reduction
        ours, theirs = getattr(most, name), getattr(least, name)
        assert ours.func is theirs.func
        assert (ours.args, theirs.args) == (("max",), ("min",))
    python, cuda = inspect.getsource(extrema), kernel_directory() / "spmm/extrema.cu"
    assert len(re.findall(r'"min"', python)) == 3  # the table, a docstring, the operation
    assert len(re.findall(r"\bLeast\b", cuda.read_text("utf-8"))) == 1
    plans = [accelviz.plan("cora", operation=one, n_cols=8) for one in (most, least)]
    entries = [plan.kernel.entry for plan in plans]
    assert entries == ["extremum<Largest>", "extremum<Least>"]
    assert plans[0].launch == plans[1].launch
