"""Kernels that belong to no plan, queued on arrays that lie on the GPU."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from accelviz.devices.cuda.compiler import loaded_function
from accelviz.devices.cuda.state import import_cupy
from accelviz.plans import Call, KernelSpec
from accelviz.plans.launch import STATIC_SHARED_BYTES


def queue(call: Call, arguments: Sequence[Any]) -> None:
    """Queue a kernel on the current stream.

    Parameters
    ----------
    call : Call
        With a kernel. Nothing is queued for a grid without a block.
    arguments : sequence of CuPy arrays and NumPy scalars
        In the order of the kernel's parameters.
    """
    spec, launch = call.kernel, call.launch
    assert spec is not None
    if 0 not in launch.grid:
        config = tuple(sorted(spec.config.items()))
        device = import_cupy().cuda.Device().id
        about = spec.file, spec.entry, config, spec.arch, spec.portable
        function = _function(*about, launch.dynamic_shared_bytes, device)
        function(
            launch.grid, launch.block, tuple(arguments), shared_mem=launch.dynamic_shared_bytes
        )


@functools.cache
def _function(
    file: str,
    entry: str,
    config: tuple[tuple[str, int], ...],
    arch: str,
    portable: bool,
    shared: int,
    device: int,
) -> Any:
    """Return a kernel for a device, which is current: its shared memory is set for that one."""
    spec = KernelSpec(file, entry, dict(config), (), arch=arch, portable=portable)
    found = loaded_function(spec)
    if shared > STATIC_SHARED_BYTES:
        found.max_dynamic_shared_size_bytes = shared
    return found
