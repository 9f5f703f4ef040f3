"""1 x 1 convolutions in which a filter reads some of the input channels, and their gradients.

The matrix A has a row per filter, a column per input channel and a nonzero per weight. The output
at a pixel is A times the pixel's channels, so that a convolution is an SpMM with a feature map as
its dense operand. Patterns of A are sliding channels (DSXplore, chapter 6 of the thesis), pointwise
and grouped pointwise convolutions. `scc` has channels first (N x C x H x W), as in the chapter;
`scc_last` has channels last (N x H x W x C).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from accelviz.graph import Pattern
from accelviz.plans import Operand, Operation, Plan
from accelviz.plans.operation import COLUMNS, EPS32, FLOAT_BYTES, NONZEROS, ROWS, Arrays, Traffic
from accelviz.workload import Workload, spread

#: Most products that `_dots` computes together, to bound its memory.
_PIECE_PRODUCTS = 1 << 22
#: Axes of a feature map with channels first and last; {} stands for the channels' axis. With
#: channels last, `n_cols` counts the pixels of all images.
_FIRST, _LAST = ("images", "{}", "n_cols"), ("n_cols", "{}")


def _map_of(name: str, axis: str, layout: tuple[str, ...]) -> Operand:
    return Operand(name, tuple(template.format(axis) for template in layout))


def planes(array: Any) -> Any:
    """Return a view of a feature map of either layout, shape (images, channels, pixels)."""
    return array if array.ndim == 3 else array.T[None]


def _products(matrix: Any, maps: Any) -> Any:
    """Return a sparse matrix times each image, shape (images, filters, pixels)."""
    products = np.empty((len(maps), matrix.shape[0], maps.shape[2]), maps.dtype)
    for product, image in zip(products, maps, strict=True):
        product[...] = matrix @ image
    return products


def _dots(filters: Any, channels: Any, dY: Any, X: Any) -> Any:
    """Return dY[:, filter] . X[:, channel] in float64 for each pair of a filter and a channel."""
    dots = np.empty(filters.size)
    length = max(1, _PIECE_PRODUCTS // max(1, X.shape[0] * X.shape[2]))
    for first in range(0, filters.size, length):
        piece = slice(first, first + length)
        dots[piece] = np.einsum("ikp,ikp->k", dY[:, filters[piece]], X[:, channels[piece]])
    return dots


def _matrix(pattern: Pattern, values: Any) -> Any:
    arrays = values, pattern.column_indices, pattern.row_pointers
    return sparse.csr_array(arrays, shape=pattern.shape)


def reference(pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    """Multiply in float64; see `Operation.reference`. The bound is that of `spmm`."""
    X = planes(inputs["X"])
    expected = _products(_matrix(pattern, inputs["values"]), X)
    bound = _products(_matrix(pattern, np.abs(inputs["values"])), np.abs(X))
    bound *= EPS32 * pattern.degrees[:, None]
    if inputs["X"].ndim == 2:
        expected, bound = expected[0].T, bound[0].T
    return {"Y": (expected, bound)}


def gradient_reference(pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    """Multiply in float64 by the transpose, and at the nonzeros; see `Operation.reference`."""
    dY, values = inputs["dY"], inputs["values"]
    transposed, magnitudes = (_matrix(pattern, w).T.tocsr() for w in (values, np.abs(values)))
    degrees = np.bincount(pattern.column_indices, minlength=pattern.shape[1])
    bound = _products(magnitudes, np.abs(dY)) * (EPS32 * degrees[:, None])
    return {**weights_reference(pattern, inputs), "dX": (_products(transposed, dY), bound)}


def weights_reference(pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    """Multiply in float64 at the nonzeros; see `Operation.reference`."""
    X, dY = planes(inputs["X"]), planes(inputs["dY"])
    pairs = np.repeat(np.arange(pattern.n_rows), pattern.degrees), pattern.column_indices
    terms = X.shape[0] * X.shape[2]
    bound = EPS32 * terms * _dots(*pairs, np.abs(dY), np.abs(X))
    return {"d_values": (_dots(*pairs, dY, X), bound)}


def _terms(pattern: Pattern, sizes: Mapping[str, int]) -> Any:
    return pattern.degrees[None, :]  # broadcasts to a map with channels last


def _weight_terms(pattern: Pattern, sizes: Mapping[str, int]) -> int:
    return sizes["n_cols"]


def _plane_bytes(widths: Mapping[str, int]) -> int:
    return FLOAT_BYTES * widths.get("images", 1) * widths["n_cols"]


def traffic(pattern: Pattern, widths: Mapping[str, int], element_bytes: int) -> Traffic:
    """Count bytes: X gathered per filter; Y (or dY) streamed, and 4 per weight."""
    plane_bytes = _plane_bytes(widths)
    streamed = FLOAT_BYTES * pattern.nnz + plane_bytes * pattern.n_rows
    return Traffic.of_columns(pattern, plane_bytes, streamed)


def gradient_traffic(pattern: Pattern, widths: Mapping[str, int], element_bytes: int) -> Traffic:
    """Count bytes: X gathered per filter; dY and dX streamed, and 8 per weight."""
    plane_bytes = _plane_bytes(widths)
    streamed = 2 * FLOAT_BYTES * pattern.nnz + plane_bytes * sum(pattern.shape)
    return Traffic.of_columns(pattern, plane_bytes, streamed)


class _Nonzeros:
    """The nonzeros in workload order, as arrays of filters, channels and positions in A.

    If the plan walks the transpose, `transposed` has the positions in A of its nonzeros.
    `written` are the filters that have a record.
    """

    def __init__(self, plan: Plan, transposed: Any = None) -> None:
        work = Workload.concatenate(plan.workload_slices())
        record, offset = spread(work.nz_count)
        k = work.nz_start[record] + offset
        order, rows = np.arange(plan.pattern.nnz), plan.output_rows
        if plan.permutation is not None:
            order = plan.permutation.apply_to_pattern(plan.pattern)[1]
        row, column = rows[work.row[record]], plan.walked.column_indices[k]
        self.filters, self.channels = (row, column) if transposed is None else (column, row)
        self.positions = (order if transposed is None else transposed)[k]
        self.written, self.shape = np.unique(rows[work.row]), plan.pattern.shape

    def matrix(self, values: Any) -> Any:
        """Return the matrix of the nonzeros; one that occurs twice is added twice."""
        entries = values[self.positions], (self.filters, self.channels)
        return sparse.csr_array(entries, shape=self.shape)


def replay(plan: Plan) -> Callable[[Arrays, Arrays], None]:
    """Add the products of every record to its filter's plane; see `Operation.replay`."""
    nonzeros = _Nonzeros(plan)
    # As in a kernel, filters without a record are written only if the plan zeroes Y.
    written = slice(None) if "Y" in plan.zero_outputs else nonzeros.written

    def run(inputs: Arrays, outputs: Arrays) -> None:
        result = _products(nonzeros.matrix(inputs["values"]), planes(inputs["X"]))
        planes(outputs["Y"])[:, written] = result[:, written]

    return run


