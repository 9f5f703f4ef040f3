"""`benchmark`: strategies on graphs, timed by the same rules for everybody.

The ten rules of fair timing, and where they are kept: every kernel of a call is inside the timing,
clearing too, and nothing is allocated there (`ReadyPlan.seconds`); warm and cold medians with
quartiles; one graph, vertex order, dtype and weights for all strategies; preprocessing beside the
times (`setup_us`); cuSPARSE is the fastest of its algorithms; every result is held to float64
first; each graph has a row of its own.
"""

from __future__ import annotations

import datetime
import hashlib
import itertools
import os
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from accelviz.datasets import load_graph
from accelviz.devices import Device, choose
from accelviz.devices.base import Limits
from accelviz.errors import AccelvizError, ArgumentError, DeviceUnavailable, checked_integer
from accelviz.graph import Graph
from accelviz.measure.accuracy import Oracle
from accelviz.measure.checks import check, random_inputs, random_weights
from accelviz.measure.limits import limits
from accelviz.measure.records import (
    Measurement,
    append,
    hardware,
    parameters_text,
    result_table,
    settings_text,
    source_commit,
)
from accelviz.plans import Operation, Plan, Strategy
from accelviz.plans.storage import STORAGE_BYTES
from accelviz.strategies import find_strategy, operation_of, strategies

#: The column counts that the papers compare at.
COLUMNS = (16, 32, 64, 96, 128)
STATES = ("warm", "cold")
#: What makes two rows measurements of the same thing.
KEY = [
    *("hardware", "driver", "cuda", "cupy", "commit", "device"),
    *("graph", "fingerprint", "operation", "strategy", "parameters", "kernel", "columns", "state"),
    "repeats",
]
_WARMUP = 3

Chosen = tuple[Strategy, dict[str, Any]]


def measure(
    plan: Plan, executor: Device, oracle: Oracle, *dense: Any, values: Any = None, repeats: int = 20
) -> Measurement:
    """Check a plan on a device, then time it warm. No check, no time.

    `dense` are the operation's dense inputs in order, `values` weights in place of the graph's own.

    Raises
    ------
    DeviceUnavailable, KernelError
        If the device is not usable or the result is wrong.
    """
    operands = plan.operation.named(*dense, values=values)
    return _measured(plan, executor, oracle, operands, repeats, ("warm",), {})[0]


