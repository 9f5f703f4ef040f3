"""Our own strategy: lanes, the rule, the order of the blocks, 16 bits, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import accelviz
from accelviz import measure
from accelviz.analysis.lookup import find_row
from accelviz.devices.emulator import EmulatorDevice
from accelviz.errors import PartitionError
from accelviz.measure.accuracy import Oracle
from accelviz.ordering import DegreeHistogram, RowDegrees
from accelviz.ordering.local import is_local
from accelviz.partition.block_level import BlockSetting
from accelviz.partition.subwarps import in_place_order, subwarp_blocks
from accelviz.plans.storage import restored, stored
from accelviz.strategies import find_strategy
from accelviz.strategies.lanes import Lanes, cover
from accelviz.strategies.sddmm.lane_groups import LaneGroupSettings as SddmmSettings
from accelviz.strategies.sddmm.lane_groups import choose_launch_columns
from accelviz.strategies.subwarps import Blocks, LaneGroupSettings, choose_tile
from tests.compilers import needs_compiler
from tests.graphs import graph_of_degrees
from tests.inherited import with_random_weights

#: Short rows, rows that subwarps share, rows that are split over blocks, and empty rows.
DEGREES = [0, 1, 2, 3, 5, 8, 9, 30, 33, 64, 200, 700, 0, 1, 2, 300]


# vector, lanes, vectors of a lane, tiles
@pytest.mark.parametrize(
    ("n_cols", "column_tile", "wanted"),
    [
        (1, None, (1, 1, 1, 1)),
        (16, None, (4, 4, 1, 1)),
        (17, None, (1, 9, 2, 1)),
        (32, None, (4, 8, 1, 1)),
        (33, None, (1, 9, 4, 1)),
        (48, None, (4, 12, 1, 1)),
        (50, None, (2, 13, 2, 1)),
        (64, None, (4, 8, 2, 1)),
        (96, None, (4, 8, 3, 1)),
        (96, 32, (4, 8, 1, 3)),
        (100, None, (4, 13, 2, 1)),
        (128, 64, (4, 8, 2, 2)),
        (130, 64, (2, 11, 2, 3)),
        (1000, 64, (4, 8, 2, 16)),
    ],
)
def test_lanes_cover_the_columns(n_cols, column_tile, wanted):
    assert cover(n_cols, tile=column_tile) == Lanes(*wanted)


@given(
    n_cols=st.integers(1, 2000),
    lanes=st.one_of(st.none(), st.integers(1, 32)),
    column_tile=st.one_of(st.none(), st.integers(1, 300)),
    storage=st.sampled_from(["float32", "float16"]),
)
def test_every_column_has_one_lane(n_cols, lanes, column_tile, storage):
    lanes_of = cover(n_cols, lanes, tile=column_tile, storage=storage)
    assert n_cols % lanes_of.vector == 0
    tile = lanes_of.lanes * lanes_of.lane_vectors * lanes_of.vector
    assert (lanes_of.tiles - 1) * tile < n_cols <= lanes_of.tiles * tile
    assert 1 <= lanes_of.lanes <= 32
    assert 1 <= lanes_of.lane_vectors <= 4


@pytest.mark.parametrize(
    ("n_cols", "rows", "nnz", "local", "wanted"),
    [
        (64, 600_000, 40_000_000, False, 32),  # X is 150 MB, of which an L2 holds a fifth
        (64, 600_000, 40_000_000, True, None),
        (64, 50_000, 1_600_000, False, None),  # X lies in the L2
        (64, 2_900_000, 30_000_000, False, None),  # a tile would not fit either
        (96, 50_000, 1_600_000, False, 32),
        (100, 600_000, 40_000_000, False, None),  # no whole 128-byte lines
        (128, 600_000, 40_000_000, False, 32),
        (128, 50_000, 1_600_000, False, 64),
        (128, 1_900_000, 3_900_000, False, 64),
        (128, 600_000, 40_000_000, True, 64),
    ],
)
def test_the_rule_for_tiles(n_cols, rows, nnz, local, wanted):
    assert choose_tile(n_cols, (rows, rows), nnz, local) == wanted


@pytest.mark.parametrize(
    ("nnz", "group_nzs", "short_nzs"),
    [(10_000, 8, 4), (200_000, 16, 4), (500_000, 32, 4), (2_000_000, 32, 8), (9_000_000, 64, 8)],
)
def test_the_rule_for_groups(nnz, group_nzs, short_nzs):
    settings = LaneGroupSettings().resolved(32, (100_000, 100_000), nnz, lambda: False)
    assert settings.group_nzs == group_nzs
    assert settings.short_nzs == short_nzs


@pytest.mark.parametrize("n_cols", [1, 4, 7, 8, 12, 16, 20, 24, 32, 40, 47, 64, 128])
def test_the_rule_leaves_most_of_an_sm_to_its_l1(n_cols):
    settings = LaneGroupSettings().resolved(n_cols, (100_000, 100_000), 9_000_000, lambda: False)
    stage_bytes = 8 * Blocks.of(settings, n_cols).block_nonzeros
    assert settings.blocks_per_sm * (stage_bytes + 1024) <= 148 << 10  # of 256


@pytest.mark.parametrize(
    ("n_cols", "nnz", "storage", "at_once", "blocks_per_sm"),
    [
        (16, 9_000_000, "float32", 4, 12),  # rows of 64 bytes
        (14, 9_000_000, "float32", 4, 10),  # pairs of columns
        (32, 300_000, "float32", 4, 12),
        (32, 9_000_000, "float32", 2, 16),
        (48, 300_000, "float32", 2, 16),  # twelve lanes
        (50, 9_000_000, "float32", 4, 10),
        (50, 9_000_000, "float16", 2, 16),  # pairs of 16 bits
        (64, 9_000_000, "float32", 4, 8),  # long rows
        (128, 4_000_000, "float32", 2, 12),
        (64, 9_000_000, "float16", 3, 12),
        (128, 9_000_000, "bfloat16", 3, 8),
        (100, 9_000_000, "float32", 2, 10),  # 13 lanes of two vectors for 25
    ],
)
def test_the_rule_for_loads_in_flight(n_cols, nnz, storage, at_once, blocks_per_sm):
    settings = LaneGroupSettings(storage=storage)
    settings = settings.resolved(n_cols, (100_000, 100_000), nnz, lambda: False)
    threads = Blocks.of(settings, n_cols).threads
    assert settings.at_once == at_once
    assert settings.blocks_per_sm == blocks_per_sm * 128 // threads


@pytest.mark.parametrize(
    ("degree", "n_rows", "n_cols", "at_once", "group_products"),
    [
        (5, 300_000, 64, 2, 8),  # two launches of 32 columns each
        (5, 300_000, 32, 2, 8),
        (5, 200_000, 64, 4, 4),  # fewer products than a large matrix
        (7, 100_000, 128, 2, 2),
        (8, 100_000, 128, 2, 4),  # long rows
    ],
)
def test_sddmm_has_longer_runs_of_products_in_larger_matrices(
    degree, n_rows, n_cols, at_once, group_products
):
    rows = RowDegrees(DegreeHistogram.counted({degree: n_rows}))
    widths = {"n_cols": n_cols, "heads": 1}
    tile = 32 if n_cols == 64 else None
    settings = SddmmSettings(column_tile=tile).resolved(rows, widths, None)
    assert (settings.at_once, settings.group_products) == (at_once, group_products)


@pytest.mark.parametrize(
    ("n_rows", "is_local", "tile"),
    [(100_000, False, 64), (500_000, False, 32), (3_000_000, False, None), (3_000_000, True, 128)],
)
def test_sddmm_has_tiles_only_where_they_can_stay_in_the_l2(n_rows, is_local, tile):
    shape = n_rows, n_rows
    assert choose_launch_columns(256, shape, 10 * n_rows, is_local) == tile


def test_an_unknown_order_leaves_the_tile_open_only_where_it_matters():
    def resolved(n_cols, local):
        return (
            LaneGroupSettings().resolved(n_cols, (600_000, 600_000), 40_000_000, local).column_tile
        )

    assert [resolved(64, lambda local=local: local) for local in (True, False, None)] == [
        64,
        32,
        None,
    ]
    assert resolved(16, lambda: pytest.fail("the order is looked at")) == 16


def test_locality_is_seen():
    band = sparse.diags_array([1.0, 1.0], offsets=[1, 2], shape=(999, 999)).tocsr()
    assert is_local(accelviz.load_graph(band).pattern)
    order = np.random.default_rng(0).permutation(999)
    assert not is_local(accelviz.load_graph(band[order][:, order]).pattern)
    assert not is_local(accelviz.load_graph(sparse.csr_array((5, 5))).pattern)


def test_blocks_come_in_the_order_of_the_graph():
    histogram = DegreeHistogram(np.array([1, 2, 9, 40]), np.array([3, 2, 2, 1]))
    metadata, cut = subwarp_blocks(histogram, BlockSetting(2, 8), 4)
    # Rows of degree 1 and 2 in one block each, of 9 in two (2 subwarps per row); 40 is split in 3.
    assert cut == 3
    assert metadata[:, 0].tolist() == [40, 40, 40, 1, 2, 9, 9]
    assert metadata[:, 1].tolist() == [7, 7, 7, 0, 3, 5, 6]
    assert metadata[:3, 3].tolist() == [0, 1, 2]
    rows_of_graph = np.array([6, 7, 8, 2, 3, 5, 1, 0], dtype=np.int32)
    placed = in_place_order(metadata, cut, rows_of_graph)
    assert placed[:, 1].tolist() == [7, 7, 7, 6, 3, 5, 0]


def test_a_plan_says_what_the_rule_chose_and_takes_it_back():
    plan = accelviz.plan("pubmed", "lane_groups", 100)
    assert plan.parameters["group_nzs"] == 8
    again = accelviz.plan("pubmed", "lane_groups", 100, **plan.parameters)
    assert again.parameters == plan.parameters
    assert again.kernel == plan.kernel
    np.testing.assert_array_equal(again.metadata, plan.metadata)


@pytest.mark.parametrize("block_threads", [32, 64, 512])
def test_the_rule_stays_in_its_own_range(block_threads):
    plan = accelviz.plan("cora", "lane_groups", 16, block_threads=block_threads)
    again = accelviz.plan("cora", "lane_groups", 16, **plan.parameters)
    assert again.parameters == plan.parameters


def test_a_vector_of_eight_is_of_sixteen_bits():
    with pytest.raises(PartitionError, match="^vector: got 8.*4, 2, 1 with float32"):
        accelviz.plan("cora", "lane_groups", 16, vector=8)


def check(graph, n_cols, **parameters):
    """Compare a plan in the emulator, which checks races and addresses, with float64."""
    plan = accelviz.plan(graph, "lane_groups", n_cols, **parameters)
    plan.check()
    X = measure.features(graph.shape[1], n_cols)
    X[0, 0], X[1, 0] = 1e-6, -3e-7  # subnormal in float16
    oracle = Oracle(graph, restored(stored(X, plan.storage), plan.storage))
    return measure.check(plan, EmulatorDevice().prepare(plan), {"X": X}, oracle)


@pytest.mark.sample(2)
@needs_compiler
@pytest.mark.parametrize(
    ("n_cols", "parameters"),
    [
        (33, {"lanes": 11}),  # lanes that do not divide a warp
        (17, {"lanes": 6, "group_nzs": 8}),
        (50, {"lanes": 13, "block_threads": 64}),
        (64, {"column_tile": 16, "block_order": "degree"}),
        (32, {"vector": 1, "stage": False, "at_once": 1, "short_nzs": 1}),
        (96, {"column_tile": 32, "at_once": 3, "short_nzs": 16}),
        (20, {"group_nzs": 2, "block_threads": 32}),  # nearly every row is cut
        (300, {"block_threads": 512, "group_nzs": 128}),
    ],
)
def test_settings_give_the_right_result(n_cols, parameters):
    assert check(with_random_weights(graph_of_degrees(DEGREES)), n_cols, **parameters) <= 1


@pytest.mark.sample(3)
@needs_compiler
@pytest.mark.parametrize("storage", ["float16", "bfloat16"])
@pytest.mark.parametrize("n_cols", [16, 33, 50, 68, 96])
def test_sixteen_bits_are_summed_in_float32(storage, n_cols):
    assert check(with_random_weights(graph_of_degrees(DEGREES)), n_cols, storage=storage) <= 1


@pytest.mark.sample(4)
@needs_compiler
@pytest.mark.parametrize("operation", ["spmm", "dot_gradient", "gatv2_gradient", "gat_gradient"])
def test_the_result_does_not_depend_on_the_order_of_blocks(operation):
    """Parts of split rows finish in any order; results are identical nevertheless."""
    graph = graph_of_degrees([200, 3, 1, 90, 0, 5])
    strategy = find_strategy("lane_groups", operation)
    if strategy.operation.by_sender:
        graph = graph.transposed().graph
    plan = strategy.plan(graph, 5, group_nzs=2, block_threads=32)
    assert max(len(find_row(plan, row).blocks) for row in range(plan.walked.shape[0])) > 2
    dense = plan.operation.named(*measure.random_inputs(plan.operation, plan.pattern, plan.widths))
    first, *others = (EmulatorDevice(seed=seed).prepare(plan).run(dense) for seed in range(4))
    for other in others:
        for name, array in first.items():
            np.testing.assert_array_equal(other[name], array)


def test_what_sixteen_bits_hold():
    X = np.array(
        [[1.0, -2.5, 1 + 2**-9, 1 + 3 * 2**-9, 6e-8, 70_000.0, np.inf, np.nan]], np.float32
    )
    half = restored(stored(X, "float16"), "float16")[0]
    assert half[:4].tolist() == X[0, :4].tolist()
    assert half[4] == 2.0**-24
    assert half[5] == half[6] == np.inf
    assert np.isnan(half[7])
    brain = restored(stored(X, "bfloat16"), "bfloat16")[0]
    # Halfway between 1 and 1 + 2^-7 is 1 + 2^-8; these numbers are 2^-9 to either side.
    assert brain[:4].tolist() == [1.0, -2.5, 1.0, 1.0078125]
    halfway = np.array([[1 + 2**-8, 1 + 3 * 2**-8]], np.float32)
    assert restored(stored(halfway, "bfloat16"), "bfloat16")[0].tolist() == [1.0, 1 + 2 * 2**-7]
    assert brain[6] == np.inf
    assert np.isnan(brain[7])
    signalling = np.array([[0x7F800001]], np.uint32).view(np.float32)
    assert np.isnan(restored(stored(signalling, "bfloat16"), "bfloat16")).all()


def test_the_cpu_rounds_as_well():
    graph = accelviz.load_graph("cora")
    X = measure.features(2708, 8)
    plan = accelviz.plan(graph, "lane_groups", 8, storage="bfloat16")
    oracle = Oracle(graph, restored(stored(X, "bfloat16"), "bfloat16"))
    assert oracle.error(accelviz.spmm(plan, X, device="cpu")) <= 1
    assert Oracle(graph, X).error(accelviz.spmm(plan, X, device="cpu")) > 10


def test_records_say_what_the_features_are_kept_in():
    cases = ["lane_groups", ("lane_groups", {"storage": "float16"})]
    table = accelviz.benchmark("cora", cases, 16, "cpu", repeats=1, progress=False)
    assert table["dtype"].unique().tolist() == ["float32", "float16"]
    assert (table["error_over_bound"] <= 1).all()
