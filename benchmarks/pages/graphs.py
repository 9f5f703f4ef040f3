"""The eighteen graphs of Table I as they are here, and how real twins are.

Makes every graph of Accel-GCN's Table I, counts what it has and puts it beside the table; then
compares each bundled real graph with its own twin in the statistics that SpMM depends on, in the
order they come in and after Rabbit order. Writes both tables into docs/graphs.md. Prints the time
and peak memory of making each graph, every one in a process of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import accelviz
from accelviz.analysis.locality import locality
from accelviz.datasets import TABLE_ONE, bundled_graphs, twin
from accelviz.graph import Graph
from accelviz.ordering import rabbit_order

_MIB = 1 << 20 if sys.platform == "darwin" else 1 << 10  # of ru_maxrss

#: Statistics of the comparison, and the decimal places they are shown with.
_PLACES = {"edge span": 2, "neighbor overlap": 3, "reuse distance": 3, "distinct columns": 2}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--document", default="docs/graphs.md", help="whose tables to renew")
    parser.add_argument("--graphs", nargs="*", default=list(TABLE_ONE), help="names in Table I")
    options = parser.parse_args()

    accelviz.describe(accelviz.load_graph("pubmed-twin"))  # compiles
    made = []
    context = multiprocessing.get_context("spawn")
    for name in tqdm(options.graphs, leave=False, disable=None):
        with context.Pool(1) as pool:
            made.append(pool.apply(facts, (name,)))
        cost = made[-1].pop("cost")
        tqdm.write(f"{made[-1]['name']:<26}{cost[0]:>6.1f} s{cost[1]:>8,.0f} MiB at most")

    path = Path(options.document)
    text = path.read_text("utf-8")
    if set(options.graphs) == set(TABLE_ONE):
        text = renewed(text, "table-one", table_one(made))
    text = renewed(text, "twins", twins_against_real())
    path.write_text(text, "utf-8")
    print(f"renewed {path}")


def facts(name: str) -> dict[str, Any]:
    """Make a graph of Table I and count what it has."""
    accelviz.load_graph("twitter-partial")  # loads what is compiled
    start = time.perf_counter()
    graph = accelviz.load_graph(f"{name}-twin")
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MIB
    card = accelviz.describe(graph)
    row_of = np.repeat(np.arange(graph.n_rows, dtype=np.int32), graph.degrees)
    return {
        "key": name,
        "name": graph.name,
        "kind": graph.kind,
        "nodes": graph.n_rows,
        "edges": graph.nnz,
        "max_degree": card.max_degree,
        "zero_rows": card.zero_rows,
        "symmetric": card.symmetric,
        "diagonal": int(np.count_nonzero(row_of == graph.column_indices)),
        "cost": (seconds, peak),
    }


def table_one(made: list[dict[str, Any]]) -> str:
    """Lay the counts out beside Table I."""
    lines = [
        "| graph | nodes in Table I | nodes here | edges in Table I | edges here | "
        "largest degree | rows without a nonzero | degrees | symmetric |",
        "|---|---:|---:|---:|---:|---:|---:|---|---|",
    ]
    for each in made:
        entry = TABLE_ONE[each["key"]]
        degrees = "exact" if each["kind"] == "twin" else "**approximate**"
        symmetric = "yes" if each["symmetric"] else "no (directed)"
        if each["diagonal"]:
            symmetric += f", {each['diagonal']} nonzero on the diagonal"
        lines.append(
            f"| {each['name'].removesuffix('-twin')} | {entry.nodes:,} | {each['nodes']:,} | "
            f"{entry.edges:,} | {each['edges']:,} | {each['max_degree']:,} | "
            f"{each['zero_rows']:,} | {degrees} | {symmetric} |"
        )
    return "\n".join(lines)


def twins_against_real() -> str:
    """Compare every bundled graph with its twins, as they come and after Rabbit order."""
    head = f"| graph | {' | '.join(_PLACES)} |"
    rule = "|---" * (1 + len(_PLACES)) + "|"
    as_given, reordered = [head, rule], [head, rule]
    for name in tqdm(bundled_graphs(), leave=False, disable=None):
        real = accelviz.load_graph(name)
        natural, shuffled = (twin(real, order=order) for order in ("natural", "shuffled"))
        as_given.append(_line(name, [natural, real, shuffled]))
        reordered.append(_line(name, [_in_rabbit_order(graph) for graph in (real, shuffled)]))
    return "\n".join(
        [
            "In the order they come in: twin in natural order · **real** · twin in shuffled order",
            "",
            *as_given,
            "",
            "After Rabbit order: **real** · twin",
            "",
            *reordered,
        ]
    )


def _in_rabbit_order(graph: Graph) -> Graph:
    return rabbit_order(graph).apply_to_graph(graph, columns=True)


def _line(name: str, graphs: list[Graph]) -> str:
    bold = 1 if len(graphs) == 3 else 0
    found = [locality(graph).relative for graph in graphs]
    cells = []
    for statistic, places in _PLACES.items():
        texts = [f"{each[statistic]:.{places}f}" for each in found]
        texts[bold] = f"**{texts[bold]}**"
        cells.append(" · ".join(texts))
    return f"| {name} | {' | '.join(cells)} |"


def renewed(text: str, name: str, table: str) -> str:
    """Put a table between the marks `<!-- name -->` and `<!-- end of name -->` of a document."""
    marks = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
    pattern = re.escape(marks[0]) + ".*?" + re.escape(marks[1])
    new, count = re.subn(pattern, lambda _: marks[0] + table + marks[1], text, flags=re.S)
    if count != 1:
        raise SystemExit(f"the document has no marks for {name}")
    return new


if __name__ == "__main__":
    main()
