"""Shared by tests that run kernels in the emulator."""

import pytest

from accelviz.emulator.build import why_not

needs_compiler = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
#: As a value of `device`, and both devices that need no GPU.
EMULATOR = pytest.param("emulator", marks=needs_compiler)
HOST = pytest.mark.parametrize("device", ["cpu", EMULATOR])
