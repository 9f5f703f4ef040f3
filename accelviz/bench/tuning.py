"""`tune`: settings chosen by measuring, with what that cost."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from accelviz.analysis.accuracy import Oracle
from accelviz.bench.checks import check, features, random_weights
from accelviz.bench.harness import executor_for
from accelviz.errors import AccelvizError, ArgumentError
from accelviz.executors.base import Executor
from accelviz.executors.storage import restored, stored
from accelviz.records import parameters_text
from accelviz.strategies import Plan, Strategy, find_strategy

_WARMUP = 2


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
    """

    plan: Plan
    table: pd.DataFrame
    seconds: float
    start_us: float
    best_us: float

    def __repr__(self) -> str:
        return (
            f"Tuned({self.plan!r}: {self.start_us:,.1f} -> {self.best_us:,.1f} us, "
            f"{len(self.table)} settings in {self.seconds:.1f} s)"
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
    strategy: Strategy | None = None,
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
    strategy : Strategy, optional
        The strategy, where it is a class of your own that is not in the registry.
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
    >>> found = accelviz.tune(start, {"max_block_warps": [4, 8]}, device="cpu", repeats=3)
    >>> list(found.table["parameter"])
    ['', 'max_block_warps', 'max_block_warps']
    """
    begin = time.perf_counter()
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
        raise ArgumentError("repeats", f"got {repeats!r}", "an integer of at least 1")
    found = strategy or find_strategy(plan.strategy)
    offered = found.choices(plan.graph, plan.n_cols) if choices is None else choices
    wanted = {name: list(values) for name, values in offered.items()}
    if not any(wanted.values()):
        raise ArgumentError("choices", f"{plan.strategy!r} offers none", "{parameter: values}")
    known = found.defaults()
    for name in wanted:
        if name not in known:
            raise ArgumentError("choices", f"{name!r} is no parameter", ", ".join(known) or "none")
    trial = _Trial(plan, found, executor_for(device), repeats)

    # A parameter that follows from others is the strategy's to choose again, unless it is varied.
    best: dict[str, Any] = {}
    start = best_us = trial.measured("", best)
    for name, values in wanted.items():
        for value in values:
            attempt = {**best, name: value}
            median = trial.measured(name, attempt)
            if median < best_us:
                best, best_us = attempt, median
                trial.keep()
    if not np.isfinite(best_us):
        raise ArgumentError("choices", "none of the settings could run", "others")
    fastest = found.plan(plan.graph, plan.n_cols, **{**trial.given, **best})
    table = pd.DataFrame(trial.rows)
    return Tuned(fastest, table, time.perf_counter() - begin, start, best_us)


class _Trial:
    """Checks and times settings on one graph, with random weights."""

    def __init__(self, plan: Plan, strategy: Strategy, executor: Executor, repeats: int) -> None:
        self.rows: list[dict[str, Any]] = []
        # The plan's parameters are what its strategy chose; only what differs from a plan without
        # any was the caller's wish.
        own = strategy.plan(plan.graph, plan.n_cols).parameters
        self.given = {k: v for k, v in plan.parameters.items() if own.get(k) != v}
        self._strategy, self._executor, self._repeats = strategy, executor, repeats
        self._n_cols = plan.n_cols
        self._graph = random_weights(plan.graph)
        X = restored(stored(features(plan.graph.shape[1], plan.n_cols), plan.storage), plan.storage)
        self._oracle = Oracle(self._graph, X).moved(executor.to_device)
        self._X = executor.to_device(X)

    def measured(self, parameter: str, setting: Mapping[str, Any]) -> float:
        """Return the median in microseconds, infinity where the setting cannot run."""
        text, no_time = parameters_text(setting), float("inf")
        row: dict[str, Any] = {"parameter": parameter, "parameters": text, "best": False}
        row |= {"median_us": no_time, "problem": ""}
        try:
            plan = self._strategy.plan(self._graph, self._n_cols, **{**self.given, **setting})
            row["parameters"] = parameters_text(plan.parameters)
            ready = self._executor.prepare(plan)
            check(ready, self._X, self._oracle)
            low, median, high = np.percentile(
                ready.seconds(self._X, self._repeats, _WARMUP) * 1e6, [25, 50, 75]
            )
            row |= {"quartile1_us": low, "median_us": median, "quartile3_us": high}
        except AccelvizError as error:
            if not parameter:
                raise
            row["problem"] = str(error)
        self.rows.append(row)
        if not parameter:
            self.keep()
        return float(row["median_us"])

    def keep(self) -> None:
        """Mark the last setting as the best so far."""
        for row in self.rows:
            row["best"] = False
        self.rows[-1]["best"] = True
