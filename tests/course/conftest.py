"""Lets pytest-xdist keep a class that is graded once with one worker."""

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    # pytest-xdist 3.8 writes a test's group into an attribute that pytest 9.2 no longer reads, and
    # --dist loadgroup groups nothing.
    if not getattr(config.option, "loadgroup", False):
        return
    for item in items:
        grouped = getattr(item, "_nodeid", None)
        if grouped not in (None, item.nodeid):
            from _pytest.nodeid import coerce_node_id

            item._id = coerce_node_id(grouped)
