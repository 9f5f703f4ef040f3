"""Code of a CUDA text that serves the host alone, which the emulator leaves out."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from accelviz.emulator.source import (
    ATTRIBUTES,
    CLASS,
    SPECIFIER,
    bracketed,
    scan,
    separated,
    without_template_arguments,
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
#: Macros of CUDA that functions of the host may have, too.
_HOST_MACROS = {"__host__", "__forceinline__", "__noinline__", "__inline__", "__restrict__"}


def _definitions(source: str) -> Iterator[tuple[int, int]]:
    """Yield (begin, end) of each function, class and declaration outside of others."""
    depth, begin = 0, 0  # number of scopes around the definition that is scanned; 0: none
    continues = False  # whether a declaration continues after the braces of an initialiser
    for token in scan(source):
        end = token.match.end()
        if depth:
            if token.text == "}" and len(token.scopes) == depth + 1:
                depth = 0
                if CLASS.search(SPECIFIER.sub(" ", re.split("{", source[begin:end])[0])):
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
    texts: tuple[str, ...], entry: str, symbols: tuple[str, ...] = (), *, alone: bool = False
) -> tuple[str, ...]:
    """Blank the definitions of a source and its headers that no device code mentions.

    Stay what has `__device__` or its like, and what that mentions, directly or not. Device code
    that uses what only the host has, such as a launch, stays if the kernel `entry` or a variable
    in `symbols` mentions it; with `alone`, so does all device code.
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
        if (marks & one.words and not one.is_of_host and not alone) or not one.names:
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
        parameters := bracketed(text[template.end() :], "<>")
    ):
        text = text[template.end() + len(parameters) :]
    text = ATTRIBUTES.sub(" ", SPECIFIER.sub(" ", text))
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
    declaration = without_template_arguments(declaration)
    first = re.split("[={]", declaration)[0]
    if match := re.search(r"\(\s*\*\s*(?:const\s+)?(\w+)|(\w+)\s*\(", first):  # f(), or (*f)()
        return {match[1] or match[2]}
    return _separated_names(declaration)


def _separated_names(declaration: str) -> set[str]:
    """Return the names of the variables in `int a[2], *b = 0`."""
    parts = (re.sub(r"(?s)\[[^\]]*\]|=.*", "", part) for part in separated(declaration))
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
            others[begin, end] = host_function(head, macros, source) if "{" in text else ""
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


def host_function(head: str, macros: set[str], source: str) -> str:
    """Return the name of a function with this head if it certainly is a host function, else ""."""
    match = _FUNCTION.fullmatch(head)
    if not match or _NOT_HOST.search(head):
        return ""
    words = {*re.findall(r"\w+", head)} - _HOST_MACROS
    if any(word in macros or re.fullmatch(r"[A-Z_][A-Z0-9_]+|__\w+", word) for word in words):
        return ""  # a macro may contain `__device__`
    device_declaration = rf"\b(?:__device__|__global__)\b[^;{{}}]*\b{match[1]}\s*\("
    return "" if re.search(device_declaration, source) else match[1]
