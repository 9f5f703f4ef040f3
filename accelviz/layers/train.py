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

from accelviz.datasets.nodes import SPLITS, NodeData, load_nodes
from accelviz.errors import ArgumentError, checked_integer, checked_number
from accelviz.graph import Graph
from accelviz.layers import dense
from accelviz.layers.checkpoint import Checkpoint
from accelviz.layers.layer import Layer, checked_rate
from accelviz.layers.losses import TASKS, checked_loss, target_array
from accelviz.layers.memory import enough_memory
from accelviz.layers.models import Model, find_model
from accelviz.layers.network import Network, parameters_by_name
from accelviz.layers.products import Products
from accelviz.layers.step import evaluation, training_step
from accelviz.layers.trained import (
    Trained,
    Training,
    device_features,
    host_array,
    layer_settings,
)

#: Epochs between two checkpoints.
CHECKPOINT_EPOCHS = 50
MAX_SEED = (1 << 64) - 1


def train(
    model: Any,
    data: Any,
    *,
    seed: int = 0,
    strategy: Any = None,
    device: str = "auto",
    epochs: int = 200,
    rate: float | None = None,
    decay: float | None = None,
    patience: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = True,
    **options: Any,
) -> Training:
    """Train a network with Adam to predict labels of the nodes of a graph.

    Parameters
    ----------
    model : {"gcn", "gin", "sage", "gat", "gatv2", "agnn"}, sequence of Layer, or Trained
        A published network; layers of your own, the first of which takes the features; or a
        `Training` or a loaded network, whose parameters are then the initial ones.
    data : str or NodeData
        "cora", "citeseer", or your own graph with features and labels. The labels determine the
        task: classes, several labels per node, or regression.
    seed : int
        Seed of the initial values and of dropout. The same seed gives bitwise equal results, except
        on a GPU with a strategy that adds by atomics, such as "fusegnn_gas".
    strategy : str, Strategy, (strategy, parameters) or mapping, optional
        Strategies of the sparse operations. A name such as "fusegnn_gas" switches on each operation
        that this system has; a mapping such as `{"gat": "fusegnn_gas"}` names the operation. Other
        operations use their fastest strategy. A strategy that the model does not run is an error.
    device : {"auto", "cuda", "cpu", "emulator"}
        "auto" is the GPU, or the CPU if there is no GPU.
    epochs : int
        At least 1.
    rate, decay : float, optional
        Learning rate and factor of the L2 penalty; by default those of the model. With your own
        layers they are 0.01 and 0.
    patience : int, optional
        Stop after this number of epochs without a better validation score, and return the
        parameters of the epoch with the best one.
    checkpoint : path, optional
        A `.npz` file, written every 50 epochs and at the end. If the file exists, training resumes
        from it and ends with the same bits as an uninterrupted run (under the condition of `seed`).
        It must not be of a later epoch than `epochs`.
    progress : bool
        Show a progress bar.
    **options
        Options of a named model: `hidden`, `depth` (number of layers; of AGNN, of attention
        layers), `dropout`; for SAGE `aggregate` ("mean" or "max"); for attention `heads`,
        `output_heads`, `attention_dropout`, and for GAT and AGNN `fused` (False: scores, softmax
        and sums are separate operations, as for a strategy of these alone). A list of layers has
        the option `input_dropout`.

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
    products, nodes = Products(strategy, device), checked.nodes
    settings, file = {**checked.settings(), "patience": patience}, None
    with enough_memory(checked.layers, checked.options, nodes.n_nodes, products), products.stream:
        run = checked.run(products)
        if checkpoint is not None:
            file = Checkpoint(checkpoint, settings, nodes)
            run.restore(file.read())
            if run.epoch > checked.epochs:
                problem = f"got {checked.epochs}, and {file.path} has gone on to {run.epoch}"
                raise ArgumentError("epochs", problem, "at least as many, or another checkpoint")
        run.train(checked.epochs, patience, file, progress)
        return run.training(settings)


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
    start: dict[str, npt.NDArray[np.float32]] | None

    @property
    def input_dropout(self) -> float:
        """Share of the features that is dropped: that of all layers in a named model."""
        options = self.options
        return float(options["input_dropout" if "input_dropout" in options else "dropout"])

    def layers(self, **changes: Any) -> list[Layer]:
        """Return new layers of the model; `changes` replace some of its options."""
        sizes = self.nodes.n_features, self.nodes.n_outputs
        return self.model.build(*sizes, **{**self.options, **changes})

    def settings(self) -> dict[str, Any]:
        """Return `Trained.settings`."""
        settings = {"model": self.model.name, "seed": self.seed, "patience": None}
        settings |= {**self.options, "input_dropout": self.input_dropout}
        settings |= {"rate": self.rate, "decay": self.decay, "decayed": self.model.decayed}
        return settings | layer_settings(self.layers(), self.start)

    def run(self, products: Products) -> Run:
        """Return a `Run` of all nodes on one device, before its first epoch."""
        seed, graph = self.seed, self.nodes.graph
        products.check_effect(self.layers(), isinstance(self.nodes.features, Graph))
        network = Network(self.layers(), graph, products, seed, self.input_dropout, self.start)
        return Run(network, self.nodes, dense.Adam(self.rate), self.decay, self.model.decayed)


def checked_training(
    model: Any,
    options: dict[str, Any],
    data: Any,
    seed: int = 0,
    epochs: int = 1,
    rate: float | None = None,
    decay: float | None = None,
) -> CheckedTraining:
    """Check the arguments of `train`; raises ArgumentError or GraphError."""
    start = model.parameters if isinstance(model, Trained) else None
    model = model.as_model() if isinstance(model, Trained) else model
    known_model, options = find_model(model, options)
    if "input_dropout" in options:
        checked_rate("input_dropout", options["input_dropout"])
    nodes = load_nodes(data)
    checked = CheckedTraining(
        known_model,
        options,
        nodes,
        checked_integer("seed", seed, MAX_SEED, least=0, error=ArgumentError),
        checked_integer("epochs", epochs, error=ArgumentError),
        checked_number("rate", known_model.rate if rate is None else rate),
        checked_number("decay", known_model.decay if decay is None else decay, or_zero=True),
        start,
    )
    layers, width, task = checked.layers(), nodes.n_outputs, nodes.task
    if layers[0].n_in != nodes.n_features:
        problem = f"{layers[0]} takes {layers[0].n_in:,} columns"
        raise ArgumentError("model", problem, f"{nodes.n_features:,}, as the features have")
    if layers[-1].width != width and (task != "classes" or layers[-1].width < width):
        problem = f"{layers[-1]} gives {layers[-1].width:,} columns"
        raise ArgumentError("model", problem, f"{width:,}, one for each of the {task}")
    return checked


class Run:
    """The state of a training between two epochs.

    Parameters
    ----------
    network : Network
    nodes : NodeData
    optimiser : Adam
    decay : float
        Factor of the L2 penalty.
    decayed : {"first", "all"}
        Layers whose parameters have the penalty.

    Attributes
    ----------
    program : Program
        One training step; see `training_step`.
    """

    def __init__(
        self,
        network: Network,
        nodes: NodeData,
        optimiser: Any,
        decay: float,
        decayed: str,
    ) -> None:
        if not nodes.train.size:
            raise ArgumentError("data", f"{nodes.name} has no training nodes", "data with train=")
        self.network, self.products, self.optimiser = network, network.products, optimiser
        self.nodes, products, xp = nodes, network.products, network.products.xp
        self.X = device_features(nodes.features, products)
        network.fix(self.X)
        self.task = TASKS[nodes.task]
        self.labels = products.placed(target_array(nodes))
        # Row s of `members` is 1 at the nodes of split s, else 0.
        members = np.zeros((len(SPLITS), nodes.n_nodes), np.float32)
        for row, split in zip(members, SPLITS, strict=True):
            row[getattr(nodes, split)] = 1
        self.split_sizes = members.sum(axis=1, dtype=np.float64)
        self.members = products.placed(members)
        self.weights = self.members[0] * np.float32(1 / self.split_sizes[0])
        self.states = xp.zeros((2, network.flat.size), np.float32)
        self.decay = network.decay(decay, decayed)
        self.epoch, self.history = 0, list[dict[str, float]]()
        self.best_score: float | None = None
        self.best_epoch, self.best_flat = 0, network.flat.copy()
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
        if patience is not None and not self.nodes.val.size:
            problem = f"{self.nodes.name} has no validation nodes"
            raise ArgumentError("patience", problem, "None, or data with val=")
        with tqdm(total=epochs, initial=self.epoch, disable=not progress, unit="epoch") as bar:
            while self.epoch < epochs and not self.is_exhausted(patience):
                row = self.advance()
                bar.set_postfix({k: v for k, v in row.items() if not k.endswith("seconds")})
                bar.update()
                if checkpoint is not None and self.epoch % CHECKPOINT_EPOCHS == 0:
                    checkpoint.write(self.state())
        if checkpoint is not None:
            checkpoint.write(self.state())

    def training(self, settings: dict[str, Any]) -> Training:
        """Return the result of the last epoch, or with `patience` of the one with the best score.

        Parameters
        ----------
        settings : dict
            `Trained.settings`.
        """
        state, best = self.state(), settings["patience"] is not None
        if best:
            self.network.flat[...] = self.best_flat
        logits = host_array(self.logits(), self.products)
        counts, scores = self.task.counts(logits, target_array(self.nodes)), {}
        for split in SPLITS:
            if (nodes := getattr(self.nodes, split)).size:
                sums = counts[nodes].sum(axis=0, dtype=np.float64)
                scores[split] = self.task.score(sums, nodes.size)
        flat = host_array(self.network.flat, self.products).copy()
        return Training(
            model=settings["model"],
            layers=self.network.layers,
            parameters=parameters_by_name(self.network.layers, flat),
            settings=settings,
            data=self.nodes,
            device=self.products.device,
            seed=settings["seed"],
            metric=self.task.metric,
            scores=scores,
            epoch=self.best_epoch if best else self.epoch,
            history=pd.DataFrame(self.history),
            logits=logits,
            state=state,
        )

    def advance(self) -> dict[str, float]:
        """Run one epoch: a step, then the accuracies. Return its row of the history."""
        start = time.perf_counter()
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # the loss is checked
            loss = checked_loss(float(self._step()["loss"]), self.epoch + 1)
        seconds = time.perf_counter() - start
        operation_seconds = self.products.reset()
        sums = self._evaluate()["score sums"]
        self.products.reset()
        self.epoch += 1
        splits = zip(SPLITS, host_array(sums, self.products), self.split_sizes, strict=True)
        scores = {
            f"{split}_{self.task.metric}": self.task.score(split_sums, size)
            for split, split_sums, size in splits
            if size
        }
        timed = {f"{name}_seconds": value for name, value in sorted(operation_seconds.items())}
        if timed:  # a replayed CUDA graph has no times of its operations
            timed["dense_seconds"] = max(seconds - sum(operation_seconds.values()), 0.0)
        row = {"epoch": self.epoch, "loss": loss, **scores, "seconds": seconds, **timed}
        self.history.append(row)
        score = row.get(f"val_{self.task.metric}")
        if score is not None and self._is_best(score):
            self.best_score, self.best_epoch = score, self.epoch
            self.best_flat = self.network.flat.copy()
        return row

    def _is_best(self, score: float) -> bool:
        return self.best_score is None or self.task.sign * (score - self.best_score) > 0

    def logits(self) -> Any:
        """Return the network's result for every node, without dropout."""
        return self.network.forward(self.X)[0]

    def score_sums(self, logits: Any) -> Any:
        """Return the sums of `Task.counts` over the nodes of each split, shape (3, n_counts)."""
        return dense.matmul(self.members, self.task.counts(logits, self.labels))

    def is_exhausted(self, patience: int | None) -> bool:
        """Return whether the validation score has not improved for `patience` epochs."""
        return patience is not None and self.epoch - self.best_epoch >= patience

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint: all that the next epoch depends on, on the host."""
        return {
            "flat": host_array(self.network.flat, self.products).copy(),
            "states": host_array(self.states, self.products).copy(),
            "best_flat": host_array(self.best_flat, self.products),
            "epoch": self.epoch,
            "best": self.best_score,
            "best_epoch": self.best_epoch,
            "rows": [*self.history],
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
        self.best_score, self.best_epoch = state["best"], state["best_epoch"]
