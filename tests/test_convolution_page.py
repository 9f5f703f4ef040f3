"""docs/convolution.md says what benchmarks/results/convolution-h200.csv holds."""

from accelviz.measure.records import recorded
from tests.pages import check_page, script


def test_the_page_is_what_the_script_writes(monkeypatch, tmp_path):
    check_page(script(monkeypatch, "convolution"), tmp_path)


def test_times_and_targets_by_hand(monkeypatch):
    names = script(monkeypatch, "convolution")
    table = recorded("convolution-h200")
    found = names["times"](table)
    case = table.query("layer == '512-512@4' and batch == 256 and cg == 2 and co == 0.5")
    case = case[case["network"] == "vgg16"].set_index(["pass", "strategy", "arithmetic"])
    own = case["median_us"]
    row = found.loc[("backward", "vgg16", 256, 2, 0.5, "512-512@4")]
    parts = own["d_input", "strided_windows", "tf32"], own["d_weights", "strided_windows", "tf32"]
    assert row["strided_windows", "tf32"] == sum(parts)
    assert row["dsxplore", "float32"] == own["backward", "dsxplore", "float32"]
    forward = found.xs("forward", level="pass")
    masked = forward["masked", "float32"] / forward["strided_windows", "3xtf32"]
    said = f"no slower than masked on {(masked >= 1).sum()} of {masked.size} layers"
    assert said in names["verdict"](found).splitlines()[1]
    slow = found.copy()
    slow["strided_windows", "3xtf32"] = 1e6
    assert "no slower than masked on 0 of" in names["verdict"](slow).splitlines()[1]
