"""Count the kernels of public repositories that the emulator compiles and runs.

The table has a row per kernel of the repositories in published.toml, which the user has cloned
side by side, as `git clone` names the folders:

    python benchmarks/checkers/published.py FOLDER --output published-kernels.csv

A kernel is a `__global__` function with a body. A template gets the arguments of launches in its
repository, or values that fit its parameters, until one instance compiles. Arrays and numbers come
from the types of the parameters, so that a kernel may end in a message, such as out of bounds: its
rule is in the column `ended`. `reason` says why a kernel does not compile. A kernel that `#if`
leaves out with the macros of published.toml does not count. Rows that the output has already are
kept; `--again` names outcomes whose rows are made anew.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import functools
import io
import itertools
import random
import re
import subprocess
import tomllib
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from accelviz.emulator import Texture
from accelviz.emulator.build import Kernel
from accelviz.emulator.call import KernelCall, checked_launch, read_kernel
from accelviz.emulator.library import Library, compiled
from accelviz.emulator.signature import Parameter
from accelviz.emulator.source import bracketed, kernels_in, scan, separated
from accelviz.errors import ArgumentError, KernelError
from accelviz.files import written_whole

COLUMNS = ("repository", "file", "kernel", "instance", "outcome", "ended", "reason")
SUFFIXES = (".cu", ".cuh", ".h", ".hpp")
#: Elements of an array, the value of every whole number, processor seconds of a run, threads.
ELEMENTS, NUMBER, SECONDS = 1 << 14, 64, 2.0
#: Instances of a template that are tried, and arguments by the type of the parameter.
INSTANCES = 5
VALUES = {"typename": ("float", "half", "int"), "bool": ("true",), "number": ("32", "4", "128")}
THREADS = 128


_PLAIN = {"float", "half", "int", "double", "true", "false", "unsigned", "char"}


@dataclass(frozen=True)
class Repository:
    """A checkout, its folders of headers by folders of sources, and the text of all its sources.

    `values` has arguments of templates by the parameters' names, `defines` macros to try, and
    `excluded` patterns of files with the reason why their kernels do not count.
    """

    name: str
    folder: Path
    include: dict[str, list[str]]
    values: dict[str, str]
    defines: tuple[dict[str, Any], ...]
    excluded: dict[str, str]
    text: str

    @classmethod
    def of(cls, entry: dict[str, Any], checkouts: Path) -> Repository:
        """Read the checkout that an entry of published.toml describes."""
        folder = checkouts / entry["name"].partition("/")[2]
        if not folder.is_dir():
            raise SystemExit(f"{folder} is missing: git clone https://github.com/{entry['name']}")
        if (folder / ".git").exists():
            command = ["git", "-C", str(folder), "rev-parse", "HEAD"]
            commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            if commit.strip() != entry["commit"]:
                raise SystemExit(f"{folder}: git checkout {entry['commit']}")
        text = "\n".join(map(_text, _sources(folder, (*SUFFIXES, ".cpp"))))
        defines = ({}, *entry.get("defines", ()))
        tables = [entry.get(key, {}) for key in ("include", "values")]
        return cls(entry["name"], folder, *tables, defines, entry.get("excluded", {}), text)

    def folders(self, file: Path) -> list[Path]:
        """Return the folders of headers of a source."""
        path_in_checkout = file.relative_to(self.folder).as_posix()
        lists = [
            paths for start, paths in self.include.items() if path_in_checkout.startswith(start)
        ]
        return [self.folder / path for paths in lists for path in paths]

    def mains(self, file: Path) -> list[Path]:
        """Return a file, and the sources beside it that include it."""
        if file.suffix == ".cu" and "main" in _text(file):
            return [file]
        including = re.compile(rf'#include\s*[<"](?:[^">]*/)?{re.escape(file.name)}[">]')
        near = _sources(file.parent, (".cu",))
        return [file, *(one for one in near if one != file and including.search(_text(one)))]

    def kernels(self) -> Iterator[tuple[Path, str]]:
        """Yield the file and qualified name of each kernel that has a body."""
        for file in _sources(self.folder, SUFFIXES):
            text, path_in_checkout = _text(file), file.relative_to(self.folder).as_posix()
            if "__global__" in text and not any(map(path_in_checkout.startswith, self.excluded)):
                yield from ((file, name) for name in kernels_in(text) if _has_body(text, name))


def _sources(folder: Path, suffixes: Sequence[str]) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in suffixes and path.is_file())


def _text(file: Path) -> str:
    return file.read_text("utf-8-sig", "replace")


def _has_body(text: str, kernel: str) -> bool:
    name = kernel.rpartition("::")[2]
    return any(
        token.text == "{" and re.search(rf"\b{name}\s*\(", token.statement)
        for token in scan(text)
        if "__global__" in token.statement
    )


def instances(repository: Repository, text: str, kernel: str) -> list[str]:
    """Return the instances of a kernel to try, the kernel itself if it is no template."""
    name = kernel.rpartition("::")[2]
    header = _template_header(text, name)
    if not header:
        return [kernel]
    launch = re.compile(rf"\b{name}\s*<((?:[^;{{}}()<>]|<[^;{{}}()<>]*>)*)>\s*<<<")
    chosen = list[str]()
    for source in (text, repository.text):
        for match in launch.finditer(source):
            values = [
                _resolved(value, source[: match.start()], repository.values)
                for value in separated(match[1])
            ]
            if None not in values:
                chosen.append(", ".join(map(str, values)))
        if chosen:
            break
    parameters = [one for one in separated(header[1:-1]) if one and "=" not in one]
    options = list[tuple[str, ...]]()
    for one in parameters:
        kind = "typename" if re.match(r"typename|class", one) else one.split()[0]
        last = re.findall(r"\w+", one)[-1]
        fixed = repository.values.get(f"{name}.{last}") or repository.values.get(last)
        options.append((fixed,) if fixed else VALUES.get(kind, VALUES["number"]))
    chosen += [", ".join(values) for values in _by_change(options)]
    return [f"{kernel}<{values}>" for values in dict.fromkeys(chosen)][:INSTANCES]


def _resolved(value: str, before: str, values: Mapping[str, str], depth: int = 8) -> str | None:
    """Return an argument of a template in literals and types, None if a name stays unknown.

    `before` is the text in front of the launch, whose last definition of a name counts.
    """

    def replaced(match: re.Match[str]) -> str:
        name = match[0]
        if name in _PLAIN or not depth:
            return name if depth else "?"
        if name in values:
            return values[name]
        definition = (
            rf"#define\s+{name}[^\S\n]+([^\n]*)|\bconst(?:expr)?\s+[\w\s]*\b{name}\s*=([^;]*)"
        )
        macro, constant = re.findall(definition, before)[-1]
        resolved = _resolved((macro or constant).strip(), before, values, depth - 1)
        return f"({resolved})" if resolved else "?"

    try:
        text = re.sub(r"\b[A-Za-z_][\w:]*", replaced, re.sub(r"//[^\n]*", "", value)).strip()
    except IndexError:  # a name without a definition
        return None
    return None if "?:" in text or re.search(r"\?\)|^\?$|\(\?", text) else text


def _by_change(options: Sequence[Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """Yield tuples of one value of each: the first ones, then all second ones, then mixtures."""
    for number in range(max(map(len, options), default=1)):
        yield tuple(values[min(number, len(values) - 1)] for values in options)
    yield from itertools.islice(itertools.product(*options), 64)


def _template_header(text: str, name: str) -> str:
    for token in scan(text):
        if token.text == "(" and re.search(rf"__global__.*\b{name}$", token.statement, re.S):
            template = re.search(r"\btemplate\s*(?=<)", token.statement)
            if template:
                return bracketed(token.statement[template.end() :], "<>")
    return ""


def argument(parameter: Parameter, has_textures: bool) -> Any:
    """Return an array or a number that a parameter accepts."""
    rng = np.random.default_rng(0)
    if parameter.pointer:
        if parameter.kind in "spv":
            return np.zeros(ELEMENTS * max(1, parameter.size), "V1").view(
                f"V{max(1, parameter.size)}"
            )
        count = ELEMENTS * parameter.size // parameter.itemsize
        if parameter.kind == "f" and "bfloat16" not in parameter.type:
            return rng.random(count).astype(parameter.dtype)
        return rng.integers(0, 2, count).astype(
            "u2" if "bfloat16" in parameter.type else parameter.dtype
        )
    if has_textures and parameter.kind == "u" and parameter.size == 8:
        return Texture(rng.random((NUMBER, NUMBER)).astype("f4"))
    if parameter.kind in "spe":
        return np.zeros((), np.dtype([("bytes", "u1", (parameter.size,))]))[()]
    if parameter.is_composite:
        return (NUMBER,) * (parameter.size // parameter.itemsize)
    return {"f": 0.5, "b": True}.get(parameter.kind, NUMBER)


def _ended(kernel: Kernel, library: Library) -> str:
    """Run a kernel with made arguments; return "end", or the rule of its message."""
    has_textures = re.search("(?:Texture|Surface)Object", kernel.declaring_text) is not None
    arguments = tuple(argument(one, has_textures) for one in library.parameters)
    try:
        call = KernelCall.of(kernel, checked_launch(1, THREADS, 48 << 10), arguments, {}, None)
        with contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
            call.run(timeout=SECONDS)
    except KernelError as error:
        return error.mistake or error.problem[:60]
    except ArgumentError as error:
        return f"argument: {error.problem[:60]}"
    return "end"


def row(repository: Repository, file: Path, kernel: str) -> dict[str, str]:
    """Compile and run a kernel; return the row of the table."""
    chosen = instances(repository, _text(file), kernel)
    mains = repository.mains(file)
    tries = [(mains[0], one, repository.defines[0]) for one in chosen]
    tries += [(main, chosen[0], macros) for main in mains for macros in repository.defines]
    reason, outcome, ended, last = "", "refused", "", chosen[0]
    for path, instance, macros in dict.fromkeys((*one[:2], tuple(one[2].items())) for one in tries):
        try:
            folders = repository.folders(path)
            source = read_kernel(path, instance, dict(macros), "sm_90", folders)
            library = compiled(source)
        except KernelError as error:
            message = f"{error.problem}. {error.expected}"
            reason = reason or re.sub(r",? at `.*?`(?=\.|$)", "", message, flags=re.S)
        except ArgumentError as error:
            reason = reason or f"{error.argument}: {error.problem}"
        else:
            outcome, reason, last = "compiled", "", instance
            ended = _ended(source, library)
            break
    if reason.startswith("#if leaves out"):
        outcome = "left out"
    path_in_checkout = file.relative_to(repository.folder).as_posix()
    values = (repository.name, path_in_checkout, kernel, last, outcome, ended, reason[:300])
    return dict(zip(COLUMNS, values, strict=True))


def _row_of(repository: Repository, kernel: tuple[Path, str]) -> dict[str, str]:
    return row(repository, *kernel)


def summary(rows: Sequence[dict[str, str]]) -> str:
    """Return the shares of each repository, and the most frequent reasons."""
    lines = list[str]()
    rows = [row for row in rows if row["outcome"] != "left out"]
    for name in [*dict.fromkeys(row["repository"] for row in rows), ""]:
        of_name = [row for row in rows if name in ("", row["repository"])]
        done = [row for row in of_name if row["outcome"] == "compiled"]
        ends = sum(row["ended"] == "end" for row in done)
        share = 100 * len(done) / len(of_name)
        lines.append(f"{name or 'all'}: {len(done)} of {len(of_name)} ({share:.1f} %), {ends} end")
    reasons = Counter(
        re.sub(r"'[^']*'", "'...'", row["reason"])[:90] for row in rows if row["reason"]
    )
    lines += [f"{count:4} {reason}" for reason, count in reasons.most_common(25)]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="with a checkout of each repository")
    parser.add_argument("--output", type=Path, required=True, help="a CSV file")
    parser.add_argument("--repositories", nargs="*", default=[], help="parts of their names")
    parser.add_argument("--again", nargs="*", default=[], help="outcomes, such as refused")
    parser.add_argument("--sample", type=int, help="most kernels of a repository, by chance")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    entries = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["repository"]
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    if options.output.exists():
        with options.output.open(newline="") as file:
            for old in csv.DictReader(file):
                is_chosen = any(map(old["repository"].__contains__, options.repositories or [""]))
                if not (is_chosen and old["outcome"] in options.again):
                    rows[tuple(old[key] for key in COLUMNS[:3])] = old

    def save() -> None:
        with written_whole(options.output) as temporary, temporary.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows[key] for key in sorted(rows))

    for entry in entries:
        if options.repositories and not any(one in entry["name"] for one in options.repositories):
            continue
        repository = Repository.of(entry, options.folder)
        kernels = [*repository.kernels()]
        random.Random(0).shuffle(kernels)
        pending = [
            (file, kernel)
            for file, kernel in kernels[: options.sample]
            if (repository.name, file.relative_to(repository.folder).as_posix(), kernel) not in rows
        ]
        with ThreadPoolExecutor(options.jobs) as pool:
            for number, new in enumerate(pool.map(functools.partial(_row_of, repository), pending)):
                rows[tuple(new[key] for key in COLUMNS[:3])] = new
                if number % 5 == 0:
                    save()
        save()
    print(summary([*rows.values()]))


if __name__ == "__main__":
    main()
