"""docs/training.md and reproduction.md say what benchmarks/results/training-steps-h200 holds."""

from pathlib import Path

import numpy as np
import pytest

from accelviz.measure.records import recorded
from tests.pages import check_page, script

ROOT = Path(__file__).resolve().parents[1]
STEPS = recorded("training-steps-h200")


def test_the_pages_are_what_the_script_writes(monkeypatch, tmp_path):
    names = script(monkeypatch, "training")
    reproduction = names["REPRODUCTION"].read_text("utf-8")
    copy = tmp_path / "copy.md"
    copy.write_text(reproduction, "utf-8")
    check_page(names, tmp_path, copy)
    assert copy.read_text("utf-8") == reproduction


@pytest.mark.parametrize("form", ["ours", "gnnadvisor"])
def test_a_line_is_of_one_run(monkeypatch, form):
    found = script(monkeypatch, "training")["beside_pyg"](STEPS, form)
    assert not found.empty
    for row in found.itertuples():
        cases = STEPS[(STEPS["graph"] == row.graph) & (STEPS["model"] == row.model)]
        own = cases[(cases["form"] == form) & (cases["step_ms"] == row.ms)]
        assert len(own) == 1
        run = cases[cases["run"] == own["run"].iloc[0]].set_index("form")
        for name in ("edge_index", "csr"):
            known = name in run.index
            assert np.isnan(getattr(row, name)) != known
            assert not known or getattr(row, name) == run.loc[name, "step_ms"]


def test_steps_are_as_much_faster_as_the_readme_says(monkeypatch):
    found = script(monkeypatch, "training")["beside_pyg"](STEPS, "ours")
    found["times"] = found[["edge_index", "csr"]].min(axis=1) / found["ms"]
    large = found[(found["edges"] > 1e6) & found["times"].notna()].groupby("model")["times"]
    times = large.agg(["min", "max"])
    said = {row.Index: f"{row.min:.0f} to {row.max:.0f} times" for row in times.itertuples()}
    readme = (ROOT / "README.md").read_text("utf-8")
    assert f"GAT's {said['gat']}, GCN's {said['gcn']}, GIN's and SAGE's 5 times as fast" in readme
    assert (times.loc[["gin", "sage"], "min"].round() == 5).all()
