"""The float64 oracle, and the error bound that every result is held to."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.devices.operands import is_device_array
from accelviz.graph import Graph
from accelviz.plans import Operation
from accelviz.plans.arithmetic import CUT_OFF, ROUNDING
from accelviz.plans.operation import EPS32
from accelviz.strategies import SPMM

#: Less than any float32, and what a float32 over it is more than.
_TINY, _TOO_LARGE = 1e-300, 1e200


class Oracle:
    """An operation in float64, and how far float32 may be from it.

    Parameters
    ----------
    graph : Graph
    *dense : array of float32
        The dense inputs in order: X for an SpMM, U and V for an SDDMM. Where the columns of a
        result are independent, as an SpMM's are, the oracle serves its first columns too.
    operation : Operation
    values : array of float32, shape (nnz,), optional
        Weights in place of the graph's own.
    **settings
        Numbers and words in place of the operation's defaults.
    """

    def __init__(
        self,
        graph: Graph,
        *dense: Any,
        operation: Operation = SPMM,
        values: Any = None,
        **settings: Any,
    ) -> None:
        operands, known = operation.named(*dense), operation.operands
        if "values" in known:
            operands["values"] = graph.values if values is None else values
        wide = {
            name: np.asarray(array, np.float64 if known[name].dtype.kind == "f" else None)
            for name, array in operands.items()
        }
        for operand in operation.settings:
            wide[operand.name] = operand.setting(settings.get(operand.name))
        self.operation = operation
        self.known = dict(operation.reference(graph.pattern, wide))
        self.terms: Any = None
        if operation.terms is not None:
            sizes = operation.sizes(graph.pattern, operation.widths_of(wide))
            self.terms = np.maximum(operation.terms(graph.pattern, sizes), 1)

    def moved(self, to_device: Callable[[npt.NDArray[Any]], Any]) -> Oracle:
        """Return a copy whose arrays lie on a device, to check results where they are."""
        moved = copy.copy(self)
        moved.known = {n: (to_device(e), to_device(b)) for n, (e, b) in self.known.items()}
        moved.terms = None if self.terms is None else to_device(self.terms)
        return moved

    def error(self, result: Any, arithmetic: str = "float32") -> float:
        """Return the largest error of a result in units of the bound: at most 1 is correct.

        A NaN, an infinity or a value where the bound is 0 (a row without a nonzero) that is not
        exactly right gives infinity.

        Parameters
        ----------
        result : array, or mapping of str to array
            The output, or several by name, on the host or on the device; an oracle that was moved
            wants it on the device.
        arithmetic : str
            As `Plan.arithmetic`: the bound allows for what it rounds.
        """
        compared = self._compared(result, arithmetic)
        return max(_error(got, expected, bound) for _, got, expected, bound in compared)

    def first_wrong(self, result: Any, arithmetic: str = "float32") -> str:
        """Say which element of a wrong result is the first beyond the bound, and how many are."""
        for name, *arrays in self._compared(result, arithmetic):
            got, expected, bound = map(_host64, arrays)
            wrong = ~(np.abs(got - expected) <= bound)  # a NaN, too
            if wrong.any():
                first = tuple(np.argwhere(wrong)[0].tolist())
                element = f"{name}[{', '.join(map(str, first))}]"
                return (
                    f"{element} is {got[first]:.6g} and should be {expected[first]:.6g}, "
                    f"{int(wrong.sum()):,} of {wrong.size:,} elements are wrong"
                )
        return "no element is wrong"

    def _compared(self, result: Any, arithmetic: str) -> Iterator[tuple[str, Any, Any, Any]]:
        """Yield each output's name, what was got and expected, and the bound of their distance."""
        outputs = self.operation.outputs
        if not isinstance(result, Mapping):
            result = {outputs[0].name: result}
        for operand in outputs:
            got, (expected, bound) = result[operand.name], self.known[operand.name]
            if is_device_array(got) and not is_device_array(expected):
                got = got.get()
            if self.operation.independent:
                cut = tuple(
                    slice(0, n if axis == self.operation.independent else None)
                    for n, axis in zip(got.shape, operand.axes, strict=True)
                )
                expected, bound = expected[cut], bound[cut]
            if arithmetic != "float32":
                # The bound is terms * EPS32 * sum |a x|; this adds rounding * sum |a x|.
                bound = bound * (CUT_OFF + ROUNDING[arithmetic] / (EPS32 * self.terms))
            yield operand.name, got.reshape(expected.shape), expected, bound


def _host64(array: Any) -> npt.NDArray[np.float64]:
    return np.asarray(array.get() if is_device_array(array) else array, np.float64)


def _error(got: Any, expected: Any, bound: Any) -> float:
    if got.size == 0:
        return 0.0
    # Where the bound is 0, any distance but 0 is to be beyond all bounds.
    # Words are compared as floats, which do not wrap.
    ratio = abs(got * 1.0 - expected) / (bound + (bound == 0) * _TINY)
    worst = float(ratio.max())
    return worst if worst < _TOO_LARGE else float("inf")  # a NaN, too
