"""PyTorch layers with the constructors and state dicts of PyTorch Geometric's layers.

To use them, replace `from torch_geometric.nn import GCNConv` by `from accelviz.torch import
GCNConv`. Kernels use the tensors' memory without a copy (DLPack), on PyTorch's current stream. The
CSR form of an `edge_index` tensor is computed once and stored as long as the tensor exists.
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
