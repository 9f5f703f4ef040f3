"""Runs what checks run, on a tiny graph, so that forks find it compiled."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import numpy as np
import pandas as pd

from accelviz.analysis.traffic import traffic
from accelviz.course.checks import hidden, kernels, metrics
from accelviz.course.checks.common import multiplied
from accelviz.devices import find_device
from accelviz.emulator import build
from accelviz.graph import Graph
from accelviz.measure import features
from accelviz.measure.accuracy import Oracle
from accelviz.ordering import Permutation, degree_sort
from accelviz.partition.block_level import BlockSetting, block_workload
from accelviz.strategies import plan
from accelviz.workload import Workload, check_cover

#: Compiling it takes seconds, and submissions that run side by side need it once.
_compiling = threading.Lock()


def copy_runtime(folder: Path) -> None:
    """Copy the program that runs emulated kernels to a folder, if there is a compiler for it."""
    if build.unavailable_reason() is None:
        with _compiling:
            shutil.copy(build.runtime(), folder)


def _tiny() -> tuple[Graph, Graph]:
    """Return a graph, and one whose arrays may be written."""
    made = hidden.graph_of([3, 0, 40, 700, 1, 3], 1_000, np.random.default_rng(0), "tiny")
    arrays = made.row_pointers.copy(), made.column_indices.copy(), made.values.copy()  # noqa: PD011
    return made, Graph(*arrays, made.shape, "tiny")


def run_bare() -> None:
    """Do what a submission of A3 does."""
    for graph in _tiny():
        order = degree_sort(graph)
        walked, _ = order.apply_to_pattern(graph.pattern)
        rows = np.arange(graph.n_rows)
        work = Workload(rows, 0 * rows, rows, walked.row_pointers[rows], walked.degrees)
        check_cover([work], walked.row_pointers, graph.n_rows, 1)


def run_once() -> None:
    """Plan, multiply and count traffic, with arrays laid out as tests have them.

    Numba compiles a function for each layout of its arguments, and again where they are read-only.
    """
    made = _tiny()[0]
    for graph in _tiny():
        metrics.bounds(graph)
        X = features(graph.shape[1], 2)
        oracle = Oracle(graph, X)
        for name in ("accel_gcn", "graphblast"):
            for n_cols in (1, 2):
                planned = plan(graph, name, n_cols)
                planned.check()
                multiplied(planned, find_device("cpu").prepare(planned), X[:, :n_cols], oracle)
        kernels.runs_plan("", graph, 2).check()
        Permutation(np.arange(graph.n_rows, dtype=np.int32)).apply_to_pattern(graph.pattern)
    none = dict.fromkeys(("block", "warp", "lane", "step", "index", "offset", "line"), 0)
    traffic(
        pd.DataFrame(
            {**none, "file": "", "kind": "load", "space": "global", "array": "X", "bytes": 4},
            index=range(2),
        ).astype({"bytes": np.int32})
    )
    metadata = np.asarray(plan(made).metadata)
    for blocks in (metadata, metadata.copy()):
        work = block_workload(blocks, BlockSetting())
    table = np.stack([work.block, work.warp, work.row, work.nz_start, work.nz_count], axis=1)
    walked, _ = degree_sort(made).apply_to_pattern(made.pattern)
    pointers = walked.row_pointers.copy()
    check_cover([Workload(*table.T)], pointers, len(metadata), BlockSetting().max_block_warps)
