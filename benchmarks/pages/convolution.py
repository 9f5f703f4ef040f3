"""Tables of docs/convolution.md: sliding channels beside the thesis's and PyTorch's kernels."""

from __future__ import annotations

import dataclasses
import functools
import re

import pandas as pd

import accelviz
from accelviz.convolution import NETWORKS, ChannelMap
from accelviz.convolution.networks import Network
from accelviz.measure.comparison import geometric_mean
from benchmarks.pages.document import Listing, Page, Parts, Results, machine, markdown

OURS, MASKED = "strided_windows", "masked"
#: Settings of our kernels' blocks, in the order of a record's name.
WINDOWS_CUT = ("pieces", "piece", "warpgroups", "stages")
WEIGHTS_CUT = ("channels", "filter_warps", "channel_warps", "pixel_warps", "pixels", "stages")
#: Our arithmetic, and PyTorch's arithmetic of comparable accuracy.
ALIKE = {"tf32": "tf32", "3xtf32": "float32"}
PASSES = ("forward", "backward")
NAMES = {"vgg16": "VGG16", "mobilenet": "MobileNet", "tf32": "TF32", "3xtf32": "3xTF32"}
#: Block of sliding channels with two groups and half an overlap.
SLIDING = "F (DW + RPW)"
#: Tables of the thesis by network and depths (None: the original): millions of parameters and
#: MFLOPs as printed. Table 7.4 has dense layers of 4,096 in VGG16 and VGG19, and 100 classes.
PRINTED_SIZES = {
    "6.2": (
        *(("VGG16", None, 14.73, 314.67), ("VGG16", SLIDING, 0.85, 94.39)),
        *(("VGG19", None, 20.02, 399.75), ("VGG19", SLIDING, 1.16, 114.22)),
        *(("MobileNet", None, 3.19, 67.31), ("MobileNet", SLIDING, 1.63, 45.29)),
        *(("ResNet50", None, 23.52, 2036.01), ("ResNet50", SLIDING, 12.81, 1469.64)),
    ),
    "7.3": (
        *(("VGG16", None, 14.73, 310), ("VGG16", (5, 4, 2, 1, 1), 5.10, 370)),
        *(("VGG19", None, 20.04, 400), ("VGG19", (6, 4, 3, 2, 1), 8.09, 490)),
        *(("MobileNet", None, 3.22, 50), ("MobileNet", (4, 4, 2, 2, 1), 1.13, 50)),
        *(("ResNet50", None, 23.52, 1300), ("ResNet50", (5, 5, 4, 2), 17.24, 1310)),
    ),
    "7.4": (
        *(("VGG16", None, 34.02, 330), ("VGG16", (5, 4, 2, 1, 1), 24.39, 390)),
        *(("VGG19", None, 39.33, 420), ("VGG19", (6, 4, 3, 2, 1), 27.38, 500)),
        *(("MobileNet", None, 3.32, 50), ("MobileNet", (4, 4, 2, 2, 1), 1.23, 50)),
        *(("ResNet50", None, 23.71, 1310), ("ResNet50", (5, 5, 4, 2), 21.89, 1380)),
    ),
    "7.5": (
        ("VGG16 ImageNet", None, 138.36, 15500),
        ("VGG16 ImageNet", (3, 3, 3, 2, 2), 133.82, 16900),
        ("VGG19 ImageNet", None, 143.67, 19670),
        ("VGG19 ImageNet", (4, 3, 3, 3, 3), 141.34, 21060),
        ("MobileNet ImageNet", None, 4.23, 580),
        ("ResNet50 ImageNet", None, 25.56, 4120),
    ),
}
_LAYER = ["network", "batch", "cg", "co", "layer"]


