"""docs/bits.md says what benchmarks/results/bits-* hold."""

from accelviz.measure.records import recorded
from tests.pages import check_page, script


def test_the_page_is_what_the_script_writes(monkeypatch, tmp_path):
    names = script(monkeypatch, "bits")
    written = check_page(names, tmp_path)
    assert "21 of 24 are met" in written
    assert names["products"](recorded("bits-table-h200")).count(" yes ") == 21
