"""Compilation of kernels to shared libraries for the host, and of the runtime that loads them."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from accelviz.emulator import cache
from accelviz.emulator.compiler import (
    Compiler,
    find_compiler,
    require_compiler,
    run,
    unavailable_reason,
)
from accelviz.emulator.host_code import without_unmentioned
from accelviz.emulator.source import declared_constant, kernels_in, standard_headers
from accelviz.emulator.target import DEFAULT, Conditionals, target_macros
from accelviz.emulator.translation import translated
from accelviz.errors import ArgumentError, KernelError
from accelviz.files import kernel_directory, kernel_names, written_whole

__all__ = ["Kernel", "build", "find_compiler", "runtime", "unavailable_reason"]

#: The header with CUDA's built-in functions and variables, included before every kernel.
_CUDA_HEADER = "cuda_on_host.h"
HOST_SOURCES = Path(__file__).resolve().parent / "host"
#: `include` has the headers that kernels include by name: cooperative_groups.h, cuda_fp16.h ...
#: The other ones have names, such as memory.h, that C and users have, too.
_HEADERS = (f"-I{HOST_SOURCES / 'include'}", "-idirafter", str(HOST_SOURCES))
#: Ignore the headers' modification times: the file name contains a hash of their content.
_PRECOMPILED_CLANG = ("-Xclang", "-fno-pch-timestamp")
#: Exceptions, which CUDA does not have and `_options` needs, are errors at their own lines.
_NO_EXCEPTIONS = "".join(
    f'#define {word} _Pragma("GCC error \\"a kernel has no exceptions: return an error code, or '
    f'call __trap()\\"") {word}\n'
    for word in ("throw", "try")
)
#: clang's options to compile an instrumented kernel, without merging neighboring loads.
_OPTIMISED_BITCODE = (
    "-O1",
    "-fPIC",
    "-fno-vectorize",
    "-fno-slp-vectorize",
    "-fsanitize=local-bounds",
    *("-mllvm", "-disable-block-placement"),  # basic blocks in the order of the source
)
#: Options of the runtime. Vectorized stores are slower: two as one wait for both values.
_RUNTIME_OPTIONS = ("-std=c++20", "-g1", "-O2", "-DNDEBUG", "-fno-tree-slp-vectorize")
#: Kernels call functions of libraries that the runtime itself does not use.
_RUNTIME_LIBRARIES = ("-Wl,--no-as-needed", "-lm", "-ldl") if sys.platform == "linux" else ()
#: An `#include` that is in no comment and no literal; and headers of CUDA whose lack is an error.
_INCLUDE = re.compile(
    r"//[^\n]*|/\*.*?\*/|^[^\S\n]*#[^\S\n]*include[^\S\n]*(?P<header>\"[^\"\n]+\"|<[^>\n]+>)[^\n]*"
    r"|\"(?:\\.|[^\"\\\n])*\"",
    re.S | re.M,
)
_LINE = re.compile(r"^#line (\d+)[^\n]*", re.M)
_NEEDED_HEADER = re.compile(r"(?:cub|cuda|cute|cutlass)/|curand_|cuda_fp\d|mma\.")
#: Suffixes of the files beside a kernel's that are translated if it includes them, and number of
#: levels of folders above in which they are.
_INCLUDED, _LEVELS = (".cu", ".cuh", ".h", ".hpp", ".inl"), 4


@functools.cache
def _options(
    compiler: Compiler, checked: bool, tracks_undefined: bool, every_load: bool
) -> tuple[str, ...]:
    """Return the options to compile a kernel, without include paths and the CUDA header."""
    # -O1 preserves the order of the source's loads and stores.
    options = ["-std=c++17", "-O1", "-g1", "-fPIC", "-fvisibility=hidden", "-fno-exceptions"]
    # Each call has a frame, which messages follow; see callers.h.
    options += ["-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"]
    options += ["-fno-strict-aliasing"]
    options += ["-Wno-unknown-pragmas", "-Wno-attributes", "-UNDEBUG"]
    # g++ would return a null pointer.
    local = "return-stack-address" if compiler.is_clang else "return-local-addr"
    options += [f"-Werror={local}"]
    if sys.platform == "linux":  # a stack overflow by a large array hits the guard pages
        options += ["-fstack-clash-protection", "-fno-plt"]
    if compiler.is_clang:  # do not remove endless loops without effects: they are reported
        options += ["-fno-finite-loops"]
    if checked:
        options += ["-fsanitize=thread", "-fsanitize-coverage=trace-pc", "-fsanitize=bounds"]
        options += ["-fsanitize=float-cast-overflow", "-fsanitize=shift-exponent"]
        options += ["-fstack-protector-strong"]
    if checked and compiler.is_clang:
        # Instrument loads before a store to the same address, and do not merge neighboring loads.
        options += ["-fno-vectorize", "-fno-slp-vectorize"]
        options += ["-mllvm", "-tsan-instrument-read-before-write=1"]
        options += ["-mllvm", "-tsan-distinguish-volatile=1"]
        if every_load:  # instrument before any optimisation; see `_OPTIMISED_BITCODE`
            options += ["-O0", "-Xclang", "-disable-O0-optnone"]
    elif checked:
        # Else `f(*p)` and `*p = f()` copy structures in the call, where no load or store is seen.
        options += ["-fno-elide-constructors"]
        if every_load:
            # g++ neither moves nor drops a load that may throw, but for sinking it into a branch
            # and for copies of structures that nobody reads. Arithmetic may move.
            options += ["-fexceptions", "-fnon-call-exceptions", "-fno-enforce-eh-specs"]
            options += ["-fno-delete-dead-exceptions", "-fno-tree-sink", "-fno-tree-dse"]
            options += ["-fno-trapping-math"]
        # With basic blocks in source order, lanes of a traced warp reconverge as in the source.
        # Jump threading would remove reads where one condition implies another.
        options += ["-fno-reorder-blocks", "-fno-guess-branch-probability", "-fno-thread-jumps"]
        options += ["--param", "tsan-distinguish-volatile=1"]
        # Loads would end basic blocks if exceptions went through hooks at the exits of functions.
        options += ["--param", "tsan-instrument-func-entry-exit=0"]
    if checked and tracks_undefined:  # not the package's own
        options += ["-DEMULATOR_TRACKS_UNDEFINED"]
        # Accesses through a variable's own address are seen only within it: see local-bounds.
        options += [] if compiler.is_clang else ["-fsanitize=object-size"]
    return tuple(options)


@dataclass(frozen=True)
class Kernel:
    """CUDA source and one of its `__global__` functions.

    Parameters
    ----------
    file : str
        Name of the source in messages.
    source : str
        CUDA text.
    entry : str
        Name of the function, or an instance of a template.
    names : tuple of str
        Names of the function's parameters in messages, in order.
    defines : mapping of str to int, str or None
        Macros; None undefines one.
    folder : Path, optional
        Folder of files to include, in addition to the headers of `kernels/`.
    include : tuple of Path
        Further folders of headers.
    tracks_undefined : bool
        Whether to report that results depend on unwritten local variables, or on what a shuffle
        read from a lane outside its mask. The package's own kernels are trusted at run time.
    arch : str
        GPU architecture whose macros, such as `__CUDA_ARCH__`, are defined.
    every_load : bool
        Whether to keep each load of the source, also of a value that nobody uses. Otherwise the
        compiler may merge, move and drop loads, as a GPU's compiler does: for traces.
    types : str, optional
        Types of the parameters, to choose one of several functions of the name `entry`.
    header : str
        Text of the included file that defines the function, if the source does not.
    """

    file: str
    source: str
    entry: str
    names: tuple[str, ...] = ()
    defines: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    tracks_undefined: bool = True
    arch: str = DEFAULT
    every_load: bool = True
    include: tuple[Path, ...] = ()
    types: str | None = None
    header: str = ""

    def texts(self) -> dict[str, str]:
        """Return the user's sources by file name: this one and the files that it includes."""
        included = included_files(self.source, self.folder, self.include)
        return {**{path.name: text for path, text in included.items()}, self.file: self.own_text}

    @property
    def own_text(self) -> str:
        """Return the source without the `struct Config` in front of a package's kernel."""
        return self.source.rpartition(f'#line 1 "{self.file}"\n')[2]

    @property
    def declaring_text(self) -> str:
        """Return the text that defines the function: the source, or that of a header."""
        return self.header or self.source


