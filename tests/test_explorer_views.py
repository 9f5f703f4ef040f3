"""The explorer's views of a whole graph: their numbers are those of `sweep` and of the workload."""

import html
import json
import re

import numpy as np
import pandas as pd
import pytest

import accelviz
from accelviz.graph import Graph
from accelviz.strategies import OPERATIONS, find_strategy
from accelviz.widgets import charts, drawing
from accelviz.widgets import state as state_module
from accelviz.widgets.drawing import LOADS
from accelviz.widgets.state import State, choices, offered
from accelviz.workload import nonzeros_per_warp
from tests.graphs import MADE, graph_of_degrees
from tests.inherited import SPMM_KERNELS
from tests.pages import (
    ALL,
    HOSTILE,
    WARP_LEVEL,
    Checked,
    number,
    opened,
    parts,
    picture,
    pictures,
    table,
    told,
)
from tests.test_lookup import Dealt


@pytest.fixture(scope="module")
def cora():
    return accelviz.load_graph("cora")


# --- all of them --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["empty", "no_edges", "one_node", "hub", "wide", "cora"])
def test_every_view_of_every_strategy_is_well_formed(name):
    state = State(opened(name), [Dealt()])
    labels = tuple(state.choices)
    for first, second in zip(labels, (*labels[1:], labels[0]), strict=True):
        state.change(first=first, second=second)
        for settings in ({"max_block_warps": 1}, {"max_block_warps": 12, "n_cols": 64}):
            state.change(**settings)
            for view in ALL.values():
                text = view(state)
                Checked(text)
                pictures(text)
                assert not re.search(r"(?<![\w&])(nan|inf|None|NaN)(?!\w)", text), text


@pytest.mark.parametrize("operation", [each for each in OPERATIONS if each != "spmm"])
@pytest.mark.parametrize("name", ["no_edges", "wide", "cora"])
def test_every_view_of_every_strategy_of_another_operation(name, operation):
    graph = opened(name)
    for strategy in accelviz.strategies(operation):
        state = State(graph, find_strategy(strategy, operation), n_cols=16)
        assert {each.strategy.operation.name for each in state.choices.values()} == {operation}
        for parameter, (own, value) in state.sliders.items():
            state.change(**{parameter: offered(own, value)[-1]})
        if name == "wide" and state.first.plan.kernel is not None:
            state.trace()
        for view in ALL.values():
            text = view(state)
            Checked(text)
            pictures(text)


def test_names_are_shown_and_not_run(cora):
    class Hostile(Dealt):
        name = HOSTILE

    named = Graph(cora.row_pointers, cora.column_indices, cora.values, cora.shape, HOSTILE, HOSTILE)
    state = State(named, [Hostile()], second=HOSTILE)
    seen = []
    for label in (HOSTILE, "accel_gcn", "cusparse", "graphblast"):
        state.change(first=label)
        for view in ALL.values():
            text = view(state)
            assert "<script" not in text
            Checked(text)
            pictures(text)
            seen.append(html.unescape(text))
    assert sum(HOSTILE in text for text in seen) > 8


# --- statistics ---------------------------------------------------------------------------------

#: Name in the table: column of `sweep`, and how it is written.
STATISTICS = {
    "blocks": ("blocks", "{:,.0f}"),
    "launched warps": ("warps", "{:,.0f}"),
    "warps with work": ("busy_warps", "{:,.0f}"),
    "share of idle warps": ("idle_warps", "{:.2%}"),
    "share of time waiting": ("idle_share", "{:.2%}"),
    "mean nonzeros of a warp": ("warp_nzs_mean", "{:,.2f}"),
    "nonzeros of the busiest": ("largest", "{:,.0f}"),
    "busiest over mean": ("imbalance", "{:,.2f}"),
    "bytes of metadata": ("metadata_bytes", "{:,.0f}"),
    "rows shared by warps": ("rows_shared", "{:,.0f}"),
    "rows cut over blocks": ("rows_cut", "{:,.0f}"),
    "atomics in shared": ("shared_atomics", "{:,.0f}"),
    "atomics in global": ("global_atomics", "{:,.0f}"),
}


def shown(state):
    """The table of statistics: name to the first's cell and change, and the second's."""
    header, *rows = table(charts.statistics(state))
    assert header == ["", "first", "Δ", "second", "Δ"]
    assert [row[0] for row in rows] == list(STATISTICS)
    return {name: cells for name, *cells in rows}


