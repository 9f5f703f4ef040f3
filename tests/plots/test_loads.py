"""Pictures of load balance: histograms and heat maps."""

import io

import numpy as np
import pytest

import accelviz
from accelviz import plots
from accelviz.analysis.balance import SINGLE_BINS, LoadMap, load_bins, plan_load_map
from accelviz.errors import ArgumentError
from accelviz.plots.loads import warp_loads
from accelviz.workload import nonzeros_per_warp
from tests.graphs import GRAPHS, graph_of_degrees
from tests.plots.pictures import read_texts, read_title

STRATEGIES = ("accel_gcn", "gnnadvisor", "graphblast", "merge_path", "row_thread")


@pytest.fixture(scope="module")
def plans():
    return {name: accelviz.plan("cora", name, n_cols=64) for name in STRATEGIES}


def bars(ax):
    """Place and height of each bar, the strip of time above left out."""
    drawn = [bar for container in ax.containers for bar in container]
    return [(round(bar.get_x() + bar.get_width() / 2), bar.get_height()) for bar in drawn]


@pytest.mark.parametrize("largest", [1, 2, 40, 41, 63, 64, 65, 96, 97, 1000, 3371])
def test_bins_hold_every_number_once_and_end_with_the_largest(largest):
    uppers = load_bins(largest)
    assert (np.diff(uppers) > 0).all()
    assert uppers[-1] >= largest
    assert uppers.size == 1 or uppers[-2] < largest
    if largest <= SINGLE_BINS:
        assert uppers.tolist() == list(range(1, largest + 1))
    else:
        assert uppers[:9].tolist() == [1, 2, 3, 4, 6, 8, 12, 16, 24]


@pytest.mark.parametrize("name", STRATEGIES)
def test_bars_count_the_warps_of_the_workload(plans, name):
    plan = plans[name]
    (ax,) = warp_loads({name: plan})
    per_warp = nonzeros_per_warp(plan.workload(), plan.workers_per_block).ravel()
    idle = plan.statistics.workers - (per_warp > 0).sum()
    drawn = bars(ax)
    assert [height for middle, height in drawn if not middle] == ([idle] if idle else [])
    bounds = [0, *load_bins(int(per_warp.max()))]
    inside = [(middle, height) for middle, height in drawn if middle]
    for middle, height in inside:
        low, high = bounds[middle - 1 : middle + 1]
        assert height == ((per_warp > low) & (per_warp <= high)).sum()
    assert sum(height for _, height in inside) == (per_warp > 0).sum()
    texts = " ".join(text.get_text() for text in ax.texts)
    busy = per_warp[per_warp > 0]
    assert f"busiest {busy.max():,}: {busy.max() / busy.mean():,.1f} times the mean" in texts
    assert f"mean {busy.mean():,.1f}" in texts
    assert f"{plan.statistics.workers:,} {plan.worker}s" in ax.get_title(loc="right")


def test_histograms_share_axes_and_state_the_idle_share(plans):
    axes = warp_loads(plans)
    assert len({ax.get_xlim() for ax in axes}) == len({ax.get_ylim() for ax in axes}) == 1
    texts = [text.get_text() for text in axes[-1].get_xticklabels()]
    assert {"0", "1", "9 to 12", "33 to 48"} <= set(texts)
    for ax, (name, plan) in zip(axes, plans.items(), strict=True):
        share = plan.statistics.idle_share
        number = f"{share:.0%}" if share > 0.1 else f"{share:.1%}"
        assert read_title(ax) == f"{name}: {number} of warp time is idle"
        strip = {patch.get_label(): patch.get_width() for patch in ax.patches[-2:]}
        assert strip == pytest.approx({"working": 1 - share, "idle": share})
        assert f"{name}: {number} of warp time" in ax.figure.alt
    assert len({ax.containers[0][-1].get_facecolor() for ax in axes}) == len(axes)


def test_a_few_numbers_have_a_bar_each():
    graph = graph_of_degrees([1, 1, 1, 3, 3, 3, 3])
    (ax,) = warp_loads({"made": accelviz.plan(graph, "graphblast", block_warps=9)})
    assert ax.get_xscale() == ax.get_yscale() == "linear"
    assert sorted(bars(ax)) == [(0, 2), (1, 3), (3, 4)]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0", "1", "2", "3"]
    assert "9 warps in 1 block, 2 idle" in ax.figure.alt


def test_thread_groups_are_not_called_warps():
    gas = accelviz.plan("cora", "fusegnn_gas", n_cols=64)
    gcn = accelviz.plan("cora", "accel_gcn", n_cols=64)
    workers = {plan.name: plan.worker for plan in (gas, gcn)}
    assert workers == {"fusegnn_gas": "thread group", "accel_gcn": "combined warp"}
    first, second = warp_loads({plan.name: plan for plan in (gcn, gas)})
    assert (first.get_ylabel(), second.get_ylabel()) == ("combined warps", "thread groups")
    assert second.get_xlabel() == "nonzeros of a combined warp or thread group"
    assert "of warp time is idle" in read_title(second)
    assert "1 each" in read_texts(second)
    first, second = plots.load_maps({plan.name: plan_load_map(plan) for plan in (gcn, gas)})
    assert (first.get_ylabel(), second.get_ylabel()) == ("warp", "warp")


@pytest.mark.parametrize("name", ["empty", "no_edges"])
def test_a_graph_without_nonzeros(name):
    plan = accelviz.plan(GRAPHS[name](), "accel_gcn")
    (ax,) = warp_loads({"accel_gcn": plan})
    assert all(height == plan.statistics.workers for *_, height in bars(ax))
    ax.figure.savefig(io.BytesIO())
    (ax,) = plots.load_maps({"accel_gcn": plan_load_map(plan)})
    ax.figure.savefig(io.BytesIO())


def test_empty_mappings_raise():
    with pytest.raises(ArgumentError, match="plans: no plan"):
        warp_loads({})
    with pytest.raises(ArgumentError, match="maps: no load map"):
        plots.load_maps({})


def made_map(blocks):
    loads = np.ones((blocks, 2), dtype=np.int64)
    return LoadMap(loads, loads.astype(float), np.arange(blocks + 1))


@pytest.mark.parametrize(("blocks", "separate"), [(10, False), (9, True)])
def test_a_narrow_load_map_has_its_own_axis(blocks, separate):
    first, second = plots.load_maps({"narrow": made_map(blocks), "wide": made_map(80)})
    end = (blocks if separate else 80) - 0.5
    assert (first.get_xlim()[1], second.get_xlim()[1]) == (end, 79.5)
    assert ("as wide as its own blocks" in second.get_xlabel()) == separate
    assert "narrow: the nonzeros of each warp" in first.figure.alt
