"""A student's CUDA text: expanded by the preprocessor, parsed, refused where it leaves CUDA.

The text that was parsed is the one that is compiled, so no macro hides a construct. The compiled
library may import the functions of the emulator and of mathematics, and no other. It runs in the
process of `remote.run_kernels`, as does all of this.
"""

from __future__ import annotations

import functools
import itertools
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from accelviz.emulator.build import Kernel, build, host_macros
from accelviz.emulator.compiler import require_compiler, run
from accelviz.emulator.host_code import without_host_code
from accelviz.emulator.target import DEFAULT, target_macros
from accelviz.errors import DeviceUnavailable, KernelError, pip_install

FILE = "yours.cu"
#: Longest text of a kernel; longest once macros are expanded; most brackets in each other, as clang
#: has it: parsers take a time that grows as the square of them.
MAX_CHARACTERS, _MAX_EXPANDED, _MAX_DEPTH = 50_000, 200_000, 256
#: Headers that a kernel may include. None has a class of the emulator's namespace: calls with such
#: an argument would find all functions of that namespace.
HEADERS = (
    *("common.cuh", "vectors.cuh", "cooperative_groups.h", "cooperative_groups/reduce.h"),
    *("cooperative_groups/scan.h", "cuda_runtime.h", "math_constants.h"),
)
_INCLUDES = {f"#include <{header}>" for header in HEADERS}
#: Headers that a kernel may include without effect: it has what CUDA takes from those of C.
_NEEDLESS_HEADERS = (
    *("assert.h", "cassert", "cfloat", "climits", "cmath", "cstddef", "cstdint", "cstdio"),
    *("cstring", "cuda.h", "cuda_fp16.h", "cuda_fp16.hpp", "cuda_runtime_api.h"),
    *("device_functions.h", "device_launch_parameters.h", "float.h", "limits.h", "math.h"),
    *("stddef.h", "stdint.h", "stdio.h", "string.h", "vector_functions.h", "vector_types.h"),
)
#: Attributes of C++ without effect, which are blanked out before the text is parsed.
_NEEDLESS_ATTRIBUTES = re.compile(
    r"\[\[\s*(?:maybe_unused|nodiscard|fallthrough|likely|unlikely)\s*\]\]"
)
#: Before the text: what is inlined by force into a function of the emulator would not be watched.
PREFIX = f'#undef __forceinline__\n#define __forceinline__ inline\n#line 1 "{FILE}"\n'
_EXPECTED = (
    "write CUDA without attributes, assembly, pragmas, host code and what cannot be watched; give "
    "a variable of that name another one"
)
#: Words of CUDA that the grammar of C++ does not have; blank in the parsed copy.
_QUALIFIERS = re.compile(
    r"\b__(?:device|host|global|forceinline|noinline|inline|shared|constant|managed|restrict|"
    r"grid_constant)__\b|\b__(?:inline|restrict|align__\(\d+\))(?!\w)"
    r"|\b__launch_bounds__\s*\((?:[\w\s,+*/:-]|\([\w\s,+*/:-]*\))*\)"
)
#: Constructs of the grammar that are refused, with their names for people.
_REFUSED = {
    "attribute_declaration": "an attribute",
    "attribute_specifier": "an attribute",
    "ms_declspec_modifier": "an attribute",
    "gnu_asm_expression": "assembly",
    "raw_string_literal": "a raw string",
    "seh_try_statement": "host code",
}
#: Functions of C that the emulator's headers import, and that CUDA lacks.
_OF_HEADERS = "snprintf|strncat|strlen|memcmp|fflush|stdout|fe[sg]etround"
#: Words that are refused wherever they stand, also in literals: of attributes and assembly, of the
#: compiler (parts of its complex numbers are not watched), of the emulator, of mangled names;
#: functions of C that the compiler replaces by stores and loads, which would not be watched; and
#: what goes round a macro of the emulator's.
_WORDS = re.compile(
    r"\b(?:__attribute(?:__)?|_*asm(?:__)?|__declspec|__extension__|__typeof\w*|__thread|"
    r"_Complex|__(?:complex|real|imag)(?:__)?|"
    r"__(?:builtin|sync_|atomic|tsan|sanitizer|ubsan|cxa|gxx|cyg|gnu_cxx)_?\w*|_Z\w+|"
    r"std|emulator\w*|EMULAT\w*|exit|abort|__\w+_chk|"
    r"st[rp]n?cpy|strn?cat|strn?cmp|strnlen|strr?chr|strpbrk|strc?spn|strstr|v?sn?printf|mempcpy|"
    r"bcopy|bcmp|bzero|"
    rf"modff?|frexpf?|remquof?|lgamma\w*_r|(?:printf|sincosf?)\b(?!\s*\()|{_OF_HEADERS})\b"
    r"|\[\s*\[|<:|%:|\bgoto\s*\*"
)
#: What a library imports: the emulator and its checks, startup of libraries, standard output.
_IMPORTS = re.compile(
    r"_ZN8emulator\w+|_ZNSt8ios_base4Init\w+|__(?:tsan|ubsan|sanitizer_cov)_\w+|__cxa_\w+|"
    r"__gxx_personality_v0|_Unwind_Resume|__stack_chk_fail|"
    r"_?_?(?:thread|block)Idx|(?:block|grid)Dim|warpSize|printf|mem(?:cpy|set|move)|"
    rf"__fpclassifyf?|__isnanf?|__isinff?|__signbitf?|{_OF_HEADERS}"
)
#: Mathematics of the C library that CUDA has too, but for functions that store a second result.
_MATHEMATICS = re.compile(
    r"(?:a?(?:cos|sin|tan)h?|atan2|cbrt|ceil|copysign|erfc?|exp(?:10|2|m1)?|fabs|fdim|floor|"
    r"fm(?:a|ax|in|od)|hypot|ilogb|[jy][01n]|ldexp|lgamma|ll?r(?:int|ound)|log(?:10|1p|2|b)?|"
    r"nearbyint|nextafter|pow|remainder|rint|round|scalbl?n|sincos|sqrt|tgamma|trunc)f?"
)
#: Files of C++'s library, whose functions a kernel finds if an argument is of a class of it; those
#: whose functions neither load nor store.
_OF_STANDARD_LIBRARY = re.compile(r"include/c\+\+/|libcxx/include/")
_HARMLESS_SOURCE = re.compile(r"math|std_abs\.h|initializer_list")
#: Code that runs when a library is loaded, before anything is watched.
_AT_LOAD = re.compile(r"_GLOBAL__(?:sub_)?I_\w+|__cxx_global_var_init\w*")


