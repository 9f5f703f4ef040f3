"""Pictures of several GPUs show the split, the steps, and the model's gains."""

import numpy as np
import pandas as pd

from accelviz import many_gpus, plots
from accelviz.many_gpus.model import Work, gains, predict
from accelviz.many_gpus.rates import rates_of
from accelviz.measure.records import recorded
from benchmarks.pages.many_gpus import scheme_times
from tests.graphs import GRAPHS
from tests.plots.pictures import read_texts, read_title

RATES = rates_of(recorded("many-gpus-rates-h200"))


def test_shares_of_devices_are_those_of_the_split():
    split = many_gpus.split(GRAPHS["isolated_ends"](), 3)
    ax = plots.device_shares(split)
    widths = [bar.get_width() for bar in ax.patches]
    table = split.table()
    assert widths == [*table["local"], *table["remote"]]
    assert f"{split.cut_share:.0%} of the edges" in read_title(ax)
    assert f"device 2: {table['local'][2]}" in ax.figure.alt


def test_timeline_bars_match_the_steps():
    said = predict(Work.even(10**6, 5 * 10**7, 2, 0.3), 64, RATES)
    panels = plots.device_timelines({"predicted": said.steps, "empty": said.steps.iloc[:0]})
    bars = panels[0].patches
    assert len(bars) == len(said.steps)
    for bar, step in zip(bars, said.steps.itertuples(), strict=True):
        assert np.isclose(bar.get_x(), step.start * 1e6)
        assert np.isclose(bar.get_width(), (step.stop - step.start) * 1e6)
        assert round(bar.get_y() + 0.42) == 2 * step.device + (step.queue == "link")
    assert read_title(panels[1]) == "empty: 0 µs"


def test_gains_are_written_in_their_cells():
    table = gains(235_868, 2_358_104, RATES, columns=(16, 256), shares=(0.01, 0.5))
    ax = plots.second_gpu(table, called="Collab")
    assert read_texts(ax) == [f"{x:.2f}" for x in table.to_numpy().flat]
    ahead = (table.to_numpy() > 1).mean()
    assert f"{ahead:.0%} of the cells" in read_title(ax)
    ax = plots.second_gpu(table * 0 + 0.7)
    assert "nowhere" in read_title(ax)


def test_scheme_times_have_a_line_for_one_gpu():
    table = pd.DataFrame({"ours": [1.5, 2.0], "MGG": [0.3, np.nan]}, index=["a", "b"])
    ax = scheme_times(table)
    assert read_texts(ax) == ["1.50", "2.00", "0.30", "", "one GPU"]
