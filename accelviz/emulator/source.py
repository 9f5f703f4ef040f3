"""Analysis of CUDA text without a compiler, and its translation to C++ for the host's compiler."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from accelviz.emulator.ptx import translated_ptx
from accelviz.errors import KernelError

#: Attributes between `__global__` and a function's name.
_ATTRIBUTES = re.compile(
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
#: The text of a function or constructor before its body; `(?:\w+\s*:\s)?` is an access label such
#: as `public:`.
_FUNCTION = re.compile(
    r"(?:template\s*<.*>\s*)?(?:\w+\s*:\s)?[\w:<>,\s*&]*?\b(\w+)\s*\([^{}=\[\]]*\)\s*(?:const\s*)?",
    re.S,
)
#: Words in the text before a `{` which show that it is not, or may not be, a host function.
_NOT_HOST = re.compile(r"\b(?:__device__|__global__|constexpr|class|struct|union|enum|operator)\b")
#: What only code of the host contains: launches, CUDA's runtime and libraries; `_ON_HOST` if no
#: macro in front of the body can mean `__device__`.
_LAUNCHES = re.compile(
    r"<<<|\bcuda(?!Texture|Surface|Boundary|Address|Read|Filter)[A-Z]\w*|\bmain\s*\("
    r"|\b(?:cublas|cusparse|cusolver|cufft|curand|cudnn|nccl|nvtx)[A-Z]\w*(?<!curandState)"
    r"|\b(?:torch|at|c10)::|\bcub::Device|\bPYBIND11_MODULE|\bTORCH_LIBRARY"
)
_ON_HOST = re.compile(
    r"\bstd::(?:vector|string|map|cout|cerr|endl|chrono|mt19937|[io]fstream|unique_ptr|function)\b"
    r"|\bthrust::|\b(?:s?rand|malloc|calloc|free|exit|fopen|fprintf|getenv|system|time)\s*\("
)
_OF_DEVICE = re.compile(r"\b__(?:device|global|constant|shared|managed)__")
#: Headers that serve the host alone, and those of them that include cuda_fp16.h and cuda_bf16.h.
_HOST_HEADER = re.compile(
    r"^[^\S\n]*#[^\S\n]*include[^\S\n]*[<\"](?:helper_(?!math)\w+|exception|cuda_profiler_api"
    r"|(?:device|device_atomic|math|vector)_functions|(?:vector|driver|builtin)_types"
    r"|host_defines|cuda_device_runtime_api|omp|mpi"
    r"|(?:cublas|cusparse|cusolver|cufft|cudnn|nccl|nvml|nvToolsExt)\w*|curand|(?:torch|ATen|c10|"
    r"pybind11|nvtx3)/[\w/]+)(?:\.h|\.hpp|\.cuh)?[>\"]",
    re.M,
)
#: What device code of the emulator cannot use.
_OF_HOST = re.compile(rf"{_LAUNCHES.pattern}|\bthrust\s*::|=\s*new\b|\bmalloc\s*\(")
_NAMESPACES = {"std", "cooperative_groups", "cg", "nvcuda", "cub", "cuda"}
_MARKS = {"__device__", "__global__", "__constant__", "__shared__", "__managed__"}
#: Comments and literals; directives whose removal would change what the compiler reads.
_COMMENT_OR_TEXT = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S
)
_COMMENT_OR_CONDITION = re.compile(
    rf"{_COMMENT_OR_TEXT.pattern}|(?P<condition>^[^\S\n]*\#[^\S\n]*"
    r"(?:if|ifdef|ifndef|elif|else|endif|define|undef|include)\b(?:\\\n|[^\n])*)|[^\n]",
    re.S | re.M,
)
#: Braces without others in them; text after a `}` that goes on with the same declaration.
_BRACES = re.compile(r"\{[^{}]*\}")
_CONTINUATION = re.compile(r"\s*[,.*+\-?|&<>=%^]")
#: The end of the text before the `{` of a class.
_CLASS = re.compile(r"\b(?:class|struct|union)\b[^()]*$")
#: Macros of CUDA that functions of the host may have, too.
_HOST_MACROS = {"__host__", "__forceinline__", "__noinline__", "__inline__", "__restrict__"}
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
#: Specifiers with parentheses, a type that is defined, and template arguments, in a declaration.
_SPECIFIER = re.compile(
    r"\b(?:alignas|__align__|__builtin_align__|__attribute__|EMULATOR_ALIGNED)"
    r"\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
)
_DEFINED_TYPE = re.compile(r"\b(?:struct|class|union)\b[^{]*\{\}")
_TEMPLATE_ARGUMENTS = re.compile(r"(?<=\w)<[\w\s:,*&+-]*>")
#: Declarators of local variables, the first one after labels and the type. The excluded words
#: begin other statements, and declarations of what is not a variable of a thread.
_DECLARATOR = r"(?P<name>[A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*(?P<value>[=({].*)?"
_FIRST_LOCAL = re.compile(
    # All labels; a possessive quantifier of a group is wrong before Python 3.11.5.
    r"(?=(?P<labels>(?:(?:case\b(?:[^:]|::)*|\w+)\s*:(?!:)\s*)*))(?P=labels)"
    r"(?!(?:return|goto|delete|throw|else|do|case|using|typedef|extern|static|constexpr|friend)\b"
    r"|(?:struct|class|union|enum|typename)\s+\w+\s*$)"
    rf"[A-Za-z_:][\w:\s*]*?[\s*]{_DECLARATOR}",
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


@dataclass
class _Scope:
    """The file, or an open pair of braces, with the statement that is currently scanned in it."""

    # "file" (also namespaces), "class", "local class", "function", or "value" of an initialiser
    kind: str
    name: str = ""  # of a namespace
    line: int = 0  # of the opening brace
    begin: int = 0  # offset of the current statement
    head: list[str] = field(default_factory=list)  # pieces of that statement, without comments
    parentheses: int = 0  # open ones in that statement


class _Token(NamedTuple):
    """A token with its enclosing scopes, and the statement before it."""

    match: re.Match[str]
    scopes: Sequence[_Scope]
    statement: str
    begin: int  # offset of the statement

    @property
    def text(self) -> str:
        return self.match[0]

    @property
    def in_file(self) -> bool:
        """Whether it is outside of classes, functions and initialisers."""
        return self.scopes[-1].kind == "file"

    def qualified(self, name: str) -> str:
        """Return a name with the token's namespaces."""
        return "::".join([*(scope.name for scope in self.scopes if scope.name), name])


