"""docs/sddmm.md says what benchmarks/results/sddmm-h200.csv.gz holds."""

import pandas as pd

from accelviz.measure.records import recorded
from tests.pages import check_page, script


def test_the_page_is_what_the_script_writes(monkeypatch, tmp_path):
    check_page(script(monkeypatch, "sddmm"), tmp_path)


def test_ratios_by_hand_and_a_target_that_is_missed_is_named(monkeypatch):
    names = script(monkeypatch, "sddmm")
    table = recorded("sddmm-h200")
    found = names["ratios"](table)
    assert len(found) == 19 * 4
    case = table[(table["graph"] == "mit8") & (table["columns"] == 64)]
    times = case.set_index("strategy")["median_us"]
    expected = times["cusparse"].min() / times["lane_groups"]
    assert found.loc[("mit8", 64), "ahead"] == expected
    slow = found.copy()
    slow.loc[("mit8", 64), ["ahead", "share"]] = [1.25, 0.5]
    counted = pd.DataFrame(
        {"l2_pct": [60.0], "dram_pct": [5.0], "l1_hit_pct": [20.0]}
        | {"active_cycles": [80.0], "elapsed_cycles": [100.0]},
        index=pd.MultiIndex.from_tuples([("mit8", 64)]),
    )
    text = names["verdict"](slow, counted)
    assert "**not met** on mit8 with 64 columns, 1.25" in text
    assert "2.50 times as fast" in text
    assert "the L2 at 60 % of its peak while the SMs work 80 % of the launch" in text
