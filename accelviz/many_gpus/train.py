"""Training over several devices: each has its own nodes, and a thread of this process."""

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
from accelviz.layers.train import Run, checked_training, on_host
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
        How gradients were added up: `AllReduce.how`.
    """

    split: Split
    all_reduce: str


class Collective:
    """A barrier of the devices' threads, at which one thread acts for all.

    If a thread fails, all others end, and its error is `error`: no thread waits for ever.
    """

    def __init__(self, n_threads: int) -> None:
        self._barrier = threading.Barrier(n_threads, self._act)
        self._values: list[Any] = [None] * n_threads
        self.error: BaseException | None = None

    def _act(self) -> None:
        self._results = self._work(self._values)

    def __call__(self, index: int, value: Any, work: Callable[[list[Any]], Sequence[Any]]) -> Any:
        """Call `work` with the values of all threads in one of them; return result `index`."""
        self._values[index], self._work = value, work
        self._barrier.wait()  # the next call replaces the results once all threads have theirs
        return self._results[index]

    def abort(self, error: BaseException) -> None:
        """End all threads that wait, or will."""
        if self.error is None and not isinstance(error, threading.BrokenBarrierError):
            self.error = error
        self._barrier.abort()


class _Devices:
    """The devices of a split: products and sums over all of them."""

    def __init__(self, divided: Split, device: str, scheme: str) -> None:
        self.split, self.device, self.scheme = divided, device, scheme
        self.gpus: Peers | None = None
        self.options: dict[str, int] = {}
        if device == "cuda":
            self.gpus = Peers(divided.n_devices)
        elif device == "nvshmem":
            self.gpus = Symmetric()
            if scheme != "mgg":
                self.options = {"devices_a_host": self.gpus.process.devices_a_host}
        self.all_reduce = AllReduce(self.gpus)
        #: The devices that this process has.
        self.members = list(range(divided.n_devices) if self.gpus is None else self.gpus.gpu_of)
        self._splits: dict[Graph, Split] = {}
        self._programs: dict[tuple[Graph, bool, int], tuple[SplitProgram, Any]] = {}

    def on(self, device: int) -> contextlib.AbstractContextManager[Any]:
        """Return the context in which a device's thread works."""
        return contextlib.nullcontext() if self.gpus is None else self.gpus.on(device)

    def _program(self, graph: Graph, transposed: bool, n_cols: int) -> tuple[SplitProgram, Any]:
        key = graph, transposed, n_cols
        if key not in self._programs:
            if graph not in self._splits:
                by = self.split.bounds
                self._splits[graph] = split(graph, self.split.n_devices, by=by)
            divided = self._splits[graph].transposed if transposed else self._splits[graph]
            program = plan(divided, n_cols, self.scheme, **self.options)
            ready = None if self.gpus is None else self.gpus.ready(program)
            self._programs[key] = program, ready
        return self._programs[key]

    def multiply(self, graph: Graph, transposed: bool, X: list[Any]) -> list[Any]:
        """Return the product's rows of each device of this process, given its rows of X."""
        n_cols = X[0].shape[1]
        program, ready = self._program(graph, transposed, n_cols)
        outputs = [buffer_name("Y", device) for device in self.members]
        if self.gpus is None:
            inputs = {buffer_name("X", d): np.ravel(rows) for d, rows in enumerate(X)}
            buffers = find_device(self.device).run_program(program, inputs)
            return [buffers[name].reshape(-1, n_cols) for name in outputs]
        self.gpus.wait()  # a thread's stream does not wait for the others'
        for device, rows in zip(self.members, X, strict=True):
            with self.on(device):
                ready.buffers[buffer_name("X", device)][...] = rows.ravel()
        self.gpus.wait()
        ready.launch()
        self.gpus.wait()
        results = []
        for device, name in zip(self.members, outputs, strict=True):
            with self.on(device):
                results.append(ready.buffers[name].reshape(-1, n_cols).copy())
        self.gpus.wait()
        return results


class SplitMatrix(Matrix):
    """A device's rows of a matrix that all devices multiply together."""

    products: SplitProducts

    def _times(self, X: Any, values: Any) -> Any:
        return self.products.multiply(self.graph, False, X)

    def transposed_times(self, Y: Any, values: Any = None) -> Any:
        """Return this device's rows of `A.T @ Y`, given its rows of Y."""
        return self.products.multiply(self.graph, True, Y)