def gradient_replay(plan: Plan) -> Callable[[Arrays, Arrays], None]:
    """Execute the records of the weights' gradient, and those of the last plan for dX."""
    last = plan.parts[-1]
    nonzeros = _Nonzeros(plan) if last is plan else _Nonzeros(last, last.arrays["order"])
    replay_weights = weights_replay(plan)

    def run(inputs: Arrays, outputs: Arrays) -> None:
        replay_weights(inputs, outputs)
        matrix = nonzeros.matrix(inputs["values"]).T.tocsr()
        outputs["dX"][...] = _products(matrix, inputs["dY"])

    return run


def weights_replay(plan: Plan) -> Callable[[Arrays, Arrays], None]:
    """Compute the dot products of every record of the workload; see `Operation.replay`."""
    nonzeros = _Nonzeros(plan)

    def run(inputs: Arrays, outputs: Arrays) -> None:
        pairs = nonzeros.filters, nonzeros.channels
        result = _dots(*pairs, planes(inputs["dY"]), planes(inputs["X"]))
        outputs["d_values"][...] = 0
        np.add.at(outputs["d_values"], nonzeros.positions, result)

    return run


_WEIGHTS = Operand("values", (NONZEROS,), weights=True)
_WIDTHS: Mapping[str, int | None] = {"n_cols": None, "images": 1}

SCC = Operation(
    name="scc",
    formula="Y[n] = A X[n], images n of channels x pixels",
    widths=_WIDTHS,
    inputs=(_WEIGHTS, _map_of("X", COLUMNS, _FIRST)),
    outputs=(_map_of("Y", ROWS, _FIRST),),
    fastest="dsxplore",
    reference=reference,
    replay=replay,
    traffic=traffic,
    independent="n_cols",
)

SCC_GRADIENT = Operation(
    name="scc_gradient",
    formula="dX[n] = A^T dY[n], d_values = sum over n of dY[n] X[n]^T at the nonzeros of A",
    widths=_WIDTHS,
    inputs=(_WEIGHTS, _map_of("X", COLUMNS, _FIRST), _map_of("dY", ROWS, _FIRST)),
    outputs=(Operand("d_values", (NONZEROS,)), _map_of("dX", COLUMNS, _FIRST)),
    fastest="dsxplore",
    reference=gradient_reference,
    replay=gradient_replay,
    traffic=gradient_traffic,
)

SCC_LAST = Operation(
    name="scc_last",
    formula="Y = X A^T, pixels x channels",
    widths={"n_cols": None},
    inputs=(_WEIGHTS, _map_of("X", COLUMNS, _LAST)),
    outputs=(_map_of("Y", ROWS, _LAST),),
    fastest="strided_windows",
    reference=reference,
    replay=replay,
    traffic=traffic,
    terms=_terms,
    independent="n_cols",
)

SCC_LAST_WEIGHTS = Operation(
    name="scc_last_weights",
    formula="d_values = dY^T X at the nonzeros of A, pixels x channels",
    widths={"n_cols": None},
    inputs=(_map_of("X", COLUMNS, _LAST), _map_of("dY", ROWS, _LAST)),
    outputs=(Operand("d_values", (NONZEROS,)),),
    fastest="strided_windows",
    reference=weights_reference,
    replay=weights_replay,
    traffic=traffic,
    terms=_weight_terms,
)
