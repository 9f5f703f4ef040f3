"""Compiles a kernel for the host, once for each content."""

from __future__ import annotations

import functools
import hashlib
import platform
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelviz.emulator import cache
from accelviz.emulator.compiler import (
    Compiler,
    find_compiler,
    run,
    some_compiler,
    unavailable_reason,
)
from accelviz.emulator.compiler_errors import unwritten
from accelviz.emulator.source import standard_headers, translated
from accelviz.errors import ArgumentError, KernelError
from accelviz.files import kernel_directory, kernel_names, written_whole

__all__ = ["Kernel", "build", "find_compiler", "runtime", "unavailable_reason"]

_WORDS = "cuda_on_host.h"
HOST_SOURCES = Path(__file__).resolve().parent / "host"
#: `include` has the headers that kernels name: cooperative_groups.h, cuda_fp16.h ...
_HEADERS = (f"-I{HOST_SOURCES}", f"-I{HOST_SOURCES / 'include'}")
#: The name holds a digest of the sources, so their times do not matter.
_PRECOMPILED_CLANG = ("-Xclang", "-fno-pch-timestamp")
#: Initial local variables of the twin.
_TWIN = "-ftrivial-auto-var-init=zero"
#: The pattern of g++ on x86, negative in every type, also as an argument of memset.
_PATTERN = re.compile(rb"\xfe{4,}|\xbe\xfe\0\0\0")
#: Endings of files that a kernel may include from its folder.
_INCLUDED = (".cu", ".cuh", ".h", ".hpp")


@functools.cache
def _options(compiler: Compiler, checked: bool, patterned: bool) -> tuple[str, ...]:
    """Return the options of a kernel's compilation, but for folders and CUDA's words."""
    # -O1 keeps loads and stores as the source has them, in the source's order.
    options = ["-std=c++17", "-O1", "-g1", "-fPIC", "-fvisibility=hidden", "-fno-exceptions"]
    options += ["-fno-strict-aliasing", "-fno-omit-frame-pointer"]
    options += ["-Wno-unknown-pragmas", "-Wno-attributes", "-UNDEBUG"]
    if sys.platform == "linux":  # a large local array touches the end of the stack first
        options += ["-fstack-clash-protection"]
    if compiler.is_clang:  # an endless loop without effects is a mistake to report
        options += ["-fno-finite-loops"]
    if checked:
        options += ["-fsanitize=thread", "-fsanitize-coverage=trace-pc", "-fsanitize=bounds"]
        options += ["-fsanitize=float-cast-overflow", "-fsanitize=shift-exponent"]
        options += ["-fstack-protector-strong"]
    if checked and compiler.is_clang:
        # Otherwise clang drops loads before a store to their address and merges neighboring ones.
        options += ["-fno-vectorize", "-fno-slp-vectorize"]
        options += ["-mllvm", "-tsan-instrument-read-before-write=1"]
        options += ["-mllvm", "-tsan-distinguish-volatile=1"]
    elif checked:
        # Basic blocks in the source's order let lanes of a traced warp meet where the source joins;
        # threaded jumps leave out reads where one condition implies another.
        options += ["-fno-reorder-blocks", "-fno-guess-branch-probability", "-fno-thread-jumps"]
        options += ["--param", "tsan-distinguish-volatile=1"]
    if patterned:
        # Results that depend on unwritten local variables differ from those of the twin.
        options += ["-ftrivial-auto-var-init=pattern", "-gno-record-gcc-switches"]
        options += ["-Wuninitialized", *([] if compiler.is_clang else ["-Wmaybe-uninitialized"])]
    return tuple(options)


