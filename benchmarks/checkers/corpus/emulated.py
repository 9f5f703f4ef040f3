"""Runs cases of the corpus in the emulator."""

from __future__ import annotations

import time

import accelviz
from accelviz.devices import find_device
from accelviz.errors import KernelError

from .case import Case, Seen

#: Seconds that a run may take, and one that never ends.
LIMIT, ENDLESS_LIMIT = 30.0, 1.0


def look(case: Case, warps: int, seed: int = 0) -> Seen:
    """Run a case once."""
    launch = case.launch(warps)
    options = {"shared_bytes": launch.shared_bytes, "unwritten": launch.unwritten}
    start = time.perf_counter()
    try:
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
    except KernelError as error:
        return Seen(True, "found", time.perf_counter() - start, str(error))
    seconds = time.perf_counter() - start
    wrong = launch.wrong(outputs)
    return Seen(False, "wrong" if wrong else "right", seconds, ", ".join(wrong))


def emulated(case: Case, warps: int) -> Seen:
    """Run a case twice: `first_seconds` may hold the compiler's time."""
    first, again = look(case, warps), look(case, warps)
    report = again.report.strip().partition("\n")[0]
    return Seen(again.hit, again.result, again.seconds, report, first.seconds)


def hardware() -> tuple[str, str]:
    """Name the compiler that stands in for a GPU, and accelviz's version."""
    return find_device("emulator").hardware()["hardware"], f"accelviz {accelviz.__version__}"
