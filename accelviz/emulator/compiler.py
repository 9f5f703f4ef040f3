"""The host's C++ compiler, which compiles kernels instead of NVIDIA's."""

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
from accelviz.emulator.target import without_reports
from accelviz.errors import DeviceUnavailable, KernelError, pip_install

_NAMES = ("c++", "clang++", "g++")
#: Option of zig that disables its own checks, which would end the process.
_ZIG = ("-fno-sanitize=undefined",)
#: Linux's command that runs another, which is killed when the thread that started it has ended.
_KILLED_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler: its command, and the first line of its `--version`."""

    command: tuple[str, ...]
    version: str

    @property
    def is_clang(self) -> bool:
        """Whether it has clang's options."""
        return "clang" in self.version.lower() or "zig" in " ".join(self.command)

    @property
    def precompiles(self) -> bool:
        """Whether it can precompile headers."""
        return "zig" not in " ".join(self.command)


def _candidates() -> list[list[str]]:
    commands = [shlex.split(os.environ.get("CXX", "")), *([name] for name in _NAMES)]
    if importlib.util.find_spec("ziglang"):
        commands.append([sys.executable, "-m", "ziglang", "c++"])
    return [command for command in commands if command]


@functools.cache
def find_compiler() -> Compiler | None:
    """Return the first working compiler of `$CXX`, c++, clang++, g++ and the wheel ziglang."""
    for command in _candidates():
        try:
            process = subprocess.run(
                [*command, "--version"], capture_output=True, text=True, timeout=60, check=True
            )
        except (OSError, subprocess.SubprocessError):
            continue
        options = _ZIG if "zig" in " ".join(command) else ()
        version = (process.stdout or process.stderr).partition("\n")[0]
        return Compiler((*command, *options), version)
    return None


@functools.cache
def _killed_with_parent(compiler: Compiler) -> tuple[str, ...]:
    """Return the compiler's command, which on Linux ends when Python is killed.

    g++ starts its compiler and assembler, which end with it; clang compiles in its own process.
    """
    wrapper = () if compiler.is_clang else ("-wrapper", ",".join(_KILLED_WITH_PARENT))
    command = (*_KILLED_WITH_PARENT, *compiler.command, *wrapper)
    try:
        subprocess.run([*command, "--version"], capture_output=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return compiler.command
    return command


def unavailable_reason() -> str | None:
    """Return in one sentence why kernels cannot be emulated here, or None if they can."""
    if sys.platform == "win32":
        return "kernels are emulated on Linux and macOS only"
    missing = (
        "no C++ compiler was found to emulate kernels with; install one (such as g++), name it in "
        f"$CXX, or run `{pip_install('ziglang')}`"
    )
    return missing if find_compiler() is None else None


def require_compiler() -> Compiler:
    """Return the compiler, or raise DeviceUnavailable."""
    compiler, problem = find_compiler(), unavailable_reason()
    if compiler is None or problem is not None:
        raise DeviceUnavailable("device 'emulator'", problem or "", "device='cuda' needs none")
    return compiler


def run(
    compiler: Compiler,
    options: Sequence[str | Path],
    file: str,
    source: str = "",
    entry: str = "",
) -> str:
    """Run the compiler and return its warnings; raise KernelError for an error in `file`."""
    process = subprocess.run(
        [*_killed_with_parent(compiler), *options],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        env={**os.environ, "LC_ALL": "C"},  # messages in English
    )
    if process.returncode:
        log = without_reports(process.stderr).strip()
        if process.returncode < 0 or not log or "Killed signal" in log:
            died = f"the compiler {compiler.command[0]} died ({log[-300:] or process.returncode})"
            raise KernelError(file, died, "more memory, or another compiler in $CXX")
        unparsed = KernelError(file, f"it does not compile for the emulator:\n{log[-4000:]}")
        absent = re.findall(r"warning: .*\babsent header: ([^\s\"\[]+)", process.stderr)
        raise compile_error(file, source, log, entry, absent) or unparsed
    return process.stderr
