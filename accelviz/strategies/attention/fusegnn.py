"""fuseGNN's GAT (ICCAD 2020): weights of edges in two fused kernels, then its aggregation.

Section 5.1, Equations 4 and 5. The weights lie in memory, one for each edge and head, and the
aggregations of `strategies/fusegnn.py` take them as they take a matrix's. The paper has one head
and keeps the weights for the gradient; here they are made again, as `gat_gradient` has none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.nonzero_runs import rows_of_nonzeros
from accelviz.plans import Description, Operation, Strategy, Widths
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Plan, Provenance
from accelviz.strategies.attention import walks
from accelviz.strategies.fusegnn import BlockSize

_THREADS = 256
#: Operands of attention in place of an aggregation's.
_OPERANDS = {"values": "weights", "X": "V", "d_values": "d_weights", "dX": "dV"}
_DROPOUT = ("rate", "random", "n_edges")


def _call(entry: str, *arguments: str, ends: int, heads: int) -> Call:
    """Return a call of a thread for each head of so many edges (or rows)."""
    config = {"block_threads": _THREADS, "heads": heads}
    kernel = KernelSpec("attention/fusegnn.cu", entry, config, arguments)
    return Call(LaunchConfig((-(-ends * heads // _THREADS), 1, 1), _THREADS // WARP_SIZE), kernel)


def _renamed(plan: Plan) -> Call:
    """Return the one call of an aggregation with attention's operands in the place of its own."""
    (call,) = plan.calls
    assert isinstance(call, Call)
    assert call.kernel is not None
    arguments = tuple(_OPERANDS.get(argument, argument) for argument in call.kernel.arguments)
    entry = f"{call.kernel.entry}_heads"
    return replace(call, kernel=replace(call.kernel, entry=entry, arguments=arguments))


class FuseGnn(Strategy):
    """Scores, softmax and dropout in two kernels, a thread an edge; then fuseGNN's aggregation.

    That has edges in parallel, or a block for a row (or column), whose products are added on chip.
    exp is taken of the scores as they are, so that one above 88 gives infinity, as in the paper. It
    takes `block_size` (threads of a block that aggregates, a multiple of 32 up to 1,024).
    """

    worker = "thread group"

    def __init__(self, operation: Operation, aggregation: Any) -> None:
        """Take the strategy of an SpMM, or of its gradient, that aggregates with the weights."""
        self.operation, self.aggregation = operation, aggregation
        self.name, self.Settings = aggregation.name, aggregation.Settings  # type: ignore[misc]
        meet = "added by atomics" if aggregation.edges else "of a block's row reduced on chip"
        self.summary = f"weights of edges in two kernels, kept in memory; products {meet}"  # type: ignore[misc]

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Spell out the rows of the nonzeros; aggregate with the weights of each head.

        Raises
        ------
        PartitionError
            If there are 2^32 nonzeros or more, or blocks or columns are too many.
        """
        n_cols, heads = widths["n_cols"], widths["heads"]
        walks.check(graph, n_cols)
        plan = self.aggregation.build(graph, widths, settings)
        rows, seconds = rows_of_nonzeros(graph)
        arrays: dict[str, Any] = {
            **plan.arrays,
            "rows": rows,
            "columns": graph.column_indices,
            "n_edges": np.int64(graph.nnz),
        }
        setup = {**seconds, **plan.setup_seconds}
        weights = (graph.nnz * heads, np.float32)
        workspace = {"weights": weights}
        of_edges = {"ends": graph.nnz, "heads": heads}
        zero_outputs: tuple[str, ...]
        if not self.operation.by_sender:
            powers = "rows", "columns", "receiver", "sender", "weights", "logsumexp"
            calls = [
                _call("edge_powers", *powers, "slope", "n_edges", **of_edges),
                _call("edge_weights", "rows", "weights", "logsumexp", *_DROPOUT, **of_edges),
                _renamed(plan),
                _call("logarithms", "logsumexp", "n_rows", ends=graph.n_rows, heads=heads),
            ]
            arrays["n_rows"] = np.int32(graph.n_rows)
            zero_outputs, added = ("logsumexp",), "Y"
        else:
            turned = graph.transposed().graph
            arrays["sources"], more = rows_of_nonzeros(turned)
            arrays |= {"targets": turned.column_indices, "heads": np.int32(heads)}
            arrays["n_targets"] = np.int32(graph.n_rows)
            setup |= more
            again = "sources", "targets", "order", "statistics", "sender", "weights", "slope"
            ends = "rows", "columns", "statistics", "sender", "d_weights", "d_receiver", "d_sender"
            calls = [
                *walks.statistics_calls(graph.pattern, self.operation, heads, n_cols),
                _call("weights_again", *again, *_DROPOUT, **of_edges),
                _renamed(plan),
                _call("edge_gradient", *ends, "slope", *_DROPOUT, **of_edges),
            ]
            zero_outputs, added = ("d_receiver", "d_sender"), "dV"
            workspace |= {
                "d_weights": weights,
                "statistics": (4 * graph.n_rows * heads, np.float32),
            }
        return Plan(
            replace(plan.layout, main=2),
            tuple(calls),
            Buffers(
                arrays,
                workspace=workspace,
                zero_outputs=(*zero_outputs, *([added] if plan.zero_outputs else [])),
            ),
            Provenance(self, graph.values, widths, settings, setup),
        )

    def describe(self, settings: BlockSize, rows: RowDegrees, widths: Widths) -> Description:
        """Name the scheme of the aggregation."""
        return Description(self.aggregation.describe(settings, rows, widths).scheme)
