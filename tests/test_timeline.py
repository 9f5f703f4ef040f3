"""Times of blocks: tables compared with hand-made ones and a simple scheduler, and plots."""

import io
import itertools

import matplotlib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import accelviz
from accelviz import plots
from accelviz.analysis.schedule import (
    IDLE_BLOCK,
    TimelineSummary,
    block_times,
    occupancy,
    predicted_timeline,
    sm_finishes,
    timeline_summary,
    with_nonzeros,
)
from accelviz.devices import gpu_state
from accelviz.errors import ArgumentError, DeviceUnavailable, PartitionError
from accelviz.plans import Buffers, Call, LaunchConfig, Layout, Plan, Provenance, Settings
from accelviz.strategies import find_strategy
from accelviz.workload import Workload
from tests.graphs import GRAPHS

matplotlib.use("agg")

COLUMNS = ["tile", "block", "sm", "slot", "start", "stop"]


def warps(*rows, **attrs):
    """Return a table like `trace_gpu`'s from rows of (tile, block, warp, sm, start, stop)."""
    names = ["tile", "block", "warp", "sm", "start_ns", "stop_ns"]
    table = pd.DataFrame(rows, columns=names, dtype=np.int64)
    table.attrs = {"sms": 2, "blocks_per_sm": 2, "step_ns": 1} | attrs
    return table


def timeline(*rows, **attrs):
    """Return a table like `block_times`'s from rows of (sm, start, stop)."""
    return block_times(warps(*((0, i, 0, *row) for i, row in enumerate(rows)), **attrs))


def plan_of(loads, tiles=(1, 1)):
    """Return a plan without a graph in which warp w of block b has `loads[b][w]` nonzeros."""
    loads = np.asarray(loads, dtype=np.int64).reshape(len(loads), -1)
    counts = loads.ravel()
    busy = np.flatnonzero(counts)
    block, warp = np.divmod(np.arange(counts.size), loads.shape[1])
    columns = (block, warp, np.zeros_like(block), np.cumsum(counts) - counts, counts)
    graph = GRAPHS["empty"]()

    def slice_workload(start, stop):
        inside = busy[(block[busy] >= start) & (block[busy] < stop)]
        return Workload(*(column[inside] for column in columns))

    launch = LaunchConfig((len(loads), *tiles), loads.shape[1])
    provenance = Provenance(find_strategy("graphblast"), graph.values, {"n_cols": 1}, Settings())
    return Plan(Layout(graph.pattern, slice_workload), (Call(launch),), Buffers(), provenance)


def plain_schedule(durations, sms, blocks_per_sm):
    """Assign each duration to the first free slot; slots alternate between the SMs."""
    free = [0] * (sms * blocks_per_sm)
    for duration in durations:
        slot = free.index(min(free))
        yield slot % sms, slot // sms, free[slot], free[slot] + duration
        free[slot] += duration


def many_blocks(n, sms, blocks_per_sm):
    """Return the table of a launch whose blocks take 1 to 999 ns."""
    rng = np.random.default_rng(n)
    blocks = predicted_timeline(plan_of(rng.integers(1, 1000, n)), sms, blocks_per_sm)
    blocks.attrs["unit"] = "ns"
    return blocks


def test_a_block_is_there_from_its_first_warp_to_its_last():
    table = warps(
        (1, 0, 0, 1, 7, 9),
        (0, 1, 1, 0, 3, 5),
        (0, 0, 0, 1, 2, 4),
        (0, 1, 0, 0, 1, 4),
        (0, 0, 1, 1, 0, 3),
    )
    blocks = block_times(table)
    assert blocks.columns.tolist() == COLUMNS
    assert set(blocks.dtypes) == {np.dtype(np.int64)}
    assert blocks.to_numpy().tolist() == [
        [0, 0, 1, 0, 0, 4],
        [0, 1, 0, 0, 1, 5],
        [1, 0, 1, 0, 7, 9],
    ]
    assert blocks.attrs == {"sms": 2, "blocks_per_sm": 2, "step_ns": 1, "unit": "ns"}


