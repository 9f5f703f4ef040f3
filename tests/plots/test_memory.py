"""`access_map` draws the sectors that requests move and the bytes that lanes request."""

import io

import numpy as np
import pandas as pd
import pytest

from accelviz.analysis.lanes import Places, request_numbers, sector_runs
from accelviz.analysis.traffic import requests
from accelviz.errors import ArgumentError
from accelviz.plots.memory import MOST_REQUESTS, access_map
from tests.compilers import needs_compiler
from tests.plots.pictures import read_texts, read_title
from tests.traces import LANES, made_request, traced_cora


@needs_compiler
@pytest.mark.parametrize(
    ("strategy", "n_cols", "block"),
    [("accel_gcn", 100, 251), ("row_thread", 8, 0), ("gnnadvisor", 64, 3), ("merge_path", 33, 1)],
)
def test_runs_have_the_sectors_and_bytes_of_the_requests(strategy, n_cols, block):
    traced = traced_cora(strategy, n_cols, block)
    runs, costs = sector_runs(traced), requests(traced)
    assert runs["request"].max() + 1 == len(costs)
    sectors = runs.groupby("request")["begins"].sum()
    in_global = (costs["space"] == "global").to_numpy()
    np.testing.assert_array_equal(sectors[in_global], costs.loc[in_global, "sectors"])
    by_request = runs.assign(asked=runs["last"] - runs["first"] + 1).groupby("request")["asked"]
    distinct = traced.drop_duplicates(["step", "offset"]).groupby("step")["bytes"].sum()
    np.testing.assert_array_equal(by_request.sum(), distinct)
    assert runs["first"].min() >= 0
    assert runs["last"].max() < 32


def test_requests_are_numbered_in_order():
    traced = pd.concat([made_request([0, 4], 7), made_request([8], 2)]).assign(block=[1, 1, 0])
    assert request_numbers(traced).tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("offsets", "size", "expected"),
    [
        (4 * LANES, 4, [(s, 0, 31) for s in range(4)]),  # coalesced
        (0 * LANES, 4, [(0, 0, 3)]),  # a broadcast
        (128 * LANES[:3], 4, [(0, 0, 3), (4, 0, 3), (8, 0, 3)]),
        (8 * LANES[:4], 4, [(0, 0, 3), (0, 8, 11), (0, 16, 19), (0, 24, 27)]),
        (4 * LANES[:4] + 24, 4, [(0, 24, 31), (1, 0, 7)]),
        (16 * LANES[:2], 16, [(0, 0, 31)]),
    ],
)
def test_requested_bytes_of_each_sector(offsets, size, expected):
    runs = sector_runs(made_request(offsets, size=size))
    counted_runs = list(zip(runs["sector"], runs["first"], runs["last"], strict=True))
    assert counted_runs == expected
    assert runs["begins"].sum() == len({sector for sector, *_ in expected})


def test_sectors_far_apart_are_gathered():
    near, far = Places(np.array([5, 7, 5])), Places(np.array([100, 5, 7, 100]))
    assert (near.gathered, near.n, near.spanned) == (False, 3, 3)
    assert (far.gathered, far.n, far.spanned) == (True, 3, 96)
    assert near.find(np.array([7, 5])).tolist() == [2, 0]
    assert far.find(np.array([7, 100])).tolist() == [1, 2]
    assert Places(np.array([], dtype=int)).n == 0


def boxes(collection):
    corners = np.array([path.vertices[:4] for path in collection.get_paths()])
    return [tuple(np.round([*box.min(axis=0), *box.max(axis=0)], 3).tolist()) for box in corners]


def test_pale_sectors_and_full_bytes():
    scattered = made_request(32 * LANES[:2] + 8, 1, warp=1)
    traced = pd.concat([made_request(4 * LANES, 0), scattered], ignore_index=True)
    (ax,) = access_map({"made": traced})
    pale, full = ax.collections
    assert boxes(pale) == [(-0.42, s, 0.42, s + 1) for s in range(4)] + [
        (0.58, s, 1.42, s + 1) for s in range(2)
    ]
    assert boxes(full) == [(-0.42, s, 0.42, s + 1) for s in range(4)] + [
        (0.58, s + 0.25, 1.42, s + 0.375) for s in range(2)
    ]
    colours = full.get_facecolors()
    assert (colours[:4] == colours[0]).all()
    assert (colours[4:] == colours[4]).all()
    assert (colours[0] != colours[4]).any()
    asked = (128 + 8) / (6 * 32)
    title = f"X: 2 loads, 3 sectors each, {100 * asked:.3g}% of it asked for"
    assert read_title(ax) == title
    assert f"made: {100 * asked:.3g}% of the bytes it moves are asked for" in ax.figure.alt