def expanded(code: str, constants: tuple[tuple[str, Any], ...]) -> str:
    """Return a kernel's text with its macros expanded, on the same lines, once it has been parsed.

    Raises
    ------
    KernelError
        If it has a construct that is refused, or is no C++; the message has its line.
    """
    if type(code) is not str or len(code) > MAX_CHARACTERS:
        raise KernelError(FILE, "the kernel is no text of usual length", "let `code` be a text")
    return _expanded(code, constants)


@functools.lru_cache(maxsize=64)
def _expanded(code: str, constants: tuple[tuple[str, Any], ...]) -> str:
    text = _NEEDLESS_ATTRIBUTES.sub("", _without_macros(code, dict(constants)))
    depths = itertools.accumulate((letter in "([{") - (letter in ")]}") for letter in text)
    if len(text) > _MAX_EXPANDED or max(depths, default=0) > _MAX_DEPTH:
        problem = "it is too long or nested too deeply once its macros are expanded"
        limits = f"at most {_MAX_EXPANDED:,} letters, and {_MAX_DEPTH} brackets in each other"
        raise KernelError(FILE, problem, limits)
    of_device = without_host_code(text).split("\n")
    of_host = {
        number
        for number, line in enumerate(text.split("\n"), 1)
        if line != of_device[number - 1] and "#include" not in line
    }
    for line, problem in sorted({*_problems(text), *((line, "host code") for line in of_host)}):
        raise KernelError(f"{FILE}:{line}", f"it has {problem}", _EXPECTED)
    return text


def _without_macros(code: str, constants: Mapping[str, Any]) -> str:
    """Expand macros and conditions; `#include` is the only directive that is left.

    `#pragma unroll` has no effect in the emulator. A macro may put it on the line of its loop, so
    it is dropped. The headers are empty meanwhile, so their macros are not expanded, and no macro
    of the host's compiler is defined.
    """
    compiler = require_compiler()
    macros = {**target_macros(DEFAULT), **constants}
    with tempfile.TemporaryDirectory() as name:
        folder, result = Path(name), Path(name, "expanded")
        for header in (*HEADERS, *_NEEDLESS_HEADERS):
            (folder / "include" / header).parent.mkdir(parents=True, exist_ok=True)
            mark = f"#pragma header {header}\n" if header in HEADERS else ""
            (folder / "include" / header).write_text(mark)
        (folder / FILE).write_text(code, "utf-8")
        options = ["-E", "-undef", "-nostdinc", "-x", "c++", f"-I{folder / 'include'}"]
        options += [f"-D{name}={value}" for name, value in macros.items()]
        try:
            run(compiler, [*options, str(folder / FILE), "-o", str(result)], FILE, code)
        except KernelError as error:
            if match := re.search(r"(\S+): No such file|'(\S+)' file not found", error.problem):
                problem = f"it includes {match[1] or match[2]}"
                raise KernelError(FILE, problem, f"include only {', '.join(HEADERS)}") from None
            raise
        lines = result.read_text("utf-8", "replace").split("\n")
    texts = [""] * (code.count("\n") + 2)
    number, file, header = 1, FILE, ""
    for line in lines:
        if marker := re.match(r'#(?:line)? (\d+) "([^"]*)"', line):
            number, file = int(marker[1]), Path(marker[2]).name
            if header and file == FILE and 1 < number <= len(texts):  # behind the #include
                texts[number - 1], header = f"#include <{header}>", ""
            continue
        pragma = re.match(r"\s*#\s*pragma\s+(\w+) ?(\S*)", line)
        if file == FILE and 0 < number < len(texts):
            if pragma and pragma[1] != "unroll":
                raise KernelError(f"{FILE}:{number}", f"it has {line.strip()!r}", _EXPECTED)
            if not pragma:
                texts[number] += f" {line}" if texts[number] else line
        elif pragma and pragma[1] == "header" and pragma[2] in HEADERS:
            header = pragma[2]
        elif line.strip() and not file.startswith("<"):
            raise KernelError(FILE, "it has text of another file (#line)", _EXPECTED)
        number += 1
    return "\n".join(texts[1:])


