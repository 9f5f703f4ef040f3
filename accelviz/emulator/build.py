"""Compiles a kernel for the host, once for each content."""

from __future__ import annotations

import functools
import hashlib
import platform
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from accelviz.emulator import kept
from accelviz.emulator.compiler import (
    Compiler,
    find_compiler,
    run,
    some_compiler,
    why_not,
)
from accelviz.emulator.compiler_errors import unwritten
from accelviz.emulator.source import standard_headers, translated
from accelviz.errors import ArgumentError, KernelError
from accelviz.files import kernel_directory, kernel_names, written_whole
from accelviz.plans import KernelSpec

__all__ = ["build", "find_compiler", "runtime", "twin", "unwritten_locals", "why_not"]

_WORDS = "cuda_on_host.h"
HOST_SOURCES = Path(__file__).resolve().parent / "host"
_COMMON = ("-std=c++17", "-g1", "-fPIC", "-fvisibility=hidden")
#: `include` has the headers that kernels name: cooperative_groups.h, cuda_fp16.h ...
_HEADERS = (f"-I{HOST_SOURCES}", f"-I{HOST_SOURCES / 'include'}")
#: -O1 keeps loads and stores as the source has them, in the source's order.
_KERNEL = (
    *("-O1", "-fno-exceptions", "-fno-strict-aliasing", "-fno-omit-frame-pointer"),
    *("-Wno-unknown-pragmas", "-Wno-attributes", "-UNDEBUG"),
    # A large local array touches the end of the stack before anything behind it.
    *(("-fstack-clash-protection",) if sys.platform == "linux" else ()),
)
_CHECKED = (
    *("-fsanitize=thread", "-fsanitize-coverage=trace-pc"),
    *("-fsanitize=bounds", "-fstack-protector-strong"),
    "-fsanitize=float-cast-overflow",  # calls `__ubsan_handle_float_cast_overflow` of services.h
    "-fsanitize=shift-exponent",
)
#: Basic blocks that stay in the source's order let lanes of a traced warp meet at the right place.
_CHECKED_GCC = (
    *("-fno-reorder-blocks", "-fno-guess-branch-probability"),
    "-fno-thread-jumps",  # which leaves out reads where one condition tells of another
    *("--param", "tsan-distinguish-volatile=1"),
)
#: Local variables that nothing has written begin as something, so that results which depend on them
#: differ if they begin as something else.
_LOCALS = ("-ftrivial-auto-var-init=pattern", "-gno-record-gcc-switches", "-Wuninitialized")
_LOCALS_GCC, _OTHER_LOCALS = ("-Wmaybe-uninitialized",), ("-ftrivial-auto-var-init=zero",)
#: What g++ puts there on x86, negative in every type; all that it clears with memset, too.
_PATTERN = re.compile(rb"\xfe{4,}|\xbe\xfe\0\0\0")
#: What a kernel may include from its own folder.
_INCLUDED = (".cu", ".cuh", ".h", ".hpp")
#: Loops that do nothing may be endless here.
_CLANG = ("-fno-finite-loops",)
#: It may be older than what it was made of, whose content is in its name.
_PRECOMPILED_CLANG = ("-Xclang", "-fno-pch-timestamp")
#: Clang leaves out a load that a store to the same place follows, and joins neighboring accesses to
#: wider ones, unless told not to.
_CHECKED_CLANG = (
    *("-fno-vectorize", "-fno-slp-vectorize"),
    *("-mllvm", "-tsan-instrument-read-before-write=1"),
    *("-mllvm", "-tsan-distinguish-volatile=1"),
)


def build(
    spec: KernelSpec, *, checked: bool, folder: Path | None = None, symbols: Sequence[str] = ()
) -> Path:
    """Compile a kernel into a library for the emulator's runtime, or take it from the cache.

    Only with `checked` are loads and stores checked and traced. The source may include files of
    `folder`, and of the kernels of this project; of the variables `symbols` it tells the types, as
    of its parameters. Returns the library's path; one that may read
    local variables before it writes them has a `twin` beside it, if it is not a file of `kernels/`.

    Raises
    ------
    DeviceUnavailable
        If there is no compiler.
    KernelError
        If the kernel does not exist or does not compile; the message holds the compiler's.
    """
    compiler = some_compiler()
    # After our own words, so that none of these changes them.
    defines = "".join(f"#define {name} {value}\n" for name, value in spec.defines.items())
    # The kernel's own folder first, as its headers may be called as those of `kernels/` are.
    own = [f"-I{folder}"] if folder else []
    folders = [*_HEADERS, *own, f"-I{kernel_directory()}"]
    headers = [kernel_directory() / name for name in kernel_names("*.cuh")]
    if folder:
        headers += sorted(path for path in folder.iterdir() if path.suffix in _INCLUDED)
    source = (
        f'{defines}{_standard(spec, headers)}#line 1 "{spec.file}"\n'
        f"{translated(spec.source(), spec.file)}\n"
        f'#line 1 "entry"\nEMULATED_KERNEL({spec.entry})\n'
        f"EMULATED_SYMBOLS({', '.join(f'EMULATED_TYPE({name})' for name in symbols)})\n"
    )
    options = [*_COMMON, *_KERNEL, *(_CLANG if compiler.is_clang else ())]
    if checked:
        options += [*_CHECKED, *(_CHECKED_CLANG if compiler.is_clang else _CHECKED_GCC)]
    # Not in the kernels that ship: a test looks at all of them, which would cost twice at each run.
    patterned = checked and compiler.gives_locals_a_pattern and bool(spec.code)
    if patterned:
        options += [*_LOCALS, *(() if compiler.is_clang else _LOCALS_GCC)]
    # Our own files count by their content, so that another checkout finds what this one compiled.
    digest = _digest(compiler, [*options, *own], source, headers)
    name = re.sub(r"\W+", "_", spec.entry)
    path = kept.folder() / f"{name}-{digest}.so"
    if kept.used(path):
        return path
    with tempfile.TemporaryDirectory() as scratch:
        kernel, made = Path(scratch) / "kernel.cpp", Path(scratch) / "kernel.o"
        kernel.write_text(source, "utf-8")
        about = spec.file, spec.source()

        def compiled(options: Sequence[str], to: Path) -> str:
            words = _words(compiler, [*options, *_HEADERS])
            return run(compiler, [*options, *folders, *words, "-c", kernel, "-o", to], *about)

        said = compiled(options, made)
        legible = not compiler.is_clang and platform.machine() == "x86_64"
        if patterned and (not legible or _PATTERN.search(made.read_bytes())):
            other = Path(scratch) / "other.o"
            compiled([*options, *_OTHER_LOCALS], other)
            if legible and not _PATTERN.search(other.read_bytes()):  # positive, rather than 0
                code = _PATTERN.sub(_positive, made.read_bytes())
                other.write_bytes(code)
            if other.read_bytes() != made.read_bytes():
                unwritten_locals(path).write_text("\n".join(unwritten(spec.file, said)))
                _link(compiler, other, twin(path), *about)
        _link(compiler, made, path, *about)
    kept.make_room()
    return path


