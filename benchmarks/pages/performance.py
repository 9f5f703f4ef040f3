"""Renew the marked sections of docs/performance.md and the pictures beside it.

Reads what measure.py and gpu_preprocessing.py recorded in benchmarks/results, or in the folder that
is named. A section whose results are not there is left empty; what is said of a target follows from
the numbers.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from graphs import renewed
from paper import FIGURES, ROOT, markdown, measured_on, picture, plain
from performance_figures import limit_figure, roofline_figure, speedup_figure
from reasons import reasons
from sixteen_bits import sixteen_bits
from targets import (
    LIMIT,
    NOT_PREPROCESSED,
    OWN,
    PREPROCESSED,
    at,
    case_name,
    counts_of,
    graph_names,
    means_table,
    orders,
    other_peers,
    over,
    targets,
)

from accelviz.files import results_directory
from accelviz.measure.comparison import geometric_mean, labelled, latest, speedups
from accelviz.measure.ladder import ladder_cases

sys.path.append(str(ROOT / "benchmarks" / "measure"))

#: Of the settings that differ from the rule's, the first here was varied; others follow from it.
VARIED = (
    *("slab", "lanes", "block_threads", "group_nzs", "short_nzs"),
    *("block_order", "at_once", "blocks_per_sm"),
)
#: Recorded results that a section names if they are there.
FURTHER = ("orders", "counters-ours", "strategies", "bundled", "rounding")
Tables = dict[str, pd.DataFrame]


def result(tables: Tables, figures: Path) -> str:
    """Say the result in a sentence, and draw every case."""
    table = tables["ours"]
    found = over(table, PREPROCESSED)
    mean, losses = geometric_mean(found["speedup"]), int((found["speedup"] < 1).sum())
    worst = found.loc[found["speedup"].idxmin()]
    others = [
        f"{name} {geometric_mean(each['speedup']):.2f}"
        for name, case in (
            ("cuSPARSE without its preprocessing", NOT_PREPROCESSED),
            ("our GNNAdvisor", "gnnadvisor"),
            ("our Accel-GCN (the published scheme)", "accel_gcn"),
        )
        if (each := over(table, case)) is not None
    ]
    sentence = (
        f"**On an {table['hardware'].iloc[0]}, `{OWN}` is {mean:.2f} times as fast as cuSPARSE**, "
        f"the fastest of its algorithms for each case, already preprocessed: the geometric mean "
        f"over {found['graph'].nunique()} graphs and {found['columns'].nunique()} column counts. "
        f"It is slower in {losses or 'none'} of {len(found)} cases; the least is "
        f"{worst['speedup']:.2f}, {case_name(worst['graph'], worst['columns'])}. Means over "
        f"others: {', '.join(others)}."
    )
    figure, alt = speedup_figure(table)
    about = measured_on(table, found.attrs["dropped"]) + " Warm cache, float32."
    return "\n\n".join([sentence, picture(figure, figures, "performance-speedup", alt), about])


def asked(tables: Tables, _: Path) -> str:
    """Hold the targets against the times, and say why some were missed."""
    table = tables["ours"]
    found = targets(table, tables.get("preprocessing"), tables.get("half"))
    head = ["target", "wanted", "measured", ""]
    lines = markdown(head, [each.line() for each in found]).replace("---:", "---")
    peers = [tables[name] for name in ("strategies", "bundled") if name in tables]
    others = other_peers(table, peers) if peers else ""
    correct = (
        "2.2 billion nonzeros, more than 2^31, ran correctly on the same GPU: metadata in full, "
        "sampled rows against float64 (`tests/test_gpu_preprocessing.py`)."
    )
    why = reasons(table, tables.get("counters-ours"), tables.get("half"))
    missed = "Why targets were missed:\n\n" + "\n".join(why) if why else ""
    return "\n\n".join(
        each for each in (lines, correct, means_table(table), others, missed) if each
    )


def limits(tables: Tables, figures: Path) -> str:
    """Draw the shares of the limit, and the roofline."""
    table = tables["ours"]
    parts = []
    for draw, name in ((limit_figure, "limit"), (roofline_figure, "roofline")):
        figure, alt = draw(table)
        parts.append(picture(figure, figures, f"performance-{name}", alt))
    return "\n\n".join(parts)


def ladder(tables: Tables, _: Path) -> str:
    """List what each rung gains, in the mean over the graphs, in both orders."""
    rows = labelled(tables["ladder"], ladder_cases())
    rows = latest(rows)
    rows = rows.assign(
        share=rows["gather_limit_us"] / rows["median_us"],
        order=rows["graph"].str.endswith("-shuffled").map({True: "shuffled", False: "natural"}),
    )
    orders = [order for order in ("natural", "shuffled") if order in set(rows["order"])]
    values = ["median_us", "share"]
    wide = rows.pivot_table(index="strategy", columns=["order", "columns", "graph"], values=values)
    rungs = [*ladder_cases()]
    wide = wide.reindex(rungs)
    gains = wide["median_us"].shift() / wide["median_us"]
    counts = sorted(rows["columns"].unique())
    keys = [(order, d) for order in orders for d in counts]
    head = [
        "rung",
        *(f"gain, {order}, d = {d}" for order, d in keys),
        *(f"share, {order}, d = {d}" for order, d in keys),
    ]
    lines = []
    for rung in rungs:
        cells = []
        for key in keys:
            gain = geometric_mean(gains.loc[rung, key].dropna())
            text = f"{gain:.2f}" if gain >= 0.98 else f"**{gain:.2f}**"
            cells.append("" if rung in (rungs[0], rungs[-1]) else text)
        shares = [f"{geometric_mean(wide['share'].loc[rung, key].dropna()):.2f}" for key in keys]
        lines.append([rung, *cells, *shares])
    graphs = ", ".join(dict.fromkeys(plain(graph) for graph in rows["graph"]))
    return (
        f"Each rung is a step from the one before. Its gain is the time of that one over its own, "
        f"its share that of the random-gather limit; means over {graphs}; bold is slower. "
        f"[Lesson 12](../notebooks/12-the-ladder.ipynb) climbs it step by step, with "
        f"predictions.\n\n" + markdown(head, lines)
    )


def rule(tables: Tables, _: Path) -> str:
    """List what other settings than the rule's do, one varied at a time."""
    rows = tables["lanes"]
    rows = rows[(rows["strategy"] == OWN) & rows["median_us"].notna()]
    ratios = _against_the_rule(rows)
    again, other = (ratios[ratios["setting"].isna() == same] for same in (True, False))
    best = other.loc[other.groupby(["run", "graph", "columns"])["ratio"].idxmin()]
    low = best.loc[best["ratio"].idxmin()]
    gain = best["ratio"].clip(upper=1)
    lines = []
    for setting in (name for name in VARIED if name in set(other["setting"])):
        part = other[other["setting"] == setting]
        means = part.groupby("value")["ratio"].agg(geometric_mean)
        values = sorted(means.index, key=lambda text: (len(text), text))
        lines.append(
            [
                f"`{setting}`",
                ", ".join(f"{value}: {means[value]:.2f}" for value in values),
                f"{part['ratio'].min():.2f} to {part['ratio'].max():.2f}",
            ]
        )
    graphs, counts = graph_names(rows["graph"]), counts_of(sorted(rows["columns"].unique()))
    head = ["setting", "value: time over the rule's", "lowest to highest"]
    saved = [f"{100 - 100 * ratio:.1f} %" for ratio in (geometric_mean(gain), gain.min())]
    where = f"{case_name(low['graph'], low['columns'])}, `{low['setting']}` {low['value']}"
    return (
        f"Settings around the rule's, one varied at a time, on {graphs} at d = {counts}: the time "
        f"over that of the rule's setting, where it is another one (means; above 1 is slower). The "
        f"best in each case would save {saved[0]} in the mean, at most {saved[1]} ({where}). The "
        f"rule's setting itself, measured again among them, was {again['ratio'].min():.2f} to "
        f"{again['ratio'].max():.2f} of its first time.\n\n"
    ) + markdown(head, lines).replace("---:", "---")


