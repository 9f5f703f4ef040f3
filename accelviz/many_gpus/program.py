"""The program of a sparse product on several devices, and the buffers that all schemes share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.errors import ArgumentError
from accelviz.many_gpus.split import MAX_DEVICES, Split
from accelviz.plans.program import Buffer, Buffers, Program, buffer_name

#: The least number that float16 rounds to infinity: midway between its largest number and 2^16.
_FLOAT16_OVERFLOW = 65520


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SplitProgram(Program):
    """The program of `Y = A X` on the devices of a split.

    Attributes
    ----------
    steps, buffers
        As in `Program`.
    split : Split
    scheme : {"halo", "mgg", "all_gather"}
    n_cols : int
        Columns of X.
    parameters : mapping of str to value
        Parameters of the scheme, with defaults filled in.
    """

    split: Split
    scheme: str
    n_cols: int
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_devices(self) -> int:
        """Number of devices, including those without a step."""
        return self.split.n_devices

    def inputs(self, X: npt.NDArray[np.float32]) -> dict[str, npt.NDArray[np.float32]]:
        """Return the rows of X of each device, flat, by the names of their buffers.

        Raises
        ------
        ArgumentError
            If rows are fetched in float16 and a finite number of X would overflow.
        """
        if self.parameters.get("storage") == "float16":
            overflows = np.isfinite(X) & (np.abs(X) >= _FLOAT16_OVERFLOW)
            if overflows.any():
                row = int(np.argmax(overflows.any(axis=1)))
                number = X[row][overflows[row]][0]
                problem = f"{number:g} in row {row:,} would be infinite in float16"
                expected = "smaller numbers, or storage='bfloat16' or 'float32'"
                raise ArgumentError("X", problem, expected)
        return {
            buffer_name("X", device): np.ascontiguousarray(rows, np.float32).ravel()
            for device, rows in enumerate(self.split.apply(X))
        }

    def result(self, buffers: Buffers) -> npt.NDArray[np.float32]:
        """Return the outputs of all devices as one array, in the caller's vertex order."""
        outputs = (buffers[buffer_name("Y", part.device)] for part in self.split.parts)
        return self.split.collect([Y.reshape(-1, self.n_cols) for Y in outputs])

    def __repr__(self) -> str:
        settings = "".join(f", {name}={value}" for name, value in self.parameters.items())
        return (
            f"Program({self.scheme!r} for {self.split.graph.name!r} on {self.n_devices} devices, "
            f"n_cols={self.n_cols}{settings}: {len(self.steps)} launches)"
        )


def features_and_results(split: Split, n_cols: int, *, zeroed: bool) -> dict[str, Buffer]:
    """Return the buffers of X and Y of each device; with `zeroed`, Y starts as zeros."""
    buffers = {}
    for part in split.parts:
        size, device = part.n_rows * n_cols, part.device
        buffers[buffer_name("X", device)] = Buffer(device, size, "float32", "input")
        buffers[buffer_name("Y", device)] = Buffer(device, size, "float32", "output", zeroed)
    return buffers


def peer_buffers(n_devices: int) -> dict[str, str]:
    """Return the buffers for the arguments X0 to X7 of kernels that read X of all devices.

    Arguments beyond the number of devices get the buffer of device 0, which is not read.
    """
    return {f"X{i}": buffer_name("X", i if i < n_devices else 0) for i in range(MAX_DEVICES)}
