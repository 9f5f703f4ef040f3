"""Assignments of nonzeros to blocks and warps, compared with the workload, and their picture."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

import accelviz
from accelviz.analysis.assignment import MAX_RUNS_PER_ROW, assignment
from accelviz.errors import ArgumentError, PartitionError
from accelviz.plots.assignment import block_assignment
from tests.graphs import GRAPHS, graph_of_degrees
from tests.plots.pictures import read_texts, read_title

TOY = [1, 1, 2, 2, 3, 5, 9, 0, 1, 4]
SMALL = {"max_block_warps": 2, "max_warp_nzs": 2}
STRATEGIES = [
    *("accel_gcn", "graphblast", "gnnadvisor", "merge_path", "row_thread"),
    *("fusegnn_gas", "fusegnn_gar"),
]


@pytest.fixture(scope="module")
def toy():
    return graph_of_degrees(TOY, name="toy")


def spelled_out(plan) -> pd.DataFrame:
    """Block, warp, row, the caller's row and column of each nonzero, one by one."""
    table = plan.workload().to_frame()
    table = table.loc[table.index.repeat(table["nz_count"])]
    nonzero = table["nz_start"] + table.groupby(level=0).cumcount()
    column, caller_row = plan.walked.column_indices[nonzero], plan.output_rows[table["row"]]
    return table.reset_index(drop=True).assign(column=column, caller_row=caller_row)


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", ["empty", "no_columns", "one_node", "no_edges", "wide", "tall"])
@pytest.mark.parametrize("strategy", ["accel_gcn", "graphblast", "fusegnn_gas"])
def test_pictures_of_odd_matrices(name, strategy):
    plan = accelviz.plan(GRAPHS[name](), strategy)
    ax = block_assignment(plan)
    ax.figure.canvas.draw()
    assert ("no nonzero" in read_title(ax)) == (plan.walked.nnz == 0)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_small_assignment_is_the_workload(toy, strategy):
    plan = accelviz.plan(toy, strategy)
    part = assignment(plan)
    work = plan.workload().to_frame()
    np.testing.assert_array_equal(
        part.runs["offset"] + plan.walked.row_pointers[part.runs["row"]], work["nz_start"]
    )
    for name in ("block", "warp", "row", "nz_count"):
        assert part.runs[name.removeprefix("nz_")].tolist() == work[name].tolist()
    assert part.rows["row"].tolist() == list(range(10))
    degrees = toy.degrees[part.rows["caller_row"]]
    assert part.rows["degree"].tolist() == degrees.tolist()
    assert part.whole
    nonzeros = spelled_out(plan)
    blocks = part.blocks.set_index("block")
    assert blocks["rows"].to_dict() == work.groupby("block")["row"].nunique().to_dict()
    loads = nonzeros.groupby(["block", "warp"]).size()
    for column, how in (("nonzeros", "sum"), ("warps", "size"), ("least", "min"), ("most", "max")):
        expected = loads.groupby("block").agg(how)
        assert blocks[column].to_dict() == expected.reindex(blocks.index, fill_value=0).to_dict()


def test_chosen_blocks_show_their_runs_and_nothing_else():
    plan = accelviz.plan("cora", "gnnadvisor")
    part = assignment(plan, [340, 5, 5, 341])
    assert part.blocks["block"].tolist() == [5, 340, 341]
    work = plan.workload().to_frame()
    work = work[work["block"].isin([5, 340, 341])]
    assert part.runs["row"].tolist() == work["row"].tolist()
    assert part.runs["count"].tolist() == work["nz_count"].tolist()
    assert set(part.rows["row"]) == set(work["row"])
    assert not part.whole
    assert assignment(plan, 5).blocks["block"].tolist() == [5]
    assert assignment(plan, range(0)).rows.empty


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", ["cora", "hub", "all_degrees"])
def test_examples_differ_and_stay_few(strategy, name):
    plan = accelviz.plan(GRAPHS[name](), strategy)
    part = assignment(plan)
    assert 0 < len(part.rows) <= 48
    assert part.blocks["rows_shown"].max() >= 1
    work = plan.workload().to_frame().set_index(["block", "warp", "row"])["nz_count"]
    runs = part.runs.groupby(["block", "warp", "row"])["count"].sum()
    whole = work.groupby(["block", "warp", "row"]).sum().reindex(runs.index)
    assert (runs <= whole).all()
    assert part.runs.groupby("row").size().max() <= MAX_RUNS_PER_ROW
    if strategy == "accel_gcn":
        assert part.rows["degree"].nunique() >= 3
        assert (runs == whole).all()
        assert part.blocks["rows_shown"].tolist() == part.blocks["rows"].tolist()


def test_all_blocks_of_a_split_row_are_listed():
    plan = accelviz.plan(GRAPHS["hub"](), "accel_gcn")
    part = assignment(plan)
    hub = part.runs[part.runs["row"] == 99]
    assert hub["block"].unique().tolist() == list(range(10, 18))
    assert hub["count"].sum() == 3000
    many = assignment(accelviz.plan(GRAPHS["hub"](), "accel_gcn", max_warp_nzs=8))
    assert many.runs[many.runs["row"] == 99]["block"].nunique() == 12  # of 32


def test_a_block_of_many_rows_lists_its_first_rows():
    plan = accelviz.plan("cora", "row_thread")
    part = assignment(plan, [3], most_rows=10)
    assert part.rows["row"].tolist() == list(range(768, 778))
    assert part.blocks["rows"].tolist() == [256]
    assert part.blocks["rows_shown"].tolist() == [10]
    ax = block_assignment(part)
    assert any("246 more not shown" in text.get_text() for text in ax.texts)