class SplitProducts(Products):
    """The products of one of several devices, made by all of them together."""

    def __init__(self, device: int, collective: Collective, devices: _Devices) -> None:
        super().__init__(None, "cpu" if devices.gpus is None else "cuda")
        self._index, self._collective = devices.members.index(device), collective
        self._devices = devices

    def matrix(self, graph: Graph) -> Matrix:
        """Return a matrix of all devices' nodes."""
        return SplitMatrix(graph, self)

    def captured(self, program: Program) -> Callable[[], dict[str, Any]]:
        """Return a function that launches the steps one by one: they wait for other devices."""
        return prepared_program(program, {}, self.executor)[0]

    def multiply(self, graph: Graph, transposed: bool, X: Any) -> Any:
        """Multiply together with all other devices."""

        def work(parts: list[Any]) -> list[Any]:
            return self._devices.multiply(graph, transposed, parts)

        with self.clock("spmm"):
            return self._collective(self._index, X, work)

    def all_reduce(self, array: Any) -> Any:
        """Return the sum of all devices' arrays."""
        with self.clock("all_reduce"):
            return self._collective(self._index, array, self._devices.all_reduce)


class SplitRun(Run):
    """A device's part of the training: one all-reduce for gradient, hits and loss."""

    products: SplitProducts
    reduced_buffers = frozenset({"gradient"})

    def reduced(self, loss: Any, logits: Any) -> tuple[Any, Any]:
        """Add up over the devices; see `Run`."""
        gradient, hits = self.network.gradient, self.hits(logits)
        parts = gradient, hits, loss.reshape(1)
        total = self.products.all_reduce(self.products.xp.concatenate(parts))
        gradient[...] = total[: gradient.size]
        return total[-1], total[gradient.size : -1]


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
    """Train a GCN, GIN or SAGE over several devices, each with its own nodes.

    Parameters
    ----------
    model : {"gcn", "gin", "sage"}
    data : str or NodeData
        As `layers.train` takes it.
    devices, by, order
        As `split` takes them.
    device : {"auto", "cuda", "nvshmem", "emulator", "cpu"}
        As `run` takes it. With "emulator" the products are emulated, and the rest runs on the CPU.
    scheme : {"halo", "mgg", "all_gather"}
    seed, epochs, rate, decay, **options
        As of `layers.train`, with Adam. There is no dropout, because its random numbers follow the
        order of the nodes in an array.

    Returns
    -------
    Training

    Raises
    ------
    ArgumentError, GraphError, DeviceUnavailable, KernelError
        If an argument does not fit, or a device fails: then all threads end.

    Notes
    -----
    Each device's thread, or process, runs the network on its nodes; a product runs on all devices
    together. An all-reduce of the gradients comes before each step, so that all devices have the
    same parameters, those of one device within rounding.

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
    known = checked_training(model, options, data, seed, epochs, rate, decay)
    nodes = known.nodes
    divided = split(nodes.graph, devices, by=by, order=order)
    if device == "auto":
        device = fastest_device(devices)
    group = _Devices(divided, device, scheme)
    collective = Collective(len(group.members))
    rows_of = divided.apply(np.arange(nodes.n_nodes))

    def train_one(number: int) -> tuple[Run, npt.NDArray[np.float32]]:
        try:
            with group.on(number):
                products = SplitProducts(number, collective, group)
                network = Network(known.layers(), divided.graph, products, known.seed)
                decay = known.decay, known.model.decayed
                run = SplitRun(network, nodes, Adam(known.rate), *decay, rows_of[number])
                run.train(known.epochs)
                return run, on_host(run.logits())
        except BaseException as error:
            collective.abort(error)
            raise

    with ThreadPoolExecutor(len(group.members)) as threads:
        futures = [threads.submit(train_one, number) for number in group.members]
    if isinstance(collective.error, AccelvizError):
        raise collective.error
    if collective.error is not None:
        raise RuntimeError(f"a device failed: {collective.error!r}") from collective.error
    runs, parts = zip(*(future.result() for future in futures), strict=True)
    if isinstance(group.gpus, Symmetric):  # the rows of other processes
        parts = group.gpus.process.all_gather(parts[0])
    logits = divided.collect(parts)
    with group.on(group.members[0]):
        training = runs[0].training(model.lower(), known.seed, False, logits)
    how = {"device": device, "split": divided, "all_reduce": group.all_reduce.how}
    return Training(**{**vars(training), **how})
