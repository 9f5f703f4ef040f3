"""Options, selection of cases and fixtures of all tests."""

import collections
import contextlib
import gc
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# Threads of OpenMP (torch) and OpenBLAS (NumPy) spin while they wait, which takes a third of the
# processor time of the tests with torch where workers share processors. Set before their import.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# No deadline, because Numba compiles inside some of the examples.
settings.register_profile("accelviz", deadline=None)
settings.load_profile("accelviz")


def pytest_addoption(parser):
    parser.addoption(
        "--all", action="store_true", help="run every case, not the sample of `make test`"
    )
    parser.addoption(
        "--expect-skips", metavar="FILE", help="fail unless exactly these cases are skipped"
    )


def changed_stems():
    """Return the names, without ending, of the files changed since the upstream branch.

    Without an upstream branch these are the files with uncommitted changes. Outside of a
    repository there are none.
    """
    root = str(Path(__file__).parent)
    for base in ("@{upstream}", "HEAD"):
        git = ["git", "-C", root, "diff", "--name-only", base]
        try:
            listing = subprocess.run(git, capture_output=True, check=True, text=True).stdout
        except (OSError, subprocess.CalledProcessError):
            continue
        return {Path(line).stem for line in listing.splitlines()} - {"__init__", "conftest"}
    return set()


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Use one worker more than processors, as grading, launches and browser tests often wait."""
    workers = yield
    return workers if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else workers + 1


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_collection(session):
    """Disable garbage collection during collection, and freeze the objects that it creates.

    Modules and tests are about a million objects, which each later collection would scan.
    """
    gc.disable()
    import_share_of_tests(session.config)
    outcome = yield
    gc.freeze()
    gc.enable()
    return outcome


@pytest.fixture(autouse=True)
def _close_figures():
    """Close what a test has drawn: pyplot warns of more than 20 open figures."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def import_share_of_tests(config):
    """Import this worker's share of the test modules, so that Python's bytecode cache has all.

    In a fresh checkout, compiling takes most of the time before the first test. Import errors are
    ignored here and reported when the module is collected.
    """
    worker = getattr(config, "workerinput", None)
    if worker is None or config.args_source is not config.ArgsSource.TESTPATHS:
        return
    tests = Path(__file__).parent
    names = [path.relative_to(tests.parent).with_suffix("") for path in tests.rglob("test_*.py")]
    for name in sorted(names)[int(worker["workerid"][2:]) :: worker["workercount"]]:
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(name.parts))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config, items):
    if not config.getoption("all"):
        items[:], left_out = split_by_sample(items, changed_stems())
        config.hook.pytest_deselected(items=left_out)
    outcome = yield
    move_groups_into_names(items)
    return outcome


def split_by_sample(items, changed):
    """Split the cases into those of `make test` and the others; return both lists.

    The others are marked `long`, or belong to a test marked `sample(n)`. Of each n consecutive
    cases of such a test one runs: the first of the first n, the second of the second n, and so on,
    which crosses a grid of parameters diagonally. Devices are sampled separately; all cases run on
    the CPU, which is fast, and all whose parameters satisfy the mark's `always`. A case whose name
    contains that of a changed file always runs.
    """
    counts = collections.Counter()
    run, left_out = [], []
    for item in items:
        in_sample = item.get_closest_marker("long") is None
        mark = item.get_closest_marker("sample")
        if mark is not None:
            (every,), always = mark.args, mark.kwargs.get("always")
            parameters = item.callspec.params
            group = item.nodeid.partition("[")[0], every, str(parameters.get("device"))
            position, counts[group] = counts[group], counts[group] + 1
            drawn = position % every == position // every % every
            if not drawn and parameters.get("device") != "cpu":
                in_sample = in_sample and bool(always and always(parameters))
        in_sample = in_sample or any(stem in item.nodeid for stem in changed)
        (run if in_sample else left_out).append(item)
    return run, left_out


def pytest_sessionfinish(session):
    """Fail the session if the skipped cases differ from the expected list."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.exitstatus or reporter is None or not session.config.getoption("expect_skips"):
        return
    if skips(reporter) ^ expected_skips(session.config, skips(reporter)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    """Print the skipped cases with their reasons, and differences from the expected list."""
    if config.getoption("expect_skips"):
        seen = skips(terminalreporter)
        expected = expected_skips(config, seen)
        terminalreporter.section(f"skipped: {len(seen)} tests")
        for line in sorted(seen | expected):
            difference = "" if line in seen & expected else "NEW: " if line in seen else "GONE: "
            terminalreporter.write_line(f"{difference}{line}")


def expected_skips(config, seen):
    """Return the lines of the list; one that begins with "? " counts only if it was seen."""
    path = Path(config.getoption("expect_skips"))
    lines = set(path.read_text("utf-8").splitlines()) if path.exists() else set()
    optional = {line.removeprefix("? ") for line in lines if line.startswith("? ")}
    return {line for line in lines if not line.startswith("? ")} | optional & seen


def skips(reporter):
    """Return the set of `test: reason` of skipped tests, without parameters and xdist's group."""
    lines = set()
    for report in reporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        test = re.split(r"[\[@]", report.nodeid, maxsplit=1)[0]
        lines.add(f"{test}: {reason.removeprefix('Skipped: ')}")
    return lines


def move_groups_into_names(items):
    """Make `xdist_group` effective under pytest 9.2.

    pytest-xdist 3.8 appends a test's group to its name in an attribute that pytest 9.2 no longer
    reads (pytest-xdist issue 1386), so that groups would be distributed like single tests.
    """
    for item in items:
        name = vars(item).get("_nodeid")
        if name is not None and name != item.nodeid:
            item._id = type(item._id).parse(name)


@pytest.fixture(scope="session", autouse=True)
def _small_flush():
    """Flush with 1 MiB before each cold run instead of 256 MiB, as no test depends on its time."""
    from accelviz.devices import base

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "HOST_FLUSH_BYTES", 1 << 20)
        yield


@pytest.fixture(autouse=True)
def _forget_plans_of_large_graphs():
    """Clear the stores of large graphs, which stay loaded until the process ends."""
    yield
    from tests.graphs import large_graphs_in_use

    for graph in large_graphs_in_use():
        graph.store.clear()


@pytest.fixture
def file(tmp_path):
    """Return a function that writes a file and returns its path."""

    def write(content, name="g.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def no_compiler(monkeypatch):
    """Make the search for a C++ compiler fail."""
    from accelviz.emulator import compiler

    monkeypatch.setattr(compiler, "_candidates", lambda: [["no-such-compiler"]])
    compiler.find_compiler.cache_clear()
    yield
    compiler.find_compiler.cache_clear()