def of_todays_rule(rows: pd.DataFrame) -> pd.DataFrame:
    """Drop records of our kernels with other block settings than the rule's, by layer and pass.

    If the rule's current setting was not measured, keep the rule's setting of that time.
    """
    ours, drop = rows[rows["strategy"].str.startswith(OURS)], []
    for key, cuts in ours.groupby(["layer", "pass", "batch", "cg", "co", "arithmetic"], sort=False):
        if len(cuts) == 1:
            continue
        names = OURS, todays_cut(*key)
        wanted = names[int((cuts["strategy"] == names[1]).any())]
        drop += cuts.index[cuts["strategy"] != wanted].tolist()
    rows = rows.drop(index=drop)
    return rows.assign(strategy=rows["strategy"].str.replace(f"{OURS} .*", OURS, regex=True))


@functools.cache
def todays_cut(
    layer: str, gradient: str, batch: int, groups: int, overlap: float, arithmetic: str
) -> str:
    """Return the strategy and block setting that the rule chooses, in the format of a record."""
    before, after, side = map(int, re.split("[-@]", layer))
    graph = ChannelMap(before, after, groups, overlap).graph
    operation, names = "scc_last", WINDOWS_CUT
    if gradient == "d_input":
        graph = graph.transposed().graph
    if gradient == "d_weights":
        operation, names = "scc_last_weights", WEIGHTS_CUT
    widths = {"n_cols": batch * side * side, "arithmetic": arithmetic}
    plan = accelviz.plan(graph, operation=operation, **widths)
    return OURS + "".join(f" {name}={plan.parameters[name]}" for name in names)


def times(rows: pd.DataFrame) -> pd.DataFrame:
    """Return microseconds by layer and pass, with a column per strategy and arithmetic.

    The pass "backward" has both gradients. It is their sum where they were measured separately.
    """
    rows, index = of_todays_rule(rows), [*_LAYER, "pass"]
    columns = ["strategy", "arithmetic"]
    us = rows.pivot_table(index=index, columns=columns, values="median_us", sort=False)
    us["floor", ""] = rows.groupby(index, sort=False)["floor_us"].first()
    parts = [us.xs(name, level="pass") for name in ("d_input", "d_weights")]
    summed = parts[0].add(parts[1], axis=0).dropna(axis=1, how="all")
    summed = summed.drop(columns=[("floor", ""), ("dsxplore", "float32")])
    both = us.xs("backward", level="pass").dropna(axis=1, how="all").join(summed)
    return pd.concat({"forward": us.xs("forward", level="pass"), "backward": both}, names=["pass"])


def over_chapter(us: pd.DataFrame, arithmetic: str) -> pd.Series:
    """Return the time of the chapter's fastest kernel over ours."""
    chapter = us[[("dsxplore", "float32"), ("dsxplore_var", "float32")]].min(axis=1)
    return chapter / us[OURS, arithmetic]


def over_masked(us: pd.DataFrame, arithmetic: str) -> pd.Series:
    """Return the time of the masked dense product of comparable accuracy over ours."""
    return us[MASKED, ALIKE[arithmetic]] / us[OURS, arithmetic]


def layers(us: pd.DataFrame) -> Parts:
    """Return the file with the times of all layers."""
    listed = us.copy()
    listed.columns = pd.Index([" ".join(filter(None, names)) for names in us.columns])
    title = "Microseconds of every layer, setting and kernel, forward and backward"
    return [Listing(listed.reset_index(), "convolution", title)]


def described(number: str, name: str, variant: str | tuple[int, ...] | None) -> Network:
    """Return a network of a table of the thesis, with its block or depths."""
    network = NETWORKS[name]
    if number == "7.4":
        hidden = (4096, 4096) if name.startswith("VGG") else ()
        network = dataclasses.replace(network, classes=100, hidden=hidden)
    if variant is None:
        return network
    return network.with_block(variant) if isinstance(variant, str) else network.with_depths(variant)


def sizes(_: Results) -> Parts:
    """Return the file with parameters and MFLOPs of the thesis's networks, printed and here."""
    lines = []
    for number, rows in PRINTED_SIZES.items():
        for name, variant, parameters, flops in rows:
            network = described(number, name, variant)
            kind = " ".join(map(str, variant)) if isinstance(variant, tuple) else ""
            kind = "DW + SCC, cg 2" if variant == SLIDING else kind
            line = {"table": number, "network": name, "variant": kind}
            line |= {"parameters_printed": parameters * 1e6, "parameters": network.parameters}
            line |= {"of_convolutions": network.convolution_weights}
            lines.append(line | {"mflops_printed": flops, "mflops": network.flops / 1e6})
    table = pd.DataFrame(lines)
    table = table.assign(
        **{
            name: (table[name] / 1e6).map("{:.3f}".format)
            for name in ("parameters_printed", "parameters", "of_convolutions")
        }
    )  # millions
    return [Listing(table, "network-sizes", "Million parameters and MFLOPs, printed and here")]


