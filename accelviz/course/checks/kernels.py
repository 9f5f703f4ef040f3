"""Assignment A4: a CUDA kernel for a given plan, carried out by the emulator."""

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

#: The plan of A4: warps of a block, and most nonzeros of a warp.
BLOCK_WARPS, RUN_NONZEROS = 4, 32
#: Name of the student's function, and its parameters.
ENTRY = "spmm_runs"
ARGUMENTS = ("metadata", "columns", "values", "X", "Y", "n_runs", "n_cols")
#: A kernel with more letters is no answer to a question of this course.
MOST_LETTERS = 50_000
HEADERS = (
    *('"common.cuh"', '"vectors.cuh"', "<cooperative_groups.h>", "<cooperative_groups/reduce.h>"),
    *("<cooperative_groups/scan.h>", "<cuda_fp16.h>", "<cuda_runtime.h>", "<math_constants.h>"),
)
_NOT_CUDA = re.compile(
    r"__attribute|\[\s*\[|<:|%:|##|\?\?|\b_*asm_*\b|__builtin|_Pragma|\bsystem\b|\bpopen\b|"
    r"\bemulator\b|\bEMULAT\w*|\bstd\s*::|#\s*pragma\s+(?!unroll)\w+|"
    rf"#\s*include\s*(?!{'|'.join(map(re.escape, HEADERS))})\S+"
)
#: Columns that traffic is counted with: whole warps, whole sectors.
TRACED_COLUMNS = 64
#: Sectors for 32 floats that lie side by side, and for 32 that lie apart.
FEWEST_SECTORS, MOST_SECTORS = 4, 32


