"""Programs that run the corpus on a GPU: one of correct kernels, one per kernel of its mistakes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
from corpus import Case, Launch

HERE = Path(__file__).resolve().parent
_INCLUDE = re.compile(r"^#include .*\n", re.MULTILINE)
_DEFINED = re.compile(r"^#define (\w+)", re.MULTILINE)


def program(cases: list[Case]) -> str:
    """Return one CUDA source for some cases, each in its own namespace."""
    includes = sorted({include for case in cases for include in _INCLUDE.findall(case.code)})
    parts = ["#include <cstdlib>\n", *includes]
    entries = []
    for number, case in enumerate(cases):
        namespace = f"case_{number}"
        parts.append(f"namespace {namespace} {{\n{_INCLUDE.sub('', case.code)}}}\n")
        parts += [f"#undef {name}\n" for name in _DEFINED.findall(case.code)]
        pointer = f"reinterpret_cast<const void *>(&{namespace}::{case.kernel.entry})"
        entries.append(f'    {{"{case.name}", {pointer}}},\n')
    parts.append("struct Entry {\n    const char *name;\n    const void *kernel;\n};\n")
    parts.append(f"static const Entry entries[] = {{\n{''.join(entries)}}};\n")
    return "".join([*parts, (HERE / "host.cu").read_text("utf-8")])


def compile_program(name: str, cases: list[Case], folder: Path, *options: str) -> Path:
    """Compile a program of some cases for an H100 or H200, unless it is there; return its path."""
    source, program_path = folder / f"{name}.cu", folder / name
    if program_path.exists():
        return program_path
    source.write_text(program(cases), "utf-8")
    command = ["nvcc", "-std=c++17", "-arch=sm_90", "-lineinfo", "-w", *options]
    done = subprocess.run([*command, "-o", program_path, source], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{name} does not compile:\n{done.stderr[-3000:]}")
    return program_path


def as_3d(size: tuple[int, ...] | int) -> tuple[int, ...]:
    """Return a size of one, two or three dimensions as three."""
    return (*((size,) if isinstance(size, int) else size), 1, 1)[:3]


def pack(launch: Launch) -> bytes:
    """Return a launch in the format that host.cu reads."""
    arguments = {name: np.asarray(value) for name, value in launch.arguments.items()}
    head = [*as_3d(launch.grid), *as_3d(launch.block), launch.shared_bytes, len(arguments)]
    for name, value in arguments.items():
        head += [value.nbytes, (2 if name in launch.unwritten else 1) if value.ndim else 0]
    content = [np.ascontiguousarray(value).tobytes() for value in arguments.values()]
    return b"".join([np.array(head, np.int64).tobytes(), *content])


def unpack(launch: Launch, content: bytes) -> dict[str, np.ndarray]:
    """Return the arrays that host.cu has written, by name."""
    arrays, start = {}, 0
    for name, value in launch.arguments.items():
        if isinstance(value, np.ndarray):
            arrays[name] = np.frombuffer(content, value.dtype, value.size, start)
            start += value.nbytes
    return arrays
