"""The kernels of common calls, which `accelviz doctor --warm` compiles before their first use."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from scipy import sparse

from accelviz.datasets import load_graph
from accelviz.ordering import RowDegrees
from accelviz.ordering.degree import DegreeHistogram
from accelviz.plans import KernelSpec
from accelviz.strategies import find_operation, find_strategy
from accelviz.strategies.spmm.lane_groups import preprocessing
from accelviz.strategies.subwarps import LONG_DEGREE, NONZERO_LIMITS

#: Columns of feature matrices, heads of attention, and columns of a head beside other heads.
WIDTHS, HEADS, HEAD_WIDTHS = (16, 32, 64, 128, 256), (1, 4, 8), (8, 16, 32, 64)
#: Operations on feature matrices, on scores with a column per head, and on heads of features.
MATRICES = ("spmm", "spmm_gradient", "spmm_max", "spmm_min", "spmm_extremum_gradient", "sddmm")
SCORES = ("edge_softmax", "edge_softmax_gradient")
ATTENTION = tuple(f"{score}{pass_}" for score in ("gat", "gatv2") for pass_ in ("", "_gradient"))


def usual_kernels() -> Iterator[KernelSpec]:
    """Yield the kernels of `spmm`, `sddmm`, the layers and their gradients, some repeatedly.

    They are those of the plans of each operation's fastest strategy, for common widths, with the
    settings that its rule chooses for graphs of all sizes.
    """
    yield preprocessing.spec("partition")
    for operation in MATRICES:
        for n_cols in WIDTHS:
            yield from _kernels(operation, n_cols)
    for operation in SCORES:
        for heads in HEADS:
            yield from _kernels(operation, heads)
    for operation in ATTENTION:
        for heads in HEADS:
            for n_cols in WIDTHS if heads == 1 else HEAD_WIDTHS:
                yield from _kernels(operation, n_cols, heads=heads)


def _kernels(operation: str, n_cols: int, **heads: int) -> Iterator[KernelSpec]:
    """Yield the kernels of plans with the settings that the rule chooses for all sizes."""
    strategy = find_strategy(find_operation(operation).fastest, operation)
    one_node = load_graph(sparse.eye(1, format="csr"))
    widths, unresolved = strategy.checked(n_cols, heads)
    resolved = {}
    for nnz, degree in itertools.product(NONZERO_LIMITS, (1, LONG_DEGREE)):
        rows = RowDegrees(DegreeHistogram.counted({degree: nnz // degree + 1}))
        settings = strategy.resolve(unresolved, rows, widths)
        resolved[repr(settings)] = settings
    for settings in resolved.values():
        for _, call in strategy.build(one_node, widths, settings).part_calls:
            if call.kernel is not None:
                yield call.kernel
