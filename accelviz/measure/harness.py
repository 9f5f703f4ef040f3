"""`benchmark`: check and time strategies on graphs, under the same rules for all strategies.

The rules of fair timing: the time includes all kernels of a product, also those that zero outputs,
and no allocation (`ReadyPlan.seconds`); times are warm and cold medians with quartiles; all
strategies have the same graph, vertex order, dtype and weights; preprocessing time is reported
(`setup_us`); cuSPARSE runs the fastest of its algorithms; every result is first checked against
float64; each graph has its own records.
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
from accelviz.measure import records
from accelviz.measure.accuracy import Oracle
from accelviz.measure.checks import check, random_inputs, random_weights
from accelviz.measure.limits import limits
from accelviz.measure.records import Measurement
from accelviz.plans import Operation, Plan, Strategy
from accelviz.plans.storage import STORAGE_BYTES
from accelviz.strategies import find_strategy, operation_of, strategies

#: Column counts of the comparisons in the papers.
COLUMNS = (16, 32, 64, 96, 128)
STATES = ("warm", "cold")
#: Columns that identify a measurement: two records with equal values repeat it.
KEY = [
    *("hardware", "driver", "cuda", "cupy", "commit", "device"),
    *("graph", "fingerprint", "operation", "strategy", "parameters", "kernel", "columns", "state"),
    "repeats",
]
_WARMUP = 3  # number of untimed runs
#: A strategy, or its name, with parameters.
Configuration = tuple[Any, dict[str, Any]]


def measure(
    plan: Plan, executor: Device, oracle: Oracle, *dense: Any, values: Any = None, repeats: int = 20
) -> Measurement:
    """Check a plan's result on a device, then time the plan with a warm cache.

    `dense` are the operation's dense inputs, in order. `values` replaces the graph's weights.

    Raises
    ------
    DeviceUnavailable, KernelError
        If the device is not usable or the result is wrong.
    """
    operands = plan.operation.named(*dense, values=values)
    return _check_and_time(plan, executor, oracle, operands, repeats, ("warm",), {})[0]


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
    """Check and time strategies on graphs.

    Parameters
    ----------
    graphs : Graph, anything `load_graph` takes, or an iterable of them
        Weights are replaced by random signed ones, the same for every strategy. A generator is read
        one graph at a time. If different graphs have the same name, such as "matrix", the table
        names the second "matrix 2".
    strategies : str, Strategy, (strategy, parameters), or an iterable of them, optional
        Such as `["cusparse", ("gnnadvisor", {"ngs": 32}), MyStrategy()]`. The default is all
        strategies that the device can run.
    n_cols : int or iterable of int
        Numbers of columns of the features.
    device : {"auto", "cuda", "cpu", "emulator"}
        "auto" is the GPU if there is one, else the CPU. "cpu" times and checks a replay of the
        plans, without running kernels. "emulator" runs and checks the kernels, slowly. Times of
        both are unrelated to those of a GPU. The table has `device` and `hardware`.
    operation : {"spmm", "sddmm"}, optional
        If not given, the operation of the first strategy object, or "spmm".
    repeats : int
        Number of timed runs of each case, at least 1.
    states : sequence of {"warm", "cold"}
        "cold" flushes the last-level cache before each run.
    path : str or PathLike, optional
        A CSV file to which each record is appended as soon as it is measured. Measurements that the
        file already has (compared by `KEY`: machine, commit, kernel source, graph, strategy,
        columns) are not repeated, so that an interrupted run can be resumed. `KEY` does not reflect
        uncommitted changes of a strategy's Python code; use a new path after such a change.
    progress : bool
        Whether to show a progress bar.
    on_error : {"raise", "record"}
        Whether an error, such as a wrong result or lack of device memory, is raised or becomes a
        record without a time and with the message in the column `problem`.
    **widths
        Other widths of the operation, such as `heads` of "sddmm".

    Returns
    -------
    DataFrame
        One record per graph, strategy, column count and state: times in microseconds (`median_us`,
        `quartile1_us`, `quartile3_us`), preprocessing (`setup_us`), the error over its bound, and,
        on a GPU, the limits of `measure.limits` measured in the same run. `run` is the start time
        of the call: only times of the same run should be compared.

    Raises
    ------
    GraphError, ArgumentError, PartitionError
        If a graph, a strategy, a parameter or another argument is invalid.
    DeviceUnavailable
        If the device is not usable, or cannot run one of the given strategies.
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
    requested = _requested(strategies)
    operation = operation_of([strategy for strategy, _ in requested or ()], operation)
    columns = _checked_columns(n_cols)
    _check_options(repeats, states, on_error)
    configurations = _runnable(requested, executor, operation)
    run = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    measured_keys = _measured_keys(path)
    names = {key[KEY.index("graph")]: key[KEY.index("fingerprint")] for key in measured_keys}
    rows: list[dict[str, Any]] = []
    machine: Limits | None = None
    device_text = "GPU" if executor.name == "cuda" else f"{executor.name}, no GPU"
    bar = tqdm(disable=not progress, unit="case", desc=f"timing the {device_text}")
    bar.total = 0
    for source in _as_iterable(graphs):
        graph = _uniquely_named(random_weights(load_graph(source)), names)
        bar.total += len(columns) * len(configurations)
        identity = {
            "run": run,
            **records.hardware(executor.name),
            "date": run[:10],
            "commit": records.source_commit(),
            "device": executor.name,
            "graph": graph.name,
            "graph_kind": graph.kind,
            "fingerprint": names[graph.name],
            "rows": graph.n_rows,
            "nonzeros": graph.nnz,
            "operation": operation.name,
            "repeats": repeats,
        }
        bench = GraphBench(graph, executor, operation, max(columns))
        for d, (strategy, parameters) in itertools.product(columns, configurations):
            bar.set_postfix_str(f"{graph.name}, {strategy.name}, {d}")
            row = {**identity, "strategy": strategy.name, "columns": d}
            try:
                plan = strategy.plan(graph, d, **widths, **parameters)
                row |= {"parameters": records.settings_text(plan), "kernel": kernel_digest(plan)}
                keys = {state: _key({**row, "state": state}) for state in states}
                missing = [state for state in states if keys[state] not in measured_keys]
                new = []
                if missing:
                    machine = machine or executor.limits()
                    times = bench.measure(plan, repeats, missing, machine)
                    new = [{**row, **time.row(), "problem": ""} for time in times]
            except AccelvizError as error:
                if on_error == "raise" or isinstance(error, ArgumentError):
                    bar.close()
                    raise
                row |= {"parameters": records.parameters_text(parameters), "kernel": None}
                new = [{**row, "problem": str(error)}]
            rows += new
            if path is not None and new:
                records.append(new, path)
            bar.update()
    bar.close()
    # The file is not created if there was nothing to measure.
    exists = path is not None and Path(path).exists()
    return pd.read_csv(path) if exists else records.result_table(rows)


