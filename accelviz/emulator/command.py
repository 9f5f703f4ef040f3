"""The command `accelviz check`: run a kernel of a `.cu` file in the emulator and report mistakes.

It imports neither graphs nor plots, so that it starts quickly and needs neither pandas nor SciPy.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accelviz.emulator.call import KernelCall, checked_launch, excluded_code, read_kernel
from accelviz.emulator.target import DEFAULT
from accelviz.emulator.textures import ADDRESSES, Texture
from accelviz.errors import ArgumentError, KernelError, check_fits
from accelviz.files import written_whole

HELP = "run a CUDA kernel without a GPU and name its mistakes"
_DTYPES = ("bool", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)))
_DTYPES += ("float16", "bfloat16", "float32", "float64")
_FILLS = ("zeros", "ones", "random", "range", "out")
#: (pattern in messages of `emulate`, the command's option that it means)
_OPTIONS = (
    (r"emulate\(\.\.\., symbols=\{\"(\w+)\": array\}\)", r"--symbol \1=ARRAY"),
    (r"shared_bytes= of emulate", "--shared"),
    (r"\bshared_bytes\b", "--shared"),
    (r"\bsymbols=(?= fills)", "--symbol"),
    (r"\bsymbols=", "--symbol "),
    (r"^(\d+ bytes as of np\.(?:array|dtype).*)(?=, for the parameter)", r"\1 in a .npy file"),
    (r"\bdefines=", "-D"),
    (r"\b(kernel|arch|timeout|include)=$", r"--\1"),
    (r"\b(kernel|arch|timeout|include)= ?", r"--\1 "),
    (r" and pass that as pathlib\.Path\('kernel\.cu'\)", ""),
    (r"Texture\(\.\.\., as_float=True\)", "texture,as_float:ARRAY"),
    (r"the argument is None", "the argument is null"),
    (r"^(kernel|arch|grid|block|cluster|include)$", r"--\1"),
)
_TEXTURE = re.compile(
    rf"texture(?P<flags>(?:,(?:2|4|linear|normalized|as_float|{'|'.join(ADDRESSES)}))*):(?P<array>.+)"
)
_EPILOG = f"""\
arguments of the kernel, in its order or as NAME=VALUE:
  100, 0.5, true, null        a number, a bool, a null pointer
  1,2,3                       a vector, such as an int3
  {{X.npy,64}} {{data=X.npy,n=64}}  a structure, by order or names of its members
  X.npy                       an array in a file of NumPy
  FILL:DTYPE:SHAPE            an array: random:float32:128x64
  texture,FLAGS:ARRAY         a texture or surface; FLAGS: linear, normalized, as_float, border,
                              wrap, mirror, and the number of channels, 2 or 4
  random:DTYPE:SHAPE:LIMIT    random numbers from 0 to below LIMIT, such as indices

  FILL   {", ".join(_FILLS)}; random is normal, or 0 to 99 for integers;
         out is an output whose elements may not be read before they are written
  DTYPE  {", ".join(_DTYPES)}

exit status:
  0  no mistake
  1  the kernel makes a mistake, or does not compile
  2  nothing was checked: wrong usage, or no C++ compiler

