"""Functions for lessons about kernels: trace a launch, change the source, check the result."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pandas as pd

import accelviz
from accelviz.devices import find_device, spmm, trace
from accelviz.devices.emulator import EmulatorDevice
from accelviz.emulator.library import RECORD
from accelviz.emulator.tracing import table
from accelviz.errors import AccelvizError, ArgumentError, KernelError
from accelviz.files import kernel_directory
from accelviz.graph import Graph
from accelviz.measure import random_inputs
from accelviz.measure.accuracy import Oracle
from accelviz.plans import Call, KernelSpec, Plan

#: A reference to a line of a kernel's source in an error's message.
_LINE = re.compile(r"\b(?:mine|my_spmm)\.cu:(\d+)")


def traced(plan: Plan) -> pd.DataFrame:
    """Trace all blocks of a plan's kernel with random inputs; see `accelviz.trace`.

    The table is empty if there is no compiler, so that the other cells of a lesson still run.
    """
    if find_device("emulator").unavailable_reason() is not None:
        return table(np.empty(0, dtype=RECORD), Path(), [])
    dense = random_inputs(plan.operation, plan.pattern, plan.widths)
    return trace(plan, *dense, block=range(int(np.prod(plan.launch.grid))))


def whole_source(plan: Plan) -> str:
    """Return the source of a plan's kernel with the headers of its own folder inserted.

    `common.cuh`, which all kernels include, is not inserted. The comment at the beginning of the
    kernel's file is left out.
    """
    text = _kernel(plan).source()
    folder = kernel_directory()
    for name in re.findall(r'#include "(.*/.*\.cuh)"\n', text):
        header = (folder / name).read_text("utf-8").replace("#pragma once\n", "")
        text = text.replace(f'#include "{name}"\n', header)
    return re.sub(r"\A(//.*\n|\n)+", "", text)


def folded_source(plan: Plan) -> Any:
    """Return the source of a plan's kernel, with line numbers, behind a line that unfolds it."""
    from IPython.display import HTML

    lines = whole_source(plan).splitlines()
    numbered = "\n".join(f"{number:4d}  {line}" for number, line in enumerate(lines, 1))
    title = f"The whole kernel, {len(lines)} lines"
    return HTML(f"<details><summary>{title}</summary><pre>{escape(numbered)}</pre></details>")


def changed(plan: Plan, *changes: tuple[str, str], **fields: Any) -> Plan:
    """Return a plan with a changed kernel.

    Parameters
    ----------
    plan : Plan
        A plan with one kernel.
    *changes : tuple of two str
        A text that occurs exactly once in `whole_source(plan)`, and its replacement.
    **fields
        New values of fields of the `KernelSpec` or of the plan's `Buffers`, such as `config` or
        `zero_outputs`.

    Raises
    ------
    ArgumentError
        If a text does not occur exactly once.
    """
    code = whole_source(plan)
    for old, new in changes:
        if code.count(old) != 1:
            problem = f"{old!r} is there {code.count(old)} times"
            raise ArgumentError("changes", problem, "a piece that is there once")
        code = code.replace(old, new)
    names = {field.name for field in dataclasses.fields(KernelSpec)}
    kernel_fields = {name: fields.pop(name) for name in names & fields.keys()}
    buffers = dataclasses.replace(plan.buffers, **fields)
    kernel = dataclasses.replace(_kernel(plan), file="mine.cu", code=code, **kernel_fields)
    return dataclasses.replace(plan, calls=(Call(plan.launch, kernel),), buffers=buffers)


def verdict(plan: Plan, graph: Graph, X: Any, values: Any = None, timeout: float = 60.0) -> str:
    """Run an SpMM kernel in the emulator; return "right", or a description of the error.

    An error of the emulator is followed by the source lines that it refers to. `values` replaces
    the graph's weights. `timeout` limits the processor time of a launch, in seconds.
    """
    device = EmulatorDevice(timeout=timeout)
    reason = device.unavailable_reason()
    if reason is not None:
        return f"not run: {reason}"
    weights = graph.adjacency.data if values is None else values
    # Memory of an earlier launch may hold its right result: what a kernel leaves out is NaN.
    Y = np.full((graph.n_rows, np.shape(X)[1]), np.nan, np.float32)
    try:
        device.prepare(plan).run({"X": X, "values": weights}, {"Y": Y})
    except KernelError as error:
        return explained(error, _kernel(plan).source())
    oracle = Oracle(graph, X, values=values)
    return "right" if oracle.error(Y) <= 1 else f"WRONG: {oracle.first_wrong(Y)}"


def explained(error: AccelvizError, source: str) -> str:
    """Return an error's message with the lines of the kernel's source that it refers to."""
    lines = source.splitlines()
    numbers = sorted({int(number) for number in _LINE.findall(str(error))})
    quoted = [f"{number:4d}  {lines[number - 1]}" for number in numbers if number <= len(lines)]
    return "\n".join([str(error), *quoted])


def sparse_columns(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function to return its result and the columns of each `accelviz.spmm` in it.

    The wrapper returns None if the function does, or `...`.
    """

    @functools.wraps(forward)
    def counted(*inputs: Any) -> tuple[Any, npt.NDArray[np.int64]] | None:
        columns: list[int] = []

        def product(graph: Any, X: Any, *arguments: Any, **options: Any) -> Any:
            columns.append(X.shape[1])
            return spmm(graph, X, *arguments, **options)

        with mock.patch.object(accelviz, "spmm", product):
            result = forward(*inputs)
        return None if result is None or result is ... else (result, np.array(columns, np.int64))

    return counted


def _kernel(plan: Plan) -> KernelSpec:
    if plan.kernel is None:
        raise ArgumentError("plan", "it has no kernel", "a plan of a strategy with a kernel")
    return plan.kernel