def test_a_block_has_the_first_slot_that_is_free_when_it_starts():
    blocks = timeline(
        (0, 0, 10), (0, 2, 4), (0, 3, 5), (0, 4, 6), (0, 5, 12), (0, 10, 11), (1, 1, 2), sms=2
    )
    assert blocks["slot"].tolist() == [0, 1, 2, 1, 2, 0, 0]
    assert timeline((0, 1, 5), (0, 1, 1))["slot"].tolist() == [
        0,
        0,
    ]  # shorter than the clock's step
    crowd = timeline(*((0, i, 1000) for i in range(100)))  # more than any SM holds
    assert crowd["slot"].tolist() == list(range(100))


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(0, 9)), min_size=1, max_size=60
    )
)
def test_slots_never_overlap_and_are_as_few_as_can_be(records):
    blocks = timeline(*((sm, start, start + length) for sm, start, length in records), sms=4)
    for _, lane in blocks.groupby(["sm", "slot"]):
        spans = sorted(zip(lane["start"], lane["stop"], strict=True))
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
    for _, of_sm in blocks.groupby("sm"):
        at_once = [
            1 + ((of_sm["start"] <= moment) & (moment < of_sm["stop"])).drop(i).sum()
            for i, moment in of_sm["start"].items()
        ]
        assert of_sm["slot"].max() + 1 <= max(at_once)


def test_sm_numbers_with_gaps_are_counted_anew():
    blocks = timeline((140, 0, 1), (3, 0, 2), (140, 1, 4), sms=2)
    assert blocks["sm"].tolist() == [1, 0, 1]
    assert block_times(warps((0, 0, 0, 5, 0, 1), sms=0)).attrs["sms"] == 6


def test_a_summary_by_hand():
    # SM 0 is busy 0-4 and 6-10, SM 1 0-4 and 2-5, SM 2 0-8: 8 + 5 + 8 of 4 x 10.
    blocks = timeline((0, 0, 4), (1, 0, 4), (2, 0, 8), (0, 6, 10), (1, 2, 5), sms=4)
    assert sm_finishes(blocks).tolist() == [10, 5, 8, 0]
    summary = timeline_summary(blocks)
    assert summary == TimelineSummary(10, 21 / 40, 10, 40 / 23, "ns")
    assert summary.tail_share == 1
    blocks = blocks.assign(start=blocks["start"] + 100, stop=blocks["stop"] + 100)
    blocks.attrs["sms"] = 3
    summary = timeline_summary(blocks)
    assert summary == TimelineSummary(10, 21 / 30, 5, 30 / 23, "ns")
    assert summary.tail_share == 0.5


def test_the_summary_of_perfect_balance_and_of_nothing():
    even = timeline((0, 0, 5), (1, 0, 5), (0, 5, 9), (1, 5, 9))
    assert timeline_summary(even) == TimelineSummary(9, 1.0, 0, 1.0, "ns")
    for nothing in (timeline(), timeline((0, 3, 3))):
        assert timeline_summary(nothing) == TimelineSummary(0, 1.0, 0, 1.0, "ns")
        assert timeline_summary(nothing).tail_share == 0


def test_what_is_wrong_with_a_table_is_named():
    blocks = timeline((1, 0, 5))
    blocks.attrs["sms"] = 1
    with pytest.raises(ArgumentError, match="is 1, but there is an SM 1"):
        timeline_summary(blocks)
    blocks.attrs = {}
    with pytest.raises(ArgumentError, match="'unit'.*is None.*block_times"):
        timeline_summary(blocks)


def test_occupancy_by_hand():
    blocks = timeline((0, 0, 8), (0, 1, 4), (1, 2, 3), (1, 2, 3))
    assert occupancy(blocks, 4).tolist() == [[1.5, 2, 1, 1], [0, 1, 0, 0]]
    assert occupancy(blocks, 1).tolist() == [[11 / 8], [2 / 8]]
    assert occupancy(timeline(), 3).tolist() == [[0] * 3] * 2


def test_occupancy_holds_all_of_the_blocks_time():
    blocks = many_blocks(20_000, 7, 5)
    span = blocks["stop"].max()
    for bins in (1, 13, 800):
        held = occupancy(blocks, bins)
        assert held.sum() * span / bins == pytest.approx((blocks["stop"] - blocks["start"]).sum())
        assert 0 <= held.min() <= held.max() <= 5 + 1e-9


