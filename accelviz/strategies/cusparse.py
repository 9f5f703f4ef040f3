"""cuSPARSE, NVIDIA's library: the yardstick of every paper here."""

from __future__ import annotations

from typing import Any

from accelviz.errors import ArgumentError
from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.scheme import Library
from accelviz.plans import Description, LibraryCall, Settings, Strategy, Widths, setting
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance
from accelviz.strategies.sddmm.operation import SDDMM
from accelviz.strategies.spmm.operation import SPMM

#: SpMM's that take a general matrix, so none of the blocked formats; CUSPARSE_SPMM_CSR_ALG1 and so
#: on. SDDMM's say how cuSPARSE is told of V: as the transpose of V in rows, or as V^T in columns.
ALGORITHMS = {
    "spmm": (
        *("default", "csr_alg1", "csr_alg2", "csr_alg3"),
        *("coo_alg1", "coo_alg2", "coo_alg3", "coo_alg4"),
    ),
    "sddmm": ("transposed", "column_major"),
}
FASTEST = "fastest"


def _algorithm_of(operation: str, meaning: str) -> Any:
    return setting(FASTEST, meaning, choices=(FASTEST, *ALGORITHMS[operation]))


class SpmmAlgorithm(Settings):
    """Which of the library's kernels, and whether it looks at the matrix first."""

    algorithm: str = _algorithm_of("spmm", "which of the library's kernels")
    preprocess: bool = setting(
        True, "let the library look at the matrix before the first product", choices=(True, False)
    )


class SddmmAlgorithm(SpmmAlgorithm):
    """How V is described, and whether the library looks at the matrix first."""

    algorithm: str = _algorithm_of(
        "sddmm", "how V is described to the library: transposed, or by columns"
    )


class CuSPARSE(Strategy):
    """NVIDIA's SpMM, whose kernels are closed: it can be timed, not taken apart.

    `"fastest"` tries all algorithms once for the matrix and the column count. With
    cusparseSpMM_preprocess, which wrappers seldom call, `"csr_alg3"` is another algorithm.
    """

    operation = SPMM
    name = "cusparse"
    summary = "NVIDIA's library, the fastest of its algorithms"
    Settings = SpmmAlgorithm

    def build(self, graph: Graph, widths: Widths, settings: SpmmAlgorithm) -> Plan:
        """Leave everything to the library.

        Raises
        ------
        ArgumentError
            If there are several heads.
        """
        if widths.get("heads", 1) != 1:
            raise ArgumentError("heads", f"got {widths['heads']}", "1: cuSPARSE has no heads")
        return Plan(
            Layout(graph.pattern),
            (LibraryCall("cusparse", settings.algorithm, settings.preprocess),),
            Buffers(zero_outputs=()),
            Provenance(self, graph.values, widths, settings),
        )

    def describe(self, settings: SpmmAlgorithm, rows: RowDegrees, widths: Widths) -> Description:
        """Know nothing: the library does not say what its warps do."""
        return Description(Library())


class CuSparseSddmm(CuSPARSE):
    """NVIDIA's SDDMM, which has one head only."""

    operation = SDDMM
    summary = "NVIDIA's library, the faster of its descriptions of V"
    Settings = SddmmAlgorithm
