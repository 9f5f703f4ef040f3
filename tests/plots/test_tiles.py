"""Pictures of tensor core tiles and fragments, and of error against speed."""

import numpy as np
import pandas as pd
import pytest

import accelviz
from accelviz import plots
from accelviz.errors import ArgumentError
from accelviz.plans.fragments import SHAPES
from tests.graphs import GRAPHS
from tests.plots.pictures import read_title


@pytest.mark.parametrize("operation", ["spmm", "sddmm"])
@pytest.mark.parametrize(("strategy", "rows"), [("tc_gnn", 16), ("window_tiles", 8)])
def test_a_window_shows_its_nonzeros_before_and_after(strategy, rows, operation):
    plan = accelviz.plan(GRAPHS["every_kind"](), strategy, operation=operation)
    before, after = plots.window_tiles(plan, 1)
    chosen = plan.tiles.first_row == rows
    pointers = plan.walked.row_pointers[[rows, min(2 * rows, plan.walked.n_rows)]]
    nonzeros = pointers[1] - pointers[0]
    counts = [len(collection.get_paths()) for collection in after.collections]
    assert counts == [chosen.sum(), nonzeros]
    shaded, cells = before.collections
    columns = plan.walked.column_indices[slice(*pointers)]
    lefts = sorted(path.vertices[0, 0] for path in cells.get_paths())
    assert lefts == sorted(columns)
    width = plan.tiles.columns
    assert len(shaded.get_paths()) == np.unique(columns // width).size
    assert f"{chosen.sum()} tiles of {rows} x {width}" in read_title(after)


def test_a_window_without_a_nonzero_and_plans_without_tiles():
    panels = plots.window_tiles(accelviz.plan(GRAPHS["no_edges"](), "tc_gnn"))
    assert "0 tiles" in read_title(panels[1])
    plan = accelviz.plan("cora", "tc_gnn")
    with pytest.raises(ArgumentError, match="window"):
        plots.window_tiles(plan, 1000)
    with pytest.raises(ArgumentError, match="no tiles"):
        plots.window_tiles(accelviz.plan("cora", "accel_gcn"))


@pytest.mark.parametrize("name", ["tf32 m16n8k8", "s8 m16n8k32"])
def test_every_element_has_its_lane_s_number(name):
    shape = SHAPES[name]
    for ax, matrix in zip(plots.fragment_lanes(shape), "ABC", strict=True):
        lanes = shape.lanes(matrix)[..., 0]
        assert [int(text.get_text()) for text in ax.texts] == lanes.ravel().tolist()


def test_error_against_speed_is_a_mean_and_a_maximum():
    """Twice and eight times as fast is four times in the mean; the faster setting counts."""
    table = pd.DataFrame(
        [
            *(("a", 8, "lane_groups", "float32", 80.0, 1e-7),),
            *(("a", 8, "window_tiles", "tf32", 40.0, 9e-4),),
            *(("b", 8, "lane_groups", "float32", 80.0, 2e-7),),
            *(("b", 8, "window_tiles", "tf32", 10.0, 1e-4),),
            *(("b", 8, "window_tiles", "tf32", 99.0, 1e-4),),
        ],
        columns=["graph", "columns", "strategy", "dtype", "median_us", "error"],
    )
    ax = plots.error_against_speed(table)
    points = [tuple(line.get_xydata()[0]) for line in ax.lines if len(line.get_xydata()) == 1]
    assert np.allclose(points, [(1, 2e-7), (4, 9e-4)])
    assert "2 cases" in read_title(ax)
    with pytest.raises(ArgumentError, match="cusparse"):
        plots.error_against_speed(table, over="cusparse")
