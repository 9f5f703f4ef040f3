"""SpMM on the CPU: the sums of rows, whose columns are vectors in registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from accelviz.arrays import Floats
from accelviz.compiled import njit

_INT64, _BYTES = ir.IntType(64), ir.IntType(8).as_pointer()
#: Lets a multiply and an add fuse, as they do on a GPU; sums keep their order.
_FLAGS = ("contract",)


def _sum_of(width: int) -> Callable[..., None]:
    """Return a function that sums the products of a run of nonzeros, for vectors of columns.

    Its arguments are (columns, values, X, y, start, stop, first column of each vector). The vectors
    have `width` columns, and may overlap. The sums stay in registers: a loop over columns in Python
    would load and store y for each nonzero, and test whether y and the rows of X overlap.
    """

    @intrinsic
    def add(
        _: Any, columns: Any, values: Any, X: Any, y: Any, start: Any, stop: Any, at: Any
    ) -> Any:
        if X.layout != "C" or y.layout != "C":
            raise TypingError("X and y need contiguous rows")
        signature = types.void(columns, values, X, y, start, stop, at)
        return signature, _generate

    def _generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        columns, values, X, y = (
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args[:4], arguments[:4], strict=True)
        )
        start, stop, first_columns = arguments[4:]
        offsets = cgutils.unpack_tuple(builder, first_columns)
        vector = ir.VectorType(ir.FloatType(), width)
        lanes = ir.VectorType(ir.IntType(32), width)
        row_bytes, undefined = cgutils.unpack_tuple(builder, X.strides, 2)[0], ir.Undefined
        targets = [
            builder.bitcast(builder.gep(y.data, [at]), vector.as_pointer()) for at in offsets
        ]
        before = builder.block
        test, body, end = (builder.append_basic_block(name) for name in ("test", "body", "end"))
        builder.branch(test)

        builder.position_at_end(test)
        k, sums = builder.phi(_INT64), [builder.phi(vector) for _ in targets]
        builder.cbranch(builder.icmp_signed("<", k, stop), body, end)

        builder.position_at_end(body)
        column = builder.zext(builder.load(builder.gep(columns.data, [k])), _INT64)
        weight = builder.load(builder.gep(values.data, [k]))
        row = builder.gep(builder.bitcast(X.data, _BYTES), [builder.mul(column, row_bytes)])
        row = builder.bitcast(row, ir.FloatType().as_pointer())
        first_lane = ir.Constant(ir.IntType(32), 0)
        single = builder.insert_element(ir.Constant(vector, undefined), weight, first_lane)
        same = ir.Constant(lanes, [0] * width)
        weights = builder.shuffle_vector(single, ir.Constant(vector, undefined), same)
        added = []
        for at, total in zip(offsets, sums, strict=True):
            address = builder.bitcast(builder.gep(row, [at]), vector.as_pointer())
            products = builder.fmul(weights, builder.load(address, align=4), flags=_FLAGS)
            added.append(builder.fadd(products, total, flags=_FLAGS))
        following = builder.add(k, ir.Constant(_INT64, 1))
        builder.branch(test)
        zero = ir.Constant(vector, [0.0] * width)
        k.add_incoming(start, before)
        k.add_incoming(following, body)
        for total, again in zip(sums, added, strict=True):
            total.add_incoming(zero, before)
            total.add_incoming(again, body)

        builder.position_at_end(end)
        for total, target in zip(sums, targets, strict=True):
            builder.store(total, target, align=4)
        return context.get_dummy_value()

    return add


_sum_64, _sum_32, _sum_16, _sum_8 = map(_sum_of, (64, 32, 16, 8))
_sum_4, _sum_2, _sum_1 = map(_sum_of, (4, 2, 1))


@njit(nogil=True, inline="always")
def _rows(add: Any, width: int, first: int, last: int, walk: Any, operands: Any) -> None:
    """Compute rows of at least `width` and at most twice as many columns."""
    _, nz_start, nz_count, columns, output_rows = walk
    values, X, Y = operands
    vectors = np.int64(0), np.int64(X.shape[1] - width)
    for row in range(np.uint64(first), np.uint64(last)):
        start = np.int64(nz_start[row])
        stop = start + np.int64(nz_count[row])
        add(columns, values, X, Y[np.uint64(output_rows[row])], start, stop, vectors)


@njit(nogil=True, fastmath={"contract"})
def _one_column(first: int, last: int, walk: Any, values: Floats, X: Floats, Y: Floats) -> None:
    _, nz_start, nz_count, columns, output_rows = walk
    x, y = X.reshape(-1), Y.reshape(-1)
    for row in range(np.uint64(first), np.uint64(last)):
        start, total = np.uint64(nz_start[row]), np.float32(0)
        for k in range(start, start + np.uint64(nz_count[row])):
            total += values[k] * x[np.uint64(columns[k])]
        y[np.uint64(output_rows[row])] = total


@njit(nogil=True)
def sum_csr(first: int, last: int, walk: Any, values: Floats, X: Floats, Y: Floats) -> None:
    """Compute rows `first` to `last` - 1 of `Records.csr_walk`. X and Y have contiguous rows.

    A row of 2 to 128 columns is two vectors, which overlap where they have more columns than it.
    More vectors, one after the other, take longer: the end of a row's loop is predicted wrongly for
    each.
    Numbers of rows are unsigned, as Numba tests whether others count from the end.
    """
    n_cols, operands = X.shape[1], (values, X, Y)
    if n_cols > 128:
        _, nz_start, nz_count, columns, output_rows = walk
        for row in range(np.uint64(first), np.uint64(last)):
            start = np.int64(nz_start[row])
            stop = start + np.int64(nz_count[row])
            for column in range(0, n_cols, 64):
                vector = (np.int64(min(column, n_cols - 64)),)
                _sum_64(columns, values, X, Y[np.uint64(output_rows[row])], start, stop, vector)
    elif n_cols > 64:
        _rows(_sum_64, 64, first, last, walk, operands)
    elif n_cols > 32:
        _rows(_sum_32, 32, first, last, walk, operands)
    elif n_cols > 16:
        _rows(_sum_16, 16, first, last, walk, operands)
    elif n_cols > 8:
        _rows(_sum_8, 8, first, last, walk, operands)
    elif n_cols > 4:
        _rows(_sum_4, 4, first, last, walk, operands)
    elif n_cols > 2:
        _rows(_sum_2, 2, first, last, walk, operands)
    elif n_cols == 2:
        _rows(_sum_1, 1, first, last, walk, operands)
    elif n_cols:
        _one_column(first, last, walk, values, X, Y)


@njit(nogil=True, fastmath={"contract"})
def sum_rows(first: int, last: int, walk: Any, values: Floats, X: Floats, Y: Floats) -> None:
    """Compute rows `first` to `last` - 1 of `Records.walk`, with the bits of `sum_csr`."""
    first_record, nz_start, nz_count, columns, output_rows = walk
    for row in range(first, last):
        y = Y[output_rows[row]]
        # As in a kernel, rows without a record are not written.
        if first_record[row] < first_record[row + 1]:
            y[:] = 0
        for record in range(first_record[row], first_record[row + 1]):
            for k in range(nz_start[record], nz_start[record] + nz_count[record]):
                x = X[columns[k]]
                for c in range(X.shape[1]):
                    y[c] += values[k] * x[c]
