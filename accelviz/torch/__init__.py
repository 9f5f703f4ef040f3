"""Layers for PyTorch with the constructors and state dicts of PyTorch Geometric's.

`from accelviz.torch import GCNConv` in place of `from torch_geometric.nn import GCNConv` changes a
model. Tensors go to the kernels and back without a copy (DLPack), on PyTorch's current stream.
Edges are brought into CSR once for each `edge_index` tensor and kept as long as it lives.
"""

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    message = "accelviz.torch needs PyTorch: pip install 'accelviz[torch]'"
    raise ModuleNotFoundError(message, name=error.name) from error

from accelviz.torch.attention import AGNNConv, GATConv, GATv2Conv
from accelviz.torch.convolution import GCNConv, GINConv, SAGEConv
from accelviz.torch.edges import Edges

__all__ = ["AGNNConv", "Edges", "GATConv", "GATv2Conv", "GCNConv", "GINConv", "SAGEConv"]
