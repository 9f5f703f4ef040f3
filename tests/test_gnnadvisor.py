"""GNNAdvisor: the Decider, neighbor groups, and warps that share a row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accelviz
from accelviz.partition.neighbor_groups import FLAGS, neighbor_groups, warp_memory
from accelviz.strategies.spmm.gnnadvisor import decide, lane_vectors
from tests.compilers import needs_compiler
from tests.graphs import GRAPHS, graph_of_degrees


# dw = 32 if Dim >= 32 else 16; ngs = 1024 x dw / Dim; SMEM = 4 warps x Dim x 4 bytes.
@pytest.mark.parametrize(
    ("n_cols", "dw", "ngs", "shared_bytes"),
    [
        (1, 16, 16384, 16),
        (16, 16, 1024, 256),
        (31, 16, 529, 496),  # 528.5
        (32, 32, 1024, 512),
        (64, 32, 512, 1024),
        (128, 32, 256, 2048),
        (1000, 32, 33, 16_000),  # 32.8
        (3072, 32, 11, 48 * 1024),  # 10.7; all of shared memory
    ],
)
def test_the_decider_s_numbers(n_cols, dw, ngs, shared_bytes):
    decision = decide(n_cols)
    assert (decision.dw, decision.ngs, decision.block_warps) == (dw, ngs, 4)
    assert decision.shared_bytes == shared_bytes
    assert (decision.tiles, decision.tile_columns) == (1, n_cols)
    assert decision.workload_per_thread == pytest.approx(1024, rel=0.05)
    plan = accelviz.plan(GRAPHS["isolated_ends"](), "gnnadvisor", n_cols, ngs=None)
    assert dict(plan.parameters) == {"ngs": ngs, "dw": dw, "block_warps": 4}
    plan = accelviz.plan(GRAPHS["isolated_ends"](), "gnnadvisor", n_cols)
    assert dict(plan.parameters) == {"ngs": 32, "dw": dw, "block_warps": 4}


def test_the_decider_keeps_what_is_given_and_fits_shared_memory():
    assert decide(64, dw=16).ngs == 256
    assert decide(64, 2).shared_bytes == 512
    assert decide(64, ngs=7, dw=4).workload_per_thread == 7 * 64 / 4
    assert decide(10**6).ngs == 1
    for n_cols in (385, 3073, 10_000, 100_001):
        for block_warps in (1, 3, 4, 32):
            decision = decide(n_cols, block_warps)
            assert decision.shared_bytes <= 48 * 1024
            assert (decision.tiles - 1) * decision.tile_columns < n_cols
            assert decision.tiles * decision.tile_columns >= n_cols
    assert (decide(3073).tiles, decide(3073).tile_columns) == (2, 1568)


def test_lanes_sum_up_to_four_columns_in_even_walks():
    chosen = {n_cols: lane_vectors(n_cols, n_cols, 32) for n_cols in (1, 31, 32, 33, 34, 64, 96)}
    assert chosen == {
        1: (1, 1),
        31: (1, 1),
        32: (1, 1),
        33: (1, 2),
        34: (1, 2),  # two columns a lane would leave most lanes without any
        64: (2, 1),
        96: (2, 2),
    }
    assert lane_vectors(128, 128, 32) == (4, 1)
    assert lane_vectors(127, 127, 32) == (1, 4)
    assert lane_vectors(129, 129, 32) == (1, 3)  # 5 steps in 2 walks
    assert lane_vectors(1000, 1000, 32) == (4, 1)
    assert lane_vectors(16, 16, 16) == (1, 1)
    assert lane_vectors(16, 16, 4) == (4, 1)


DEGREES = st.lists(st.one_of(st.integers(0, 12), st.integers(0, 90)), max_size=40)


@given(DEGREES, st.integers(1, 40))
def test_groups_cover_all_nonzeros_and_never_span_rows(degrees, ngs):
    row_pointers = np.cumsum([0, *degrees])
    groups = neighbor_groups(row_pointers, ngs)
    assert groups.pointers.dtype == np.int64
    assert groups.rows.dtype == np.int32
    assert groups.pointers.size == len(groups) + 1
    assert (groups.pointers[0], groups.pointers[-1]) == (0, sum(degrees))
    lengths = np.diff(groups.pointers)
    assert ((lengths >= 1) & (lengths <= ngs)).all()
    assert (groups.pointers[:-1] >= row_pointers[groups.rows]).all()
    assert (groups.pointers[1:] <= row_pointers[groups.rows + 1]).all()
    expected = [row for row, degree in enumerate(degrees) for _ in range(0, degree, ngs)]
    assert groups.rows.tolist() == expected


def algorithm_2(node_ids, warp_per_block):
    """Return Algorithm 2 of the thesis, line by line, with nodeSharedAddr in slots."""
    warp_ptr = [{"nodeID": node, "leader": False} for node in node_ids]
    cnt = local_cnt = last = 0
    while cnt < len(warp_ptr):
        if cnt % warp_per_block == 0:
            warp_ptr[cnt]["nodeSharedAddr"] = local_cnt
            last = warp_ptr[cnt]["nodeID"]
            warp_ptr[cnt]["leader"] = True
        elif warp_ptr[cnt]["nodeID"] == last:
            warp_ptr[cnt]["nodeSharedAddr"] = local_cnt
        else:
            local_cnt += 1
            warp_ptr[cnt]["nodeSharedAddr"] = local_cnt
            last = warp_ptr[cnt]["nodeID"]
            warp_ptr[cnt]["leader"] = True
        cnt += 1
        if cnt % warp_per_block == 0:
            local_cnt = 0
    return [(warp["nodeSharedAddr"], warp["leader"]) for warp in warp_ptr]


@given(DEGREES, st.integers(1, 20), st.integers(1, 32))
def test_slots_and_leaders_are_those_of_algorithm_2(degrees, ngs, block_warps):
    rows = neighbor_groups(np.cumsum([0, *degrees]), ngs).rows
    memory = warp_memory(rows, block_warps)
    slots = list(zip(memory.slot.tolist(), memory.leader.tolist(), strict=True))
    assert slots == algorithm_2(rows.tolist(), block_warps)

    blocks = [rows[start : start + block_warps] for start in range(0, rows.size, block_warps)]
    shared = [np.isin(block, block[:-1][block[:-1] == block[1:]]) for block in blocks]
    assert memory.shared.tolist() == [value for block in shared for value in block]
    assert memory.block_shares.tolist() == [block.any() for block in shared for _ in block]
    homes = {row: [i for i, block in enumerate(blocks) if row in block] for row in rows}
    assert memory.cut.tolist() == [len(homes[row]) > 1 for row in rows]

    words = memory.words()
    assert words.dtype == np.int32
    assert (words & FLAGS["slot_mask"]).tolist() == memory.slot.tolist()
    for name in ("leader", "shared", "cut", "block_shares"):
        assert ((words & FLAGS[name]) != 0).tolist() == getattr(memory, name).tolist()


def test_an_isolated_last_row_breaks_nothing():
    groups = neighbor_groups(np.array([0, 0, 5, 6, 6, 6]), 2)
    assert groups.pointers.tolist() == [0, 2, 4, 5, 6]
    assert groups.rows.tolist() == [1, 1, 1, 2]


@pytest.mark.parametrize(
    ("degrees", "cleared", "slots"),
    [
        ([2, 2, 2], False, False),  # a group each
        ([4, 2, 2], False, True),  # two groups of a row in one block
        ([2, 2, 4], True, False),  # in two blocks
        ([2, 0], True, False),
        ([], False, False),
    ],
)
def test_clearing_and_shared_memory_are_asked_for_where_needed(degrees, cleared, slots):
    graph = graph_of_degrees(degrees)
    plan = accelviz.plan(graph, "gnnadvisor", 8, ngs=2, block_warps=3)
    assert plan.zero_outputs == (("Y",) if cleared else ())
    assert plan.launch.dynamic_shared_bytes == (3 * 8 * 4 if slots else 0)


@needs_compiler
@pytest.mark.parametrize(
    ("strategy", "settings"),
    [
        ("gnnadvisor", {"ngs": 2, "block_warps": 4}),
        ("accel_gcn", {"partition": "warp", "max_warp_nzs": 2, "max_block_warps": 4}),
    ],
)
def test_only_leaders_write_rows_that_a_block_shares(strategy, settings):
    """Groups of two nonzeros, four warps per block: rows 0 1 1 1 | 2 3 3 3 | 3 3."""
    graph = graph_of_degrees([2, 5, 2, 9])
    plan = accelviz.plan(graph, strategy, 3, **settings)
    traced = accelviz.trace(plan, np.ones((graph.shape[1], 3), np.float32), block=range(3))
    written = traced[traced["array"] == "Y"].groupby(["block", "kind", "warp"])["index"].unique()
    assert {key: np.sort(value).tolist() for key, value in written.items()} == {
        (0, "store", 0): [0, 1, 2],  # row 0, alone in its warp
        (0, "store", 1): [3, 4, 5],  # row 1: three warps meet
        (1, "store", 0): [6, 7, 8],
        (1, "atomic", 1): [9, 10, 11],  # row 3: three warps meet, and the next block has more
        (2, "atomic", 0): [9, 10, 11],
    }
    shared = traced[(traced["space"] == "shared") & (traced["kind"] == "atomic")]
    warps = shared.groupby("block")["warp"].unique().map(sorted).to_dict()
    assert warps == {0: [1, 2, 3], 1: [1, 2, 3], 2: [0, 1]}
    if strategy == "gnnadvisor":  # a warp goes to its slot once; row 1 has slot 1, row 3 1 and 0
        slots = shared.assign(slot=shared["index"] // 3).groupby(["block", "warp"])["slot"]
        assert set(slots.count()) == {3}
        assert slots.first().tolist() == [1] * 6 + [0] * 2
