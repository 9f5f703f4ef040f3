"""A step of training as a program: its parts, what they read and write, and what they wait for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from accelviz.datasets.nodes import SPLITS
from accelviz.layers import dense
from accelviz.plans.program import Buffer, Program, Step

if TYPE_CHECKING:
    from accelviz.layers.train import Run

Values = dict[str, Any]

#: Outputs: the loss of all nodes, and the nodes of each split that are classified right.
_OUTPUTS = {
    "loss": Buffer(0, 1, "float32", "output"),
    "hits": Buffer(0, len(SPLITS), "float32", "output"),
}


def training_step(run: Run) -> Program:
    """Return a step of a training: forward, loss, backward, reduce, optimiser, count.

    Parameters
    ----------
    run : Run
        It holds the arrays that outlive a step: "features", "parameters", "gradient", "states" of
        the optimiser, and "random", the table of `Noise`.

    Returns
    -------
    Program
        Of one device. "logits", "contexts", "losses" and "logits gradient" are made in each step;
        the outputs are "loss" and "hits" (None where a step has dropout, see `Run.reduced`).

    Raises
    ------
    PartitionError
        If a barrier is missing between two of the steps.
    """
    network, products = run.network, run.products

    def forward(values: Values) -> None:
        values["logits"], values["contexts"] = network.forward(run.X, network.noise)

    def loss(values: Values) -> None:
        with products.clock("loss"):
            losses, gradient = dense.cross_entropy(values["logits"], run.labels, run.weights)
        values["losses"], values["logits gradient"] = losses, gradient

    def backward(values: Values) -> None:
        network.backward(values["contexts"], values["logits gradient"])

    def reduce(values: Values) -> None:
        total = values["losses"].sum()
        values["loss"], values["hits"] = run.reduced(total, values["logits"])

    def optimiser(values: Values) -> None:
        with products.clock("optimiser"):
            gradient, words = network.gradient, network.noise.words
            run.optimiser.update(network.flat, gradient, run.states, run.decay, words)

    def count(values: Values) -> None:
        network.noise.table[:, 3] += np.uint32(1)

    reduced = run.reduced_buffers
    saved = {"features", "parameters", "random", "logits", "contexts", "logits gradient"}
    steps = (
        _step(forward, {"features", "parameters", "random"}, {"logits", "contexts"}),
        _step(loss, {"logits"}, {"losses", "logits gradient"}, after=(0,)),
        _step(backward, saved, {"gradient"}, after=(1,)),
        _step(reduce, {"losses", "logits"}, {*_OUTPUTS, *reduced}, after=(2,) if reduced else (1,)),
        _step(optimiser, {"gradient", "random"}, {"parameters", "states"}, after=(2, 3)),
        _step(count, set(), {"random"}, after=(4,)),
    )
    return Program(steps, _OUTPUTS)


def judging(run: Run) -> Program:
    """Return a program that counts the nodes classified right, without dropout: "hits"."""

    def judge(values: Values) -> None:
        values["hits"] = run.hits(run.logits())

    return Program(
        (_step(judge, {"features", "parameters"}, {"hits"}),), {"hits": _OUTPUTS["hits"]}
    )


def _step(
    work: Callable[[Values], None],
    reads: set[str],
    writes: set[str],
    after: tuple[int, ...] = (),
) -> Step:
    """Return a step without a queue, so that `check` holds what it waits for."""
    buffers = {name: name for name in reads}
    name, written = work.__name__, frozenset(writes)
    return Step(name, 0, "", buffers=buffers, writes=written, after=after, work=work)
