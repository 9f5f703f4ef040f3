"""Renew the marked sections of docs/emulator.md from what benchmarks/checkers/run.py recorded.

python benchmarks/pages/checkers.py
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from graphs import renewed
from paper import ROOT, markdown

from accelviz.errors import ArgumentError
from accelviz.measure.records import recorded

PAGE = ROOT / "docs" / "emulator.md"
TABLES = ("checkers-h200", "checkers-emulator")
#: How a case was looked at, in the columns' order; "four tools" are the middle ones together.
SANITIZER = ("memcheck", "racecheck", "initcheck", "synccheck")
WAYS = {
    "GPU": "wrong result or error on the GPU",
    **dict.fromkeys(SANITIZER, ""),
    "four tools": "compute-sanitizer, all four",
    "emulator": "**emulator**",
}
#: What has to be known of the runs on a GPU.
GPU = (
    " On the GPU, correct kernels and the first mistake of each kind ran with every count of "
    "warps, the others with one, side by side on all cores, which makes each slower. Alone there, "
    "a mistake is found if the result is wrong or the launch fails."
)
_RUN = ["kernel", "kind", "warps"]


def runs() -> pd.DataFrame:
    """Return all recorded runs, one a line."""
    tables = []
    for name in TABLES:
        try:
            tables.append(recorded(name).fillna({"kind": "", "report": ""}))
        except ArgumentError:  # a table that is still to be measured has no column
            continue
    return four_together(pd.concat(tables, ignore_index=True))


def four_together(table: pd.DataFrame) -> pd.DataFrame:
    """Add what compute-sanitizer's four tools find together."""
    tools = table[table["tool"].isin(SANITIZER)]
    if tools.empty:
        return table
    groups = tools.groupby(_RUN)
    together = groups.agg(
        found=("found", "max"), seconds=("seconds", "sum"), looks=("tool", "nunique")
    )
    complete = together[together["looks"] == len(SANITIZER)].reset_index()
    return pd.concat([table, complete.assign(tool="four tools")], ignore_index=True)


def shared(table: pd.DataFrame) -> pd.DataFrame:
    """Keep the runs that every recorded way of looking has, so that columns can be compared."""
    looks = table.groupby(_RUN)["tool"].transform("nunique")
    return table[looks == table["tool"].nunique()]


def summary(table: pd.DataFrame) -> str:
    """Write what each way of looking found, what it alarmed falsely, and the time that it took."""
    lines = []
    for way, title in WAYS.items():
        rows = table[table["tool"] == way]
        if rows.empty:
            continue
        wrong, right = rows[rows["kind"] != ""], rows[rows["kind"] == ""]
        whole = wrong.groupby("kind")["found"].min()
        lines.append(
            (
                title or f"compute-sanitizer, {way}",
                share(wrong["found"]),
                share(whole),
                share(right["found"]),
                f"{rows['seconds'].median():.2f}",
            )
        )
    head = ("", "mistakes found", "kinds always found", "false alarms", "median s")
    return markdown(head, lines)


def share(found: pd.Series) -> str:
    """Write how many of how many."""
    return f"{int(found.sum()):,} of {found.size:,}"


def by_kind(table: pd.DataFrame) -> str:
    """Write for each kind of mistake how many of its runs each way of looking found."""
    wrong = table[table["kind"] != ""]
    ways = [way for way in WAYS if way in set(wrong["tool"])]
    lines = []
    for kind, rows in wrong.groupby("kind"):
        cells = [kind, rows["kernel"].nunique()]
        for way in ways:
            found = rows.loc[rows["tool"] == way, "found"]
            cells.append(f"{int(found.sum())}/{found.size}" if found.size else "–")
        lines.append(cells)
    return markdown(("kind of mistake", "kernels", *ways), lines)


def exceptions(table: pd.DataFrame) -> str:
    """Name each mistake that the emulator misses, and each correct kernel that anything alarms."""
    mine = table[table["tool"] == "emulator"]
    groups = (
        ("The emulator misses", mine[(mine["kind"] != "") & (mine["found"] == 0)]),
        *(
            (f"False alarms of {way}", table[(table["tool"] == way) & (table["kind"] == "")])
            for way in ("emulator", "GPU", *SANITIZER)
        ),
    )
    lines = []
    for title, rows in groups:
        if rows.empty and not title.startswith("The"):
            continue
        if title.startswith("False"):
            rows = rows[(rows["found"] == 1) | (rows["result"] == "wrong")]
        names = [
            f"`{kernel}`{f', {kind}' if kind else ''} ({', '.join(map(str, warps))} warps)"
            for (kernel, kind), warps in rows.groupby(["kernel", "kind"], sort=False)["warps"]
        ]
        lines.append(f"- {title}: {'; '.join(names) or 'none'}.")
    return "\n".join(lines)


def corpus(table: pd.DataFrame) -> str:
    """Say how large the corpus is, and where it was run."""
    wrong = table[table["kind"] != ""]
    mistakes = wrong.drop_duplicates(["kernel", "kind"])
    about = table.dropna(subset=["hardware"]).drop_duplicates(["hardware", "software", "date"])
    places = "; ".join(f"{row.hardware}, {row.software}, {row.date}" for row in about.itertuples())
    every, compared = (len(each.drop_duplicates(_RUN)) for each in (table, shared(table)))
    first = table[table["tool"] == "emulator"].drop_duplicates(["kernel", "kind"])
    seconds = (
        "Seconds are those of a whole run; the emulator compiles each kernel once before, in "
        f"{(first['first_seconds'] - first['seconds']).median():.2f} s."
    )
    if "GPU" in set(table["tool"]):
        seconds += GPU
    return (
        f"{table['kernel'].nunique()} kernels, {len(mistakes)} mistakes of "
        f"{mistakes['kind'].nunique()} kinds, {every:,} runs; the tables compare the {compared:,} "
        f"that were looked at in every way. {seconds} Measured on: {places}."
    )


def main(page: Path = PAGE) -> None:
    table = runs()
    text = page.read_text("utf-8")
    for name, section in (
        ("corpus", corpus(table)),
        ("checkers", summary(shared(table))),
        ("kinds", by_kind(shared(table))),
        ("exceptions", exceptions(table)),
    ):
        text = renewed(text, name, section)
    page.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
