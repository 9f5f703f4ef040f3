"""Kernels of what layers do to dense matrices between products: one pass over memory each."""

from __future__ import annotations

from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.strategies.dense.operation import ACTIVATIONS

#: Threads of a block, and elements of a thread of `finish` and its like.
THREADS, AT_ONCE = 256, 4
#: Most blocks of a column sum, four for each SM of an H100, and the threads of the one block that
#: adds up theirs.
SUM_BLOCKS, SUM_THREADS = 528, 1024


def step_kernel(
    entry: str,
    arguments: tuple[str, ...] = (),
    activation: str = "none",
    dropout: bool = False,
    file: str = "dense",
) -> KernelSpec:
    """Return a kernel of kernels/layers."""
    config = {"activation": ACTIVATIONS.index(activation), "dropout": int(dropout)}
    return KernelSpec(f"layers/{file}.cu", entry, config, arguments)


def elements_launch(threads: int) -> LaunchConfig:
    """Return the launch of at least so many threads."""
    return LaunchConfig((-(-threads // THREADS), 1, 1), THREADS // WARP_SIZE)


def column_sums(matrix: str, sums: str, blocks: int) -> list[Call]:
    """Return the calls that add up columns, in an order that is always the same.

    Their arguments are `n_rows`, `n_parts` (`blocks`), `n_cols`, `width` (the columns that a block
    has at a time) and the workspace `parts`, of a row for each block.
    """
    launches = (blocks, THREADS), (1, SUM_THREADS)
    operands = (matrix, "parts", "n_rows"), ("parts", sums, "n_parts")
    return [
        Call(
            LaunchConfig((n_blocks, 1, 1), threads // WARP_SIZE),
            step_kernel("column_sums", (*names, "n_cols", "width")),
        )
        for (n_blocks, threads), names in zip(launches, operands, strict=True)
    ]
