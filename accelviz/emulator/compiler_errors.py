"""Conversion of a C++ compiler's errors to messages about a line of the kernel's source."""

from __future__ import annotations

import re
from collections.abc import Sequence

from accelviz.emulator.signature import readable_types
from accelviz.emulator.source import kernels_in, overloads, unclosed
from accelviz.errors import KernelError

#: An error in a log. The excluded one precedes the error about a parameter's unknown type.
_ERROR = re.compile(r"(?:fatal )?error: (?!variable or field '\w+' declared void)(.*)")
#: The beginning of an error in a header beside the kernel, whose name has no folder of the system.
_HEADER = re.compile(r"(?P<name>[^/:\n][^:\n]*\.(?:cuh|cu|hpp|h|inc)):(?P<line>\d+):")
#: Parts of errors that are left out of messages.
_NOISE = re.compile(
    r"call to '[^']+' declared with (?:attribute error|'error' attribute): "
    r"| \[-Werror[^\]]*\]|static(?:_assert| assertion) failed due to requirement '.*?'(?:: )?"
)
#: The error about the name of several functions, or of none with these types.
_OVERLOADED = re.compile(
    r"no matching function for call to 'call\(<unresolved|no matches converting function"
    r"|address of overloaded function|address of function template|invalid '?static_cast"
)
_LAUNCH = (
    "give the emulator the kernels alone: it copies arrays and launches by itself, and no kernel "
    "launches another"
)
_LIBRARY = "write it with shuffles, shared memory or cooperative_groups (reduce.h, scan.h)"
_PTX = "of <cuda/ptx> the emulator has the special registers"
_TEXTURES = (
    "textures and surfaces are parameters of type cudaTextureObject_t and cudaSurfaceObject_t; the "
    "emulator has no textures of other kinds"
)
#: (pattern of an unknown name or header, advice) for CUDA that is missing or requires a header.
_ADVICE = (
    (
        r"b?mma_sync|(?:load|store)_matrix_sync",
        "the emulator has wmma fragments of half, bfloat16, tf32, double and integers of 8, 4 and "
        "1 bits",
    ),
    (r"wmma$|nvcuda", "#include <mma.h>"),
    (r"thrust\b", f"the emulator has no Thrust; {_LIBRARY}"),
    (
        r"cub(?:$|/(?:block|warp|cub))|(?:Block|Warp)[A-Z]\w+$",
        "of CUB the emulator has BlockReduce, BlockScan, BlockLoad, BlockStore, BlockRadixSort, "
        "WarpReduce and WarpScan, with #include <cub/cub.cuh>",
    ),
    (r"cub/|Device[A-Z]\w+$", "functions of CUB's device level are host code: call them outside"),
    (r"cuda_fp[46]|__nv_fp[46]", "the emulator has no floats of 4 and 6 bits: use cuda_fp8.h"),
    (r"CUtensorMap", "the emulator has no tensor maps: copy with cg::memcpy_async"),
    (r"cut(?:e|lass)\b", "the emulator has no CUTLASS: use nvcuda::wmma of <mma.h>"),
    (r"__vi(?:max|min|add|bmax|bmin)\w*", "use max, min and sums"),
    (r"this_multi_grid", "CUDA 13 has no multi_grid: one grid, with grid.sync()"),
    (r"(?:mbarrier|barrier_cluster|fence)_\w+", f"{_PTX}: use cuda::barrier and __threadfence()"),
    (r"cp_(?:async|reduce)\w*", f"{_PTX}: copy with cuda::memcpy_async of <cuda/barrier>"),
    (r"(?:tcgen05|wgmma|multimem|tensormap)\w*", f"{_PTX}: use nvcuda::wmma of <mma.h>"),
    (r"__pipeline", "#include <cuda_pipeline.h>"),
    (
        r"cuda(?:/|$)",
        "of cuda:: (libcu++) the emulator has <cuda/atomic>, <cuda/barrier>, <cuda/pipeline>, "
        "registers of <cuda/ptx> and the basics of <cuda/std/...>; use CUDA's own functions",
    ),
    (r"tex[123]D|texCube|surf[123]D|texture|surface|cuda(?:Texture|Surface)", _TEXTURES),
    (
        r"curandState(?:XORWOW|Philox4_32_10)?(?:_t)?$|curand(?:_init|_uniform|_normal)?$",
        "#include <curand_kernel.h>",
    ),
    (
        r"curand",
        "of cuRAND the emulator has the states XORWOW and Philox4_32_10 with uniform and normal "
        "numbers; draw others in Python and pass them as an array",
    ),
    (r"cu(?:blas|sparse|fft|solver|dnn)", "call CUDA's libraries outside of the kernel"),
    (r"cuda?[A-Z]", _LAUNCH),
    (r"(?:__shfl(?:_(?:up|down|xor))?|__ballot|__any|__all)$", "use {name}_sync, with a mask"),
    (r"(?:cooperative_groups|cg)$", "#include <cooperative_groups.h>"),
    (r"reduce$", "#include <cooperative_groups/reduce.h>"),
    (r"(?:inclusive|exclusive)_scan$", "#include <cooperative_groups/scan.h>"),
    (r"memcpy_async$|wait_prior$|wait$", "#include <cooperative_groups/memcpy_async.h>"),
    (r"(?:__)?half2?$|__\w+2half|__half2|__h\w+2?$", "#include <cuda_fp16.h>"),
    (r"__nv_fp8\w+|__nv_cvt_\w+|__NV_\w+", "#include <cuda_fp8.h>"),
    (r"(?:__)?nv_bfloat162?$|__\w+2bfloat16|__bfloat16", "#include <cuda_bf16.h>"),
    (r"std$", "a kernel has CUDA's functions in place of C++'s library"),
)
#: Patterns of g++'s and clang's messages about unknown names and headers.
_UNKNOWN = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?P<header>\S+): No such file or directory",
        r"'(?P<header>[^']+)' file not found",
        r"'(?:[\w:]+::)?(?P<name>\w+)[^']*' (?:was not|has not been) declared",
        r"'(?P<name>\w+)' does not name a type",
        r"use of undeclared identifier '(?P<name>\w+)'",
        r"unknown type name '(?P<name>\w+)'",
        r"'(?P<name>\w+)' in namespace '\w+' does not name",
        r"is not a member of '(?P<name>std)'",
        r"in namespace '(?P<name>std)'",
        r"no (?:template|type|member) named '(?P<name>\w+)' in (?:namespace|the global)",
        r"'(?P<name>\w+)' is not a (?:member|class|namespace|template)",
        r"no arguments to '(?P<name>\w+)' that depend on a template parameter",
        r"'(?P<name>\w+)' is not a template",
    )
)
#: A copy of a union with vectors, whose copies the emulator watches: g++'s words, and clang's.
_NO_COPY = re.compile(
    r"deleted function '.*?(\w+)::(?:\1|operator=)\(const|copy.*is implicitly deleted|"
    r"implicitly-deleted copy"
)


