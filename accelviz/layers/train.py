"""`train`: a network on a graph, by any strategy, with what each epoch took and learned."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from tqdm import tqdm

from accelviz.datasets.nodes import SPLITS, UNLABELLED, NodeData, load_nodes
from accelviz.errors import ArgumentError, checked_choice, checked_integer, checked_number
from accelviz.graph import Graph
from accelviz.layers import dense
from accelviz.layers.checkpoint import Checkpoint
from accelviz.layers.layer import Layer
from accelviz.layers.memory import enough_memory
from accelviz.layers.models import Model, find_model
from accelviz.layers.network import Network
from accelviz.layers.products import Matrix, Products
from accelviz.layers.step import judging, training_step

#: Epochs between two checkpoints.
CHECKPOINT_EPOCHS = 50
MOST_SEED = (1 << 64) - 1


@dataclass(frozen=True, eq=False)
class Training:
    """What `train` returns.

    Attributes
    ----------
    model, data, device, seed
        What was trained, on what, where; `data` is the NodeData.
    test_accuracy, val_accuracy, train_accuracy : float
        Of the last epoch, or with early stopping of the one that was kept.
    epoch : int
        That epoch, from 1 on.
    history : DataFrame
        A row for each epoch: `epoch`, `loss` (of the nodes to learn from, with dropout),
        `train_accuracy`, `val_accuracy`, `test_accuracy` (without), `seconds` of the step, and of
        each operation in it, such as `spmm_seconds`; `spmm_features_seconds` is that of the sparse
        features, and `dense_seconds` the rest. On a GPU only the first epochs have these: later
        steps are one launch each, of a recorded CUDA graph.
    parameters : dict of str to array of float32
        By the layer's number and the parameter's name, such as "0.W", on the host.
    logits : array of float32, shape (n_nodes, n_classes)
        What the network says of every node; the largest is its class.
    """

    model: str
    data: NodeData
    device: str
    seed: int
    test_accuracy: float
    val_accuracy: float
    train_accuracy: float
    epoch: int
    history: pd.DataFrame
    parameters: dict[str, npt.NDArray[np.float32]]
    logits: npt.NDArray[np.float32]

    def __repr__(self) -> str:
        seconds = self.history["seconds"].sum()
        return (
            f"Training({self.model!r} on {self.data.name!r}: {len(self.history)} epochs in "
            f"{seconds:.2f} s on {self.device}, test accuracy {self.test_accuracy:.1%})"
        )


def train(
    model: str,
    data: Any,
    *,
    seed: int = 0,
    strategy: Any = None,
    device: str = "auto",
    epochs: int = 200,
    optimiser: str = "adam",
    rate: float | None = None,
    decay: float | None = None,
    patience: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = True,
    **options: Any,
) -> Training:
    """Train a network of two layers to classify the nodes of a graph.

    Parameters
    ----------
    model : {"gcn", "gin", "sage", "gat", "gatv2", "agnn"}
    data : str or NodeData
        "cora", "citeseer", or your own graph with features, labels and a split.
    seed : int
        Of the initial values and of dropout. The same seed gives the same bits; on a GPU not where
        atomics add up, in any order, as in strategies such as "fusegnn_gas".
    strategy : str, Strategy, (strategy, parameters) or mapping, optional
        How the products run: "accel_gcn" is of spmm, `{"sddmm": "row_warp"}` of the operation
        named. What is not named takes the fastest.
    device : {"auto", "cuda", "cpu", "emulator"}
        "auto" takes the GPU where there is one.
    epochs : int
        At least 1.
    optimiser : {"adam", "sgd"}
    rate, decay : float, optional
        Learning rate and factor of the L2 penalty; the model's own if not given.
    patience : int, optional
        Stop when the validation accuracy has not risen for so many epochs, and keep the parameters
        of the epoch in which it was highest.
    checkpoint : path, optional
        A `.npz` that is written every 50 epochs and at the end. If it is there, training goes on
        from it, and ends with the very bits of an uninterrupted run (if a seed gives the same). It
        must not have gone beyond `epochs`.
    progress : bool
        Show a progress bar.
    **options
        The model's own: `hidden`, `dropout`; of SAGE `aggregate` ("mean" or "max"); of attention
        `heads`, `output_heads`, `attention_dropout` and `fused` (False: scores, softmax and sums
        are operations each).

    Returns
    -------
    Training

    Raises
    ------
    ArgumentError, GraphError
        If an argument, the data or the checkpoint does not fit, or the loss leaves float32.
    DeviceUnavailable
        If the device cannot be used, or has too little memory: it says how much was wanted, and
        what would fit.

    Examples
    --------
    >>> from accelviz import layers
    >>> training = layers.train("gcn", "cora", epochs=20, device="cpu", progress=False)
    >>> training.test_accuracy > 0.6
    True
    """
    if patience is not None:
        patience = checked_integer("patience", patience, error=ArgumentError)
    known = checked_training(model, options, data, seed, epochs, rate, decay)
    checked_choice("optimiser", optimiser, dense.OPTIMISERS)
    products, nodes = Products(strategy, device), known.nodes
    settings = {"model": model.lower(), "seed": known.seed, "patience": patience}
    settings |= {**known.options, "optimiser": optimiser, "rate": known.rate, "decay": known.decay}
    with enough_memory(known.layers, known.options, nodes.n_nodes, products), products.stream:
        run = known.run(products, dense.OPTIMISERS[optimiser](known.rate))
        file = None
        if checkpoint is not None:
            file = Checkpoint(checkpoint, settings, nodes, run.network.shapes())
            run.restore(file.read())
            if run.epoch > known.epochs:
                problem = f"got {known.epochs}, and {file.path} has gone on to {run.epoch}"
                raise ArgumentError("epochs", problem, "at least as many, or another checkpoint")
        run.train(known.epochs, patience, file, progress)
        return run.training(model.lower(), known.seed, patience is not None)


@dataclass(frozen=True)
class CheckedTraining:
    """Arguments of a training, checked, with the model's own in place of those not given."""

    model: Model
    options: dict[str, Any]
    nodes: NodeData
    seed: int
    epochs: int
    rate: float
    decay: float

    def layers(self, **changes: Any) -> list[Layer]:
        """Return new layers of the model, with some options changed."""
        sizes = self.nodes.n_features, self.nodes.n_classes
        return self.model.build(*sizes, **{**self.options, **changes})

    def run(self, products: Products, optimiser: Any) -> Run:
        """Return a training of all nodes on one device, before its first epoch."""
        rate = self.options["dropout"]
        network = Network(self.layers(), self.nodes.graph, products, self.seed, rate)
        return Run(network, self.nodes, optimiser, self.decay, self.model.decayed)


