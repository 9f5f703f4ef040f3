"""Measurements for docs/reproduction.md: every strategy on Accel-GCN's graphs, on this GPU.

The first argument names the study; `prepare` only generates the graphs and stores them on disk,
each in its own process. Results are compared with float64 before they are timed. Each row is
written at once: an interrupted run continues where it stopped, and graphs or columns may be
measured one after another into the same CSV. Use a separate CSV for each machine and each commit.

    python benchmarks/measure/measure.py prepare --cache /tmp/graphs
    python benchmarks/measure/measure.py strategies --cache /tmp/graphs --output strategies.csv
    python benchmarks/measure/measure.py columns --graphs collab youtube --output columns.csv
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from scipy import sparse
from study import open_graph, parser, use_cache, write

import accelviz
from accelviz.datasets import TABLE_ONE, bundled_graphs, load_graph
from accelviz.devices import choose
from accelviz.errors import AccelvizError
from accelviz.graph import Graph
from accelviz.measure.harness import COLUMNS, STATES
from accelviz.measure.ladder import ladder
from accelviz.strategies import find_strategy

Case = str | tuple[str, dict[str, Any]]

#: One thread per row takes seconds on the largest graphs, without new insight; on other graphs it
#: is measured with two column counts.
ROW_THREAD, ROW_THREAD_NONZEROS, ROW_THREAD_COLUMNS = "row_thread", 20_000_000, (16, 64)
#: cuSPARSE's algorithms for CSR without preprocessing (the usual call), its fastest algorithm, and
#: GNNAdvisor with the group size of its Decider.
VARIANTS: tuple[Case, ...] = (
    *(
        ("cusparse", {"algorithm": algorithm, "preprocess": False})
        for algorithm in ("default", "csr_alg1", "csr_alg2", "csr_alg3", "fastest")
    ),
    ("gnnadvisor", {"ngs": None}),
)


def twins(*names: str) -> list[str]:
    """Return the names of the graphs' twins."""
    return [f"{name}-twin" for name in names]


TWINS = twins(*sorted(TABLE_ONE, key=lambda name: TABLE_ONE[name].edges))
#: The sixteen graphs of the targets for `lane_groups`: all but the two that take minutes.
SIXTEEN = [name for name in TWINS if name not in ("reddit-twin", "products-twin")]
#: Settings that differ from the rule of `lane_groups` in one parameter.
LANE_SETTINGS: tuple[Case, ...] = (
    "lane_groups",
    *(
        ("lane_groups", {name: value})
        for name, values in (
            ("group_nzs", (8, 16, 24, 32, 48, 64, 128)),
            ("short_nzs", (1, 4, 8, 16, 32)),
            ("block_threads", (64, 128, 256)),
            ("lanes", (4, 8, 16, 32)),
            ("column_tile", (32, 48, 64, 128)),
            ("at_once", (1, 2, 3, 4, 8)),
            ("blocks_per_sm", (6, 8, 10, 12, 16)),
            ("block_order", ("place", "degree")),
        )
        for value in values
    ),
    "cusparse",
)
#: Graphs of type III in GNNAdvisor's and TC-GNN's tables that are in Table I too.
TYPE_THREE = ("artist", "com-amazon", "amazon0601")
#: Neighbor group sizes of Figure 3.12a, and those of Figure 3.14.
GROUP_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
#: Other operations to measure on the bundled graphs.
OTHERS = (
    *("edge_softmax", "edge_softmax_gradient", "spmm_gradient", "gat", "gat_gradient"),
    *("gatv2", "gatv2_gradient", "dot", "dot_gradient", "cosine", "cosine_gradient"),
)
#: Graph of an untimed first run, which initializes the device and compiles.
WARM_UP = "cora"


@dataclass(frozen=True)
class Study:
    """Cases and graphs to measure; with `cases` None every strategy of the operation."""

    summary: str
    graphs: Sequence[str]
    columns: Sequence[int]
    states: tuple[str, ...] = ("warm",)
    cases: tuple[Case, ...] | None = None
    variants: tuple[Case, ...] = ()
    spares_row_thread: bool = False
    operation: str = "spmm"

    def all_cases(self) -> list[Case]:
        """Return all cases, including the variants."""
        cases = accelviz.strategies(self.operation) if self.cases is None else self.cases
        return [*cases, *self.variants]