def build(kernel: Kernel, *, checked: bool = True, symbols: Sequence[str] = ()) -> Path:
    """Compile a kernel to a shared library for the emulator's runtime; cached.

    `checked` instruments loads and stores. The library has the types of the variables `symbols`.
    Returns its path. Where another kernel of the source does not compile, the library has only
    `kernel` and what it uses.

    Raises
    ------
    DeviceUnavailable
        If there is no compiler.
    KernelError
        If the kernel does not compile; the message contains the compiler's.
    """
    if kernel.folder or kernel.include:  # folders have files that may change
        return _built(kernel, checked, symbols)
    fields = kernel.file, kernel.source, kernel.entry, kernel.types, kernel.arch, kernel.header
    options = kernel.tracks_undefined, kernel.every_load, checked, *symbols
    emulator = cache.folder(), require_compiler(), _host_digest()
    key = (*fields, repr(kernel.defines), options, emulator)
    path = _paths.get(key)
    if path is None or not cache.mark_used(path):
        if len(_paths) == _MOST_PATHS:
            _paths.clear()
        path = _paths[key] = _built(kernel, checked, symbols)
    return path


#: Libraries of the kernels that this process has built, by all that they depend on.
_paths = dict[tuple[Any, ...], Path]()
_MOST_PATHS = 256


