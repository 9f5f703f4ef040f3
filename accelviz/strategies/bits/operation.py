"""Two exact integer operations of QGTC (thesis, chapter 2): bit-matrix products and packed SpMM.

A matrix of s-bit numbers is s planes, binary matrices of one bit per number. The product of A
(s bits) and B (t bits) is the sum of s t products of planes, each shifted (Equation 2.6); a product
of planes is AND and popcount (sections 2.3.2 and 2.4.3 to 2.4.5). A packed SpMM adds up rows of X.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from accelviz.graph import Pattern
from accelviz.plans import Operand, Operation, Plan
from accelviz.plans.operation import COLUMNS, EPS32, FLOAT_BYTES, ROWS, Arrays, Traffic
from accelviz.strategies.bits.packing import (
    ROW_BITS,
    WORD_BITS,
    levels_of,
    pack_ones,
    pack_planes,
    padded_words,
    quantized,
    row_levels,
    row_words,
)
from accelviz.workload import Workload, spread

_UINT32, _INT32 = np.dtype(np.uint32), np.dtype(np.int32)
#: Lines of A that a replay unpacks together.
_LINES_AT_ONCE = 512


@dataclass(frozen=True)
class Epilogue:
    """Steps after a product in the same kernel: real values, ReLU, quantization.

    Attributes
    ----------
    bits : int
        Bits of a packed result; 0 for float32 values.
    side : {"left", "right"}
        Operand of the next product for which a packed result has the layout.
    relu : bool
        Whether negative values are set to zero.
    """

    bits: int = 0
    side: str = "left"
    relu: bool = False


@dataclass(frozen=True)
class Planes(Operand):
    """An operand packed plane by plane, whose lines and words are padded.

    Attributes
    ----------
    packs : tuple of two str
        Axes of the unpacked matrix: of its lines, and of the numbers of a line.
    bits : int
        Number of planes; 0 if the first axis is a width.
    """

    axes: tuple[str, ...] = ("bits", "lines", "words of a line")
    dtype: np.dtype[Any] = _UINT32
    packs: tuple[str, str] = ("", "")
    bits: int = 0

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return the numbers of planes, lines and words, padded; see `Operand`."""
        bits = self.bits or sizes[self.axes[0]]
        return bits, *padded_words(*(sizes[axis] for axis in self.packs))


