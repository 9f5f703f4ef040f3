"""Compilation of kernels with NVRTC."""

from __future__ import annotations

import functools
import importlib
import re

from accelviz.devices.cuda.state import import_cupy, one_line
from accelviz.errors import DeviceUnavailable, KernelError, pip_install
from accelviz.files import kernel_directory
from accelviz.plans import KernelSpec


def compile_options(spec: KernelSpec) -> tuple[str, ...]:
    """Return the NVRTC options of a kernel: language, include paths, line numbers, constants."""
    return (
        "--std=c++17",
        "-lineinfo",
        "-ftz=true",  # as CuPy compiles: exponentials and quotients take fewer instructions
        "--device-as-default-execution-space",
        f"-I{kernel_directory()}",
        *(_toolkit_options() if spec.code and "#include" in spec.code else ()),
        *(f"-D{name}={value}" for name, value in spec.defines.items()),
    )


@functools.cache
def _toolkit_options() -> tuple[str, ...]:
    """Return the include paths of CUDA's headers, as CuPy sets them; empty without the headers."""
    try:
        core = importlib.import_module("cupy._core.core")
        options = core.assemble_cupy_compiler_options(())
        return tuple(option for option in options if option.startswith("-I"))
    except Exception:  # CuPy raises RuntimeError; NVRTC names the header that it does not find
        return ()


def name_expression(spec: KernelSpec) -> str:
    """Return the C++ expression of a function whose name is mangled; "" for `extern "C"`."""
    return spec.entry if "<" in spec.entry or spec.code else ""


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
    return compile_kernel(spec, arch, *options)[0]


def compile_kernel(spec: KernelSpec, arch: str, *options: str) -> tuple[bytes, str]:
    """Return the cubin of a kernel and the function's name in it; see `compile_cubin`."""
    try:
        nvrtc = import_cupy().cuda.nvrtc
        nvrtc.getVersion()
    except Exception as error:
        raise DeviceUnavailable("NVRTC", one_line(error), pip_install("accelviz[nvrtc]")) from error
    program = nvrtc.createProgram(spec.configured_source(), spec.file, [], [])
    try:
        expression = name_expression(spec)
        if expression:
            nvrtc.addNameExpression(program, expression)
        nvrtc.compileProgram(program, [f"-arch={arch}", *compile_options(spec), *options])
        function = nvrtc.getLoweredName(program, expression) if expression else spec.entry
        # CuPy removes the last byte as if it were a terminator; disassemblers need it.
        return bytes(nvrtc.getCUBIN(program)) + b"\0", function
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


def architecture_number(arch: str) -> int:
    """Return the compute capability, times ten, of an architecture: 90 for "sm_90a"."""
    return int(re.sub(r"\D", "", arch))


def architecture(spec: KernelSpec, arch: str) -> str | None:
    """Return the architecture to compile a kernel for, for a GPU of `arch`; None if for none."""
    number = architecture_number(arch)
    if spec.arch and architecture_number(spec.arch) == number:
        return spec.arch
    if (spec.arch and not spec.portable) or spec.capability > number:
        return None
    return arch
