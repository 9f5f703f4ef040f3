"""Quantized networks: trained in float32 with rounding, then run by bit products only.

Cluster-GCN and batched GIN of section 2.6 compute `A (X W)`, the update before the aggregation.
Training uses `accelviz.layers` and rounds the matrices that kernels will quantize to their levels.
Gradients ignore the rounding (straight-through). A trained network becomes a `BitNetwork`, which
computes with integers from the first product to the last.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Floats
from accelviz.bits.batches import Batch
from accelviz.bits.convert import quantize
from accelviz.bits.finish import Finish
from accelviz.bits.product import plan_product
from accelviz.bits.tensor import BitTensor, Scale, pack
from accelviz.datasets.nodes import NodeData, load_nodes
from accelviz.devices import choose, find_device
from accelviz.devices.programs import prepared_program
from accelviz.errors import ArgumentError, checked_choice, checked_integer
from accelviz.graph import Graph
from accelviz.layers import dense
from accelviz.layers.adjacency import attention_matrix, mean_matrix
from accelviz.layers.affine import affine
from accelviz.layers.layer import Context, Linear, Parameters
from accelviz.layers.network import Network
from accelviz.layers.products import Matrix, Products
from accelviz.layers.train import Run
from accelviz.layers.trained import Training, layer_settings
from accelviz.plans.program import Buffer, Program
from accelviz.strategies.bits.packing import MOST_BITS

#: Value of `bits` for float32 without rounding; most bits of weights, as sums have 32.
EXACT, MOST_WEIGHT_BITS = 32, 8
#: (number of layers, hidden columns) of each model (section 2.6).
MODELS = {"gcn": (3, 16), "gin": (3, 64)}
#: Name of the buffer of a network's result.
LOGITS = "logits"


def loop_mean(graph: Graph) -> Graph:
    """Return Cluster-GCN's `D^-1 (A + I)`, the mean over a node and its neighbors."""
    return mean_matrix(attention_matrix(graph))


def rounded(X: Any, bits: int, per_column: bool = False) -> Any:
    """Round X to the values of 2^bits levels of its range; return X itself for 32 bits."""
    if bits == EXACT or not X.size:
        return X
    xp = dense.array_module(X)
    axis = 0 if per_column else None
    low, high = X.min(axis=axis), X.max(axis=axis)
    step = (high - low) / np.float32(1 << bits)
    levels = xp.floor((X - low) / xp.where(step > 0, step, np.float32(1)))
    return xp.clip(levels, 0, (1 << bits) - 1) * step + (low + step / np.float32(2))


class Update(Linear):
    """The layer `X W` of rounded X and W. Sparse features are not rounded.

    Parameters
    ----------
    n_in, n_out, activation, dropout, bias
        See `Layer`.
    bits : int
        Bits of X, and up to 8 also of W. With 32 nothing is rounded.
    """

    applies_input_activation = False

    def __init__(self, n_in: int, n_out: int, *, bits: int, **options: Any) -> None:
        super().__init__(n_in, n_out, **options)
        if bits != EXACT:
            checked_integer("bits", bits, MOST_BITS, error=ArgumentError)
        self.bits = bits

    @property
    def weight_bits(self) -> int:
        """Bits of W."""
        return self.bits if self.bits == EXACT else min(self.bits, MOST_WEIGHT_BITS)

    def round_operands(self, context: Context) -> tuple[Any, Any]:
        """Replace X and W of a context by rounded ones, and return them."""
        if not isinstance(context.X, Matrix):
            context.X = rounded(context.X, self.bits)
        W = rounded(context.parameters["W"], self.weight_bits, per_column=True)
        context.parameters = {**context.parameters, "W": W}
        return context.X, W

    def linear(self, context: Context) -> Any:
        """Round and multiply; see `Layer`."""
        self.round_operands(context)
        return super().linear(context)


class Aggregate(Update):
    """The layer `D^-1 (A + I)` (mean) or `A + I` (sum) times the rounded `X W`.

    Parameters
    ----------
    n_in, n_out, bits, **options
        See `Update`.
    mean : bool
        True for the mean, False for the sum.
    """

    def __init__(self, n_in: int, n_out: int, *, bits: int, mean: bool, **options: Any) -> None:
        super().__init__(n_in, n_out, bits=bits, **options)
        self.matrix_of = loop_mean if mean else attention_matrix

    def linear(self, context: Context) -> Any:
        """Update, round and aggregate; see `Layer`."""
        X, W = self.round_operands(context)
        updated = context.saved_for_backward = affine([X], [W])
        return context.epilogue.apply(context.matrix.times(rounded(updated, self.bits)))

    def linear_gradient(self, dZ: Any, context: Context) -> tuple[Parameters, Any]:
        """Multiply by the transposed matrix, then as `Update`; see `Layer`."""
        gradients, dX = super().linear_gradient(context.matrix.transposed_times(dZ), context)
        return {**gradients, "b": dense.column_sums(dZ)}, dX


