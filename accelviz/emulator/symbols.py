"""Source lines and variables of a compiled kernel, from its debugging information and symbols."""

from __future__ import annotations

import bisect
import functools
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from accelviz.emulator.memory import Known, Space

#: Names of the emulator's own headers.
_HEADERS = {path.name for path in (Path(__file__).parent / "host").rglob("*") if path.is_file()}
#: ELF's flag SHF_WRITE of a writable section.
_WRITE = 1


class Line(NamedTuple):
    """A source line: file name without folder, and line number from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@functools.lru_cache(maxsize=4096)
def line_of(library: Path, offset: int) -> Line | None:
    """Return the line of the call that returns to `offset` in a library; None if unknown."""
    if sys.platform == "darwin":
        command = ["atos", "-o", str(library), hex(offset - 1)]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        match = re.search(r"\((\S+):(\d+)\)", process.stdout)
        return Line(match[1], int(match[2])) if match else None
    starts, lines = _elf_lines(library)
    index = bisect.bisect_right(starts, offset - 1) - 1
    return lines[index] if index >= 0 else None


@functools.lru_cache(maxsize=64)
def _elf_lines(library: Path) -> tuple[list[int], list[Line | None]]:
    """Return (ascending offsets in a library at which lines begin, these lines)."""
    from elftools.elf.elffile import ELFFile

    rows: list[tuple[int, Line | None]] = []
    with library.open("rb") as file:
        debugging = ELFFile(file).get_dwarf_info()
        programs = (debugging.line_program_for_CU(unit) for unit in debugging.iter_CUs())
        for program in filter(None, programs):
            names = program["file_entry"]
            base = 0 if program["version"] >= 5 else 1
            last = 0  # code without a line number gets the previous one
            caller = None  # inlined functions of the emulator get the line before them
            for state in (entry.state for entry in program.get_entries() if entry.state):
                line = None
                if not state.end_sequence:
                    name = names[state.file - base].name.decode("utf-8", "replace")
                    last = state.line or last
                    line = Line(Path(name).name, last)
                    line = caller = caller if caller and line.file in _HEADERS else line
                else:
                    caller = None
                rows.append((state.address, line))
    rows.sort(key=lambda row: row[0])
    return [start for start, _ in rows], [line for _, line in rows]


@functools.lru_cache(maxsize=256)
def variables(library: Path) -> tuple[Known, ...]:
    """Return a kernel's variables, with offsets in the library as addresses; empty on macOS.

    The space of a variable follows from cuda_on_host.h: a section of its own; the scope of a
    function for shared variables; protected visibility for constants; else a device variable.
    """
    known = []
    for symbol, section in _symbols(library):
        size, name = symbol["st_size"], symbol.name
        writable = section["sh_flags"] & _WRITE
        if symbol["st_info"]["type"] != "STT_OBJECT" or not size or not writable:
            continue
        if name.startswith(("_ZGV", "_ZTV", "__", "_DYNAMIC", "completed.")):  # the compiler's
            continue
        unfilled, space = section.name == "emulator_unfilled", Space.DEVICE_VARIABLE
        if section.name == "emulator_host":
            space = Space.HOST
        elif unfilled or symbol["st_other"]["visibility"] == "STV_PROTECTED":
            space = Space.CONSTANT
        elif name.startswith("_ZZ") or section.name == "emulator_shared":
            space = Space.SHARED
        known.append(
            Known(
                *(plain(name), size, symbol["st_value"]),
                space=space,
                writable=space in (Space.SHARED, Space.DEVICE_VARIABLE),
                initialised=space is not Space.SHARED and not unfilled,
            )
        )
    return tuple(known)


def function_size(library: Path, offset: int) -> int:
    """Return the size of the function at an offset in the library; 0 if unknown."""
    functions = (one for one, _ in _symbols(library) if one["st_info"]["type"] == "STT_FUNC")
    return next((int(one["st_size"]) for one in functions if one["st_value"] == offset), 0)


@functools.lru_cache(maxsize=4)
def _symbols(library: Path) -> list[tuple[Any, Any]]:
    """Return pairs of (symbol, section) of a library."""
    if sys.platform == "darwin":
        return []
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

    with library.open("rb") as file:
        elf = ELFFile(file)
        table, sections = elf.get_section_by_name(".symtab"), list(elf.iter_sections())
        symbols = table.iter_symbols() if isinstance(table, SymbolTableSection) else ()
        defined = [symbol for symbol in symbols if isinstance(symbol["st_shndx"], int)]
        return [(symbol, sections[symbol["st_shndx"]]) for symbol in defined]


def plain(mangled: str) -> str:
    """Return the unqualified name of a mangled one: `partial` for `_ZZ9accel_gcnE7partial`."""
    if mangled.startswith("_ZN"):  # in a namespace
        remaining, name = mangled[3:].lstrip("K"), ""
        while match := re.match(r"L?(\d+)", remaining):
            begin, end = match.end(), match.end() + int(match[1])
            name, remaining = remaining[begin:end], remaining[end:]
        return name or mangled
    for pattern in (r"_ZZ.*E(\d+)(\w+?)(_\d+)?", r"_ZL?(\d+)(\w+)"):
        if match := re.fullmatch(pattern, mangled):
            return match[2][: int(match[1])]
    return mangled
