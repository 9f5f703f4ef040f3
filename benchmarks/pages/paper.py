"""What Accel-GCN's paper reports, and what the scripts of its figures have in common.

Every script of a figure has `section`, which draws it and returns its part of docs/reproduction.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from accelviz.measure import records

#: Xie et al., Accel-GCN, ICCAD 2023, arXiv 2308.11825; times of kernels by Nsight Compute.
SETTING = "RTX 3090, CUDA 12.0"
#: Section IV-B and abstract: mean speedup over all graphs, and the largest.
SPEEDUPS = {"cuSPARSE": (1.17, 1.45), "GNNAdvisor": (1.86, 3.41), "GraphBLAST": (2.94, 5.02)}
#: Table II, in percent: average, maximum, minimum for each range of column counts.
BLOCK_LEVEL = {
    "[16, 32]": (105.2, 129.2, 92.4),
    "(32, 64]": (107.2, 130.7, 94.1),
    "(64, 96]": (106.5, 127.7, 92.4),
    "(96, 128]": (106.8, 126.0, 92.9),
}
COMBINED_WARP = {
    "[16, 32]": (133.4, 194.5, 104.8),
    "(32, 64]": (127.8, 174.0, 87.3),
    "(64, 96]": (105.5, 126.5, 81.3),
    "(96, 128]": (122.9, 156.0, 86.7),
}
#: Section III-C, below Equation 1: metadata of the block-level partition over the warp-level one's.
METADATA_SHARE = 0.08
#: Section III-A: Collab's largest degree is this many times greater than its average.
LARGEST_DEGREE = 66

#: What the systems are called in pictures, and which case of `measure.comparison` each is.
SYSTEMS = {
    "Accel-GCN": "accel_gcn",
    "GNNAdvisor": "gnnadvisor ngs=32",
    "GraphBLAST": "graphblast",
    "cuSPARSE": "cusparse algorithm=fastest preprocess=True",
}

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "docs" / "figures"
ORDERS = ("natural", "shuffled")
DPI = 110


def run(section: Callable[..., str], description: str | None, *, measured: bool = True) -> None:
    """Read a script's options, draw its figure and print its table."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--figures", type=Path, default=FIGURES, help="folder of the pictures")
    if measured:
        parser.add_argument(
            "--results",
            dest="results_file",
            metavar="CSV",
            help="of measure.py; the recorded ones if not given",
        )
        parser.add_argument(
            "--order", choices=ORDERS, default="natural", help="twins' vertex order"
        )
    print(section(**vars(parser.parse_args())))


def results(file: str | None, name: str) -> pd.DataFrame:
    """Read a CSV of measure.py, or what is recorded under a name."""
    return records.recorded(name) if file is None else pd.read_csv(file)


def in_order(table: pd.DataFrame, order: str) -> pd.DataFrame:
    """Keep the graphs in one vertex order; those that are real have only the natural one."""
    shuffled = table["graph"].str.endswith("-shuffled")
    return table[shuffled == (order == "shuffled")]


def measured_on(table: pd.DataFrame, dropped: int) -> str:
    """Say on what a table was measured, and what had nothing to be compared with."""
    said = {
        name: ", ".join(dict.fromkeys(table[name].dropna().astype(str)))
        for name in ("hardware", "driver", "cuda", "cupy", "date", "commit", "repeats")
    }
    text = (
        f"{said['hardware']} (driver {said['driver']}, CUDA {said['cuda']}, CuPy {said['cupy']}), "
        f"{said['date']}, commit {said['commit'] or 'unknown'}, median of {said['repeats']} runs"
    )
    if dropped:
        text += f"; {dropped} times had no partner in their own run and are left out"
    return text + "."


def picture(figure: Any, folder: Path, name: str, alt: str) -> str:
    """Save a figure, and return the line that shows it in docs/reproduction.md."""
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.png", dpi=DPI)
    return f"![{alt}](figures/{name}.png)"


def markdown(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return a table; all columns but the first are numbers, flush right."""
    rows = [head, ["---", *["---:"] * (len(head) - 1)], *lines]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)


def times(ratio: float) -> str:
    """Write a speedup; a loss in bold."""
    if pd.isna(ratio):
        return "–"
    return f"{ratio:.2f}" if ratio >= 1 else f"**{ratio:.2f}**"


def plain(name: str) -> str:
    """Return a graph's name as Table I has it, starred where its degrees are approximate."""
    star = "\\*" if "-approximate" in name else ""
    for ending in ("-shuffled", "-twin", "-approximate"):
        name = name.removesuffix(ending)
    return name + star
