"""The emulator: runs CUDA kernels on a host without a GPU, checked and traced.

It knows kernels and arrays, and nothing of graphs and plans.
"""

from accelviz.emulator.build import unavailable_reason
from accelviz.emulator.call import emulate, trace_kernel

__all__ = ["emulate", "trace_kernel", "unavailable_reason"]
