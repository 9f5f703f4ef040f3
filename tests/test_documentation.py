"""Python code in the pages on later systems runs as printed, in order."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import accelviz
from accelviz import KernelError, layers, load_graph, many_gpus

DOCS = Path(__file__).resolve().parents[1] / "docs"
#: Blocks that need PyTorch (see test_torch.py) or several processes are not run here.
ELSEWHERE = ("import torch", "many_gpus.this_process()")


def run(page):
    """Run a page's blocks in one namespace; return the namespace and the page's text."""
    text = (DOCS / page).read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    names = {}
    for code in blocks:
        if not any(word in code for word in ELSEWHERE):
            exec(compile(code, page, "exec"), names)
    return names, " ".join(text.split())


def test_bits():
    names, _ = run("bits.md")
    A, X = (names[name].levels().astype(int) for name in "AX")
    assert (names["sums"] == A @ X).all()
    assert names["logits"].shape == (2708, 7)


def test_convolution():
    names, _ = run("convolution.md")
    assert names["best"].depths == (5, 4, 2, 1, 1)
    assert names["dX"].shape == names["X"].shape


@pytest.mark.long
def test_many_gpus():
    names, text = run("many-gpus.md")
    error = names["Y"] - load_graph("collab").adjacency @ names["X"]
    assert np.abs(error).max() < 1e-3
    assert f"here {names['prediction'].speedup:.2f};" in text
    assert str(many_gpus.predict_step(names["work"], (128, 64, 16), names["rates"])) in text


def test_timing(capsys):
    names, _ = run("timing.md")
    assert "median_us" in capsys.readouterr().out  # as a script, too
    rows = accelviz.benchmark(names["graph"], names["Mine"](), 33, "emulator", repeats=1)
    assert rows["error_over_bound"].max() <= 1
    wrong = type("Wrong", (names["Mine"],), {"code": names["Mine"].code.replace("+=", "-=", 2)})
    with pytest.raises(KernelError):
        accelviz.benchmark(names["graph"], wrong(), 33, "emulator", repeats=1)


def test_training():
    names, text = run("training.md")
    assert f"# {names['training'].test_accuracy}; losses" in text


def test_layers():
    names, _ = run("layers.md")
    assert names["mixed"].parameters["1.sender"].shape == (4, 8)
    assert len(names["deep"].layers) == 5
    assert names["mixed"].test_accuracy > 0.6
    assert names["fit"].metric == "mse"
    assert names["inductive"].test_accuracy > 0.8
    np.testing.assert_allclose(names["by_graph"][2], names["logits"], atol=1e-4)
    assert names["losses"][-1] < 0.8 * names["losses"][0]
    assert names["tuned"].history.epoch.tolist() == [*range(1, 6)]
    whole = layers.train("sage", names["union"], epochs=40, **names["options"])
    np.testing.assert_array_equal(names["longer"].logits, whole.logits)


def test_every_page_with_python_is_run_somewhere():
    tests = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    for page in DOCS.glob("*.md"):
        if "```python" in page.read_text("utf-8") and page.name != "files.md":  # fragments of code
            assert f'"{page.name}"' in tests, page.name


@pytest.mark.parametrize(
    ("platform", "name", "student"),
    [
        ("blackboard", "A1_ada_attempt_2026-05-04-12-30-00_A1-counting-sort.ipynb", "ada"),
        ("canvas", "kingada_12_345_A1-counting-sort.ipynb", "12"),
        ("canvas", "kingada_LATE_12_345_A1-counting-sort.ipynb", "12"),
        ("moodle", "Ada K_12_assignsubmission_file_/in a folder/A1-counting-sort.ipynb", "Ada K"),
        ("moodle", "MA1 A1-7/Ada K_12_assignsubmission_file/A1-counting-sort.ipynb", "Ada K"),
        ("moodle", "MA1 A1-7/Ada K_12_assignsubmission_file_A1-counting-sort.ipynb", "Ada K"),
    ],
)
def test_the_patterns_of_collected_names_find_student_and_file(platform, name, student):
    """Names by which nbgrader's `zip_collect` sorts what it unpacks."""
    text = (DOCS / "instructors.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    patterns = {"c": SimpleNamespace(FileNameCollectorPlugin=SimpleNamespace())}
    exec(code, patterns)
    match = re.match(patterns[platform], f"downloaded/A1/extracted/{name}")
    groups = match.groupdict()
    assert groups.pop("timestamp", "2026-05-04-12-30-00") == "2026-05-04-12-30-00"
    assert groups == {"student_id": student, "file_id": "A1-counting-sort.ipynb"}


def test_pages_are_short():
    """Words of tables and code count, too; bars and rules of tables are none."""
    texts = (path.read_text("utf-8") for path in DOCS.glob("*.md"))
    words = [word for text in texts for word in text.split() if re.search(r"\w", word)]
    assert len(words) <= 22_000