def _built(kernel: Kernel, checked: bool, symbols: Sequence[str]) -> Path:
    whole, error = None, None
    try:
        whole = _prepared(kernel, checked, symbols)
    except KernelError as of_translation:
        error = of_translation
    if whole and cache.mark_used(whole.path):
        return whole.path
    alone, kernels = whole, kernels_in(kernel.source)
    if len(kernels) > 1:
        alone = _prepared(kernel, checked, symbols, alone=True)
        if cache.mark_used(alone.path):
            return alone.path
    if whole:
        try:
            whole.compile()
            return whole.path
        except KernelError as of_compiler:
            error = of_compiler
    assert error is not None
    if alone is None or (whole and whole.path == alone.path):
        raise error
    others = [name for name in kernels if name not in kernels_in(alone.text)]
    more = f" and {len(others) - 4} more" if len(others) > 4 else ""
    reason = error.problem.removeprefix("it does not compile for the emulator: ")
    note = f"not compiled: {', '.join(others[:4]) or 'other code'}{more}"
    alone.compile(f"{note} ({error.argument}: {reason})")
    return alone.path


class _Build(NamedTuple):
    """A library to compile: its path, a function that compiles it, and the text of its code.

    `compile` takes a sentence for `left_out`.
    """

    path: Path
    compile: Callable[..., None]
    text: str


def _prepared(
    kernel: Kernel, checked: bool, symbols: Sequence[str], *, alone: bool = False
) -> _Build:
    """Prepare the library of a kernel's source; with `alone`, of what the kernel uses."""
    compiler = require_compiler()
    # Before `kernels/`, so that the user's headers have precedence.
    user_folders = [f"-I{path}" for path in (kernel.folder, *kernel.include) if path]
    folders = [*_HEADERS, *user_folders, f"-I{kernel_directory()}"]
    included = included_files(kernel.source, kernel.folder, kernel.include)
    headers_hash, standard = _kernel_headers()
    # Defined after the CUDA header and those of C++, which must not see __CUDACC__.
    macros = {**target_macros(kernel.arch), **kernel.defines}
    defines = "".join(
        f"#undef {name}\n" if value is None else f"#define {name} {value}\n"
        for name, value in macros.items()
    )
    origin = kernel.file, kernel.own_text, kernel.entry
    conditionals = Conditionals.of(origin[1])
    shipped = included_files(kernel.source, kernel_directory(), ()).values()
    needed, *near_texts = without_unmentioned(
        (kernel.source, *included.values()), kernel.entry, (*symbols, *shipped), alone=alone
    )
    included = dict(zip(included, near_texts, strict=True))
    text = conditionals.mark(translated(needed, kernel.file), kernel.file)
    text = with_optional_headers(text, kernel.file)
    standard = sorted({*standard, *standard_headers([kernel.source, *included.values()])})
    overload = f"static_cast<void (*)({kernel.types})>(&{kernel.entry})"
    function = kernel.entry if kernel.types is None else f"*({overload})"
    entry = ", ".join([f"({function})", *(f"EMULATED_VARIABLE({name})" for name in symbols)])
    attributes = ("__launch_bounds__", "__cluster_dims__")
    text_of_kernel = kernel.declaring_text
    declared = [declared_constant(text_of_kernel, kernel.entry, name) for name in attributes]
    declarations = "".join(text for text, _ in declared)
    constants = ", ".join(f"({name})" for _, name in declared)
    source = (
        f'{_include_lines(standard)}{defines}{_NO_EXCEPTIONS}#line 1 "{kernel.file}"\n{text}\n'
        f'#line 1 "entry"\n{declarations}\nEMULATED_KERNEL({constants}, {entry})\n'
    )
    options = _options(compiler, checked, kernel.tracks_undefined, kernel.every_load)
    inputs = options, _OPTIMISED_BITCODE, user_folders, source, headers_hash
    digest = _digest(compiler, *inputs, included)
    name = re.sub(r"\W+", "_", kernel.entry)[:80]
    path = cache.folder() / f"{name}-{digest}.so"

    def compile_(note: str = "") -> None:
        with tempfile.TemporaryDirectory() as build_folder:
            compiled = Path(build_folder) / "kernel.o"
            source_folder = Path(build_folder, *"0" * _LEVELS)  # `..` leads to folders beside it
            written, texts = source_folder / "kernel.cpp", {Path("kernel.cpp"): source}
            for near, text in included.items():
                text = with_optional_headers(translated(text, near.name), near.name)
                texts[near] = f'#line 1 "{near.name}"\n{text}'
            for near, text in texts.items():
                (source_folder / near).parent.mkdir(parents=True, exist_ok=True)
                (source_folder / near).write_text(text, "utf-8")
            folders.insert(len(_HEADERS), f"-I{source_folder}")
            header = _include_cuda_header(compiler, [*options, *_HEADERS])
            command = [*options, *folders, *header, written]
            if "-O0" in options:
                bitcode = compiled.with_suffix(".bc")
                warnings = run(compiler, [*command, "-emit-llvm", "-c", "-o", bitcode], *origin)
                run(compiler, [*_OPTIMISED_BITCODE, bitcode, "-c", "-o", compiled], *origin)
            else:
                warnings = run(compiler, [*command, "-c", "-o", compiled], *origin)
            notes = [*filter(None, (note, conditionals.left_out(warnings, kernel.arch)))]
            if notes:
                left_out(path).write_text("; ".join(notes), "utf-8")
            _link(compiler, compiled, path, *origin)
        if digest.startswith("0"):  # one kernel of 16, as a list of 2,000 files takes 16 ms
            cache.make_room(cache.folder())

    return _Build(path, compile_, needed)


