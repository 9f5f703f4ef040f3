"""The memory requests of a traced block as arrays for the page, and its kernel's sources.

A request is one load, store or atomic of a warp: the accesses of its lanes in one step. A site is a
place in the source that makes requests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz import files
from accelviz.analysis.traffic import changes
from accelviz.plans import Operation, Plan
from accelviz.widgets.pack import Differences

#: Possible sizes in bytes of an array's elements, which the trace's `index` counts.
_ELEMENT_BYTES = (1, 2, 4, 8, 16)
#: Columns of a trace that identify a site.
_SITE = ["file", "line", "kind", "space", "array", "bytes"]
#: Arrays of the graph with an entry per nonzero; edge weights are operands of the operation.
_NONZERO_ARRAYS = (
    *("columns", "column_indices", "values", "sources", "targets", "offsets", "bits", "places"),
    *("stage", "staged_columns", "staged_values"),
)
_INCLUDE = re.compile(r'^\s*#include\s+"([^"]+)"', re.MULTILINE)


def trace_content(
    traced: pd.DataFrame, plan: Plan, waits: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Return the trace of one block for `pack`; `src/traces.ts` reads it.

    Parameters
    ----------
    traced : DataFrame
        Trace of one block, from `accelviz.trace`.
    plan : Plan
    waits : sequence of dict
        Waits at barriers, from the same call.

    Returns
    -------
    dict
        `block`, `warps` (per block), `waits`, `sites` and `columns` of `packed_requests`, and
        `source`: the text of the kernel's files by file name. A site has the `role` of its array.
    """
    packed = packed_requests(traced)
    written = {site["array"] for site in packed["sites"] if site["kind"] != "load"}
    for site in packed["sites"]:
        site["role"] = array_role(site["array"], plan.operation, site["array"] in written)
    return {
        "block": int(traced["block"].iloc[0]) if len(traced) else 0,
        "warps": plan.launch.warps_per_block,
        **packed,
        "waits": [dict(wait) for wait in waits],
        "source": sources(plan),
    }


def packed_requests(traced: pd.DataFrame) -> dict[str, Any]:
    """Pack the requests of one block in the order in which the emulator made them.

    Returns
    -------
    dict
        `sites`: a list of dicts with `file`, `line`, `kind`, `space`, `array`, `bytes` (accessed
        per lane) and `size` (bytes of an element).
        `columns`: arrays with one entry per request: `site` (an index), `warp`, `lanes` (a bit mask
        of the active lanes) and `begins` (index of its first lane in `offsets`); and `offsets`, the
        byte offset in the array of each active lane.
    """
    if not len(traced):
        names = ("site", "warp", "lanes", "begins", "offsets")
        return {"sites": [], "columns": {name: np.empty(0, np.int64) for name in names}}
    begins = np.flatnonzero(changes(traced["step"]))
    sites, site = _sites(traced, begins)
    columns = {
        "site": site,
        "warp": traced["warp"].to_numpy()[begins],
        "lanes": np.bitwise_or.reduceat(1 << traced["lane"].to_numpy(np.int64), begins),
        "begins": Differences(begins),
        "offsets": Differences(traced["offset"].to_numpy()),
    }
    return {"sites": sites, "columns": columns}


def array_role(array: str, operation: Operation, is_written: bool) -> str:
    """Return what a kernel's array holds: "structure", "nonzeros", "input" or "output".

    Columns and edge weights are "nonzeros", the other operands "input" or "output". Of the rest,
    written arrays hold sums, which are "output", and arrays that are only read tell workers their
    work: "structure".
    """
    operand = operation.operands.get(array)
    if operand and operand in operation.outputs:
        return "output"
    if array in _NONZERO_ARRAYS:
        return "nonzeros"
    if operand:
        return "nonzeros" if operand.of_nonzeros and "n_cols" not in operand.axes else "input"
    return "output" if is_written else "structure"


def _sites(
    traced: pd.DataFrame, begins: npt.NDArray[np.int64]
) -> tuple[list[dict[str, Any]], npt.NDArray[np.int64]]:
    """Return the sites, and the index of each request's site."""
    sizes = {
        str(name): _element_bytes(part["offset"].to_numpy(), part["index"].to_numpy())
        for name, part in traced.groupby("array", observed=True)
    }
    first = traced.iloc[begins]
    site = first.groupby(_SITE, observed=True, sort=False).ngroup().to_numpy()
    _, firsts = np.unique(site, return_index=True)
    sites = []
    for record in first.iloc[firsts][_SITE].to_dict("records"):
        text = {name: str(record[name]) for name in ("file", "kind", "space", "array")}
        numbers = {name: int(record[name]) for name in ("line", "bytes")}
        # An array allocated without a type has elements as large as each access.
        sites.append({**text, **numbers, "size": sizes[text["array"]] or numbers["bytes"]})
    return sites, site


def _element_bytes(offset: npt.NDArray[np.int64], index: npt.NDArray[np.int64]) -> int | None:
    """Return the element size that maps byte offsets to element indices, or None."""
    return next((size for size in _ELEMENT_BYTES if np.array_equal(offset // size, index)), None)


def sources(plan: Plan) -> dict[str, str]:
    """Return the text of a plan's kernel file and of its includes, by file name."""
    kernel = plan.kernel
    if kernel is None:
        return {}
    texts: dict[str, str] = {}

    def read(name: str, text: str) -> None:
        texts[PurePosixPath(name).name] = text
        for included in _INCLUDE.findall(text):
            path = files.kernel_directory() / included
            if PurePosixPath(included).name not in texts and path.is_file():
                read(included, path.read_text(encoding="utf-8"))

    read(kernel.file, kernel.source())
    return texts
