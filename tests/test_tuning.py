"""`tune`: the settings that it tries, its result, and its reported cost."""

import numpy as np
import pytest

import accelviz
from accelviz.errors import AccelvizError, ArgumentError
from accelviz.plans import Strategy
from accelviz.strategies import SPMM
from accelviz.strategies.spmm.rows import RowThread
from tests.inherited import each_strategy, with_random_weights


def test_each_parameter_is_varied_with_the_best_of_those_before():
    graph = with_random_weights(accelviz.load_graph("cora"))
    start = accelviz.plan(graph, "accel_gcn", 8, max_block_warps=3)
    choices = {"max_warp_nzs": [8, 16], "max_block_warps": iter([2, 4])}
    tuned = accelviz.tune(start, choices, device="cpu", repeats=2)
    table = tuned.table
    assert table["parameter"].tolist() == [
        *("", "max_warp_nzs", "max_warp_nzs", "max_block_warps", "max_block_warps")
    ]
    assert table["best"].sum() == 1
    best = table[table["best"]].iloc[0]
    assert best["median_us"] == table["median_us"].min() == tuned.best_us
    assert tuned.start_us == table["median_us"].iloc[0]
    settings = [dict(p.split("=") for p in text.split()) for text in table["parameters"]]
    assert settings[0]["max_block_warps"] == "3"  # the caller's wish
    assert {s["max_block_warps"] for s in settings[:3]} == {"3"}
    fastest = table["median_us"].iloc[:3].argmin()
    chosen = settings[fastest]["max_warp_nzs"]
    assert [setting["max_warp_nzs"] for setting in settings[3:5]] == [chosen, chosen]
    assert tuned.plan.pattern.column_indices is graph.column_indices
    assert {k: str(v) for k, v in tuned.plan.parameters.items()} == dict(
        p.split("=") for p in best["parameters"].split()
    )
    assert tuned.seconds > 0
    assert f"{tuned.best_us:,.1f} us on cpu, 5 settings" in repr(tuned)
    gained = tuned.start_us - tuned.best_us
    assert tuned.pays_after == pytest.approx(tuned.seconds / gained * 1e6 if gained else np.inf)


def test_a_setting_that_cannot_run_is_recorded():
    start = accelviz.plan("cora", "accel_gcn", 8)
    tuned = accelviz.tune(start, {"max_warp_nzs": [0, 8]}, device="cpu", repeats=1)
    assert "max_warp_nzs: got 0" in tuned.table["problem"].iloc[1]
    assert np.isinf(tuned.table["median_us"].iloc[1])


@each_strategy()
def test_what_strategies_offer_can_be_planned(strategy):
    graph = accelviz.load_graph("cora")
    for n_cols in (16, 33, 128):
        for name, values in strategy.choices(graph, n_cols).items():
            for value in values:
                assert strategy.plan(graph, n_cols, **{name: value}).parameters[name] == value


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"choices": {}}, "offers none"),
        ({"choices": {"warps": [1]}}, "'warps' is no parameter"),
        ({"choices": {"max_warp_nzs": [8]}, "repeats": 0}, "repeats: got 0"),
        ({"choices": {"max_warp_nzs": [8]}, "device": "tpu"}, "there is no 'tpu'"),
    ],
)
def test_bad_input_is_named(options, message):
    start = accelviz.plan("cora", "accel_gcn", 8)
    with pytest.raises(ArgumentError, match=message):
        accelviz.tune(start, **{"device": "cpu", **options})


def test_a_strategy_without_choices_says_so():
    class Fixed(Strategy):
        operation = SPMM
        name = "fixed"

        def build(self, graph, widths, settings):
            return RowThread().plan(graph, **widths, block_warps=2)

    with pytest.raises(AccelvizError, match="'fixed' offers none"):
        accelviz.tune(accelviz.plan("cora", Fixed(), 8), device="cpu")
