"""Compiles a kernel for the host, once for each content."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from accelviz.errors import DeviceUnavailable, KernelError
from accelviz.executors.emulator.compiler_errors import compile_error, unwritten
from accelviz.executors.emulator.signature import shared_variables
from accelviz.files import cache_folder, kernel_directory, kernel_names, written_whole
from accelviz.plans import KernelSpec

HOST_SOURCES = Path(__file__).resolve().parent / "host"
_COMMON = (
    *("-std=c++17", "-g1", "-fPIC", "-fvisibility=hidden"),
    # `include` has the headers that kernels name: cooperative_groups.h, cuda_fp16.h ...
    *(f"-I{HOST_SOURCES}", f"-I{HOST_SOURCES / 'include'}"),
)
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
#: What zig looks for by itself would end the process.
_ZIG = ("-fno-sanitize=undefined",)
#: Clang leaves out a load that a store to the same place follows, and joins neighboring accesses to
#: wider ones, unless told not to.
_CHECKED_CLANG = (
    *("-fno-vectorize", "-fno-slp-vectorize"),
    *("-mllvm", "-tsan-instrument-read-before-write=1"),
    *("-mllvm", "-tsan-distinguish-volatile=1"),
)


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler that works: how it is called, and its first line of `--version`."""

    command: tuple[str, ...]
    version: str

    @property
    def is_clang(self) -> bool:
        """Whether it takes clang's options."""
        return "clang" in self.version.lower() or "zig" in " ".join(self.command)

    @property
    def gives_locals_a_pattern(self) -> bool:
        """Whether it knows `-ftrivial-auto-var-init`: g++ 12 and clang 16 do."""
        found = re.search(r"(\d+)\.\d+", self.version)
        return found is not None and int(found[1]) >= (16 if self.is_clang else 12)


def _candidates() -> list[list[str]]:
    found = [shlex.split(os.environ["CXX"])] if os.environ.get("CXX") else []
    found += [[name] for name in ("c++", "clang++", "g++")]
    if importlib.util.find_spec("ziglang"):
        found.append([sys.executable, "-m", "ziglang", "c++"])
    return found


@functools.cache
def find_compiler() -> Compiler | None:
    """Return the first C++ compiler that there is: `$CXX`, c++, clang++, g++, the wheel ziglang."""
    for command in _candidates():
        if shutil.which(command[0]) is None:
            continue
        try:
            answer = subprocess.run(
                [*command, "--version"], capture_output=True, text=True, timeout=60, check=True
            )
        except (OSError, subprocess.SubprocessError):
            continue
        more = _ZIG if "zig" in " ".join(command) else ()
        return Compiler((*command, *more), (answer.stdout or answer.stderr).partition("\n")[0])
    return None


def why_not() -> str | None:
    """Say in one sentence why kernels cannot be emulated here, or None if they can."""
    if sys.platform == "win32":
        return "kernels are emulated on Linux and macOS only"
    missing = (
        "no C++ compiler was found to emulate kernels with; install one (such as g++), name it in "
        "$CXX, or run `pip install ziglang`"
    )
    return missing if find_compiler() is None else None