def tuning(tables: Tables, _: Path) -> str:
    """Say what a search gains over the rule, and what it costs."""
    table = tables["tuning"]
    gain = table["rule_us"] / table["tuned_us"]
    graphs, counts = graph_names(table["graph"]), counts_of(sorted(table["columns"].unique()))
    pays = table["pays_after"]
    return (
        f"On {graphs} at d = {counts} the setting that it found is {gain.min():.2f} to "
        f"{gain.max():.2f} times as fast as the rule's, in {table['seconds'].min():.1f} to "
        f"{table['seconds'].max():.1f} s, which at best {pays.min():,.0f} products get back."
    )


def _against_the_rule(rows: pd.DataFrame) -> pd.DataFrame:
    """Divide every time by that of the case's first row, which has the rule's setting."""
    found = []
    for cell, part in rows.groupby(["run", "graph", "columns"], sort=False):
        settings = [dict(word.split("=") for word in text.split()) for text in part["parameters"]]
        for each in settings:  # one tile, however much wider it might be
            each["slab"] = str(min(int(each["slab"]), cell[2]))
        for each, median in list(zip(settings, part["median_us"], strict=True))[1:]:
            varied = next((key for key in VARIED if each[key] != settings[0][key]), None)
            value = None if varied is None else each[varied]
            found.append((*cell, varied, value, median / part["median_us"].iloc[0]))
    return pd.DataFrame(found, columns=["run", "graph", "columns", "setting", "value", "ratio"])


