"""cuSPARSE's SDDMM, the yardstick."""

from __future__ import annotations

from accelviz.errors import ArgumentError
from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.scheme import Library
from accelviz.plans.description import Description
from accelviz.plans.launch import LibraryCall
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance, Strategy, Widths
from accelviz.plans.settings import Settings, setting
from accelviz.strategies.sddmm.operation import SDDMM

#: How cuSPARSE is told of V: as the transpose of V in rows, or as V^T in columns.
ALGORITHMS = ("transposed", "column_major")


class Algorithm(Settings):
    """Which of the library's kernels, and whether it looks at the matrix first."""

    algorithm: str = setting(
        "fastest",
        "how V is described to the library: transposed, or by columns",
        choices=("fastest", *ALGORITHMS),
    )
    preprocess: bool = setting(
        True, "let the library look at the matrix before the first product", choices=(True, False)
    )


class CuSPARSE(Strategy):
    """NVIDIA's SDDMM, whose kernels are closed: it can be timed, not taken apart.

    It takes `algorithm`, how V is described: `"transposed"`, `"column_major"`, or `"fastest"`,
    which tries both; and `preprocess`: whether cusparseSDDMM_preprocess may look at the matrix
    beforehand. It has one head only.
    """

    operation = SDDMM
    name = "cusparse"
    summary = "NVIDIA's library, the faster of its descriptions of V"
    Settings = Algorithm

    def build(self, graph: Graph, widths: Widths, settings: Algorithm) -> Plan:
        """Leave everything to the library.

        Raises
        ------
        ArgumentError
            If there are several heads.
        """
        if widths["heads"] != 1:
            raise ArgumentError("heads", f"got {widths['heads']}", "1: cuSPARSE has no heads")
        return Plan(
            Layout(graph.pattern),
            (LibraryCall("cusparse", settings.algorithm, settings.preprocess),),
            Buffers(zero_outputs=()),
            Provenance(self, graph.values, widths, settings),
        )

    def describe(self, settings: Algorithm, rows: RowDegrees, widths: Widths) -> Description:
        """Know nothing: the library does not say what its warps do."""
        return Description(Library())