STUDIES = {
    "strategies": Study(
        "every strategy on every graph of Table I, warm and cold (Figure 5)",
        TWINS,
        range(16, 129, 16),
        STATES,
        variants=VARIANTS,
        spares_row_thread=True,
    ),
    "columns": Study(
        "four systems at every column count, warm (Figure 6)",
        [
            *twins("pubmed", "artist", "collab", "com-amazon"),
            *twins("arxiv", "twitter-partial", "youtube", "ovcar-8h"),
        ],
        range(16, 129),
        cases=("accel_gcn", "gnnadvisor", "graphblast", "cusparse"),
    ),
    "ablations": Study(
        "Accel-GCN without its partition, its combined warp, or both, warm (Figures 7 and 8)",
        TWINS,
        sorted([*range(16, 129, 8), 17, 33, 50, 65, 100, 127]),
        cases=tuple(
            ("accel_gcn", {"partition": partition, "combined_warp": combined})
            for partition in ("block", "warp")
            for combined in (True, False)
        ),
    ),
    "sweeps": Study(
        "Accel-GCN with other settings than the published one, warm",
        ["cora", "pubmed", *twins("collab", "artist", "com-amazon", "citation")],
        (16, 32, 64, 128),
        cases=tuple(
            ("accel_gcn", {"max_block_warps": block_warps, "max_warp_nzs": warp_nzs})
            for block_warps in (1, 2, 4, 6, 8, 12, 16, 24, 32)
            for warp_nzs in (8, 16, 32, 64, 128)
        ),
    ),
    "ours": Study(
        "our own strategy against those it should be ahead of, warm (docs/performance.md)",
        [*SIXTEEN, *bundled_graphs()],
        (16, 17, 32, 33, 48, 50, 64, 96, 100, 128),
        cases=("lane_groups", "cusparse", "gnnadvisor", "accel_gcn"),
        variants=(("cusparse", {"preprocess": False}),),
    ),
    "ladder": Study(
        "from one thread a row to our own strategy, a change at a time, warm (elective the-ladder)",
        twins("com-amazon", "ovcar-8h", "citation", "ppa"),
        (32, 128),
        cases=tuple(ladder().values()),
    ),
    "lanes": Study(
        "other settings of our own strategy than its rule chooses, warm",
        ["mit8", "pubmed", *twins("artist", "collab", "com-amazon", "ovcar-8h")],
        (16, 32, 64, 96, 128),
        cases=LANE_SETTINGS,
    ),
    "half": Study(
        "our own strategy with features kept in 16 bits, warm",
        twins("collab", "com-amazon", "ovcar-8h", "youtube", "yelp", "citation"),
        (32, 64, 96, 128),
        cases=(
            "lane_groups",
            *(("lane_groups", {"storage": storage}) for storage in ("float16", "bfloat16")),
        ),
    ),
    "gnnadvisor": Study(
        "GNNAdvisor by group size and workers, beside its Decider, cuSPARSE without preprocessing "
        "and GraphBLAST, which is made of Gunrock, warm (Figures 3.11 to 3.14)",
        twins(*TYPE_THREE),
        (16, 32, 64, 128),
        cases=(
            *(("gnnadvisor", {"ngs": ngs}) for ngs in GROUP_SIZES),
            *(("gnnadvisor", {"dw": workers}) for workers in (1, 2, 4, 8, 16, 32)),
            *(("gnnadvisor", {"block_warps": warps}) for warps in (1, 2, 8)),
            *(("gnnadvisor", {"ngs": None}), ("cusparse", {"preprocess": False}), "graphblast"),
        ),
    ),
    "tc_gnn": Study(
        "TC-GNN's SpMM by warps of a block, beside its rule, and cuSPARSE, warm (Figures 5.6, 5.7)",
        ["cora", "pubmed", *twins(*TYPE_THREE)],
        (16, 32, 64, 128, 256),
        cases=(
            *("tc_gnn", "cusparse", ("cusparse", {"preprocess": False})),
            *(("tc_gnn", {"block_warps": warps}) for warps in (1, 2, 4, 8, 16, 32)),
        ),
    ),
    "tc_gnn_sddmm": Study(
        "TC-GNN's SDDMM by warps of a block, and cuSPARSE, warm (Figures 5.6, 5.7)",
        ["cora", "pubmed", *twins(*TYPE_THREE)],
        (16, 32, 64, 128, 256),
        cases=(
            *("tc_gnn", ("cusparse", {"preprocess": False})),
            *(("tc_gnn", {"block_warps": warps}) for warps in (1, 2, 4, 8)),
        ),
        operation="sddmm",
    ),
    "sddmm": Study(
        "every strategy of SDDMM on the bundled graphs and six twins, warm (docs/sddmm.md)",
        [
            *bundled_graphs(),
            *twins("com-amazon", "collab", "amazon0601", "yelp", "citation", "ppa"),
        ],
        (16, 32, 64, 128),
        variants=(("cusparse", {"preprocess": False}),),
        operation="sddmm",
    ),
    **{
        operation: Study(
            f"every strategy of {operation} on the bundled graphs, warm (the explorer's times)",
            list(bundled_graphs()),
            (16, 32, 64, 128),
            operation=operation,
        )
        for operation in OTHERS
    },
    "bundled": Study(
        "every strategy on the bundled real graphs, warm and cold",
        list(bundled_graphs()),
        COLUMNS,
        STATES,
    ),
    "partitions": Study(
        "Accel-GCN and the partition that it replaces on the bundled graphs, warm and cold (demo)",
        list(bundled_graphs()),
        COLUMNS,
        STATES,
        ("accel_gcn", ("accel_gcn", {"partition": "warp"})),
    ),
}


