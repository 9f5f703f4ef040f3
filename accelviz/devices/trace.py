"""Which lane touches what, when: the memory accesses of a kernel as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.devices.base import kernels_of
from accelviz.devices.emulator import EmulatorDevice
from accelviz.emulator.library import RECORD
from accelviz.emulator.memory import Known
from accelviz.emulator.problems import KINDS
from accelviz.emulator.symbols import Line, line_of
from accelviz.errors import ArgumentError, checked_integer
from accelviz.plans import Plan


def trace(
    plan: Plan,
    *dense: npt.ArrayLike,
    block: int | Iterable[int] = 0,
    values: Any = None,
    into: dict[str, npt.NDArray[Any]] | None = None,
    waits: list[dict[str, Any]] | None = None,
) -> pd.DataFrame:
    """Run blocks of a plan's kernel in the emulator and record every access of every lane.

    Parameters
    ----------
    plan : Plan
        With a kernel.
    *dense : array
        The dense inputs of the plan's operation, in order: X for an SpMM, U and V for an SDDMM.
    block : int or several
        The blocks to trace, counted over the whole grid with x fastest: block b of the workload is
        block b, and the same for the next tile of columns is block b + `plan.launch.n_blocks`.
    values : array, shape (nnz,), optional
        Weights in place of the graph's own.
    into : dict, optional
        Receives the outputs as these blocks left them, by name.
    waits : list, optional
        Receives what warps waited for at barriers, as dicts of `block`, `warp`, `file`, `line`,
        `arrived` and `left`: the number of the step that came next when the warp's last lane was
        there, and when the block went on.

    Returns
    -------
    DataFrame
        A row for each access of each lane: `block`, `warp` (in its block), `lane`, `step`, `file`,
        `line`, `kind` ("load", "store" or "atomic"), `space` ("global" or "shared"), `array`,
        `index` (element of the array), `bytes` and `offset` (bytes from the array's beginning).
        Rows of equal block and step are one request: the same instruction of one warp, carried out
        by the lanes that are there. Steps count up in the order in which requests are made, with
        the warps of a block taking turns.

    Raises
    ------
    ArgumentError
        If there is no such block, or an input does not fit.
    KernelError, DeviceUnavailable
        As `spmm` on the device "emulator" does.

    Notes
    -----
    Of a plan of several calls, the main one is traced, after those before it. The blocks come in
    the order given, and find in scratch buffers what those before them left.
    Lanes of a warp go through the kernel side by side. Where they part, those at the earliest
    instruction go first and the others wait, so that they meet again where the paths do.
    """
    if not isinstance(plan, Plan):
        raise ArgumentError("plan", f"got a {type(plan).__name__}", "what accelviz.plan returns")
    kernels_of(plan, "emulator")
    blocks: list[Any] = list(block) if isinstance(block, Iterable) else [block]
    total = int(np.prod(plan.launch.grid))
    if not total:
        raise ArgumentError("plan", "it launches no block", "a plan of a graph with rows")
    for number in blocks:
        checked_integer("block", number, total - 1, least=0, error=ArgumentError)
    ready = EmulatorDevice().prepare(plan)
    operands = plan.operation.named(*dense, values=values)
    memory = ready.memory(ready.placed(operands), ready.outputs())
    for number in range(plan.main):
        ready.launch(number, memory)
        memory.written(ready.names[number])
    library, parts = ready.libraries[plan.main], []
    for first, count in _runs(blocks):
        some = {"first_block": first, "n_blocks": count, "traced": True}
        known, answer = ready.launch(plan.main, memory, **some)
        records = library.trace(memory, answer)
        parts.append(table(records, library.path, known))
        if waits is not None:
            waits += _waits(records, library.path)
    if into is not None:
        for each in plan.operation.outputs:
            into[each.name] = np.asarray(memory.known[each.name].data)
    if not parts:
        return table(np.empty(0, dtype=RECORD), library.path, [])
    return pd.concat(parts, ignore_index=True)


#: Blocks of one traced launch, so that their records fit into memory.
MOST_BLOCKS = 64


def _runs(blocks: Sequence[int]) -> list[tuple[int, int]]:
    """Return first numbers and counts of blocks that follow each other, for a launch together."""
    found: list[tuple[int, int]] = []
    for block in map(int, blocks):
        first, count = found[-1] if found else (0, 0)
        if found and block == first + count and count < MOST_BLOCKS:
            found[-1] = first, count + 1
        else:
            found.append((block, 1))
    return found


#: Kind of a record that is no access but a warp's wait.
_WAIT = len(KINDS)


def _waits(records: npt.NDArray[Any], library: Path) -> list[dict[str, Any]]:
    records = records[records["kind"] == _WAIT]
    places = {int(code): line_of(library, int(code)) or Line("", 0) for code in records["code"]}
    return [
        {
            "block": int(each["block"]),
            "warp": int(each["warp"]),
            "file": places[int(each["code"])].file,
            "line": places[int(each["code"])].line,
            "arrived": int(each["step"]),
            "left": int(each["offset"]),
        }
        for each in records
    ]


def table(records: npt.NDArray[Any], library: Path, known: Sequence[Known]) -> pd.DataFrame:
    """Put the accesses of what `Library.trace` returns into a table."""
    records = records[records["kind"] != _WAIT]
    codes, code_of = np.unique(records["code"], return_inverse=True)
    places = [line_of(library, int(code)) or Line("", 0) for code in codes]
    which = records["array"]
    sizes = np.array([each.itemsize for each in known], dtype=int)[which]
    sizes = np.where(sizes > 0, sizes, records["bytes"])
    shared = np.array([each.shared for each in known], dtype=bool)[which]
    # Instances of a template each have their own shared arrays, of one name.
    names = list(dict.fromkeys(each.name for each in known))
    array = np.array([names.index(each.name) for each in known], dtype=int)[which]
    return pd.DataFrame(
        {
            "block": records["block"].astype(np.int64),
            "warp": records["warp"].astype(np.int32),
            "lane": records["lane"].astype(np.int32),
            "step": records["step"].astype(np.int64),
            "file": pd.Categorical([place.file for place in places])[code_of],
            "line": np.array([place.line for place in places], dtype=int)[code_of],
            "kind": pd.Categorical.from_codes(records["kind"], KINDS),
            "space": pd.Categorical.from_codes(shared.astype(int), ["global", "shared"]),
            "array": pd.Categorical.from_codes(array, names),
            "index": (records["offset"] // sizes).astype(np.int64),
            "bytes": records["bytes"].astype(np.int32),
            "offset": records["offset"].astype(np.int64),
        }
    )