def _scan(source: str) -> Iterator[_Token]:
    """Yield the tokens of a text.

    The scopes of an opening brace do not include the one that it opens. A token's `scopes` is the
    scanner's own list, which changes: read it before taking the next token.
    """
    scopes, end = [_Scope("file")], 0
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
            yield _Token(match, scopes, statement.strip(), begin)
            scope.parentheses += (text == "(") - (text == ")")
            if match["namespace"] is not None or text == "{":
                kind = "function"
                if match["namespace"] is not None:
                    kind = "file"
                elif statement.rstrip().endswith("="):
                    kind = "value"
                elif _CLASS.search(_SPECIFIER.sub(" ", statement)):
                    kind = "local class" if scope.kind == "function" else "class"
                line = source.count("\n", 0, match.start()) + 1
                scopes.append(_Scope(kind, match["name"] or "", line, end))
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
    scopes: Sequence[_Scope] = ()
    for token in _scan(source):
        scopes = token.scopes  # one list, so that after the loop it has the unclosed scopes
    return scopes[1].line if len(scopes) > 1 else None


def kernels_in(source: str) -> dict[str, tuple[list[str], bool]]:
    """Return {qualified name: (names of the parameters, whether a template)} of kernels.

    The names are for messages; the compiler determines number and types of parameters.
    """
    kernels: dict[str, tuple[list[str], bool]] = {}
    for token in _scan(source):
        if token.text != "(" or not token.in_file:
            continue
        if match := _KERNEL.search(_ATTRIBUTES.sub(" ", token.statement)):
            names = _parameter_names(source[token.match.end() :])
            template = re.search(r"\btemplate\s*<", token.statement) is not None
            kernels[token.qualified(match[1])] = names, template
    return kernels


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
        bounds = _arguments(token.statement.partition(attribute)[2])
        template = re.search(r"\btemplate\s*(?=<)", token.statement)
        header = _arguments(token.statement[template.end() :], "<>") if template else ""
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