def build(spec: KernelSpec, *, checked: bool, folder: Path | None = None) -> Path:
    """Compile a kernel into a library for the emulator's runtime, or take it from the cache.

    Only with `checked` are loads and stores checked and traced. The source may include files of
    `folder`, and of the kernels of this project. Returns the library's path; one that may read
    local variables before it writes them has a `twin` beside it, if it is not a file of `kernels/`.

    Raises
    ------
    DeviceUnavailable
        If there is no compiler.
    KernelError
        If the kernel does not exist or does not compile; the message holds the compiler's.
    """
    if (compiler := find_compiler()) is None:
        raise DeviceUnavailable("device 'emulator'", "no C++ compiler", why_not() or "")
    source = (
        '#include "cuda_on_host.h"\n'
        f'#line 1 "{spec.file}"\n'
        f"{shared_variables(spec.source())}\n"
        f'#line 1 "entry"\nEMULATED_KERNEL({spec.entry})\n'
    )
    # The kernel's own folder first, as its headers may be called as ours are.
    options = [*([f"-I{folder}"] if folder else []), *_COMMON, *_KERNEL, f"-I{kernel_directory()}"]
    options += [f"-D{name}={value}" for name, value in spec.defines.items()]
    options += _CLANG if compiler.is_clang else ()
    if checked:
        options += [*_CHECKED, *(_CHECKED_CLANG if compiler.is_clang else _CHECKED_GCC)]
    # Not in the kernels that ship: a test looks at all of them, which would cost twice at each run.
    patterned = checked and compiler.gives_locals_a_pattern and bool(spec.code)
    if patterned:
        options += [*_LOCALS, *(() if compiler.is_clang else _LOCALS_GCC)]
    name = re.sub(r"\W+", "_", spec.entry)
    path = _folder() / f"{name}-{_digest(compiler, options, source, folder)}.so"
    if not path.exists():
        with tempfile.TemporaryDirectory() as scratch:
            kernel, made = Path(scratch) / "kernel.cpp", Path(scratch) / "kernel.o"
            kernel.write_text(source, "utf-8")
            about = spec.file, spec.source()
            said = _run(compiler, [*options, "-c", kernel, "-o", made], *about)
            legible = not compiler.is_clang and platform.machine() == "x86_64"
            if patterned and (not legible or _PATTERN.search(made.read_bytes())):
                other = Path(scratch) / "other.o"
                _run(compiler, [*options, *_OTHER_LOCALS, "-c", kernel, "-o", other], *about)
                if legible and not _PATTERN.search(other.read_bytes()):  # positive, rather than 0
                    code = _PATTERN.sub(_positive, made.read_bytes())
                    other.write_bytes(code)
                if other.read_bytes() != made.read_bytes():
                    unwritten_locals(path).write_text("\n".join(unwritten(spec.file, said)))
                    _link(compiler, other, twin(path), *about)
            _link(compiler, made, path, *about)
    return path


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
        link: list[str | Path] = ["-shared", *undefined, "-o", temporary, made]
        _run(compiler, link, file, source)


def runtime() -> Path:
    """Compile the program that runs kernels, or take it from the cache; return its path."""
    if (compiler := find_compiler()) is None:
        raise DeviceUnavailable("device 'emulator'", "no C++ compiler", why_not() or "")
    options = ["-std=c++17", "-g1", "-O2", "-DNDEBUG", f"-I{HOST_SOURCES / 'include'}"]
    path = _folder() / f"emulator-{_digest(compiler, options, '')}"
    if not path.exists():
        exported = "-Wl,-export_dynamic" if sys.platform == "darwin" else "-Wl,-export-dynamic"
        libraries = ["-ldl"] if sys.platform == "linux" else []
        source = HOST_SOURCES / "runtime.cpp"
        with written_whole(path) as temporary:
            command: list[str | Path] = [*options, exported, source, "-o", temporary, *libraries]
            _run(compiler, command, "the emulator's runtime")
            temporary.chmod(0o755)
    return path


def _digest(
    compiler: Compiler, options: Sequence[str], source: str, folder: Path | None = None
) -> str:
    """Name a compilation by all that goes into it, headers included."""
    digest = hashlib.sha256(repr((compiler, list(options), source)).encode())
    headers = [kernel_directory() / name for name in kernel_names("*.cuh")]
    if folder:
        headers += sorted(path for path in folder.iterdir() if path.suffix in _INCLUDED)
    for path in [*sorted(HOST_SOURCES.rglob("*")), *headers]:
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()[:20]


def _folder() -> Path:
    folder = cache_folder() / "emulator"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.gettempdir()) / f"accelviz-emulator-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _run(compiler: Compiler, options: Sequence[str | Path], file: str, source: str = "") -> str:
    """Call the compiler; `file` and `source` are the kernel's, for what it says about them.

    Returns its warnings.
    """
    answer = subprocess.run(
        [*compiler.command, *options],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        env={**os.environ, "LC_ALL": "C"},  # in English
    )
    if answer.returncode:
        log = answer.stderr.strip()
        unread = KernelError(file, f"it does not compile for the emulator:\n{log[-4000:]}")
        raise compile_error(file, source, log) or unread
    return answer.stderr
