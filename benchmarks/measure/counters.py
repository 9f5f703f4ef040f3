"""Hardware counters of single launches by Nsight Compute, to explain differences in speed.

    python benchmarks/measure/counters.py profile --output counters.csv
    python benchmarks/measure/counters.py profile --cases ours --graphs mit8 --columns 16 48

`profile` runs this script again under `ncu`, with the command `launch`, which launches each plan
once. Needs a GPU and `ncu`. Times under a profiler are not comparable with the other results.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator
from typing import Any

import nsight
from study import full_machine, open_graph, parser, record

import accelviz
from accelviz.graph import Graph
from accelviz.measure.records import parameters_text
from accelviz.ordering import vertex_order
from accelviz.plans import Plan

#: Columns of the table, with the names of Nsight Compute's counters.
METRICS = {
    "instructions": "smsp__inst_executed.sum",
    "issue_active_pct": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "warps_active_pct": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "l1_hit_pct": "l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct",
    "l1_load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1_load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l2_hit_pct": "lts__t_sector_hit_rate.pct",
    "l2_read_sectors": "lts__t_sectors_op_read.sum",
    "l2_write_sectors": "lts__t_sectors_op_write.sum",
    "l2_reduction_sectors": "lts__t_sectors_op_red.sum",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "registers": "launch__registers_per_thread",
    "l1_pct": "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "l2_pct": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "dram_pct": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "stalled_on_memory_pct": (
        "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.pct"
    ),
    "elapsed_cycles": "sm__cycles_elapsed.max",
    "active_cycles": "sm__cycles_active.avg",
}
#: Groups of cases, each a strategy with its parameters.
CASES: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    # Accel-GCN with and without each of its ideas, and the systems that it is compared with.
    "published": (
        ("accel_gcn", {}),
        ("accel_gcn", {"combined_warp": False}),
        ("accel_gcn", {"partition": "warp"}),
        ("accel_gcn", {"partition": "warp", "combined_warp": False}),
        ("gnnadvisor", {}),
        ("graphblast", {}),
        ("ge_spmm", {}),
        ("merge_path", {}),
    ),
    # Our strategy and the most similar ones.
    "ours": (("lane_groups", {}), ("accel_gcn", {}), ("ge_spmm", {})),
    # GNNAdvisor with sums in shared memory, without them, and a thread for each product
    # (Figure 3.12d); beside them cuSPARSE's stand-in for Table 5.1's profile.
    "gnnadvisor": (
        ("gnnadvisor", {}),
        ("gnnadvisor", {"block_warps": 1}),
        ("gnnadvisor", {"ngs": None}),
        ("fusegnn_gas", {}),
        ("tc_gnn", {}),
    ),
    # Dot products of edges.
    "sddmm": (("lane_groups", {}), ("row_warp", {})),
}


def main() -> None:
    graphs = ["collab-twin", "ppa-twin"]
    options = parser(__doc__, graphs=graphs, columns=[32, 64, 128], output=False)
    options.add_argument("command", choices=["profile", "launch"], help="launch is for ncu only")
    options.add_argument("--cases", choices=list(CASES), default="published")
    options.add_argument("--orders", nargs="+", default=["natural", "shuffled"])
    options.add_argument(
        "--warm", action="store_true", help="do not flush the caches before a launch"
    )
    options.add_argument("--output", help="CSV to write")
    chosen = options.parse_args()
    if chosen.command == "launch":
        nsight.launch(plans(chosen))
    else:
        profile(chosen)


def plans(options: argparse.Namespace) -> Iterator[Plan]:
    """Yield the plans to measure; both processes have them in this order."""
    for name in options.graphs:
        for order in options.orders:
            graph = in_order(name, order)
            operation = "sddmm" if options.cases == "sddmm" else "spmm"
            for n_cols in options.columns:
                for strategy, parameters in CASES[options.cases]:
                    yield accelviz.plan(graph, strategy, n_cols, operation=operation, **parameters)


def in_order(name: str, order: str) -> Graph:
    """Return a graph in an order: natural, shuffled, or shuffled and then in Rabbit order."""
    graph = open_graph(name, "shuffled" if order == "rabbit" else order, cache=True)
    if order != "rabbit":
        return graph
    renumbered = vertex_order(graph, order).apply_to_graph(graph, columns=True)
    return dataclasses.replace(renumbered, name=f"{graph.name}-{order}")


def profile(options: argparse.Namespace) -> None:
    profiled = list(plans(options))
    script = [__file__, "launch", "--cases", options.cases]
    script += ["--graphs", *options.graphs, "--orders", *options.orders]
    script += ["--columns", *map(str, options.columns)]
    launches = nsight.profile(script, profiled, METRICS.values(), warm=options.warm)
    rows = [
        {
            "graph": plan.pattern.name,
            "operation": plan.operation.name,
            "strategy": plan.name,
            "parameters": parameters_text(plan.parameters),
            "columns": plan.n_cols,
            **{name: counters.get(metric) for name, metric in METRICS.items()},
        }
        for plan, counters in zip(profiled, launches, strict=True)
    ]
    record(rows, options.output, {**full_machine(), "state": "warm" if options.warm else "cold"})


if __name__ == "__main__":
    main()