def main() -> None:
    options = parsed()
    if options.study == "prepare":
        prepare(options.graphs, options.order, options.processes)
        return
    options.output.parent.mkdir(parents=True, exist_ok=True)
    study, columns = STUDIES[options.study], options.columns
    cases = [
        case for case in study.all_cases() if named(case) in (options.strategies or [named(case)])
    ]
    cases = runnable(cases, options.device, study.operation)
    ends = sorted({min(columns), max(columns)})
    warm = Study("", [WARM_UP], ends, operation=study.operation)
    run(warm, load_graph(WARM_UP), cases, ends, options.device, repeats=1, path=None)
    begin = time.perf_counter()
    for i, name in enumerate(options.graphs):
        if time.perf_counter() - begin > options.seconds:
            print(f"stopped before {', '.join(options.graphs[i:])}")
            break
        start = time.perf_counter()
        graph = open_graph(name, options.order, options.cache is not None)
        seconds = time.perf_counter() - start
        for some, counts in parts(study, cases, columns, graph.nnz):
            rows = len(some) * len(study.states)
            forget_unfinished(options.output, graph.name, study.operation, counts, rows)
            run(study, graph, some, counts, options.device, options.repeats, options.output)
        print(
            f"{graph.name}: made or read in {seconds:.0f} s, "
            f"measured in {time.perf_counter() - start - seconds:.0f} s",
            flush=True,
        )
        del graph  # before the next one is made
    report(options.output)


def named(case: Case) -> str:
    """Return a case's strategy name."""
    return case if isinstance(case, str) else case[0]


def parsed() -> argparse.Namespace:
    options = parser(__doc__, repeats=20, output=False)
    lines = [f"  {name:<24} {study.summary}" for name, study in STUDIES.items()]
    lines.append(f"  {'prepare':<24} make the graphs, in parallel, and keep them on disk")
    options.epilog = "\n".join(["what to measure:", *lines])
    options.add_argument("study", choices=[*STUDIES, "prepare"], metavar="WHAT")
    options.add_argument("--output", type=Path, help="CSV to add to")
    options.add_argument("--graphs", nargs="+", help="names that load_graph takes, not the study's")
    options.add_argument("--columns", nargs="+", type=int, help="not the study's")
    options.add_argument("--strategies", nargs="+", help="these alone of the study's")
    options.add_argument("--device", default="auto", help="auto, cuda or cpu")
    unlimited, text = float("inf"), "begin no other graph after these"
    options.add_argument("--seconds", type=float, default=unlimited, help=text)
    options.add_argument("--processes", type=int, default=os.cpu_count(), help="of prepare")
    options.add_argument("--order", choices=["natural", "shuffled"], default="natural")
    text, folder = "keep twins on disk, in the user's cache folder or in this one", "ACCELVIZ_CACHE"
    const = os.environ.get(folder, "")
    options.add_argument("--cache", nargs="?", const=const, metavar="FOLDER", help=text)
    chosen = options.parse_args()
    study = STUDIES.get(chosen.study)
    if study is not None and chosen.output is None:
        options.error("--output is missing")
    chosen.graphs = chosen.graphs or list(study.graphs if study else TWINS)
    chosen.columns = chosen.columns or list(study.columns if study else ())
    if chosen.cache:
        use_cache(chosen.cache)
    return chosen


