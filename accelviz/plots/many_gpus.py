"""Pictures of several GPUs: who has what, who does what when, and whether a second one helps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm

from accelviz.many_gpus.split import Split
from accelviz.plots.drawing import Look, cells, colour_bar, new_axes, new_panels
from accelviz.plots.labels import counted, head, write_title
from accelviz.plots.style import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, ink, tell, tidy

#: Of steps, in every picture.
_STEPS = {
    "multiply": BLUE,
    "add": SKY,
    "fetch": ORANGE,
    "round": GREEN,
    "aggregate": PURPLE,
    "get": ORANGE,
}
_QUEUES = ("compute", "link")
#: Share of a time line's length from which on a bar has room for its name.
_ROOM = 0.07


def device_shares(split: Split, *, ax: Axes | None = None) -> Axes:
    """Draw the edges of each device: from its own vertices, and from others'.

    Parameters
    ----------
    split : Split
        Of `many_gpus.split`.
    ax : see `accelviz.plots`
    """
    table = split.table()
    ax = new_axes(ax, figsize=(7.5, 1.8 + 0.5 * split.n_devices))
    places = np.arange(split.n_devices)
    ax.barh(places, table["local"], color=BLUE, label="from its own vertices")
    ax.barh(places, table["remote"], left=table["local"], color=ORANGE, label="from others'")
    for place, line in zip(places, table.itertuples(), strict=True):
        text = f" fetches {counted(int(line.halo), 'row')}"
        if line.halo:
            text += f", each for {line.reuse:.1f} edges"
        ax.text(int(line.edges), float(place), text, va="center", size=8.5)
    ax.set_yticks(places, [f"device {place}" for place in places])
    ax.set(xlabel="edges", xlim=(0, max(table["edges"].max(), 1) * 1.65))
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_ylim(split.n_devices + 0.35, -0.5)  # room for the legend
    ax.legend(frameon=False, loc="lower right", fontsize=8.5, ncol=2)
    write_title(ax, f"{split.cut_share:.0%} of the edges of {split.graph.name} are cut")
    said = (
        f"device {place}: {counted(int(line.local), 'local edge')}, {int(line.remote):,} remote, "
        f"{counted(int(line.halo), 'row')} to fetch"
        for place, line in zip(places, table.itertuples(), strict=True)
    )
    tell(ax, "; ".join(said) + ".")
    return tidy(ax)


def device_timelines(
    tables: Mapping[str, pd.DataFrame], *, axes: Sequence[Axes] | None = None
) -> list[Axes]:
    """Draw what each device computes and fetches, and when; below each other, on one scale.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        What a panel is called, to a table as `Prediction.steps` and `PeersProgram.timeline` have
        it: `device`, `queue`, `step`, `start` and `stop` in seconds.
    axes : see `accelviz.plots`
    """
    lanes = max((int(t["device"].max()) + 1 for t in tables.values() if len(t)), default=1)
    size = (9.0, (0.9 + 0.55 * lanes) * len(tables) + 0.3)
    axes = new_panels(axes, size, len(tables), 1, sharex=True)
    most = max((float(t["stop"].max()) for t in tables.values() if len(t)), default=1.0) * 1e6
    for ax, (name, table) in zip(axes, tables.items(), strict=True):
        names = []
        for device in range(lanes):
            names += [f"{queue}, GPU {device}" for queue in _QUEUES]
        for line in table.itertuples():
            place = int(line.device) * len(_QUEUES) + _QUEUES.index(line.queue)
            start, stop = max(line.start, 0) * 1e6, line.stop * 1e6
            colour = _STEPS.get(line.step, GREY)
            ax.barh(place, stop - start, 0.84, start, color=colour, edgecolor="white", lw=1)
            if stop - start > _ROOM * most:
                look: Look = {"ha": "center", "va": "center", "size": 8.5, "color": ink(colour)}
                ax.text((start + stop) / 2, place, line.step, **look)
        ax.set_yticks(range(len(names)), names, fontsize=8.5)
        ax.set(xlim=(0, most * 1.02), ylim=(len(names) - 0.4, -0.6))
        end = float(table["stop"].max()) * 1e6 if len(table) else 0.0
        head(ax, f"{name}: {end:,.0f} µs")
        tell(ax, f"{name}: the last step ends after {end:,.0f} microseconds.")
        tidy(ax)
    axes[-1].set_xlabel("microseconds since all began")
    return axes


def second_gpu(gains: pd.DataFrame, *, called: str = "", ax: Axes | None = None) -> Axes:
    """Draw where a second GPU helps: the gain over one, by the share of edges cut and by width.

    Parameters
    ----------
    gains : DataFrame
        Of `many_gpus.model.gains`.
    called : str
        What the title says of whose gains they are.
    ax : see `accelviz.plots`
    """
    ax = new_axes(ax, figsize=(7.5, 0.9 + 0.36 * len(gains)))
    values = gains.to_numpy()
    # Orange below 1, blue above: told apart with any kind of colour vision.
    colours = colormaps["PuOr"]
    norm = TwoSlopeNorm(1.0, min(0.5, values.min()), max(2.0, values.max()))
    image = cells(ax, values, colours, norm)
    for (row, column), value in np.ndenumerate(values):
        shade = colours(norm(value))[:3]
        ax.text(column, row, f"{value:.2f}", ha="center", va="center", size=9, color=ink(shade))
    ax.set_xticks(range(len(gains.columns)), [str(name) for name in gains.columns])
    ax.set_yticks(range(len(gains)), [f"{share:.1%}" for share in gains.index])
    ax.set(xlabel="columns of X", ylabel="edges that are cut")
    ax.tick_params(length=0)
    colour_bar(ax, image, "times one GPU")
    share = (values > 1).mean()
    ahead = {1.0: "everywhere", 0.0: "nowhere"}.get(share, f"in {share:.0%} of the cells")
    write_title(ax, f"{called}{': ' * bool(called)}two GPUs are ahead {ahead}")
    tell(ax, f"From {values.min():.2f} to {values.max():.2f} times as fast as one GPU.")
    return ax


def scheme_times(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw times of several schemes as bars, in groups, over that of one GPU.

    Parameters
    ----------
    table : DataFrame
        A line a group, a column a scheme: how many times as fast as one GPU; NaN for none.
    ax : see `accelviz.plots`
    """
    ax = new_axes(ax, figsize=(9, 0.8 + 0.26 * len(table) * (len(table.columns) + 0.8)))
    colours = (BLUE, SKY, PURPLE, ORANGE, GREEN)
    height = 0.8 / max(len(table.columns), 1)
    for number, name in enumerate(table.columns):
        places = np.arange(len(table)) + (number + 0.5) * height - 0.4
        bars = ax.barh(places, table[name], height * 0.92, color=colours[number % 5], label=name)
        ax.bar_label(bars, [f"{x:.2f}" if x == x else "" for x in table[name]], padding=2, size=8)
    ax.axvline(1, color="black", lw=1)
    ax.text(1, -0.62, "one GPU", ha="center", va="bottom", size=8.5)
    ax.set_yticks(range(len(table)), table.index)
    ax.set(xlabel="times as fast as one GPU", ylim=(len(table) + 0.1, -0.6))  # for the legend
    ax.legend(frameon=False, fontsize=8.5, loc="lower right", ncol=4)
    means = ", ".join(f"{name} {np.exp(np.log(table[name]).mean()):.2f}" for name in table)
    tell(ax, f"Geometric means over one GPU: {means}.")
    return tidy(ax)
