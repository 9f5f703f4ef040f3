"""Settings other than the defaults: each nonzero occurs once, and results are right everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from accelviz.devices.emulator import EmulatorDevice
from accelviz.strategies import find_strategy
from tests.compilers import EMULATOR
from tests.graphs import GRAPHS
from tests.inherited import case_name, check_results

#: Graphs with no, few and many nonzeros per row, and with rows at the bound of a block.
SMALL = ("hub", "hub_alone", "isolated_ends", "empty", "no_edges", "tall", "degree_384")
EDGES = ("every_kind", "empty", "no_edges", "no_columns")
ABLATIONS = (
    {"partition": "warp", "combined_warp": True},
    {"partition": "warp", "combined_warp": False},
    {"partition": "block", "combined_warp": False},
)


def many(*names: str, values: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Return settings with these names, one for each tuple of values."""
    return [dict(zip(names, row, strict=True)) for row in values]


BLOCKS = many("max_block_warps", "max_warp_nzs", values=[(1, 1), (2, 2), (5, 7), (12, 32), (32, 1)])
OTHER_BLOCKS = [(1, 32), (32, 32), (1, 65535), (8, 3)]
GROUPS = [(1, 32, 1), (1, 32, 32), (2, 7, 3), (3, 16, 4), (3, 1, 32), (32, 7, 4), (32, 32, 3)]
SUBWARPS = [
    # Parts of split rows, subwarps that share rows, and threads beyond the last subwarp.
    {"group_nzs": 1, "short_nzs": 1, "block_threads": 32, "at_once": 1},
    {"group_nzs": 3, "short_nzs": 5, "block_threads": 64, "head_lanes": 16, "at_once": 3},
]
#: Operation, strategy, settings, columns on CPU and GPU, columns in the emulator, graphs.
FAMILIES: list[tuple[str, str, list[dict[str, Any]], Any, Any, tuple[str, ...]]] = [
    *(
        ("spmm", "accel_gcn", [ablation | blocks for blocks in BLOCKS], (1, 33), (33,), SMALL)
        for ablation in ({}, *ABLATIONS)
    ),
    (
        *("spmm", "accel_gcn"),
        many("max_block_warps", "max_warp_nzs", values=OTHER_BLOCKS),
        *((1, 33), (33,), (*SMALL, "critical_degrees")),
    ),
    (
        *("spmm", "accel_gcn"),
        [ablation | {"max_block_warps": 32, "max_warp_nzs": 2} for ablation in ABLATIONS],
        *((1, 64, 257, 512, 5000), (512, 5000), ("degree_33",)),
    ),
    (
        *("spmm", "gnnadvisor"),
        many("ngs", "dw", "block_warps", values=[*GROUPS, (1000, 32, 4), (1000, 1, 1)]),
        *((1, 33), (33,), SMALL),
    ),
    (
        *("spmm", "gnnadvisor"),
        many("ngs", "block_warps", values=[(3, 1), (3, 4), (3, 32)]),
        *(range(1, 258, 24), (1, 49, 100, 153, 241, 2000), ("isolated_ends", "degree_33")),
    ),
    (
        *("spmm", "merge_path"),
        many("items_per_thread", "block_warps", values=[(1, 5), (2, 1), (3, 32), (64, 5)]),
        *((1, 33, 100), (33,), SMALL),
    ),
    *(
        (
            *(operation, strategy, [{"block_size": size}]),
            # Even and odd numbers of groups, one group, and fewer edges than groups.
            (1, 5, 7, size // 3, size // 2, size - 1, size, size + 1, 2 * size + 3),
            *((5, size // 3, min(size + 1, 400)), EDGES),
        )
        for operation in ("spmm", "spmm_gradient")
        for strategy in ("fusegnn_gas", "fusegnn_gar")
        for size in (32, 96, 1024)
    ),
    (
        *("spmm", "windows"),
        [
            {"window_rows": 16, "block_warps": 2, "stages": 2, "part_columns": 32},
            {"window_rows": 24, "block_warps": 12, "column_tile": 32},
        ],
        *((60,), (60,), ("every_kind",)),
    ),
    (
        *("spmm", "window_tiles"),
        [
            {"window_rows": 32, "column_tile": 128, "ahead": 4, "part_columns": 32},
            {"window_rows": 16, "column_tile": 32, "ahead": 1, "arithmetic": "tf32"},
            {"window_rows": 16, "column_tile": 128, "ahead": 4, "arithmetic": "float16"},
        ],
        *((60,), (60,), ("every_kind",)),
    ),
    (
        *("sddmm", "window_tiles"),
        [
            {"window_rows": 16, "part_columns": 32, "at_once": 1},
            {"window_rows": 32, "block_warps": 2},
            {"window_rows": 16, "arithmetic": "tf32"},
            {"window_rows": 32, "arithmetic": "float16"},
            {"window_rows": 16, "arithmetic": "float16"},
        ],
        *((18, 33, 64), (33, 60), ("every_kind",)),
    ),
    (
        *("sddmm", "lane_groups"),
        # Tiles that divide the columns and tiles that do not, in launches of their own.
        [{"column_tile": 32}, {"column_tile": 20, "lanes": 4}],
        *((33, 64, 100), (64, 100), ("every_kind",)),
    ),
    *(
        (
            *(operation, "lane_groups"),
            [
                {"lanes": 1, "block_threads": 32, "long_row": 8},
                {"lanes": 32, "block_threads": 32, "long_row": 40},
                {"lanes": 4, "block_threads": 96, "long_row": 1},
                {"lanes": 8, "long_row": 1 << 20},
            ],
            *((1, 5), (5,), ("every_kind", "isolated_ends", "empty")),
        )
        for operation in ("edge_softmax", "edge_softmax_gradient")
    ),
    *(
        (
            f"{score}{pass_}",
            "lane_groups",
            SUBWARPS,
            (5, 12),
            (12,),
            ("every_kind", "isolated_ends"),
        )
        for score in ("gat", "dot", "cosine", "gatv2")
        for pass_ in ("", "_gradient")
    ),
]


def cases() -> Iterator[Any]:
    """Yield the settings of each family."""
    for operation, name, family, *others in FAMILIES:
        strategy = find_strategy(name, operation)
        for settings in family:
            label = f"{case_name(strategy)}-{case_name(settings)}-{max(others[0])}"
            yield pytest.param(strategy, settings, *others, id=label)


@pytest.mark.sample(12)
@pytest.mark.parametrize("device", ["cpu", EMULATOR, pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize(("strategy", "settings", "columns", "emulated", "graphs"), [*cases()])
def test_any_setting(strategy, settings, columns, emulated, graphs, device):
    """In the emulator, the order of threads and blocks is random and depends on the setting."""
    if device == "emulator":
        columns, device = emulated, EmulatorDevice(seed=1 + len(str(settings)) % 5)
    elif graphs is SMALL:
        graphs = (*SMALL, "all_degrees", "wide")
    for name in graphs:
        graph = GRAPHS[name]()
        plan = strategy.plan(graph, columns[-1], **settings)
        plan.check()
        assert settings.items() <= plan.parameters.items()
        check_results(graph, strategy, device, columns, **settings)
