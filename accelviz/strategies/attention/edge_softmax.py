"""Edge softmax: `alpha` = softmax of `scores` over the nonzeros of each row; and its gradient.

Scores have one row per nonzero and one column per head. Heads are independent of each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from accelviz.arrays import Floats
from accelviz.compiled import njit
from accelviz.graph import Graph, Pattern
from accelviz.immutable import taken_over
from accelviz.ordering import RowDegrees
from accelviz.partition.row_groups import (
    RowGroups,
    long_rows,
    row_group_loads,
    row_group_workload,
)
from accelviz.plans import (
    Buffers,
    Layout,
    Operand,
    Operation,
    Plan,
    Provenance,
    Strategy,
    Widths,
    WorkerLanes,
)
from accelviz.plans.description import Description
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.operation import EPS32, FLOAT_BYTES, NONZEROS, Arrays, Traffic
from accelviz.plans.settings import Settings, setting
from accelviz.strategies.attention.scores import EXP_SLOPE, EXP_ULPS, SMALLEST
from accelviz.strategies.blocks import POWERS, RowStrategy, block_threads_setting, size_arguments
from accelviz.strategies.exact import replay_rows


def exact_softmax(
    pattern: Pattern, scores: Any, errors: Any
) -> tuple[tuple[Any, Any], tuple[Any, Any], tuple[Any, Any]]:
    """Return alpha per nonzero, row_max and row_sum per row, each with its bound, in float64.

    `errors` are bounds of the errors of `scores`. row_max is a row's largest score, row_sum the sum
    of exp(score - row_max); both are 0 for a row without nonzeros.

    Notes
    -----
    Let t = score - row_max <= 0. Rounding changes it by at most eps |t|. A kernel's exp has an
    error of at most `EXP_ULPS` + `EXP_SLOPE` |t| units of the last place. In a single pass, a term
    is multiplied by exp(old maximum - new maximum) whenever the maximum changes: at most once per
    nonzero, with exponents that add up to t. The relative error of a term is therefore at most
    e(t) = eps ((1 + EXP_SLOPE) |t| + (EXP_ULPS + 2) (deg + 1)). The sum of deg terms adds eps deg
    to the mean error of its terms, and the quotient adds one rounding. The error of an underflow is
    at most the smallest normal number, as the sum is at least 1. Scores with errors of at most d
    change alpha and row_sum by a factor of at most exp(2 d).
    """
    rows = np.flatnonzero(pattern.degrees)
    degrees, starts = pattern.degrees[rows], pattern.row_pointers[rows]
    row, count = np.repeat(np.arange(rows.size), degrees), degrees[:, None] + 2
    largest, score_errors = (np.maximum.reduceat(array, starts) for array in (scores, errors))
    t = scores - largest[row]
    terms = np.exp(t)
    total = np.add.reduceat(terms, starts)
    mean_t, fixed = np.add.reduceat(terms * -t, starts) / total, 2 * (EXP_ULPS + 3) * count
    by_scores = np.expm1(2 * score_errors)
    relative = EPS32 * ((1 + EXP_SLOPE) * (mean_t[row] - t) + fixed[row]) + by_scores[row]
    alpha = terms / total[row]
    row_max, row_sum = np.zeros((2, 2, pattern.n_rows, scores.shape[1]))
    row_max[:, rows] = largest, score_errors
    sum_relative = EPS32 * ((1 + EXP_SLOPE) * mean_t + fixed) + by_scores
    row_sum[:, rows] = total, sum_relative * total + SMALLEST * count
    alpha_bound = relative * alpha + SMALLEST * count[row]
    return (alpha, alpha_bound), (row_max[0], row_max[1]), (row_sum[0], row_sum[1])


def softmax_reference(pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    """Compute in float64; see `Operation.reference`."""
    scores = np.asarray(inputs["scores"], np.float64)
    return {"alpha": exact_softmax(pattern, scores, np.zeros_like(scores))[0]}


def gradient_reference(pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    """Compute in float64; see `Operation.reference`.

    The error of a row's sum of deg products is at most eps deg sum |alpha d_alpha|, as in `spmm`;
    the difference and the product are rounded once each.
    """
    alpha, d_alpha = inputs["alpha"], inputs["d_alpha"]
    degrees = pattern.degrees[pattern.degrees > 0]
    starts, row = np.cumsum(degrees) - degrees, np.repeat(np.arange(degrees.size), degrees)
    terms = alpha * d_alpha
    total, magnitude = (np.add.reduceat(array, starts)[row] for array in (terms, np.abs(terms)))
    error = (degrees[row][:, None] + 2) * magnitude + 2 * np.abs(d_alpha)
    return {"d_scores": (alpha * (d_alpha - total), EPS32 * np.abs(alpha) * error + SMALLEST)}


def traffic(
    n_arrays: int, pattern: Pattern, widths: Mapping[str, int], element_bytes: int
) -> Traffic:
    """Count bytes: 4 per nonzero and head of `n_arrays` arrays, 8 for a row pointer."""
    streamed = FLOAT_BYTES * n_arrays * widths["n_cols"] * pattern.nnz
    return Traffic.of_columns(pattern, 0, streamed + 2 * FLOAT_BYTES * (pattern.n_rows + 1))


@njit(nogil=True)
def _softmax_rows(first: int, last: int, walk: Any, scores: Floats, alpha: Floats) -> None:
    first_record, nz_start, nz_count = walk[:3]
    heads = scores.shape[1]
    largest, total = np.empty(heads, np.float32), np.empty(heads, np.float32)
    for row in range(first, last):
        largest[:], total[:] = -np.inf, 0
        records = range(first_record[row], first_record[row + 1])
        for record in records:
            for k in range(nz_start[record], nz_start[record] + nz_count[record]):
                for h in range(heads):
                    score = scores[k, h]
                    if score > largest[h]:
                        total[h] = total[h] * np.exp(largest[h] - score) + np.float32(1)
                        largest[h] = score
                    else:
                        total[h] += np.exp(score - largest[h])
        for record in records:
            for k in range(nz_start[record], nz_start[record] + nz_count[record]):
                for h in range(heads):
                    alpha[k, h] = np.exp(scores[k, h] - largest[h]) / total[h]


@njit(nogil=True)
def _gradient_rows(
    first: int, last: int, walk: Any, alpha: Floats, d_alpha: Floats, d_scores: Floats
) -> None:
    first_record, nz_start, nz_count = walk[:3]
    heads = alpha.shape[1]
    total = np.empty(heads, np.float32)
    for row in range(first, last):
        total[:] = 0
        records = range(first_record[row], first_record[row + 1])
        for record in records:
            for k in range(nz_start[record], nz_start[record] + nz_count[record]):
                for h in range(heads):
                    total[h] += alpha[k, h] * d_alpha[k, h]
        for record in records:
            for k in range(nz_start[record], nz_start[record] + nz_count[record]):
                for h in range(heads):
                    d_scores[k, h] = alpha[k, h] * (d_alpha[k, h] - total[h])


EDGE_SOFTMAX = Operation(
    name="edge_softmax",
    formula="alpha = softmax of the scores of each row's nonzeros",
    widths={"n_cols": None},
    inputs=(Operand("scores", (NONZEROS, "n_cols")),),
    outputs=(Operand("alpha", (NONZEROS, "n_cols")),),
    fastest="lane_groups",
    reference=softmax_reference,
    replay=partial(replay_rows, _softmax_rows, ("scores", "alpha")),
    traffic=partial(traffic, 2),
    independent="n_cols",
)

EDGE_SOFTMAX_GRADIENT = Operation(
    name="edge_softmax_gradient",
    formula="d_scores = alpha (d_alpha - the row's sum of alpha d_alpha)",
    widths={"n_cols": None},
    inputs=(
        Operand("alpha", (NONZEROS, "n_cols")),
        Operand("d_alpha", (NONZEROS, "n_cols")),
    ),
    outputs=(Operand("d_scores", (NONZEROS, "n_cols")),),
    fastest="lane_groups",
    reference=gradient_reference,
    replay=partial(replay_rows, _gradient_rows, ("alpha", "d_alpha", "d_scores")),
    traffic=partial(traffic, 3),
    independent="n_cols",
)


#: Nonzeros of a lane that stay in registers; default of the longest row of a subwarp.
LANE_NONZEROS, LONG_ROW = 4, 1024


class RowWarp(RowStrategy):
    """One warp per row: a first pass over its values sums, a second one writes the results."""

    name = "row_warp"
    summary = "a warp per row, one head after the other, two passes"
    file = "attention/edge_row_warp.cu"
    arrays = ("row_pointers",)

    def __init__(self, operation: Operation) -> None:
        self.operation, self.entry = operation, operation.name

    def lanes(self, widths: Widths) -> None:
        """Return None: nothing is gathered."""
        return


class LaneGroupSettings(Settings):
    """Sizes of a subwarp, of the rows that it processes, and of a block."""

    lanes: int = setting(
        None,
        "lanes of a subwarp, which has one row; more: fewer loads per lane, fewer rows per warp",
        choices=POWERS,
        tries=(4, 8, 16),
    )
    long_row: int = setting(
        LONG_ROW,
        "most nonzeros of a row of a subwarp; a longer row has a block",
        1 << 20,
        tries=(256, 1024),
    )
    block_threads: int = block_threads_setting(128, 64, 128, 256)

    @property
    def groups(self) -> int:
        """Subwarps per block, once `lanes` is resolved."""
        return self.block_threads // self.lanes


class LaneGroups(Strategy):
    """One subwarp per row and head; it holds the values in registers, so that each is read once."""

    name = "lane_groups"
    summary = "our own: a subwarp per row and head, values in registers, a block per long row"
    worker = "subwarp"
    Settings = LaneGroupSettings

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def build(self, graph: Graph, widths: Widths, settings: LaneGroupSettings) -> Plan:
        """Assign long rows to blocks and the heads of all other rows to subwarps."""
        n_cols, groups = widths["n_cols"], settings.groups
        long = taken_over(long_rows(graph.row_pointers, settings.long_row))
        config = {
            "lanes": settings.lanes,
            "groups": groups,
            "lane_nonzeros": LANE_NONZEROS,
            "long_row": settings.long_row,
        }
        sizes = size_arguments(graph, widths)
        kernel = KernelSpec(
            "attention/edge_lane_groups.cu",
            self.operation.name,
            config,
            ("row_pointers", "long_rows", *self.operation.operands, "n_long", *sizes),
        )
        blocks = long.size + -(-graph.n_rows * n_cols // groups)
        launch = LaunchConfig((blocks, 1, 1), groups * settings.lanes // WARP_SIZE)
        arrays = {
            "row_pointers": graph.row_pointers,
            "long_rows": long,
            "n_long": np.int32(long.size),
            **sizes,
        }
        workload = partial(row_group_workload, graph.row_pointers, long, n_cols, groups)
        loads = partial(row_group_loads, graph.row_pointers, long, n_cols, groups)
        return Plan(
            Layout(graph.pattern, workload, workers_per_block=groups, slice_loads=loads),
            (Call(launch, kernel),),
            Buffers(arrays, zero_outputs=()),
            Provenance(self, graph.values, widths, settings),
        )

    def resolve(
        self, settings: LaneGroupSettings, graph: Graph | RowDegrees, widths: Widths
    ) -> LaneGroupSettings:
        """Choose the lanes by the mean degree, for `LANE_NONZEROS` nonzeros per lane."""
        lanes = graph.nnz // (LANE_NONZEROS * max(graph.n_rows, 1))
        return settings.filled(lanes=min(1 << max(lanes - 1, 0).bit_length(), WARP_SIZE))

    def describe(
        self, settings: LaneGroupSettings, rows: RowDegrees, widths: Widths
    ) -> Description:
        """Describe one subwarp per row and head, and one block per long row."""
        scheme = RowGroups(settings.long_row, widths["n_cols"], settings.groups)
        block_warps = settings.groups * settings.lanes // WARP_SIZE
        return Description(scheme, workers=WorkerLanes(settings.lanes, block_warps))
