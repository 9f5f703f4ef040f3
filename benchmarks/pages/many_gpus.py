"""Tables and pictures of docs/many-gpus.md: two GPUs beside one, measured and modelled."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from accelviz import plots
from accelviz.many_gpus.model import Work, gains, predict
from accelviz.many_gpus.rates import Rates, rates_of
from accelviz.measure.comparison import geometric_mean
from accelviz.measure.prediction import parameters_of
from accelviz.plots.style import BLUE, PURPLE, SKY, new_figure, tidy
from benchmarks.pages.document import Listing, Page, Parts, Picture, Results, markdown, table

_CASE = ["graph", "order", "columns"]
_OURS = {"pieces": "2", "storage": "float32", "pull_blocks": "64"}
#: Rows of the table of ablations: title; figure, scheme and settings of the record.
ABLATIONS = (
    ("`lane_groups` on one GPU", None, "one GPU", {}),
    ("ours, two pieces", "ours", "halo", {"pieces": "2"}),
    ("all rows of the other, by the same kernels", "all rows", "all_gather", {}),
    ("all-gather by NCCL, then `lane_groups`", None, "nccl all-gather", {}),
    ("unified memory, pages move (MGG-UVM, 4.8)", None, "unified memory", {}),
    ("MGG, ps=16 dist=1 wpb=2", "4.10a", "mgg", {"ps": "16"}),
    ("without neighbor partitions (4.10a)", "4.10a", "mgg", {"ps": "None"}),
    ("without interleaving (4.10b)", "4.10b", "mgg", {"interleave": "False"}),
    ("synchronous (4.6)", "4.6", "mgg", {"asynchronous": "False"}),
    ("MGG, ps=2 dist=2: gets by a warp (4.10c)", "4.10c", "mgg", {"get": "warp"}),
    ("gets by one thread", "4.10c", "mgg", {"get": "thread"}),
    ("gets by a block", "4.10c", "mgg", {"get": "block"}),
)


def rates(results: Results) -> Rates:
    """Return the model's rates of link, barriers and memory."""
    return rates_of(results["many-gpus-rates-h200"])


def cases(results: Results) -> pd.DataFrame:
    """Return times and gains by graph, order and columns, with the model's predictions.

    Columns such as "ours" are microseconds, "ours gain" is the speedup over one GPU, "ours model"
    is the predicted time over the measured one.
    """
    rows = results["many-gpus-h200"]
    rows = rows[(rows["step"] == "all") & rows["halo_rows"].notna()]
    by_case = []
    for key, of_case in rows.groupby(_CASE):
        first = of_case.iloc[0]
        one = of_case.loc[of_case["scheme"] == "one GPU", "median_us"].item()
        row = dict(zip(_CASE, key, strict=True)) | {"one": one, "cut": first["cut_share"]}
        row["short"] = key[0].split("-")[0]
        row["order_s"] = first["order_s"] if key[1] == "rabbit" else np.nan
        edges_a_halo_row = first["edges"] * first["cut_share"] / 2 / first["halo_rows"]
        size = int(first["nodes"]), int(first["edges"]), 2
        work = Work.even(*size, first["cut_share"], edges_a_halo_row)
        settings = [parameters_of(text) for text in of_case["parameters"].fillna("")]
        for name, wanted in (("ours", _OURS), ("half", _OURS | {"storage": "float16"})):
            times = of_case[[setting == wanted for setting in settings]]["median_us"]
            row[name] = times.item() if len(times) else np.nan
        row["mgg"] = of_case.loc[of_case["scheme"] == "mgg", "median_us"].min()
        for scheme, name in (("halo", "ours"), ("mgg", "mgg")):
            modelled = predict(work, int(key[2]), rates(results), scheme, one_gpu=one * 1e-6)
            row[f"{name} model"] = modelled.seconds * 1e6 / row[name]
        row |= {f"{name} gain": one / row[name] for name in ("ours", "half", "mgg")}
        by_case.append(row)
    return pd.DataFrame(by_case)


