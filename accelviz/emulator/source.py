"""Analysis of CUDA text without a compiler: scopes, kernels, their declarations and variables."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

#: Attributes between `__global__` and a function's name.
ATTRIBUTES = re.compile(
    r"__(?:launch_bounds|cluster_dims|attribute|maxnreg)__\s*\([^;{]*?\)(?=\s*\w)"
)
#: The text of a kernel, from `__global__` to its name, before the parameters.
_KERNEL = re.compile(r"__global__\s[^;{}()]*?\b(?!__)(\w+)\s*$")
#: Tokens that begin or end scopes and statements; and comments, directives, literals as a whole.
_TOKENS = re.compile(
    r"(?P<skip>//[^\n]*|/\*.*?\*/|^[^\S\n]*\#(?:\\\n|[^\n])*)"
    r"|(?P<text>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')"
    r"|(?P<namespace>\bnamespace\b\s*(?P<name>[\w:]*)\s*\{|\bextern\s*\"C\"\s*\{)"
    r"|(?P<shared>\b__shared__\b)|(?P<constant>\b__constant__\b)|(?P<mark>[{};()])",
    re.S | re.M,
)
#: The end of the text before the `{` of a class.
CLASS = re.compile(r"\b(?:class|struct|union)\b[^()]*$")
#: Last words of types that have several.
_TYPE_WORDS = {"int", "char", "short", "long", "unsigned", "signed", "float", "double", "bool"}
#: Specifiers with parentheses, a type that is defined, and template arguments, in a declaration.
SPECIFIER = re.compile(
    r"\b(?:alignas|__align__|__builtin_align__|__attribute__|EMULATOR_ALIGNED)"
    r"\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
)
_TEMPLATE_ARGUMENTS = re.compile(r"(?<=\w)<[\w\s:,*&+-]*>")


@dataclass
class Scope:
    """The file, or an open pair of braces, with the statement that is currently scanned in it."""

    # "file" (also namespaces), "class", "local class", "function", or "value" of an initialiser
    kind: str
    name: str = ""  # of a namespace
    line: int = 0  # of the opening brace
    begin: int = 0  # offset of the current statement
    head: list[str] = field(default_factory=list)  # pieces of that statement, without comments
    parentheses: int = 0  # open ones in that statement


class Token(NamedTuple):
    """A token with its enclosing scopes, and the statement before it."""

    match: re.Match[str]
    scopes: Sequence[Scope]
    statement: str
    begin: int  # offset of the statement

    @property
    def text(self) -> str:
        """The token itself."""
        return self.match[0]

    @property
    def in_file(self) -> bool:
        """Whether it is outside of classes, functions and initialisers."""
        return self.scopes[-1].kind == "file"

    def qualified(self, name: str) -> str:
        """Return a name with the token's namespaces."""
        return "::".join([*(scope.name for scope in self.scopes if scope.name), name])


def scan(source: str) -> Iterator[Token]:
    """Yield the tokens of a text.

    The scopes of an opening brace do not include the one that it opens. A token's `scopes` is the
    scanner's own list, which changes: read it before taking the next token.
    """
    scopes, end = [Scope("file")], 0
    for match in _TOKENS.finditer(source):
        scope = scopes[-1]
        scope.head.append(source[end : match.start()])
        end, text = match.end(), match[0]
        statement = "".join(scope.head)
        ends_statement = False
        if match["skip"]:
            ends_statement = not statement.strip()  # then the statement begins after the comment
        else:
            begin = scope.begin + len(statement) - len(statement.lstrip())
            yield Token(match, scopes, statement.strip(), begin)
            scope.parentheses += (text == "(") - (text == ")")
            if match["namespace"] is not None or text == "{":
                kind = "function"
                if match["namespace"] is not None:
                    kind = "file"
                elif statement.rstrip().endswith("="):
                    kind = "value"
                elif CLASS.search(SPECIFIER.sub(" ", statement)):
                    kind = "local class" if scope.kind == "function" else "class"
                line = source.count("\n", 0, match.start()) + 1
                scopes.append(Scope(kind, match["name"] or "", line, end))
            elif text == "}":
                closed = scopes.pop() if len(scopes) > 1 else scope
                scope = scopes[-1]
                ends_statement = closed.kind not in ("value", "local class")
                if not ends_statement:  # the statement continues after it
                    scope.head.append("{}")
            elif text == ";" and not scope.parentheses:
                ends_statement = True
            else:
                scope.head.append(text)
        if ends_statement:
            scope.begin, scope.head = end, []


