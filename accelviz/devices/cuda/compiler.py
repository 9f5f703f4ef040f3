"""Compilation of kernels with NVRTC."""

from __future__ import annotations

import functools
import hashlib
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accelviz.devices.cuda.state import import_cupy, one_line
from accelviz.errors import DeviceUnavailable, KernelError
from accelviz.files import cache_folder, kernel_directory, kernel_names, written_whole
from accelviz.plans import KernelSpec
from accelviz.plans.launch import STATIC_SHARED_BYTES


def compile_options(spec: KernelSpec) -> tuple[str, ...]:
    """Return the NVRTC options of a kernel: language, include path, line numbers, constants."""
    folder = kernel_directory()
    return (
        "--std=c++17",
        "-lineinfo",
        f"-I{folder}",
        # CuPy's cache of compiled kernels ignores headers: this macro is part of its key.
        f"-DHEADERS_{_headers_hash(folder)}",
        *(f"-D{name}={value}" for name, value in spec.defines.items()),
    )


@functools.cache  # headers are read once per process
def _headers_hash(folder: Path) -> str:
    content = b"".join((folder / name).read_bytes() for name in kernel_names("*.cuh"))
    return hashlib.sha256(content).hexdigest()[:16]


def compile_cubin(spec: KernelSpec, arch: str, *options: str) -> bytes:
    """Compile a kernel to machine code for one architecture; needs CuPy but no GPU.

    Parameters
    ----------
    spec : KernelSpec
    arch : str
        Architecture, such as "sm_90".
    *options : str
        Further options of NVRTC.

    Returns
    -------
    bytes
        The cubin.

    Raises
    ------
    DeviceUnavailable
        If CuPy or NVRTC is not installed.
    KernelError
        If the source does not compile; the message contains the compiler's log.
    """
    try:
        nvrtc = import_cupy().cuda.nvrtc
        nvrtc.getVersion()
    except Exception as error:
        raise DeviceUnavailable(
            "NVRTC", one_line(error), "pip install 'accelviz[nvrtc]'"
        ) from error
    program = nvrtc.createProgram(spec.configured_source(), spec.file, [], [])
    try:
        if "<" in spec.entry:
            nvrtc.addNameExpression(program, spec.entry)
        nvrtc.compileProgram(program, [f"-arch={arch}", *compile_options(spec), *options])
        # CuPy removes the last byte as if it were a terminator; disassemblers need it.
        return bytes(nvrtc.getCUBIN(program)) + b"\0"
    except nvrtc.NVRTCError as error:
        log = nvrtc.getProgramLog(program)
        problem = f"it does not compile for {arch}:\n{log}"
        raise KernelError(spec.file, problem, config_hint(log)) from error
    finally:
        nvrtc.destroyProgram(program)


def config_hint(log: str) -> str:
    """Return the fix for a log with missing members of `Config`; "" if none is missing."""
    names = {*re.findall(r'"Config" has no member "(\w+)"', log)}
    if not names:
        return ""
    return f"{', '.join(sorted(names))} in KernelSpec(config=...), from the strategy's settings"


def gpu_runs(arch: str) -> bool:
    """Return whether the current GPU runs machine code for an architecture such as "sm_90a"."""
    return bool(import_cupy().cuda.Device().compute_capability == re.sub(r"\D", "", arch))


#: CuPy's (module, function) by kernel, options, launch attributes and device.
_compiled: dict[Any, tuple[Any, Any]] = {}


def compiled(
    spec: KernelSpec,
    *options: str,
    shared_bytes: int = 0,
    shared_percent: int | None = None,
    cooperative: bool = False,
) -> tuple[Any, Any]:
    """Return CuPy's (module, function) of a kernel on the current device, compiled at first use.

    `options` are options of NVRTC, the other arguments fields of `LaunchConfig`. Raises
    DeviceUnavailable if the GPU has another architecture or too little shared memory.
    """
    values = vars(spec).values()  # not `spec` itself: its dicts are not hashable
    fields = (tuple(value.items()) if isinstance(value, Mapping) else value for value in values)
    device = import_cupy().cuda.Device().id
    key = *fields, options, shared_bytes, shared_percent, cooperative, device
    if key not in _compiled:
        module = _module(spec, options, cooperative)
        _compiled[key] = module, _function(module, spec, shared_bytes, shared_percent)
    return _compiled[key]


def _module(spec: KernelSpec, options: tuple[str, ...], cooperative: bool) -> Any:
    cupy = import_cupy()
    if not spec.arch or (spec.portable and not gpu_runs(spec.arch)):
        return cupy.RawModule(
            code=spec.configured_source(),
            options=(*compile_options(spec), *options),
            # Required for template instances and for kernels without `extern "C"`.
            name_expressions=(spec.entry,) if "<" in spec.entry or spec.code else None,
            enable_cooperative_groups=cooperative,
        )
    if not gpu_runs(spec.arch):
        capability = cupy.cuda.Device().compute_capability
        problem = (
            f"it needs instructions that only {spec.arch} has, and this GPU is sm_{capability}"
        )
        fix = "choose another algorithm or strategy, or device='emulator'"
        raise DeviceUnavailable(spec.file, problem, fix)
    # CuPy cannot compile for an architecture with a letter, but loads a cubin for it.
    return cupy.RawModule(path=str(cached_cubin(spec, *options)))


def _function(module: Any, spec: KernelSpec, shared_bytes: int, shared_percent: int | None) -> Any:
    function = module.get_function(spec.entry)
    if shared_bytes > STATIC_SHARED_BYTES:
        try:
            function.max_dynamic_shared_size_bytes = shared_bytes
        except Exception as error:
            problem = f"{shared_bytes >> 10} KiB of shared memory a block: {one_line(error)}"
            fix = "parameters of the strategy that take less"
            raise DeviceUnavailable(spec.file, problem, fix) from error
    if shared_percent is not None:
        function.preferred_shared_memory_carveout = shared_percent
    return function


def cached_cubin(spec: KernelSpec, *options: str) -> Path:
    """Return the path of a kernel's cubin for `spec.arch` in the cache, compiled at first use."""
    version = import_cupy().cuda.nvrtc.getVersion()
    key = spec.configured_source(), spec.arch, compile_options(spec), options, version
    name = f"{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.cubin"
    folder = cache_folder() / "cubins"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # the cache is not writable
        folder = Path(tempfile.mkdtemp(prefix="accelviz-"))
    path = folder / name
    if not path.exists():
        with written_whole(path) as temporary:
            temporary.write_bytes(compile_cubin(spec, spec.arch, *options))
    return path
