"""Checks first, then times: what may be said about plans on a device."""

from accelviz.bench.checks import check, features, random_weights
from accelviz.bench.harness import benchmark, measure
from accelviz.bench.tuning import Tuned, tune

__all__ = ["Tuned", "benchmark", "check", "features", "measure", "random_weights", "tune"]
