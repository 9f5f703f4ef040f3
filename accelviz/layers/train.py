"""Training: `train` fits a network to a graph and records the loss and time of each epoch.

A `Run` is the training of one device, with all nodes or with some (`many_gpus.train`).
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from tqdm import tqdm

from accelviz.datasets import load_graph
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
from accelviz.layers.step import evaluation, training_step

#: Epochs between two checkpoints.
CHECKPOINT_EPOCHS = 50
MAX_SEED = (1 << 64) - 1


@dataclass(frozen=True, eq=False)
class Training:
    """The result of `train`.

    Attributes
    ----------
    model : str
    data : NodeData
    device : str
    seed : int
    test_accuracy, val_accuracy, train_accuracy : float
        Accuracies after epoch `epoch`, 0 to 1.
    epoch : int
        The last epoch, or with early stopping the epoch with the best validation accuracy. Epochs
        count from 1.
    history : DataFrame
        One row per epoch: `epoch`; `loss` of the training nodes, with dropout; `train_accuracy`,
        `val_accuracy` and `test_accuracy`, without dropout; `seconds` of the step; and the seconds
        of each operation in the step, such as `spmm_seconds`. `spmm_features_seconds` is the
        product with sparse features, `dense_seconds` the remainder of the step. On a GPU only the
        first epochs have seconds per operation: later steps replay one captured CUDA graph.
    parameters : dict of str to array of float32
        Parameters on the host. The key is the layer's number and the parameter's name, as "0.W".
    logits : array of float32, shape (n_nodes, n_classes)
        Scores of each node; the class with the largest score is the prediction.
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
        Seed of the initial values and of dropout. The same seed gives bitwise equal results, except
        on a GPU with a strategy that adds by atomics, such as "fusegnn_gas".
    strategy : str, Strategy, (strategy, parameters) or mapping, optional
        Strategies of the sparse operations. A name such as "accel_gcn" is a strategy of spmm; a
        mapping such as `{"sddmm": "row_warp"}` names the operation. Other operations use their
        fastest strategy.
    device : {"auto", "cuda", "cpu", "emulator"}
        "auto" is the GPU, or the CPU if there is no GPU.
    epochs : int
        At least 1.
    optimiser : {"adam", "sgd"}
    rate, decay : float, optional
        Learning rate and factor of the L2 penalty; by default those of the model.
    patience : int, optional
        Stop after this number of epochs without a higher validation accuracy, and return the
        parameters of the epoch with the highest one.
    checkpoint : path, optional
        A `.npz` file, written every 50 epochs and at the end. If the file exists, training resumes
        from it and ends with the same bits as an uninterrupted run (under the condition of `seed`).
        It must not be of a later epoch than `epochs`.
    progress : bool
        Show a progress bar.
    **options
        Options of the model: `hidden`, `dropout`; for SAGE `aggregate` ("mean" or "max"); for
        attention `heads`, `output_heads`, `attention_dropout` and `fused` (False: scores, softmax
        and sums are separate operations).

    Returns
    -------
    Training

    Raises
    ------
    ArgumentError, GraphError
        If an argument, the data or the checkpoint is invalid, or the loss overflows float32.
    DeviceUnavailable
        If the device cannot be used, or has too little memory. The message has the memory required
        and a setting that would fit.

    Examples
    --------
    >>> from accelviz import layers
    >>> training = layers.train("gcn", "cora", epochs=20, device="cpu", progress=False)
    >>> training.test_accuracy > 0.6
    True
    """
    if patience is not None:
        patience = checked_integer("patience", patience, error=ArgumentError)
    checked = checked_training(model, options, data, seed, epochs, rate, decay)
    checked_choice("optimiser", optimiser, dense.OPTIMISERS)
    products, nodes = Products(strategy, device), checked.nodes
    settings = {"model": model.lower(), "seed": checked.seed, "patience": patience}
    settings |= {**checked.options, "optimiser": optimiser}
    settings |= {"rate": checked.rate, "decay": checked.decay}
    with enough_memory(checked.layers, checked.options, nodes.n_nodes, products), products.stream:
        run = checked.run(products, dense.OPTIMISERS[optimiser](checked.rate))
        file = None
        if checkpoint is not None:
            file = Checkpoint(checkpoint, settings, nodes, run.network.shapes())
            run.restore(file.read())
            if run.epoch > checked.epochs:
                problem = f"got {checked.epochs}, and {file.path} has gone on to {run.epoch}"
                raise ArgumentError("epochs", problem, "at least as many, or another checkpoint")
        run.train(checked.epochs, patience, file, progress)
        return run.training(model.lower(), checked.seed, patience is not None)


@dataclass(frozen=True)
class CheckedTraining:
    """Validated arguments of `train`, with the model's defaults filled in."""

    model: Model
    options: dict[str, Any]
    nodes: NodeData
    seed: int
    epochs: int
    rate: float
    decay: float

    def layers(self, **changes: Any) -> list[Layer]:
        """Return new layers of the model; `changes` replace some of its options."""
        sizes = self.nodes.n_features, self.nodes.n_classes
        return self.model.build(*sizes, **{**self.options, **changes})

    def run(self, products: Products, optimiser: Any) -> Run:
        """Return a `Run` of all nodes on one device, before its first epoch."""
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
    """Check the arguments of `train`; raises ArgumentError or GraphError."""
    known_model, options = find_model(model, options)
    return CheckedTraining(
        known_model,
        options,
        load_nodes(data),
        checked_integer("seed", seed, MAX_SEED, least=0, error=ArgumentError),
        checked_integer("epochs", epochs, error=ArgumentError),
        checked_number("rate", known_model.rate if rate is None else rate),
        checked_number("decay", known_model.decay if decay is None else decay, or_zero=True),
    )


