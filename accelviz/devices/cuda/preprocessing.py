"""Preprocessing for `lane_groups` on the GPU: degree sort, metadata and paired nonzeros.

Bit for bit what `degree_sort` and `lane_group_partition` make on the CPU.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from accelviz.devices.cuda.compiler import compiled
from accelviz.devices.cuda.state import import_cupy
from accelviz.errors import ArgumentError, PartitionError
from accelviz.graph import Pattern
from accelviz.partition.block_level import FIELD_BITS, BlockSetting
from accelviz.partition.lane_groups import LanePartition
from accelviz.partition.nonzero_runs import check_numbers
from accelviz.plans import KernelSpec
from accelviz.plans.launch import WARP_SIZE

#: The largest block there is: fewer blocks wait for each other.
BLOCK_THREADS = 1024
#: Counters of a digit for each warp have to fit in shared memory.
DIGIT_BITS = 8
#: Words of `State` and of `Totals` in the kernel file; which words of a state hold the blocks.
STATE_WORDS, TOTALS_WORDS, BLOCKS = 4, 3, slice(2, 4)
#: Rows of a block while there are SMs. Fewer, larger blocks have less to wait for and take longer.
_BLOCK_ROWS = 1024
#: Blocks of the copy that an SM holds.
_COPY_BLOCKS = 2
#: The kernels and their parameters, in order.
PARAMETERS = {
    "partition": (
        *("row_pointers", "n_rows", "groups", "max_group_nzs", "short_nzs", "in_place"),
        *("state", "output_rows", "metadata", "spare_sorted", "spare_degrees", "spare_rows"),
        *("digit_counts", "block_totals", "begins"),
    ),
    "copy_nonzeros": (
        *("state", "metadata", "output_rows", "row_pointers", "column_indices"),
        *("columns", "nonzero_order", "deg_bound"),
    ),
}


def preprocess(
    pattern: Pattern, groups: BlockSetting, short_nzs: int, block_order: str = "place"
) -> LanePartition:
    """Sort a pattern's rows on the GPU by degree, and describe the blocks of `lane_groups`.

    Parameters
    ----------
    pattern : Pattern
        Of CuPy arrays, and of a valid matrix; the content is not checked.
    groups : BlockSetting
        Groups of a block, as `max_block_warps`, and most nonzeros of a group, as `max_warp_nzs`.
    short_nzs : int
        Most nonzeros of a group that takes several rows.
    block_order : {"place", "degree"}

    Returns
    -------
    LanePartition

    Raises
    ------
    ArgumentError
        If an array is not as described above.
    PartitionError
        If there are 2^32 nonzeros or more.

    Notes
    -----
    Two launches, whatever the graph, and one wait at the end, for the number of blocks. Beside the
    result it takes 12 bytes a row and less than 200 KB.
    """
    return queue(pattern, groups, short_nzs, block_order)()


def queue(
    pattern: Pattern,
    groups: BlockSetting,
    short_nzs: int,
    block_order: str = "place",
    *,
    record_steps: bool = False,
) -> Callable[[], LanePartition]:
    """Queue the work of `preprocess` on the current stream; what is returned waits for it."""
    cupy = import_cupy()
    row_pointers, column_indices = pattern.row_pointers, pattern.column_indices
    _check_array("row_pointers", row_pointers, np.int64, cupy)
    _check_array("column_indices", column_indices, np.int32, cupy)
    n_rows, nnz = pattern.n_rows, pattern.nnz
    if row_pointers.size != n_rows + 1:
        what = f"{row_pointers.size} for {n_rows} rows"
        raise ArgumentError("row_pointers", what, str(n_rows + 1))
    check_numbers(nnz)
    output_rows = cupy.empty(n_rows, np.int32)
    metadata = cupy.empty((most_blocks(n_rows, nnz, groups), 4), np.int32)
    columns, order = cupy.empty(nnz, np.int32), cupy.empty(nnz, np.uint32)
    if n_rows == 0:
        return lambda: LanePartition(metadata[:0], 0, output_rows, columns, order)
    sms = _multiprocessors(cupy.cuda.Device().id)
    grid = min(sms, -(-n_rows // _BLOCK_ROWS))
    sizes = (STATE_WORDS, *(n_rows,) * 3, *counters(grid))
    work = cupy.empty(sum(sizes), np.uint32)
    work.data.memset_async(0, 4 * STATE_WORDS)
    first = work.data.ptr
    state, *spare = (first + 4 * offset for offset in accumulate(sizes[:-1], initial=0))
    partition, copy = _partition(record_steps)[1], compiled(spec("copy_nonzeros"))[1]
    if block_order not in ("place", "degree"):
        raise PartitionError("block_order", f"got {block_order!r}", "'place' or 'degree'")
    setting = (groups.max_block_warps, groups.max_warp_nzs, short_nzs, block_order == "place")
    scalars = map(np.int32, (n_rows, *setting))
    arguments = (row_pointers, *scalars, state, output_rows, metadata, *spare)
    partition((grid,), (BLOCK_THREADS,), arguments)
    if nnz:
        copies = min(sms * _COPY_BLOCKS, -(-len(metadata) * WARP_SIZE // BLOCK_THREADS))
        sources = (state, metadata, output_rows, row_pointers, column_indices)
        copy((copies,), (BLOCK_THREADS,), (*sources, columns, order, np.int32(groups.deg_bound)))

    def finish() -> LanePartition:
        blocks, cut_blocks = work[BLOCKS].get().tolist()
        return LanePartition(metadata[:blocks], cut_blocks, output_rows, columns, order)

    return finish


def most_blocks(n_rows: int, nnz: int, groups: BlockSetting) -> int:
    """Bound the number of blocks without looking at the degrees.

    Notes
    -----
    Rows of one degree fill all of their blocks but one. A full block has as many rows as groups,
    or, where f groups share a row of more than (f / r) `max_warp_nzs` nonzeros, with r the largest
    ratio of neighboring divisors of the groups, more than `deg_bound` / r nonzeros. A cut row has
    fewer than twice as many parts as it is times longer than `deg_bound`. And k degrees take at
    least 0 + 1 + ... + (k - 1) nonzeros.
    """
    shared = nnz * _largest_ratio(groups) // groups.deg_bound
    degrees = min(math.isqrt(2 * nnz) + 2, groups.deg_bound + 1, n_rows)
    return min(n_rows // groups.max_block_warps + degrees + 1, n_rows) + shared


@functools.cache
def _largest_ratio(groups: BlockSetting) -> int:
    """Return r as above, rounded up and at least 2, as what is said of cut rows needs."""
    return max([2, *(-(-b // a) for a, b in pairwise(groups.factors.tolist()))])


def spec(entry: str, *, record_steps: bool = False) -> KernelSpec:
    """Return the kernel `partition` or `copy_nonzeros`."""
    config = {"block_threads": BLOCK_THREADS, "digit_bits": DIGIT_BITS}
    config |= {"info_field_bits": FIELD_BITS}
    switch = {"RECORD_STEPS": 1} if record_steps else {}
    return KernelSpec("spmm/preprocess.cu", entry, config, PARAMETERS[entry], defines=switch)


def recorded_steps() -> Any:
    """Return when the first block of the last recorded `partition` came through its waits, in ns.

    uint64, shape (32,): the start, each wait, the end, and zeros or what an earlier run left.
    """
    cupy = import_cupy()
    pointer = _partition(True)[0].get_global("step_times")
    return cupy.ndarray(32, np.uint64, pointer).get()


def counters(grid: int) -> tuple[int, int, int]:
    """Words of `digit_counts`, `block_totals` and `begins`."""
    return grid << DIGIT_BITS, grid * TOTALS_WORDS, grid * (BLOCK_THREADS // WARP_SIZE)


def _partition(record_steps: bool) -> tuple[Any, Any]:
    return compiled(spec("partition", record_steps=record_steps), cooperative=True)


@functools.cache
def _multiprocessors(device: int) -> int:
    runtime = import_cupy().cuda.runtime
    return int(runtime.deviceGetAttribute(runtime.cudaDevAttrMultiProcessorCount, device))


def _check_array(name: str, array: Any, dtype: Any, cupy: Any) -> None:
    fits = isinstance(array, cupy.ndarray) and array.dtype == dtype and array.ndim == 1
    if not (fits and array.flags.c_contiguous):
        shape, dtype_of_array = getattr(array, "shape", None), getattr(array, "dtype", None)
        problem = f"a {type(array).__name__} of {dtype_of_array}, shape {shape}"
        expected = f"a contiguous 1-D CuPy array of {np.dtype(dtype).name}"
        raise ArgumentError(name, problem, expected)
