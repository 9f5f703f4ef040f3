"""Sums of neighbors' rows of 8 or 4 bits, by the blocks of subwarps that float32 rows have."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

import numpy as np

from accelviz.errors import ArgumentError
from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.subwarps import WORDS
from accelviz.plans import Buffers, Plan, Provenance, Strategy, Widths
from accelviz.plans.description import Description
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.settings import Settings
from accelviz.strategies.bits.operation import BIT_SPMM
from accelviz.strategies.bits.packing import MOST_SUM, VECTOR_WORDS, row_words
from accelviz.strategies.subwarps import Blocks, LaneGroupSettings, local_order, subwarp_layout

#: Vectors of nibbles that add up in a byte.
_MOST_AT_ONCE = 17


def _like(name: str) -> Any:
    """Declare a setting of `lane_groups` for float32."""
    declared = LaneGroupSettings.declared[name]
    return field(default=declared.default, metadata={"setting": declared})


class RowSettings(Settings):
    """Those settings of `lane_groups` for float32 that the kernel of packed rows has."""

    group_nzs: int = _like("group_nzs")
    short_nzs: int = _like("short_nzs")
    block_threads: int = _like("block_threads")
    lanes: int = _like("lanes")
    at_once: int = _like("at_once")
    block_order: str = _like("block_order")


class LaneGroups(Strategy):
    """Groups of a few lanes have rows of equal degree, as of an SpMM whose rows have as many bytes.

    Settings are as of SpMM's `lane_groups`. An object is of 8 or of 4 bits.
    """

    name = "lane_groups"
    summary = "our own: subwarps add up rows of packed numbers, exactly"
    Settings = RowSettings
    worker = "subwarp"
    metadata_words = WORDS
    metadata_owner = "block"

    def __init__(self, bits: int) -> None:
        self.bits, self.operation = bits, BIT_SPMM[bits]

    def _like_floats(
        self, settings: RowSettings, graph: Graph | RowDegrees, widths: Widths
    ) -> LaneGroupSettings:
        """Resolve the settings as for float32 rows of as many words."""

        def is_local() -> bool:
            return isinstance(graph, Graph) and local_order(graph)[0]

        columns, wanted = row_words(widths["n_cols"], self.bits), settings.values()
        resolved = LaneGroupSettings(**wanted).resolved
        return resolved(columns, graph.shape, graph.nnz, is_local)

    def resolve(
        self, settings: RowSettings, graph: Graph | RowDegrees, widths: Widths
    ) -> RowSettings:
        """Ask the rule of `lane_groups`; bytes bound how many nibbles are added up at once."""
        chosen = self._like_floats(settings, graph, widths).values()
        chosen["at_once"] = min(chosen["at_once"], _MOST_AT_ONCE)
        return settings.filled(**{name: chosen[name] for name in settings.declared})

    def describe(self, settings: RowSettings, rows: RowDegrees, widths: Widths) -> Description:
        """Know no scheme: groups add sums that are not zero to shared memory, others not."""
        return Description()

    def build(self, graph: Graph, widths: Widths, settings: RowSettings) -> Plan:
        """Sort the rows and partition them; clear first what several blocks add to.

        Raises
        ------
        ArgumentError
            If a sum could pass 2^31.
        PartitionError
            If the graph has 2^32 nonzeros or more.
        """
        n_cols, degree = widths["n_cols"], int(graph.degrees.max(initial=0))
        largest = degree * ((1 << self.bits) - 1)
        if largest > MOST_SUM:
            problem = f"its sums could reach {largest:,}"
            raise ArgumentError("graph", problem, f"at most {MOST_SUM:,}")
        n_words, in_place = row_words(n_cols, self.bits), settings.block_order == "place"
        blocks = Blocks.of(self._like_floats(settings, graph, widths), n_words)
        layout, partition, seconds = subwarp_layout(graph, blocks, in_place)
        config = {
            **blocks.config,
            "lanes": blocks.lanes.lanes,
            "bits": self.bits,
            "at_once": settings.at_once,
        }

        def call(entry: str, grid: tuple[int, int, int], arguments: str) -> Call:
            kernel = KernelSpec("bits/gather.cu", entry, config, tuple(arguments.split()))
            return Call(LaunchConfig(grid, blocks.threads // WARP_SIZE), kernel)

        arguments = "metadata output_rows columns X Y row_vectors n_cols"
        calls = [call("gather", (len(partition.metadata), blocks.lanes.tiles, 1), arguments)]
        if partition.cut_blocks:
            grid = (partition.cut_blocks, 1, 1)
            calls.insert(0, call("clear", grid, "metadata output_rows Y n_cols"))
        sizes = {"row_vectors": np.int32(n_words // VECTOR_WORDS), "n_cols": np.int32(n_cols)}
        return Plan(
            replace(layout, main=len(calls) - 1),
            tuple(calls),
            Buffers(partition.arrays | sizes, zero_outputs=()),
            Provenance(self, None, widths, settings, seconds),
        )
