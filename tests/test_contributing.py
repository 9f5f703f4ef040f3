"""The guide in CONTRIBUTING.md works as written: its kernel, its class, its registration."""

import importlib
import importlib.util
import re
import shutil
from pathlib import Path

import pytest

import accelviz
from accelviz import files, measure
from accelviz.devices import find_device
from accelviz.errors import KernelError
from accelviz.measure.accuracy import Oracle
from tests.graphs import MADE
from tests.test_sweep import check_against_workload

GUIDE = (Path(__file__).resolve().parents[1] / "CONTRIBUTING.md").read_text("utf-8")
STEPS = GUIDE.partition("## Add a strategy")[2].partition("## What a kernel may use")[0]


def block(language):
    """Return the only code block of a language in the guide, and the file named in its step."""
    step = rf"`([\w/]+\.\w+)`[^`]*:(?:(?!```).)*```{language}\n(.*?)```"
    [(path, code)] = re.findall(step, STEPS, re.S)
    return path, code


@pytest.fixture
def added(monkeypatch, tmp_path):
    """Follow the guide in a copy of the kernels; return the strategy."""
    kernel, cuda = block("cuda")
    shutil.copytree(files.kernel_directory(), tmp_path / "kernels")
    for module in ("files", "emulator.build"):
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
    executor = find_device(device)
    if problem := executor.unavailable_reason():
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


@pytest.mark.parametrize("name", ["empty", "hub", "every_kind"])
def test_the_strategy_of_the_guide_has_a_closed_form(added, name):
    check_against_workload(MADE[name](), added, 40)


NOTE = re.sub(r"\s+", " ", STEPS.partition("A notebook needs neither")[2])


def in_a_notebook(cuda):
    """Return the guide's strategy with its kernel as text, following the note for notebooks."""
    spec = re.search(r"`(KernelSpec\(.*?, code=source\))`", NOTE)[1]
    _, code = block("python")
    registered = re.search(r"KernelSpec\(.*?\)", code)[0]
    names = {"source": cuda}
    exec(code.replace(registered, spec), names)
    return names["Mine"]()


#: Mistakes: words of the guide's kernel, their replacement, and words of the error message.
MISTAKES = {
    "race": ("column = threadIdx.x;", "column = threadIdx.x / 2;", r"mine.cu:12: a race: .*Y\[0\]"),
    "index": ("columns[k], ", "columns[k] + 1, ", r"mine.cu:10: out of bounds: .*X\[108320\]"),
    "mask": ("column < n_cols", "column < 64", r"mine.cu:1[02]: (a race|out of bounds)"),
    "unwritten": ("Y[element(row, column, n_cols)] = sum;", "", r"Y\[0, 0\] is nan and should be"),
    "wrong": ("sum += values[k] *", "sum +=", r"Y\[0, 0\] is .* elements are wrong; the largest"),
    "name": ("void mine(", "void mein(", r"mine.cu: there is no kernel 'mine'.*: mein\."),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_notebook_s_kernel_is_told_with_its_place(mistake):
    if problem := find_device("emulator").unavailable_reason():
        pytest.skip(problem)
    _, cuda = block("cuda")
    old, new, said = MISTAKES[mistake]
    assert cuda.count(old) == 1
    call = {"states": ["warm"], "repeats": 1, "progress": False}
    wrong = in_a_notebook(cuda.replace(old, new))
    with pytest.raises(KernelError, match=said):
        accelviz.benchmark("cora", wrong, 40, "emulator", **call)
    if mistake == "wrong":  # as the guide warns: the replay has no kernel
        assert accelviz.benchmark("cora", wrong, 40, "cpu", **call)["median_us"].notna().all()
        table = accelviz.benchmark("cora", in_a_notebook(cuda), 40, "emulator", **call)
        assert table["device"].tolist() == ["emulator"]


def test_a_kernel_that_is_no_file_of_the_package_may_come_as_text():
    _, code = block("python")
    exec(code, names := {})
    with pytest.raises(KernelError, match=r"spmm/mine.cu: .*code=text.*spmm/accel_gcn.cu"):
        accelviz.plan("cora", names["Mine"](), 8).kernel.source()


def test_the_guide_fits_a_screen():
    guide = STEPS.partition("- For consecutive rows")[0].strip().splitlines()
    assert len(guide) <= 62