example:
  accelviz check add.cu --grid 4 --block 256 random:float32:1000 Y.npy out:float32:1000 n=1000
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of `accelviz check`; use its `parse_intermixed_args`."""
    check = argparse.ArgumentParser(
        prog="accelviz check",
        description=f"{HELP[0].upper()}{HELP[1:]}.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    check.add_argument("source", metavar="KERNEL.cu", help="CUDA source, - for standard input")
    check.add_argument("arguments", nargs="*", metavar="ARGUMENT", help="see below")
    size: dict[str, Any] = {"type": _size, "required": True, "metavar": "X[,Y[,Z]]"}
    check.add_argument("--grid", help="number of blocks", **size)
    check.add_argument("--block", help="number of threads of a block", **size)
    helps = "number of blocks of a cluster, by default those of __cluster_dims__"
    check.add_argument("--cluster", help=helps, type=_size, metavar="X[,Y[,Z]]")
    helps = "__global__ function, if there are several; 'k<32>' for an instance of a template"
    check.add_argument("--kernel", metavar="NAME", help=helps)
    check.add_argument("--shared", type=int, default=0, metavar="BYTES", help="of dynamic memory")
    helps = "order of threads and random arrays; 0, the default, runs threads in order"
    check.add_argument("--seed", type=int, default=0, help=helps)
    many: dict[str, Any] = {"action": "append", "default": []}
    macro: dict[str, Any] = {"action": _Macro, "dest": "define", "default": {}}
    check.add_argument(
        "-D",
        "--define",
        "--define-macro",
        metavar="NAME[=VALUE]",
        help="a macro, 1 without a value",
        **macro,
    )
    check.add_argument(
        "-U",
        "--undefine",
        "--undefine-macro",
        metavar="NAME",
        const=True,
        help="no macro of this name",
        **macro,
    )
    check.add_argument(
        "-I", "--include", "--include-path", metavar="FOLDER", help="of headers", **many
    )
    helps = "a header that is read before the source"
    check.add_argument(
        "-include", "--pre-include", dest="pre_include", metavar="FILE", help=helps, **many
    )
    helps = "initial value of a __constant__ or __device__ variable, written as an argument"
    check.add_argument("--symbol", metavar="NAME=ARRAY", help=helps, **many)
    check.add_argument("--save", metavar="NAME=FILE.npy", help="write an output to a file", **many)
    check.add_argument(
        "--arch",
        "-arch",
        "--gpu-architecture",
        default=DEFAULT,
        help="GPU architecture (%(default)s)",
    )
    helps = "limit of processor time (%(default)g)"
    check.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help=helps)
    helps = "text, annotations of GitHub, or SARIF 2.1.0"
    formats = ("text", "github", "sarif")
    check.add_argument("--format", choices=formats, default="text", help=helps)
    return check


class _Macro(argparse.Action):
    """Add a macro to the dict of macros, or None for -U; the latest option counts."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        macros = dict(getattr(namespace, self.dest))
        # As for NVIDIA's compiler, commas separate macros.
        for text in re.split(r",(?=[A-Za-z_]\w*(?:[=(,]|$))", values):
            name, equals, value = text.strip().partition("=")
            if not re.fullmatch(r"[A-Za-z_]\w*(\([\w\s,.]*\))?", name) or (self.const and equals):
                parser.error(f"{option_string}: got {text!r}, expected {self.metavar}")
            macros[name] = None if self.const else value if equals else 1
        setattr(namespace, self.dest, macros)


def run(options: argparse.Namespace, version: str) -> tuple[str, int]:
    """Check the kernel that the options of `parser` describe; return (text, exit status).

    `version` is that of accelviz, for SARIF.

    Raises
    ------
    ArgumentError, DeviceUnavailable
        If nothing was checked.
    """
    if options.seed < 0:
        raise ArgumentError("--seed", f"got {options.seed}", "0 or more")
    if not options.timeout > 0:
        raise ArgumentError("--timeout", f"got {options.timeout}", "seconds, more than 0")
    path, error, note, summary, printed = options.source, None, "", "", io.StringIO()
    source = _source(path)
    accepted: list[Mistake] = []
    try:
        with contextlib.redirect_stdout(printed):
            call, unwritten, files = _call(options, source)
            note, summary = _options_named(excluded_code(call)), _summary(call)
            results = call.run(unwritten, seed=options.seed, timeout=options.timeout)
    except KernelError as kernel_error:
        error = kernel_error
    except ArgumentError as argument_error:
        parts = argument_error.argument, argument_error.problem, argument_error.expected
        raise ArgumentError(*map(_options_named, parts)) from argument_error
    else:
        accepted = [Mistake.of(one, path, source) for one in results.notes]
        for name, file in files.items():
            _save(file, results[name])
    mistake = Mistake.of(error, path, source) if error else None
    if options.format == "text":
        notes = f"{'kernel.cu' if path == '-' else path}: note: {note}\n" if note else ""
        notes += "".join(f"{one.text('note')}\n" for one in accepted)
        report = mistake.text() if mistake else f"{path}: no mistake: {summary}"
        return f"{printed.getvalue()}{notes}{report}", int(error is not None)
    print(printed.getvalue(), end="", file=sys.stderr)
    if options.format == "sarif":
        return json.dumps(_sarif(mistake, accepted, note, version), indent=2), int(
            error is not None
        )
    warning = f"::warning file={_property(path)}::{_escaped(note)}" if note else ""
    annotations = [one.annotation("notice") for one in accepted]
    annotations += [mistake.annotation()] if mistake else []
    return "\n".join(filter(None, (warning, *annotations))), int(error is not None)