class Runs(Strategy):
    """The warp-level partition of Accel-GCN's Figure 3b, with a student's kernel."""

    operation = SPMM
    name = "yours"

    def __init__(self, code: str) -> None:
        _require_cuda(code)
        self.code = code

    def build(self, graph: Graph, widths: Widths, settings: Settings) -> Plan:
        """Describe each warp, the rows in the caller's order."""
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
    """Refuse what a kernel of this assignment has no use for, by the look of its text.

    A slip that this finds would make a result mean nothing. It is no border: a kernel runs confined
    as a submission does, and can only forge what is counted of itself.
    """
    if not isinstance(code, str) or len(code) > MOST_LETTERS:
        raise KernelError("yours.cu", "the kernel is no text of usual length", "a text")
    joined = re.sub(r"\\[ \t\r]*\n", "", code)
    if refused := _NOT_CUDA.search(joined):
        line = joined.count("\n", 0, refused.start()) + 1
        raise KernelError(
            f"yours.cu:{line}",
            f"it has {refused[0].strip()!r}",
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
        One int4 `(row, first nonzero, length, 0)` for each warp, at most 32 nonzeros of one row,
        blocks of 4 consecutive warps, and a grid along x only. `Y` is cleared before the launch.
    """
    return Runs(code).plan(graph, n_cols)


def need_emulator() -> None:
    """Raise where kernels cannot be emulated, so that nobody takes that for a wrong kernel.

    Raises
    ------
    DeviceUnavailable
        Saying that the kernel was not tried, and how to get a C++ compiler.
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
    """Run a kernel twice in the emulator, and hold each result to float64.

    Parameters
    ----------
    code : str
        See `runs_plan`.
    graphs : mapping of str to Graph
    columns : iterable of int
        Column counts of X.
    seed : int
        Other than 0, blocks, warps and lanes run in a random order.

    Raises
    ------
    DeviceUnavailable
        If there is no C++ compiler.
    KernelError
        If the kernel is more than CUDA, does not compile, is wrong, or does what is wrong on a GPU:
        races, accesses out of bounds, reads of memory that nothing has written.
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
    """Count the sectors of X that a kernel reads for each 32 floats that it needs.

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
        4 where neighboring lanes read neighboring floats, 32 where each lane reads elsewhere.

    Raises
    ------
    KernelError
        If the kernel is wrong while it is watched.
    AssertionError
        If it reads less than the result needs: it has read in some way that is not seen.
    """
    counted, work = _traced(code, graph, n_cols)
    reads = counted[(counted["array"] == "X") & (counted["space"] == "global")]
    count, block = int(reads["sectors"].sum()), np.repeat(work.block, work.nz_count)
    # a block may share what it has read
    _require_enough("sectors of X", count, _pairs(block, graph.column_indices) * n_cols // 8)
    return float(count / (graph.nnz * n_cols / 32))


def updates(code: str, graph: Graph, n_cols: int = TRACED_COLUMNS) -> float:
    """Count the floats of Y that a kernel stores or adds to, for each one that it has to.

    A warp has to do so once for each column: 1 is the least, and the nonzeros of a warp the most.
    (Warps of a block may put their sums together first.) See `sectors`.
    """
    counted, work = _traced(code, graph, n_cols)
    writes = counted[(counted["array"] == "Y") & (counted["kind"] != "load")]
    count = int(writes["bytes"].sum()) // 4
    _require_enough("updates of Y", count, _pairs(work.block, work.row) * n_cols)
    return float(count / (len(work) * n_cols))


def coalescing(code: str, graph: Graph, points: float) -> float:
    """Return points for few sectors, on a logarithmic scale; none for a kernel that is wrong.

    Parameters
    ----------
    code : str
    graph : Graph
    points : float
        All of them for 4 sectors for each 32 floats of X, none for 32.

    Returns
    -------
    float
        0 to `points`, to two decimals.
    """
    return _earned(sectors, code, graph, points, FEWEST_SECTORS, MOST_SECTORS)


def registers(code: str, graph: Graph, points: float) -> float:
    """Return points for sums that are kept in registers: for few `updates`; see `coalescing`.

    All of them are for one update of Y for each warp and column, none for one for each nonzero. The
    graph has more nonzeros than runs.
    """
    most = graph.nnz / int(runs_plan("", graph, 1).arrays["n_runs"])
    require(most > 1, "the graph has no run of two nonzeros")
    return _earned(updates, code, graph, points, 1, most)


def _earned(
    count: Callable[..., float], code: str, graph: Graph, points: float, fewest: float, most: float
) -> float:
    """Return points on a logarithmic scale, for a column count that no kernel knows beforehand."""
    n_cols = _columns(graph)
    multiplies(code, {graph.name: graph}, (n_cols,))
    with case(f"{graph.name}, {n_cols} columns"):
        counted = max(count(code, graph, n_cols), 1e-9)
    return share_of(points, math.log(most / counted) / math.log(most / fewest))


def _columns(graph: Graph) -> int:
    """Draw a column count: whole warps, whole sectors."""
    return int(hidden.generator(graph.nnz).choice([96, 128, 160, 192]))


def _traced(code: str, graph: Graph, n_cols: int) -> tuple[pd.DataFrame, Workload]:
    """Return the traffic of a launch whose result is right, though every access is recorded."""
    need_emulator()
    X = features(graph.shape[1], n_cols, seed=graph.nnz)
    plan, outputs = runs_plan(code, graph, n_cols), dict[str, np.ndarray]()
    counted = traffic(trace(plan, X, block=range(plan.launch.n_blocks), into=outputs))
    oracle = Oracle(graph, X)
    if not oracle.error(outputs) <= 1.0:
        text = f"wrong result while it is watched: {oracle.first_wrong(outputs)}"
        raise KernelError(ENTRY, text, "a kernel cannot tell that it is watched on a GPU either")
    return counted, plan.workload()


def _pairs(*columns: npt.ArrayLike) -> int:
    """Count the different rows of some columns."""
    return int(np.unique(np.stack(columns), axis=1).shape[1])


def _require_enough(name: str, count: int, least: int) -> None:
    require(count >= least, f"{count} {name} were seen, and the result needs {least} at least")