def test_a_prediction_by_hand():
    # Blocks take 3, 1, 1 (without work), 5; two slots: block 2 follows 1, block 3 follows 2.
    plan = plan_of([[3, 1], [0, 1], [0, 0], [5, 5]])
    blocks = predicted_timeline(plan, 2, 1)
    assert blocks.columns.tolist() == COLUMNS
    assert set(blocks.dtypes) == {np.dtype(np.int64)}
    assert blocks["sm"].tolist() == [0, 1, 1, 1]
    assert blocks["start"].tolist() == [0, 0, 1, 2]
    assert blocks["stop"].tolist() == [3, 1, 2, 7]
    assert blocks.attrs == {"sms": 2, "blocks_per_sm": 1, "unit": "nonzeros"}
    assert timeline_summary(blocks) == TimelineSummary(7, 10 / 14, 4, 14 / 10, "nonzeros")
    assert with_nonzeros(blocks, plan)["nonzeros"].tolist() == [4, 1, 0, 10]
    assert with_nonzeros(blocks, plan)["busiest"].tolist() == [3, 1, 0, 5]
    assert with_nonzeros(blocks, plan).attrs == blocks.attrs
    one_sm = predicted_timeline(plan, 1, 2)
    assert one_sm["slot"].tolist() == [0, 1, 1, 1]
    assert one_sm["sm"].tolist() == [0] * 4


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=40),
    st.integers(1, 3),
    st.integers(1, 2),
    st.integers(1, 5),
    st.integers(1, 4),
)
def test_a_prediction_against_a_plain_scheduler(loads, y, z, sms, blocks_per_sm):
    plan = plan_of(loads, (y, z))
    blocks = predicted_timeline(plan, sms, blocks_per_sm)
    durations = [max(load, IDLE_BLOCK) for load in loads] * y * z
    expected = list(plain_schedule(durations, sms, blocks_per_sm))
    assert blocks[["sm", "slot", "start", "stop"]].to_numpy().tolist() == list(map(list, expected))
    assert blocks["tile"].tolist() == [tile for tile in range(y * z) for _ in loads]
    assert blocks["block"].tolist() == list(range(len(loads))) * y * z


@pytest.mark.sample(4)
@pytest.mark.parametrize("strategy", accelviz.strategies())
@pytest.mark.parametrize("name", ["empty", "isolated_ends", "hub", "facebook"])
def test_a_prediction_of_every_strategy(strategy, name):
    plan = accelviz.plan(GRAPHS[name](), strategy, n_cols=100)
    if not plan.has_workload:
        with pytest.raises(PartitionError, match="does not say which warp"):
            predicted_timeline(plan, 4, 2)
        return
    blocks = predicted_timeline(plan, 4, 2)
    columns, rows, layers = plan.launch.grid
    assert len(blocks) == columns * rows * layers
    work = plan.workload()
    per_warp = np.zeros((columns, plan.launch.warps_per_block), np.int64)
    if len(work):
        some = plan.hardware.steps_of_nonzeros(plan.hardware.of_workload(work))
        per_warp[work.block[0] : work.block[0] + len(some)] = some
    took = (blocks["stop"] - blocks["start"]).to_numpy().reshape(rows * layers, columns)
    np.testing.assert_array_equal(
        took, np.broadcast_to(np.maximum(per_warp.max(axis=1, initial=0), IDLE_BLOCK), took.shape)
    )
    nonzeros = with_nonzeros(blocks, plan)["nonzeros"]
    products = 100 if strategy == "unfused_gas" else 1  # of a nonzero: one for each column
    assert nonzeros.sum() == rows * layers * plan.pattern.nnz * products
    timeline_summary(blocks)
    plt.close(plots.sm_timeline(blocks).figure)


def test_a_prediction_needs_a_machine():
    for sms, blocks_per_sm, name in ((0, 1, "sms"), (1, 0, "blocks_per_sm")):
        with pytest.raises(ArgumentError, match=f"{name}: got 0"):
            predicted_timeline(plan_of([1]), sms, blocks_per_sm)


