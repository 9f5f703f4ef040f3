"""The operands of a plan on a device: arrays, checked by name."""

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
#: Rounding of inputs by kernels of other arithmetic than float32.
_ROUNDING = {"tf32": to_tf32, "float16": to_f16}


def is_device_array(array: Any) -> bool:
    """Tell whether an array lives on a CUDA device (CuPy, PyTorch, Numba)."""
    if type(array) is np.ndarray:
        return False
    cupy = sys.modules.get("cupy")  # whose interface takes microseconds to ask for
    known = cupy is not None and type(array) is getattr(cupy, "ndarray", None)
    try:
        return known or hasattr(array, "__cuda_array_interface__")
    except RuntimeError as error:  # PyTorch's, of a tensor on the GPU that requires gradients
        raise ArgumentError("array", str(error), "a tensor without gradients: X.detach()") from None


def on_host(name: str, array: Any) -> npt.NDArray[Any]:
    """Return a caller's operand as a NumPy array.

    Raises
    ------
    ArgumentError
        If it is a masked array, or cannot be an array of numbers, such as a sparse matrix.
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
    """Inputs and outputs of a plan, checked by name; it holds sizes, not the plan."""

    def __init__(self, plan: Plan, device: Device) -> None:
        self.operation, self.sizes = plan.operation, plan.sizes
        self.storage, self.zero_outputs = plan.storage, plan.zero_outputs
        self.arithmetic = plan.arithmetic
        self._device, self.array_type = device, device.array_type
        self._values, self._order = plan.provenance.values, plan.layout.nonzero_order
        self._placed_values: Any = None
        self._ordered_values: Any = None
        self._defaults: dict[str, Any] = {}
        operands = self.operation.operands.items()
        self.shapes = {name: operand.shape(self.sizes) for name, operand in operands}
        self._of_nonzeros = [one.name for one in self.operation.inputs if one.of_nonzeros]
        self._about = f"a matrix of {plan.pattern.shape[0]} x {plan.pattern.shape[1]}"

    def inputs(self, operands: Mapping[str, Any]) -> Arrays:
        """Return the inputs as contiguous arrays of the operands' shapes and dtypes.

        Weights stay in the caller's order; see `ordered`. NaN and infinity in dense inputs pass
        through, as in SciPy.

        Raises
        ------
        ArgumentError
            If a shape or a dtype does not fit, another device's array is given, an input with an
            entry for each nonzero is on the host and not finite, or a number is out of range.
        """
        inputs = self.operation.inputs
        return {one.name: self._input(one, operands.get(one.name)) for one in inputs}

    def _input(self, operand: Operand, array: Any) -> Any:
        device, name = self._device, operand.name
        if operand.default is not None:
            return self._setting(operand, array)
        graphs = array is None or array is self._values or array is self._placed_values
        if operand.weights and self._values is not None and graphs:
            return self.graph_values()
        exact: Any = array if type(array) is self.array_type else None
        dtype = operand.dtype
        fits = exact is not None and exact.dtype == dtype and exact.shape == self.shapes[name]
        on_host_here = self.array_type is np.ndarray
        if fits and not (operand.of_nonzeros and on_host_here):
            return device.contiguous(array, dtype)
        if array is None:
            raise ArgumentError(name, "it is missing", f"an array: {', '.join(operand.axes)}")
        local = not on_host_here and device.owns(array)
        if not local and is_device_array(array):
            raise ArgumentError(name, "it lies on the GPU", "an array on the host, as from X.get()")
        array = device.adopt(array) if local else on_host(name, array)
        real = dtype == _FLOAT32
        if array.dtype.kind not in "biuf" or not (real or array.dtype == dtype):
            expected = "boolean, integer or real floating point" if real else str(dtype)
            raise ArgumentError(name, f"dtype {array.dtype}", expected)
        shape = self.shapes[name]
        if array.shape != shape:
            sizes = zip(operand.axes, shape, strict=True)
            expected = ", ".join(f"{axis} = {size}" for axis, size in sizes)
            problem = f"shape {array.shape} for {self._about}"
            raise ArgumentError(name, problem, f"shape {shape}: {expected}")
        if local:
            return device.contiguous(array, dtype)
        with np.errstate(over="ignore"):  # what float32 cannot hold passes as infinity
            array = np.ascontiguousarray(array, dtype)
        if operand.of_nonzeros and not np.isfinite(array).all():
            raise ArgumentError(name, "some are NaN or infinite", "finite ones only")
        return device.shared(array)

    def graph_values(self) -> Any:
        """Return the graph's own weights where the device reads them; None if there are none."""
        if self._placed_values is None and self._values is not None:
            self._placed_values = self._device.shared(self._values)
        return self._placed_values

    def _setting(self, operand: Operand, value: Any) -> Any:
        """Return a number, or device scalars as an array, which are not read here."""
        device, name = self._device, operand.name
        if operand.axes and self.array_type is not np.ndarray and device.owns(value):
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
        if name not in self._defaults:  # placed once: a captured run may not copy it
            self._defaults[name] = device.to_device(setting)
        return self._defaults[name]

    def ordered(self, inputs: Arrays) -> Arrays:
        """Return inputs with entries of nonzeros in the order in which kernels walk."""
        if self._order is None or not self._of_nonzeros:
            return inputs
        return {**inputs, **{name: self._in_order(inputs[name]) for name in self._of_nonzeros}}

    def _in_order(self, array: Any) -> Any:
        device = self._device
        if self._placed_values is None or array is not self._placed_values:
            return device.take(array, device.shared(self._order))
        if self._ordered_values is None:  # the graph's own weights never change
            self._ordered_values = device.take(array, device.shared(self._order))
        return self._ordered_values

    def rounded(self, inputs: Arrays) -> Arrays:
        """Return host inputs rounded by the kernels' storage and arithmetic."""
        inputs = self.operation.rounded(inputs, self.storage)
        rounding = _ROUNDING.get(self.arithmetic)
        return {name: rounding(array) for name, array in inputs.items()} if rounding else inputs

    def outputs(
        self,
        out: Mapping[str, Any] | None = None,
        inputs: Mapping[str, Any] | None = None,
        device: Device | None = None,
    ) -> Arrays:
        """Return the outputs of `out`, and new, uninitialised ones for those that are missing.

        They lie on `device`, by default on the plan's.

        Raises
        ------
        ArgumentError
            If one is not a contiguous, writable array of the result's shape and dtype, or overlaps
            an input.
        """
        device, outputs = device or self._device, {}
        for operand in self.operation.outputs:
            shape = self.shapes[operand.name]
            array = (out or {}).get(operand.name)
            if array is None:
                outputs[operand.name] = device.empty(shape, operand.dtype)
                continue
            received, dtype = getattr(array, "shape", None), getattr(array, "dtype", None)
            flags = getattr(array, "flags", None)
            readonly = not getattr(flags, "writeable", True)
            fits = received == shape and dtype == operand.dtype and not readonly
            fits = fits and not isinstance(array, np.ma.MaskedArray)
            fits = fits and isinstance(array, device.array_type)
            if not (fits and getattr(flags, "c_contiguous", True)):
                problem = f"a {'read-only ' * readonly}{type(array).__name__} of shape {received}"
                library = device.array_type.__module__.partition(".")[0]
                kind = f"{operand.dtype} {library} array of shape {shape}"
                expected = f"a writable, C-contiguous {kind}"
                raise ArgumentError("out", f"{problem}, dtype {dtype}", expected)
            for name, other in (inputs or {}).items():
                if isinstance(other, device.array_type) and device.overlap(array, other):
                    raise ArgumentError("out", f"it overlaps {name}", "memory of its own")
            outputs[operand.name] = array
        return outputs
