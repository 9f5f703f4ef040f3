"""The guide in CONTRIBUTING.md works as it is written: its kernel, its class, its line."""

import importlib
import importlib.util
import re
import shutil
from pathlib import Path

import pytest

import accelviz
from accelviz import files, measure
from accelviz.executors import find_executor
from accelviz.measure.accuracy import Oracle
from tests.graphs import MADE

GUIDE = (Path(__file__).resolve().parents[1] / "CONTRIBUTING.md").read_text("utf-8")
STEPS = GUIDE.partition("## Add a strategy")[2].partition("## What a kernel may use")[0]


def block(language):
    """The one code block of a language in the guide, and the file that its step names."""
    step = rf"`([\w/]+\.\w+)`[^`]*:(?:(?!```).)*```{language}\n(.*?)```"
    [(path, code)] = re.findall(step, STEPS, re.S)
    return path, code


@pytest.fixture
def added(monkeypatch, tmp_path):
    """Follow the guide in a copy of the kernels; return the strategy."""
    kernel, cuda = block("cuda")
    shutil.copytree(files.kernel_directory(), tmp_path / "kernels")
    for module in ("files", "executors.emulator.build"):
        name = f"accelviz.{module}.kernel_directory"
        monkeypatch.setattr(name, lambda: tmp_path / "kernels")
    (tmp_path / kernel).write_text(cuda, "utf-8")
    path, code = block("python")
    assert path.startswith("accelviz/strategies/spmm/")
    (tmp_path / "mine.py").write_text(code, "utf-8")
    spec = importlib.util.spec_from_file_location("mine", tmp_path / "mine.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    registry = importlib.import_module("accelviz.strategies")
    (line,) = re.findall(r"^3. `(\w+\(\)),` in `REGISTRY`", STEPS, re.M)
    strategy = eval(line, vars(module))
    monkeypatch.setattr(registry, "REGISTRY", (*registry.REGISTRY, strategy))
    return strategy


@pytest.mark.parametrize("name", ["empty", "isolated_ends", "hub", "wide", "tall"])
@pytest.mark.parametrize("device", ["cpu", "emulator"])
def test_the_strategy_of_the_guide_is_right(added, name, device):
    executor = find_executor(device)
    if problem := executor.why_not():
        pytest.skip(problem)
    graph = MADE[name]()
    X = measure.features(graph.shape[1], 40)
    oracle = Oracle(graph, X)
    for n_cols in (1, 32, 40):
        plan = accelviz.plan(graph, added.name, n_cols)
        plan.check()
        operands = {"X": X[:, :n_cols]}
        assert measure.check(plan, executor.prepare(plan), operands, oracle) <= 1


def test_the_strategy_of_the_guide_is_in_every_table(added):
    assert accelviz.strategies()[added.name] == added.summary
    table = accelviz.sweep("cora", strategies=[added.name, "graphblast"])
    assert table["largest"].nunique() == 1
    assert table["blocks"].tolist() == [2708, 677]


def test_the_guide_fits_a_screen():
    guide = STEPS.partition("A kernel begins")[0].strip().splitlines()
    assert len(guide) <= 53
