"""The float64 oracle: expected results of an operation, and the error bound of float32 results."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.devices.operands import is_device_array
from accelviz.graph import Graph
from accelviz.plans import Operation
from accelviz.plans.arithmetic import ROUNDING, TRUNCATION_FACTOR
from accelviz.plans.operation import EPS32
from accelviz.strategies import SPMM

#: Substitute for a bound of 0, and a ratio that only a nonzero error over it exceeds.
_TINY, _TOO_LARGE = 1e-300, 1e200


class Oracle:
    """Outputs of an operation in float64, with the largest permitted error of a float32 result.

    Parameters
    ----------
    graph : Graph
    *dense : array of float32
        Dense inputs in order: X for an SpMM, U and V for an SDDMM. If the columns of the result are
        independent, as in SpMM, narrower results are compared with the first columns.
    operation : Operation
    values : array of float32, shape (nnz,), optional
        Weights that replace the graph's.
    **settings
        Scalar settings that replace the operation's defaults.

    Attributes
    ----------
    known : dict of str to (array, array)
        Expected result and error bound of each output.
    """

    def __init__(
        self,
        graph: Graph,
        *dense: Any,
        operation: Operation = SPMM,
        values: Any = None,
        **settings: Any,
    ) -> None:
        arrays, operands = operation.named(*dense), operation.operands
        if "values" in operands:
            arrays["values"] = graph.values if values is None else values
        float64_arrays = {
            name: np.asarray(array, np.float64 if operands[name].dtype.kind == "f" else None)
            for name, array in arrays.items()
        }
        for operand in operation.settings:
            float64_arrays[operand.name] = operand.setting(settings.get(operand.name))
        self.operation = operation
        self.known = dict(operation.reference(graph.pattern, float64_arrays))
        self.terms: Any = None
        if operation.terms is not None:
            sizes = operation.sizes(graph.pattern, operation.widths_of(float64_arrays))
            self.terms = np.maximum(operation.terms(graph.pattern, sizes), 1)

    def to_device(self, copy_array: Callable[[npt.NDArray[Any]], Any]) -> Oracle:
        """Return a copy with its arrays copied to a device, to check results there."""
        oracle = copy.copy(self)
        oracle.known = {
            name: (copy_array(expected), copy_array(bound))
            for name, (expected, bound) in self.known.items()
        }
        oracle.terms = None if self.terms is None else copy_array(self.terms)
        return oracle

    def error(self, result: Any, arithmetic: str = "float32") -> float:
        """Return the largest error of a result over its bound; a correct result has at most 1.

        The error is infinite for a NaN, for an infinity, and for any deviation if the bound is 0,
        as in a row without nonzeros.

        Parameters
        ----------
        result : array, or mapping of str to array
            The output, or several outputs by name, on the host or on the device. If the oracle is
            on the device, the result must be there too.
        arithmetic : str
            `Plan.arithmetic` of the result: the bound includes its rounding errors.
        """
        comparisons = self._comparisons(result, arithmetic)
        return max(_error(actual, expected, bound) for _, actual, expected, bound in comparisons)

    def first_wrong(self, result: Any, arithmetic: str = "float32") -> str:
        """Describe the first wrong element of a result and the number of wrong elements."""
        for name, *arrays in self._comparisons(result, arithmetic):
            actual, expected, bound = map(_host64, arrays)
            wrong = ~(np.abs(actual - expected) <= bound)  # True for a NaN
            if wrong.any():
                first = tuple(np.argwhere(wrong)[0].tolist())
                element = f"{name}[{', '.join(map(str, first))}]"
                return (
                    f"{element} is {actual[first]:.6g} and should be {expected[first]:.6g}, "
                    f"{int(wrong.sum()):,} of {wrong.size:,} elements are wrong"
                )
        return "no element is wrong"

    def _comparisons(self, result: Any, arithmetic: str) -> Iterator[tuple[str, Any, Any, Any]]:
        """Yield (name, actual, expected, bound) of each output."""
        outputs = self.operation.outputs
        if not isinstance(result, Mapping):
            result = {outputs[0].name: result}
        for operand in outputs:
            actual, (expected, bound) = result[operand.name], self.known[operand.name]
            if is_device_array(actual) and not is_device_array(expected):
                actual = actual.get()
            if self.operation.independent:
                first_columns = tuple(
                    slice(0, n if axis == self.operation.independent else None)
                    for n, axis in zip(actual.shape, operand.axes, strict=True)
                )
                expected, bound = expected[first_columns], bound[first_columns]
            if arithmetic != "float32":
                # The bound is terms * EPS32 * sum |a x|; this adds rounding * sum |a x|.
                bound = bound * (TRUNCATION_FACTOR + ROUNDING[arithmetic] / (EPS32 * self.terms))
            yield operand.name, actual.reshape(expected.shape), expected, bound


def _host64(array: Any) -> npt.NDArray[np.float64]:
    with np.errstate(invalid="ignore"):  # memory that no kernel wrote may be a signaling NaN
        return np.asarray(array.get() if is_device_array(array) else array, np.float64)


def _error(actual: Any, expected: Any, bound: Any) -> float:
    if actual.size == 0:
        return 0.0
    # Times 1.0: differences of unsigned integers would wrap around.
    with np.errstate(over="ignore", invalid="ignore"):  # an element that nobody wrote
        ratio = abs(actual * 1.0 - expected) / (bound + (bound == 0) * _TINY)
    worst = float(ratio.max())
    return worst if worst < _TOO_LARGE else float("inf")  # infinity for a NaN, too
