"""What finds which mistake: a GPU by its results, compute-sanitizer's tools, and the emulator.

A row for each case of the corpus, count of warps and way of looking. On a machine with an H200, and
nvcc and compute-sanitizer on PATH; then on any machine:

    python benchmarks/checkers/run.py --output checkers-h200.csv
    python benchmarks/checkers/run.py --emulator --output checkers-emulator.csv

`--smoke` takes four cases; what is in the output already is not run again. On a GPU, correct
kernels and the first mistake of each kind run with every count of warps, the others with one of
them. Cases that may never end come last, and every program ends itself. Runs stand side by side
there (column `jobs`), so that their seconds are those of a machine under load; a few are run alone
first.
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

from corpus import CASES, KERNELS, Case, Kernel, Seen
from sources import compiled, packed, unpacked

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
#: Seconds that a run on a GPU may take, and one that may never end.
LIMIT, HANG_LIMIT = 30, 10
#: The group of cases that may hang, and the seconds that are kept for it.
HANGING, KEPT = 3, 70
SMOKE = (
    *("reduce_tree", "reduce_tree: missing barrier", "reduce_tree: missing guard"),
    "reduce_grid_stride: output not cleared",
)
_COUNT = re.compile(r"SUMMARY: (\d+)")
_SAYS_NOTHING = re.compile(
    r"=========\s*(COMPUTE-SANITIZER|$|Target application|Error: process didn't|.*SUMMARY|"
    r"Saved host|\s+at |\s+by |.*Host Frame|\s*$)"
)


class Programs:
    """The corpus, compiled for a GPU in a folder of its own."""

    def __init__(self, folder: Path, cases: Iterable[Case], jobs: int) -> None:
        self.folder = folder
        chosen = list(cases)
        kernels = [kernel for kernel in KERNELS if any(c.kernel is kernel for c in chosen)]
        self.paths: dict[str, Path] = {}

        def compile_one(kernel: Kernel) -> None:
            try:
                every = [case for case in CASES if case.kernel is kernel]
                self.paths[kernel.name] = compiled(kernel, every, folder)
            except RuntimeError as error:  # one kernel is not worth the others
                print(error, file=sys.stderr, flush=True)

        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(compile_one, kernels))
        for number, case in enumerate(CASES):
            if case in chosen:
                for warps in case.warps:
                    self.input(number, warps).write_bytes(packed(case.launch(warps)))

    def input(self, number: int, warps: int) -> Path:
        """Name the file with what a case is called with."""
        return self.folder / f"{number}-{warps}.in"

    def look(self, case: Case, warps: int, tool: str) -> Seen:
        """Run a case by itself (`GPU`) or under one of compute-sanitizer's tools."""
        number = CASES.index(case)
        limit = HANG_LIMIT if case.mistake and case.mistake.hangs else LIMIT
        program = [self.paths[case.kernel.name], case.name, self.input(number, warps), str(limit)]
        if tool == "GPU":
            return self._alone(case, warps, program, limit)
        options = ["--tool", tool, *TOOLS[tool], "--print-limit", "2", "--error-exitcode", "9"]
        ended, text, seconds = _run(["compute-sanitizer", *options, *program], limit + 10)
        count = _COUNT.search(text)
        lines = [
            line.strip("= ").strip()
            for line in text.splitlines()
            if line.startswith("=========") and not _SAYS_NOTHING.match(line)
        ]
        hit = int(count[1]) > 0 if count else bool(lines)
        if seconds >= limit:
            ended = "time limit"
        elif not count:
            ended += ", no summary"
        return Seen(hit, ended, seconds, lines[0] if hit and lines else "")

    def _alone(self, case: Case, warps: int, program: list, limit: int) -> Seen:
        output = self.folder / f"{threading.get_ident()}.out"
        ended, text, seconds = _run([*program, output], limit + 10)
        if ended != "ended with 0":
            return Seen(True, ended, seconds, text.strip().splitlines()[-1] if text.strip() else "")
        launch = case.launch(warps)
        wrong = launch.wrong(unpacked(launch, output.read_bytes()))
        report = f"wrong: {', '.join(wrong)}" if wrong else ""
        return Seen(bool(wrong), "wrong" if wrong else "right", seconds, report)


