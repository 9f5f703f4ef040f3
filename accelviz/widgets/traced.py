"""A traced block as small arrays that the page draws from, and the sources of its kernel."""

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
from accelviz.plans import Plan
from accelviz.widgets.pack import Differences

#: Bytes that an element of an array may have, as the trace's `index` counts elements.
_SIZES = (1, 2, 4, 8, 16)
_SITE = ["file", "line", "kind", "space", "array", "bytes"]
_INCLUDE = re.compile(r'^\s*#include\s+"([^"]+)"', re.MULTILINE)


def trace_content(
    traced: pd.DataFrame, plan: Plan, waits: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Return the trace of one block as `pack` sends it; `src/traces.ts` reads it.

    Parameters
    ----------
    traced : DataFrame
        From `accelviz.trace`, of one block.
    plan : Plan
    waits : sequence of dict
        What `accelviz.trace` gave with it.

    Returns
    -------
    dict
        `block`, `warps`, `waits`, what `packed_requests` returns, and `source`, the text of the
        kernel's files by their last name.
    """
    return {
        "block": int(traced["block"].iloc[0]) if len(traced) else 0,
        "warps": plan.launch.warps_per_block,
        **packed_requests(traced),
        "waits": [dict(wait) for wait in waits],
        "source": sources(plan),
    }


def packed_requests(traced: pd.DataFrame) -> dict[str, Any]:
    """Pack the requests of one block in their order, each in a few numbers.

    Returns
    -------
    dict
        `sites`: places in the source that touch memory, each a dict with `file`, `line`, `kind`,
        `space`, `array`, `bytes` that a lane asks for, and `size`, the bytes of an element.
        `columns`, with an entry a request: `site`, `warp`, `lanes` (a bit a lane) and `begins`, the
        index of its first lane in `offsets`, which has the offset of each lane in bytes.
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


def _sites(
    traced: pd.DataFrame, begins: npt.NDArray[np.int64]
) -> tuple[list[dict[str, Any]], npt.NDArray[np.int64]]:
    """Return the places in the source, and the number of the one that each request is at."""
    sizes = {
        str(name): _element(part["offset"].to_numpy(), part["index"].to_numpy())
        for name, part in traced.groupby("array", observed=True)
    }
    first = traced.iloc[begins]
    numbered = first.groupby(_SITE, observed=True, sort=False).ngroup().to_numpy()
    _, firsts = np.unique(numbered, return_index=True)
    sites = []
    for record in first.iloc[firsts][_SITE].to_dict("records"):
        words = {name: str(record[name]) for name in ("file", "kind", "space", "array")}
        numbers = {name: int(record[name]) for name in ("line", "bytes")}
        # What is allocated without a type is counted in what each access asks for.
        sites.append({**words, **numbers, "size": sizes[words["array"]] or numbers["bytes"]})
    return sites, numbered


def _element(offset: npt.NDArray[np.int64], index: npt.NDArray[np.int64]) -> int | None:
    """Return the bytes of an element with which these offsets have these indices, if one has."""
    return next((size for size in _SIZES if np.array_equal(offset // size, index)), None)


def sources(plan: Plan) -> dict[str, str]:
    """Return the text of a plan's kernel and of the files that it includes, by their last name."""
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
