"""Run cases of the corpus in the emulator."""

from __future__ import annotations

import time
import warnings

import accelviz
from accelviz.devices import find_device
from accelviz.errors import ArgumentError, KernelError

from .case import Case, CheckerResult

#: Time limit of a run in seconds, and of a run that never ends.
LIMIT, ENDLESS_LIMIT = 30.0, 1.0


def run_once(case: Case, warps: int, seed: int = 0) -> CheckerResult:
    """Run a case once in the emulator."""
    launch = case.launch(warps)
    options = {"shared_bytes": launch.shared_bytes, "unwritten": launch.unwritten}
    start = time.perf_counter()
    try:
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            outputs = accelviz.emulate(
                case.code,
                launch.grid,
                launch.block,
                *launch.arguments.values(),
                kernel=case.kernel.entry,
                seed=seed,
                timeout=ENDLESS_LIMIT if case.endless else LIMIT,
                **options,
            )
        for note in outputs.notes:
            if note.mistake != "never-written":  # an array may be longer than what is used
                raise note
    except (ArgumentError, KernelError) as error:
        return CheckerResult(True, "found", time.perf_counter() - start, str(error))
    seconds = time.perf_counter() - start
    wrong = launch.wrong_outputs(outputs)
    return CheckerResult(False, "wrong" if wrong else "right", seconds, ", ".join(wrong))


def run_emulated(case: Case, warps: int) -> CheckerResult:
    """Run a case twice; `first_seconds` is the first run's time, with compilation."""
    first, second = run_once(case, warps), run_once(case, warps)
    report = second.report.strip().partition("\n")[0]
    return CheckerResult(second.hit, second.result, second.seconds, report, first.seconds)


def hardware() -> tuple[str, str]:
    """Return the emulator's compiler, and accelviz's version."""
    return find_device("emulator").hardware()["hardware"], f"accelviz {accelviz.__version__}"
