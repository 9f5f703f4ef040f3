"""Pictures of training: memory, accuracy, times, and attention weights."""

import numpy as np
import pandas as pd
import pytest

from accelviz import layers, plots
from accelviz.errors import ArgumentError
from tests.graphs import graph_of_degrees
from tests.plots.pictures import read_title
from tests.test_training import SMALL


def test_the_memory_of_a_step_grows_forward_and_is_less_where_attention_is_fused():
    options = {"device": "cpu", "hidden": 2}
    tables = [layers.step_memory("gat", SMALL, fused=fused, **options) for fused in (True, False)]
    for table in tables:
        forward = table[table.direction == "forward"]
        assert forward.mib.iloc[0] == 0
        assert forward.mib.iloc[-1] > 0
        assert table.operation.iloc[-1] == "optimiser"
        assert table.mib.iloc[-1] < table.mib.max()
    assert {"gat", "gat_gradient"} <= set(tables[0].operation)
    assert {"spmm", "edge_softmax", "sddmm"} <= set(tables[1].operation)
    assert tables[0].mib.max() < tables[1].mib.max()
    ax = plots.step_memory(tables[0], called="GAT")
    assert [bar.get_height() for bar in ax.patches] == pytest.approx([*tables[0].mib])
    assert read_title(ax).startswith(f"GAT: {tables[0].mib.max():.1f} MiB")


def test_accuracies_are_drawn_epoch_after_epoch():
    shares = {"train_accuracy": [0.2, 1.0], "val_accuracy": [0.1, 0.5], "test_accuracy": [0, 0.75]}
    ax = plots.accuracies(pd.DataFrame({"epoch": [1, 2], **shares}))
    drawn = {f"{line.get_label()}_accuracy": [*line.get_ydata()] for line in ax.lines}
    assert drawn == shares
    assert read_title(ax) == "75.0% of the test nodes are right after 2 epochs"
    assert ax.figure.alt == "Right after the last epoch: train 100.0%, val 50.0%, test 75.0%."
    del shares["test_accuracy"]
    ax = plots.accuracies(pd.DataFrame({"epoch": [1, 2], **shares}))
    assert read_title(ax) == "50.0% of the val nodes are right after 2 epochs"
    with pytest.raises(ArgumentError, match="^history: it has no accuracies"):
        plots.accuracies(pd.DataFrame({"epoch": [1], "test_mse": [0.5]}))


def test_the_times_of_a_step_are_medians_in_order():
    columns = {"spmm_seconds": [0.001, 0.003, 0.002], "dense_seconds": [0.006, 0.006, np.nan]}
    ax = plots.step_times(pd.DataFrame({"epoch": [1, 2, 3], "seconds": 1.0, **columns}))
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([2, 6])
    assert read_title(ax) == "dense takes 75% of a step of 8.00 ms"
    with pytest.raises(ArgumentError, match="no times of operations"):
        plots.step_times(pd.DataFrame({"epoch": [1], "seconds": [1.0]}))


def test_neighbors_are_labelled_with_their_weights():
    graph = graph_of_degrees([3, 0, 30], 40)
    weights = np.arange(33.0)
    texts = [text.get_text() for text in plots.neighbor_weights(graph, weights, 0).texts]
    assert [text.split("\n")[1] for text in texts[:3]] == ["2.00", "1.00", "0.00"]
    assert texts[-1] == "0"
    title = read_title(plots.neighbor_weights(graph, weights, 2))
    assert "6 of them weigh 33.00 together" in title.replace("\n", " ")
    assert not plots.neighbor_weights(graph, weights, 1).lines[1:]
    for node, refused in ((3, weights), (0, weights[1:]), (0, -weights)):
        with pytest.raises(ArgumentError):
            plots.neighbor_weights(graph, refused, node)
