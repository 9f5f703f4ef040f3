"""Partition schemes: each module assigns the nonzeros of a matrix to blocks and warps in one way.

A module has up to three parts:

- `..._partition` computes the metadata of a matrix, which the kernel reads.
- `..._workload(..., start, stop)` returns the `Workload` of blocks `start` to `stop` - 1. With the
  other arguments bound it serves as `Layout.slice_workload`.
- A subclass of `Scheme` computes a `PartitionSummary` in closed form from the degrees.

Parameters that all modules share: `row_pointers` is the int64 array of shape (n_rows + 1,) of a
valid CSR matrix, `block_warps` the number of warps per block, `n_cols` the number of columns of X.
"""
