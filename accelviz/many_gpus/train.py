"""A network trained over several devices: each has its vertices, and a thread of this process."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.datasets.nodes import SPLITS, UNLABELLED, NodeData, load_nodes
from accelviz.errors import (
    AccelvizError,
    ArgumentError,
    checked_choice,
    checked_integer,
    checked_number,
)
from accelviz.graph import Graph
from accelviz.layers import dense
from accelviz.layers.models import find_model
from accelviz.layers.network import Network
from accelviz.layers.products import Matrix, Products
from accelviz.layers.train import MOST_SEED, on_host
from accelviz.many_gpus import pretended
from accelviz.many_gpus.peers import Peers
from accelviz.many_gpus.run import DEVICES, chosen, plan
from accelviz.many_gpus.split import Split, split
from accelviz.many_gpus.steps import Program, of
from accelviz.many_gpus.sums import Sums
from accelviz.many_gpus.symmetric import Symmetric

#: Models whose only sparse operation is a product with a matrix that stays as it is.
MODELS = ("gcn", "gin", "sage")


@dataclass(frozen=True, eq=False)
class Training:
    """What `train` returns.

    Attributes
    ----------
    split : Split
    history : DataFrame
        A row an epoch: `epoch`, `loss`, and `train_accuracy`, `val_accuracy`, `test_accuracy` of
        the network before its step.
    parameters : dict of str to array of float32
        By the layer's number and the parameter's name, such as "0.W"; every device has the same.
    logits : array of float32, shape (n_nodes, n_classes)
        In the caller's order.
    sums : str
        How gradients were added up: `Sums.how`.
    """

    split: Split
    history: pd.DataFrame
    parameters: dict[str, npt.NDArray[np.float32]]
    logits: npt.NDArray[np.float32]
    sums: str


class Meeting:
    """Where the devices' threads wait for each other, and one acts for all.

    If a thread fails, the others that wait, or will, end at once, and its error is the one that is
    raised: nothing hangs.
    """

    def __init__(self, n: int) -> None:
        self._barrier = threading.Barrier(n)
        self._values: list[Any] = [None] * n
        self._results: Sequence[Any] = ()
        self._problem: BaseException | None = None

    def act(self, place: int, value: Any, work: Callable[[list[Any]], Sequence[Any]]) -> Any:
        """Give `work` the values of all, in one thread; return the own one of its results."""
        self._values[place] = value
        if self._barrier.wait() == 0:
            try:
                self._results = work(self._values)
            except BaseException as problem:
                self._problem = problem
                self._barrier.abort()
                raise
        self._barrier.wait()
        result = self._results[place]
        self._barrier.wait()  # nobody changes what others have not taken
        return result

    def leave(self, problem: BaseException) -> None:
        """Let nobody wait for a thread that has failed."""
        if self._problem is None and not isinstance(problem, threading.BrokenBarrierError):
            self._problem = problem
        self._barrier.abort()

    def problem(self) -> BaseException | None:
        """Return what went wrong first."""
        return self._problem


class _Devices:
    """Multiplies and adds for all devices, whatever they are."""

    def __init__(self, made: Split, device: str, scheme: str) -> None:
        self.split, self.device, self.scheme = made, device, scheme
        self.gpus: Peers | None = None
        self.options: dict[str, int] = {}
        if device == "cuda":
            self.gpus = Peers(made.n_devices)
        elif device == "nvshmem":
            self.gpus = Symmetric()
            if scheme != "mgg":
                self.options = {"devices_a_host": self.gpus.here.devices_a_host}
        self.sums = Sums(self.gpus)
        #: Those of this process.
        self.places = list(range(made.n_devices) if self.gpus is None else self.gpus.gpu_of)
        self._programs: dict[tuple[int, bool, int], tuple[Program, Any]] = {}
        self._splits: dict[int, tuple[Graph, Split]] = {}

    def on(self, place: int) -> contextlib.AbstractContextManager[Any]:
        """Return the context in which a device's thread works."""
        if self.gpus is None:
            return contextlib.nullcontext()
        from accelviz.devices.cuda.dense import cupy_module

        device: contextlib.AbstractContextManager[Any] = cupy_module().cuda.Device(
            self.gpus.gpu_of[place]
        )
        return device

    def wait(self) -> None:
        """Wait until all that was queued on GPUs is done; a thread knows nothing of the others'."""
        if self.gpus is not None:
            self.gpus.wait()

    def _program(self, graph: Graph, transposed: bool, n_cols: int) -> tuple[Program, Any]:
        key = id(graph), transposed, n_cols
        if key not in self._programs:
            if id(graph) not in self._splits:
                made = split(graph, self.split.n_devices, by=self.split.bounds)
                self._splits[id(graph)] = graph, made
            made = self._splits[id(graph)][1]
            made = made.transposed if transposed else made
            program = plan(made, n_cols, self.scheme, **self.options)
            ready = None if self.gpus is None else self.gpus.ready(program)
            self._programs[key] = program, ready
        return self._programs[key]

    def multiply(self, graph: Graph, transposed: bool, X: list[Any]) -> list[Any]:
        """Return the product's rows of each device of this process, given its rows of X."""
        n_cols = X[0].shape[1]
        program, ready = self._program(graph, transposed, n_cols)
        if ready is None:
            inputs = {of("X", p): np.ascontiguousarray(x).ravel() for p, x in enumerate(X)}
            run = pretended.emulated if self.device == "emulator" else pretended.replayed
            buffers = run(program, inputs)
            return [buffers[of("Y", p)].reshape(-1, n_cols) for p in range(len(X))]
        self.wait()
        for p, x in zip(self.places, X, strict=True):
            with self.on(p):
                ready.buffers[of("X", p)][...] = x.ravel()
        self.wait()
        ready.queue()
        self.wait()
        found = []
        for p in self.places:
            with self.on(p):
                found.append(ready.buffers[of("Y", p)].reshape(-1, n_cols).copy())
        self.wait()
        return found

    def of_all(self, parts: list[npt.NDArray[np.float32]]) -> list[npt.NDArray[np.float32]]:
        """Return the rows of all devices, given those of this process."""
        if not isinstance(self.gpus, Symmetric):
            return parts
        ends = self.split.bounds
        whole = np.zeros((int(ends[-1]), parts[0].shape[1]))
        for place, part in zip(self.places, parts, strict=True):
            whole[ends[place] : ends[place + 1]] = part
        with self.on(self.places[0]):
            total = self.gpus.total(whole).astype(np.float32)
        return np.split(total, ends[1:-1])


