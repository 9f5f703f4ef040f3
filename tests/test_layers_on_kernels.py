"""Layers as on a GPU: every dense step is a kernel, every product a plan, in the emulator."""

import numpy as np
import pytest
from scipy import sparse

from accelviz import load_graph
from accelviz.datasets import NodeData
from accelviz.devices import DEVICES
from accelviz.devices.emulator import EmulatorDevice
from accelviz.devices.ready_plan import ReadyPlan, no_kernel
from accelviz.layers import train
from tests.compilers import needs_compiler

pytestmark = needs_compiler


class KernelArray(np.ndarray):
    """An array of a device whose kernels are emulated."""


class KernelModule:
    """NumPy's functions for these arrays."""

    ndarray = KernelArray

    def __getattr__(self, name):
        function = getattr(np, name)

        def on_device(*arguments, **options):
            result = function(*arguments, **options)
            return result.view(KernelArray) if isinstance(result, np.ndarray) else result

        return on_device if callable(function) and not isinstance(function, type) else function


class KernelDevice(EmulatorDevice):
    """A device in the emulator on which layers compute as on a GPU."""

    name, array_type, xp = "kernels", KernelArray, KernelModule()

    def to_device(self, array):
        return np.array(array).view(KernelArray)

    def to_host(self, array):
        return np.asarray(array)

    def take(self, array, order):
        return array[order]

    def prepare(self, plan):
        return super().prepare(plan) if no_kernel(plan) is None else ReadyPlan(plan, self)


@pytest.fixture
def kernels():
    DEVICES.append(KernelDevice())
    yield
    DEVICES.pop()


def data(n_features):
    rng = np.random.default_rng(0)
    matrix = (rng.random((40, 40)) < 0.1).astype(np.float32)
    features, labels = rng.standard_normal((40, n_features), np.float32), np.arange(40) % 3
    nodes = np.arange(20), np.arange(20, 30), np.arange(30, 40)
    graph = load_graph(sparse.csr_array(np.triu(matrix, 1) + np.triu(matrix, 1).T))
    return NodeData(graph, features, labels, *nodes)


@pytest.mark.sample(6)
@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("gcn", {"hidden": 16}),  # a product of tensor cores
        ("gcn", {"hidden": 5}),  # cuBLAS would take it
        ("gin", {"hidden": 16}),
        ("sage", {"hidden": 16, "aggregate": "max"}),
        ("gat", {"hidden": 4, "heads": 2}),
        ("agnn", {"hidden": 16}),
    ],
)
def test_a_step_of_kernels_is_that_of_the_cpu(model, options):
    nodes = data(32 if options["hidden"] == 16 else 9)
    options = {"epochs": 2, "seed": 3, "progress": False, **options}
    expected, training = (train(model, nodes, device=one, **options) for one in ("cpu", "kernels"))
    np.testing.assert_allclose(training.history.loss, expected.history.loss, rtol=1e-4)
    np.testing.assert_allclose(training.logits, expected.logits, atol=1e-3)
