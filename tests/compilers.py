"""Devices of tests that run kernels."""

import pytest

from accelviz.emulator.build import unavailable_reason

_REASON = unavailable_reason()
needs_compiler = pytest.mark.skipif(_REASON is not None, reason=str(_REASON))
#: The emulator as a value of the parameter `device`, and both devices that need no GPU.
EMULATOR = pytest.param("emulator", marks=needs_compiler)
HOST = pytest.mark.parametrize("device", ["cpu", EMULATOR])
#: Devices of a test that needs a kernel.
ON_KERNELS = pytest.mark.parametrize(
    "device", [EMULATOR, pytest.param("cuda", marks=pytest.mark.gpu)]
)
