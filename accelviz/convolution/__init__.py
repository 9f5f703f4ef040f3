"""Sliding-channel convolution (DSXplore) and the 3D receptive field: thesis, chapters 6 and 7."""

from accelviz.convolution.channels import ChannelMap, algorithm_7
from accelviz.convolution.networks import NETWORKS, Network, Stage, Step, organize
from accelviz.convolution.receptive import (
    BLOCKS,
    Field,
    Kernel,
    Replacement,
    fields,
    gain,
    gains,
    replaces,
)
from accelviz.convolution.run import scc, scc_gradient

__all__ = [
    "BLOCKS",
    "NETWORKS",
    "ChannelMap",
    "Field",
    "Kernel",
    "Network",
    "Replacement",
    "Stage",
    "Step",
    "algorithm_7",
    "fields",
    "gain",
    "gains",
    "organize",
    "replaces",
    "scc",
    "scc_gradient",
]
