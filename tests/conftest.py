"""Shared by all tests."""

import collections

import pytest
from hypothesis import settings

# Numba compiles inside some of the examples, so their times say nothing.
settings.register_profile("accelviz", deadline=None)
settings.load_profile("accelviz")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items):
    deal_turns(items)
    found = yield
    name_groups(items)
    return found


def deal_turns(items):
    """Of a test with `turns(n)`, let every n-th case run each day; the others are `long`.

    `first` says with which to begin. Cases on the CPU, which are fast, all run; and those of whose
    parameters `always` says so.
    """
    dealt = collections.Counter()
    for item in items:
        mark = item.get_closest_marker("turns")
        if mark is None:
            continue
        own = item.callspec.params
        (every,), first, always = mark.args, mark.kwargs.get("first", 0), mark.kwargs.get("always")
        if own.get("device") == "cpu" or (always and always(own)):
            continue
        test = item.nodeid.partition("[")[0]
        if dealt[test] % every != first:
            item.add_marker(pytest.mark.long)
        dealt[test] += 1


def name_groups(items):
    """Let `xdist_group` mean something under pytest 9.2, which keeps names elsewhere.

    pytest-xdist 3.8 writes a test's group behind its name, in an attribute that pytest no longer
    reads (pytest-xdist issue 1386). Without, groups are dealt out like any tests.
    """
    for item in items:
        name = vars(item).get("_nodeid")
        if name is not None and name != item.nodeid:
            item._id = type(item._id).parse(name)


@pytest.fixture
def file(tmp_path):
    """Write a file and return its path."""

    def write(content, name="g.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