@needs_compiler
def test_the_first_requests_scattered_and_coalesced_beside_each_other():
    traces = {name: traced_cora(name, 32, 0) for name in ("row_thread", "accel_gcn")}
    arrays = ("columns", "X", "Y")
    axes = access_map(traces, arrays=arrays)
    half = MOST_REQUESTS // 2
    drawn = {name: traced[request_numbers(traced) < half] for name, traced in traces.items()}
    for i, array in enumerate(arrays):
        left, other = axes[2 * i : 2 * i + 2]
        assert left.get_ylim() == other.get_ylim()
        assert left.get_xlim() == other.get_xlim() == (-0.5, half - 0.5)
        for ax, traced in zip((left, other), drawn.values(), strict=True):
            costs = requests(traced)
            costs = costs[(costs["array"] == array).to_numpy()]
            if len(costs):
                assert read_title(ax).startswith(f"{array}: {len(costs):,} ")
                assert f"{costs['sectors'].mean():.3g} sector" in read_title(ax)
                assert len(ax.collections[0].get_paths()) == costs["sectors"].sum()
    both = pd.concat(drawn.values())
    touched = np.unique(both["offset"][(both["array"] == "X").to_numpy()] // 32)
    notes = " ".join(text.get_text() for text in axes[2].texts).replace("\n", " ")
    spanned = touched[-1] - touched[0] + 1
    assert f"only the {touched.size:,} of {spanned:,} sectors touched" in notes
    total = traces["row_thread"]["step"].nunique()
    assert f"0 to {half - 1} of {total:,} are shown" in axes[-2].get_xlabel()


@needs_compiler
def test_a_close_up_of_one_warp_draws_its_requests_one_by_one():
    traced = traced_cora("row_thread", 32, 0)
    of_warp = traced[traced["warp"] == 2]
    (ax,) = access_map({"row_thread": of_warp}, arrays=("X",), between=(10, 40))
    number = of_warp["step"].rank(method="dense") - 1
    window = of_warp[(number >= 10) & (number < 40)]
    costs = requests(window)
    expected = costs.loc[(costs["array"] == "X").to_numpy(), "sectors"].sum()
    assert len(ax.collections[0].get_paths()) == expected
    assert ax.get_xlim() == (9.5, 39.5)
    assert f"10 to 39 of {of_warp['step'].nunique():,} are shown" in ax.get_xlabel()


def test_shared_memory_has_no_sectors_and_kinds_have_edges():
    shared = {"array": "partial", "space": "shared"}
    store = made_request(4 * LANES, 0, kind="store", **shared)
    atomic = made_request(8 * LANES, 1, kind="atomic", **shared)
    traced = pd.concat([store, atomic], ignore_index=True)
    (ax,) = access_map({"made": traced})
    assert len(ax.collections) == 2  # a kind each, nothing pale
    title = read_title(ax)
    assert title == "partial (shared memory): 1 store, 1 atomic, 1.5 passes each"
    assert "with edge: stores black, atomics red" in read_texts(ax)
    assert ax.get_ylabel() == "32 bytes"


def test_arrays_are_in_order_of_access_and_may_be_untouched():
    traced = pd.concat([made_request([0], 0, array="b"), made_request([0], 1, array="a")])
    first, second = access_map({"made": traced})
    assert read_title(first).startswith("b: ")
    assert read_title(second).startswith("a: ")
    first, second = access_map({"made": traced}, arrays=("a", "b"), between=(0, 1))
    assert read_title(first) == "a: not touched"
    first.figure.savefig(io.BytesIO())


def test_empty_and_invalid_traces():
    traced = made_request([0])
    (ax,) = access_map({"nothing": traced[:0]})
    assert read_title(ax) == "nothing is touched"
    ax.figure.savefig(io.BytesIO())
    with pytest.raises(ArgumentError, match="traces: no trace"):
        access_map({})
    with pytest.raises(ArgumentError, match="arrays: 'Z' is not touched. Expected: X"):
        access_map({"made": traced}, arrays=("Z",))
    for between in ((3, 3), (-1, 3)):
        with pytest.raises(ArgumentError, match="between: got"):
            access_map({"made": traced}, between=between)
