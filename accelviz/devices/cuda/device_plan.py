"""Plans of `lane_groups` for a matrix that lies on the GPU: the host neither reads nor sorts it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.devices.base import is_device_array
from accelviz.devices.cuda.arrays import on_device
from accelviz.devices.cuda.preprocessing import preprocess
from accelviz.devices.cuda.state import import_cupy
from accelviz.graph import Graph, Pattern, checked_shape
from accelviz.ordering.local import is_local
from accelviz.partition.lane_groups import lane_group_workload
from accelviz.plans import Layout, Plan, Provenance
from accelviz.strategies.spmm.lane_groups import LaneGroups, lane_groups_plan
from accelviz.strategies.spmm.lane_groups.settings import Blocks
from accelviz.workload import Workload


def device_pattern(matrix: Any) -> tuple[Pattern, Any] | None:
    """Return the pattern and the values of a matrix of `cupyx.scipy.sparse`, both on the GPU.

    Only its sizes are checked, not its content. Anything that is not on the GPU gives None.
    """
    if not (hasattr(matrix, "tocsr") and is_device_array(getattr(matrix, "data", None))):
        return None
    csr = matrix.tocsr()
    pointers, columns = csr.indptr.astype(np.int64), csr.indices.astype(np.int32, copy=False)
    pattern = Pattern(pointers, columns, checked_shape(csr.shape))
    return pattern, csr.data.astype(np.float32, copy=False)


def uploaded(graph: Graph) -> Pattern:
    """Return a graph's pattern on the GPU, to which it is copied once."""
    pointers, columns = on_device(graph.row_pointers), on_device(graph.column_indices)
    return Pattern(pointers, columns, graph.shape, graph.name)


def device_plan(pattern: Pattern, n_cols: int, **parameters: Any) -> Plan:
    """Plan `lane_groups` for a pattern on the GPU, all of it there.

    Parameters
    ----------
    pattern : Pattern
        Of CuPy arrays, as `device_pattern` and `uploaded` give it.
    n_cols, **parameters
        As of `plan`.

    Returns
    -------
    Plan
        As `plan` makes it on the host, but with its arrays on the GPU. Its runs have to bring
        `values`.

    Raises
    ------
    ArgumentError, PartitionError
        As `plan` does.
    """
    strategy = LaneGroups()
    widths, settings = strategy.checked(n_cols, parameters)
    settings = settings.resolved(
        widths["n_cols"], pattern.shape, pattern.nnz, lambda: is_local(pattern, import_cupy())
    )
    blocks = Blocks.of(settings, widths["n_cols"])
    partition = preprocess(pattern, blocks.groups, blocks.short_nzs, settings.block_order)

    @cache
    def metadata() -> npt.NDArray[np.int32]:
        on_host: npt.NDArray[np.int32] = partition.metadata.get()
        return on_host

    def slice_workload(start: int, stop: int) -> Workload:
        return lane_group_workload(metadata(), blocks.groups, start, stop)

    layout = Layout(
        pattern,
        slice_workload,
        nonzero_order=partition.nonzero_order,
        metadata=partition.metadata,
        workers_per_block=blocks.groups.max_block_warps,
    )
    return lane_groups_plan(layout, blocks, partition, Provenance(strategy, None, widths, settings))


def transposed(pattern: Pattern) -> tuple[Pattern, Any]:
    """Turn every edge of a pattern on the GPU round, there, by a stable sort; O(nonzeros).

    Returns
    -------
    Pattern
        See `Graph.transposed`.
    CuPy array of int64, shape (nnz,)
        Nonzero `k` of the result is that nonzero of `pattern`.
    """
    cupy = import_cupy()
    n_rows, n_columns = pattern.shape
    order = cupy.argsort(pattern.column_indices, kind="stable")
    counts = cupy.bincount(pattern.column_indices, minlength=n_columns)[:n_columns]
    pointers = cupy.zeros(n_columns + 1, np.int64)
    cupy.cumsum(counts, out=pointers[1:])
    rows = cupy.searchsorted(pattern.row_pointers, order, side="right") - 1
    name = f"{pattern.name} transposed"
    return Pattern(pointers, rows.astype(np.int32), (n_columns, n_rows), name), order
