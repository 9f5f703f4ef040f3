"""Tables of docs/emulator.md: mistakes found by the emulator and compute-sanitizer."""

from __future__ import annotations

import pandas as pd

from benchmarks.pages.document import Listing, Page, Parts, Results, markdown

TABLES = ("checkers-h200", "checkers-emulator")
#: Checkers in the order of the columns; "four tools" combines compute-sanitizer's.
SANITIZER = ("memcheck", "racecheck", "initcheck", "synccheck")
TOOLS = {
    "GPU": "wrong result or error on the GPU",
    **dict.fromkeys(SANITIZER, ""),
    "four tools": "compute-sanitizer, all four",
    "emulator": "**emulator**",
}
#: Conditions of the runs on a GPU.
_RUN = ["kernel", "kind", "warps"]


def runs(results: Results) -> pd.DataFrame:
    """Return all recorded runs, one per row."""
    tables = [rows for name in TABLES if (rows := results.optional(name)) is not None]
    rows = pd.concat(tables, ignore_index=True).fillna({"kind": "", "report": ""})
    return four_together(rows)


def four_together(table: pd.DataFrame) -> pd.DataFrame:
    """Add rows that combine compute-sanitizer's four tools."""
    tools = table[table["tool"].isin(SANITIZER)]
    if tools.empty:
        return table
    groups = tools.groupby(_RUN)
    together = groups.agg(found=("found", "max"), looks=("tool", "nunique"))
    together["seconds"] = groups["seconds"].sum(min_count=len(SANITIZER))
    complete = together[together["looks"] == len(SANITIZER)].reset_index()
    return pd.concat([table, complete.assign(tool="four tools")], ignore_index=True)


def shared(table: pd.DataFrame) -> pd.DataFrame:
    """Return the runs that every recorded checker has, so that columns are comparable."""
    looks = table.groupby(_RUN)["tool"].transform("nunique")
    return table[looks == table["tool"].nunique()]


def summary(table: pd.DataFrame) -> str:
    """Return a table of the mistakes found, false alarms and seconds of each checker."""
    lines = []
    for tool, title in TOOLS.items():
        rows = table[table["tool"] == tool]
        if rows.empty:
            continue
        wrong, correct = rows[rows["kind"] != ""], rows[rows["kind"] == ""]
        whole = wrong.groupby("kind")["found"].min()
        hits = (share(column) for column in (wrong["found"], whole, correct["found"]))
        title = title or f"compute-sanitizer, {tool}"
        lines.append((title, *hits, f"{rows['seconds'].median():.2f}"))
    head = ("", "mistakes found", "kinds always found", "false alarms", "median s")
    return markdown(head, lines)


def share(hits: pd.Series) -> str:
    """Format the number of hits and of all runs."""
    return f"{int(hits.sum()):,} of {hits.size:,}"


def by_kind(table: pd.DataFrame) -> Parts:
    """Return the file with the runs in which each checker found a kind of mistake."""
    wrong = table[table["kind"] != ""]
    hits = wrong.pivot_table(index="kind", columns="tool", values="found", aggfunc="sum")
    runs_of_kind = wrong.drop_duplicates(_RUN).groupby("kind").size().rename("runs")
    tools = [tool for tool in TOOLS if tool in hits]
    listed = hits[tools].join(runs_of_kind).reset_index()
    return [
        Listing(listed, "checkers", "Each kind of mistake: runs, and those in which it was found")
    ]


def exceptions(table: pd.DataFrame) -> str:
    """Return a list of the mistakes that the emulator misses, and of all false alarms."""
    mine = table[table["tool"] == "emulator"]
    groups = (
        ("Misses of emulator", mine[(mine["kind"] != "") & (mine["found"] == 0)]),
        *(
            (f"False alarms of {tool}", table[(table["tool"] == tool) & (table["kind"] == "")])
            for tool in ("emulator", "GPU", *SANITIZER)
        ),
    )
    lines, without = [], []
    for title, rows in groups:
        if rows.empty and not title.startswith("Misses"):
            continue
        if title.startswith("False"):
            rows = rows[(rows["found"] == 1) | (rows["result"] == "wrong")]
        names = [
            f"`{kernel}`{f', {kind}' if kind else ''} ({', '.join(map(str, warps))} warps)"
            for (kernel, kind), warps in rows.groupby(["kernel", "kind"], sort=False)["warps"]
        ]
        if names:
            lines.append(f"- {title}: {'; '.join(names)}.")
        else:
            without.append(title[:1].lower() + title[1:])
    if without:
        lines.append(f"- None: {'; '.join(without)}.")
    return "\n".join(lines)


def corpus(table: pd.DataFrame) -> str:
    """Return a paragraph on the size of the corpus, the times and the machines."""
    wrong = table[table["kind"] != ""]
    mistakes = wrong.drop_duplicates(["kernel", "kind"])
    about = table.dropna(subset=["hardware"]).drop_duplicates(["hardware", "software", "date"])
    places = "; ".join(f"{row.hardware}, {row.software}, {row.date}" for row in about.itertuples())
    every, compared = (len(rows.drop_duplicates(_RUN)) for rows in (table, shared(table)))
    first = table[table["tool"] == "emulator"].drop_duplicates(["kernel", "kind"])
    seconds = (
        "Seconds are those of a whole run; the emulator compiles each kernel once before, in "
        f"{(first['first_seconds'] - first['seconds']).median():.2f} s."
    )
    return (
        f"{table['kernel'].nunique()} kernels, {len(mistakes)} mistakes of "
        f"{mistakes['kind'].nunique()} kinds, {every:,} runs; the tables compare the {compared:,} "
        f"that were looked at in every way. {seconds} Measured on: {places}."
    )


PAGES = [
    Page(
        "emulator.md",
        {
            "corpus": lambda results: corpus(runs(results)),
            "checkers": lambda results: summary(shared(runs(results))),
            "kinds": lambda results: by_kind(shared(runs(results))),
            "exceptions": lambda results: exceptions(runs(results)),
        },
    )
]