def included_files(
    source: str, folder: Path | None, include: Sequence[Path] = ()
) -> dict[Path, str]:
    """Return the texts of the files of the folders, or near the first, that a kernel includes."""
    files, pending = dict[Path, str](), [(source, Path())]
    pattern = r'^[^\S\n]*#[^\S\n]*include[^\S\n]*["<]([^">]+)[">]'
    while pending:
        text, parent = pending.pop()
        for name in re.findall(pattern, text, re.M):
            paths = [Path(os.path.normpath(parent / name)), Path(os.path.normpath(name))]
            for root, path in [(root, path) for root in (folder, *include) for path in paths]:
                if root is None or path.is_absolute() or path.parts.count("..") > _LEVELS:
                    continue
                if path in files:
                    break
                if (root / path).is_file() and path.suffix in _INCLUDED:
                    files[path] = (root / path).read_text("utf-8-sig", "replace")
                    pending.append((files[path], path.parent))
                    break
    return dict(sorted(files.items()))


def with_optional_headers(text: str, file: str) -> str:
    """Leave out headers that do not exist, with a warning; not those of missing parts of CUDA."""

    def optional(match: re.Match[str]) -> str:
        header = match["header"]
        if not header or _NEEDED_HEADER.match(header[1:]):
            return match[0]
        # Lines are counted from the last directive that numbers them.
        numbered = [*_LINE.finditer(text, 0, match.start())][-1:]
        first, begin = (int(numbered[0][1]), numbered[0].end() + 1) if numbered else (1, 0)
        line = first + text.count("\n", begin, match.end()) + 1
        warning = f"#warning absent header: {header[1:-1]}"
        return f'''#if __has_include({header})\n{match[0]}\n#else\n{warning}\n#endif
#line {line} "{file}"'''

    return _INCLUDE.sub(optional, text)


def _include_lines(names: Sequence[str]) -> str:
    """Include headers of C++ without the macro `__noinline__`, which is a name in some of them."""
    lines = [
        f"#if __has_include(<{name}>)\n#include <{name}>\n#endif\n"
        for name in names
        if not (HOST_SOURCES / "include" / name).exists()
    ]
    macro = '("__noinline__")\n'
    return f"#pragma push_macro{macro}#undef __noinline__\n{''.join(lines)}#pragma pop_macro{macro}"


def _include_cuda_header(compiler: Compiler, options: Sequence[str]) -> list[str | Path]:
    """Return the options that include the CUDA header, precompiled if the compiler can."""
    plain: list[str | Path] = ["-include", _CUDA_HEADER]
    if not compiler.precompiles:
        return plain
    header = cache.folder() / f"words-{_digest(compiler, options, _CUDA_HEADER)}.h"
    compiled = header.with_suffix(".pch" if compiler.is_clang else ".h.gch")
    if not cache.mark_used(compiled):
        clang_options = _PRECOMPILED_CLANG if compiler.is_clang else ()
        command: list[str | Path] = [*options, *clang_options, "-x", "c++-header", header, "-o"]
        try:
            with written_whole(header) as temporary:
                temporary.write_text(f'#include "{_CUDA_HEADER}"\n')
            with written_whole(compiled) as temporary:
                run(compiler, [*command, temporary], _CUDA_HEADER)
        except (KernelError, ArgumentError):
            return plain
    return ["-include-pch", compiled] if compiler.is_clang else ["-include", header]


