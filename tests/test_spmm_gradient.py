"""fuseGNN's backward kernels, and the unfused kernels that it is compared with."""

import numpy as np
import pytest

import accelviz
from accelviz import measure
from accelviz.devices import run_operation
from accelviz.errors import PartitionError
from accelviz.strategies import OPERATIONS
from tests.compilers import HOST
from tests.graphs import MADE, graph_of_degrees
from tests.inherited import central_differences, with_random_weights

EACH = pytest.mark.parametrize("strategy", accelviz.strategies("spmm_gradient"))


def test_the_gradient_is_that_of_float64_differences():
    graph = with_random_weights(graph_of_degrees([0, 1, 2, 7, 0, 5], 9))
    X, dY = measure.features(9, 3).astype(float), measure.features(6, 3, seed=1).astype(float)
    values = graph.values.astype(float)
    operation = OPERATIONS["spmm_gradient"]
    gradients = operation.reference(graph.pattern, {"values": values, "X": X, "dY": dY})

    def loss(values, X):
        reference = OPERATIONS["spmm"].reference(graph.pattern, {"values": values, "X": X})
        return (reference["Y"][0] * dY).sum()

    differences = {
        "d_values": central_differences(lambda changed: loss(changed, X), values),
        "dX": central_differences(lambda changed: loss(values, changed), X),
    }
    for name, expected in differences.items():
        np.testing.assert_allclose(gradients[name][0], expected, rtol=1e-6, atol=1e-8)


@HOST
@EACH
def test_it_is_what_two_other_operations_give(strategy, device):
    graph = with_random_weights(MADE["wide"]())
    X, dY = measure.features(graph.shape[1], 6), measure.features(graph.n_rows, 6, seed=1)
    gradients = run_operation("spmm_gradient", graph, {"X": X, "dY": dY}, strategy, device)
    turned = graph.transposed()
    dX = accelviz.spmm(turned.graph, dY, device="cpu")
    np.testing.assert_allclose(gradients["dX"], dX, rtol=1e-4, atol=1e-4)
    scores = accelviz.sddmm(graph, dY, X, device="cpu")
    np.testing.assert_allclose(gradients["d_values"], scores, rtol=1e-4, atol=1e-4)


def test_columns_beyond_shared_memory_are_refused():
    with pytest.raises(PartitionError, match="n_cols: got 24001.*24,000"):
        accelviz.plan(MADE["one_node"](), "fusegnn_gar", 24_001, operation="spmm_gradient")


def test_what_is_not_fused_has_edges_times_columns_between_its_kernels():
    graph = MADE["isolated_ends"]()
    plan = accelviz.plan(graph, "unfused_gas", 5)
    assert [call.kernel.entry for call in plan.calls] == ["gather", "apply_edge", "scatter"]
    assert plan.buffers.workspace["messages"][0] == 5 * graph.nnz
    fused = accelviz.plan(graph, "neugraph", 5)
    assert fused.arrays["groups"] == 1
    assert accelviz.plan(graph, "fusegnn_gar", 5).arrays["groups"] == 128 // 5