class GraphBench:
    """Check and time plans of one graph, which share inputs, expected results and limits."""

    def __init__(
        self, graph: Graph, executor: Device, operation: Operation, most_columns: int
    ) -> None:
        self.graph = graph
        self._executor, self._operation = executor, operation
        self._most_columns = most_columns
        self._inputs: dict[Any, dict[str, Any]] = {}
        self._oracles: dict[Any, Oracle] = {}
        self._limits: dict[Any, dict[str, float]] = {}

    def measure(
        self,
        plan: Plan,
        repeats: int,
        states: Sequence[str] = ("warm",),
        machine: Limits | None = None,
    ) -> list[Measurement]:
        """Check a plan of this graph, then time it in each state."""
        to_device, operation, storage = self._executor.to_device, self._operation, plan.storage
        widths = dict(plan.widths)
        if operation.independent:  # narrower plans use the first columns of the widest inputs
            widths[operation.independent] = self._most_columns
        key = tuple(widths.values())
        if (key, storage) not in self._oracles:
            host = operation.named(*random_inputs(operation, self.graph.pattern, widths))
            if not operation.independent:  # other column counts have other inputs
                self._inputs.clear()
                self._oracles.clear()
            if key not in self._inputs:
                self._inputs[key] = {name: to_device(array) for name, array in host.items()}
            # The oracle has rounded inputs too, since their rounding is no error of the kernel.
            rounded = operation.rounded(host, storage)
            oracle = Oracle(self.graph, *rounded.values(), operation=operation)
            self._oracles[key, storage] = oracle.to_device(to_device)
        size = (*plan.widths.values(), storage)
        if machine is not None and size not in self._limits:
            element = STORAGE_BYTES[storage]
            self._limits[size] = limits(operation, plan.pattern, plan.widths, machine, element)
        inputs = {
            operand.name: _leading(self._inputs[key][operand.name], operand.shape(plan.sizes))
            for operand in operation.dense
        }
        oracle, bounds = self._oracles[key, storage], self._limits.get(size, {})
        return _check_and_time(plan, self._executor, oracle, inputs, repeats, states, bounds)


