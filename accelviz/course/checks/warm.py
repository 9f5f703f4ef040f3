"""Runs what checks run, on a tiny graph, so that forks find it compiled."""

from __future__ import annotations

import numpy as np

from accelviz.analysis import traffic
from accelviz.course.checks import hidden, kernels, metrics
from accelviz.executors import find_executor
from accelviz.graph import Graph
from accelviz.measure import features
from accelviz.ordering import Permutation
from accelviz.partition.block_level import BlockSetting, block_workload
from accelviz.strategies import plan

_PARAMETERS = (
    "const int4 *metadata, const int *columns, const float *values, const float *X, float *Y, "
    "int n_runs, int n_cols"
)


def compile_runtime() -> None:
    """Compile what all emulated kernels share into this machine's cache, if there is a compiler."""
    if find_executor("emulator").why_not() is None:
        nothing = 'extern "C" __global__ void spmm_runs(' + _PARAMETERS + ") {}"
        graph = hidden.graph_of([1], 1, np.random.default_rng(0), "tiny")
        find_executor("emulator").prepare(kernels.runs_plan(nothing, graph, 1))


def run_once() -> None:
    """Plan and multiply with arrays that may be written and that may not."""
    made = hidden.graph_of([3, 0, 40, 700, 1, 3], 1_000, np.random.default_rng(0), "tiny")
    arrays = made.row_pointers.copy(), made.column_indices.copy(), made.values.copy()
    for graph in (made, Graph(*arrays, made.shape, "tiny")):
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
