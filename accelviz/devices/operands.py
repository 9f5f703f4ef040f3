"""Inputs and outputs of a plan on one device: checks, conversion to the device, new outputs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from accelviz.errors import ArgumentError
from accelviz.plans import Operand, Plan
from accelviz.plans.arithmetic import to_f16, to_tf32

if TYPE_CHECKING:
    from accelviz.devices.base import Device

Arrays = dict[str, Any]
_FLOAT32 = np.dtype(np.float32)
#: Rounding of inputs by the kernels, by `Plan.arithmetic`; other kernels do not round.
_ROUNDING = {"tf32": to_tf32, "float16": to_f16}


def is_device_array(array: Any) -> bool:
    """Return whether an array is on a CUDA device (CuPy, PyTorch, Numba)."""
    if type(array) is np.ndarray:
        return False
    cupy = sys.modules.get("cupy")
    # CuPy's arrays are recognised by type, as their interface takes microseconds to compute.
    is_cupy = cupy is not None and type(array) is getattr(cupy, "ndarray", None)
    try:
        return is_cupy or hasattr(array, "__cuda_array_interface__")
    except RuntimeError as error:  # PyTorch, for a tensor on the GPU that requires gradients
        raise ArgumentError("array", str(error), "a tensor without gradients: X.detach()") from None


def on_host(name: str, array: Any) -> npt.NDArray[Any]:
    """Return a caller's operand as a NumPy array.

    Raises
    ------
    ArgumentError
        If it is a masked array, or not convertible to an array of numbers, as a sparse matrix.
    """
    if isinstance(array, np.ma.MaskedArray):
        expected = f"an array without one, such as {name}.filled(0)"
        raise ArgumentError(name, "a masked array, whose mask would be ignored", expected)
    try:
        host = np.asarray(array)
    except (TypeError, ValueError, RuntimeError) as error:
        expected = f"an array of numbers; of a tensor {name}.detach().float()"
        raise ArgumentError(name, f"a {type(array).__name__}: {error}", expected) from error
    if host.dtype == object and not isinstance(array, np.ndarray):
        expected = f"an array of numbers: {name}.toarray() of a sparse matrix, "
        expected += f"{name}.to_numpy('float32') of a table"
        raise ArgumentError(name, f"a {type(array).__name__}, of dtype object to NumPy", expected)
    return host


class Operands:
    """Inputs and outputs of a plan on a device. Refers to the plan's arrays, not to the plan."""

    def __init__(self, plan: Plan, device: Device) -> None:
        self.operation, self.sizes = plan.operation, plan.sizes
        self.storage, self.zero_outputs = plan.storage, plan.zero_outputs
        self.arithmetic = plan.arithmetic
        self._device, self.array_type = device, device.array_type
        self._on_host = self.array_type is np.ndarray
        # The graph's weights: on the host, on the device, and there in the kernels' order.
        self.graph_weights, self._nonzero_order = plan.provenance.values, plan.layout.nonzero_order
        self._device_values: Any = None
        self._ordered_values: Any = None
        self._device_defaults: dict[str, Any] = {}
        operands = self.operation.operands.items()
        self.shapes = {name: operand.shape(self.sizes) for name, operand in operands}
        self._nonzero_inputs = [one.name for one in self.operation.inputs if one.of_nonzeros]
        self._matrix = f"a matrix of {plan.pattern.shape[0]} x {plan.pattern.shape[1]}"

    def inputs(self, operands: Mapping[str, Any]) -> Arrays:
        """Return the inputs as contiguous arrays of the operands' shapes and dtypes.

        Inputs with one entry per nonzero stay in the caller's order; see `ordered`. NaN and
        infinity in dense inputs pass through, as in SciPy.

        Raises
        ------
        ArgumentError
            If a shape or a dtype is wrong, an array is on another device, an input with one entry
            per nonzero is on the host and not finite, or a number is out of range.
        """
        inputs = self.operation.inputs
        return {
            operand.name: self._input(operand, operands.get(operand.name)) for operand in inputs
        }

    def _input(self, operand: Operand, array: Any) -> Any:
        device, name, dtype = self._device, operand.name, operand.dtype
        if operand.default is not None:
            return self._setting(operand, array)
        is_graphs = array is None or array is self.graph_weights or array is self._device_values
        if operand.weights and self.graph_weights is not None and is_graphs:
            return self.graph_values()
        shape = self.shapes[name]
        typed: Any = array if type(array) is self.array_type else None
        is_valid = typed is not None and typed.dtype == dtype and typed.shape == shape
        if is_valid and not (operand.of_nonzeros and self._on_host):
            return device.contiguous(array, dtype)
        if array is None:
            raise ArgumentError(name, "it is missing", f"an array: {', '.join(operand.axes)}")
        on_device = not self._on_host and device.owns(array)
        if not on_device and is_device_array(array):
            raise ArgumentError(name, "it lies on the GPU", "an array on the host, as from X.get()")
        array = device.adopt(array) if on_device else on_host(name, array)
        is_real = dtype == _FLOAT32
        if array.dtype.kind not in "biuf" or not (is_real or array.dtype == dtype):
            expected = "boolean, integer or real floating point" if is_real else str(dtype)
            raise ArgumentError(name, f"dtype {array.dtype}", expected)
        if array.shape != shape:
            sizes = zip(operand.axes, shape, strict=True)
            expected = ", ".join(f"{axis} = {size}" for axis, size in sizes)
            problem = f"shape {array.shape} for {self._matrix}"
            raise ArgumentError(name, problem, f"shape {shape}: {expected}")
        if on_device:
            return device.contiguous(array, dtype)
        with np.errstate(over="ignore"):  # numbers out of float32's range become infinite
            array = np.ascontiguousarray(array, dtype)
        if operand.of_nonzeros and not np.isfinite(array).all():
            raise ArgumentError(name, "some are NaN or infinite", "finite ones only")
        return device.shared(array)

    def graph_values(self) -> Any:
        """Return the graph's weights on the device, or None if the plan has none."""
        if self._device_values is None and self.graph_weights is not None:
            self._device_values = self._device.shared(self.graph_weights)
        return self._device_values

    def _setting(self, operand: Operand, value: Any) -> Any:
        """Return a number, or an array of device scalars; arrays on the device are not read."""
        device, name = self._device, operand.name
        if operand.axes and not self._on_host and device.owns(value):
            array = device.adopt(value)
            if array.shape != self.shapes[name] or array.dtype != operand.dtype:
                problem = f"an array of shape {array.shape}, dtype {array.dtype}"
                expected = f"shape {self.shapes[name]}, dtype {operand.dtype}"
                raise ArgumentError(name, problem, expected)
            return array
        setting = operand.setting(value)
        if not operand.axes:
            return setting
        if value is not None:
            return device.to_device(setting)
        if name not in self._device_defaults:  # copied once: a captured graph may not copy
            self._device_defaults[name] = device.to_device(setting)
        return self._device_defaults[name]

    def ordered(self, inputs: Arrays) -> Arrays:
        """Return inputs with entries of nonzeros in the order of `Plan.walked`."""
        if self._nonzero_order is None or not self._nonzero_inputs:
            return inputs
        return {**inputs, **{name: self._reorder(inputs[name]) for name in self._nonzero_inputs}}

    def _reorder(self, array: Any) -> Any:
        is_graphs = self._device_values is not None and array is self._device_values
        if is_graphs and self._ordered_values is not None:
            return self._ordered_values
        ordered = self._device.take(array, self._device.shared(self._nonzero_order))
        if is_graphs:  # these never change
            self._ordered_values = ordered
        return ordered

    def rounded(self, inputs: Arrays) -> Arrays:
        """Return host inputs, rounded to the kernels' storage and arithmetic."""
        inputs = self.operation.rounded(inputs, self.storage)
        rounding = _ROUNDING.get(self.arithmetic)
        return {name: rounding(array) for name, array in inputs.items()} if rounding else inputs

    def single(self) -> tuple[str, str, Arrays] | None:
        """Return the names of the one dense input and the one output, and the graph's weights.

        The weights are in the kernels' order. Returns None if the plan has other operands, no
        weights, or features of another type than float32.
        """
        dense, outputs = self.operation.dense, self.operation.outputs
        others = [operand for operand in self.operation.inputs if operand not in dense]
        only_weights = all(operand.weights for operand in others)
        usable = only_weights and len(dense) == len(outputs) == 1 and self.storage == "float32"
        values = self.graph_values() if usable else None
        if values is None:
            return None
        weights = self.ordered({operand.name: values for operand in others})
        return dense[0].name, outputs[0].name, weights

    def outputs(
        self,
        out: Mapping[str, Any] | None = None,
        inputs: Mapping[str, Any] | None = None,
        device: Device | None = None,
    ) -> Arrays:
        """Return the outputs by name: arrays of `out`, or new uninitialised arrays.

        They are on `device`, by default the plan's device.

        Raises
        ------
        ArgumentError
            If an array is not contiguous, writable and of the result's shape and dtype, or
            overlaps one of `inputs`.
        """
        device, outputs = device or self._device, {}
        for operand in self.operation.outputs:
            array, shape = (out or {}).get(operand.name), self.shapes[operand.name]
            if array is None:
                outputs[operand.name] = device.empty(shape, operand.dtype)
                continue
            received, dtype = getattr(array, "shape", None), getattr(array, "dtype", None)
            flags = getattr(array, "flags", None)
            is_readonly = not getattr(flags, "writeable", True)
            is_typed = isinstance(array, device.array_type) and dtype == operand.dtype
            is_plain = not is_readonly and not isinstance(array, np.ma.MaskedArray)
            is_valid = is_plain and is_typed and received == shape
            if not (is_valid and getattr(flags, "c_contiguous", True)):
                problem = (
                    f"a {'read-only ' * is_readonly}{type(array).__name__} of shape {received}"
                )
                library = device.array_type.__module__.partition(".")[0]
                kind = f"{operand.dtype} {library} array of shape {shape}"
                expected = f"a writable, C-contiguous {kind}"
                raise ArgumentError("out", f"{problem}, dtype {dtype}", expected)
            for name, other in (inputs or {}).items():
                if isinstance(other, device.array_type) and device.overlap(array, other):
                    raise ArgumentError("out", f"it overlaps {name}", "memory of its own")
            outputs[operand.name] = array
        return outputs
