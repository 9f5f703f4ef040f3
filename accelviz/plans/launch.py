"""The calls of a plan: launches of kernels, and calls of a vendor's library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accelviz import files
from accelviz.errors import KernelError, PartitionError, checked_integer
from accelviz.immutable import Immutable
from accelviz.partition.hardware_warps import WARP_SIZE as WARP_SIZE

#: Largest number of warps in a block.
MOST_BLOCK_WARPS = 32
#: Shared memory of a block that needs no opt-in on any CUDA GPU, in bytes.
STATIC_SHARED_BYTES = 48 * 1024
#: Hopper's `CUtensorMap`, a kernel parameter by value, and its placeholder until the launch.
TENSOR_MAP = np.dtype([("words", np.uint64, (16,))])
NO_TENSOR_MAP = np.zeros((), TENSOR_MAP)[()]
#: Largest number of blocks of a CUDA grid in x, y and z.
GRID_LIMITS = ((1 << 31) - 1, 65_535, 65_535)


@dataclass(frozen=True)
class LaunchConfig:
    """The launch configuration of a kernel: grid, block and shared memory.

    Parameters
    ----------
    grid : tuple of three int
        Number of blocks in x, y and z. Blocks along x are the blocks of the workload; blocks along
        y do the same work on another column tile.
    warps_per_block : int
        Number of warps (of 32 threads) in a block, 1 to 32.
    dynamic_shared_bytes : int
        Dynamic shared memory of a block, in bytes.
    shared_percent : int, optional
        Percentage of an SM's combined L1 and shared memory that is used as shared memory (the
        carveout). None leaves the choice to the driver.
    cooperative : bool
        Whether blocks wait for each other, so that all must be resident at the same time.

    Raises
    ------
    PartitionError
        If the grid or the block exceeds CUDA's limits. 0 warps are valid for an empty grid only.
    """

    grid: tuple[int, int, int]
    warps_per_block: int
    dynamic_shared_bytes: int = 0
    shared_percent: int | None = None
    cooperative: bool = False

    def __post_init__(self) -> None:
        for axis, blocks, limit in zip("xyz", self.grid, GRID_LIMITS, strict=True):
            if blocks > limit:
                expected = f"at most {limit:,}; a smaller graph or fewer columns"
                raise PartitionError("grid", f"{blocks:,} blocks in {axis}", expected)
            checked_integer("grid", blocks, least=0)
        least = 1 if any(self.grid) else 0
        checked_integer("warps_per_block", self.warps_per_block, MOST_BLOCK_WARPS, least=least)

    @property
    def block(self) -> tuple[int, int, int]:
        """Number of threads of a block in x, y and z."""
        return (self.warps_per_block * WARP_SIZE, 1, 1)

    @property
    def n_blocks(self) -> int:
        """Number of blocks of the workload, that is of one column tile."""
        return self.grid[0]


@dataclass(frozen=True)
class KernelSpec(Immutable):
    """A CUDA kernel: its source, compile-time constants and arguments.

    Parameters
    ----------
    file : str
        Path of the `.cu` file in `kernels/`; with `code`, only the name for messages.
    entry : str
        Name of the `extern "C" __global__` function, or a template instance such as "gat<Config>".
    config : mapping of str to int or str
        Members of the `struct Config` that is prepended to the source: integer constants, and names
        of CUDA types as aliases.
    arguments : tuple of str
        The function's parameters in order: names of the operation's operands, such as `X` and `Y`,
        and of arrays and workspaces of the plan's `Buffers`.
    code : str
        CUDA source in place of a file, for a kernel written in a notebook.
    capability : int
        Minimal compute capability of the GPU, times ten: 80 for 8.0; 0 for any.
    arch : str
        The only architecture with the kernel's instructions, such as "sm_90a"; "" for no such one.
    portable : bool
        Whether the kernel also compiles for other architectures, without the instructions of
        `arch`.
    defines : mapping of str to object
        Macros, for kernels that do not use `Config`.
    """

    file: str
    entry: str
    config: Mapping[str, int | str]
    arguments: tuple[str, ...]
    code: str = ""
    capability: int = 0
    arch: str = ""
    portable: bool = False
    defines: Mapping[str, Any] = field(default_factory=dict)

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
            names, folder = files.kernel_names(), self.file.partition("/")[0]
            names_nearby = [name for name in names if name.startswith(f"{folder}/")]
            expected = "give its text as KernelSpec(..., code=text), or the name of a file there: "
            expected += ", ".join(names_nearby or names)
            problem = f"there is no such file in kernels/ ({error.strerror})"
            raise KernelError(self.file, problem, expected) from error

    def configured_source(self) -> str:
        """Return `struct Config` followed by the source, whose line numbers stay the file's."""
        if self.code and not self.config:
            return self.code
        members = []
        for name, value in self.config.items():
            if isinstance(value, str):
                members.append(f"using {name} = {value};")
            else:
                kind = "bool" if isinstance(value, bool) else "int"
                members.append(f"static constexpr {kind} {name} = {int(value)};")
        config = f"struct Config {{ {' '.join(members)} }};\n"
        return f'{config}#line 1 "{self.file}"\n{self.source()}'


@dataclass(frozen=True)
class TensorMap:
    """Arguments of `cuTensorMapEncodeTiled`, which describes an operand to the copy engine (TMA).

    Attributes
    ----------
    operand : str
        Name of an operand, an array of 32-bit words.
    sizes : tuple of int
        Number of words along each axis; the first axis is contiguous in memory.
    strides : tuple of int
        Bytes between neighbors along each axis but the first; multiples of 16.
    box : tuple of int
        Number of words along each axis of a copied box; at most 32 along the first.
    """

    operand: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]


@dataclass(frozen=True)
class Call(Immutable):
    """A launch of a kernel.

    Parameters
    ----------
    launch : LaunchConfig
    kernel : KernelSpec, optional
        Without a kernel, the plan runs on the CPU only; pictures work all the same.
    tensor_maps : mapping of str to TensorMap
        Arguments that are tensor maps, computed at the launch from the operand's address.
    """

    launch: LaunchConfig
    kernel: KernelSpec | None = None
    tensor_maps: Mapping[str, TensorMap] = field(default_factory=dict)


@dataclass(frozen=True)
class LibraryCall:
    """A call of a vendor's library, in place of a kernel of this project.

    Parameters
    ----------
    library : {"cusparse", "cublas"}
    algorithm : str
        The library's name of the algorithm, or "fastest" for the fastest one in a trial.
    preprocess : bool
        Whether the library may preprocess the matrix before the first call.
    arguments : tuple of str
        Names of the two factors and of the result of a dense product.
    transposed : {"", "A", "B"}
        The transposed factor of a dense product, if any.
    adds : bool
        Whether the product is added to the result's content.
    """

    library: str
    algorithm: str
    preprocess: bool = True
    arguments: tuple[str, ...] = ()
    transposed: str = ""
    adds: bool = False
    launch = LaunchConfig((0, 0, 0), 0)  # chosen by the library and unknown
    kernel = None