def runnable(cases: Sequence[Case], device: str, operation: str) -> list[Case]:
    """Return the cases that the device can run; print the others."""
    executor = choose(device, timed=True)
    tiny = load_graph(sparse.eye_array(1, format="csr"))
    usable = []
    for case in cases:
        parameters = case[1] if isinstance(case, tuple) else {}
        try:
            strategy = find_strategy(named(case), operation)
            problem = executor.unavailable_reason(strategy.plan(tiny, 1, **parameters))
        except AccelvizError as error:
            problem = str(error)
        if problem is None:
            usable.append(case)
        else:
            print(f"left out on {executor.name}: {case}: {problem}")
    return usable


def parts(
    study: Study, cases: Sequence[Case], columns: Sequence[int], nonzeros: int
) -> Iterator[tuple[list[Case], list[int]]]:
    """Yield cases and column counts for each call; both times of a ratio must be of one call."""
    of_all = list(columns)
    if study.spares_row_thread:
        small = nonzeros < ROW_THREAD_NONZEROS
        of_all = [d for d in columns if small and d in ROW_THREAD_COLUMNS]
    others = [case for case in cases if case != ROW_THREAD]
    rest = [d for d in columns if d not in of_all]
    for some, counts in ((list(cases), of_all), (others, rest)):
        if some and counts:
            yield some, counts


def run(
    study: Study,
    graph: Graph,
    cases: Sequence[Case],
    columns: Sequence[int],
    device: str,
    repeats: int,
    path: Path | None,
) -> None:
    """Measure one graph."""
    accelviz.benchmark(
        graph,
        list(cases),
        columns,
        device,
        operation=study.operation,
        repeats=repeats,
        states=study.states,
        path=path,
        progress=sys.stderr.isatty(),
        on_error="record",
    )


def forget_unfinished(
    path: Path, graph: str, operation: str, columns: Sequence[int], rows: int
) -> None:
    """Remove the last column count from a CSV if its run was interrupted.

    It is measured again completely, because both times of a ratio must be of one run.
    """
    table = pd.read_csv(path, dtype=str, keep_default_na=False) if path.exists() else pd.DataFrame()
    if table.empty:
        return
    last, alike = table.iloc[-1], ["run", "graph", "operation", "columns"]
    group = (table[alike] == last[alike]).all(axis=1)
    is_last = (last["graph"], last["operation"]) == (graph, operation)
    failed = int((table.loc[group, "problem"] != "").sum())  # one row for all states of a case
    if is_last and int(last["columns"]) in columns and not failed and int(group.sum()) < rows:
        write(table[~group], path)
        print(f"measuring {graph} with {last['columns']} columns again: it was not finished")


def report(path: Path) -> None:
    """Print the size of the CSV and its problems."""
    if not path.exists():
        return
    table = pd.read_csv(path)
    bad = table[table["problem"].notna()]
    print(f"{path}: {len(table)} rows, {table['graph'].nunique()} graphs, {len(bad)} problems")
    for (strategy, problem), rows in bad.groupby(["strategy", "problem"]):
        print(f"  {strategy}, {len(rows)} times: {problem}")


def prepare(names: Sequence[str], order: str, processes: int) -> None:
    """Generate twins and store them on disk, each in its own process."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        for done in as_completed([pool.submit(prepared, name, order) for name in names]):
            print(done.result(), flush=True)


def prepared(name: str, order: str) -> str:
    """Generate one graph, or read it if it is stored; return a line with the time."""
    start = time.perf_counter()
    graph = open_graph(name, order, cache=True)
    return f"{graph.name}: {graph.nnz:,} nonzeros, {time.perf_counter() - start:.1f} s"


if __name__ == "__main__":
    main()
