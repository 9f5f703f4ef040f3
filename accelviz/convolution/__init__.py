"""Sliding-channel convolution (DSXplore) and the 3D receptive field: chapters 6 and 7."""

from accelviz.convolution.channels import ChannelMap, algorithm_7
from accelviz.convolution.run import scc, scc_gradient

__all__ = ["ChannelMap", "algorithm_7", "scc", "scc_gradient"]
