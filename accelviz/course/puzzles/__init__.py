"""Small CUDA kernels to complete: checked by the emulator, drawn, and scored against a par.

The texts, hints and solutions are in `notebooks/puzzles/`; here are what kernels are given, and
what is right.
"""

from accelviz.course.puzzles.check import PUZZLES, check, scores

__all__ = ["PUZZLES", "check", "scores"]
