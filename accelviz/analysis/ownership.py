"""Which block and warp handle which nonzeros, row by row for a few blocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from accelviz.analysis.balance import example_blocks
from accelviz.errors import ArgumentError, checked_integer
from accelviz.plans import Plan
from accelviz.workload import Workload

#: Blocks shown beyond which nobody can tell them apart.
MOST_BLOCKS = 512
#: Most runs of one row in an assignment; of the rest only the nonzeros are counted.
MOST_RUNS = 400
#: Blocks chosen as examples, and blocks that are shown of a row cut over many.
_EXAMPLES, _BLOCKS_OF_A_ROW = 8, 12


@dataclass(frozen=True, eq=False)
class Assignment:
    """Some blocks' rows as the kernel walks them, and which warp handles which of their nonzeros.

    Attributes
    ----------
    runs : DataFrame
        A line for each run of nonzeros: `block`, `warp`, `row` (of the matrix that the kernel
        walks), `place` (of the run's first nonzero within its row) and `count`, its nonzeros: 0
        where a warp only writes a row that has none.
    rows : DataFrame
        A line for each row shown, ascending: `row`, `caller_row` (its number in the caller's order)
        and `degree`.
    blocks : DataFrame
        A line for each block chosen, ascending: `block`, `rows` that it handles, `rows_shown`, its
        `nonzeros`, its `warps` that have any, and how many the `least` and the `most` loaded of
        these have; of the whole block, whatever is shown.
    n_blocks, n_rows, nnz : int
        Of the whole plan and its matrix.
    worker : str
        What `warp` counts: `Strategy.worker`.
    order : {"caller", "kernel"}
        Whether the kernel walks the caller's rows or permuted ones.
    strategy, graph : str
        Their names; with the strategy, settings that make another scheme of it.
    """

    runs: pd.DataFrame
    rows: pd.DataFrame
    blocks: pd.DataFrame
    n_blocks: int
    n_rows: int
    nnz: int
    worker: str
    order: str
    strategy: str
    graph: str

    @property
    def whole(self) -> bool:
        """Whether every row and every nonzero is in it."""
        return len(self.rows) == self.n_rows and int(self.runs["count"].sum()) == self.nnz


def assignment(
    plan: Plan, blocks: int | Iterable[int] | None = None, *, most_rows: int = 48
) -> Assignment:
    """Tell which block and warp handles which nonzeros of each row (Accel-GCN, Figures 4d and e).

    Parameters
    ----------
    plan : Plan
    blocks : int or iterable of int, optional
        Which blocks, such as `range(10, 15)`; at most 512. If not given, all of a matrix of at most
        `most_rows` rows, its rows without a block included; else a few blocks that differ in the
        degree of their rows, and of a row cut over several blocks up to 12 of these.
    most_rows : int
        Of blocks with more rows in all, each shows as many of its first rows as there is room for.

    Returns
    -------
    Assignment
        Of one row at most 400 runs.

    Raises
    ------
    ArgumentError
        If there is no such block, there are too many, or `most_rows` is below 1.
    PartitionError
        If the plan is a library's, which does not say which warp does what.
    """
    checked_integer("most_rows", most_rows, error=ArgumentError)
    everything = blocks is None and plan.walked.n_rows <= most_rows
    if everything:
        work = plan.workload()
    else:
        chosen = _examples(plan, most_rows) if blocks is None else _checked(plan, blocks)
        work = _workload_of(plan, chosen)
    pointers = plan.walked.row_pointers
    runs = work.to_frame().rename(columns={"nz_start": "place", "nz_count": "count"})
    runs["place"] -= pointers[runs["row"]]
    of_block = runs.groupby("block").agg(rows=("row", "nunique"), nonzeros=("count", "sum"))
    rank = runs.drop_duplicates(["block", "row"]).groupby("block").cumcount()
    # How many rows of a block fit, if there are at most `most_rows` in all.
    counts = range(1, of_block["rows"].max() + 1 if len(of_block) else 1)
    fits = [n for n in counts if of_block["rows"].clip(upper=n).sum() <= most_rows]
    quota = max(fits, default=1)
    visible = runs.loc[rank.index[rank < quota], ["block", "row"]]
    of_block.insert(1, "rows_shown", visible.groupby("block").size())
    per_warp = runs[runs["count"] > 0].groupby(["block", "warp"])["count"].sum()
    of_warps = per_warp.groupby("block").agg(["size", "min", "max"])
    of_block[["warps", "least", "most"]] = of_warps.reindex(of_block.index, fill_value=0)
    runs = runs.merge(visible, on=["block", "row"])
    runs = runs[runs.groupby("row").cumcount() < MOST_RUNS].reset_index(drop=True)
    rows = np.arange(plan.walked.n_rows) if everything else np.unique(runs["row"])
    degree = pointers[rows + 1] - pointers[rows]
    # Settings that make another scheme of the strategy, such as "partition=warp".
    defaults = plan.strategy.defaults()
    words = [
        f"{name}={value}"
        for name, value in plan.parameters.items()
        if isinstance(value, str) and defaults.get(name, value) != value
    ]
    of_rows = {"row": rows, "caller_row": plan.output_rows[rows], "degree": degree}
    return Assignment(
        runs,
        pd.DataFrame(of_rows),
        of_block.reset_index(),
        plan.launch.n_blocks,
        plan.walked.n_rows,
        plan.walked.nnz,
        plan.strategy.worker,
        "caller" if plan.permutation is None else "kernel",
        " ".join([plan.name, *words]),
        plan.pattern.name,
    )


def _checked(plan: Plan, blocks: int | Iterable[int]) -> list[int]:
    last = plan.launch.n_blocks - 1
    chosen: set[int] = set()
    for block in [blocks] if isinstance(blocks, int | np.integer) else blocks:
        chosen.add(checked_integer("blocks", block, least=-(1 << 63), error=ArgumentError))
        if not 0 <= block <= last:
            raise ArgumentError("blocks", f"there is no block {block}", f"0 to {last:,}")
        if len(chosen) > MOST_BLOCKS:
            raise ArgumentError("blocks", f"more than {MOST_BLOCKS}", f"at most {MOST_BLOCKS}")
    return sorted(chosen)


def _workload_of(plan: Plan, blocks: Iterable[int]) -> Workload:
    return Workload.concatenate(plan.workload(block, block + 1) for block in blocks)


def _examples(plan: Plan, most_rows: int) -> list[int]:
    """Choose blocks that differ in the degree of their rows, as many as fit with all of these."""
    tables = [pd.DataFrame(columns=["degree", "busy"], dtype=np.int64)]
    for part in plan.workload_slices():
        work = part.to_frame().query("nz_count > 0")
        work["degree"] = plan.walked.degrees[work["row"]]
        warps = work.groupby("block").agg(degree=("degree", "max"), busy=("warp", "nunique"))
        tables.append(warps)
    table = pd.concat(tables).rename_axis("block").reset_index()
    table = table.sort_values("busy", ascending=False, kind="stable")
    best = table.drop_duplicates("degree").sort_values("degree")
    degree, busy = best[["degree", "busy"]].to_numpy(np.int64).T
    for count in range(_EXAMPLES, 2, -1):
        chosen = best["block"].iloc[example_blocks(degree, busy, count)].tolist()
        work = _workload_of(plan, sorted(chosen))
        pairs = pd.DataFrame({"block": work.block, "row": work.row}).drop_duplicates()
        if len(pairs) <= most_rows:
            break
    return sorted(set(chosen).union(*(_others_of_row(plan, block) for block in chosen)))


def _others_of_row(plan: Plan, block: int) -> set[int]:
    """Find the blocks that share a row with `block`, if a part of one row is all that it has."""
    work = plan.workload(block, block + 1)
    row = int(work.row[0])
    pointers = plan.walked.row_pointers
    part = int(work.nz_count.sum()) < int(pointers[row + 1] - pointers[row])
    if not part or np.any(work.row != row):
        return set()

    sharing = [block]
    for step in (-1, 1):  # the row's first parts tell more than its last
        other = block + step
        while 0 <= other < plan.launch.n_blocks and len(sharing) < _BLOCKS_OF_A_ROW:
            if row not in plan.workload(other, other + 1).row:
                break
            sharing.append(other)
            other += step
    return set(sharing)
