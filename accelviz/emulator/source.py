"""Names in the text of a kernel's source, and the changes to it before it is compiled."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from accelviz.errors import KernelError

#: What compilers add to functions, in the way of finding their names.
_ATTRIBUTES = re.compile(
    r"__(?:launch_bounds|cluster_dims|attribute|maxnreg)__\s*\([^;{]*?\)(?=\s*\w)"
)
_KERNEL = re.compile(r"__global__\s[^;{}()]*?\b(?!__)(\w+)\s*$")
#: What opens and ends scopes and statements, and what only looks so.
_TOKENS = re.compile(
    r"(?P<skip>//[^\n]*|/\*.*?\*/|^[^\S\n]*\#(?:\\\n|[^\n])*)"
    r"|(?P<text>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')"
    r"|(?P<namespace>\bnamespace\b\s*(?P<name>[\w:]*)\s*\{|\bextern\s*\"C\"\s*\{)"
    r"|(?P<shared>\b__shared__\b)|(?P<constant>\b__constant__\b)|(?P<mark>[{};()])",
    re.S | re.M,
)
#: A function or constructor whose body follows, without what makes it the device's.
_FUNCTION = re.compile(
    r"(?:template\s*<.*>\s*)?(?:\w+\s*:\s)?[\w:<>,\s*&]*?\b(\w+)\s*\([^{}=\[\]]*\)\s*(?:const\s*)?",
    re.S,
)
_DEVICE = re.compile(r"\b(?:__device__|__global__|constexpr|class|struct|union|enum|operator)\b")
_CLASS = re.compile(r"\b(?:class|struct|union)\b[^()]*$")
_OF_EITHER = {"__host__", "__forceinline__", "__noinline__", "__inline__", "__restrict__"}
#: What stands before parentheses that hold no arguments.
_NO_CALL = re.compile(r"(?:[^\w\s\])>]|\breturn)\s*\Z")
#: A variable outside of functions that is not the device's, and that a function can change.
_VARIABLE = re.compile(
    r"(?:static\s+|volatile\s+)*(?:unsigned\s+|signed\s+)?"
    r"(?:char|short|int|long|long\s+long|float|double|bool|size_t|u?int(?:8|16|32|64)_t|unsigned"
    r"|(?:char|short|int|float|double)[1-4]|dim3|half)"
    r"(?:\s+|\s*\*+\s*)(\w+)\s*(?:[\[=,].*)?",
    re.S,
)


@dataclass
class _Scope:
    """Braces that are open, or the whole file."""

    kind: str  # "file" (namespaces too), "class", "function", or "value" of an initialiser
    name: str = ""
    line: int = 0
    begin: int = 0  # where the statement begins that is being read
    head: list[str] = field(default_factory=list)  # the statement so far, without comments
    parentheses: int = 0


class _Token(NamedTuple):
    """A token in its scopes, and what was read of the statement that it is in."""

    match: re.Match[str]
    scopes: Sequence[_Scope]
    statement: str
    begin: int

    @property
    def text(self) -> str:
        return self.match[0]

    @property
    def in_file(self) -> bool:
        """Whether it is in no class, function or value."""
        return self.scopes[-1].kind == "file"

    def named(self, name: str) -> str:
        """Put the namespaces that it is in before a name."""
        return "::".join([*(scope.name for scope in self.scopes if scope.name), name])


def _scan(source: str) -> Iterator[_Token]:
    """Go through a text, scope by scope; a brace that opens one is told before it is opened."""
    scopes, end = [_Scope("file")], 0
    for match in _TOKENS.finditer(source):
        now = scopes[-1]
        now.head.append(source[end : match.start()])
        end, text = match.end(), match[0]
        statement = "".join(now.head)
        ends = False
        if match["skip"]:
            ends = not statement.strip()
        else:
            begin = now.begin + len(statement) - len(statement.lstrip())
            yield _Token(match, scopes, statement.strip(), begin)
            now.parentheses += (text == "(") - (text == ")")
            if match["namespace"] is not None or text == "{":
                kind = "function"
                if match["namespace"] is not None:
                    kind = "file"
                elif statement.rstrip().endswith("="):
                    kind = "value"
                elif now.kind != "function" and _CLASS.search(statement):
                    kind = "class"
                line = source.count("\n", 0, match.start()) + 1
                scopes.append(_Scope(kind, match["name"] or "", line, end))
            elif text == "}":
                closed = scopes.pop() if len(scopes) > 1 else now
                now, ends = scopes[-1], closed.kind != "value"
                now.head += [] if ends else ["{}"]  # the statement goes on
            elif text == ";" and not now.parentheses:
                ends = True
            else:
                now.head.append(text)
        if ends:
            now.begin, now.head = end, []


def standard_headers(texts: Iterable[str]) -> list[str]:
    """Return the headers of C++ itself that sources include: `<vector>`, and not `<vector.h>`."""
    named = r"^[^\S\n]*#[^\S\n]*include[^\S\n]*<([a-z_0-9]+)>"
    return sorted({name for text in texts for name in re.findall(named, text, re.M)})


def unclosed(source: str) -> int | None:
    """Return the line of the last `{` outside of others that is not closed, if there is one."""
    scopes: Sequence[_Scope] = ()
    for token in _scan(source):
        scopes = token.scopes
    return scopes[1].line if len(scopes) > 1 else None


def kernels_in(source: str) -> dict[str, tuple[list[str], bool]]:
    """Return the `__global__` functions of a source: names of their parameters, and if a template.

    Functions of a namespace have its name in front. Only names are taken from the text, for
    messages; types and counts are the compiler's.
    """
    kernels: dict[str, tuple[list[str], bool]] = {}
    for token in _scan(source):
        if token.text != "(" or not token.in_file:
            continue
        if match := _KERNEL.search(_ATTRIBUTES.sub(" ", token.statement)):
            text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", source[token.match.end() :], flags=re.S)
            template = re.search(r"\btemplate\s*<", token.statement) is not None
            kernels[token.named(match[1])] = _parameter_names(text), template
    return kernels


def symbols_in(source: str) -> list[str]:
    """Return the `__constant__` and `__device__` variables of a source."""
    symbols = []
    for token in _scan(source):
        head = token.statement.partition("=")[0]
        if token.text != ";" or not token.in_file or "(" in head:
            continue
        if re.search(r"\b__(?:constant|device)__\b", head):
            declared = re.sub(r"\[[^\]]*\]|\{\}", "", head).split(",")
            names = (re.findall(r"\w+", part) for part in declared)
            symbols += [token.named(name[-1]) for name in names if name]
    return symbols


def _parameter_names(text: str) -> list[str]:
    names, depth, start = [], 0, 0
    for offset, letter in enumerate(text):
        if letter in "(<[{":
            depth += 1
        elif letter in ")>]}" and depth:
            depth -= 1
        elif letter in ",)":
            declared = re.sub(r"\[[^\]]*\]", "", text[start:offset].partition("=")[0])
            names += re.findall(r"[A-Za-z_]\w*", declared)[-1:]
            start = offset + 1
            if letter == ")":
                break
    # The same twice is the type of parameters without a name.
    return [] if names == ["void"] or len({*names}) < len(names) else names


@functools.lru_cache(maxsize=64)
def translated(source: str, file: str) -> str:
    """Replace what only CUDA's own compiler understands by macros of the emulator.

    `extern __shared__ T name[]` lies where the launch puts it. Shared variables outside of
    functions and constants without a value are marked, as nothing else tells them from the
    device's; so are functions and variables of the host, which a kernel must not use. All lines
    keep their numbers.

    Raises
    ------
    KernelError
        If a shared variable is given a value, which CUDA refuses.
    """
    declared = r"\bextern\b([^;{}\"]*?)\b__shared__\b([^;{}\"]*?)\b(\w+)\s*\[\s*\]\s*;"
    source = re.sub(declared, r"DYNAMIC_SHARED(\1 \2, \3);", source)
    # Another `static` would be one too many.
    static = r"\bstatic\b(?=[^;{}()\"]*\b__shared__\b)|(\b__shared__\b[^;{}()\"=]*?)\bstatic\b"
    source = re.sub(static, r"\1", source)
    macros = {*re.findall(r"^[^\S\n]*#[^\S\n]*define\s+(\w+)", source, re.M)}
    changes: list[tuple[int, int, str]] = []  # from, to, text
    opened: list[int] = []
    for token in _scan(source):
        match, text, scope = token.match, token.text, token.scopes[-1]
        start, end = match.span()
        if text == "(":
            opened.append(start)
        elif text == ")" and opened:
            begin = opened.pop()
            # g++ 12, asked to check shifts, reads (c ? p : q)[i] as c ? p[i] : q[i] and computes
            # what i divides for the first alone.
            chosen = "?" in source[begin:start] and _NO_CALL.search(source[:begin])
            if chosen and re.match(r"\s*\[", source[end:]):
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
            rest = source[end:].partition(";")[0]
            if not re.search(r"[={]|\bconst\b", rest) and "const" not in token.statement.split():
                changes.append((start, end, "EMULATOR_UNFILLED"))
        elif text == "{" and scope.kind != "function":
            if name := _host_function(token.statement, macros, source):
                changes.append((end, end, f'EMULATOR_ON_HOST("{name}");'))
        elif text == ";" and token.in_file and not scope.parentheses:
            head = token.statement
            if _VARIABLE.fullmatch(head) and macros.isdisjoint(re.findall(r"\w+", head)):
                changes.append((token.begin, token.begin, "EMULATOR_HOST_VARIABLE "))
    for begin, end, text in sorted(changes, reverse=True):
        source = source[:begin] + text + source[end:]
    return source


def _host_function(head: str, macros: set[str], source: str) -> str:
    """Return the name of the function whose body follows, if it is surely one of the host's."""
    match = _FUNCTION.fullmatch(head)
    if not match or _DEVICE.search(head):
        return ""
    words = {*re.findall(r"\w+", head)} - _OF_EITHER
    if any(word in macros or re.fullmatch(r"[A-Z_][A-Z0-9_]+|__\w+", word) for word in words):
        return ""  # a macro, perhaps, that says what it is
    declared = rf"\b(?:__device__|__global__)\b[^;{{}}]*\b{match[1]}\s*\("
    return "" if re.search(declared, source) else match[1]