def locality(tables: Tables, _: Path) -> str:
    """Say what a vertex order is worth, and the orders that were found."""
    table = tables["ours"]
    found, vendor = orders(table), orders(table, PREPROCESSED)
    lines = []
    for d in LIMIT:
        mine, theirs = at(found, [d]), at(vendor, [d])
        cells = []
        for rows in (mine, theirs):
            for beyond in (True, False):
                part = rows.loc[rows["beyond"] == beyond, "gain"]
                cells.append(f"{geometric_mean(part):.2f}" if len(part) else "–")
        lines.append([d, f"{int(mine['beyond'].sum())} of {len(mine)}", *cells])
    head = [
        "d",
        "graphs with X beyond the L2",
        f"`{OWN}`, beyond",
        "within",
        "cuSPARSE, beyond",
        "within",
    ]
    beyond, within = found[found["beyond"]]["gain"], found[~found["beyond"]]["gain"]
    most = found.loc[found["gain"].idxmax()]
    text = (
        f"Times in shuffled order over those of the same twin in natural order, each in a run of "
        f"its own: {geometric_mean(beyond):.2f} where the features are larger than the L2 "
        f"({beyond.min():.2f} to {beyond.max():.2f}, {most['twin'].removesuffix('-twin')} at "
        f"d = {most['columns']}), {geometric_mean(within):.2f} where they are not.\n\n"
    ) + markdown(head, lines)
    return f"{text}\n\n{_found_orders(tables['orders'])}" if "orders" in tables else text