def _standard(spec: KernelSpec, headers: Sequence[Path]) -> str:
    """Include C++'s own headers before the kernel does: some say `__attribute__((__noinline__))`.

    That is a word of CUDA's, and a macro here as it is in CUDA.
    """
    texts = [spec.source(), *(path.read_text("utf-8", "replace") for path in headers)]
    names = [
        name for name in standard_headers(texts) if not (HOST_SOURCES / "include" / name).exists()
    ]
    if not names:
        return ""
    included = [f"#if __has_include(<{name}>)\n#include <{name}>\n#endif\n" for name in names]
    macro = '("__noinline__")\n'
    kept, back = f"#pragma push_macro{macro}#undef __noinline__\n", f"#pragma pop_macro{macro}"
    return "".join([kept, *included, back])


def _words(compiler: Compiler, options: Sequence[str]) -> list[str | Path]:
    """Return the options that put CUDA's words in front of a kernel, read once for all kernels."""
    plain: list[str | Path] = ["-include", _WORDS]
    if not compiler.precompiles:
        return plain
    header = kept.folder() / f"words-{_digest(compiler, options, _WORDS)}.h"
    compiled = header.with_suffix(".pch" if compiler.is_clang else ".h.gch")
    if not kept.used(compiled):
        more = _PRECOMPILED_CLANG if compiler.is_clang else ()
        try:
            with written_whole(header) as temporary:
                temporary.write_text(f'#include "{_WORDS}"\n')
            with written_whole(compiled) as temporary:
                run(
                    compiler, [*options, *more, "-x", "c++-header", header, "-o", temporary], _WORDS
                )
        except (KernelError, ArgumentError):
            return plain
    return ["-include-pch", compiled] if compiler.is_clang else ["-include", header]


def _positive(pattern: re.Match[bytes]) -> bytes:
    return pattern[0].replace(b"\xfe", b"\x7e")


def twin(path: Path) -> Path:
    """Where the same kernel is whose local variables begin as something else, if there is one."""
    return path.with_suffix(".twin.so")


def unwritten_locals(path: Path) -> Path:
    """Where it says, if there is a twin, which local variables the compiler thinks are meant."""
    return path.with_suffix(".locals")


def _link(compiler: Compiler, made: Path, path: Path, file: str, source: str) -> None:
    with written_whole(path) as temporary:
        undefined = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
        # The program that loads it has the libraries; to look through C++'s is slower than to link.
        bare = () if sys.platform == "darwin" or not compiler.precompiles else ("-nodefaultlibs",)
        own = ["-lgcc"] if bare and not compiler.is_clang else []  # 128-bit division, for one
        link: list[str | Path] = ["-shared", *bare, *undefined, "-o", temporary, made, *own]
        run(compiler, link, file, source)


def runtime() -> Path:
    """Compile the program that runs kernels, or take it from the cache; return its path."""
    compiler = some_compiler()
    options = ["-std=c++17", "-g1", "-O2", "-DNDEBUG"]
    path = kept.folder() / f"emulator-{_digest(compiler, options, '')}"
    if not kept.used(path):
        exported = "-Wl,-export_dynamic" if sys.platform == "darwin" else "-Wl,-export-dynamic"
        # Kernels call what the program itself does not: a linker would leave it out.
        libraries = ["-Wl,--no-as-needed", "-lm", "-ldl"] if sys.platform == "linux" else []
        source = HOST_SOURCES / "runtime.cpp"
        with written_whole(path) as temporary:
            command: list[str | Path] = [*options, *_HEADERS, exported, source, "-o", temporary]
            command += libraries
            run(compiler, command, "the emulator's runtime")
            temporary.chmod(0o755)
    return path


def _digest(
    compiler: Compiler, options: Sequence[str], source: str, headers: Sequence[Path] = ()
) -> str:
    """Name a compilation by all that goes into it, our own headers included."""
    said = repr((compiler, list(options), source)).encode()
    return hashlib.sha256(said + _host_digest() + _content(headers)).hexdigest()[:20]


@functools.cache
def _host_digest() -> bytes:
    """Name the content of our own headers, which are read once a process, as modules are."""
    return hashlib.sha256(_content(sorted(HOST_SOURCES.rglob("*")))).digest()


def _content(paths: Iterable[Path]) -> bytes:
    return b"".join(path.read_bytes() for path in paths if path.is_file())
