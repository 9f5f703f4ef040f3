"""GPU architectures as targets: their macros, and the code that these exclude."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from accelviz.errors import ArgumentError

DEFAULT = "sm_90"
#: Compute capabilities of CUDA 13.0, and the older ones, which CUDA 12.9 is the last to compile.
_CAPABILITIES = (75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121)
_OLDER = (50, 52, 53, 60, 61, 62, 70, 72)
_TOOLKIT, _OLDER_TOOLKIT = (13, 0, 88), (12, 9, 86)  # major, minor, build
#: `#if` and its like are found behind comments and literals, which match as a whole.
_DIRECTIVE = re.compile(
    r"//(?:\\\n|[^\n])*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
    r"|^[^\S\n]*\#[^\S\n]*(?P<word>ifdef|ifndef|if|elif|else|endif)\b(?P<rest>(?:\\\n|[^\n])*)",
    re.S | re.M,
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_ANY_DIRECTIVE = re.compile(r"^[^\S\n]*#(?:\\\n|[^\n])*", re.M)
#: The warning by which the compiler reports that it compiles a group, with the lines below it.
_REPORT = re.compile(
    r"^.*warning: .*\b(?:compiled group (\d+)|absent header: .*).*\n(?: .*\n)*", re.M
)


def check_target(arch: str) -> None:
    """Raise ArgumentError unless `arch` is an architecture that CUDA compiles for."""
    match = re.fullmatch(r"sm_(\d+)([af]?)", arch) if isinstance(arch, str) else None
    capability = int(match[1]) if match else 0
    least = {"": 50, "a": 90, "f": 100}[match[2] if match else ""]
    if capability not in (*_OLDER, *_CAPABILITIES) or capability < least:
        names = ", ".join(f"sm_{number}" for number in (*_OLDER, *_CAPABILITIES))
        expected = f"one of {names}; from sm_90 on also with a, from sm_100 on with f"
        raise ArgumentError("arch", f"got {arch!r}", expected)


def target_macros(arch: str) -> dict[str, str]:
    """Return the macros that NVIDIA's compiler defines for device code of an architecture."""
    number = re.sub(r"\D", "", arch)
    major, minor, build = map(str, _OLDER_TOOLKIT if int(number) in _OLDER else _TOOLKIT)
    macros = {
        "__CUDACC__": "1",
        "__NVCC__": "1",
        "__CUDA_ARCH__": f"{number}0",
        "__CUDA_ARCH_LIST__": f"{number}0",
        "__CUDACC_VER_MAJOR__": major,
        "__CUDACC_VER_MINOR__": minor,
        "__CUDACC_VER_BUILD__": build,
        "__CUDA_API_VER_MAJOR__": major,
        "__CUDA_API_VER_MINOR__": minor,
        "CUDART_VERSION": f"{major}0{minor}0",
    }
    if arch.endswith("a"):
        macros |= {f"__CUDA_ARCH_FEAT_SM{number}_ALL": "", "__CUDA_ARCH_SPECIFIC__": f"{number}0"}
    if arch.endswith(("a", "f")):
        macros["__CUDA_ARCH_FAMILY_SPECIFIC__"] = f"{number}0"
    return macros


#: A macro of the target, in a condition.
_TARGET = re.compile(
    r"\b(?:__CUDA_ARCH\w*|__CUDACC\w*|__NVCC__|__CUDA_API_VER_\w+|CUDART_VERSION|CUDA_VERSION)\b"
)


@dataclass
class _Group:
    """The text between two directives of an `#if`."""

    directive: str  # as in the source, on one line
    begin: int  # offset after the directive
    first_line: int  # line after the directive
    parent: int  # number of the enclosing group, -1: none
    last_line: int = 0
    has_code: bool = False


@dataclass
class Conditionals:
    """The groups of a text's `#if` directives; `chains` that a target's macro decides."""

    groups: list[_Group] = field(default_factory=list)
    chains: list[list[int]] = field(default_factory=list)

    @classmethod
    def of(cls, source: str) -> Conditionals:
        """Scan a text; `chains` is empty if no condition has a macro of the target."""
        conditionals = cls()
        chains: list[list[int]] = []  # open ones
        for match in _DIRECTIVE.finditer(source):
            word, line = match["word"], source.count("\n", 0, match.end()) + 2
            if not word:
                continue
            if not word.startswith("if"):
                if not chains:
                    return cls()  # unbalanced: the compiler reports it
                group = conditionals.groups[chains[-1][-1]]
                group.last_line = source.count("\n", 0, match.start())
                group.has_code = _has_code(source[group.begin : match.start()])
            if word == "endif":
                chain = chains.pop()
                if any(_TARGET.search(conditionals.groups[i].directive) for i in chain):
                    conditionals.chains.append(chain)
                continue
            parent = chains[-1][-1] if chains else -1
            if word.startswith("if"):
                chains.append([])
            else:
                parent = conditionals.groups[chains[-1][0]].parent
            text = _COMMENT.sub("", match[0].replace("\\\n", " "))
            directive = " ".join(text.split())
            if word == "else":
                directive += f" of {conditionals.groups[chains[-1][0]].directive}"
            chains[-1].append(len(conditionals.groups))
            conditionals.groups.append(_Group(directive, match.end(), line, parent))
        return conditionals if not chains else cls()

    def mark(self, source: str, file: str) -> str:
        """Add a warning to each group, by which the compiler reports that it compiles it.

        `source` has the directives of the scanned text and may differ from it between them.
        """
        if not self.chains:
            return source
        pieces, begin, number = list[str](), 0, 0
        # A package's kernel has a `struct Config` in front of its first line.
        start = source.rfind(f'#line 1 "{file}"\n') + 1
        start = source.find("\n", start) + 1 if start else 0
        for match in _DIRECTIVE.finditer(source):
            if not match["word"]:
                continue
            pieces.append(source[begin : match.end()])
            begin = match.end()
            line = source.count("\n", start, begin) + 2
            if match["word"] != "endif":
                pieces.append(f"\n#warning compiled group {number}")
                number += 1
            # An excluded group's `#line` is skipped with it, hence one after `#endif` as well.
            pieces.append(f'\n#line {line} "{file}"')
        return "".join([*pieces, source[begin:]])

    def left_out(self, log: str, arch: str) -> str:
        """Return in one line what the target's macros exclude, by the compiler's warnings."""
        compiled = {int(number) for number in _REPORT.findall(log) if number} | {-1}
        excluded = [
            f"line{'s' if group.last_line > group.first_line else ''} {group.first_line}"
            + (f" to {group.last_line}" if group.last_line > group.first_line else "")
            + f" ({group.directive[:60]})"
            for number, group in sorted((i, self.groups[i]) for one in self.chains for i in one)
            if number not in compiled and group.parent in compiled and group.has_code
        ]
        if not excluded:
            return ""
        more = f" and {len(excluded) - 4} more groups" if len(excluded) > 4 else ""
        return f"not compiled for {arch}: {', '.join(excluded[:4])}{more}; arch= sets the target"


def without_reports(log: str) -> str:
    """Return a compiler's log without the warnings of `Conditionals.mark`."""
    return _REPORT.sub("", log)


def _has_code(text: str) -> bool:
    """Return whether a text has more than comments and directives."""
    return bool(_ANY_DIRECTIVE.sub("", _COMMENT.sub("", text)).strip())