class Run:
    """The state of a training between two epochs.

    Parameters
    ----------
    network : Network
    nodes : NodeData
    optimiser : Adam or SGD
    decay : float
        Factor of the L2 penalty.
    decayed : {"first", "all"}
        Layers whose parameters have the penalty.
    rows : array of int, optional
        Nodes of this device, all nodes by default.

    Attributes
    ----------
    program : Program
        One training step; see `training_step`.
    reduced_buffers : frozenset of str
        Buffers of the program that `reduced` sums over all devices.
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
        # A device without `xp` trains on arrays of NumPy.
        executor = products.executor
        self._to_host = executor.to_host if executor.computes else np.asarray
        local_nodes = slice(None) if rows is None else rows
        self.X = _features(nodes.features, rows, products)
        network.fix(self.X)
        labels = np.where(nodes.labels == UNLABELLED, 0, nodes.labels).astype(np.int32)
        self.labels = products.placed(labels[local_nodes])
        # Row s of `members` is 1 at the nodes of split s, else 0.
        members = np.zeros((len(SPLITS), nodes.n_nodes), np.float32)
        for row, split in zip(members, SPLITS, strict=True):
            row[getattr(nodes, split)] = 1
        self.split_sizes = members.sum(axis=1, dtype=np.float64)
        self.members = products.placed(np.ascontiguousarray(members[:, local_nodes]))
        self.weights = self.members[0] * np.float32(1 / self.split_sizes[0])
        self.states = xp.zeros((optimiser.n_states, network.flat.size), np.float32)
        self.decay = network.decay(decay, decayed)
        self.epoch, self.history = 0, list[dict[str, float]]()
        self.best_accuracy, self.best_epoch, self.best_flat = -1.0, 0, network.flat.copy()
        self.program = training_step(self)
        self._step = products.captured(self.program)
        self._evaluate = products.captured(evaluation(self))

    def train(
        self,
        epochs: int,
        patience: int | None = None,
        checkpoint: Checkpoint | None = None,
        progress: bool = False,
    ) -> None:
        """Run epochs up to number `epochs`, or until `patience` is exhausted."""
        with tqdm(total=epochs, initial=self.epoch, disable=not progress, unit="epoch") as bar:
            while self.epoch < epochs and not self.is_exhausted(patience):
                row = self.advance()
                bar.set_postfix(loss=f"{row['loss']:.3f}", test=f"{row['test_accuracy']:.3f}")
                bar.update()
                if checkpoint is not None and self.epoch % CHECKPOINT_EPOCHS == 0:
                    checkpoint.write(self.state())
        if checkpoint is not None:
            checkpoint.write(self.state())

    def training(self, model: str, seed: int, best: bool, logits: Any = None) -> Training:
        """Return the result of the last epoch, or with `best` of the one with the best accuracy.

        The best accuracy is that on the validation nodes. `logits` of all nodes, on the host, are
        required if this device has only some of the nodes.
        """
        if best:
            self.network.flat[...] = self.best_flat
        logits = self._to_host(self.logits()) if logits is None else logits
        correct = logits.argmax(axis=1) == self.nodes.labels
        accuracies = {
            f"{name}_accuracy": float(correct[getattr(self.nodes, name)].mean()) for name in SPLITS
        }
        return Training(
            model=model,
            data=self.nodes,
            device=self.products.device,
            seed=seed,
            **accuracies,
            epoch=self.best_epoch if best else self.epoch,
            history=pd.DataFrame(self.history),
            parameters=self.parameters(),
            logits=logits,
        )

    def advance(self) -> dict[str, float]:
        """Run one epoch: a step, then the accuracies. Return its row of the history."""
        start = time.perf_counter()
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # the loss is checked
            results = self._step()
            loss = dense.checked_loss(float(results["loss"]), self.epoch + 1)
        seconds = time.perf_counter() - start
        operation_seconds = self.products.reset()
        hits = results["hits"]
        if hits is None:
            hits = self._evaluate()["hits"]
            self.products.reset()
        self.epoch += 1
        shares = zip(SPLITS, self._to_host(hits) / self.split_sizes, strict=True)
        accuracies = {f"{name}_accuracy": float(share) for name, share in shares}
        timed = {f"{name}_seconds": value for name, value in sorted(operation_seconds.items())}
        if timed:  # a replayed CUDA graph has no times of its operations
            timed["dense_seconds"] = max(seconds - sum(operation_seconds.values()), 0.0)
        row = {"epoch": self.epoch, "loss": loss, **accuracies, "seconds": seconds, **timed}
        self.history.append(row)
        if row["val_accuracy"] > self.best_accuracy:
            self.best_accuracy, self.best_epoch = row["val_accuracy"], self.epoch
            self.best_flat = self.network.flat.copy()
        return row

    def reduced(self, loss: Any, logits: Any) -> tuple[Any, Any]:
        """Sum `reduced_buffers` over all devices in place; return loss and hits of all devices.

        The hits are those of the network before the step. On one device they are None: the logits
        of a step have dropout, so that `advance` evaluates the network again without.
        """
        return loss, None

    def logits(self) -> Any:
        """Return the network's result for every node, without dropout."""
        return self.network.forward(self.X)[0]

    def hits(self, logits: Any) -> Any:
        """Return the number of correctly classified nodes of each split, shape (3,)."""
        correct = (logits.argmax(axis=1) == self.labels).astype(np.float32)
        return dense.matmul(self.members, correct[:, None])[:, 0]

    def is_exhausted(self, patience: int | None) -> bool:
        """Return whether the validation accuracy has not risen for `patience` epochs."""
        return patience is not None and self.epoch - self.best_epoch >= patience

    def parameters(self) -> dict[str, npt.NDArray[np.float32]]:
        """Return copies of the parameters on the host, by name."""
        return {
            f"{number}.{name}": self._to_host(array).copy()
            for number, parameters in enumerate(self.network.parameters)
            for name, array in parameters.items()
        }

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint: all that the next epoch depends on, on the host."""
        return {
            "flat": self._to_host(self.network.flat),
            "states": self._to_host(self.states),
            "best_flat": self._to_host(self.best_flat),
            "epoch": self.epoch,
            "best": self.best_accuracy,
            "best_epoch": self.best_epoch,
            "rows": self.history,
        }

    def restore(self, state: dict[str, Any] | None) -> None:
        """Resume from the state of a checkpoint, if there is one."""
        if state is None:
            return
        self.network.flat[...] = self.products.placed(state["flat"])
        self.states[...] = self.products.placed(state["states"])
        self.best_flat[...] = self.products.placed(state["best_flat"])
        self.epoch, self.history = state["epoch"], state["rows"]
        self.network.noise.table[:, 3] = self.epoch
        self.best_accuracy, self.best_epoch = state["best"], state["best_epoch"]


def _features(features: Any, rows: npt.NDArray[Any] | None, products: Products) -> Any:
    """Return the features of the nodes `rows` on the device; sparse ones as a Matrix."""
    if not isinstance(features, Graph):
        features = features if rows is None else np.ascontiguousarray(features[rows])
        return products.placed(features)
    if rows is not None:
        features = load_graph(features.adjacency[rows])
    return Matrix(features, products, label="_features")
