"""`tune`: select the parameters of a strategy by measuring them on a graph."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from accelviz import markup
from accelviz.devices import choose
from accelviz.errors import AccelvizError, ArgumentError, checked_integer
from accelviz.graph import Graph
from accelviz.measure.checks import random_weights
from accelviz.measure.harness import GraphBench
from accelviz.measure.records import parameters_text
from accelviz.plans import Plan

#: Number of settings that a notebook displays.
_MOST_BARS = 8


@dataclass(frozen=True, eq=False)
class Tuned:
    """Result of `tune`.

    Attributes
    ----------
    plan : Plan
        Fastest plan, with the caller's graph and weights.
    table : DataFrame
        One record per measured setting, in order: `parameter` (name of the varied parameter, "" for
        the start), `parameters`, `median_us`, `quartile1_us`, `quartile3_us`, `best` (True for the
        fastest) and `problem` (error message of a setting that failed, else "").
    seconds : float
        Wall-clock time of the search: planning, compiling, checking, measuring.
    start_us, best_us : float
        Median times of the initial and of the fastest plan, in microseconds.
    device : str
        Name of the device. "cpu" times a replay of plans, unrelated to times of a GPU.
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

    def _repr_html_(self) -> str:
        faster = self.start_us / self.best_us
        sentence = f"tuned for {self.plan.pattern.name} on {self.device}: {self.start_us:,.1f} -> "
        sentence += f"{self.best_us:,.1f} µs a run, {faster:.2f} times as fast"
        search = f"{len(self.table)} settings in {self.seconds:.2g} s"
        if faster > 1:
            search += f", repaid after {self.pays_after:,.0f} runs"
        parameters = self.plan.parameters.items()
        facts = [
            ("fastest", ", ".join(f"{name} = {value}" for name, value in parameters)),
            ("search", search),
        ]
        if self.device == "cpu":
            facts.append(("times", "of a replay on the CPU, unrelated to those of a GPU"))
        ranked = self.table[self.table["problem"] == ""].nsmallest(_MOST_BARS, "median_us")
        settings = [text.split() for text in ranked["parameters"]]
        common = set.intersection(*map(set, settings))
        labels = [", ".join(text for text in texts if text not in common) for texts in settings]
        times = [(time, f"{time:,.1f} µs") for time in ranked["median_us"]]
        bars = [(label, *time) for label, time in zip(labels, times, strict=True)]
        return markup.summary(self.plan.name, sentence, facts, bars, "fastest settings")

    @property
    def pays_after(self) -> float:
        """Number of products whose saved time equals the search time; infinity without a gain."""
        saved = (self.start_us - self.best_us) * 1e-6
        return self.seconds / saved if saved > 0 else float("inf")


def tune(
    plan: Plan,
    choices: Mapping[str, Iterable[Any]] | None = None,
    *,
    device: str = "auto",
    repeats: int = 7,
) -> Tuned:
    """Measure settings of a plan's strategy on its graph, and return the fastest.

    The search is a coordinate descent: it varies one parameter after the other, with the best
    values of the parameters before it.

    Parameters
    ----------
    plan : Plan
        Initial setting.
    choices : mapping of str to iterable, optional
        Parameters in search order, with the values to measure. The default is
        `Strategy.choices`.
    device : {"auto", "cuda", "cpu"}
    repeats : int
        Number of timed warm runs of each setting. The setting with the smallest median is selected.

    Returns
    -------
    Tuned

    Raises
    ------
    ArgumentError
        If there is no value to try, or the strategy has no such parameter.
    DeviceUnavailable, KernelError
        If the device is not usable or a result is wrong.

    Notes
    -----
    The result of each setting is checked against float64 before it is timed, with the same random
    weights for all settings. The returned plan has the caller's weights.

    Examples
    --------
    >>> import accelviz
    >>> start = accelviz.plan("cora", "accel_gcn", 16)
    >>> tuned = accelviz.tune(start, {"max_block_warps": [4, 8]}, device="cpu", repeats=3)
    >>> list(tuned.table["parameter"])
    ['', 'max_block_warps', 'max_block_warps']
    """
    begin_time = time.perf_counter()
    if not isinstance(plan, Plan):
        raise ArgumentError("plan", f"got a {type(plan).__name__}", "what accelviz.plan returns")
    checked_integer("repeats", repeats, error=ArgumentError)
    pattern, weights = plan.pattern, plan.provenance.values  # noqa: PD011
    if weights is None:
        raise ArgumentError("plan", "its matrix lies on the GPU", "one of a graph on the host")
    arrays = pattern.row_pointers, pattern.column_indices, weights
    graph = Graph(*arrays, pattern.shape, pattern.name)
    if choices is None:
        choices = plan.strategy.choices(graph, plan.n_cols)
    candidates = {name: list(values) for name, values in choices.items()}
    if not any(candidates.values()):
        raise ArgumentError("choices", f"{plan.name!r} offers none", "{parameter: values}")
    known = plan.strategy.parameters
    for name in candidates:
        if name not in known:
            raise ArgumentError("choices", f"{name!r} is no parameter", ", ".join(known) or "none")
    executor = choose(device, timed=True)
    executor.require()
    # Keep only the parameters that differ from the strategy's own choice: the caller set these.
    # The strategy chooses the others again in each setting, because they may depend on it.
    own_choice = plan.strategy.plan(graph, **plan.widths).parameters
    set_by_caller = {k: v for k, v in plan.parameters.items() if own_choice.get(k) != v}
    fixed = {**plan.widths, **set_by_caller}
    weighted = random_weights(graph)
    bench = GraphBench(weighted, executor, plan.operation, plan.n_cols)
    rows: list[dict[str, Any]] = []

    def measure(parameter: str, setting: Mapping[str, Any]) -> float:
        """Add a record to `rows`; return its median in microseconds, infinity on an error."""
        row = {"parameter": parameter, "parameters": parameters_text(setting), "best": False}
        rows.append(row | {"median_us": float("inf"), "problem": ""})
        try:
            trial = plan.strategy.plan(weighted, **{**fixed, **setting})
            rows[-1]["parameters"] = parameters_text(trial.parameters)
            (measurement,) = bench.measure(trial, repeats)
            low, high = (1e6 * seconds for seconds in measurement.quartiles)
            median = 1e6 * measurement.median
            rows[-1] |= {"quartile1_us": low, "median_us": median, "quartile3_us": high}
        except AccelvizError as error:
            if not parameter:
                raise
            rows[-1]["problem"] = str(error)
        return float(rows[-1]["median_us"])

    best: dict[str, Any] = {}
    start_us = best_us = measure("", best)
    best_row = rows[0]
    for name, values in candidates.items():
        for value in values:
            setting = {**best, name: value}
            median = measure(name, setting)
            if median < best_us:
                best, best_us, best_row = setting, median, rows[-1]
    if not np.isfinite(best_us):
        raise ArgumentError("choices", "none of the settings could run", "others")
    best_row["best"] = True
    fastest = plan.strategy.plan(graph, **{**fixed, **best})
    seconds = time.perf_counter() - begin_time
    return Tuned(fastest, pd.DataFrame(rows), seconds, start_us, best_us, executor.name)
