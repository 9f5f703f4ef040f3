"""The CPU executor: replays any plan's workload on all cores, whatever strategy made it."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from accelviz.errors import DeviceUnavailable
from accelviz.executors.base import (
    HostPlan,
    checked_features,
    checked_output,
    refuse_device_arrays,
    seconds_on_host,
)
from accelviz.executors.storage import restored, stored
from accelviz.strategies import Plan
from accelviz.workload import Workload

#: Pieces of equal work for each thread, so that one slow core does not hold up the others.
_PIECES_PER_THREAD = 8


class CpuExecutor:
    """Runs plans in Numba on all cores; always available."""

    name = "cpu"
    timed = True

    def why_not(self, plan: Plan | None = None) -> str | None:
        """Say why a plan cannot be replayed, or None: every machine has a CPU."""
        if plan is not None and not plan.has_workload:
            return f"{plan.strategy!r} is a library for GPUs, whose work cannot be replayed"
        return None

    def hardware(self) -> dict[str, str]:
        """Name the processor and the threads in use."""
        name = f"{_processor()}, {numba.get_num_threads()} threads"
        return {"hardware": name, "driver": "", "cuda": "", "cupy": ""}

    def to_device(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the array itself."""
        return array

    def limits(self) -> None:
        """Return None: the replay is held against no limit of the processor."""

    def prepare(self, plan: Plan) -> CpuPlan:
        """Read the workload once and group its records by row.

        Raises
        ------
        DeviceUnavailable
            If the plan is a library's.
        """
        problem = self.why_not(plan)
        if problem is not None:
            raise DeviceUnavailable("device 'cpu'", problem, "device='cuda', on a GPU")
        refuse_device_arrays(plan)
        return CpuPlan(plan)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


@dataclass(eq=False)
class CpuPlan(HostPlan):
    """A plan's workload, its records grouped by the row they add to.

    Attributes
    ----------
    first_record : array of int64, shape (n_rows + 1,)
        Where each row's records begin.
    nz_start, nz_count : arrays of int64 and int32, shape (records,)
        The runs of nonzeros, in workload order inside each row.
    pieces : array of int64, shape (pieces + 1,)
        Rows at which the work is cut into pieces of about equal numbers of nonzeros.
    """

    plan: Plan
    setup_seconds: Mapping[str, float] = field(init=False, default_factory=dict)
    variant: str = field(init=False, default="")
    first_record: npt.NDArray[np.int64] = field(init=False)
    nz_start: npt.NDArray[np.int64] = field(init=False)
    nz_count: npt.NDArray[np.int32] = field(init=False)
    pieces: npt.NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        work = Workload.concatenate(self.plan.workload_slices())
        row, self.nz_start, self.nz_count = work.row, work.nz_start, work.nz_count
        if np.any(row[1:] < row[:-1]):
            by_row = np.argsort(row, kind="stable")
            row, self.nz_start = row[by_row], self.nz_start[by_row]
            self.nz_count = self.nz_count[by_row]
        n_rows = self.plan.matrix.n_rows
        self.first_record = np.searchsorted(row, np.arange(n_rows + 1)).astype(np.int64)
        # A row costs its nonzeros plus about as much as one more for its output.
        cost = self.plan.matrix.row_pointers + np.arange(n_rows + 1)
        cuts = np.linspace(0, cost[-1], numba.get_num_threads() * _PIECES_PER_THREAD + 1)
        self.pieces = np.searchsorted(cost, cuts).astype(np.int64)
        self.pieces[-1] = n_rows

    def multiply(
        self, X: npt.ArrayLike, out: npt.NDArray[np.float32] | None = None
    ) -> npt.NDArray[np.float32]:
        """Return `A @ X`; see `ReadyPlan`."""
        features = self._features(X)
        out = checked_output(out, self.plan)
        self._run(features, out)
        return out

    def seconds(
        self, X: npt.ArrayLike, repeats: int = 20, warmup: int = 3, *, cold: bool = False
    ) -> npt.NDArray[np.float64]:
        """Time runs by the host's clock; see `ReadyPlan`."""
        features = self._features(X)
        out = checked_output(None, self.plan)
        return seconds_on_host(lambda: self._run(features, out), repeats, warmup, cold=cold)

    def _features(self, X: npt.ArrayLike) -> npt.NDArray[np.float32]:
        storage = self.plan.storage
        rounded: npt.NDArray[np.float32] = restored(
            stored(checked_features(X, self.plan), storage), storage
        )
        return rounded

    def _run(self, X: npt.NDArray[np.float32], out: npt.NDArray[np.float32]) -> None:
        matrix = self.plan.matrix
        _replay(
            self.pieces,
            self.first_record,
            self.nz_start,
            self.nz_count,
            matrix.column_indices,
            matrix.values,
            self.plan.output_rows,
            X,
            out,
            self.plan.zero_output,
        )


# "contract" lets a multiply and an add fuse, as they do on a GPU; sums keep their order.
@numba.njit(cache=True, nogil=True, parallel=True, fastmath={"contract"})
def _replay(
    pieces: npt.NDArray[np.int64],
    first_record: npt.NDArray[np.int64],
    nz_start: npt.NDArray[np.int64],
    nz_count: npt.NDArray[np.int32],
    columns: npt.NDArray[np.int32],
    values: npt.NDArray[np.float32],
    output_rows: npt.NDArray[np.int32],
    X: npt.NDArray[np.float32],
    Y: npt.NDArray[np.float32],
    zero_output: bool,
) -> None:
    n_cols = X.shape[1]
    for piece in numba.prange(pieces.size - 1):
        for row in range(pieces[piece], pieces[piece + 1]):
            y = Y[output_rows[row]]
            # Like a kernel, a plan that asks for no clearing writes only rows that have work.
            if zero_output or first_record[row] < first_record[row + 1]:
                for c in range(n_cols):
                    y[c] = 0
            for record in range(first_record[row], first_record[row + 1]):
                k = nz_start[record]
                stop = k + nz_count[record]
                # Four rows of X at a time: independent loads hide the latency of random rows, and
                # unsigned indices spare NumPy's test for counting from the end.
                while k + 4 <= stop:
                    a0, x0 = values[k], X[np.uint32(columns[k])]
                    a1, x1 = values[k + 1], X[np.uint32(columns[k + 1])]
                    a2, x2 = values[k + 2], X[np.uint32(columns[k + 2])]
                    a3, x3 = values[k + 3], X[np.uint32(columns[k + 3])]
                    for c in range(n_cols):
                        y[c] += a0 * x0[c] + a1 * x1[c] + a2 * x2[c] + a3 * x3[c]
                    k += 4
                while k < stop:
                    a0, x0 = values[k], X[np.uint32(columns[k])]
                    for c in range(n_cols):
                        y[c] += a0 * x0[c]
                    k += 1
