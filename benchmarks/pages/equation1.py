"""Equation 1 of Accel-GCN: metadata of the block-level over that of the warp-level partition.

Both follow from the degrees alone, so this needs no GPU, no measurement and no graph.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from paper import FIGURES, METADATA_SHARE, markdown, picture, run

from accelviz.datasets import TABLE_ONE, TableEntry
from accelviz.ordering import DegreeHistogram
from accelviz.partition.block_level import BlockSetting, block_partition, unpack
from accelviz.partition.warp_level import storage_ratio, warp_partition
from accelviz.plots.style import BLACK, BLUE, GREEN, GREY, ORANGE, tidy

#: Many short rows, a tail of longer ones, and rows longer than a block (approximate degrees).
EXAMPLES = {"ovcar-8h": (BLUE, "o"), "collab": (ORANGE, "s"), "reddit": (GREEN, "^")}
BLOCK_WARPS = range(4, 33)


def section(figures: Path = FIGURES) -> str:
    """Draw the share against warps a block, and list all graphs at the published setting."""
    lines = []
    for entry in sorted(TABLE_ONE.values(), key=lambda entry: entry.name.lower()):
        share, blocks, warps, busy = facts(entry, BlockSetting())
        name = entry.name if entry.exact else f"{entry.name}\\*"
        lines.append(
            [
                name,
                f"{warps:,}",
                f"{blocks:,}",
                f"{busy:.2f}",
                f"{1 / busy:.1%}",
                f"{share:.1%}",
                f"{METADATA_SHARE:.0%}",
            ]
        )
    head = [
        "graph",
        "warps, warp-level",
        "blocks, block-level",
        "warps with work in a block",
        "1 / that",
        "metadata",
        "paper",
    ]
    figure, alt = drawn()
    return f"{picture(figure, figures, 'equation1', alt)}\n\n{markdown(head, lines)}"


def facts(entry: TableEntry, setting: BlockSetting) -> tuple[float, int, int, float]:
    """Return the share of Equation 1, blocks, warps of the other partition, busy warps a block."""
    histogram = DegreeHistogram(*entry.histogram())
    metadata = block_partition(histogram, setting)
    # The rows' order does not change how many warps they are cut into.
    pointers = np.concatenate([[0], np.cumsum(np.repeat(histogram.degrees, histogram.rows))])
    warps = warp_partition(pointers, setting.max_warp_nzs)
    fields = unpack(metadata, setting)
    busy = float((fields.rows * fields.warps_per_row).mean())
    return storage_ratio(metadata, warps), len(metadata), len(warps), busy


def drawn() -> tuple[Figure, str]:
    """Draw the share of three graphs for every number of warps in a block."""
    figure = Figure(figsize=(8.2, 4.6), layout="constrained")
    ax = figure.subplots()
    shares = {
        name: [facts(TABLE_ONE[name], BlockSetting(warps))[0] for warps in BLOCK_WARPS]
        for name in EXAMPLES
    }
    for name, (colour, mark) in EXAMPLES.items():
        entry = TABLE_ONE[name]
        label = entry.name if entry.exact else f"{entry.name} (approximate degrees)"
        ax.plot(BLOCK_WARPS, shares[name], marker=mark, ms=5, lw=1.4, color=colour, label=label)
    inverse = [1 / warps for warps in BLOCK_WARPS]
    ax.plot(BLOCK_WARPS, inverse, "--", color=BLACK, lw=1.2, label="1 / warps in a block")
    published = BlockSetting().max_block_warps
    ax.axvline(published, color=GREY, lw=0.8, zorder=0)
    there = [each[published - BLOCK_WARPS.start] for each in shares.values()]
    for text, place, shift in (
        ("published setting", published, 0.93),
        ("peaks: prime numbers of warps,\nof which a row takes one or all", 17, 0.46),
    ):
        ax.annotate(
            text,
            (place, shift),
            xycoords=("data", "axes fraction"),
            xytext=(5, 0),
            textcoords="offset points",
            color=GREY,
        )
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    ax.set_ylim(bottom=0)
    ax.set_xticks(range(4, 33, 4))
    ax.set_xlabel("warps in a block (max_block_warps)")
    ax.set_ylabel("metadata, block-level over warp-level")
    ax.legend(frameon=False)
    shrunk = f"{min(there):.0%} to {max(there):.0%}"
    title = f"Describing blocks of {published} warps, not each warp, takes {shrunk} of the metadata"
    ax.set_title(title, loc="left", fontsize=11, fontweight="bold")
    tidy(ax)
    said = ", ".join(
        f"{TABLE_ONE[name].name} {share:.1%}" for name, share in zip(EXAMPLES, there, strict=True)
    )
    alt = (
        "Metadata of the block-level over that of the warp-level partition, for 4 to 32 warps a "
        f"block: it falls like 1 / warps, with peaks at primes; at {published} warps {said}."
    )
    return figure, alt


if __name__ == "__main__":
    run(section, __doc__, measured=False)
