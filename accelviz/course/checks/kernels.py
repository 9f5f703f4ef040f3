"""Checks of assignment A4: a student's CUDA kernel for a given plan, run by the emulator.

The plan is the warp-level partition of Accel-GCN's Figure 3b: each row is split into runs of at
most 32 nonzeros, one run per warp. Points are for right results, for coalesced reads of X (few
32-byte sectors) and for sums in registers (few updates of Y).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.analysis.traffic import traffic
from accelviz.course.checks import hidden
from accelviz.course.checks.common import case, require, share_of
from accelviz.devices import find_device, trace
from accelviz.devices.emulator import EmulatorDevice
from accelviz.errors import DeviceUnavailable, KernelError
from accelviz.graph import Graph
from accelviz.measure import check, features
from accelviz.measure.accuracy import Oracle
from accelviz.partition.warp_level import warp_partition, warp_workload
from accelviz.plans import Buffers, Layout, Plan, Provenance, Strategy, Widths
from accelviz.plans.launch import Call, KernelSpec, LaunchConfig
from accelviz.plans.settings import Settings
from accelviz.strategies import SPMM
from accelviz.workload import Workload

#: Warps per block, and most nonzeros of a run.
BLOCK_WARPS, RUN_NONZEROS = 4, 32
#: Name of the student's function, and its parameters.
ENTRY = "spmm_runs"
ARGUMENTS = ("metadata", "columns", "values", "X", "Y", "n_runs", "n_cols")
#: Longest source text of a kernel.
MAX_CHARACTERS = 50_000
#: Headers that a kernel may include.
HEADERS = (
    *('"common.cuh"', '"vectors.cuh"', "<cooperative_groups.h>", "<cooperative_groups/reduce.h>"),
    *("<cooperative_groups/scan.h>", "<cuda_fp16.h>", "<cuda_runtime.h>", "<math_constants.h>"),
)
#: Attributes, digraphs, assembly, host code, emulator internals, pragmas and other headers.
_NOT_CUDA = re.compile(
    r"__attribute|\[\s*\[|<:|%:|##|\?\?|\b_*asm_*\b|__builtin|_Pragma|\bsystem\b|\bpopen\b|"
    r"\bemulator\b|\bEMULAT\w*|\bstd\s*::|#\s*pragma\s+(?!unroll)\w+|"
    rf"#\s*include\s*(?!{'|'.join(map(re.escape, HEADERS))})\S+"
)
#: Default column count of traced launches: a multiple of a warp and of a sector.
TRACED_COLUMNS = 64
#: Sectors of 32 contiguous floats, and of 32 scattered floats.
MIN_SECTORS, MAX_SECTORS = 4, 32


class Runs(Strategy):
    """The warp-level partition of Accel-GCN's Figure 3b, with a student's kernel."""

    operation = SPMM
    name = "yours"

    def __init__(self, code: str) -> None:
        _require_cuda(code)
        self.code = code

    def build(self, graph: Graph, widths: Widths, settings: Settings) -> Plan:
        """Plan one record per run, rows in the caller's order."""
        metadata = warp_partition(graph.row_pointers, RUN_NONZEROS)
        metadata.setflags(write=False)
        launch = LaunchConfig((-(-len(metadata) // BLOCK_WARPS), 1, 1), BLOCK_WARPS)
        constants = {"BLOCK_WARPS": BLOCK_WARPS}
        arrays = {
            "metadata": metadata,
            "columns": graph.column_indices,
            "n_runs": np.int32(len(metadata)),
            "n_cols": np.int32(widths["n_cols"]),
        }
        workload = partial(warp_workload, metadata, BLOCK_WARPS)
        kernel = KernelSpec("yours.cu", ENTRY, {}, ARGUMENTS, self.code, defines=constants)
        return Plan(
            Layout(graph.pattern, workload, metadata=metadata),
            (Call(launch, kernel),),
            Buffers(arrays),
            Provenance(self, graph.values, widths, settings),
        )


def _require_cuda(code: str) -> None:
    """Refuse source text with constructs that this assignment does not need.

    Such constructs, used by mistake, would make the counts meaningless. This is no security
    boundary: a kernel runs in the same sandbox as a submission.
    """
    if not isinstance(code, str) or len(code) > MAX_CHARACTERS:
        raise KernelError("yours.cu", "the kernel is no text of usual length", "a text")
    joined = re.sub(r"\\[ \t\r]*\n", "", code)
    if match := _NOT_CUDA.search(joined):
        line = joined.count("\n", 0, match.start()) + 1
        raise KernelError(
            f"yours.cu:{line}",
            f"it has {match[0].strip()!r}",
            f"CUDA without attributes, assembly, host code; includes: {', '.join(HEADERS)}",
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


def need_emulator() -> None:
    """Require a C++ compiler, so that its absence is not reported as a wrong kernel.

    Raises
    ------
    DeviceUnavailable
        If there is none; the message says how to install one.
    """
    problem = find_device("emulator").unavailable_reason()
    if problem is not None:
        raise DeviceUnavailable(
            "emulator",
            f"your kernel was NOT tried, and these points say nothing about it: {problem}",
            "install a compiler, for instance by `pip install ziglang`, and run this cell again",
        )


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
    need_emulator()
    columns = list(columns)
    for name, graph in graphs.items():
        X = features(graph.shape[1], max(columns), seed=graph.nnz)
        oracle = Oracle(graph, X)
        for n_cols in columns:
            with case(f"{name}, {n_cols} columns"):
                plan = runs_plan(code, graph, n_cols)
                check(plan, EmulatorDevice(seed=seed).prepare(plan), {"X": X[:, :n_cols]}, oracle)


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
    by_line, work = _traced(code, graph, n_cols)
    reads = by_line[(by_line["array"] == "X") & (by_line["space"] == "global")]
    count, block = int(reads["sectors"].sum()), np.repeat(work.block, work.nz_count)
    # the warps of a block may share a row of X
    _require_enough("sectors of X", count, _n_pairs(block, graph.column_indices) * n_cols // 8)
    return float(count / (graph.nnz * n_cols / 32))


def updates(code: str, graph: Graph, n_cols: int = TRACED_COLUMNS) -> float:
    """Count the stores and atomic additions to Y per run and column; see `sectors`.

    1 if each warp sums its run in registers, and the length of a run if it adds every product to Y.
    Less than 1 if the warps of a block first add up their sums.
    """
    by_line, work = _traced(code, graph, n_cols)
    writes = by_line[(by_line["array"] == "Y") & (by_line["kind"] != "load")]
    count = int(writes["bytes"].sum()) // 4
    _require_enough("updates of Y", count, _n_pairs(work.block, work.row) * n_cols)
    return float(count / (len(work) * n_cols))


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


def _traced(code: str, graph: Graph, n_cols: int) -> tuple[pd.DataFrame, Workload]:
    """Return the `traffic` and the workload of a traced launch with a right result."""
    need_emulator()
    X = features(graph.shape[1], n_cols, seed=graph.nnz)
    plan, outputs = runs_plan(code, graph, n_cols), dict[str, np.ndarray]()
    by_line = traffic(trace(plan, X, block=range(plan.launch.n_blocks), into=outputs))
    oracle = Oracle(graph, X)
    if not oracle.error(outputs) <= 1.0:
        text = f"wrong result while it is watched: {oracle.first_wrong(outputs)}"
        raise KernelError(ENTRY, text, "a kernel cannot tell that it is watched on a GPU either")
    return by_line, plan.workload()


def _n_pairs(first: npt.ArrayLike, second: npt.ArrayLike) -> int:
    """Count the different pairs of elements of two arrays."""
    return int(np.unique(np.stack([first, second]), axis=1).shape[1])


def _require_enough(name: str, count: int, least: int) -> None:
    require(count >= least, f"{count} {name} were seen, and the result needs {least} at least")