def checked_training(
    model: str,
    options: dict[str, Any],
    data: Any,
    seed: int = 0,
    epochs: int = 1,
    rate: float | None = None,
    decay: float | None = None,
) -> CheckedTraining:
    """Check the arguments of `train`.

    Raises
    ------
    ArgumentError, GraphError
        As `train` does.
    """
    known_model, options = find_model(model, options)
    return CheckedTraining(
        known_model,
        options,
        load_nodes(data),
        checked_integer("seed", seed, MOST_SEED, least=0, error=ArgumentError),
        checked_integer("epochs", epochs, error=ArgumentError),
        checked_number("rate", known_model.rate if rate is None else rate),
        checked_number("decay", known_model.decay if decay is None else decay, or_zero=True),
    )


class Run:
    """A training between two epochs, of all nodes or of those that one device has.

    Parameters
    ----------
    network : Network
    nodes : NodeData
    optimiser : Adam or SGD
    decay : float
        Factor of the L2 penalty.
    decayed : {"first", "all"}
        The layers that have the penalty.
    rows : array of int, optional
        The nodes whose rows the network has, all if not given.

    Attributes
    ----------
    program : Program
        A step; see `training_step`.
    reduced_buffers : frozenset of str
        The program's buffers that `reduced` adds up over the devices.
    """

    reduced_buffers: frozenset[str] = frozenset()

    def __init__(
        self,
        network: Network,
        nodes: NodeData,
        optimiser: Any,
        decay: float,
        decayed: str,
        rows: npt.NDArray[Any] | None = None,
    ) -> None:
        self.network, self.products, self.optimiser = network, network.products, optimiser
        self.nodes, products, xp = nodes, network.products, network.products.xp
        chosen = slice(None) if rows is None else rows
        self.X = _features(nodes.features, rows, products)
        network.fix(self.X)
        labels = np.where(nodes.labels == UNLABELLED, 0, nodes.labels).astype(np.int32)
        self.labels = products.placed(labels[chosen])
        members = np.zeros((len(SPLITS), nodes.n_nodes), np.float32)
        for row, split in zip(members, SPLITS, strict=True):
            row[getattr(nodes, split)] = 1
        self.sizes = members.sum(axis=1, dtype=np.float64)
        self.members = products.placed(np.ascontiguousarray(members[:, chosen]))
        self.weights = self.members[0] * np.float32(1 / self.sizes[0])
        self.states = xp.zeros((optimiser.n_states, network.flat.size), np.float32)
        self.decay = network.decay(decay, decayed)
        self.epoch, self.rows = 0, list[dict[str, float]]()
        self.best, self.best_epoch, self.best_flat = -1.0, 0, network.flat.copy()
        self.program = training_step(self)
        self._step = products.captured(self.program)
        self._judge = products.captured(judging(self))

    def train(
        self,
        epochs: int,
        patience: int | None = None,
        checkpoint: Checkpoint | None = None,
        progress: bool = False,
    ) -> None:
        """Take steps until `epochs`, or until `patience` is exhausted."""
        first = min(self.epoch, epochs)
        with tqdm(total=epochs, initial=first, disable=not progress, unit="epoch") as bar:
            while self.epoch < epochs and not self.is_exhausted(patience):
                row = self.advance()
                bar.set_postfix(loss=f"{row['loss']:.3f}", test=f"{row['test_accuracy']:.3f}")
                bar.update()
                if checkpoint is not None and self.epoch % CHECKPOINT_EPOCHS == 0:
                    checkpoint.write(self.state())
        if checkpoint is not None:
            checkpoint.write(self.state())

    def training(self, model: str, seed: int, best: bool, logits: Any = None) -> Training:
        """Return the result, with `best` that of the epoch with the best validation accuracy.

        `logits` are those of all nodes, on the host, where the network has only some nodes' rows.
        """
        if best:
            self.network.flat[...] = self.best_flat
        logits = on_host(self.logits()) if logits is None else logits
        hits = logits.argmax(axis=1) == self.nodes.labels
        accuracies = {
            f"{name}_accuracy": float(hits[getattr(self.nodes, name)].mean()) for name in SPLITS
        }
        return Training(
            model=model,
            data=self.nodes,
            device=self.products.device,
            seed=seed,
            **accuracies,
            epoch=self.best_epoch if best else self.epoch,
            history=pd.DataFrame(self.rows),
            parameters=self.parameters(),
            logits=logits,
        )

    def advance(self) -> dict[str, float]:
        """Take a step and judge the network; return the row of the history."""
        start = time.perf_counter()
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # the loss is checked
            results = self._step()
            loss = dense.checked_loss(float(results["loss"]), self.epoch + 1)
        seconds = time.perf_counter() - start
        parts = self.products.reset()
        hits = results["hits"]
        if hits is None:
            hits = self._judge()["hits"]
            self.products.reset()
        self.epoch += 1
        shares = zip(SPLITS, on_host(hits) / self.sizes, strict=True)
        accuracies = {f"{name}_accuracy": float(share) for name, share in shares}
        timed = {f"{name}_seconds": value for name, value in sorted(parts.items())}
        if timed:  # a captured step has one time
            timed["dense_seconds"] = max(seconds - sum(parts.values()), 0.0)
        row = {"epoch": self.epoch, "loss": loss, **accuracies, "seconds": seconds, **timed}
        self.rows.append(row)
        if row["val_accuracy"] > self.best:
            self.best, self.best_epoch = row["val_accuracy"], self.epoch
            self.best_flat = self.network.flat.copy()
        return row

    def reduced(self, loss: Any, logits: Any) -> tuple[Any, Any]:
        """Return loss and hits of all devices, and add up `reduced_buffers` over them, in place.

        The hits are those of the network before the step. They are None here, because a step has
        dropout: `_judge` counts them without.
        """
        return loss, None

    def logits(self) -> Any:
        """Return the network's result for every node, without dropout."""
        return self.network.forward(self.X)[0]

    def hits(self, logits: Any) -> Any:
        """Return how many nodes of each split are classified right, shape (3,)."""
        hits = (logits.argmax(axis=1) == self.labels).astype(np.float32)
        return dense.matmul(self.members, hits[:, None])[:, 0]

    def is_exhausted(self, patience: int | None) -> bool:
        """Tell whether the validation accuracy has not risen for `patience` epochs."""
        return patience is not None and self.epoch - self.best_epoch >= patience

    def parameters(self) -> dict[str, npt.NDArray[np.float32]]:
        """Return copies of the parameters on the host, by name."""
        return {
            f"{number}.{name}": on_host(array).copy()
            for number, parameters in enumerate(self.network.parameters)
            for name, array in parameters.items()
        }

    def state(self) -> dict[str, Any]:
        """Return all that the next epoch depends on, on the host, by name."""
        return {
            "flat": on_host(self.network.flat),
            "states": on_host(self.states),
            "best_flat": on_host(self.best_flat),
            "epoch": self.epoch,
            "best": self.best,
            "best_epoch": self.best_epoch,
            "rows": self.rows,
        }

    def restore(self, state: dict[str, Any] | None) -> None:
        """Go on from a state, if there is one."""
        if state is None:
            return
        self.network.flat[...] = self.products.placed(state["flat"])
        self.states[...] = self.products.placed(state["states"])
        self.best_flat[...] = self.products.placed(state["best_flat"])
        self.epoch, self.rows = state["epoch"], state["rows"]
        self.network.noise.table[:, 3] = self.epoch
        self.best, self.best_epoch = state["best"], state["best_epoch"]


def _features(features: Any, rows: npt.NDArray[Any] | None, products: Products) -> Any:
    """Return some nodes' features where `products` runs; sparse ones as a Matrix."""
    if not isinstance(features, Graph):
        features = features if rows is None else np.ascontiguousarray(features[rows])
        return products.placed(features)
    if rows is not None:
        part = features.adjacency[rows]
        pointers, columns = part.indptr.astype(np.int64), part.indices.astype(np.int32)
        features = Graph(pointers, columns, part.data, part.shape, "rows")
    return Matrix(features, products, label="_features")


def on_host(array: Any) -> npt.NDArray[Any]:
    """Return an array as NumPy's."""
    return array if isinstance(array, np.ndarray) else array.get()
