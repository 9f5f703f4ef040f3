"""Assignments: which block and which warp handles which nonzeros of each row.

An assignment lists runs: consecutive nonzeros of one row that one warp handles.
`plots.block_assignment` draws it in the style of Accel-GCN, Figures 4d and 4e.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from accelviz.analysis.balance import example_blocks
from accelviz.errors import ArgumentError, checked_integer
from accelviz.plans import Plan
from accelviz.workload import Workload

#: Largest number of blocks in an assignment. More cannot be told apart in a picture.
MAX_BLOCKS = 512
#: Largest number of runs listed per row. The nonzeros of later runs are counted only.
MAX_RUNS_PER_ROW = 400
#: Largest number of blocks that `_example_blocks` selects, besides the other blocks of a split row.
_MAX_EXAMPLES = 8
#: Largest number of blocks added for one row that is split over many blocks.
_MAX_BLOCKS_PER_ROW = 12


@dataclass(frozen=True, eq=False)
class Assignment:
    """Rows of selected blocks, in kernel order, with the warp that handles each run of nonzeros.

    Attributes
    ----------
    runs : DataFrame
        One record per run: `block`, `warp`, `row` (of the matrix that the kernel walks), `offset`
        (position of the first nonzero within the row) and `count` (number of nonzeros). `count` is
        0 where a warp writes a row without nonzeros.
    rows : DataFrame
        One record per listed row, ascending: `row`, `caller_row` (row number in the caller's order)
        and `degree`.
    blocks : DataFrame
        One record per selected block, ascending: `block`, `rows` (number of its rows), `rows_shown`
        (number of its rows in `rows`), `nonzeros`, `warps` (number of warps with nonzeros), `least`
        and `most` (fewest and most nonzeros of such a warp). All but `rows_shown` describe the
        complete block.
    n_blocks, n_rows, nnz : int
        Size of the complete plan and of its matrix.
    worker : str
        What `warp` numbers: `Plan.worker`.
    order : {"caller", "kernel"}
        Row order of the matrix that the kernel walks: the caller's, or permuted.
    strategy, graph : str
        Names. Parameters that select another partition scheme are appended to the strategy's.
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
        """Whether the assignment lists all rows and all nonzeros of the matrix."""
        return len(self.rows) == self.n_rows and int(self.runs["count"].sum()) == self.nnz


def assignment(
    plan: Plan, blocks: int | Iterable[int] | None = None, *, most_rows: int = 48
) -> Assignment:
    """List which block and warp handles which nonzeros of each row (Accel-GCN, Figures 4d and e).

    Parameters
    ----------
    plan : Plan
    blocks : int or iterable of int, optional
        Block numbers, such as `range(10, 15)`; at most 512. If not given, a matrix of at most
        `most_rows` rows is listed completely, including rows without a block. Of a larger matrix,
        a few blocks with rows of different degrees are selected. If such a block handles a part of
        a single row, up to 12 blocks of that row are listed.
    most_rows : int
        Largest number of rows, summed over the blocks. If the blocks have more, the first rows of
        each block are listed.

    Returns
    -------
    Assignment
        At most 400 runs per row.

    Raises
    ------
    ArgumentError
        If a block does not exist, there are too many blocks, or `most_rows` is below 1.
    PartitionError
        If the plan is a library's: its work per warp is unknown.
    """
    checked_integer("most_rows", most_rows, error=ArgumentError)
    show_all = blocks is None and plan.walked.n_rows <= most_rows
    if show_all:
        work = plan.workload()
    elif blocks is None:
        work = _blocks_workload(plan, _example_blocks(plan, most_rows))
    else:
        work = _blocks_workload(plan, _checked_blocks(plan, blocks))
    runs = work.to_frame().rename(columns={"nz_start": "offset", "nz_count": "count"})
    runs["offset"] -= plan.walked.row_pointers[runs["row"]]

    block_rows = runs[["block", "row"]].drop_duplicates()
    rows_in_block = block_rows.groupby("block").size()
    # The largest number of rows per block for which all blocks together list at most `most_rows`.
    limits = range(1, rows_in_block.max() + 1 if len(rows_in_block) else 1)
    limit = max((n for n in limits if rows_in_block.clip(upper=n).sum() <= most_rows), default=1)
    listed = block_rows[block_rows.groupby("block").cumcount() < limit]

    block_table = runs.groupby("block").agg(rows=("row", "nunique"), nonzeros=("count", "sum"))
    block_table.insert(1, "rows_shown", listed.groupby("block").size())
    warp_nonzeros = runs[runs["count"] > 0].groupby(["block", "warp"])["count"].sum()
    loads = warp_nonzeros.groupby("block").agg(["size", "min", "max"])
    block_table[["warps", "least", "most"]] = loads.reindex(block_table.index, fill_value=0)

    runs = runs.merge(listed, on=["block", "row"])
    runs = runs[runs.groupby("row").cumcount() < MAX_RUNS_PER_ROW].reset_index(drop=True)
    rows = np.arange(plan.walked.n_rows) if show_all else np.unique(runs["row"])
    degrees = plan.walked.degrees[rows]
    # Text parameters, such as "partition=warp", select another partition scheme.
    defaults = plan.strategy.defaults()
    scheme = [
        f"{name}={value}"
        for name, value in plan.parameters.items()
        if isinstance(value, str) and defaults.get(name, value) != value
    ]
    return Assignment(
        runs,
        pd.DataFrame({"row": rows, "caller_row": plan.output_rows[rows], "degree": degrees}),
        block_table.reset_index(),
        plan.launch.n_blocks,
        plan.walked.n_rows,
        plan.walked.nnz,
        plan.worker,
        "caller" if plan.permutation is None else "kernel",
        " ".join([plan.name, *scheme]),
        plan.pattern.name,
    )


def _checked_blocks(plan: Plan, blocks: int | Iterable[int]) -> list[int]:
    last = plan.launch.n_blocks - 1
    numbers: set[int] = set()
    for block in [blocks] if isinstance(blocks, int | np.integer) else blocks:
        # Any integer here: the next error has the plan's range.
        numbers.add(checked_integer("blocks", block, least=-(1 << 63), error=ArgumentError))
        if not 0 <= block <= last:
            raise ArgumentError("blocks", f"there is no block {block}", f"0 to {last:,}")
        if len(numbers) > MAX_BLOCKS:
            raise ArgumentError("blocks", f"more than {MAX_BLOCKS}", f"at most {MAX_BLOCKS}")
    return sorted(numbers)


def _blocks_workload(plan: Plan, blocks: Iterable[int]) -> Workload:
    return Workload.concatenate(plan.workload(block, block + 1) for block in blocks)


def _example_blocks(plan: Plan, most_rows: int) -> list[int]:
    """Select blocks that differ in the degree of their rows and have at most `most_rows` rows.

    Fewer than three blocks are not tried, so three may have more rows. Of a split row, all blocks
    are added.
    """
    # The largest degree and the number of busy warps of each block. The empty table is for plans
    # without blocks.
    tables = [pd.DataFrame(columns=["degree", "busy"], dtype=np.int64)]
    for part in plan.workload_slices():
        work = part.to_frame().query("nz_count > 0")
        work["degree"] = plan.walked.degrees[work["row"]]
        tables.append(work.groupby("block").agg(degree=("degree", "max"), busy=("warp", "nunique")))
    table = pd.concat(tables).rename_axis("block").reset_index()
    table = table.sort_values("busy", ascending=False, kind="stable")
    busiest = table.drop_duplicates("degree").sort_values("degree")
    # From here on one block per degree, the one with the most busy warps.
    degree, busy = busiest[["degree", "busy"]].to_numpy(np.int64).T
    for count in range(_MAX_EXAMPLES, 2, -1):
        examples = busiest["block"].iloc[example_blocks(degree, busy, count)].tolist()
        work = _blocks_workload(plan, sorted(examples))
        block_rows = pd.DataFrame({"block": work.block, "row": work.row}).drop_duplicates()
        if len(block_rows) <= most_rows:
            break
    return sorted(set(examples).union(*(_blocks_of_same_row(plan, block) for block in examples)))


def _blocks_of_same_row(plan: Plan, block: int) -> set[int]:
    """Return all blocks of a row if `block` handles only a part of this row, else no block."""
    work = plan.workload(block, block + 1)
    row = int(work.row[0])
    if np.any(work.row != row) or work.nz_count.sum() == plan.walked.degrees[row]:
        return set()
    blocks = [block]
    for step in (-1, 1):  # preceding blocks first: they hold the row's beginning
        neighbor = block + step
        while 0 <= neighbor < plan.launch.n_blocks and len(blocks) < _MAX_BLOCKS_PER_ROW:
            if row not in plan.workload(neighbor, neighbor + 1).row:
                break
            blocks.append(neighbor)
            neighbor += step
    return set(blocks)
