"""Puzzles: small CUDA kernels to complete, run in the emulator and scored against a par.

The par is the cost of a good solution in memory traffic. `notebooks/puzzles/` has the texts, hints
and solutions; this package has the inputs, the right outputs and the pars.
"""

from accelviz.course.puzzles.check import PUZZLES, check, scores

__all__ = ["PUZZLES", "check", "scores"]
