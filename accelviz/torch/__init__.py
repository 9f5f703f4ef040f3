"""PyTorch Geometric's layers with accelviz's operations.

To use them, replace `from torch_geometric.nn import GCNConv` by `from accelviz.torch import
GCNConv`. A layer is a subclass of PyTorch Geometric's with the same parameters and results. Calls
that our operations do not cover, such as those with edge features, run PyTorch Geometric's code.
"""

import importlib
from typing import Any

from accelviz.errors import pip_install

try:
    import torch
    import torch_geometric  # noqa: F401
except ModuleNotFoundError as error:
    library = "PyTorch Geometric" if error.name == "torch_geometric" else "PyTorch"
    message = f"accelviz.torch needs {library}: {pip_install('accelviz[torch]')}"
    raise ModuleNotFoundError(message, name=error.name) from error

from accelviz.torch.attention import AGNNConv, GATConv, GATv2Conv, TransformerConv
from accelviz.torch.convolution import GCNConv, GINConv, SAGEConv
from accelviz.torch.edges import Edges
from accelviz.torch.models import GAT, GCN, GIN, GraphSAGE
from accelviz.torch.sampling import Sampler
from accelviz.torch.split import SplitGraph
from accelviz.torch.training_step import TrainingStep

__all__ = ["AGNNConv", "Edges", "GATConv", "GATv2Conv", "GCNConv", "GINConv", "SAGEConv"]
__all__ += ["GAT", "GCN", "GIN", "GraphSAGE", "Sampler", "SplitGraph", "TrainingStep"]
__all__ += ["TransformerConv"]

if torch.version.cuda and torch.cuda.is_available():
    from accelviz.devices.cuda import preload

    preload()  # 0.3 s, here rather than in the first step

#: Files of names that are imported at first use.
_FILES = {"QuantizedTensor": "quantized", "SlidingChannelConv2d": "sliding"}
__all__ += [*_FILES]


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_FILES[name]}"), name)
