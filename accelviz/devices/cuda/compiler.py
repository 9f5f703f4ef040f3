"""Kernels on the current GPU: compiled or read from the cache, loaded, and kept by the process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accelviz.devices.cuda.cubins import cached_cubin, included_hash
from accelviz.devices.cuda.nvrtc import architecture, architecture_number
from accelviz.devices.cuda.state import import_cupy, one_line
from accelviz.errors import DeviceUnavailable
from accelviz.plans import KernelSpec
from accelviz.plans.launch import STATIC_SHARED_BYTES

#: CuPy's (module, function) by kernel, options, launch attributes and device.
_compiled: dict[Any, tuple[Any, Any]] = {}


def gpu_architecture() -> str:
    """Return the architecture of the current GPU, such as "sm_90"."""
    return f"sm_{import_cupy().cuda.Device().compute_capability}"


def gpu_runs(arch: str) -> bool:
    """Return whether the current GPU runs machine code for an architecture such as "sm_90a"."""
    return architecture_number(arch) == architecture_number(gpu_architecture())


def compiled(
    spec: KernelSpec,
    *options: str,
    shared_bytes: int = 0,
    shared_percent: int | None = None,
    cooperative: bool = False,
) -> tuple[Any, Any]:
    """Return CuPy's (module, function) of a kernel on the current device, compiled at first use.

    `options` are options of NVRTC, the other arguments fields of `LaunchConfig`. Raises
    DeviceUnavailable if the GPU has another architecture or too little shared memory, and
    KernelError if the kernel does not compile.
    """
    values = vars(spec).values()  # not `spec` itself: its dicts are not hashable
    fields = (tuple(value.items()) if isinstance(value, Mapping) else value for value in values)
    device = import_cupy().cuda.Device().id
    headers = included_hash(options)  # which may change between calls, such as a notebook's
    key = *fields, options, headers, shared_bytes, shared_percent, cooperative, device
    if key not in _compiled:
        module, function = _load(spec, options, cooperative)
        _set_shared_memory(function, spec, shared_bytes, shared_percent)
        _compiled[key] = module, function
    return _compiled[key]


def _load(spec: KernelSpec, options: tuple[str, ...], cooperative: bool) -> tuple[Any, Any]:
    arch = architecture(spec, gpu_architecture())
    if arch is None:
        only = f"only {spec.arch} has" if spec.arch else f"GPUs before sm_{spec.capability} lack"
        problem = f"it needs instructions that {only}, and this GPU is {gpu_architecture()}"
        fix = "choose another algorithm or strategy, or device='emulator'"
        raise DeviceUnavailable(spec.file, problem, fix)
    cubin = cached_cubin(spec, arch, *options)
    # CuPy's own cache looks for headers and compiles an empty file in each process.
    module = import_cupy().RawModule(path=str(cubin.path), enable_cooperative_groups=cooperative)
    return module, module.get_function(cubin.function)


def _set_shared_memory(
    function: Any, spec: KernelSpec, shared_bytes: int, shared_percent: int | None
) -> None:
    if shared_bytes > STATIC_SHARED_BYTES:
        try:
            function.max_dynamic_shared_size_bytes = shared_bytes
        except Exception as error:
            problem = f"{shared_bytes >> 10} KiB of shared memory a block: {one_line(error)}"
            fix = "parameters of the strategy that take less"
            raise DeviceUnavailable(spec.file, problem, fix) from error
    if shared_percent is not None:
        function.preferred_shared_memory_carveout = shared_percent
