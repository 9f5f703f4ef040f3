"""Runs a script under Nsight Compute and reads the counters of its launches."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections.abc import Iterable, Sequence


def profile(
    script: Sequence[str],
    entries: Iterable[str],
    metrics: Iterable[str],
    *,
    warm: bool = False,
) -> list[dict[str, float]]:
    """Run `python *script` under ncu.

    Parameters
    ----------
    script : sequence of str
        File and arguments.
    entries : iterable of str
        Names of the kernels to count; other launches run as they are.
    metrics : iterable of str
        Nsight Compute's counters.
    warm : bool
        Leave in the caches what they hold; otherwise ncu empties them before each pass.

    Returns
    -------
    list of dict
        The counters of each launch, in order; one that does not apply to it is missing. The clocks
        are left as they are.

    Raises
    ------
    SystemExit
        If ncu fails, with what it says.
    """
    chosen = sorted(set(metrics))
    answer = subprocess.run(
        [
            *("ncu", "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base"),
            *("--kernel-name", f"regex:^({'|'.join(sorted(set(entries)))})$"),
            *("--cache-control", "none" if warm else "all"),
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
        {name: float(row[name].replace(",", "")) for name in chosen if row.get(name)}
        for row in table
        if row["ID"].isdigit()
    ]