class SplitMatrix(Matrix):
    """A device's rows of a matrix whose product needs all devices."""

    def __init__(self, graph: Graph, products: SplitProducts) -> None:
        super().__init__(graph, products)
        self._here = products

    def times(self, X: Any, values: Any = None) -> Any:
        """Return this device's rows of `A @ X`, given its rows of X."""
        return self._here.meet(False, self.graph, X)

    def transposed_times(self, Y: Any, values: Any = None) -> Any:
        """Return this device's rows of `A.T @ Y`, given its rows of Y."""
        return self._here.meet(True, self.graph, Y)


class SplitProducts(Products):
    """Where one of several devices runs; its matrices meet with the others'."""

    def __init__(self, place: int, meeting: Meeting, devices: _Devices) -> None:
        super().__init__(None, "cpu" if devices.gpus is None else "cuda")
        self.place, self.meeting, self.devices = devices.places.index(place), meeting, devices

    def matrix(self, graph: Graph) -> Matrix:
        """Return a matrix of all devices' vertices."""
        return SplitMatrix(graph, self)

    def meet(self, transposed: bool, graph: Graph, X: Any) -> Any:
        """Multiply with all others."""

        def work(parts: list[Any]) -> list[Any]:
            return self.devices.multiply(graph, transposed, parts)

        return self.meeting.act(self.place, X, work)


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
    """Train a GCN, GIN or SAGE over several devices, each with its own vertices.

    Parameters
    ----------
    model : {"gcn", "gin", "sage"}
    data : str or NodeData
        As `layers.train` takes it.
    devices, by, order
        As `split` takes them.
    device : {"auto", "cuda", "nvshmem", "emulator", "cpu"}
        As `run` takes it; with "emulator" the products are emulated, and the rest runs on the CPU.
    scheme : {"halo", "mgg", "whole"}
    seed, epochs, rate, decay, **options
        As of `layers.train`, with Adam. There is no dropout: its draws belong to places in arrays
        that here are other ones.

    Returns
    -------
    Training

    Raises
    ------
    ArgumentError, GraphError, DeviceUnavailable, KernelError
        If an argument does not fit, or a device fails: then all threads end.

    Notes
    -----
    Each device's thread, or process, goes through the network on its vertices. A product is where
    all meet. The gradients by the parameters are added up over the devices before each step, so
    that all have the same parameters, and those of one device within rounding.

    Examples
    --------
    >>> from accelviz import many_gpus
    >>> found = many_gpus.train("gcn", "cora", devices=3, device="cpu", epochs=5)
    >>> found.history["loss"].is_monotonic_decreasing
    True
    """
    checked_choice("model", model, MODELS)
    checked_choice("device", device, DEVICES)
    if options.get("dropout") or options.get("aggregate", "mean") != "mean":
        raise ArgumentError("options", f"got {options}", "no dropout, and the mean of neighbors")
    found, settings = find_model(model, {**options, "dropout": 0.0})
    nodes = load_nodes(data)
    epochs = checked_integer("epochs", epochs, error=ArgumentError)
    seed = checked_integer("seed", seed, MOST_SEED, least=0, error=ArgumentError)
    steps = (
        checked_number("rate", found.rate if rate is None else rate),
        checked_number("decay", found.decay if decay is None else decay, or_zero=True),
    )
    made = split(nodes.graph, devices, by=by, order=order)
    if device == "auto":
        device = chosen(devices)
    everybody = _Devices(made, device, scheme)
    meeting = Meeting(len(everybody.places))

    def one(place: int) -> Any:
        try:
            with everybody.on(place):
                layers = found.build(nodes.n_features, nodes.n_classes, **settings)
                products = SplitProducts(place, meeting, everybody)
                network = Network(layers, made.graph, products, seed)
                return _Learner(network, nodes, made, place, found.decayed, *steps).learn(epochs)
        except BaseException as problem:
            meeting.leave(problem)
            raise

    with ThreadPoolExecutor(len(everybody.places)) as threads:
        futures = [threads.submit(one, place) for place in everybody.places]
    problem = meeting.problem()
    if problem is not None:
        if isinstance(problem, AccelvizError):
            raise problem
        raise RuntimeError(f"a device failed: {problem!r}") from problem
    results = [future.result() for future in futures]
    logits = made.collect(everybody.of_all([logits for _, _, logits in results]))
    return Training(made, pd.DataFrame(results[0][0]), results[0][1], logits, everybody.sums.how)


