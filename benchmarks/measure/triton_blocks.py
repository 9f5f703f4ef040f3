"""A block-sparse product in Triton, for `block_formats`: blocks of a matrix times a dense one."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def product(  # type: ignore[no-untyped-def]  # Triton reads annotations of parameters
    pointers,
    columns,
    values,
    X,
    Y,
    n_cols,
    SIZE: tl.constexpr,
    TILE: tl.constexpr,
) -> None:
    """Multiply the blocks of a block row by rows of X, for TILE columns, and store the sum."""
    block_row = tl.program_id(0)
    within = tl.arange(0, SIZE)
    tile = tl.program_id(1) * TILE + tl.arange(0, TILE)
    is_column = tile[None, :] < n_cols
    sums = tl.zeros((SIZE, TILE), tl.float32)
    for block in range(tl.load(pointers + block_row), tl.load(pointers + block_row + 1)):
        first_value = block * SIZE * SIZE  # of 64 bits, as the pointers are
        a = tl.load(values + first_value + within[:, None] * SIZE + within[None, :])
        first = tl.load(columns + block).to(tl.int64) * SIZE
        x = tl.load(X + (first + within[:, None]) * n_cols + tile[None, :], is_column, 0.0)
        sums += tl.dot(a, x, input_precision="tf32")
    row = block_row.to(tl.int64) * SIZE + within
    tl.store(Y + row[:, None] * n_cols + tile[None, :], sums, is_column)
