"""docs/bits.md says what benchmarks/results/bits-* hold."""

import runpy
from pathlib import Path

from accelviz.measure.records import recorded

PAGES = Path(__file__).resolve().parents[1] / "benchmarks" / "pages"


def test_the_page_is_what_the_script_writes(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(PAGES))
    names = runpy.run_path(str(PAGES / "bits.py"))
    copy = tmp_path / "bits.md"
    written = names["PAGE"].read_text("utf-8")
    copy.write_text(written, "utf-8")
    names["main"](copy)
    assert copy.read_text("utf-8") == written
    assert "15 of 24 are met" in written
    assert names["products"](recorded("bits-table-h200")).count(" yes ") == 15
