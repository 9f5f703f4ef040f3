"""Layers of graph neural networks, forward and backward, and a way to train networks of them.

`train("gcn", "cora")` trains one; `GCN`, `GIN`, `SAGE`, `GAT`, `GATv2`, `AGNN` and `Linear` are
layers, of which `train` takes a list. `load` reads a network that `Training.save` wrote.
"""

from accelviz.layers.attention import AGNN, GAT, GATv2
from accelviz.layers.convolution import GCN, GIN, SAGE
from accelviz.layers.dense import Adam, Noise
from accelviz.layers.gnnadvisor import advise, gnnadvisor
from accelviz.layers.inside import step_memory
from accelviz.layers.layer import Layer, Linear
from accelviz.layers.models import MODELS
from accelviz.layers.network import Network
from accelviz.layers.products import Matrix, Products
from accelviz.layers.train import train
from accelviz.layers.trained import Trained, Training, load

__all__ = [
    "AGNN",
    "GAT",
    "GCN",
    "GIN",
    "MODELS",
    "SAGE",
    "Adam",
    "GATv2",
    "Layer",
    "Linear",
    "Matrix",
    "Network",
    "Noise",
    "Products",
    "Trained",
    "Training",
    "advise",
    "gnnadvisor",
    "load",
    "step_memory",
    "train",
]
