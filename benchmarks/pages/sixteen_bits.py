"""The section of docs/performance.md on features in 16 bits: their times, and their errors."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from paper import markdown, plain
from targets import graph_names, halves, wide

from accelviz.measure.comparison import geometric_mean


def sixteen_bits(tables: dict[str, pd.DataFrame], _: Path) -> str:
    """List what 16-bit features gain over float32."""
    found = halves(tables["half"])
    means = found.pivot_table(
        index="graph", columns=["dtype", "columns"], values="speedup", sort=False
    )
    keys = [(dtype, d) for dtype in ("float16", "bfloat16") for d in sorted(set(found["columns"]))]
    keys = [key for key in keys if key in means.columns]
    lines = [
        [plain(str(graph)), *(f"{line[key]:.2f}" for key in keys)]
        for graph, line in means.iterrows()
    ]
    lines.append(["**mean**", *(f"{geometric_mean(means[key].dropna()):.2f}" for key in keys)])
    return (
        '## Sixteen bits\n\nWith `storage="float16"` or `"bfloat16"` features are rounded '
        "beforehand, by up to 2^-11 and 2^-8 of each number (float16 by more below 6e-5, and it "
        "ends at 65,504); sums and Y stay float32. **That is another problem**, and such times "
        "never stand beside float32's without a label. Results "
        f"are held to float64 of the rounded features (largest error "
        f"{found['error_over_bound'].max():.2f} of the bound). How many times as fast as with "
        f"float32, in the same run; the random-gather limits would allow "
        f"{geometric_mean(wide(found)['limit']):.2f} at d ≥ 64 in the mean.\n\n"
        + markdown(["graph", *(f"{dtype}, d = {d}" for dtype, d in keys)], lines)
        + (f"\n\n{accuracy(tables['rounding'])}" if "rounding" in tables else "")
    )


def accuracy(rounding: pd.DataFrame) -> str:
    """Say how far products of rounded features are from those of the features themselves."""
    lines = []
    for storage, rows in rounding.groupby("storage", sort=False):
        ends = [(rows[name].min(), rows[name].max()) for name in ("norm", "median", "largest")]
        lines.append([storage, *(f"{low:.1e} to {high:.1e}" for low, high in ends)])
    head = ["features in", "error of Y, norm", "of an element, median", "largest"]
    return (
        f"Against float64 of the features *before* rounding (random signed features and weights, "
        f"d = {rounding['columns'].iloc[0]}, on {graph_names(rounding['graph'])}); an element's "
        "error is in units of its sum of |a x|:\n\n" + markdown(head, lines)
    )
