"""Translation of CUDA text to C++ for the host's compiler."""

from __future__ import annotations

import functools
import re

from accelviz.emulator.host_code import host_function, without_host_code
from accelviz.emulator.ptx import translated_ptx
from accelviz.emulator.source import (
    SPECIFIER,
    device_variables,
    scan,
    separated,
    without_template_arguments,
)
from accelviz.errors import KernelError

#: `alignas` behind a specifier, where g++ refuses it, or in a macro, which may stand there.
_ALIGNAS = re.compile(
    r"((?<!\bstatic )\b(?:__shared__|__device__|__constant__|__managed__)\s+"
    r"|^[^\S\n]*#\s*define\b[^\n]*?)\balignas\b",
    re.M,
)
#: The beginning of a declaration before which an attribute may stand.
_BEGIN = re.compile(r"static\b|const\b|volatile\b|__|alignas\b")
#: Text before parentheses that are not the arguments of a call.
_NO_CALL = re.compile(r"(?:[^\w\s\])>]|\breturn)\s*\Z")
_DEFINED_TYPE = re.compile(r"\b(?:struct|class|union)\b[^{]*\{\}")
#: Declarators of local variables, the first one after labels and the type. The excluded words
#: begin other statements, and declarations of what is not a variable of a thread.
_DECLARATOR = r"(?P<name>[A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*(?P<value>[=({].*)?"
_FIRST_LOCAL = re.compile(
    # All labels; a possessive quantifier of a group is wrong before Python 3.11.5.
    r"(?=(?P<labels>(?:(?:case\b(?:[^:]|::)*|\w+)\s*:(?!:)\s*)*))(?P=labels)"
    r"(?!(?:return|goto|delete|throw|else|do|case|using|typedef|extern|static|constexpr|friend)\b"
    r"|(?:struct|class|union|enum|typename)\s+\w+\s*$)"
    rf"(?:::\s*)?[A-Za-z_][\w:\s*]*?[\s*]{_DECLARATOR}",
    re.S,
)
_FURTHER_LOCAL = re.compile(rf"[\s*]*{_DECLARATOR}", re.S)
#: A host variable at file scope that is not const.
_VARIABLE = re.compile(
    r"(?:static\s+|volatile\s+)*(?:unsigned\s+|signed\s+)?"
    r"(?:char|short|int|long|long\s+long|float|double|bool|size_t|u?int(?:8|16|32|64)_t|unsigned"
    r"|(?:char|short|int|float|double)[1-4]|dim3|half)"
    r"(?:\s+|\s*\*+\s*)(\w+)\s*(?:[\[=,].*)?",
    re.S,
)