def benchmark(
    graphs: Any,
    strategies: Any = None,
    n_cols: int | Iterable[int] = COLUMNS,
    device: str = "auto",
    *,
    operation: str | Operation | None = None,
    repeats: int = 20,
    states: Sequence[str] = STATES,
    path: str | os.PathLike[str] | None = None,
    progress: bool = True,
    on_error: str = "raise",
    **widths: int,
) -> pd.DataFrame:
    """Time strategies on graphs, the same way for everybody, after checking every result.

    Parameters
    ----------
    graphs : Graph, anything `load_graph` takes, or an iterable of them
        Their weights are replaced by random signed ones, the same for every strategy; a generator
        is read one graph at a time. Of different graphs of one name, such as two matrices, the
        second is called "matrix 2" in the table.
    strategies : str, Strategy, (strategy, parameters), or an iterable of them, optional
        Such as `["cusparse", ("gnnadvisor", {"ngs": 32}), MyStrategy()]`. All that the device can
        run if not given.
    n_cols : int or iterable of int
        Columns of the features.
    device : {"auto", "cuda", "cpu", "emulator"}
        "auto" takes the GPU, or without one the CPU. Times of "cpu" are those of a replay of plans,
        in which no kernel runs, so that none is checked; "emulator" checks the kernels themselves,
        slowly. Neither time says anything about a GPU. The columns `device` and `hardware` say
        which it was.
    operation : {"spmm", "sddmm"}, optional
        If not given, what the first strategy object computes, or "spmm".
    repeats : int
        Timed runs of each case, at least 1.
    states : sequence of {"warm", "cold"}
        "cold" flushes the last cache before each run.
    path : str or PathLike, optional
        A CSV that each row is added to as soon as it is measured. What is there already (by `KEY`:
        the machine, the commit, the kernel's source, the graph, the strategy, the columns) is not
        measured again, so that an interrupted run goes on. A change of a strategy's Python in an
        uncommitted tree does not show in the key; take a new path then.
    progress : bool
        Show a progress bar.
    on_error : {"raise", "record"}
        Whether a wrong result, or a case the device has no memory for, ends the run or becomes a
        row without a time whose column `problem` says what happened.
    **widths
        Further widths of the operation, such as `heads` of "sddmm".

    Returns
    -------
    DataFrame
        A row for each graph, strategy, column count and state: times in microseconds (`median_us`,
        `quartile1_us`, `quartile3_us`), preprocessing (`setup_us`), the error over its bound, and
        on a GPU the limits of `measure.limits` measured in the same run. `run` is the time the
        call began: ratios belong inside one run.

    Raises
    ------
    GraphError, ArgumentError, PartitionError
        If a graph, a strategy, a parameter or another argument does not fit.
    DeviceUnavailable
        If the device is not usable, or cannot run a strategy that was asked for.
    KernelError
        If a result is wrong, unless `on_error="record"`.

    Examples
    --------
    >>> import accelviz
    >>> table = accelviz.benchmark("cora", "graphblast", 32, "cpu", repeats=3, progress=False)
    >>> table[["graph", "strategy", "columns", "state"]].values.tolist()
    [['cora', 'graphblast', 32, 'warm'], ['cora', 'graphblast', 32, 'cold']]
    """
    executor = choose(device, timed=True)
    executor.require()
    asked = _asked(strategies)
    operation = operation_of([strategy for strategy, _ in asked or ()], operation)
    columns = _columns(n_cols)
    _check_options(repeats, states, on_error)
    chosen = _chosen(asked, executor, operation)
    run = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    known = _known(path)
    names = {key[KEY.index("graph")]: key[KEY.index("fingerprint")] for key in known}
    rows: list[dict[str, Any]] = []
    machine: Limits | None = None
    timed = "GPU" if executor.name == "cuda" else f"{executor.name}, no GPU"
    bar = tqdm(disable=not progress, unit="case", desc=f"timing the {timed}")
    bar.total = 0
    for source in _several(graphs):
        graph = _named_apart(random_weights(load_graph(source)), names)
        bar.total += len(columns) * len(chosen)
        identity = {
            "run": run,
            **hardware(executor.name),
            "date": run[:10],
            "commit": source_commit(),
            "device": executor.name,
            "graph": graph.name,
            "graph_kind": graph.kind,
            "fingerprint": names[graph.name],
            "rows": graph.n_rows,
            "nonzeros": graph.nnz,
            "operation": operation.name,
            "repeats": repeats,
        }
        case = Case(graph, executor, operation, max(columns))
        for d, (strategy, parameters) in itertools.product(columns, chosen):
            bar.set_postfix_str(f"{graph.name}, {strategy.name}, {d}")
            row = {**identity, "strategy": strategy.name, "columns": d}
            try:
                plan = strategy.plan(graph, d, **widths, **parameters)
                row |= {"parameters": settings_text(plan), "kernel": kernel_digest(plan)}
                wanted = [state for state in states if _key({**row, "state": state}) not in known]
                if wanted:
                    machine = machine or executor.limits()
                    times = case.measured(plan, repeats, wanted, machine)
                    new = [{**row, **time.row(), "problem": ""} for time in times]
                else:
                    new = []
            except AccelvizError as error:
                if on_error == "raise" or isinstance(error, ArgumentError):
                    bar.close()
                    raise
                row |= {"parameters": parameters_text(parameters), "kernel": None}
                new = [{**row, "problem": str(error)}]
            rows += new
            if path is not None and new:
                append(new, path)
            bar.update()
    bar.close()
    # If nothing was asked for, nothing was written.
    exists = path is not None and Path(path).exists()
    return pd.read_csv(path) if exists else result_table(rows)


class Case:
    """One graph with its inputs and its oracle, which strategies and column counts share."""

    def __init__(
        self, graph: Graph, executor: Device, operation: Operation, most_columns: int
    ) -> None:
        self.graph = graph
        self._executor, self._operation = executor, operation
        self._most_columns = most_columns
        self._inputs: dict[Any, dict[str, Any]] = {}
        self._oracles: dict[Any, Oracle] = {}
        self._limits: dict[Any, dict[str, float]] = {}

    def measured(
        self,
        plan: Plan,
        repeats: int,
        states: Sequence[str] = ("warm",),
        machine: Limits | None = None,
    ) -> list[Measurement]:
        """Check and time a plan of this graph."""
        to_device, operation, storage = self._executor.to_device, self._operation, plan.storage
        widths = dict(plan.widths)
        if operation.independent:  # the widest serves all
            widths[operation.independent] = self._most_columns
        key = tuple(widths.values())
        if (key, storage) not in self._oracles:
            host = operation.named(*random_inputs(operation, self.graph.pattern, widths))
            if not operation.independent:  # no other column count will want them
                self._inputs.clear()
                self._oracles.clear()
            if key not in self._inputs:
                self._inputs[key] = {name: to_device(array) for name, array in host.items()}
            # Of the inputs as they are kept: their rounding is no mistake of the kernel.
            rounded = operation.rounded(host, storage)
            oracle = Oracle(self.graph, *rounded.values(), operation=operation)
            self._oracles[key, storage] = oracle.moved(to_device)
        size = (*plan.widths.values(), storage)
        if machine is not None and size not in self._limits:
            element = STORAGE_BYTES[storage]
            self._limits[size] = limits(operation, plan.pattern, plan.widths, machine, element)
        inputs = {
            operand.name: _cut(self._inputs[key][operand.name], operand.shape(plan.sizes))
            for operand in operation.dense
        }
        oracle, bounds = self._oracles[key, storage], self._limits.get(size, {})
        return _measured(plan, self._executor, oracle, inputs, repeats, states, bounds)


