"""Plans of `lane_groups` for a matrix that lies on the GPU: the host neither reads nor sorts it."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
from accelviz.strategies.lane_groups import LaneGroups
from accelviz.strategies.lane_settings import LOCAL_SHARE, NEAR, LaneSetting, lane_setting
from accelviz.workload import Workload

#: Nonzeros that say whether the vertex order is local.
_SAMPLE = 1 << 16
#: Parameters of `LaneGroups.build` on which its setting does not depend.
_NO_SETTING = ("stage", "block_order")


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
        Those of `LaneGroups.build`.

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
    template, setting = _template(graph, n_cols, parameters)
    made = preprocess(
        *graph.arrays, setting.groups, setting.short_nzs, template.parameters["block_order"]
    )

    @cache
    def metadata() -> npt.NDArray[np.int32]:
        on_host: npt.NDArray[np.int32] = made.metadata.get()
        return on_host

    def slice_workload(start: int, stop: int) -> Workload:
        return lane_group_workload(metadata(), setting.groups, start, stop)

    launch = template.launch
    return replace(
        template,
        graph=cast(Graph, graph),
        matrix=cast(Graph, graph),
        launch=replace(launch, grid=(len(made.metadata), *launch.grid[1:])),
        slice_workload=slice_workload,
        permutation=None,
        metadata=made.metadata,
        arrays={
            **template.arrays,
            "metadata": made.metadata,
            "output_rows": made.output_rows,
            "nonzeros": made.nonzeros,
        },
        # The template's are for one part of a cut row.
        scratch={
            name: (size * max(made.cut_blocks, 1), dtype)
            for name, (size, dtype) in template.scratch.items()
        },
        setup_seconds={},
    )


def _template(
    graph: DeviceGraph, n_cols: int, parameters: dict[str, Any]
) -> tuple[Plan, LaneSetting]:
    """Return the plan of a graph without rows that has the setting of this one, and the setting."""
    no_rows = Graph(
        np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), (0, graph.shape[1])
    )
    n_cols = LaneGroups().plan(no_rows, n_cols, **parameters).n_cols
    given = {name: value for name, value in parameters.items() if name not in _NO_SETTING}
    setting, if_local = (
        lane_setting(n_cols, graph.shape, graph.nnz, local=local, **given)
        for local in (False, True)
    )
    if setting != if_local and is_local_on_device(graph):
        setting = if_local
    settled = {  # what the rule takes from the matrix
        "group_nzs": setting.groups.max_warp_nzs,
        "short_nzs": setting.short_nzs,
        "slab": setting.slab,
    }
    return LaneGroups().plan(no_rows, n_cols, **{**parameters, **settled}), setting


def is_local_on_device(graph: DeviceGraph) -> bool:
    """Say what `lane_settings.is_local` says of the same graph on the host."""
    if graph.nnz == 0:
        return False
    cupy = import_cupy()
    sample = np.linspace(0, graph.nnz - 1, min(_SAMPLE, graph.nnz)).astype(np.int64)
    places = cupy.asarray(sample)
    rows = cupy.searchsorted(graph.row_pointers, places, side="right") - 1
    columns = graph.column_indices[places]
    apart = cupy.abs(rows / graph.n_rows - columns / graph.shape[1])
    near = int(cupy.count_nonzero(apart < NEAR))
    return near / sample.size >= LOCAL_SHARE
