"""Records of a traced launch as a table, and the waits among them."""

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

#: Kind of a record that is a warp's wait, not an access.
_WAIT = len(KINDS)


def table(records: npt.NDArray[Any], library: Path, known: Sequence[Known]) -> pd.DataFrame:
    """Return the accesses among a trace's records as a table; see `accelviz.trace`."""
    import pandas as pd  # the emulator works without

    records = records[records["kind"] != _WAIT]
    codes, code_of = np.unique(records["code"], return_inverse=True)
    lines = [line_of(library, int(code)) or Line("", 0) for code in codes]
    number = records["array"]
    sizes = np.array([array.itemsize for array in known], dtype=int)[number]
    sizes = np.where(sizes > 0, sizes, records["bytes"])
    shared = np.array([array.shared for array in known], dtype=int)[number]
    # Instances of a template each have their own shared arrays, of one name.
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
    """Return the waits of warps at barriers; see `accelviz.trace`."""
    table = []
    for record in records[records["kind"] == _WAIT]:
        line = line_of(library, int(record["code"])) or Line("", 0)
        fields = {"block": "block", "warp": "warp", "arrived": "step", "left": "offset"}
        numbers = {name: int(record[field]) for name, field in fields.items()}
        table.append({**numbers, **line._asdict()})
    return table
