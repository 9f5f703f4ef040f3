"""What lessons do with kernels: trace whole launches, change a line and see who notices."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from accelviz.devices import find_device, spmm, trace
from accelviz.emulator.library import RECORD
from accelviz.emulator.tracing import table
from accelviz.errors import ArgumentError, KernelError
from accelviz.files import kernel_directory
from accelviz.graph import Graph
from accelviz.measure import random_inputs
from accelviz.measure.accuracy import Oracle
from accelviz.plans import Call, KernelSpec, Plan


def traced(plan: Plan) -> pd.DataFrame:
    """Trace every block of a plan's kernel, with random inputs; see `accelviz.trace`.

    Without a compiler the table is empty, so that the rest of a lesson still runs.
    """
    if find_device("emulator").unavailable_reason() is not None:
        return table(np.empty(0, dtype=RECORD), Path(), [])
    dense = random_inputs(plan.operation, plan.pattern, plan.widths)
    return trace(plan, *dense, block=range(int(np.prod(plan.launch.grid))))


def whole_source(plan: Plan) -> str:
    """Return the text of a plan's kernel with the headers of its own folder put in its place.

    What is in `common.cuh`, which all kernels include, stays there. Comments that begin a file are
    left out.
    """
    text = _kernel(plan).source()
    folder = kernel_directory()
    for name in re.findall(r'#include "(.*/.*\.cuh)"\n', text):
        header = (folder / name).read_text("utf-8").replace("#pragma once\n", "")
        text = text.replace(f'#include "{name}"\n', header)
    return re.sub(r"\A(//.*\n|\n)+", "", text)


def changed(plan: Plan, *changes: tuple[str, str], **fields: Any) -> Plan:
    """Return a plan whose kernel differs in some pieces of its text.

    Parameters
    ----------
    plan : Plan
        With one kernel.
    *changes : tuple of two str
        What stands there, exactly once in `whole_source(plan)`, and what takes its place.
    **fields
        Other fields of the `KernelSpec` or of the plan's `Buffers`, such as `config` or
        `zero_outputs`.

    Raises
    ------
    ArgumentError
        If a piece is not there, or several times.
    """
    code = whole_source(plan)
    for old, new in changes:
        if code.count(old) != 1:
            problem = f"{old!r} is there {code.count(old)} times"
            raise ArgumentError("changes", problem, "a piece that is there once")
        code = code.replace(old, new)
    names = {field.name for field in dataclasses.fields(KernelSpec)}
    spec = {name: value for name, value in fields.items() if name in names}
    rest = {name: value for name, value in fields.items() if name not in names}
    buffers = dataclasses.replace(plan.buffers, **rest)
    kernel = dataclasses.replace(_kernel(plan), file="mine.cu", code=code, **spec)
    return dataclasses.replace(plan, calls=(Call(plan.launch, kernel),), buffers=buffers)


def verdict(plan: Plan, graph: Graph, X: Any, values: Any = None) -> str:
    """Run an SpMM's kernel in the emulator and say how it fares: "right", or what is wrong.

    A message of the emulator is followed by the lines of the kernel that it names.
    """
    missing = find_device("emulator").unavailable_reason()
    if missing is not None:
        return f"not run: {missing}"
    try:
        Y = spmm(plan, X, graph.adjacency.data if values is None else values, device="emulator")
    except KernelError as error:
        lines = _kernel(plan).source().splitlines()
        named = sorted({int(number) for number in re.findall(r"mine\.cu:(\d+)", str(error))})
        return "\n".join([str(error), *(f"{number:4d}  {lines[number - 1]}" for number in named)])
    ratio = Oracle(graph, X, values=values).error(Y)
    return "right" if ratio <= 1 else f"WRONG: the largest error is {ratio:.3g} times the bound"


def _kernel(plan: Plan) -> KernelSpec:
    if plan.kernel is None:
        raise ArgumentError("plan", "it has no kernel", "a plan of a strategy with a kernel")
    return plan.kernel