def _declarations(source: str, entry: str) -> Iterator[_Token]:
    """Yield the token before the parameters in each declaration of a kernel."""
    kernel = entry.partition("<")[0].strip().removeprefix("::")
    for token in _scan(source):
        if token.text == "(" and token.in_file and "__global__" in token.statement:
            match = _KERNEL.search(_ATTRIBUTES.sub(" ", token.statement))
            if match and token.qualified(match[1]) == kernel:
                yield token


def _arguments(text: str, brackets: str = "()") -> str:
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
    for token in _scan(source):
        if token.text == ";" and token.in_file:
            symbols += map(token.qualified, _device_variables(token.statement))
    return symbols


def _device_variables(statement: str) -> list[str]:
    """Return the `__constant__`, `__device__` and `__managed__` variables of a declaration."""
    head = _SPECIFIER.sub("", statement).partition("=")[0]
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
        elif letter in ",)":
            yield text[start:offset]
            start = offset + 1
            if letter == ")":
                return


def _definitions(source: str) -> Iterator[tuple[int, int]]:
    """Yield (begin, end) of each function, class and declaration outside of others."""
    depth, begin = 0, 0  # number of scopes around the definition that is scanned; 0: none
    continues = False  # whether a declaration continues after the braces of an initialiser
    for token in _scan(source):
        end = token.match.end()
        if depth:
            if token.text == "}" and len(token.scopes) == depth + 1:
                depth = 0
                if _CLASS.search(_SPECIFIER.sub(" ", re.split("{", source[begin:end])[0])):
                    end = source.find(";", end) + 1 or end
                    continues = False
                else:
                    continues = _CONTINUATION.match(source, end) is not None
                if not continues:
                    yield begin, end
        elif token.in_file and token.text == "{" and not token.statement.endswith("="):
            depth, begin = len(token.scopes), begin if continues else token.begin
        elif token.in_file and token.text == ";" and not token.scopes[-1].parentheses:
            yield begin if continues else token.begin, end
            continues = False
        elif token.in_file and token.text == "}" and token.statement:  # calls of macros
            yield token.begin, token.match.start()


def _blanked(source: str, spans: Iterable[tuple[int, int]]) -> str:
    for begin, end in spans:
        blank = _COMMENT_OR_CONDITION.sub(_blank, source[begin:end])
        source = source[:begin] + blank + source[end:]
    return source


def _blank(match: re.Match[str]) -> str:
    return match[0] if match["condition"] else re.sub(r"[^\n]", " ", match[0])