def compile_error(
    file: str, source: str, log: str, entry: str, absent: Sequence[str] = ()
) -> KernelError | None:
    """Return a KernelError for the first error in a compiler's English log; None without one.

    `entry` is the requested kernel, `absent` has the headers that do not exist.
    """
    error = _ERROR.search(log)
    if error is None:
        return None
    text = error[1].removeprefix("static assertion failed: ").removeprefix("#error ")
    text = readable_types(_NOISE.sub("", text).strip().strip('"'))
    start = log.rfind("\n", 0, error.start()) + 1
    # For an error in a header, g++ logs the line of the kernel before the error, clang after it.
    before, after = _lines(file, log[:start]), _lines(file, log[error.end() :])
    line = next(iter([*_lines(file, log[start : error.end()]), *before[-1:], *after]), None)
    code = _line_text(source, line)
    header = _HEADER.match(log[start : error.start()])
    header = None if header and header["name"] == file else header
    name, hint = _hint(text, code)
    if hint:
        text = re.sub(r"; did you mean .*", "", text)
    elif (
        name
        and line is None
        and not header
        and not unknown_header(text)
        and not re.search(rf"\b{name}\b", source)
    ):
        # The unknown name is the requested kernel, or an argument of its template.
        known = [*kernels_in(source)]
        if known and entry.partition("<")[0] != name:
            problem = f"{name!r}, an argument of the template in kernel=, is not in the source"
            fix = f"a type or constant of the source, such as kernel='{known[0]}<float>'"
            return KernelError(file, problem, fix)
        kernels = ", ".join(known) or "none"
        return KernelError(
            file, f"there is no kernel {name!r} in it", f"name one that is: {kernels}"
        )
    elif name and line is None and name == entry.partition("<")[0].rpartition("::")[2]:
        problem = f"#if leaves out {name!r}"
        return KernelError(file, problem, "the macros that it needs by defines=, or another arch=")
    elif absent and (name or "no match" in text):
        hint = (
            f"{', '.join(absent[:3])} is not there and may declare it: put the file beside the "
            "kernel's and pass that as pathlib.Path('kernel.cu'), or give its folder by include="
        )
    elif name:
        hint = f"check how {name!r} is spelt; docs/emulator.md lists what of CUDA the emulator has"
    elif line is None and _OVERLOADED.search(text):
        name = entry.partition("<")[0]
        signatures = [f"{name}({types})" for types in overloads(source, name)]
        text, hint = f"it has several kernels of the name {name!r}", "name its types in kernel="
        if len(signatures) > 1:
            hint = f"name the types in kernel=, as {' or '.join(map(repr, signatures))}"
        if "<" in entry:
            text = "kernel= names no instance of a template, or several kernels of one name"
            hint = f"give the template all its arguments; of several kernels of a name, {hint}"
    subject = f"{file}:{line}" if line else file
    if header:
        subject, code = f"{header['name']}:{header['line']}", ""
    if len(code) > 160:  # the part with the unknown name
        begin = max(0, code.find(name) - 60 if name else 0)
        code = f"{'... ' if begin else ''}{code[begin : begin + 150]} ..."
    problem = text + (f", at `{code}`" if code else "")
    open_line = unclosed(source)
    if open_line and "#if" not in source:
        subject, hint = f"{file}:{open_line}", ""
        problem = f"a }} is missing: the {{ of line {open_line} is never closed"
    return KernelError(subject, f"it does not compile for the emulator: {problem}", hint)


