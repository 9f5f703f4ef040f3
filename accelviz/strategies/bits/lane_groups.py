"""`lane_groups` for packed rows: Y = A X, where A has ones only and X has 8 or 4 bits a number."""

from __future__ import annotations

from dataclasses import replace

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
from accelviz.strategies.subwarps import (
    Blocks,
    LaneGroupSettings,
    local_order,
    setting_like,
    subwarp_layout,
)

#: Most 4-bit numbers (of at most 15) whose sum fits in a byte.
_MOST_AT_ONCE = 17


class RowSettings(Settings):
    """The settings of SpMM's `lane_groups` that the kernel for packed rows has."""

    group_nzs: int = setting_like("group_nzs")
    short_nzs: int = setting_like("short_nzs")
    block_threads: int = setting_like("block_threads")
    lanes: int = setting_like("lanes")
    at_once: int = setting_like("at_once")
    block_order: str = setting_like("block_order")


class LaneGroups(Strategy):
    """The blocks and settings of SpMM's `lane_groups` for float32 rows of as many bytes.

    `bits`, 8 or 4, are the bits of a number.
    """

    name = "lane_groups"
    summary = "our own: subwarps add up rows of packed numbers, exactly"
    Settings = RowSettings
    worker = "subwarp"
    metadata_words = WORDS
    metadata_owner = "block"

    def __init__(self, bits: int) -> None:
        self.bits, self.operation = bits, BIT_SPMM[bits]

    def _float_settings(
        self, settings: RowSettings, graph: Graph | RowDegrees, widths: Widths
    ) -> LaneGroupSettings:
        """Return the settings for float32 rows with as many words."""

        def is_local() -> bool:
            return isinstance(graph, Graph) and local_order(graph)[0]

        n_words = row_words(widths["n_cols"], self.bits)
        float_settings = LaneGroupSettings(**settings.values())
        return float_settings.resolved(n_words, graph.shape, graph.nnz, is_local)

    def resolve(
        self, settings: RowSettings, graph: Graph | RowDegrees, widths: Widths
    ) -> RowSettings:
        """Choose the settings that are None by the rule of SpMM's `lane_groups`."""
        resolved = self._float_settings(settings, graph, widths).values()
        resolved["at_once"] = min(resolved["at_once"], _MOST_AT_ONCE)
        return settings.filled(**{name: resolved[name] for name in settings.declared})

    def describe(self, settings: RowSettings, rows: RowDegrees, widths: Widths) -> Description:
        """Return an empty description: the number of atomics depends on the values."""
        return Description()

    def build(self, graph: Graph, widths: Widths, settings: RowSettings) -> Plan:
        """Sort and partition the rows; zero the rows to which several blocks add.

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
        blocks = Blocks.of(self._float_settings(settings, graph, widths), n_words)
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
