"""The calls of a plan: kernels with their launches, or a vendor's library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accelviz import files
from accelviz.errors import KernelError, PartitionError, checked_integer

WARP_SIZE = 32
#: Most warps of a block.
MOST_BLOCK_WARPS = 32
#: Static shared memory that every CUDA GPU grants a block without asking, in bytes.
STATIC_SHARED_BYTES = 48 * 1024
#: A kernel's parameter by value, Hopper's `CUtensorMap`: here unset, for a launch to fill in.
TENSOR_MAP = np.dtype([("words", np.uint64, (16,))])
NO_TENSOR_MAP = np.zeros((), TENSOR_MAP)[()]
#: Most blocks of a CUDA grid in x, y and z.
GRID_LIMITS = ((1 << 31) - 1, 65_535, 65_535)


@dataclass(frozen=True)
class LaunchConfig:
    """The launch of a kernel.

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
        Percent of an SM's shared memory to set aside for blocks; the rest serves as L1. None leaves
        it to the driver.
    cooperative : bool
        Whether blocks wait for each other, so that all of them have to be on the GPU at once.

    Raises
    ------
    PartitionError
        If no GPU launches a grid or a block of that size. Only a launch of no block at all may
        have 0 warps.
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
        """Threads of a block in x, y and z."""
        return (self.warps_per_block * WARP_SIZE, 1, 1)

    @property
    def n_blocks(self) -> int:
        """Blocks of the workload, which are the blocks of one column tile."""
        return self.grid[0]


@dataclass(frozen=True)
class KernelSpec:
    """A kernel in `kernels/`, with its constants and its arguments.

    Parameters
    ----------
    file : str
        Path of the `.cu` file in `kernels/`; with `code`, only the name that messages use.
    entry : str
        Name of its `extern "C" __global__` function, or an instance of a template, "gat<Config>".
    config : mapping of str to int or str
        Members of the `struct Config` in front of the source: constants, and aliases of types that
        CUDA itself has. The compiler names one that is missing.
    arguments : tuple of str
        The function's parameters in order: names of the operation's operands, such as `X` and `Y`,
        and of the arrays and workspaces of the plan's `Buffers`.
    code : str
        The CUDA source itself, in place of a file: for a kernel written in a notebook.
    capability : int
        The least compute capability of a GPU that has its instructions, 80 for 8.0; 0 for any.
    arch : str
        The one architecture that has them, such as "sm_90a", where later ones do not.
    portable : bool
        Whether other architectures run it too, compiled without the instructions of `arch`.
    defines : mapping of str to object
        Macros, for kernels from elsewhere.
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
            names = files.kernel_names()
            near = [name for name in names if name.startswith(f"{self.file.partition('/')[0]}/")]
            expected = "give its text as KernelSpec(..., code=text), or the name of a file there: "
            expected += ", ".join(near or names)
            problem = f"there is no such file in kernels/ ({error.strerror})"
            raise KernelError(self.file, problem, expected) from error

    def configured_source(self) -> str:
        """Return the source behind its `Config`, with the file's own line numbers."""
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
    """A description of an operand for Hopper's copy engine, in boxes of 32-bit words.

    Attributes
    ----------
    operand : str
    sizes : tuple of int
        In each direction, neighbors in memory first.
    strides : tuple of int
        Bytes from one to the next, in each direction but the first; multiples of 16.
    box : tuple of int
        Sizes of a box, of at most 32 words in the first direction.
    """

    operand: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """A launch of a kernel.

    Parameters
    ----------
    launch : LaunchConfig
    kernel : KernelSpec, optional
        Without one the plan runs on the CPU alone, and shows in every picture.
    tensor_maps : mapping of str to TensorMap
        Arguments that depend on an operand's address.
    """

    launch: LaunchConfig
    kernel: KernelSpec | None = None
    tensor_maps: Mapping[str, TensorMap] = field(default_factory=dict)


@dataclass(frozen=True)
class LibraryCall:
    """A vendor's function, in place of a kernel of this project.

    Parameters
    ----------
    library : str
        Whose it is: "cusparse", "cublas".
    algorithm : str
        Which of its algorithms, by the library's own name, or "fastest".
    preprocess : bool
        Whether the library may look at the matrix before the first call.
    arguments : tuple of str
        Of a dense product: its factors and its result, by name.
    transposed : {"", "A", "B"}
        Which of the factors is given transposed.
    adds : bool
        Whether the product is added to what the result holds.
    """

    library: str
    algorithm: str
    preprocess: bool = True
    arguments: tuple[str, ...] = ()
    transposed: str = ""
    adds: bool = False
    launch = LaunchConfig((0, 0, 0), 0)  # the library decides when it is called
    kernel = None