class Mistake(NamedTuple):
    """A KernelError with the place in the user's file; `line` is 0 if it is unknown."""

    rule: str
    path: str
    line: int
    code: str
    problem: str
    advice: str

    @classmethod
    def of(cls, error: KernelError, path: str, source: str | Path) -> Mistake:
        """Return the mistake of a kernel in the file `path`, "-" for the text `source`."""
        file = Path("kernel.cu" if path == "-" else path)
        parts = re.fullmatch(r"(?:(?P<kernel>.+), )?(?P<file>[^,]+):(?P<line>\d+)", error.argument)
        problem, line, code = error.problem.rstrip("."), 0, ""
        # A line in a header of the emulator, which the user does not have, stays in the text.
        header = file.parent / parts["file"] if parts else file
        if parts and (header.name == file.name or header.is_file()):
            file, line = header, int(parts["line"])
            problem = f"{parts['kernel']}: {problem}" if parts["kernel"] else problem
            is_text = isinstance(source, str) and file.name == "kernel.cu"
            text = str(source) if is_text else file.read_text("utf-8", "replace")
            lines = text.splitlines()
            code = lines[line - 1].strip() if line <= len(lines) else ""
        elif error.argument != file.name:
            problem = f"{error.argument}: {problem}"
        rule = error.mistake or "not-compiled"
        advice = _options_named(error.expected.rstrip("."))
        return cls(rule, file.as_posix(), line, code, _options_named(problem), advice)

    def text(self, level: str = "error") -> str:
        """Return the mistake as compilers print errors, with the source line and advice."""
        position = f"{self.path}:{self.line}" if self.line else self.path
        lines = [f"{position}: {level}: {self.problem}. [{self.rule}]"]
        lines += [f"    {self.code}"] if self.code else []
        return "\n".join([*lines, *([f"What to do: {self.advice}."] if self.advice else [])])

    def message(self) -> str:
        """Return the problem and the advice in one line."""
        return f"{self.problem}." + (f" What to do: {self.advice}." if self.advice else "")

    def annotation(self, level: str = "error") -> str:
        """Return GitHub's workflow command that shows the mistake beside its line."""
        line = f",line={self.line}" if self.line else ""
        title = f",title={_property(f'accelviz: {self.rule}')}"
        return f"::{level} file={_property(self.path)}{line}{title}::{_escaped(self.message())}"


def _options_named(text: str) -> str:
    """Return a message of `emulate` with the command's options in place of its parameters."""
    for pattern, option in _OPTIONS:
        text = re.sub(pattern, option, text)
    return text


def _escaped(text: str) -> str:
    for character, code in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
        text = text.replace(character, code)
    return text


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


def _sarif(
    mistake: Mistake | None, accepted: Sequence[Mistake], note: str, version: str
) -> dict[str, Any]:
    """Return a log of SARIF 2.1.0 with one run."""
    driver: dict[str, Any] = {"name": "accelviz check", "version": version}
    results = [_sarif_result(one, "note") for one in accepted]
    results += [_sarif_result(mistake, "error")] if mistake else []
    if results:
        driver["rules"] = [{"id": result["ruleId"]} for result in results]
    invocation: dict[str, Any] = {"executionSuccessful": True}
    if note:
        notification = {"level": "warning", "message": {"text": note}}
        invocation["toolExecutionNotifications"] = [notification]
    run = {"tool": {"driver": driver}, "invocations": [invocation], "results": results}
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return {"$schema": schema, "version": "2.1.0", "runs": [run]}


def _sarif_result(mistake: Mistake, level: str) -> dict[str, Any]:
    # An absolute path is a URI with a scheme; a relative one is relative to the checkout.
    absolute = Path(mistake.path).is_absolute()
    uri = Path(mistake.path).as_uri() if absolute else _quoted(mistake.path)
    location: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    if mistake.line:
        location["region"] = {"startLine": mistake.line}
    return {
        "ruleId": mistake.rule,
        "level": level,
        "message": {"text": mistake.message()},
        "locations": [{"physicalLocation": location}],
    }


def _quoted(path: str) -> str:
    from urllib.parse import quote

    return quote(path)


def _source(path: str) -> str | Path:
    """Return the file, or the text of standard input for "-"."""
    if path != "-":
        return Path(path)
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise ArgumentError("source", "standard input is not UTF-8", "CUDA text") from error


