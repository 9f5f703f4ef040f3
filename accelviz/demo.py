"""The command `accelviz demo`: plan, check, time and draw Accel-GCN's SpMM on one graph."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from accelviz import measure
from accelviz.datasets import load_graph
from accelviz.devices import DEVICES, gpu_state
from accelviz.errors import AccelvizError, ArgumentError, accelviz_command
from accelviz.files import is_checkout, written_whole
from accelviz.graph import Graph
from accelviz.measure.accuracy import Oracle
from accelviz.measure.checks import check_operands_fit
from accelviz.measure.prediction import waiting_beside_time
from accelviz.measure.records import Measurement, parameters_text
from accelviz.plans import Plan
from accelviz.strategies import plan

PICTURE_FORMATS = (".png", ".svg", ".pdf")
#: Compared strategies: display name to case, which is a strategy with parameters.
SCHEMES = {
    "a thread a row": "row_thread",
    "a warp a row": "graphblast",
    "equal shares, merge-path": "merge_path",
    "cuSPARSE": "cusparse",
    "warp-level partition": "accel_gcn partition=warp",
    "Accel-GCN": "accel_gcn",
    "lane_groups, our own": "lane_groups",
}


@dataclass(frozen=True, eq=False)
class Demo:
    """Results of the demo: plans, measurements, and the table of compared strategies."""

    plan: Plan
    warp_level: Plan
    measurements: list[Measurement]
    schemes: pd.DataFrame


def run(graph: Graph, n_cols: int, **parameters: Any) -> Demo:
    """Plan, check and time an SpMM with `graph`, with a progress bar.

    Parameters
    ----------
    graph : Graph
    n_cols : int
        Number of columns of the random features.
    **parameters
        Parameters of the strategy `accel_gcn`.
    """
    timed = [executor for executor in DEVICES if executor.timed]
    steps = tqdm(
        total=4 + len(timed),
        initial=-1,  # a step is complete when the next one begins
        bar_format="{desc:<44}{bar:24} {n_fmt}/{total_fmt} {elapsed}",
        leave=False,
        disable=None,  # no bar without a terminal
    )

    def begin(step: str) -> None:
        steps.update()
        steps.set_description_str(step)

    with steps:
        begin("compiling the preprocessing (the first time)")
        plan("cora", "accel_gcn", n_cols=n_cols, **parameters)
        begin("degree sort, block partition, row order")
        planned = plan(graph, "accel_gcn", n_cols=n_cols, **parameters)
        planned.check()
        begin("warp-level partition, to compare with")
        warp_level = plan(graph, "accel_gcn", n_cols=n_cols, **{**parameters, "partition": "warp"})
        begin("A @ X in float64, to check against")
        check_operands_fit(planned.operation, planned.pattern, planned.widths)
        X = measure.features(graph.shape[1], n_cols)
        oracle = Oracle(graph, X)
        measurements = []
        for executor in timed:
            begin(f"checking and timing on {executor.name}")
            if executor.unavailable_reason() is None:
                measurements.append(measure.measure(planned, executor, oracle, X))
    suffix = " " + parameters_text(parameters)
    cases = [case + suffix * case.startswith(planned.name) for case in SCHEMES.values()]
    schemes = waiting_beside_time(graph, n_cols, *cases)
    schemes = schemes.set_axis(["waiting", "microseconds"], axis=1).set_axis([*SCHEMES])
    schemes["strategy"] = [case.split()[0] for case in cases]
    return Demo(planned, warp_level, measurements, schemes)


def table(demo: Demo) -> str:
    """Return the results of the demo as lines of text with labels."""
    plan, graph, statistics = demo.plan, demo.plan.pattern, demo.plan.statistics
    warp_level_share = demo.warp_level.statistics.idle_share
    warp_bytes = demo.warp_level.metadata_bytes
    ratio = plan.metadata_bytes / max(1, warp_bytes)
    setup = sum(plan.setup_seconds.values())
    degree = f"{graph.nnz / max(1, graph.n_rows):.1f} on average"
    blocks = f"{statistics.blocks:,} of {plan.workers_per_block} warps"
    idle = f"{statistics.idle_share:.1%} of warp time, against {warp_level_share:.1%}"
    size = f"{plan.metadata_bytes:,} bytes, {ratio:.1%} of the warp-level partition's"
    lines = [
        ("graph", f"{graph.name}: {graph.n_rows:,} rows, {graph.nnz:,} nonzeros"),
        ("degrees", f"{degree}, {graph.degrees.max(initial=0):,} at most"),
        ("blocks", f"{blocks}, at most {plan.parameters['max_warp_nzs']} nonzeros a {plan.worker}"),
        ("warps", f"{statistics.warps:,} launched, {statistics.busy_warps:,} with work"),
        ("idle share", f"{idle} for the warp-level partition"),
        ("metadata", f"{size} {warp_bytes:,} (Equation 1)"),
        ("set-up", f"{setup * 1e3:.2f} ms for " + ", ".join(plan.setup_seconds)),
    ]
    for measurement in demo.measurements:
        low, high = (seconds * 1e6 for seconds in measurement.quartiles)
        time = f"{measurement.median * 1e6:,.1f} us for {plan.n_cols} columns, median of"
        time += f" {measurement.seconds.size} (quartiles {low:,.1f} to {high:,.1f})"
        error = f"error at most {measurement.error:.2f} of the float32 bound against float64"
        lines += [(f"on {measurement.device}", time), ("", f"correct: {error}")]
    if not any(measurement.device == "cuda" for measurement in demo.measurements):
        reason = f"no usable GPU ({gpu_state().state}): see `{accelviz_command()} doctor`"
        lines.append(("on cuda", f"not timed, {reason}"))
    recorded = demo.schemes["microseconds"].dropna()
    times_text = [f"{name} {time:,.1f}" for name, time in recorded.items()]
    lines += [("recorded", f"us, {times_origin(demo)}:")] if times_text else []
    lines += [("", "; ".join(times_text[i : i + 4])) for i in range(0, len(times_text), 4)]
    width = max(len(label) for label, _ in lines)
    return "\n".join(f"  {label:<{width}}  {text}" for label, text in lines)


def checked_output(path: str | os.PathLike[str]) -> Path:
    """Return the path of the picture after checking its suffix and folder.

    Raises
    ------
    ArgumentError
        If the suffix is not in `PICTURE_FORMATS`, or no file can be written there.
    """
    target = Path(path)
    if target.suffix.lower() not in PICTURE_FORMATS:
        expected = "a name ending in " + ", ".join(PICTURE_FORMATS)
        raise ArgumentError("output", f"got {str(path)!r}", expected)
    if not target.absolute().parent.is_dir():
        raise ArgumentError("output", f"no folder {target.parent}", "an existing folder")
    if target.is_dir() or not os.access(target.absolute().parent, os.W_OK):
        problem = f"{target} is a folder" if target.is_dir() else f"{target} cannot be written"
        raise ArgumentError("output", problem, "a file in a folder that can be written to")
    return target


def draw(demo: Demo, path: str | os.PathLike[str]) -> None:
    """Save the overview of the demo's plan as a picture.

    Raises
    ------
    ArgumentError
        If the suffix is not in `PICTURE_FORMATS`, or the folder does not exist.
    """
    from accelviz import plots  # imported late, because matplotlib is slow to import

    figure = plots.overview(demo.plan, demo.warp_level, demo.schemes, timed_on=times_origin(demo))
    with written_whole(checked_output(path)) as temporary:
        figure.savefig(temporary)


def times_origin(demo: Demo) -> str:
    """Return where and when the times of the compared strategies were recorded, as text."""
    if not demo.schemes.attrs["date"]:
        return f"no GPU's times of {demo.plan.pattern.name} were recorded with these columns"
    hardware, date = (demo.schemes.attrs[name] for name in ("hardware", "date"))
    return f"the same product on one {hardware}, recorded on {date}"


def main(
    graph: str, n_cols: int, output: str, options: Mapping[str, Any], **parameters: Any
) -> str:
    """Run the demo, save its picture at `output`, and return the text to print.

    `options` are those of `load_graph`.
    """
    checked_output(output)
    try:
        loaded = load_graph(graph, **options)
    except AccelvizError as error:
        expected = f"{error.expected}; options are given as --option NAME=VALUE"
        raise type(error)(error.argument, error.problem, expected) from error
    demo = run(loaded, n_cols, **parameters)
    draw(demo, output)
    command = accelviz_command()
    lab = "make" if is_checkout() else command
    return f"""Accel-GCN's preprocessing and SpMM
{table(demo)}

The picture is in {output}.
Next: `{lab} lab` opens the lessons, and 01-from-graph-to-blocks explains this; or try another
graph (`{command} demo --graph mit8`) and other blocks (`--max-block-warps 4`)."""
