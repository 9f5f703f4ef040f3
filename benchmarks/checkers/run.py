"""Record which mistakes of the corpus are found by a GPU, compute-sanitizer and the emulator.

The table has a row per case of the corpus, number of warps and checker. A GPU alone finds a mistake
if its results are wrong. On a machine with an H200, and nvcc and compute-sanitizer on PATH; then on
any machine:

    python benchmarks/checkers/run.py --output checkers-h200.csv
    python benchmarks/checkers/run.py --emulator --output checkers-emulator.csv

`--smoke` runs four cases. Runs that the output has already are skipped. On a GPU, correct kernels
and the first mistake of each kind run with every number of warps, the others with one. Cases that
may never end run last; every program ends itself after a time limit. Runs are concurrent (column
`jobs`), so their times are those of a machine under load; a few cases run alone first.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from corpus import CASES, KERNELS, Case, CheckerResult, Kernel
from sources import compile_program, pack, unpack

COLUMNS = (
    *("kernel", "kind", "warps", "tool", "found", "result", "seconds", "first_seconds"),
    *("jobs", "report", "hardware", "software", "date"),
)
TOOLS = {
    "memcheck": (),
    "racecheck": ("--racecheck-report", "all"),
    "initcheck": (),
    "synccheck": (),
}
#: Time limit of a run on a GPU in seconds, and of a run that may never end.
LIMIT, HANG_LIMIT = 30, 10
#: Index of the group of cases that may hang, and seconds that are reserved for it.
HANGING, RESERVED_SECONDS = 3, 40
SMOKE = (
    *("reduce_tree", "reduce_tree: missing barrier", "reduce_tree: missing guard"),
    "reduce_grid_stride: output not cleared",
)
_COUNT = re.compile(r"SUMMARY: (\d+)")
_UNINFORMATIVE = re.compile(
    r"=========\s*(COMPUTE-SANITIZER|$|Target application|Error: process didn't|.*SUMMARY|"
    r"Saved host|\s+at |\s+by |.*Host Frame|\s*$)"
)


class Programs:
    """The kernels of some cases, compiled for a GPU, with the input files of their launches."""

    def __init__(self, folder: Path, cases: Iterable[Case], jobs: int) -> None:
        self.folder = folder
        chosen = list(cases)
        kernels = [kernel for kernel in KERNELS if any(c.kernel is kernel for c in chosen)]
        self.paths: dict[str, Path] = {}

        def compile_one(kernel: Kernel) -> None:
            try:
                kernel_cases = [case for case in CASES if case.kernel is kernel]
                self.paths[kernel.name] = compile_program(kernel, kernel_cases, folder)
            except RuntimeError as error:  # continue with the other kernels
                print(error, file=sys.stderr, flush=True)

        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(compile_one, kernels))
        for number, case in enumerate(CASES):
            if case in chosen:
                for warps in case.warps:
                    self.input(number, warps).write_bytes(pack(case.launch(warps)))

    def input(self, number: int, warps: int) -> Path:
        """Return the path of a case's input file."""
        return self.folder / f"{number}-{warps}.in"

    def run(self, case: Case, warps: int, tool: str) -> CheckerResult:
        """Run a case on the GPU alone (tool "GPU") or under a tool of compute-sanitizer."""
        number = CASES.index(case)
        limit = HANG_LIMIT if case.mistake and case.mistake.hangs else LIMIT
        program = [self.paths[case.kernel.name], case.name, self.input(number, warps), str(limit)]
        if tool == "GPU":
            return self._run_without_tool(case, warps, program, limit)
        options = ["--tool", tool, *TOOLS[tool], "--print-limit", "2", "--error-exitcode", "9"]
        ended, text, seconds = _run(["compute-sanitizer", *options, *program], limit + 10)
        count = _COUNT.search(text)
        lines = [
            line.strip("= ").strip()
            for line in text.splitlines()
            if line.startswith("=========") and not _UNINFORMATIVE.match(line)
        ]
        hit = int(count[1]) > 0 if count else bool(lines)
        if seconds >= limit:
            ended = "time limit"
        elif not count:
            ended += ", no summary"
        return CheckerResult(hit, ended, seconds, lines[0] if hit and lines else "")

    def _run_without_tool(self, case: Case, warps: int, program: list, limit: int) -> CheckerResult:
        output = self.folder / f"{threading.get_ident()}.out"
        ended, text, seconds = _run([*program, output], limit + 10)
        if ended != "ended with 0":
            return CheckerResult(
                True, ended, seconds, text.strip().splitlines()[-1] if text.strip() else ""
            )
        launch = case.launch(warps)
        wrong = launch.wrong_outputs(unpack(launch, output.read_bytes()))
        report = f"wrong: {', '.join(wrong)}" if wrong else ""
        return CheckerResult(bool(wrong), "wrong" if wrong else "right", seconds, report)


