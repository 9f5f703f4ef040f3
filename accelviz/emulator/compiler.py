"""The C++ compiler that stands in for NVIDIA's, and its calls."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from accelviz.emulator.compiler_errors import compile_error
from accelviz.errors import DeviceUnavailable, KernelError

_NAMES = ("c++", "clang++", "g++")
#: zig's own checks would end the process.
_ZIG = ("-fno-sanitize=undefined",)


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler: its command, and the first line of its `--version`."""

    command: tuple[str, ...]
    version: str

    @property
    def is_clang(self) -> bool:
        """Whether it takes clang's options."""
        return "clang" in self.version.lower() or "zig" in " ".join(self.command)

    @property
    def precompiles(self) -> bool:
        """Whether it precompiles headers."""
        return "zig" not in " ".join(self.command)

    @property
    def gives_locals_a_pattern(self) -> bool:
        """Whether it knows `-ftrivial-auto-var-init`: g++ 12 and clang 16 do."""
        version = re.search(r"(\d+)\.\d+", self.version)
        return version is not None and int(version[1]) >= (16 if self.is_clang else 12)


def _candidates() -> list[list[str]]:
    commands = [shlex.split(os.environ.get("CXX", "")), *([name] for name in _NAMES)]
    if importlib.util.find_spec("ziglang"):
        commands.append([sys.executable, "-m", "ziglang", "c++"])
    return [command for command in commands if command]


@functools.cache
def find_compiler() -> Compiler | None:
    """Return the first C++ compiler of `$CXX`, c++, clang++, g++ and the wheel ziglang."""
    for command in _candidates():
        try:
            answer = subprocess.run(
                [*command, "--version"], capture_output=True, text=True, timeout=60, check=True
            )
        except (OSError, subprocess.SubprocessError):
            continue
        more = _ZIG if "zig" in " ".join(command) else ()
        return Compiler((*command, *more), (answer.stdout or answer.stderr).partition("\n")[0])
    return None


def unavailable_reason() -> str | None:
    """Say in one sentence why kernels cannot be emulated here, or None if they can."""
    if sys.platform == "win32":
        return "kernels are emulated on Linux and macOS only"
    missing = (
        "no C++ compiler was found to emulate kernels with; install one (such as g++), name it in "
        "$CXX, or run `pip install ziglang`"
    )
    return missing if find_compiler() is None else None


def some_compiler() -> Compiler:
    """Return the compiler, or raise DeviceUnavailable."""
    compiler, problem = find_compiler(), unavailable_reason()
    if compiler is None or problem is not None:
        raise DeviceUnavailable("device 'emulator'", problem or "", "device='cuda' needs none")
    return compiler


def run(compiler: Compiler, options: Sequence[str | Path], file: str, source: str = "") -> str:
    """Call the compiler and return its warnings; a KernelError names lines of the kernel's file."""
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
