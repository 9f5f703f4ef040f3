"""Conversion of the records of a traced launch to a table of accesses and a list of waits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from accelviz.emulator.memory import Known
from accelviz.emulator.problems import KINDS
from accelviz.emulator.symbols import Line, line_of

if TYPE_CHECKING:
    import pandas as pd

#: `EmulatorRecord.kind` of a warp's wait; smaller kinds are accesses.
_WAIT = len(KINDS)


def table(records: npt.NDArray[Any], library: Path, known: Sequence[Known]) -> pd.DataFrame:
    """Return the accesses of a trace as a table; see `accelviz.trace`."""
    import pandas as pd  # here, as the emulator does not depend on it

    records = records[records["kind"] != _WAIT]
    code_of, codes = pd.factorize(records["code"])
    lines = [line_of(library, int(code)) or Line("", 0) for code in codes]
    number = records["array"]
    sizes = np.array([array.itemsize for array in known], dtype=int)[number]
    sizes = np.where(sizes > 0, sizes, records["bytes"])
    shared = np.array([array.shared for array in known], dtype=int)[number]
    # Shared arrays of several template instances have the same name, and one category.
    names = list(dict.fromkeys(array.name for array in known))
    array = np.array([names.index(array.name) for array in known], dtype=int)[number]
    columns = {
        **{name: records[name] for name in ("block", "warp", "lane", "step")},
        "file": pd.Categorical([line.file for line in lines])[code_of],
        "line": np.array([line.line for line in lines], dtype=int)[code_of],
        "kind": pd.Categorical.from_codes(records["kind"], KINDS),
        "space": pd.Categorical.from_codes(shared, ["global", "shared"]),
        "array": pd.Categorical.from_codes(array, names),
        "index": records["offset"] // sizes,
        **{name: records[name] for name in ("bytes", "offset")},
    }
    integers = dict.fromkeys(("block", "step", "index", "offset"), "int64")
    integers |= dict.fromkeys(("warp", "lane", "bytes"), "int32")
    return pd.DataFrame(columns).astype(integers)


def waits(records: npt.NDArray[Any], library: Path) -> list[dict[str, Any]]:
    """Return the waits of warps at barriers; see the parameter `waits` of `accelviz.trace`."""
    fields = {"block": "block", "warp": "warp", "arrived": "step", "left": "offset"}
    waits = []
    for record in records[records["kind"] == _WAIT]:
        line = line_of(library, int(record["code"])) or Line("", 0)
        numbers = {name: int(record[field]) for name, field in fields.items()}
        waits.append({**numbers, **line._asdict()})
    return waits
