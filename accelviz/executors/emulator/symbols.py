"""What the debugging information of a compiled kernel tells: source lines, shared arrays."""

from __future__ import annotations

import bisect
import functools
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

_SECTION = "emulator_shared"


class Line(NamedTuple):
    """A place in the source: file name without folder, and line from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@functools.lru_cache(maxsize=4096)
def line_of(library: Path, offset: int) -> Line | None:
    """Return the line of the instruction before `offset`, a return address; None if unknown."""
    if sys.platform == "darwin":
        return _ask_atos(library, offset - 1)
    starts, lines = _elf_lines(library)
    place = bisect.bisect_right(starts, offset - 1) - 1
    return lines[place] if place >= 0 else None


@functools.lru_cache(maxsize=64)
def _elf_lines(library: Path) -> tuple[list[int], list[Line | None]]:
    """Return the offsets of a library at which a line begins, ascending, and the lines."""
    from elftools.elf.elffile import ELFFile

    found: list[tuple[int, Line | None]] = []
    with library.open("rb") as file:
        debugging = ELFFile(file).get_dwarf_info()
        programs = (debugging.line_program_for_CU(unit) for unit in debugging.iter_CUs())
        for program in filter(None, programs):
            names = program["file_entry"]
            base = 0 if program["version"] >= 5 else 1
            for state in (entry.state for entry in program.get_entries() if entry.state):
                line = None
                if not state.end_sequence:
                    name = names[state.file - base].name.decode("utf-8", "replace")
                    line = Line(Path(name).name, state.line)
                found.append((state.address, line))
    found.sort(key=lambda row: row[0])
    return [start for start, _ in found], [line for _, line in found]


def _ask_atos(library: Path, offset: int) -> Line | None:
    answer = subprocess.run(
        ["atos", "-o", str(library), hex(offset)], capture_output=True, text=True, check=False
    )
    found = re.search(r"\((\S+):(\d+)\)", answer.stdout)
    return Line(found[1], int(found[2])) if found else None


class SharedArray(NamedTuple):
    """A `__shared__` array: its name, where it lies in the library, its bytes."""

    name: str
    offset: int
    size: int


@functools.lru_cache(maxsize=64)
def shared_arrays(library: Path) -> tuple[SharedArray, ...]:
    """Return the static shared arrays of a kernel; none where the format does not tell sizes."""
    if sys.platform == "darwin":
        return ()
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

    with library.open("rb") as file:
        elf = ELFFile(file)
        section = elf.get_section_index(_SECTION)
        table = elf.get_section_by_name(".symtab")
        if not section or not isinstance(table, SymbolTableSection):
            return ()
        return tuple(
            SharedArray(_plain(symbol.name), symbol["st_value"], symbol["st_size"])
            for symbol in table.iter_symbols()
            if symbol["st_shndx"] == section and symbol["st_size"]
        )


def _plain(mangled: str) -> str:
    """Take a variable's own name out of a mangled local one: `_ZZ9accel_gcnE7partial`."""
    local, anywhere = r"_ZZ.*E(\d+)(\w+?)(_\d+)?", r"_ZL?(\d+)(\w+)"
    found = re.fullmatch(local, mangled) or re.fullmatch(anywhere, mangled)
    return found[2][: int(found[1])] if found else mangled
