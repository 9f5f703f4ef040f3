"""Pictures of tiles and fragments show what is in the plan and in the table of lanes."""

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt

import accelviz
from accelviz import plots
from accelviz.errors import ArgumentError
from accelviz.tensor_cores.fragments import SHAPES
from tests.graphs import GRAPHS

matplotlib.use("agg")


@pytest.mark.parametrize("operation", ["spmm", "sddmm"])
def test_a_window_shows_its_nonzeros_before_and_after(operation):
    plan = accelviz.plan(GRAPHS["every_kind"](), "tc_gnn", operation=operation)
    before, after = plots.window_tiles(plan, 1)
    own = plan.tiles.block == 1
    pointers = plan.walked.row_pointers
    nonzeros = pointers[-1] - pointers[16]
    assert [len(each.get_paths()) for each in after.collections] == [own.sum(), nonzeros]
    shaded, cells = before.collections
    columns = plan.walked.column_indices[pointers[16] :]
    found = sorted(path.vertices[0, 0] for path in cells.get_paths())
    assert found == sorted(columns)
    width = plan.tiles.columns
    assert len(shaded.get_paths()) == np.unique(columns // width).size
    assert f"{own.sum()} tiles of 16 x {width}" in after.get_title(loc="left")
    plt.close(after.figure)


def test_a_window_without_a_nonzero_and_plans_without_tiles():
    panels = plots.window_tiles(accelviz.plan(GRAPHS["no_edges"](), "tc_gnn"))
    assert "0 tiles" in panels[1].get_title(loc="left")
    plt.close(panels[0].figure)
    plan = accelviz.plan("cora", "tc_gnn")
    with pytest.raises(ArgumentError, match="window"):
        plots.window_tiles(plan, 1000)
    for draw in (plots.window_tiles, plots.tile_fill):
        with pytest.raises(ArgumentError, match="no tiles"):
            draw(accelviz.plan("cora"))


def test_the_histogram_counts_every_tile():
    plan = accelviz.plan("cora", "tc_gnn")
    ax = plots.tile_fill(plan)
    heights = {round(bar.get_center()[0]): bar.get_height() for bar in ax.patches}
    assert sum(heights.values()) == len(plan.tiles)
    assert sum(count * tiles for count, tiles in heights.items()) == plan.pattern.nnz
    plt.close(ax.figure)


@pytest.mark.parametrize("name", ["tf32 m16n8k8", "s8 m16n8k32"])
def test_every_element_has_its_lane_s_number(name):
    shape = SHAPES[name]
    for ax, matrix in zip(plots.fragment_lanes(shape), "ABC", strict=True):
        lanes = shape.lanes(matrix)[..., 0]
        assert [int(text.get_text()) for text in ax.texts] == lanes.ravel().tolist()
    plt.close(ax.figure)
