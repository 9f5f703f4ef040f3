"""Renew the marked sections of docs/convolution.md from benchmarks/results/convolution-h200.csv.

python benchmarks/pages/convolution.py
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pandas as pd
from graphs import renewed
from paper import ROOT, markdown

import accelviz
from accelviz.convolution import ChannelMap
from accelviz.measure.comparison import geometric_mean
from accelviz.measure.records import recorded

PAGE = ROOT / "docs" / "convolution.md"
OWN, MASKED = "strided_windows", "masked"
#: Parameters of our kernels' cuts, in the order in which a record names them.
WINDOWS_CUT = ("pieces", "piece", "warpgroups", "stages")
WEIGHTS_CUT = ("channels", "filter_warps", "channel_warps", "pixel_warps", "pixels", "stages")
#: The setting of the large tables: batch, cg, co.
SETTING = (256, 2, 0.5)
#: What was aimed at: over the chapter's kernels, and the most over the time of a copy.
CHAPTER_TARGET, FLOOR_TARGET = 5.0, 1.15
#: Our arithmetic, and that of PyTorch which is as exact, or rounds as much.
ALIKE = {"tf32": "tf32", "3xtf32": "float32"}
_LAYER = ["network", "batch", "cg", "co", "layer"]


def of_todays_rule(table: pd.DataFrame) -> pd.DataFrame:
    """Keep of our kernels' rows, for each layer and pass, those of the cut that the rule chooses.

    Where that was not measured, it is the cut that the rule chose when it was.
    """
    ours, drop = table[table["strategy"].str.startswith(OWN)], []
    for key, rows in ours.groupby(["layer", "pass", "batch", "cg", "co", "arithmetic"], sort=False):
        if len(rows) == 1:
            continue
        names = OWN, todays_cut(*key)
        wanted = names[int((rows["strategy"] == names[1]).any())]
        drop += rows.index[rows["strategy"] != wanted].tolist()
    kept = table.drop(index=drop)
    return kept.assign(strategy=kept["strategy"].str.replace(f"{OWN} .*", OWN, regex=True))


@functools.cache
def todays_cut(
    layer: str, what: str, batch: int, groups: int, overlap: float, arithmetic: str
) -> str:
    """Name the cut that the rule chooses, as a record does."""
    before, after, side = map(int, re.split("[-@]", layer))
    graph = ChannelMap(before, after, groups, overlap).graph
    operation, names = "scc_last", WINDOWS_CUT
    if what == "d_input":
        graph = graph.transposed().graph
    if what == "d_weights":
        operation, names = "scc_last_weights", WEIGHTS_CUT
    widths = {"n_cols": batch * side * side, "arithmetic": arithmetic}
    plan = accelviz.plan(graph, operation=operation, **widths)
    return OWN + "".join(f" {name}={plan.parameters[name]}" for name in names)


def times(table: pd.DataFrame) -> pd.DataFrame:
    """Return microseconds by layer and pass, a column for each strategy and arithmetic.

    Both gradients together are "backward"; where only kernels of one gradient each were measured,
    it is their sum.
    """
    table, index = of_todays_rule(table), [*_LAYER, "pass"]
    found = table.pivot_table(
        index=index, columns=["strategy", "arithmetic"], values="median_us", sort=False
    )
    found["floor", ""] = table.groupby(index, sort=False)["floor_us"].first()
    parts = [found.xs(name, level="pass") for name in ("d_input", "d_weights")]
    summed = parts[0].add(parts[1], axis=0).dropna(axis=1, how="all")
    summed = summed.drop(columns=[("floor", ""), ("dsxplore", "float32")])
    both = found.xs("backward", level="pass").dropna(axis=1, how="all").join(summed)
    return pd.concat(
        {"forward": found.xs("forward", level="pass"), "backward": both}, names=["pass"]
    )


def chapter(found: pd.DataFrame) -> pd.Series:
    """Return the time of the fastest of the chapter's own kernels."""
    return found[[("dsxplore", "float32"), ("dsxplore_var", "float32")]].min(axis=1)


def layers(found: pd.DataFrame, columns: dict[str, tuple[str, str]]) -> str:
    """Write the layers of the setting of the large tables."""
    batch, groups, overlap = SETTING
    own = found.xs((batch, groups, overlap), level=("batch", "cg", "co"))
    lines = [
        (
            f"{ {'vgg16': 'VGG16', 'mobilenet': 'MobileNet'}[network] } {layer}",
            *(_time(row.get(key)) for key in columns.values()),
        )
        for (network, layer), row in own.iterrows()
    ]
    return markdown(("layer", *columns), lines)