def _leading(array: Any, shape: tuple[int, ...]) -> Any:
    """Return the leading elements of an array along each axis, contiguous."""
    return array if array.shape == shape else array[tuple(slice(n) for n in shape)].copy()


def _check_and_time(
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
    """Return a checksum of a plan's CUDA sources and constants; "" if the plan has no kernel."""
    kernels = [call.kernel for _, call in plan.part_calls if call.kernel is not None]
    content = [(kernel.configured_source(), sorted(kernel.defines.items())) for kernel in kernels]
    text = repr(content[0] if len(content) == 1 else content)
    return hashlib.sha256(text.encode()).hexdigest()[:8] if content else ""


def _checked_columns(n_cols: int | Iterable[int]) -> list[int]:
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


def _as_iterable(graphs: Any) -> Iterable[Any]:
    """Return an iterable of graphs; an array is one graph, an `edge_index`."""
    is_iterator = hasattr(graphs, "__next__") and not hasattr(graphs, "shape")
    return graphs if is_iterator or isinstance(graphs, list | tuple | range) else [graphs]


def _uniquely_named(graph: Graph, names: dict[str, str]) -> Graph:
    """Return the graph with a name that no other pattern has, and add it to `names`.

    `names` maps each name to the fingerprint of its pattern.
    """
    checksum, name = fingerprint(graph), graph.name
    for number in itertools.count(2):
        if names.setdefault(name, checksum) == checksum:
            break
        name = f"{graph.name} {number}"
    return replace(graph, name=name)


def _requested(strategies: Any) -> list[Configuration] | None:
    """Return the caller's strategies as (strategy, parameters) pairs; None if not given."""
    if strategies is None:
        return None
    is_pair = (
        isinstance(strategies, tuple) and len(strategies) == 2 and isinstance(strategies[1], dict)
    )
    listed = [strategies] if is_pair or isinstance(strategies, str | Strategy) else strategies
    return [entry if isinstance(entry, tuple) else (entry, {}) for entry in listed]


def _runnable(
    requested: list[Configuration] | None, executor: Device, operation: Operation
) -> list[Configuration]:
    """Return strategy objects with parameters, by default all that the device can run."""
    arrays = np.array([0, 1]), np.zeros(1, np.int32), np.ones(1, np.float32)
    tiny = Graph(*arrays, (1, 1), "one nonzero")
    configurations = []
    defaults: list[Configuration] = [(name, {}) for name in strategies(operation.name)]
    for name, parameters in defaults if requested is None else requested:
        strategy = find_strategy(name, operation)
        problem = executor.unavailable_reason(strategy.plan(tiny, 1, **parameters))
        if problem is None:
            configurations.append((strategy, dict(parameters)))
        elif requested is not None:
            raise DeviceUnavailable(f"device {executor.name!r}", problem, "another strategy")
    return configurations


def _measured_keys(path: str | os.PathLike[str] | None) -> set[tuple[str, ...]]:
    if path is None or not Path(path).exists():
        return set()
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    if not set(KEY) <= set(table.columns):
        raise ArgumentError("path", f"{path} has other columns", "a new file")
    return {_key(row) for row in table[table["median_us"] != ""].to_dict("records")}


def _key(row: dict[Any, Any]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in KEY)
