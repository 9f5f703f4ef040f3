"""Tables of training steps in docs/training.md, pytorch.md and reproduction.md."""

from __future__ import annotations

import pandas as pd

from benchmarks.pages.document import Listing, Page, Parts, Results, format_ratio, machine, table

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
    """Return our steps, with the ratio to the faster form of PyTorch Geometric in brackets."""
    rows = beside_pyg(results["training-steps-h200"], "ours")
    rows["faster"] = rows[PYG].min(axis=1) / rows["ms"]
    lines = []
    for graph, cases in rows.groupby("graph", sort=False):
        edges = cases["edges"].iloc[0]
        size = f"{edges / 1e6:.1f} M" if edges >= 1e6 else f"{edges / 1e3:.1f} k"
        line = {"graph": graph, "size": size}
        for case in cases.itertuples():
            known = f" ({case.faster:.1f})" if case.faster > 0 else ""
            line[case.model] = f"{case.ms:.3f}{known}"
        lines.append(line)
    models = [(model.upper(), f"{{{model}}}") for model in rows["model"].unique()]
    return table([("graph", "{graph}"), ("edges", "{size}"), *models], lines)


def gnnadvisor(results: Results) -> Parts:
    """Return how much faster steps with GNNAdvisor's kernels are than PyTorch Geometric's."""
    rows = beside_pyg(results["training-steps-h200"], "gnnadvisor")
    rows = rows.assign(model=rows["model"].str.upper())
    for form in PYG:
        rows[f"faster_{form}"] = rows[form] / rows["ms"]
    cells = rows["faster_edge_index"].map("{:.1f}, ".format)
    cells += rows["faster_csr"].map("{:.1f}".format)
    wide = rows.assign(cell=cells).pivot_table("cell", "graph", "model", "first", sort=False)
    columns = [("graph: over `edge_index`, CSR", "{graph}")]
    columns += [(model, f"{{{model}}}") for model in wide.columns]
    listed = rows[["graph", "model", "ms", *PYG]]
    return [table(columns, wide), Listing(listed, "gnnadvisor-steps", "Milliseconds of each step")]


#: Networks of torch-training-gpu.csv, in the order of the tables.
NETWORKS = ("GCN", "SAGE", "SAGE-MAX", "GIN", "GAT", "GATV2", "AGNN")
#: Columns that name a case of torch-training-gpu.csv; `part` is a part of its time.
CASE = ["command", "graph", "model", "part"]


def fastest_forms(rows: pd.DataFrame) -> pd.DataFrame:
    """Return PyTorch Geometric's fastest form beside ours, one row per case, of its last run.

    `pyg` and `ours` are milliseconds, of the command `host` those of the host; `same` is ours in
    `pyg_form`; `faster` is pyg / ours.
    """
    lines = []
    measured = rows[rows["error"].isna()].copy()
    measured["median_ms"] = measured["median_ms"].mask(
        measured["command"] == "host", measured["host_ms"]
    )
    for key, cases in measured.groupby([*CASE, "run"], sort=False):
        best = cases.sort_values("median_ms").drop_duplicates("library").set_index("library")
        if len(best) == 2:
            theirs, ours = best.loc["PyG"], best.loc["accelviz"]
            in_form = cases[(cases["library"] == "accelviz") & (cases["form"] == theirs["form"])]
            line = dict(zip(CASE, key, strict=False)) | {"edges": theirs["edges"]}
            line |= {"pyg": theirs["median_ms"], "pyg_form": theirs["form"]}
            line |= {"ours": ours["median_ms"], "form": ours["form"]}
            lines.append(line | {"same": in_form["median_ms"].min()})
    table_of_cases = pd.DataFrame(lines).drop_duplicates(CASE, keep="last")
    return table_of_cases.assign(
        faster=table_of_cases["pyg"] / table_of_cases["ours"],
        same_faster=table_of_cases["pyg"] / table_of_cases["same"],
        model=table_of_cases["model"].str.upper(),
    )


def torch_training(results: Results) -> Parts:
    """Return tables of `accelviz.torch` beside PyTorch Geometric; "" before they are recorded."""
    recorded = results.optional("torch-training-gpu")
    if recorded is None:
        return ""
    cases = fastest_forms(recorded)
    parts = [f"{machine(recorded)} Milliseconds, medians; each library in its fastest form."]
    for command, title in STEPS.items():
        if (selected := cases[cases["command"] == command]).size:
            parts += [title, by_network(selected)]
    names = [
        "command",
        "graph",
        "model",
        "part",
        "edges",
        "pyg",
        "pyg_form",
        "ours",
        "form",
        "faster",
    ]
    every = cases[names].rename(columns={"pyg": "pyg_ms", "ours": "ours_ms"})
    title = "Every case, with mini-batches, the host's time of a layer and first calls"
    return [*parts, Listing(every, "torch-training", title)]


#: Tables of training steps, by command.
STEPS = {
    "steps": "Steps in a plain loop: times as fast as PyTorch Geometric (our milliseconds).",
    "captured": "The same, captured as a CUDA graph.",
}


def by_network(cases: pd.DataFrame) -> str:
    """Return a table with a row per graph, smallest first, and a column per network."""
    cases = cases.sort_values("edges", kind="stable")
    lines = {graph: {"graph": graph} for graph in cases["graph"]}
    for case in cases.itertuples():
        lines[case.graph][case.model] = f"{format_ratio(case.faster)} ({case.ours:.2f})"
    models = [name for name in NETWORKS if name in {*cases["model"]}]
    rows = [dict.fromkeys(models, "–") | line for line in lines.values()]
    return table([("graph", "{graph}"), *((name, f"{{{name}}}") for name in models)], rows)


PAGES = [
    Page("training.md", {"training-steps": steps}),
    Page("pytorch.md", {"torch-training": torch_training}),
    Page("reproduction.md", {"gnnadvisor-steps": gnnadvisor}),
]