def _cut(array: Any, shape: tuple[int, ...]) -> Any:
    """Return the first elements of an array along each axis, contiguous."""
    return array if array.shape == shape else array[tuple(slice(n) for n in shape)].copy()


def _measured(
    plan: Plan,
    executor: Device,
    oracle: Oracle,
    operands: dict[str, Any],
    repeats: int,
    states: Sequence[str],
    limits: Mapping[str, float],
) -> list[Measurement]:
    start = time.perf_counter()
    ready = executor.prepare(plan)
    prepare_seconds = time.perf_counter() - start
    error = check(plan, ready, operands, oracle)
    return [
        Measurement(
            plan,
            executor.name,
            ready.seconds(operands, repeats, _WARMUP, cold=state == "cold"),
            error,
            state=state,
            device_setup_seconds=ready.setup_seconds,
            prepare_seconds=prepare_seconds,
            variant=ready.variant,
            limits=limits,
        )
        for state in states
    ]


def fingerprint(graph: Graph) -> str:
    """Return a checksum of a graph's structure, 8 hexadecimal digits."""
    pointers = zlib.crc32(np.ascontiguousarray(graph.row_pointers).data)
    return f"{zlib.crc32(np.ascontiguousarray(graph.column_indices).data, pointers):08x}"


def kernel_digest(plan: Plan) -> str:
    """Return a checksum of a plan's CUDA sources and constants; empty where it has none."""
    kernels = [call.kernel for _, call in plan.part_calls if call.kernel is not None]
    content = [(kernel.configured_source(), sorted(kernel.defines.items())) for kernel in kernels]
    text = repr(content[0] if len(content) == 1 else content)
    return hashlib.sha256(text.encode()).hexdigest()[:8] if content else ""


def _columns(n_cols: int | Iterable[int]) -> list[int]:
    columns = list(n_cols) if isinstance(n_cols, Iterable) else [n_cols]
    if not columns or not all(isinstance(d, int | np.integer) and d >= 1 for d in columns):
        raise ArgumentError("n_cols", f"got {n_cols!r}", "column counts of at least 1")
    return [int(d) for d in columns]


def _check_options(repeats: int, states: Sequence[str], on_error: str) -> None:
    checked_integer("repeats", repeats, error=ArgumentError)
    if isinstance(states, str) or not states or not set(states) <= set(STATES):
        raise ArgumentError("states", f"got {states!r}", "some of " + ", ".join(STATES))
    if on_error not in ("raise", "record"):
        raise ArgumentError("on_error", f"got {on_error!r}", "raise, record")


def _several(graphs: Any) -> Iterable[Any]:
    """Tell one graph from several: a list of pairs is an `edge_index`, not several graphs."""
    several = isinstance(graphs, list | tuple | range) or (
        hasattr(graphs, "__next__") and not hasattr(graphs, "shape")
    )
    return graphs if several else [graphs]


def _named_apart(graph: Graph, names: dict[str, str]) -> Graph:
    """Return a graph under a name that stands for no other pattern in `names`."""
    checksum, name = fingerprint(graph), graph.name
    for number in itertools.count(2):
        if names.setdefault(name, checksum) == checksum:
            break
        name = f"{graph.name} {number}"
    return replace(graph, name=name)


def _asked(wanted: Any) -> list[tuple[Any, dict[str, Any]]] | None:
    """Return strategies with their parameters as the caller named them; None for all there are."""
    if wanted is None:
        return None
    pair = isinstance(wanted, tuple) and len(wanted) == 2 and isinstance(wanted[1], dict)
    several = [wanted] if pair or isinstance(wanted, str | Strategy) else wanted
    return [entry if isinstance(entry, tuple) else (entry, {}) for entry in several]


def _chosen(asked: Any, executor: Device, operation: Operation) -> list[Chosen]:
    """Return strategy objects with their parameters, refusing what the device cannot run."""
    tiny = Graph(
        np.array([0, 1]), np.zeros(1, np.int32), np.ones(1, np.float32), (1, 1), "one nonzero"
    )
    every = asked if asked is not None else [(name, {}) for name in strategies(operation.name)]
    chosen = []
    for name, parameters in every:
        strategy = find_strategy(name, operation)
        problem = executor.unavailable_reason(strategy.plan(tiny, 1, **parameters))
        if problem is None:
            chosen.append((strategy, dict(parameters)))
        elif asked is not None:
            raise DeviceUnavailable(f"device {executor.name!r}", problem, "another strategy")
    return chosen


def _known(path: str | os.PathLike[str] | None) -> set[tuple[str, ...]]:
    if path is None or not Path(path).exists():
        return set()
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    if not set(KEY) <= set(table.columns):
        raise ArgumentError("path", f"{path} has other columns", "a new file")
    done = table[table["median_us"] != ""]
    return {_key(row) for row in done.to_dict("records")}


def _key(row: dict[Any, Any]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in KEY)
