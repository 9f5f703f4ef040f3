"""accelviz: learn, explore and measure how sparse operations are mapped onto a GPU.

`load_graph` opens a graph, `plan` maps its nonzeros onto blocks and warps by a chosen strategy,
`spmm` multiplies it by a dense matrix on a GPU or on the CPU, `trace` records the memory accesses
of each lane, and `emulate` runs your own CUDA kernel on the CPU and checks it.
"""

from __future__ import annotations

__version__ = "0.1.0"

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accelviz.analysis.sweep import sweep
    from accelviz.datasets import describe, load_graph
    from accelviz.devices import edge_softmax, sddmm, spmm, trace, trace_gpu
    from accelviz.emulator import emulate
    from accelviz.errors import (
        AccelvizError,
        ArgumentError,
        DeviceUnavailable,
        GraphError,
        KernelError,
        PartitionError,
    )
    from accelviz.graph import Graph
    from accelviz.measure import benchmark, tune
    from accelviz.ordering import degree_sort
    from accelviz.strategies import plan, strategies
    from accelviz.widgets import explore

__all__ = [
    "AccelvizError",
    "ArgumentError",
    "DeviceUnavailable",
    "Graph",
    "GraphError",
    "KernelError",
    "PartitionError",
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

#: Module of each public name, imported at first use because pandas and Numba load slowly.
_MODULES = {
    "AccelvizError": "errors",
    "ArgumentError": "errors",
    "DeviceUnavailable": "errors",
    "Graph": "graph",
    "GraphError": "errors",
    "KernelError": "errors",
    "PartitionError": "errors",
    "benchmark": "measure",
    "degree_sort": "ordering",
    "describe": "datasets",
    "edge_softmax": "devices",
    "emulate": "emulator",
    "explore": "widgets",
    "load_graph": "datasets",
    "plan": "strategies",
    "sddmm": "devices",
    "spmm": "devices",
    "sweep": "analysis.sweep",
    "trace": "devices",
    "trace_gpu": "devices",
    "tune": "measure",
}
#: Public subpackages and modules.
_ROOMS = (
    *("analysis", "bits", "convolution", "course", "datasets", "devices", "emulator", "errors"),
    *("layers", "many_gpus", "measure", "ordering", "partition", "plans", "plots", "torch"),
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = getattr(importlib.import_module(f"accelviz.{_MODULES[name]}"), name)
        globals()[name] = value
        return value
    try:
        return importlib.import_module(f"accelviz.{name}")
    except ModuleNotFoundError as error:  # `hasattr` expects an AttributeError
        message = str(error)
        if error.name == f"accelviz.{name}":
            message = f"module 'accelviz' has no attribute {name!r}"
        raise AttributeError(message) from error


def __dir__() -> list[str]:
    """Return the public names, and none that only this file uses."""
    return sorted({*__all__, *_ROOMS, *(name for name in globals() if name.startswith("__"))})


class _Package(ModuleType):
    """Keep `accelviz.strategies` the function when the subpackage of that name is imported."""

    @property
    def strategies(self) -> Any:
        return importlib.import_module("accelviz.strategies").strategies

    @strategies.setter
    def strategies(self, subpackage: ModuleType) -> None:
        pass


sys.modules[__name__].__class__ = _Package
