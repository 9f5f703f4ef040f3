"""Renew GNNAdvisor's section of docs/reproduction.md from benchmarks/results/gnnadvisor-h200.csv.

python benchmarks/pages/gnnadvisor.py
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from graphs import renewed
from paper import ROOT, markdown

from accelviz.files import results_directory
from accelviz.measure.comparison import geometric_mean

#: Thesis, section 3.7.3: training, GNNAdvisor over PyTorch Geometric, mean over all datasets.
PUBLISHED = {"gcn": 1.78, "gin": 2.13}


def section(steps: pd.DataFrame) -> str:
    """Write the milliseconds of a step beside PyTorch Geometric's in both forms."""
    lines = []
    for model, paper in PUBLISHED.items():
        ratios: dict[str, list[float]] = {"edge_index": [], "csr": []}
        for graph, cases in steps[steps["model"] == model].groupby("graph", sort=False):
            times = cases.set_index("form")["step_ms"]
            cells = [f"{times['gnnadvisor']:.2f}"]
            for form, found in ratios.items():
                found.append(times[form] / times["gnnadvisor"])
                cells += [f"{times[form]:.2f}", f"{found[-1]:.1f}"]
            lines.append((model.upper(), graph, *cells, ""))
        means = [cell for found in ratios.values() for cell in ("", f"{geometric_mean(found):.1f}")]
        lines.append((model.upper(), "geometric mean", "", *means, f"{paper:.2f}"))
    head = ("network", "graph", "GNNAdvisor's products", "PyG, `edge_index`", "times as fast")
    return markdown((*head, "PyG, CSR", "times as fast", "paper, over PyG"), lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--document", type=Path, default=ROOT / "docs" / "reproduction.md")
    parser.add_argument("--results", type=Path, default=results_directory(), help="folder of CSVs")
    options = parser.parse_args()
    steps = pd.read_csv(options.results / "gnnadvisor-h200.csv")
    text = renewed(options.document.read_text("utf-8"), "gnnadvisor", section(steps))
    options.document.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
