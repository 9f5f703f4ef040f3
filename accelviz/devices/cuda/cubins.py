"""Machine code of kernels in the user's cache: compiled once per architecture and settings."""

from __future__ import annotations

import atexit
import functools
import hashlib
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from accelviz.devices.cuda.nvrtc import (
    architecture,
    compile_kernel,
    compile_options,
    name_expression,
)
from accelviz.devices.cuda.state import import_cupy
from accelviz.emulator import cache
from accelviz.errors import ArgumentError, accelviz_command
from accelviz.files import cache_folder, kernel_directory, kernel_names, written_whole
from accelviz.plans import KernelSpec

_LOGGER = logging.getLogger("accelviz")
#: Most threads that compile at the same time; each takes about 100 MB.
_MOST_THREADS = 16
#: Suffixes of files that a kernel may include from its folder.
_INCLUDED = (".cu", ".cuh", ".h", ".hpp")
#: This process's folder of cubins if the user's cache is not writable.
_private_folders: list[Path] = []


class Cubin(NamedTuple):
    """A file of machine code, and the name of the kernel's function in it."""

    path: Path
    function: str


class Warmed(NamedTuple):
    """A kernel that `warm` compiled, or found in the cache after 0.0 seconds of compilation."""

    spec: KernelSpec
    seconds: float


def folder() -> Path:
    """Return the folder of cubins in the user's cache, which may not exist yet."""
    return cache_folder() / "cubins"


def cached_cubin(spec: KernelSpec, arch: str, *options: str) -> Cubin:
    """Return a kernel's cubin for an architecture, compiled if it is not in the cache.

    The file's name is a hash of all that determines its content. A second file has the function's
    name and a checksum: a damaged cubin is compiled again. Raises as `compile_kernel` does.
    """
    key = _key(spec, arch, options)
    cubin = _read(key)
    if cubin is None:
        _announce_compilation()
        cubin = _write(key, *compile_kernel(spec, arch, *options))
    # A file without templates has the code of all its kernels, whose names are not mangled.
    return cubin if name_expression(spec) else cubin._replace(function=spec.entry)


def warm(specs: Iterable[KernelSpec], arch: str) -> list[Warmed]:
    """Compile kernels into the cache, several at a time; needs no GPU.

    Parameters
    ----------
    specs : iterable of KernelSpec
        Kernels of one source and the same settings are compiled once. Kernels that need another
        or a newer architecture are left out.
    arch : str
        Architecture of the GPU, such as "sm_90".

    Returns
    -------
    list of Warmed
        One entry per compiled file, in the order of the kernels.

    Raises
    ------
    DeviceUnavailable
        If CuPy or NVRTC is not installed.
    KernelError
        If a kernel does not compile.
    """

    def compile_one(key: str, spec: KernelSpec, own_arch: str) -> Warmed:
        start = time.perf_counter()
        if _read(key) is not None:
            return Warmed(spec, 0.0)
        _write(key, *compile_kernel(spec, own_arch))
        return Warmed(spec, time.perf_counter() - start)

    tasks: dict[str, tuple[KernelSpec, str]] = {}
    for spec in specs:
        own_arch = architecture(spec, arch)
        if own_arch is not None:
            tasks.setdefault(_key(spec, own_arch, ()), (spec, own_arch))
    # NVRTC compiles in several threads at the same time, without Python's global lock.
    with ThreadPoolExecutor(min(os.cpu_count() or 1, _MOST_THREADS)) as pool:
        return [*pool.map(lambda key: compile_one(key, *tasks[key]), tasks)]


def included_hash(options: tuple[str, ...]) -> str:
    """Return a hash of the files in the folders of the options `-I`; "" without such options."""
    folders = [Path(option[2:]) for option in options if option.startswith("-I")]
    files = [path for folder in folders for path in sorted(folder.iterdir())]
    texts = [path.read_text("utf-8", "replace") for path in files if path.suffix in _INCLUDED]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest() if folders else ""


@functools.cache  # headers are read once per process
def _headers_hash(folder: Path) -> str:
    content = b"".join((folder / name).read_bytes() for name in kernel_names("*.cuh"))
    return hashlib.sha256(content).hexdigest()


def _key(spec: KernelSpec, arch: str, options: tuple[str, ...]) -> str:
    parts = (
        *(spec.configured_source(), name_expression(spec), arch),
        *(compile_options(spec), options, import_cupy().cuda.nvrtc.getVersion()),
        *(_headers_hash(kernel_directory()), included_hash(options)),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _read(key: str) -> Cubin | None:
    """Return an undamaged cubin of the cache, marked as used now."""
    for directory in (folder(), *_private_folders):
        path = directory / f"{key}.cubin"
        try:
            function, checksum = path.with_suffix(".name").read_text("utf-8").split()
            undamaged = checksum == _checksum(function, path.read_bytes())
        except (OSError, ValueError):  # missing, or damaged
            continue
        if undamaged and cache.mark_used(path):
            return Cubin(path, function)
    return None


def _write(key: str, code: bytes, function: str) -> Cubin:
    directory = folder()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        cubin = _write_to(directory, key, code, function)
    except (OSError, ArgumentError):  # the cache is not writable, or the disk is full
        if not _private_folders:
            private = tempfile.mkdtemp(prefix="accelviz-")
            atexit.register(shutil.rmtree, private, ignore_errors=True)
            _private_folders.append(Path(private))
        return _write_to(_private_folders[0], key, code, function)
    cache.make_room(directory)
    return cubin


def _write_to(directory: Path, key: str, code: bytes, function: str) -> Cubin:
    path = directory / f"{key}.cubin"
    with written_whole(path) as temporary:
        temporary.write_bytes(code)
    with written_whole(path.with_suffix(".name")) as temporary:
        temporary.write_text(f"{function} {_checksum(function, code)}\n", "utf-8")
    return Cubin(path, function)


def _checksum(function: str, code: bytes) -> str:
    return hashlib.sha256(function.encode() + code).hexdigest()


@functools.cache  # once a process
def _announce_compilation() -> None:
    """Tell the user, who waits; a log record, because nothing is wrong that should be changed."""
    _LOGGER.warning(
        "accelviz compiles CUDA kernels at their first use and keeps them in %s; "
        "`%s doctor --warm` compiles the common ones in advance",
        folder(),
        accelviz_command(),
    )
