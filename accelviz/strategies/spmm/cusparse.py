"""cuSPARSE, NVIDIA's library: the yardstick of every paper here."""

from __future__ import annotations

from typing import ClassVar

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.cut import Cut
from accelviz.plans import LibraryCall, Parameter, Plan, Strategy
from accelviz.strategies.spmm.operation import SPMM

#: All that take a general matrix, so none of the blocked formats; CUSPARSE_SPMM_CSR_ALG1 and so on.
ALGORITHMS = (
    *("default", "csr_alg1", "csr_alg2", "csr_alg3"),
    *("coo_alg1", "coo_alg2", "coo_alg3", "coo_alg4"),
)
FASTEST = "fastest"


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
    parameters: ClassVar = {
        "algorithm": Parameter(
            FASTEST, "which of the library's kernels", choices=(FASTEST, *ALGORITHMS)
        ),
        "preprocess": Parameter(
            True,
            "let the library look at the matrix before the first product",
            choices=(True, False),
        ),
    }

    def build(self, graph: Graph, n_cols: int, *, algorithm: str, preprocess: bool) -> Plan:
        """Leave everything to the library."""
        call = LibraryCall("cusparse", algorithm, preprocess)
        return Plan(graph.pattern, (call,), clears=())

    def cut(self, rows: RowDegrees, n_cols: int, **parameters: object) -> Cut:
        """Know nothing: the library does not say what its warps do."""
        return Cut("library", {})