def swept(graph, strategy, **parameters):
    (_, found), *rest = accelviz.sweep(graph, strategies=strategy, **parameters).iterrows()
    assert not rest
    return {
        name: "–" if pd.isna(found[column]) else style.format(found[column])
        for name, (column, style) in STATISTICS.items()
    }


@pytest.mark.parametrize("name", ["cora", "hub", "no_edges", "wide"])
def test_the_statistics_are_those_of_sweep(name):
    graph = opened(name)
    state = State(graph, max_block_warps=7, max_warp_nzs=16, n_cols=48)
    setting = {"max_block_warps": 7, "max_warp_nzs": 16}
    for label, choice in choices().items():
        state.change(first=label, second="accel_gcn")
        own = {
            **{each: setting[each] for each in choice.sliders if each in setting},
            **choice.fixed,
        }
        wanted = swept(graph, choice.strategy.name, n_cols=48, **own)
        other = swept(graph, "accel_gcn", n_cols=48, **setting)
        found = shown(state)
        assert {each: cells[0] for each, cells in found.items()} == wanted
        assert {each: cells[2] for each, cells in found.items()} == other
    assert set(swept(graph, "cusparse").values()) == {"–"}
    headline = charts.headline(state)
    assert f"<b>{graph.name}</b>, {graph.n_rows:,} rows, {graph.nnz:,} nonzeros" in headline


def test_the_changes_are_differences(cora):
    state = State(cora, second="cusparse")
    assert {cells[1] + cells[3] for cells in shown(state).values()} == {""}
    before = state.first.summary
    state.change(max_block_warps=8)
    now = state.first.summary
    found = {name: cells[1] for name, cells in shown(state).items()}
    assert found["blocks"] == f"+{now.blocks - before.blocks}"
    assert found["launched warps"] == f"−{before.warps - now.warps}"
    assert found["share of time waiting"] == f"−{100 * (before.idle_share - now.idle_share):.1f} pt"
    assert found["bytes of metadata"] == f"+{16 * (now.blocks - before.blocks):,}"
    assert found["nonzeros of the busiest"] == found["rows cut over blocks"] == ""
    assert {cells[3] for cells in shown(state).values()} == {""}
    assert f"<b>{now.idle_share:.1%}</b>" in charts.headline(state)
    assert "does not say what its warps do" in charts.headline(state)
    state.change(graph="citeseer")
    assert {cells[1] for cells in shown(state).values()} == {""}


def test_a_change_too_small_for_its_decimals_is_no_zero():
    rows = {1: 100_000, 31: 1}
    graph = graph_of_degrees([degree for degree, n in rows.items() for _ in range(n)], 31)
    state = State(graph, second="cusparse")
    state.change(max_warp_nzs=31)
    assert {cells[1] for cells in shown(state).values()} == {""}
    state.change(max_warp_nzs=30)
    found = {name: cells[1] for name, cells in shown(state).items()}
    assert found["warps with work"] == "+1"
    assert found["mean nonzeros of a warp"] == "<0.01"
    assert found["share of idle warps"] == "<0.1 pt"


# --- degrees ------------------------------------------------------------------------------------


def counted_treatment(state, degree):
    """The colour of a row alone in its graph, from the workload of that graph."""
    alone = graph_of_degrees([degree], max(degree, 1))
    side = state.first
    plan = side.choice.strategy.plan(alone, side.n_cols, **side.parameters)
    work = plan.workload().to_frame().query("nz_count > 0")
    if len(set(work["block"])) > 1:
        return charts.CUT
    in_block = work.groupby("block")["warp"].nunique()
    return charts.SHARED if (in_block > 1).any() else charts.ONE_WARP


def bars_of_degrees(state):
    """Low, high, rows and colour of each bar, left to right."""
    found = []
    for each in told(picture(charts.degrees(state))):
        words = re.match(r"degree (\d+)(?: to (\d+))?: ([\d,]+) rows, (.*);", each.get("data-info"))
        low, high, rows, said = words.groups()
        low, high = int(low), int(high or low)
        assert json.loads(each.get("data-pick")) == {"degree": [low, high]}
        assert float(each.get("width")) > 1
        found.append((low, high, number(rows), (each.get("fill"), said), each))
    return found