def _headers(options: argparse.Namespace, source: str | Path) -> list[Path]:
    """Return the folders of -I, and the headers of -include, also beside the source."""
    folders = [
        Path(one)
        for text in options.include
        for one in ([text] if Path(text).exists() else text.split(","))
    ]
    beside = [Path(), *([source.parent] if isinstance(source, Path) else []), *folders]
    headers = list[Path]()
    for name in options.pre_include:
        paths = [folder / name for folder in beside if (folder / name).is_file()]
        if not paths:
            raise ArgumentError("-include", f"there is no file {name}", "a header")
        headers.append(paths[0])
    return [*headers, *folders]


def _call(
    options: argparse.Namespace, source: str | Path
) -> tuple[KernelCall, list[str], dict[str, Path]]:
    """Return (the call, names of unwritten outputs, {output: file to save}) of the options."""
    rng = np.random.default_rng(options.seed)
    positional: list[tuple[Any, list[Any]]] = []
    named: dict[str, tuple[Any, list[Any]]] = {}
    for text in options.arguments:
        name, value = _name_and_value(text)
        if name in named:
            raise ArgumentError(name, "it is given twice", "one value")
        parsed = _value(name or value, value, rng)
        if name:
            named[name] = parsed
        else:
            positional.append(parsed)
    symbols = {
        name: _value(name, value, rng)[0]
        for name, value in _pairs("--symbol", options.symbol, "NAME=ARRAY")
    }
    headers = _headers(options, source)
    launch = checked_launch(options.grid, options.block, options.shared, options.cluster)
    call = KernelCall.of(
        read_kernel(source, options.kernel, options.define, options.arch, headers),
        launch,
        tuple(value for value, _ in positional),
        {name: value for name, (value, _) in named.items()},
        symbols,
    )
    outputs = [*call.results()]
    marked = {id(out) for _, outs in (*positional, *named.values()) for out in outs}
    unwritten = [name for name, array in call.arrays().items() if id(array) in marked]
    saved = dict(_pairs("--save", options.save, "NAME=FILE.npy"))
    for option, asked in (("out", unwritten), ("--save", [*saved])):
        if unknown := sorted({*asked}.difference(outputs)):
            problem = f"{', '.join(unknown)} is no output of {call.kernel.entry}"
            raise ArgumentError(option, problem, ", ".join(outputs) or "it has none")
    files = {name: Path(file) for name, file in saved.items()}
    for file in files.values():
        if file.suffix != ".npy" or not file.parent.is_dir():
            raise ArgumentError(
                "--save", f"got {str(file)!r}", "NAME=FILE.npy in an existing folder"
            )
    return call, unwritten, files


def _summary(call: KernelCall) -> str:
    blocks, threads = math.prod(call.launch.grid), math.prod(call.launch.block)
    plural = ["" if count == 1 else "s" for count in (blocks, threads)]
    return f"{call.kernel.entry}, {blocks:,} block{plural[0]} of {threads:,} thread{plural[1]}"


def _save(file: Path, array: npt.NDArray[Any]) -> None:
    try:
        with written_whole(file) as temporary:
            np.save(temporary, array, allow_pickle=False)
    except OSError as error:
        expected = "a file that can be written"
        raise ArgumentError("--save", f"{file}: {error.strerror}", expected) from error


def _size(text: str) -> tuple[int, ...]:
    try:
        size = tuple(map(int, text.split(",")))
    except ValueError:
        size = ()
    if not 1 <= len(size) <= 3:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected X, X,Y or X,Y,Z")
    return size


def _pairs(option: str, texts: Sequence[str], expected: str) -> list[tuple[str, str]]:
    pairs = [tuple(text.partition("=")[::2]) for text in texts]
    for text, (name, value) in zip(texts, pairs, strict=True):
        if not name or not value:
            raise ArgumentError(option, f"got {text!r}", expected)
    return [(name, value) for name, value in pairs]


def _name_and_value(text: str) -> tuple[str, str]:
    """Split NAME=VALUE; the name is "" for an argument by position."""
    match = re.fullmatch(r"([A-Za-z_]\w*)\s*=(.*)", text, re.S)
    return (match[1], match[2]) if match else ("", text)


