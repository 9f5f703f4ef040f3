"""The command line: `accelviz check`, `demo`, `lab`, `doctor` and `assignments`."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import platform
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import accelviz
from accelviz.emulator import command as check_command
from accelviz.errors import AccelvizError, ArgumentError, DeviceUnavailable, pip_install
from accelviz.files import notebooks_directory


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status."""
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except BrokenPipeError:  # as of `| head`
        _discard_output()
        return 0
    except AccelvizError as error:
        return _failed(str(error))
    except OSError as error:
        file = "files or output" if error.filename is None else error.filename
        reason = error.strerror or str(error)
        return _failed(f"{file}: {reason}. Expected: a place that can be read and written.")
    except MemoryError as error:
        return _failed(f"{error or 'out of memory'}. Expected: a smaller graph or fewer columns.")
    except ImportError as error:  # of a package of an extra
        return _failed(f"{error}. What to do: install it, or the extra of accelviz that has it.")


def _run(arguments: Sequence[str]) -> int:
    """Run a command, print its result, and return the exit status."""
    try:
        if arguments[:1] == ["check"]:  # it needs no parser, which imports the other commands
            options = check_command.parser().parse_intermixed_args(arguments[1:])
            result: str | tuple[str, int] = check_command.run(options, accelviz.__version__)
        else:
            options = _parser().parse_args(arguments)
            result = options.run(options)
    except SystemExit:  # of argparse, which has printed help, a version or an error
        sys.stdout.flush()
        raise
    text, status = result if isinstance(result, tuple) else (result, 0)
    try:
        print(text, flush=True)
    except BrokenPipeError:
        _discard_output()
    return status


def _failed(message: str) -> int:
    """Print a message, after what is in the buffer of the output; return the exit status 2."""
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()
    print(f"accelviz: {message}", file=sys.stderr)
    return 2


def _discard_output() -> None:
    """Send the output to the null device, because Python flushes it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    from accelviz.course import commands as course_commands
    from accelviz.datasets import bundled_graphs
    from accelviz.partition.block_level import MAX_BLOCK_WARPS, MAX_WARP_NZS

    parser = argparse.ArgumentParser(prog="accelviz", description=accelviz.__doc__)
    parser.add_argument("--version", action="version", version=accelviz.__version__)
    commands = parser.add_subparsers(required=True, metavar="command")
    commands.add_parser("check", help=check_command.HELP, add_help=False)  # see `main`

    demo = commands.add_parser("demo", help="plan, check, time and draw an SpMM on a real graph")
    names = ", ".join(bundled_graphs())
    helps = f"a file, a URL, a name of load_graph, or one of {names} (default: cora)"
    demo.add_argument("--graph", default="cora", help=helps)
    helps = "an option of load_graph or of the file's reader, such as symmetric=True, "
    helps += "columns=src,dst or reader=.txt; may be repeated"
    demo.add_argument(
        "--option",
        action="append",
        default=[],
        type=_option,
        help=helps,
        dest="options",
        metavar="NAME=VALUE",
    )
    demo.add_argument("--columns", type=int, default=64, help="columns of the features (64)")
    for option, default, helps in (
        ("--max-block-warps", MAX_BLOCK_WARPS, "most warps of a block (%(default)s)"),
        ("--max-warp-nzs", MAX_WARP_NZS, "most nonzeros of a combined warp (%(default)s)"),
    ):
        demo.add_argument(option, type=int, default=default, metavar="N", help=helps)
    demo.add_argument("--output", default="accelviz-demo.png", help="the picture (%(default)s)")
    demo.set_defaults(run=_demo)

    helps = "copy the lessons into a folder and open JupyterLab on it"
    lab = commands.add_parser("lab", help=helps, description=helps)
    lab.add_argument(
        "folder", nargs="?", default="accelviz-lessons", help="folder of the copies (%(default)s)"
    )
    lab.add_argument("--copy-only", action="store_true", help="do not open JupyterLab")
    lab.set_defaults(run=_lab)

    helps = "say what works here, and how to mend what does not"
    doctor = commands.add_parser("doctor", help=helps)
    helps = "compile the common kernels, which otherwise are compiled at their first use"
    doctor.add_argument("--warm", action="store_true", help=helps)
    helps = (
        "architecture to compile for, such as sm_90 (default: this machine's GPU); implies --warm"
    )
    doctor.add_argument("--arch", help=helps)
    doctor.set_defaults(run=_doctor)

    course_commands.add_to(commands)
    return parser


def _option(text: str) -> tuple[str, Any]:
    """Return the name and the value of an option of `load_graph`."""
    name, equals, value = text.partition("=")
    if not (name.isidentifier() and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as symmetric=True")
    values = [_value(part) for part in value.split(",")]
    return name, values[0] if len(values) == 1 else values


def _value(text: str) -> Any:
    """Return True, False, None, a number, or the text."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def _demo(options: argparse.Namespace) -> str:
    from accelviz import demo

    setting = {name: getattr(options, name) for name in ("max_block_warps", "max_warp_nzs")}
    loading = dict(options.options)
    return demo.main(options.graph, options.columns, options.output, loading, **setting)


