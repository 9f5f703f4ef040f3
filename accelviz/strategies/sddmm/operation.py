"""SDDMM, sampled dense-dense product: `scores[k] = U[i] . V[j]` for each nonzero k = (i, j)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from accelviz.arrays import Floats, Longs
from accelviz.compiled import njit
from accelviz.errors import PartitionError
from accelviz.graph import MAX_SIDE, Graph, Pattern
from accelviz.plans import Operand, Operation, Plan
from accelviz.plans.operation import COLUMNS, FLOAT_BYTES, NONZEROS, ROWS, Arrays, Traffic
from accelviz.strategies.exact import edge_dots, replay_rows


def reference(pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    """Multiply in float64; see `Operation.reference`."""
    return {"scores": edge_dots(pattern, inputs["U"], inputs["V"])}


def check_heads(graph: Graph, heads: int) -> None:
    """Raise a `PartitionError` if rows times heads exceed the 31 bits of a kernel's index."""
    if max(graph.shape) * heads > MAX_SIDE:
        sides = f"{max(graph.shape):,} rows or columns of {heads} heads"
        raise PartitionError("heads", sides, f"a product of at most {MAX_SIDE:,}")


def terms(pattern: Pattern, sizes: Mapping[str, int]) -> int:
    """Count the products of a score."""
    return sizes["n_cols"]


def traffic(pattern: Pattern, widths: Mapping[str, int], element_bytes: int) -> Traffic:
    """Count bytes: 4 for a column index and a score, 8 for a row pointer; U streamed once."""
    row_bytes = element_bytes * widths["n_cols"] * widths["heads"]
    streamed = FLOAT_BYTES * (1 + widths["heads"]) * pattern.nnz
    streamed += 2 * FLOAT_BYTES * (pattern.n_rows + 1) + row_bytes * pattern.n_rows
    return Traffic.of_columns(pattern, row_bytes, streamed)


def replay(plan: Plan) -> Callable[[Arrays, Arrays], None]:
    """Compute the scores of every record of the workload; see `Operation.replay`."""
    order = plan.layout.nonzero_order
    order = np.arange(plan.pattern.nnz) if order is None else order
    return replay_rows(_dot_rows, ("U", "V", "scores"), plan, order)


@njit(nogil=True, fastmath={"contract", "reassoc"})
def _dot_rows(
    first: int, last: int, walk: Any, order: Longs, U: Floats, V: Floats, scores: Floats
) -> None:
    first_record, nz_start, nz_count, columns, output_rows = walk
    heads, n_cols = U.shape[1], U.shape[2]
    for row in range(first, last):
        u = U[output_rows[row]]
        for record in range(first_record[row], first_record[row + 1]):
            for k in range(nz_start[record], nz_start[record] + nz_count[record]):
                v = V[columns[k]]
                for h in range(heads):
                    total = np.float32(0)
                    for c in range(n_cols):
                        total += u[h, c] * v[h, c]
                    scores[order[k], h] = total


SDDMM = Operation(
    name="sddmm",
    formula="scores = (U V^T) at the nonzeros of A",
    widths={"n_cols": None, "heads": 1},
    inputs=(
        Operand("U", (ROWS, "heads", "n_cols"), gathered=True),
        Operand("V", (COLUMNS, "heads", "n_cols"), gathered=True),
    ),
    outputs=(Operand("scores", (NONZEROS, "heads")),),
    fastest="lane_groups",
    reference=reference,
    replay=replay,
    traffic=traffic,
    terms=terms,
)
