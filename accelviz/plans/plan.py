"""A plan: how one operation on one sparsity pattern is mapped onto a GPU.

Strategies build plans; devices run them, and plots, benchmarks and tests read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from accelviz import markup
from accelviz.arrays import Longs
from accelviz.errors import PartitionError
from accelviz.graph import Pattern
from accelviz.immutable import Immutable, taken_over
from accelviz.ordering import DegreeHistogram, Permutation, RowDegrees
from accelviz.partition.hardware_warps import WARP_SIZE, HardwareWarps, WorkerLanes
from accelviz.partition.summary import BARS_TITLE, PartitionSummary, statistics_of_loads
from accelviz.plans.description import Description
from accelviz.plans.launch import Call, KernelSpec, LaunchConfig, LibraryCall
from accelviz.plans.operation import Operation
from accelviz.plans.settings import Settings
from accelviz.store import Store
from accelviz.tiles import Tiles
from accelviz.workload import Workload, check_cover, nonzeros_per_warp

if TYPE_CHECKING:
    from accelviz.plans.strategy import Strategy

#: Largest number of nonzeros of a plan whose statistics a notebook displays.
_MOST_COUNTED = 1 << 24
#: Number of blocks in one slice of a workload.
SLICE_BLOCKS = 1 << 15

#: Sizes of an operation that the pattern does not determine, such as `n_cols`, by name.
Widths = Mapping[str, int]
#: Number of elements and dtype of buffers, by name.
Sizes = Mapping[str, tuple[int, npt.DTypeLike]]


@dataclass(frozen=True, eq=False)
class Layout(Immutable):
    """The matrix that the kernels walk, and the work of each block and warp.

    Parameters
    ----------
    pattern : Pattern
        Pattern of the caller's matrix.
    slice_workload : callable, optional
        `slice_workload(start, stop)` returns the Workload of blocks `start` to `stop` - 1. None if
        the assignment of work to warps is unknown, as in a vendor's library.
    walked : Pattern, optional
        The matrix that the kernels walk; the workload's rows and nonzeros are those of this matrix.
        It is `pattern` (the default), or `pattern` with permuted rows, transposed, or both.
    permutation : Permutation, optional
        Row `i` of `walked` is row `permutation.order[i]` of `pattern` (or of its transpose). None
        for the caller's order.
    nonzero_order : array of int, shape (nnz,), optional
        Nonzero `k` of `walked` is nonzero `nonzero_order[k]` of `pattern`. The device reorders
        inputs with one entry per nonzero before the first call; the kernels write outputs with
        one entry per nonzero in the caller's order.
    metadata : array, optional
        The strategy's metadata: one record per block or warp.
    workers_per_block : int
        Number of workers of a block in the workload; 0 if the workers are the hardware's warps.
    slice_loads : callable, optional
        `slice_loads(start, stop)` returns the nonzeros of each worker of blocks `start` to
        `stop` - 1, shape (blocks, workers), where a nonzero is processed once for each attention
        head, and counts as often. By default they are those of the workload.
    make_tiles : callable, optional
        Returns the Tiles that the main call multiplies.
    main : int
        Index of the main call, which is the one that the workload describes.
    """

    pattern: Pattern
    slice_workload: Callable[[int, int], Workload] | None = None
    walked: Pattern | None = None
    permutation: Permutation | None = None
    nonzero_order: npt.NDArray[Any] | None = None
    metadata: npt.NDArray[np.int32] | None = None
    workers_per_block: int = 0
    slice_loads: Callable[[int, int], Longs] | None = None
    make_tiles: Callable[[], Tiles] | None = None
    main: int = 0


@dataclass(frozen=True, eq=False)
class Buffers(Immutable):
    """Memory of the kernels other than the operands, and the types that the kernels compute in.

    Parameters
    ----------
    arrays : mapping of str to array or NumPy scalar
        Arguments of the kernels: arrays are passed as pointers, scalars by value.
    zeroed_workspace : mapping of str to (int, dtype)
        Number of elements and dtype of buffers that are zero before the first launch. The kernels
        may write to them and must reset them to zero.
    workspace : mapping of str to (int, dtype)
        Number of elements and dtype of uninitialised buffers. One call writes, a later one reads.
    zero_outputs : tuple of str, optional
        Outputs that are set to zero before the first call, by default all. Timings include it.
    storage : {"float32", "float16", "bfloat16"}
        Type in which kernels read gathered inputs. The device rounds inputs to it beforehand; sums
        and results are always float32.
    arithmetic : str
        Type of the products, a key of `plans.arithmetic.ROUNDING`, which has the rounding errors.
        The kernels round their inputs for all types but float32.
    """

    arrays: Mapping[str, Any] = field(default_factory=dict)
    zeroed_workspace: Sizes = field(default_factory=dict)
    workspace: Sizes = field(default_factory=dict)
    zero_outputs: tuple[str, ...] | None = None
    storage: str = "float32"
    arithmetic: str = "float32"


@dataclass(frozen=True, eq=False)
class Provenance(Immutable):
    """The origin of a plan.

    Parameters
    ----------
    strategy : Strategy
        The strategy that built the plan. Its operation is the plan's operation.
    values : array of float32, shape (nnz,), optional
        The graph's weights, the default of a run's `values`. None for a matrix on the GPU.
    widths : mapping of str to int
        The operation's widths, such as `n_cols`.
    settings : Settings
        The strategy's settings, resolved.
    setup_seconds : mapping of str to float
        Seconds of preprocessing on the host, by step.
    """

    strategy: Strategy
    values: npt.NDArray[np.float32] | None
    widths: Widths
    settings: Settings
    setup_seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Plan(Immutable):
    """How one operation runs on a pattern, on any device.

    The values of the nonzeros are an operand of each run, not a part of the plan. A plan is
    immutable: its mappings are read-only, and it copies writable arrays.

    Parameters
    ----------
    layout : Layout
        The matrix that the kernels walk, and the workload or tiles.
    calls : tuple of Call or LibraryCall
        Launches and library calls on a GPU, in order. The workload describes call `layout.main`.
    buffers : Buffers
        Arrays, workspaces, outputs to zero.
    provenance : Provenance
        Strategy, settings, widths, set-up times.
    then : tuple of Plan
        Further plans, run afterwards on the same operands. Each has its own `walked` matrix and
        its own workload. Workspaces of the same name are shared.
    """

    layout: Layout
    calls: tuple[Call | LibraryCall, ...]
    buffers: Buffers
    provenance: Provenance
    then: tuple[Plan, ...] = ()

    @property
    def pattern(self) -> Pattern:
        """The caller's pattern."""
        return self.layout.pattern

    @property
    def walked(self) -> Pattern:
        """The matrix that the kernels walk."""
        return self.layout.walked or self.layout.pattern

    @property
    def permutation(self) -> Permutation | None:
        """Row `i` of `walked` is the caller's row `permutation.order[i]`."""
        return self.layout.permutation

    @property
    def metadata(self) -> npt.NDArray[np.int32] | None:
        """The strategy's metadata, one record for each block or warp."""
        return self.layout.metadata

    @property
    def worker(self) -> str:
        """Unit of the workload: "combined warp" for several hardware warps, else the strategy's."""
        combined = self.strategy.worker == "warp" and self.hardware.spacing > WARP_SIZE
        return "combined warp" if combined else self.strategy.worker

    @property
    def workers_per_block(self) -> int:
        """Workers of a block in the workload."""
        return self.layout.workers_per_block or self.launch.warps_per_block

    @property
    def arrays(self) -> Mapping[str, Any]:
        """Arguments of the kernels other than operands and workspaces."""
        return self.buffers.arrays

    @property
    def storage(self) -> str:
        """Type of gathered inputs in memory: "float32", "float16" or "bfloat16"."""
        return self.buffers.storage

    @property
    def arithmetic(self) -> str:
        """Type of the products, a key of `plans.arithmetic.ROUNDING`."""
        return self.buffers.arithmetic

    @property
    def strategy(self) -> Strategy:
        """The strategy that made the plan."""
        return self.provenance.strategy

    @property
    def operation(self) -> Operation:
        """The operation that the plan computes."""
        return self.strategy.operation

    @property
    def widths(self) -> Widths:
        """The operation's widths, such as `n_cols`."""
        return self.provenance.widths

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The strategy's resolved settings by name."""
        return MappingProxyType(self.provenance.settings.values())

    @property
    def setup_seconds(self) -> Mapping[str, float]:
        """Seconds of preprocessing on the host, by step."""
        return self.provenance.setup_seconds

    @property
    def name(self) -> str:
        """The strategy's name."""
        return self.strategy.name

    @property
    def n_cols(self) -> int:
        """Number of columns of the features (the papers' D)."""
        return self.widths["n_cols"]

    @property
    def launch(self) -> LaunchConfig:
        """Grid and block of the main call."""
        return self.calls[self.layout.main].launch

    @property
    def kernel(self) -> KernelSpec | None:
        """The kernel of the main call, if it has one."""
        return self.calls[self.layout.main].kernel

    @cached_property
    def tiles(self) -> Tiles | None:
        """The tiles that the main call multiplies, or None."""
        return None if self.layout.make_tiles is None else self.layout.make_tiles()

    @property
    def parts(self) -> tuple[Plan, ...]:
        """The plan itself and the plans in `then`."""
        return (self, *self.then)

    @property
    def part_calls(self) -> tuple[tuple[Plan, Call | LibraryCall], ...]:
        """Pairs of (part, call) for the calls of all parts, in order."""
        return tuple((part, call) for part in self.parts for call in part.calls)

    def workspaces(self, kind: str) -> dict[str, tuple[int, npt.DTypeLike]]:
        """Return the "zeroed_workspace" or "workspace" of all parts, the largest of equal names."""
        largest: dict[str, tuple[int, npt.DTypeLike]] = {}
        for part in self.parts:
            for name, (size, dtype) in getattr(part.buffers, kind).items():
                largest[name] = max(size, largest.get(name, (0, dtype))[0]), dtype
        return largest

    @property
    def sizes(self) -> dict[str, int]:
        """Length of each axis of the operands, by the axis's name."""
        return self.operation.sizes(self.pattern, self.widths)

    @property
    def zero_outputs(self) -> tuple[str, ...]:
        """Names of the outputs that are set to zero before the first call."""
        if self.buffers.zero_outputs is not None:
            return self.buffers.zero_outputs
        return tuple(output.name for output in self.operation.outputs)

    @property
    def has_workload(self) -> bool:
        """Whether the plan assigns nonzeros to warps; plans that call a library do not."""
        return self.layout.slice_workload is not None

    def _slice_workload(self) -> Callable[[int, int], Workload]:
        if self.layout.slice_workload is None:
            problem = f"{self.name!r} does not say which warp does what"
            raise PartitionError("workload", problem, "a strategy with a workload")
        return self.layout.slice_workload

    def workload(self, start: int = 0, stop: int | None = None) -> Workload:
        """Return the workload of blocks `start` to `stop` - 1, by default of all blocks.

        A record takes 28 bytes. Read the workload of a large graph by `workload_slices`.

        Raises
        ------
        PartitionError
            If there are no such blocks, or the plan has no workload.
        """
        slice_workload = self._slice_workload()
        n_blocks = self.launch.n_blocks
        stop = n_blocks if stop is None else stop
        if not 0 <= start <= stop <= n_blocks:
            expected = f"a range within 0 to {n_blocks} (stop excluded)"
            raise PartitionError("blocks", f"{start} to {stop}", expected)
        return slice_workload(start, stop)

    def workload_slices(self, blocks: int = SLICE_BLOCKS) -> Iterator[Workload]:
        """Yield the workload in slices of `blocks` blocks, to bound the memory in use."""
        slice_workload = self._slice_workload()
        for start in range(0, self.launch.n_blocks, blocks):
            yield slice_workload(start, min(start + blocks, self.launch.n_blocks))

    def load_slices(self, blocks: int = SLICE_BLOCKS) -> Iterator[tuple[int, Longs, Longs]]:
        """Yield the loads of the workers, by slices of `blocks` blocks.

        Yields
        ------
        first : int
            First block of the slice that has work.
        steps_of : array of int64, shape (blocks, workers)
            What `hardware.steps` takes: nonzeros of each worker, or of its longest row.
        nonzeros : array of int64, shape (blocks, workers)
            Nonzeros of each worker.
        """
        if self.layout.slice_loads is not None:
            for start in range(0, self.launch.n_blocks, blocks):
                loads = self.layout.slice_loads(start, min(start + blocks, self.launch.n_blocks))
                yield start, loads, loads
            return
        for work in self.workload_slices(blocks):
            if len(work):
                nonzeros = nonzeros_per_warp(work, self.hardware.workers)
                yield int(work.block[0]), self.hardware.of_workload(work), nonzeros

    @cached_property
    def ready(self) -> Store:
        """Store of the plan's `ReadyPlan` on each device.

        Its entries must not refer to the plan, so that they are freed together with the plan.
        """
        return Store()

    @cached_property
    def hardware(self) -> HardwareWarps:
        """Hardware warps of a block of the main call, and the workers that each executes."""
        workers, warps = self.workers_per_block, self.launch.warps_per_block
        pointers = self.walked.row_pointers
        rows = RowDegrees(DegreeHistogram.of(pointers), pointers)
        settings, description = self.provenance.settings, None
        if isinstance(settings, self.strategy.Settings):
            description = self.strategy.describe(settings, rows, self.widths)
        description = description or Description()
        placed = description.workers
        if placed is None and workers != warps:  # workers share the block's lanes evenly
            placed = WorkerLanes(warps * WARP_SIZE // workers, warps)
        return HardwareWarps.of(workers, placed, description.lanes, self.n_cols)

    @cached_property
    def statistics(self) -> PartitionSummary:
        """Blocks, warps, idle share and balance, counted from the workload."""
        loads = ((steps_of, nonzeros) for _, steps_of, nonzeros in self.load_slices())
        summary = statistics_of_loads(loads, self.launch.n_blocks, self.hardware)
        return replace(summary, metadata_bytes=self.metadata_bytes)

    def check(self) -> None:
        """Check that the workload and the tiles cover every nonzero of `walked` exactly once.

        Raises
        ------
        PartitionError
            If not; the message has the first wrong record or nonzero.
        """
        for part in self.parts:
            check_cover(
                part.workload_slices(),
                part.walked.row_pointers,
                part.launch.n_blocks,
                part.workers_per_block,
            )
            if part.tiles is not None:
                part.tiles.check(part.walked.row_pointers, part.walked.column_indices)

    @property
    def metadata_bytes(self) -> int:
        """Size of the metadata in bytes; 0 for a plan without metadata."""
        return 0 if self.metadata is None else self.metadata.nbytes

    @cached_property
    def output_rows(self) -> npt.NDArray[np.int32]:
        """Output row of each row of `walked`, int32, shape (n_rows,)."""
        if self.permutation is None:
            return taken_over(np.arange(self.walked.n_rows, dtype=np.int32))
        return self.permutation.order

    def __repr__(self) -> str:
        values = {**self.widths, **self.parameters}
        settings = "".join(f", {name}={value}" for name, value in values.items())
        grid = " x ".join(str(side) for side in self.launch.grid[:2])
        work = f"{grid} blocks of {self.launch.warps_per_block} warps"
        if isinstance(self.calls[0], LibraryCall):
            work = f"a call of {self.calls[0].library}"
        return f"Plan({self.name!r}, {self.pattern.name!r}{settings}: {work})"

    def _repr_html_(self) -> str:
        pattern, launch = self.pattern, self.launch
        sentence = f"how {self.operation.name} on {pattern.name} is mapped onto a GPU"
        widths, settings = (
            ", ".join(f"{name} = {value}" for name, value in mapping.items())
            for mapping in (self.widths, self.parameters)
        )
        facts = [("operation", f"{self.operation.formula}, with {widths}")]
        facts += [("strategy", self.strategy.summary), ("settings", settings or "none")]
        bars = []
        if isinstance(self.calls[self.layout.main], LibraryCall):
            facts.append(("work of a warp", "unknown, as a library decides it"))
        else:
            tiles = launch.grid[1] * launch.grid[2]
            grid = f"{launch.n_blocks:,} blocks of {launch.warps_per_block} warps"
            facts.append(("launch", grid + f", for each of {tiles:,} column tiles" * (tiles > 1)))
        on_host = isinstance(pattern.row_pointers, np.ndarray)
        if on_host and self.has_workload and pattern.nnz <= _MOST_COUNTED:
            facts += self.statistics.facts(self.worker)[1:]  # without the blocks
            bars = self.statistics.bars()
        title = BARS_TITLE.replace("warps", f"{self.worker}s")
        return markup.summary(self.name, sentence, facts, bars, title)
