"""docs/tensor-cores.md says what benchmarks/results/tensor-*.csv hold."""

import runpy
from pathlib import Path

import accelviz
from accelviz.measure.records import recorded
from accelviz.tensor_cores.windows import row_windows, untranslated_blocks

PAGES = Path(__file__).resolve().parents[1] / "benchmarks" / "pages"


def test_the_page_is_what_the_script_writes(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(PAGES))
    names = runpy.run_path(str(PAGES / "tensor_cores.py"))
    copy = tmp_path / "tensor-cores.md"
    written = names["PAGE"].read_text("utf-8")
    copy.write_text(written, "utf-8")
    names["main"](copy)
    assert copy.read_text("utf-8") == written


def test_recorded_tiles_are_counted():
    table = recorded("tensor-tiles").set_index(["graph", "operation"])
    found = table.loc[("cora", "sddmm")]
    graph = accelviz.load_graph("cora")
    assert found["tiles_after"] == row_windows(graph, 16).blocks(16).sum()
    assert found["tiles_before"] == untranslated_blocks(graph, 16, 16).sum()
    saved = recorded("tensor-tiles").query("operation == 'spmm'")["saved"]
    assert round(saved.mean(), 2) == 0.79
