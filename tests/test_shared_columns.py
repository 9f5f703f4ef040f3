"""Windows whose rows share columns: bits, parts and accuracy."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import accelviz
from accelviz import measure
from accelviz.devices import find_device
from accelviz.errors import PartitionError
from accelviz.graph import Graph
from accelviz.partition.shared_columns import MAX_PART_COLUMNS, MIN_PART_COLUMNS, shared_columns
from accelviz.partition.windows import row_windows
from accelviz.strategies import SDDMM, SPMM, find_strategy
from accelviz.strategies.choice import choose_strategy, sampled_reuse
from accelviz.workload import spread
from tests.compilers import needs_compiler
from tests.graphs import GRAPHS
from tests.inherited import check_results, with_random_weights


@pytest.mark.parametrize("part_columns", [32, 2048])
@pytest.mark.parametrize("name", ["empty", "no_columns", "every_kind", "cora"])
def test_bits_are_the_matrix(name, part_columns):
    """Read as a kernel reads them: a block's words, and for each row the bits from its start."""
    graph = GRAPHS[name]()
    shared, _ = shared_columns(graph, 8, part_columns)
    seen = np.zeros(graph.nnz, int)
    for block, (window, word, columns, parts) in enumerate(shared.metadata.tolist()):
        assert 0 <= columns <= part_columns
        assert (parts & 0xFFFF) < parts >> 16
        words = range(word, word - (-columns // 32))
        for r in range(8):
            columns_of_row = [
                shared.columns[w, j] for w in words for j in range(32) if shared.bits[w, r] >> j & 1
            ]
            nonzeros = slice(shared.starts[block, r], shared.starts[block, r] + len(columns_of_row))
            assert np.array_equal(graph.column_indices[nonzeros], columns_of_row)
            seen[nonzeros] += 1
            if columns_of_row:
                first, last = graph.row_pointers[[window * 8 + r, window * 8 + r + 1]]
                assert first <= nonzeros.start < nonzeros.stop <= last
    assert (seen == 1).all()


def test_windows_are_cut_where_warps_would_be_idle():
    """Few windows at 256 columns or their mean; of many, or of equal ones, none."""
    facebook = shared_columns(GRAPHS["facebook"](), 8, None)[0]
    assert facebook.cut_blocks
    assert facebook.metadata[:, 2].max() <= MIN_PART_COLUMNS
    rows = shared_columns(GRAPHS["luxembourg-osm"](), 8, None)[0]
    assert rows.cut_blocks == 0
    assert (rows.metadata[:, 2] <= MAX_PART_COLUMNS).all()
    # 32 rows share 300 columns, in no more windows than a GPU has room for.
    ones = csr_array(np.ones((640, 300), np.float32))
    assert shared_columns(accelviz.load_graph(ones), 32, None)[0].cut_blocks == 0


@pytest.mark.parametrize("operation", [SPMM, SDDMM], ids=lambda operand: operand.name)
def test_a_tile_is_its_block_s(operation):
    """Cut windows too, whose parts come first."""
    strategy = find_strategy("window_tiles", operation)
    plan = strategy.plan(GRAPHS["cora"](), 16, part_columns=32, block_warps=2)
    plan.check()
    work = plan.workload()
    record, offset = spread(work.nz_count)
    block = np.zeros(plan.pattern.nnz, int)
    block[work.nz_start[record] + offset] = work.block[record]
    tiles = plan.tiles
    assert np.array_equal(block[tiles.nonzeros], np.repeat(tiles.block, tiles.counts))


@needs_compiler
@pytest.mark.parametrize("n_cols", [8, 17, 30])
def test_dots_of_float16_have_every_width_of_a_load(n_cols):
    strategy = find_strategy("window_tiles", SDDMM)
    check_results(GRAPHS["every_kind"](), strategy, "emulator", (n_cols,), arithmetic="float16")


def test_an_instruction_of_float16_has_two_steps():
    with pytest.raises(PartitionError, match="2 or 4"):
        accelviz.plan("cora", "window_tiles", arithmetic="float16", ahead=1)


@needs_compiler
@pytest.mark.parametrize("operation", [SPMM, SDDMM], ids=lambda operand: operand.name)
def test_three_products_are_as_exact_as_float32(operation):
    """Off by at most 1e-6 of the sum of |a x|, one product of TF32 or float16 by 1e-4 and more."""
    graph = with_random_weights(GRAPHS["wide"]())
    errors = {}
    for arithmetic in ("3xtf32", "tf32", "float16"):
        strategy = find_strategy("window_tiles", operation)
        plan = strategy.plan(graph, 40, arithmetic=arithmetic)
        dense = measure.random_inputs(operation, graph.pattern, plan.widths)
        ready = find_device("emulator").prepare(plan)
        (result,) = ready.run(ready.placed(operation.named(*dense))).values()
        if operation is SPMM:
            A, X = graph.adjacency.astype(np.float64), dense[0].astype(np.float64)
            exact, size = A @ X, abs(A) @ abs(X)
        else:
            rows = np.repeat(np.arange(graph.n_rows), np.diff(graph.row_pointers))
            terms = dense[0].astype(np.float64)[rows] * dense[1][graph.column_indices]
            exact, size = terms.sum(axis=2), abs(terms).sum(axis=2)
        errors[arithmetic] = np.max(abs(result - exact) / np.maximum(size, 1e-30))
    assert errors["3xtf32"] <= 1e-6
    assert 1e-4 <= errors["tf32"] <= 1e-3
    assert 1e-4 <= errors["float16"] <= 1e-3


@pytest.mark.parametrize(
    ("block", "spmm", "sddmm"),
    [
        (512, ("lane_groups", {}), ("lane_groups", {})),
        (256, ("window_tiles", {"window_rows": 32}), ("window_tiles", {"window_rows": 16})),
        (128, ("window_tiles", {"window_rows": 32}), ("window_tiles", {"window_rows": 16})),
        (64, ("window_tiles", {"window_rows": 32}), ("window_tiles", {"window_rows": 16})),
    ],
)
def test_tensor_cores_are_chosen_where_rows_share_columns(block, spmm, sddmm):
    """Rows have 48 of the columns of their block: what was measured."""
    rng = np.random.default_rng(block)
    rows = 90_112
    columns = np.argsort(rng.random((512, block)), axis=1)[:, :48]
    columns = np.sort(columns[rng.integers(0, 512, rows)], axis=1)
    columns += (np.arange(rows) // block * block)[:, None]
    pointers = np.arange(rows + 1, dtype=np.int64) * 48
    values = np.ones(rows * 48, np.float32)
    graph = Graph(pointers, columns.ravel().astype(np.int32), values, (rows, rows), "blocks")
    assert abs(sampled_reuse(graph, 8) / row_windows(graph, 8).reuse - 1) < 0.05
    assert choose_strategy(graph, 128) == spmm
    assert choose_strategy(graph, 128, "sddmm") == sddmm
    assert choose_strategy(graph, 64) == ("lane_groups", {})


def test_reuse_of_no_nonzeros_is_one():
    assert sampled_reuse(GRAPHS["empty"](), 8) == 1
    assert sampled_reuse(GRAPHS["no_edges"](), 8) == 1


def test_rows_that_cannot_be_dealt_out_are_refused():
    with pytest.raises(PartitionError, match="a divisor"):
        accelviz.plan("cora", "windows", window_rows=24, block_warps=5)
    with pytest.raises(PartitionError, match="16 a warp"):
        accelviz.plan("cora", "windows", window_rows=64, block_warps=2)