def layers_of(model: str, n_features: int, n_classes: int, bits: int) -> list[Update]:
    """Return the layers of the models "gcn" and "gin" of section 2.6.

    Raises
    ------
    ArgumentError
        If there is no such model, or `bits` is neither 32 nor 1 to 16.
    """
    checked_choice("model", model, tuple(MODELS))
    n_layers, hidden = MODELS[model]
    widths = [n_features, *[hidden] * (n_layers - 1), n_classes]
    layers: list[Update] = []
    for i, (n_in, n_out) in enumerate(itertools.pairwise(widths)):
        activation = "none" if i == n_layers - 1 else "relu"
        if model == "gcn":
            layers.append(Aggregate(n_in, n_out, bits=bits, mean=True, activation=activation))
        else:
            layers.append(Aggregate(n_in, hidden, bits=bits, mean=False, activation="relu"))
            layers.append(Update(hidden, n_out, bits=bits, activation=activation))
    return layers


def train(
    model: str,
    data: Any,
    bits: int,
    *,
    seed: int = 0,
    device: str = "auto",
    epochs: int = 100,
    rate: float = 0.01,
    decay: float = 5e-4,
    patience: int | None = None,
    input_dropout: float = 0.5,
    progress: bool = True,
) -> tuple[Training, Network]:
    """Train a network whose features, weights and aggregated matrices are rounded to levels.

    Parameters
    ----------
    model : {"gcn", "gin"}
    data : str or NodeData
    bits : int
        Bits of a level, 1 to 16; weights have at most 8. With 32 nothing is rounded.
    seed, device, epochs, rate, decay, patience, progress
        See `layers.train`.
    input_dropout : float
        Fraction of the features that is dropped in training.

    Returns
    -------
    Training
    Network
        The network with its trained parameters, for `BitNetwork.of`.
    """
    nodes = load_nodes(data)
    built = layers_of(model, nodes.n_features, nodes.n_outputs, bits)
    products = Products(None, device)
    with products.stream:
        network = Network(built, nodes.graph, products, seed, input_dropout)
        run = Run(network, nodes, dense.Adam(rate), decay, "all")
        run.train(epochs, patience, None, progress)
        settings = {"model": f"{model}, {bits} bits", "seed": seed, "patience": patience}
        settings |= {"rate": rate, "decay": decay, "decayed": "all"}
        settings |= {"input_dropout": input_dropout, **layer_settings(built, None)}
        return run.training(settings), network


@dataclass(frozen=True, eq=False)
class NetworkStep:
    """A product of a network: features times weights, or a batch's edges times features.

    Attributes
    ----------
    weights : BitTensor or None
        Right operand. None if the left operand is the matrix of the batch's edges.
    finish : Finish
        Steps after the product, without `row_scale`, which depends on the batch.
    mean : bool
        Whether the product is a mean over the neighbors.
    """

    weights: BitTensor | None
    finish: Finish
    mean: bool = False


