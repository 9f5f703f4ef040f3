"""Partition schemes: how nonzeros are dealt out to blocks and warps.

A scheme has up to three functions, which use the same names for the same things.

- `..._partition` makes the metadata of a matrix.
- `..._workload(..., start, stop)` gives the `Workload` of blocks `start` to `stop` - 1, from what
  the kernel reads. `Plan.slice_workload` is such a function of those two.
- `..._summary(rows, ...)` counts the same from the degrees alone, in closed form: it gives the
  `PartitionSummary` of `RowDegrees`.

`row_pointers` is the int64 array of shape (n_rows + 1,) of a valid CSR matrix. `block_warps` is the
warps of a block, `n_cols` the columns of X, on which the atomics depend.
"""
