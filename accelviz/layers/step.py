"""A step of training as a program.

A program (`plans.program`) is a list of steps, here forward, loss, backward, optimiser and count.
Each names the buffers that it reads and writes and the steps that have to end before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from accelviz.datasets.nodes import SPLITS
from accelviz.plans.program import Buffer, Program, Step

if TYPE_CHECKING:
    from accelviz.layers.train import Run

Values = dict[str, Any]


def training_step(run: Run) -> Program:
    """Return a training step: forward, loss, backward, optimiser, count.

    Parameters
    ----------
    run : Run
        Owner of the buffers that outlive a step: "features", "parameters", "gradient", "states" of
        the optimiser, and "random", the table of `Noise`.

    Returns
    -------
    Program
        A program of one device. Each run makes new "logits", "contexts" and "logits gradient". The
        output is "loss".

    Raises
    ------
    PartitionError
        If the program lacks a barrier between two of its steps.
    """
    network, products = run.network, run.products

    def forward(values: Values) -> None:
        values["logits"], values["contexts"] = network.forward(run.X, network.noise)

    def loss(values: Values) -> None:
        with products.clock("loss"):
            losses, gradient = run.task.loss(values["logits"], run.labels, run.weights)
        values["loss"], values["logits gradient"] = losses.sum(), gradient

    def backward(values: Values) -> None:
        network.backward(values["contexts"], values["logits gradient"])

    def optimiser(values: Values) -> None:
        with products.clock("optimiser"):
            gradient, words = network.gradient, network.noise.words
            run.optimiser.update(network.flat, gradient, run.states, run.decay, words)

    def count(values: Values) -> None:
        network.noise.table[:, 3] += np.uint32(1)

    saved = {"features", "parameters", "random", "logits", "contexts", "logits gradient"}
    steps = (
        _step(forward, {"features", "parameters", "random"}, {"logits", "contexts"}),
        _step(loss, {"logits"}, {"loss", "logits gradient"}, after=(0,)),
        _step(backward, saved, {"gradient"}, after=(1,)),
        _step(optimiser, {"gradient", "random"}, {"parameters", "states"}, after=(2,)),
        _step(count, set(), {"random"}, after=(3,)),
    )
    return Program(steps, {"loss": Buffer(0, 1, "float32", "output")})


def evaluation(run: Run) -> Program:
    """Return a program for the scores of the network without dropout: "score sums"."""

    def evaluate(values: Values) -> None:
        values["score sums"] = run.score_sums(run.logits())

    step = _step(evaluate, {"features", "parameters"}, {"score sums"})
    n_sums = len(SPLITS) * run.task.n_counts
    return Program((step,), {"score sums": Buffer(0, n_sums, "float32", "output")})


def _step(
    work: Callable[[Values], None], reads: set[str], writes: set[str], after: tuple[int, ...] = ()
) -> Step:
    """Return a step without a queue: `Program.check` then relies on `after` alone."""
    buffers = {name: name for name in reads}
    name, written = work.__name__, frozenset(writes)
    return Step(name, 0, "", buffers=buffers, writes=written, after=after, work=work)