def overview(results: Results) -> str:
    """Return mean gains by order, the costs of Rabbit order and the model's largest error."""
    by_case = cases(results)
    gains_of = by_case.groupby("order")["ours gain"].agg([geometric_mean, "min", "max"])
    gain = "; ".join(
        f"{order} order {row['geometric_mean']:.2f} ({row['min']:.2f} to {row['max']:.2f})"
        for order, row in gains_of.iterrows()
    )
    seconds = by_case.dropna(subset="order_s").groupby("short")["order_s"].first()
    cost = " and ".join(f"{value:.0f} s ({name})" for name, value in seconds.items())
    off = pd.concat([by_case["ours model"], by_case["mgg model"]]).dropna()
    worst = float(np.exp(np.abs(np.log(off)).max()))
    return "\n".join(
        [
            f"- Mean gain over one GPU: {gain}.",
            f"- Rabbit order took {cost} on the host, once a graph.",
            f"- The model is at most {worst - 1:.1%} off in the {len(off)} cases of ours and MGG.",
        ]
    )


def collab_rows(results: Results) -> pd.DataFrame:
    """Return the times of whole products on Collab's twin."""
    rows = results["many-gpus-h200"]
    return rows[rows["graph"].str.startswith("Collab") & (rows["step"] == "all")]


def ablation_times(results: Results) -> pd.DataFrame:
    """Return µs of Figure 4.10 and the baselines of Figures 4.7 and 4.8, on Collab's twin."""
    rows = collab_rows(results)
    settings = rows["parameters"].fillna("").map(parameters_of)
    figures = rows["figure"].astype(object).where(rows["figure"].notna(), None)
    lines = []
    for title, figure, scheme, wanted in ABLATIONS:
        chosen = [
            setting.items() >= wanted.items() and name == figure and of_scheme
            for setting, name, of_scheme in zip(
                settings, figures, rows["scheme"] == scheme, strict=True
            )
        ]
        times = rows[chosen].groupby("columns")["median_us"]
        lines.append((title, *(round(times.min()[n_cols]) for n_cols in (16, 64))))
    return pd.DataFrame(lines, columns=["scheme", "us_16_columns", "us_64_columns"])


def ablations(results: Results) -> Parts:
    """Return the file with the times of Figure 4.10, and what the search of Figure 4.11 saves."""
    rows, searches = collab_rows(results), []
    for n_cols in (16, 64):
        trials = rows[(rows["figure"] == "4.11") & (rows["columns"] == n_cols)]
        best, first = trials.loc[trials["median_us"].idxmin()], trials.iloc[0]
        less = 1 - best["median_us"] / first["median_us"]
        searches.append(f"{less:.0%} at {n_cols} columns in {len(trials)} trials")
    return [
        Listing(
            ablation_times(results), "many-gpus-ablations", "Each variant on Collab, shuffled, µs"
        ),
        f"The search of Figure 4.11 saves {' and '.join(searches)}.",
    ]


def link(results: Results) -> Parts:
    """Return the file with the link's bandwidth by row length and number of fetching blocks."""
    fetch = results["many-gpus-rates-h200"].query("what == 'fetch'")
    speeds = fetch.assign(bytes_of_a_row=4 * fetch["columns"])
    names = ["bytes_of_a_row", "blocks", "gigabytes_per_second"]
    most = speeds["gigabytes_per_second"].max()
    return [
        f"Each GPU fetches rows of the other with at most {most:.0f} GB/s, both at the same time.",
        Listing(speeds[names], "link", "By bytes of a row and number of fetching blocks"),
    ]


def every_case(results: Results) -> Parts:
    """Return a table of all cases, and plots of measured and predicted gains."""
    by_case = cases(results)
    bars = {"ours": "ours gain", "ours, 16-bit halo": "half gain", "MGG as published": "mgg gain"}
    gain = pd.DataFrame({name: by_case[column] for name, column in bars.items()})
    gain.index = by_case["short"] + " " + by_case["order"] + ", " + by_case["columns"].astype(str)
    figure, axes = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
    graphs = (("PRODUCTS", 2_449_029, 123_718_280), ("Collab", 235_868, 2_358_104))
    for ax, (name, nodes, edges) in zip(axes, graphs, strict=True):
        plots.second_gpu(gains(nodes, edges, rates(results)), called=name, ax=ax)
    return [
        Listing(by_case, "many-gpus", "Each case: edges cut, microseconds, gains and predictions"),
        Picture(
            scheme_times(gain).figure, "many-gpus-times", "Speedup of each scheme over one GPU"
        ),
        Picture(figure, "many-gpus-second", "Predicted gains of a second GPU", dpi=90),
    ]


