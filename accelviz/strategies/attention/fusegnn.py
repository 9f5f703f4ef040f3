"""fuseGNN's GAT (ICCAD 2020, section 5.1): edge weights by two fused kernels, then aggregation.

The weights (Equations 4 and 5) are stored, one per edge and head. The aggregations of
`strategies/fusegnn.py` read them in place of a matrix's values. The paper has one head and stores
the weights for the gradient; here the gradient computes them again, as they are no input of it.
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
#: Operands of attention by the names of an aggregation's operands.
_OPERANDS = {"values": "weights", "X": "V", "d_values": "d_weights", "dX": "dV"}
_DROPOUT = ("rate", "random", "n_edges")


def _call(entry: str, *arguments: str, items: int, heads: int) -> Call:
    """Return a launch with one thread per item (edge or row) and head."""
    config = {"block_threads": _THREADS, "heads": heads}
    kernel = KernelSpec("attention/fusegnn.cu", entry, config, arguments)
    return Call(LaunchConfig((-(-items * heads // _THREADS), 1, 1), _THREADS // WARP_SIZE), kernel)


def _attention_call(plan: Plan) -> Call:
    """Return the call of an aggregation's plan, with attention's operands."""
    (call,) = plan.calls
    assert isinstance(call, Call)
    assert call.kernel is not None
    arguments = tuple(_OPERANDS.get(argument, argument) for argument in call.kernel.arguments)
    entry = f"{call.kernel.entry}_heads"
    return replace(call, kernel=replace(call.kernel, entry=entry, arguments=arguments))


class FuseGnn(Strategy):
    """Two kernels for scores, softmax and dropout, a thread per edge; then an aggregation.

    The aggregation is GAS or GAR. As in the paper, exp is applied to the scores without subtracting
    their maximum, so that a score above 88 gives NaN.
    """

    worker = "thread group"

    def __init__(self, operation: Operation, aggregation: Any) -> None:
        """Set the strategy of SpMM, or of its gradient, that aggregates with the weights."""
        self.operation, self.aggregation = operation, aggregation
        self.name, self.Settings = aggregation.name, aggregation.Settings  # type: ignore[misc]
        sums = "by atomics" if aggregation.edges else "in shared memory"
        self.summary = f"edge weights by two kernels, stored; products added {sums}"  # type: ignore[misc]

    def build(self, graph: Graph, widths: Widths, settings: BlockSize) -> Plan:
        """Store the row of each nonzero; plan the kernels of the weights and the aggregation.

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
        edge_threads = {"items": graph.nnz, "heads": heads}
        if not self.operation.by_sender:
            powers = "rows", "columns", "receiver", "sender", "weights", "row_max", "row_sum"
            calls = [
                _call("edge_powers", *powers, "slope", "n_edges", **edge_threads),
                _call("edge_weights", "rows", "weights", "row_sum", *_DROPOUT, **edge_threads),
                _attention_call(plan),
                _call(
                    "row_maxima", "row_max", "row_sum", "n_rows", items=graph.n_rows, heads=heads
                ),
            ]
            arrays["n_rows"] = np.int32(graph.n_rows)
            zero_outputs, aggregated = ["row_max", "row_sum"], "Y"
        else:
            transposed = graph.transposed().graph
            arrays["sources"], transposed_seconds = rows_of_nonzeros(transposed)
            arrays |= {"targets": transposed.column_indices, "heads": np.int32(heads)}
            arrays["n_targets"] = np.int32(graph.n_rows)
            setup |= transposed_seconds
            again = "sources", "targets", "order", "statistics", "sender", "weights", "slope"
            ends = "rows", "columns", "statistics", "sender", "d_weights", "d_receiver", "d_sender"
            lanes = walks.lane_config(walks.cover_head(n_cols), n_cols)
            calls = [
                *walks.statistics_calls(graph.pattern, self.operation, heads, lanes),
                _call("weights_again", *again, *_DROPOUT, **edge_threads),
                _attention_call(plan),
                _call("edge_gradient", *ends, "slope", *_DROPOUT, **edge_threads),
            ]
            zero_outputs, aggregated = ["d_receiver", "d_sender"], "dV"
            statistics = (4 * graph.n_rows * heads, np.float32)
            workspace |= {"d_weights": weights, "statistics": statistics}
        if plan.zero_outputs:
            zero_outputs.append(aggregated)
        return Plan(
            replace(plan.layout, main=2),
            tuple(calls),
            Buffers(arrays, workspace=workspace, zero_outputs=tuple(zero_outputs)),
            Provenance(self, graph.values, widths, settings, setup),
        )

    def describe(self, settings: BlockSize, rows: RowDegrees, widths: Widths) -> Description:
        """Describe the partition scheme of the aggregation."""
        return replace(self.aggregation.describe(settings, rows, widths), lanes=None)
