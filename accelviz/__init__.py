"""accelviz: learn, explore and measure how sparse operations are mapped onto a GPU.

`load_graph` opens a graph, `plan` maps it onto blocks and warps the way a strategy does, `spmm`
multiplies it with a dense matrix on a GPU or on the CPU, `trace` shows what each lane touches, and
`emulate` runs a CUDA kernel of your own, checked.
"""

from __future__ import annotations

__version__ = "0.1.0"

import importlib
from typing import Any

from accelviz.analysis.sweep import sweep
from accelviz.datasets import describe, load_graph
from accelviz.devices import edge_softmax, emulate, sddmm, spmm, trace, trace_gpu
from accelviz.measure import benchmark, tune
from accelviz.ordering import degree_sort
from accelviz.strategies import plan, strategies
from accelviz.widgets import explore

__all__ = [
    "benchmark",
    "degree_sort",
    "describe",
    "edge_softmax",
    "emulate",
    "explore",
    "load_graph",
    "plan",
    "sddmm",
    "spmm",
    "strategies",
    "sweep",
    "trace",
    "trace_gpu",
    "tune",
]


def __getattr__(name: str) -> Any:
    # Matplotlib and PyTorch take longer to import than all the rest; layers combine what is here.
    if name in ("plots", "layers", "bits", "many_gpus", "convolution", "torch"):
        try:
            return importlib.import_module(f"accelviz.{name}")
        except ModuleNotFoundError as error:  # `hasattr` wants to hear nothing else
            raise AttributeError(str(error)) from error
    raise AttributeError(f"module 'accelviz' has no attribute {name!r}")
