"""Shared by all tests."""

from hypothesis import settings

# Numba compiles inside some of the examples, so their times say nothing.
settings.register_profile("accelviz", deadline=None)
settings.load_profile("accelviz")