def unknown_header(text: str) -> bool:
    """Return whether an error says that a header does not exist."""
    return any(pattern.search(text) for pattern in _UNKNOWN[:2])


def _lines(file: str, log: str) -> list[int]:
    return [int(line) for line in re.findall(rf"^{re.escape(file)}:(\d+)", log, re.MULTILINE)]


def _line_text(source: str, line: int | None) -> str:
    lines = source.splitlines()
    return lines[line - 1].strip() if line and line <= len(lines) else ""


def _hint(text: str, code: str) -> tuple[str, str]:
    """Return (unknown name or header, advice) for an error at a line of code; "" if none."""
    if "matching function" in text and (called := re.search(r"\b(atomic\w+)\s*\(\s*(?!&)", code)):
        return "", f"the first argument is an address: {called[1]}(&..., value)"
    if "<<<" in code or ">>>" in code:
        return "", _LAUNCH
    if re.search(r"address of (?:local variable|stack memory)|reference to (?:local|stack)", text):
        return "", "the variable ends with its function: let the caller pass an array to fill"
    if _NO_COPY.search(text):
        remedy = "copy one of its members, or pass it by reference"
        return "", f"a union with vectors or half cannot be copied here; {remedy}"
    unknown = next(filter(None, (pattern.search(text) for pattern in _UNKNOWN)), None)
    if unknown is None:
        return "", ""
    name = next(filter(None, unknown.groupdict().values()))
    of_another = re.search(r"not a member of '(?!cooperative_groups|cg')", text)
    for pattern, advice in _ADVICE:
        if of_another and "cooperative_groups/" in advice:
            continue
        if re.match(pattern, name):
            return name, advice.format(name=re.split(r"\W", name)[0])
    return name, ""
