"""The demo: Accel-GCN's preprocessing at work on one graph, checked, timed and drawn."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from accelviz import measure
from accelviz.datasets import load_graph
from accelviz.devices import DEVICES, gpu_state
from accelviz.errors import ArgumentError
from accelviz.files import is_checkout, written_whole
from accelviz.graph import Graph
from accelviz.measure.accuracy import Oracle
from accelviz.measure.prediction import waiting_beside_time
from accelviz.measure.records import Measurement, parameters_text
from accelviz.plans import Plan
from accelviz.strategies import plan

PICTURE_FORMATS = (".png", ".svg", ".pdf")
#: Ways to do the same product: what the picture calls them, a strategy and its parameters.
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
    """What the demo found, ready to be printed and drawn."""

    plan: Plan
    warp_level: Plan
    measurements: list[Measurement]
    schemes: pd.DataFrame


def run(graph: Graph, n_cols: int, **parameters: Any) -> Demo:
    """Plan, check and time `graph` with a progress bar.

    Parameters
    ----------
    graph : Graph
    n_cols : int
        Columns of the random features.
    **parameters
        Those of the strategy `accel_gcn`.
    """
    timed = [executor for executor in DEVICES if executor.timed]
    steps = tqdm(
        total=4 + len(timed),
        initial=-1,  # a step counts when the next one begins
        bar_format="{desc:<44}{bar:24} {n_fmt}/{total_fmt} {elapsed}",
        leave=False,
        disable=None,  # silent where there is no terminal
    )

    def begin(step: str) -> None:
        steps.update()
        steps.set_description_str(step)

    with steps:
        begin("compiling the preprocessing (the first time)")
        plan("cora", n_cols=n_cols, **parameters)
        begin("degree sort, block partition, row order")
        planned = plan(graph, n_cols=n_cols, **parameters)
        planned.check()
        begin("warp-level partition, to compare with")
        warp_level = plan(graph, n_cols=n_cols, **{**parameters, "partition": "warp"})
        begin("A @ X in float64, to check against")
        X = measure.features(graph.shape[1], n_cols)
        oracle = Oracle(graph, X)
        measurements = []
        for executor in timed:
            begin(f"checking and timing on {executor.name}")
            if executor.unavailable_reason() is None:
                measurements.append(measure.measure(planned, executor, oracle, X))
    setting = " " + parameters_text(parameters)
    cases = [case + setting * case.startswith(planned.name) for case in SCHEMES.values()]
    schemes = waiting_beside_time(graph, n_cols, *cases)
    schemes = schemes.set_axis(["waiting", "microseconds"], axis=1).set_axis([*SCHEMES])
    schemes["strategy"] = [case.split()[0] for case in cases]
    return Demo(planned, warp_level, measurements, schemes)


def table(demo: Demo) -> str:
    """Lay out the demo's figures as text, each on a line of its own."""
    plan, graph, counted = demo.plan, demo.plan.pattern, demo.plan.statistics
    of_warps = demo.warp_level.statistics.idle_share
    warp_bytes = demo.warp_level.metadata_bytes
    ratio = plan.metadata_bytes / max(1, warp_bytes)
    setup = sum(plan.setup_seconds.values())
    degree = f"{graph.nnz / max(1, graph.n_rows):.1f} on average"
    blocks = f"{counted.blocks:,} of {plan.workers_per_block} warps"
    idle = f"{counted.idle_share:.1%} of warp time, against {of_warps:.1%}"
    size = f"{plan.metadata_bytes:,} bytes, {ratio:.1%} of the warp-level partition's"
    lines = [
        ("graph", f"{graph.name}: {graph.n_rows:,} rows, {graph.nnz:,} nonzeros"),
        ("degrees", f"{degree}, {graph.degrees.max(initial=0):,} at most"),
        ("blocks", f"{blocks}, at most {plan.parameters['max_warp_nzs']} nonzeros a warp"),
        ("warps", f"{counted.warps:,} launched, {counted.busy_warps:,} with work"),
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
        why = f"no usable GPU ({gpu_state().state}): see `accelviz doctor`"
        lines.append(("on cuda", f"not timed, {why}"))
    recorded = demo.schemes["microseconds"].dropna()
    times_text = [f"{name} {time:,.1f}" for name, time in recorded.items()]
    lines += [("recorded", f"us, {where(demo)}:")] if times_text else []
    lines += [("", "; ".join(times_text[i : i + 4])) for i in range(0, len(times_text), 4)]
    width = max(len(label) for label, _ in lines)
    return "\n".join(f"  {label:<{width}}  {text}" for label, text in lines)


def checked_output(path: str | os.PathLike[str]) -> Path:
    """Return the picture's path if it can be written; checked before any work is done.

    Raises
    ------
    ArgumentError
        If its ending is not that of a picture, or its folder does not exist.
    """
    target = Path(path)
    if target.suffix.lower() not in PICTURE_FORMATS:
        expected = "a name ending in " + ", ".join(PICTURE_FORMATS)
        raise ArgumentError("output", f"got {str(path)!r}", expected)
    if not target.absolute().parent.is_dir():
        raise ArgumentError("output", f"no folder {target.parent}", "an existing folder")
    return target


def draw(demo: Demo, path: str | os.PathLike[str]) -> None:
    """Draw degrees, example blocks and the load of every warp into one picture.

    Raises
    ------
    ArgumentError
        If the ending is not that of a picture, or the folder does not exist.
    """
    from accelviz import plots  # drawing is the slowest thing to import

    target = checked_output(path)
    figure = plots.overview(demo.plan, demo.warp_level, demo.schemes, timed_on=where(demo))
    with written_whole(target) as temporary:
        figure.savefig(temporary)


def where(demo: Demo) -> str:
    """Say where the times of the schemes were recorded, or that there are none."""
    if not demo.schemes.attrs["date"]:
        return f"no GPU's times of {demo.plan.pattern.name} were recorded with these columns"
    hardware, date = (demo.schemes.attrs[name] for name in ("hardware", "date"))
    return f"the same product on one {hardware}, recorded on {date}"


def main(graph: str, n_cols: int, output: str, **parameters: Any) -> str:
    """Run the whole demo and return what to print; the picture is written to `output`."""
    checked_output(output)
    demo = run(load_graph(graph), n_cols, **parameters)
    draw(demo, output)
    lab = "make" if is_checkout() else "accelviz"
    return f"""Accel-GCN's preprocessing and SpMM
{table(demo)}

The picture is in {output}.
Next: `{lab} lab` opens the lessons, and 01-from-graph-to-blocks explains this; or try another
graph (`accelviz demo --graph mit8`) and other blocks (`--max-block-warps 4`)."""
