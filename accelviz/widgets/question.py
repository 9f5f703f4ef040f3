"""A question for a class: find the setting that does best, guess, then see where you stand."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd

from accelviz.analysis.settings import parameters, varying
from accelviz.errors import ArgumentError, checked_integer
from accelviz.widgets import assets

#: What a statistic of `sweep` is called; shares are 0 to 1.
STATISTICS = {
    "blocks": "blocks",
    "warps": "launched warps",
    "busy_warps": "warps with work",
    "idle_warps": "share of idle warps",
    "idle_share": "share of time waiting",
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
    """What `widgets.ask` returns, from a table of `sweep` over one or two parameters."""

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
        if len(names) > 2:  # those that were not varied need no slider
            names = varying(table, names)
        if not 0 < len(names) <= 2:
            raise ArgumentError("table", f"it varies {', '.join(names)}", "one or two parameters")
        settings = zip(*(table[name].tolist() for name in names), strict=True)
        values = dict(zip(settings, map(float, table[statistic]), strict=True))
        choices = [sorted(set(table[name].tolist())) for name in names]
        called = STATISTICS[statistic]
        counted = called.split()[0] not in ("share", "mean", "busiest")
        size = ("most" if most else "fewest") if counted else "largest" if most else "smallest"
        graph = table.attrs.get("graph", "this graph")
        self.question = question or f"Which setting of {graph} has the {size} {called}?"
        #: What the page draws from; `values` are of all settings, those of a second parameter
        #: beside each other, NaN where values cannot be had together.
        self.content: dict[str, Any] = {
            "question": self.question,
            "explanation": explanation,
            "called": called,
            "share": called.startswith("share"),
            "most": most,
            "guesses": guesses,
            "names": names,
            "choices": choices,
            "values": np.array(
                [values.get(setting, np.nan) for setting in itertools.product(*choices)]
            ),
        }

    def html(self) -> str:
        """Return it as HTML with a script, alive without a kernel or a network."""
        told = f"<p><b>{assets.with_code(self.question)}</b></p>"
        told += "<p>To guess, open this where scripts may run: in a notebook that you trust.</p>"
        return assets.asking_page("question", self.content, told)

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        return f"Question: {self.question}"
