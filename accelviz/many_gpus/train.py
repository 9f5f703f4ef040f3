"""Training on several devices, each with its own nodes.

Each device has a thread of this process, or a process of its own. The threads meet in a
`Collective` for operations on all devices: sparse products and all-reduces.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.devices import find_device
from accelviz.devices.programs import prepared_program
from accelviz.errors import AccelvizError, ArgumentError, checked_choice
from accelviz.graph import Graph
from accelviz.layers.dense import Adam
from accelviz.layers.network import Network
from accelviz.layers.products import Matrix, Products
from accelviz.layers.train import Run, checked_training
from accelviz.layers.train import Training as OneDeviceTraining
from accelviz.many_gpus.all_reduce import AllReduce
from accelviz.many_gpus.peers import Peers
from accelviz.many_gpus.program import SplitProgram
from accelviz.many_gpus.run import DEVICES, fastest_device, plan
from accelviz.many_gpus.split import Split, split
from accelviz.many_gpus.symmetric import Symmetric
from accelviz.plans.program import Program, buffer_name

#: Models with one sparse operation: the product with a constant matrix.
MODELS = ("gcn", "gin", "sage")


@dataclass(frozen=True, eq=False, repr=False)
class Training(OneDeviceTraining):
    """The result of `train`, with the attributes of `layers.Training`.

    The accuracies in `history` are those of the network before each step.

    Attributes
    ----------
    split : Split
    all_reduce : str
        How gradients were summed: `AllReduce.how`.
    """

    split: Split
    all_reduce: str


class Collective:
    """A barrier of the devices' threads, at which one thread computes for all.

    If a thread fails, all other threads end as well, and `error` is its error.
    """

    def __init__(self, n_threads: int) -> None:
        self._barrier = threading.Barrier(n_threads, self._run_work)
        self._values: list[Any] = [None] * n_threads
        self.error: BaseException | None = None

    def _run_work(self) -> None:
        self._results = self._work(self._values)

    def __call__(self, index: int, value: Any, work: Callable[[list[Any]], Sequence[Any]]) -> Any:
        """Wait for all threads, call `work(values)` in one of them, return result `index`.

        All threads call with their index, their value, and the same `work`.
        """
        self._values[index], self._work = value, work
        self._barrier.wait()  # the next call replaces the results only after all threads return
        return self._results[index]

    def abort(self, error: BaseException) -> None:
        """End the threads that wait at the barrier, now or later."""
        if self.error is None and not isinstance(error, threading.BrokenBarrierError):
            self.error = error
        self._barrier.abort()


class _Devices:
    """The devices of a split, with sparse products and all-reduces over all of them."""

    def __init__(self, divided: Split, device: str, scheme: str) -> None:
        self.split, self.device, self.scheme = divided, device, scheme
        self.gpus: Peers | None = None  # None if products run on the CPU or are emulated
        self.options: dict[str, int] = {}
        if device == "cuda":
            self.gpus = Peers(divided.n_devices)
        elif device == "nvshmem":
            self.gpus = Symmetric()
            if scheme != "mgg":
                self.options = {"devices_a_host": self.gpus.process.devices_a_host}
        self.all_reduce = AllReduce(self.gpus)
        #: Numbers of the devices of this process.
        self.members = list(range(divided.n_devices) if self.gpus is None else self.gpus.gpu_of)
        self._splits: dict[Graph, Split] = {}
        self._programs: dict[tuple[Graph, bool, int], tuple[SplitProgram, Any]] = {}

    def on(self, device: int) -> contextlib.AbstractContextManager[Any]:
        """Return the context in which a device is current."""
        return contextlib.nullcontext() if self.gpus is None else self.gpus.on(device)

    def _program(self, graph: Graph, transposed: bool, n_cols: int) -> tuple[SplitProgram, Any]:
        """Return the program of a product, and the same ready to launch (None without GPUs)."""
        key = graph, transposed, n_cols
        if key not in self._programs:
            if graph not in self._splits:
                bounds = self.split.bounds
                self._splits[graph] = split(graph, self.split.n_devices, by=bounds)
            divided = self._splits[graph].transposed if transposed else self._splits[graph]
            program = plan(divided, n_cols, self.scheme, **self.options)
            ready_program = None if self.gpus is None else self.gpus.ready(program)
            self._programs[key] = program, ready_program
        return self._programs[key]

    def multiply(self, graph: Graph, transposed: bool, X: list[Any]) -> list[Any]:
        """Return the rows of A X (or A.T X) of each device of this process, given those of X."""
        n_cols = X[0].shape[1]
        program, ready_program = self._program(graph, transposed, n_cols)
        outputs = [buffer_name("Y", device) for device in self.members]
        if self.gpus is None:
            inputs = {buffer_name("X", device): np.ravel(rows) for device, rows in enumerate(X)}
            buffers = find_device(self.device).run_program(program, inputs)
            return [buffers[name].reshape(-1, n_cols) for name in outputs]
        self.gpus.wait()  # the streams of different threads do not wait for each other
        for device, rows in zip(self.members, X, strict=True):
            with self.on(device):
                ready_program.buffers[buffer_name("X", device)][...] = rows.ravel()
        self.gpus.wait()
        ready_program.launch()
        self.gpus.wait()
        results = []
        for device, name in zip(self.members, outputs, strict=True):
            with self.on(device):
                results.append(ready_program.buffers[name].reshape(-1, n_cols).copy())
        self.gpus.wait()
        return results


class SplitMatrix(Matrix):
    """The rows of one device of a matrix that all devices multiply together."""

    products: SplitProducts

    def _times(self, X: Any, values: Any) -> Any:
        return self.products.multiply(self.graph, False, X)

    def transposed_times(self, Y: Any, values: Any = None) -> Any:
        """Return this device's rows of `A.T @ Y`, given its rows of Y."""
        return self.products.multiply(self.graph, True, Y)