@functools.lru_cache(maxsize=64)
def without_unmentioned(
    texts: tuple[str, ...], entry: str, symbols: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Blank the definitions of a source and its headers that no device code mentions.

    Stay what has `__device__` or its like, and what that mentions, directly or not. Device code
    that uses what only the host has, such as a launch, stays if the kernel `entry` or a variable
    in `symbols` mentions it.
    """
    roots = {*re.findall(r"\w+", " ".join([entry, *symbols]))}
    by_text = [[_Definition.of(text, *span) for span in _definitions(text)] for text in texts]
    definitions = [one for of_text in by_text for one in of_text]
    macros = [
        _Definition((0, 0), {match[1]}, {*re.findall(r"\w+", match[2])})
        for text in texts
        for match in re.finditer(r"^[^\S\n]*#\s*define\s+(\w+)((?:\\\n|[^\n])*)", text, re.M)
    ]
    marks = _MARKS  # and the macros that contain one
    while more := {*marks}.union(*(macro.names for macro in macros if marks & macro.words)) - marks:
        marks = marks | more
    roots |= {name for text in texts for name in re.findall(r"\bnamespace\s+(\w+)\s*\{", text)}
    mentioned, pending, needed = set[str](), list[_Definition](), set[int]()
    by_name: dict[str, list[_Definition]] = {}
    for one in [*definitions, *macros]:
        for name in one.names:
            by_name.setdefault(name, []).append(one)
    for one in definitions:
        if (marks & one.words and not one.is_of_host) or not one.names:
            pending.append(one)
    if not any(name in by_name for name in re.findall(r"\w+", entry.partition("<")[0])[-1:]):
        return tuple(texts)  # a macro makes it, or it is missing
    while pending or roots:
        for name in roots - mentioned:
            pending += by_name.get(name, [])
        mentioned |= roots
        roots = set()
        for one in pending:
            if id(one) not in needed:
                needed.add(id(one))
                roots |= one.words - mentioned
        pending = []
    left_out = [[one.span for one in of_text if id(one) not in needed] for of_text in by_text]
    return tuple(map(_blanked, texts, left_out))


@dataclass
class _Definition:
    """A function, class, variable or macro: the names that it declares, and all its words."""

    span: tuple[int, int]
    names: set[str]
    words: set[str]
    is_of_host: bool = False  # whether it uses what only the host has

    @classmethod
    def of(cls, source: str, begin: int, end: int) -> _Definition:
        text = _COMMENT_OR_TEXT.sub(" ", source[begin:end])
        words, is_of_host = {*re.findall(r"\w+", text)}, bool(_OF_HOST.search(text))
        return cls((begin, end), _declared_names(text), words, is_of_host)


def _declared_names(text: str) -> set[str]:
    """Return the names that a definition declares; none if they are unknown, or not of use."""
    while (template := re.match(r"\s*template\s*(?=<)", text)) and (
        parameters := _arguments(text[template.end() :], "<>")
    ):
        text = text[template.end() + len(parameters) :]
    text = _ATTRIBUTES.sub(" ", _SPECIFIER.sub(" ", text))
    head = re.split("[{;]", text)[0].strip()
    if match := re.match(r"using\s+namespace\s+([\w:]+)", head):
        name = match[1].rpartition("::")[2]
        return set() if match[1].partition("::")[0] in _NAMESPACES else {name}
    if match := re.match(r"namespace\s+(\w+)\s*=", head):
        return {match[1]}
    if head.startswith("static_assert"):
        return set()
    if re.search(r"\boperator\b", head):
        return {"operator"}
    if match := re.match(r"using\s+(?:[\w:]*?(\w+)\s*$|(\w+)\s*=)", head):
        return {match[1] or match[2]}
    body, plain = text[len(head) :].rpartition("}")[0], text
    while (outer := _BRACES.sub("", plain)) != plain:
        plain = outer
    declaration = plain.partition(";")[0].strip()
    tag = re.match(r"(?:\w+\s+)*?(class|struct|union|enum)\b(?:\s+(?:class|struct)\b)?", head)
    if tag and ("}" in text or head.startswith(tag[1])) and "(" not in head.partition(":")[0]:
        names = {*re.findall(r"\w+", head[tag.end() :].partition(":")[0])[:1]}
        names |= {*re.findall(r"\w+", declaration[len(head) :])}
        names |= _separated_names(head[tag.end() :])
        return names | {*re.findall(r"\w+", body if tag[1] == "enum" else "")}
    while (outer := _TEMPLATE_ARGUMENTS.sub("", declaration)) != declaration:
        declaration = outer
    first = re.split("[={]", declaration)[0]
    if match := re.search(r"\(\s*\*\s*(?:const\s+)?(\w+)|(\w+)\s*\(", first):  # f(), or (*f)()
        return {match[1] or match[2]}
    return _separated_names(declaration)


def _separated_names(declaration: str) -> set[str]:
    """Return the names of the variables in `int a[2], *b = 0`."""
    parts = (re.sub(r"(?s)\[[^\]]*\]|=.*", "", part) for part in _separated(declaration))
    return {name for part in parts for name in re.findall(r"\w+", part)[-1:]}


def without_host_code(source: str, is_header: bool = False) -> str:
    """Blank the functions, classes and declarations of a text that serve the host alone.

    Those are without `__device__` and its like, and launch kernels, or use CUDA's runtime,
    containers of C++, files, or another one of them; in headers and beside kernels also
    functions of the host that nothing else mentions. Line numbers do not change.
    """
    macros = {*re.findall(r"^[^\S\n]*#[^\S\n]*define\s+(\w+)", source, re.M)}
    spans = list[tuple[int, int]]()
    others = dict[tuple[int, int], str]()  # what may be of a device, with the name of a function
    for begin, end in _definitions(source):
        text = source[begin:end]
        head = re.split("[{;]", text)[0].strip()
        if _OF_DEVICE.search(text) or head.startswith("using"):
            continue
        may_be_macro = not macros.isdisjoint(re.findall(r"\w+", head))
        if _LAUNCHES.search(text) or (not may_be_macro and _ON_HOST.search(text)):
            spans.append((begin, end))
        else:
            others[begin, end] = _host_function(head, macros, source) if "{" in text else ""
    pending = [*spans]
    for begin, end in pending:  # grows
        function = re.search(r"(\w+)\s*\([^{;]*\)\s*\{", source[begin:end])
        call = re.compile(rf"\b{function[1]}\s*[(<]") if function else None
        callers = [span for span in others if call and call.search(source[slice(*span)])]
        pending += callers
        for span in callers:
            del others[span]
    spans = pending
    if is_header or "__global__" in source:
        unsure = {span: name for span, name in others.items() if name}
        texts = [_blanked(source, [*spans, *unsure])]
        for text in texts:  # grows by the functions that are mentioned
            mentioned = {*re.findall(r"\w+", text)}
            for span in [span for span, name in unsure.items() if name in mentioned]:
                texts.append(source[slice(*span)])
                del unsure[span]
        spans = [*spans, *unsure]
    source = _blanked(source, spans)

    def replaced(match: re.Match[str]) -> str:
        has_types = re.search(r"cublas|cudnn|cufft|torch|ATen|c10", match[0])
        return "#include <narrow_types.h>" if has_types else ""

    return _HOST_HEADER.sub(replaced, source)


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
    for token in _scan(source):
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
            if name := _host_function(token.statement, macros, source):
                changes.append((end, end, f'EMULATOR_ON_HOST("{name}");'))
        elif text == ";" and token.in_file and not scope.parentheses:
            words = re.findall(r"\w+", token.statement)
            if _VARIABLE.fullmatch(token.statement) and macros.isdisjoint(words):
                changes.append((token.begin, token.begin, "EMULATOR_HOST_VARIABLE "))
            is_local = "static" in words or not all(one.name for one in token.scopes[1:])
            if is_local and _BEGIN.match(token.statement) and _device_variables(token.statement):
                # Otherwise the compiler drops a variable that the kernel only reads.
                changes.append((token.begin, token.begin, "__attribute__((used)) "))
        elif text == ";" and scope.kind == "function" and not scope.parentheses:
            marks = [f" EMULATOR_UNDEFINED({name});" for name in _unwritten_locals(token.statement)]
            changes.append((end, end, "".join(marks)))
    for begin, end, text in sorted(changes, reverse=True):
        source = source[:begin] + text + source[end:]
    return source


def _host_function(head: str, macros: set[str], source: str) -> str:
    """Return the name of a function with this head if it certainly is a host function, else ""."""
    match = _FUNCTION.fullmatch(head)
    if not match or _NOT_HOST.search(head):
        return ""
    words = {*re.findall(r"\w+", head)} - _HOST_MACROS
    if any(word in macros or re.fullmatch(r"[A-Z_][A-Z0-9_]+|__\w+", word) for word in words):
        return ""  # a macro may contain `__device__`
    device_declaration = rf"\b(?:__device__|__global__)\b[^;{{}}]*\b{match[1]}\s*\("
    return "" if re.search(device_declaration, source) else match[1]


def _unwritten_locals(statement: str) -> list[str]:
    """Return the local variables that a statement declares without an initial value."""
    statement = _SPECIFIER.sub(" ", _DEFINED_TYPE.sub("int ", statement))
    while (plain := _TEMPLATE_ARGUMENTS.sub("", statement)) != statement:
        statement = plain
    first, *others = _separated(statement)
    match = _FIRST_LOCAL.fullmatch(first)
    if match is None or "__shared__" in first:
        return []
    matches = [match, *map(_FURTHER_LOCAL.fullmatch, others)]
    return [match["name"] for match in matches if match and match["value"] is None]


def _separated(text: str) -> list[str]:
    """Split a text at the commas outside of parentheses, brackets and braces."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
