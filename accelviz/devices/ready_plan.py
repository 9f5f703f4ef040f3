"""Plans that are ready on a device: placed, and here replayed on the host."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from accelviz.devices.operands import Arrays, Operands, is_device_array
from accelviz.errors import ArgumentError, DeviceUnavailable
from accelviz.plans import Call, LibraryCall, Plan

if TYPE_CHECKING:
    from accelviz.devices.base import Device


class ReadyPlan:
    """A plan on a device, placed once and run any number of times; here replayed on the host.

    It refers to the plan's arrays and not to the plan, which holds it.

    Attributes
    ----------
    setup_seconds : mapping of str to float
        Times of the device's own preprocessing, without compiling.
    variant : str
        The device's choice where the plan leaves one.

    Raises
    ------
    ArgumentError
        If the plan's arrays lie on the GPU.
    """

    variant = ""
    takes_device_arrays = False
    #: Entered around the device's work: turns its exceptions into the project's own.
    errors: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()

    def __init__(self, plan: Plan, device: Device) -> None:
        arrays = plan.arrays.values()
        if not self.takes_device_arrays and any(map(is_device_array, arrays)):
            problem = f"the arrays of {plan.name!r} lie on the GPU"
            raise ArgumentError("plan", problem, "device='cuda'")
        self.device = device
        self.setup_seconds: Mapping[str, float] = {}
        self.operands = Operands(plan, device)
        with self.errors:
            self._compile(plan)

    def _compile(self, plan: Plan) -> None:
        self._replay = plan.operation.replay(plan)

    def placed(self, operands: Mapping[str, Any]) -> Arrays:
        """Return inputs as the plan wants them: float32, contiguous, where the device reads."""
        with self.errors:
            return self.operands.inputs(operands)

    def outputs(self) -> Arrays:
        """Return new, uninitialised outputs where the device writes them."""
        with self.errors:
            return self.operands.outputs()

    def inputs(self, placed: Arrays) -> Arrays:
        """Return placed inputs in the order of the walk, rounded as stored."""
        ordered = self.operands.ordered(placed)
        return self.operands.rounded({name: self._on_host(ordered[name]) for name in ordered})

    def _on_host(self, array: Any) -> Any:
        return self.device.to_host(array) if self.device.owns(array) else array

    def launch(self, inputs: Arrays, outputs: Arrays) -> None:
        """Run once, from what `inputs` returns."""
        host = {name: self.device.to_host(array) for name, array in outputs.items()}
        self._replay(inputs, host)
        for name, array in host.items():
            if array is not outputs[name]:
                self.device.write(outputs[name], array)

    def run(self, operands: Mapping[str, Any], out: Mapping[str, Any] | None = None) -> Arrays:
        """Run the plan, and return its outputs by name, in the caller's order.

        `operands` has the inputs by name; weights that are missing or None are the graph's own. The
        outputs lie where the dense inputs do.
        """
        placed = self.placed(operands)
        outputs = self.operands.outputs(out, placed)
        self.launch(self.inputs(placed), outputs)
        return outputs

    def seconds(
        self, operands: Mapping[str, Any], repeats: int = 20, warmup: int = 3, *, cold: bool = False
    ) -> npt.NDArray[np.float64]:
        """Time `repeats` runs by the device's own clock, shape (repeats,), after warming up.

        A run has its inputs and outputs in place; it zeroes outputs, and neither allocates nor
        transfers. With `cold`, the last cache before memory is flushed before each run.
        """
        with self.errors:
            inputs, outputs = self.inputs(self.placed(operands)), self.outputs()
            time_runs = self.device.seconds
            return time_runs(lambda: self.launch(inputs, outputs), repeats, warmup, cold=cold)


def ready(plan: Plan, device: Device) -> ReadyPlan:
    """Return a plan prepared on a device; the plan keeps it."""
    return plan.ready.get(device.key, lambda: device.prepare(plan))


def no_kernel(plan: Plan) -> str | None:
    """Return why a plan has no CUDA kernel to run or emulate, or None."""
    if any(isinstance(call, LibraryCall) for _, call in plan.part_calls):
        return f"{plan.name!r} is a library's, whose kernels are closed"
    if any(call.kernel is None for _, call in plan.part_calls):
        return f"{plan.name!r} has no CUDA kernel"
    return None


def kernels_of(plan: Plan, device: str) -> tuple[tuple[Plan, Call], ...]:
    """Return the calls of all parts of a plan; raises DeviceUnavailable if one has no kernel."""
    problem = no_kernel(plan)
    if problem is not None:
        other = "device='cpu', which replays the workload" if plan.has_workload else "device='cuda'"
        raise DeviceUnavailable(f"device {device!r}", problem, other)
    return tuple((part, call) for part, call in plan.part_calls if isinstance(call, Call))
