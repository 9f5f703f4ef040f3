"""cuSPARSE, NVIDIA's library: the yardstick of every paper here."""

from __future__ import annotations

from accelviz.errors import ArgumentError
from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.summary import PartitionSummary
from accelviz.strategies.base import Strategy
from accelviz.strategies.plans import LaunchConfig, LibraryCall, Plan

#: Algorithm to its number in cusparse.h (CUSPARSE_SPMM_ALG_DEFAULT, CUSPARSE_SPMM_CSR_ALG1, ...):
#: all that take a general matrix, so none of the blocked formats.
ALGORITHMS = {
    "default": 0,
    "csr_alg1": 4,
    "csr_alg2": 6,
    "csr_alg3": 12,
    "coo_alg1": 1,
    "coo_alg2": 2,
    "coo_alg3": 3,
    "coo_alg4": 5,
}
FASTEST = "fastest"


class CuSPARSE(Strategy):
    """NVIDIA's SpMM, whose kernels are closed: it can be timed, not taken apart.

    `build` takes `algorithm`: `"default"`, `"csr_alg1"` to `"csr_alg3"`, `"coo_alg1"` to
    `"coo_alg4"`, or `"fastest"`, which tries them all once for the matrix and the column count;
    and `preprocess`: whether cusparseSpMM_preprocess may look at the matrix beforehand, which makes
    `"csr_alg3"` another algorithm and which wrappers seldom call.
    """

    name = "cusparse"
    summary = "NVIDIA's library, the fastest of its algorithms"

    def build(
        self, graph: Graph, n_cols: int, *, algorithm: str = FASTEST, preprocess: bool = True
    ) -> Plan:
        """Leave everything to the library.

        Raises
        ------
        ArgumentError
            If there is no such algorithm, or `preprocess` is not a bool.
        """
        checked_call(algorithm, preprocess)
        return Plan(
            strategy=self.name,
            graph=graph,
            n_cols=n_cols,
            parameters={"algorithm": algorithm, "preprocess": preprocess},
            matrix=graph,
            launch=LaunchConfig((0, 0, 0), 0),  # the library decides when it is called
            slice_workload=None,
            library=LibraryCall("cusparse", algorithm, preprocess),
            zero_output=False,
        )

    def summarize(
        self, rows: RowDegrees, n_cols: int, *, algorithm: str, preprocess: bool
    ) -> PartitionSummary:
        """Know nothing: the library does not say what its warps do."""
        checked_call(algorithm, preprocess)
        return PartitionSummary()


def checked_call(algorithm: str, preprocess: bool) -> None:
    """Refuse an algorithm that there is not, and a `preprocess` that is not a bool."""
    if algorithm != FASTEST and algorithm not in ALGORITHMS:
        raise ArgumentError(
            "algorithm", f"there is no {algorithm!r}", ", ".join([FASTEST, *ALGORITHMS])
        )
    if not isinstance(preprocess, bool):
        raise ArgumentError("preprocess", f"got {preprocess!r}", "True or False")
