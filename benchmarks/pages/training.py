"""Renew the tables of training steps in docs/ from benchmarks/results/training-steps-h200.csv.

python benchmarks/pages/training.py
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from graphs import renewed
from paper import ROOT, markdown

from accelviz.measure.records import recorded

PAGE = ROOT / "docs" / "training.md"
REPRODUCTION = ROOT / "docs" / "reproduction.md"
#: PyTorch Geometric's two forms; its default is the first.
PYG = ["edge_index", "csr"]


def beside_pyg(table: pd.DataFrame, form: str) -> pd.DataFrame:
    """Return what one of our forms took, beside PyTorch Geometric in the same run.

    Of several runs of a case it is the last of those that hold the most forms.

    Returns
    -------
    DataFrame
        A line for each graph and model: `graph`, `model`, `edges`, `ms` and `mib` of ours,
        milliseconds of `edge_index` and `csr`, and `pyg_mib`, the smaller of their peaks; NaN where
        a form was not measured.
    """
    lines = []
    for (graph, model), cases in table.groupby(["graph", "model"], sort=False):
        runs = [run.set_index("form") for _, run in cases.groupby("run")]
        runs = sorted((run for run in runs if form in run.index), key=len)
        if runs:
            own, others = runs[-1].loc[form], runs[-1].reindex(PYG)
            line = {"graph": graph, "model": model, "edges": own["edges"]}
            line |= {"ms": own["step_ms"], "mib": own["peak_mib"], **others["step_ms"]}
            lines.append({**line, "pyg_mib": others["peak_mib"].min()})
    return pd.DataFrame(lines)


def steps(table: pd.DataFrame) -> str:
    """Write our steps beside PyTorch Geometric's faster ones."""
    lines, last = [], None
    for row in beside_pyg(table, "ours").itertuples():
        theirs = pd.Series([row.edge_index, row.csr]).min()
        edges = f"{row.edges / 1e6:.1f} M" if row.edges >= 1e6 else f"{row.edges / 1e3:.1f} k"
        cells = [f"{row.ms:.3f}", "", "", f"{row.mib:,.0f}", ""]
        if pd.notna(theirs):
            cells = [
                *(f"{row.ms:.3f}", f"{theirs:.2f}", f"{theirs / row.ms:.1f}"),
                *(f"{row.mib:,.0f}", f"{row.pyg_mib:,.0f}"),
            ]
        lines.append((row.graph, "" if row.graph == last else edges, row.model.upper(), *cells))
        last = row.graph
    head = ("graph", "edges", "network", "ours", "PyG", "times as fast", "MiB", "MiB, PyG")
    return markdown(head, lines)


def gnnadvisor(table: pd.DataFrame) -> str:
    """Write steps with GNNAdvisor's kernels beside PyTorch Geometric's in both forms."""
    lines = []
    for row in beside_pyg(table, "gnnadvisor").itertuples():
        cells = [f"{row.ms:.3f}"]
        for theirs in (row.edge_index, row.csr):
            known = pd.notna(theirs)
            cells += [f"{theirs:.2f}", f"{theirs / row.ms:.1f}"] if known else ["", ""]
        lines.append((row.graph, row.model.upper(), *cells))
    head = ("graph", "network", "ours, GNNAdvisor's kernels", "PyG, `edge_index`", "times as fast")
    return markdown((*head, "PyG, CSR", "times as fast"), lines)


def main(page: Path = PAGE, reproduction: Path = REPRODUCTION) -> None:
    """Write both tables between their marks."""
    table = recorded("training-steps-h200")
    for path, name, section in (
        (page, "training-steps", steps),
        (reproduction, "gnnadvisor-steps", gnnadvisor),
    ):
        path.write_text(renewed(path.read_text("utf-8"), name, section(table)), "utf-8")


if __name__ == "__main__":
    main()
