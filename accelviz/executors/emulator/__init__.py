"""The emulator: runs the CUDA kernels themselves on a host without a GPU, checked and traced."""

from accelviz.executors.emulator.executor import EmulatorExecutor, EmulatorPlan
from accelviz.executors.emulator.trace import trace

__all__ = ["EmulatorExecutor", "EmulatorPlan", "trace"]