def scheme_times(gain: pd.DataFrame) -> Axes:
    """Plot the speedup over one GPU of each scheme (column) in each case (index)."""
    ax = new_figure(figsize=(9, 0.8 + 0.26 * len(gain) * (len(gain.columns) + 0.8))).subplots()
    gain.plot.barh(ax=ax, width=0.8, color=[BLUE, SKY, PURPLE], ec="white")
    containers: Any = ax.containers
    for bars, name in zip(containers, gain, strict=True):
        ax.bar_label(bars, [f"{x:.2f}" if x == x else "" for x in gain[name]], padding=2, size=8)
    ax.axvline(1, color="black", lw=1)
    ax.text(1, -0.62, "one GPU", ha="center", va="bottom", size=8.5)
    ax.set(xlabel="times as fast as one GPU", ylabel="", ylim=(len(gain) + 0.1, -0.6))
    ax.legend(frameon=False, fontsize=8.5, loc="lower right", ncol=4)  # below the last bar
    return tidy(ax)


#: Forms of split_training.py that are not PyTorch Geometric's.
_FORMS_OF_OURS = [
    *("Edges", "split", "in turn", "one rank"),
    *("Edges, dropout", "one rank, dropout", "split, dropout", "exchanged"),
]


def training_steps(results: Results) -> Parts:
    """Return the steps of training on several GPUs beside one GPU, ours and PyTorch Geometric's."""
    rows = results.optional("split-training")
    if rows is None:
        return "Not measured yet."
    lines = []
    for (graph, model), cases in rows.groupby(["graph", "model"], sort=False):
        theirs = cases[~cases["form"].isin(_FORMS_OF_OURS)]
        cases = cases.set_index("form").reindex(_FORMS_OF_OURS)
        ms, predicted = cases["median_ms"], cases["predicted_ms"]
        dropped = ms["Edges, dropout"]
        line = {"graph": graph, "edges": rows["edges"][rows["graph"] == graph].iloc[0] / 1e6}
        line |= {"model": model.upper(), "one": ms["Edges"], "pyg": theirs["median_ms"].min()}
        line |= {"split": ms["split"], "gain": ms["Edges"] / ms["split"]}
        line |= {"in_turn": ms["Edges"] / ms["in turn"], "choice": cases["choice"]["split"]}
        line |= {"dropout": dropped / ms["split, dropout"], "exchanged": dropped / ms["exchanged"]}
        line |= {"predicted": predicted["Edges"] / predicted["split"]}
        line |= {"one_gib": cases["peak_mib"]["Edges"] / 1024}
        line |= {"split_gib": cases["peak_mib"]["split"] / 1024}
        low, high = cases.loc["split", ["p10_ms", "p90_ms"]]
        lines.append({**line, "low": low, "high": high})
    first = rows.iloc[0]
    about = f"{first['hardware']}, driver {first['driver']}, {first['date']}"
    commits = ", ".join(dict.fromkeys(str(commit)[:7] for commit in rows["commit"]))
    return [
        f"Two {about}, commits {commits}.",
        gains_by_network(lines, "{gain:ratio} ({predicted:ratio})"),
        Listing(
            pd.DataFrame(lines),
            "split-training",
            "Milliseconds with spreads, PyG, memory, overlap and dropout",
        ),
    ]


def gains_by_network(lines: list[dict[str, Any]], form: str) -> str:
    """Return a table of graphs by networks, in the cells of which are gains as in `form`."""
    by_graph: dict[str, dict[str, Any]] = {}
    for line in lines:
        cells = by_graph.setdefault(line["graph"], {"graph": line["graph"]})
        cells |= {f"{line['model']} {name}": value for name, value in line.items()}
    models = dict.fromkeys(line["model"] for line in lines)
    columns = [("graph", "{graph}")]
    if "edges" in lines[0]:
        columns.append(("million edges", f"{{{next(iter(models))} edges:.3g}}"))
    columns += [(model, form.replace("{", f"{{{model} ")) for model in models]
    return table(columns, by_graph.values())


#: Numbers of GPUs in words.
_WORDS = {1: "one", 2: "two", 4: "four"}