@functools.cache
def _parser() -> Any:
    try:
        import tree_sitter
        import tree_sitter_cpp
    except ImportError as error:
        raise DeviceUnavailable(
            "tree-sitter-cpp",
            f"your kernel was NOT tried, and these points say nothing about it: {error}",
            f"{pip_install('accelviz[lab]')}, and run this cell again",
        ) from error
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))


def _problems(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each construct that is refused."""
    for match in _WORDS.finditer(text):
        word = "an attribute" if match[0].startswith("[") else repr(match[0])
        yield text.count("\n", 0, match.start()) + 1, word
    for match in re.finditer(r"[^\W\d]\w*", text):
        if match[0] in host_macros():
            yield text.count("\n", 0, match.start()) + 1, f"{match[0]!r}, a macro of the host's"
    blank = _QUALIFIERS.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    data, lines = blank.encode(), blank.split("\n")
    nodes, uncovered = [_parser().parse(data).root_node], bytearray(data)
    while nodes:
        node = nodes.pop()
        line = node.start_point[0] + 1
        is_literal, span = node.type.endswith("_literal"), slice(node.start_byte, node.end_byte)
        nodes += [] if is_literal else node.children
        if node.type in _REFUSED:
            yield line, _REFUSED[node.type]
        if not node.children or is_literal:
            uncovered[span] = b" " * len(uncovered[span])
            # not at its begin, too: what stands before it may be left out before it is compiled
            if b"#" in data[span] and not is_literal and lines[line - 1] not in _INCLUDES:
                yield line, "a directive"
    if left := re.search(rb"\S", uncovered):
        start = left.start()
        part = data[start : start + 40].decode("utf-8", "replace").split("\n")[0]
        yield data.count(b"\n", 0, start) + 1, f"text that cannot be read as C++: {part!r}"


def check_imports(kernel: Kernel) -> None:
    """Raise KernelError if a kernel's library runs when loaded, or calls no function of CUDA's."""
    imported, defined, sources = _symbols(build(kernel))
    for word in sorted(imported):
        if not (_IMPORTS.fullmatch(word) or _MATHEMATICS.fullmatch(word)):
            raise KernelError(FILE, f"it uses {word!r}", "call CUDA's functions and your own")
    if any(map(_AT_LOAD.match, defined)):
        problem = "it has a variable outside of functions whose initial value needs code"
        raise KernelError(FILE, problem, "let it be a constant, as in CUDA")
    for source in sorted(sources):
        if _OF_STANDARD_LIBRARY.search(source) and not _HARMLESS_SOURCE.search(source):
            problem = f"it uses a function of C++ that CUDA lacks, of {source.rpartition('/')[2]}"
            raise KernelError(FILE, problem, "call CUDA's functions and your own")


@functools.lru_cache(maxsize=64)
def _symbols(library: Path) -> tuple[set[str], set[str], set[str]]:
    """Return what a library imports and defines, and the files of its code; none on macOS."""
    if sys.platform == "darwin":
        return set(), set(), set()
    with library.open("rb") as file:
        elf: Any = ELFFile(file)
        tables = [elf.get_section_by_name(name).iter_symbols() for name in (".dynsym", ".symtab")]
        dynamic, static = ([*table] for table in tables)
        dwarf = elf.get_dwarf_info()
        programs = filter(None, map(dwarf.line_program_for_CU, dwarf.iter_CUs()))
        sources = {source for program in programs for source in _sources(program)}
    imported = {symbol.name for symbol in dynamic if symbol["st_shndx"] == "SHN_UNDEF"}
    defined = {symbol.name for symbol in static if symbol["st_shndx"] != "SHN_UNDEF"}
    return imported - {""}, defined, sources


def _sources(program: Any) -> Iterator[str]:
    """Yield the paths of the files that a DWARF line program has lines of."""
    first = int(program["version"] < 5)
    for number in {line.state.file for line in program.get_entries() if line.state}:
        entry = program["file_entry"][number - first]
        folders = [b"", *program["include_directory"]] if first else program["include_directory"]
        yield f"{folders[entry.dir_index].decode()}/{entry.name.decode()}"