def _time(value: float | None) -> str:
    if value is None or pd.isna(value):
        return "–"
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}"


BOTH = {
    "copy": ("floor", ""),
    "ours, TF32": (OWN, "tf32"),
    "masked": (MASKED, "tf32"),
    "`pw`": ("pw", "tf32"),
    "`gpw`": ("gpw", "tf32"),
    "ours, 3xTF32": (OWN, "3xtf32"),
    "masked, float32": (MASKED, "float32"),
}
FORWARD = BOTH | {
    "`pw`, float32": ("pw", "float32"),
    "`gpw`, float32": ("gpw", "float32"),
    "`dsxplore`": ("dsxplore", "float32"),
    "`convolution_stack`": ("convolution_stack", "float32"),
    "`channel_stack`": ("channel_stack cyclic=0", "float32"),
}
BACKWARD = BOTH | {
    "`dsxplore`": ("dsxplore", "float32"),
    "`dsxplore_var`": ("dsxplore_var", "float32"),
}


def settings(found: pd.DataFrame) -> str:
    """Write how many times as fast as others ours is: geometric means by setting."""
    lines = []
    for (batch, groups, overlap), rows in found.groupby(["batch", "cg", "co"], sort=False):
        cells: list[str] = []
        for what in ("forward", "backward"):
            own = rows.xs(what, level="pass")
            for ours, theirs in ALIKE.items():
                cells.append(f"{geometric_mean(own[MASKED, theirs] / own[OWN, ours]):.2f}")
                cells.append(f"{geometric_mean(chapter(own) / own[OWN, ours]):.1f}")
        count = len(rows.xs("forward", level="pass"))
        lines.append((f"{batch}, cg{groups}-co{overlap:.0%}", count, *cells))
    head = ["batch, setting", "layers"]
    for what in ("forward", "backward"):
        for ours in ("TF32", "3xTF32"):
            head += [f"{what}, {ours}: over masked", "over the chapter's"]
    return markdown(head, lines)


def verdict(found: pd.DataFrame) -> str:
    """Say which targets were met on how many layers, and where they were missed most."""
    lines = []
    for what in ("forward", "backward"):
        own = found.xs(what, level="pass")
        for ours, theirs in ALIKE.items():
            name = {"tf32": "TF32", "3xtf32": "3xTF32"}[ours]
            ahead = chapter(own) / own[OWN, ours]
            masked = own[MASKED, theirs] / own[OWN, ours]
            over = own[OWN, ours] / own["floor", ""]
            told = [
                _target(ahead >= CHAPTER_TARGET, f"{CHAPTER_TARGET:g} times the chapter's", ahead),
                _target(masked >= 1, "no slower than masked", masked),
                _target(over <= FLOOR_TARGET, f"within {FLOOR_TARGET:g} of a copy", 1 / over),
            ]
            lines.append(f"- **{what}, {name}**: {'; '.join(told)}.")
    return "\n".join(lines)


def _target(met: pd.Series, name: str, ratio: pd.Series) -> str:
    how_many = f"{int(met.sum())} of {met.size} layers"
    return f"{name} on {how_many} (mean {geometric_mean(ratio):.2f}, least {ratio.min():.2f})"


def main(page: Path = PAGE) -> None:
    table = recorded("convolution-h200")
    found = times(table)
    text = page.read_text("utf-8")
    first = table.iloc[0]
    worst = table.groupby("arithmetic")["error"].max()
    commits = " and ".join(table["commit"].unique())
    machine = (
        f"One {first['hardware']}, commits {commits}. Largest errors over their bounds: "
        f"{worst['float32']:.2f} in float32, {worst['3xtf32']:.2f} of the same bound in 3xTF32, "
        f"{worst['tf32']:.2f} of its own in TF32."
    )
    for name, section in (
        ("machine", machine),
        ("forward", layers(found.xs("forward", level="pass"), FORWARD)),
        ("backward", layers(found.xs("backward", level="pass"), BACKWARD)),
        ("settings", settings(found)),
        ("targets", verdict(found)),
    ):
        text = renewed(text, name, section)
    page.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