def test_a_prediction_taken_for_a_measurement_has_the_same_slots():
    """The packing needs no more slots than the scheduler, and has the same summary."""
    predicted = predicted_timeline(accelviz.plan("pubmed", "graphblast"), 12, 8)
    rows = predicted.rename(columns={"start": "start_ns", "stop": "stop_ns"}).drop(columns="slot")
    packed = block_times(rows.sample(frac=1, random_state=0))
    assert packed["slot"].max() < 8
    columns = ["tile", "block", "sm", "start", "stop"]
    pd.testing.assert_frame_equal(packed[columns], predicted[columns])
    ours, theirs = timeline_summary(packed), timeline_summary(predicted)
    assert (ours.total, ours.busy_share, ours.tail) == (
        theirs.total,
        theirs.busy_share,
        theirs.tail,
    )


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


def test_one_block_is_one_bar(ax):
    plots.sm_timeline(timeline((0, 500, 2500), sms=1), ax=ax, title="alone")
    (bars,) = ax.collections
    (bar,) = bars.get_paths()
    assert bar.get_extents().intervalx.tolist() == [0, 2]
    assert bars.get_array().tolist() == [2]
    assert ax.get_xlim() == (0, 2)
    assert ax.get_ylim() == (0.5, -0.5)
    assert ax.get_xlabel() == "time (µs)"
    assert ax.get_title(loc="left") == "alone"
    assert ax.get_title(loc="right") == "SMs busy 100% of the time, tail 0%"
    assert not ax.patches  # no tail
    ax.figure.savefig(io.BytesIO())


def test_300_blocks_are_300_bars_in_their_lines_and_the_tail_is_shaded(ax):
    blocks = many_blocks(300, 6, 3)
    summary = timeline_summary(blocks)
    plots.sm_timeline(blocks, ax=ax)
    (bars,) = ax.collections
    corners = [path.get_extents() for path in bars.get_paths()]
    assert len(corners) == 300
    np.testing.assert_allclose([box.x0 for box in corners], blocks["start"] / 1000)
    np.testing.assert_allclose([box.x1 for box in corners], blocks["stop"] / 1000)
    middle = np.array([(box.y0 + box.y1) / 2 for box in corners])
    line = np.argsort(np.argsort(-sm_finishes(blocks), kind="stable"))
    assert np.round(middle).tolist() == line[blocks["sm"]].tolist()
    np.testing.assert_array_equal(np.argsort(np.unique(middle.round(6))), np.arange(18))
    (tail,) = ax.patches
    assert tail.get_x() == pytest.approx((summary.total - summary.tail) / 1000)
    assert tail.get_x() + tail.get_width() == pytest.approx(summary.total / 1000)
    assert ax.get_ylim() == (5.5, -0.5)
    assert f"tail {summary.tail_share:.0%}" in ax.get_title(loc="right")
    assert ax.figure.axes[1].get_ylabel() == "µs a block took"
    ax.figure.savefig(io.BytesIO())


def test_the_last_sm_to_end_is_on_top(ax):
    blocks = timeline((0, 0, 5), (1, 0, 9), (2, 0, 7), sms=4)
    plots.sm_timeline(blocks, ax=ax)
    middle = [path.get_extents().intervaly.mean() for path in ax.collections[0].get_paths()]
    assert np.round(middle).tolist() == [2, 0, 1]
    assert "last to end on top" in ax.get_ylabel()
    assert [text.get_text() for text in ax.texts] == ["tail: no work is left for these SMs"]


def test_200_000_blocks_are_an_image_of_how_many_an_sm_holds(ax):
    blocks = many_blocks(200_000, 132, 16)
    plots.sm_timeline(blocks, ax=ax)
    assert not ax.collections
    (image,) = ax.images
    held = image.get_array()
    assert held.shape == (132, 800)
    line = np.argsort(-sm_finishes(blocks), kind="stable")
    np.testing.assert_array_equal(held.filled(0), occupancy(blocks, 800)[line])
    assert list(image.get_extent()) == [0, blocks["stop"].max() / 1000, 131.5, -0.5]
    assert image.get_clim() == (0, 16)
    assert "200,000 blocks, not shown one by one" in ax.get_xlabel()
    assert ax.figure.axes[1].get_ylabel() == "blocks an SM holds (at most 16)"
    ax.figure.savefig(io.BytesIO())


