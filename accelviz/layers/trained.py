"""Trained networks: `Training`, the result of `train`, and `load`, which reads one from a file."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.datasets.nodes import NodeData, checked_inputs
from accelviz.errors import ArgumentError
from accelviz.graph import Graph
from accelviz.layers.checkpoint import Checkpoint, checked_path, digest_of, read_file
from accelviz.layers.layer import Layer, layer_classes, layer_name
from accelviz.layers.models import Model, model_of_layers
from accelviz.layers.network import Network, parameter_shapes, parameters_by_name
from accelviz.layers.products import Matrix, Products


@dataclass(frozen=True, eq=False)
class Trained:
    """A network with its parameters: the result of `load`, and part of a `Training`.

    `train` trains it further if it is passed as the model.

    Attributes
    ----------
    model : str
        Name of the model, or the names of its layers.
    layers : tuple of Layer
    parameters : dict of str to array of float32
        Parameters on the host. The key is the layer's number and the parameter's name, as "0.W".
    settings : dict
        Arguments of the training.
    """

    model: str
    layers: tuple[Layer, ...] = field(repr=False)
    parameters: dict[str, npt.NDArray[np.float32]] = field(repr=False)
    settings: dict[str, Any] = field(repr=False)

    def predict(
        self, graph: Any, features: Any, *, strategy: Any = None, device: str = "auto"
    ) -> npt.NDArray[np.float32]:
        """Return the network's result for each node of a graph, without dropout.

        Parameters
        ----------
        graph : Graph, or anything `load_graph` takes
        features : array of shape (n_nodes, n_features), SciPy sparse matrix or Graph
            As many columns as in training.
        strategy, device
            As in `train`.

        Returns
        -------
        array of float32, shape (n_nodes, n_outputs)
            As `Training.logits`, with the same bits for the graph, the features and the device of
            the training.

        Raises
        ------
        ArgumentError, GraphError, DeviceUnavailable
            If an argument is invalid, or the device cannot be used.
        """
        graph, features = checked_inputs(graph, features)
        if features.shape[1] != self.layers[0].n_in:
            problem = f"they have {features.shape[1]:,} columns"
            raise ArgumentError("features", problem, f"{self.layers[0].n_in:,}, as in training")
        products, rate = Products(strategy, device), self.settings["input_dropout"]
        products.check_effect(self.layers, isinstance(features, Graph))
        with products.stream:
            network = Network(self.layers, graph, products, 0, rate, self.parameters)
            X = device_features(features, products)
            network.fix(X)
            return host_array(network.forward(X)[0], products)

    def as_model(self) -> Model:
        """Return these layers with the rate, penalty and dropout of their training."""
        settings = {name: self.settings[name] for name in ("rate", "decay", "decayed")}
        options = {"input_dropout": self.settings["input_dropout"]}
        return model_of_layers(self.layers, name=self.model, options=options, **settings)


@dataclass(frozen=True, eq=False)
class Training(Trained):
    """The result of `train`.

    Attributes
    ----------
    model, layers, parameters, settings
        As in `Trained`.
    data : NodeData
    device : str
    seed : int
    metric : {"accuracy", "f1", "mse"}
        Name of the score: share of nodes whose class is right, micro-averaged F1 of several labels
        per node, or mean squared error.
    scores : dict of str to float
        Score after epoch `epoch` of each split that has nodes: "train", "val", "test".
    test_accuracy : float or None
        The accuracy in `scores` of the test nodes, 0 to 1.
    epoch : int
        The last epoch, or with early stopping the epoch with the best validation score. Epochs
        count from 1.
    history : DataFrame
        One row per epoch: `epoch`; `loss` of the training nodes, with dropout; the score of each
        split, as `train_accuracy`, without dropout; `seconds` of the step; and the seconds of each
        operation in the step, such as `spmm_seconds`. `spmm_features_seconds` is the product with
        sparse features, `dense_seconds` the remainder of the step. On a GPU only the first epochs
        have seconds per operation: later steps replay one captured CUDA graph.
    logits : array of float32, shape (n_nodes, n_outputs)
        The network's result for each node. The class with the largest one is the prediction; a
        label is predicted if its column is above 0; targets are the columns themselves.
    state : dict
        All that a further epoch depends on; `save` writes it.
    """

    data: NodeData
    device: str
    seed: int
    metric: str
    scores: dict[str, float]
    epoch: int
    history: pd.DataFrame
    logits: npt.NDArray[np.float32]
    state: dict[str, Any]

    @property
    def test_accuracy(self) -> float | None:
        """Share of the test nodes whose class is right; None without classes or such nodes."""
        return self.scores.get("test") if self.metric == "accuracy" else None

    def __repr__(self) -> str:
        seconds = self.history["seconds"].sum()
        split, score = [*self.scores.items()][-1]
        number = f"{score:.1%}" if self.metric == "accuracy" else f"{score:.3g}"
        return (
            f"Training({self.model!r} on {self.data.name!r}: {len(self.history)} epochs in "
            f"{seconds:.2f} s on {self.device}, {split} {self.metric} {number})"
        )

    def save(self, path: Any) -> None:
        """Write the network, the state and the settings to a `.npz` file.

        `load` reads the network; `train` with the same arguments and `checkpoint=path` resumes.

        Raises
        ------
        ArgumentError
            If the path does not end in .npz, or a layer has an argument that JSON cannot hold.
        """
        Checkpoint(path, self.settings, self.data, "path").write(self.state)


def load(path: Any) -> Trained:
    """Read a network that `Training.save` or `train(..., checkpoint=path)` wrote.

    Parameters
    ----------
    path : path
        A `.npz` file. Layers of classes of your own need these classes to be defined.

    Returns
    -------
    Trained
        With early stopping, the parameters of the best epoch.

    Raises
    ------
    ArgumentError
        If there is no such file, it is damaged, or a class of its layers is not defined.
    """
    settings, state = read_file("path", checked_path("path", path))
    classes, layers = layer_classes(), []
    for name, arguments in settings["layers"]:
        if name not in classes:
            problem = f"{path} has a layer {name!r}, which is no class of this process"
            raise ArgumentError("path", problem, "define or import it first")
        layers.append(classes[name](**arguments))
    flat = state["flat" if settings["patience"] is None else "best_flat"]
    size = sum(map(math.prod, parameter_shapes(layers).values()))
    if flat.size != size:
        problem = f"{path} has {flat.size:,} parameters, and its layers {size:,}"
        raise ArgumentError("path", problem, "the classes of layers that it was written with")
    parameters = parameters_by_name(layers, flat)
    return Trained(settings["model"], tuple(layers), parameters, settings)


def layer_settings(layers: Any, start: Any) -> dict[str, Any]:
    """Return the parts of `Trained.settings` about layers and initial parameters."""
    described = [[layer_name(type(layer)), layer.arguments] for layer in layers]
    digest = None if start is None else digest_of(start.values())
    return {"start": digest, "layers": described}


def host_array(array: Any, products: Products) -> Any:
    """Return an array of `products.xp` on the host."""
    return products.executor.to_host(array) if products.executor.computes else np.asarray(array)


def device_features(features: Any, products: Products) -> Any:
    """Return the features of the nodes on the device; sparse as a Matrix."""
    if not isinstance(features, Graph):
        return products.placed(features)
    return Matrix(features, products, label="_features")
