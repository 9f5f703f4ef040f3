"""cuSPARSE, NVIDIA's library for sparse matrices: the baseline of the papers reproduced here."""

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

#: SpMM: CUSPARSE_SPMM_CSR_ALG1 etc., the algorithms for matrices that are not in blocks. SDDMM: the
#: description of V, as the transpose of a row-major matrix or as a column-major matrix V^T.
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
    """Algorithm of the library, and whether it preprocesses the matrix."""

    algorithm: str = _algorithm_of("spmm", "the library's algorithm")
    preprocess: bool = setting(
        True, "let the library preprocess the matrix before the first run", choices=(True, False)
    )


class SddmmAlgorithm(SpmmAlgorithm):
    """Description of V, and whether the library preprocesses the matrix."""

    algorithm: str = _algorithm_of(
        "sddmm", "how V is described to the library: transposed, or by columns"
    )


class CuSPARSE(Strategy):
    """NVIDIA's SpMM. Its kernels are closed source, so that a plan has no workload.

    `"fastest"` times all algorithms once for the matrix and the column count. After
    cusparseSpMM_preprocess, `"csr_alg3"` runs other kernels than without it.
    """

    operation = SPMM
    name = "cusparse"
    summary = "NVIDIA's library, the fastest of its algorithms"
    Settings = SpmmAlgorithm

    def build(self, graph: Graph, widths: Widths, settings: SpmmAlgorithm) -> Plan:
        """Plan one call of the library.

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
        """Describe a library call, whose work distribution is not known."""
        return Description(Library())


class CuSparseSddmm(CuSPARSE):
    """NVIDIA's SDDMM. It is limited to one head."""

    operation = SDDMM
    summary = "NVIDIA's library, the faster of its descriptions of V"
    Settings = SddmmAlgorithm