class _Learner:
    """A device's part of the training."""

    def __init__(
        self,
        network: Network,
        nodes: NodeData,
        made: Split,
        place: int,
        decayed: str,
        rate: float,
        decay: float,
    ) -> None:
        self.network = network
        self.products: SplitProducts = network.products  # type: ignore[assignment]
        products, own = self.products, made.parts[place]
        rows: npt.NDArray[Any] = np.arange(own.first, own.stop)
        if made.permutation is not None:
            rows = made.permutation.order[rows]
        self.X = _rows_of_features(nodes.features, rows, products)
        labels = np.where(nodes.labels == UNLABELLED, 0, nodes.labels).astype(np.int32)
        self.labels = products.placed(labels[rows])
        members = np.zeros((len(SPLITS), nodes.n_nodes), np.float32)
        for member, name in zip(members, SPLITS, strict=True):
            member[getattr(nodes, name)] = 1
        self.sizes = members.sum(axis=1)
        self.members = members[:, rows]
        self.weights = products.placed(self.members[0] / self.sizes[0])
        self.optimiser = dense.OPTIMISERS["adam"](rate)
        xp, flat = products.xp, network.flat
        self.states = xp.zeros((self.optimiser.n_states, flat.size), np.float32)
        self.decay = network.decay(decay, decayed)

    def learn(self, epochs: int) -> tuple[list[dict[str, float]], dict[str, Any], Any]:
        """Take steps; return the history, the parameters and this device's logits."""
        rows = []
        for epoch in range(1, epochs + 1):
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # the loss tells
                rows.append({"epoch": epoch, **self._step()})
            dense.checked_loss(rows[-1]["loss"], epoch)
        logits, _ = self.network.forward(self.X)
        parameters = {
            f"{i}.{name}": on_host(array).copy()
            for i, of_layer in enumerate(self.network.parameters)
            for name, array in of_layer.items()
        }
        return rows, parameters, on_host(logits)

    def _step(self) -> dict[str, float]:
        network, products = self.network, self.products
        logits, kept = network.forward(self.X)
        losses, gradient = dense.cross_entropy(logits, self.labels, self.weights)
        network.backward(kept, gradient)
        hits = on_host(logits).argmax(axis=1) == on_host(self.labels)
        told = np.append(self.members @ hits, float(losses.sum())).astype(np.float32)
        flat, noise = network.flat, network.noise
        own = products.xp.concatenate([network.gradient, products.placed(told)])
        total = products.meeting.act(products.place, own, products.devices.sums.added)
        network.gradient[...] = total[: flat.size]
        *counts, loss = on_host(total[flat.size :])
        self.optimiser.update(flat, network.gradient, self.states, self.decay, noise.words)
        noise.table[:, 3] += np.uint32(1)
        products.reset()
        names = (f"{name}_accuracy" for name in SPLITS)
        shares = (float(n / size) for n, size in zip(counts, self.sizes, strict=True))
        return {"loss": float(loss), **dict(zip(names, shares, strict=True))}


def _rows_of_features(features: Any, rows: npt.NDArray[Any], products: SplitProducts) -> Any:
    """Return some vertices' features where they are learned from; sparse ones as a Matrix."""
    if not isinstance(features, Graph):
        return products.placed(np.ascontiguousarray(features[rows]))
    part = features.adjacency[rows]
    graph = Graph(
        part.indptr.astype(np.int64), part.indices.astype(np.int32), part.data, part.shape, "rows"
    )
    return Matrix(graph, products, label="_features")