def test_bars_thinner_than_a_pixel_are_an_image_too():
    few = many_blocks(300, 132, 8)
    for blocks, bars in ((few, True), (many_blocks(3000, 132, 8), False)):
        ax = plots.sm_timeline(blocks)
        assert (len(ax.collections), len(ax.images)) == (bars, not bars)
        plt.close(ax.figure)
    ax = plots.sm_timeline(few, bars=False)
    assert len(ax.images) == 1
    plt.close(ax.figure)


def test_a_picture_of_no_block(ax):
    plots.sm_timeline(timeline(), ax=ax)
    assert [text.get_text() for text in ax.texts] == ["no block"]
    ax.figure.savefig(io.BytesIO())


@pytest.mark.parametrize("strategy", ["accel_gcn", "graphblast"])
def test_a_comparison_says_the_numbers_of_both(strategy):
    plan = accelviz.plan("cora", strategy)
    predicted = predicted_timeline(plan, 4, 2)
    rng = np.random.default_rng(0)
    stop = predicted["stop"] * 40 + rng.integers(0, 39, len(predicted))
    measured = predicted.assign(start=predicted["start"] * 40, stop=stop)
    measured.attrs = predicted.attrs | {"unit": "ns"}
    titles = {"what the workload predicted": predicted, "what happened": measured}
    axes = plots.sm_timelines(titles)
    assert axes[1].get_xlabel() == "time (µs)"
    page = axes[0].figure
    for (title, blocks), ax, scale, unit in zip(
        titles.items(), axes, (1, 1000), ("nonzeros", "µs"), strict=True
    ):
        assert ax.get_title(loc="left") == title
        summary = timeline_summary(blocks)
        assert ax.get_xlim() == (0, summary.total / scale)
        assert len(ax.collections[0].get_paths()) == len(blocks)
        shares = f"busy {summary.busy_share:.0%} of the time, tail {summary.tail_share:.0%}"
        assert ax.get_title(loc="right") == f"SMs {shares}"
        times = f"{summary.tail / scale:,.4g} of {summary.total / scale:,.4g} {unit}"
        assert f"{title}: SMs {shares} ({times})" in page.alt
    data, metadata = page._repr_mimebundle_()
    assert data["image/png"].startswith(b"\x89PNG")
    assert metadata["image/png"]["alt"] == page.alt


def test_without_a_gpu_tracing_says_what_to_do():
    if gpu_state().ready:
        pytest.skip("there is a GPU")
    plan = accelviz.plan("cora", "accel_gcn")
    with pytest.raises(DeviceUnavailable, match=r"trace_gpu: .* What to do: \w+"):
        accelviz.trace_gpu(plan, np.zeros((plan.pattern.shape[1], 64), np.float32))


def test_block_durations_fit_a_line_for_each_timeline():
    blocks = pd.DataFrame({"busiest": [1, 2, 4], "start": [0, 0, 64], "stop": [1500, 2000, 3064]})
    ax = plots.block_durations({"one": blocks, "two": blocks.assign(stop=blocks["stop"] + 1000)})
    said = [text.get_text() for text in ax.get_legend().get_texts()]
    assert said == [
        "one: 1.00 µs and 0.50 µs for each nonzero",
        "two: 2.00 µs and 0.50 µs for each nonzero",
    ]


def test_timelines_one_above_the_other_share_their_scales():
    short = predicted_timeline(plan_of([[3, 1], [0, 1], [5, 5]]), 2, 1)
    long = predicted_timeline(plan_of([[9, 1], [1, 1], [5, 5]]), 2, 1)
    axes = plots.sm_timelines({"short": short, "long": long})
    assert [ax.get_xlim() for ax in axes] == [(0, 9), (0, 9)]
    assert {ax.collections[-1].norm.vmax for ax in axes} == {9}
    with pytest.raises(ArgumentError, match="no timeline"):
        plots.sm_timelines({})
