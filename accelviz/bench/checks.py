"""Checks first, then times: what may be said about a plan on a device."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from accelviz.analysis.accuracy import Oracle
from accelviz.errors import KernelError
from accelviz.executors import Executor
from accelviz.executors.base import ReadyPlan
from accelviz.records import Measurement
from accelviz.strategies import Plan


def features(rows: int, n_cols: int, seed: int = 0) -> npt.NDArray[np.float32]:
    """Return random signed features, float32, shape (rows, n_cols); never ones."""
    return np.random.default_rng(seed).standard_normal((rows, n_cols), dtype=np.float32)


def check(ready: ReadyPlan, X: npt.NDArray[np.float32], oracle: Oracle) -> float:
    """Run a plan twice into an output poisoned with NaN and hold it to the error bound.

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
    for _ in range(2):
        out = np.full((ready.plan.graph.shape[0], ready.plan.n_cols), np.nan, dtype=np.float32)
        worst = max(worst, oracle.error(ready.multiply(X, out)))
    if not worst <= 1.0:
        raise KernelError(
            ready.plan.strategy,
            f"wrong result on {ready.plan.graph.name!r} with {ready.plan.n_cols} columns: the "
            f"largest error is {worst:.3g} times the bound",
        )
    return worst


def measure(
    plan: Plan, executor: Executor, oracle: Oracle, X: npt.NDArray[np.float32], repeats: int = 20
) -> Measurement:
    """Check a plan on a device, then time it. No check, no time.

    Raises
    ------
    DeviceUnavailable, KernelError
        If the device is not usable or the result is wrong.
    """
    ready = executor.prepare(plan)
    error = check(ready, X, oracle)
    return Measurement(plan, executor.name, ready.seconds(X, repeats=repeats, warmup=3), error)
