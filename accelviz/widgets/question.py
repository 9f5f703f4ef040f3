"""A question for a class: the setting of a strategy that is best by a statistic.

The learner guesses settings and sees the value and rank of each guess. All values can be revealed
once the best setting is guessed or no guess is left.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd

from accelviz.analysis.settings import parameters, varying
from accelviz.errors import ArgumentError, checked_integer
from accelviz.widgets import assets

#: Columns of `sweep`'s table and their labels; shares are 0 to 1.
STATISTICS = {
    "blocks": "blocks",
    "warps": "launched warps",
    "busy_warps": "warps with work",
    "idle_warps": "share of idle warps",
    "idle_share": "share of warp time idle",
    "warp_nzs_mean": "mean nonzeros of a warp",
    "largest": "nonzeros of the busiest",
    "imbalance": "busiest over mean",
    "metadata_bytes": "bytes of metadata",
    "rows_shared": "rows shared by warps",
    "rows_cut": "rows cut over blocks",
    "shared_atomics": "atomics in shared",
    "global_atomics": "atomics in global",
}


class Question:
    """A question on a table of `sweep` over one or two parameters; see `widgets.ask`."""

    def __init__(
        self,
        table: pd.DataFrame,
        statistic: str,
        *,
        most: bool = False,
        guesses: int = 3,
        question: str | None = None,
        explanation: str = "",
    ) -> None:
        if statistic not in STATISTICS:
            raise ArgumentError("statistic", f"there is no {statistic!r}", ", ".join(STATISTICS))
        if table[statistic].isna().any():
            raise ArgumentError(
                "statistic", f"{statistic!r} is not known of every setting", "another statistic"
            )
        checked_integer("guesses", guesses, error=ArgumentError)
        names = [name for name in parameters(table) if name not in ("strategy", "n_cols")]
        if len(names) > 2:  # constant parameters need no slider
            names = varying(table, names)
        if not 0 < len(names) <= 2:
            raise ArgumentError("table", f"it varies {', '.join(names)}", "one or two parameters")
        settings = zip(*(table[name].tolist() for name in names), strict=True)
        values = dict(zip(settings, map(float, table[statistic]), strict=True))
        choices = [sorted(set(table[name].tolist())) for name in names]
        label = STATISTICS[statistic]
        is_count = label.split()[0] not in ("share", "mean", "busiest")
        least, greatest = ("fewest", "most") if is_count else ("smallest", "largest")
        graph = table.attrs.get("graph", "this graph")
        extreme = greatest if most else least
        self.question = question or f"Which setting of {graph} has the {extreme} {label}?"
        #: Data that the page draws. `values` has one entry per combination of `choices`, with the
        #: last parameter varying fastest; NaN where the strategy refuses a combination.
        self.content: dict[str, Any] = {
            "question": self.question,
            "explanation": explanation,
            "label": label,
            "share": label.startswith("share"),
            "most": most,
            "guesses": guesses,
            "names": names,
            "choices": choices,
            "values": np.array(
                [values.get(setting, np.nan) for setting in itertools.product(*choices)]
            ),
        }

    def html(self) -> str:
        """Return HTML with a script that works offline and without a kernel."""
        fallback = f"<p><b>{assets.with_code(self.question)}</b></p>"
        fallback += (
            "<p>To guess, open this where scripts may run: in a notebook that you trust.</p>"
        )
        return assets.asking_page("question", self.content, fallback)

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        return f"Question: {self.question}"