def _value(name: str, text: str, rng: np.random.Generator) -> tuple[Any, list[Any]]:
    """Return (the argument that a text describes, the unwritten outputs in it)."""
    if text.startswith("texture") and (match := _TEXTURE.fullmatch(text)):
        flags = {*match["flags"].split(",")}
        texture = Texture(
            _value(name, match["array"], rng)[0],
            channels=max([1, *(int(flag) for flag in flags if flag.isdigit())]),
            address=max(flags.intersection(ADDRESSES), default="clamp"),
            linear="linear" in flags,
            normalized="normalized" in flags,
            as_float="as_float" in flags,
        )
        return texture, []
    if text.endswith(".npy") and not text.startswith("{"):
        return _load(name, Path(text)), []
    if ":" in text and not text.startswith("{"):
        array = _array(name, text, rng)
        return array, [array] if text.startswith("out:") else []
    if text in ("null", "nullptr"):
        return None, []
    if text.startswith("{") and text.endswith("}"):
        return _structure(name, text[1:-1], rng)
    numbers = [_number(name, part) for part in text.split(",")]
    return tuple(numbers) if len(numbers) > 1 else numbers[0], []


def _structure(name: str, text: str, rng: np.random.Generator) -> tuple[Any, list[Any]]:
    """Return (dict of members, or tuple of their values; unwritten outputs) of a text as in C."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "{") - (letter == "}")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    pairs = [_name_and_value(part.strip().removeprefix(".")) for part in parts]
    members = [_value(f"{name}.{key}" if key else name, value.strip(), rng) for key, value in pairs]
    values, outs = [value for value, _ in members], [out for _, outs in members for out in outs]
    keys = [key for key, _ in pairs if key]
    if keys and len({*keys}) < len(pairs):
        raise ArgumentError(name, f"got {{{text}}}", "each member once by name, or all by order")
    return dict(zip(keys, values, strict=True)) if keys else tuple(values), outs


def _number(name: str, text: str) -> int | float | bool:
    if text in ("true", "false"):
        return text == "true"
    for convert in (int, lambda digits: int(digits, 0), float):
        with contextlib.suppress(ValueError):
            return convert(text)
    expected = f"a number, true, null, a .npy file, or {'|'.join(_FILLS)}:DTYPE:SHAPE"
    raise ArgumentError(name, f"got {text!r}", expected)


def _load(name: str, path: Path) -> npt.NDArray[Any]:
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError) as error:
        problem = f"{path} cannot be read ({getattr(error, 'strerror', None) or error})"
        raise ArgumentError(name, problem, "a .npy file of numbers") from error
    return np.asarray(array, array.dtype.newbyteorder("="))


def _array(name: str, text: str, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Return the array that FILL:DTYPE:SHAPE[:LIMIT] describes."""
    fill, dtype, lengths, *limits = (*text.split(":"), "", "")[: max(3, text.count(":") + 1)]
    problem = f"got {text!r}"
    if fill not in _FILLS:
        raise ArgumentError(name, problem, f"one of {', '.join(_FILLS)} before the first ':'")
    if dtype not in _DTYPES:
        raise ArgumentError(name, f"{problem}, no dtype {dtype!r}", ", ".join(_DTYPES))
    if not re.fullmatch(r"\d{1,18}(x\d{1,18})*", lengths):
        raise ArgumentError(name, f"{problem}, no shape {lengths!r}", "a shape, such as 128x64")
    if limits and (fill != "random" or len(limits) > 1):
        raise ArgumentError(name, problem, "FILL:DTYPE:SHAPE, or random:DTYPE:SHAPE:LIMIT")
    if dtype == "bfloat16":  # as bits, which NumPy has no type for; rounded to even
        numbers = _array(name, text.replace(dtype, "float32"), rng)
        bits = numbers.view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    shape, kind = tuple(map(int, lengths.split("x"))), np.dtype(dtype)
    size = math.prod(shape)
    check_fits(
        name,
        problem,
        size * kind.itemsize,
        "at most a quarter of this machine's memory",
        share=0.25,
    )
    if fill == "range":
        return np.arange(size).astype(kind).reshape(shape)
    if fill != "random":
        return np.full(shape, fill == "ones", kind)
    if kind.kind == "f":
        limit = _number(name, limits[0]) if limits else 0
        return (rng.random(shape) * limit if limits else rng.standard_normal(shape)).astype(kind)
    limit = _number(name, limits[0]) if limits else 2 if kind.kind == "b" else 100
    most = (
        1 << 63 if kind.itemsize == 8 else (2 if kind.kind == "b" else int(np.iinfo(kind).max) + 1)
    )
    if not isinstance(limit, int) or not 0 < limit <= most:
        raise ArgumentError(name, f"{problem}, the limit {limit}", f"a whole number, 1 to {most}")
    return rng.integers(0, limit, shape).astype(kind)