def standard_headers(texts: Iterable[str]) -> list[str]:
    """Return the C++ headers that sources include, such as `<vector>` and `<cuda/std/array>`."""
    include = r"^[^\S\n]*#[^\S\n]*include[^\S\n]*<(?:cuda/std/)?([a-z_0-9]+)>"
    return sorted({name for text in texts for name in re.findall(include, text, re.M)})


def unclosed(source: str) -> int | None:
    """Return the line of the outermost unclosed `{`, or None."""
    scopes: Sequence[Scope] = ()
    for token in scan(source):
        scopes = token.scopes  # one list, so that after the loop it has the unclosed scopes
    return scopes[1].line if len(scopes) > 1 else None


def kernels_in(source: str) -> dict[str, tuple[list[str], bool]]:
    """Return {qualified name: (names of the parameters, whether a template)} of kernels.

    The names are for messages; the compiler determines number and types of parameters.
    """
    kernels: dict[str, tuple[list[str], bool]] = {}
    for token in scan(source):
        if token.text != "(" or not token.in_file:
            continue
        if match := _KERNEL.search(ATTRIBUTES.sub(" ", token.statement)):
            names = _parameter_names(source[token.match.end() :])
            template = re.search(r"\btemplate\s*<", token.statement) is not None
            kernels[token.qualified(match[1])] = names, template
    return kernels


@functools.lru_cache(maxsize=64)
def other_kernels(source: str, entry: str) -> frozenset[str]:
    """Return the names of a source's kernels besides `entry` that no `__device__` function has."""
    entry_name = entry.partition("<")[0].strip().rpartition("::")[2]
    names = {name.rpartition("::")[2] for name in kernels_in(source)} - {entry_name}
    function = r"\b__device__\b[^;{{}}()]*\b{}\s*\("
    return frozenset(name for name in names if not re.search(function.format(name), source))


@functools.lru_cache(maxsize=64)
def declared_constant(source: str, entry: str, attribute: str) -> tuple[str, str]:
    """Return (declaration of a C++ constant, its name) for an attribute of a kernel.

    It is the threads of `__launch_bounds__`, or the blocks of `__cluster_dims__` in one number.

    `entry` is the qualified name of a kernel, or of an instance of a template. Without the
    attribute, the declaration is empty and the name "0".
    """
    _, bracket, instance = entry.partition("<")
    for token in _declarations(source, entry):
        if token.statement.count(attribute) != 1:  # two are of two branches of an #if
            continue
        bounds = bracketed(token.statement.partition(attribute)[2])
        template = re.search(r"\btemplate\s*(?=<)", token.statement)
        header = bracketed(token.statement[template.end() :], "<>") if template else ""
        values = instance.removesuffix(">").strip()
        few = values.count(",") < header.count(",") or not values
        if bracket and few and not re.search(r"=|\.\.\.", header):
            continue  # it has default arguments, which another declaration gives
        scope = token.qualified("")
        constant = f"emulated{attribute.rstrip('_')}"
        function = "cluster" if "cluster" in attribute else "first"
        name = f"{constant}{bracket}{instance}"
        text = f"constexpr long long {constant} = emulator::{function}{bounds};"
        text = f"template {header} {text}" if header else text
        if scope:
            text = f"namespace {scope.removesuffix('::')} {{ {text} }}"
        return text, scope + name
    return "", "0"


def restrict_parameters(source: str, entry: str) -> set[int]:
    """Return the positions of a kernel's `__restrict__` parameters, also those by a macro."""
    macros = re.findall(r"^[^\S\n]*#\s*define\s+(\w+)\s+__restrict(?:__)?\s*$", source, re.M)
    word = re.compile(rf"\b(?:{'|'.join(['__restrict__', '__restrict', *macros])})\b")
    positions = set[int]()
    for token in _declarations(source, entry):
        parameters = enumerate(_parameters(source[token.match.end() :]))
        positions |= {number for number, text in parameters if word.search(text)}
    return positions


@functools.lru_cache(maxsize=64)
def default_arguments(source: str, entry: str) -> dict[int, float | None]:
    """Return {position: value} of a kernel's default arguments that are numbers or null."""
    defaults: dict[int, float | None] = {}
    words: dict[str, float | None] = {"true": 1, "false": 0, "nullptr": None, "NULL": None}
    for token in _declarations(source, entry):
        for position, text in enumerate(_parameters(source[token.match.end() :])):
            value = text.partition("=")[2].strip()
            if value in words:
                defaults[position] = words[value]
                continue
            value = value.rstrip("uUlL")
            if re.fullmatch(r"[+-]?(?:0[xX][\da-fA-F]+|0|[1-9]\d*)", value):
                defaults[position] = int(value, 0)
            elif re.fullmatch(r"[+-]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?[fF]?", value):
                defaults[position] = float(value.rstrip("fF"))
    return defaults


