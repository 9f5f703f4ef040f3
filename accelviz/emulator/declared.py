"""What messages tell from a kernel's source: elements of declared arrays, and barriers."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from accelviz.emulator.source import scan
from accelviz.emulator.symbols import Line

_BLOCK_BARRIER = re.compile(r"\b__syncthreads\w*\s*\(|\b(?:cta|block|cg)(?:\.|::)sync\s*\(")
_WARP_BARRIER = re.compile(r"\b__syncwarp\s*\(")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
#: A number or a name in the length of an array, and how often names stand for others.
_WORD, _DEPTH = re.compile(r"[A-Za-z_]\w*|\d\w*"), 8


def element(text: str, name: str, size: int, offset: int) -> str:
    """Return the element at an offset of a variable of `size` bytes, such as `tile[1][3]`.

    It is "" if the text does not tell the array's lengths.
    """
    candidates = {lengths for lengths in _lengths(text, name) if not size % math.prod(lengths)}
    if len(candidates) != 1:
        return ""
    (lengths,) = candidates
    index, indices = offset // (size // math.prod(lengths)), list[int]()
    for length in reversed(lengths[1:]):
        index, rest = divmod(index, length)
        indices.insert(0, rest)
    return name + "".join(f"[{one}]" for one in (index, *indices))


def _lengths(text: str, name: str) -> Iterator[tuple[int, ...]]:
    declared = rf"[\w>*)]\s+(?<!return )(?<!else ){re.escape(name)}((?:\s*\[[^][]+\])+)\s*[;,={{]"
    for match in re.finditer(declared, text):
        lengths = [_value(text, one) for one in re.findall(r"\[([^][]+)\]", match[1])]
        if all(lengths):
            yield tuple(length or 0 for length in lengths)


@functools.lru_cache(maxsize=1024)  # constants that name each other are a tree
def _value(text: str, expression: str, depth: int = _DEPTH) -> int | None:
    """Return the value of an expression of numbers, macros and constants; None if unknown."""

    def replaced(match: re.Match[str]) -> str:
        if number := re.fullmatch(r"(0[xX][\da-fA-F]+|\d+)[uUlL]*", match[0]):
            return str(int(number[1], 0))
        name = re.escape(match[0])
        macro = rf"^[^\S\n]*#[^\S\n]*define[^\S\n]+{name}[^\S\n]+([^\n]+)"
        constant = rf"\bconst(?:expr)?\s+[\w\s]*\b{name}\s*=([^;,]+)"
        values = {
            _value(text, value, depth - 1)
            for value in (*re.findall(macro, text, re.M), *re.findall(constant, text))
            if depth
        }
        return str(values.pop()) if len(values) == 1 else "None"

    arithmetic = _WORD.sub(replaced, _COMMENT.sub("", expression)).replace("/", "//")
    if not re.fullmatch(r"[\d\s()*/+%<-]+", arithmetic) or "**" in arithmetic:
        return None
    try:
        value = eval(arithmetic, {"__builtins__": {}})
    except (SyntaxError, ArithmeticError):
        return None
    return value if isinstance(value, int) and 0 < value < 1 << 40 else None


def barrier_between(
    texts: Mapping[str, str],
    line: Line | None,
    other: Line | None,
    threads: Sequence[Sequence[int]],
) -> str:
    """Return advice for two accesses of a block with a barrier between their lines, else ""."""
    if not line or not other or line.file != other.file or line.file not in texts:
        return ""
    first, last = sorted((line.line, other.line))
    text = _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), texts[line.file])
    if _function_begins(text, first + 1, last - 1):
        return ""
    (x, *plane), (other_x, *other_plane) = threads
    in_warp = not any(plane) and not any(other_plane) and x // 32 == other_x // 32
    for number, code in enumerate(text.split("\n")[first : last - 1], first + 1):
        waits = _BLOCK_BARRIER.search(code) or (in_warp and _WARP_BARRIER.search(code))
        if waits and not re.search(r"\bif\b", code):
            return (
                f"line {number} has a barrier, but none keeps a thread from coming to line {first} "
                f"again, in the next pass of a loop or the next call, while another one is still "
                f"at line {last}: put one behind line {last}, too"
            )
    return ""


def _function_begins(text: str, first: int, last: int) -> bool:
    """Return whether lines of a source, counted from 1, have code outside of functions."""
    for token in scan(text):
        outside = all(scope.kind in ("file", "class") for scope in token.scopes)
        if outside and first <= text.count("\n", 0, token.match.start()) + 1 <= last:
            return True
    return False
