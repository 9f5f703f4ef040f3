"""Pictures of several GPUs: edges per device, timelines of devices, and gain of a second GPU."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm

from accelviz.many_gpus.split import Split
from accelviz.plots import draw
from accelviz.plots.style import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, add_alt

_STEP_COLOURS = {"multiply": BLUE, "add": SKY, "fetch": ORANGE, "get": ORANGE, "round": GREEN}
_STEP_COLOURS["aggregate"] = PURPLE
_QUEUES = ("compute", "link")
#: Smallest share of the time axis at which a bar has a label.
_MIN_LABELLED = 0.07


def device_shares(split: Split, *, ax: Axes | None = None) -> Axes:
    """Draw the number of edges of each device from its own vertices, and from other devices'.

    Parameters
    ----------
    split : Split
        From `many_gpus.split`.
    """
    table = split.table()
    ax = draw.new_axes(ax, figsize=(7.5, 1.8 + 0.5 * split.n_devices))
    devices = np.arange(split.n_devices)
    ax.barh(devices, table["local"], color=BLUE, label="from its own vertices")
    bars = ax.barh(
        devices, table["remote"], left=table["local"], color=ORANGE, label="from others'"
    )
    notes, alts = [], []
    for device, line in zip(devices, table.itertuples(), strict=True):
        halo = draw.pluralize(int(line.halo), "row")
        notes.append(f"fetches {halo}" + f", each for {line.reuse:.1f} edges" * bool(line.halo))
        local = draw.pluralize(int(line.local), "local edge")
        alts.append(f"device {device}: {local}, {int(line.remote):,} remote, {halo} to fetch")
    ax.bar_label(bars, notes, padding=3, fontsize=8.5)
    ax.set_yticks(devices, [f"device {device}" for device in devices])
    ax.set(xlabel="edges", xlim=(0, max(table["edges"].max(), 1) * 1.65))
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_ylim(split.n_devices + 0.35, -0.5)  # room for the legend
    ax.legend(frameon=False, loc="lower right", fontsize=8.5, ncol=2)
    title = f"{split.cut_share:.0%} of the edges of {split.graph.name} are cut"
    return draw.finish(ax, "; ".join(alts) + ".", title)


def device_timelines(tables: Mapping[str, pd.DataFrame]) -> list[Axes]:
    """Draw the steps of each device over time, one panel per table, on the same scale.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        Title to a table of `Prediction.steps` or `PeersProgram.timeline`, with columns `device`,
        `queue`, `step`, and `start` and `stop` in seconds.
    """
    lanes = max((int(t["device"].max()) + 1 for t in tables.values() if len(t)), default=1)
    size = (9.0, (0.9 + 0.55 * lanes) * len(tables) + 0.3)
    panels = draw.new_panels(size, len(tables), 1, sharex=True)
    last_stop = max((float(t["stop"].max()) for t in tables.values() if len(t)), default=1.0) * 1e6
    names = [f"{queue}, GPU {device}" for device in range(lanes) for queue in _QUEUES]
    for ax, (name, table) in zip(panels, tables.items(), strict=True):
        level = table["device"] * len(_QUEUES) + table["queue"].map(_QUEUES.index)
        start, stop = table["start"].clip(lower=0) * 1e6, table["stop"] * 1e6
        colours = [_STEP_COLOURS.get(step, GREY) for step in table["step"]]
        ax.barh(level, stop - start, 0.84, start, color=colours, edgecolor="white", lw=1)
        for y, a, b, step, face in zip(level, start, stop, table["step"], colours, strict=True):
            if b - a > _MIN_LABELLED * last_stop:
                draw.write_centred(ax, (a + b) / 2, y, step, face, 8.5)
        ax.set_yticks(range(len(names)), names, fontsize=8.5)
        ax.set(xlim=(0, last_stop * 1.02), ylim=(len(names) - 0.4, -0.6))
        end = float(stop.max()) if len(table) else 0.0
        draw.write_heading(ax, f"{name}: {end:,.0f} µs")
        draw.finish(ax, f"{name}: the last step ends after {end:,.0f} microseconds.")
    panels[-1].set_xlabel("microseconds since all began")
    return panels


def second_gpu(gains: pd.DataFrame, *, called: str = "", ax: Axes | None = None) -> Axes:
    """Draw the speedup of two GPUs over one, by share of cut edges and by number of columns.

    Parameters
    ----------
    gains : DataFrame
        From `many_gpus.model.gains`.
    called : str
        Name of the configuration in the title.
    """
    ax = draw.new_axes(ax, figsize=(7.5, 0.9 + 0.36 * len(gains)))
    values = gains.to_numpy()
    # Orange below 1 and blue above differ with any kind of colour vision.
    colours = colormaps["PuOr"]
    norm = TwoSlopeNorm(1.0, min(0.5, values.min()), max(2.0, values.max()))
    image = draw.cells(ax, values, colours, norm)
    for (row, column), value in np.ndenumerate(values):
        draw.write_centred(ax, column, row, f"{value:.2f}", colours(norm(value)), 9)
    ax.set_xticks(range(len(gains.columns)), [str(name) for name in gains.columns])
    ax.set_yticks(range(len(gains)), [f"{share:.1%}" for share in gains.index])
    ax.set(xlabel="columns of X", ylabel="edges that are cut")
    ax.tick_params(length=0)
    draw.colour_bar(ax, image, "times one GPU")
    share = (values > 1).mean()
    ahead = {1.0: "everywhere", 0.0: "nowhere"}.get(share, f"in {share:.0%} of the cells")
    draw.write_title(ax, f"{called}{': ' * bool(called)}two GPUs are ahead {ahead}")
    add_alt(ax, f"From {values.min():.2f} to {values.max():.2f} times as fast as one GPU.")
    return ax
