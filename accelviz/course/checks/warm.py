"""Runs what checks run, on a tiny graph, so that forks find it compiled."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import numpy as np

from accelviz.analysis import traffic
from accelviz.course.checks import hidden, kernels, metrics
from accelviz.executors import find_executor
from accelviz.executors.emulator import build
from accelviz.graph import Graph
from accelviz.measure import features
from accelviz.ordering import Permutation, degree_sort
from accelviz.partition.block_level import BlockSetting, block_workload
from accelviz.strategies import plan
from accelviz.workload import Workload, check_cover

#: Compiling it takes seconds, and submissions that run side by side need it once.
_compiling = threading.Lock()


def copy_runtime(folder: Path) -> None:
    """Copy the program that runs emulated kernels to a folder, if there is a compiler for it."""
    if build.why_not() is None:
        with _compiling:
            shutil.copy(build.runtime(), folder)


def _tiny() -> tuple[Graph, Graph]:
    """Return a graph, and one whose arrays may be written."""
    made = hidden.graph_of([3, 0, 40, 700, 1, 3], 1_000, np.random.default_rng(0), "tiny")
    arrays = made.row_pointers.copy(), made.column_indices.copy(), made.values.copy()
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
    """Plan and multiply with arrays that may be written and that may not."""
    made = _tiny()[0]
    for graph in _tiny():
        metrics.bounds(graph)
        for name in ("accel_gcn", "graphblast"):
            planned = plan(graph, name, 2)
            planned.check()
            X = features(graph.shape[1], 2)
            find_executor("cpu").prepare(planned).run({"X": X})
        kernels.runs_plan("", graph, 2).check()
        Permutation(np.arange(graph.n_rows, dtype=np.int32)).apply_to_pattern(graph.pattern)
    one, flag = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=bool)
    traffic._count(np.array([0, 1]), one, one + 4, flag, flag)
    metadata = np.asarray(plan(made).metadata)
    for blocks in (metadata, metadata.copy()):
        block_workload(blocks, BlockSetting())
