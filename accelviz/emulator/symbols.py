"""Source lines and variables of a compiled kernel, from its debugging information and symbols."""

from __future__ import annotations

import bisect
import functools
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from accelviz.emulator.memory import Known, Space

#: Names of the emulator's own files.
_HEADERS = {path.name for path in (Path(__file__).parent / "host").rglob("*") if path.is_file()}
_HEADERS.add("entry")  # of `build`
#: ELF's flag SHF_WRITE of a writable section.
_WRITE = 1
#: End of the mangled name of a constructor or an assignment that copies or moves.
_COPY = re.compile(r"(?:C[1-4]|aS)E(?:RK|O)S[0-9A-Z]*_$")


class Line(NamedTuple):
    """A source line: file name without folder, and line number from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@functools.lru_cache(maxsize=4096)
def line_of(library: Path, offset: int) -> Line | None:
    """Return the user's line of the call that returns to `offset`; None if unknown."""
    lines = lines_to(library, (offset,))
    return lines[0] if lines else None


def lines_to(library: Path, offsets: Sequence[int]) -> list[Line]:
    """Return the user's lines of the calls that return to offsets in a library.

    Functions that the compiler has inlined count as calls. Lines in the emulator's headers are left
    out if others follow.
    """
    if sys.platform == "darwin":
        lines = [line for offset in offsets for line in _atos_lines(library, offset)]
    else:
        debugging = _Debugging.of(library)
        lines = [line for offset in offsets for line in debugging.lines_at(offset - 1)]
    of_user = [line for line in lines if line.file not in _HEADERS]
    return of_user or lines[:1]


def _atos_lines(library: Path, offset: int) -> list[Line]:
    command = ["atos", "-i", "-o", str(library), hex(offset - 1)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    return [Line(file, int(line)) for file, line in re.findall(r"\((\S+):(\d+)\)", process.stdout)]


@dataclass(frozen=True)
class _Debugging:
    """The source lines of a library."""

    starts: list[int]  # ascending offsets at which lines begin
    lines: list[Line | None]
    functions: list[_Function]  # inlined ones and copies, the outer first

    def lines_at(self, offset: int) -> list[Line]:
        """Return the line at an offset, and those of the inlined calls around it, outwards."""
        index = bisect.bisect_right(self.starts, offset) - 1
        line = self.lines[index] if index >= 0 else None
        if line is None:
            return []
        lines: list[Line] = []
        next_line: Line | None = line
        for one in reversed(self.functions):
            if one.begin <= offset < one.end:
                lines += [next_line] if next_line and not one.is_copy else []
                next_line = one.call
        return [*lines, *([next_line] if next_line else [])] or [line]

    @classmethod
    @functools.lru_cache(maxsize=64)
    def of(cls, library: Path) -> _Debugging:
        from elftools.elf.elffile import ELFFile

        rows: list[tuple[int, Line | None]] = []
        functions: list[_Function] = []
        with library.open("rb") as file:
            debugging = ELFFile(file).get_dwarf_info()
            for unit in debugging.iter_CUs():
                program = debugging.line_program_for_CU(unit)
                if program is None:
                    continue
                # The first file has the number 0 since DWARF 5.
                names = {
                    number: Path(entry.name.decode("utf-8", "replace")).name
                    for number, entry in enumerate(
                        program["file_entry"], 0 if program["version"] >= 5 else 1
                    )
                }
                last = 0  # code without a line number gets the previous one
                for state in (entry.state for entry in program.get_entries() if entry.state):
                    last = state.line or last
                    line = None if state.end_sequence else Line(names[state.file], last)
                    rows.append((state.address, line))
                functions += _functions(debugging, unit, names)
        rows.sort(key=lambda row: row[0])
        return cls([start for start, _ in rows], [line for _, line in rows], functions)


class _Function(NamedTuple):
    """Code of a function.

    `call` is the line that calls it if it is inlined. `is_copy` marks a copy of a structure that
    the compiler writes: its line is the structure's, and the access is one of the calling line.
    """

    begin: int
    end: int
    call: Line | None
    is_copy: bool


def _is_implicit_copy(entry: Any) -> bool:
    while True:
        values = entry.attributes
        if "DW_AT_artificial" in values and "DW_AT_linkage_name" in values:
            return bool(_COPY.search(values["DW_AT_linkage_name"].value.decode("ascii", "replace")))
        origins = [
            name for name in ("DW_AT_abstract_origin", "DW_AT_specification") if name in values
        ]
        if not origins:
            return False
        entry = entry.get_DIE_from_attribute(origins[0])


def _functions(debugging: Any, unit: Any, names: Mapping[int, str]) -> Iterator[_Function]:
    """Yield the inlined functions and the copies of a unit, the outer first."""
    lists = debugging.range_lists()
    for entry in unit.iter_DIEs():
        values, call = entry.attributes, None
        if entry.tag == "DW_TAG_inlined_subroutine" and "DW_AT_call_line" in values:
            file = names.get(values["DW_AT_call_file"].value, "")
            call = Line(file, values["DW_AT_call_line"].value)
        elif entry.tag != "DW_TAG_subprogram":
            continue
        is_copy = _is_implicit_copy(entry)
        if not call and not is_copy:
            continue
        if "DW_AT_high_pc" in values:
            begin, end = values["DW_AT_low_pc"].value, values["DW_AT_high_pc"]
            is_length = end.form.startswith("DW_FORM_data")
            yield _Function(begin, end.value + (begin if is_length else 0), call, is_copy)
        elif "DW_AT_ranges" in values:
            top = unit.get_top_DIE().attributes
            base = top["DW_AT_low_pc"].value if "DW_AT_low_pc" in top else 0
            for part in lists.get_range_list_at_offset(values["DW_AT_ranges"].value, unit):
                if hasattr(part, "base_address"):
                    base = part.base_address
                else:
                    first = 0 if part.is_absolute else base
                    limits = part.begin_offset + first, part.end_offset + first
                    yield _Function(*limits, call, is_copy)


@functools.lru_cache(maxsize=256)
def variables(library: Path, others: frozenset[str] = frozenset()) -> tuple[Known, ...]:
    """Return a kernel's variables, with offsets in the library as addresses; empty on macOS.

    `others` are names of kernels whose shared variables are no memory of this kernel.
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
            if _function_of(name) in others:
                continue
        known.append(
            Known(
                *(plain(name), size, symbol["st_value"]),
                space=space,
                writable=space in (Space.SHARED, Space.DEVICE_VARIABLE),
                initialised=space is not Space.SHARED and not unfilled,
            )
        )
    return tuple(known)


def _function_of(mangled: str) -> str:
    """Return the unqualified name of the function that has a local variable."""
    remaining, name = mangled.removeprefix("_ZZ"), ""
    is_nested, remaining = remaining.startswith("N"), remaining.removeprefix("N")
    while match := re.match(r"L?(\d+)", remaining):
        begin, end = match.end(), match.end() + int(match[1])
        name, remaining = remaining[begin:end], remaining[end:] if is_nested else ""
    return name


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
