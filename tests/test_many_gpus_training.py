"""Training on several devices gives the same network as on one, within rounding."""

import importlib
import time

import numpy as np
import pytest

from accelviz import layers, many_gpus
from accelviz.devices.cuda.state import import_nccl
from accelviz.errors import ArgumentError, DeviceUnavailable, KernelError
from accelviz.many_gpus.all_reduce import AllReduce
from accelviz.many_gpus.peers import usable_gpus
from tests.compilers import needs_compiler

#: The module, which the function of the same name hides.
train_module = importlib.import_module("accelviz.many_gpus.train")


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("gcn", {"devices": 3, "order": "random"}),
        ("gin", {"devices": 2, "scheme": "mgg"}),
        ("sage", {"devices": 2, "by": "rows", "scheme": "all_gather"}),
        ("gcn", {"devices": 1}),
    ],
)
def test_several_devices_learn_what_one_does(model, settings):
    alone = layers.train(model, "cora", device="cpu", epochs=8, dropout=0.0, progress=False)
    training = many_gpus.train(model, "cora", device="cpu", epochs=8, **settings)
    assert training.parameters.keys() == alone.parameters.keys()
    for name, array in training.parameters.items():
        np.testing.assert_allclose(array, alone.parameters[name], atol=1e-4)
    np.testing.assert_allclose(training.logits, alone.logits, atol=1e-3)
    np.testing.assert_allclose(training.history["loss"], alone.history["loss"], rtol=1e-5)
    assert training.history["loss"].is_monotonic_decreasing
    assert training.split.n_devices == settings["devices"]
    assert training.all_reduce == "on the host, where all is"


@pytest.mark.gpu
@pytest.mark.parametrize("devices", [1, 2])
def test_gpus_of_one_process_learn_what_one_does_and_add_up_by_nccl(devices):
    if len(usable_gpus()) < devices or not import_nccl().available:
        pytest.skip(f"fewer than {devices} GPUs, or no NCCL")
    alone = layers.train("gcn", "cora", device="cuda", epochs=10, dropout=0.0, progress=False)
    first, again = (
        many_gpus.train("gcn", "cora", devices, device="cuda", epochs=10) for _ in range(2)
    )
    assert first.all_reduce.startswith("by NCCL")
    for name, array in first.parameters.items():
        np.testing.assert_allclose(array, alone.parameters[name], atol=1e-4)
        np.testing.assert_array_equal(array, again.parameters[name])
    np.testing.assert_allclose(first.history["loss"], alone.history["loss"], rtol=1e-4)


@pytest.mark.gpu
def test_sums_on_gpus():
    """By NCCL if each device has its own GPU; on the host if one GPU plays two."""
    import cupy

    if not import_nccl().available:
        pytest.skip("NCCL is not installed")
    for gpus in ([0], [0, 0], *([[0, 1]] if len(usable_gpus()) > 1 else [])):
        with many_gpus.Peers(gpus) as devices:
            total_of, arrays = AllReduce(devices), []
            assert total_of.how.startswith("by NCCL" if gpus != [0, 0] else "on the host, as a GPU")
            rng = np.random.default_rng(0)
            host = rng.standard_normal((len(gpus), 100_003)).astype(np.float32)
            for gpu, array in zip(gpus, host, strict=True):
                with cupy.cuda.Device(gpu):
                    arrays.append(cupy.asarray(array))
            expected = host.astype(np.float64).sum(axis=0).astype(np.float32)
            for total in total_of(arrays):
                np.testing.assert_array_equal(total.get(), expected)


@needs_compiler
def test_products_of_a_step_run_in_the_emulator():
    expected, emulated = (
        many_gpus.train("gcn", small(), 2, device=device, epochs=1, hidden=8).logits
        for device in ("cpu", "emulator")
    )
    np.testing.assert_allclose(emulated, expected, atol=1e-5)


def small():
    from accelviz.datasets.nodes import NodeData
    from tests.graphs import graph_of_degrees

    rng = np.random.default_rng(0)
    graph = graph_of_degrees([3] * 24)
    features = rng.standard_normal((24, 5)).astype(np.float32)
    nodes = np.arange(24)
    return NodeData(graph, features, nodes % 3, nodes[:8], nodes[8:12], nodes[12:])


@pytest.mark.parametrize("where", ["a product", "a device's own step"])
def test_if_a_device_fails_the_others_end_and_its_error_is_told(where, monkeypatch):
    problem = KernelError("GPU 1", "it failed", "a new process")

    def fails(*_):
        raise problem

    if where == "a product":
        monkeypatch.setattr(train_module._Devices, "multiply", fails)
    else:
        run_type, reduced = train_module.SplitRun, train_module.SplitRun.reduced

        def of_each(run, *arguments):
            return fails() if run.products._index == 1 else reduced(run, *arguments)

        monkeypatch.setattr(run_type, "reduced", of_each)
    start = time.monotonic()
    with pytest.raises(KernelError, match="GPU 1: it failed"):
        many_gpus.train("gcn", small(), 3, device="cpu", epochs=3)
    assert time.monotonic() - start < 10


def test_what_cannot_be_trained_so_is_refused():
    with pytest.raises(ArgumentError, match="no 'gat'"):
        many_gpus.train("gat", "cora")
    with pytest.raises(ArgumentError, match="no dropout"):
        many_gpus.train("gcn", "cora", dropout=0.5)
    with pytest.raises(ArgumentError, match="mean of neighbors"):
        many_gpus.train("sage", "cora", aggregate="max")
    if not usable_gpus():
        with pytest.raises(DeviceUnavailable, match="0 GPUs, and 2 are wanted"):
            many_gpus.train("gcn", "cora", 2, device="cuda")
