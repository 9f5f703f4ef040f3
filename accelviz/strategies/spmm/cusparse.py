"""cuSPARSE, NVIDIA's library: the yardstick of every paper here."""

from __future__ import annotations

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.scheme import Library
from accelviz.plans.description import Description
from accelviz.plans.launch import LibraryCall
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance, Strategy, Widths
from accelviz.plans.settings import Settings, setting
from accelviz.strategies.spmm.operation import SPMM

#: All that take a general matrix, so none of the blocked formats; CUSPARSE_SPMM_CSR_ALG1 and so on.
ALGORITHMS = (
    *("default", "csr_alg1", "csr_alg2", "csr_alg3"),
    *("coo_alg1", "coo_alg2", "coo_alg3", "coo_alg4"),
)
FASTEST = "fastest"


class Algorithm(Settings):
    """Which of the library's kernels, and whether it looks at the matrix first."""

    algorithm: str = setting(
        FASTEST, "which of the library's kernels", choices=(FASTEST, *ALGORITHMS)
    )
    preprocess: bool = setting(
        True, "let the library look at the matrix before the first product", choices=(True, False)
    )


class CuSPARSE(Strategy):
    """NVIDIA's SpMM, whose kernels are closed: it can be timed, not taken apart.

    It takes `algorithm`: `"default"`, `"csr_alg1"` to `"csr_alg3"`, `"coo_alg1"` to `"coo_alg4"`,
    or `"fastest"`, which tries them all once for the matrix and the column count; and `preprocess`:
    whether cusparseSpMM_preprocess may look at the matrix beforehand, which makes `"csr_alg3"`
    another algorithm and which wrappers seldom call.
    """

    operation = SPMM
    name = "cusparse"
    summary = "NVIDIA's library, the fastest of its algorithms"
    Settings = Algorithm

    def build(self, graph: Graph, widths: Widths, settings: Algorithm) -> Plan:
        """Leave everything to the library."""
        return Plan(
            Layout(graph.pattern),
            (LibraryCall("cusparse", settings.algorithm, settings.preprocess),),
            Buffers(zero_outputs=()),
            Provenance(self, graph.values, widths, settings),
        )

    def describe(self, settings: Algorithm, rows: RowDegrees, widths: Widths) -> Description:
        """Know nothing: the library does not say what its warps do."""
        return Description(Library())