def _lab(options: argparse.Namespace) -> tuple[str, int]:
    """Copy the lessons to a folder, without overwriting files, and open JupyterLab on it."""
    from accelviz.course.autograde.common import need

    folder, lessons, copied = Path(options.folder), notebooks_directory(), 0
    for source in sorted(lessons.rglob("*")):
        target = folder / source.relative_to(lessons)
        if source.is_file() and not target.exists() and not source.parent.name.startswith("."):
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
            except OSError as error:
                expected = "a folder that can be written to"
                raise ArgumentError("folder", f"{target}: {error.strerror}", expected) from error
            copied += 1
    text = f"New files in {folder}: {copied}. What was there is as it was."
    if options.copy_only:
        return text, 0
    need("jupyterlab", "lab", import_now=False)
    print(text, flush=True)
    first = f"--LabApp.default_url=/lab/tree/{min(lessons.glob('*.ipynb')).name}"
    command = [sys.executable, "-m", "jupyterlab", f"--notebook-dir={folder}", first]
    os.execv(sys.executable, command)  # which gets Ctrl-C itself


def _doctor(options: argparse.Namespace) -> str:
    if options.warm or options.arch:
        return _warm(options.arch)
    import numba
    import numpy
    import scipy

    from accelviz.course.autograde import border
    from accelviz.devices import find_device, gpu_state
    from accelviz.files import kernel_directory, kernel_names

    state, emulator = gpu_state(), find_device("emulator")
    compiler = emulator.hardware()["hardware"]
    python = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    libraries = {"NumPy": numpy, "SciPy": scipy, "Numba": numba}
    lines = {
        "accelviz": f"{accelviz.__version__} on {python}",
        "libraries": ", ".join(
            f"{name} {module.__version__}" for name, module in libraries.items()
        ),
        "cpu": f"ready, {numba.get_num_threads()} threads",
        "gpu": f"{state.state}: {state.detail}",
        "what to do": state.fix,
        "emulator": emulator.unavailable_reason() or "ready" + compiler.removeprefix("emulator"),
        "grading": border.summary(),
        "kernels": f"{len(kernel_names())} CUDA sources in {kernel_directory()}",
    }
    return "\n".join(f"{label:<12}{text}" for label, text in lines.items() if text)


def _warm(arch: str | None) -> str:
    """Compile the common kernels for an architecture, by default that of this machine's GPU."""
    from accelviz.devices.cuda import cubins, gpu_state
    from accelviz.devices.cuda.compiler import gpu_architecture
    from accelviz.devices.usual import usual_kernels

    if importlib.util.find_spec("cupy") is None:
        fix = f"{pip_install('accelviz[cuda13]')}, or 'accelviz[nvrtc]' on a machine without a GPU"
        raise DeviceUnavailable("doctor --warm", "CuPy is not installed", fix)
    if arch is None:
        gpu_state().require("doctor --warm without --arch")
        arch = gpu_architecture()
    elif re.fullmatch(r"sm_\d+", arch) is None:
        raise ArgumentError("--arch", f"got {arch!r}", "sm_ and a compute capability: sm_90")
    print(f"compiling kernels for {arch} into {cubins.folder()}", flush=True)
    start = time.perf_counter()
    kernels = [*usual_kernels()]
    if importlib.util.find_spec("torch_geometric"):  # for accelviz.torch
        from accelviz.torch.device import tensor_kernels

        kernels += tensor_kernels(kernels)
    warmed = cubins.warm(kernels, arch)
    seconds = time.perf_counter() - start
    counts = Counter((kernel.spec.file, kernel.seconds > 0) for kernel in warmed)
    lines = [
        f"{file:<32}{counts[file, True]:>4} compiled {counts[file, False]:>4} in the cache"
        for file in sorted({kernel.spec.file for kernel in warmed})
    ]
    total = sum(kernel.seconds > 0 for kernel in warmed)
    return "\n".join([*lines, f"{total} of {len(warmed)} kernels compiled in {seconds:.1f} s"])