def overloads(source: str, entry: str) -> dict[str, list[str]]:
    """Return {types of the parameters: their names} of each kernel of the name of `entry`."""
    kernels: dict[str, list[str]] = {}
    for token in _declarations(source, entry):
        text = source[token.match.end() :]
        types = parameter_types(_parameters(text))
        kernels[types] = _parameter_names(text) or kernels.get(types, [])
    return kernels


def parameter_types(declarations: Iterable[str]) -> str:
    """Return the types of parameters, named or not, such as `const float *, int`."""
    types = list[str]()
    for declaration in declarations:
        text = re.sub(r"\b__restrict(?:__)?\b", " ", declaration.partition("=")[0])
        text = re.sub(r"\[[^\]]*\]", "", text.replace("[]", "*"))
        words = [word for word in re.findall(r"[\w:]+(?:<.*>)?", text) if word != "const"]
        if words[1:] and words[-1] not in _TYPE_WORDS:
            text = re.sub(rf"\b{re.escape(words[-1])}\s*(\**)\s*$", r"\1", text.strip())
        if "*" not in text:
            text = re.sub(r"\bconst\b", " ", text)
        text = re.sub(r"^\s*([\w:]+)\s+const\b", r"const \1", text)
        types.append(re.sub(r"\s*(\*+)\s*", r" \1", " ".join(text.split())).strip())
    return ", ".join(one for one in types if one != "void")


def _declarations(source: str, entry: str) -> Iterator[Token]:
    """Yield the token before the parameters in each declaration of a kernel."""
    kernel = entry.partition("<")[0].strip().removeprefix("::")
    for token in scan(source):
        if token.text == "(" and token.in_file and "__global__" in token.statement:
            match = _KERNEL.search(ATTRIBUTES.sub(" ", token.statement))
            if match and token.qualified(match[1]) == kernel:
                yield token


def bracketed(text: str, brackets: str = "()") -> str:
    """Return the text from its first bracket to the closing one."""
    depth, begin = 0, text.find(brackets[0])
    for offset in range(begin, len(text)):
        depth += (text[offset] == brackets[0]) - (text[offset] == brackets[1])
        if not depth:
            return text[begin : offset + 1]
    return ""


def symbols_in(source: str) -> list[str]:
    """Return the `__constant__` and `__device__` variables of a source."""
    symbols = list[str]()
    for token in scan(source):
        if token.text == ";" and token.in_file:
            symbols += map(token.qualified, device_variables(token.statement))
    return symbols


def device_variables(statement: str) -> list[str]:
    """Return the `__constant__`, `__device__` and `__managed__` variables of a declaration."""
    head = SPECIFIER.sub("", statement).partition("=")[0]
    if "(" in head or not re.search(r"\b__(?:constant|device|managed)__\b", head):
        return []
    declared = re.sub(r"\[[^\]]*\]|\{\}", "", head).split(",")
    names = (re.findall(r"\w+", part) for part in declared)
    return [name[-1] for name in names if name]


def _parameter_names(text: str) -> list[str]:
    names = list[str]()
    for parameter in _parameters(text):
        declared = re.sub(r"\[[^\]]*\]", "", parameter.partition("=")[0])
        names += re.findall(r"[A-Za-z_]\w*", declared)[-1:]
    # A repeated name is the type of unnamed parameters.
    return [] if names == ["void"] or len({*names}) < len(names) else names


def _parameters(text: str) -> Iterator[str]:
    """Yield the declaration of each parameter; the text begins behind the bracket."""
    depth, start = 0, 0
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
    for offset, letter in enumerate(text):
        if letter in "(<[{":
            depth += 1
        elif letter in ")>]}" and depth:
            depth -= 1
        elif letter in ",)" and not depth:
            yield text[start:offset]
            start = offset + 1
            if letter == ")":
                return


def without_template_arguments(text: str) -> str:
    """Return a declaration without the template arguments of its types."""
    while (plain := _TEMPLATE_ARGUMENTS.sub("", text)) != text:
        text = plain
    return text


def separated(text: str) -> list[str]:
    """Split a text at the commas outside of parentheses, brackets and braces."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
