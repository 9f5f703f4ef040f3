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
    """Return a function that adds the products of a run of nonzeros, for `width` columns.

    Its arguments are (columns, values, X, y, start, stop, first column, whether y has a sum). The
    sums stay in registers: a loop over columns in Python would load and store y for each nonzero,
    and test whether y and the rows of X overlap.
    """

    @intrinsic
    def add(
        _: Any, columns: Any, values: Any, X: Any, y: Any, start: Any, stop: Any, at: Any, has: Any
    ) -> Any:
        if X.layout != "C" or y.layout != "C":
            raise TypingError("X and y need contiguous rows")
        signature = types.void(columns, values, X, y, start, stop, at, has)
        return signature, _generate

    def _generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        columns, values, X, y = (
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args[:4], arguments[:4], strict=True)
        )
        start, stop, at, has_sum = arguments[4:]
        vector = ir.VectorType(ir.FloatType(), width)
        lanes = ir.VectorType(ir.IntType(32), width)
        row_bytes, undefined = cgutils.unpack_tuple(builder, X.strides, 2)[0], ir.Undefined
        target = builder.bitcast(builder.gep(y.data, [at]), vector.as_pointer())
        initial = cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * width))
        with builder.if_then(has_sum):
            builder.store(builder.load(target, align=4), initial)
        first_sum, before = builder.load(initial), builder.block
        test, body, end = (builder.append_basic_block(name) for name in ("test", "body", "end"))
        builder.branch(test)

        builder.position_at_end(test)
        k, sums = builder.phi(_INT64), builder.phi(vector)
        builder.cbranch(builder.icmp_signed("<", k, stop), body, end)

        builder.position_at_end(body)
        column = builder.zext(builder.load(builder.gep(columns.data, [k])), _INT64)
        weight = builder.load(builder.gep(values.data, [k]))
        row = builder.gep(builder.bitcast(X.data, _BYTES), [builder.mul(column, row_bytes)])
        address = builder.gep(builder.bitcast(row, ir.FloatType().as_pointer()), [at])
        x = builder.load(builder.bitcast(address, vector.as_pointer()), align=4)
        first_lane = ir.Constant(ir.IntType(32), 0)
        single = builder.insert_element(ir.Constant(vector, undefined), weight, first_lane)
        same = ir.Constant(lanes, [0] * width)
        weights = builder.shuffle_vector(single, ir.Constant(vector, undefined), same)
        added = builder.fadd(builder.fmul(weights, x, flags=_FLAGS), sums, flags=_FLAGS)
        following = builder.add(k, ir.Constant(_INT64, 1))
        builder.branch(test)
        for phi, ahead, again in ((k, start, following), (sums, first_sum, added)):
            phi.add_incoming(ahead, before)
            phi.add_incoming(again, body)

        builder.position_at_end(end)
        builder.store(sums, target, align=4)
        return context.get_dummy_value()

    return add


_sum_64, _sum_32, _sum_16, _sum_8 = map(_sum_of, (64, 32, 16, 8))
_sum_4, _sum_2, _sum_1 = map(_sum_of, (4, 2, 1))


@njit(nogil=True)
def sum_rows(first: int, last: int, walk: Any, values: Floats, X: Floats, Y: Floats) -> None:
    """Compute rows `first` to `last` - 1 of `Records.walk`. X and Y have contiguous rows."""
    first_record, nz_start, nz_count, columns, output_rows = walk
    n_cols = X.shape[1]
    for row in range(first, last):
        y, begun = Y[output_rows[row]], False
        # As in a kernel, rows without a record are not written.
        for record in range(first_record[row], first_record[row + 1]):
            start = np.int64(nz_start[record])
            stop, at = start + np.int64(nz_count[record]), np.int64(0)
            while at + 64 <= n_cols:
                _sum_64(columns, values, X, y, start, stop, at, begun)
                at += 64
            if at + 32 <= n_cols:
                _sum_32(columns, values, X, y, start, stop, at, begun)
                at += 32
            if at + 16 <= n_cols:
                _sum_16(columns, values, X, y, start, stop, at, begun)
                at += 16
            if at + 8 <= n_cols:
                _sum_8(columns, values, X, y, start, stop, at, begun)
                at += 8
            if at + 4 <= n_cols:
                _sum_4(columns, values, X, y, start, stop, at, begun)
                at += 4
            if at + 2 <= n_cols:
                _sum_2(columns, values, X, y, start, stop, at, begun)
                at += 2
            if at < n_cols:
                _sum_1(columns, values, X, y, start, stop, at, begun)
            begun = True
