"""Check results of plans on a device, measure their times, and analyse the measurements."""

from accelviz.measure.checks import check, features, random_inputs, random_weights
from accelviz.measure.harness import benchmark, measure
from accelviz.measure.tuning import Tuned, tune

__all__ = [
    "Tuned",
    "benchmark",
    "check",
    "features",
    "measure",
    "random_inputs",
    "random_weights",
    "tune",
]
