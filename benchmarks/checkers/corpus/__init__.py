"""Correct CUDA kernels of many kinds, and mistakes for each of them."""

from . import atomics, images, matrices, networks, reductions, scans, sorts, sparse
from .case import KERNELS, KINDS, Case, Kernel, Launch, Mistake, Seen

#: The modules with the kernels.
FAMILIES = (reductions, scans, sorts, matrices, images, sparse, networks, atomics)
CASES = [Case(kernel, mistake) for kernel in KERNELS for mistake in (None, *kernel.mistakes)]

__all__ = ["CASES", "FAMILIES", "KERNELS", "KINDS", "Case", "Kernel", "Launch", "Mistake", "Seen"]
