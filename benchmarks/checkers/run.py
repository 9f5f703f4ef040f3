"""Record which mistakes of the corpus are found by a GPU, compute-sanitizer and the emulator.

The table has a row per case of the corpus, number of warps and checker. A GPU alone finds a mistake
if its results are wrong. On a machine with an H200, and nvcc and compute-sanitizer on PATH; then on
any machine:

    python benchmarks/checkers/run.py --output checkers-h200.csv
    python benchmarks/checkers/run.py --emulator --output checkers-emulator.csv

`--smoke` runs four cases. Runs that the output has already are skipped. On a GPU, correct kernels
run in one process per checker, with every number of warps; those that it reports run in their own
processes. Every mistake runs with one number of warps, those that may never end after the others;
then the first mistake of each kind runs with the other numbers of warps. Each program ends itself
after a time limit. Runs are concurrent (column `jobs`), so their times are those of a machine under
load; a few cases run alone first. `--build FOLDER` compiles on a machine without a GPU, and
`--programs FOLDER` uses these programs.
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

from corpus import CASES, KERNELS, Case, CheckerResult
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
HANGING, RESERVED_SECONDS = 2, 40
#: Time limit in seconds of the process that runs all correct kernels.
TOGETHER_LIMIT = 60
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
        self.paths: dict[str, Path] = {}
        chosen = list(cases)
        names = {self.program_name(case) for case in chosen}

        def compile_one(name: str) -> None:
            try:
                program_cases = [case for case in CASES if self.program_name(case) == name]
                self.paths[name] = compile_program(name, program_cases, folder)
            except RuntimeError as error:  # continue with the other programs
                print(error, file=sys.stderr, flush=True)

        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(compile_one, sorted(names)))
        for case in chosen:
            for warps in case.warps:
                self.input(case, warps).write_bytes(pack(case.launch(warps)))

    @staticmethod
    def program_name(case: Case) -> str:
        """Return the name of the program that contains a case."""
        return case.kernel.name if case.mistake else "correct"

    def input(self, case: Case, warps: int) -> Path:
        """Return the path of a case's input file."""
        return self.folder / f"{CASES.index(case)}-{warps}.in"

    def run(self, case: Case, warps: int, tool: str) -> CheckerResult:
        """Run a case on the GPU alone (tool "GPU") or under a tool of compute-sanitizer."""
        limit = HANG_LIMIT if case.mistake and case.mistake.hangs else LIMIT
        ended, text, seconds = self._run_program([(case, warps)], tool, limit)
        if tool == "GPU":
            if ended == "ended with 0":
                return self._compare(case, warps, seconds)
            report = text.strip().splitlines()[-1] if text.strip() else ""
            return CheckerResult(True, ended, seconds, report)
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

    def run_together(
        self, runs: list[tuple[Case, int]], tool: str
    ) -> list[tuple[Case, int, CheckerResult]]:
        """Run correct cases in one process, whose seconds are not recorded.

        Kernels that the process names in a report or an error are left out, and the others run
        again.
        """
        while runs:
            ended, text, _ = self._run_program(runs, tool, TOGETHER_LIMIT)
            count = _COUNT.search(text)
            print(f"{tool}: {len(runs)} launches {ended}", flush=True)
            if ended == "ended with 0" and (tool == "GPU" or (count and int(count[1]) == 0)):
                break
            named = {kernel.name for kernel in KERNELS if re.search(rf"::{kernel.name}\b", text)}
            print(f"{tool} names {', '.join(sorted(named)) or text[-1000:]}", flush=True)
            runs = [run for run in runs if named and run[0].kernel.name not in named]
        if tool == "GPU":
            return [(*run, self._compare(*run, "")) for run in runs]
        return [(*run, CheckerResult(False, "ended with 0", "")) for run in runs]

    def _run_program(self, runs: list[tuple[Case, int]], tool: str, limit: int):
        """Run cases of one program in one process, as `_run` does."""
        path = self.paths[self.program_name(runs[0][0])]
        launches = [word for case, warps in runs for word in (case.name, self.input(case, warps))]
        command = [path, limit, "write" if tool == "GPU" else "read", *launches]
        if tool != "GPU":
            options = ["--tool", tool, *TOOLS[tool], "--print-limit", "2", "--error-exitcode", "9"]
            command = ["compute-sanitizer", *options, *command]
        return _run(command, limit + 10)

    def _compare(self, case: Case, warps: int, seconds: float | str) -> CheckerResult:
        launch = case.launch(warps)
        output = self.input(case, warps).with_suffix(".in.out")
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
    cases: list[Case], counts: list[int], programs: Programs, jobs: int, limit: float, write, known
) -> None:
    """Run cases on the GPU alone and under every tool, until `limit` seconds have passed.

    `counts` are numbers of warps.
    """
    end = time.monotonic() + limit
    tools = ("GPU", *TOOLS)

    def run_one(run: tuple[Case, int, str], latest: float, concurrent_runs: int) -> None:
        case, warps, tool = run
        if time.monotonic() > latest or (*case_names(case), str(warps), tool) in known:
            return
        try:
            write(*run, concurrent_runs, programs.run(*run))
            known.add((*case_names(case), str(warps), tool))
        except Exception as error:  # continue with the other runs
            print(run[0].name, *run[1:], repr(error), file=sys.stderr, flush=True)

    def run_correct(tool: str) -> None:
        runs = [
            (case, count)
            for case in cases
            for count in case.warps
            if not case.mistake and count in counts
            if (*case_names(case), str(count), tool) not in known
        ]
        for case, warps, result in programs.run_together(runs, tool):
            write(case, warps, tool, len(tools), result)
            known.add((*case_names(case), str(warps), tool))

    for run in [(case, 2, tool) for case in cases if case.name in SMOKE for tool in tools]:
        run_one(run, end, 1)
    with ThreadPoolExecutor(len(tools)) as pool:
        list(pool.map(run_correct, tools))
    print(f"correct kernels; {end - time.monotonic():.0f} s left", flush=True)
    for number, group in enumerate(group_runs(cases, counts)):
        runs = [(case, warps, tool) for case, warps in group for tool in tools]
        latest = end - (min(RESERVED_SECONDS, limit / 3) if number < HANGING else HANG_LIMIT)
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


