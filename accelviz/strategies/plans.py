"""A plan: what a strategy makes of a graph and a column count, for everything else to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz import files
from accelviz.errors import KernelError, PartitionError
from accelviz.graph import Graph
from accelviz.ordering import Permutation
from accelviz.workload import Workload, WorkloadStatistics, check_cover, statistics

WARP_SIZE = 32
#: Static shared memory that every CUDA GPU grants a block without asking, in bytes.
STATIC_SHARED_BYTES = 48 * 1024
#: Blocks to a slice where a workload is read in slices.
SLICE_BLOCKS = 1 << 15
#: Most blocks of a CUDA grid in x, y and z.
GRID_LIMITS = ((1 << 31) - 1, 65_535, 65_535)


@dataclass(frozen=True)
class LaunchConfig:
    """How a kernel is launched.

    Parameters
    ----------
    grid : tuple of three int
        Blocks in x, y and z. The blocks of the workload are counted along x; y counts tiles of
        columns, each of which does the same work on other columns.
    warps_per_block : int
        Warps (of 32 threads) in a block, 1 to 32.
    dynamic_shared_bytes : int
        Shared memory beyond what the kernel declares itself.
    shared_percent : int, optional
        How much of an SM's shared memory should be set aside for blocks, in percent; what is not
        serves as L1. None leaves it to the driver.

    Raises
    ------
    PartitionError
        If no GPU launches a grid of that size.
    """

    grid: tuple[int, int, int]
    warps_per_block: int
    dynamic_shared_bytes: int = 0
    shared_percent: int | None = None

    def __post_init__(self) -> None:
        for axis, blocks, limit in zip("xyz", self.grid, GRID_LIMITS, strict=True):
            if blocks > limit:
                raise PartitionError(
                    "grid",
                    f"{blocks:,} blocks in {axis}",
                    f"at most {limit:,}; a smaller graph or fewer columns",
                )

    @property
    def block(self) -> tuple[int, int, int]:
        """Threads of a block in x, y and z."""
        return (self.warps_per_block * WARP_SIZE, 1, 1)

    @property
    def n_blocks(self) -> int:
        """Blocks of the workload, which are the blocks of one column tile."""
        return self.grid[0]


@dataclass(frozen=True)
class KernelSpec:
    """A kernel in `kernels/`, and what it is compiled and called with.

    Parameters
    ----------
    file : str
        Name of the `.cu` file; with `code`, only the name that messages use.
    entry : str
        Name of its `extern "C" __global__` function.
    defines : mapping of str to int
        Compile-time constants. The file refuses to compile without them.
    arguments : tuple of str
        The function's parameters in order: names of `Plan.arrays`, and `X` and `Y` for the features
        and the result.
    code : str
        The CUDA source itself, in place of a file: for a kernel written in a notebook.
    """

    file: str
    entry: str
    defines: Mapping[str, int]
    arguments: tuple[str, ...]
    code: str = ""

    def source(self) -> str:
        """Return the CUDA source.

        Raises
        ------
        KernelError
            If the file does not exist.
        """
        if self.code:
            return self.code
        path = files.kernel_directory() / self.file
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            there = ", ".join(sorted(p.name for p in path.parent.glob("*.cu")))
            raise KernelError(self.file, f"no such kernel ({error.strerror})", there) from error


@dataclass(frozen=True)
class LibraryCall:
    """A vendor's SpMM, in place of a kernel of this project.

    Parameters
    ----------
    library : str
        Whose it is: "cusparse".
    algorithm : str
        Which of its algorithms, by the library's own name, or "fastest".
    preprocess : bool
        Whether the library may look at the matrix before the first call.
    """

    library: str
    algorithm: str
    preprocess: bool = True


@dataclass(frozen=True, eq=False)
class Plan:
    """What a strategy makes of a graph and a column count; nothing in it is device-specific.

    Parameters
    ----------
    strategy : str
        Name of the strategy.
    graph : Graph
        The caller's graph.
    n_cols : int
        Columns of the features (the papers' D).
    parameters : mapping
        The strategy's own parameters, all of them, defaults included.
    matrix : Graph
        The matrix that the kernel walks; `graph` itself, or `graph` with its rows permuted.
    launch : LaunchConfig
        Grid and block.
    slice_workload : callable, optional
        `slice_workload(start, stop)` gives the Workload of those blocks. None for a library, which
        does not say what its warps do.
    permutation : Permutation, optional
        Row `i` of `matrix` is row `permutation.order[i]` of `graph`. None for the caller's order.
    metadata : array, optional
        The strategy's metadata, one line a block or warp, where it has any.
    kernel : KernelSpec, optional
        The CUDA kernel. Without one the plan still runs on the CPU and shows in every picture.
    arrays : mapping of str to array or NumPy scalar
        What `kernel.arguments` names, `X` and `Y` aside: arrays are passed as pointers, scalars by
        value.
    zero_output : bool
        The output must be cleared before the launch; the clearing is part of the timed work. If
        False, the kernel writes every element itself.
    setup_seconds : mapping of str to float
        Wall-clock time of each step of the preprocessing, in order. A step that other plans of the
        graph share is counted in each of them.
    workload_warps : int
        Warps of a block that the workload's column `warp` counts, where they are not the hardware's
        (`launch.warps_per_block`) because the threads are grouped otherwise.
    library : LibraryCall, optional
        The library that does the work; then there is no kernel.
    scratch : mapping of str to (int, dtype)
        Further arguments of the kernel: buffers of so many elements, zero before the first launch,
        that it may write and has to leave as it found them.
    storage : {"float32", "float16", "bfloat16"}
        What the kernel reads features in. Anything but float32 is another problem, whose features
        are rounded beforehand; sums and result are float32 in any case.
    """

    strategy: str
    graph: Graph
    n_cols: int
    parameters: Mapping[str, Any]
    matrix: Graph
    launch: LaunchConfig
    slice_workload: Callable[[int, int], Workload] | None
    permutation: Permutation | None = None
    metadata: npt.NDArray[np.int32] | None = None
    kernel: KernelSpec | None = None
    arrays: Mapping[str, npt.NDArray[Any] | np.generic] = field(default_factory=dict)
    zero_output: bool = True
    setup_seconds: Mapping[str, float] = field(default_factory=dict)
    workload_warps: int = 0
    library: LibraryCall | None = None
    scratch: Mapping[str, tuple[int, npt.DTypeLike]] = field(default_factory=dict)
    storage: str = "float32"

    @property
    def warps_per_block(self) -> int:
        """Warps of a block as the workload counts them."""
        return self.workload_warps or self.launch.warps_per_block

    @property
    def has_workload(self) -> bool:
        """Whether it is known which warp does what; a library does not say."""
        return self.slice_workload is not None

    def _slices(self) -> Callable[[int, int], Workload]:
        if self.slice_workload is None:
            raise PartitionError(
                "workload",
                f"{self.strategy!r} is a library, which does not say which warp does what",
                "a strategy with a kernel of its own",
            )
        return self.slice_workload

    def workload(self, start: int = 0, stop: int | None = None) -> Workload:
        """Return the workload of blocks `start` to `stop` (all of them if not given).

        A large graph's whole table takes 28 bytes a record; read it with `workload_slices` instead.

        Raises
        ------
        PartitionError
            If there are no such blocks, or the plan is a library's.
        """
        slice_workload = self._slices()
        n_blocks = self.launch.n_blocks
        stop = n_blocks if stop is None else stop
        if not 0 <= start <= stop <= n_blocks:
            raise PartitionError(
                "blocks", f"{start} to {stop}", f"a range within 0 to {n_blocks} (stop excluded)"
            )
        return slice_workload(start, stop)

    def workload_slices(self, blocks: int = SLICE_BLOCKS) -> Iterator[Workload]:
        """Give the workload in slices of `blocks` blocks, so that its memory stays bounded."""
        slice_workload = self._slices()
        for start in range(0, self.launch.n_blocks, blocks):
            yield slice_workload(start, min(start + blocks, self.launch.n_blocks))

    @cached_property
    def ready(self) -> dict[str, Any]:
        """What executors made of this plan, by device, kept so that it is made once."""
        return {}

    @cached_property
    def statistics(self) -> WorkloadStatistics:
        """Blocks, warps, idle share and balance, counted from the workload."""
        return statistics(self.workload_slices(), self.launch.n_blocks, self.warps_per_block)

    def check(self) -> None:
        """Refuse a workload that does not cover every nonzero of `matrix` exactly once.

        Raises
        ------
        PartitionError
            Naming the first record or nonzero at fault.
        """
        check_cover(
            self.workload_slices(),
            self.matrix.row_pointers,
            self.launch.n_blocks,
            self.warps_per_block,
        )

    @property
    def metadata_bytes(self) -> int:
        """Size of the metadata in bytes, 0 where there is none."""
        return 0 if self.metadata is None else self.metadata.nbytes

    @cached_property
    def output_rows(self) -> npt.NDArray[np.int32]:
        """Row of the result that each row of `matrix` is written to, int32, shape (n_rows,)."""
        if self.permutation is None:
            return np.arange(self.graph.n_rows, dtype=np.int32)
        return self.permutation.order

    def __repr__(self) -> str:
        settings = "".join(f", {name}={value}" for name, value in self.parameters.items())
        grid = " x ".join(str(side) for side in self.launch.grid[:2])
        work = f"{grid} blocks of {self.launch.warps_per_block} warps"
        if self.library is not None:
            work = f"a call of {self.library.library}"
        name = f"{self.strategy!r}, {self.graph.name!r}, n_cols={self.n_cols}{settings}"
        return f"Plan({name}: {work})"
