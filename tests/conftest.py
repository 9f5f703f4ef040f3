"""Shared by all tests."""

import pytest
from hypothesis import settings

# Numba compiles inside some of the examples, so their times say nothing.
settings.register_profile("accelviz", deadline=None)
settings.load_profile("accelviz")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
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
