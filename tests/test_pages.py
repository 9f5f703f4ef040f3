"""Documents that benchmarks/pages writes hold what is recorded, and their numbers are right."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import accelviz
from accelviz.files import results_directory
from accelviz.measure.records import recorded
from accelviz.partition.windows import row_windows
from benchmarks.pages import bits, checkers, convolution, many_gpus, sddmm, training
from benchmarks.pages.__main__ import main, pages
from benchmarks.pages.document import Page, Results, replace_section, table

DOCS = Path(__file__).resolve().parents[1] / "docs"
RESULTS = Results(results_directory())
STEPS = recorded("training-steps-h200")
#: The graphs of docs/graphs.md are made anew by its section, which takes minutes.
DOCUMENTS = [name for name in pages() if name != "graphs"]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_holds_what_is_recorded(monkeypatch, tmp_path, capsys, name):
    monkeypatch.setattr(Figure, "savefig", lambda *_, **__: None)  # takes most of the time
    committed = (DOCS / f"{name}.md").read_text("utf-8")
    (tmp_path / f"{name}.md").write_text(committed, "utf-8")
    main([name, "--docs", str(tmp_path)])
    text = (tmp_path / f"{name}.md").read_text("utf-8")
    assert text == committed, f"run `python -m benchmarks.pages {name}`"
    assert "there is no" not in capsys.readouterr().out
    for picture in re.findall(r"]\((figures/[^)]+)\)", committed):
        assert (DOCS / picture).exists()


def test_an_unknown_document_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["readme"])
    assert "no document 'readme'; choose from reproduction, bits" in capsys.readouterr().err


def test_cells_hold_numbers_losses_and_what_is_missing():
    rows = pd.DataFrame({"us": [1234.5, np.nan]}, index=pd.Index(["a", "b"], name="graph"))
    columns = [("graph", "{graph}"), ("µs", "{us:,.1f}"), ("ratio", "{ratio:ratio}")]
    text = table(columns, rows.assign(ratio=[0.5, 2.0]))
    assert text.splitlines()[2:] == ["| a | 1,234.5 | **0.50** |", "| b | – | 2.00 |"]
    with pytest.raises(SystemExit, match="no marks for a"):
        replace_section("<!-- b -->", "a", "text")


def test_a_section_without_results_stays_unless_its_page_is_of_one_machine(tmp_path, capsys):
    text = "<!-- a -->\nold\n<!-- end of a -->"
    sections = {"a": lambda results: str(len(results["times"]))}
    folder = Results(tmp_path)
    assert Page("a.md", sections).renew(folder, text, tmp_path) == text
    emptied = Page("a.md", sections, one_machine=True).renew(folder, text, tmp_path)
    assert emptied == text.replace("old", "")
    assert "a stays as it is: there is no" in capsys.readouterr().out
    (tmp_path / "times.csv").write_text("x\n1\n2\n", "utf-8")
    assert Page("a.md", sections).renew(folder, text, tmp_path) == text.replace("old", "2")


def test_products_of_bits_meet_their_targets():
    assert bits.products(recorded("bits-table-h200")).count(" yes ") == 21
    assert "21 of 24 are met" in (DOCS / "bits.md").read_text("utf-8")


def run(kernel, kind, warps, tool, hit, seconds=1.0):
    about = {"first_seconds": seconds + 0.5, "hardware": "H", "software": "S", "date": "D"}
    about |= {"found": hit, "result": "found" if hit else "right", "seconds": seconds}
    return {"kernel": kernel, "kind": kind, "warps": warps, "tool": tool, **about}


def test_tools_are_compared_on_the_same_runs_and_misses_are_named():
    four = ("memcheck", "racecheck", "initcheck", "synccheck")
    runs = [
        *(run("sum", "late write", 2, tool, tool == "racecheck") for tool in four),
        *(run("sum", "", 2, tool, tool == "initcheck", 2.0) for tool in four),
        run("sum", "late write", 2, "emulator", 0),
        run("sum", "late write", 8, "emulator", 1),  # which no other has
        run("sum", "", 2, "emulator", 0),
    ]
    rows = checkers.four_together(pd.DataFrame(runs))
    lines = checkers.summary(checkers.shared(rows)).splitlines()
    cells = {line.split(" | ")[0].strip("| "): line.strip("| ").split(" | ")[1:] for line in lines}
    assert cells["compute-sanitizer, racecheck"] == ["1 of 1", "1 of 1", "0 of 1", "1.50"]
    assert cells["compute-sanitizer, all four"] == ["1 of 1", "1 of 1", "1 of 1", "6.00"]
    assert cells["**emulator**"] == ["0 of 1", "0 of 1", "0 of 1", "1.00"]
    names = checkers.exceptions(rows)
    assert "The emulator misses: `sum`, late write (2 warps)." in names
    assert "False alarms of initcheck: `sum` (2 warps)." in names
    assert "False alarms of racecheck: none." in names
    assert "3 runs; the tables compare the 2" in checkers.corpus(rows)


def test_convolutions_times_and_targets_by_hand():
    rows = recorded("convolution-h200")
    us = convolution.times(rows)
    case = rows.query("layer == '512-512@4' and batch == 256 and cg == 2 and co == 0.5")
    case = case[case["network"] == "vgg16"].set_index(["pass", "strategy", "arithmetic"])
    median = case["median_us"]
    row = us.loc[("backward", "vgg16", 256, 2, 0.5, "512-512@4")]
    parts = [median[part, "strided_windows", "tf32"] for part in ("d_input", "d_weights")]
    assert row["strided_windows", "tf32"] == sum(parts)
    assert row["dsxplore", "float32"] == median["backward", "dsxplore", "float32"]
    forward = us.xs("forward", level="pass")
    masked = forward["masked", "float32"] / forward["strided_windows", "3xtf32"]
    verdict = f"no slower than masked on {(masked >= 1).sum()} of {masked.size} layers"
    assert verdict in convolution.verdict(us).splitlines()[1]
    slow = us.copy()
    slow["strided_windows", "3xtf32"] = 1e6
    assert "no slower than masked on 0 of" in convolution.verdict(slow).splitlines()[1]


def test_sddmm_s_ratios_by_hand_and_a_missed_target_is_named():
    rows = recorded("sddmm-h200")
    by_case = sddmm.cases(rows)
    assert len(by_case) == 19 * 4
    case = rows[(rows["graph"] == "mit8") & (rows["columns"] == 64)]
    times = case.set_index("strategy")["median_us"]
    assert by_case.loc[("mit8", 64), "ahead"] == times["cusparse"].min() / times["lane_groups"]
    slow = by_case.copy()
    slow.loc[("mit8", 64), ["ahead", "share"]] = [1.25, 0.5]
    counters = pd.DataFrame(
        {"l2_pct": [60.0], "dram_pct": [5.0], "l1_hit_pct": [20.0]}
        | {"active_cycles": [80.0], "elapsed_cycles": [100.0]},
        index=pd.MultiIndex.from_tuples([("mit8", 64)]),
    )
    text = sddmm.verdict(slow, counters)
    assert "**not met** on mit8 with 64 columns, 1.25" in text
    assert "2.50 times as fast" in text
    assert "the L2 at 60 % of its peak while the SMs work 80 % of the launch" in text


def test_recorded_tiles_are_counted():
    rows = recorded("tensor-tiles").set_index(["graph", "operation"])
    graph = accelviz.load_graph("cora")
    row = rows.loc[("cora", "sddmm")]
    assert row["tiles_after"] == row_windows(graph, 16).blocks(16).sum()
    window = np.repeat(np.arange(graph.n_rows) // 16, graph.degrees)
    assert row["tiles_before"] == len({*zip(window, graph.column_indices // 16, strict=True)})
    assert round(rows.xs("spmm", level="operation")["saved"].mean(), 2) == 0.79


@pytest.mark.parametrize("form", ["ours", "gnnadvisor"])
def test_a_line_of_training_steps_is_of_one_run(form):
    lines = training.beside_pyg(STEPS, form)
    assert not lines.empty
    for row in lines.itertuples():
        cases = STEPS[(STEPS["graph"] == row.graph) & (STEPS["model"] == row.model)]
        ours = cases[(cases["form"] == form) & (cases["step_ms"] == row.ms)]
        assert len(ours) == 1
        of_run = cases[cases["run"] == ours["run"].iloc[0]].set_index("form")
        for name in ("edge_index", "csr"):
            known = name in of_run.index
            assert np.isnan(getattr(row, name)) != known
            assert not known or getattr(row, name) == of_run.loc[name, "step_ms"]


def test_steps_are_as_much_faster_as_the_readme_says():
    rows = training.beside_pyg(STEPS, "ours")
    rows["times"] = rows[["edge_index", "csr"]].min(axis=1) / rows["ms"]
    large = rows[(rows["edges"] > 1e6) & rows["times"].notna()].groupby("model")["times"]
    times = large.agg(["min", "max"])
    names = {row.Index: f"{row.min:.0f} to {row.max:.0f} times" for row in times.itertuples()}
    readme = (DOCS.parent / "README.md").read_text("utf-8")
    assert f"GAT's {names['gat']}, GCN's {names['gcn']}, GIN's and SAGE's 5 times as fast" in readme
    assert (times.loc[["gin", "sage"], "min"].round() == 5).all()


def test_two_gpus_gain_on_reddit_and_every_target_is_met():
    cases = many_gpus.cases(RESULTS)
    row = cases.query("graph.str.startswith('Reddit') and order == 'rabbit' and columns == 128")
    assert (row["one"] / row["ours"]).item() > 1.8
    assert "**not met**" not in (DOCS / "many-gpus.md").read_text("utf-8")
