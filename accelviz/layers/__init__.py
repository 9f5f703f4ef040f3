"""Layers of graph neural networks, forward and backward, and a way to train networks of them.

`train("gcn", "cora")` trains one; `GCN`, `GIN`, `SAGE`, `GAT`, `GATv2` and `AGNN` are layers.
"""

from accelviz.layers.attention import AGNN, GAT, GATv2
from accelviz.layers.convolution import GCN, GIN, SAGE, Propagation
from accelviz.layers.dense import SGD, Adam, Noise
from accelviz.layers.gnnadvisor import advise, gnnadvisor
from accelviz.layers.inside import step_memory
from accelviz.layers.layer import Layer, Linear
from accelviz.layers.models import MODELS
from accelviz.layers.network import Network
from accelviz.layers.products import Matrix, Products
from accelviz.layers.train import Training, train

__all__ = [
    "AGNN",
    "GAT",
    "GCN",
    "GIN",
    "MODELS",
    "SAGE",
    "SGD",
    "Adam",
    "GATv2",
    "Layer",
    "Linear",
    "Matrix",
    "Network",
    "Noise",
    "Products",
    "Propagation",
    "Training",
    "advise",
    "gnnadvisor",
    "step_memory",
    "train",
]
