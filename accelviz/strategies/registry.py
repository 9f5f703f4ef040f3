"""The list of all strategies. A strategy can be looked up by name once it has a line here."""

from __future__ import annotations

from accelviz.plans import Strategy
from accelviz.strategies import fusegnn, tc_gnn, windows
from accelviz.strategies.attention import edge_softmax, walks
from accelviz.strategies.attention import fusegnn as attention_fusegnn
from accelviz.strategies.attention import lane_groups as attention_groups
from accelviz.strategies.attention.edge_softmax import EDGE_SOFTMAX, EDGE_SOFTMAX_GRADIENT
from accelviz.strategies.attention.forward import COSINE, DOT, GAT, GATV2
from accelviz.strategies.attention.gradient import (
    COSINE_GRADIENT,
    DOT_GRADIENT,
    GAT_GRADIENT,
    GATV2_GRADIENT,
)
from accelviz.strategies.bits import lane_groups as bit_groups
from accelviz.strategies.bits.operation import BIT_SPMM
from accelviz.strategies.bits.products import ALGORITHMS
from accelviz.strategies.convolution import dsxplore, strided, strided_weights
from accelviz.strategies.cusparse import CuSPARSE, CuSparseSddmm
from accelviz.strategies.dense.operation import LINEAR_RELU, PRODUCT, gradient, product
from accelviz.strategies.dense.strategies import Cublas
from accelviz.strategies.sddmm import lane_groups, row_warp
from accelviz.strategies.spmm.accel_gcn import AccelGCN
from accelviz.strategies.spmm.extrema import SPMM_EXTREMUM_GRADIENT, SPMM_MAX, SPMM_MIN
from accelviz.strategies.spmm.gnnadvisor import GNNAdvisor
from accelviz.strategies.spmm.gradient import SPMM_GRADIENT
from accelviz.strategies.spmm.lane_groups import LaneGroups
from accelviz.strategies.spmm.merge_path import MergePath
from accelviz.strategies.spmm.rows import GeSpMM, GraphBLAST, RowThread

REGISTRY: tuple[Strategy, ...] = (
    AccelGCN(),
    GNNAdvisor(),
    GraphBLAST(),
    GeSpMM(),
    RowThread(),
    MergePath(),
    fusegnn.FuseGnnGas(),
    fusegnn.FuseGnnGar(),
    fusegnn.NeuGraph(),
    fusegnn.UnfusedGas(),
    tc_gnn.TcGnnSpmm(),
    windows.Windows(),
    windows.WindowTiles(),
    LaneGroups(),
    CuSPARSE(),
    row_warp.RowWarp(),
    tc_gnn.TcGnnSddmm(),
    windows.ScoreTiles(),
    lane_groups.LaneGroups(),
    CuSparseSddmm(),
    fusegnn.FuseGnnGasGradient(),
    fusegnn.FuseGnnGarGradient(),
    *(
        strategy(operation)
        for operation in (EDGE_SOFTMAX, EDGE_SOFTMAX_GRADIENT)
        for strategy in (edge_softmax.RowWarp, edge_softmax.LaneGroups)
    ),
    *(
        strategy(operation)
        for operation in (
            *(SPMM_GRADIENT, SPMM_MAX, SPMM_MIN, SPMM_EXTREMUM_GRADIENT),
            *(GAT, GAT_GRADIENT, DOT, DOT_GRADIENT),
            *(COSINE, COSINE_GRADIENT, GATV2, GATV2_GRADIENT),
        )
        for strategy in (walks.RowWarp, attention_groups.LaneGroups)
    ),
    attention_groups.BySource(SPMM_EXTREMUM_GRADIENT),
    attention_fusegnn.FuseGnn(GAT, fusegnn.FuseGnnGas()),
    attention_fusegnn.FuseGnn(GAT, fusegnn.FuseGnnGar()),
    attention_fusegnn.FuseGnn(GAT_GRADIENT, fusegnn.FuseGnnGasGradient()),
    attention_fusegnn.FuseGnn(GAT_GRADIENT, fusegnn.FuseGnnGarGradient()),
    *(algorithm() for algorithm in ALGORITHMS.values()),
    *(bit_groups.LaneGroups(bits) for bits in BIT_SPMM),
    dsxplore.Dsxplore(),
    dsxplore.ChannelStack(),
    dsxplore.ConvolutionStack(),
    dsxplore.DsxploreGradient(),
    dsxplore.DsxploreVariant(),
    strided.StridedWindows(),
    strided_weights.StridedWeights(),
    Cublas(LINEAR_RELU, product(LINEAR_RELU)),
    Cublas(PRODUCT, gradient(PRODUCT)),
)
