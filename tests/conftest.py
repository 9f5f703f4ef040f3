"""Shared by all tests."""

import collections
import contextlib
import gc
import importlib
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import settings

# Numba compiles inside some of the examples, so their times say nothing.
settings.register_profile("accelviz", deadline=None)
settings.load_profile("accelviz")


def pytest_configure():
    """Choose which cases of the tests with `turns` run: others for each commit, the same in it.

    Processes that share the tests take the number over. `ACCELVIZ_TURN` repeats another run's.
    """
    os.environ.setdefault("ACCELVIZ_TURN", str(turn_of_the_commit()))


def pytest_report_header():
    return f"turns: ACCELVIZ_TURN={os.environ['ACCELVIZ_TURN']}"


def turn_of_the_commit():
    """Return a number that is drawn from the commit, 0 outside of a repository."""
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=6", "HEAD"]
    try:
        return int(subprocess.run(git, capture_output=True, check=True, text=True).stdout, 16)
    except (OSError, subprocess.CalledProcessError):
        return 0


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers():
    """One worker more than processors: who grades, launches or drives a browser also waits."""
    found = yield
    return found if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else found + 1


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_collection(session):
    """Look for no garbage meanwhile, and later for none among what stays until the end.

    Modules and tests are a million objects, which each search would go through.
    """
    gc.disable()
    import_a_share(session.config)
    found = yield
    gc.freeze()
    gc.enable()
    return found


def import_a_share(config):
    """Import what no other worker begins with: Python keeps what it compiles, for all of them.

    In a fresh checkout compiling takes longer than all else until the first test. A module that
    cannot be imported is tried again, and reported, when it is collected.
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
def pytest_collection_modifyitems(items):
    deal_turns(items, int(os.environ["ACCELVIZ_TURN"]))
    found = yield
    name_groups(items)
    return found


def deal_turns(items, turn):
    """Of a test with `turns(n)`, let every n-th case run on this commit; the others are `long`.

    Cases on the CPU, which are fast, all run; and those of whose parameters `always` says so. Each
    other device has its own turns, so that none has all of its cases on the same commit.
    """
    dealt = collections.Counter()
    for item in items:
        mark = item.get_closest_marker("turns")
        if mark is None:
            continue
        own = item.callspec.params
        (every,), always = mark.args, mark.kwargs.get("always")
        if own.get("device") == "cpu" or (always and always(own)):
            continue
        cases = item.nodeid.partition("[")[0], every, str(own.get("device"))
        if (dealt[cases] - turn) % every:
            item.add_marker(pytest.mark.long)
        dealt[cases] += 1


def name_groups(items):
    """Let `xdist_group` mean something under pytest 9.2, which keeps names elsewhere.

    pytest-xdist 3.8 writes a test's group behind its name, in an attribute that pytest no longer
    reads (pytest-xdist issue 1386). Without, groups are dealt out like any tests.
    """
    for item in items:
        name = vars(item).get("_nodeid")
        if name is not None and name != item.nodeid:
            item._id = type(item._id).parse(name)


@pytest.fixture(scope="session", autouse=True)
def _small_flush():
    """Write 1 MiB before each cold run, not 256 MiB: no test is about how long a run takes."""
    from accelviz.devices import base

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "HOST_FLUSH_BYTES", 1 << 20)
        yield


@pytest.fixture
def file(tmp_path):
    """Write a file and return its path."""

    def write(content, name="g.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