@dataclass(frozen=True)
class Kernel:
    """CUDA source, and the `__global__` function in it that is run.

    Parameters
    ----------
    file : str
        Name of the source in messages.
    source : str
    entry : str
        Name of the function, or an instance of a template.
    names : tuple of str
        Names of its parameters in messages, in order.
    defines : mapping of str to int or str
        Compile-time constants.
    folder : Path, optional
        Folder of files to include, beside the headers of `kernels/`.
    has_twin : bool
        Compile a twin with other initial local variables, to find reads of unwritten ones. A test
        does so for the kernels that ship, which go without.
    """

    file: str
    source: str
    entry: str
    names: tuple[str, ...] = ()
    defines: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    has_twin: bool = True


def build(kernel: Kernel, *, checked: bool = True, symbols: Sequence[str] = ()) -> Path:
    """Compile a kernel into a library for the emulator's runtime, or take it from the cache.

    `checked` instruments loads and stores; `symbols` are variables whose types the library tells.
    Returns the library's path. A kernel that may read unwritten local variables has a `twin`.

    Raises
    ------
    DeviceUnavailable
        If there is no compiler.
    KernelError
        If the kernel does not compile; the message holds the compiler's.
    """
    compiler = some_compiler()
    folders, beside = [*_HEADERS, f"-I{kernel_directory()}"], list[str]()
    if kernel.folder:  # its headers hide those of `kernels/` of the same name
        folders.insert(len(_HEADERS), f"-I{kernel.folder}")
        files = sorted(path for path in kernel.folder.iterdir() if path.suffix in _INCLUDED)
        beside = [path.read_text("utf-8", "replace") for path in files if path.is_file()]
    shipped, standard = _kernel_headers()
    # After the emulator's words, so that no constant changes these.
    defines = "".join(f"#define {name} {value}\n" for name, value in kernel.defines.items())
    standard = sorted({*standard, *standard_headers([kernel.source, *beside])})
    entry = ", ".join([f"({kernel.entry})", *(f"EMULATED_VARIABLE({name})" for name in symbols)])
    source = (
        f'{defines}{_included(standard)}#line 1 "{kernel.file}"\n'
        f"{translated(kernel.source, kernel.file)}\n"
        f'#line 1 "entry"\nEMULATED_KERNEL({entry})\n'
    )
    patterned = checked and compiler.gives_locals_a_pattern and kernel.has_twin
    options = _options(compiler, checked, patterned)
    digest = _digest(compiler, options, kernel.folder, source, shipped, *beside)
    name = re.sub(r"\W+", "_", kernel.entry)
    path = cache.folder() / f"{name}-{digest}.so"
    if cache.used(path):
        return path
    with tempfile.TemporaryDirectory() as scratch:
        text, compiled = Path(scratch) / "kernel.cpp", Path(scratch) / "kernel.o"
        text.write_text(source, "utf-8")
        # Messages count the file's own lines, without the constants in front.
        about = kernel.file, kernel.source.rpartition(f'#line 1 "{kernel.file}"\n')[2]

        def compile_to(target: Path, options: Sequence[str]) -> str:
            words = _words(compiler, [*options, *_HEADERS])
            return run(compiler, [*options, *folders, *words, "-c", text, "-o", target], *about)

        warnings = compile_to(compiled, options)
        legible = not compiler.is_clang and platform.machine() == "x86_64"
        if patterned and (not legible or _PATTERN.search(compiled.read_bytes())):
            other = Path(scratch) / "other.o"
            compile_to(other, [*options, _TWIN])
            if legible and not _PATTERN.search(other.read_bytes()):  # positive, rather than 0
                positive = _PATTERN.sub(
                    lambda match: match[0].replace(b"\xfe", b"\x7e"), compiled.read_bytes()
                )
                other.write_bytes(positive)
            if other.read_bytes() != compiled.read_bytes():
                unwritten_locals(path).write_text("\n".join(unwritten(kernel.file, warnings)))
                _link(compiler, other, twin(path), *about)
        _link(compiler, compiled, path, *about)
    cache.make_room()
    return path


