"""Checks of assignment A4: a student's CUDA kernel for a given plan, run by the emulator.

The plan is the warp-level partition of Accel-GCN's Figure 3b: each row is split into runs of at
most 32 nonzeros, one run per warp. Points are for right results, for coalesced reads of X (few
32-byte sectors) and for sums in registers (few updates of Y).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.analysis.traffic import traffic
from accelviz.course.checks import cuda, hidden, remote
from accelviz.course.checks.common import case, graph_data, graph_from, require, share_of
from accelviz.devices import find_device, trace
from accelviz.devices.emulator import EmulatorDevice, as_kernel
from accelviz.errors import DeviceUnavailable, KernelError, pip_install
from accelviz.graph import Graph
from accelviz.measure import check, features
from accelviz.measure.accuracy import Oracle
from accelviz.measure.checks import poison
from accelviz.partition.warp_level import warp_partition, warp_workload
from accelviz.plans import Buffers, Layout, Plan, Provenance, Strategy, Widths
from accelviz.plans.launch import Call, KernelSpec, LaunchConfig
from accelviz.plans.settings import Settings
from accelviz.strategies import SPMM

#: Warps per block, and most nonzeros of a run.
BLOCK_WARPS, RUN_NONZEROS = 4, 32
CONSTANTS = {"BLOCK_WARPS": BLOCK_WARPS}
#: Name of the student's function, and its parameters.
ENTRY = "spmm_runs"
ARGUMENTS = ("metadata", "columns", "values", "X", "Y", "n_runs", "n_cols")
#: Default column count of traced launches: a multiple of a warp and of a sector.
TRACED_COLUMNS = 64
#: Sectors of 32 contiguous floats, and of 32 scattered floats.
MIN_SECTORS, MAX_SECTORS = 4, 32


class Runs(Strategy):
    """The warp-level partition of Accel-GCN's Figure 3b, with a student's kernel."""

    operation = SPMM
    name = "yours"

    def __init__(self, code: str) -> None:
        self.code = code

    def build(self, graph: Graph, widths: Widths, settings: Settings) -> Plan:
        """Plan one record per run, rows in the caller's order."""
        metadata = warp_partition(graph.row_pointers, RUN_NONZEROS)
        metadata.setflags(write=False)
        launch = LaunchConfig((-(-len(metadata) // BLOCK_WARPS), 1, 1), BLOCK_WARPS)
        arrays = {
            "metadata": metadata,
            "columns": graph.column_indices,
            "n_runs": np.int32(len(metadata)),
            "n_cols": np.int32(widths["n_cols"]),
        }
        workload = partial(warp_workload, metadata, BLOCK_WARPS)
        kernel = KernelSpec(cuda.FILE, ENTRY, {}, ARGUMENTS, self.code, defines=CONSTANTS)
        return Plan(
            Layout(graph.pattern, workload, metadata=metadata),
            (Call(launch, kernel),),
            Buffers(arrays),
            Provenance(self, graph.values, widths, settings),
        )


def runs_plan(code: str, graph: Graph, n_cols: int) -> Plan:
    """Return the plan of A4 with a student's kernel.

    Parameters
    ----------
    code : str
        CUDA source with one `extern "C" __global__ void spmm_runs`.
    graph : Graph
    n_cols : int

    Returns
    -------
    Plan
        One int4 `(row, first nonzero, length, 0)` for each warp, with at most 32 nonzeros of one
        row; blocks of 4 consecutive warps; a grid along x only. `Y` is cleared before the launch.
    """
    return Runs(code).plan(graph, n_cols)


def multiplies(
    code: str, graphs: Mapping[str, Graph], columns: Iterable[int], seed: int = 0
) -> None:
    """Run a kernel twice in the emulator and compare each result with float64.

    Parameters
    ----------
    code : str
        See `runs_plan`.
    graphs : mapping of str to Graph
    columns : iterable of int
        Column counts of X.
    seed : int
        Seed of the order of blocks, warps and lanes; 0 for the natural order.

    Raises
    ------
    DeviceUnavailable
        If there is no C++ compiler.
    KernelError
        If the kernel has refused constructs, does not compile, gives a wrong result, has a race,
        accesses memory out of bounds or reads memory that was never written.
    """
    columns = list(columns)
    for name, graph in graphs.items():
        X = features(graph.shape[1], max(columns), seed=graph.nnz)
        oracle = Oracle(graph, X)
        for n_cols in columns:
            with case(f"{name}, {n_cols} columns"):
                plan = runs_plan("", graph, n_cols)
                ready: Any = _Apart(code, graph, seed)
                check(plan, ready, {"X": X[:, :n_cols]}, oracle)


class _Apart:
    """A prepared plan whose launches run where students' kernels may; see `remote.run_kernels`."""

    def __init__(self, code: str, graph: Graph, seed: int) -> None:
        self._code, self._graph, self._seed = code, graph, seed

    def placed(self, operands: Mapping[str, Any]) -> Mapping[str, Any]:
        return operands

    def outputs(self) -> dict[str, Any]:
        return {}

    def run(self, inputs: Mapping[str, Any], _: Any) -> dict[str, Any]:
        Y = _run_kernels("launched", self._code, self._graph, inputs["X"], self._seed)
        return {"Y": _as_result(Y, self._graph, inputs["X"])}


def _run_kernels(function: str, code: str, graph: Graph, X: Any, *options: Any) -> Any:
    name = f"{__name__}:{function}"
    return remote.run_kernels(name, code, graph_data(graph), X, *options)


def _as_result(Y: Any, graph: Graph, X: Any) -> npt.NDArray[np.float32]:
    """Return what the process with the kernel has sent, if it is a result at all."""
    array, shape = np.asarray(Y), (graph.n_rows, X.shape[1])
    is_result = array.shape == shape and array.dtype == np.float32
    require(is_result, f"the kernel's result is no float32 of shape {shape}")
    return array


def launched(code: str, data: Any, X: Any, seed: int) -> Any:
    """Run a kernel once in the emulator and return Y; for `remote.run_kernels`."""
    plan = _checked_plan(code, data, X, every_load=True)
    ready = EmulatorDevice(seed=seed).prepare(plan)
    out = ready.outputs()
    poison(out["Y"])
    return ready.run(ready.placed({"X": X}), out)["Y"]


def traced(code: str, data: Any, X: Any) -> dict[str, Any]:
    """Trace a kernel; return `sectors` of X, floats of Y (`updates`), and Y. See `launched`.

    `scratch` has these numbers of the other arrays in global memory that the kernel writes.
    """
    plan, outputs = _checked_plan(code, data, X, every_load=False), dict[str, np.ndarray]()
    by_line = traffic(trace(plan, X, block=range(plan.launch.n_blocks), into=outputs))
    by_line = by_line[by_line["space"] == "global"]
    reads, writes = (by_line[(by_line["kind"] == "load") == is_load] for is_load in (True, False))

    def counts(read: set[str], written: set[str]) -> dict[str, int]:
        sectors = reads["sectors"][reads["array"].isin(read)].sum()
        updates = writes["bytes"][writes["array"].isin(written)].sum() // 4
        return {"sectors": int(sectors), "updates": int(updates)}

    scratch = {*writes["array"]} - {"Y"}
    return {**counts({"X"}, {"Y"}), "scratch": counts(scratch, scratch), "Y": outputs["Y"]}


def _checked_plan(code: str, data: Any, X: Any, *, every_load: bool) -> Plan:
    """Return the plan with a kernel's text that was parsed, and whose library was looked at."""
    if problem := find_device("emulator").unavailable_reason():
        raise DeviceUnavailable(
            "emulator",
            f"your kernel was NOT tried, and these points say nothing about it: {problem}",
            f"install a compiler, as by `{pip_install('ziglang')}`, and run this cell again",
        )
    text = cuda.expanded(code, tuple(CONSTANTS.items()))
    plan = runs_plan(cuda.PREFIX + text, graph_from(data), X.shape[1])
    (call,) = plan.calls
    assert call.kernel is not None
    cuda.check_imports(replace(as_kernel(call.kernel), every_load=every_load))
    return plan


def sectors(code: str, graph: Graph, n_cols: int = TRACED_COLUMNS) -> float:
    """Count the sectors of X that a kernel reads per 32 floats that it needs.

    Parameters
    ----------
    code : str
        See `runs_plan`.
    graph : Graph
        Small: every access is recorded.
    n_cols : int
        A multiple of 32.

    Returns
    -------
    float
        4 if the lanes of a warp read contiguous floats, 32 if they read scattered floats.

    Raises
    ------
    KernelError
        If the traced launch gives a wrong result.
    AssertionError
        If fewer sectors are counted than the result needs, so that some reads were not traced.
    """
    least = np.unique(graph.column_indices).size * n_cols // 8  # blocks may share their rows of X
    return _counted("sectors", code, graph, n_cols, least) / (graph.nnz * n_cols / 32)


def updates(code: str, graph: Graph, n_cols: int = TRACED_COLUMNS) -> float:
    """Count the stores and atomic additions to Y per run and column; see `sectors`.

    1 if each warp sums its run in registers, and the length of a run if it adds every product to Y.
    Less than 1 if sums of several runs are added up first.
    """
    least = int(np.count_nonzero(graph.degrees)) * n_cols
    n_runs = int(runs_plan("", graph, 1).arrays["n_runs"])
    return _counted("updates", code, graph, n_cols, least) / (n_runs * n_cols)


def coalescing(code: str, graph: Graph, points: float) -> float:
    """Return points for few `sectors`, on a logarithmic scale; a wrong kernel raises an error.

    Parameters
    ----------
    code : str
    graph : Graph
    points : float
        All of them for 4 sectors per 32 floats of X, none for 32.

    Returns
    -------
    float
        0 to `points`, to two decimals.
    """
    return _points(sectors, code, graph, points, MIN_SECTORS, MAX_SECTORS)


def registers(code: str, graph: Graph, points: float) -> float:
    """Return points for sums in registers, that is, for few `updates`; see `coalescing`.

    All points are for one update of Y per run and column, none for one per nonzero and column. The
    graph must have a run of two nonzeros.
    """
    mean_run = graph.nnz / int(runs_plan("", graph, 1).arrays["n_runs"])
    require(mean_run > 1, "the graph has no run of two nonzeros")
    return _points(updates, code, graph, points, 1, mean_run)


def _points(
    count: Callable[..., float], code: str, graph: Graph, points: float, best: float, worst: float
) -> float:
    """Return points on a logarithmic scale, for a column count that a kernel cannot predict."""
    n_cols = _columns(graph)
    multiplies(code, {graph.name: graph}, (n_cols,))
    with case(f"{graph.name}, {n_cols} columns"):
        cost = max(count(code, graph, n_cols), 1e-9)
    return share_of(points, math.log(worst / cost) / math.log(worst / best))


def _columns(graph: Graph) -> int:
    """Draw a column count that is a multiple of a warp and of a sector."""
    return int(hidden.generator(graph.nnz).choice([96, 128, 160, 192]))


def _counted(name: str, code: str, graph: Graph, n_cols: int, least: int) -> float:
    """Return a number of a traced launch with a right result; launched once for all numbers."""
    shared = {} if remote.kernels is None else remote.kernels.shared
    X = features(graph.shape[1], n_cols, seed=graph.nnz)
    key = code, graph.nnz, n_cols
    if key not in shared:
        shared[key] = _run_kernels("traced", code, graph, X)
    answer, oracle = shared[key], Oracle(graph, X)
    outputs = {"Y": _as_result(answer["Y"], graph, X)}
    if not oracle.error(outputs) <= 1.0:
        text = f"wrong result while it is watched: {oracle.first_wrong(outputs)}"
        raise KernelError(ENTRY, text, "a kernel cannot tell that it is watched on a GPU either")
    count = int(answer[name])
    require(count >= least, f"{count} {name} were seen, and the result needs {least} at least")
    return float(count + int(answer["scratch"][name]))