@functools.lru_cache(maxsize=64)
def translated(source: str, file: str) -> str:
    """Translate CUDA text to C++ by inserting macros of cuda_on_host.h; line numbers do not change.

    Code of the host is left out, see `without_host_code`.
    `extern __shared__ T name[]` becomes a pointer to the fixed address of dynamic shared memory.
    The macros let the emulator recognise

    - EMULATOR_FILE_SHARED: shared variables at file scope, by a section of the library;
    - EMULATOR_UNFILLED: constants without a value, by a section; to read one before the host has
      written it is an error;
    - EMULATOR_HOST_VARIABLE: variables of the host, by a section; device code must not use them;
    - EMULATOR_ON_HOST: functions of the host, by a call that is an error in device code;
    - EMULATOR_UNDEFINED: local variables without an initial value, which get undefined bits.

    Raises
    ------
    KernelError
        If a shared variable has an initial value, which is an error in CUDA.
    """
    source = translated_ptx(without_host_code(source, not file.endswith(".cu")))
    source = re.sub(r"\b__shared__\s+extern\b", "extern __shared__", source)
    source = _ALIGNAS.sub(r"\1EMULATOR_ALIGNED", source)
    dynamic = r"\bextern\b([^;{}\"]*?)\b__shared__\b([^;{}\"]*?)\b(\w+)\s*\[\s*\]"
    source = re.sub(rf"{dynamic}\s*;", r"DYNAMIC_SHARED(\1 \2, \3);", source)
    rows = rf"{dynamic}\s*((?:\[[^\];{{}}]+\]\s*)+);"
    source = re.sub(rows, r"EMULATOR_DYNAMIC_ROWS((\4), \3, \1 \2);", source)
    # Remove `static` beside `__shared__`: that macro contains it.
    static = r"\bstatic\b(?=[^;{}()\"]*\b__shared__\b)|(\b__shared__\b[^;{}()\"=]*?)\bstatic\b"
    source = re.sub(static, r"\1", source)
    macros = {*re.findall(r"^[^\S\n]*#[^\S\n]*define\s+(\w+)", source, re.M)}
    changes: list[tuple[int, int, str]] = []  # (begin, end, new text)
    open_parentheses: list[int] = []
    for token in scan(source):
        match, text, scope = token.match, token.text, token.scopes[-1]
        start, end = match.span()
        if text == "(":
            open_parentheses.append(start)
        elif text == ")" and open_parentheses:
            begin = open_parentheses.pop()
            # g++ 12 with checks of shifts miscompiles (c ? p : q)[i] as c ? p[i] : q[i]. The macro
            # makes (c ? p : q) the argument of a function that returns it.
            is_conditional = "?" in source[begin:start] and _NO_CALL.search(source[:begin])
            if is_conditional and re.match(r"\s*\[", source[end:]):
                changes.append((begin, begin, "EMULATOR_WHOLE"))
        elif match["shared"]:
            if value := re.match(r"[^;{}()]*?(\w+)\s*(?:\[[^\]]*\]\s*)*=", source[end:]):
                line = source.count("\n", 0, start) + 1
                problem = f"__shared__ {value[1]} is given a value where it is declared"
                fix = "declare it without, and let the threads write it before a __syncthreads()"
                raise KernelError(f"{file}:{line}", f"{problem}, which CUDA refuses", fix)
            if token.in_file:
                changes.append((start, end, "EMULATOR_FILE_SHARED"))
        elif match["constant"] and token.in_file:
            declaration, before = source[end:].partition(";")[0], token.statement.split()
            if not re.search(r"[={]|\bconst\b", declaration) and "const" not in before:
                changes.append((start, end, "EMULATOR_UNFILLED"))
        elif text == "{" and scope.kind in ("file", "class"):
            if name := host_function(token.statement, macros, source):
                changes.append((end, end, f'EMULATOR_ON_HOST("{name}");'))
        elif text == ";" and token.in_file and not scope.parentheses:
            words = re.findall(r"\w+", token.statement)
            if _VARIABLE.fullmatch(token.statement) and macros.isdisjoint(words):
                changes.append((token.begin, token.begin, "EMULATOR_HOST_VARIABLE "))
            is_local = "static" in words or not all(one.name for one in token.scopes[1:])
            if is_local and _BEGIN.match(token.statement) and device_variables(token.statement):
                # Otherwise the compiler drops a variable that the kernel only reads.
                changes.append((token.begin, token.begin, "__attribute__((used)) "))
        elif text == ";" and scope.kind == "function" and not scope.parentheses:
            marks = [f" EMULATOR_UNDEFINED({name});" for name in _unwritten_locals(token.statement)]
            changes.append((end, end, "".join(marks)))
    for begin, end, text in sorted(changes, reverse=True):
        source = source[:begin] + text + source[end:]
    return source


def _unwritten_locals(statement: str) -> list[str]:
    """Return the local variables that a statement declares without an initial value."""
    statement = SPECIFIER.sub(" ", _DEFINED_TYPE.sub("int ", statement))
    first, *others = separated(without_template_arguments(statement))
    match = _FIRST_LOCAL.fullmatch(first)
    if match is None or "__shared__" in first:
        return []
    matches = [match, *map(_FURTHER_LOCAL.fullmatch, others)]
    return [match["name"] for match in matches if match and match["value"] is None]
