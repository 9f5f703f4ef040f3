"""Preprocessing on a device that runs kernels: degree sort, metadata and paired nonzeros.

Bit for bit what `degree_sort` and `subwarp_partition` make on the host.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from accelviz.errors import ArgumentError, PartitionError
from accelviz.graph import Pattern
from accelviz.partition.block_level import FIELD_BITS, BlockSetting
from accelviz.partition.nonzero_runs import check_numbers
from accelviz.partition.subwarps import SubwarpPartition
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig

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
    device: Any, pattern: Pattern, groups: BlockSetting, short_nzs: int, block_order: str = "place"
) -> SubwarpPartition:
    """Sort a pattern's rows on a device by degree, and describe the blocks of `lane_groups`.

    Parameters
    ----------
    device : Device
    pattern : Pattern
        Of the device's arrays, and of a valid matrix; the content is not checked.
    groups : BlockSetting
        Groups of a block, as `max_block_warps`, and most nonzeros of a group, as `max_warp_nzs`.
    short_nzs : int
        Most nonzeros of a group that takes several rows.
    block_order : {"place", "degree"}

    Returns
    -------
    SubwarpPartition

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
    return launch(device, pattern, groups, short_nzs, block_order)()


def launch(
    device: Any,
    pattern: Pattern,
    groups: BlockSetting,
    short_nzs: int,
    block_order: str = "place",
    **defines: int,
) -> Callable[[], SubwarpPartition]:
    """Launch the work of `preprocess`; what is returned waits for it."""
    n_rows, nnz = pattern.n_rows, pattern.nnz
    _check_array("row_pointers", pattern.row_pointers, np.int64, device)
    _check_array("column_indices", pattern.column_indices, np.int32, device)
    if pattern.row_pointers.size != n_rows + 1:
        problem = f"{pattern.row_pointers.size} for {n_rows} rows"
        raise ArgumentError("row_pointers", problem, str(n_rows + 1))
    if block_order not in ("place", "degree"):
        raise PartitionError("block_order", f"got {block_order!r}", "'place' or 'degree'")
    check_numbers(nnz)
    sms = device.multiprocessors
    grid = min(sms, -(-n_rows // _BLOCK_ROWS))
    spare = dict.fromkeys(PARAMETERS["partition"][-6:-3], n_rows)
    spare |= dict(zip(PARAMETERS["partition"][-3:], counters(grid), strict=True))
    arrays = {
        "row_pointers": pattern.row_pointers,
        "column_indices": pattern.column_indices,
        "state": device.zeros(STATE_WORDS, np.uint32),
        "output_rows": device.empty(n_rows, np.int32),
        "metadata": device.empty((most_blocks(n_rows, nnz, groups), 4), np.int32),
        "columns": device.empty(nnz, np.int32),
        "nonzero_order": device.empty(nnz, np.uint32),
        **{name: device.empty(size, np.uint32) for name, size in spare.items()},
        "n_rows": n_rows,
        "groups": groups.max_block_warps,
        "max_group_nzs": groups.max_warp_nzs,
        "short_nzs": short_nzs,
        "in_place": int(block_order == "place"),
        "deg_bound": groups.deg_bound,
    }
    arrays["spare_rows"] = arrays["spare_rows"].view(np.int32)
    copies = min(sms * _COPY_BLOCKS, -(-len(arrays["metadata"]) * WARP_SIZE // BLOCK_THREADS))
    for entry, blocks in (("partition", grid), ("copy_nonzeros", copies if nnz else 0)):
        config = LaunchConfig(
            (blocks, 1, 1), BLOCK_THREADS // WARP_SIZE, cooperative=entry == "partition"
        )
        arguments = {name: arrays[name] for name in PARAMETERS[entry]}
        device.launch(Call(config, spec(entry, **defines)), arguments)

    def finish() -> SubwarpPartition:
        blocks, cut_blocks = device.to_host(arrays["state"][BLOCKS]).tolist()
        others = (arrays[name] for name in ("output_rows", "columns", "nonzero_order"))
        return SubwarpPartition(arrays["metadata"][:blocks], cut_blocks, *others)

    return finish


def most_blocks(n_rows: int, nnz: int, groups: BlockSetting) -> int:
    """Bound the number of blocks without looking at the degrees.

    Notes
    -----
    Rows of one degree fill all of their blocks but one. A full block has as many rows as groups,
    or, where f groups share a row of more than (f / r) `max_warp_nzs` nonzeros, with r the largest
    ratio of neighboring divisors of the groups, more than `deg_bound` / r nonzeros. A row of L
    nonzeros is cut into fewer than 2 L / `deg_bound` parts. And k degrees take at least
    0 + 1 + ... + (k - 1) nonzeros.
    """
    shared = nnz * _largest_ratio(groups) // groups.deg_bound
    degrees = min(math.isqrt(2 * nnz) + 2, groups.deg_bound + 1, n_rows)
    return min(n_rows // groups.max_block_warps + degrees + 1, n_rows) + shared


@functools.cache
def _largest_ratio(groups: BlockSetting) -> int:
    """Return r as above, rounded up and at least 2, as the bound on parts of a cut row needs."""
    return max([2, *(-(-b // a) for a, b in pairwise(groups.factors.tolist()))])


def spec(entry: str, **defines: int) -> KernelSpec:
    """Return the kernel `partition` or `copy_nonzeros`."""
    config = {"block_threads": BLOCK_THREADS, "digit_bits": DIGIT_BITS}
    config |= {"info_field_bits": FIELD_BITS}
    return KernelSpec("spmm/preprocess.cu", entry, config, PARAMETERS[entry], defines=defines)


def counters(grid: int) -> tuple[int, int, int]:
    """Words of `digit_counts`, `block_totals` and `begins`."""
    return grid << DIGIT_BITS, grid * TOTALS_WORDS, grid * (BLOCK_THREADS // WARP_SIZE)


def _check_array(name: str, array: Any, dtype: Any, device: Any) -> None:
    fits = isinstance(array, device.array_type) and array.dtype == dtype and array.ndim == 1
    if not (fits and array.flags.c_contiguous):
        shape, dtype_of_array = getattr(array, "shape", None), getattr(array, "dtype", None)
        problem = f"a {type(array).__name__} of {dtype_of_array}, shape {shape}"
        library = device.array_type.__module__.partition(".")[0]
        expected = f"a contiguous 1-D {library} array of {np.dtype(dtype).name}"
        raise ArgumentError(name, problem, expected)
