"""Shared by tests that run kernels in the emulator."""

import pytest

from accelviz.executors import find_executor

needs_compiler = pytest.mark.skipif(
    find_executor("emulator").why_not() is not None, reason="needs a C++ compiler"
)
