"""A training step as a program: the declared reads and writes are true, and are checked."""

from dataclasses import replace

import numpy as np
import pytest

from accelviz import layers
from accelviz.devices import find_device
from accelviz.errors import PartitionError
from accelviz.layers import MODELS, Adam, Network, Products
from accelviz.layers.train import Run
from accelviz.plans.program import Program
from tests.compilers import needs_compiler
from tests.test_training import SMALL

#: Names of steps that must wait for another step.
ORDERED = [
    *(("forward", "loss"), ("loss", "backward"), ("backward", "optimiser")),
    ("optimiser", "count"),
]


def run_of(model="gcn", device="cpu"):
    options = {**MODELS[model].options, "hidden": 4, "dropout": 0.5}
    built = MODELS[model].build(12, 2, **options)
    network = Network(built, SMALL.graph, Products(device=device), input_dropout=0.5)
    return Run(network, SMALL, Adam(0.01), 0.0, "all")


def lasting(run):
    network = run.network
    arrays = run.X, network.flat, network.gradient, run.states, network.noise.table
    names = "features", "parameters", "gradient", "states", "random"
    return {name: array.copy() for name, array in zip(names, arrays, strict=True)}


@pytest.mark.parametrize("model", MODELS)
def test_steps_read_and_write_what_they_declare(model):
    run = run_of(model)
    values = {}
    for step in run.program.steps:
        before, seen = lasting(run), {name: values[name] for name in step.touched & {*values}}
        step.work(seen)
        values |= seen
        after = lasting(run)
        changed = {name for name in after if not np.array_equal(after[name], before[name])}
        assert changed <= step.writes, step.name
        assert {*seen} <= step.touched, step.name
    assert "loss" in values


def without(program, name, earlier):
    """Return the program with a step that does not wait for an earlier one."""
    steps = program.steps
    number = next(n for n, step in enumerate(steps) if step.name == earlier)
    return Program(
        tuple(
            replace(step, after=tuple(n for n in step.after if n != number))
            if step.name == name
            else step
            for step in steps
        ),
        program.buffers,
    )


@pytest.mark.parametrize(("earlier", "name"), ORDERED)
def test_a_missing_barrier_is_named(earlier, name):
    run = run_of()
    with pytest.raises(PartitionError, match="a barrier between them"):
        without(run.program, name, earlier)


def test_every_step_waits_for_the_one_before():
    program = run_of().program
    assert {tuple(program.order(seed)) for seed in range(20)} == {tuple(range(len(program.steps)))}


@needs_compiler
def test_the_emulator_runs_a_step_in_a_random_order(monkeypatch):
    orders, emulator = [], find_device("emulator")
    monkeypatch.setattr(emulator, "seed", 3)
    step_order = type(emulator).step_order
    monkeypatch.setattr(
        type(emulator),
        "step_order",
        lambda device, program: orders.append(step_order(device, program)) or orders[-1],
    )
    options = {"epochs": 1, "hidden": 4, "progress": False}
    emulated = layers.train("gcn", SMALL, device="emulator", **options)
    usual = layers.train("gcn", SMALL, device="cpu", **options)
    assert orders[0] == run_of().program.order(3)
    np.testing.assert_allclose(emulated.history.loss, usual.history.loss, atol=1e-4)
