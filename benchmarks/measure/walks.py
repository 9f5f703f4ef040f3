"""Time attention, maxima, their gradients and SDDMM over settings on one GPU.

    python benchmarks/measure/walks.py --output walks.csv
    python benchmarks/measure/walks.py --graphs yelp --operations gat --settings rule

A graph is the name of a twin, with " shuffled" for that order, or "rmat" for an R-MAT graph of 19 M
nonzeros. Each case is timed with the settings of the rule and with others, warm, by CUDA events.
`difference` is the largest difference from the rule's result, over that result's largest entry.
The sum of SpMM is timed beside the maxima.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import cupy
import numpy as np
from study import Row, full_machine, open_graph, parser, record

import accelviz
from accelviz.datasets import rmat
from accelviz.devices import find_device
from accelviz.devices.cuda.cubins import warm
from accelviz.graph import Graph
from accelviz.plans import Call, Operation, Plan
from accelviz.strategies import OPERATIONS, find_strategy

GRAPHS = (*("collab", "collab shuffled", "yelp", "yelp shuffled"), *("ppa", "ppa shuffled", "rmat"))
#: (heads, columns of a head) of attention, and columns of the other operations.
HEADS = ((1, 8), (8, 8), (8, 32), (8, 64), (1, 128), (1, 256))
COLUMNS = (16, 32, 64, 128, 256)
OPERATIONS_TIMED = ("spmm", "spmm_max", "sddmm", "gat", "gatv2")
GRADIENTS = {"spmm": None, "sddmm": None, "spmm_max": "spmm_extremum_gradient"}
#: Values that are tried one at a time, if they are possible and differ from the rule's.
TRIED: dict[str, tuple[int, ...]] = {
    "heads_together": (1, 2, 4, 8),
    "at_once": (2, 4),
    "blocks_per_sm": (4, 6, 8),
    "group_nzs": (64,),
    "column_tile": (32, 64, 128),
}
#: Other settings than `heads_together` and `column_tile` are tried for these widths only.
TRIED_WIDTHS = ({"n_cols": 128}, {"n_cols": 64, "heads": 8})


def main() -> None:
    options = parser(__doc__, graphs=GRAPHS, repeats=7)
    options.add_argument("--operations", nargs="+", default=OPERATIONS_TIMED)
    options.add_argument("--settings", choices=("rule", "all"), default="all")
    chosen = options.parse_args()
    cases = [*timed_cases(chosen)]
    small = accelviz.load_graph("cora")
    plans = (
        planned(small, name, widths, tried)
        for name, widths in cases
        for tried in settings_of(name, widths, chosen)
    )
    calls = (call for plan in plans if plan for _, call in plan.part_calls)
    warm((call.kernel for call in calls if isinstance(call, Call) and call.kernel), "sm_90")
    rows = (row for name in chosen.graphs for row in measured(name, cases, chosen))
    record(rows, chosen.output, full_machine())


def timed_cases(options: argparse.Namespace) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield operations and widths; a gradient follows the operation whose outputs it takes."""
    for name in options.operations:
        is_attention = name != "sddmm" and "heads" in OPERATIONS[name].widths
        for widths in (
            [{"heads": heads, "n_cols": n_cols} for heads, n_cols in HEADS]
            if is_attention
            else [{"n_cols": n_cols} for n_cols in COLUMNS]
        ):
            yield name, widths
            gradient = GRADIENTS.get(name, f"{name}_gradient")
            if gradient:
                yield gradient, widths


def settings_of(name: str, widths: dict[str, int], options: Any) -> Iterator[dict[str, int]]:
    """Yield the settings to try, those of the rule first."""
    yield {}
    if name == "spmm" or options.settings == "rule":
        return
    known = find_strategy("lane_groups", name).parameters
    for setting, values in TRIED.items():
        is_tile = setting in ("heads_together", "column_tile")
        if setting in known and (is_tile or widths in TRIED_WIDTHS):
            yield from ({setting: value} for value in values)


def planned(graph: Graph, name: str, widths: dict[str, int], tried: dict[str, int]) -> Plan | None:
    """Return the plan; None if the settings are those of the rule after all, or impossible."""
    strategy = find_strategy("lane_groups", name)
    by_rule = strategy.plan(graph, **widths)
    if not tried:
        return by_rule
    plan = strategy.plan(graph, **widths, **tried)
    constants, constants_by_rule = (
        {**one.parameters, **one.part_calls[-1][1].kernel.config} for one in (plan, by_rule)
    )
    is_rule = all(constants[key] == constants_by_rule[key] for key in tried)
    is_possible = all(constants[key] == value for key, value in tried.items())
    return plan if is_possible and not is_rule else None


def opened(name: str) -> Graph:
    """Return a graph of `GRAPHS`."""
    if name == "rmat":
        return rmat(20_000_000, n_nodes=1 << 20)
    return open_graph(name.split()[0], "shuffled" if "shuffled" in name else "natural")


def measured(name: str, cases: Any, options: argparse.Namespace) -> Iterator[Row]:
    """Time all cases of a graph."""
    graph = opened(name)
    operands: dict[str, Any] = {}
    plans = [
        [
            (tried, planned(graph, operation, widths, tried))
            for tried in settings_of(operation, widths, options)
        ]
        for operation, widths in cases
    ]
    device = find_device("cuda")
    for (operation, widths), plans_of_case in zip(cases, plans, strict=True):
        # The gradient takes the operands and outputs of the case before.
        saved_operands = operands if "gradient" in operation else {}
        operands = random_operands(OPERATIONS[operation], graph, widths, saved_operands)
        expected: dict[str, Any] = {}
        for tried, plan in plans_of_case:
            if plan is None:
                continue
            ready = device.prepare(plan)
            outputs = ready.run(operands)
            expected = expected or outputs
            seconds = np.median(ready.seconds(operands, options.repeats, 2))
            yield {
                "graph": name,
                "operation": operation,
                "heads": widths.get("heads", 1),
                "columns": widths["n_cols"],
                "tried": " ".join(f"{key}={value}" for key, value in tried.items()),
                "us": round(1e6 * float(seconds), 1),
                "difference": f"{largest_difference(outputs, expected):.1e}",
                **{key: plan.parameters.get(key) for key in TRIED},
            }
        if "gradient" not in operation:
            operands = {**operands, **expected}
        cupy.get_default_memory_pool().free_all_blocks()


def random_operands(operation: Operation, graph: Graph, widths: Any, saved: Any) -> dict[str, Any]:
    """Return normal random inputs on the GPU, but those of `saved`."""
    sizes = operation.sizes(graph.pattern, {"heads": 1, **widths})
    generator = cupy.random.default_rng(0)
    return {
        operand.name: saved[operand.name]
        if operand.name in saved
        else generator.standard_normal(operand.shape(sizes), dtype=np.float32)
        for operand in operation.dense
    }


def largest_difference(outputs: Any, expected: Any) -> float:
    """Return the largest difference over the largest entry, over all outputs."""
    return max(
        float(abs(outputs[name] - expected[name]).max() / abs(expected[name]).max())
        for name in expected
    )


if __name__ == "__main__":
    main()