def _found_orders(table: pd.DataFrame) -> str:
    """List what Rabbit's order saves, and what finding it costs."""
    rows = latest(labelled(table, OWN))
    found = rows["graph"].str.endswith("-rabbit")
    key = ["graph", "columns"]
    new = rows[found].assign(graph=rows["graph"].str.removesuffix("-rabbit"))
    both = new.merge(rows.loc[~found, [*key, "median_us"]], on=key, suffixes=("", "_before"))
    both["gain"] = both["median_us_before"] / both["median_us"]
    saved = (both["median_us_before"] - both["median_us"]) / 1e6
    both["pays"] = both["order_seconds"] / saved.where(saved > 0, 0)  # infinite where it never does
    vendor = speedups(table[table["graph"].str.endswith("-rabbit")], PREPROCESSED, OWN)
    vendor["graph"] = vendor["graph"].str.removesuffix("-rabbit")
    both = both.merge(vendor[[*key, "speedup"]], on=key)
    wide = both.pivot_table(index="graph", columns="columns", values=["gain", "pays", "speedup"])
    counts = sorted(both["columns"].unique())
    seconds = both.drop_duplicates("graph").set_index("graph")["order_seconds"]
    lines = [
        [
            plain(graph),
            f"{seconds[graph]:.1f}",
            *(f"{line['gain', d]:.2f}" for d in counts),
            *(
                f"{line['pays', d]:,.0f}" if np.isfinite(line["pays", d]) else "never"
                for d in counts
            ),
            *(f"{line['speedup', d]:.2f}" for d in counts),
        ]
        for graph, line in wide.iterrows()
    ]
    means = [geometric_mean(wide[value, d]) for value in ("gain", "speedup") for d in counts]
    gains, speeds = means[: len(counts)], means[len(counts) :]
    lines.append(
        [
            "**mean**",
            "",
            *(f"{mean:.2f}" for mean in gains),
            *("" for _ in counts),
            *(f"{mean:.2f}" for mean in speeds),
        ]
    )
    head = [
        "graph",
        "found in, s",
        *(f"gain, d = {d}" for d in counts),
        *(f"pays after, d = {d}" for d in counts),
        *(f"over cuSPARSE, d = {d}" for d in counts),
    ]
    return (
        "Where no order is given, one can be found. Shuffled twins, renumbered by the project's "
        'Rabbit order (`vertex_order(graph, "rabbit")`, on one core of the host, compiled before): '
        "the time before over the time after, in one run; after how many products the finding has "
        "paid; and the lead over cuSPARSE, preprocessed, on the same order.\n\n"
    ) + markdown(head, lines)


def preprocessing(tables: Tables, _: Path) -> str:
    """Say what preprocessing costs on the GPU."""
    table = tables["preprocessing"]
    large = table[table["nnz"] > 1_000_000]
    small = table[table["nnz"] <= 1_000_000]
    host = geometric_mean(table["host_us"] / table["wall_us"])
    return (
        f"On the GPU, degree sort, metadata and paired nonzeros take "
        f"{geometric_mean(table['gpu_ratio']):.2f} of one product with 128 columns "
        f"({len(table)} graphs and orders): {geometric_mean(large['gpu_ratio']):.2f} above a "
        f"million nonzeros, {geometric_mean(small['gpu_ratio']):.2f} below. "
        f"By the host's clock, with launches and waits, {geometric_mean(table['wall_ratio']):.2f}. "
        f"The host takes {host:.0f} times as long as that. Both make the same arrays, bit for bit."
    )


#: Section to what writes it, and the recorded results that it needs.
SECTIONS: dict[str, tuple[Callable[[Tables, Path], str], str]] = {
    "result": (result, "ours"),
    "targets": (asked, "ours"),
    "limits": (limits, "ours"),
    "ladder": (ladder, "ladder"),
    "rule": (rule, "lanes"),
    "tuning": (tuning, "tuning"),
    "locality": (locality, "ours"),
    "sixteen-bits": (sixteen_bits, "half"),
    "preprocessing": (preprocessing, "preprocessing"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--document", type=Path, default=ROOT / "docs" / "performance.md")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="folder of the pictures")
    parser.add_argument("--results", type=Path, default=results_directory(), help="folder of CSVs")
    options = parser.parse_args()

    tables: Tables = {}
    for name in dict.fromkeys([*(needed for _, needed in SECTIONS.values()), *FURTHER]):
        names = (f"{name}-h200.csv*", f"{name}.csv*")
        found = [path for each in names for path in options.results.glob(each)]
        if found:
            tables[name] = pd.read_csv(found[0])
    if "ours" in tables:
        ours = tables["ours"]
        tables["ours"] = ours[(ours["state"] == "warm") & (ours["dtype"] == "float32")]
    text = options.document.read_text("utf-8")
    for name, (section, needed) in SECTIONS.items():
        if needed not in tables:
            print(f"{name} is left out: there is no {options.results / needed}-h200.csv")
        text = renewed(text, name, section(tables, options.figures) if needed in tables else "")
    options.document.write_text(text, "utf-8")
    print(f"renewed {options.document}")


if __name__ == "__main__":
    main()
