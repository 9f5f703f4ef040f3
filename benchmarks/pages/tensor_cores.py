"""Renew the marked sections of docs/tensor-cores.md from benchmarks/results/tensor-*.

python benchmarks/pages/tensor_cores.py
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import tensor_modes
from graphs import renewed
from paper import ROOT, markdown

from accelviz.measure.records import recorded

PAGE = ROOT / "docs" / "tensor-cores.md"


def tiles(table: pd.DataFrame) -> str:
    """Set tiles with and without translation beside each other, a line a graph (Figure 5.4)."""
    head = ("graph", "reuse", "tiles 16 x 8", "condensed", "saved", "full", "16 x 16", "condensed")
    head += ("Rabbit order: reuse", "16 x 8 condensed", "full")
    lines = []
    for graph, rows in table.groupby("graph", sort=False):
        spmm, sddmm = (rows[rows["operation"] == name].iloc[0] for name in ("spmm", "sddmm"))
        before, after = spmm["tiles_before"], spmm["tiles_after"]
        saved, full = f"{spmm['saved']:.0%}", f"{spmm['fill']:.1%}"
        others = f"{sddmm['tiles_before']:,}", f"{sddmm['tiles_after']:,}"
        moved = f"{spmm['rabbit_tiles']:,}", f"{spmm['rabbit_fill']:.1%}"
        lines.append(
            (
                *(graph, f"{spmm['reuse']:.2f}", f"{before:,}", f"{after:,}", saved, full, *others),
                *(f"{spmm['rabbit_reuse']:.2f}", *moved),
            )
        )
    return markdown(head, lines)


def density(table: pd.DataFrame) -> str:
    """Write the times of Table 5.6's matrices in microseconds; the fastest of a line is bold."""
    who = table["strategy"].str.replace("_", " ") + ", " + table["dtype"]
    wide = table.assign(who=who).pivot_table(
        index=["columns", "blocks_of_window", "density"], columns="who", values="median_us"
    )
    lines = [
        (
            *(columns, blocks, f"{share:.2%}"),
            *(f"**{us:,.1f}**" if us == times.min() else f"{us:,.1f}" for us in times),
        )
        for (columns, blocks, share), times in wide.iterrows()
    ]
    return markdown(("columns", "blocks", "density", *wide.columns), lines)


def graphs(table: pd.DataFrame) -> str:
    """Write the times on graphs in microseconds, and that of the fastest other over tc_gnn's."""
    case = ["operation", "graph", "reuse", "columns"]
    table = table.assign(graph=table["graph"].str.replace("-twin", " (twin)"))
    order = list(dict.fromkeys(table[case].itertuples(index=False, name=None)))
    wide = table.pivot_table(index=case, columns="strategy", values="median_us").reindex(order)
    others = [name for name in wide.columns if name != "tc_gnn"]
    lines = [
        (
            *(operation, graph, f"{reuse:.2f}", columns),
            *(f"{times[name]:,.1f}" for name in ("tc_gnn", *others)),
            f"{times[others].min() / times['tc_gnn']:.2f}",
        )
        for (operation, graph, reuse, columns), times in wide.iterrows()
    ]
    return markdown(("", "graph", "reuse", "columns", "tc_gnn", *others, "ratio"), lines)


def main(page: Path = PAGE) -> None:
    text = page.read_text("utf-8")
    times = recorded("tensor-density-h200")
    first = times.iloc[0]
    modes = tensor_modes.read(recorded("tensor-modes-h200"))
    for name, section in (
        ("tiles", tiles(recorded("tensor-tiles"))),
        ("machine", f"One {first['hardware']}, commit {first['commit']}."),
        ("density", density(times)),
        ("graphs", graphs(recorded("tensor-graphs-h200"))),
        ("translation", tensor_modes.translation(modes)),
        ("accuracy", tensor_modes.accuracy(recorded("tensor-accuracy-h200"))),
        ("modes machine", tensor_modes.machines(modes)),
        ("modes of spmm", tensor_modes.modes(modes, "spmm")),
        ("modes of sddmm", tensor_modes.modes(modes, "sddmm")),
        ("targets", tensor_modes.targets(modes)),
    ):
        text = renewed(text, name, section)
    page.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
    tensor_modes.picture(tensor_modes.read(recorded("tensor-modes-h200")))
