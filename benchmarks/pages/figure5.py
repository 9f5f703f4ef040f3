"""Figure 5 of Accel-GCN: the systems on every graph, over cuSPARSE, from recorded times.

Every number is a ratio of medians inside one run. A graph's is the geometric mean over its column
counts, that of all graphs the geometric mean over the graphs.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from paper import (
    FIGURES,
    ORDERS,
    SETTING,
    SPEEDUPS,
    SYSTEMS,
    in_order,
    markdown,
    measured_on,
    picture,
    plain,
    results,
    run,
    times,
)

from accelviz import plots
from accelviz.measure.comparison import by_columns, by_graph, overall, speedups

#: Each line of the table: the paper's name of the system, what is measured here, and its case.
OPPONENTS = (
    ("cuSPARSE", "fastest algorithm, preprocessed", SYSTEMS["cuSPARSE"]),
    ("cuSPARSE", "fastest, not preprocessed", "cusparse algorithm=fastest preprocess=False"),
    ("cuSPARSE", "default algorithm", "cusparse algorithm=default"),
    ("GNNAdvisor", "groups of 32", SYSTEMS["GNNAdvisor"]),
    ("GNNAdvisor", "groups of its Decider", "gnnadvisor ngs!=32"),
    ("GraphBLAST", "", SYSTEMS["GraphBLAST"]),
)
MAIN = ("cuSPARSE", "GNNAdvisor", "GraphBLAST")


def section(
    results_file: str | None = None, order: str = "natural", figures: Path = FIGURES
) -> str:
    """Draw the bars; list every opponent's mean, then every graph and every column count."""
    table = results(results_file, "strategies-h200")
    shown = in_order(table, order)
    others = {name: SYSTEMS[name] for name in ("Accel-GCN", "GNNAdvisor", "GraphBLAST")}
    ax = plots.speedup_bars(shown, SYSTEMS["cuSPARSE"], others, called="cuSPARSE")
    warm = shown[shown["state"] == "warm"]
    over = {name: own(warm, SYSTEMS[name]) for name in MAIN}
    mean = overall(over["cuSPARSE"]).iloc[0]
    alt = (
        f"Bars for {mean['graphs']} graphs: Accel-GCN is {mean['speedup']:.2f} times as fast as "
        f"cuSPARSE in the geometric mean, from {mean['lowest']:.2f} on "
        f"{plain(mean['lowest_graph'])} to {mean['highest']:.2f} on "
        f"{plain(mean['highest_graph'])}, and slower on {mean['losses']}. The table has the values."
    ).replace("\\*", "")
    dropped = sum(found.attrs["dropped"] for found in over.values())
    return "\n\n".join(
        [
            picture(ax.figure, figures, "figure5", alt),
            measured_on(warm, dropped) + " Warm cache unless said otherwise.",
            _opponents(table, order),
            "Accel-GCN's speedup on each graph, geometric mean over the column counts; losses in "
            "bold:",
            _graphs(over),
            "Accel-GCN's speedup at each column count, geometric mean over the graphs (lowest to "
            "highest graph):",
            _columns(over),
        ]
    )


def own(table: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Return Accel-GCN's speedups over a case."""
    return speedups(table, baseline, {"Accel-GCN": SYSTEMS["Accel-GCN"]})


def _opponents(table: pd.DataFrame, order: str) -> str:
    other = next(each for each in ORDERS if each != order)
    head = [
        "Accel-GCN over",
        f"paper ({SETTING}): mean, max",
        "here: mean",
        "best graph",
        "worst graph",
        "slower on",
        f"{other} order: mean",
        "cold cache: mean",
    ]
    lines = []
    for name, what, case in OPPONENTS:
        means = {
            (one, state): overall(own(rows, case))
            for one in ORDERS
            for state, rows in in_order(table, one).groupby("state")
        }
        main = means[order, "warm"].iloc[0]
        lines.append(
            [
                f"{name}, {what}" if what else name,
                "{:.2f}, {:.2f}".format(*SPEEDUPS[name]),
                times(main["speedup"]),
                f"{times(main['highest'])} ({plain(main['highest_graph'])})",
                f"{times(main['lowest'])} ({plain(main['lowest_graph'])})",
                f"{main['losses']} of {main['graphs']}",
                *(
                    times(means[key]["speedup"].iloc[0]) if key in means else "–"
                    for key in ((other, "warm"), (order, "cold"))
                ),
            ]
        )
    return markdown(head, lines)


def _graphs(over: dict[str, pd.DataFrame]) -> str:
    found = {name: by_graph(each).set_index("graph") for name, each in over.items()}
    lines = []
    for graph, line in found["cuSPARSE"].iterrows():
        values = [each["speedup"].get(graph, float("nan")) for each in found.values()]
        reach = f"{times(line['lowest'])} to {times(line['highest'])}"
        lines.append([plain(str(graph)), times(values[0]), reach, *map(times, values[1:])])
    head = ["graph", "over cuSPARSE", "(column counts)", "over GNNAdvisor", "over GraphBLAST"]
    return markdown(head, lines)


def _columns(over: dict[str, pd.DataFrame]) -> str:
    found = {name: by_columns(each).set_index("columns") for name, each in over.items()}
    lines = [
        [
            columns,
            *(
                f"{times(each.loc[columns, 'speedup'])} "
                f"({each.loc[columns, 'lowest']:.2f} to {each.loc[columns, 'highest']:.2f})"
                for each in found.values()
            ),
        ]
        for columns in found["cuSPARSE"].index
    ]
    return markdown(["columns", *(f"over {name}" for name in found)], lines)


if __name__ == "__main__":
    run(section, __doc__)