def group_runs(cases: list[Case], counts: list[int]) -> list[list[tuple[Case, int]]]:
    """Return groups of runs: correct, mistakes, mistakes that may hang, mistakes with more warps.

    A run is a case and a number of warps. Correct cases and the first mistake of each kind run with
    all of `counts`, others with one of them, in turn.
    """
    groups: list[list[tuple[Case, int]]] = [[], [], [], []]
    kinds: set[str] = set()
    for number, case in enumerate(cases):
        runs = [(case, warps) for warps in case.warps if warps in counts]
        if not runs:
            continue
        if case.mistake is None:
            groups[0] += runs
            continue
        one = runs.pop(number % len(runs))
        groups[HANGING if case.mistake.hangs else 1].append(one)
        if case.mistake.kind not in kinds:
            groups[3] += runs
        kinds.add(case.mistake.kind)
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
    parser.add_argument("--build", type=Path, metavar="FOLDER", help="only compile, into a folder")
    parser.add_argument("--programs", type=Path, metavar="FOLDER", help="programs that are built")
    parser.add_argument("--output", type=Path, help="CSV to write")
    options = parser.parse_args()
    if not options.output and not options.build:
        parser.error("--output is missing")
    cases = [
        case
        for case in CASES
        if (not options.smoke or case.name in SMOKE)
        and (not options.kernels or case.kernel.name in options.kernels)
        and (not options.kinds or not case.mistake or case.mistake.kind in options.kinds)
    ]
    if options.build:
        Programs(options.build, cases, options.jobs)
        return
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
            with tempfile.TemporaryDirectory() as folder:
                programs = Programs(options.programs or Path(folder), cases, options.jobs)
                run_on_gpu(
                    cases, options.warps, programs, options.jobs, options.limit, write, known
                )


if __name__ == "__main__":
    main()
