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
    """Put the accesses of what `Library.trace` returns into a table; see `accelviz.trace`."""
    import pandas as pd  # the emulator works without

    records = records[records["kind"] != _WAIT]
    codes, code_of = np.unique(records["code"], return_inverse=True)
    lines = [line_of(library, int(code)) or Line("", 0) for code in codes]
    number = records["array"]
    sizes = np.array([array.itemsize for array in known], dtype=int)[number]
    sizes = np.where(sizes > 0, sizes, records["bytes"])
    shared = np.array([array.shared for array in known], dtype=bool)[number]
    # Instances of a template each have their own shared arrays, of one name.
    names = list(dict.fromkeys(array.name for array in known))
    array = np.array([names.index(array.name) for array in known], dtype=int)[number]
    return pd.DataFrame(
        {
            "block": records["block"].astype(np.int64),
            "warp": records["warp"].astype(np.int32),
            "lane": records["lane"].astype(np.int32),
            "step": records["step"].astype(np.int64),
            "file": pd.Categorical([line.file for line in lines])[code_of],
            "line": np.array([line.line for line in lines], dtype=int)[code_of],
            "kind": pd.Categorical.from_codes(records["kind"], KINDS),
            "space": pd.Categorical.from_codes(shared.astype(int), ["global", "shared"]),
            "array": pd.Categorical.from_codes(array, names),
            "index": (records["offset"] // sizes).astype(np.int64),
            "bytes": records["bytes"].astype(np.int32),
            "offset": records["offset"].astype(np.int64),
        }
    )


def waits(records: npt.NDArray[Any], library: Path) -> list[dict[str, Any]]:
    """Return what warps waited for at barriers; see `accelviz.trace`."""
    records = records[records["kind"] == _WAIT]
    lines = {int(code): line_of(library, int(code)) or Line("", 0) for code in records["code"]}
    return [
        {
            "block": int(record["block"]),
            "warp": int(record["warp"]),
            "file": lines[int(record["code"])].file,
            "line": lines[int(record["code"])].line,
            "arrived": int(record["step"]),
            "left": int(record["offset"]),
        }
        for record in records
    ]
