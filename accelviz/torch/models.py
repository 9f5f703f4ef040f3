"""PyTorch Geometric's models with accelviz's layers: GCN, GraphSAGE, GIN, GAT."""

from __future__ import annotations

from typing import Any

from torch_geometric import nn

from accelviz.torch.attention import GATConv, GATv2Conv
from accelviz.torch.convolution import GCNConv, GINConv, SAGEConv
from accelviz.torch.layer import document

LAYERS: dict[Any, Any] = {
    nn.GATConv: GATConv,
    nn.GATv2Conv: GATv2Conv,
    nn.GCNConv: GCNConv,
    nn.GINConv: GINConv,
    nn.SAGEConv: SAGEConv,
}


class _Model:
    """Base class of the models, before the class of PyTorch Geometric's model.

    A model has the parameters of PyTorch Geometric's model. Its layers have further keyword
    arguments, such as `strategy`.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__ == __name__:
            document(
                cls,
                cls.__bases__[-1],
                "Further keyword arguments, such as `strategy`, are those of the layers.",
            )

    def init_conv(self, *arguments: Any, strategy: Any = None, **options: Any) -> Any:
        """Return PyTorch Geometric's layer, of accelviz's class: both have the same state."""
        layer = super().init_conv(*arguments, **options)  # type: ignore[misc]
        layer.__class__ = LAYERS[type(layer)]
        layer._set_strategy(strategy)
        return layer


class GCN(_Model, nn.GCN):
    """`torch_geometric.nn.GCN` with layers `accelviz.torch.GCNConv`."""


class GraphSAGE(_Model, nn.GraphSAGE):
    """`torch_geometric.nn.GraphSAGE` with layers `accelviz.torch.SAGEConv`."""


class GIN(_Model, nn.GIN):
    """`torch_geometric.nn.GIN` with layers `accelviz.torch.GINConv`."""


class GAT(_Model, nn.GAT):
    """`torch_geometric.nn.GAT` with layers `accelviz.torch.GATConv`, or GATv2Conv if `v2`."""
