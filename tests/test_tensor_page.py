"""docs/tensor-cores.md says what benchmarks/results/tensor-*.csv hold."""

import accelviz
from accelviz.measure.records import recorded
from accelviz.tensor_cores.windows import row_windows, untranslated_blocks
from tests.pages import check_page, script


def test_the_page_is_what_the_script_writes(monkeypatch, tmp_path):
    check_page(script(monkeypatch, "tensor_cores"), tmp_path)


def test_recorded_tiles_are_counted():
    table = recorded("tensor-tiles").set_index(["graph", "operation"])
    found = table.loc[("cora", "sddmm")]
    graph = accelviz.load_graph("cora")
    assert found["tiles_after"] == row_windows(graph, 16).blocks(16).sum()
    assert found["tiles_before"] == untranslated_blocks(graph, 16, 16).sum()
    saved = recorded("tensor-tiles").query("operation == 'spmm'")["saved"]
    assert round(saved.mean(), 2) == 0.79
