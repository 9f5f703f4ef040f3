"""Correctness checks: random signed inputs, and comparison of results with float64."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.devices.ready_plan import ReadyPlan
from accelviz.errors import KernelError, check_fits
from accelviz.graph import Graph, Pattern
from accelviz.measure.accuracy import Oracle
from accelviz.plans import Operation, Plan


def features(rows: int, n_cols: int, seed: int = 0) -> npt.NDArray[np.float32]:
    """Return random signed features, float32, shape (rows, n_cols)."""
    check_fits("n_cols", f"{rows:,} x {n_cols:,} features", 4 * rows * n_cols, "fewer columns")
    return np.random.default_rng(seed).standard_normal((rows, n_cols), dtype=np.float32)


def random_inputs(
    operation: Operation, pattern: Pattern, widths: Mapping[str, int], seed: int = 0
) -> list[npt.NDArray[Any]]:
    """Return random dense inputs of an operation, in order: signed floats, or random integers."""
    check_operands_fit(operation, pattern, widths)
    rng, sizes = np.random.default_rng(seed), operation.sizes(pattern, widths)
    inputs: dict[str, npt.NDArray[Any]] = {}
    for operand in operation.dense:
        shape = operand.shape(sizes)
        if operand.dtype == np.float32:
            inputs[operand.name] = rng.standard_normal(shape, dtype=np.float32)
        else:
            ends = np.iinfo(operand.dtype)
            inputs[operand.name] = rng.integers(
                ends.min, ends.max, shape, operand.dtype, endpoint=True
            )
    if operation.completed is not None:
        inputs |= operation.completed(pattern, inputs)
    return [*inputs.values()]


def check_operands_fit(operation: Operation, pattern: Pattern, widths: Mapping[str, int]) -> None:
    """Raise an ArgumentError if the operands, and their check in float64, exceed the memory."""
    sizes = operation.sizes(pattern, widths)
    inputs = sum(math.prod(operand.shape(sizes)) for operand in operation.dense)
    outputs = sum(math.prod(operand.shape(sizes)) for operand in operation.outputs)
    problem = ", ".join(f"{name} = {size:,}" for name, size in widths.items())
    problem += f" for {pattern.shape[0]:,} x {pattern.shape[1]:,}"
    # In float32 and float64, and for outputs the bound of the error, too.
    check_fits(next(iter(widths)), problem, 12 * inputs + 20 * outputs, "smaller numbers")


def poison(array: Any) -> None:
    """Fill an output with NaN, or the largest integer, so that missing writes are detected."""
    array.fill(np.nan if array.dtype.kind == "f" else np.iinfo(array.dtype).max)


def random_weights(graph: Graph, seed: int = 0) -> Graph:
    """Return the graph with random signed edge weights; equal weights would hide some errors."""
    weights = np.random.default_rng(seed).standard_normal(graph.nnz, dtype=np.float32)
    return graph.with_values(weights)


def check(plan: Plan, ready: ReadyPlan, operands: Mapping[str, Any], oracle: Oracle) -> float:
    """Run a plan twice, into outputs filled with NaN, and check the results.

    Parameters
    ----------
    plan : Plan
    ready : ReadyPlan
        The plan, prepared on a device.
    operands : mapping of str to array
        Inputs by name, on the host or on the device.
    oracle : Oracle
        Expected result. An oracle on the device avoids a copy of the result to the host.

    Returns
    -------
    float
        Larger of the two errors, divided by the bound.

    Raises
    ------
    KernelError
        If the error is above 1: the result is wrong.
    """
    worst = 0.0
    inputs, out = ready.placed(operands), ready.outputs()
    for _ in range(2):
        for array in out.values():
            poison(array)
        result = ready.run(inputs, out)
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
