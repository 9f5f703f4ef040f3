"""No check, no time: random signed inputs, and results held to float64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.devices.ready_plan import ReadyPlan
from accelviz.errors import KernelError
from accelviz.graph import Graph, Pattern
from accelviz.measure.accuracy import Oracle
from accelviz.plans import Operation, Plan


def features(rows: int, n_cols: int, seed: int = 0) -> npt.NDArray[np.float32]:
    """Return random signed features, float32, shape (rows, n_cols); never ones."""
    return np.random.default_rng(seed).standard_normal((rows, n_cols), dtype=np.float32)


def random_inputs(
    operation: Operation, pattern: Pattern, widths: Mapping[str, int], seed: int = 0
) -> list[npt.NDArray[Any]]:
    """Return random signed dense inputs of an operation, in order; random words of integers."""
    rng, sizes = np.random.default_rng(seed), operation.sizes(pattern, widths)
    inputs: dict[str, npt.NDArray[Any]] = {}
    for operand in operation.dense:
        shape = operand.shape(sizes)
        if operand.dtype == np.float32:
            inputs[operand.name] = rng.standard_normal(shape, dtype=np.float32)
        else:
            inputs[operand.name] = rng.integers(0, 1 << 32, shape, operand.dtype)
    if operation.completed is not None:
        inputs |= operation.completed(pattern, inputs)
    return [*inputs.values()]


def poison(array: Any) -> None:
    """Fill an output with NaN, or with the largest integer, so that a gap in a result is seen."""
    array.fill(np.nan if array.dtype.kind == "f" else np.iinfo(array.dtype).max)


def random_weights(graph: Graph, seed: int = 0) -> Graph:
    """Return the graph with random signed edge weights; weights that are all ones hide mistakes."""
    weights = np.random.default_rng(seed).standard_normal(graph.nnz, dtype=np.float32)
    return graph.with_values(weights)


def check(plan: Plan, ready: ReadyPlan, operands: Mapping[str, Any], oracle: Oracle) -> float:
    """Run a plan twice into outputs poisoned with NaN and hold it to the error bound.

    Parameters
    ----------
    plan : Plan
    ready : ReadyPlan
        The plan on a device.
    operands : mapping of str to array
        Inputs by name, on the host or on the device.
    oracle : Oracle
        Of the same graph, weights and inputs; moved to the device, it spares a copy of the result.

    Returns
    -------
    float
        The larger error, in units of the bound.

    Raises
    ------
    KernelError
        If it is above 1: the result is wrong.
    """
    worst = 0.0
    placed, out = ready.placed(operands), ready.outputs()
    for _ in range(2):
        for array in out.values():
            poison(array)
        result = ready.run(placed, out)
        error = oracle.error(result, plan.arithmetic)
        if not error <= 1.0:
            widths = ", ".join(f"{name} = {size}" for name, size in plan.widths.items())
            raise KernelError(
                plan.name,
                f"wrong result on {plan.pattern.name!r} with {widths}: "
                f"{oracle.first_wrong(result, plan.arithmetic)}; the largest error is {error:.3g} "
                "times the bound",
            )
        worst = max(worst, error)
    return worst
