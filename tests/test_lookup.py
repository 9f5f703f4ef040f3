"""The blocks of a row, and samples of blocks, compared with the whole workload."""

from functools import partial

import numpy as np
import pytest

import accelviz
from accelviz.analysis.lookup import find_row
from accelviz.errors import ArgumentError, PartitionError
from accelviz.graph import Graph
from accelviz.plans import Buffers, Layout, Plan, Provenance, Strategy
from accelviz.plans.launch import Call, LaunchConfig
from accelviz.plans.settings import Settings
from accelviz.strategies import SDDMM, SPMM, find_strategy
from accelviz.workload import Workload
from tests.graphs import MADE
from tests.inherited import KERNELS, case_name, each_strategy

#: Strategies with parameters for which rows share blocks, and for which rows are split.
VARIANTS = [
    *((strategy, {}) for strategy in KERNELS),
    ("accel_gcn", {"partition": "warp"}),
    ("accel_gcn", {"max_block_warps": 1, "max_warp_nzs": 3}),
    ("accel_gcn", {"max_block_warps": 2, "max_warp_nzs": 5, "partition": "warp"}),
    ("gnnadvisor", {"ngs": 3, "block_warps": 2}),
    ("merge_path", {"items_per_thread": 1, "block_warps": 1}),
]
COLUMNS = {"fusegnn_gas": 200, "fusegnn_gar": 20}


def columns_for(strategy):
    return COLUMNS.get(getattr(strategy, "name", strategy), 64)


class DealtSettings(Settings):
    blocks: int = 5
    empty: bool = True


class Dealt(Strategy):
    """Distributes the rows round robin to the blocks, in two parts per row, out of order.

    With `empty`, empty rows have a record; without, they are zeroed before the launch.
    """

    operation = SPMM
    name = "dealt"
    Settings = DealtSettings
    summary = "rows dealt out like cards"

    def build(self, graph, widths, settings):
        blocks, empty = settings.blocks, settings.empty
        rows = np.arange(graph.n_rows)
        first = (graph.degrees + 1) // 2
        parts = [  # block, row, nz_start, nz_count
            (rows % blocks, rows, graph.row_pointers[:-1], first),
            ((7 * rows + 3) % blocks, rows, graph.row_pointers[:-1] + first, graph.degrees - first),
        ]
        block, row, start, count = (np.concatenate(column) for column in zip(*parts, strict=True))
        busy = count > 0
        if empty:
            busy[: rows.size] |= graph.degrees == 0
        order = np.argsort(block[busy], kind="stable")
        block, row, start, count = (array[busy][order] for array in (block, row, start, count))

        def between(begin, end):
            of = (begin <= block) & (block < end)
            return Workload(block[of], row[of] % 4, row[of], start[of], count[of])

        call = Call(LaunchConfig((blocks if graph.n_rows else 0, 1, 1), 4))
        return Plan(
            Layout(graph.pattern, between),
            (call,),
            Buffers(zero_outputs=() if empty else None),
            Provenance(self, graph.values, widths, settings),
        )


def brute_force(plan, rows=None):
    """Return the blocks of rows of the graph, from the whole table and the matrices' arrays."""
    rows = range(plan.walked.n_rows) if rows is None else rows
    order = range(plan.walked.n_rows) if plan.permutation is None else plan.permutation.order
    walked = {row: walked_row for walked_row, row in enumerate(order)}
    table = plan.workload().to_frame()
    table = table[table["row"].isin([walked[row] for row in rows])]
    blocks = table.drop_duplicates(["row", "block"]).sort_values("block").groupby("row")["block"]
    blocks_of_row = blocks.agg(tuple).to_dict()
    return {row: (walked[row], blocks_of_row.get(walked[row], ())) for row in rows}


