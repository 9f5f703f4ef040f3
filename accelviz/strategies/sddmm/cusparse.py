"""cuSPARSE's SDDMM, the yardstick."""

from __future__ import annotations

from typing import ClassVar

from accelviz.errors import ArgumentError
from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.cut import Cut
from accelviz.plans import LibraryCall, Parameter, Plan, Strategy
from accelviz.strategies.sddmm.operation import SDDMM

#: How cuSPARSE is told of V: as the transpose of V in rows, or as V^T in columns.
ALGORITHMS = ("transposed", "column_major")


class CuSPARSE(Strategy):
    """NVIDIA's SDDMM, whose kernels are closed: it can be timed, not taken apart.

    It takes `algorithm`, how V is described: `"transposed"`, `"column_major"`, or `"fastest"`,
    which tries both; and `preprocess`: whether cusparseSDDMM_preprocess may look at the matrix
    beforehand. It has one head only.
    """

    operation = SDDMM
    name = "cusparse"
    summary = "NVIDIA's library, the faster of its descriptions of V"
    parameters: ClassVar = {
        "algorithm": Parameter(
            "fastest",
            "how V is described to the library: transposed, or by columns",
            choices=("fastest", *ALGORITHMS),
        ),
        "preprocess": Parameter(
            True,
            "let the library look at the matrix before the first product",
            choices=(True, False),
        ),
    }

    def build(
        self, graph: Graph, n_cols: int, *, heads: int, algorithm: str, preprocess: bool
    ) -> Plan:
        """Leave everything to the library.

        Raises
        ------
        ArgumentError
            If there are several heads.
        """
        if heads != 1:
            raise ArgumentError("heads", f"got {heads}", "1: cuSPARSE has no heads")
        return Plan(graph.pattern, (LibraryCall("cusparse", algorithm, preprocess),), clears=())

    def cut(self, rows: RowDegrees, n_cols: int, **parameters: object) -> Cut:
        """Know nothing: the library does not say what its warps do."""
        return Cut("library", {})
