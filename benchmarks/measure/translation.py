"""Sparse graph translation (Algorithm 4 of chapter 5 of the thesis) on a GPU, for Figure 5.5."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelviz.errors import checked_integer
from accelviz.graph import Pattern
from accelviz.partition.windows import MOST_ROWS, Windows
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig

#: Threads and nonzeros of a block.
BLOCK_THREADS, CHUNK = 256, 1024
#: Parameters of each kernel, in order of launch.
PARAMETERS = {
    "place_columns": ("row_pointers", "columns", "places", "marks", "rows", "n_rows", "nnz"),
    "condense_columns": (
        *("row_pointers", "columns", "distinct_before", "edge_to_column", "column_indices"),
        *("rows", "n_rows", "nnz"),
    ),
}


def translate_windows(device: Any, pattern: Pattern, rows: int) -> Windows:
    """Condense the columns of every window of rows by binary searches, without a sort.

    Parameters
    ----------
    device : Device
        A device that launches kernels and has a module `xp` for its arrays.
    pattern : Pattern
        A valid matrix in arrays of the device; its content is not checked.
    rows : int
        Rows of a window, 1 to 65,536. The time is proportional to them.

    Returns
    -------
    Windows
        Arrays of the device, equal to those of `row_windows`.

    Notes
    -----
    The workspace has 9 bytes per nonzero. The host waits once, for the number of columns.
    """
    xp, rows = device.xp, checked_integer("rows", rows, MOST_ROWS)
    nnz = pattern.nnz
    arrays = {
        "row_pointers": pattern.row_pointers,
        "columns": pattern.column_indices,
        "places": device.empty(nnz, np.uint32),
        "marks": device.zeros(nnz, np.uint8),
        "distinct_before": device.zeros(nnz + 1, np.int64),
        "column_indices": device.empty(0, np.int32),
        "rows": rows,
        "n_rows": pattern.n_rows,
        "nnz": np.int64(nnz),
    }
    arrays["edge_to_column"] = arrays["places"]
    config = LaunchConfig((-(-nnz // CHUNK), 1, 1), BLOCK_THREADS // WARP_SIZE)
    for entry, parameters in PARAMETERS.items():
        device.launch(Call(config, spec(entry)), {name: arrays[name] for name in parameters})
        if entry == "place_columns" and nnz:
            before = arrays["distinct_before"]
            xp.cumsum(arrays["marks"], dtype=np.int64, out=before[1:])
            arrays["column_indices"] = device.empty(int(before[-1]), np.int32)
    starts = xp.append(pattern.row_pointers[:-1:rows], pattern.row_pointers[-1:])
    pointers, edge_to_column = arrays["distinct_before"][starts], arrays["places"].view(np.int32)
    return Windows(rows, pointers, arrays["column_indices"], edge_to_column)


def spec(entry: str) -> KernelSpec:
    """Return the specification of the kernel `place_columns` or `condense_columns`."""
    config = {"block_threads": BLOCK_THREADS, "chunk": CHUNK}
    return KernelSpec("tensor_cores/translation.cu", entry, config, PARAMETERS[entry])