@pytest.mark.parametrize("strategy", [*SPMM_KERNELS, WARP_LEVEL])
@pytest.mark.parametrize("name", ["all_degrees", "hub", "degree_33", "degree_384"])
def test_bars_of_degrees_hold_all_rows_and_say_how_they_are_treated(name, strategy):
    graph = MADE[name]()
    state = State(graph, first=strategy)
    degrees = graph.degrees
    bars = bars_of_degrees(state)
    assert sum(rows for _, _, rows, _, _ in bars) == (degrees > 0).sum()
    below = 0
    for low, high, rows, treated, bar in bars:
        assert below < low <= high
        below = high
        there = degrees[(low <= degrees) & (degrees <= high)]
        assert rows == there.size > 0
        for degree in {int(there.min()), int(there.max())}:
            assert treated == counted_treatment(state, degree)
        # Rows above each other's bars: a taller bar has more rows.
        assert sorted(bars, key=lambda bar: bar[2]) == sorted(
            bars, key=lambda bar: (float(bar[4].get("height")), bar[2])
        )
        row = state.row_of_degree(low, high)
        assert low <= degrees[row] <= high
        assert float(bar.get("height")) > 0


@pytest.mark.parametrize(
    ("degree", "treated"),
    [
        (1, charts.ONE_WARP),
        (32, charts.ONE_WARP),
        (33, charts.SHARED),
        (384, charts.SHARED),
        (385, charts.CUT),
        (769, charts.CUT),
    ],
)
def test_how_accel_gcn_treats_a_degree(degree, treated):
    state = State(graph_of_degrees([degree] * 3, 1000))
    assert charts.treatment(state.first, degree) == treated
    assert [(bar[2], bar[3]) for bar in bars_of_degrees(state)] == [(3, treated)]


def test_a_range_of_degrees_is_cut_where_the_treatment_changes():
    state = State(graph_of_degrees([32, 32, 33, 40, 383, 384, 385, 386, 400], 1000))
    found = [(low, high, rows, treated) for low, high, rows, treated, _ in bars_of_degrees(state)]
    assert found == [
        (32, 32, 2, charts.ONE_WARP),
        (33, 40, 2, charts.SHARED),
        (323, 384, 2, charts.SHARED),
        (385, 406, 3, charts.CUT),
    ]


def test_rows_of_degree_0_are_counted_in_words():
    text = html.unescape(charts.degrees(State(MADE["tall"]())))
    assert "degree (nonzeros in a row; 100 rows have none)" in text
    for name in ("hub", "empty"):
        assert "degree (nonzeros in a row)" in charts.degrees(State(MADE[name]()))
    only = charts.degrees(State(MADE["one_node"]()))
    assert "1 row has none" in only
    assert told(picture(only)) == []


def test_where_treatment_is_not_known_the_picture_says_so(cora):
    for state in (State(cora, [Dealt()]), State(cora, first="cusparse")):
        assert {bar[3] for bar in bars_of_degrees(state)} == {charts.UNKNOWN}
        assert "not known" in charts.degrees(state)


# --- loads --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cora", "hub", "tall"])
def test_bars_of_loads_count_the_warps_of_both(name):
    graph = opened(name)
    state = State(graph, first="graphblast", second="accel_gcn", max_warp_nzs=48)
    svg = picture(charts.loads(state))
    colours = {"first": (drawing.BLUE, drawing.GREY), "second": (drawing.ORANGE, "#A8A8A8")}
    for side, (busy_colour, idle_colour) in zip(
        (state.first, state.second), colours.values(), strict=True
    ):
        per_warp = nonzeros_per_warp(side.plan.workload(), side.plan.workers_per_block).ravel()
        bars = [bar for bar in told(svg) if bar.get("fill") == busy_colour]
        total = 0
        for bar in bars:
            words = re.match(
                r"([\d,]+) warps with (\d+)(?: to (\d+))? nonzeros", bar.get("data-info")
            )
            count, low, high = words.groups()
            inside = (int(low) <= per_warp) & (per_warp <= int(high or low))
            assert number(count) == inside.sum() > 0
            total += inside.sum()
        assert total == (per_warp > 0).sum()
        idle = [bar for bar in told(svg) if bar.get("fill") == idle_colour]
        launched = side.plan.launch.n_blocks * side.plan.workers_per_block
        expected = launched - (per_warp > 0).sum()
        assert [bar.get("data-info") for bar in idle] == (
            [f"{expected:,} warps with no nonzero"] if expected else []
        )
        assert f"mean {per_warp[per_warp > 0].mean():.2f}" in charts.loads(state)


