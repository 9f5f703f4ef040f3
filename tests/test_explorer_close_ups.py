"""The explorer's views of one block, one row and one setting: their numbers, counted otherwise."""

import html
import json
import re
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import accelviz
from accelviz.analysis.traffic import requests
from accelviz.partition.block_level import BlockSetting, unpack
from accelviz.plans import Parameter
from accelviz.widgets import charts, clocks, close_ups, drawing
from accelviz.widgets.state import State
from accelviz.workload import nonzeros_per_warp
from tests.graphs import MADE, graph_of_degrees
from tests.inherited import SPMM_KERNELS
from tests.pages import (
    WARP_LEVEL,
    needs_compiler,
    number,
    opened,
    parts,
    picture,
    table,
    told,
)
from tests.test_lookup import Dealt


@pytest.fixture(scope="module")
def cora():
    return accelviz.load_graph("cora")


# --- one block ----------------------------------------------------------------------------------


@pytest.mark.parametrize("label", [*SPMM_KERNELS, WARP_LEVEL])
@pytest.mark.parametrize("name", ["cora", "wide", "isolated_ends"])
def test_a_block_has_a_bar_for_each_run(name, label):
    graph = opened(name)
    state = State(graph, first=label, n_cols=100, max_block_warps=6)
    plan = state.first.plan
    for block in {0, plan.launch.n_blocks // 3, plan.launch.n_blocks - 1}:
        state.change(block=block)
        svg = picture(close_ups.block(state))
        runs = plan.workload(block, block + 1).to_frame()
        bars = told(svg)
        assert len(bars) == len(runs)
        marked, colours = 0, {}
        for bar, run in zip(bars, runs.itertuples(), strict=True):
            row = int(plan.output_rows[run.row])
            said = f"{plan.strategy.worker} {run.warp}: row {row} "
            if run.nz_count:
                last = run.nz_start + run.nz_count - 1
                said += f"(degree {graph.degrees[row]}), nonzeros {run.nz_start:,} to {last:,}"
            else:
                said += "has no nonzero, only its zeros are written"
            assert bar.get("data-info") == bar.get("aria-label") == said
            assert json.loads(bar.get("data-pick")) == {"row": row}
            assert bar.get("data-key") == f"row {row}"
            assert bar.get("tabindex") == "0"
            if bar.get("stroke"):
                marked += 1
                assert row == state.settings.row
            assert colours.setdefault(row, bar.get("fill")) == bar.get("fill")
        followed = sum(plan.output_rows[runs.row] == state.settings.row)
        assert marked == (followed if len(set(runs.row)) > 1 else 0)
        lengths = nonzeros_per_warp(state.work, plan.workers_per_block)[0]
        right = {}
        for bar, run in zip(bars, runs.itertuples(), strict=True):
            reached = float(bar.get("x")) + float(bar.get("width")) + 0.5
            right[run.warp] = max(right.get(run.warp, 0), reached)
        if lengths.max() > 1:
            for warp, reached in right.items():
                assert reached == pytest.approx(40 + 430 * lengths[warp] / lengths.max(), abs=2)
        lines = [each for each in parts(svg, "rect") if each.get("fill") == drawing.IDLE]
        assert len(lines) == min(plan.workers_per_block, 32)


def test_what_is_left_out_of_a_block_is_counted():
    graph = graph_of_degrees([1] * 2000, 4)
    state = State(graph, first="row_thread")
    plan = state.first.plan
    runs = len(state.work)
    assert runs == 32 * plan.workers_per_block
    groups = State(graph, first="fusegnn_gas", n_cols=1)
    text = close_ups.block(groups)
    assert "224 more thread groups are not shown" in text
    assert len(told(picture(text))) == 32


def test_a_block_of_very_many_runs(monkeypatch, cora):
    monkeypatch.setattr(close_ups, "_RUNS", 20)
    state = State(cora, first="row_thread")
    text = close_ups.block(state)
    assert f"{len(state.work) - 20:,} more runs are not shown" in text
    assert len(told(picture(text))) == 20


# --- metadata -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "setting"), [("cora", {}), ("hub", {"max_block_warps": 3})])
def test_an_int4_is_shown_bit_by_bit(name, setting):
    graph = opened(name)
    state = State(graph, **setting)
    plan = state.first.plan
    bound = BlockSetting(**setting)
    fields = unpack(plan.metadata, bound)
    for block in {0, plan.launch.n_blocks // 2, state.settings.block}:
        state.change(block=block)
        text = close_ups.metadata(state)
        (_, degree, row, loc, info) = table(text)
        words = plan.metadata[block].view(np.uint32).tolist()
        for line, word in zip((degree, row, loc, info), words, strict=True):
            assert int(line[1], 16) == word
            assert len(line[1]) == 10
            assert int(line[2].replace(" ", ""), 2) == word
            assert len(line[2].replace(" ", "")) == 32
        assert degree[3] == f"degree: {fields.degree[block]:,}"
        assert row[3] == f"first row: {fields.first_row[block]:,}"
        assert loc[3] == f"first nonzero (loc): {fields.first_nz[block]:,}"
        cut = fields.degree[block] > bound.deg_bound
        if cut:
            assert info[3] == f"info: nonzeros of this part: {fields.row_nzs[block]:,}"
            assert f"more than the {bound.deg_bound:,} that a block takes" in text
        else:
            wanted = [fields.warp_nzs[block], fields.rows[block]]
            assert info[3] == "info: nonzeros of a warp: {}, info: rows: {}".format(*wanted)
            marked = re.search(r"<mark>([01 ]+)</mark>([01 ]+)<", text).groups()
            assert [int(each.replace(" ", ""), 2) for each in marked] == wanted
        (line,) = plan.strategy.metadata_lines(plan, block)
        assert html.escape(line.meaning) in text
        assert "16 bytes for the block" in text
    assert cut == (name == "hub")


@pytest.mark.parametrize(
    ("label", "settings"),
    [
        (WARP_LEVEL, {}),
        ("gnnadvisor", {}),
        ("merge_path", {}),
    ],
)
def test_metadata_of_warps_is_shown_word_by_word(cora, label, settings):
    state = State(cora, first=label, block=7, **settings)
    plan = state.first.plan
    lines = plan.metadata.reshape(len(plan.metadata), -1)
    header, *rows = table(close_ups.metadata(state))
    names = {
        "gnnadvisor": ["row", "slot and flags"],
        "merge_path": ["first row"],
        WARP_LEVEL: ["row", "first nonzero", "length", "padding"],
    }
    assert header == ["warp", *names[label]]
    assert len(rows) == min(plan.workers_per_block, 8)
    for warp, row in enumerate(rows):
        assert row[0] == str(warp)
        own = lines[7 * plan.workers_per_block + warp]
        assert [int(cell.split()[1]) for cell in row[1:]] == own.tolist()
        words = own.view(np.uint32).tolist()
        assert [int(cell.split()[0], 16) for cell in row[1:]] == words
    text = close_ups.metadata(state)
    assert f"{lines.shape[1] * 4} bytes for each warp" in text
    assert ("more entries" in text) == (plan.workers_per_block > 8)


def test_where_there_is_no_metadata(cora):
    assert "graphblast has no metadata" in close_ups.metadata(State(cora, first="graphblast"))
    assert "The library does not say" in close_ups.metadata(State(cora, first="cusparse"))
    for name in ("empty", "no_edges"):
        for label in ("accel_gcn", "gnnadvisor", "fusegnn_gas"):
            text = close_ups.metadata(State(MADE[name](), first=label))
            assert text == charts.note("There is no block: no row has a nonzero.")


def test_a_warp_that_is_a_block_has_its_line_bit_by_bit(cora):
    state = State(cora, first=WARP_LEVEL, block=7, max_block_warps=1)
    _, *rows = table(close_ups.metadata(state))
    names = ("row", "first nonzero", "length", "padding")
    words = state.first.plan.metadata[7].tolist()
    wanted = [f"{name}: {word:,}" for name, word in zip(names, words, strict=True)]
    assert [row[3] for row in rows] == wanted
    assert [int(row[2].replace(" ", ""), 2) for row in rows] == words


def test_metadata_of_lane_groups_are_four_words(cora):
    state = State(cora, first="lane_groups", block=7)
    _, *rows = table(close_ups.metadata(state))
    assert [int(row[1], 16) for row in rows] == state.first.plan.metadata[7].tolist()
    assert rows[1][3].startswith("first row: ")


class Odd(Dealt):
    """Has metadata of its own, a line a block, and parameters that are called as Accel-GCN's."""

    name = "odd"
    parameters: ClassVar = {
        "max_block_warps": Parameter(4, most=32, tries=(2, 4)),
        "max_warp_nzs": Parameter(2, most=9, tries=(2, 3)),
    }

    def build(self, graph, n_cols, *, max_block_warps, max_warp_nzs):
        whole = accelviz.plan(graph, "graphblast", n_cols, block_warps=max_block_warps)
        metadata = np.arange(2 * whole.launch.n_blocks, dtype=np.int32).reshape(-1, 2)
        return replace(whole, metadata=metadata, parameters={})


def test_metadata_of_ones_own_is_no_int4(cora):
    state = State(cora, [Odd()], max_block_warps=3, block=5)
    header, *rows = table(close_ups.metadata(state))
    assert header == ["word", "hex", "bits", "says"]
    assert [(row[1], row[3]) for row in rows] == [("0x0000000a", ""), ("0x0000000b", "")]
    assert [int(row[2].replace(" ", ""), 2) for row in rows] == [10, 11]


# --- one row ------------------------------------------------------------------------------------


def steps_of_row(state):
    _, *rows = table(close_ups.row(state))
    return dict(rows)


@pytest.mark.parametrize("label", ["accel_gcn", WARP_LEVEL, "merge_path", "fusegnn_gar"])
def test_a_row_is_followed_to_memory(label):
    graph = MADE["wide"]()
    state = State(graph, first=label, n_cols=33, max_block_warps=2, max_warp_nzs=8)
    plan = state.first.plan
    whole = plan.workload().to_frame()
    for row in (int(graph.degrees.argmax()), *np.flatnonzero(graph.degrees)[[0, 7, -1]].tolist()):
        state.change(row=row)
        said = steps_of_row(state)
        degree = int(graph.degrees[row])
        assert said["row"] == f"{row:,} of {graph.n_rows:,}, degree {degree:,}"
        place = row
        if label == "accel_gcn":
            place = plan.permutation.order.tolist().index(row)
            assert said["place"] == f"row {place:,} of the matrix that the kernel walks"
        else:
            assert said["place"] == "the kernel walks the rows as they are"
        own = whole[whole["row"] == place]
        blocks = own["block"].unique()
        if len(blocks) > 1:
            shown_block = f"; {state.settings.block:,} is shown"
            assert said["block"] == f"{blocks[0]:,} to {blocks[-1]:,}{shown_block}"
        elif len(blocks):
            assert said["block"] == str(blocks[0])
        here = own[own["block"] == state.settings.block]["warp"].unique().tolist()
        name = "thread group" if label == "fusegnn_gar" else "warp"
        assert re.findall(r"\d+", said[name]) == [
            str(each) for each in (here if len(here) < 3 else [here[0], here[-1]])
        ]
        begin = int(own["nz_start"].min())
        assert said["nonzeros"] == f"{begin:,} to {begin + degree - 1:,}"
        columns = graph.column_indices[slice(*graph.row_pointers[row : row + 2])]
        listed = [number(each) for each in re.findall(r"[\d,]*\d", said["columns"])]
        assert listed == columns[:12].tolist()
        assert said["columns"].endswith(", ...") == (degree > 12)
        first = int(columns[0]) * 33 * 4
        sectors = len({byte // 32 for byte in range(first, first + 33 * 4)})
        assert said["reads"] == (
            f"row {columns[0]:,} of X first: bytes {first:,} to {first + 131:,}, "
            f"{sectors} sectors of 32"
        )
        assert said["in all"] == f"{degree:,} rows of X, {degree * 132:,} bytes"


def test_a_row_without_a_nonzero():
    state = State(MADE["isolated_ends"](), row=0)
    said = steps_of_row(state)
    assert said["block"] == "none: Y is cleared beforehand"
    assert (said["warp"], said["nonzeros"]) == ("none", "none")
    assert "columns" not in said
    state.change(first="graphblast")
    assert steps_of_row(state)["block"] == "0"
    assert "There is no row" in close_ups.row(State(MADE["empty"]()))
    assert "The library does not say" in close_ups.row(State(MADE["wide"](), first="cusparse"))


def test_a_row_in_blocks_that_are_apart(cora):
    row = int(cora.degrees[:100].argmax()) // 5 * 5
    state = State(cora, [Dealt()], row=row)
    first, last = 0, 3
    assert (row % 5, (7 * row + 3) % 5) == (first, last)
    assert cora.degrees[row] > 1
    assert steps_of_row(state)["block"] == f"2 from {first} to {last}; {first} is shown"
    state.change(max_block_warps=3)
    assert state.settings.block == first


# --- times --------------------------------------------------------------------------------------


def test_times_over_a_slider_where_they_were_recorded(cora):
    state = State(cora)
    text = clocks.times(state)
    svg = picture(text)
    points = told(svg, "circle")
    curve = state.recorded_curve(state.first)
    assert [json.loads(each.get("data-pick"))["max_block_warps"] for each in points] == list(curve)
    heights = {}
    for each, (value, time) in zip(points, curve.items(), strict=True):
        guess = state.timing(state.first, max_block_warps=value).predicted
        assert each.get("data-info") == (
            f"max_block_warps {value}: recorded {time:,.1f} µs, {guess:,.1f} by warp time"
        )
        state.change(max_block_warps=value)
        assert state.timing(state.first).recorded == time
        assert state.timing(state.first).predicted == pytest.approx(guess)
        heights[time] = float(each.get("cy"))
    assert sorted(heights, key=heights.get) == sorted(heights, reverse=True)
    chosen = [each for each in points if each.get("fill") == "black"]
    assert [each.get("data-info").split()[1] for each in chosen] == ["12:"]
    assert state.timing(state.first).hardware in text


def test_times_as_bars(cora):
    state = State(cora, first="graphblast", second="gnnadvisor", n_cols=32)
    text = clocks.times(state)
    words = ["".join(each.itertext()) for each in parts(picture(text), "text")]
    first, second = (state.timing(side) for side in (state.first, state.second))
    assert f"{first.recorded:,.1f} µs" in words
    assert f"{second.recorded:,.1f} µs" in words
    assert f"{first.limit:,.1f} µs" in words
    slots = [
        accelviz.plan(cora, each, 32).statistics.slots for each in ("graphblast", "gnnadvisor")
    ]
    said = f"{slots[0] / slots[1]:.2f} times as long as the second"
    assert said in text
    assert f"it took {first.recorded / second.recorded:.2f} times as long" in text
    assert first.hardware in text


def test_times_that_were_not_recorded(cora):
    unknown = State(MADE["wide"]())
    assert "Nothing was recorded for made with 64 columns" in clocks.times(unknown)
    assert "Nothing was recorded for cora with 17 columns" in clocks.times(State(cora, n_cols=17))
    state = State(cora, max_warp_nzs=3, second="cusparse")
    text = clocks.times(state)
    found = state.timing(state.first)
    assert found.recorded is None
    assert f"{found.predicted:,.1f} µs" in text
    assert f"{found.basis:,.1f} µs, times the ratio" in text


# --- a trace ------------------------------------------------------------------------------------


def many(count, thing, plural="s"):
    return f"{count} {thing}{'' if count == 1 else plural}"


@needs_compiler
@pytest.mark.parametrize("label", ["accel_gcn", "fusegnn_gas"])
def test_a_trace_shows_its_lanes_and_sectors(label):
    state = State(MADE["wide"](), first=label, n_cols=40, row=20)
    assert "Press “Trace this block”" in close_ups.trace(state)
    traced = state.trace()
    counted = requests(traced.table)
    kinds = set()
    for step, request in enumerate(counted.itertuples()):
        kind = (request.space, request.kind, request.lanes, request.sectors)
        if kind in kinds:
            continue
        kinds.add(kind)
        traced.go(step)
        text = html.unescape(close_ups.trace(state))
        assert (
            f"request {step + 1:,} of {len(counted):,}: warp {request.warp}, {request.kind} of "
            f"{request.array} ({request.file}:{request.line})"
        ) in text
        cost = (
            f"{many(request.wavefronts, 'pass', 'es')} through the banks of shared memory"
            if request.space == "shared"
            else f"{many(request.sectors, 'sector')} of 32 bytes"
        )
        assert f"{many(request.lanes, 'lane')} in need of {request.bytes} bytes: {cost}" in text
        svg = picture(close_ups.trace(state))
        lanes = [each for each in told(svg) if each.get("data-key")]
        assert [each.get("data-key") for each in lanes] == [f"lane {i}" for i in range(32)]
        own = traced.lanes.set_index("lane")
        for lane, each in enumerate(lanes):
            said = f"lane {lane} takes no part"
            if lane in own.index:
                access = own.loc[lane]
                last = access["offset"] + access["bytes"] - 1
                said = (
                    f"lane {lane}: {access['array']}[{access['index']}], "
                    f"bytes {access['offset']:,} to {last:,}"
                )
            assert each.get("data-info") == said
        lines = [each for each in parts(svg, "path") if each.get("data-key")]
        assert {each.get("data-key") for each in lines} == {f"lane {i}" for i in own.index}
        if request.space == "global":
            boxes = [each.get("data-info") for each in told(svg) if not each.get("data-key")]
            sectors = sorted({offset // 32 for offset in own["offset"]})
            assert len(sectors) == request.sectors
            assert boxes == [
                f"sector {i}: bytes {32 * each:,} to {32 * each + 31:,}"
                for i, each in enumerate(sectors)
            ]
    assert len(kinds) > 3


def test_a_block_that_touches_no_memory(cora):
    state = State(cora)
    state.trace(lambda plan, X, block: pd.DataFrame({"step": np.array([], dtype=int)}))
    assert "This block touches no memory" in close_ups.trace(state)
