"""Pictures of several GPUs show the split, the steps, the model; the page is what was recorded."""

import numpy as np
import pandas as pd

from accelviz import many_gpus, plots
from accelviz.many_gpus.model import Work, gains, predict
from accelviz.many_gpus.rates import rates_of
from accelviz.measure.records import recorded
from benchmarks.pages.many_gpus import scheme_times
from tests.graphs import GRAPHS

RATES = rates_of(recorded("many-gpus-rates-h200"))


def test_shares_of_devices_are_those_of_the_split():
    split = many_gpus.split(GRAPHS["isolated_ends"](), 3)
    ax = plots.device_shares(split)
    widths = [bar.get_width() for bar in ax.patches]
    table = split.table()
    assert widths == [*table["local"], *table["remote"]]
    assert f"{split.cut_share:.0%} of the edges" in ax.get_title(loc="left")
    assert f"device 2: {table['local'][2]}" in ax.figure.alt


def test_timelines_lie_where_the_steps_are():
    said = predict(Work.even(10**6, 5 * 10**7, 2, 0.3), 64, RATES)
    panels = plots.device_timelines({"predicted": said.steps, "empty": said.steps.iloc[:0]})
    bars = panels[0].patches
    assert len(bars) == len(said.steps)
    for bar, step in zip(bars, said.steps.itertuples(), strict=True):
        assert np.isclose(bar.get_x(), step.start * 1e6)
        assert np.isclose(bar.get_width(), (step.stop - step.start) * 1e6)
        assert round(bar.get_y() + 0.42) == 2 * step.device + (step.queue == "link")
    assert panels[1].get_title(loc="left") == "empty: 0 µs"


def test_gains_are_written_in_their_cells():
    table = gains(235_868, 2_358_104, RATES, columns=(16, 256), shares=(0.01, 0.5))
    ax = plots.second_gpu(table, called="Collab")
    assert [text.get_text() for text in ax.texts] == [f"{x:.2f}" for x in table.to_numpy().flat]
    ahead = (table.to_numpy() > 1).mean()
    assert f"{ahead:.0%} of the cells" in ax.get_title(loc="left")
    ax = plots.second_gpu(table * 0 + 0.7)
    assert "nowhere" in ax.get_title(loc="left")


def test_times_of_schemes_stand_beside_one_gpu():
    table = pd.DataFrame({"ours": [1.5, 2.0], "MGG": [0.3, np.nan]}, index=["a", "b"])
    ax = scheme_times(table)
    assert [text.get_text() for text in ax.texts] == ["1.50", "2.00", "0.30", "", "one GPU"]
