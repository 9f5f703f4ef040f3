"""Run a script under Nsight Compute and read the counters of its launches."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections.abc import Iterable, Sequence

from accelviz import measure
from accelviz.devices import find_device
from accelviz.plans import Plan


def launch(plans: Iterable[Plan]) -> None:
    """Run each plan once on random inputs; called by a script under `profile`."""
    for plan in plans:
        ready = find_device("cuda").prepare(plan)
        dense = measure.random_inputs(plan.operation, plan.pattern, plan.widths)
        ready.run(ready.placed(plan.operation.named(*dense)))


def profile(
    script: Sequence[str], plans: Iterable[Plan], metrics: Iterable[str], *, warm: bool = False
) -> list[dict[str, float]]:
    """Run `python *script` under ncu; return the counters of each launch of the plans' kernels."""
    entries = {call.kernel.entry for plan in plans for call in plan.calls if call.kernel}
    return [counts for _, counts in launches(script, entries, metrics, warm=warm)]


def launches(
    script: Iterable[str],
    entries: Iterable[str],
    metrics: Iterable[str],
    *,
    warm: bool = False,
    marked: bool = False,
) -> list[tuple[str, dict[str, float]]]:
    """Run `python *script` under ncu; return name and counters of each launch of some kernels.

    Counters that do not apply to a launch are missing. Clocks are not changed. Caches are flushed
    before each pass unless `warm`. With `marked`, launches count from the profiler's start to its
    stop. Raises SystemExit if ncu fails.
    """
    chosen = sorted(set(metrics))
    answer = subprocess.run(
        [
            *("ncu", "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base"),
            *("--kernel-name", f"regex:^({'|'.join(sorted(entries))})$"),
            *("--cache-control", "none" if warm else "all"),
            *("--profile-from-start", "no" if marked else "yes"),
            *("--metrics", ",".join(chosen), sys.executable, *script),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode or '"ID"' not in answer.stdout:
        raise SystemExit(answer.stdout[-3000:] + answer.stderr[-3000:])
    table = csv.DictReader(io.StringIO(answer.stdout[answer.stdout.index('"ID"') :]))
    return [
        (
            row["Kernel Name"],
            {name: float(row[name].replace(",", "")) for name in chosen if row.get(name)},
        )
        for row in table
        if row["ID"].isdigit()
    ]
