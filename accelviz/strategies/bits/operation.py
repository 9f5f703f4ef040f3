"""Products of matrices of few bits and sums of bit-packed rows: whole numbers, exact.

Sections 2.3.2 and 2.4.3 to 2.4.5 of the thesis (QGTC). A product of s and of t bits is s times t
products of single bits, each an AND and a count of ones, added up with shifts: Equation 2.6.
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
#: Lines of A that are unpacked at a time.
_LINES_AT_ONCE = 512


@dataclass(frozen=True)
class Epilogue:
    """What follows a product in the same kernel: real values, which may be packed again.

    Attributes
    ----------
    bits : int
        Of a packed result; 0 for float32.
    side : {"left", "right"}
        Of which operand of the next product a packed result is.
    relu : bool
        Whether negative values become zero.
    """

    bits: int = 0
    side: str = "left"
    relu: bool = False


@dataclass(frozen=True)
class Planes(Operand):
    """A matrix packed plane by plane; its words do not tell its size without padding.

    Attributes
    ----------
    packs : tuple of two str
        The axes that count its lines, and the numbers of a line.
    bits : int
        Its planes, if no width counts them.
    """

    axes: tuple[str, ...] = ("bits", "lines", "words of a line")
    dtype: np.dtype[Any] = _UINT32
    packs: tuple[str, str] = ("", "")
    bits: int = 0

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return planes, lines and words, padded; see `Operand`."""
        bits = self.bits or sizes[self.axes[0]]
        return bits, *padded_words(*(sizes[axis] for axis in self.packs))


@dataclass(frozen=True)
class PackedRows(Operand):
    """A matrix packed row by row, in 8 or 4 bits a number."""

    axes: tuple[str, ...] = (COLUMNS, "words of a row")
    gathered: bool = True
    dtype: np.dtype[Any] = _UINT32
    bits: int = 8

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return rows and words; see `Operand`."""
        return sizes[COLUMNS], row_words(sizes["n_cols"], self.bits)


def apply_epilogue(epilogue: Epilogue | None, sums: Any, row_sums: Any, inputs: Arrays) -> Any:
    """Do what follows a product, operation by operation in the dtype of the coefficients.

    Values are `(sums alpha + row_sums beta) row_scale + gamma`, then ReLU, then levels.
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
    """Multiply whole numbers in float64; see `Operation.reference`.

    Whole numbers are exact. Real values are off by a rounding for each of six operations. Packed
    results are those of float32, whose operations have one order.
    """
    A, B = (levels_of(inputs[name]).astype(np.float64) for name in "AB")
    sums, row_sums = (A @ B.T)[: pattern.n_rows], A.sum(axis=1)[: pattern.n_rows]
    if epilogue is not None:
        sums = sums[:, : inputs["alpha"].size]
    if epilogue is None or epilogue.bits:
        inputs = {name: np.asarray(array, np.float32) for name, array in inputs.items()}
        expected = apply_epilogue(epilogue, sums, row_sums, inputs)
        return {"out": (expected, np.zeros(expected.shape))}
    bound = {name: np.abs(array) for name, array in inputs.items()}
    return {
        "out": (
            apply_epilogue(epilogue, sums, row_sums, inputs),
            6 * EPS32 * apply_epilogue(epilogue, sums, row_sums, bound),
        )
    }


def product_replay(epilogue: Epilogue | None, plan: Plan) -> Callable[[Arrays, Arrays], None]:
    """Multiply, jumping over words of A that are zero, as kernels do; see `Operation.replay`."""
    rows, columns = plan.pattern.n_rows, plan.n_cols

    def run(inputs: Arrays, outputs: Arrays) -> None:
        A, B = inputs["A"], levels_of(inputs["B"])[:columns].astype(np.float64)
        sums, row_sums = np.empty((rows, columns)), np.empty(rows)
        for first in range(0, rows, _LINES_AT_ONCE):
            part = slice(first, min(first + _LINES_AT_ONCE, rows))
            used = A[:, part].any(axis=(0, 1))
            left = levels_of(A[:, part, used]).astype(np.float64)  # exact: sums stay below 2^31
            sums[part] = left @ B[:, np.repeat(used, WORD_BITS)].T
            row_sums[part] = left.sum(axis=1)
        outputs["out"][...] = apply_epilogue(epilogue, sums, row_sums, inputs)

    return run


def product_traffic(pattern: Pattern, widths: Mapping[str, int], element_bytes: int) -> Traffic:
    """Count bytes: the words of both operands read once, sums written once."""
    operation = bit_product()
    sizes = operation.sizes(pattern, widths)
    shapes = [operand.shape(sizes) for operand in operation.operands.values()]
    moved = sum(FLOAT_BYTES * math.prod(shape) for shape in shapes)
    return Traffic(moved, 0, moved, 0, 0)


def _inside_pattern(pattern: Pattern, inputs: Arrays) -> Arrays:
    """Let A be zero wherever the pattern is."""
    rows = np.repeat(np.arange(pattern.n_rows), pattern.degrees)
    return {"A": inputs["A"] & pack_ones(rows, pattern.column_indices, pattern.shape)}


@functools.cache
def bit_product(epilogue: Epilogue | None = None) -> Operation:
    """Return the product of two bit matrices, int32, or what an epilogue makes of it."""
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
    """Add up rows by SciPy; see `Operation.reference`. Whole numbers are exact."""
    entries = np.ones(pattern.nnz, np.int64), pattern.column_indices, pattern.row_pointers
    sums = sparse.csr_array(entries, shape=pattern.shape) @ row_levels(inputs["X"], bits)
    return {"Y": (sums, np.zeros(sums.shape))}


def sums_replay(bits: int, plan: Plan) -> Callable[[Arrays, Arrays], None]:
    """Sum every record of the workload into its row; see `Operation.replay`."""
    work, n_cols = Workload.concatenate(plan.workload_slices()), plan.n_cols
    record, offset = spread(work.nz_count)
    columns = plan.walked.column_indices[work.nz_start[record] + offset]
    rows = plan.output_rows[work.row]
    entries = np.ones(record.size, np.int64), (rows[record], columns)
    matrix, touched = sparse.csr_array(entries, shape=plan.pattern.shape), np.unique(rows)

    def run(inputs: Arrays, outputs: Arrays) -> None:
        sums = matrix @ row_levels(inputs["X"], bits)[:, :n_cols]
        outputs["Y"][touched] = sums[touched]

    return run


def sums_traffic(
    bits: int, pattern: Pattern, widths: Mapping[str, int], element_bytes: int
) -> Traffic:
    """Count bytes: 4 for a column index and an element of Y, 8 for a row pointer."""
    streamed = FLOAT_BYTES * (pattern.nnz + 2 * (pattern.n_rows + 1))
    streamed += FLOAT_BYTES * widths["n_cols"] * pattern.n_rows
    return Traffic.of_columns(pattern, FLOAT_BYTES * row_words(widths["n_cols"], bits), streamed)


#: Sums of neighbors' rows, by the bits of a number.
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