def _run(command: list, limit: float) -> tuple[str, str, float]:
    """Run a program; return how it ended, its output and its seconds."""
    start = time.perf_counter()
    with subprocess.Popen(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            text, _ = process.communicate(timeout=limit)
            code = process.returncode
            ended = "time limit" if code == -signal.SIGALRM else f"ended with {code}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            text, _ = process.communicate()
            ended = "time limit"
    return ended, text, time.perf_counter() - start


def run_on_gpu(
    cases: list[Case], counts: list[int], jobs: int, limit: float, write, known: set
) -> None:
    """Run cases on the GPU alone and under every tool; cases that may hang run last.

    `counts` are numbers of warps.
    """
    end = time.monotonic() + limit
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(Path(folder), cases, jobs)
        print(f"compiled; {end - time.monotonic():.0f} s left", flush=True)

        def run_one(run: tuple[Case, int, str], latest: float, concurrent_runs: int) -> None:
            case, warps, tool = run
            if time.monotonic() > latest or (*case_names(case), str(warps), tool) in known:
                return
            try:
                write(*run, concurrent_runs, programs.run(*run))
            except Exception as error:  # continue with the other runs
                print(run[0].name, *run[1:], repr(error), file=sys.stderr, flush=True)

        tools = ("GPU", *TOOLS)
        alone = [(case, 2, tool) for case in cases if case.name in SMOKE for tool in tools]
        for run in alone:
            run_one(run, end, 1)
        for number, group in enumerate(group_runs(cases)):
            runs = [
                (case, warps, tool) for tool in tools for case, warps in group if warps in counts
            ]
            runs = [run for run in runs if run not in alone]
            latest = end if number == HANGING else end - min(RESERVED_SECONDS, limit / 3)
            with ThreadPoolExecutor(jobs) as pool:
                list(pool.map(lambda run, latest=latest: run_one(run, latest, jobs), runs))
            print(f"{len(runs)} runs; {end - time.monotonic():.0f} s left", flush=True)


def case_names(case: Case) -> tuple[str, str]:
    """Return the kernel's name and the kind of mistake, as in the table."""
    return case.kernel.name, case.mistake.kind if case.mistake else ""


def gpu() -> tuple[str, str]:
    """Return the GPU's name, and the versions of its driver and of compute-sanitizer."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    name, driver = _run(query, 30)[1].strip().splitlines()[0].split(", ")
    version = re.search(r"[Vv]ersion (\S+)", _run(["compute-sanitizer", "--version"], 30)[1])
    return name, f"driver {driver}, compute-sanitizer {version[1] if version else 'unknown'}"


def group_runs(cases: list[Case]) -> list[list[tuple[Case, int]]]:
    """Return four groups of runs: correct, first mistake of each kind, others, and may hang.

    A run is a case and a number of warps. Cases of the third group have one number of warps, in
    turn, the others all of theirs.
    """
    groups: list[list[tuple[Case, int]]] = [[], [], [], []]
    kinds: set[str] = set()
    for number, case in enumerate(cases):
        warps = case.warps
        if case.mistake is not None:
            first = case.mistake.kind not in kinds
            kinds.add(case.mistake.kind)
            warps = warps if first else (warps[number % len(warps)],)
            group = HANGING if case.mistake.hangs else 1 if first else 2
        else:
            group = 0
        groups[group] += [(case, count) for count in warps]
    return groups


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--emulator", action="store_true", help="the emulator, and no GPU")
    parser.add_argument("--smoke", action="store_true", help="four cases")
    parser.add_argument("--kernels", nargs="+", help="only these")
    parser.add_argument("--kinds", nargs="+", help="only these mistakes, and correct kernels")
    parser.add_argument("--warps", type=int, nargs="+", default=[1, 2, 8], help="only these")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs side by side")
    parser.add_argument("--limit", type=float, default=330, help="seconds in all on a GPU")
    parser.add_argument("--output", type=Path, required=True, help="CSV to write")
    options = parser.parse_args()
    cases = [
        case
        for case in CASES
        if (not options.smoke or case.name in SMOKE)
        and (not options.kernels or case.kernel.name in options.kernels)
        and (not options.kinds or not case.mistake or case.mistake.kind in options.kinds)
    ]
    if options.emulator:  # only this option needs accelviz
        from corpus.emulated import hardware, run_emulated
    machine = hardware() if options.emulator else gpu()
    about = [*machine, f"{datetime.now(UTC):%Y-%m-%d}"]
    lock = threading.Lock()
    known = set()
    if options.output.exists():
        with options.output.open(newline="", encoding="utf-8") as file:
            names = ("kernel", "kind", "warps", "tool")
            known = {tuple(row[name] for name in names) for row in csv.DictReader(file)}
    with options.output.open("a", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        if not known:
            table.writerow(COLUMNS)

        def write(case: Case, warps: int, tool: str, jobs: int, result: CheckerResult) -> None:
            seconds = [
                f"{value:.3f}" if value != "" else ""
                for value in (result.seconds, result.first_seconds)
            ]
            row = [*case_names(case), warps, tool, int(result.hit), result.result, *seconds]
            with lock:
                table.writerow([*row, jobs, result.report[:300], *about])
                file.flush()

        if options.emulator:
            for case in cases:
                for warps in case.warps:
                    name = (*case_names(case), str(warps), "emulator")
                    if warps not in options.warps or name in known:
                        continue
                    write(case, warps, "emulator", 1, run_emulated(case, warps))
        else:
            run_on_gpu(cases, options.warps, options.jobs, options.limit, write, known)


if __name__ == "__main__":
    main()
