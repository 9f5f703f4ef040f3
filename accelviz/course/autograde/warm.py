"""Fills caches on import, for the server that grading processes are forked from.

Numba compiles a function for each combination of argument types. The calls below cover those of the
assignments' tests, so that the forked processes find everything compiled.
"""

import numpy as np

from accelviz.course.checks import hidden, kernels, metrics
from accelviz.devices import find_device
from accelviz.files import cache_folder
from accelviz.graph import Graph
from accelviz.measure import check, features
from accelviz.measure.accuracy import Oracle
from accelviz.ordering import degree_sort
from accelviz.partition.block_level import BlockSetting, block_workload
from accelviz.strategies import plan
from accelviz.workload import Workload, check_cover

GRAPH = hidden.graph_of([3, 0, 40, 700, 1, 3], 1_000, np.random.default_rng(0), "tiny")
#: The same pattern in writable arrays: Numba compiles for these separately.
WRITABLE = Graph(
    GRAPH.row_pointers.copy(), GRAPH.column_indices.copy(), np.ones(GRAPH.nnz, "f4"), GRAPH.shape
)
for graph in (GRAPH, WRITABLE):
    metrics.bounds(graph)
    X = features(graph.shape[1], 2)
    for n_cols in (1, 2):
        planned = plan(graph, "accel_gcn", n_cols)
        planned.check()
        check(planned, find_device("cpu").prepare(planned), {"X": X[:, :n_cols]}, Oracle(graph, X))
    kernels.runs_plan("", graph, 2).check()
read_only = plan(GRAPH, "accel_gcn").layout.metadata
assert read_only is not None
metadata = np.array(read_only)
for blocks in (metadata, read_only):
    work = block_workload(blocks, BlockSetting())
table = np.stack([work.block, work.warp, work.row, work.nz_start, work.nz_count], axis=1)
walked, _ = degree_sort(GRAPH).apply_to_pattern(GRAPH.pattern)
pointers = walked.row_pointers.copy()
check_cover([Workload(*table.T)], pointers, len(metadata), BlockSetting().max_block_warps)
if not [*(cache_folder() / "matplotlib").glob("*")]:
    import accelviz.plots.loads  # noqa: F401 (matplotlib writes its list of fonts)