@dataclass(frozen=True)
class PackedRows(Operand):
    """An operand packed row by row, with 8 or 4 bits per number."""

    axes: tuple[str, ...] = (COLUMNS, "words of a row")
    gathered: bool = True
    dtype: np.dtype[Any] = _UINT32
    bits: int = 8

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return the numbers of rows and words per row; see `Operand`."""
        return sizes[COLUMNS], row_words(sizes["n_cols"], self.bits)


def apply_epilogue(epilogue: Epilogue | None, sums: Any, row_sums: Any, inputs: Arrays) -> Any:
    """Apply an epilogue to sums, in the kernel's order and in the dtype of the coefficients.

    Values are `(sums alpha + row_sums beta) row_scale + gamma`, then ReLU, then quantized.
    """
    if epilogue is None:
        return sums
    alpha, dtype = inputs["alpha"], inputs["alpha"].dtype
    values = sums.astype(dtype) * alpha + row_sums.astype(dtype)[:, None] * inputs["beta"]
    values = values * inputs["row_scale"][:, None] + inputs["gamma"]
    if epilogue.relu:
        values = np.maximum(values, dtype.type(0))
    if not epilogue.bits:
        return values
    levels, _ = quantized(values, inputs["low"], inputs["step"], epilogue.bits)
    return pack_planes(levels, epilogue.bits, epilogue.side)


def product_reference(
    epilogue: Epilogue | None, pattern: Pattern, inputs: Arrays
) -> Mapping[str, tuple[Any, Any]]:
    """Multiply integers in float64, exactly; see `Operation.reference`.

    Real values have the bound of six roundings. Packed results equal the kernel's, as the epilogue
    has the same float32 operations in the same order.
    """
    A, B = (levels_of(inputs[name]).astype(np.float64) for name in "AB")
    sums, row_sums = (A @ B.T)[: pattern.n_rows], A.sum(axis=1)[: pattern.n_rows]
    if epilogue is not None:
        sums = sums[:, : inputs["alpha"].size]
    if epilogue is None or epilogue.bits:
        inputs = {name: np.asarray(array, np.float32) for name, array in inputs.items()}
        expected = apply_epilogue(epilogue, sums, row_sums, inputs)
        return {"out": (expected, np.zeros(expected.shape))}
    magnitudes = {name: np.abs(array) for name, array in inputs.items()}
    bound = 6 * EPS32 * apply_epilogue(epilogue, sums, row_sums, magnitudes)
    return {"out": (apply_epilogue(epilogue, sums, row_sums, inputs), bound)}


def product_replay(epilogue: Epilogue | None, plan: Plan) -> Callable[[Arrays, Arrays], None]:
    """Multiply without the zero words of A, which kernels skip; see `Operation.replay`."""
    rows, columns = plan.pattern.n_rows, plan.n_cols

    def run(inputs: Arrays, outputs: Arrays) -> None:
        A, B = inputs["A"], levels_of(inputs["B"])[:columns].astype(np.float64)
        sums, row_sums = np.empty((rows, columns)), np.empty(rows)
        for first in range(0, rows, _LINES_AT_ONCE):
            lines = slice(first, min(first + _LINES_AT_ONCE, rows))
            nonzero_words = A[:, lines].any(axis=(0, 1))
            left = levels_of(A[:, lines, nonzero_words]).astype(np.float64)  # sums are below 2^31
            sums[lines] = left @ B[:, np.repeat(nonzero_words, WORD_BITS)].T
            row_sums[lines] = left.sum(axis=1)
        outputs["out"][...] = apply_epilogue(epilogue, sums, row_sums, inputs)

    return run


def product_traffic(pattern: Pattern, widths: Mapping[str, int], element_bytes: int) -> Traffic:
    """Count bytes: the words of both operands and the int32 result, streamed once."""
    operation = bit_product()
    sizes = operation.sizes(pattern, widths)
    shapes = [operand.shape(sizes) for operand in operation.operands.values()]
    streamed = sum(FLOAT_BYTES * math.prod(shape) for shape in shapes)
    return Traffic(streamed, 0, streamed, 0, 0)


def _inside_pattern(pattern: Pattern, inputs: Arrays) -> Arrays:
    """Set elements of a random A to zero that are no nonzeros of the pattern."""
    rows = np.repeat(np.arange(pattern.n_rows), pattern.degrees)
    return {"A": inputs["A"] & pack_ones(rows, pattern.column_indices, pattern.shape)}


@functools.cache
def bit_product(epilogue: Epilogue | None = None) -> Operation:
    """Return the operation for the int32 product of two bit matrices, or with an epilogue."""
    lines = ("lines", "words of a line")
    inputs: tuple[Operand, ...] = (
        Planes("A", ("a_bits", *lines), packs=(ROWS, COLUMNS)),
        Planes("B", ("b_bits", *lines), packs=("n_cols", COLUMNS)),
    )
    output, name = Operand("out", (ROWS, "n_cols"), dtype=_INT32), "bit_product"
    if epilogue is not None:
        columns = (Operand(coefficient, ("n_cols",)) for coefficient in ("alpha", "beta", "gamma"))
        inputs = (*inputs, *columns, Operand("row_scale", (ROWS,)))
        output, name = Operand("out", (ROWS, "n_cols")), f"bit_product with {epilogue}"
        if epilogue.bits:
            inputs = (*inputs, Operand("low", (), default=0.0), Operand("step", (), default=1.0))
            packs = (ROWS, "n_cols") if epilogue.side == "left" else ("n_cols", ROWS)
            output = Planes("out", packs=packs, bits=epilogue.bits)
    return Operation(
        name=name,
        formula="out = A B, matrices of few bits",
        widths={"n_cols": None, "a_bits": 1, "b_bits": 2},
        inputs=inputs,
        outputs=(output,),
        fastest="split",
        reference=partial(product_reference, epilogue),
        replay=partial(product_replay, epilogue),
        traffic=product_traffic,
        completed=_inside_pattern,
        independent="" if epilogue else "n_cols",
    )


def sums_reference(bits: int, pattern: Pattern, inputs: Arrays) -> Mapping[str, tuple[Any, Any]]:
    """Add up rows by SciPy, exactly; see `Operation.reference`."""
    entries = np.ones(pattern.nnz, np.int64), pattern.column_indices, pattern.row_pointers
    sums = sparse.csr_array(entries, shape=pattern.shape) @ row_levels(inputs["X"], bits)
    return {"Y": (sums, np.zeros(sums.shape))}


def sums_replay(bits: int, plan: Plan) -> Callable[[Arrays, Arrays], None]:
    """Add every record of the workload to its row; see `Operation.replay`."""
    work, n_cols = Workload.concatenate(plan.workload_slices()), plan.n_cols
    record, offset = spread(work.nz_count)
    columns = plan.walked.column_indices[work.nz_start[record] + offset]
    rows = plan.output_rows[work.row]
    entries = np.ones(record.size, np.int64), (rows[record], columns)
    matrix, written_rows = sparse.csr_array(entries, shape=plan.pattern.shape), np.unique(rows)

    def run(inputs: Arrays, outputs: Arrays) -> None:
        sums = matrix @ row_levels(inputs["X"], bits)[:, :n_cols]
        outputs["Y"][written_rows] = sums[written_rows]

    return run


def sums_traffic(
    bits: int, pattern: Pattern, widths: Mapping[str, int], element_bytes: int
) -> Traffic:
    """Count bytes: 4 for a column index and an element of Y, 8 for a row pointer; X gathered."""
    streamed = FLOAT_BYTES * (pattern.nnz + 2 * (pattern.n_rows + 1))
    streamed += FLOAT_BYTES * widths["n_cols"] * pattern.n_rows
    return Traffic.of_columns(pattern, FLOAT_BYTES * row_words(widths["n_cols"], bits), streamed)


#: The packed SpMMs, by the bits of a number of X.
BIT_SPMM = {
    bits: Operation(
        name=f"bit_spmm_{bits}",
        formula=f"Y = A X, A of zeros and ones, X of {bits} bits",
        widths={"n_cols": None},
        inputs=(PackedRows("X", bits=bits),),
        outputs=(Operand("Y", (ROWS, "n_cols"), dtype=_INT32),),
        fastest="lane_groups",
        reference=partial(sums_reference, bits),
        replay=partial(sums_replay, bits),
        traffic=partial(sums_traffic, bits),
        independent="n_cols",
    )
    for bits in ROW_BITS
}
