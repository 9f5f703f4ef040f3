"""Sliding-channel convolution (DSXplore) and the 3D receptive field: thesis, chapters 6 and 7.

`optimize` applies chapter 7 to a PyTorch module and needs PyTorch.
"""

import importlib
from typing import Any

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


def __getattr__(name: str) -> Any:
    # The function is in `accelviz.torch`, which imports this package.
    if name != "optimize":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module("accelviz.torch.organizer").optimize
