"""docs/sources.md has every numbered item of the sources, and no number without a record."""

import functools
import importlib
import re
from pathlib import Path

import numpy as np
import pytest

import accelviz
from accelviz import bits, layers, many_gpus
from accelviz.files import results_directory
from benchmarks.pages import sources
from benchmarks.pages.document import Results

ROOT = Path(__file__).parents[1]
ITEMS = sources.items()
#: Last numbers of the sources' figures, tables, algorithms, equations and listings.
LAST = {
    "accel_gcn": {"Figure": 8, "Table": 2, "Algorithm": 2, "Equation": 1},
    "fusegnn": {"Figure": 12, "Table": 5, "Algorithm": 3, "Equation": 5},
    "introduction": {"Figure": 4},
    "qgtc": {"Figure": 10, "Table": 3, "Equation": 8, "Listing": 1},
    "gnnadvisor": {"Figure": 14, "Table": 2, "Equation": 6, "Listing": 1},
    "mgg": {"Figure": 11, "Table": 4, "Equation": 5, "Listing": 1},
    "tc_gnn": {"Figure": 7, "Table": 6, "Listing": 1},
    "dsxplore": {"Figure": 13, "Table": 4, "Equation": 3},
    "receptive": {"Figure": 5, "Table": 6, "Equation": 7, "Listing": 2},
}
KINDS = ("Figure", "Table", "Algorithm", "Equation", "Listing")
#: Algorithms of the thesis, which are numbered across chapters.
ALGORITHMS = {"qgtc": [1], "gnnadvisor": [2], "mgg": [3], "tc_gnn": [4, 5, 6], "dsxplore": [7, 8]}
#: Names that need PyTorch, which may be missing; their own tests call them.
OF_PYTORCH = ("accelviz.torch.SlidingChannelConv2d", "convolution.optimize")
#: What may have digits in words of our own: names of items, code, units of a setting.
SETTING = (
    r"`[^`]*`|(Figure|Table|Algorithm)s? \d[\d.]*|A2|float(32|64)|INT[48]"
    r"|OVCAR-8H|SW-620H|amazon0601|CIFAR-10|VGG1[69]|ResNet(18|50)"
    r"|\d+ (and \d+ )?(columns|bits|GPUs|epochs|images)|\bcg of \d( and \d)?|\d+ x \d+|H200|L[12]"
)


def listed(text: str) -> set[tuple[str, str]]:
    """Return the items in a text such as "Figures 4.1 to 4.3, Table II"."""
    items, kind, previous = set(), "", 0
    for word in re.findall(r"(?:Figure|Table|Algorithm|Equation|Listing)s?|to|[\dIV.]+", text):
        if word == "to":
            kind = f"to {kind}"
        elif word[0].isalpha() and word.rstrip("s") in KINDS:
            kind = word.rstrip("s")
        else:
            number = {"I": "1", "II": "2"}.get(word, word)
            *chapter, last = number.split(".")
            first = int(last)
            if kind.startswith("to "):
                kind = kind.removeprefix("to ")
                first = previous + 1
            for value in range(first, int(last) + 1):
                items.add((kind, ".".join([*chapter, str(value)])))
            previous = int(last)
    return items


@pytest.mark.parametrize("source", sources.SOURCES)
def test_every_numbered_item_is_there(source):
    present = set().union(*map(listed, ITEMS.loc[ITEMS["source"] == source, "item"]))
    heading = re.search(r"chapter (\d)", sources.SOURCES[source])
    prefix = f"{heading[1]}." if heading else ""
    wanted = {
        (kind, f"{prefix}{number}")
        for kind, last in LAST[source].items()
        for number in range(1, last + 1)
    }
    wanted |= {("Algorithm", str(number)) for number in ALGORITHMS.get(source, ())}
    assert present == wanted


def test_each_number_is_computed_from_the_records_that_its_row_names():
    used = [name for text in ITEMS["here"] for name in sources.numbers_of(text)]
    assert {*used} == {*sources.NUMBERS}
    for row in ITEMS.itertuples():
        results = Results(results_directory())
        sources.filled(row.here, results)
        assert {*results} == {*row.records.split()}, row.item


def test_no_row_has_a_number_without_a_record():
    for row in ITEMS.itertuples():
        text = re.sub(r"\{[^}]+\}", "", row.here)
        assert not re.search(r"\d", re.sub(SETTING, "", text)), f"{row.item}: {text}"


def spans() -> list[str]:
    """Return the code of the table and of the page's introduction."""
    page = (ROOT / "docs/sources.md").read_text(encoding="utf-8").partition("```")[0]
    page = re.sub(r"\s+", " ", page)
    texts = [page, *ITEMS["printed"], *ITEMS["here"]]
    return [*dict.fromkeys(code for text in texts for code in re.findall(r"`([^`]+)`", text))]


def test_each_call_of_the_page_runs(monkeypatch):
    short = {"epochs": 1, "device": "cpu", "progress": False}
    for name in ("train", "gnnadvisor"):
        monkeypatch.setattr(layers, name, functools.partial(getattr(layers, name), **short))
    graph, vector = accelviz.load_graph("cora"), np.ones(4)
    names = {"accelviz": accelviz, "layers": layers, "many_gpus": many_gpus, "bits": bits}
    names |= {"graph": graph, "X": np.ones((graph.n_cols, 4), np.float32), "plan": accelviz.plan}
    names |= {"split": many_gpus.split(graph, 2), "model": "gcn", "data": "cora"}
    names |= dict.fromkeys(("mean", "variance", "gamma", "beta", "weight", "bias"), vector)
    calls = [code for code in spans() if re.fullmatch(r"[\w.]+\(.+\)", code) and "..." not in code]
    assert len(calls) >= 9
    for code in calls:
        eval(code, names)


def test_each_dotted_name_of_the_page_is_there():
    dotted = [code for code in spans() if re.fullmatch(r"[a-z_]+(\.\w+)+", code)]
    dotted = [code for code in dotted if code not in OF_PYTORCH]
    assert len(dotted) >= 8
    for code in dotted:
        module, _, name = code.removeprefix("accelviz.").rpartition(".")
        parent = importlib.import_module(f"accelviz.{module}" if module else "accelviz")
        assert hasattr(parent, name), code


def test_a_row_says_where_or_why_not():
    for row in ITEMS.itertuples():
        assert row.printed, row.item
        assert row.where or row.here.startswith(("not ", "follows ")), row.item