def check_rows(plan, rows=None, at_most=None):
    """Check rows: all, or `at_most` and those with the most blocks."""
    expected = brute_force(plan, rows)
    looked = [*expected][:: 1 + len(expected) // at_most if at_most else 1]
    if at_most:
        looked += sorted(expected, key=lambda row: len(expected[row][1]))[-3:]
    pattern, nonzeros = plan.pattern, np.arange(plan.pattern.nnz)
    if plan.strategy.by_sender:
        turned = Graph(
            *(pattern.row_pointers, pattern.column_indices, plan.provenance.values, pattern.shape)
        ).transposed()
        pattern, nonzeros = turned.graph.pattern, turned.nonzeros
    for row in looked:
        spot = find_row(plan, row)
        walked_row, blocks = expected[row]
        assert (spot.row, spot.walked_row, spot.blocks) == (row, walked_row, blocks)
        assert spot.degree == pattern.degrees[row]
        walked = slice(spot.first_nz, spot.first_nz + spot.degree)
        mine = slice(*pattern.row_pointers[row : row + 2])
        assert np.array_equal(plan.walked.column_indices[walked], pattern.column_indices[mine])
        if plan.layout.nonzero_order is not None:
            assert np.array_equal(plan.layout.nonzero_order[walked], nonzeros[mine])
    return expected


@pytest.mark.sample(5)
@pytest.mark.parametrize(("strategy", "parameters"), VARIANTS, ids=case_name)
def test_every_row_of_every_made_graph_is_found(strategy, parameters):
    many, empty = 0, 0
    turn = KERNELS.index(strategy) if strategy in KERNELS else 0
    shared = strategy in KERNELS and strategy.operation not in (SPMM, SDDMM)
    for make in [*MADE.values()][turn % 4 :: 4] if shared else MADE.values():
        plan = accelviz.plan(make(), strategy, columns_for(strategy), **parameters)
        blocks = [blocks for _, blocks in check_rows(plan, at_most=60).values()]
        if plan.operation is SPMM:
            assert plan.zero_outputs or all(blocks)
        many = max([many, *map(len, blocks)])
        empty += sum(not blocks_found for blocks_found in blocks)
    # The lines that are said to run must have run.
    name = getattr(strategy, "name", strategy)
    if plan.operation is SPMM and (
        name in ("fusegnn_gas", "merge_path", "gnnadvisor") or parameters
    ):
        assert many > 5
    if plan.operation is SPMM:
        clear = ("accel_gcn", "gnnadvisor", "fusegnn_gas", "unfused_gas")
        assert (empty > 100) == (name in clear)


@pytest.mark.sample(2)
@pytest.mark.parametrize("graph", ["cora", "as-caida"])
@each_strategy()
def test_rows_of_real_graphs_are_found(strategy, graph):
    # On as-caida this would need a quarter of a billion packed weights, for too many channels.
    graph = "cora" if strategy.name == "strided_windows" else graph
    plan = accelviz.plan(graph, strategy, columns_for(strategy))
    degrees = plan.pattern.degrees
    rows = [0, plan.pattern.n_rows - 1, *np.argsort(degrees)[[0, 1, -2, -1]]]
    check_rows(plan, [*map(int, rows), *np.random.default_rng(0).integers(0, degrees.size, 30)])


@pytest.mark.sample(3)
@pytest.mark.parametrize("empty", [True, False])
@pytest.mark.parametrize("blocks", [1, 2, 5, 23])
def test_blocks_that_do_not_go_through_the_rows_in_order_are_all_read(blocks, empty):
    apart = 0
    for name in ("hub", "wide", "isolated_ends", "no_edges", "one_node", "tall", "degree_33"):
        plan = accelviz.plan(MADE[name](), Dealt(), blocks=blocks, empty=empty)
        plan.check()
        result = check_rows(plan)
        apart += sum(len(parts) > 1 and parts[1] - parts[0] > 1 for _, parts in result.values())
    assert (apart > 100) == (blocks > 2)


def test_blocks_without_a_record_do_not_hide_a_row(monkeypatch):
    """Rows are in order, but most blocks have no work."""
    graph = MADE["wide"]()
    rows = np.flatnonzero(graph.degrees)
    starts, counts = graph.row_pointers[rows], graph.degrees[rows]

    def between(begin, end, step):
        first, last = -(-begin // step), -(-end // step)
        block = np.arange(first, min(last, rows.size)) * step
        part = slice(first, first + block.size)
        return Workload(block, np.zeros_like(block), rows[part], starts[part], counts[part])

    provenance = Provenance(find_strategy("graphblast"), None, {"n_cols": 1}, Settings())
    for step in (1, 2, 1000):
        call = Call(LaunchConfig((rows.size * step + 4, 1, 1), 1))
        layout = Layout(graph.pattern, partial(between, step=step))
        plan = Plan(layout, (call,), Buffers(), provenance)
        plan.check()
        expected = brute_force(plan)
        with monkeypatch.context() as patch:
            patch.setattr(Plan, "workload_slices", None)  # nor are all of them read
            assert {row: find_row(plan, row).blocks for row in expected} == {
                row: blocks for row, (_, blocks) in expected.items()
            }
        read = counted(plan)
        find_row(plan, int(rows[rows.size // 3]))
        # The number of steps of a binary search, times the blocks between two with a record.
        assert len(read) < 4 * np.log2(plan.launch.n_blocks) * (2 + np.log2(step))


def counted(plan):
    """Return a list to which each later read appends its number of blocks."""
    read = []
    whole = plan.layout.slice_workload

    def counting(start, stop):
        read.append(stop - start)
        return whole(start, stop)

    object.__setattr__(plan.layout, "slice_workload", counting)
    return read


def test_a_search_reads_few_blocks_where_they_are_in_order():
    plan = accelviz.plan("pubmed", "accel_gcn")
    read = counted(plan)
    for row in (0, 5000, int(plan.pattern.degrees.argmax())):
        read.clear()
        find_row(plan, row)
        assert sum(read) < 4 * np.log2(plan.launch.n_blocks)


@pytest.mark.parametrize("row", [-1, 2708, 10**12])
def test_rows_that_there_are_not(row):
    with pytest.raises(ArgumentError, match=rf"row: got {row}. Expected: 0 to 2707"):
        find_row(accelviz.plan("cora", "accel_gcn"), row)


def test_a_library_does_not_say():
    plan = accelviz.plan("cora", "cusparse")
    with pytest.raises(PartitionError, match="does not say which warp does what"):
        find_row(plan, row=0)
