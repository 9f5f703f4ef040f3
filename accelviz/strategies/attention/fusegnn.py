"""fuseGNN's GAT (ICCAD 2020): weights of edges in two fused kernels, then its aggregation.

Section 5.1, Equations 4 and 5. The weights lie in memory, one for each edge and head, and the
aggregations of `spmm/fusegnn.py` take them as they take a matrix's. The paper has one head and
keeps the weights for the gradient; here they are made again, as `gat_gradient` is not given them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.nonzero_runs import rows_of_nonzeros
from accelviz.plans.description import Description
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.operation import Operation
from accelviz.plans.plan import Buffers, Plan, Provenance, Strategy, Widths
from accelviz.strategies.attention import walks
from accelviz.strategies.fusegnn import (
    Block128,
    BlockSize,
    edge_scheme,
    vertex_scheme,
)

_THREADS = 256
_FORWARD = {"values": "weights", "X": "V"}
_BACKWARD = {**_FORWARD, "d_values": "d_weights", "dX": "dV"}
_DROPOUT = ("rate", "random", "n_edges")


def _call(entry: str, arguments: tuple[str, ...], ends: int, heads: int) -> Call:
    """Return a call of a thread for each head of so many edges (or rows)."""
    config = {"block_threads": _THREADS, "heads": heads}
    kernel = KernelSpec("attention/fusegnn.cu", entry, config, arguments)
    return Call(LaunchConfig((-(-ends * heads // _THREADS), 1, 1), _THREADS // WARP_SIZE), kernel)


def _renamed(plan: Plan, names: Mapping[str, str]) -> Call:
    """Return the one call of an aggregation with attention's operands in the place of its own."""
    (call,) = plan.calls
    assert isinstance(call, Call)
    assert call.kernel is not None
    arguments = tuple(names.get(argument, argument) for argument in call.kernel.arguments)
    entry = f"{call.kernel.entry}_heads"
    return replace(call, kernel=replace(call.kernel, entry=entry, arguments=arguments))


class FuseGnnGas(Strategy):
    """Scores, softmax and dropout in two kernels, a thread an edge; then edges in parallel.

    exp is taken of the scores as they are, so that one above 88 gives infinity, as in the paper. It
    takes `block_size` (threads of a block that aggregates, a multiple of 32 up to 1,024).
    """

    name = "fusegnn_gas"
    summary = "weights of edges in two kernels, kept in memory; products added by atomics"
    worker = "thread group"
    Settings = BlockSize

    def __init__(self, operation: Operation, aggregation: Any) -> None:
        """Take the strategy of an SpMM, or of its gradient, that aggregates with the weights."""
        self.operation, self.aggregation = operation, aggregation

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Spell out the rows of the nonzeros; aggregate with the weights of each head.

        Raises
        ------
        PartitionError
            If there are 2^32 nonzeros or more, or blocks or columns are too many.
        """
        n_cols, heads = widths["n_cols"], widths["heads"]
        walks.check(graph, n_cols)
        back = self.operation.by_sender
        plan = self.aggregation.build(graph, widths, settings)
        rows, seconds = rows_of_nonzeros(graph)
        arrays: dict[str, Any] = {
            **plan.arrays,
            "rows": rows,
            "columns": graph.column_indices,
            "n_edges": np.int64(graph.nnz),
        }
        calls: tuple[Call, ...]
        setup = {**seconds, **plan.setup_seconds}
        weights = {"weights": (graph.nnz * heads, np.float32)}
        added = () if plan.zero_outputs == () else ("dV" if back else "Y",)
        aggregate = _renamed(plan, _BACKWARD if back else _FORWARD)
        if not back:
            powers = ("rows", "columns", "receiver", "sender", "weights", "logsumexp")
            calls = (
                _call("edge_powers", (*powers, "slope", "n_edges"), graph.nnz, heads),
                _call(
                    "edge_weights", ("rows", "weights", "logsumexp", *_DROPOUT), graph.nnz, heads
                ),
                aggregate,
                _call("logarithms", ("logsumexp", "n_rows"), graph.n_rows, heads),
            )
            arrays["n_rows"] = np.int32(graph.n_rows)
            zero_outputs, workspace, main = ("logsumexp", *added), weights, 2
        else:
            turned = graph.transposed().graph
            arrays["sources"], more = rows_of_nonzeros(turned)
            arrays |= {"targets": turned.column_indices, "heads": np.int32(heads)}
            arrays["n_receivers"] = np.int32(graph.n_rows)
            setup |= more
            again = ("sources", "targets", "order", "statistics", "sender", "weights", "slope")
            ends = ("rows", "columns", "statistics", "sender", "d_weights", "d_receiver")
            calls = (
                *walks.statistics_calls(graph.pattern, self.operation, heads, n_cols),
                _call("weights_again", (*again, *_DROPOUT), graph.nnz, heads),
                aggregate,
                _call("edge_gradient", (*ends, "d_sender", "slope", *_DROPOUT), graph.nnz, heads),
            )
            zero_outputs, main = ("d_receiver", "d_sender", *added), 2
            workspace = {
                **weights,
                "d_weights": weights["weights"],
                "statistics": (4 * graph.n_rows * heads, np.float32),
            }
        return Plan(
            replace(plan.layout, main=main),
            calls,
            Buffers(arrays, workspace=workspace, zero_outputs=zero_outputs),
            Provenance(self, graph.values, widths, settings, setup),
        )

    def describe(self, settings: BlockSize, rows: RowDegrees, widths: Widths) -> Description:
        """Name the heads of edges, a thread group's each: an atomic a column."""
        return Description(edge_scheme(settings, widths, widths["heads"]))


class FuseGnnGar(FuseGnnGas):
    """The same weights; then a block a row, or a sender, whose products are added on chip.

    It takes `block_size` (threads of a block that aggregates, a multiple of 32 up to 1,024).
    """

    name = "fusegnn_gar"
    summary = "weights of edges in two kernels, kept in memory; a block a row reduces on chip"
    Settings = Block128

    def describe(self, settings: BlockSize, rows: RowDegrees, widths: Widths) -> Description:
        """Name the thread groups of a row, or of a sender."""
        return Description(vertex_scheme(settings, widths))