def settings(us: pd.DataFrame) -> Parts:
    """Return the file with our mean speedups over others by setting."""
    lines = []
    for (batch, groups, overlap), rows in us.groupby(["batch", "cg", "co"], sort=False):
        cells: list[float] = []
        for direction in PASSES:
            part = rows.xs(direction, level="pass")
            for arithmetic in ALIKE:
                cells.append(geometric_mean(over_masked(part, arithmetic)))
                cells.append(geometric_mean(over_chapter(part, arithmetic)))
        count = len(rows.xs("forward", level="pass"))
        lines.append((batch, groups, overlap, count, *cells))
    head = ["batch", "cg", "co", "layers"]
    for direction in PASSES:
        for arithmetic in ALIKE:
            name = f"{direction}, {NAMES[arithmetic]}"
            head += [f"{name} over masked", f"{name} over the chapter's"]
    listed = pd.DataFrame(lines, columns=head)
    return [Listing(listed, "convolution-settings", "Means of the layers of each setting")]


#: Kinds of sliding channels in a network, in the order of their table.
KINDS = ("pointwise", "masked", "sliding", "tf32", "convolution_stack", "channel_stack")


def network_steps(results: Results) -> str:
    """Return ms and MiB of training steps of networks, with cg of 2 and half an overlap."""
    rows = results["sliding-training-h200"]
    rows = rows[rows["cg"].isna() | ((rows["cg"] == 2) & (rows["co"] == 50))]
    cells = rows["median_ms"].map("{:.1f}, ".format) + rows["peak_mib"].map("{:,.0f}".format)
    rows = rows.assign(cell=cells)
    larger = rows["pixels"].map(lambda pixels: "" if pixels == 32 else f", {pixels} x {pixels}")
    rows = rows.assign(network=rows["network"] + larger)
    table = rows.pivot_table(index="network", columns="kind", values="cell", aggfunc="first")
    lines = [(name, *table.loc[name, list(KINDS)]) for name in rows["network"].unique()]
    return markdown(["network", *(kind.replace("_", " ") for kind in KINDS)], lines)


def verdict(us: pd.DataFrame) -> str:
    """Return on how many layers ours is no slower than the masked dense product."""
    lines = []
    for direction in PASSES:
        rows = us.xs(direction, level="pass")
        for arithmetic in ALIKE:
            masked = over_masked(rows, arithmetic)
            lines.append(
                f"- **{direction}, {NAMES[arithmetic]}**: no slower than masked on "
                f"{int((masked >= 1).sum())} of {masked.size} layers (least {masked.min():.2f}). "
                "The mean over the chapter's faster kernel is "
                f"{geometric_mean(over_chapter(rows, arithmetic)):.1f}."
            )
    return "\n".join(lines)


def errors(results: Results) -> str:
    """Return a sentence with the machine and the largest errors over their bounds."""
    rows = results["convolution-h200"]
    worst = rows.groupby("arithmetic")["error"].max()
    return (
        f"{machine(rows)} Largest errors over their bounds: {worst['float32']:.2f} in float32, "
        f"{worst['3xtf32']:.2f} of the same bound in 3xTF32, {worst['tf32']:.2f} of its own in "
        "TF32."
    )


PAGES = [
    Page(
        "convolution.md",
        {
            "machine": errors,
            "network-sizes": sizes,
            "network-steps": network_steps,
            "layers": lambda results: layers(times(results["convolution-h200"])),
            "settings": lambda results: settings(times(results["convolution-h200"])),
            "verdict": lambda results: verdict(times(results["convolution-h200"])),
        },
    )
]
