"""`tune`: settings chosen by measuring, with what that cost."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from accelviz.devices import choose
from accelviz.errors import AccelvizError, ArgumentError, checked_integer
from accelviz.graph import Graph
from accelviz.measure.checks import random_weights
from accelviz.measure.harness import Case
from accelviz.measure.records import parameters_text
from accelviz.plans import Plan


@dataclass(frozen=True, eq=False)
class Tuned:
    """What `tune` found.

    Attributes
    ----------
    plan : Plan
        The fastest, of the caller's graph.
    table : DataFrame
        Every setting that was tried, in order: `parameter` that was varied ("" for the start),
        `parameters`, `median_us`, `quartile1_us`, `quartile3_us`, `best` (whether it was kept), and
        `problem` where one could not run.
    seconds : float
        Wall-clock time of the whole search: planning, compiling, checking, measuring.
    start_us, best_us : float
        Median times of the plan at the start and of the best.
    device : str
        What was timed. On "cpu" it was the replay of plans, which says nothing of a GPU.
    """

    plan: Plan
    table: pd.DataFrame
    seconds: float
    start_us: float
    best_us: float
    device: str

    def __repr__(self) -> str:
        return (
            f"Tuned({self.plan!r}: {self.start_us:,.1f} -> {self.best_us:,.1f} us "
            f"on {self.device}, {len(self.table)} settings in {self.seconds:.1f} s)"
        )

    @property
    def pays_after(self) -> float:
        """Products after which the search has paid for itself; infinity if nothing was gained."""
        gained = (self.start_us - self.best_us) * 1e-6
        return self.seconds / gained if gained > 0 else float("inf")


def tune(
    plan: Plan,
    choices: Mapping[str, Iterable[Any]] | None = None,
    *,
    device: str = "auto",
    repeats: int = 7,
) -> Tuned:
    """Measure other settings of a plan's strategy on its graph, and keep the fastest.

    Parameters
    ----------
    plan : Plan
        Where the search begins.
    choices : mapping of str to iterable, optional
        Values to try for each parameter, in the order in which they are varied: each parameter by
        itself, with the best values of those before it. The strategy's own (`Strategy.choices`) if
        not given.
    device : {"auto", "cuda", "cpu"}
    repeats : int
        Timed runs of each setting, warm; a setting replaces the best if its median is smaller.

    Returns
    -------
    Tuned

    Raises
    ------
    ArgumentError
        If there is nothing to choose from, or a parameter is not the strategy's.
    DeviceUnavailable, KernelError
        If the device is not usable or a result is wrong.

    Notes
    -----
    Every setting's result is held to float64 before it is timed. Weights are random for that, so
    that all settings multiply the same; the plan that is returned has the caller's.

    Examples
    --------
    >>> import accelviz
    >>> start = accelviz.plan("cora", "accel_gcn", 16)
    >>> tuned = accelviz.tune(start, {"max_block_warps": [4, 8]}, device="cpu", repeats=3)
    >>> list(tuned.table["parameter"])
    ['', 'max_block_warps', 'max_block_warps']
    """
    begin = time.perf_counter()
    if not isinstance(plan, Plan):
        raise ArgumentError("plan", f"got a {type(plan).__name__}", "what accelviz.plan returns")
    checked_integer("repeats", repeats, error=ArgumentError)
    pattern, weights = plan.pattern, plan.provenance.values  # noqa: PD011
    if weights is None:
        raise ArgumentError("plan", "its matrix lies on the GPU", "one of a graph on the host")
    arrays = pattern.row_pointers, pattern.column_indices, weights
    graph = Graph(*arrays, pattern.shape, pattern.name)
    offered = plan.strategy.choices(graph, plan.n_cols) if choices is None else choices
    wanted = {name: list(values) for name, values in offered.items()}
    if not any(wanted.values()):
        raise ArgumentError("choices", f"{plan.name!r} offers none", "{parameter: values}")
    known = plan.strategy.parameters
    for name in wanted:
        if name not in known:
            raise ArgumentError("choices", f"{name!r} is no parameter", ", ".join(known) or "none")
    executor = choose(device, timed=True)
    executor.require()
    # The plan's parameters are what its strategy chose; only what differs from a plan without any
    # was the caller's wish. A parameter that follows from others is chosen anew in each setting.
    chosen = plan.strategy.plan(graph, **plan.widths).parameters
    differing = {k: v for k, v in plan.parameters.items() if chosen.get(k) != v}
    wishes = {**plan.widths, **differing}
    weighted = random_weights(graph)
    case = Case(weighted, executor, plan.operation, plan.n_cols)
    rows: list[dict[str, Any]] = []

    def measured(parameter: str, setting: Mapping[str, Any]) -> float:
        """Return the median in microseconds, infinity where the setting cannot run."""
        row = {"parameter": parameter, "parameters": parameters_text(setting), "best": False}
        rows.append(row | {"median_us": float("inf"), "problem": ""})
        try:
            trial = plan.strategy.plan(weighted, **{**wishes, **setting})
            rows[-1]["parameters"] = parameters_text(trial.parameters)
            (measurement,) = case.measured(trial, repeats)
            low, high = (1e6 * seconds for seconds in measurement.quartiles)
            median = 1e6 * measurement.median
            rows[-1] |= {"quartile1_us": low, "median_us": median, "quartile3_us": high}
        except AccelvizError as error:
            if not parameter:
                raise
            rows[-1]["problem"] = str(error)
        return float(rows[-1]["median_us"])

    best: dict[str, Any] = {}
    start = best_us = measured("", best)
    best_row = rows[0]
    for name, values in wanted.items():
        for value in values:
            attempt = {**best, name: value}
            median = measured(name, attempt)
            if median < best_us:
                best, best_us, best_row = attempt, median, rows[-1]
    if not np.isfinite(best_us):
        raise ArgumentError("choices", "none of the settings could run", "others")
    best_row["best"] = True
    fastest = plan.strategy.plan(graph, **{**wishes, **best})
    seconds = time.perf_counter() - begin
    return Tuned(fastest, pd.DataFrame(rows), seconds, start, best_us, executor.name)
