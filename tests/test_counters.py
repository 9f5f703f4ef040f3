"""Recorded counters are found by case, and split into what a launch's cycles are made of."""

import numpy as np
import pandas as pd
import pytest

from accelviz.errors import ArgumentError
from accelviz.measure.counters import issue_factors, recorded_counters


def test_factors_by_hand():
    counted = {
        "instructions": [528e3],
        "issue_active_pct": [50.0],
        "warps_active_pct": [75.0],
        "stalled_on_memory_pct": [1600.0],
        "active_cycles": [2000.0],
        "elapsed_cycles": [2500.0],
    }
    found = issue_factors(pd.DataFrame(counted, index=[7])).loc[7]
    assert found["instructions_each"] == 1000
    assert (found["busy"], found["issue"]) == (0.8, 0.5)
    assert (found["warps"], found["cycles_each"], found["for_memory"]) == (12, 24, 16)
    assert found["cycles"] == found["instructions_each"] / found["issue"] / found["busy"] == 2500


def test_recorded_factors_make_up_the_cycles():
    counted = recorded_counters("counters-ours-h200", {"ours": "lane_groups", "its": "accel_gcn"})
    assert set(counted["strategy"]) == {"ours", "its"}
    assert set(counted["order"]) == {"natural", "shuffled"}
    assert not counted["graph"].str.contains("shuffled").any()
    large = issue_factors(counted[counted["graph"] == "Collab-twin"])
    made = large["instructions_each"] / large["issue"] / large["busy"]
    np.testing.assert_allclose(made, large["cycles"], rtol=0.12)


def test_what_was_not_recorded_is_nan_or_refused():
    older = recorded_counters("counters-h200", "accel_gcn partition=block combined_warp=False")
    found = issue_factors(older)
    assert found[["busy", "for_memory", "cycles"]].isna().all(axis=None)
    assert found[["issue", "warps", "cycles_each"]].notna().all(axis=None)
    with pytest.raises(ArgumentError, match="no 'row_thread' was measured"):
        recorded_counters("counters-h200", "row_thread")
