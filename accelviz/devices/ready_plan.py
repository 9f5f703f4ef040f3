"""Plans prepared on a device: `ReadyPlan`, whose base class replays the plan on the host."""

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
    """A plan prepared on a device, to run any number of times. This class replays it on the host.

    `Plan.ready` stores it, so it must not refer to the plan itself; it refers to the plan's arrays.

    Attributes
    ----------
    setup_seconds : mapping of str to float
        Seconds of the device's own preprocessing by step, without compilation.
    variant : str
        The algorithm that the device chose, if the plan leaves the choice to it; else "".

    Raises
    ------
    ArgumentError
        If the plan's arrays are on the GPU and the device cannot use them.
    """

    variant = ""
    takes_device_arrays = False
    #: Context manager that converts the device's exceptions to `accelviz.errors`.
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
        """Return checked inputs as contiguous arrays on the device; see `Operands.inputs`."""
        with self.errors:
            return self.operands.inputs(operands)

    def outputs(self) -> Arrays:
        """Return new uninitialised outputs on the device."""
        with self.errors:
            return self.operands.outputs()

    def inputs(self, placed: Arrays) -> Arrays:
        """Return inputs for `launch` from a result of `placed`: reordered and rounded."""
        ordered = self.operands.ordered(placed)
        return self.operands.rounded({name: self._on_host(ordered[name]) for name in ordered})

    def _on_host(self, array: Any) -> Any:
        return self.device.to_host(array) if self.device.owns(array) else array

    def launch(self, inputs: Arrays, outputs: Arrays) -> None:
        """Run once, with a result of `inputs`, and write to arrays of the device."""
        host = {name: self.device.to_host(array) for name, array in outputs.items()}
        self._replay(inputs, host)
        for name, array in host.items():
            if array is not outputs[name]:
                self.device.write(outputs[name], array)

    def run(self, operands: Mapping[str, Any], out: Mapping[str, Any] | None = None) -> Arrays:
        """Run the plan and return its outputs by name, in the caller's order of rows and nonzeros.

        `operands` are the inputs by name. Weights that are missing or None default to the graph's.
        The outputs are on the same device as the dense inputs.
        """
        placed = self.placed(operands)
        outputs = self.operands.outputs(out, placed)
        self.launch(self.inputs(placed), outputs)
        return outputs

    def seconds(
        self, operands: Mapping[str, Any], repeats: int = 20, warmup: int = 3, *, cold: bool = False
    ) -> npt.NDArray[np.float64]:
        """Return the times of `repeats` runs in seconds by the device's clock, shape (repeats,).

        Times include zeroing the outputs, but no allocation and no transfer. `warmup` untimed runs
        come first. With `cold`, the last-level cache is flushed before each run.
        """
        with self.errors:
            inputs, outputs = self.inputs(self.placed(operands)), self.outputs()
            time_runs = self.device.seconds
            return time_runs(lambda: self.launch(inputs, outputs), repeats, warmup, cold=cold)


def ready(plan: Plan, device: Device) -> ReadyPlan:
    """Return a plan prepared on a device; the plan stores it for later calls."""
    return plan.ready.get(device.key, lambda: device.prepare(plan))


def no_kernel(plan: Plan) -> str | None:
    """Return why a plan has no CUDA kernel, or None if every call has one."""
    if any(isinstance(call, LibraryCall) for _, call in plan.part_calls):
        return f"{plan.name!r} is a library's, whose kernels are closed"
    if any(call.kernel is None for _, call in plan.part_calls):
        return f"{plan.name!r} has no CUDA kernel"
    return None


def kernels_of(plan: Plan, device: str) -> tuple[tuple[Plan, Call], ...]:
    """Return (part, call) pairs of a plan; raise DeviceUnavailable if a call has no kernel."""
    problem = no_kernel(plan)
    if problem is not None:
        fix = "device='cpu', which replays the workload" if plan.has_workload else "device='cuda'"
        raise DeviceUnavailable(f"device {device!r}", problem, fix)
    return tuple((part, call) for part, call in plan.part_calls if isinstance(call, Call))