def test_a_long_row_lists_its_first_runs():
    plan = accelviz.plan(GRAPHS["hub"](), "fusegnn_gar")
    part = assignment(plan, 50)
    assert len(part.runs) == MAX_RUNS_PER_ROW
    assert part.runs["offset"].tolist() == list(range(MAX_RUNS_PER_ROW))
    assert part.blocks[["nonzeros", "warps", "most"]].to_numpy().tolist() == [[3000, 2, 1500]]


def test_invalid_blocks_raise(toy):
    plan = accelviz.plan(toy, "accel_gcn", **SMALL)
    with pytest.raises(ArgumentError, match="there is no block 10. Expected: 0 to 9"):
        assignment(plan, [3, 10])
    with pytest.raises(ArgumentError, match="there is no block -1"):
        assignment(plan, -1)
    with pytest.raises(ArgumentError, match="got 1.5"):
        assignment(plan, [1.5])
    with pytest.raises(ArgumentError, match="most_rows: got 0"):
        assignment(plan, most_rows=0)
    with pytest.raises(ArgumentError, match="at most 512"):
        assignment(accelviz.plan("cora", "graphblast"), range(513))
    with pytest.raises(PartitionError, match="does not say which warp"):
        assignment(accelviz.plan(toy, "cusparse"))


def boxes(ax) -> list[tuple[float, float, float]]:
    """Height, begin and end of each coloured run in the picture."""
    (drawn,) = (collection for collection in ax.collections if collection.zorder == 2)
    corners = []
    for path in drawn.get_paths():
        (left, low), (end, high) = path.vertices.min(axis=0), path.vertices.max(axis=0)
        corners.append(((low + high) / 2, left, end))
    return corners


def test_each_run_is_a_box_in_the_colour_of_its_block(toy):
    plan = accelviz.plan(toy, "accel_gcn", **SMALL)
    part = assignment(plan)
    ax = block_assignment(part)
    line = dict(zip(part.rows["row"], ax.get_yticks(), strict=True))
    runs = part.runs[["row", "offset", "count"]].to_numpy()
    expected = [(line[row], first, first + count) for row, first, count in runs]
    np.testing.assert_allclose(boxes(ax), expected)
    (drawn,) = (collection for collection in ax.collections if collection.zorder == 2)
    colours = [to_hex(colour) for colour in drawn.get_facecolor()]
    warps = map(tuple, part.runs[["block", "warp"]].to_numpy())
    run_colours = dict(zip(warps, colours, strict=True))
    assert run_colours[5, 0] != run_colours[5, 1]
    assert len({run_colours[block, 0] for block in (7, 8, 9)}) == 3
    texts = read_texts(ax)
    assert "block 0: 2 rows of degree 1" in texts
    assert "blocks 7 to 9: a row of degree 9" in texts
    assert "no block: a row of degree 0" in texts
    assert [text for text in texts if text in "01"] == [str(warp) for warp in part.runs["warp"]]
    rows = part.rows[["row", "caller_row"]].to_numpy()
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels == [f"{row} ({caller_row})" for row, caller_row in rows]
    assert (
        read_title(ax)
        == "accel_gcn on toy: a block's combined warps differ up to 2-fold in nonzeros"
    )
    assert "10 blocks for 10 rows, 2 of these split over several blocks" in ax.figure.alt
    assert ax.get_xscale() == "linear"


def test_a_sample_states_its_share_and_the_scale_of_its_axis():
    part = assignment(accelviz.plan("cora", "accel_gcn"))
    ax = block_assignment(part)
    share = part.runs["count"].sum() / part.nnz
    (note,) = (text.get_text() for text in ax.texts if "a colour is a block" in text.get_text())
    assert note.startswith(f"{len(part.blocks)} of 252 blocks, {share:.1%} of the nonzeros")
    assert "grey: not shown" in note
    assert "square-root scale" in ax.get_xlabel()
    assert ax.get_xticks().tolist() == [0, 5, 10, 20, 50, 100, 168]
    assert ax.get_xlim()[0] == 0
    widths = {round(end - left) for _, left, end in boxes(ax)}
    assert widths == set(part.runs["count"])
    ax.figure.canvas.draw()


def test_the_axis_begins_at_the_first_listed_nonzero(ax):
    part = assignment(accelviz.plan(GRAPHS["hub"](), "accel_gcn"), [16, 17])
    block_assignment(part, ax=ax)
    assert ax.get_xlim()[0] == 6 * 384
    assert ax.get_xscale() == "linear"
    assert min(left for _, left, _ in boxes(ax)) == 6 * 384
    assert max(end for _, _, end in boxes(ax)) == 3000
    ax.figure.canvas.draw()


def test_a_large_graph_without_a_nonzero():
    plan = accelviz.plan(graph_of_degrees([0] * 100), "graphblast")
    ax = block_assignment(assignment(plan))
    assert "no nonzero" in read_title(ax)
    assert "0 of 25 blocks, none of the nonzeros" in ax.figure.alt
    ax.figure.canvas.draw()


def test_clipped_rows_have_a_marker():
    ax = block_assignment(assignment(accelviz.plan("cora", "gnnadvisor"), [340]))
    assert [line.get_marker() for line in ax.lines] == [">"]  # the row of degree 168 goes on


def test_the_worker_is_named(toy):
    ax = block_assignment(assignment(accelviz.plan(toy, "fusegnn_gas")))
    assert "a block's thread groups have equally many nonzeros" in read_title(ax)
