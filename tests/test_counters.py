"""Recorded counters: lookup by case, and the shares of a launch's cycles."""

import numpy as np
import pandas as pd
import pytest

from accelviz.errors import ArgumentError
from accelviz.measure.counters import issue_factors, recorded_counters
from accelviz.measure.ladder import climbed, ladder, ladder_cases
from accelviz.measure.records import recorded
from accelviz.plots import ladder_times


def test_factors_by_hand():
    counted = {
        "instructions": [528e3],
        "issue_active_pct": [50.0],
        "warps_active_pct": [75.0],
        "stalled_on_memory_pct": [1600.0],
        "active_cycles": [2000.0],
        "elapsed_cycles": [2500.0],
    }
    factors = issue_factors(pd.DataFrame(counted, index=[7])).loc[7]
    assert factors["instructions_each"] == 1000
    assert (factors["busy"], factors["issue"]) == (0.8, 0.5)
    assert (factors["warps"], factors["cycles_each"], factors["for_memory"]) == (12, 24, 16)
    assert factors["cycles"] == 1000 / factors["issue"] / factors["busy"] == 2500


def test_recorded_factors_make_up_the_cycles():
    counted = recorded_counters("counters-ours-h200", {"ours": "lane_groups", "its": "accel_gcn"})
    assert set(counted["strategy"]) == {"ours", "its"}
    assert set(counted["order"]) == {"natural", "shuffled"}
    assert not counted["graph"].str.contains("shuffled").any()
    large = issue_factors(counted[counted["graph"] == "Collab-twin"])
    cycles = large["instructions_each"] / large["issue"] / large["busy"]
    np.testing.assert_allclose(cycles, large["cycles"], rtol=0.12)


def test_what_was_not_recorded_is_nan_or_refused():
    recorded = recorded_counters("counters-h200", "accel_gcn partition=block combined_warp=False")
    unknown = ["elapsed_cycles", "active_cycles", "stalled_on_memory_pct"]
    factors = issue_factors(recorded.drop(columns=unknown))
    assert factors[["busy", "for_memory", "cycles"]].isna().all(axis=None)
    assert factors[["issue", "warps", "cycles_each"]].notna().all(axis=None)
    with pytest.raises(ArgumentError, match="no 'row_thread' was measured"):
        recorded_counters("counters-h200", "row_thread")


def test_the_ladder_is_climbed_by_hand():
    times, gains, shares = climbed(recorded("ladder-h200"))
    graph = "com-amazon-twin"
    assert [*times.index] == [*ladder()] == [*ladder_cases()]
    assert [*gains.index] == [*times.index[1:-1]]
    warp, equal = (times.loc[name, (graph, 32)] for name in ("a warp a row", "equal rows"))
    assert gains.loc["equal rows", (graph, 32)] == warp / equal
    assert 0 < shares.loc["a thread a row", (graph, 32)] < 0.03
    axes = ladder_times(times, shares, graph)
    assert len(axes) == 2
    for ax, d in zip(axes, (32, 128), strict=True):
        drawn = ax.lines[-1].get_xdata()
        np.testing.assert_array_equal(drawn, times[graph].loc[[*ladder()][:-1], d])
    with pytest.raises(ArgumentError, match="was measured"):
        climbed(recorded("half-h200"))
