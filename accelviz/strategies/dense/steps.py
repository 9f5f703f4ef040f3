"""Element-wise kernels and column sums for the dense matrices of layers, between products."""

from __future__ import annotations

from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.strategies.dense.operation import ACTIVATIONS

#: Threads per block; elements per thread of the element-wise kernels.
THREADS, AT_ONCE = 256, 4
#: Most blocks of a column sum (four per SM of an H100); threads of the block that adds their sums.
SUM_BLOCKS, SUM_THREADS = 528, 1024


def step_kernel(
    entry: str,
    arguments: tuple[str, ...] = (),
    activation: str = "none",
    dropout: bool = False,
    file: str = "dense",
) -> KernelSpec:
    """Return the specification of a kernel in kernels/layers."""
    config = {"activation": ACTIVATIONS.index(activation), "dropout": int(dropout)}
    return KernelSpec(f"layers/{file}.cu", entry, config, arguments)


def elements_launch(threads: int) -> LaunchConfig:
    """Return a launch of at least `threads` threads."""
    return LaunchConfig((-(-threads // THREADS), 1, 1), THREADS // WARP_SIZE)


def column_sums(matrix: str, sums: str, blocks: int) -> list[Call]:
    """Return two calls that write the sums of a matrix's columns, deterministically, to `sums`.

    Their arguments are `n_rows`, `n_parts` (`blocks`), `n_cols`, `width` (columns per step of a
    block) and the workspace `parts`, shape (blocks, n_cols).
    """
    add_rows = step_kernel("column_sums", (matrix, "parts", "n_rows", "n_cols", "width"))
    add_parts = step_kernel("column_sums", ("parts", sums, "n_parts", "n_cols", "width"))
    return [
        Call(LaunchConfig((blocks, 1, 1), THREADS // WARP_SIZE), add_rows),
        Call(LaunchConfig((1, 1, 1), SUM_THREADS // WARP_SIZE), add_parts),
    ]