def test_loads_that_are_not_known(cora):
    state = State(cora, second="cusparse")
    text = charts.loads(state)
    assert "no known loads" in text
    assert {bar.get("fill") for bar in told(picture(text))} <= {drawing.BLUE, drawing.GREY}
    state.change(first="cusparse")
    assert "The library does not say" in charts.loads(state)


# --- the map of the blocks ----------------------------------------------------------------------


def cells_of_map(svg):
    """Colour, left and top of every cell."""
    found = []
    for path in parts(svg, "path"):
        if path.get("fill") in LOADS:
            corners = re.findall(r"M([\d.]+) ([\d.]+)h", path.get("d"))
            found += [(path.get("fill"), float(x), float(y)) for x, y in corners]
    return found


@pytest.mark.parametrize("name", ["cora", "hub", "wide", "no_edges"])
@pytest.mark.parametrize("first", ["accel_gcn", "merge_path", "fusegnn_gar"])
def test_the_map_has_a_cell_for_each_warp_with_work(name, first):
    graph = opened(name)
    state = State(graph, first=first, second="gnnadvisor", n_cols=40)
    svg = picture(charts.block_map(state))
    cells = cells_of_map(svg)
    sides = (state.first.loads, state.second.loads)
    most = max(int(each.load.max(initial=1)) for each in sides)
    for i, loads in enumerate(sides):
        top, height, left, width = 18 + 112 * i, 78, 60, 1032
        own = [cell for cell in cells if top <= cell[2] < top + height]
        assert len(own) == (loads.load > 0).sum()
        drawn = {}
        columns, lines = loads.load.shape
        for colour, x, y in own:
            column = round((x - left) / width * columns)
            drawn[column, round((y - top) / height * lines)] = LOADS.index(colour)
        for (column, warp), level in drawn.items():
            load = loads.load[column, warp]
            assert level == min(int(12 * np.log(load) / np.log(max(most, 2)) + 1e-9), 11)
    assert len(cells) == sum((each.load > 0).sum() for each in sides)
    words = " ".join("".join(each.itertext()) for each in parts(svg, "text"))
    for loads in sides:
        sampled = f", one of {loads.every} is shown" if loads.every > 1 else ""
        assert f": {loads.n_blocks:,} blocks across{sampled}, {loads.worker}s down" in words


def test_colours_of_loads_are_told_by_the_legend():
    levels = drawing.load_levels(4)
    assert levels.tolist() == [1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 4, 4]
    for most in (1, 2, 3, 12, 100, 10**6):
        levels = drawing.load_levels(most)
        assert levels[0] == 1
        assert (np.diff(levels) >= 0).all()
        assert levels[-1] <= max(most, 2)
    state = State(graph_of_degrees([1, 2, 3, 4], 4), second="cusparse", max_block_warps=1)
    svg = picture(charts.block_map(state))
    legend = {
        (float(each.get("x")), each.get("fill"))
        for each in parts(svg, "rect")
        if each.get("fill") in LOADS
    }
    labels = {
        "".join(each.itertext()): float(each.get("x"))
        for each in parts(svg, "text")
        if "".join(each.itertext()).isdigit()
    }
    by_load = [colour for colour, x, _ in sorted(cells_of_map(svg), key=lambda cell: cell[1])]
    assert len(set(by_load)) == 4
    for load, colour in enumerate(by_load, 1):
        assert (labels[str(load)], colour) in legend


@pytest.mark.parametrize("block", [0, 125, 251])
def test_the_cursor_is_at_the_block_and_a_click_there_finds_it(cora, block):
    state = State(cora, block=block)
    svg = picture(charts.block_map(state))
    (overlay,) = [each for each in parts(svg, "rect") if each.get("data-scale")]
    setting, first, end, last, step = json.loads(overlay.get("data-scale"))
    assert (setting, first, last, step) == ("block", 0, 251, 2)
    (cursor,) = [each for each in parts(svg, "path") if each.get("stroke") == "black"]
    at = float(re.match(r"M([\d.]+)", cursor.get("d"))[1])
    share = (at - float(overlay.get("x"))) / float(overlay.get("width"))
    assert int(first + share * (end - first)) == block  # as the script reckons


def test_a_second_strategy_too_large_to_plan_says_so(cora, monkeypatch):
    state = State(cora)
    monkeypatch.setattr(state_module, "MOST_WARPS", 2000)
    state.change(max_block_warps=11)
    assert state.second_loads is None
    assert "2,728 warps are too many to plan" in charts.block_map(state)
    assert len(cells_of_map(picture(charts.block_map(state)))) == (state.first.loads.load > 0).sum()