@dataclass(frozen=True, eq=False)
class BitNetwork:
    """A trained network as a sequence of bit products.

    Attributes
    ----------
    steps : tuple of NetworkStep
    inputs : Scale or None
        Scale of dense features. None for bags of words: binary features, each row divided by its
        number of ones.
    bits : int
        Bits of dense features and of intermediate results.
    """

    steps: tuple[NetworkStep, ...]
    inputs: Scale | None
    bits: int

    @classmethod
    def of(cls, network: Network, nodes: NodeData, bits: int) -> BitNetwork:
        """Quantize a trained network, with ranges from its intermediate results for `nodes`.

        Parameters
        ----------
        network : Network
            A network of `layers_of`, trained with the same bits or with 32.
        nodes : NodeData
            Graph and features. Sparse features must be bags of words.
        bits : int
            Bits of a level, 1 to 16.

        Raises
        ------
        ArgumentError
            If the features are sparse and not bags of words.
        """
        checked_integer("bits", bits, MOST_BITS, error=ArgumentError)
        X: Any = nodes.features
        inputs = None
        if isinstance(X, Graph):
            check_bags_of_words(X)
            X = Matrix(X, network.products)
        else:
            inputs = Scale.of_range(X.min(), X.max(), bits)
            X = network.products.placed(X)
        to_host = network.products.executor.to_host
        steps: list[NetworkStep] = []
        layers = [layer for layer in network.layers if isinstance(layer, Update)]
        n_steps = sum(1 + isinstance(layer, Aggregate) for layer in layers)
        for layer, parameters in zip(layers, network.parameters, strict=True):
            layer = copy.copy(layer)
            layer.bits = bits
            X, context = layer.forward(layer.prepared(nodes.graph, network.products), X, parameters)
            weights: BitTensor | None = quantize(
                to_host(parameters["W"]), layer.weight_bits, "right", per_column=True, device="cpu"
            )
            if isinstance(layer, Aggregate):
                H = to_host(context.saved_for_backward)
                steps.append(NetworkStep(weights, Finish(bits, H.min(), H.max(), "right")))
                weights = None
            Y = to_host(X)
            finish = Finish(
                bits if len(steps) < n_steps - 1 else None,
                float(Y.min()),
                float(Y.max()),
                bias=to_host(parameters["b"]),
                relu=layer.activation == "relu",
            )
            steps.append(NetworkStep(weights, finish, layer.matrix_of is loop_mean))
        return cls(tuple(steps), inputs, bits)

    def features(self, features: Any, nodes: npt.NDArray[Any] | None = None) -> BitTensor:
        """Quantize and pack the features of some nodes, by default of all."""
        if isinstance(features, Graph):
            rows = features.adjacency if nodes is None else features.adjacency[nodes]
            return pack((rows.toarray() != 0).astype(np.uint8), 1, "left")
        rows = features if nodes is None else features[nodes]
        assert self.inputs is not None
        low, high = self.inputs.low[0], self.inputs.low[0] + self.inputs.step[0] * (1 << self.bits)
        return quantize(rows, self.bits, "left", low=low, high=high, device="cpu")

    def program(self, batch: Batch, X: BitTensor, jump: bool = True) -> Program:
        """Return the program of a batch: inputs are "edges" and "features", the output `LOGITS`."""
        tensors, previous = {"edges": batch.A, "features": X}, "features"
        buffers, steps = {}, []
        for name, tensor in tensors.items():
            buffers[name] = Buffer(0, tensor.words.size, "uint32", "input")
        for number, (finish, weights) in enumerate(self._steps(batch, X)):
            out = f"product {number}" if finish.bits else LOGITS
            if weights is None:
                names = {"A": "edges", "B": previous, "out": out}
            else:
                names = {"A": previous, "out": out}
            A, B = tensors[names["A"]], weights or tensors[previous]
            planned = plan_product(A, B, jump=jump, finish=finish)
            steps.append(planned.step(A, B, names))
            words = planned.largest
            kind = "workspace" if finish.bits else "output"
            buffers[out] = Buffer(0, words.size, words.dtype.name, kind)
            tensors[out], previous = planned.result(words), out
        return Program(tuple(steps), buffers)

    def run(self, batch: Batch, X: BitTensor, device: str = "auto", jump: bool = True) -> Any:
        """Return the logits of a batch's nodes, float32, shape (n, classes).

        Parameters
        ----------
        batch : Batch
        X : BitTensor
            Features of the batch's nodes, as `features` returns them.
        device, jump
            See `product`.
        """
        chosen = choose(device, (batch.A.words, X.words))
        buffers = chosen.run_program(self.program(batch, X, jump), _inputs(batch, X))
        return buffers[LOGITS].reshape(batch.nodes.size, -1)

    def prepare_launch(self, batch: Batch, X: BitTensor) -> tuple[Callable[[], Any], Any]:
        """Copy a batch to the GPU; return a function that launches its kernels, and the logits."""
        program, gpu = self.program(batch, X), find_device("cuda")
        run, buffers = prepared_program(program, _inputs(batch, X), gpu)
        return run, buffers[LOGITS].reshape(batch.nodes.size, -1)

    def _steps(self, batch: Batch, X: BitTensor) -> Iterator[tuple[Finish, BitTensor | None]]:
        inverse_degrees = (1 / np.maximum(batch.degrees, 1)).astype(np.float32)
        for i, step in enumerate(self.steps):
            row_scale = inverse_degrees if step.mean else None
            if i == 0 and self.inputs is None:  # bags of words
                row_scale = (1 / np.maximum(X.sums, 1)).astype(np.float32)
            yield replace(step.finish, row_scale=row_scale), step.weights


def _inputs(batch: Batch, X: BitTensor) -> dict[str, Any]:
    return {"edges": batch.A.words.reshape(-1), "features": X.words.reshape(-1)}


def check_bags_of_words(features: Graph) -> None:
    """Raise an `ArgumentError` unless every row has ones divided by their number."""
    expected = 1 / np.repeat(np.maximum(features.degrees, 1), features.degrees)
    if not np.allclose(features.values, expected, rtol=1e-5):
        problem = "sparse, and other than ones divided by the number of ones in their row"
        raise ArgumentError("features", problem, "bags of words, or dense features")


def accuracy(logits: Floats, nodes: NodeData) -> float:
    """Return the fraction of the test nodes whose largest logit is their label."""
    return float((logits[nodes.test].argmax(axis=1) == nodes.labels[nodes.test]).mean())
