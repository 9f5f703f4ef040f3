"""Partition schemes: how nonzeros are dealt out to blocks and warps, a scheme a file.

A scheme has up to three parts, which use the same names for the same things.

- `..._partition` makes the metadata of a matrix.
- `..._workload(..., start, stop)` gives the `Workload` of blocks `start` to `stop` - 1, from what
  the kernel reads. `Layout.slice_workload` is such a function of those two.
- A class derived from `Scheme` counts the same from the degrees alone, in closed form.

`row_pointers` is the int64 array of shape (n_rows + 1,) of a valid CSR matrix. `block_warps` is the
warps of a block, `n_cols` the columns of X, on which the atomics depend.
"""