def _included(names: Sequence[str]) -> str:
    """Include C++'s own headers without the macro `__noinline__`, an attribute in some of them."""
    ours = HOST_SOURCES / "include"
    lines = [
        f"#if __has_include(<{name}>)\n#include <{name}>\n#endif\n"
        for name in names
        if not (ours / name).exists()
    ]
    macro = '("__noinline__")\n'
    return f"#pragma push_macro{macro}#undef __noinline__\n{''.join(lines)}#pragma pop_macro{macro}"


def _words(compiler: Compiler, options: Sequence[str]) -> list[str | Path]:
    """Return the options that include CUDA's words, precompiled for all kernels where possible."""
    plain: list[str | Path] = ["-include", _WORDS]
    if not compiler.precompiles:
        return plain
    header = cache.folder() / f"words-{_digest(compiler, options, _WORDS)}.h"
    compiled = header.with_suffix(".pch" if compiler.is_clang else ".h.gch")
    if not cache.used(compiled):
        more = _PRECOMPILED_CLANG if compiler.is_clang else ()
        command: list[str | Path] = [*options, *more, "-x", "c++-header", header, "-o"]
        try:
            with written_whole(header) as temporary:
                temporary.write_text(f'#include "{_WORDS}"\n')
            with written_whole(compiled) as temporary:
                run(compiler, [*command, temporary], _WORDS)
        except (KernelError, ArgumentError):
            return plain
    return ["-include-pch", compiled] if compiler.is_clang else ["-include", header]


def twin(path: Path) -> Path:
    """Return the path of the twin, whose local variables have other initial values."""
    return path.with_suffix(".twin.so")


def unwritten_locals(path: Path) -> Path:
    """Return the path of the list of local variables that the compiler suspects."""
    return path.with_suffix(".locals")


def _link(compiler: Compiler, compiled: Path, path: Path, file: str, source: str) -> None:
    mac = sys.platform == "darwin"
    # The program that loads it has C++'s library, which is slow to search here.
    bare = compiler.precompiles and not mac
    link = ["-shared", *(["-nodefaultlibs"] if bare else [])]
    link += ["-undefined", "dynamic_lookup"] if mac else []
    gcc = ["-lgcc"] if bare and not compiler.is_clang else []  # 128-bit division, for one
    with written_whole(path) as temporary:
        run(compiler, [*link, "-o", str(temporary), str(compiled), *gcc], file, source)


def runtime() -> Path:
    """Compile the program that runs kernels, or take it from the cache. Returns its path."""
    compiler, options = some_compiler(), ["-std=c++20", "-g1", "-O2", "-DNDEBUG"]
    path = cache.folder() / f"emulator-{_digest(compiler, options)}"
    if not cache.used(path):
        options += ["-Wl,-export_dynamic" if sys.platform == "darwin" else "-Wl,-export-dynamic"]
        # Kernels call what the program itself does not: a linker would leave it out.
        libraries = ["-Wl,--no-as-needed", "-lm", "-ldl"] if sys.platform == "linux" else []
        source = str(HOST_SOURCES / "runtime.cpp")
        with written_whole(path) as temporary:
            command = [*_HEADERS, *options, source, "-o", str(temporary), *libraries]
            run(compiler, command, "the emulator's runtime")
            temporary.chmod(0o755)
    return path


def _digest(compiler: Compiler, *content: Any) -> str:
    """Return a name of a compilation: a hash of its inputs and of the emulator's headers."""
    return hashlib.sha256(repr((compiler, content, _host_digest())).encode()).hexdigest()[:20]


@functools.cache
def _host_digest() -> str:
    """Return a hash of the headers' content, so that checkouts share their compilations."""
    files = sorted(path for path in HOST_SOURCES.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


@functools.cache
def _kernel_headers() -> tuple[str, list[str]]:
    """Return a hash of the headers of `kernels/`, and the C++ headers that these include."""
    texts = [(kernel_directory() / name).read_text("utf-8") for name in kernel_names("*.cuh")]
    return hashlib.sha256("".join(texts).encode()).hexdigest(), standard_headers(texts)