def precompile_header(*, every_load: bool) -> None:
    """Precompile the CUDA header for checked kernels of users, if the compiler can; cached."""
    compiler = require_compiler()
    _include_cuda_header(compiler, [*_options(compiler, True, True, every_load), *_HEADERS])


@functools.cache
def host_macros() -> frozenset[str]:
    """Return the macros of C's headers and the compiler that are in force where a kernel stands.

    All that have parameters or a reserved name: others, such as FLT_MAX, are numbers.
    """
    compiler = require_compiler()
    headers = (path.read_text("utf-8") for path in HOST_SOURCES.rglob("*.h"))
    of_cuda = {name for text in headers for name in re.findall(r"^#\s*define (\w+)", text, re.M)}
    with tempfile.TemporaryDirectory() as folder:
        source, macros = Path(folder, "headers.cpp"), Path(folder, "macros")
        source.write_text(_include_lines(_kernel_headers()[1]))
        options = [*_options(compiler, True, True, True), *_HEADERS, "-include", _CUDA_HEADER]
        run(compiler, [*options, "-E", "-dM", source, "-o", macros], _CUDA_HEADER)
        defined = re.findall(r"^#define (?:(\w+)\(|(_\w+))", macros.read_text("utf-8"), re.M)
    return frozenset(map("".join, defined)) - of_cuda


def left_out(path: Path) -> Path:
    """Return the path of a sentence on the code that is not compiled, if any."""
    return path.with_suffix(".left_out")


def _link(compiler: Compiler, compiled: Path, path: Path, *origin: str) -> None:
    mac = sys.platform == "darwin"
    # The program that loads the library already has the C++ library, which is slow to link.
    bare = compiler.precompiles and not mac
    # Nothing of C's start-up, which would call functions that a kernel may define (__gmon_start__).
    link = ["-shared", *(["-nodefaultlibs", "-nostartfiles", "-Wl,-init=0"] if bare else [])]
    link += ["-undefined", "dynamic_lookup"] if mac else []
    gcc = ["-lgcc"] if bare and not compiler.is_clang else []  # for 128-bit division
    with written_whole(path) as temporary:
        run(compiler, [*link, "-o", str(temporary), str(compiled), *gcc], *origin)


def runtime() -> Path:
    """Compile the program that loads and runs kernels; cached. Returns the program's path."""
    compiler = require_compiler()
    path = cache.folder() / _runtime_name(compiler, _host_digest())
    if not cache.mark_used(path):
        export = "-Wl,-export_dynamic" if sys.platform == "darwin" else "-Wl,-export-dynamic"
        options = [*_RUNTIME_OPTIONS, export]
        source = str(HOST_SOURCES / "runtime.cpp")
        with written_whole(path) as temporary:
            command = [*_HEADERS, *options, source, "-o", str(temporary), *_RUNTIME_LIBRARIES]
            try:  # relocations of the shared C++ library take a third of a millisecond
                run(compiler, [*command, "-static-libstdc++"], "the emulator's runtime")
            except KernelError:  # there is only the shared one
                run(compiler, command, "the emulator's runtime")
            temporary.chmod(0o755)
    return path


@functools.cache
def _runtime_name(compiler: Compiler, _host: str) -> str:
    return f"emulator-{_digest(compiler, _RUNTIME_OPTIONS, _RUNTIME_LIBRARIES)}"


def _digest(compiler: Compiler, *content: Any) -> str:
    """Return a hash of a compilation's inputs and of the emulator's sources."""
    return hashlib.sha256(repr((compiler, content, _host_digest())).encode()).hexdigest()[:20]


@functools.cache
def _host_digest() -> str:
    files = sorted(path for path in HOST_SOURCES.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


@functools.cache
def _kernel_headers() -> tuple[str, list[str]]:
    """Return a hash of the headers in `kernels/`, and the C++ headers that these include."""
    texts = [(kernel_directory() / name).read_text("utf-8") for name in kernel_names("*.cuh")]
    return hashlib.sha256("".join(texts).encode()).hexdigest(), standard_headers(texts)
