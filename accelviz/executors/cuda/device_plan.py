"""Plans of `lane_groups` for a matrix that lies on the GPU: the host neither reads nor sorts it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from accelviz.errors import ArgumentError
from accelviz.executors.cuda.arrays import on_device
from accelviz.executors.cuda.preprocessing import preprocess
from accelviz.executors.cuda.state import import_cupy
from accelviz.graph import Graph, checked_shape
from accelviz.partition.lane_groups import lane_group_workload
from accelviz.strategies import Plan
from accelviz.strategies.lane_groups import LaneGroups, lane_groups_plan
from accelviz.strategies.lane_settings import is_local, lane_setting
from accelviz.workload import Workload


@dataclass(frozen=True, eq=False)
class DeviceGraph:
    """A sparse matrix in CSR form on the GPU. Only its sizes are checked, not what is in it.

    Parameters
    ----------
    row_pointers : CuPy array of int64, shape (n_rows + 1,)
    column_indices : CuPy array of int32, shape (nnz,)
    values : CuPy array of float32, shape (nnz,)
    shape : tuple of int
        Rows and columns.
    name : str
        A short name for messages.

    Raises
    ------
    GraphError
        If the shape is none.
    ArgumentError
        If it does not fit the row pointers.
    """

    row_pointers: Any
    column_indices: Any
    values: Any
    shape: tuple[int, int]
    name: str = "graph"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", checked_shape(self.shape))
        n_rows, pointers = self.shape[0], self.row_pointers.size
        if pointers != n_rows + 1:
            raise ArgumentError("row_pointers", f"{pointers} for {n_rows} rows", str(n_rows + 1))

    @classmethod
    def of(cls, matrix: Any) -> DeviceGraph:
        """Take a `Graph`, which is copied to the GPU once, or a matrix of `cupyx.scipy.sparse`."""
        if isinstance(matrix, Graph):
            return cls(
                on_device(matrix.row_pointers),
                on_device(matrix.column_indices),
                on_device(matrix.values),
                matrix.shape,
                matrix.name,
            )
        csr = matrix.tocsr()
        return cls(
            csr.indptr.astype(np.int64),
            csr.indices.astype(np.int32, copy=False),
            csr.data.astype(np.float32, copy=False),
            csr.shape,
        )

    @property
    def arrays(self) -> tuple[Any, Any, Any]:
        """Row pointers, column indices and values."""
        return self.row_pointers, self.column_indices, self.values

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.shape[0]

    @property
    def nnz(self) -> int:
        """Number of stored nonzeros."""
        return int(self.column_indices.size)


def device_plan(graph: DeviceGraph, n_cols: int, **parameters: Any) -> Plan:
    """Plan `lane_groups` for a matrix on the GPU, all of it there.

    Parameters
    ----------
    graph : DeviceGraph
    n_cols : int
        Columns of the features.
    **parameters
        Those of the strategy.

    Returns
    -------
    Plan
        The one that `plan` makes of the same matrix on the host, except that its arrays are on the
        GPU and its `graph` and `matrix` are the DeviceGraph: `spmm` takes it, and what needs the
        graph itself does not.

    Raises
    ------
    ArgumentError, PartitionError
        As `plan` does.
    """
    strategy = LaneGroups()
    n_cols = strategy.checked(n_cols, parameters)
    setting = lane_setting(n_cols, graph.shape, graph.nnz, False, **parameters)
    if_local = lane_setting(n_cols, graph.shape, graph.nnz, True, **parameters)
    if setting != if_local and is_local(graph, import_cupy()):
        setting = if_local
    made = preprocess(*graph.arrays, setting.groups, setting.short_nzs, setting.block_order)

    @cache
    def metadata() -> npt.NDArray[np.int32]:
        on_host: npt.NDArray[np.int32] = made.metadata.get()
        return on_host

    def slice_workload(start: int, stop: int) -> Workload:
        return lane_group_workload(metadata(), setting.groups, start, stop)

    return lane_groups_plan(
        cast(Graph, graph),
        n_cols,
        setting,
        made,
        matrix=cast(Graph, graph),
        permutation=None,
        slice_workload=slice_workload,
        setup_seconds={},
    )
