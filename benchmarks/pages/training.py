"""Tables of training steps in docs/training.md and docs/reproduction.md."""

from __future__ import annotations

import pandas as pd

from benchmarks.pages.document import Page, Results, table

#: PyTorch Geometric's two forms of edges; `edge_index` is its default.
PYG = ["edge_index", "csr"]


def beside_pyg(rows: pd.DataFrame, form: str) -> pd.DataFrame:
    """Return one of our forms beside PyTorch Geometric, one row per graph and model.

    Both are of the same run: the last of those with the most forms. `ms` and `mib` are ours,
    `edge_index` and `csr` are milliseconds, and `pyg_mib` is the smaller of their peaks; NaN for
    forms that were not measured.
    """
    lines = []
    for (graph, model), cases in rows.groupby(["graph", "model"], sort=False):
        runs = [run.set_index("form") for _, run in cases.groupby("run")]
        runs = sorted((run for run in runs if form in run.index), key=len)
        if runs:
            ours, others = runs[-1].loc[form], runs[-1].reindex(PYG)
            line = {"graph": graph, "model": model, "edges": ours["edges"]}
            line |= {"ms": ours["step_ms"], "mib": ours["peak_mib"], **others["step_ms"]}
            lines.append({**line, "pyg_mib": others["peak_mib"].min()})
    return pd.DataFrame(lines)


def steps(results: Results) -> str:
    """Return our steps beside the faster form of PyTorch Geometric."""
    rows = beside_pyg(results["training-steps-h200"], "ours")
    rows["pyg"] = rows[PYG].min(axis=1)
    rows["size"] = [f"{n / 1e6:.1f} M" if n >= 1e6 else f"{n / 1e3:.1f} k" for n in rows["edges"]]
    rows.loc[rows["graph"].duplicated(), "size"] = ""
    columns = [
        ("graph", "{graph}"),
        ("edges", "{size}"),
        ("network", "{model}"),
        ("ours", "{ms:.3f}"),
        ("PyG", "{pyg:.2f}"),
        ("times as fast", "{faster:.1f}"),
        ("MiB", "{mib:,.0f}"),
        ("MiB, PyG", "{pyg_mib:,.0f}"),
    ]
    return table(
        columns, rows.assign(model=rows["model"].str.upper(), faster=rows["pyg"] / rows["ms"])
    )


def gnnadvisor(results: Results) -> str:
    """Return steps with GNNAdvisor's kernels beside both forms of PyTorch Geometric."""
    rows = beside_pyg(results["training-steps-h200"], "gnnadvisor")
    rows = rows.assign(model=rows["model"].str.upper())
    for form in PYG:
        rows[f"faster_{form}"] = rows[form] / rows["ms"]
    columns = [
        ("graph", "{graph}"),
        ("network", "{model}"),
        ("ours, GNNAdvisor's kernels", "{ms:.3f}"),
        ("PyG, `edge_index`", "{edge_index:.2f}"),
        ("times as fast", "{faster_edge_index:.1f}"),
        ("PyG, CSR", "{csr:.2f}"),
        ("times as fast", "{faster_csr:.1f}"),
    ]
    return table(columns, rows)


PAGES = [
    Page("training.md", {"training-steps": steps}),
    Page("reproduction.md", {"gnnadvisor-steps": gnnadvisor}),
]