class SplitProducts(Products):
    """Sparse products as one device calls them; all devices compute them together."""

    def __init__(self, device: int, collective: Collective, devices: _Devices) -> None:
        super().__init__(None, "cpu" if devices.gpus is None else "cuda")
        self._index, self._collective = devices.members.index(device), collective
        self._devices = devices

    def matrix(self, graph: Graph) -> Matrix:
        """Return the matrix of a graph of all nodes."""
        return SplitMatrix(graph, self)

    def captured(self, program: Program) -> Callable[[], dict[str, Any]]:
        """Return a function that runs a program; a CUDA graph could not capture its barriers."""
        return prepared_program(program, {}, self.executor)[0]

    def multiply(self, graph: Graph, transposed: bool, X: Any) -> Any:
        """Return this device's rows of A X, or A.T X, given its rows of X."""

        def work(rows: list[Any]) -> list[Any]:
            return self._devices.multiply(graph, transposed, rows)

        with self.clock("spmm"):
            return self._collective(self._index, X, work)

    def all_reduce(self, array: Any) -> Any:
        """Return the sum of all devices' arrays."""
        with self.clock("all_reduce"):
            return self._collective(self._index, array, self._devices.all_reduce)


class SplitRun(Run):
    """The training of one device, with one all-reduce per step for gradient, scores and loss."""

    products: SplitProducts
    reduced_buffers = frozenset({"gradient"})

    def reduced(self, loss: Any, logits: Any) -> tuple[Any, Any]:
        """Sum over the devices; see `Run`."""
        gradient, sums = self.network.gradient, self.score_sums(logits)
        joined = self.products.xp.concatenate((gradient, sums.ravel(), loss.reshape(1)))
        total = self.products.all_reduce(joined)
        gradient[...] = total[: gradient.size]
        return total[-1], total[gradient.size : -1].reshape(sums.shape)


def train(
    model: str,
    data: Any,
    devices: int = 2,
    *,
    device: str = "auto",
    by: Any = "edges",
    order: Any = None,
    scheme: str = "halo",
    seed: int = 0,
    epochs: int = 200,
    rate: float | None = None,
    decay: float | None = None,
    **options: Any,
) -> Training:
    """Train a GCN, GIN or SAGE on several devices, each with its own nodes.

    Parameters
    ----------
    model : {"gcn", "gin", "sage"}
    data : str or NodeData
        As in `layers.train`.
    devices, by, order
        As in `split`.
    device : {"auto", "cuda", "nvshmem", "emulator", "cpu"}
        As in `run`. With "emulator" the sparse products are emulated, all else runs on the CPU.
    scheme : {"halo", "mgg", "all_gather"}
    seed, epochs, rate, decay, **options
        As in `layers.train`, with Adam. Dropout is not available: its random numbers depend on the
        position of a node in the device's arrays.

    Returns
    -------
    Training

    Raises
    ------
    ArgumentError, GraphError, DeviceUnavailable, KernelError
        If an argument is invalid, or a device fails. All threads then end.

    Notes
    -----
    The thread or process of each device runs the network on its nodes. All devices compute a sparse
    product together. Each step sums the gradients by an all-reduce, so that all devices have the
    same parameters. They equal those of a training on one device within rounding.

    Examples
    --------
    >>> from accelviz import many_gpus
    >>> training = many_gpus.train("gcn", "cora", devices=3, device="cpu", epochs=5)
    >>> training.history["loss"].is_monotonic_decreasing
    True
    """
    checked_choice("model", model, MODELS)
    checked_choice("device", device, DEVICES)
    if options.get("dropout") or options.get("aggregate", "mean") != "mean":
        raise ArgumentError("options", f"got {options}", "no dropout, and the mean of neighbors")
    options["dropout"] = 0.0
    checked = checked_training(model, options, data, seed, epochs, rate, decay)
    nodes = checked.nodes
    divided = split(nodes.graph, devices, by=by, order=order)
    if device == "auto":
        device = fastest_device(devices)
    group = _Devices(divided, device, scheme)
    collective = Collective(len(group.members))
    device_nodes = divided.apply(np.arange(nodes.n_nodes))

    def train_device(number: int) -> tuple[Run, npt.NDArray[np.float32]]:
        try:
            with group.on(number):
                products = SplitProducts(number, collective, group)
                network = Network(checked.layers(), divided.graph, products, checked.seed)
                decay = checked.decay, checked.model.decayed
                run = SplitRun(network, nodes, Adam(checked.rate), *decay, device_nodes[number])
                run.train(checked.epochs)
                return run, products.executor.to_host(run.logits())
        except BaseException as error:
            collective.abort(error)
            raise

    with ThreadPoolExecutor(len(group.members)) as threads:
        futures = [threads.submit(train_device, number) for number in group.members]
    if isinstance(collective.error, AccelvizError):
        raise collective.error
    if collective.error is not None:
        raise RuntimeError(f"a device failed: {collective.error!r}") from collective.error
    runs, device_logits = zip(*(future.result() for future in futures), strict=True)
    if isinstance(group.gpus, Symmetric):
        device_logits = group.gpus.process.all_gather(device_logits[0])
    logits = divided.collect(device_logits)
    with group.on(group.members[0]):
        training = runs[0].training(checked.settings(), logits)
    changes = {"device": device, "split": divided, "all_reduce": group.all_reduce.how}
    return Training(**{**vars(training), **changes})
