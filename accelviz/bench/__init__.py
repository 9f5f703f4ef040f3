"""Checks first, then times: what may be said about plans on a device."""

from accelviz.bench.checks import check, features, random_weights
from accelviz.bench.harness import benchmark, measure

__all__ = ["benchmark", "check", "features", "measure", "random_weights"]
