"""Losses and scores of the three tasks: classes, several labels per node, and regression.

Functions take NumPy arrays or arrays of one device; Y is a network's result, (n, n_outputs).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from accelviz.datasets.nodes import NodeData
from accelviz.devices.choice import owner
from accelviz.errors import ArgumentError
from accelviz.layers.dense import array_module, launch, log_lanes_of_row, side_by_side


@dataclass(frozen=True)
class Task:
    """The loss and the score of a task.

    Attributes
    ----------
    metric : {"accuracy", "f1", "mse"}
        Name of the score.
    loss : callable
        `loss(Y, labels, weights)` returns the weighted loss of each node, (n,), and the gradient of
        their sum with respect to Y. A node's weight is `1 / n_train`, or 0 if it is not trained on.
    counts : callable
        `counts(Y, labels)` returns numbers per node, (n, n_counts), whose sums give the score.
    score : callable
        `score(sums, n_nodes)` returns the score of nodes from the sums of their counts.
    sign : int
        1 if a higher score is better, else -1.
    """

    metric: str
    loss: Callable[[Any, Any, Any], tuple[Any, Any]]
    counts: Callable[[Any, Any], Any]
    score: Callable[[Any, float], float]
    n_counts: int = 1
    sign: int = 1


def cross_entropy(logits: Any, labels: Any, weights: Any) -> tuple[Any, Any]:
    """Return the cross entropy of the softmax of logits, and its gradient; see `Task.loss`.

    Parameters
    ----------
    logits : array of float32, shape (n, n_classes)
    labels : array of int32, shape (n,)
        Class of each node. It may be -1 where the weight is 0.
    weights : array of float32, shape (n,)
    """
    if (device := owner(logits)) is not None:
        (n_rows, n_classes), log_lanes = logits.shape, log_lanes_of_row(logits.shape[1])
        losses, gradient = device.empty(weights.shape), device.empty(logits.shape)
        arguments = {"logits": device.contiguous(logits), "labels": labels, "weights": weights}
        arguments |= {"losses": losses, "gradient": gradient, "n_rows": n_rows}
        arguments |= {"n_classes": n_classes, "log_lanes": log_lanes}
        launch(device, "cross_entropy", n_rows << log_lanes, arguments)
        return losses, gradient
    rows = np.flatnonzero(weights)
    train_logits, train_weights = logits[rows], weights[rows]
    shifted = train_logits - train_logits.max(axis=1, keepdims=True)
    powers = np.exp(shifted)
    sums = powers.sum(axis=1, keepdims=True)
    at_labels = np.arange(rows.size), labels[rows]
    loss, gradient = np.zeros_like(weights), np.zeros_like(logits)
    loss[rows] = (np.log(sums[:, 0]) - shifted[at_labels]) * train_weights
    softmax = powers / sums
    softmax[at_labels] -= 1
    gradient[rows] = softmax * train_weights[:, None]
    return loss, gradient


def binary_cross_entropy(logits: Any, labels: Any, weights: Any) -> tuple[Any, Any]:
    """Return the cross entropy of sigmoids, a node's mean over its labels (0 and 1, float32)."""
    xp, scale = array_module(logits), (weights / np.float32(labels.shape[1]))[:, None]
    power = xp.exp(-abs(logits))
    losses = xp.maximum(logits, 0) - logits * labels + xp.log1p(power)
    sigmoid = xp.where(logits >= 0, 1, power) / (1 + power)
    return (losses * scale).sum(axis=1), (sigmoid - labels) * scale


def squared_error(Y: Any, targets: Any, weights: Any) -> tuple[Any, Any]:
    """Return the squared error, a node's mean over its targets, and its gradient."""
    scale = (weights / np.float32(targets.shape[1]))[:, None]
    error = Y - targets
    return (error * error * scale).sum(axis=1), error * (scale * np.float32(2))


def _correct(logits: Any, labels: Any) -> Any:
    return (logits.argmax(axis=1) == labels).astype(np.float32)[:, None]


def _true_positives(logits: Any, labels: Any) -> Any:
    """Return each node's labels that are right, and twice the mean of predicted and true labels."""
    predicted = (logits > 0).astype(np.float32)
    columns = (predicted * labels).sum(axis=1), (predicted + labels).sum(axis=1)
    return side_by_side(*(column[:, None] for column in columns))


def _node_error(Y: Any, targets: Any) -> Any:
    error = Y - targets
    return (error * error).mean(axis=1)[:, None]


def _mean(sums: Any, n_nodes: float) -> float:
    return float(sums[0] / n_nodes)


def _f1(sums: Any, n_nodes: float) -> float:
    """Return micro-averaged F1, `2 TP / (2 TP + FP + FN)`; 0 if no label is predicted or true."""
    return float(2 * sums[0] / max(sums[1], 1))


TASKS = {
    "classes": Task("accuracy", cross_entropy, _correct, _mean),
    "labels": Task("f1", binary_cross_entropy, _true_positives, _f1, n_counts=2),
    "values": Task("mse", squared_error, _node_error, _mean, sign=-1),
}


def target_array(nodes: NodeData) -> Any:
    """Return the labels as losses take them, on the host: int32 classes, or float32."""
    if nodes.task == "classes":
        return np.maximum(nodes.labels, 0).astype(np.int32)
    return np.nan_to_num(nodes.labels.astype(np.float32))


def checked_loss(loss: float, epoch: int) -> float:
    """Return the loss of an epoch, or raise ArgumentError if it is not finite."""
    if not math.isfinite(loss):
        raise ArgumentError(
            "rate", f"the loss of epoch {epoch} is {loss}", "a smaller rate, or smaller features"
        )
    return loss
