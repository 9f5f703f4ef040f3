"""Structures as arguments of kernels: the layout of their members, read from the source's text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.emulator.source import separated
from accelviz.errors import ArgumentError, short

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|^[^\S\n]*#(?:\\\n|[^\n])*", re.S | re.M)
_BLOCK = re.compile(r"\{[^{}]*\}")
#: NumPy's dtypes of C's types.
_TYPES = {
    name: dtype
    for dtype, names in {
        "b1": "bool",
        "i1": "char,signed char,int8_t",
        "u1": "unsigned char,uchar,uint8_t",
        "i2": "short,int16_t",
        "u2": "unsigned short,ushort,uint16_t,__nv_bfloat16",
        "i4": "int,signed,int32_t",
        "u4": "unsigned,unsigned int,uint,uint32_t",
        "i8": "long,long long,int64_t,longlong",
        "u8": "unsigned long,unsigned long long,size_t,uint64_t,ulonglong",
        "f2": "half,__half",
        "f4": "float",
        "f8": "double",
    }.items()
    for name in names.split(",")
}
_VECTOR = re.compile(r"(u?(?:char|short|int|longlong)|float|double)([1-4])")


@dataclass(frozen=True)
class Member:
    """A member of a structure: its dtype, offset, and whether it is a pointer, to const or not."""

    dtype: np.dtype[Any]
    offset: int
    pointer: bool = False
    const: bool = False


@dataclass
class _Layout:
    """Members by name, and the alignment and size of a structure."""

    members: dict[str, Member] = field(default_factory=dict)
    alignment: int = 1
    end: int = 0

    @property
    def size(self) -> int:
        return -(-self.end // self.alignment) * self.alignment

    def add(
        self, name: str, member: np.dtype[Any], alignment: int, pointer: bool, const: bool
    ) -> None:
        offset = -(-self.end // alignment) * alignment
        self.members[name] = Member(member, offset, pointer, const)
        self.alignment, self.end = max(self.alignment, alignment), offset + member.itemsize


def members_of(text: str, type_: str, size: int) -> dict[str, Member]:
    """Return the members of a structure of a source; empty if they are not plain.

    `size` is the number of bytes that the compiler gives the structure.
    """
    layout = _layout(_COMMENT.sub(" ", text), _unqualified(type_))
    return layout.members if layout and layout.size == size else {}


def _layout(text: str, name: str) -> _Layout | None:
    body = _body(text, name)
    layout = _Layout()
    for statement in _statements(body):
        words = statement.split()
        if words[0] in ("static", "using", "typedef", "friend", "enum") or "(" in statement:
            if "(" in statement and re.match(r"(?:alignas|__align__)\b", statement):
                return None
            continue
        match = re.fullmatch(
            r"(?P<type>[\w:\s]+?(?:<[^<>]*>)?)(?P<first>[\s*&]+(?:const\b|__restrict__\b|[\s*])*\w+\s*(?:\[.*?\])*)"
            r"(?P<others>(?:,.*)?)",
            statement,
            re.S,
        )
        if match is None:
            return None
        of_type = _element(text, match["type"])
        const = "const" in match["type"].split()
        for declarator in f"{match['first']}{match['others']}".split(","):
            parts = re.fullmatch(
                r"([\s*]*)(?:const\s|__restrict__\s)*\s*(\w+)\s*((?:\[\w+\]\s*)*)", declarator
            )
            lengths = re.findall(r"\[(\w+)\]", parts[3]) if parts else []
            if parts is None or not all(map(str.isdigit, lengths)):
                return None
            if "*" in parts[1]:
                dtype, alignment = np.dtype(np.uint64), 8
            elif of_type is None:
                return None
            else:
                dtype, alignment = of_type
            shape = tuple(map(int, lengths))
            pointer = "*" in parts[1] and not shape
            layout.add(parts[2], np.dtype((dtype, shape)), alignment, pointer, const)
    return layout if layout.members else None


def _body(text: str, name: str) -> str:
    """Return the text between the braces of a structure, "" without one or with a base.

    Names of template parameters are replaced by the arguments in `name`.
    """
    name, bracket, values = name.partition("<")
    if bracket:
        return _instance(text, name.strip(), separated(values.rpartition(">")[0]))
    match = re.search(rf"\b(?:struct|class)\s+{re.escape(name)}\s*(?=\{{)", text)
    alias = re.search(rf"\}}\s*{re.escape(name)}\s*;", text)
    begin = match.end() if match else -1
    if match is None and alias:
        depth = 0
        for offset in range(alias.start(), -1, -1):
            depth += (text[offset] == "}") - (text[offset] == "{")
            if not depth:
                begin = offset if re.search(r"typedef\s+struct\s*\w*\s*$", text[:offset]) else -1
                break
    if begin < 0:
        return ""
    depth = 0
    for offset in range(begin, len(text)):
        depth += (text[offset] == "{") - (text[offset] == "}")
        if not depth:
            return text[begin + 1 : offset]
    return ""


def _unqualified(type_: str) -> str:
    """Return a type without its namespaces, but for those in its template arguments."""
    name, bracket, arguments = type_.partition("<")
    return name.rpartition("::")[2] + bracket + arguments


def _instance(text: str, name: str, arguments: Sequence[str]) -> str:
    """Return the text between the braces of an instance of a template of a structure."""
    header = re.search(rf"\btemplate\s*<([^<>]*)>\s*(?:struct|class)\s+{re.escape(name)}\b", text)
    parameters = separated(header[1]) if header else []
    if len(parameters) != len(arguments) or "..." in "".join(parameters):
        return ""
    body = _body(text, name)
    for parameter, argument in zip(parameters, arguments, strict=True):
        word = re.search(r"(\w+)\s*(?:=.*)?$", parameter)
        if not word:
            return ""
        body = re.sub(rf"\b{word[1]}\b", argument, body)
    return body


def _statements(body: str) -> Iterator[str]:
    """Yield the declarations in a structure, without values and bodies of functions."""
    while (outer := _BLOCK.sub(";", body)) != body:
        body = outer
    for statement in re.sub(r"\b(?:public|private|protected)\s*:", " ", body).split(";"):
        declaration = re.sub(r"=[^,;]*", "", statement).strip()
        if declaration:
            yield declaration


def _element(text: str, type_: str) -> tuple[np.dtype[Any], int] | None:
    """Return (dtype, alignment) of a type, None if it is unknown."""
    words = [word for word in type_.split() if word not in ("const", "volatile", "struct")]
    if words[1:] and words[-1] == "int":  # `long int`
        words.pop()
    name = " ".join(words).removeprefix("std::")
    if name in _TYPES:
        dtype = np.dtype(_TYPES[name])
        return dtype, dtype.itemsize
    if match := _VECTOR.fullmatch(name):
        component, count = np.dtype(_TYPES[match[1]]), int(match[2])
        size = component.itemsize * count
        return np.dtype((component, (count,))), component.itemsize if count == 3 else min(size, 16)
    layout = _layout(text, _unqualified(name))
    return (_dtype(layout.members, layout.size), layout.alignment) if layout else None


def _dtype(members: Mapping[str, Member], size: int) -> np.dtype[Any]:
    values = members.values()
    return np.dtype(
        {
            "names": [*members],
            "formats": [member.dtype for member in values],
            "offsets": [member.offset for member in values],
            "itemsize": size,
        }
    )


def structured(
    name: str, value: Mapping[str, Any] | tuple[Any, ...], members: Mapping[str, Member], size: int
) -> tuple[Any, dict[str, npt.NDArray[Any]]]:
    """Return (structured scalar, {member that is a pointer: array}) for the argument `name`.

    Raises
    ------
    ArgumentError
        If a member is missing or unknown, or its value does not fit.
    """
    expected = "{" + ", ".join(members) + "}"
    if isinstance(value, tuple):
        if len(value) != len(members):
            values = f"{len(value)} value{'s' * (len(value) != 1)}"
            problem = f"got {values} for a structure of {len(members)} members"
            raise ArgumentError(name, problem, expected)
        value = dict(zip(members, value, strict=True))
    if value.keys() != members.keys():
        odd = sorted(map(str, value.keys() ^ members.keys()))
        word = "no member" if odd[0] in value else "no value for the member"
        raise ArgumentError(name, f"{word} {short(odd[0])}", expected)
    scalar, arrays = np.zeros((), _dtype(members, size)), dict[str, npt.NDArray[Any]]()
    for key, member in members.items():
        one = value[key]
        if member.pointer:
            if one is not None and not isinstance(one, np.ndarray):
                raise ArgumentError(f"{name}.{key}", f"got {short(one)}", "an array, or None")
            if one is not None:
                arrays[key] = one
            continue
        try:
            number = np.asarray(one)
            is_whole = number.dtype.kind == "f" and member.dtype.base.kind in "iu"
            if is_whole and not np.array_equal(number, number.astype(member.dtype.base)):
                raise ValueError("a fraction")
            scalar[key] = tuple(one.values()) if isinstance(one, Mapping) else one
        except (TypeError, ValueError, OverflowError) as error:
            problem = f"got {short(one)}"
            raise ArgumentError(f"{name}.{key}", problem, f"{member.dtype}") from error
    return scalar[()], arrays
