"""Compiling kernels with NVRTC."""

from __future__ import annotations

import functools
import hashlib
import tempfile
from pathlib import Path
from typing import Any

from accelviz.devices.cuda.state import import_cupy, one_line
from accelviz.errors import DeviceUnavailable, KernelError
from accelviz.files import cache_folder, kernel_directory, kernel_names, written_whole
from accelviz.plans import KernelSpec


def compile_options(spec: KernelSpec) -> tuple[str, ...]:
    """Return the NVRTC options of a kernel: language, include path, line numbers, constants."""
    folder = kernel_directory()
    headers = b"".join((folder / name).read_bytes() for name in kernel_names("*.cuh"))
    return (
        "--std=c++17",
        "-lineinfo",
        f"-I{folder}",
        # CuPy's cache of compiled kernels does not look into headers; this makes it.
        f"-DHEADERS_{hashlib.sha256(headers).hexdigest()[:16]}",
        *(f"-D{name}={value}" for name, value in spec.defines.items()),
    )


def compile_cubin(spec: KernelSpec, arch: str, *options: str) -> bytes:
    """Compile a kernel to machine code for one architecture; needs CuPy but no GPU.

    Parameters
    ----------
    spec : KernelSpec
    arch : str
        Such as "sm_90".
    *options : str
        Of NVRTC, beyond those of the kernel.

    Returns
    -------
    bytes
        The cubin.

    Raises
    ------
    DeviceUnavailable
        If CuPy or NVRTC is not installed.
    KernelError
        If the source does not compile; the message holds the compiler's log.
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
        # CuPy takes off the last byte, as if it ended text; disassemblers want it.
        return bytes(nvrtc.getCUBIN(program)) + b"\0"
    except nvrtc.NVRTCError as error:
        log = nvrtc.getProgramLog(program)
        raise KernelError(spec.file, f"it does not compile for {arch}:\n{log}") from error
    finally:
        nvrtc.destroyProgram(program)


@functools.lru_cache(maxsize=64)
def loaded_module(source: str, options: tuple[str, ...], instances: tuple[str, ...] = ()) -> Any:
    """Return CuPy's module of a source, compiled for the current device once.

    `instances` are the kernels of the source that are instances of templates.
    """
    return import_cupy().RawModule(code=source, options=options, name_expressions=instances or None)


def is_of(arch: str) -> bool:
    """Say whether the current GPU runs machine code of one architecture, such as "sm_90a"."""
    return bool(import_cupy().cuda.Device().compute_capability == arch.strip("sm_a"))


def module_of(spec: KernelSpec, *options: str) -> Any:
    """Return CuPy's module of a kernel for the current device.

    Raises
    ------
    DeviceUnavailable
        If the kernel is of another architecture.
    """
    if not spec.arch or (spec.portable and not is_of(spec.arch)):
        instances = (spec.entry,) if "<" in spec.entry else ()
        return loaded_module(
            spec.configured_source(), (*compile_options(spec), *options), instances
        )
    cupy = import_cupy()
    if not is_of(spec.arch):
        own = cupy.cuda.Device().compute_capability
        what = f"it has instructions of {spec.arch} alone, and this GPU is sm_{own}"
        raise DeviceUnavailable(spec.file, what, "choose another way, or device='emulator'")
    # CuPy compiles for no architecture with a letter, but loads what was.
    return cupy.RawModule(path=str(kept_cubin(spec, *options)))


def kept_cubin(spec: KernelSpec, *options: str) -> Path:
    """Return the file of a kernel's machine code for its `arch`, compiled unless it is kept."""
    version = import_cupy().cuda.nvrtc.getVersion()
    about = spec.configured_source(), spec.arch, compile_options(spec), options, version
    name = f"{hashlib.sha256(repr(about).encode()).hexdigest()[:32]}.cubin"
    folder = cache_folder() / "cubins"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # where there can be no cache
        folder = Path(tempfile.mkdtemp(prefix="accelviz-"))
    path = folder / name
    if not path.exists():
        with written_whole(path) as temporary:
            temporary.write_bytes(compile_cubin(spec, spec.arch, *options))
    return path


def loaded_function(spec: KernelSpec) -> Any:
    """Return CuPy's function of a kernel, compiled for the current device."""
    return module_of(spec).get_function(spec.entry)