def scaling(results: Results) -> Parts:
    """Return the steps on one, two and four GPUs of one host, of two runs."""
    rows = results["split-gpus-h200"].query("form in ['Edges', 'split']")
    lines = []
    for (graph, model), of_case in rows.groupby(["graph", "model"], sort=False):
        one = of_case[of_case["form"] == "Edges"].iloc[0]
        line = {"graph": graph, "model": model.upper(), "one": one["median_ms"]}
        for _, split in of_case[of_case["form"] == "split"].iterrows():
            name = _WORDS[split["gpus"]]
            line |= {name: split["median_ms"], f"{name} gain": line["one"] / split["median_ms"]}
            line[f"{name} predicted"] = one["predicted_ms"] / split["predicted_ms"]
        lines.append(line)
    large = pd.DataFrame(lines).query("graph != 'cora'")
    ratios = [large[f"{name} predicted"] / large[f"{name} gain"] for name in ("two", "four")]
    off = (pd.concat(ratios) - 1).abs()
    form = "{{{0} gain:ratio}} ({{{0} predicted:ratio}})"
    first = rows.iloc[0]
    return [
        f"Up to four {first['hardware']} of one host, {first['date']}: gains of two GPUs, of four.",
        gains_by_network(lines, ", ".join(form.format(name) for name in ("two", "four"))),
        f"Predicted gains of the large graphs are off by {off.mean():.0%} in the mean and at most "
        f"{off.max():.0%}.",
        Listing(pd.DataFrame(lines), "split-gpus", "Milliseconds of each step"),
    ]


def memory(results: Results) -> str:
    """Return a step on features that exceed the memory of one GPU."""
    rows = results["split-memory-h200"].set_index("gpus")
    first = rows.iloc[0]
    features = f"{first['nodes'] / 1e6:.0f} million nodes x {first['columns']} columns"
    parts = [f'one GPU ends with "{first["error"]}"']
    for gpus, row in rows.iloc[1:].iterrows():
        step = f"a step of {row['median_ms']:.0f} ms"
        parts.append(f"{_WORDS[gpus]} take {row['peak_gib']:.1f} GiB each and {step}")
    return (
        f"Features of {first['features_gib']:.1f} GiB ({features}) on GPUs of "
        f"{first['gpu_gib']:.1f} GiB: {', '.join(parts)}."
    )


def sampling(results: Results) -> str:
    """Return thousand seeds per second of all GPUs with sampled neighbors (Table 4.2)."""
    rows = results["split-sampling-h200"]
    case, columns = ["graph", "model"], ["gpus", "library"]
    seeds = rows.pivot_table(index=case, columns=columns, values="seeds_per_s", sort=False) / 1e3
    head = ["graph, network: ours, PyG"]
    head += [f"{name} GPU{'s' * (name != 'one')}" for name in _WORDS.values()]
    lines = [
        (
            f"{graph}, {model.upper()}",
            *(f"{of_case[gpus, 'ours']:.0f}, {of_case[gpus, 'pyg']:.0f}" for gpus in _WORDS),
        )
        for (graph, model), of_case in seeds.iterrows()
    ]
    return markdown(head, lines)


def occupancy(results: Results) -> str:
    """Return counters of MGG's kernel and of products with unified memory (Figure 4.8)."""
    rows = results["many-gpus-counters-h200"].groupby("kernel").mean(numeric_only=True)
    resident, issuing = rows["occupancy_pct"], rows["issue_active_pct"]
    mgg, unified = (
        f"{resident[kernel]:.0f} % of its warps resident and issues in {issuing[kernel]:.1f} % of "
        "the cycles"
        for kernel in ("mgg", "lane_groups")
    )
    return f"MGG has {mgg}; `lane_groups` on unified memory has {unified}."


def machine(results: Results) -> str:
    """Return a sentence about the host."""
    first = results["many-gpus-h200"].iloc[0]
    return f"Two {first['hardware']} of one host, driver {first['driver']}, {first['date']}."


PAGES = [
    Page(
        "many-gpus.md",
        {
            "split-training": training_steps,
            "split-gpus": scaling,
            "split-memory": memory,
            "split-sampling": sampling,
            "occupancy": occupancy,
            "machine": machine,
            "overview": overview,
            "cases": every_case,
            "ablations": ablations,
            "link": link,
        },
    )
]