def _run(command: list, limit: float) -> tuple[str, str, float]:
    """Run a program; return how it ended, what it said and the seconds it took."""
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


def on_a_gpu(cases: list[Case], jobs: int, limit: float, write, known: set) -> None:
    """Look at cases with everything that the machine has, the ones that may hang last."""
    end = time.monotonic() + limit
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(Path(folder), cases, jobs)
        print(f"compiled; {end - time.monotonic():.0f} s left", flush=True)

        def look(run: tuple[Case, int, str], latest: float, side_by_side: int) -> None:
            case, warps, tool = run
            if time.monotonic() > latest or (*case_names(case), str(warps), tool) in known:
                return
            try:
                write(*run, side_by_side, programs.look(*run))
            except Exception as error:  # one run is not worth the others
                print(run[0].name, *run[1:], repr(error), file=sys.stderr, flush=True)

        every = ("GPU", *TOOLS)
        alone = [(case, 2, tool) for case in cases if case.name in SMOKE for tool in every]
        for run in alone:
            look(run, end, 1)
        for number, group in enumerate(grouped(cases)):
            runs = [(case, warps, tool) for tool in every for case, warps in group]
            runs = [run for run in runs if run not in alone]
            latest = end if number == HANGING else end - KEPT
            with ThreadPoolExecutor(jobs) as pool:
                list(pool.map(lambda run, latest=latest: look(run, latest, jobs), runs))
            print(f"{len(runs)} runs; {end - time.monotonic():.0f} s left", flush=True)


def case_names(case: Case) -> tuple[str, str]:
    """Name a case as the table does: kernel and kind of mistake."""
    return case.kernel.name, case.mistake.kind if case.mistake else ""


def gpu() -> tuple[str, str]:
    """Name the GPU, and the versions of its driver and of compute-sanitizer."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    name, driver = _run(query, 30)[1].strip().splitlines()[0].split(", ")
    version = re.search(r"[Vv]ersion (\S+)", _run(["compute-sanitizer", "--version"], 30)[1])
    return name, f"driver {driver}, compute-sanitizer {version[1] if version else 'unknown'}"


def grouped(cases: list[Case]) -> list[list[tuple[Case, int]]]:
    """Put first what is right, then a mistake of each kind, the others, and what may hang.

    Each with all counts of warps, but the others with one of them, in turn.
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
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs side by side")
    parser.add_argument("--limit", type=float, default=330, help="seconds in all on a GPU")
    parser.add_argument("--output", type=Path, required=True, help="CSV to write")
    options = parser.parse_args()
    cases = [
        case
        for case in CASES
        if (not options.smoke or case.name in SMOKE)
        and (not options.kernels or case.kernel.name in options.kernels)
    ]
    if options.emulator:  # alone in needing accelviz
        from corpus.emulated import emulated, hardware
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

        def write(case: Case, warps: int, tool: str, jobs: int, seen: Seen) -> None:
            seconds = [
                f"{value:.3f}" if value != "" else ""
                for value in (seen.seconds, seen.first_seconds)
            ]
            row = [*case_names(case), warps, tool, int(seen.hit), seen.result, *seconds]
            with lock:
                table.writerow([*row, jobs, seen.report[:300], *about])
                file.flush()

        if options.emulator:
            for case in cases:
                for warps in case.warps:
                    if (*case_names(case), str(warps), "emulator") in known:
                        continue
                    write(case, warps, "emulator", 1, emulated(case, warps))
        else:
            on_a_gpu(cases, options.jobs, options.limit, write, known)


if __name__ == "__main__":
    main()
