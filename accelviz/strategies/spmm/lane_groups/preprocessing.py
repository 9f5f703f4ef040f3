"""The preprocessing of `lane_groups` on a GPU: degree sort, block metadata, nonzeros in row order.

Results equal those of `degree_sort` and `subwarp_partition`, which run on the host.
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

#: Threads per block, the maximum, so that few blocks participate in a grid barrier.
BLOCK_THREADS = 1024
#: Bits of a radix-sort digit. One counter per digit value and warp must fit in shared memory.
DIGIT_BITS = 8
#: Words of `State` and `Totals` in the kernel file; the words of `State` that are block counts.
STATE_WORDS, TOTALS_WORDS, BLOCKS = 4, 3, slice(2, 4)
#: Rows per block, as long as there is an SM for every block.
_BLOCK_ROWS = 1024
#: Resident blocks per SM of `copy_nonzeros`.
_COPY_BLOCKS = 2
#: Parameters of each kernel, in order of launch.
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
    """Sort a pattern's rows by degree on a device, and compute the block metadata.

    Parameters
    ----------
    device : Device
    pattern : Pattern
        A valid matrix in arrays of the device; its content is not checked.
    groups : BlockSetting
        Subwarps per block (`max_block_warps`) and most nonzeros of a subwarp (`max_warp_nzs`).
    short_nzs : int
        Most nonzeros of a subwarp with several rows.
    block_order : {"place", "degree"}

    Returns
    -------
    SubwarpPartition

    Raises
    ------
    ArgumentError
        If an array has another type, dtype or size.
    PartitionError
        If there are 2^32 nonzeros or more.

    Notes
    -----
    There are two kernel launches; the host waits once, for the number of blocks. The workspace has
    12 bytes per row and less than 200 KB more.
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
    """Launch the kernels of `preprocess`; the returned function waits for its result."""
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
        per_row_or_nonzero = (arrays[name] for name in ("output_rows", "columns", "nonzero_order"))
        return SubwarpPartition(arrays["metadata"][:blocks], cut_blocks, *per_row_or_nonzero)

    return finish


def most_blocks(n_rows: int, nnz: int, groups: BlockSetting) -> int:
    """Return an upper bound of the number of blocks that does not depend on the degrees.

    Notes
    -----
    For each degree, all blocks but one are full. A full block has at least one row per subwarp, or
    f subwarps share each row. Such a row has more than (f / r) `max_warp_nzs` nonzeros, where r is
    the largest ratio of neighboring divisors of the number of subwarps, so that the block has more
    than `deg_bound` / r. A row of L nonzeros is split into fewer than 2 L / `deg_bound` parts.
    Rows of k different degrees have at least 0 + 1 + ... + (k - 1) nonzeros.
    """
    shared = nnz * _largest_ratio(groups) // groups.deg_bound
    degrees = min(math.isqrt(2 * nnz) + 2, groups.deg_bound + 1, n_rows)
    return min(n_rows // groups.max_block_warps + degrees + 1, n_rows) + shared


@functools.cache
def _largest_ratio(groups: BlockSetting) -> int:
    """Return r as above, rounded up and at least 2, which the bound for split rows needs."""
    return max([2, *(-(-b // a) for a, b in pairwise(groups.factors.tolist()))])


def spec(entry: str, **defines: int) -> KernelSpec:
    """Return the specification of the kernel `partition` or `copy_nonzeros`."""
    config = {"block_threads": BLOCK_THREADS, "digit_bits": DIGIT_BITS}
    config["info_field_bits"] = FIELD_BITS
    return KernelSpec("spmm/preprocess.cu", entry, config, PARAMETERS[entry], defines=defines)


def counters(grid: int) -> tuple[int, int, int]:
    """Return the words of `digit_counts`, `block_totals` and `begins` for a number of blocks."""
    return grid << DIGIT_BITS, grid * TOTALS_WORDS, grid * (BLOCK_THREADS // WARP_SIZE)


def _check_array(name: str, array: Any, dtype: Any, device: Any) -> None:
    valid = isinstance(array, device.array_type) and array.dtype == dtype and array.ndim == 1
    if not (valid and array.flags.c_contiguous):
        shape, dtype_of_array = getattr(array, "shape", None), getattr(array, "dtype", None)
        problem = f"a {type(array).__name__} of {dtype_of_array}, shape {shape}"
        library = device.array_type.__module__.partition(".")[0]
        expected = f"a contiguous 1-D {library} array of {np.dtype(dtype).name}"
        raise ArgumentError(name, problem, expected)
